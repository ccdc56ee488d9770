"""ODD-MAX-BIT by its formula, and the Chattopadhyay-Mande function by its definition."""

from math import log2

import numpy as np
import pytest

from pindown.circuits.boolean import (
    chattopadhyay_mande,
    chattopadhyay_mande_circuit,
    exact_rank,
    forster_lower,
    log2_sign_rank_lower,
    odd_max_bit,
    odd_max_bit_gate,
    or_width,
    sign_rank_upper,
    sign_rank_upper_of_function,
    threshold_to_relu,
    vertices,
)


def formula(x):
    total = sum((-1) ** (i + 1) * 2**i * (1 + s) for i, s in enumerate(x, 1))
    return -1 if total >= 0.5 else 1


def naive_function(x, n, t, active):
    """By the words: xor of pairs, or of t of them, largest active block."""
    last = 0
    for block in range(1, n + 1):
        pairs = [(x[2 * k], x[2 * k + 1]) for k in range((block - 1) * t, block * t)]
        value = -1 if any(u != v for u, v in pairs) else 1
        if value == active:
            last = block
    return -1 if last % 2 else 1


@pytest.mark.parametrize("n", range(1, 13))
def test_formula_gate_and_largest_index_agree(n):
    X = vertices(n)
    expected = [formula(x) for x in X.tolist()]
    assert odd_max_bit(X).tolist() == expected
    assert odd_max_bit_gate(n)(X).tolist() == expected
    np.testing.assert_array_equal(odd_max_bit(-X, active=-1), odd_max_bit(X))
    np.testing.assert_array_equal(odd_max_bit_gate(n, active=-1)(X), odd_max_bit(X, active=-1))


def test_many_bits_do_not_overflow():
    x = -np.ones(500, dtype=int)
    x[498] = 1  # index 499
    assert odd_max_bit(x) == -1 and odd_max_bit_gate(500)(x) == -1


@pytest.mark.parametrize("active", [1, -1])
@pytest.mark.parametrize(("n", "t"), [(1, 1), (2, 1), (1, 3), (3, 2), (2, 3), (4, 1)])
def test_composition_and_its_two_layers_of_thresholds(n, t, active):
    X = vertices(2 * n * t)
    expected = [naive_function(x, n, t, active) for x in X.tolist()]
    assert chattopadhyay_mande(X, n, t=t, omb_active=active).tolist() == expected
    circuit = chattopadhyay_mande_circuit(n, t=t, omb_active=active)
    assert circuit(X).ravel().tolist() == expected
    assert circuit.depth == 2 and circuit.gate_count == 2 * n + 1
    halves = np.column_stack([X[:, ::2], X[:, 1::2]])
    assert chattopadhyay_mande(halves, n, t=t, omb_active=active, layout="halves").tolist() == expected
    apart = chattopadhyay_mande_circuit(n, t=t, omb_active=active, layout="halves")
    assert apart(halves).ravel().tolist() == expected


def test_as_a_network_of_relus():
    net = threshold_to_relu(chattopadhyay_mande_circuit(2, t=2))
    X = vertices(8)
    np.testing.assert_allclose(net.to_network()(X).ravel(), chattopadhyay_mande(X, 2, t=2), atol=1e-12)


def test_as_a_network_of_relus_at_full_size():
    n = 8  # 80 inputs, of which each gate reads 10
    net = threshold_to_relu(chattopadhyay_mande_circuit(n))
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], (40, 2 * n * or_width(n)))
    for row in X[::2]:  # make some blocks equal
        block = slice(10 * rng.integers(n), None)
        row[block][1::2] = row[block][::2]
    values = chattopadhyay_mande(X, n).tolist()
    assert [net(x)[0] for x in X.tolist()] == values and set(values) == {-1, 1}
    assert [len(b) for _, b in net.layers] == [4 * n, 2, 1]


def test_arity_and_fan_in():
    assert [or_width(n) for n in (1, 8, 64, 4096)] == [1, 5, 10, 28]
    n = 8
    X = np.random.default_rng(0).choice([-1, 1], (50, 2 * n * or_width(n)))
    assert chattopadhyay_mande(X, n).shape == (50,)
    assert chattopadhyay_mande_circuit(n).n_inputs == 2 * n * or_width(n)


@pytest.mark.parametrize(("n", "t"), [(1, 1), (2, 1), (1, 2), (3, 1), (2, 2), (1, 4), (4, 1), (5, 1)])
def test_sign_rank_of_small_cases_is_below_the_upper_bound(n, t):
    """The matrix 1/2 - sum of weighted equalities has the signs, and rank at most 1 + n 2^t."""
    m = n * t
    signs = chattopadhyay_mande(vertices(2 * m), n, t=t, layout="halves").reshape(2**m, 2**m)
    cube = vertices(m).reshape(2**m, n, t)
    equal = (cube[:, None] == cube[None]).all(axis=3)  # (x, y, block)
    weights = np.array([(-1) ** (i + 1) * 2 ** (i + 1) for i in range(1, n + 1)])
    real = 0.5 - equal @ weights
    np.testing.assert_array_equal(np.sign(real), signs)
    bound = sign_rank_upper_of_function(n, t=t)
    ranks = [exact_rank(equal[:, :, i].astype(int)) for i in range(n)]
    assert exact_rank(real) <= bound == 1 + sum(ranks)  # of the constant, and of every equality
    assert forster_lower(signs) <= sign_rank_upper(real) <= bound


def test_printed_sign_rank_is_impossible():
    """Mukherjee 2020, Theorem 2.5.6: 2^(n/81 - 3) exceeds the upper bound 1 + n 2^t."""
    for n in (4096, 10**4, 10**5):
        upper = log2(sign_rank_upper_of_function(n))
        assert log2_sign_rank_lower(n, variant="as_printed") > upper
        assert log2_sign_rank_lower(n) <= upper


def test_bad_input():
    with pytest.raises(ValueError, match="2 n t = 8 bits"):
        chattopadhyay_mande([1, 1], 2, t=2)
    with pytest.raises(ValueError, match="active sign"):
        odd_max_bit([1, 1], active=0)
    with pytest.raises(ValueError, match="to_pm"):
        odd_max_bit([0, 1])
    with pytest.raises(ValueError, match="layout"):
        chattopadhyay_mande([1, 1], 1, t=1, layout="mixed")
    with pytest.raises(ValueError, match="integer of at least 1"):
        chattopadhyay_mande_circuit(0)
    with pytest.raises(ValueError, match="integer of at least 1"):
        chattopadhyay_mande([1, 1], 1, t=0)
    with pytest.raises(ValueError, match="integer of at least 1"):
        odd_max_bit_gate(0)
    with pytest.raises(ValueError, match="variant"):
        log2_sign_rank_lower(5, variant="printed")

"""The lower bound against Andreev's function: by simulation, and by consistency of its formulas."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from pindown.circuits.boolean import (
    OrderOfGrowth,
    advantage_threshold,
    agreement_tail,
    andreev_agreement,
    andreev_size,
    andreev_size_in_proof,
    ltf_of_relu_functions,
    surviving_gates,
)

SIZES = [2.0**12, 2.0**20, 2.0**40]
DELTAS = [0.05, 0.25, 0.45]


@pytest.mark.parametrize("n", range(4, 9))
def test_random_functions_agree_by_luck_as_rarely_as_claimed(n):
    """Mukherjee 2020, Claim 1."""
    rng = np.random.default_rng(n)
    fixed = rng.choice([-1, 1], 2**n)
    random = rng.choice(np.array([-1, 1], dtype=np.int8), (4000, 2**n))
    agreement = (random == fixed).mean(axis=1)
    for epsilon in (0.02, 0.05, 0.1, 0.2):
        bound = agreement_tail(n, epsilon)
        exact = binom.sf(math.ceil((0.5 + epsilon) * 2**n) - 1, 2**n, 0.5)
        assert exact <= bound
        error = math.sqrt(exact * (1 - exact) / 4000)
        assert abs(np.mean(agreement >= 0.5 + epsilon) - exact) <= 4 * error + 1e-3


def test_the_exponent_of_luck_is_that_of_the_binomial_law():
    n, epsilon = 20, 0.01
    exact = binom.logsf(math.ceil((0.5 + epsilon) * 2**n) - 1, 2**n, 0.5)
    assert exact <= math.log(agreement_tail(n, epsilon)) < 0.97 * exact


def test_union_bound_multiplies():
    one = agreement_tail(8, 0.2)
    assert agreement_tail(8, 0.2, log2_functions=10) == pytest.approx(1024 * one)
    assert agreement_tail(8, 0.2, log2_functions=1e9) == 1


def test_count_of_functions_uses_q():
    q = 3 * 5 + 2 * 3 + 2
    assert ltf_of_relu_functions(5, 3).value == pytest.approx(q**2 * math.log2(q))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("n", SIZES)
def test_at_the_corrected_threshold_one_gate_survives(n, delta):
    epsilon = advantage_threshold(n, delta).value
    if epsilon <= 0.5:
        assert surviving_gates(n, epsilon, delta).value == pytest.approx(1)


def test_printed_threshold_is_too_low_for_its_proof():
    """Mukherjee 2020, Theorem 2.5.4: the logarithm has exponent 2/(1 - 2 delta), not 2/(2 - delta).

    The proof needs that circuits of the surviving size almost never agree with a random function. At
    the printed threshold that size is below one gate, and the union bound is vacuous even for one gate.
    """
    n, delta = 2.0**20, 0.25
    bits = int(math.log2(n / 2))
    single = ltf_of_relu_functions(bits, 1).value
    printed = advantage_threshold(n, delta, variant="as_printed").value
    ours = advantage_threshold(n, delta).value
    assert surviving_gates(n, printed, delta).value < 1
    assert agreement_tail(bits, printed / 3, log2_functions=single) == 1
    assert agreement_tail(bits, ours / 3, log2_functions=single) <= ours / 3


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("n", SIZES)
def test_printed_size_in_the_proof_has_a_logarithm_upside_down(n, delta):
    """Mukherjee 2020, last display of section 2.6: log(n/2) belongs into the denominator."""
    epsilon = 0.3
    ours = andreev_size_in_proof(n, epsilon, delta).value
    printed = andreev_size_in_proof(n, epsilon, delta, variant="as_printed").value
    assert andreev_agreement(n, epsilon, delta, ours).value == pytest.approx(0.5 + epsilon)
    assert andreev_agreement(n, epsilon, delta, printed).value > 0.5 + 2 * epsilon
    assert printed / ours == pytest.approx(math.log2(n / 2) ** 2)


def test_exponents_of_the_theorem_come_from_the_proof():
    """With delta = theta / (2 (2 + theta)), n^(1/2 + 1/(2 + theta)) is n^(1 - delta)."""
    for delta in DELTAS:
        theta = 4 * delta / (1 - 2 * delta)
        assert theta / (2 * (2 + theta)) == pytest.approx(delta)
        assert 2 + theta == pytest.approx(2 / (1 - 2 * delta))
        n, epsilon = 1e9, 0.1
        proof = epsilon ** ((4 + theta) / (2 + theta)) * n ** (0.5 + 1 / (2 + theta))
        assert andreev_size(n, epsilon, delta).value == pytest.approx(proof)


def test_shapes_say_what_they_are():
    shape = andreev_size(1e6, 0.25, 0.1)
    assert isinstance(shape, OrderOfGrowth) and float(shape) == shape.value
    assert "leaves open" in repr(shape) and "n^(1-delta)" in repr(shape)


def test_bad_input():
    assert agreement_tail(10**6, 0.1) == 0 and agreement_tail(10**6, 0.0) == 1
    with pytest.raises(ValueError, match="log2_functions"):
        agreement_tail(3, 0.1, log2_functions=float("nan"))
    for arguments in ((0, 0.1), (3, -0.1), (3, 0.6), (3, float("nan"))):
        with pytest.raises(ValueError, match="epsilon"):
            agreement_tail(*arguments)
    for n, epsilon, delta in ((2, 0.1, 0.1), (100, 0, 0.1), (100, 0.1, 0.5), (float("nan"), 0.1, 0.1)):
        with pytest.raises(ValueError, match="are needed"):
            andreev_size(n, epsilon, delta)
    with pytest.raises(ValueError, match="variant"):
        advantage_threshold(100, 0.1, variant="printed")
    with pytest.raises(ValueError, match="gates"):
        ltf_of_relu_functions(3, -1)

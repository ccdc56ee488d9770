"""Lemma 2.5.1 of Mukherjee 2020: every function on the cube is a sum of ReLUs, this many and no more."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pindown.circuits.boolean import (
    fourier_coefficients,
    fourier_network,
    gate_count,
    smallest_sum_of_relu,
    table_from_fourier,
    table_of,
    vertex_network,
    vertices,
)
from pindown.geometry import count_regions


def check_exact(net, table):
    n = len(table).bit_length() - 1
    assert [net(x)[0] for x in vertices(n).tolist()] == [Fraction(v) for v in table]


def test_all_functions_of_three_bits_in_both_modes():
    for table in product((0, 1), repeat=8):
        coefficients = fourier_coefficients(table)
        by_vertex, by_fourier = vertex_network(table), fourier_network(coefficients, 3)
        merged = fourier_network(coefficients, 3, merge_linear=True)
        for net in (by_vertex, by_fourier, merged):
            check_exact(net, table)
        terms = [s for s in coefficients if s]
        assert gate_count(by_vertex) == sum(table) <= 8
        assert gate_count(by_fourier) == sum(map(len, terms))
        assert (
            gate_count(merged) <= bool(terms) + sum(len(s) - 1 for s in terms) <= gate_count(by_fourier)
        )
        smallest = smallest_sum_of_relu(table)
        check_exact(smallest, table)
        assert gate_count(smallest) <= min(gate_count(by_vertex), gate_count(by_fourier))


@pytest.mark.parametrize("seed", range(5))
def test_sparse_functions_of_ten_bits(seed):
    rng = np.random.default_rng(seed)
    coefficients = {
        tuple(sorted(rng.choice(10, size=rng.integers(0, 11), replace=False).tolist())): Fraction(
            int(rng.integers(1, 50)), 8
        )
        for _ in range(6)
    }
    net = fourier_network(coefficients, 10)
    table = np.array(table_from_fourier(coefficients, 10), dtype=float)
    # All numbers are small dyadic fractions: float64 computes with them without rounding.
    np.testing.assert_array_equal(net.to_network()(vertices(10)).ravel(), table)
    assert gate_count(net) == sum(map(len, coefficients))
    merged = fourier_network(coefficients, 10, merge_linear=True)
    np.testing.assert_array_equal(merged.to_network()(vertices(10)).ravel(), table)
    assert gate_count(merged) <= 1 + sum(max(0, len(s) - 1) for s in coefficients)


@pytest.mark.parametrize("merge", [False, True])
def test_random_rational_functions(merge):
    rng = np.random.default_rng(0)
    for n in (1, 2, 4):
        table = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 99, (2**n, 2))]
        check_exact(vertex_network(table), table)
        check_exact(vertex_network(table, background=table[0]), table)
        check_exact(fourier_network(fourier_coefficients(table), n, merge_linear=merge), table)


def test_printed_parity_has_a_gate_too_many():
    """Mukherjee 2020, 2.D: hinges at 0, ..., k are right, but k + 1 of them break the lemma's count."""
    for k in range(1, 8):
        jumps = [1] + [2 * (-1) ** j for j in range(1, k)] + [-1 if k % 2 else 1]
        printed = [sum(c * max(0, y - j) for j, c in enumerate(jumps)) for y in range(k + 3)]
        assert printed == [y % 2 for y in range(k + 1)] + [k % 2] * 2  # constant beyond k, as printed
        ours = fourier_network({tuple(range(k)): 1}, k)
        check_exact(ours, table_of(lambda X: X.prod(axis=1), k))
        lemma = min(2**k, k)
        assert len(jumps) == k + 1 > lemma == gate_count(ours)


def test_all_linear_terms_share_a_gate():
    coefficients = {(i,): i + 1 for i in range(8)}
    assert gate_count(fourier_network(coefficients, 8)) == 8
    merged = fourier_network(coefficients, 8, merge_linear=True)
    assert gate_count(merged) == 1
    check_exact(merged, table_from_fourier(coefficients, 8))


def test_constants_have_no_gates():
    for net in (vertex_network([0] * 8), vertex_network([3] * 8, background=3), fourier_network({}, 3)):
        assert gate_count(net) == 0 and len(net.layers) == 1
    assert fourier_network({(): Fraction(1, 3)}, 2, merge_linear=True)([1, -1]) == [Fraction(1, 3)]
    assert gate_count(fourier_network({(0, 1): 0}, 2)) == 0


def test_same_on_the_cube_and_different_elsewhere():
    table = [1, -1, -1, 1]
    one, two = vertex_network(table), fourier_network({(0, 1): 1}, 2)
    assert [one(x) for x in vertices(2).tolist()] == [two(x) for x in vertices(2).tolist()]
    assert one([0, 0]) != two([0, 0])
    # relu(y) is zero only at a corner, so inside the square there is one fold, x_1 + x_2 = 0.
    assert count_regions(two.to_network(), (-1, 1)) == 2


def test_bad_input(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("pindown.circuits.boolean.sum_of_relu.MAX_WEIGHTS", 23)
        assert gate_count(vertex_network([1] * 7 + [0])) == 7  # 21 weights
        with pytest.raises(ValueError, match="exact weights"):
            vertex_network([1] * 8)
    with pytest.raises(ValueError, match="exact weights"):
        fourier_network({tuple(range(3000)): 1}, 3000)
    with pytest.raises(ValueError, match=r"2\^n values"):
        smallest_sum_of_relu([])
    with pytest.raises(ValueError, match="integer of at least 1"):
        fourier_network({}, 0)
    with pytest.raises(TypeError):
        fourier_network({}, 2.5)
    with pytest.raises(ValueError, match="exact weights"):
        fourier_network({}, 10**9)
    with pytest.raises(ValueError, match="finite"):
        vertex_network([1, 2], background=float("inf"))

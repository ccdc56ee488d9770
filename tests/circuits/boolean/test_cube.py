"""The cube: alphabets, the order of tables, Fourier coefficients against their definition."""

from fractions import Fraction
from itertools import chain, combinations
from math import prod

import numpy as np
import pytest

from pindown.circuits.boolean import (
    fourier_coefficients,
    table_from_fourier,
    table_of,
    to_bits,
    to_pm,
    vertices,
    walsh_hadamard,
)
from pindown.circuits.boolean.cube import sign_rows


def subsets(n):
    return chain.from_iterable(combinations(range(n), k) for k in range(n + 1))


def naive_coefficient(table, n, subset):
    total = sum(
        Fraction(value) * prod(int(x[i]) for i in subset)
        for value, x in zip(table, vertices(n), strict=True)
    )
    return total / 2**n


def test_alphabets_convert_and_true_is_minus_one():
    assert to_pm(1) == -1 and to_pm(0) == 1
    bits = vertices(4, alphabet="bits")
    np.testing.assert_array_equal(to_bits(to_pm(bits)), bits)
    np.testing.assert_array_equal(to_pm(bits), vertices(4))
    rows, single = sign_rows([0, 1], alphabet="bits")
    assert rows.tolist() == [[1, -1]] and single


def test_vertex_number_k_spells_k():
    bits = vertices(5, alphabet="bits")
    assert [int("".join(map(str, row)), 2) for row in bits.tolist()] == list(range(32))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_coefficients_follow_their_definition(n):
    rng = np.random.default_rng(n)
    table = [Fraction(int(a), int(b)) for a, b in rng.integers(1, 9, (2**n, 2))]
    found = fourier_coefficients(table)
    for subset in subsets(n):
        assert found.get(subset, 0) == naive_coefficient(table, n, subset)
    assert table_from_fourier(found, n) == table
    assert sum(c**2 for c in found.values()) == sum(v**2 for v in table) / 2**n  # Parseval


def test_parity_has_one_coefficient_and_and_has_all():
    assert fourier_coefficients(table_of(lambda X: X.prod(axis=1), 10)) == {tuple(range(10)): 1}
    conjunction = table_of(lambda X: X.max(axis=1), 4)  # true (-1) if all are
    assert len(fourier_coefficients(conjunction)) == 16


def test_numbers_of_any_size_are_exact():
    huge = [10**40, -(10**40), 1, 0.1]
    coefficients = fourier_coefficients(huge)
    assert table_from_fourier(coefficients, 2) == [Fraction(v) for v in huge]
    assert walsh_hadamard([2**62, 2**62]).tolist() == [2**63, 0]


def test_bad_input():
    for bad in ([], [1], [1, 2, 3], [0] * 6):
        with pytest.raises(ValueError, match=r"2\^n values"):
            fourier_coefficients(bad)
    with pytest.raises(ValueError, match="finite"):
        fourier_coefficients([1.0, float("nan")])
    with pytest.raises(TypeError, match="real numbers"):
        fourier_coefficients(["1", "2"])
    for n in (0, 21, 64, 10**9):
        with pytest.raises(ValueError, match="at most 20"):
            vertices(n)
    with pytest.raises(TypeError, match="must be an integer"):
        vertices(3.0)
    with pytest.raises(ValueError, match="alphabet"):
        vertices(3, alphabet="tf")
    for wrong in ([0, 1], [1, 2], [0.5, 1], [np.nan, 1]):
        with pytest.raises(ValueError, match="to_pm"):
            to_bits(wrong)
    with pytest.raises(ValueError, match="to_bits"):
        to_pm([-1, 1])
    with pytest.raises(ValueError, match="shape"):
        sign_rows(np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match="shape"):
        sign_rows(np.ones((3, 0)))
    with pytest.raises(ValueError, match="one value"):
        table_of(lambda X: X, 2)
    for subset in [(0, 3), (-1,), (1, 1)]:
        with pytest.raises(ValueError, match="different variables"):
            table_from_fourier({subset: 1}, 3)
    for subset in (3, "01"):
        with pytest.raises(TypeError, match="tuple such as"):
            table_from_fourier({subset: 1}, 3)
    with pytest.raises(ValueError, match="twice"):
        table_from_fourier({(0, 1): 1, (1, 0): 2}, 3)

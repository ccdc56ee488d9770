"""Residues, grids and separation bounds, against Python's integers and rationals."""

from fractions import Fraction

import numba
import numpy as np
import pytest

from pindown.geometry._compiled.exact_residues import (
    BITS_PER_PRIME,
    GRID,
    HEIGHT,
    PRIMES,
    SIZE,
    SLOPE,
    times,
    with_primes,
)
from pindown.geometry._compiled.zero_proofs import prepare
from pindown.geometry.complex._traversal import Walk
from pindown.geometry.exact.complex import exact_complex
from tests.geometry.oracles import KINDS, cube, degenerate_network


def is_prime(n):
    """Miller and Rabin's test with bases that leave no doubt below 3.3e24."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    powers = (
        [pow(a, odd << k, n) for k in range(twos)] for a in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    )
    return all(p[0] == 1 or n - 1 in p for p in powers)


def test_the_moduli_are_different_primes_of_fifty_bits():
    assert len(set(PRIMES)) == len(PRIMES) and all(map(is_prime, PRIMES))
    assert all(2**BITS_PER_PRIME < p < 2**50 for p in PRIMES)


def test_products_of_residues():
    compiled = numba.njit(times.__wrapped__)  # as compiled: 64-bit integers wrap
    rng = np.random.default_rng(0)
    for prime in PRIMES:
        special = [0, 1, 2, prime - 1, prime - 2, prime // 2, prime // 2 + 1]
        others = special + rng.integers(0, prime, 30).tolist()
        assert all(compiled(a, b, prime) == a * b % prime for a in special for b in others)
        pairs = [tuple(map(np.int64, (a, b, prime))) for a in special for b in others]
        with np.errstate(over="ignore"):  # as Python: those of NumPy wrap as well
            assert all(times.plain(a, b, p) == int(a) * int(b) % int(p) for a, b, p in pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_measures_hold_on_every_cell(kind):
    net = degenerate_network(kind, 2, np.random.default_rng(1), (5, 5))
    walk = Walk(net, cube(2), counting=True, certified=True)
    walk.ties = with_primes(walk.ties, 2)
    prepare(walk.flat, walk.work, walk.ties)
    measures, width = walk.ties.measures, net.hidden_widths[0]
    first = [
        [Fraction(float(v)) for v in (*w, b)]
        for w, b in zip(net.layers[0].weight, net.layers[0].bias, strict=True)
    ]
    for pattern in exact_complex(net, cube(2)).patterns:
        for i, (w, b) in enumerate(zip(net.layers[1].weight, net.layers[1].bias, strict=True)):
            form = [
                sum(
                    (Fraction(float(w[j])) * first[j][c] for j in range(width) if pattern[j]),
                    Fraction(0),
                )
                for c in range(3)
            ]
            form[2] += Fraction(float(b))
            scaled = [c * Fraction(2) ** int(measures[GRID, width + i]) for c in form]
            assert all(c.denominator == 1 for c in scaled)
            steep, height = sum(map(abs, form[:2])), abs(form[2])
            assert steep <= 2 ** measures[SLOPE, width + i] and height <= measures[HEIGHT, width + i] * (
                1 + 1e-9
            )
            assert steep + height <= measures[SIZE, width + i] * (1 + 1e-9)

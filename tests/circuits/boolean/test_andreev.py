"""Andreev's function against naive code, and what restrictions make of it."""

import numpy as np
import pytest

from pindown.circuits.boolean import (
    AndreevLayout,
    Restriction,
    address_mask,
    andreev_function,
    andreev_restriction,
    to_pm,
    vertices,
)


def naive(bits):
    n = len(bits)
    half = n // 2
    L = int(np.floor(np.log2(n / 2)))
    columns = n // (2 * L)
    address = ""
    for i in range(L):
        row = bits[half + i * columns : half + (i + 1) * columns]
        address += str(sum(row) % 2)
    return bits[int(address, 2)]


def test_sixteen_bits_exhaustively():
    layout = AndreevLayout(16)
    assert (layout.address_bits, layout.table_size, layout.columns) == (3, 8, 2)
    X = vertices(16, alphabet="bits")
    assert andreev_function(X).tolist() == [naive(row) for row in X.tolist()]
    np.testing.assert_array_equal(andreev_function(to_pm(X), alphabet="pm"), to_pm(andreev_function(X)))


@pytest.mark.parametrize("n", [4, 5, 6, 7, 9, 12, 21, 64, 100])
def test_other_sizes_and_what_they_ignore(n):
    rng = np.random.default_rng(n)
    X = rng.integers(0, 2, (200, n))
    values = andreev_function(X)
    assert values.tolist() == [naive(row) for row in X.tolist()]
    layout = AndreevLayout(n)
    ignored = [*range(2**layout.address_bits, layout.table_size), *range(n - layout.unused, n)]
    X[:, ignored] = 1 - X[:, ignored]
    np.testing.assert_array_equal(andreev_function(X), values)


@pytest.mark.parametrize("n", [8, 16, 32])
def test_restriction_reads_the_table_through_a_mask(n):
    rng = np.random.default_rng(n)
    layout = AndreevLayout(n)
    L = layout.address_bits
    for _ in range(20):
        table = rng.integers(0, 2, layout.table_size)
        rho = andreev_restriction(table, n, rng)
        assert len(rho.free) == L
        restricted = andreev_function(rho.complete(vertices(L)), alphabet="pm")
        mask = address_mask(rho)
        np.testing.assert_array_equal(restricted, to_pm([table[k ^ mask] for k in range(2**L)]))


def test_printed_claim_leaves_out_the_mask():
    """Mukherjee 2020, Claim 2: the table is the string x only if the fixed bits of all rows are even."""
    rng = np.random.default_rng(0)
    table = [0, 0, 0, 1, 0, 1, 1, 1]
    as_printed = []
    for _ in range(60):
        rho = andreev_restriction(table, 16, rng)
        restricted = andreev_function(rho.complete(vertices(3)), alphabet="pm")
        same = restricted.tolist() == to_pm(table).tolist()
        assert same == (address_mask(rho) == 0)  # this table has no symmetry under masks
        as_printed.append(same)
    assert not all(as_printed) and any(as_printed)


def test_bad_input():
    with pytest.raises(ValueError, match="n must be an integer of at least 4"):
        andreev_function([0, 1, 1])
    with pytest.raises(ValueError, match="0 and 1"):
        andreev_function([-1, 1, 1, 1])
    with pytest.raises(ValueError, match="8 bits"):
        andreev_restriction([0, 1], 16, np.random.default_rng(0))
    with pytest.raises(ValueError, match="one free bit"):
        address_mask(Restriction.parse("+-**"))

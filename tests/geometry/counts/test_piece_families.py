"""Counts of the known constructions: below every upper bound, and compared as the source does."""

from __future__ import annotations

import pytest

from pindown.geometry.counts.bounds import max_regions
from pindown.geometry.counts.piece_families import (
    compare_families,
    montufar,
    telgarsky,
    zigzags_to_beat_folding,
    zonotope_min_size,
    zonotope_pieces,
)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_families_stay_below_the_upper_bound(n, k):
    for w in range(max(n, 2), 8):
        assert montufar(n, k, w) <= max_regions(n, [w] * k)
        assert telgarsky(k, w) <= max_regions(1, [w] * k)
        for m in (1, 2, 4):
            assert zonotope_pieces(n, k, w, m) <= max_regions(n, [2 * m, *[w] * k])
            assert zonotope_min_size(n, k, w, m, hidden_layers=k + 1) <= 2 * m + w * k


def test_zonotopes_beat_folding_where_folding_cannot_fold():
    # n <= w < 2 n: the floor is 1, so depth adds nothing to the folding construction.
    assert montufar(8, 2, 12) == montufar(8, 9, 12) == 3797
    assert zigzags_to_beat_folding(8, 12, 6) == 2
    at, before = compare_families(8, 12, 6, zigzags=2), compare_families(8, 12, 6, zigzags=1)
    assert (before.zonotope, before.montufar) == (768, 3797)
    assert (at.zonotope, at.montufar, at.hidden_layers, at.width) == (9217, 3797, 3, 12)


@pytest.mark.parametrize("n", range(4, 40, 4))
def test_few_zigzags_are_enough_in_that_regime(n):
    # The claim is k of order n / log n; counting gives (w - m) log 2 / log w or less.
    m, w = n - 1, 2 * n - 1
    k = zigzags_to_beat_folding(n, w, m)
    assert k is not None and w ** (k - 1) <= 2 ** (w - m)


def test_folding_wins_when_layers_are_wide():
    assert zigzags_to_beat_folding(2, 8, 2, limit=20) is None


def test_lower_bound_falls_with_depth():
    bounds = [zonotope_min_size(2, 4, 3, 3, hidden_layers=k) for k in range(1, 6)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] >= 2 * 3**4 - 1  # one hidden layer, on a line: one bend for each ReLU


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: montufar(3, 2, 2), "width must be an integer of at least 3"),
        (lambda: telgarsky(0, 2), "hidden_layers must be"),
        (lambda: zonotope_pieces(2, 1, 1, 3), "width must be an integer of at least 2"),
        (lambda: zonotope_pieces(2, 1, 2, 0), "generators must be"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("n", "k", "w", "m", "shallow"), [(2, 4, 3, 50, 2), (3, 6, 2, 200, 3), (1, 3, 5, 2, 1)]
)
def test_the_printed_lower_bound_is_the_printed_expression(n, k, w, m, shallow):
    power = w ** (k / shallow)
    both = (
        shallow * power * (m - 1) ** ((n - 1) / (n * shallow)) / 2 - 1,
        shallow * power / n ** (1 / shallow),
    )
    found = zonotope_min_size(n, k, w, m, shallow, variant="as_printed")
    assert found - 1 < max(both) <= found + 1e-9

"""Lecture course and Wolf et al. 2019: statements wrong as printed, beside the corrected ones."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from pindown.circuits import indicator_network
from pindown.symmetry import cyclic
from pindown.symmetry.discovery.group_from_gramian import sorted_gram_penalty


def bump(value, places, width=0.2):
    """A smooth form of the unit mass at a value."""
    return np.exp(-((places - value) ** 2) / (2 * width**2))


def test_columns_are_compared_as_wholes_not_entry_by_entry():
    """The slide sums over pairs of entries k, l; then columns in another order are far apart."""
    w = np.array([2.0, -1.0, 0.5, 0.0])
    W = np.stack([matrix @ w for matrix in cyclic(4).matrices], axis=1)
    G = W.T @ W
    first, second = G[:, 0], G[:, 1]
    assert np.allclose(np.sort(first), np.sort(second)) and not np.allclose(first, second)
    places = np.linspace(-10, 10, 2_001)
    step = places[1] - places[0]
    printed = sum(((bump(a, places) - bump(b, places)) ** 2).sum() * step for a in first for b in second)
    whole = [sum(bump(a, places) for a in column) for column in (first, second)]
    ours = ((whole[0] - whole[1]) ** 2).sum() * step
    assert printed > 1
    assert ours == pytest.approx(0, abs=1e-12)
    assert float(sorted_gram_penalty(torch.as_tensor(W))) == pytest.approx(0, abs=1e-12)


def test_zero_off_the_points_is_no_label():
    """Theorem 1 (3): a classifier into -1 and 1 whose proof writes 0 off the points; -1 is meant."""
    points, off = [0, 2], [Fraction(-1), Fraction(1), Fraction(3)]
    printed = indicator_network(points, Fraction(1, 2), off=0)
    ours = indicator_network(points, Fraction(1, 2))
    for x in points:
        assert printed([x]) == ours([x]) == [1]
    assert all(printed([x]) == [0] for x in off)  # neither -1 nor 1: wrong everywhere
    assert all(ours([x]) == [-1] for x in off)
    # The count of kinks, and so 3m units, does not depend on which it is.
    assert len(printed.layers[0][1]) == len(ours.layers[0][1]) == 3 * len(points)

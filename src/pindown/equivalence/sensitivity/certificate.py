"""Prove the bound that a set of multipliers promises."""

from __future__ import annotations

from math import inf

import numpy as np

from pindown.affine import Array
from pindown.equivalence.sensitivity.concave import LOST, MODERATE, ConcaveQuadratic, coupled_layers
from pindown.equivalence.sensitivity.multipliers import SourceChain
from pindown.rounding import UNIT_ROUNDOFF, gamma

LARGEST_SYSTEM = 3000  # variables; the factorisation of such a matrix takes about a second


def proved_bounds(chain: SourceChain, x: Array) -> Array:
    """Return a proved upper bound for every objective of the chain; infinite where the proof fails.

    Args:
        chain: The source and all that follows.
        x: Positive multipliers.

    >>> one = np.ones((1, 1))  # a source of 3 passes one ReLU and is read with weight 1
    >>> chain = SourceChain(np.array([3.0]), np.ones((1, 0)), np.zeros(0), 0.0, (), one)
    >>> proved_bounds(chain, np.array([1 / 3])).round(9)
    array([3., 0.])
    """
    objectives = chain.objectives
    failed = np.full(objectives.shape[1], inf)
    if sum(chain.sizes[1:]) > LARGEST_SYSTEM or not np.all((x > MODERATE[0]) & (x < MODERATE[1])):
        return failed
    ball, entry, *lams = chain.split(x)
    # Rounded down: a smaller multiplier is a valid one, and what it multiplies is counted in full.
    first = np.nextafter(ball + entry, 0.0) if len(entry) else np.zeros(0)
    quadratic = ConcaveQuadratic.proved(coupled_layers([first, *lams], [chain.matrix, *chain.weights]))
    if quadratic is None:
        return failed
    h = np.zeros((len(quadratic.matrix), objectives.shape[1]))
    start = chain.matrix.shape[1]
    h[-len(objectives) :] += objectives
    h[start : start + len(chain.fixed)] += (lams[0] * chain.fixed)[:, None]
    suprema = quadratic.suprema(h)
    constant = float(np.sum(ball)) * chain.length**2 + float(np.sum(entry * chain.entries**2))
    constant *= 1.0 + 4.0 * gamma(len(h) + 8)
    bounds = suprema + constant + 8.0 * UNIT_ROUNDOFF * (np.abs(suprema) + constant) + LOST
    return np.where(np.isfinite(bounds), bounds, inf)

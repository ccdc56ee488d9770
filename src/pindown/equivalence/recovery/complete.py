r"""The last hidden layer when some of its units do not show a whole fold.

A unit that is on all over the box has no fold; what it adds is linear in the layer below, and is found
by fitting the values with

.. math:: f = \sum_i \tfrac12 v_i |u_i| + B a + c

in the units :math:`u_i` found. A unit whose fold is only seen where some inputs are off has unknown
weights from these inputs; they start at a few guesses and follow from the values by least squares.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from pindown.affine import Array
from pindown.equivalence.recovery.candidates import Parts
from pindown.equivalence.recovery.lower import Lower
from pindown.equivalence.recovery.oracle import Oracle
from pindown.equivalence.recovery.polish import polish
from pindown.equivalence.recovery.signs import last_tolerance, least_squares, likely_signs
from pindown.network import ReluNetwork

_MOST_STARTS = 96
_MOST_PARTS = 4
_GUESSES = (0.0, 1.0, -1.0)  # of the unknown weights, in units of the row's length
_STEPS = 40
_DROP = 1e-8  # singular values of a linear part, relative to the spread, that count as zero


def linear_rest(
    oracle: Oracle, lower: Lower, rows: Array, points: Array, values: Array, spare: int | None = None
) -> tuple[Array, int] | None:
    """Add units that are always on, if the values are the found units' plus a linear part.

    Args:
        oracle: For its noise.
        lower: The layers below.
        rows: The units found, (m, width + 1).
        points: Points of the cube, (n, d).
        values: The function there, (n, k).
        spare: How many units may be added; None for any number.

    Returns:
        Rows with signs (m + r, width + 1), and the number r added; None if that does not explain the
        values.
    """
    a = lower(points)
    u = a @ rows[:, :-1].T + rows[:, -1]
    solution, residual = least_squares(np.column_stack([np.abs(u), a, np.ones(len(a))]), values)
    if residual > last_tolerance(oracle):
        return None
    m = len(rows)
    bends, linear = solution[:m], solution[m:-1]
    signs = likely_signs(rows, bends, linear)
    if signs is None:
        return None
    rest = linear - (rows[:, :-1].T * signs) @ bends  # (width, k)
    left, sizes, _ = np.linalg.svd(rest * np.max(np.abs(a), axis=0)[:, None], full_matrices=False)
    rank = int(np.sum(sizes > max(_DROP, 1e4 * oracle.noise)))
    if spare is not None and rank > spare:
        return None
    reach = np.max(np.abs(a), axis=0)
    directions = left[:, :rank].T / np.where(reach > 0.0, reach, 1.0)
    # Values of the layer below over the cube are bounded by intervals: then the unit is on all over.
    low, high = lower.bounds()
    least = np.minimum(directions * low, directions * high).sum(axis=1)
    always = np.column_stack([directions, 1.0 - least])
    spread = signs[:, None] * rows
    return np.concatenate([spread, always]), rank


def with_partial(
    oracle: Oracle, lower: Lower, rows: Array, parts: Parts, missing: int, points: Array, values: Array
) -> Array | None:
    """Add partly known units and fit their unknown weights: rows with signs, or None."""
    a = lower(points)
    often = np.argsort(-parts.hits, kind="stable")[:_MOST_PARTS]
    starts = 0
    for chosen in combinations(often, missing):
        added, known = parts.row[list(chosen)], parts.known[list(chosen)]
        for guess, signs in product(_GUESSES, product((1.0, -1.0), repeat=len(rows) + missing)):
            starts += 1
            oracle.require_time()
            if starts > _MOST_STARTS:
                return None
            guessed = np.where(known, added, guess * np.array(signs[len(rows) :])[:, None])
            start = np.array(signs)[:, None] * np.concatenate([rows, guessed])
            z = np.maximum(a @ start[:, :-1].T + start[:, -1], 0.0)
            last, _ = least_squares(np.column_stack([z, np.ones(len(z))]), values)
            net = ReluNetwork.from_layers([(start[:, :-1], start[:, -1]), (last[:-1].T, last[-1])])
            fitted = polish(net, a, values, steps=_STEPS)
            if float(np.max(np.abs(fitted(a) - values))) <= last_tolerance(oracle):
                W, b = fitted.layers[0]
                return np.column_stack([W, b])
    return None

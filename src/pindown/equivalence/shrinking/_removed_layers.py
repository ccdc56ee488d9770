r"""A hidden layer removed, because the next one can be computed from its input directly.

Every unit k of layer l + 1 must be of one of two kinds. Either what enters it is affine in the input
of layer l (its terms are always on, or opposite and cancelling): then it takes that affine function
itself. Or it is always on: then it is a sum of ReLUs of layer l, which move up and take its place. In
both cases layers l and l + 1 become one:

.. math::
    \rho\big(\rho(u) - \rho(-u) + c\big) = \rho(u + c), \qquad
    \rho\big(t\,\rho(u)\big) = t\,\rho(u) \quad (t \ge 0).

This covers layers without effect, inserted identities, affine maps in a row, and ReLU splitting.

Phuong 2021, section 2.2; Mukherjee 2020, Lemma 2.A.2 (affine maps compose).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Matrix, compact
from pindown.equivalence.shrinking._linear_part import LinearPart, linear_part
from pindown.equivalence.shrinking._proposals import Draft, Errors, Layer, pick
from pindown.equivalence.shrinking._rounded_matrices import (
    Mask,
    Rounded,
    affine_image,
    beside,
    columns_of,
    feasible,
    matmul,
    rows_of,
    stacked,
    used_columns,
)
from pindown.equivalence.shrinking.result import Step
from pindown.model.operations.operation import Interval


def remove_layer(draft: Draft, layer: int) -> bool:
    """Remove a hidden layer (from 0) if the next layer does not need it; return whether it went."""
    net = draft.net
    part = linear_part(draft, layer)
    last = layer + 2 == net.depth
    on = np.zeros(len(part.kinked), bool) if last else draft.bounds(layer + 1).lower >= 0.0
    if (part.kinked & ~on).any() or _too_large(draft, layer, part):
        return False
    if last:
        return _fuse_output(draft, layer, part)
    # A row that is both affine and always on goes where it makes the new layer narrower.
    choices = [~part.kinked, ~on]
    return _join(draft, layer, part, min(choices, key=lambda affine: _width(draft, layer, affine)))


def _width(draft: Draft, layer: int, affine: Mask) -> int:
    following = rows_of(draft.net.layers[layer + 1].weight, ~affine)
    return int(affine.sum()) + int(used_columns(following).sum() if following.shape[0] else 0)


def _too_large(draft: Draft, layer: int, part: LinearPart) -> bool:
    return not feasible(rows_of(part.coefficients, ~part.kinked), draft.net.layers[layer].weight)


def _affine_rows(draft: Draft, layer: int, part: LinearPart, rows: Mask) -> tuple[Rounded, Rounded]:
    """Return weights and biases of rows of the next layer, as functions of the layer's input."""
    (weight, bias), (_, offset) = draft.net.layers[layer : layer + 2]
    coefficients = rows_of(part.coefficients, rows)
    return matmul(coefficients, weight), affine_image(coefficients, bias, offset[rows])


def _fuse_output(draft: Draft, layer: int, part: LinearPart) -> bool:
    """Let the last affine map read the layer's input."""
    weight, bias = _affine_rows(draft, layer, part, ~part.kinked)
    layers: list[Layer] = [*draft.net.layers[:layer], (weight.value, bias.value)]
    reason = f"the outputs are affine in what enters the layer {draft.where}"
    return _propose(
        draft, layer, layers, {layer: (weight.error, bias.error)}, draft.known[:layer], reason
    )


def _join(draft: Draft, layer: int, part: LinearPart, affine: Mask) -> bool:
    """Make one layer of the affine rows of layer l + 1 and the units of layer l its other rows sum."""
    (weight, bias), (following, offset), (outer, outer_bias) = draft.net.layers[layer : layer + 3]
    sums = rows_of(following, ~affine)
    moved = used_columns(sums) if sums.shape[0] else np.zeros(len(bias), bool)
    new_weight, new_bias = _affine_rows(draft, layer, part, affine)
    order = _order(affine, sums, moved)
    rest = columns_of(outer, ~affine)
    passed = matmul(rest, columns_of(sums, moved))
    shifted = affine_image(rest, offset[~affine], outer_bias)
    inner = Rounded(
        _ordered_rows(new_weight.value, rows_of(weight, moved), order),
        _ordered_rows(new_weight.error, rows_of(weight, moved) * 0.0, order),
    )
    outward = Rounded(
        _ordered_columns(columns_of(outer, affine), passed.value, order),
        _ordered_columns(columns_of(outer, affine) * 0.0, passed.error, order),
    )
    inner_bias = np.concatenate([new_bias.value, bias[moved]])[order]
    inner_error = np.concatenate([new_bias.error, np.zeros(int(moved.sum()))])[order]
    layers: list[Layer] = list(draft.net.layers)
    layers[layer : layer + 3] = [(inner.value, inner_bias), (outward.value, shifted.value)]
    errors = {layer: (inner.error, inner_error), layer + 1: (outward.error, shifted.error)}
    below, above = pick(draft.known[layer], moved), pick(draft.known[layer + 1], affine)
    ends = [np.concatenate(pair)[order] for pair in zip(above, below, strict=True)]
    known = [*draft.known[:layer], Interval(*ends), *draft.known[layer + 2 :]]
    return _propose(draft, layer, layers, errors, known, _reason(draft, affine))


def _order(affine: Mask, sums: Matrix, moved: Mask) -> NDArray[np.intp]:
    """Return the order of the new units: affine rows and moved units, where the old rows stood."""
    place = sp.coo_array(sums)
    stored = place.data != 0.0
    first = np.full(len(moved), len(affine))
    np.minimum.at(first, place.col[stored], np.flatnonzero(~affine)[place.row[stored]])
    keys = np.concatenate([np.flatnonzero(affine), first[moved]])
    return np.argsort(keys, kind="stable")


def _ordered_rows(top: Matrix, bottom: Matrix, order: NDArray[np.intp]) -> Matrix:
    return compact(rows_of(stacked(top, bottom), order))


def _ordered_columns(left: Matrix, right: Matrix, order: NDArray[np.intp]) -> Matrix:
    return compact(columns_of(beside(left, right), order))


def _reason(draft: Draft, affine: Mask) -> str:
    if affine.all():
        return f"every unit of the next layer sees an affine function of the layer's input {draft.where}"
    if not affine.any():
        return (
            f"no unit of the next layer is ever off {draft.where}, so both affine maps around it are one"
        )
    count = int(affine.sum())
    return (
        f"of the next layer's units {count} see an affine function of the layer's input, "
        f"{len(affine) - count} are never off {draft.where} and pass on ReLUs of this layer"
    )


def _propose(
    draft: Draft, layer: int, layers: list[Layer], errors: Errors, known: list[Interval], reason: str
) -> bool:
    units = tuple(range(draft.net.layers[layer].out_features))
    return draft.propose(layers, errors, Step("layer removed", layer + 1, units, reason), known)

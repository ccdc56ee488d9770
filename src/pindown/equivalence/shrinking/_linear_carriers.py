r"""The linear part of a layer, carried by as few units as its rank allows.

Always-on units S and opposite pairs contribute a linear map :math:`B = C_S W_S` of the layer's input.
A map with r non-zero rows, or r non-zero columns, needs r units that are always on, however many
carried it before:

.. math::
    B\,a = I\,\rho(B a + \beta) - \beta \quad\text{on a box}, \qquad
    B\,a = B\,\rho(a) \quad\text{if the input } a \text{ comes from ReLUs.}

Without a box a row needs two units, :math:`\rho(t) - \rho(-t)`. An opposite pair that does not cancel
joins in as :math:`c\,\rho(z) + c'\rho(-z) = (c + c')\,\rho(z) - c' z`.

With a tolerance :math:`B \approx U V`, V of r rows, is enough: the units :math:`\rho(V a + \beta)`,
:math:`\beta` large enough, do the same work, and the difference :math:`|B - U V|\,|a|` is charged.

Phuong 2021, section 2.2; the count is the rank of the affine part of a shallow network's normal form.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix, compact, dense
from pindown.box import Box
from pindown.equivalence.shrinking._duplicate_and_dead_units import ratio
from pindown.equivalence.shrinking._linear_part import LinearPart, linear_part, shift_above
from pindown.equivalence.shrinking._proposals import Draft, Errors, Layer, pick
from pindown.equivalence.shrinking._rounded_matrices import (
    Mask,
    Rounded,
    add,
    affine_image,
    beside,
    columns_of,
    feasible,
    largest,
    matmul,
    multiply,
    row,
    rows_of,
    stacked,
    sum_up,
    used_columns,
    used_rows,
    with_columns,
    zeros,
)
from pindown.equivalence.shrinking._unit_facts import nothing_known
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.tuning import MAX_MAP_ENTRIES, RANK_NOISE
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.rounding import SMALLEST, gamma

Indices = NDArray[np.intp]


class _Plan(NamedTuple):
    """Units whose linear work is to be carried anew."""

    on: Indices  # always on: they go
    first: Indices  # cancelling pairs: both go
    second: Indices
    folded: Indices  # the first of a pair that does not cancel: stays as the kink
    dropped: Indices  # its second: goes
    factors: Array  # t > 0 with second = -t first

    @property
    def units(self) -> int:
        return len(self.on) + 2 * len(self.first) + len(self.dropped)

    @property
    def gone(self) -> Indices:
        return np.concatenate([self.on, self.first, self.second, self.dropped])

    @property
    def sources(self) -> Indices:
        """Units whose rows the linear map is made of."""
        return np.concatenate([self.on, self.first, self.folded])


class _Carriers(NamedTuple):
    """New units for a linear map: what they read, their biases, what reads them, the next bias."""

    inward: Rounded
    bias: Array
    outward: Rounded
    offset: Rounded
    always_on: bool


def narrow_linear(draft: Draft, layer: int) -> bool:
    """Carry the linear part of a hidden layer (from 0) by fewer units, if that is possible."""
    part = linear_part(draft, layer)
    plans = [_plan(draft, layer, part, folding) for folding in (False, True)]
    best = max(plans, key=lambda plan: plan.units - min(_costs(draft, layer, plan)))
    by_rows, by_inputs = _costs(draft, layer, best)
    if min(by_rows, by_inputs) >= best.units:
        return False
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    # The plan holds only factors whose products with the weights are exact.
    scaled = columns_of(following, best.dropped)
    if len(best.dropped):
        scaled = scaled @ sp.diags_array(-best.factors)
    linear = beside(columns_of(following, np.concatenate([best.on, best.first])), scaled)
    if not feasible(linear, rows_of(weight, best.sources)):
        return False
    product = matmul(linear, rows_of(weight, best.sources))
    constant = affine_image(linear, bias[best.sources], offset)
    if not (isfinite(largest(product.value)) and isfinite(largest(constant.value))):
        return False
    build = _carry_rows if by_rows <= by_inputs else _carry_inputs
    return _propose(draft, layer, best, build(draft, layer, product, constant))


def _plan(draft: Draft, layer: int, part: LinearPart, folding: bool) -> _Plan:
    """Collect the linear units; with ``folding`` also pairs that do not cancel."""
    pairs, cancels = part.pairs, part.cancels
    (weight, bias), (following, _) = draft.net.layers[layer : layer + 2]
    found = []
    for i, j in zip(pairs.first[~cancels], pairs.second[~cancels], strict=True) if folding else ():
        factor, error = ratio(row(weight, bias, i), row(weight, bias, j))
        column = dense(columns_of(following, np.array([j])))
        if error == 0.0 and multiply(column, np.array(factor)).exact:
            found.append((i, j, -factor))
    table = np.array(found, dtype=float).reshape(-1, 3)
    folded, dropped = table[:, 0].astype(np.intp), table[:, 1].astype(np.intp)
    on = np.flatnonzero(part.on)
    return _Plan(on, pairs.first[cancels], pairs.second[cancels], folded, dropped, table[:, 2])


def _costs(draft: Draft, layer: int, plan: _Plan) -> tuple[int, int]:
    """Return how many units carry the linear part row by row, and input by input."""
    (weight, _), (following, _) = draft.net.layers[layer : layer + 2]
    readers = np.concatenate([plan.on, plan.first, plan.dropped])
    rows = int(used_rows(columns_of(following, readers)).sum())
    inputs = int(used_columns(rows_of(weight, plan.sources)).sum())
    one = _input_box(draft, layer) is not None
    return rows * (1 if one else 2), inputs * (1 if one or layer > 0 else 2)


def _input_box(draft: Draft, layer: int) -> Box | None:
    """Return bounds on the layer's input, if they are finite."""
    if layer == 0:
        return draft.box
    z = draft.bounds(layer - 1)
    if not np.isfinite(z.upper).all():
        return None
    return Box(np.maximum(z.lower, 0.0), np.maximum(z.upper, 0.0))


def _in_use(product: Rounded, used: Callable[[Matrix], Mask]) -> Indices:
    """Return rows or columns that are not zero, or so only by rounding: a unit then bears the error."""
    return np.flatnonzero(used(product.value) | used(product.error))


def _carry_rows(draft: Draft, layer: int, product: Rounded, constant: Rounded) -> _Carriers:
    """One unit (without a box: two) for every row of the linear map."""
    m, used = product.value.shape[0], _in_use(product, used_rows)
    inward = Rounded(rows_of(product.value, used), rows_of(product.error, used))
    pick_rows = sp.csr_array((np.ones(len(used)), (used, np.arange(len(used)))), (m, len(used)))
    inputs = _input_box(draft, layer)
    if inputs is None:
        inward = Rounded(stacked(inward.value, -inward.value), stacked(inward.error, inward.error))
        outward = compact(sp.hstack([pick_rows, -pick_rows], format="csr"))
        return _Carriers(inward, np.zeros(2 * len(used)), Rounded(outward, 0.0), constant, False)
    shift = np.zeros(len(used))
    if len(used):
        map_alone = ReluNetwork((Affine.of(inward.value, shift),))
        shift = shift_above(interval_bounds(map_alone, inputs)[0].lower)
    moved = add(constant.value, -np.asarray(pick_rows @ shift))
    offset = Rounded(moved.value, sum_up(moved.error, constant.error))
    return _Carriers(inward, shift, Rounded(compact(pick_rows), 0.0), offset, True)


def _carry_inputs(draft: Draft, layer: int, product: Rounded, constant: Rounded) -> _Carriers:
    """One unit (for the first layer without a box: two) for every input that the linear map reads."""
    n, used = product.value.shape[1], _in_use(product, used_columns)
    inward = sp.csr_array((np.ones(len(used)), (np.arange(len(used)), used)), (len(used), n))
    outward = Rounded(columns_of(product.value, used), columns_of(product.error, used))
    if layer == 0 and draft.box is None:
        signs = compact(sp.vstack([inward, -inward], format="csr"))
        outward = Rounded(beside(outward.value, -outward.value), beside(outward.error, outward.error))
        return _Carriers(Rounded(signs, 0.0), np.zeros(2 * len(used)), outward, constant, False)
    shift, offset = np.zeros(len(used)), constant
    if layer == 0 and draft.box is not None:
        shift = shift_above(draft.box.lower[used])
        offset = affine_image(outward.value, -shift, constant.value)
        # The map's rounding is multiplied by the inputs, which may be larger than what the units carry.
        lost = _spread_up(outward.error, shift)
        offset = Rounded(offset.value, sum_up(sum_up(offset.error, constant.error), lost))
    return _Carriers(Rounded(compact(inward), 0.0), shift, outward, offset, True)


def _spread_up(error: Matrix, sizes: Array) -> Array:
    """Return an upper bound on ``error @ sizes``, of numbers >= 0; nothing where there is no error."""
    if largest(error) == 0.0:
        return np.zeros(error.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):  # twice, for the product is rounded too
        total = 2.0 * np.asarray(error @ sizes) + len(sizes) * SMALLEST
    return np.where(np.isnan(total), np.inf, total)


def _propose(draft: Draft, layer: int, plan: _Plan, new: _Carriers) -> bool:
    (weight, bias), (following, _) = draft.net.layers[layer : layer + 2]
    keep = np.ones(len(bias), dtype=bool)
    keep[plan.gone] = False
    kinks, rounding = np.array(dense(columns_of(following, plan.folded))), 0.0
    if len(plan.folded):
        scaled = dense(columns_of(following, plan.dropped)) * plan.factors
        kinks, rounding = add(kinks, scaled)
    place = (np.cumsum(keep) - 1)[plan.folded]
    staying = with_columns(columns_of(following, keep), place, kinks)
    unsure = with_columns(columns_of(following, keep) * 0.0, place, rounding)
    count = len(new.bias)
    blank = zeros(following.shape[0], count)
    layers: list[Layer] = list(draft.net.layers)
    layers[layer] = stacked(rows_of(weight, keep), new.inward.value), np.append(bias[keep], new.bias)
    layers[layer + 1] = beside(staying, new.outward.value), new.offset.value
    inward_error = zeros(count, weight.shape[1]) if np.ndim(new.inward.error) == 0 else new.inward.error
    outward_error = blank if np.ndim(new.outward.error) == 0 else new.outward.error
    errors: Errors = {
        layer: (stacked(rows_of(weight, keep) * 0.0, inward_error), 0.0),
        layer + 1: (beside(unsure, outward_error), new.offset.error),
    }
    known = list(draft.known)
    stay, fresh = pick(known[layer], keep), nothing_known(count)
    if new.always_on:
        fresh = Interval(np.zeros(count), fresh.upper)
    known[layer] = Interval(*(np.append(a, b) for a, b in zip(stay, fresh, strict=True)))
    units = tuple(np.sort(plan.gone).tolist())
    reason = f"{len(units)} units do the work of a linear map that {count} units can carry"
    return draft.propose(layers, errors, Step("narrowed", layer + 1, units, reason), known)


def narrow_by_rank(draft: Draft, layer: int) -> bool:
    """Carry the always-on units of a hidden layer (from 0) by fewer, if the tolerance allows it."""
    inputs = draft.box if layer == 0 else _after_relu(draft.bounds(layer - 1))
    on = np.flatnonzero(linear_part(draft, layer).on)
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    if inputs is None or not len(on) or following.shape[0] * weight.shape[1] > MAX_MAP_ENTRIES:
        return False
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        factored = _factored(dense(following)[:, on], dense(weight)[on], inputs)
        if factored is None:
            return False
        U, V, shift, off = factored
        C, rank = dense(following)[:, on], len(V)
        constant = C @ bias[on] - U @ shift
        parts = np.abs(C) @ np.abs(bias[on]) + np.abs(U) @ np.abs(shift) + np.abs(offset)
        n = len(on) + rank + 8
        moved = off + 2.0 * gamma(n) * parts + n * SMALLEST
    keep = np.ones(len(bias), dtype=bool)
    keep[on] = False
    if rank == 0 and not keep.any():
        return False  # an affine map: other rules remove the layer
    layers: list[Layer] = list(draft.net.layers)
    layers[layer] = np.vstack([dense(weight)[keep], V]), np.append(bias[keep], shift)
    layers[layer + 1] = np.hstack([dense(following)[:, keep], U]), offset + constant
    if not all(np.isfinite(part).all() for pair in layers[layer : layer + 2] for part in pair):
        return False
    cost = _cost(draft, layer, moved)
    known = list(draft.known)
    stay = pick(known[layer], keep)
    fresh = Interval(np.zeros(rank), nothing_known(rank).upper)
    known[layer] = Interval(*(np.append(a, b) for a, b in zip(stay, fresh, strict=True)))
    reason = f"{len(on)} always-on units do the work of a linear map of rank {rank}, up to rounding"
    step = Step("narrowed", layer + 1, tuple(on.tolist()), reason)
    return draft.propose(layers, {}, step, known, cost=cost)


def _factored(C: Array, W: Array, inputs: Box) -> tuple[Array, Array, Array, Array] | None:
    """Return U, V and shifts with V a + shift >= 0 on the box, and a bound on |C W - U V| |a|.

    None if no unit is saved, or numbers leave float64.
    """
    B, sizes = C @ W, np.abs(C) @ np.abs(W)
    if not np.isfinite(sizes).all():
        return None
    left, singular, right = np.linalg.svd(B, full_matrices=False)
    rank = int(np.sum(singular > RANK_NOISE * np.linalg.norm(sizes)))
    if rank >= len(W):
        return None
    root = np.sqrt(singular[:rank])
    U, V = left[:, :rank] * root, root[:, None] * right[:rank]
    n = W.shape[1] + len(W) + rank + 8
    off = np.abs(B - U @ V) + gamma(n) * (2.0 * sizes + np.abs(B) + np.abs(U) @ np.abs(V)) + SMALLEST
    reach = np.maximum(np.abs(inputs.lower), np.abs(inputs.upper))
    return U, V, shift_above(_lowest(V, inputs)), (off @ reach) * (1.0 + gamma(n)) + n * SMALLEST


def _cost(draft: Draft, layer: int, moved: Array) -> float:
    """Bound what an error of the next layer's input to its ReLUs does to the outputs."""
    delta = moved
    with np.errstate(over="ignore", invalid="ignore"):
        for weight, _ in draft.net.layers[layer + 2 :]:
            n = weight.shape[1]
            delta = np.asarray(abs(weight) @ delta) * (1.0 + 2.0 * gamma(n + 2)) + n * SMALLEST
    return float(np.where(np.isnan(delta), np.inf, delta).max())


def _after_relu(z: Interval) -> Box | None:
    if not np.isfinite(z.upper).all():
        return None
    return Box(np.maximum(z.lower, 0.0), np.maximum(z.upper, 0.0))


def _lowest(V: Array, inputs: Box) -> Array:
    if not len(V):
        return np.zeros(0)
    return interval_bounds(ReluNetwork((Affine.of(V, np.zeros(len(V))),)), inputs)[0].lower

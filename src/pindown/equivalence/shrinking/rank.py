r"""Always-on units carried by as many units as their linear map has rank, up to rounding.

On a box the always-on units S of a layer contribute :math:`B a`, :math:`B = C_S W_S`. With
:math:`B \approx U V`, V of r rows, the units :math:`\rho(V a + \beta)`, :math:`\beta` large enough, do
the same work, and the difference :math:`|B - U V|\,|a|` is charged to the tolerance.

Phuong 2021, section 2.2.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Affine, Array, dense
from pindown.box import Box
from pindown.equivalence.shrinking.carriers import shift_above
from pindown.equivalence.shrinking.draft import Draft, Layer, pick
from pindown.equivalence.shrinking.linear_part import linear_part
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.shrinking.signs import nothing_known
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import Interval, interval_bounds
from pindown.rounding import SMALLEST, gamma

_NOISE = 1e-9  # singular values below this share of the sizes of the factors; the gap decides
_LARGEST = 2**22  # entries of the linear map


def narrow_by_rank(draft: Draft, layer: int) -> bool:
    """Carry the always-on units of a hidden layer (from 0) by fewer, if the tolerance allows it."""
    inputs = draft.box if layer == 0 else _after_relu(draft.bounds(layer - 1))
    on = np.flatnonzero(linear_part(draft, layer).on)
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    if inputs is None or not len(on) or following.shape[0] * weight.shape[1] > _LARGEST:
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
    rank = int(np.sum(singular > _NOISE * np.linalg.norm(sizes)))
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

"""From projections on an orbit to numbers that no longer depend on their order."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array

Nonlinearity = Literal["step", "sigmoid", "relu", "abs", "moments", "max"]
Pool = Literal["sum", "mean", "max"]

NONLINEARITIES: tuple[str, ...] = get_args(Nonlinearity)
POOLS: tuple[str, ...] = get_args(Pool)

# Values closer than this share of their range count as one value when thresholds are placed: a
# threshold between two copies of one number would be crossed by rounding.
SAME_VALUE = 1e-9
# The same relative to the size of the values, for values that differ by rounding only.
ROUNDING = 1e-12


def readout(
    projections: Array,
    nonlinearity: str,
    thresholds: Array,
    pool: str,
    scale: Array,
    rounding: Array | float = 0.0,
) -> Array:
    r"""Pool a family of non-linearities over the orbit.

    .. math:: \mu_{kb}(x) = \mathrm{pool}_j \; \eta_b(\langle x, g_j t_k \rangle), \qquad
              \eta_b(u) = \sigma\left(\frac{u - b}{s_k}\right)

    The scale :math:`s_k` is used by ``"sigmoid"`` and ``"moments"`` only; for moments the entries of
    ``thresholds`` are all the point about which moments are taken, and b is the power; for ``"max"``
    there is one number per template, the largest projection.

    Args:
        projections: (n, K, order).
        nonlinearity: One of ``NONLINEARITIES``.
        thresholds: (K, B).
        pool: One of ``POOLS``.
        scale: (K,), positive.
        rounding: Error of the projections, (n, K). A step does not count a projection that exceeds its
            threshold by no more: of equal numbers, rounding would put some above and some below.

    Returns:
        (n, K, B).

    >>> u = np.array([[[3.0, 1.0, 2.0]]])
    >>> readout(u, "step", np.array([[0.5, 1.5, 2.5]]), "sum", np.ones(1))
    array([[[3., 2., 1.]]])
    """
    if nonlinearity == "max":
        return projections.max(axis=2, keepdims=True)
    out = np.empty((*projections.shape[:2], thresholds.shape[1]))
    power = np.ones_like(projections) if nonlinearity == "moments" else projections
    unit = scale[None, :, None]
    if nonlinearity == "step":
        projections = projections - np.asarray(rounding)[..., None]
    for b in range(thresholds.shape[1]):
        if nonlinearity == "moments":
            power = power * ((projections - thresholds[None, :, b, None]) / unit)
            out[:, :, b] = pooled(power, pool)
        else:
            above = projections - thresholds[None, :, b, None]
            out[:, :, b] = pooled(bend(above, nonlinearity, unit), pool)
    return out


def projection_error(X: Array, templates: Array) -> Array:
    r"""How far rounding may move projections: :math:`10^{-12} \lVert x \rVert \lVert t \rVert`.

    >>> projection_error(np.array([[3.0, 4.0]]), np.array([[0.0, 2.0]]))
    array([[1.e-11]])
    """
    return ROUNDING * np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(templates, axis=1))


def bend(above: Array, nonlinearity: str, unit: Array | float = 1.0) -> Array:
    """Apply a non-linearity to how far projections lie above a threshold.

    >>> bend(np.array([-2.0, 0.0, 2.0]), "relu").tolist()
    [0.0, 0.0, 2.0]
    """
    if nonlinearity == "step":
        return (above > 0).astype(float)
    if nonlinearity == "relu":
        return np.maximum(above, 0.0)
    if nonlinearity == "abs":
        return np.abs(above)
    return 0.5 + 0.5 * np.tanh(above / (2 * unit))  # the logistic function, without overflow


def pooled(values: Array, pool: str) -> Array:
    """Pool over the last axis.

    >>> [pooled(np.array([1.0, 2.0, 6.0]), how).item() for how in POOLS]
    [9.0, 3.0, 6.0]
    """
    if pool == "sum":
        return values.sum(axis=-1)
    if pool == "mean":
        return values.mean(axis=-1)
    return values.max(axis=-1)


def gap_quantiles(values: NDArray[np.float64], count: int) -> Array:
    """Quantiles of some numbers, each moved to the middle of the gap it falls into or next to.

    So no threshold coincides with a number it was computed from, and rounding does not carry a number
    across. If all numbers are equal, thresholds are spread over one unit on both sides.

    Args:
        values: Any numbers.
        count: How many quantiles, at levels (i + 1/2) / count.

    Returns:
        Ascending thresholds, (count,); neighbours coincide when there are fewer gaps.

    >>> gap_quantiles(np.array([0.0, 1.0, 1.0, 3.0]), 2).tolist()
    [0.5, 2.0]
    """
    ordered = np.sort(values, axis=None)
    spread = max(ordered[-1] - ordered[0], 0.0)
    rounding = max(SAME_VALUE * spread, ROUNDING * float(np.abs(ordered).max()))
    kept = ordered[np.r_[True, np.diff(ordered) > rounding]]
    if len(kept) < 2:
        unit = max(1.0, abs(float(ordered[0])))
        even = count + count % 2  # of an odd number of levels the middle one would be the value
        return ordered[0] + unit * (2 * (np.arange(count) + 0.5) / even - 1)
    middles = (kept[1:] + kept[:-1]) / 2
    wanted = np.quantile(ordered, (np.arange(count) + 0.5) / count)
    right = np.clip(np.searchsorted(middles, wanted), 1, len(middles) - 1) if len(middles) > 1 else 0
    left = np.maximum(right - 1, 0)
    nearer = np.abs(middles[left] - wanted) <= np.abs(middles[right] - wanted)
    return np.where(nearer, middles[left], middles[right])

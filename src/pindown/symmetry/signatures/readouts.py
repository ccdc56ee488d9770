"""From projections on an orbit to numbers that no longer depend on their order: pools and moments."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import orbit_projections
from pindown.symmetry.tuning import MAX_POWER_SUMS
from pindown.validation import integer

Nonlinearity = Literal["step", "sigmoid", "relu", "abs", "moments", "max"]
Pool = Literal["sum", "mean", "max"]
NONLINEARITIES: tuple[str, ...] = get_args(Nonlinearity)
POOLS: tuple[str, ...] = get_args(Pool)
# Values closer than this share of their range count as one value when thresholds are placed: a
# threshold between two copies of one number would be crossed by rounding.
SAME_VALUE = 1e-9
# The same relative to the size of the values, for values that differ by rounding only.
ROUNDING = 1e-12
# Roots of m equal values lie on a circle of radius eps^(1/m); imaginary parts below are rounding.
_IMAGINARY = 1e-2
_RANK = 1e-9  # singular values of a derivative below this are rounding


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
        projections: Projections on each template's orbit, (n, K, order).
        nonlinearity: One of ``NONLINEARITIES``.
        thresholds: Thresholds b of each template, (K, B).
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
            out[:, :, b] = pooled(apply_nonlinearity(above, nonlinearity, unit), pool)
    return out


def projection_error(X: Array, templates: Array) -> Array:
    r"""How far rounding may move projections: :math:`10^{-12} \lVert x \rVert \lVert t \rVert`.

    >>> projection_error(np.array([[3.0, 4.0]]), np.array([[0.0, 2.0]]))
    array([[1.e-11]])
    """
    return ROUNDING * np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(templates, axis=1))


def apply_nonlinearity(above: Array, nonlinearity: str, unit: Array | float = 1.0) -> Array:
    """Apply a non-linearity to how far projections lie above a threshold.

    >>> apply_nonlinearity(np.array([-2.0, 0.0, 2.0]), "relu").tolist()
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


def moment_signature(
    X: ArrayLike, templates: ArrayLike, group: Group, n_moments: int, *, standardise: bool = False
) -> Array:
    r"""Sum powers of projections over the group.

    .. math:: \mu_n^k(x) = \sum_g \langle g x, t^k \rangle^n, \qquad n = 1, \dots, N

    As many moments as elements hold all projections, in some order (see
    :func:`values_from_power_sums`); that they hold the orbit needs enough templates.

    Args:
        X: Samples, (n, d).
        templates: The templates, (K, d).
        group: The group.
        n_moments: N; high powers overflow unless projections are near one.
        standardise: Divide all projections on a template by their root mean square over these samples.

    Returns:
        (n, K * N), all moments of the first template first.

    >>> from pindown.symmetry.groups import cyclic
    >>> moment_signature([[1.0, 2.0, 3.0]], [[1.0, 0.0, 0.0]], cyclic(3), 3)
    array([[ 6., 14., 36.]])

    Lecture course, section on moments as signatures.
    """
    integer("n_moments", n_moments)
    u = orbit_projections(X, templates, group)
    if standardise:
        size = np.sqrt((u**2).mean(axis=(0, 2), keepdims=True))
        u = u / np.where(size > 0, size, 1.0)
    with np.errstate(over="ignore"):
        sums = np.stack([(u**n).sum(axis=2) for n in range(1, n_moments + 1)], axis=2)
    if not np.isfinite(sums).all():
        raise ValueError(f"powers up to {n_moments} overflow; use fewer moments or standardise=True.")
    return sums.reshape(len(u), -1)


def moment_rank(slopes: Array, centre: Array, n_moments: int) -> int:
    r"""How many directions of a generic sample moments respond to: the rank of their derivative.

    .. math:: \nabla_x \sum_g (\langle g x, t \rangle - c)^p
              = p \sum_g (\langle g x, t \rangle - c)^{p-1} g^\top t

    Below d, whole curves of samples share their moments: one moment sees the mean of the orbit only,
    and two see what a power spectrum does.

    Args:
        slopes: Projections of the unit vectors, (d, K, order).
        centre: c, for each template, (K,).
        n_moments: The highest power.

    >>> from pindown.symmetry.groups import cyclic
    >>> slopes = orbit_projections(np.eye(3), [[1.0, 2.0, 4.0], [1.0, 0.0, 0.0]], cyclic(3))
    >>> [moment_rank(slopes, np.zeros(2), highest) for highest in (1, 2, 3)]
    [1, 2, 3]
    """
    x = np.random.default_rng(0).standard_normal(len(slopes))
    u = np.tensordot(x, slopes, 1) - centre[:, None]
    rows = [np.einsum("kg,dkg->kd", u**p, slopes) for p in range(n_moments)]
    # Each power in its own unit, or the rank would miss the small ones.
    return int(
        np.linalg.matrix_rank(np.concatenate([r / (np.abs(r).max() or 1.0) for r in rows]), tol=_RANK)
    )


def values_from_power_sums(power_sums: ArrayLike) -> Array:
    r"""Recover m real numbers from their first m power sums.

    Newton's identities give the elementary symmetric polynomials,

    .. math:: n e_n = \sum_{i=1}^n (-1)^{i - 1} e_{n - i} p_i,

    and these the polynomial whose roots are the numbers.

    Args:
        power_sums: :math:`p_1, \dots, p_m`.

    Returns:
        The numbers in ascending order, (m,).

    Raises:
        ValueError: If no real numbers have these power sums, or there are too many to trust the roots.

    >>> values_from_power_sums([6.0, 14.0, 36.0]).round(9).tolist()
    [1.0, 2.0, 3.0]

    Lecture course, section on moments as signatures (inversion derived).
    """
    p = np.asarray(power_sums, dtype=float)
    if p.ndim != 1 or not 1 <= len(p) <= MAX_POWER_SUMS or not np.isfinite(p).all():
        raise ValueError(
            f"power_sums must be 1 to {MAX_POWER_SUMS} finite numbers; got shape {p.shape}."
        )
    m = len(p)
    # Shift to mean zero first: roots near one another lose fewer digits.
    centre = p[0] / m
    p = _shifted(p, centre)
    e = np.zeros(m + 1)
    e[0] = 1.0
    for n in range(1, m + 1):
        e[n] = sum((-1) ** (i - 1) * e[n - i] * p[i - 1] for i in range(1, n + 1)) / n
    roots = np.roots(e * (-1.0) ** np.arange(m + 1))
    size = max(float(np.abs(roots).max(initial=0.0)), np.finfo(float).tiny)
    if m > 1 and float(np.abs(roots.imag).max(initial=0.0)) > _IMAGINARY * size:
        raise ValueError(
            "no real numbers have these power sums; give as many power sums as there are numbers."
        )
    return np.sort(np.pad(roots.real, (0, m - len(roots)))) + centre


def _shifted(p: Array, centre: float) -> Array:
    """Power sums of the numbers minus a centre, by the binomial theorem."""
    from scipy.special import comb

    m = len(p)
    sums = np.r_[float(m), p]
    powers = np.arange(m + 1)
    return np.array(
        [
            (comb(n, powers[: n + 1]) * sums[: n + 1] * (-centre) ** (n - powers[: n + 1])).sum()
            for n in range(1, m + 1)
        ]
    )

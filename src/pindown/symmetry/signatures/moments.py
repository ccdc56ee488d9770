"""Moments of projections over a group, and the way back from power sums to the projections."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import orbit_projections
from pindown.validation import is_integer

# Roots of a polynomial from its power sums: beyond this degree rounding eats most digits.
MOST_VALUES = 12
# Roots of m equal values lie on a circle of radius eps^(1/m); imaginary parts below are rounding.
_IMAGINARY = 1e-2
_RANK = 1e-9  # singular values of a derivative below this are rounding


def moment_signature(
    X: ArrayLike, templates: ArrayLike, group: Group, n_moments: int, *, standardise: bool = False
) -> Array:
    r"""Sum powers of projections over the group.

    .. math:: \mu_n^k(x) = \sum_g \langle g x, t^k \rangle^n, \qquad n = 1, \dots, N

    As many moments as elements hold all projections, in some order (see
    :func:`values_from_power_sums`); that they hold the orbit needs enough templates.

    Args:
        X: Samples, (n, d).
        templates: (K, d).
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
    if not is_integer(n_moments):
        raise ValueError(f"n_moments must be a whole number of at least 1; got {n_moments!r}.")
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
    if p.ndim != 1 or not 1 <= len(p) <= MOST_VALUES or not np.isfinite(p).all():
        raise ValueError(f"power_sums must be 1 to {MOST_VALUES} finite numbers; got shape {p.shape}.")
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

r"""Margins in the frequency domain: what linear convolutional networks are led to.

With the unitary transform :math:`(Fw)_k = d^{-1/2}\sum_nw_ne^{-2\pi ikn/d}`, gradient descent on a
linear network of L full-width circular convolutions goes to the direction of

.. math:: \min_w \lVert Fw\rVert_{2/L} \ \text{ s.t. }\ y_i\langle w, x_i\rangle \ge 1,

the global solution for L = 2, a first-order stationary point of that problem for larger L, where the
objective is not convex. The dual of the Fourier :math:`\ell_1` norm is the largest frequency,
:math:`\lVert Fw\rVert_1 = \max_{|(F\delta)_k|\le1}\langle w, \delta\rangle`, so that such a classifier
is robust against changes that are small in every frequency.

Linear programs that replace moduli by polygons fix the value of :math:`\sum_kc_k|(Tw)_k|^p` to ten
digits, and w itself to five. Which frequencies are zero and which constraints are tight is then known,
and Newton's method solves what is left, :math:`\nabla f(w) = Z_A^T\alpha,\ Z_Aw = 1`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.bias.margins._solvers import smallest_moduli
from pindown.bias.margins.hard_margin import labelled, max_margin
from pindown.bias.tuning import (
    HIGHER_SADDLE,
    MAX_MAJORISATIONS,
    MAX_NEWTON_STEPS,
    POLISHED_DISTANCE,
    STATIONARY_CHANGE,
    TIGHT_SLACKS,
    ZERO_FREQUENCIES,
)
from pindown.evidence import Kind
from pindown.rounding import gamma
from pindown.validation import integer, positive

Spectrum: TypeAlias = NDArray[np.complex128]
# Below this share of the largest a frequency is absent: programs are solved to 1e-10.
_NO_FREQUENCY = 1e-9
_ACTIVE = 1e-6  # constraints that take part in the stationarity equations
_FEASIBLE = 1e-9  # what rounding may take from a constraint or a multiplier


@dataclass(frozen=True)
class FourierMargin:
    r"""A classifier of least Fourier (quasi-)norm.

    Attributes:
        w: Weights (d,), smallest :math:`y_i\langle w, x_i\rangle` is 1.
        objective: :math:`\lVert Fw\rVert_p`.
        exponent: :math:`p = 2/L`.
        margin: :math:`1/\lVert Fw\rVert_1`: perturbations with :math:`\lVert F\delta\rVert_\infty`
            below it change no sample's side.
        upper: For p = 1, bound of that margin for any classifier, by duality, with the rounding of the
            transform added; else NaN.
        residual: How far the stationarity equations are from being solved, relative.
        support: Indices of active constraints.
        kind: ``"exact"`` for p = 1 (convex: optimal up to the gap), ``"heuristic"`` for p < 1 (one
            stationary point among several; training may choose another).
    """

    w: Array = field(repr=False)
    objective: float
    exponent: float
    margin: float
    upper: float
    residual: float
    support: NDArray[np.int64] = field(repr=False)
    kind: Kind

    def __str__(self) -> str:
        what = "least" if self.kind == "exact" else "stationary"
        return (
            f"{what} Fourier norm with exponent {self.exponent:.3g}: {self.objective:.6g}, "
            f"stationary to {self.residual:.1g}, margin {self.margin:.6g} in the largest frequency"
        )


def max_fourier_margin(
    X: ArrayLike,
    y: ArrayLike,
    *,
    depth: int = 2,
    shape: tuple[int, ...] | None = None,
    start: ArrayLike | None = None,
) -> FourierMargin:
    r"""Return the classifier that a linear convolutional network of this depth is led to.

    Depth 1 is the least Euclidean norm, depth 2 the least Fourier :math:`\ell_1` norm (solved by linear
    programs with a proved gap), larger depth a stationary point, found by majorising
    :math:`|c|^p` by its tangent again and again.

    Args:
        X: Samples (n, d), separable without offset.
        y: Labels of at most two classes.
        depth: L.
        shape: Shape of a sample for transforms of several dimensions.
        start: Where the search for a stationary point begins; the solution of depth 2 if None.

    Returns:
        A :class:`FourierMargin`.

    Example:
        One sample: of all w with product 1 the constant one has a single frequency.

        >>> answer = max_fourier_margin([[2.0, 1.0, 1.0, 0.0]], [1])
        >>> answer.w.round(6).tolist(), round(answer.objective, 6)
        ([0.25, 0.25, 0.25, 0.25], 0.5)

    Lecture course, sections on linear convolutional networks; Gunasekar et al. 2018.
    """
    points, labels = labelled(X, y)
    depth = integer("depth", depth)
    Z = labels[:, None] * points
    euclidean = max_margin(points, labels)  # refuses what cannot be separated, with the proof
    unit = euclidean.margin
    transform, prices = _frequencies(Z.shape[1], shape)
    if depth == 1:
        return _result(euclidean.w, Z, 1, shape, euclidean.weights)
    w, multipliers = smallest_moduli(Z / unit, transform, prices)
    if depth > 2:
        first = w if start is None else np.asarray(start, dtype=np.float64)
        w = _stationary(Z / unit, first, transform, prices, 2.0 / depth)
    w = polished(Z / unit, w, transform, prices, 2.0 / depth)
    return _result(w / unit, Z, depth, shape, multipliers)


def _frequencies(d: int, shape: tuple[int, ...] | None) -> tuple[Spectrum, Array]:
    """Return a row of the transform for each pair of conjugate frequencies, and their number."""
    full = spectrum(np.eye(d), shape).T
    grid = (d,) if shape is None else shape
    own = np.arange(d)
    where = np.unravel_index(own, grid)
    mirror = np.ravel_multi_index(tuple((-k) % size for k, size in zip(where, grid, strict=True)), grid)
    half = own <= mirror
    return full[half], np.where(own == mirror, 1.0, 2.0)[half]


def _stationary(Z: Array, w: Array, transform: Spectrum, prices: Array, p: float) -> Array:
    value = np.inf
    for _ in range(MAX_MAJORISATIONS):
        sizes = np.abs(transform @ w)
        alive = sizes > _NO_FREQUENCY * sizes.max()
        # A frequency that is zero has an infinite price: it leaves the program.
        rows = np.vstack([transform[alive].real, transform[alive].imag])
        basis = np.linalg.svd(rows, full_matrices=False)
        kept = basis[2][basis[1] > _NO_FREQUENCY]
        slopes = prices[alive] * (sizes[alive] / sizes.max()) ** (p - 1.0)
        inner, _ = smallest_moduli(Z @ kept.T, transform[alive] @ kept.T, slopes)
        w = inner @ kept
        now = float(prices @ np.abs(transform @ w) ** p)
        if value - now <= STATIONARY_CHANGE * now:
            break
        value = now
    return w


def _result(
    w: Array, Z: Array, depth: int, shape: tuple[int, ...] | None, multipliers: Array
) -> FourierMargin:
    w = w / float((Z @ w).min())
    p = 2.0 / depth
    residual, others = _residual(w, Z, p, shape)
    upper = float("nan")
    if depth == 2:  # any convex weights prove a bound: those of the program, and those of the equations
        proofs = [np.maximum(part, 0.0) for part in (multipliers, others) if part.max() > 0]
        upper = min(_largest_frequency(part, Z, shape) for part in proofs)
    return FourierMargin(
        w=w, objective=fourier_norm(w, p, shape), exponent=p, margin=1.0 / fourier_norm(w, 1.0, shape),
        upper=upper, residual=residual,
        support=np.flatnonzero(Z @ w <= 1.0 + _ACTIVE), kind="exact" if depth <= 2 else "heuristic",
    )  # fmt: skip


def _largest_frequency(part: Array, Z: Array, shape: tuple[int, ...] | None) -> float:
    """Return the largest modulus of the transform of an average of the samples, rounded up.

    Columns of the transform are unit vectors; a fast one loses less than sums of d products do.
    """
    weights = part / part.sum()
    n, d = Z.shape
    lost = gamma(4 * (n + d)) * float((weights @ np.abs(Z)).sum())
    found = float(np.abs(spectrum(weights @ Z, shape)).max()) + lost
    return found / float(weights.sum()) * (1.0 + gamma(n + 8))


def fourier_stationarity(
    w: ArrayLike, X: ArrayLike, y: ArrayLike, *, depth: int, shape: tuple[int, ...] | None = None,
    active: float = _ACTIVE,
) -> float:  # fmt: skip
    r"""Return how far w is from a stationary point of the least Fourier quasi-norm under the margins.

    .. math:: |(Fw)_k|^{p-2}(Fw)_k = \Bigl(F\sum_i\alpha_iy_ix_i\Bigr)_k \text{ where } (Fw)_k\ne0,
              \qquad
              \alpha \ge 0,\ \alpha_i(y_i\langle w, x_i\rangle - 1) = 0,

    and for p = 1 a modulus of at most 1 where it is zero. Multipliers come from non-negative least
    squares.

    Args:
        w: Weights; their scale does not matter.
        X: Samples (n, d).
        y: Labels.
        depth: L.
        shape: As in :func:`max_fourier_margin`.
        active: Constraints within this of the smallest, relative, may have a multiplier.

    Returns:
        The norm of what remains over the norm of the left side.

    Example:
        >>> fourier_stationarity([1.0, 1.0, 1.0, 1.0], [[2.0, 1.0, 1.0, 0.0]], [1], depth=2) < 1e-9
        True
        >>> fourier_stationarity([1.0, 0.0, 0.0, 0.0], [[2.0, 1.0, 1.0, 0.0]], [1], depth=2) > 0.1
        True
    """
    points, labels = labelled(X, y)
    Z = labels[:, None] * points
    v = np.asarray(w, dtype=np.float64)
    least = float((Z @ v).min())
    if least <= 0:
        raise ValueError(f"w must separate the samples, its smallest product is {least:g}")
    return _residual(v / least, Z, 2.0 / depth, shape, active)[0]


def _residual(
    w: Array, Z: Array, p: float, shape: tuple[int, ...] | None, active: float = _ACTIVE
) -> tuple[float, Array]:
    """Return the residual of the stationarity equations and the multipliers (n,) that leave it."""
    from scipy.optimize import nnls

    image = spectrum(w, shape)
    sizes = np.abs(image) / np.abs(image).max()
    alive = sizes > (_NO_FREQUENCY if p < 2 else -1.0)
    left = np.where(alive, np.where(alive, sizes, 1.0) ** (p - 2.0), 0.0) * image / np.abs(image).max()
    tight = np.flatnonzero(Z @ w <= 1.0 + active)
    rows = spectrum(Z[tight], shape)
    scale = float(np.abs(rows).max())
    columns = np.vstack([rows.T.real[alive], rows.T.imag[alive]]) / scale
    part, rest = nnls(columns, np.r_[left.real[alive], left.imag[alive]])
    total = np.abs(part @ rows / scale)
    over = float(np.maximum(total[~alive] - 1.0, 0.0).max(initial=0.0)) if p == 1.0 else 0.0
    multipliers = np.zeros(len(Z))
    multipliers[tight] = part
    return max(float(rest / np.linalg.norm(left)), over), multipliers


def spectrum(w: ArrayLike, shape: tuple[int, ...] | None = None) -> Spectrum:
    """Return the unitary discrete Fourier transform of each row, over ``shape`` if the rows are images.

    >>> spectrum([1.0, 1.0, 1.0, 1.0]).real.tolist()
    [2.0, 0.0, 0.0, 0.0]
    """
    array = np.asarray(w, dtype=np.float64)
    grid = (array.shape[-1],) if shape is None else shape
    if int(np.prod(grid)) != array.shape[-1]:
        raise ValueError(f"shape {grid} does not have the {array.shape[-1]} entries of w")
    axes = tuple(range(-len(grid), 0))
    image = np.fft.fftn(array.reshape(*array.shape[:-1], *grid), axes=axes, norm="ortho")
    return np.asarray(image.reshape(array.shape))


def fourier_norm(w: ArrayLike, exponent: float = 1.0, shape: tuple[int, ...] | None = None) -> float:
    r"""Return :math:`(\sum_k|(Fw)_k|^p)^{1/p}`; for p below 1 a quasi-norm.

    >>> fourier_norm([1.0, 0.0, 0.0, 0.0]), fourier_norm([0.5, 0.5, 0.5, 0.5])
    (2.0, 1.0)
    """
    exponent = positive("exponent", exponent)
    sizes = np.abs(spectrum(w, shape))
    return float((sizes**exponent).sum() ** (1.0 / exponent))


def fourier_radius(
    w: ArrayLike, X: ArrayLike, y: ArrayLike, *, shape: tuple[int, ...] | None = None
) -> float:
    r"""Return the radius :math:`\min_iy_i\langle w, x_i\rangle/\lVert Fw\rVert_1` of a classifier.

    It is negative if a sample is misclassified. No perturbation with all :math:`|(F\delta)_k|`
    below it changes a sample's side.

    >>> fourier_radius([1.0, 1.0, 1.0, 1.0], [[2.0, 1.0, 1.0, 0.0]], [1])
    2.0
    """
    points, labels = labelled(X, y)
    v = np.asarray(w, dtype=np.float64)
    if v.shape != (points.shape[1],) or not v.any() or not np.isfinite(v).all():
        raise ValueError(f"w must be a vector of {points.shape[1]} finite numbers, not all zero")
    return float((labels * (points @ v)).min()) / fourier_norm(v, 1.0, shape)


def worst_fourier_perturbation(
    gradient: ArrayLike, radius: float, shape: tuple[int, ...] | None = None
) -> Array:
    r"""Return the perturbation, small in every frequency, that lowers a linear score most.

    .. math:: \delta = -\epsilon\,F^{-1}\frac{Fg}{|Fg|}, \qquad
              \langle g, \delta\rangle = -\epsilon\lVert Fg\rVert_1.

    Args:
        gradient: g: the label times w for a linear classifier, the label times the gradient of the
            score at a sample for a one-step attack on any model.
        radius: :math:`\epsilon`.
        shape: Shape of a sample.

    Example:
        >>> (worst_fourier_perturbation([1.0, 0.0], 1.0).round(6) + 0.0).tolist()
        [-1.414214, 0.0]
    """
    image = spectrum(gradient, shape)
    sizes = np.abs(image)
    flat = np.where(sizes > 0, image / np.where(sizes > 0, sizes, 1.0), 0.0)
    grid = flat.shape if shape is None else shape
    back = np.fft.ifftn(flat.reshape(grid), norm="ortho").real
    return np.asarray(-radius * back.reshape(flat.shape))


def polished(Z: Array, w: Array, transform: NDArray[np.complex128], prices: Array, p: float) -> Array:
    """Return w after Newton's method, or w itself where that finds no better solution nearby."""
    w = w / float((Z @ w).min())
    sizes = np.abs(transform @ w)
    before = float(prices @ sizes**p)
    for small in ZERO_FREQUENCIES:
        alive = sizes > small * sizes.max()
        for slack in TIGHT_SLACKS:
            tight = Z @ w <= 1.0 + slack
            found = _newton(Z[tight], w, transform, prices, p, alive)
            if found is None or float((Z @ found).min()) < 1.0 - _FEASIBLE:
                continue
            found = found / float((Z @ found).min())
            near = float(np.linalg.norm(found - w)) <= POLISHED_DISTANCE * float(np.linalg.norm(w))
            if near and float(prices @ np.abs(transform @ found) ** p) <= before * (1.0 + HIGHER_SADDLE):
                return found
    return w


def _newton(
    tight: Array,
    w: Array,
    transform: NDArray[np.complex128],
    prices: Array,
    p: float,
    alive: NDArray[np.bool_],
) -> Array | None:
    """Solve the equations on the span of the living frequencies; None if multipliers turn negative."""
    # The span of living frequencies is what the others do not see.
    dead = np.vstack([transform[~alive].real, transform[~alive].imag])
    kept = np.eye(len(w))
    if len(dead):
        _, values, rows = np.linalg.svd(dead)
        kept = rows[int((values > 1e-9).sum()) :]
    images, c = transform[alive] @ kept.T, prices[alive]
    A, u = tight @ kept.T, kept @ w
    scale = float(c @ np.abs(images @ u) ** p)
    multipliers = np.zeros(len(A))
    for _ in range(MAX_NEWTON_STEPS):
        gradient, hessian = _derivatives(images, c / scale, p, u)
        top = np.hstack([hessian, -A.T])
        bottom = np.hstack([A, np.zeros((len(A), len(A)))])
        answer = np.linalg.lstsq(np.vstack([top, bottom]), np.r_[-gradient, 1.0 - A @ u], rcond=1e-13)[0]
        step, multipliers = answer[: len(u)], answer[len(u) :]
        u = u + step
        if not np.isfinite(u).all():
            return None
        if float(np.linalg.norm(step)) <= 1e-15 * float(np.linalg.norm(u)):
            break
    wrong = float(multipliers.min(initial=0.0)) < -_FEASIBLE * float(
        np.abs(multipliers).max(initial=1.0)
    )
    return None if wrong else u @ kept


def _derivatives(images: NDArray[np.complex128], c: Array, p: float, u: Array) -> tuple[Array, Array]:
    """Return gradient and Hessian of the sum of priced moduli to the power p."""
    values = images @ u
    sizes = np.abs(values)
    radial = (np.conj(values)[:, None] * images).real / sizes[:, None]
    flat = c * p * sizes ** (p - 2.0)
    gradient = (c * p * sizes ** (p - 1.0)) @ radial
    hessian = (flat[:, None] * images.real).T @ images.real + (
        flat[:, None] * images.imag
    ).T @ images.imag
    return gradient, hessian + (p - 2.0) * (flat[:, None] * radial).T @ radial

r"""Training and test predictions over time, in closed form, while the tangent kernel stays fixed.

.. math::
    f_t(X) = y + e^{-c\eta K t} (f_0(X) - y), \qquad
    f_t(x) = f_0(x) + K(x, X)\, K^{-1} \bigl(I - e^{-c\eta K t}\bigr) (y - f_0(X))

for gradient flow; after t steps of gradient descent :math:`(I - c\eta K)^t` replaces the exponential.
The constant c belongs to the loss: 1 for half the sum of squares, 2 for the sum, 2/n for the mean.

That has a spectral bias: in the eigenbasis :math:`q_i` of the kernel each part of the residual decays at
its own rate,

.. math:: q_i^\top (f_t - y) = e^{-c\eta\lambda_i t}\, q_i^\top (f_0 - y),

which is :math:`-e^{-c\eta\lambda_i t} q_i^\top y` for a start at zero. Large eigenvalues come first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from pindown.affine import Array, is_finite
from pindown.bias.tangent_kernel.gram import as_columns, as_gram
from pindown.evidence import Kind
from pindown.validation import choice, number, positive, refuse

Loss: TypeAlias = Literal["half-sum", "sum", "mean"]
Mode: TypeAlias = Literal["flow", "gd"]
# Eigenvalues below this share of the largest are rounding: eigh is accurate to a few times n eps.
NULL = 1e-12
# An eigenvalue this far below zero is no rounding, not even that of a kernel computed in float32.
_NEGATIVE = 1e-6


def loss_constant(loss: Loss, n: int) -> float:
    r"""Return c in :math:`\dot f = -c K (f - y)`.

    >>> [loss_constant(loss, 4) for loss in ("half-sum", "sum", "mean")]
    [1.0, 2.0, 0.5]
    """
    constants = {"half-sum": 1.0, "sum": 2.0, "mean": 2.0 / n}
    return constants[choice("loss", loss, constants)]


@dataclass(frozen=True, eq=False)
class KernelPrediction:
    r"""Outputs over time of a model whose tangent kernel does not move.

    Attributes:
        times: The times or step counts.
        train: Outputs on the training inputs, (times, n) or (times, n, k) as the targets were.
        test: Outputs on the test inputs likewise, or None.
        loss: The training loss at each time.
        rates: Decay rates :math:`c \eta \lambda_i` of the residual, ascending.
        mode: ``"flow"`` or ``"gd"``.
        stable: Whether gradient descent converges: all rates below 2. A flow always does.
        kind: Exact for a linear or kernel model; for a network it holds as long as its kernel stays.
    """

    times: Array
    train: Array
    test: Array | None
    loss: Array
    rates: Array
    mode: Mode
    stable: bool
    kind: Kind = "heuristic"
    assumptions: tuple[str, ...] = field(
        default=("the tangent kernel stays what it is at the start", "square loss, full batch")
    )

    def __str__(self) -> str:
        unit = "time" if self.mode == "flow" else "step"
        fate = "diverges" if self.rates.max() > 2 else "does not converge"
        warning = "" if self.stable else f"; gradient descent {fate}: a rate is not below 2"
        return (
            f"training loss {self.loss[0]:.3g} at {unit} {self.times[0]:g}, {self.loss[-1]:.3g} at "
            f"{unit} {self.times[-1]:g}, if the kernel does not move ({self.kind}){warning}"
        )


def ntk_predict(
    K: Any,
    y: Any,
    t: Any,
    *,
    K_test: Any = None,
    f0: Any = None,
    f0_test: Any = None,
    lr: float = 1.0,
    loss: Loss = "half-sum",
    mode: Mode = "flow",
) -> KernelPrediction:
    r"""Predict the outputs during training from the kernel alone.

    Args:
        K: Kernel of the training inputs with themselves, (n, n).
        y: Targets (n,) or (n, k).
        t: Times (flow) or numbers of steps (gradient descent), one or many; infinity is allowed.
        K_test: Kernel of the test inputs with the training inputs, (m, n).
        f0: Outputs on the training inputs at the start; zero by default.
        f0_test: Outputs on the test inputs at the start; zero by default.
        lr: Learning rate :math:`\eta`; a flow runs that much faster.
        loss: ``"half-sum"``, ``"sum"`` or ``"mean"`` of squares, which sets c.
        mode: ``"flow"`` or ``"gd"``.

    Returns:
        The outputs. Directions in which the kernel vanishes are never learned and stay as at the start.

    Raises:
        ValueError: If shapes do not fit, a number is not finite, or K is not a kernel.

    Example:
        One point, kernel 2: the residual shrinks as :math:`e^{-2t}`.

        >>> ntk_predict([[2.0]], [1.0], [0.0, np.log(2) / 2, np.inf]).train.ravel()
        array([0. , 0.5, 1. ])

    Lecture course, slides on the NTK dynamics of training (corrected; the form for test points is ours).
    """
    gram = as_gram(K)
    n = len(gram)
    targets = as_columns(y, n, "y")
    start = np.zeros_like(targets) if f0 is None else _like(f0, targets.shape, "f0")
    times = np.atleast_1d(np.asarray(t, dtype=np.float64))
    _check_times(times, mode, lr)
    values, vectors = np.linalg.eigh(gram)
    largest = float(values[-1])
    check_kernel(values)
    values = np.where(values > NULL * largest, values, 0.0)
    c = loss_constant(loss, n)
    rates = c * lr * values
    coefficients = vectors.T @ (targets - start)
    stable = mode == "flow" or float(rates[-1]) < 2.0
    if not stable and np.isinf(times).any():
        raise ValueError(
            f"gradient descent diverges with lr {lr:g}, so it has no limit at t = infinity; "
            f"lr must be below {2.0 / (c * largest):.3g}."
        )
    # 1 - (share of the residual left), direction by direction and time by time.
    learned = _learned(rates, times, mode)
    with np.errstate(over="ignore", invalid="ignore"):
        train = start + np.einsum("ni,ti,ik->tnk", vectors, learned, coefficients)
    if not is_finite(train):
        raise ValueError(
            f"the outputs leave float range: gradient descent diverges with lr {lr:g}; lr must be below "
            f"{2.0 / (c * largest):.3g}."
        )
    test = None
    if K_test is not None:
        test = _at_test_points(K_test, f0_test, vectors, values, learned, coefficients)
    elif f0_test is not None:
        raise ValueError("f0_test was given without K_test, the kernel of test with training inputs.")
    weight = {"half-sum": 0.5, "sum": 1.0, "mean": 1.0 / n}[loss]
    losses = weight * np.sum((train - targets) ** 2, axis=(1, 2))
    if np.ndim(y) == 1:
        train, test = train[..., 0], None if test is None else test[..., 0]
    return KernelPrediction(times, train, test, losses, rates, mode, stable)


def check_kernel(eigenvalues: Array) -> None:
    """Refuse a matrix with an eigenvalue below zero by more than rounding.

    >>> check_kernel(np.array([1.0, -1e-9]))
    """
    least, largest = float(eigenvalues.min()), float(eigenvalues.max())
    if least < -_NEGATIVE * max(largest, 0.0) or largest < 0:
        raise ValueError(f"K is no kernel matrix: it has the eigenvalue {least:.3g}, below 0.")


def _at_test_points(
    K_test: Any, f0_test: Any, vectors: Array, values: Array, learned: Array, coefficients: Array
) -> Array:
    cross = np.asarray(K_test, dtype=np.float64)
    if cross.ndim != 2 or cross.shape[1] != len(values):
        raise ValueError(f"K_test must have shape (m, {len(values)}); got {cross.shape}.")
    if not is_finite(cross):
        raise ValueError("K_test must be finite; it holds NaN or infinity.")
    k = coefficients.shape[1]
    start = np.zeros((len(cross), k)) if f0_test is None else _like(f0_test, (len(cross), k), "f0_test")
    # Where the kernel vanishes so do its values at other points: these directions are left out.
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return np.asarray(
        start + np.einsum("mi,ti,ik->tmk", cross @ vectors, learned * inverse, coefficients)
    )


def _learned(rates: Array, times: Array, mode: Mode) -> Array:
    """Return the share of each direction that is learned: (times, n)."""
    left = np.zeros((len(times), len(rates)))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for row, t in zip(left, times, strict=True):
            if mode == "flow":
                exponent = np.where(rates > 0, -rates * t, 0.0)
                row[:] = -np.expm1(exponent)
            else:
                small = rates < 1
                row[small] = -np.expm1(np.where(rates > 0, t * np.log1p(-rates), 0.0)[small])
                row[~small] = 1.0 - (1.0 - rates[~small]) ** t if np.isfinite(t) else 1.0
    return left


def _check_times(times: Array, mode: Mode, lr: float) -> None:
    choice("mode", mode, ("flow", "gd"))
    positive("lr", lr)
    if times.ndim != 1 or len(times) == 0 or np.isnan(times).any() or (times < 0).any():
        refuse("t", "one or more times of at least 0", times)
    finite = times[np.isfinite(times)]
    if mode == "gd" and (finite != np.round(finite)).any():
        raise ValueError(
            "t counts steps of gradient descent, so it must hold integers; mode='flow' has times."
        )


def _like(values: Any, shape: tuple[int, ...], name: str) -> Array:
    columns = as_columns(values, shape[0], name)
    if columns.shape != shape:
        raise ValueError(f"{name} must have the shape of the targets, {shape}; got {columns.shape}.")
    return columns


@dataclass(frozen=True, eq=False)
class SpectralBias:
    r"""The residual at the start, taken apart by how fast it will be learned.

    Attributes:
        eigenvalues: Eigenvalues of the kernel, descending.
        vectors: Eigenvectors as columns, in the same order.
        coefficients: Components of the residual :math:`f_0 - y`, (n, k).
        rates: Decay rates :math:`c \eta \lambda_i`; 0 where nothing is learned.
        half_times: After which time each component is halved; infinite where it never is.
        shares: Share of the squared residual in each component.
        kind: What the numbers are worth for a network.
    """

    eigenvalues: Array
    vectors: Array
    coefficients: Array
    rates: Array
    half_times: Array
    shares: Array
    kind: Kind = "heuristic"

    @property
    def never(self) -> float:
        """Share of the squared residual that is never learned."""
        return float(self.shares[self.rates == 0].sum())

    def time_to(self, share: float) -> float:
        """Return when this share of the squared residual is gone; infinity if it never is.

        Raises:
            ValueError: If the share is not between 0 and 1.
        """
        left = 1.0 - number("share", share, 0.0, 1.0, below=True)

        def remaining(t: float) -> float:
            return float(np.sum(self.shares * np.exp(-2 * self.rates * t)))

        if remaining(0.0) <= left:
            return 0.0
        if self.never >= left:
            return float("inf")
        from scipy.optimize import brentq

        high = 1.0 / float(self.rates.max())
        while remaining(high) > left:
            high *= 2.0
        return float(brentq(lambda t: remaining(t) - left, 0.0, high))

    def __str__(self) -> str:
        rank = int(np.count_nonzero(self.rates))
        half, most = self.time_to(0.5), self.time_to(0.9)
        return (
            f"{rank} of {len(self.rates)} directions are learned; half of the squared residual is gone "
            f"at time {half:.3g}, 90 % at {most:.3g}, {100 * self.never:.3g} % never ({self.kind})"
        )


def spectral_bias(
    K: Any, y: Any, *, f0: Any = None, lr: float = 1.0, loss: Loss = "half-sum"
) -> SpectralBias:
    r"""Return the rate at which each part of the target is learned while the kernel stays.

    Args:
        K: Kernel of the training inputs, (n, n).
        y: Targets (n,) or (n, k).
        f0: Outputs at the start; zero by default.
        lr: Learning rate :math:`\eta`.
        loss: ``"half-sum"``, ``"sum"`` or ``"mean"`` of squares.

    Returns:
        The residual in the kernel's eigenbasis with rates and half-times :math:`\ln 2 / c\eta\lambda_i`.

    Example:
        >>> report = spectral_bias(np.diag([4.0, 1.0]), [1.0, 1.0])
        >>> report.half_times / np.log(2)
        array([0.25, 1.  ])

    Lecture course, slides on spectral bias (with the sign of its later displays restored).
    """
    gram = as_gram(K)
    targets = as_columns(y, len(gram), "y")
    start = np.zeros_like(targets) if f0 is None else _like(f0, targets.shape, "f0")
    lr = positive("lr", lr)
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1], vectors[:, ::-1]
    check_kernel(values)
    kept = np.where(values > NULL * max(float(values[0]), 0.0), values, 0.0)
    rates = loss_constant(loss, len(gram)) * lr * kept
    half = np.divide(np.log(2.0), rates, out=np.full_like(rates, np.inf), where=rates > 0)
    coefficients = vectors.T @ (start - targets)
    unit = float(np.abs(coefficients).max()) or 1.0  # squares stay within the floats
    energy = np.sum((coefficients / unit) ** 2, axis=1)
    shares = energy / energy.sum() if energy.any() else energy
    return SpectralBias(values, vectors, coefficients, rates, half, shares)


def residual_in_eigenbasis(K: Any, y: Any, predictions: Any) -> tuple[Array, Array]:
    r"""Return how measured residuals look in the kernel's eigenbasis.

    Args:
        K: Kernel of the training inputs, (n, n).
        y: Targets (n,).
        predictions: Outputs over time, (T, n).

    Returns:
        Components :math:`q_i^\top (f_t - y)` of shape (T, n) and eigenvalues (n,), both by descending
        eigenvalue.

    Example:
        >>> residual_in_eigenbasis(np.eye(1), [1.0], [[0.0], [0.5]])[0] ** 2
        array([[1.  ],
               [0.25]])
    """
    gram = as_gram(K)
    targets = as_columns(y, len(gram), "y")[:, 0]
    outputs = np.atleast_2d(np.asarray(predictions, dtype=np.float64))
    if outputs.shape[1:] != targets.shape:
        raise ValueError(f"predictions must have shape (T, {len(targets)}); got {outputs.shape}.")
    values, vectors = np.linalg.eigh(gram)
    return (outputs - targets) @ vectors[:, ::-1], values[::-1]

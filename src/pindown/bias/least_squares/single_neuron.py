r"""One neuron trained by gradient flow: it ends within twice the least distance from its start.

.. math:: L(w) = \tfrac12\sum_i(\sigma(\langle x_i, w\rangle) - y_i)^2, \qquad
          \lVert w(\infty) - w(0)\rVert \le 2\,\lVert w^* - w(0)\rVert,

where :math:`w^*` is the nearest to the start of all weights without loss, :math:`\sigma` does not
decrease, and the flow is assumed to end without loss. On the way the distance to :math:`w^*` (to any
weights without loss) never grows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.flow import Method, Path, gradient_flow
from pindown.bias.least_squares.gradient_descent import scaled_squares
from pindown.bias.tuning import MAX_SLIDING_STEPS, NEURON_TIME, NO_LOSS_SHARE, SLIDING_STEP
from pindown.evidence import Kind
from pindown.validation import choice, integer, labelled, number, positive, vector

Activation: TypeAlias = Literal["relu", "softplus", "tanh", "identity"]
_FEASIBLE = 1e-8  # relative residual of the constraints that rounding in a solve may leave


@dataclass(frozen=True)
class SingleNeuron:
    """Where gradient flow took one neuron, beside the nearest weights without loss.

    Attributes:
        weights: Where the flow was at the end.
        nearest: The nearest weights without loss; None if there are none.
        loss: Loss at the end.
        converged: Whether the loss is gone, to 1e-10 of the larger of that at the start and that of zero
            outputs; if not, the theorem is silent.
        travelled: Distance from the start.
        least: Distance of ``nearest`` from the start; NaN without it.
        largest_increase: Largest growth of the distance to ``nearest`` between recorded times: zero up
            to the integrator's error.
        path: The path.
        kind: ``"estimate"``: the flow is integrated numerically.
    """

    weights: Array = field(repr=False)
    nearest: Array | None = field(repr=False)
    loss: float
    converged: bool
    travelled: float
    least: float
    largest_increase: float
    path: Path = field(repr=False)
    kind: Kind = "estimate"

    @property
    def ratio(self) -> float:
        """Way gone over the least way; at most 2 if converged. NaN where nothing has to move."""
        return self.travelled / self.least if self.least > 0 else float("nan")

    def __str__(self) -> str:
        if self.nearest is None:
            return f"no weights fit these targets; the flow ended at loss {self.loss:.4g}"
        if not self.converged:
            return f"the flow stopped at loss {self.loss:.4g}: the theorem says nothing"
        if np.isnan(self.ratio):
            return f"went {self.travelled:.4g}: the start has no loss"
        return f"went {self.travelled:.4g}, {self.ratio:.4g} times the least way (at most 2 by theorem)"


def single_neuron_flow(
    X: ArrayLike,
    y: ArrayLike,
    start: ArrayLike | None = None,
    *,
    activation: Activation = "relu",
    time: float | None = None,
    method: Method = "ivp",
    step: float | None = None,
    slope_at_zero: float = 1.0,
    record: int = 200,
) -> SingleNeuron:
    r"""Train one neuron by gradient flow and compare the way it went with the least way.

    Args:
        X: Inputs (n, d).
        y: Targets (n,).
        start: Initial weights (d,); zero if left out.
        activation: ``"relu"``, ``"softplus"``, ``"tanh"`` or ``"identity"``.
        time: How long the flow is followed; 3,000 over the squared spectral norm of X if left out, long
            enough for squared singular values 250 times apart. Less where a ReLU has targets below zero,
            which no weights reach: the flow then slides along folds, and plain descent with small steps
            is taken for it.
        method: Integrator, as in :func:`pindown.bias.gradient_flow`.
        step: Its step; needed for ``"euler"``.
        slope_at_zero: Derivative of the ReLU at zero. With 0, as usual in software, a start at zero
            never moves; with 1 it does, as the theorem's remark about that start needs.
        record: Points of the path to keep.

    Returns:
        A :class:`SingleNeuron`.

    Raises:
        ValueError: If values are not finite, shapes differ, or an option is another one.

    Example:
        One sample: the shortest way is straight to it, and the flow takes it.

        >>> print(single_neuron_flow([[3.0, 4.0]], [5.0]))
        went 1, 1 times the least way (at most 2 by theorem)

    Vardi and Shamir 2021, Theorem 5.1; lecture course, slides on the bias of one neuron.
    """
    X, y = labelled(X, y)
    begin = np.zeros(X.shape[1]) if start is None else vector("start", start, X.shape[1])
    slope_at_zero = number("slope_at_zero", slope_at_zero, 0.0, 1.0)
    bend = float(scaled_squares(np.array([np.linalg.norm(X, 2)], dtype=float), 1.0)[0])
    time = NEURON_TIME / (bend or 1.0) if time is None else positive("time", time)
    value, slope = _activation(activation, slope_at_zero)

    def loss(w: Array) -> float:
        return 0.5 * float(np.sum((value(X @ w) - y) ** 2))

    # In units in which the largest curvature is 1, so that the integrator's tolerances fit.
    unit = float(np.sqrt(bend)) or 1.0
    scaled = X / unit

    def gradient(v: Array) -> Array:
        z = scaled @ v
        return np.asarray(((value(z) - y) * slope(z)) @ scaled)

    if method == "ivp" and activation == "relu" and (y < 0).any():
        method, step = "euler", SLIDING_STEP / (bend or 1.0)
        time = max(step, min(time, MAX_SLIDING_STEPS * step))
    path = gradient_flow(
        gradient,
        unit * begin,
        time=unit**2 * time,
        method=method,
        step=None if step is None else unit**2 * number("step", step, 0.0, time, above=True),
        loss=lambda v: loss(v / unit),
        record=integer("record", record),
    )
    path = replace(path, points=path.points / unit, times=path.times / unit**2)
    nearest = nearest_without_loss(X, y, begin, activation=activation)
    final = loss(path.end)
    increase = 0.0
    if nearest is not None:
        increase = float(np.diff(np.linalg.norm(path.points - nearest, axis=1)).max(initial=0.0))
    return SingleNeuron(
        weights=path.end,
        nearest=nearest,
        loss=final,
        converged=final <= NO_LOSS_SHARE * max(loss(begin), 0.5 * float(y @ y)),
        travelled=float(np.linalg.norm(path.end - begin)),
        least=float("nan") if nearest is None else float(np.linalg.norm(nearest - begin)),
        largest_increase=increase,
        path=path,
    )


def nearest_without_loss(
    X: ArrayLike, y: ArrayLike, start: ArrayLike, *, activation: Activation = "relu"
) -> Array | None:
    r"""Return the weights without loss that are nearest to a point.

    For a ReLU they are the solution of :math:`\min\lVert w - w_0\rVert` with
    :math:`\langle x_i, w\rangle = y_i` where :math:`y_i > 0` and
    :math:`\langle x_i, w\rangle \le 0` where :math:`y_i = 0`; for activations with an inverse, the
    projection on :math:`Xw = \sigma^{-1}(y)`.

    Args:
        X: Inputs (n, d).
        y: Targets (n,).
        start: The point (d,).
        activation: As in :func:`single_neuron_flow`.

    Returns:
        The weights (d,), or None if no weights fit the targets.

    Example:
        >>> nearest_without_loss([[1.0, 0.0], [0.0, 1.0]], [2.0, 0.0], [0.0, 5.0]).round(9).tolist()
        [2.0, 0.0]

    Vardi and Shamir 2021, section 5; lecture course, slides on the bias of one neuron.
    """
    X, y = labelled(X, y)
    begin = vector("start", start, X.shape[1])
    _activation(activation, 1.0)
    if activation == "relu":
        if (y < 0).any():
            return None
        exact, below = X[y > 0], X[y == 0]
        targets = y[y > 0]
    else:
        outside = {"tanh": np.abs(y) >= 1, "softplus": y <= 0}.get(activation, np.zeros(1, bool))
        if outside.any():
            return None
        inverses: dict[str, Callable[[Array], Array]] = {"tanh": np.arctanh, "softplus": _unplus}
        targets = inverses[activation](y) if activation in inverses else y
        exact, below = X, X[:0]
    return _least_distance(exact, targets, below, begin)


def _least_distance(A: Array, b: Array, G: Array, start: Array) -> Array | None:
    """Return the point nearest to start with A w = b and G w <= 0, or None (Lawson and Hanson)."""
    from scipy.linalg import null_space
    from scipy.optimize import nnls

    point, free = start, np.eye(len(start))
    if len(A):
        point = start + np.linalg.lstsq(A, b - A @ start, rcond=None)[0]
        if np.abs(A @ point - b).max() > _FEASIBLE * max(1.0, float(np.abs(b).max())):
            return None
        free = null_space(A)
    limits = G @ point
    scale = np.linalg.norm(G, axis=1) * max(1.0, float(np.linalg.norm(point)))
    if (limits <= _FEASIBLE * scale).all():
        return np.asarray(point)
    if free.shape[1] == 0:
        return None
    # Least distance: min |z| with -G N z >= G w; its dual is a problem of non-negative least squares.
    matrix = np.vstack([-(G @ free).T, limits[None, :]])
    goal = np.zeros(len(matrix))
    goal[-1] = 1.0
    multipliers, rest = nnls(matrix, goal)
    if rest <= _FEASIBLE:
        return None
    residual = matrix @ multipliers - goal
    moved = point + free @ (-residual[:-1] / residual[-1])
    return np.asarray(moved) if (G @ moved <= _FEASIBLE * scale).all() else None


def _unplus(y: Array) -> Array:
    return np.asarray(y + np.log(-np.expm1(-y)))


def _activation(name: str, at_zero: float) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    pairs: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
        "relu": (
            lambda z: np.maximum(z, 0.0),
            lambda z: np.where(z > 0, 1.0, np.where(z == 0, at_zero, 0.0)),
        ),
        "softplus": (lambda z: np.logaddexp(0.0, z), lambda z: np.exp(-np.logaddexp(0.0, -z))),
        "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2),
        "identity": (np.asarray, np.ones_like),
    }
    return pairs[choice("activation", name, pairs)]

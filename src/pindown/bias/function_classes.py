r"""What can be learned at all: linear, fixed features, kernels, shallow and deep networks, side by side.

All of them are weighted sums :math:`\sum_j w_j \phi_j(x)`. They differ in who chooses the functions
:math:`\phi_j`: nobody (linear), the user (features), the data points (kernel expansions), training
(networks).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.tuning import APPROXIMATION_GRID, RANK_TOLERANCE
from pindown.network import ReluNetwork

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "sigmoid": lambda z: 0.5 * (1.0 + np.tanh(0.5 * z)),
    "relu": lambda z: np.maximum(z, 0.0),
    "cubic": lambda z: z**3,
}


def hypothesis_classes(
    *, width: int = 64, penalty: float = 1e-3, gamma: float | None = None, random_state: Any = None
) -> dict[str, Any]:
    """Return one estimator per class of functions, ready to ``fit`` and ``predict``.

    Args:
        width: Random features, and units per hidden layer.
        penalty: Factor of the squared weights, where they are found by ridge regression.
        gamma: Inverse squared scale of the Gaussian kernel and its features; None for one over the
            number of columns.
        random_state: Seed of features and networks.

    >>> list(hypothesis_classes())
    ['linear', 'features', 'kernel', 'shallow network', 'deep network']
    """
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    trained = {"solver": "lbfgs", "alpha": penalty, "max_iter": 500, "random_state": random_state}
    scaling = FunctionTransformer(_over_root_of_columns if gamma is None else None)
    features = RBFSampler(
        gamma=1.0 if gamma is None else gamma, n_components=width, random_state=random_state
    )
    return {
        "linear": Ridge(penalty),
        "features": make_pipeline(scaling, features, Ridge(penalty)),
        "kernel": KernelRidge(penalty, kernel="rbf", gamma=gamma),
        "shallow network": MLPRegressor(hidden_layer_sizes=(width,), **trained),
        "deep network": MLPRegressor(hidden_layer_sizes=(width, width, width), **trained),
    }


def _over_root_of_columns(X: ArrayLike) -> Array:
    """Return X over the root of its width: a kernel with gamma 1 then has gamma 1 / width of X."""
    rows = np.asarray(X, dtype=float)
    return rows / np.sqrt(rows.shape[1])


def frozen_network(
    weight: ArrayLike, bias: ArrayLike, X: ArrayLike, y: ArrayLike, *, penalty: float = 0.0
) -> ReluNetwork:
    r"""Fit only the outer weights of a network: ridge regression on its hidden units.

    .. math:: \min_w \|\rho(X W^\top + b) w - y\|^2 + \alpha \|w\|^2 .

    Args:
        weight: W, of shape (units, d), kept as it is.
        bias: b.
        X: Inputs.
        y: Targets.
        penalty: :math:`\alpha`; 0 for the least-squares solution of least norm.

    >>> net = frozen_network([[1.0], [-1.0]], [0.0, 0.0], [[-2.0], [1.0], [3.0]], [2.0, 1.0, 3.0])
    >>> net([[-5.0], [5.0]]).ravel().round(9)  # |x|
    array([5., 5.])
    """
    W, b = np.asarray(weight, dtype=float), np.asarray(bias, dtype=float)
    hidden = np.maximum(np.asarray(X, dtype=float) @ W.T + b, 0.0)
    return ReluNetwork.from_layers(
        [(W, b), (_ridge(hidden, np.asarray(y, float), penalty)[None], [0.0])]
    )


def _ridge(features: Array, y: Array, penalty: float) -> Array:
    U, s, V = np.linalg.svd(features, full_matrices=False)
    kept = s > RANK_TOLERANCE * (s[0] if len(s) else 0.0)
    U, s, V = U[:, kept], s[kept], V[kept]
    return np.asarray(V.T @ (s / (s**2 + penalty) * (U.T @ y)))


@dataclass(frozen=True, eq=False, repr=False)
class ApproximationCurve:
    """Largest error of the best sum of units, by the number of units: an estimate on a grid.

    Attributes:
        widths: Numbers of units.
        errors: Largest absolute error on the grid, one per width.
        activation: Name of the activation, or ``"given"``.
    """

    widths: tuple[int, ...]
    errors: tuple[float, ...]
    activation: str

    def __repr__(self) -> str:
        steps = ", ".join(f"{n}: {e:.2g}" for n, e in zip(self.widths, self.errors, strict=True))
        return f"ApproximationCurve({self.activation} units, largest error on a grid: {steps})"


def approximation_curve(
    target: Callable[[Array], Array],
    widths: Sequence[int],
    *,
    activation: str | Callable[[Array], Array] = "sigmoid",
    scale: float = 20.0,
    random_state: Any = None,
) -> ApproximationCurve:
    r"""How fast do sums of units approach a function on [0, 1]?

    .. math:: \max_x \Bigl| f(x) - \sum_{j \le N} v_j \phi(\omega_j x + b_j) \Bigr|

    with random :math:`\omega_j`, bends spread over the interval, and v by least squares. Any continuous
    activation that is not a polynomial gets there in the end; a polynomial spans only polynomials of its
    own degree, however many units there are.

    Args:
        target: f, vectorised.
        widths: Numbers N of units to try, ascending; smaller networks are parts of larger ones.
        activation: ``"sigmoid"``, ``"relu"``, ``"cubic"``, or a function.
        scale: Standard deviation of the :math:`\omega_j`.
        random_state: Seed.

    >>> curve = approximation_curve(lambda x: x**2, [1, 4, 8], activation="cubic", random_state=0)
    >>> curve.errors[-1] < 1e-9  # the square is among the polynomials of degree three
    True

    Lecture course, universal approximation (Cybenko 1989); no rate is claimed there, nor here.
    """
    if isinstance(activation, str) and activation not in ACTIVATIONS:
        raise ValueError(
            f"activation must be a function or one of {list(ACTIVATIONS)}; got {activation!r}."
        )
    sizes = tuple(int(n) for n in widths)
    if not sizes or min(sizes) < 1:
        raise ValueError(f"widths must be numbers of units, at least 1; got {list(widths)}.")
    phi = ACTIVATIONS[activation] if isinstance(activation, str) else activation
    random = np.random.default_rng(random_state)
    x = np.linspace(0.0, 1.0, APPROXIMATION_GRID)
    slopes = scale * random.normal(size=max(sizes))
    units = phi(np.outer(x, slopes) - slopes * random.uniform(size=max(sizes)))
    values = np.asarray(target(x), dtype=float)
    if values.shape != x.shape or not np.isfinite(values).all():
        raise ValueError("target must return one finite number per point of [0, 1].")
    errors = [np.abs(units[:, :n] @ _ridge(units[:, :n], values, 0.0) - values).max() for n in sizes]
    name = activation if isinstance(activation, str) else "given"
    return ApproximationCurve(sizes, tuple(float(e) for e in errors), name)

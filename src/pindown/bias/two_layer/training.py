r"""Two-layer ReLU networks without offsets, and their gradient flow, far enough to see where it ends.

For :math:`h(x) = \sum_j a_j\,\rho(\langle w_j, x\rangle)` and the logistic loss

.. math:: \dot a_j = -\sum_i\ell_i'\,\rho(\langle w_j, x_i\rangle), \qquad
          \dot w_j = -\sum_i\ell_i'\,[\langle w_j, x_i\rangle > 0]\, a_jx_i.

Directions settle like 1/log t. The path is followed in the clock of the logarithm of the loss, with
slopes computed as logarithms, so that losses far below the smallest float are no obstacle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.flow import gradient_flow
from pindown.bias.margins.hard_margin import labelled
from pindown.bias.tuning import TWO_LAYER_STEP
from pindown.evidence import Kind
from pindown.network import ReluNetwork
from pindown.validation import integer, positive

_TINY = np.finfo(np.float64).tiny

_FAR = 30.0  # margins above it have a logistic loss of exp(-margin) to the last digit


@dataclass(frozen=True, eq=False)
class Neurons:
    """Weights of a two-layer network without offsets.

    Attributes:
        W: Input weights (p, d), a neuron in each row.
        a: Output weights (p,).
    """

    W: Array = field(repr=False)
    a: Array = field(repr=False)

    def __post_init__(self) -> None:
        if self.W.ndim != 2 or self.a.shape != (len(self.W),) or not self.W.size:
            raise ValueError(
                f"W must be (p, d) and a (p,); got shapes {self.W.shape} and {self.a.shape}."
            )

    def __call__(self, X: ArrayLike) -> Array:
        """Return h at samples: (n, d) -> (n,)."""
        return np.asarray(np.maximum(np.asarray(X, dtype=np.float64) @ self.W.T, 0.0) @ self.a)

    def __str__(self) -> str:
        return f"{len(self.W)} neurons in {self.W.shape[1]} dimensions"

    @property
    def imbalance(self) -> float:
        r"""Largest :math:`||a_j| - \lVert w_j\rVert|`; flow from a balanced start keeps it zero."""
        return float(np.abs(np.abs(self.a) - np.linalg.norm(self.W, axis=1)).max())

    @property
    def squared_norm(self) -> float:
        r""":math:`\lVert\theta\rVert^2`."""
        return float((self.W**2).sum() + self.a @ self.a)

    def vector(self) -> Array:
        """Return all weights, W first, as one vector."""
        return np.concatenate([self.W.ravel(), self.a])

    def network(self) -> ReluNetwork:
        """Return the same function as a :class:`ReluNetwork`."""
        return ReluNetwork.from_layers([(self.W, np.zeros(len(self.a))), (self.a[None, :], np.zeros(1))])

    @classmethod
    def of(cls, network: Any) -> Neurons:
        """Return the neurons of a two-layer network with one output and no offsets.

        Args:
            network: Neurons, a :class:`ReluNetwork`, or a torch module that one can be made of.

        Raises:
            ValueError: If it has another depth, several outputs or offsets.

        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[2.0, 3.0]], [0])])
        >>> Neurons.of(net).a.tolist()
        [2.0, 3.0]
        """
        if isinstance(network, Neurons):
            return network
        net = network if isinstance(network, ReluNetwork) else ReluNetwork.from_torch(network)
        if net.depth != 2 or net.out_features != 1:
            raise ValueError(f"a two-layer network with one output is needed; got widths {net.widths}.")
        if any(np.any(layer.bias) for layer in net.layers):
            raise ValueError(
                "the theory is for networks without offsets; this one has some that are not zero"
            )
        dense = [np.asarray(W.toarray() if hasattr(W, "toarray") else W) for W, _ in net.layers]
        return cls(dense[0], dense[1][0])

    @classmethod
    def from_vector(cls, vector: Array, d: int) -> Neurons:
        """Return the neurons whose :meth:`vector` this is.

        >>> Neurons.from_vector(np.array([1.0, 2.0, 3.0]), 2).a.tolist()
        [3.0]
        """
        p = len(vector) // (d + 1)
        return cls(vector[: p * d].reshape(p, d), vector[p * d :])


def balanced_neurons(
    width: int, d: int, *, scale: float = 1e-3, signs: ArrayLike | None = None, random_state: Any = 0
) -> Neurons:
    r"""Return balanced weights near zero.

    .. math:: w_j = \lambda_jv_j/\lVert v_j\rVert, \qquad a_j = \pm\lambda_j

    Args:
        width: Number of neurons.
        d: Input dimension.
        scale: :math:`\lambda`; each :math:`\lambda_j` is uniform in its upper half.
        signs: Signs of the output weights; fair coins if None.
        random_state: Seed or generator.

    Example:
        >>> start = balanced_neurons(5, 3)
        >>> start.imbalance < 1e-15, bool((np.abs(start.a) <= 1e-3).all())
        (True, True)

    Phuong 2021, section 3.2.
    """
    width, d, scale = integer("width", width), integer("d", d), positive("scale", scale)
    rng = np.random.default_rng(random_state)
    V = rng.standard_normal((width, d))
    sizes = scale * (1.0 - 0.5 * rng.random(width))
    signed = rng.choice([-1.0, 1.0], width) if signs is None else np.asarray(signs, dtype=np.float64)
    if signed.shape != (width,) or not np.isin(signed, (-1, 1)).all():
        raise ValueError(f"signs must hold {width} numbers -1 or 1")
    return Neurons(sizes[:, None] * V / np.linalg.norm(V, axis=1, keepdims=True), signed * sizes)


@dataclass(frozen=True)
class TwoLayerRun:
    """A trained two-layer network and what it was on the way.

    Attributes:
        path: Neurons at the recorded steps.
        log_losses: Logarithms of the summed logistic loss there; minus these are log t, up to a
            constant.
        kind: ``"estimate"``.
    """

    path: tuple[Neurons, ...] = field(repr=False)
    log_losses: Array = field(repr=False)
    kind: Kind = "estimate"

    @property
    def network(self) -> Neurons:
        """The network at the end."""
        return self.path[-1]

    def __str__(self) -> str:
        ends = f"{self.log_losses[0]:.4g} -> {self.log_losses[-1]:.4g}"
        return f"two-layer run: {self.network}, log loss {ends}"


def train_two_layer(
    X: ArrayLike,
    y: ArrayLike,
    *,
    width: int = 20,
    scale: float = 1e-3,
    steps: int = 10_000,
    start: Neurons | None = None,
    record: int = 50,
    step: float = TWO_LAYER_STEP,
    random_state: Any = 0,
) -> TwoLayerRun:
    r"""Follow the gradient flow of a two-layer network from balanced weights near zero.

    Args:
        X: Samples (n, d).
        y: Labels of at most two classes.
        width: Number of neurons.
        scale: Size of the first weights.
        steps: Steps of the integrator, each ``step`` over the local curvature of the log loss.
        start: First weights instead of random ones.
        record: How many networks to keep on the way.
        step: See ``steps``; at most 1.
        random_state: Seed of the first weights.

    Returns:
        A :class:`TwoLayerRun`.

    Example:
        >>> run = train_two_layer([[1.0, 0.5], [-1.0, 0.0]], [1, -1], width=8, steps=2000)
        >>> bool((run.network([[1.0, 0.5], [-1.0, 0.0]]) * [1, -1] > 1).all())
        True

    Phuong 2021, section 3.2 and appendix B.
    """
    points, labels = labelled(X, y)
    d = points.shape[1]
    first = (
        balanced_neurons(width, d, scale=scale, random_state=random_state) if start is None else start
    )
    if first.W.shape[1] != d:
        raise ValueError(f"start has {first.W.shape[1]} inputs, the samples have {d}")
    gradient = _gradient(points, labels)
    asked = np.unique(np.rint(np.linspace(1, steps, record))) * step
    asked[-1] = steps * step
    path = gradient_flow(gradient, first.vector(), time=steps * step, step=step, record=asked.tolist())
    networks = tuple(Neurons.from_vector(point, d) for point in path.points)
    logs = np.array([log_logistic(labels * network(points))[0] for network in networks])
    return TwoLayerRun(networks, logs)


def log_logistic(margins: Array) -> tuple[float, Array]:
    r"""Return the log of the summed logistic loss, and the slopes relative to that sum.

    >>> value, slopes = log_logistic(np.array([2000.0, 2000.0]))
    >>> round(value, 6), slopes.round(9).tolist()
    (-1999.306853, [0.5, 0.5])
    """
    losses = np.where(margins > _FAR, -margins, np.log(np.logaddexp(0.0, -np.minimum(margins, _FAR))))
    top = float(losses.max())
    total = top + float(np.log(np.exp(losses - top).sum()))
    slopes = -np.logaddexp(0.0, margins)  # log of 1/(1 + e^m)
    return total, np.exp(slopes - total)


def _gradient(points: Array, labels: Array) -> Callable[[Array], Array]:
    d = points.shape[1]
    squares = (points**2).sum(axis=1)
    lengths = np.sqrt(squares)

    def gradient(theta: Array) -> Array:
        p = len(theta) // (d + 1)
        W, a = theta[: p * d].reshape(p, d), theta[p * d :]
        values = points @ W.T
        active = values > 0
        values = np.where(active, values, 0.0)
        shares = log_logistic(labels * (values @ a))[1]
        pull = labels * shares
        # Curvature of the log loss: squared slopes of the margins, and their own second derivative.
        slopes = (values**2).sum(axis=1) + squares * (active @ a**2)
        pace = 1.0 / (float(shares @ (slopes + lengths)) + _TINY)
        W_part = ((active * pull[:, None]).T @ points) * a[:, None]
        return -pace * np.concatenate([W_part.ravel(), pull @ values])

    return gradient

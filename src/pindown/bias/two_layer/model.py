r"""The two-layer network :math:`h(x) = \sum_j a_j\,\rho(\langle w_j, x\rangle)` without offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.network import ReluNetwork


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
                f"W must be (p, d) and a (p,), got shapes {self.W.shape} and {self.a.shape}"
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
            raise ValueError(f"a two-layer network with one output is needed, got widths {net.widths}")
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
    if width < 1 or d < 1 or not scale > 0:
        raise ValueError(f"width and d must be at least 1 and scale positive, got {width}, {d}, {scale}")
    rng = np.random.default_rng(random_state)
    V = rng.standard_normal((width, d))
    sizes = scale * (1.0 - 0.5 * rng.random(width))
    signed = rng.choice([-1.0, 1.0], width) if signs is None else np.asarray(signs, dtype=np.float64)
    if signed.shape != (width,) or not np.isin(signed, (-1, 1)).all():
        raise ValueError(f"signs must hold {width} numbers -1 or 1")
    return Neurons(sizes[:, None] * V / np.linalg.norm(V, axis=1, keepdims=True), signed * sizes)

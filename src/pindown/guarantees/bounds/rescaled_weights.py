r"""Copies of one function that a bound in terms of weights can be computed from.

A network without biases computes the same function when every hidden unit is scaled by a positive
number and what it feeds by the inverse. A bound of the function is the smallest over all such copies.
Tried here are the network as given, with layers of equal spectral norm, with layers scaled to make

.. math:: \Big(\sum_l F_l^2\Big) \Big(\sum_l T_l / s_l\Big)^2

smallest (sum of squares over the square of the noise that is absorbed, to first order; s and F are
spectral and Frobenius norms, T the norm of unit noise), and with balanced units, the copy of smallest
sum of squares, scaled in the same way. Biases are first turned into weights of a constant input 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from pindown.affine import Array, dense
from pindown.equivalence.gauge_fixing import canonical
from pindown.io import as_network
from pindown.network import ReluNetwork
from pindown.relaxation.operator_norms import spectral_norm
from pindown.rounding import gamma, norm_up

Representative: TypeAlias = Literal["given", "layers", "scaled", "units"]
REPRESENTATIVES: tuple[Representative, ...] = ("given", "layers", "scaled", "units")


@dataclass(frozen=True, eq=False)
class WeightList:
    """A network without biases as a list of dense matrices, with the norms that bounds need.

    Attributes:
        name: Which copy: ``"given"``, ``"layers"``, ``"scaled"`` or ``"units"``.
        matrices: The layers.
    """

    name: str
    matrices: tuple[Array, ...]

    @property
    def network(self) -> ReluNetwork:
        """The same function as a network, its biases zero."""
        return ReluNetwork.from_layers([(W, np.zeros(len(W))) for W in self.matrices])

    @property
    def depth(self) -> int:
        """Number d of layers."""
        return len(self.matrices)

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Shapes of the layers."""
        return tuple((W.shape[0], W.shape[1]) for W in self.matrices)

    @property
    def largest_side(self) -> int:
        """The largest number h of rows or columns of a layer, input and output included."""
        return max(max(shape) for shape in self.shapes)

    @cached_property
    def norms(self) -> tuple[float, ...]:
        """Spectral norms, rounded up."""
        return tuple(spectral_norm(W).value for W in self.matrices)

    @cached_property
    def frobenius(self) -> float:
        """Euclidean length of all weights together, rounded up."""
        return norm_up(np.array([norm_up(W) for W in self.matrices]))

    @property
    def geometric_norm(self) -> float:
        r"""Return :math:`\beta = (\prod_l \|A_l\|_2)^{1/d}`."""
        if min(self.norms) == 0.0:
            return 0.0
        return float(np.exp(np.mean(np.log(self.norms))))

    @cached_property
    def vector(self) -> Array:
        """All weights in one vector."""
        return np.concatenate([W.ravel() for W in self.matrices])

    def rounding(self, X: Array) -> Array:
        r"""Return how far float64 can take an output from its true value, the largest for each row.

        Layer by layer :math:`e_l = |A_l|\, e_{l-1} + \gamma_{n_l + 2} |A_l| |a_{l-1}|`, for the computed
        :math:`a`.
        """
        a, error = X, np.zeros_like(X)
        for i, W in enumerate(self.matrices):
            size = np.abs(W).T
            error = (error @ size + gamma(W.shape[1] + 2) * (np.abs(a) @ size)) * (1 + gamma(W.shape[1]))
            a = a @ W.T
            if i < self.depth - 1:
                a = np.maximum(a, 0.0)
        return np.asarray(error.max(axis=1))

    def __call__(self, X: Array) -> Array:
        """Evaluate on rows."""
        a = X
        for W in self.matrices[:-1]:
            a = np.maximum(a @ W.T, 0.0)
        return a @ self.matrices[-1].T

    def shifted(self, vector: Array, name: str = "moved") -> WeightList:
        """Return the network with other weights of the same shapes."""
        sizes = np.cumsum([W.size for W in self.matrices])[:-1]
        parts = np.split(vector, sizes)
        return WeightList(
            name, tuple(part.reshape(W.shape) for part, W in zip(parts, self.matrices, strict=True))
        )


def homogeneous(net: ReluNetwork, *, biases: bool | None = None) -> WeightList:
    """Return the network without biases; with biases, as one of an input (x, 1).

    Args:
        net: The network.
        biases: Whether to add the input 1; None does so if a bias is not zero.

    >>> net = ReluNetwork.from_layers([([[2.0]], [1.0]), ([[3.0]], [0.0])])
    >>> [W.tolist() for W in homogeneous(net).matrices]
    [[[2.0, 1.0], [0.0, 1.0]], [[3.0, 0.0]]]
    """
    if biases is False and has_biases(net):
        raise ValueError("the network has biases, which need the constant input.")
    if not (has_biases(net) if biases is None else biases):
        return WeightList("given", tuple(np.array(dense(layer.weight)) for layer in net.layers))
    matrices = []
    for i, (weight, bias) in enumerate(net.layers):
        W = np.hstack([dense(weight), bias[:, None]])
        if i < net.depth - 1:
            W = np.vstack([W, np.eye(1, W.shape[1], W.shape[1] - 1)])
        matrices.append(W)
    return WeightList("given", tuple(matrices))


def weights_of(nets: Sequence[Any], caller: str, *, biases: bool | None = None) -> list[WeightList]:
    """Return networks without biases; if one of them has biases, all as networks of an input (x, 1).

    Args:
        nets: Weight lists, or models: networks, graphs, torch modules, estimators.
        caller: Who asks, for messages.
        biases: As for :func:`homogeneous`; None adds the input 1 if some bias is not zero.

    >>> net = ReluNetwork.from_layers([([[2.0]], [0.0]), ([[3.0]], [0.0])])
    >>> [w.depth for w in weights_of([net, homogeneous(net)], "an example")]
    [2, 2]
    """
    read = [net if isinstance(net, WeightList) else as_network(net, caller) for net in nets]
    some = any(has_biases(net) for net in read if isinstance(net, ReluNetwork))
    constant = some if biases is None else biases
    return [net if isinstance(net, WeightList) else homogeneous(net, biases=constant) for net in read]


def has_biases(net: ReluNetwork) -> bool:
    """Say whether any bias is not zero."""
    return any(bool(np.any(bias)) for _, bias in net.layers)


def homogeneous_rows(net: ReluNetwork, X: Array) -> Array:
    """Return inputs for :func:`homogeneous`: with a 1 at the end if the network has biases."""
    rows, _ = net.as_rows(X)
    return np.hstack([rows, np.ones((len(rows), 1))]) if has_biases(net) else rows


def representative(weights: WeightList, which: Representative) -> WeightList:
    """Return a copy of the same function.

    >>> copy = representative(WeightList("given", (np.array([[8.0]]), np.array([[0.5]]))), "layers")
    >>> [round(float(W[0, 0]), 9) for W in copy.matrices]
    [2.0, 2.0]
    """
    if which == "given" or min(weights.norms) == 0.0:
        return WeightList(which, weights.matrices)
    if which == "layers":
        beta = weights.geometric_norm
        return WeightList(
            which,
            tuple(W * (beta / s) for W, s in zip(weights.matrices, weights.norms, strict=True)),
        )
    if which == "scaled":
        factors = [_least_divergence(W, s) for W, s in zip(weights.matrices, weights.norms, strict=True)]
        mean = float(np.exp(np.mean(np.log(factors))))
        return WeightList(
            which, tuple(W * (c / mean) for W, c in zip(weights.matrices, factors, strict=True))
        )
    if which == "units":
        return WeightList(which, representative(_unit_balanced(weights), "scaled").matrices)
    raise ValueError(f"representative must be one of {REPRESENTATIVES}; got {which!r}.")


def representatives(weights: WeightList) -> tuple[WeightList, ...]:
    """Return all copies that are tried."""
    return tuple(representative(weights, which) for which in REPRESENTATIVES)


def _least_divergence(W: Array, norm: float) -> float:
    """Return the factor that is best for one layer, up to one common to all layers."""
    noise = np.sqrt(W.shape[0]) + np.sqrt(W.shape[1])
    # Roots before products: squares of tiny and huge weights leave float64.
    return float(np.cbrt(noise) / np.cbrt(norm) / np.cbrt(norm_up(W)) ** 2)


def _unit_balanced(weights: WeightList) -> WeightList:
    net = ReluNetwork.from_layers([(W, np.zeros(len(W))) for W in weights.matrices])
    balanced = canonical(net, gauge="balanced", merge=False)
    return WeightList("units", tuple(np.array(dense(layer.weight)) for layer in balanced.layers))

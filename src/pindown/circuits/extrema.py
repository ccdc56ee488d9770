r"""Maxima and minima as networks, with their sizes counted to the last ReLU.

:math:`\max(x, y) = \frac{x + y}{2} + \frac{|x - y|}{2}` takes four ReLUs, or three if only one of the
two numbers is passed on. The maximum of m numbers is a balanced tree of these with
:math:`\lceil \log_2 m \rceil` hidden layers.

Mukherjee 2020, Lemma 2.A.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, compact
from pindown.circuits.arithmetic import (
    Net,
    compose,
    depth,
    network,
    require_networks,
    size,
    stack,
)
from pindown.rational import RationalNetwork

# One pair in, one number out: what enters the ReLUs, and how they are summed.
_MAX = {
    4: ([[1, 1], [-1, -1], [1, -1], [-1, 1]], [0.5, -0.5, 0.5, 0.5]),
    3: ([[-1, 1], [1, 0], [-1, 0]], [1, 1, -1]),
}
_MIN = {
    4: ([[1, 1], [-1, -1], [1, -1], [-1, 1]], [0.5, -0.5, -0.5, -0.5]),
    3: ([[1, -1], [1, 0], [-1, 0]], [-1, 1, -1]),
}
_PASS = ([[1], [-1]], [1, -1])


@dataclass(frozen=True)
class Extremum:
    """The maximum or minimum of some networks, and where its ReLUs come from.

    Attributes:
        network: The network.
        n_inputs: Number m of functions compared.
        input_gates: ReLUs of the functions themselves.
        tree_gates: ReLUs that compare, ``gates * (m - 1)``.
        padding: ReLUs that only pass a number on, because its branch is shorter than another.
    """

    network: Net
    n_inputs: int
    input_gates: int
    tree_gates: int
    padding: int

    @property
    def size(self) -> int:
        """All ReLUs."""
        return self.input_gates + self.tree_gates + self.padding

    def __str__(self) -> str:
        return (
            f"{self.n_inputs} functions compared at depth {depth(self.network)} with {self.size} ReLUs: "
            f"{self.input_gates} of their own, {self.tree_gates} in the tree, {self.padding} of padding"
        )


def max2(*, gates: int = 4, exact: bool = False) -> Net:
    r"""Return :math:`\max(x, y)` as a network with one hidden layer.

    Args:
        gates: 4 for :math:`\frac12 (x + y) + \frac12 |x - y|`, 3 for :math:`x + \rho(y - x)`.
        exact: Whether to build it over the rationals.

    Example:
        >>> max2()([3.0, 5.0]), max2(gates=3, exact=True)([3, 5])
        (array([5.]), [Fraction(5, 1)])

    Mukherjee 2020, Figure 2.A.1; the form with three gates is ours.
    """
    return _tree(2, gates, smallest=False, exact=exact)


def min2(*, gates: int = 4, exact: bool = False) -> Net:
    r"""Return :math:`\min(x, y)` as a network with one hidden layer.

    Example:
        >>> min2()([3.0, 5.0])
        array([3.])

    Mukherjee 2020, Lemma 2.A.4.
    """
    return _tree(2, gates, smallest=True, exact=exact)


def maximum(networks: Sequence[Net], *, gates: int = 4) -> Extremum:
    r"""Return :math:`\max\{f_1, \dots, f_m\}` as a balanced tree over the networks.

    The depth is :math:`\max_i k_i + \lceil \log_2 m \rceil + 1` for :math:`k_i` hidden layers, the size
    :math:`\sum_i s_i + 4 (m - 1)` and the padding.

    Args:
        networks: Networks with one output and the same inputs, one or more.
        gates: ReLUs for each comparison, 4 or 3.

    Returns:
        The network with its count; over the rationals if one of the networks is.

    Example:
        >>> from pindown.circuits.blocks import affine_network
        >>> x, y, z = (affine_network([row], [0]) for row in ([1, 0], [0, 1], [-1, -1]))
        >>> print(maximum([x, y, z]))
        3 functions compared at depth 4 with 16 ReLUs: 6 of their own, 8 in the tree, 2 of padding

    Mukherjee 2020, Lemma 2.A.4; the size printed there leaves out most of the padding.
    """
    return _extremum(networks, gates, smallest=False)


def minimum(networks: Sequence[Net], *, gates: int = 4) -> Extremum:
    r"""Return :math:`\min\{f_1, \dots, f_m\}`; see :func:`maximum`.

    >>> from pindown.circuits.blocks import absolute_value, affine_network
    >>> minimum([absolute_value(exact=True), affine_network([[1]], [-1])]).network([3])
    [Fraction(2, 1)]
    """
    return _extremum(networks, gates, smallest=True)


def rectified_maxima(m: int, copies: int, *, exact: bool = False) -> Net:
    r"""Return the map from blocks of m numbers to :math:`\max\{0, x_1, \dots, x_m\}` of each block.

    As a tree over m + 1 numbers of which one is 0, it has :math:`\lceil \log_2(m + 1) \rceil` hidden
    layers; what has met the 0 is not negative, and needs one ReLU instead of two to be passed on.

    Args:
        m: Numbers in each block.
        copies: Blocks.
        exact: Whether to build it over the rationals.

    Example:
        >>> net = rectified_maxima(2, copies=2, exact=True)
        >>> [int(v) for v in net([3, 5, -1, -2])], size(net)
        ([5, 0], 8)
    """
    layers, before, met = [], _repeated(np.eye(m), copies), False
    while m or not met:
        parts = [_MAX[3]] * (m // 2)
        if met:  # the last number is not negative
            parts.append(([[1, -1], [0, 1]], [1, 1]) if m % 2 else ([[1]], [1]))
        elif m % 2:
            parts.append(([[1]], [1]))
            met = True
        into, out = _assembled(parts)
        layers.append(_repeated(into, copies) @ before)
        before, m = _repeated(out, copies), m // 2
    return _network_of([*layers, before], exact=exact)


def _extremum(networks: Sequence[Net], gates: int, *, smallest: bool) -> Extremum:
    if not networks:
        raise ValueError("a maximum or minimum needs at least one network; got none.")
    require_networks(*networks)
    outputs = [len(net.layers[-1][1]) for net in networks]
    if set(outputs) != {1}:
        raise ValueError(f"the networks to compare need one output each; got {outputs}.")
    m, side_by_side = len(networks), stack(networks)
    exact = any(isinstance(net, RationalNetwork) for net in networks)
    net = compose(_tree(m, gates, smallest=smallest, exact=exact), side_by_side)
    own, compared = sum(size(f) for f in networks), gates * (m - 1)
    return Extremum(net, m, own, compared, size(net) - own - compared)


def _tree(m: int, gates: int, *, smallest: bool, exact: bool) -> Net:
    """Return the tree that compares m numbers."""
    if gates not in _MAX:
        raise ValueError(f"gates must be 3 or 4; got {gates}.")
    pair = (_MIN if smallest else _MAX)[gates]
    matrices, before = [], np.eye(m)
    while m > 1:
        into, out = _assembled([pair] * (m // 2) + [_PASS] * (m % 2))
        matrices.append(into @ before)
        before, m = out, len(out)
    return _network_of([*matrices, before], exact=exact)


def _assembled(parts: Sequence[tuple[Any, Any]]) -> tuple[Array, Array]:
    """Return the maps into and out of a layer of parts side by side."""
    into = sp.block_diag([np.array(first, dtype=float) for first, _ in parts])
    out = sp.block_diag([np.array([second], dtype=float) for _, second in parts])
    return into.toarray(), out.toarray()


def _repeated(block: Array, copies: int) -> Any:
    return sp.csr_array(sp.kron(sp.eye_array(copies), sp.csr_array(block)))


def _network_of(matrices: Sequence[Any], *, exact: bool) -> Net:
    """Return the network with these weights and no biases."""
    return network(((W if exact else compact(W), np.zeros(W.shape[0])) for W in matrices), exact=exact)

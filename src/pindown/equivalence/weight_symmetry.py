r"""The symmetries every ReLU network has: reorder the units of a layer, rescale each by m > 0.

With :math:`T_l = M_l P_l`, a permutation followed by a positive diagonal, and :math:`T_0 = T_L = I`,

.. math::
    W_l \leftarrow T_l W_l T_{l-1}^{-1}, \qquad b_l \leftarrow T_l b_l

leaves the function unchanged, because :math:`\rho(m z) = m\, \rho(z)` for :math:`m > 0`.

Phuong 2021, Theorem 2.1; Phuong and Lampert 2020, "Functional vs. parametric equivalence of ReLU
networks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Affine, Array, Matrix
from pindown.equivalence.tuning import MAX_LOG_SCALE
from pindown.io.accepting import on_network
from pindown.io.any_model import AnyModel, as_network
from pindown.network import ReluNetwork
from pindown.validation import positive

Permutation = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Symmetry:
    r"""One permutation and one positive scale per hidden unit: new unit i is ``m_i`` times old ``p_i``.

    The function-preserving transformations of a ReLU network: permutation symmetry and positive
    rescaling (Phuong 2021, section 2.1).

    Attributes:
        permutations: Per hidden layer, which old unit stands at each new place.
        scales: Per hidden layer, the positive factor of each new unit.

    >>> Symmetry([[1, 0]], [[2.0, 0.5]])
    Symmetry(1 hidden layer, 2 units, 2 moved, scales from 0.5 to 2)
    """

    permutations: tuple[Permutation, ...]
    scales: tuple[Array, ...]

    def __init__(self, permutations: Sequence[ArrayLike], scales: Sequence[ArrayLike]) -> None:
        if len(permutations) != len(scales):
            raise ValueError(
                f"a symmetry has one permutation and one set of scales per hidden layer; "
                f"got {len(permutations)} permutations and {len(scales)} sets of scales."
            )
        pairs = [_checked(i, p, m) for i, (p, m) in enumerate(zip(permutations, scales, strict=True), 1)]
        object.__setattr__(self, "permutations", tuple(p for p, _ in pairs))
        object.__setattr__(self, "scales", tuple(m for _, m in pairs))

    @property
    def widths(self) -> tuple[int, ...]:
        """Hidden widths of the networks it acts on."""
        return tuple(len(p) for p in self.permutations)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Symmetry)
            and self.widths == other.widths
            and all(map(np.array_equal, self.permutations, other.permutations))
            and all(map(np.array_equal, self.scales, other.scales))
        )

    def __hash__(self) -> int:
        return hash(tuple(part.tobytes() for part in (*self.permutations, *self.scales)))

    def __repr__(self) -> str:
        layers = "1 hidden layer" if len(self.widths) == 1 else f"{len(self.widths)} hidden layers"
        moved = sum(int(np.count_nonzero(p != np.arange(len(p)))) for p in self.permutations)
        parts = [layers, f"{sum(self.widths)} units", f"{moved} moved"]
        if self.scales:
            m = np.concatenate(self.scales)
            parts.append(f"scales from {m.min():.4g} to {m.max():.4g}")
        return f"Symmetry({', '.join(parts)})"


@on_network
def identity(net: ReluNetwork) -> Symmetry:
    """Return the symmetry that changes nothing.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> identity(net)
    Symmetry(1 hidden layer, 2 units, 0 moved, scales from 1 to 1)
    """
    widths = net.hidden_widths
    return Symmetry([np.arange(n) for n in widths], [np.ones(n) for n in widths])


@on_network
def random_symmetry(
    net: ReluNetwork, log_scale_std: float = 1.0, seed: int | np.random.Generator = 0
) -> Symmetry:
    r"""Draw uniform permutations and scales :math:`e^{\sigma g}`, g standard normal.

    Args:
        net: The network whose hidden widths count.
        log_scale_std: :math:`\sigma \ge 0`; 0 gives permutations only.
        seed: A seed or a generator.

    Raises:
        TypeError: If ``log_scale_std`` is a generator.
        ValueError: If ``log_scale_std`` is negative or not finite.

    The logarithms are cut to [-20, 20].

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> random_symmetry(net, log_scale_std=0.0).scales
    (array([1., 1.]),)
    """
    if isinstance(log_scale_std, np.random.Generator):
        raise TypeError("log_scale_std must be a number of at least 0; a generator goes to seed=.")
    log_scale_std = positive("log_scale_std", log_scale_std, zero=True)
    rng = np.random.default_rng(seed)
    permutations = [rng.permutation(n) for n in net.hidden_widths]
    logs = [log_scale_std * rng.standard_normal(n) for n in net.hidden_widths]
    return Symmetry(permutations, [np.exp(np.clip(s, -MAX_LOG_SCALE, MAX_LOG_SCALE)) for s in logs])


def apply(symmetry: Symmetry, net: AnyModel) -> ReluNetwork:
    """Return the symmetric copy of a network: the same function, exactly so if scales are powers of two.

    Otherwise every weight is off by at most two roundings of float64.

    Raises:
        ValueError: If the widths differ, or a scaled weight does not fit float64.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 3]), ([[1.0, 1.0]], [0])])
    >>> copy = apply(Symmetry([[1, 0]], [[2.0, 0.5]]), net)
    >>> copy.layers[0].weight.ravel(), copy.layers[1].weight.ravel()
    (array([-2. ,  0.5]), array([0.5, 2. ]))
    """
    net = as_network(net, "apply")
    if symmetry.widths != net.hidden_widths:
        raise ValueError(
            f"the symmetry acts on hidden widths {symmetry.widths}; the network has {net.hidden_widths}."
        )
    layers = tuple(Affine.of(*moved_layer(symmetry, i, layer)) for i, layer in enumerate(net.layers))
    return replace(net, layers=layers)


def moved_layer(symmetry: Symmetry, index: int, layer: Affine) -> tuple[Matrix, Array]:
    r"""Return :math:`T_l W_l T_{l-1}^{-1}` and :math:`T_l b_l` of the layer with that index, from 0."""
    weight, bias = layer
    with np.errstate(over="ignore", invalid="ignore"):
        if index > 0:
            weight = moved_columns(weight, symmetry.permutations[index - 1], symmetry.scales[index - 1])
        if index < len(symmetry.widths):
            p, m = symmetry.permutations[index], symmetry.scales[index]
            return scaled_rows(weight[p], m), m * bias[p]
    return weight, bias


def compose(second: Symmetry, first: Symmetry) -> Symmetry:
    r"""Return the symmetry that applies ``first``, then ``second``: :math:`T = T'' T'`.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> turn = random_symmetry(net)
    >>> compose(inverse(turn), turn)
    Symmetry(1 hidden layer, 2 units, 0 moved, scales from 1 to 1)
    """
    if second.widths != first.widths:
        raise ValueError(
            f"symmetries to compose need equal hidden widths; got {second.widths} and {first.widths}."
        )
    permutations = [p[q] for p, q in zip(first.permutations, second.permutations, strict=True)]
    pairs = zip(first.scales, second.permutations, second.scales, strict=True)
    with np.errstate(over="ignore"):  # the constructor refuses what does not fit
        return Symmetry(permutations, [n * m[q] for m, q, n in pairs])


def inverse(symmetry: Symmetry) -> Symmetry:
    r"""Return the symmetry that undoes this one: :math:`T^{-1} = P^\top M^{-1}`.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> turn = random_symmetry(net)
    >>> (inverse(turn).scales[0] * turn.scales[0]).round(12)
    array([1., 1.])
    """
    back = [np.argsort(p) for p in symmetry.permutations]
    with np.errstate(over="ignore"):
        return Symmetry(back, [1.0 / m[q] for m, q in zip(symmetry.scales, back, strict=True)])


def scaled_rows(weight: Matrix, factors: Array) -> Matrix:
    """Return ``diag(factors) W``."""
    if not sp.issparse(weight):
        return factors[:, None] * weight
    scaled = weight.copy()
    scaled.data = np.repeat(factors, np.diff(weight.indptr)) * weight.data
    return scaled


def moved_columns(weight: Matrix, permutation: Permutation, divisors: Array) -> Matrix:
    """Return the columns in the order given, each divided by its number."""
    if not sp.issparse(weight):
        moved: Array = np.take(weight, permutation, axis=1)
        moved /= divisors
        return moved
    places = np.argsort(permutation)[weight.indices]
    data = weight.data / divisors[places]
    sparse: Matrix = sp.csr_array((data, places, weight.indptr), shape=weight.shape, copy=True)
    sparse.sort_indices()
    return sparse


def _checked(layer: int, permutation: ArrayLike, scales: ArrayLike) -> tuple[Permutation, Array]:
    p, m = np.array(permutation), np.array(scales, dtype=np.float64)
    if p.ndim != 1 or m.shape != p.shape:
        raise ValueError(
            f"hidden layer {layer}: permutation and scales need one entry per unit; "
            f"got shapes {p.shape} and {m.shape}."
        )
    if p.dtype.kind not in "iu" or not np.array_equal(np.sort(p), np.arange(p.size)):
        raise ValueError(f"hidden layer {layer}: not a permutation of 0..{p.size - 1}.")
    if not np.all(np.isfinite(m) & (m > 0.0)):
        worst = m[~(np.isfinite(m) & (m > 0.0))][0]
        raise ValueError(
            f"hidden layer {layer}: scales must be positive and finite; got {worst:g}. "
            "A negative scale changes the function."
        )
    p = p.astype(np.intp)
    p.flags.writeable = m.flags.writeable = False
    return p, m

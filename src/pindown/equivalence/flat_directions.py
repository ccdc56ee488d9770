r"""How many directions in parameter space change the function at all.

The functional dimension of a network at its parameters :math:`\theta` is the rank of the Jacobian
:math:`\partial f(x_n) / \partial\theta` over inputs :math:`x_n`. Rescaling a hidden unit never changes
the function, so at least :math:`\sum_{l<L} d_l` directions are flat; what is flat beyond these is hidden
redundancy: dead units, units that are always on, and subtler symmetries.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Affine, Array
from pindown.box import Box, as_box
from pindown.deadline import Deadline, Stopwatch
from pindown.equivalence.tuning import (
    JACOBIAN_SAMPLES,
    MAX_WHOLE_PARAMETERS,
    MIN_JACOBIAN_ROWS,
    PARAMETER_BLOCK,
    RANK_DROP,
    RARE_CELL_DRAWS,
)
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.validation import integer


@dataclass(frozen=True, eq=False, repr=False)
class FunctionalDimension:
    """Rank of the derivative of the function by the parameters.

    The rank is measured on samples, half of them from the rarest cells that many draws hit: a cell that
    all draws miss can only raise it.

    Attributes:
        rank: Number of parameter directions that change the function on the samples.
        n_parameters: Number P of parameters.
        unavoidable: Number of hidden units with weights; each can be rescaled for free.
        singular_values: Singular values of the Jacobian with columns of length one, descending.
        stable: Whether half of the samples give the same rank.
        lower_bound: Whether the network was too large for one decomposition. Then ``rank`` is that of a
            random block of parameters, so the true rank is at least this.
        n_samples: Number of inputs.
        notes: What was left out, in plain words.
    """

    rank: int
    n_parameters: int
    unavoidable: int
    singular_values: Array
    stable: bool
    lower_bound: bool
    n_samples: int
    notes: tuple[str, ...] = ()

    @property
    def redundancy(self) -> int:
        """Flat directions: P less the rank."""
        return self.n_parameters - self.rank

    @property
    def hidden(self) -> int:
        """Flat directions beyond the rescaling of units (an upper bound if ``lower_bound``)."""
        return self.redundancy - self.unavoidable

    @property
    def gap(self) -> float:
        """The last singular value that counts; its size says how firm the rank is."""
        return (
            float(self.singular_values[self.rank - 1])
            if 0 < self.rank <= len(self.singular_values)
            else 0.0
        )

    def __repr__(self) -> str:
        if self.lower_bound:
            return (
                f"FunctionalDimension(at least {self.rank:,} of {self.n_parameters:,} directions change "
                f"the function, from a block of {len(self.singular_values):,} parameters on "
                f"{self.n_samples:,} inputs)"
            )
        return (
            f"FunctionalDimension({self.rank:,} of {self.n_parameters:,} directions change the function"
            f"; {self.unavoidable:,} rescale units, {self.hidden:,} are hidden redundancy; estimate "
            f"from {self.n_samples:,} inputs, {'stable' if self.stable else 'not stable'})"
        )


@on_network
def functional_dimension(
    net: ReluNetwork,
    X: ArrayLike | Box | tuple[ArrayLike, ArrayLike],
    *,
    n_samples: int | None = None,
    seed: int = 0,
    budget: float = inf,
) -> FunctionalDimension:
    r"""Measure the rank of :math:`\partial f(x_n) / \partial\theta` over inputs of a box.

    .. math:: \mathrm{rank} \le P - \sum_{l<L} d_l,

    with equality for networks that their function identifies up to symmetry.

    Args:
        net: The network; sparse layers count all their positions' weights, as dense ones do.
        X: A Box to draw inputs from, or the inputs themselves, (n, d).
        n_samples: How many to use; by default five for each parameter. Up to 5,000 parameters half of
            them come from the rarest cells of many more draws, which decide the rank.
        seed: Chooses them.
        budget: Seconds; fewer samples are used if it ends early.

    Returns:
        The rank, split into what is unavoidable and what is hidden. An estimate: rare cells may be
        missed, which lowers it; ``stable`` compares with half of the samples. Above 5,000 parameters a
        random block of 400 of them gives a lower bound.

    Raises:
        ValueError: If ``n_samples`` is not positive, or inputs and network do not fit.

    Example:
        A unit and its output weight: two directions, of which one is the unit's scale.

        >>> net = ReluNetwork.from_layers([([[2.0]], [0.5]), ([[3.0]], [1.0])])
        >>> functional_dimension(net, Box([-1], [1]))
        FunctionalDimension(3 of 4 directions change the function; 1 rescale units, 0 are hidden
        redundancy; estimate from 20 inputs, stable)

    Phuong 2021, section 2.6 (which asks how redundant typical networks are); the meter is ours.
    """
    deadline = Deadline.after(budget)
    P = n_parameters(net)
    if n_samples is not None:
        integer("n_samples", n_samples)
    columns = None
    if P > MAX_WHOLE_PARAMETERS:
        columns = np.sort(np.random.default_rng(seed).choice(P, PARAMETER_BLOCK, replace=False))
    size = P if columns is None else len(columns)
    rows = _inputs(net, X, n_samples or JACOBIAN_SAMPLES * size, seed)
    factor, half_rank, done = _factor(net, rows, columns, size, deadline)
    rank, singular = _rank(factor)
    notes = () if done == len(rows) else (f"time ended after {done:,} of {len(rows):,} inputs",)
    return FunctionalDimension(
        rank=rank,
        n_parameters=P,
        unavoidable=sum(_weighty(layer) for layer in net.layers[:-1]),
        singular_values=singular,
        stable=rank == half_rank,
        lower_bound=columns is not None,
        n_samples=done,
        notes=notes,
    )


def _factor(
    net: ReluNetwork, rows: Array, columns: NDArray[np.int64] | None, size: int, deadline: Deadline
) -> tuple[Array, int, int]:
    """Return the triangular factor of the Jacobian, the rank on half of the rows, and the rows used."""
    half, done, half_rank = max(1, len(rows) // 2), 0, -1
    factor = np.empty((0, size))  # stands for all rows so far: memory stays at P times P
    step = max(1, max(size, MIN_JACOBIAN_ROWS) // net.out_features)
    took = 0.0
    for stop in sorted({*range(step, len(rows), step), half, len(rows)}):
        watch = Stopwatch()
        if done and took > deadline.left:
            break
        part = parameter_jacobian(net, rows[done:stop], columns)
        factor = np.asarray(np.linalg.qr(np.concatenate([factor, part]), mode="r"))
        done = stop
        if stop == half:
            half_rank = _rank(factor)[0]
        took = watch.seconds
    return factor, half_rank, done


def _weighty(layer: Affine) -> int:
    """Return the number of units with a weight or a bias: their scale is free."""
    used = np.asarray(abs(layer.weight).sum(axis=1)).reshape(-1) > 0.0
    return int(np.sum(used | (layer.bias != 0.0)))


def n_parameters(net: ReluNetwork) -> int:
    """Return the number of weights and biases, zeros of sparse layers included."""
    return sum(layer.out_features * (layer.in_features + 1) for layer in net.layers)


def parameter_jacobian(
    net: ReluNetwork, X: ArrayLike, columns: NDArray[np.int64] | None = None
) -> Array:
    r"""Return :math:`\partial f_k(x_n) / \partial\theta`, shape (n k, P).

    Parameters are ordered layer by layer, W row by row and then b. Since :math:`\partial f / \partial
    W_l = \delta_l\, a_{l-1}^\top` with :math:`\delta_l` the derivative by the layer's output, one pass
    forwards and one backwards give all of it. At a fold a unit counts as off.

    Args:
        net: The network.
        X: Inputs, (n, d).
        columns: Which parameters, ascending; all by default.

    >>> net = ReluNetwork.from_layers([([[2.0]], [0.5]), ([[3.0]], [1.0])])
    >>> parameter_jacobian(net, [[1.0]])  # f = 3 relu(2 x + 0.5) + 1
    array([[3. , 3. , 2.5, 1. ]])
    """
    rows, _ = net.as_rows(X)
    n, k = len(rows), net.out_features
    inputs, masks = [rows], []
    for layer in net.layers[:-1]:
        z = layer(inputs[-1])
        masks.append(z > 0.0)
        inputs.append(np.where(masks[-1], z, 0.0))
    delta = np.broadcast_to(np.eye(k), (n, k, k))
    parts: list[Array] = []
    stop = n_parameters(net)
    for i in range(net.depth - 1, -1, -1):
        width, inner = net.layers[i].out_features, net.layers[i].in_features
        start = stop - width * (inner + 1)
        parts.insert(0, _layer_columns(delta, inputs[i], start, columns).reshape(n * k, -1))
        stop = start
        if i:
            back = net.layers[i].pull_back(delta.reshape(n * k, width))
            delta = back.reshape(n, k, -1) * masks[i - 1][:, None]
    return np.concatenate(parts, axis=1)


def _layer_columns(delta: Array, a: Array, start: int, columns: NDArray[np.int64] | None) -> Array:
    """Return the derivatives by one layer's weights and biases, or by those among ``columns``."""
    width, inner = delta.shape[2], a.shape[1]
    if columns is None:
        weights = delta[..., None] * a[:, None, None, :]
        return np.concatenate([weights.reshape(*delta.shape[:2], -1), delta], axis=2)
    mine = columns[(columns >= start) & (columns < start + width * (inner + 1))] - start
    of_weight = mine[mine < width * inner]
    weights = delta[:, :, of_weight // inner] * a[:, None, of_weight % inner]
    return np.concatenate([weights, delta[:, :, mine[mine >= width * inner] - width * inner]], axis=2)


def _inputs(
    net: ReluNetwork, X: ArrayLike | Box | tuple[ArrayLike, ArrayLike], n: int, seed: int
) -> Array:
    if not isinstance(X, (Box, tuple)):
        rows, _ = net.as_rows(X)
        return rows
    box, rng = as_box(X, net.in_features), np.random.default_rng(seed)
    if n_parameters(net) > MAX_WHOLE_PARAMETERS or net.depth < 2:
        return box.sample(n, rng)
    pool = box.sample(RARE_CELL_DRAWS, rng)
    rare = pool[_from_rare_cells(net, pool, n // 2)]
    # In random order, so that half of them is a fair half.
    return rng.permutation(np.concatenate([rare, box.sample(n - len(rare), rng)]))


def _from_rare_cells(net: ReluNetwork, pool: Array, n: int) -> NDArray[np.int64]:
    """Return the numbers of n points, from the rarest cells, no more of a cell than say all about it."""
    bits = np.packbits(net.pattern(pool), axis=1)
    _, cell, count = np.unique(bits, axis=0, return_inverse=True, return_counts=True)
    cell = cell.reshape(-1)
    order = np.lexsort((np.arange(len(pool)), cell, count[cell]))
    start = np.concatenate([[0], np.flatnonzero(np.diff(cell[order])) + 1])
    place = np.arange(len(pool)) - np.repeat(start, np.diff(np.append(start, len(pool))))
    enough = order[place <= net.in_features]  # d + 1 points fix an affine function
    return np.asarray(enough[:n], dtype=np.int64)


def _rank(factor: Array) -> tuple[int, Array]:
    """Return the rank and the singular values after columns are scaled to length one."""
    size = np.linalg.norm(factor, axis=0)
    scaled = factor / np.where(size > 0.0, size, 1.0)
    singular: Array = np.asarray(np.linalg.svd(scaled, compute_uv=False), dtype=np.float64)
    top = float(singular[0]) if singular.size else 0.0
    return int(np.sum(singular > RANK_DROP * top)) if top > 0.0 else 0, singular

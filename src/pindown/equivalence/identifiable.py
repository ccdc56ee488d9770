r"""Networks that their function determines up to the order and the scale of their units.

Layer by layer, on the polytope C of inputs where all earlier units are on, rows are chosen so that

* at every input one of the first two is positive (the network is transparent), and
* the folds of each layer cross those of the layer before in the middle of their facets, so that they
  bend there and the bends give the layers away.

Phuong and Lampert 2020; Phuong 2021, Lemma A.17 with its indices corrected (docs/errata.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array, dense
from pindown.box import Box, as_box
from pindown.equivalence.tuning import DRAW_ATTEMPTS, MAX_CONDITION, MIN_ROOM, TILT
from pindown.geometry.conditions.transparency import Transparency, check_transparency
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.programs import linear_program

_SPANNED = 1e-12  # singular values of directions below this share are rounding
_FULL_RANK = 1e-10  # smallest singular value of a layer, relative to the largest


class _NoRoomError(Exception):
    """A draw left no room for the next row."""


def identifiable_network(
    widths: Sequence[int], *, box: Box | tuple[ArrayLike, ArrayLike] | None = None, seed: int = 0
) -> ReluNetwork:
    r"""Build a network that is determined by its function on a box, up to symmetry.

    Every *general* network :math:`\eta` of the same widths with the same function on the box has

    .. math:: W_l = T_l\, W'_l\, T_{l-1}^{-1}, \qquad b_l = T_l\, b'_l,

    with :math:`T_l` a permutation times a positive diagonal matrix, and :math:`T_0 = T_L = I`.

    Args:
        widths: :math:`(d_0, \dots, d_L)` with :math:`d_0 \ge d_1 \ge \dots \ge d_{L-1} \ge 2`; the
            number :math:`d_L` of outputs is free.
        box: The inputs; by default the cube [-1, 1]^d.
        seed: Chooses among the many such networks. Draws with a layer of condition above 1e6, and draws
            whose cells become too thin for float64, are drawn again: the construction works for them
            too, but float64 has too few digits to show it.

    Raises:
        ValueError: If the widths increase or a hidden one is below two, or the box is flat; or if 20
            draws were too ill-conditioned, which happens for many layers: in exact arithmetic every
            draw would do.

    Example:
        >>> net = identifiable_network((2, 2, 1))
        >>> net.widths, check_identifiable(net, Box.cube(2, -1, 1)).ok
        ((2, 2, 1), True)

    Phuong 2021, Lemma 2.4 and its proof, Lemma A.17: these networks show the identifiability of ReLU
    networks (Theorem 2.1).
    """
    sizes = _checked_widths(widths)
    domain = Box.cube(sizes[0], -1.0, 1.0) if box is None else as_box(box, sizes[0])
    if np.any(domain.lower == domain.upper):
        raise ValueError("an identifiable network needs a box with an interior; some side has length 0.")
    rng = np.random.default_rng(seed)
    for _ in range(DRAW_ATTEMPTS):
        try:
            return _in_box(_Builder(sizes[0], rng).build(sizes), domain)
        except _NoRoomError:
            continue
    raise ValueError(
        f"no network of widths {sizes} was found in {DRAW_ATTEMPTS} draws: its cells become too thin "
        "for float64. Fewer layers, or another seed, may do."
    )


def _checked_widths(widths: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(int(width) for width in widths)
    hidden = sizes[1:-1]
    falling = all(a >= b for a, b in zip(sizes[:-1], hidden, strict=False))
    if len(sizes) < 2 or not falling or min(hidden, default=2) < 2 or min(sizes) < 1:
        raise ValueError(
            f"widths must be (d_0, ..., d_L) with d_0 >= d_1 >= ... >= d_(L-1) >= 2, then the number "
            f"of outputs; got {sizes}."
        )
    return sizes


def _in_box(net: ReluNetwork, box: Box) -> ReluNetwork:
    """Move a network from the cube [-1, 1]^d to a box."""
    (W, b), *rest = net.layers
    scaled = W / (box.upper / 2 - box.lower / 2)
    return ReluNetwork.from_layers([(scaled, b - scaled @ box.center), *rest])


class _Builder:
    """The polytope C = {x in [-1, 1]^d: N x + m >= 0} and the layer input z = A x + c on it."""

    def __init__(self, d: int, rng: np.random.Generator) -> None:
        self.d, self.rng = d, rng
        self.N, self.m = np.empty((0, d)), np.empty(0)
        self.A, self.c = np.eye(d), np.zeros(d)
        self.low, self.high = -np.ones(d), np.ones(d)
        self.facets: Array | None = None  # one point, in z, of each facet the last layer made

    def build(self, sizes: tuple[int, ...]) -> ReluNetwork:
        layers = []
        for width in sizes[1:-1]:
            W, b = self._layer(width)
            if np.linalg.cond(W) > MAX_CONDITION:
                raise _NoRoomError
            layers.append((W, b))
            self._advance(W, b)
        last = self.rng.standard_normal((sizes[-1], self.A.shape[0]))
        return ReluNetwork.from_layers([*layers, (last, self.rng.standard_normal(sizes[-1]))])

    def _layer(self, width: int) -> tuple[Array, Array]:
        rows = list(self._first_two())
        inner = [self._zero_of(rows, i) for i in (0, 1)]  # in z
        while len(rows) < width:
            middle = np.mean(inner, axis=0)
            v = self._orthogonal_to(np.diff(inner, axis=0))
            reach = self._reach(rows, middle, v)
            other = self._reach(rows, middle, -v)
            if other > reach:
                v, reach = -v, other
            # A quarter of the way to the boundary, so that the earlier points stay on its positive side.
            rows.append(np.append(-v, v @ middle + reach / 4))
            inner.append(middle + reach / 4 * v)
        stacked = np.array(rows)
        # Numerical necessity, and harmless: the scale of a unit is free.
        stacked /= np.array([self._largest(row) for row in stacked])[:, None]
        return stacked[:, :-1], stacked[:, -1]

    def _first_two(self) -> tuple[Array, Array]:
        """Return two rows such that, on all inputs, the second is positive where the first is not."""
        if self.facets is None:
            p, w = np.zeros(self.d), self._unit(self.rng.standard_normal(self.d))
        else:
            p, w = self.facets.mean(axis=0), self._orthogonal_to(np.diff(self.facets, axis=0))
        first = np.append(w, -w @ p)
        if self._largest(first) < self._largest(-first):
            first = -first
        gap = self._largest(first) / 2
        if gap < MIN_ROOM:
            raise _NoRoomError
        v = self._orthogonal_to(first[None, :-1])
        reach = np.sum(np.maximum(np.abs(self.high - p), np.abs(self.low - p)) * np.abs(v))
        tilt = TILT * gap / reach * v
        return first, np.append(-first[:-1] + tilt, -first[-1] + gap - tilt @ p)

    def _advance(self, W: Array, b: Array) -> None:
        """Make the layer's outputs the inputs of the next one."""
        rows = list(np.column_stack([W, b]))
        facets = np.array([self._zero_of(rows, i) for i in range(len(rows))])
        self.facets = facets @ W.T + b
        positive, negative = np.maximum(W, 0.0), np.minimum(W, 0.0)
        low = positive @ self.low + negative @ self.high + b
        high = positive @ self.high + negative @ self.low + b
        self.low, self.high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        self.A, self.c = W @ self.A, W @ self.c + b
        self.N, self.m = np.vstack([self.N, self.A]), np.append(self.m, self.c)

    # ------------------------------------------------------------------ linear programs in input space

    def _largest(self, row: Array) -> float:
        """Return the maximum over C of a row in z."""
        slope = row[:-1] @ self.A
        x = _solve(-slope, -self.N, self.m, [(-1.0, 1.0)] * self.d)
        return float(slope @ x + row[:-1] @ self.c + row[-1])

    def _zero_of(self, rows: list[Array], i: int) -> Array:
        """Return the z in C with row i zero that is farthest inside C and the other rows' sides."""
        all_rows = np.array(rows)
        slopes, levels = all_rows[:, :-1] @ self.A, all_rows[:, :-1] @ self.c + all_rows[:, -1]
        others = np.arange(len(rows)) != i
        N = np.vstack([self.N, slopes[others], np.eye(self.d), -np.eye(self.d)])
        m = np.concatenate([self.m, levels[others], np.ones(2 * self.d)])
        size = np.linalg.norm(N, axis=1)
        equal = np.append(slopes[i], 0.0)[None], np.array([-levels[i]])
        bounds = [(-1.0, 1.0)] * self.d + [(0.0, np.inf)]
        goal = np.append(np.zeros(self.d), -1.0)
        scaled = equal[0] / np.linalg.norm(slopes[i]), equal[1] / np.linalg.norm(slopes[i])
        x = _solve(
            goal, np.column_stack([-N / size[:, None], np.ones(len(N))]), m / size, bounds, scaled
        )
        if x[-1] < MIN_ROOM:
            raise _NoRoomError
        return np.asarray(self.A @ x[:-1] + self.c)

    def _reach(self, rows: list[Array], middle: Array, v: Array) -> float:
        """Return the largest t with ``middle + t v`` in the image of C and all rows non-negative."""
        all_rows = np.array(rows)
        slopes, levels = all_rows[:, :-1] @ self.A, all_rows[:, :-1] @ self.c + all_rows[:, -1]
        N, m = np.vstack([self.N, slopes]), np.concatenate([self.m, levels])
        equal = np.column_stack([self.A, -v]), middle - self.c
        bounds = [(-1.0, 1.0)] * self.d + [(0.0, np.inf)]
        x = _solve(
            np.append(np.zeros(self.d), -1.0), np.column_stack([-N, np.zeros(len(N))]), m, bounds, equal
        )
        if x[-1] < MIN_ROOM:
            raise _NoRoomError
        return float(x[-1])

    # ------------------------------------------------------------------ vectors

    @staticmethod
    def _unit(v: Array) -> Array:
        return np.asarray(v / np.linalg.norm(v))

    def _orthogonal_to(self, directions: Array) -> Array:
        """Return a random unit vector orthogonal to the rows."""
        v: Array = np.asarray(self.rng.standard_normal(directions.shape[1]))
        if len(directions):
            _, s, vt = np.linalg.svd(directions, full_matrices=True)
            rank = int(np.sum(s > _SPANNED * s[0]))
            free = vt[rank:]
            if not len(free):
                raise _NoRoomError
            v = free.T @ (free @ v)
        return self._unit(v)


def _solve(
    goal: Array,
    N: Array,
    m: Array,
    bounds: Sequence[tuple[float, float]],
    equal: tuple[Array, Array] | None = None,
) -> Array:
    """Minimise ``goal . x`` subject to ``N x <= m``."""
    lower, upper = np.transpose(bounds)
    result = linear_program(goal, N, m, equal=equal, lower=lower, upper=upper)
    if not result.solved or result.x is None:
        raise _NoRoomError
    return result.x


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Which of the guarantees of an identifiable network hold.

    Attributes:
        transparency: Whether every hidden layer has a non-negative unit at every input, as proved.
        full_rank: For each hidden layer, whether its rows are independent.
        paths: For two inputs: the number of straight folds across the box from which a path of bends
            through all later hidden layers starts; None for other numbers of inputs.
        widths: Widths of the network.
    """

    transparency: Transparency
    full_rank: tuple[bool, ...]
    paths: int | None
    widths: tuple[int, ...]

    @property
    def ok(self) -> bool:
        """Whether all that was checked holds."""
        enough = self.paths is None or len(self.widths) < 3 or self.paths >= self.widths[1]
        return self.transparency.transparent is True and all(self.full_rank) and enough

    def __str__(self) -> str:
        bends = (
            "" if self.paths is None else f"; {self.paths} folds start paths of bends to the last layer"
        )
        ranks = "full row rank" if all(self.full_rank) else "a layer of lower rank"
        return f"{self.transparency}; {ranks}{bends}"

    __repr__ = __str__


@on_network
def check_identifiable(
    net: ReluNetwork, box: Box | tuple[ArrayLike, ArrayLike], *, budget: float = 10.0
) -> Identifiability:
    """Check what :func:`identifiable_network` promises.

    Args:
        net: Any network.
        box: The inputs.
        budget: Seconds for the proof of transparency.

    Phuong 2021, Definition A.12 (transparency) and Lemma A.17, with bends in place of contacts.
    """
    domain = as_box(box, net.in_features)
    ranks = []
    for weight, _ in net.layers[:-1]:
        singular = np.linalg.svd(dense(weight), compute_uv=False)
        wide = weight.shape[0] > weight.shape[1]
        ranks.append(bool(not wide and singular[-1] > _FULL_RANK * singular[0]))
    paths = _bend_paths(net, domain) if net.in_features == 2 and net.depth > 1 else None
    return Identifiability(
        check_transparency(net, domain, budget=budget), tuple(ranks), paths, net.widths
    )


def _bend_paths(net: ReluNetwork, box: Box) -> int:
    """Count pieces of level one that start a path of bends of length L - 2."""
    from pindown.geometry.folds.canonical_surface import canonical_surface
    from pindown.geometry.folds.dependency import dependency_graph
    from pindown.geometry.folds.fold_set import fold_set

    folds = fold_set(net, box)
    surface = canonical_surface(folds.segments[folds.visible], box)
    graph = dependency_graph(surface)
    return int(np.sum((surface.levels == 1) & (graph.path_lengths >= net.depth - 2)))

r"""Is an output convex, is it monotone? Answered from all cells, with the place that says no.

A continuous piecewise-linear f on a convex domain is convex if and only if its gradient does not turn
back across any facet: for cells i and j with a common facet and n pointing from i to j,

.. math::
    (a_j - a_i) \cdot n \ge 0 .

Then f is convex along every segment that meets folds inside facets only; these are dense among all
segments, and f is continuous. It does not fall along coordinate c if and only if
:math:`a_{i,c} \ge 0` on all cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry.complex._reading import BoxLike, read_cells
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts._values_and_slopes import Ids, slope_jumps, slope_signs
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork

_CURVATURES = {(False, False): "affine", (True, False): "convex", (False, True): "concave"}
_DIRECTIONS = {
    (False, False): "constant",
    (True, False): "non-decreasing",
    (False, True): "non-increasing",
}


@dataclass(frozen=True, eq=False)
class Bend:
    """A facet across which the gradient of an output jumps.

    Attributes:
        cells: The two cells.
        point: A point that both contain, (d,).
        jump: The length of the jump; negative where the output bends down (a ridge).
    """

    cells: tuple[int, int]
    point: Array
    jump: float


@dataclass(frozen=True, eq=False, repr=False)
class Convexity:
    """Whether one output is convex on a box.

    Attributes:
        output: Which output.
        verdict: ``"affine"``, ``"convex"``, ``"concave"`` or ``"neither"``.
        valley: The sharpest facet where it bends up: it is not concave. None if there is none.
        ridge: The sharpest facet where it bends down: it is not convex. None if there is none.
        exact: Whether the verdict holds on the whole box: all cells were searched, or it is "neither".
            Jumps within rounding count as none, and signs are proved only if the complex is certified.
    """

    output: int
    verdict: str
    valley: Bend | None
    ridge: Bend | None
    exact: bool

    def __repr__(self) -> str:
        part = "" if self.exact else " on the cells found"
        return f"Convexity(output {self.output}: {self.verdict}{part})"


@dataclass(frozen=True, eq=False, repr=False)
class Monotonicity:
    """In which inputs each output rises or falls throughout a box.

    Attributes:
        verdicts: For each output and input ``"constant"``, ``"non-decreasing"``, ``"non-increasing"`` or
            ``"neither"``, (k, d).
        rising: A cell on which the output rises with the input; -1 if there is none, (k, d).
        falling: A cell on which it falls; -1 if there is none, (k, d).
        exact: Whether all cells were searched; "neither" holds in any case. Slopes within rounding count
            as zero, and signs are proved only if the complex is certified.
    """

    verdicts: NDArray[np.str_]
    rising: Ids
    falling: Ids
    exact: bool

    def __repr__(self) -> str:
        kinds, counts = np.unique(self.verdicts, return_counts=True)
        shown = ", ".join(f"{count} {kind}" for kind, count in zip(kinds, counts, strict=True))
        k, d = self.verdicts.shape
        part = "" if self.exact else " on the cells found"
        return f"Monotonicity({k} outputs x {d} inputs: {shown}{part})"


@on_network
def convexity(
    net: ReluNetwork | PolyhedralComplex, box: BoxLike | None = None, *, budget: float | None = None
) -> tuple[Convexity, ...]:
    """Decide for every output whether it is convex, concave, affine or neither on a box.

    Args:
        net: The network, or its complex.
        box: The domain; not given with a complex.
        budget: Seconds for finding the cells and reading them.

    Returns:
        A verdict for each output, with the facets that rule the others out. Jumps within rounding (see
        :mod:`~pindown.geometry.facts._values_and_slopes`) count as none.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.

    Example:
        ``|x|``, its negative, x itself and a zigzag:

        >>> weights = [[1.0, 1.0, 0.0], [-1, -1, 0], [1, -1, 0], [1, 0, -2]]
        >>> net = ReluNetwork.from_layers([([[1.0], [-1], [1]], [0, 0, -1]), (weights, [0, 0, 0, 0])])
        >>> [found.verdict for found in convexity(net, (-2, 2))]
        ['convex', 'concave', 'affine', 'neither']
        >>> convexity(net, (-2, 2))[3].ridge.point
        array([1.])
    """
    return read_cells(_convexity, net, box, budget=budget)


def _convexity(cx: PolyhedralComplex) -> tuple[Convexity, ...]:
    pairs = cx.neighbours
    jumps = slope_jumps(cx, pairs)
    centres = _centres(cx)
    # The jump is a multiple of the facet's normal, on whose two sides the cells lie.
    across = np.einsum("mkd,md->mk", jumps, centres[pairs[:, 1]] - centres[pairs[:, 0]])
    sizes = np.sign(across) * np.linalg.norm(jumps, axis=2)
    return tuple(_verdict(cx, k, sizes[:, k]) for k in range(cx.net.out_features))


@on_network
def monotonicity(
    net: ReluNetwork | PolyhedralComplex, box: BoxLike | None = None, *, budget: float | None = None
) -> Monotonicity:
    """Decide for every output and input whether the output rises, or falls, throughout a box.

    Args:
        net: The network, or its complex.
        box: The domain; not given with a complex.
        budget: Seconds for finding the cells and reading them.

    Returns:
        The verdicts, with cells that rule the others out. Slopes within rounding count as zero.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.

    Example:
        ``relu(x) - y`` rises in x and falls in y:

        >>> W = [[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
        >>> net = ReluNetwork.from_layers([(W, [0, 0, 0]), ([[1.0, -1.0, 1.0]], [0])])
        >>> monotonicity(net, (-1, 1)).verdicts
        array([['non-decreasing', 'non-increasing']], dtype='<U14')
    """
    return read_cells(_monotonicity, net, box, budget=budget)


def _monotonicity(cx: PolyhedralComplex) -> Monotonicity:
    signs = slope_signs(cx)
    rising, falling = _first(signs > 0), _first(signs < 0)
    verdicts = np.full(rising.shape, "neither", dtype="<U14")
    for (up, down), name in _DIRECTIONS.items():
        verdicts[((rising >= 0) == up) & ((falling >= 0) == down)] = name
    for array in (verdicts, rising, falling):
        array.flags.writeable = False
    return Monotonicity(verdicts, rising, falling, cx.complete)


def _first(holds: NDArray[np.bool_]) -> Ids:
    """Return the first row at which each entry is true, -1 if none is: (n, k, d) -> (k, d)."""
    if not len(holds):
        return np.full(holds.shape[1:], -1, np.int64)
    return np.where(holds.any(axis=0), holds.argmax(axis=0), -1).astype(np.int64)


def _centres(cx: PolyhedralComplex) -> Array:
    """Return the mean of every cell's vertices, (n, d): a point inside."""
    if not cx.n_regions:
        return np.zeros((0, cx.net.in_features))
    sums = np.add.reduceat(cx.cell_vertices, cx.offsets[:-1], axis=0)
    return sums / np.diff(cx.offsets)[:, None]


def _verdict(cx: PolyhedralComplex, output: int, sizes: Array) -> Convexity:
    valley, ridge = _sharpest(cx, sizes), _sharpest(cx, -sizes)
    verdict = _CURVATURES.get((valley is not None, ridge is not None), "neither")
    if ridge is not None:
        ridge = replace(ridge, jump=-ridge.jump)
    return Convexity(output, verdict, valley, ridge, cx.complete or verdict == "neither")


def _sharpest(cx: PolyhedralComplex, jumps: Array) -> Bend | None:
    """Return the pair of neighbours with the largest positive jump."""
    if not len(jumps) or jumps.max() <= 0:
        return None
    pair = int(jumps.argmax())
    i, j = (int(cell) for cell in cx.neighbours[pair])
    ids = [cx.vertex_ids[cx.offsets[cell] : cx.offsets[cell + 1]] for cell in (i, j)]
    point = cx.vertices[np.intersect1d(ids[0], ids[1])].mean(axis=0)
    point.flags.writeable = False
    return Bend((i, j), point, float(jumps[pair]))

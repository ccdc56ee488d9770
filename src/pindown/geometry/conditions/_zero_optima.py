r"""Condition G1: no hidden unit has a local optimum of its preactivation with value exactly zero.

Equivalently, where a unit is zero it takes both signs in every neighbourhood. On a cell of the network a
unit is affine, so a zero that is a local optimum belongs to a face of the cell on which the unit
vanishes and off which it has one sign. It is enough to look at one inner point of that face for each
cell: the cells around that point are among those around any other optimum on the face.

All signs are exact: the cells come from rational arithmetic.

Phuong 2021, section 2.2 and Lemma A.12.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_, or_

import numpy as np

from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.geometry.conditions._full_rank import Mask
from pindown.geometry.conditions._generality_report import Violation
from pindown.geometry.exact.complex import ExactComplex, exact_complex
from pindown.geometry.exact.polytope import Vertex, signs
from pindown.geometry.tuning import MAX_OPTIMA_CELLS, MAX_OPTIMA_INPUTS
from pindown.network import ReluNetwork


def optimum_violations(
    net: ReluNetwork, box: Box, deadline: Deadline = NEVER
) -> tuple[list[Violation], bool]:
    """Look for zero optima inside the box, on all cells.

    Args:
        net: The network.
        box: The domain.
        deadline: When to stop.

    Returns:
        One violation for each unit concerned, and whether all cells could be searched.

    >>> bump = ReluNetwork.from_layers(
    ...     [([[1.0], [-1.0]], [0, 0]), ([[-1.0, -1.0]], [0]), ([[1.0]], [0])]
    ... )
    >>> print(*optimum_violations(bump, Box([-1], [1]))[0])  # -|x| has its maximum 0 at 0
    G1, layer 2, unit 0: a local maximum of value 0 at (0)
    """
    if net.in_features > MAX_OPTIMA_INPUTS or (box.lower == box.upper).any():
        return [], False
    cells = exact_complex(net, box, max_cells=MAX_OPTIMA_CELLS, budget=deadline.left / 2)
    if not cells.complete:
        return [], False
    found: dict[int, Violation] = {}
    positive, negative = _cell_signs(cells)
    checked: set[tuple[int, int, int]] = set()
    for unit, face in _zero_faces(cells):
        above = reduce(or_, (vertex.positive for vertex in face))
        below = reduce(or_, (vertex.negative for vertex in face))
        if unit in found or (unit, above, below) in checked:
            continue
        if deadline.passed:
            return list(found.values()), False
        checked.add((unit, above, below))
        around = _cells_around(positive, negative, _bits(above, net.size), _bits(below, net.size))
        kinds = bool(positive[around, unit].any()), bool(negative[around, unit].any())
        if not all(kinds):
            found[unit] = _violation(net, unit, face, kinds)
    return list(found.values()), True


def _zero_faces(cells: ExactComplex) -> Iterator[tuple[int, list[Vertex]]]:
    """Yield units and the corners of faces, inside the box, where they vanish without changing sign."""
    size = cells.net.size
    for cell in cells.cells:
        positive, negative = signs(cell)
        for unit in range(size):
            bit = 1 << unit
            face = [vertex for vertex in cell if not (vertex.positive | vertex.negative) & bit]
            if face and not positive & negative & bit and not _on_side(face, size):
                yield unit, face


def _cells_around(positive: Mask, negative: Mask, above: Mask, below: Mask) -> Mask:
    """Return which cells hold a point where units ``above`` are positive and ``below`` negative."""
    vanishing = ~(positive | negative)
    clash = (positive & below) | (negative & above) | (vanishing & (above | below))
    return np.logical_not(np.any(clash, axis=1))


def _cell_signs(cells: ExactComplex) -> tuple[Mask, Mask]:
    """Return which units are positive, and which negative, inside each cell."""
    size = cells.net.size
    pairs = [signs(cell) for cell in cells.cells]
    return np.array([_bits(p, size) for p, _ in pairs]), np.array([_bits(n, size) for _, n in pairs])


def _on_side(face: list[Vertex], size: int) -> bool:
    """Return whether a face lies on a side of the box: optima there are not inside."""
    return reduce(and_, (vertex.tight for vertex in face)) >> size != 0


def _violation(net: ReluNetwork, unit: int, face: list[Vertex], kinds: tuple[bool, bool]) -> Violation:
    starts = np.cumsum([0, *net.hidden_widths])
    layer = int(np.searchsorted(starts, unit, side="right"))
    kind = {(True, False): "minimum", (False, True): "maximum"}.get(kinds, "plateau")
    centre = [float(sum(x) / len(face)) for x in zip(*(v.fractions for v in face), strict=True)]
    where = ", ".join(f"{x:.6g}" for x in centre)
    detail = f"a local {kind} of value 0 at ({where})"
    return Violation("G1", layer, (unit - int(starts[layer - 1]),), detail)


def _bits(mask: int, size: int) -> Mask:
    return np.array([mask >> i & 1 for i in range(size)], dtype=bool)

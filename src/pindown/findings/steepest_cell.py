"""The steepest of the cells on a box: the Lipschitz constant there, if float64 shows all cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.findings.deadline import NotApplicable, OutOfTime
from pindown.findings.geometry import Regions, known_regions, regions
from pindown.findings.subject import Subject
from pindown.geometry.facts.lipschitz import LipschitzConstant, lipschitz_constant
from pindown.relaxation.lipschitz import proved_slope

_CHEAP_INPUTS = 3  # with more of them cells are only used if another question has listed them
_STEPS = (0.1, 1e-2, 1e-3)  # of the cell's size: short ones stay inside it, long ones round less


@dataclass(frozen=True)
class SteepestCell:
    """The Lipschitz constant on a box, from all cells.

    Attributes:
        value: The largest norm of a cell's matrix, to rounding.
        attained: Slope between two points of that cell, rounded down.
        n_cells: How many cells there are.
        place: The box in words.
    """

    value: float
    attained: float
    n_cells: int
    place: str


def steepest_cell(subject: Subject) -> SteepestCell | None:
    """Return the steepest cell on the subject's box; None unless all cells are known or cheap."""
    here = _regions(subject)
    if here is None or here.complex is None or not here.complex.complete or not len(here.complex):
        return None
    found = lipschitz_constant(here.complex)
    if not np.isfinite(found.value):
        return None
    corners = here.complex.cells.vertices(found.cell)
    attained = _attained(subject, here, found, float(np.ptp(corners, axis=0).max()))
    return SteepestCell(found.value, attained, len(here.complex), here.domain.text)


def _regions(subject: Subject) -> Regions | None:
    known = known_regions(subject)
    varying = int(np.count_nonzero(subject.box.lower < subject.box.upper))
    if known is not None or not subject.net.size or varying > _CHEAP_INPUTS:
        return known
    try:
        return regions(subject)
    except (NotApplicable, OutOfTime):
        return None


def _attained(subject: Subject, here: Regions, found: LipschitzConstant, size: float) -> float:
    """Return the steepest proved slope along the steepest direction of the cell."""
    inputs = list(here.domain.inputs)

    def placed(point: Array) -> Array:
        x = np.array(subject.box.lower)
        x[inputs] = point
        return x

    ends = [found.point + step * size * found.direction for step in _STEPS]
    start = placed(found.point)
    return max(proved_slope(subject.net, start, placed(end)) for end in ends)

"""What questions about cells share: where to look, and cells that are found once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from pindown.box import Box
from pindown.deadline import Stopwatch
from pindown.findings.pictures import drawable
from pindown.findings.question_budget import NotApplicable
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    MAX_CELLS_COUNTED,
    MAX_CELLS_IN_PLANE,
    MAX_CELLS_IN_SPACE,
    MAX_DENSE_WEIGHTS,
    MAX_INPUTS_FOR_CELLS,
    PLANE_CELLS_SHARE,
    RECOUNT_SHARE,
    SPACE_CELLS_SHARE,
    SPACE_COUNT_SHARE,
)
from pindown.findings.wording import count
from pindown.geometry.complex.counting import RegionCount, region_count
from pindown.geometry.complex.polyhedral import PolyhedralComplex, polyhedral_complex
from pindown.network import ReluNetwork

_TOO_LARGE = 1e100

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Domain:
    """A network on a box of which no side is flat.

    Attributes:
        net: The network, inputs that do not vary left out.
        box: The box of those that do.
        inputs: Their numbers in the whole network.
        text: The box in words.
    """

    net: ReluNetwork
    box: Box
    inputs: tuple[int, ...]
    text: str


@dataclass(frozen=True, eq=False)
class Regions:
    """The cells on a box: their number, and the cells themselves if there are not too many."""

    domain: Domain
    found: RegionCount
    complex: PolyhedralComplex | None


def domain(subject: Subject) -> Domain:
    """Return where cells are asked for.

    Raises:
        NotApplicable: If every input is fixed, or numbers leave the range geometry can work in.
    """
    box, net, name = subject.box, subject.net, subject.box_name
    varying = np.flatnonzero(box.lower < box.upper)
    if not len(varying):
        raise NotApplicable(f"{name} is a single point")
    require_sane(net, box)
    if len(varying) == box.dim:
        return Domain(net, box, tuple(range(box.dim)), name)
    embedding = ReluNetwork.from_layers(
        [(np.eye(box.dim)[:, varying], np.where(box.lower < box.upper, 0.0, box.lower))]
    )
    fixed = count(box.dim - len(varying), "input")
    return Domain(
        net @ embedding,
        Box(box.lower[varying], box.upper[varying]),
        tuple(varying.tolist()),
        f"{name} ({fixed} of it fixed)",
    )


def require_sane(net: ReluNetwork, box: Box) -> None:
    """Refuse boxes and weights whose products would leave float64.

    Raises:
        NotApplicable: If they would.
    """
    sides = box.upper - box.lower
    if not drawable([*box.lower, *box.upper, *sides]):
        raise NotApplicable("the box is too large or too small for float64 geometry")
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            values = net.trace(np.stack([box.lower, box.center, box.upper]))
        except ValueError:
            values = [np.array([np.inf])]
        largest = max(float(np.abs(layer).max(initial=0.0)) for layer in values)
    if not largest < _TOO_LARGE:
        raise NotApplicable("the network's values are too large for float64 geometry")


def require_few_inputs(place: Domain) -> None:
    """Refuse networks whose cells are too many to list.

    Raises:
        NotApplicable: If more inputs vary than cells can be listed for.
    """
    if place.box.dim > MAX_INPUTS_FOR_CELLS:
        raise NotApplicable(
            f"cells can be listed for up to {MAX_INPUTS_FOR_CELLS} inputs and here {place.box.dim} "
            "vary; GEO-04 counts cells between data and GEO-05 shows those on a plane"
        )


def require_walkable(net: ReluNetwork, inputs: int) -> None:
    """Refuse networks whose layers, as dense matrices, take too much memory."""
    widths = (inputs, *net.widths[1:])
    if sum(a * b for a, b in pairwise(widths)) > MAX_DENSE_WEIGHTS:
        raise NotApplicable("the layers are too large to be walked as dense matrices")


def regions(subject: Subject) -> Regions:
    """Return the cells on the subject's box, found once, using most of the time left.

    Raises:
        NotApplicable: If there are too many inputs.
    """
    return subject.once("regions", lambda: _found(subject))


def known_regions(subject: Subject) -> Regions | None:
    """Return the cells on the subject's box if a question before has found them."""
    known: Regions | None = subject.known("regions")
    return known


def _found(subject: Subject) -> Regions:
    place = domain(subject)
    require_few_inputs(place)
    require_walkable(place.net, place.box.dim)
    return _in_plane(subject, place) if place.box.dim <= 2 else _in_space(subject, place)


def _in_plane(subject: Subject, place: Domain) -> Regions:
    budget = PLANE_CELLS_SHARE * subject.turn.left
    cells = polyhedral_complex(
        place.net, place.box, budget=budget, max_cells=MAX_CELLS_IN_PLANE[place.box.dim]
    )
    if cells.complete:
        found = RegionCount(cells.n_regions, True, cells.growth, False, 0, cells.seconds)
        return Regions(place, found, cells)
    found = RegionCount(cells.n_regions, False, (), False, 0, cells.seconds)
    if cells.n_regions >= MAX_CELLS_IN_PLANE[2]:
        found = _counted(place, RECOUNT_SHARE * subject.turn.left)
    return Regions(place, found, None)


def _in_space(subject: Subject, place: Domain) -> Regions:
    found = _counted(place, SPACE_COUNT_SHARE * subject.turn.left)
    few = found.complete and found.n_regions <= MAX_CELLS_IN_SPACE[place.box.dim]
    if not few:
        return Regions(place, found, None)
    cells = polyhedral_complex(place.net, place.box, budget=SPACE_CELLS_SHARE * subject.turn.left)
    return Regions(place, found, cells if cells.complete else None)


class _EnoughError(Exception):
    """Raised inside a count to end it."""


def _counted(place: Domain, budget: float) -> RegionCount:
    def stop(what: str, n: float, total: float | None) -> None:
        if n >= MAX_CELLS_COUNTED:
            raise _EnoughError

    watch = Stopwatch()
    try:
        return region_count(place.net, place.box, budget=budget, progress=stop)
    except _EnoughError:
        return RegionCount(MAX_CELLS_COUNTED, False, (), False, 0, watch.seconds)

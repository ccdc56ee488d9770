"""Which plane to show of a network with many inputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.findings.geometry import Domain, require_compiled, require_walkable
from pindown.findings.passes import Sample
from pindown.findings.pictures import Dot
from pindown.findings.subject import Subject
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.slices.plane import on_plane, through
from pindown.geometry.slices.plane_slice import PlaneSlice

MOST_CELLS = 200_000
_TRIES = 20
_MARGIN = 0.15
_FEW_INPUTS = 10


class Scene(NamedTuple):
    """Cells in the plane and the words for them."""

    cells: PolyhedralComplex
    where: str
    axes: tuple[str, str]
    dots: tuple[Dot, ...]


def class_of(sample: Sample, row: int) -> int | None:
    """Return the class of a row, if it has one."""
    targets = sample.targets
    return int(targets.values[row]) if targets is not None and targets.is_classification else None


def plane_scene(subject: Subject, place: Domain) -> Scene:
    """Cut a network with more than two inputs along a plane through data or through the box's centre.

    Raises:
        NotApplicable: If the layers are too large.
        OutOfTime: If not even the compiler would finish.
    """
    require_walkable(subject.net, 2)
    least = require_compiled(subject, "plane")
    budget = max(least, 0.7 * subject.deadline.left)
    if subject.data is not None:
        found = _through_data(subject, subject.data, budget)
        if found is not None:
            return found
    if place.box.dim > _FEW_INPUTS:
        return _through_random_points(subject, budget)
    return _through_center(subject, place, budget)


def _through_data(subject: Subject, data: Sample, budget: float) -> Scene | None:
    rng = subject.rng("GEO-05")
    for _ in range(_TRIES):
        rows = _three_rows(data, rng)
        if rows is None:
            return None
        try:
            part = through(
                subject.net,
                *data.X[rows],
                margin=_MARGIN,
                budget=budget,
                max_cells=MOST_CELLS,
            )
        except ValueError:  # on one line: draw again
            continue
        return _scene_of(part, data, rows)
    return None


def _three_rows(data: Sample, rng: np.random.Generator) -> list[int] | None:
    """Draw three rows, of different classes as far as there are."""
    if len(data) < 3:
        return None
    targets = data.targets
    if targets is None or not targets.is_classification:
        return [int(i) for i in rng.choice(len(data), 3, replace=False)]
    classes = rng.permutation(np.unique(targets.values))[:3]
    rows = [int(rng.choice(np.flatnonzero(targets.values == label))) for label in classes]
    rest = np.setdiff1d(np.arange(len(data)), rows)
    return rows + [int(i) for i in rng.choice(rest, 3 - len(rows), replace=False)]


def _scene_of(part: PlaneSlice, data: Sample, rows: list[int]) -> Scene:
    classes = [class_of(data, row) for row in rows]
    dots = tuple(
        Dot(s, t, f"row {row}", group)
        for (s, t), row, group in zip(part.marks.tolist(), rows, classes, strict=True)
    )
    named = [
        f"{row}" if group is None else f"{row} (class {group})"
        for row, group in zip(rows, classes, strict=True)
    ]
    where = f"the plane through rows {named[0]}, {named[1]} and {named[2]} of the {data.name}"
    return Scene(part.complex, where, ("distance", "distance"), dots)


def _through_random_points(subject: Subject, budget: float) -> Scene:
    """Return the plane through three points of the box: of many inputs no two say much alone."""
    points = subject.box.sample(3, subject.rng("GEO-05"))
    part = through(subject.net, *points, margin=_MARGIN, budget=budget, max_cells=MOST_CELLS)
    dots = tuple(Dot(s, t) for s, t in part.marks.tolist())
    where = f"the plane through three random points of {subject.box_name}"
    return Scene(part.complex, where, ("distance", "distance"), dots)


def _through_center(subject: Subject, place: Domain, budget: float) -> Scene:
    """Return the plane of the two inputs that move the outputs most, the others at the box's centre."""
    box = subject.box
    i, j = _strongest(subject, place)
    origin: Array = box.center.copy()
    origin[[i, j]] = 0.0
    axes = np.eye(box.dim)
    part = on_plane(
        subject.net,
        origin,
        axes[i],
        axes[j],
        extent=((box.lower[i], box.upper[i]), (box.lower[j], box.upper[j])),
        budget=budget,
        max_cells=MOST_CELLS,
    )
    where = f"the plane of inputs {i + 1} and {j + 1}, the others at the centre of {subject.box_name}"
    return Scene(part.complex, where, (f"input {i + 1}", f"input {j + 1}"), ())


def _strongest(subject: Subject, place: Domain) -> tuple[int, int]:
    points = subject.box.sample(50, subject.rng("GEO-05"))
    slopes = np.abs(subject.net.local_affine(points)[0]).mean(axis=(0, 1))
    moves = slopes * (subject.box.upper - subject.box.lower)
    first, second = np.argsort(-moves[list(place.inputs)], kind="stable")[:2]
    i, j = sorted((place.inputs[first], place.inputs[second]))
    return i, j

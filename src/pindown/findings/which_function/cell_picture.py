"""A picture of the cells: all of them in the plane, or those on a plane through data.

Of a network with many inputs one plane is shown: through three rows of data, if there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.deadline import OutOfTime
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity
from pindown.findings.pictures import Curves, Dot, Picture
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import Sample
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    MAX_CELLS_DRAWN,
    MAX_CURVES,
    MAX_DOTS,
    MAX_INPUTS_FOR_AXES,
    MAX_KNOTS,
    PLANE_MARGIN,
    PLANE_SHARE,
    PLANE_TRIES,
)
from pindown.findings.which_function._cells import (
    Domain,
    domain,
    regions,
    require_walkable,
)
from pindown.findings.which_function.plane_maps import Coloured, by_class, by_value, plane_map
from pindown.findings.wording import count, number_text, percent
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.slices.plane import PlaneSlice, on_plane, plane_through
from pindown.geometry.slices.segment import along_segment


@question(
    "GEO-05",
    "Picture of the cells",
    group="which",
    needs=("box", "relus"),
    about="The cells themselves: the graph for one input, a map for two, and for more inputs the exact "
    "map of the plane through three rows of data.",
    cost=(1, 5),
)
def picture_of_cells(subject: Subject) -> Finding:
    """Draw the cells on the box, or on a plane."""
    place = domain(subject)
    if place.box.dim == 1:
        return _graph(subject, place)
    scene = _flat(subject, place) if place.box.dim == 2 else _plane_scene(subject, place)
    n, complete = scene.cells.n_regions, scene.cells.complete
    if not n:
        raise OutOfTime
    if complete:
        coloured = _coloured(subject, scene.cells)
        what, figure = _described(scene, coloured), _drawn(scene, coloured)
    else:
        what, figure = "too many to be drawn", None
    return Finding(
        verdict=f"{'' if complete else 'at least '}{count(n, 'cell')} on {scene.where}; {what}",
        number=Quantity(n, "exact", "cells", bound="" if complete else "lower"),
        hypotheses=(
            Assumption(
                f"all cells on {scene.where} were found" if complete else "the search was stopped",
                "checked" if complete else "violated",
            ),
            Assumption("signs as float64 gives them: cells thinner than about 1e-12 are not seen"),
        ),
        reading="Lines are folds, where a unit switches; between them the network is affine, so "
        "boundaries between colours are straight inside a cell and bend only at folds. Nothing is "
        "sampled: every cell is where the picture shows it.",
        scale="Compare how fine the cells are near the data with how fine they are elsewhere, and how "
        "near to the data the colour changes.",
        figure=figure,
    )


def _coloured(subject: Subject, cells: PolyhedralComplex) -> Coloured:
    sample = subject.labelled
    targets = None if sample is None else sample.targets
    if cells.net.out_features == 1 or (targets is not None and not targets.is_classification):
        return by_value(cells, 0)
    return by_class(cells)


def _described(scene: _Scene, coloured: Coloured) -> str:
    if coloured.title != "class":
        values = scene.cells.net(scene.cells.vertices)[:, 0]
        return f"values {number_text(float(values.min()))} to {number_text(float(values.max()))}"
    sizes = coloured.areas.sizes
    shares = np.bincount(coloured.areas.labels, weights=sizes / sizes.sum())
    largest = [i for i in np.argsort(-shares, kind="stable").tolist() if shares[i] > 0]
    if len(largest) == 1:
        return f"class {largest[0]} everywhere on it"
    named = ", ".join(f"{i} on {percent(float(shares[i]))}" for i in largest[:4])
    return f"class {named}{' and others' if len(largest) > 4 else ''}"


def _drawn(scene: _Scene, coloured: Coloured) -> Picture:
    what = (
        "class with the largest output"
        if coloured.title == "class"
        else f"value of the {coloured.title}"
    )
    marked = "; points are data" if scene.dots and "random" not in scene.where else ""
    caption = f"Cells on {scene.where}, coloured by the {what}; lines are folds{marked}"
    return plane_map(scene.cells, coloured, scene.dots, caption, scene.axes)


def _flat(subject: Subject, place: Domain) -> _Scene:
    found = regions(subject)
    cells = found.complex
    if cells is None and found.found.n_regions < MAX_CELLS_DRAWN:
        raise OutOfTime
    if cells is None:
        raise NotApplicable(f"there are more cells than can be drawn (over {MAX_CELLS_DRAWN:,})")
    first, second = (f"input {i + 1}" for i in place.inputs)
    return _Scene(cells, place.text, (first, second), _data_dots(subject, place))


def _data_dots(subject: Subject, place: Domain) -> tuple[Dot, ...]:
    if subject.data is None:
        return ()
    X = subject.data.X
    inside = np.flatnonzero(subject.box.contains(X))
    rows = subject.rng("GEO-05").permutation(inside)[:MAX_DOTS]
    spots = X[np.sort(rows)][:, list(place.inputs)].tolist()
    return tuple(
        Dot(x, y, group=_class_of(subject.data, int(row)))
        for (x, y), row in zip(spots, np.sort(rows), strict=True)
    )


def _graph(subject: Subject, place: Domain) -> Finding:
    """Draw the graph of a network with one input."""
    folds = along_segment(place.net, place.box.lower, place.box.upper)
    shown = min(place.net.out_features, MAX_CURVES)
    x = folds.at(folds.knots)[:, 0]
    figure = None
    if len(x) <= MAX_KNOTS:
        some = "" if shown == place.net.out_features else f" (the first {shown} outputs)"
        figure = Curves(
            f"The network on {place.text}{some}: exact, straight between its corners",
            tuple(x.tolist()),
            tuple(f"output {k}" for k in range(shown)),
            tuple(tuple(column) for column in folds.values.T[:shown].tolist()),
            f"input {place.inputs[0] + 1}",
            "output",
        )
    low, high = number_text(float(folds.values.min())), number_text(float(folds.values.max()))
    return Finding(
        verdict=f"{count(folds.n_pieces, 'straight piece')} on {place.text}; values {low} to {high}",
        number=Quantity(folds.n_pieces, "exact", "pieces"),
        hypotheses=(
            Assumption(f"all corners on {place.text} were found", "checked"),
            Assumption("signs as float64 evaluation gives them"),
        ),
        reading="The graph of a network with one input is a chain of straight pieces; every corner is "
        "where some unit switches.",
        scale=f"The network has {count(place.net.size, 'unit')}; with one hidden layer each can make "
        "one corner, deeper networks can make more.",
        figure=figure,
    )


class _Scene(NamedTuple):
    """Cells in the plane and the words for them."""

    cells: PolyhedralComplex
    where: str
    axes: tuple[str, str]
    dots: tuple[Dot, ...]


def _class_of(sample: Sample, row: int) -> int | None:
    """Return the class of a row, if it has one."""
    targets = sample.targets
    return int(targets.values[row]) if targets is not None and targets.is_classification else None


def _plane_scene(subject: Subject, place: Domain) -> _Scene:
    """Cut a network with more than two inputs along a plane through data or through the box's centre.

    Raises:
        NotApplicable: If the layers are too large.
    """
    require_walkable(subject.net, 2)
    budget = PLANE_SHARE * subject.turn.left
    if subject.data is not None:
        found = _through_data(subject, subject.data, budget)
        if found is not None:
            return found
    if place.box.dim > MAX_INPUTS_FOR_AXES:
        return _through_random_points(subject, budget)
    return _through_center(subject, place, budget)


def _through_data(subject: Subject, data: Sample, budget: float) -> _Scene | None:
    rng = subject.rng("GEO-05")
    for _ in range(PLANE_TRIES):
        rows = _three_rows(data, rng)
        if rows is None:
            return None
        try:
            part = plane_through(
                subject.net,
                *data.X[rows],
                margin=PLANE_MARGIN,
                budget=budget,
                max_cells=MAX_CELLS_DRAWN,
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


def _scene_of(part: PlaneSlice, data: Sample, rows: list[int]) -> _Scene:
    classes = [_class_of(data, row) for row in rows]
    dots = tuple(
        Dot(s, t, f"row {row}", group)
        for (s, t), row, group in zip(part.marks.tolist(), rows, classes, strict=True)
    )
    named = [
        f"{row}" if group is None else f"{row} (class {group})"
        for row, group in zip(rows, classes, strict=True)
    ]
    where = f"the plane through rows {named[0]}, {named[1]} and {named[2]} of the {data.name}"
    return _Scene(part.complex, where, ("distance", "distance"), dots)


def _through_random_points(subject: Subject, budget: float) -> _Scene:
    """Return the plane through three points of the box: of many inputs no two say much alone."""
    points = subject.box.sample(3, subject.rng("GEO-05"))
    part = plane_through(
        subject.net, *points, margin=PLANE_MARGIN, budget=budget, max_cells=MAX_CELLS_DRAWN
    )
    dots = tuple(Dot(s, t) for s, t in part.marks.tolist())
    where = f"the plane through three random points of {subject.box_name}"
    return _Scene(part.complex, where, ("distance", "distance"), dots)


def _through_center(subject: Subject, place: Domain, budget: float) -> _Scene:
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
        max_cells=MAX_CELLS_DRAWN,
    )
    where = f"the plane of inputs {i + 1} and {j + 1}, the others at the centre of {subject.box_name}"
    return _Scene(part.complex, where, (f"input {i + 1}", f"input {j + 1}"), ())


def _strongest(subject: Subject, place: Domain) -> tuple[int, int]:
    points = subject.box.sample(50, subject.rng("GEO-05"))
    slopes = np.abs(subject.net.local_affine(points)[0]).mean(axis=(0, 1))
    moves = slopes * (subject.box.upper - subject.box.lower)
    first, second = np.argsort(-moves[list(place.inputs)], kind="stable")[:2]
    i, j = sorted((place.inputs[first], place.inputs[second]))
    return i, j

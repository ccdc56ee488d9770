"""A picture of the cells: all of them in the plane, or those on a plane through data."""

from __future__ import annotations

import numpy as np

from pindown.findings.deadline import NotApplicable, OutOfTime
from pindown.findings.finding import Finding, Hypothesis, Quantity
from pindown.findings.geometry import Domain, domain, regions, require_compiled
from pindown.findings.pictures import Curves, Dot, Picture
from pindown.findings.plane_choice import MOST_CELLS, Scene, class_of, plane_scene
from pindown.findings.plane_maps import Coloured, by_class, by_value, plane_map
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import count, number_text, percent
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.slices.segment import along_segment

_MOST_DOTS = 300
_MOST_KNOTS = 2000
_MOST_CURVES = 4


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
    scene = _flat(subject, place) if place.box.dim == 2 else plane_scene(subject, place)
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
            Hypothesis(
                f"all cells on {scene.where} were found" if complete else "the search was stopped",
                "checked" if complete else "violated",
            ),
            Hypothesis("signs as float64 gives them: cells thinner than about 1e-12 are not seen"),
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


def _described(scene: Scene, coloured: Coloured) -> str:
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


def _drawn(scene: Scene, coloured: Coloured) -> Picture:
    what = (
        "class with the largest output"
        if coloured.title == "class"
        else f"value of the {coloured.title}"
    )
    marked = "; points are data" if scene.dots and "random" not in scene.where else ""
    caption = f"Cells on {scene.where}, coloured by the {what}; lines are folds{marked}"
    return plane_map(scene.cells, coloured, scene.dots, caption, scene.axes)


def _flat(subject: Subject, place: Domain) -> Scene:
    found = regions(subject)
    cells = found.complex
    if cells is None and found.found.n_regions < MOST_CELLS:
        raise OutOfTime
    if cells is None:
        raise NotApplicable(f"there are more cells than can be drawn (over {MOST_CELLS:,})")
    first, second = (f"input {i + 1}" for i in place.inputs)
    return Scene(cells, place.text, (first, second), _data_dots(subject, place))


def _data_dots(subject: Subject, place: Domain) -> tuple[Dot, ...]:
    if subject.data is None:
        return ()
    X = subject.data.X
    inside = np.flatnonzero(subject.box.contains(X))
    rows = subject.rng("GEO-05").permutation(inside)[:_MOST_DOTS]
    spots = X[np.sort(rows)][:, list(place.inputs)].tolist()
    return tuple(
        Dot(x, y, group=class_of(subject.data, int(row)))
        for (x, y), row in zip(spots, np.sort(rows), strict=True)
    )


def _graph(subject: Subject, place: Domain) -> Finding:
    """Draw the graph of a network with one input."""
    require_compiled(subject, "segments")
    folds = along_segment(place.net, place.box.lower, place.box.upper)
    shown = min(place.net.out_features, _MOST_CURVES)
    x = folds.at(folds.knots)[:, 0]
    figure = None
    if len(x) <= _MOST_KNOTS:
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
            Hypothesis(f"all corners on {place.text} were found", "checked"),
            Hypothesis("signs as float64 evaluation gives them"),
        ),
        reading="The graph of a network with one input is a chain of straight pieces; every corner is "
        "where some unit switches.",
        scale=f"The network has {count(place.net.size, 'unit')}; with one hidden layer each can make "
        "one corner, deeper networks can make more.",
        figure=figure,
    )

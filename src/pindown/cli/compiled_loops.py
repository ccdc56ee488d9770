"""All inner loops compiled beforehand, each by a tiny example of what it is for; and how many are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pindown.compiling import Family, by, has_compiler
from pindown.machine_code import damaged_files, folder_for
from pindown.progress import Report, silent

# The modules whose loops are called from Python; those that they call come along.
MODULES = (
    "pindown.geometry._compiled.frank_wolfe",
    "pindown.geometry._compiled.pattern_traversal",
    "pindown.geometry._compiled.segments",
    "pindown.learn.exact._compiled.convex",
    "pindown.learn.exact._cones.bounds",
    "pindown.learn.gates.modified_sgd",
    "pindown.learn.segmented._compiled.convex",
    "pindown.learn.segmented._compiled.branch_and_bound",
    "pindown.learn.segmented._compiled.screening",
)


def _network(dim: int) -> Any:
    from pindown.network import ReluNetwork

    hidden = np.vstack([np.eye(dim), np.ones((1, dim))]), np.linspace(0.1, 0.4, dim + 1)
    second = np.cos(np.arange(3.0 * (dim + 1)).reshape(3, dim + 1)), np.zeros(3)
    return ReluNetwork.from_layers([hidden, second, (np.ones((1, 3)), [0.0])])


def _segments() -> None:
    from pindown.geometry import along_segment, pieces_between

    along_segment(_network(3), -np.ones(3), np.ones(3))
    pieces_between(_network(3), np.eye(3))


def _cells(dim: int, certified: bool) -> None:
    from pindown.geometry import polyhedral_complex

    cells = polyhedral_complex(_network(dim), (-1, 1), certified=certified)
    assert len(cells.neighbours) and len(cells.edges) and len(cells.volumes)


def _counts(dim: int, certified: bool) -> None:
    from pindown.geometry import region_count

    region_count(_network(dim), (-1, 1), certified=certified)


def _parts() -> None:
    from pindown.geometry import complex_by_parts, output_range

    for dim in (2, 3):
        for certified in (False, True):
            complex_by_parts(_network(dim), (-1, 1), splits=2, certified=certified)
        output_range(_network(dim), (-1, 1))


def _neighbours() -> None:
    from pindown.geometry import neighbours, region_at

    neighbours(region_at(_network(6), np.full(6, 0.3)))


def _exact(loss: str) -> None:
    from pindown.learn import ExactReluClassifier, ExactReluRegressor

    learner = ExactReluRegressor if loss in ("squared", "absolute") else ExactReluClassifier
    X, y = np.array([[-1.0], [0.0], [1.0], [3.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    learner(width=1, loss=loss, output_bias=False).fit(X, y)


def _segmented(loss: str) -> None:
    from pindown.learn import SegmentedRegressor

    y = np.array([0.3, -0.2, 0.5, 1.0, 0.1, -0.8, 0.4])
    SegmentedRegressor(n_pieces=3, loss=loss).fit(np.linspace(-1.0, 1.0, 7)[:, None], y)


def _gates() -> None:
    from pindown.learn import ModifiedSGDRegressor

    X = np.eye(2)[[0, 1, 0, 1]]
    ModifiedSGDRegressor(random_state=0).fit(X, X @ [1.0, 2.0])


def works() -> dict[str, Callable[[], None]]:
    """Return what loops are compiled for, with an example of each."""
    cells = {
        f"{what} in {'the plane' if dim == 2 else 'space'}{', certified' if certified else ''}": partial(
            do, dim, certified
        )
        for what, do in (("cells", _cells), ("counts", _counts))
        for dim in (2, 3)
        for certified in (False, True)
    }
    losses = ("squared", "absolute", "hinge", "logistic")
    return {
        "segments": _segments,
        **cells,
        "cells by parts": _parts,
        "neighbours of cells": _neighbours,
        **{f"exact training, {loss} loss": partial(_exact, loss) for loss in losses},
        **{f"segmented regression, {loss} loss": partial(_segmented, loss) for loss in losses[:2]},
        "gate learners": _gates,
    }


def compile_all(report: Report = silent) -> None:
    """Compile every loop for everything it is called with, and remove files that are damaged."""
    for path in damaged_files():
        path.unlink(missing_ok=True)
    todo = works()
    for done, (name, work) in enumerate(todo.items()):
        report(f"compiling: {name}", done, len(todo))
        with by("compiled"):
            work()


def counts() -> dict[str, tuple[int, int]]:
    """Return how many loops of each family have machine code on disk, and how many there are.

    Only names of files are looked at; none is read, and Numba is not loaded.
    """
    for name in MODULES:
        import_module(name)
    return {name: (_kept(family), len(family.loops)) for name, family in Family.known.items()}


def _kept(family: Family) -> int:
    if not has_compiler():
        return 0
    tag = f".py{sys.version_info[0]}{sys.version_info[1]}"
    folder = folder_for(Path(family.loops[0].__wrapped__.__code__.co_filename).parent)
    return 0 if folder is None else sum(tag in path.name for path in folder.glob("*.nbi"))

"""The identifiability theorem end to end: same function, same weights up to symmetry.

For networks of the kind the theorem builds: a symmetric copy is recognised, any other change of the
weights is a change of the function, no direction is flat beyond the rescaling of units, and students
that reach the teacher's function have found its weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.box import Box
from pindown.equivalence.comparison import diff
from pindown.equivalence.comparison.matching import match
from pindown.equivalence.flat_directions import functional_dimension
from pindown.equivalence.identifiable import identifiable_network
from pindown.equivalence.weight_symmetry import apply, random_symmetry
from pindown.network import ReluNetwork
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results
from pindown_reproduction.underspecification_thesis._random_networks import (
    fit_student,
    parameters,
    with_parameters,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGE = 1e-3  # of every parameter, relative
FITTED = 1e-6  # largest gap at which a student counts as having the teacher's function
ALIGNED = 1e-3  # residual below which it counts as having its weights
_SAMPLES_PER_PARAMETER = 40
_CHECKED_POINTS = 20_000


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per architecture and seed."""
    return [
        {"widths": list(widths), "seed": seed, "starts": list(settings["starts"])}
        for widths in settings["widths"]
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Build a teacher and ask all four questions about it."""
    widths, seed = cell["widths"], cell["seed"]
    box = Box.cube(widths[0], -1, 1)
    teacher = identifiable_network(widths, box=box, seed=seed)
    rng = np.random.default_rng([seed, len(widths)])
    copy = diff(
        teacher, apply(random_symmetry(teacher, seed=rng), teacher), box=box, tol=1e-8, budget=10
    )
    other = with_parameters(
        teacher, parameters(teacher) * (1 + CHANGE * rng.standard_normal(len(parameters(teacher))))
    )
    changed = diff(teacher, other, box=box, tol=1e-8, budget=10)
    dimension = functional_dimension(teacher, box, seed=seed)
    return {
        "copy": copy.verdict,
        "changed": changed.verdict,
        "hidden": dimension.hidden,
        "sensitivity": dimension.gap,
        "students": [_student(teacher, box, start, rng) for start in cell["starts"]],
    }


def _student(teacher: ReluNetwork, box: Box, start: float, rng: np.random.Generator) -> dict[str, float]:
    """Fit a student that starts ``start`` away (relative) from a symmetric copy of the teacher."""
    base = apply(random_symmetry(teacher, log_scale_std=0.3, seed=rng), teacher)
    theta = parameters(base)
    student = with_parameters(base, theta * (1 + start * rng.standard_normal(len(theta))))
    X = box.sample(_SAMPLES_PER_PARAMETER * len(theta), rng)
    fitted = fit_student(student, X, teacher(X), evaluations=200)
    points = box.sample(_CHECKED_POINTS, rng)
    gap = float(np.max(np.abs(fitted(points) - teacher(points))))
    return {"start": start, "gap": gap, "residual": max(match(teacher, fitted).residuals)}


def compare(results: Results) -> Outcome:
    """Apply the rule."""
    rows = []
    holds = True
    students = [student for _, result in results for student in result["students"]]
    fitted = [s for s in students if s["gap"] < FITTED]
    for widths in dict.fromkeys(tuple(cell["widths"]) for cell, _ in results):
        mine = [result for cell, result in results if tuple(cell["widths"]) == widths]
        same = sum(result["copy"] == "same" for result in mine)
        different = sum(result["changed"] == "different" for result in mine)
        flat = max(result["hidden"] for result in mine)
        close = [s for result in mine for s in result["students"] if s["gap"] < FITTED]
        worst = max((s["residual"] for s in close), default=0.0)
        holds &= same == different == len(mine) and flat == 0 and worst < ALIGNED
        rows.append((_name(widths), len(mine), same, different, flat, len(close), worst))
    slope = _slope(students)
    return Outcome(
        verdict="reproduced" if holds and fitted else "not reproduced",
        words=f"{len(fitted)} of {len(students)} students, started {_percent(students)} away from a "
        f"copy of the teacher, reached a gap below {FITTED:g}, and "
        f"{sum(s['residual'] < ALIGNED for s in fitted)} of these have the teacher's weights; over all "
        f"students, log residual against log gap has slope {slope:.2f}.",
        columns=(
            "widths",
            "teachers",
            "copies recognised",
            "changes detected",
            "hidden flat directions",
            "students that fit",
            "their largest residual",
        ),
        rows=tuple(rows),
    )


def _percent(students: list[dict[str, float]]) -> str:
    starts = [100 * s["start"] for s in students]
    return f"{min(starts):g} % to {max(starts):g} %"


def _slope(students: list[dict[str, float]]) -> float:
    known = [s for s in students if s["gap"] > 0 and s["residual"] > 0]
    if len(known) < 2:
        return float("nan")
    logs = np.log10([[s["gap"], s["residual"]] for s in known])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def _name(widths: tuple[int, ...]) -> str:
    return "-".join(map(str, widths))


def draw(results: Results) -> Figure:
    """Draw the residual of every student against its gap."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    for widths in dict.fromkeys(tuple(cell["widths"]) for cell, _ in results):
        students = [
            student
            for cell, result in results
            if tuple(cell["widths"]) == widths
            for student in result["students"]
        ]
        gaps = [max(s["gap"], 1e-17) for s in students]
        ax.loglog(
            gaps,
            [max(s["residual"], 1e-17) for s in students],
            "o",
            ms=4,
            label=f"{_name(widths)}, a student",
        )
    ax.axvline(FITTED, color="grey", lw=0.8, ls="--", label="taken as equal")
    ax.axhline(ALIGNED, color="grey", lw=0.8, ls="--")
    ax.set_xlabel("largest gap to the teacher's function")
    ax.set_ylabel("distance to the teacher's weights")
    return figure


EXPERIMENT = Experiment(
    id="identifiability",
    title="Same function, same weights up to symmetry",
    source="Phuong 2021, Theorem 2.1 (A.1)",
    published="For widths that do not increase there are networks whose function determines their "
    "weights up to permuting and rescaling units.",
    rule="All symmetric copies proved the same, all changes of 0.1 % proved different, no hidden flat "
    "direction, and every student within 1e-6 of the function within 1e-3 of the weights.",
    settings={
        "quick": {
            "widths": [(2, 2, 1), (3, 3, 2, 1), (4, 4, 3, 1)],
            "seeds": 3,
            "starts": [1e-3, 1e-2, 1e-1, 0.5],
        },
        "paper": {
            "widths": [(2, 2, 1), (2, 2, 2, 1), (3, 3, 2, 1), (4, 4, 3, 1), (6, 5, 4, 3, 1)],
            "seeds": 10,
            "starts": [1e-3, 1e-2, 3e-2, 1e-1, 0.3, 1.0],
        },
    },
    seconds={"quick": 6.6},
    power=Power(why="The rule is about every network and student."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)

r"""Monotonicity beside risk: learners that one more input turns towards the teacher answer better.

Seven learners on one task (even angles, 100 dimensions, 5 inputs): distillation, training on hard labels
(whose limit is the hard-margin separator), and five students with less bias. For each the *monotonicity
index*, the share of samples where a sixth input brings the student nearer, and the mean transfer risk.

Phuong 2021, section 5.4.3, Figure 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EXPONENT, _DIMENSION, _INPUTS = 1.0, 100, 5  # section 5.4.3
_BIASES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
_CORRELATION = -0.3  # the rule


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per learner."""
    names = ["distillation", "hard targets", *_BIASES]
    return [{"learner": name, "repetitions": settings["repetitions"]} for name in names]


def run(cell: Cell) -> dict[str, Any]:
    """Return the index and the mean risk of one learner."""
    from pindown.learn.distillation import (
        distilled,
        hard_target,
        monotonicity,
        power_angle_task,
        unbiased,
    )

    task, name = power_angle_task(_EXPONENT, _DIMENSION), cell["learner"]
    fixed = {"distillation": distilled, "hard targets": hard_target}
    learner: Any = fixed[name] if isinstance(name, str) else unbiased(name)
    found = monotonicity(
        learner, task, _INPUTS, repetitions=cell["repetitions"], random_state=cell.get("seed", 0)
    )
    rng, risks = np.random.default_rng(stream(cell, 1)), []
    for _ in range(cell["repetitions"]):
        X = task.draw(_INPUTS, rng)
        risks.append(task.transfer_risk(learner(X, task.logits(X), rng)).value)
    return {
        "index": found.index,
        "index error": found.standard_error,
        "ties": found.tied,
        "risk": float(np.mean(risks)),
        "risk error": float(np.std(risks) / len(risks) ** 0.5),
    }


def compare(results: Results) -> Outcome:
    """Correlate index and risk over the learners."""
    index = np.array([found["index"] for _, found in results])
    risk = np.array([found["risk"] for _, found in results])
    known = len(results) > 2 and index.std() > 0 and risk.std() > 0
    correlation = float(np.corrcoef(index, risk)[0, 1]) if known else float("nan")
    own = [found["index"] for cell, found in results if cell["learner"] == "distillation"]
    good = correlation < _CORRELATION and all(value == 1.0 for value in own)
    rows = tuple(
        (
            _title(cell["learner"]),
            "index and risk go against each other (figure)",
            f"{found['index']:.3f} +- {found['index error']:.1g}",
            f"{found['ties']:.3f}",
            f"{found['risk']:.4f} +- {found['risk error']:.1g}",
        )
        for cell, found in results
    )
    words = (
        f"Index and risk have the correlation {correlation:.2f} over {len(results)} learners; the index "
        f"of distillation is {own[0] if own else float('nan'):g}."
    )
    return Outcome(
        "reproduced" if good else "not reproduced",
        words,
        ("learner", "published", "monotonicity index", "ties", "transfer risk"),
        rows,
    )


def _title(name: str | float) -> str:
    return name if isinstance(name, str) else f"delta = {name:g}"


def draw(results: Results) -> Figure:
    """Draw risk over index."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    for cell, found in results:
        errors = found["risk error"], found["index error"]
        ax.errorbar(found["index"], found["risk"], *errors, fmt="o", label=_title(cell["learner"]))
    ax.set(xlabel="monotonicity index", ylabel="expected transfer risk")
    return figure


EXPERIMENT = Experiment(
    id="distillation-monotonicity",
    title="Learners that more data never turn away answer better",
    source="Phuong 2021, section 5.4.3, Figure 5.5",
    published="Over seven learners the monotonicity index and the expected transfer risk are negatively "
    "correlated, on 1000 samples of 5 inputs in 100 dimensions.",
    rule="Reproduced if the correlation of index and mean risk over the learners is below -0.3, and the "
    "index of distillation is exactly 1.",
    settings={"quick": {"repetitions": 1000}, "paper": {"repetitions": 20_000}},
    seconds={"quick": 8.4},
    power=Power(seeds=100, repeats="repetitions", why="The source has 1,000 samples."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)

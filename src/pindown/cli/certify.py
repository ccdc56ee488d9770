"""The command that bounds how often a classifier is wrong on new rows: ``certify``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pindown.atomic_files import together, written
from pindown.cli.audit import EvaluateOnly, Target, opener
from pindown.cli.completion import complete_table
from pindown.cli.options import (
    Activation,
    Budget,
    Html,
    InputName,
    Json,
    Model,
    OutputName,
    Seed,
    check_outputs,
    reader_may_leave,
    say,
)
from pindown.text import printable, rounded_up

if TYPE_CHECKING:
    from pindown.guarantees.bounds.bound import Bound

Rows = Annotated[
    Path,
    typer.Option(
        "--data",
        help="Inputs and classes; without --retrain rows that training did not see.",
        autocompletion=complete_table,
    ),
]
Delta = Annotated[float, typer.Option(help="Probability with which the bound may fail.")]
Retrain = Annotated[
    bool,
    typer.Option(
        "--retrain",
        help="Train the same layers anew on a part of the rows and bound what comes out by the others; "
        "for rows that training has seen. Needs torch and a ReLU network.",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        help="With --retrain: holdout (exact, about the new network), pac-bayes (about a random "
        "classifier around it), or auto, which is holdout."
    ),
]
FailOn = Annotated[
    str | None, typer.Option(metavar="CONDITION", help='What makes the exit code 1: "risk>0.1".')
]
_CONDITION = re.compile(r"risk\s*>\s*(\d*\.?\d+)(%?)")


def certify(
    model: Model,
    data: Rows,
    target: Target = None,
    delta: Delta = 0.05,
    retrain: Retrain = False,
    method: Method = "auto",
    fail_on: FailOn = None,
    budget: Budget = 60.0,
    html: Html = None,
    json: Json = None,
    seed: Seed = 0,
    activation: Activation = None,
    input: InputName = None,
    output: OutputName = None,
    evaluate_only: EvaluateOnly = False,
) -> int:
    """Bound how often a classifier is wrong on new rows, with a stated confidence.

    The bound is about the model itself, by its mistakes on rows that training did not see (exact for
    the binomial distribution). Exit codes: 0; 1 if --fail-on is met; 3 bad input. Example:
    pindown certify model.onnx --data held-out.npz --fail-on "risk>0.1"
    """
    from pindown.datasets import load_table
    from pindown.json_files import document, plain
    from pindown.report.terminal import progress_bar

    check_outputs(html=html, json=json)
    limit = None if fail_on is None else _limit(fail_on)
    how: dict[str, Any] = {"activation": activation, "input": input, "output": output}
    net, table = opener(evaluate_only, how)(model), load_table(data, target)
    if table.y is None:
        raise ValueError(f"{data}: certify needs classes; name their column with --target.")
    with progress_bar() as report:
        if retrain:
            report("training and certifying", 0, None)
            bound = _retrained(net, table, delta, method, budget, seed)
        else:
            bound = _held_out(net, table, delta, budget, report)
    name = printable(model.name)
    content = {"schema": 1, "model": name, **bound.to_dict()}
    text = document(plain(content))
    try:
        with together():
            if html is not None:
                written(_page(bound, name, len(table.X)), html)
            if json not in (None, "-"):
                written(text, json)
    finally:  # a full disk takes the files, not the answer
        with reader_may_leave():
            say(text if json == "-" else f"{name}: {bound}", nl=json != "-")
    for path in (html, json):
        if path not in (None, "-"):
            say(f"wrote {path}", err=True)
    met = limit is not None and bound.value > limit
    if met:
        say(f"failed: {fail_on}: the bound is {rounded_up(bound.value)}", err=True)
    return int(met)


def _limit(text: str) -> float:
    found = _CONDITION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'--fail-on takes "risk>0.1" or "risk>10%"; got {text!r}.')
    return float(found[1]) / (100.0 if found[2] else 1.0)


def _held_out(net: Any, table: Any, delta: float, budget: float, report: Any) -> Bound:
    """Bound the model's own risk; all rows are looked at, for leaving out some would be a choice."""
    import numpy as np

    from pindown.deadline import Deadline, checked_budget
    from pindown.findings.question_budget import NotApplicable, Turn
    from pindown.findings.samples import margins, one_pass
    from pindown.findings.subject import Subject
    from pindown.guarantees.bounds.pac_bayes import held_out_bound

    turn = Turn(Deadline.after(checked_budget(budget)), budget=f"{budget:g} s")
    subject = Subject.of(net, table.X, table.y, None, None, turn, 0)
    sample = subject.data
    assert sample is not None and sample.targets is not None
    if not sample.targets.is_classification:
        raise ValueError("certify is about classes and the targets are real values.")
    report("evaluating", 0, len(sample))
    try:
        seen = one_pass(subject.values, sample.X, np.random.default_rng(0), turn.audit)
    except NotApplicable as error:
        raise ValueError(f"{error}.") from None
    report("evaluating", seen.n, len(sample))
    wrong = margins(seen.outputs, sample.targets.take(seen.rows)) <= 0
    if seen.n < seen.n_given:
        say(f"time ran out: {seen.seen} were looked at, in random order", err=True)
    return held_out_bound(int(wrong.sum()), seen.n, delta)


def _retrained(net: Any, table: Any, delta: float, method: str, budget: float, seed: int) -> Bound:
    from pindown.findings.asked_model import AskedModel

    asked = AskedModel(net)
    if asked.why_not_exact:
        raise ValueError("--retrain needs a network of dense layers and ReLUs that can be trained anew.")
    from pindown.guarantees import certify as run

    module = asked.exact.to_torch()
    X = table.X.reshape(len(table.X), -1)
    return run(module, X, table.y, delta, method=method, budget=budget, random_state=seed)  # type: ignore[arg-type]


def _page(bound: Bound, name: str, n_rows: int) -> str:
    from pindown.report.pages import render

    rows = [(part, f"{value:.6g}") for part, value in bound.terms.items()]
    return render(
        "certify.html.j2", bound=bound, name=name, n_rows=n_rows, rounded=rounded_up, term_rows=rows
    )

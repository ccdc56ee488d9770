"""The command that asks a model: ``audit``, which can make a pipeline fail."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pindown.atomic_files import together
from pindown.cli.completion import complete_codes, complete_model, complete_table
from pindown.cli.options import (
    OWN_FAULT,
    Activation,
    BoxText,
    Budget,
    Html,
    InputName,
    Json,
    Model,
    OutputName,
    Seed,
    check_outputs,
    check_writable,
    parse_box,
    reader_may_leave,
    say,
)
from pindown.interrupts import INTERRUPTED
from pindown.text import printable

if TYPE_CHECKING:
    from pindown._audit import Audit
    from pindown.datasets import Table
    from pindown.findings.gates import Outcome

Data = Annotated[
    Path | None,
    typer.Option(
        help="Inputs, with labels if there are any: .npz, .npy or .csv.", autocompletion=complete_table
    ),
]
Test = Annotated[
    Path | None,
    typer.Option(help="Inputs and labels that training did not see.", autocompletion=complete_table),
]
Initial = Annotated[
    Path | None,
    typer.Option(
        help="The model before training; tells whether training was lazy or rich.",
        autocompletion=complete_model,
    ),
]
Before = Annotated[
    Path | None,
    typer.Option(
        help="Another checkpoint of the model, to compare with: what changed, and by how much.",
        autocompletion=complete_model,
    ),
]
Target = Annotated[str | None, typer.Option(help="Name of the array or column with the labels.")]
Markdown = Annotated[str | None, typer.Option(metavar="[FILE]", help="Write Markdown; likewise.")]
Only = Annotated[
    str | None,
    typer.Option(
        help="Findings wanted: codes or families such as GEO, with commas.",
        autocompletion=complete_codes,
    ),
]
Ignore = Annotated[
    str | None, typer.Option(help="Findings to leave out; likewise.", autocompletion=complete_codes)
]
EvaluateOnly = Annotated[
    bool,
    typer.Option(
        "--evaluate-only", help="Take values alone, by onnxruntime: for operations that are not read."
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help='What makes the exit code 1: "ACC-01<0.95", "CAL-01.overconfidence>0.1", '
        '"concern:robustness" or "concern" for any; again for several.',
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(help="An audit as JSON: fail only on what got worse since; alone, on any concern."),
]
Junit = Annotated[Path | None, typer.Option(help="Write the conditions as a test report: .xml.")]
Comment = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write a short text for a pull request: .md.")
]
Config = Annotated[
    Path | None,
    typer.Option(help="Where limits of concerns stand; by default pindown.toml, if it is here."),
]


def audit(
    model: Model,
    data: Data = None,
    test: Test = None,
    target: Target = None,
    box: BoxText = None,
    budget: Budget = 60.0,
    html: Html = None,
    json: Json = None,
    markdown: Markdown = None,
    only: Only = None,
    ignore: Ignore = None,
    seed: Seed = 0,
    initial: Initial = None,
    before: Before = None,
    activation: Activation = None,
    input: InputName = None,
    output: OutputName = None,
    evaluate_only: EvaluateOnly = False,
    fail_on: FailOn = None,
    baseline: Baseline = None,
    junit: Junit = None,
    comment: Comment = None,
    config: Config = None,
) -> int:
    """Ask a model everything pindown can answer, within a time budget; say what to do first.

    Exit codes: 0; 1 if a condition of --fail-on is met; 3 bad input. Limits of concerns can be changed
    in pindown.toml, under audit.concerns.
    """
    from pindown._audit import audit as run_audit
    from pindown.datasets import load_table, numbered_alike

    check_outputs(html=html, json=json, markdown=markdown)
    gate = _Gate.of(fail_on, baseline, junit, comment)
    limits = concern_limits(config)
    how: dict[str, Any] = {"activation": activation, "input": input, "output": output}
    opened = opener(evaluate_only, how)
    net = opened(model)
    start, earlier = (None if path is None else opened(path) for path in (initial, before))
    table = load_table(data, target) if data else None
    held_out = load_table(test, target) if test else None
    _check_columns(table or held_out, net.in_features, target)
    table, held_out = numbered_alike(table, held_out, n_classes=max(2, net.out_features))
    _say_numbering(table or held_out)
    streams = sys.stdout is not None and sys.stdout.isatty() and "-" not in (json, markdown)
    with _shown(model.name, budget, streams) as (report, found):
        result = run_audit(
            net,
            None if table is None else table.X,
            None if table is None else table.y,
            test=None if held_out is None else (held_out.X, held_out.y),
            box=parse_box(box, net.in_features),
            initial=start,
            before=earlier,
            budget=budget,
            seed=seed,
            only=_codes(only),
            ignore=_codes(ignore),
            limits=limits,
            name=model.name,
            before_name=_other_name(before, model),
            progress=report,
            found=found,
        )
    made = gate.failures(result)
    more = gate.files(result, made)
    _deliver(result, html=html, json=json, markdown=markdown, streamed=streams, more=more)
    for note in dict.fromkeys(o.note for o in made if o.note):
        say(f"baseline: {note}", err=True)
    for outcome in made:
        if outcome.words:
            say(f"failed: {outcome.condition.text}: {outcome.words}", err=True)
    if result.failed:
        say(
            f"pindown: an error in pindown itself, at {', '.join(result.failed)}; all else is answered. "
            "Please report it.",
            err=True,
        )
    return (
        INTERRUPTED
        if result.interrupted
        else OWN_FAULT
        if result.failed
        else int(any(o.words for o in made))
    )


def opener(evaluate_only: bool, how: dict[str, Any]) -> Callable[[Path], Any]:
    """Return what opens a model file: the reader, or onnxruntime."""
    from pindown.errors import UnsupportedModelError
    from pindown.io import load
    from pindown.io.evaluated import load_evaluated

    if evaluate_only:
        return load_evaluated

    def opened(path: Path) -> Any:
        try:
            return load(path, **how)
        except UnsupportedModelError as error:
            if path.name.endswith((".onnx", ".onnx.gz")):
                words = str(error).removesuffix(".")
                raise UnsupportedModelError(
                    f"{words}; --evaluate-only asks what needs only values, by onnxruntime."
                ) from None
            raise

    return opened


def concern_limits(config: Path | None) -> dict[str, Any] | None:
    """Return the limits of concerns that a file of settings holds; None if there is no file.

    Raises:
        ValueError: If the file cannot be read, or holds something else.
    """
    path = config or Path("pindown.toml")
    if config is None and not path.is_file():
        return None
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a TOML file: {error}.") from None
    if stray := sorted(set(content) - {"audit"}):
        raise ValueError(
            f"{path}: nothing is read from {', '.join(stray)}; limits stand under [audit.concerns]."
        )
    found: Any = content.get("audit", {})
    found = found.get("concerns", {}) if isinstance(found, dict) else found
    if not isinstance(found, dict):
        raise ValueError(f"{path}: limits stand under [audit.concerns], each as NAME = NUMBER.")
    from pindown.findings.concerns import checked_limits

    checked_limits(found, str(path))
    return found


@dataclass(frozen=True)
class _Gate:
    """What makes the exit code 1, and where that is written."""

    conditions: tuple[Any, ...]
    baseline: Any
    junit: Path | None
    comment: str | None

    @classmethod
    def of(
        cls, fail_on: list[str] | None, baseline: Path | None, junit: Path | None, comment: str | None
    ) -> _Gate:
        """Check before the work, not after."""
        from pindown.findings.gates import load_readings, parse_condition

        if junit is not None:
            if junit.suffix != ".xml":
                raise ValueError(f"--junit writes a file that ends in .xml; got {str(junit)!r}.")
            check_writable("--junit", junit)
        if comment is not None:
            if not comment.endswith(".md"):
                raise ValueError(f"--comment writes a file that ends in .md; got {comment!r}.")
            check_writable("--comment", Path(comment))
        words = fail_on or (["concern"] if baseline is not None or junit is not None else [])
        conditions = tuple(parse_condition(word) for word in dict.fromkeys(words))
        before = None if baseline is None else load_readings(baseline)
        return cls(conditions, before, junit, comment)

    def failures(self, result: Audit) -> list[Outcome]:
        """Return what became of every condition."""
        from pindown.findings.gates import outcomes, readings

        now = readings(result.findings, result.judgement, result.fingerprint)
        return outcomes(now, self.conditions, self.baseline)

    def files(self, result: Audit, made: list[Outcome]) -> list[tuple[str, Callable[[str], str]]]:
        """Return what to write, and where to."""
        from pindown.atomic_files import written
        from pindown.report.audit_markdown import render_comment
        from pindown.report.junit import Case, junit_document

        files: list[tuple[str, Callable[[str], str]]] = []
        if self.junit is not None:
            cases = [Case(f"{result.name}: {o.condition.text}", o.words) for o in made]
            report = junit_document("audit", cases, result.seconds)
            files.append((str(self.junit), lambda path: written(report, path)))
        if self.comment is not None:
            failed = [f"{o.condition.text}: {o.words}" for o in made if o.words]
            comment = render_comment(result, failed)
            files.append((self.comment, lambda path: written(comment, path)))
        return files


def _check_columns(table: Table | None, n_inputs: int, target: str | None) -> None:
    """Say what to do about the likeliest misfit: one column too many is a column of labels."""
    if table is None or table.y is not None or target is not None or table.X.ndim != 2:
        return
    if table.X.shape[1] == n_inputs + 1:
        raise ValueError(
            f"the network takes {n_inputs} inputs and the data have {n_inputs + 1} columns; "
            "if one of them holds the labels, name it with --target."
        )


def _say_numbering(table: Table | None) -> None:
    if table is not None and table.classes:
        listed = ", ".join(f"{i} {name}" for i, name in enumerate(table.classes[:20]))
        say(f"labels are words, numbered by the alphabet: {printable(listed)}", err=True)


@contextmanager
def _shown(name: str, budget: float, streams: bool) -> Iterator[tuple[Any, Any]]:
    """Show findings as they come on a terminal, else progress alone."""
    from pindown.report.audit_text import streaming
    from pindown.report.terminal import progress_bar

    if streams:
        with streaming(printable(name), budget) as both:
            yield both
        return
    with progress_bar() as report:
        yield report, None


def _other_name(before: Path | None, model: Path) -> str:
    """Return what to call the other checkpoint: its file, with its folder if both are called alike."""
    if before is None:
        return ""
    return str(before) if before.name == model.name else before.name


def _deliver(
    result: Audit,
    *,
    html: str | None,
    json: str | None,
    markdown: str | None,
    streamed: bool = False,
    more: Sequence[tuple[str, Callable[[str], str]]] = (),
) -> None:
    """Write what was asked for; the terminal gets the summary unless stdout carries a document."""
    documents = ((json, result.to_json), (markdown, result.to_markdown), (html, result.to_html))
    files: list[Any] = [(target, render) for target, render in documents if target not in (None, "-")]
    files += more
    try:
        with together():
            for target, render in files:
                render(target)
    finally:  # a full disk takes the files, not what was found
        with reader_may_leave():
            for where, render in documents:
                if where == "-":
                    say(render())
            if "-" not in (json, markdown):
                from pindown.report.audit_text import print_audit

                print_audit(result, streamed=streamed)
    for target, _ in files:
        say(f"wrote {target}", err=True)


def _codes(text: str | None) -> list[str] | None:
    return None if text is None else [code.strip() for code in text.split(",") if code.strip()]

"""Ask a network everything that can be answered, within a time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from pindown.atomic_files import written
from pindown.deadline import Deadline, checked_budget
from pindown.findings import CATALOGUE, Finding, Question
from pindown.findings.asked_model import AskedModel, Function, asked_model
from pindown.findings.comparison import Comparison, Distance, changes
from pindown.findings.concerns import Concern, Judged, checked_limits, judged, verdict
from pindown.findings.opening_paragraph import Passage, paragraph, passages
from pindown.findings.question_budget import Turn
from pindown.findings.questions import chosen_questions
from pindown.findings.subject import Subject, reference_box
from pindown.findings.tuning import AFTER_SHARE, BEFORE_SHARE, MIN_SHARE_TO_ASK_AGAIN, SHORT_OF_TIME
from pindown.findings.wording import count
from pindown.geometry import Box
from pindown.io.any_model import AnyModel
from pindown.io.evaluated import Evaluated
from pindown.network import ReluNetwork
from pindown.progress import Report
from pindown.text import printable
from pindown.validation import integer

Found: TypeAlias = Callable[[Finding], None]
__all__ = ["Audit", "audit", "compare_audits"]


def audit(
    net: AnyModel,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    test: tuple[ArrayLike, ArrayLike | None] | None = None,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    initial: AnyModel | None = None,
    before: AnyModel | Audit | None = None,
    budget: float = 60.0,
    seed: int = 0,
    activation: str | None = None,
    evaluate_only: bool = False,
    only: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    limits: Mapping[str, Any] | None = None,
    name: str | None = None,
    before_name: str = "the network before",
    progress: Report | None = None,
    found: Found | None = None,
) -> Audit:
    """Ask a network everything that can be answered, within a time budget.

    Args:
        net: A model or network, the path of a model file, a torch module, a fitted scikit-learn
            estimator, or any function of arrays ``(n, *shape) -> (n, k)`` or session of onnxruntime, of
            which only values are known.
        X: Inputs (n, d), for instance the training data.
        y: Classes 0..k-1 for k outputs, {0, 1} or {-1, 1} for one output, or values (n,) or (n, k).
        test: Inputs and targets ``(X, y)`` that training did not see; accuracy is then judged on them.
        box: Where to make statements about all inputs; by default the bounding box of X, and without X
            a reference box, [0, 1]^d for images and [-1, 1]^d else, which the findings then name.
        initial: The network before training; then it can be said whether training was lazy or rich.
        before: Another checkpoint of the same model, or its audit: then the findings are also compared.
            It is audited on the same data and box; the budget is shared.
        budget: Seconds to spend, shared by what questions need; those that do not fit are not run.
        seed: Root of all randomness; the same seed gives the same answer if the budget suffices.
        activation: ``"relu"``, if a path is that of a state dict: that is what lies between its layers,
            which the file does not say.
        evaluate_only: Whether to look at values alone, with onnxruntime for an ``.onnx`` file: for
            operations that are not read.
        only: Codes of the questions to ask, such as "GEO-01", or "GEO" for all of them; all by default.
        ignore: Codes of questions not to ask; likewise.
        limits: Limits of concerns by name, such as ``{"dead-units": 0.5}``, or False to switch one off;
            see :data:`pindown.findings.concerns.RULES`.
        name: What to call the network in reports; by default the file's name, or ``"network"``.
        before_name: What to call the other checkpoint.
        progress: Called as ``progress(what, done, total)`` before each question, with its title and the
            time it has, and at the end.
        found: Called with each finding as it comes.

    Returns:
        The findings. Ctrl-C ends the audit early and keeps what was finished.

    Raises:
        ValueError: If data, labels, box, budget, seed or codes do not fit.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> print(audit(net, only=["ARC-01"]).description)
    This network maps 1 input to 1 output through 2 ReLUs in 1 layer and has 7 parameters.
    >>> print(audit(net, [[-1.0], [2.0]], [1.0, 2.0], only=["ACC-01"]).verdict)
    No concern in 1 check (8 more checks had nothing to go on); RMSE 0, R² 1.000 on 2 rows of the data.
    """
    seconds, bounds = checked_budget(budget), checked_limits(limits)
    if name is None:
        name = Path(net).name if isinstance(net, str | PathLike) else "network"
    turn = Turn.lasting(seconds)
    whole = turn.audit
    rows = X if X is not None or test is None else test[0]
    how: Any = {"activation": activation, "X": rows, "evaluate_only": evaluate_only}
    asked = asked_model(net, "audit", **how)
    questions = chosen_questions(CATALOGUE, only, ignore)
    start = None if initial is None else asked_model(initial, "initial", **how)
    earlier: AskedModel | Audit | None = None
    if before is not None:
        earlier = before if isinstance(before, Audit) else asked_model(before, "before", **how)
        check_sizes(earlier.model if isinstance(earlier, Audit) else earlier.given, asked.given)
    shared = f"{seconds:g} s, shared by two networks,"
    if earlier is not None:
        after = Deadline(whole.start + AFTER_SHARE * seconds, whole.start)
        turn = replace(turn, audit=after, budget=shared)
    subject = Subject.of(asked, X, y, test, box, turn, integer("seed", seed, least=0), start)
    subject = replace(subject, file=file_called(name))
    result = replace(_audited(subject, questions, name, seconds, progress, found), limits=bounds)
    if earlier is None or result.interrupted:
        return result
    if isinstance(earlier, AskedModel) and earlier.given == asked.given:
        earlier = replace(result, name=printable(before_name))  # the clock must not look like a change
    if not isinstance(earlier, Audit):
        other = subject.with_model(earlier, Turn(whole.share(BEFORE_SHARE), budget=shared))
        about = None if progress is None else partial(_prefixed, progress)
        earlier = _audited(other, questions, before_name, seconds, about, None)
    return replace(result, comparison=compared(earlier, result, whole.left))


def _prefixed(progress: Report, title: str, done: float, total: float | None) -> None:
    progress(f"before: {title}", done, total)


def _audited(
    subject: Subject,
    questions: list[Question],
    name: str,
    budget: float,
    progress: Report | None,
    found: Found | None,
) -> Audit:
    findings, interrupted = _ask_all(questions, subject, progress, found)
    return Audit(
        model=subject.asked.given,
        findings=findings,
        name=printable(name),
        given=_given(subject),
        budget=budget,
        seed=subject.seed,
        interrupted=interrupted,
        box=subject.box,
        box_name=subject.box_name,
        seconds=subject.turn.audit.spent,
        fingerprint=subject.fingerprint,
    )


def _ask_all(
    questions: list[Question],
    subject: Subject,
    progress: Report | None,
    found: Found | None,
) -> tuple[tuple[Finding, ...], bool]:
    """Ask one after the other; each gets its share of the time that is left."""
    findings: list[Finding] = []
    try:
        for i, question in enumerate(questions):
            coming = [q.cost for q in questions[i:] if q.applies_to(subject)]
            turn = subject.turn.for_first(coming)
            if progress is not None:
                told = turn.in_words if question.applies_to(subject) else ""
                progress(f"{question.title}{told}", i, len(questions))
            findings.append(question.answer(subject.during(turn)))
            if found is not None:
                found(findings[-1])
        _ask_again(questions, findings, subject, progress, found)
        if progress is not None:
            progress("done", len(findings), len(questions))
    except KeyboardInterrupt:
        rest = questions[len(findings) :]
        findings += [q.without_answer("not run", "because the audit was interrupted") for q in rest]
        return tuple(findings), True
    return tuple(findings), False


def _ask_again(
    questions: list[Question],
    findings: list[Finding],
    subject: Subject,
    progress: Report | None,
    found: Found | None,
) -> None:
    """Ask again, with what is left of the time, what did not fit into its share; the cheapest first.

    First they share what is left; then, while it is no small part of the budget, each gets all of it.
    """
    whole = subject.turn.audit
    for least in (MIN_SHARE_TO_ASK_AGAIN, SHORT_OF_TIME * (whole.left + whole.spent)):
        waiting = [i for i, finding in enumerate(findings) if finding.status == "not run"]
        waiting.sort(key=lambda i: questions[i].cost.least)
        for place, i in enumerate(waiting):
            if whole.left < max(least, MIN_SHARE_TO_ASK_AGAIN):
                return
            sharing = waiting[place:] if least == MIN_SHARE_TO_ASK_AGAIN else [i]
            turn = subject.turn.for_first([questions[j].cost for j in sharing])
            if progress is not None:
                progress(f"again: {questions[i].title}{turn.in_words}", place, len(waiting))
            findings[i] = questions[i].answer(subject.during(turn))
            if found is not None and findings[i].status != "not run":
                found(findings[i])


def _given(subject: Subject) -> str:
    parts = [
        f"{count(len(sample), 'row' if sample.targets is None else 'labelled row')} of {sample.name}"
        for sample in (subject.data, subject.test)
        if sample is not None
    ]
    parts += [] if subject.before_training is None else ["the network before training"]
    given = ", ".join(parts) if parts else "the weights alone"
    return f"{given}; statements about a box are about {subject.box_name}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Audit:
    """The findings about one network.

    Attributes:
        model: The model that was asked about: a graph of operations, a network or a function.
        findings: One per question, in the order of the catalogue; also those without an answer.
        name: What to call the network in reports; by default the file's name, or ``"network"``.
        given: What the audit had to go on, in words.
        budget: Seconds it was allowed to take.
        seed: Root of its randomness.
        interrupted: Whether it was stopped by hand before the end.
        box: Where statements about all inputs were made; a reference box if nothing was given.
        box_name: That box in words.
        comparison: What changed since another checkpoint, if one was given.
        limits: The limits of concerns, by name.
        seconds: How long it took.
        fingerprint: SHA-256 of the model, the data and the box; empty for a function in Python.
    """

    model: Function
    findings: tuple[Finding, ...]
    name: str
    given: str
    budget: float
    seed: int
    interrupted: bool = False
    box: Box | None = None
    box_name: str = ""
    comparison: Comparison | None = None
    limits: Mapping[str, float] = field(default_factory=lambda: checked_limits(None))
    seconds: float = 0.0
    fingerprint: str = ""

    @property
    def network(self) -> ReluNetwork | None:
        """The exact piecewise-linear form of the model; None if there is none that is not too large."""
        asked = AskedModel(self.model)
        return None if asked.why_not_exact else asked.exact

    def __getitem__(self, code: str) -> Finding:
        """Return the finding with this code."""
        for finding in self.findings:
            if finding.code == code:
                return finding
        raise KeyError(
            f"no finding {code!r} here; there are {', '.join(f.code for f in self.findings)}."
        )

    @property
    def judgement(self) -> Judged:
        """What rules say of the findings: concerns, what is fine, and what could not be checked."""
        return judged(self.findings, self.limits, shrink_advice(self))

    @property
    def concerns(self) -> tuple[Concern, ...]:
        """What to do something about, the weightiest first."""
        return self.judgement.concerns

    @property
    def verdict(self) -> str:
        """What is the matter, or that nothing is, in one sentence."""
        return verdict(self.judgement, self.findings)

    @property
    def description(self) -> str:
        """What the findings say together, as one paragraph: the most important first."""
        return paragraph(self.passages)

    @property
    def passages(self) -> list[Passage]:
        """The description sentence by sentence, each with the code of the finding it comes from."""
        changed = "" if self.comparison is None else self.comparison.sentence
        return passages(
            self.findings, interrupted=self.interrupted, first=changed, box_name=self.box_name
        )

    @property
    def failed(self) -> tuple[str, ...]:
        """What failed by an error of pindown: codes of findings, and what failed in the comparison."""
        own = tuple(finding.code for finding in self.findings if finding.status == "error")
        return own + (() if self.comparison is None else self.comparison.failed)

    def summary(self) -> str:
        """Return the verdict and the findings as plain text."""
        from pindown.report.audit_text import plain_text

        return plain_text(self)

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return one self-contained HTML page, and write it if a path is given."""
        from pindown.report.audit_page import render_page

        return written(render_page(self), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the findings as JSON (schema 2), and write them if a path is given."""
        from pindown.report.audit_json import render_json

        return written(render_json(self), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """Return the findings as Markdown, and write them if a path is given."""
        from pindown.report.audit_markdown import render_markdown

        return written(render_markdown(self), path)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        answered = sum(finding.answered for finding in self.findings)
        return f"Audit of {self.name}: {answered} of {len(self.findings)} questions answered"

    def _repr_html_(self) -> str:
        from pindown.report.audit_page import render_fragment

        return render_fragment(self)


def shrink_advice(audit: Audit) -> str:
    """Return what to do about dead units: what can go with a proof, or how to find out."""
    finding = next((f for f in audit.findings if f.code == "EQV-01" and f.answered), None)
    if finding is None:
        return (
            f"pindown shrink {file_called(audit.name)} -o small.onnx removes what can go without "
            "changing the function."
        )
    removable = int(finding.facts["removable"])
    if not removable:
        return (
            "None is proved dead for all inputs that matter here; train a narrower network, or prune "
            "them and compare: pindown diff old.onnx new.onnx --data data.npz."
        )
    box, where = "", "without changing the function for any input"
    if audit.box is not None and not audit.box_name.startswith("the reference"):
        low, high = audit.box.lower, audit.box.upper
        box = f" --box {low.min():g},{high.max():g}"
        where = f"without changing the function on {audit.box_name}"
        if (low != low[0]).any() or (high != high[0]).any():
            if "data" not in audit.box_name:
                return f"pindown.shrink(model, box=audit.box) removes {removable:,} units {where}."
            box = f" --box {'test' if 'test' in audit.box_name else 'data'}.npz"
    return (
        f"pindown shrink {file_called(audit.name)} -o small.onnx{box} removes {removable:,} units "
        f"{where}."
    )


def file_called(name: str) -> str:
    """Return what to call the model in commands: its name, if that is the name of a file.

    >>> file_called("my net.onnx"), file_called("network")
    ("'my net.onnx'", 'model.onnx')
    """
    known = name.lower().endswith((".onnx", ".onnx.gz", ".safetensors", ".pt", ".pth"))
    return quote(printable(name)) if known else "model.onnx"


def compare_audits(before: Audit, after: Audit, *, budget: float = 10.0) -> Comparison:
    """Put two audits side by side, and measure how far apart the two functions are.

    Args:
        before: The audit of one checkpoint.
        after: The audit of another, with as many inputs and outputs; its box is where they are compared.
        budget: Seconds to spend on the distance.

    Returns:
        What changed, finding by finding, with a proved interval for the largest gap of any output.

    Raises:
        ValueError: If the numbers of inputs or outputs differ, or the budget is not positive.
        TypeError: If one of them is no audit.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> from pindown import audit
    >>> gap = compare_audits(audit(net, only="ARC"), audit(2.0 * net, only="ARC")).distance
    >>> gap.verdict, gap.lower <= 1.0 <= gap.upper
    ('different', True)
    """
    for given in (before, after):
        if not isinstance(given, Audit):
            raise TypeError(f"compare_audits takes two audits; got {type(given).__name__}.")
    check_sizes(before.model, after.model)
    return compared(before, after, checked_budget(budget))


def compared(before: Audit, after: Audit, budget: float) -> Comparison:
    """Put two audits that were checked side by side; without time the distance is left out."""
    notes, failed = [], list(before.failed)
    if failed:
        notes.append(f"About {before.name}, failed by an error in pindown itself: {', '.join(failed)}.")
    try:
        distance = distance_between(before.model, after, budget)
    except Exception as error:  # what was found about the two is not lost with it
        distance = None
        failed.append("distance")
        words = f"{type(error).__name__}: {error}"
        notes.append(f"How far apart the two are: failed by an error in pindown itself, {words}.")
    if before.model == after.model:
        notes.append("The two networks have the same weights.")
    if any(isinstance(model, Evaluated) for model in (before.model, after.model)):
        notes.append("How far apart the two are is not bounded, for only values are known.")
    if before.given != after.given:
        notes.append(f"The two audits were given different things: {before.given}; {after.given}.")
    if before.interrupted or after.interrupted:
        notes.append("One of the audits was interrupted.")
    for note in before.model.notes:
        if note not in after.model.notes:  # those of the later one stand in its own audit
            notes.append(f"{before.name}: {printable(note)}")
    rows = changes(before.findings, after.findings)
    return Comparison(before.name, after.name, rows, distance, tuple(notes), tuple(failed))


def distance_between(before: Function, after: Audit, budget: float) -> Distance | None:
    """Enclose the largest gap of any output on the audit's box; None without time or in overflow."""
    from pindown.equivalence import diff

    if budget <= 0 or isinstance(before, Evaluated) or isinstance(after.model, Evaluated):
        return None
    models = [AskedModel(model).values for model in (before, after.model)]
    box, place = after.box, after.box_name
    if box is None:
        box, inputs = reference_box(after.model)
        place = f"the reference box {inputs}"
    try:
        found = diff(*models, box=box, budget=budget, seed=after.seed)
    except ValueError:  # sizes fit, so it is numbers that leave float64
        return None
    return Distance.of(found, place)


def check_sizes(before: Function, after: Function) -> None:
    """Refuse networks that cannot be compared.

    Raises:
        ValueError: If they have different numbers of inputs or outputs.
    """
    sizes = [(net.in_features, net.out_features) for net in (before, after)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"before must have as many inputs and outputs as the network; got {sizes[0][0]} and "
            f"{sizes[0][1]} for {sizes[1][0]} and {sizes[1][1]}."
        )

"""Which questions to ask of a network, within a time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.findings import CATALOGUE, Finding, Question
from pindown.findings.deadline import Deadline
from pindown.findings.subject import Subject
from pindown.findings.wording import printable
from pindown.geometry import Box
from pindown.network import ReluNetwork
from pindown.report.writing import written

Progress: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Audit:
    """The findings about one network.

    Attributes:
        network: The network that was asked about.
        findings: One per question, in the order of the catalogue; also those without an answer.
        name: What to call the network in reports.
        given: What the audit had to go on, in words.
        budget: Seconds it was allowed to take.
        seed: Root of its randomness.
        interrupted: Whether it was stopped by hand before the end.
    """

    network: ReluNetwork
    findings: tuple[Finding, ...]
    name: str
    given: str
    budget: float
    seed: int
    interrupted: bool = False

    def __getitem__(self, code: str) -> Finding:
        """Return the finding with this code."""
        for finding in self.findings:
            if finding.code == code:
                return finding
        raise KeyError(
            f"no finding {code!r} here; there are {', '.join(f.code for f in self.findings)}."
        )

    @property
    def verdict(self) -> str:
        """What the findings say together, as one paragraph."""
        sentences = [f.sentence.strip() for f in self.findings if f.answered and f.sentence]
        if self.interrupted:
            sentences.append("The audit was interrupted, so some questions were not asked.")
        return " ".join(sentences)

    def summary(self) -> str:
        """Return the verdict and the findings as plain text."""
        from pindown.report.text import plain_text

        return plain_text(self)

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return one self-contained HTML page, and write it if a path is given."""
        from pindown.report.html import render_page

        return written(render_page(self), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the findings as JSON (schema 1), and write them if a path is given."""
        from pindown.report.json import render_json

        return written(render_json(self), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """Return the findings as Markdown, and write them if a path is given."""
        from pindown.report.markdown import render_markdown

        return written(render_markdown(self), path)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        answered = sum(finding.answered for finding in self.findings)
        return f"Audit of {self.name}: {answered} of {len(self.findings)} questions answered"

    def _repr_html_(self) -> str:
        from pindown.report.html import render_fragment

        return render_fragment(self)


def audit(
    net: ReluNetwork,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    test: tuple[ArrayLike, ArrayLike | None] | None = None,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    initial: ReluNetwork | None = None,
    budget: float = 60.0,
    seed: int = 0,
    only: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    name: str = "network",
    progress: Progress | None = None,
) -> Audit:
    """Ask a network everything that can be answered, within a time budget.

    Args:
        net: The network.
        X: Inputs (n, d), for instance the training data.
        y: Classes 0..k-1 for k outputs, {0, 1} or {-1, 1} for one output, or values (n,) or (n, k).
        test: Inputs and targets ``(X, y)`` that training did not see; accuracy is then judged on them.
        box: Where to make statements about all inputs; by default the bounding box of X.
        initial: The network before training; then it can be said whether training was lazy or rich.
        budget: Seconds to spend. Questions that do not fit are listed as not run.
        seed: Root of all randomness; the same seed gives the same answer if the budget suffices.
        only: Codes of the questions to ask; all by default.
        ignore: Codes of questions not to ask.
        name: What to call the network in reports.
        progress: Called as ``progress(title, done, total)`` before each question and at the end.

    Returns:
        The findings. Ctrl-C ends the audit early and keeps what was finished.

    Raises:
        ValueError: If data, labels, box, budget, seed or codes do not fit.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> print(audit(net, only=["ARC-01"]).verdict)
    This network maps 1 input to 1 output through 2 ReLUs in 1 layer and has 7 parameters.
    """
    deadline = Deadline(_checked_budget(budget))
    if not isinstance(net, ReluNetwork):
        raise TypeError(
            f"audit takes a ReluNetwork; got {type(net).__name__}. Use pindown.load for files, "
            "ReluNetwork.from_torch or from_sklearn for models in memory."
        )
    questions = _chosen(only, ignore)
    root = _checked_seed(seed)
    subject = Subject.of(net, X, y, test, box, deadline, root, initial)
    findings, interrupted = _ask_all(questions, subject, progress)
    return Audit(net, findings, printable(name), _given(subject), float(budget), root, interrupted)


def _ask_all(
    questions: list[Question], subject: Subject, progress: Progress | None
) -> tuple[tuple[Finding, ...], bool]:
    findings: list[Finding] = []
    try:
        for question in questions:
            if progress is not None:
                progress(question.title, len(findings), len(questions))
            findings.append(question.answer(subject))
        if progress is not None:
            progress("done", len(findings), len(questions))
    except KeyboardInterrupt:
        rest = questions[len(findings) :]
        findings += [q.without_answer("not run", "because the audit was interrupted") for q in rest]
        return tuple(findings), True
    return tuple(findings), False


def _chosen(only: Iterable[str] | None, ignore: Iterable[str] | None) -> list[Question]:
    known = [question.code for question in CATALOGUE]
    wanted = None if only is None else _codes(only, "only", known)
    muted = set() if ignore is None else _codes(ignore, "ignore", known)
    chosen = [q for q in CATALOGUE if (wanted is None or q.code in wanted) and q.code not in muted]
    if not chosen:
        raise ValueError(f"only and ignore leave no question to ask; known are {', '.join(known)}.")
    return chosen


def _codes(codes: Iterable[str], name: str, known: list[str]) -> set[str]:
    given = {codes} if isinstance(codes, str) else set(codes)
    unknown = sorted(given.difference(known))
    if unknown:
        raise ValueError(
            f"{name} names unknown findings {', '.join(unknown)}; known are {', '.join(known)}."
        )
    return given


def _checked_budget(budget: Any) -> float:
    try:
        seconds = float(budget)
    except (TypeError, ValueError):
        seconds = float("nan")
    if not seconds > 0:
        raise ValueError(f"budget must be a positive number of seconds; got {budget!r}.")
    return seconds


def _checked_seed(seed: Any) -> int:
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed must be an integer that is not negative; got {seed!r}.")
    return int(seed)


def _given(subject: Subject) -> str:
    samples = [
        f"{len(sample):,} {'labelled ' if sample.targets is not None else ''}rows of {sample.name}"
        for sample in (subject.data, subject.test)
        if sample is not None
    ]
    parts = samples + ([subject.box_name] if subject.box is not None else [])
    parts += [] if subject.initial is None else ["the network before training"]
    return ", ".join(parts) if parts else "the weights alone"

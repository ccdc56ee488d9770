"""Ask a network everything that can be answered, within a time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.audit_result import Audit
from pindown.checkpoints import check_sizes, compare_audits, compared
from pindown.findings import CATALOGUE, Finding, Question
from pindown.findings.choice import chosen_questions
from pindown.findings.deadline import Deadline, checked_budget
from pindown.findings.subject import Subject
from pindown.findings.wording import count
from pindown.geometry import Box
from pindown.io.any_model import AnyModel, as_network
from pindown.network import ReluNetwork
from pindown.visible_text import printable

Progress: TypeAlias = Callable[[str, int, int], None]
Found: TypeAlias = Callable[[Finding], None]

# Of the budget of a comparison: for the network itself, and of what it leaves for the one before.
_AFTER_SHARE, _BEFORE_SHARE = 0.45, 0.7

__all__ = ["Audit", "audit", "compare_audits"]


def audit(
    net: AnyModel,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    test: tuple[ArrayLike, ArrayLike | None] | None = None,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    initial: ReluNetwork | None = None,
    before: ReluNetwork | Audit | None = None,
    budget: float = 60.0,
    seed: int = 0,
    activation: str | None = None,
    only: Iterable[str] | None = None,
    ignore: Iterable[str] | None = None,
    name: str = "network",
    before_name: str = "the network before",
    progress: Progress | None = None,
    found: Found | None = None,
) -> Audit:
    """Ask a network everything that can be answered, within a time budget.

    Args:
        net: The network, or the path of a model file, a torch module or a fitted scikit-learn MLP.
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
        only: Codes of the questions to ask, such as "GEO-01", or "GEO" for all of them; all by default.
        ignore: Codes of questions not to ask; likewise.
        name: What to call the network in reports.
        before_name: What to call the other checkpoint.
        progress: Called as ``progress(title, done, total)`` before each question and at the end.
        found: Called with each finding as it comes.

    Returns:
        The findings. Ctrl-C ends the audit early and keeps what was finished.

    Raises:
        ValueError: If data, labels, box, budget, seed or codes do not fit.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> print(audit(net, only=["ARC-01"]).verdict)
    This network maps 1 input to 1 output through 2 ReLUs in 1 layer and has 7 parameters.
    """
    deadline = Deadline(checked_budget(budget))
    net = as_network(net, "audit", activation)
    questions = chosen_questions(CATALOGUE, only, ignore)
    root = _checked_seed(seed)
    subject = Subject.of(net, X, y, test, box, deadline, root, initial)
    _check_before(before, net)
    shared = f"{deadline.budget:g} s, shared by two networks,"
    if before is not None:
        subject.deadline = replace(deadline, budget=_AFTER_SHARE * deadline.budget, shared=shared)
    result = _audited(subject, questions, name, float(budget), progress, found)
    if before is None or result.interrupted:
        return result
    if before == net:  # what the clock allowed must not look like a change
        before = replace(result, name=printable(before_name))
    if not isinstance(before, Audit):
        other = subject.with_network(before, Deadline(_BEFORE_SHARE * deadline.left, shared=shared))
        about = None if progress is None else partial(_prefixed, progress)
        before = _audited(other, questions, before_name, float(budget), about, None)
    return replace(result, comparison=compared(before, result, deadline.left))


def _prefixed(progress: Progress, title: str, done: int, total: int) -> None:
    progress(f"before: {title}", done, total)


def _check_before(before: object, net: ReluNetwork) -> None:
    if before is None:
        return
    if not isinstance(before, (ReluNetwork, Audit)):
        raise TypeError(f"before must be a ReluNetwork or an Audit; got {type(before).__name__}.")
    check_sizes(before.network if isinstance(before, Audit) else before, net)


def _audited(
    subject: Subject,
    questions: list[Question],
    name: str,
    budget: float,
    progress: Progress | None,
    found: Found | None,
) -> Audit:
    findings, interrupted = _ask_all(questions, subject, progress, found)
    return Audit(
        subject.net,
        findings,
        printable(name),
        _given(subject),
        budget,
        subject.seed,
        interrupted,
        subject.box,
        subject.box_name,
    )


def _ask_all(
    questions: list[Question],
    subject: Subject,
    progress: Progress | None,
    found: Found | None = None,
) -> tuple[tuple[Finding, ...], bool]:
    """Ask one after the other; each gets its share of the time that is left."""
    findings: list[Finding] = []
    whole = subject.deadline
    try:
        for i, question in enumerate(questions):
            if progress is not None:
                progress(question.title, i, len(questions))
            coming = [q.cost for q in questions[i:] if q.applies_to(subject)]
            subject.deadline = whole.for_first(coming)
            findings.append(question.answer(subject))
            if found is not None:
                found(findings[-1])
        if progress is not None:
            progress("done", len(findings), len(questions))
    except KeyboardInterrupt:
        rest = questions[len(findings) :]
        findings += [q.without_answer("not run", "because the audit was interrupted") for q in rest]
        return tuple(findings), True
    return tuple(findings), False


def _checked_seed(seed: Any) -> int:
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed must be an integer that is not negative; got {seed!r}.")
    return int(seed)


def _given(subject: Subject) -> str:
    parts = [
        f"{count(len(sample), 'row' if sample.targets is None else 'labelled row')} of {sample.name}"
        for sample in (subject.data, subject.test)
        if sample is not None
    ]
    parts += [] if subject.initial is None else ["the network before training"]
    given = ", ".join(parts) if parts else "the weights alone"
    return f"{given}; statements about a box are about {subject.box_name}"

"""The questions an audit can ask; each is one decorated function."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from pindown.findings.deadline import Cost, NotApplicable, OutOfTime
from pindown.findings.finding import Finding, Hypothesis, Status
from pindown.findings.subject import Subject

Group: TypeAlias = Literal["which", "why", "how far"]
Need: TypeAlias = Literal["data", "labels", "box", "relus", "images", "initial"]
Ask: TypeAlias = Callable[[Subject], Finding]

GROUPS: dict[Group, str] = {
    "which": "Which function is it?",
    "why": "Why did training choose it?",
    "how far": "How far can it be trusted?",
}

_MISSING: dict[Need, str] = {
    "data": "no data were given",
    "labels": "no labels were given",
    "relus": "the network is affine: it has no ReLU",
    "initial": "the network before training was not given",
    "images": "the inputs are no images: their shape is {shape}",
}


# What the reader could give to get more answers.
_COULD_BE_GIVEN: tuple[Need, ...] = ("data", "labels")
COULD_BE_GIVEN = frozenset(f"because {_MISSING[need]}" for need in _COULD_BE_GIVEN)

_USUAL = Cost()


@dataclass(frozen=True)
class Question:
    """A question with a stable code.

    Attributes:
        code: Stable name of the finding.
        title: What is asked, in a few words.
        group: Which of the three big questions it belongs to.
        needs: What it cannot do without.
        about: One sentence for the catalogue.
        ask: The function that answers.
        cost: The time it needs at least, and its part of what the others leave.
        place: Its place in the paragraph that opens a report, 1 first; 0 if it has none.
    """

    code: str
    title: str
    group: Group
    needs: tuple[Need, ...]
    about: str
    ask: Ask
    cost: Cost = _USUAL
    place: int = 0

    def applies_to(self, subject: Subject) -> bool:
        """Return whether all that it needs was given."""
        return all(_has(subject, need) for need in self.needs)

    def answer(self, subject: Subject) -> Finding:
        """Ask; whatever happens, return a finding."""
        missing = [need for need in self.needs if not _has(subject, need)]
        if missing:
            reason = _MISSING[missing[0]].format(shape=subject.net.input_shape)
            return self.without_answer("not applicable", f"because {reason}")
        if subject.deadline.passed:
            return self.out_of_time(subject)
        try:
            finding = self.ask(subject)
            return replace(
                finding,
                code=self.code,
                title=self.title,
                hypotheses=(*finding.hypotheses, *self._assumed(subject)),
            )
        except NotApplicable as reason:
            return self.without_answer("not applicable", f"because {reason}")
        except OutOfTime:
            return self.out_of_time(subject)
        except Exception as error:  # one broken question must not cost the reader the other answers
            return self._broken(error)

    def _assumed(self, subject: Subject) -> tuple[Hypothesis, ...]:
        """Return that a box was taken because none was given, if the answer is about it."""
        return (Hypothesis(subject.assumed),) if subject.assumed and "box" in self.needs else ()

    def out_of_time(self, subject: Subject) -> Finding:
        """Return the finding that the budget did not suffice."""
        budget = subject.deadline.shared or f"{subject.deadline.budget:g} s"
        if subject.deadline.passed:
            return self.without_answer("not run", f"because the budget of {budget} was used up")
        return self.without_answer("not run", f"because too little of the budget of {budget} was left")

    def without_answer(self, status: Status, reason: str) -> Finding:
        """Return a finding that says why there is no answer."""
        return Finding(self.code, self.title, f"{status}, {reason}", status=status)

    def _broken(self, error: Exception) -> Finding:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}, line {frame.lineno}"
        return Finding(
            self.code,
            self.title,
            f"failed with {type(error).__name__}: {error}",
            reading=f"This is a defect of pindown, not of the network ({place}). Please report it.",
            status="error",
        )


QUESTIONS: dict[str, Question] = {}


def question(
    code: str,
    title: str,
    *,
    group: Group,
    needs: tuple[Need, ...] = (),
    about: str,
    cost: tuple[float, float] = (0.1, 1.0),
    place: int = 0,
) -> Callable[[Ask], Ask]:
    """Register a function ``Subject -> Finding`` as the answer to a question.

    ``cost`` is ``(least, weight)``, see :class:`~pindown.findings.deadline.Cost`; ``place`` orders the
    sentences of the opening paragraph. The function fills in everything but code and title. It may raise
    :class:`~pindown.findings.deadline.NotApplicable` or
    :class:`~pindown.findings.deadline.OutOfTime`.
    """

    def register(ask: Ask) -> Ask:
        if code in QUESTIONS:
            raise ValueError(f"the code {code} is taken by {QUESTIONS[code].title!r}; choose another.")
        QUESTIONS[code] = Question(code, title, group, needs, about, ask, Cost(*cost), place)
        return ask

    return register


def _has(subject: Subject, need: Need) -> bool:
    return {
        "data": subject.data is not None,
        "labels": subject.labelled is not None,
        "box": True,  # if need be a reference box
        "images": subject.images,
        "initial": subject.initial is not None,
        "relus": subject.net.size > 0,
    }[need]

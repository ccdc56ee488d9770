"""The questions an audit can ask, each one decorated function, and which of them were asked for."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Literal, TypeAlias

from pindown.compiling import time_limit
from pindown.deadline import Deadline, OutOfTime
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Status
from pindown.findings.question_budget import Cost, NotApplicable, TooLong
from pindown.findings.subject import Subject
from pindown.findings.wording import number_text
from pindown.io.evaluated import Evaluated

Group: TypeAlias = Literal["which", "why", "how far"]
Need: TypeAlias = Literal[
    "data", "labels", "box", "graph", "exact", "relus", "images", "initial", "test"
]
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
    "test": "no test data were given beside the data",
    "graph": "only its values are known",
    "exact": "{why_not_exact}",
    "initial": "the network before training was not given",
    "images": "the inputs are no images: their shape is {shape}",
}
# What the reader could give to get more answers.
_COULD_BE_GIVEN: tuple[Need, ...] = ("data", "labels")
_USUAL = Cost()


COULD_BE_GIVEN = frozenset(f"because {_MISSING[need]}" for need in _COULD_BE_GIVEN)


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
            reason = _reason(missing[0], subject)
            return self.without_answer("not applicable", f"because {reason}")
        if subject.turn.passed:
            return self.out_of_time(subject)
        try:
            with time_limit(Deadline.after(subject.turn.most / subject.turn.slowness)):
                finding = self.ask(subject)
            return replace(
                finding,
                code=self.code,
                title=self.title,
                hypotheses=(*finding.hypotheses, *self._assumed(subject)),
            )
        except NotApplicable as reason:
            return self.without_answer("not applicable", f"because {reason}")
        except OutOfTime as late:
            return self.out_of_time(subject, late if isinstance(late, TooLong) else None)
        except Exception as error:  # one broken question must not cost the reader the other answers
            return self._broken(error)

    def _assumed(self, subject: Subject) -> tuple[Assumption, ...]:
        """Return that a box was taken because none was given, if the answer is about it."""
        return (Assumption(subject.assumed),) if subject.assumed and "box" in self.needs else ()

    def out_of_time(self, subject: Subject, late: TooLong | None = None) -> Finding:
        """Return the finding that the budget did not suffice: used up, or too small for one step."""
        budget = subject.turn.budget
        if subject.turn.passed:
            why = f"because the budget of {budget} was used up"
        elif late is not None:
            why = (
                f"because it takes about {number_text(late.seconds)} s at least; of the budget of "
                f"{budget}, {number_text(late.left)} s were left for it"
            )
        else:
            why = f"because it takes longer than what was left of the budget of {budget}"
        return self.without_answer("not run", why)

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

    ``cost`` is ``(least, weight)``, see :class:`~pindown.findings.question_budget.Cost`; ``place``
    orders the sentences of the opening paragraph. The function fills in everything but code and title.
    It may raise :class:`~pindown.findings.question_budget.NotApplicable` or
    :class:`~pindown.deadline.OutOfTime`.
    """

    def register(ask: Ask) -> Ask:
        if code in QUESTIONS:
            raise ValueError(f"the code {code} is taken by {QUESTIONS[code].title!r}; choose another.")
        QUESTIONS[code] = Question(code, title, group, needs, about, ask, Cost(*cost), place)
        return ask

    return register


def _has(subject: Subject, need: Need) -> bool:
    match need:
        case "data":
            return subject.data is not None
        case "labels":
            return subject.labelled is not None
        case "test":
            return subject.test is not None
        case "images":
            return subject.images
        case "initial":
            return subject.before_training is not None
        case "graph":
            return not isinstance(subject.asked.given, Evaluated)
        case "exact":
            return not subject.asked.why_not_exact
        case "relus":
            return not subject.asked.why_not_exact and subject.net.size > 0
        case "box":
            return True  # if need be a reference box


def _reason(need: Need, subject: Subject) -> str:
    """Return why a question does not apply, in words that follow "because"."""
    if need == "relus" and subject.asked.why_not_exact:
        need = "exact"
    return _MISSING[need].format(
        shape=subject.values.input_shape, why_not_exact=subject.asked.why_not_exact
    )


def chosen_questions(
    catalogue: Sequence[Question], only: Iterable[str] | None, ignore: Iterable[str] | None
) -> list[Question]:
    """Return the questions named by ``only`` but not by ``ignore``, in the order of the catalogue.

    Args:
        catalogue: All questions.
        only: Codes such as "GEO-01", or families such as "GEO"; None for all.
        ignore: Likewise, of questions to leave out.

    Raises:
        ValueError: If a name is unknown or no question is left.
    """
    known = [question.code for question in catalogue]
    wanted = set(known) if only is None else _codes(only, "only", known)
    muted = set() if ignore is None else _codes(ignore, "ignore", known)
    chosen = [q for q in catalogue if q.code in wanted - muted]
    if not chosen:
        raise ValueError(f"only and ignore leave no question to ask; known are {_listed(known)}.")
    return chosen


def _codes(names: Iterable[str], option: str, known: list[str]) -> set[str]:
    """Return the codes that names stand for, in upper or lower case."""
    given = [names] if isinstance(names, str) else list(names)
    wrong = [name for name in given if not isinstance(name, str)]
    if wrong:
        raise ValueError(f"{option} takes codes of findings, as text; got {wrong[0]!r}.")
    codes: set[str] = set()
    unknown = []
    for name in given:
        word = name.strip().upper()
        matching = {code for code in known if word in (code, _family(code))}
        codes |= matching
        unknown += [] if matching else [name]
    if unknown:
        raise ValueError(
            f"{option} names unknown findings {', '.join(unknown)}; known are {_listed(known)}, "
            "or a family such as GEO."
        )
    return codes


def _family(code: str) -> str:
    return code.rpartition("-")[0]


def _listed(known: list[str]) -> str:
    """Return the codes by family.

    >>> _listed(["ARC-01", "GEO-01", "GEO-02", "GEO-03"])
    'ARC-01, GEO-01 to 03'
    """
    words = []
    for family, members in groupby(sorted(known), key=_family):
        numbers = [code.removeprefix(f"{family}-") for code in members]
        words.append(f"{family}-{numbers[0]}" + (f" to {numbers[-1]}" if len(numbers) > 1 else ""))
    return ", ".join(words)

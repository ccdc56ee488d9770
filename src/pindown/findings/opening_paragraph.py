"""The paragraph that opens a report: a few true sentences, the most important first.

It comes in :class:`Passage` s, so that a page can lead from each to the finding it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pindown.findings.catalogue import CATALOGUE
from pindown.findings.finding import Finding, Status
from pindown.findings.questions import COULD_BE_GIVEN
from pindown.findings.tuning import MAX_REASONS, MAX_SENTENCES
from pindown.findings.wording import count


class Passage(NamedTuple):
    """Words of the opening paragraph, and the code of the finding they come from; empty if of none."""

    words: str
    code: str = ""


class Reason(NamedTuple):
    """Findings without an answer that give the same reason.

    Attributes:
        text: The reason with the status before it, "not applicable, because no data were given".
        findings: Those that give it.
    """

    text: str
    findings: list[Finding]

    @property
    def status(self) -> Status:
        """What they have in common besides."""
        return self.findings[0].status

    @property
    def size(self) -> int:
        """How many findings give it."""
        return len(self.findings)

    @property
    def because(self) -> str:
        """The reason alone, "because no data were given"."""
        return self.text.removeprefix(f"{self.status}, ")

    @property
    def rank(self) -> tuple[bool, int]:
        """Where it comes: what failed first, then the commonest."""
        return self.status != "error", -len(self.findings)

    @property
    def codes(self) -> str:
        """The codes, with commas between."""
        return ", ".join(finding.code for finding in self.findings)


def grouped_reasons(findings: Sequence[Finding]) -> list[Reason]:
    """Group findings without an answer by the reason they give, in the order they come.

    >>> silent = [Finding(code, verdict="not run, because it rained", status="not run") for code in "AB"]
    >>> [(reason.because, reason.codes) for reason in grouped_reasons(silent)]
    [('because it rained', 'A, B')]
    """
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        if not finding.answered:
            groups.setdefault(finding.verdict, []).append(finding)
    return [Reason(text, members) for text, members in groups.items()]


def passages(
    findings: Sequence[Finding], *, interrupted: bool = False, first: str = "", box_name: str = ""
) -> list[Passage]:
    """Return what the findings say together, sentence by sentence.

    Args:
        findings: In any order; each question knows the place of its sentence.
        interrupted: Whether some questions were not asked because of Ctrl-C.
        first: What to put after the first sentence.
        box_name: The box in words, to be named once and then called "that box".
    """
    said = sorted((f for f in findings if f.answered and f.sentence and _place(f)), key=_place)
    told = [Passage(finding.sentence.strip(), finding.code) for finding in said]
    if first:
        told.insert(1 if told else 0, Passage(first))
    told = told[:MAX_SENTENCES]
    if interrupted:
        told.append(Passage("The audit was interrupted, so some questions were not asked."))
    failed = sum(f.status == "error" for f in findings)
    if failed:
        told.append(Passage(f"{count(failed, 'question')} failed by an error in pindown itself."))
    told.append(Passage(_silence(findings)))
    return _named_once([passage for passage in told if passage.words], box_name)


def paragraph(told: Sequence[Passage]) -> str:
    """Return the passages as one paragraph."""
    return " ".join(passage.words for passage in told)


def _named_once(told: list[Passage], box_name: str) -> list[Passage]:
    """Name the box where it first comes up.

    >>> bends, flat = Passage("On the given box it bends."), Passage("On the given box it is flat.")
    >>> paragraph(_named_once([bends, flat], "the given box"))
    'On the given box it bends. On that box it is flat.'
    """
    if not box_name:
        return told
    named, result = False, []
    for words, code in told:
        before, name, after = ("", "", words) if named else words.partition(box_name)
        named = named or bool(name)
        rest = after.replace(box_name, "that box") if named else after
        result.append(Passage(before + name + rest, code))
    return result


def _worth_telling(reason: Reason) -> bool:
    """Return whether the reader can do something about it: give more, or more time."""
    return reason.status != "not applicable" or reason.because in COULD_BE_GIVEN


def _place(finding: Finding) -> int:
    return next((question.place for question in CATALOGUE if question.code == finding.code), 0)


def _silence(findings: Sequence[Finding]) -> str:
    """Say how many questions have no answer, and the commonest reasons."""
    groups = sorted(grouped_reasons(findings), key=lambda reason: reason.rank)
    silent = sum(len(reason.findings) for reason in groups)
    if not silent:
        return ""
    if len(groups) == 1:
        told = groups[0].because
    else:
        told_of = [group for group in groups if _worth_telling(group)][:MAX_REASONS] or groups[:1]
        parts = [f"{len(group.findings)} {_in_one_breath(group.because)}" for group in told_of]
        rest = silent - sum(len(group.findings) for group in told_of)
        parts += [f"{rest} for other reasons"] if rest else []
        told = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    have = "has" if silent == 1 else "have"
    return f"{count(silent, 'question')} of {len(findings)} {have} no answer: {told}."


def _in_one_breath(because: str) -> str:
    """Return a reason as a part of a longer sentence.

    >>> _in_one_breath("because it takes 9 s; 2 s were left")
    'because it takes 9 s (2 s were left)'
    """
    reason, _, more = because.partition("; ")
    return f"{reason} ({more})" if more else reason

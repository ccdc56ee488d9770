"""Concerns: what a reader should do something about, by rules whose limits can be read and changed.

A :class:`Rule` looks at one number of one finding and compares it with a limit. Above it there is a
:class:`Concern`, below it something is fine. Rules are data; :data:`RULES` lists them by weight.
Limits are changed, or rules switched off, in ``pindown.toml`` or by ``audit(..., limits=...)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pindown.findings.finding import Finding, Quantity
from pindown.findings.wording import count, number_text, percent
from pindown.text import card
from pindown.validation import refuse

MAX_SHOWN = 3


@dataclass(frozen=True)
class Rule:
    """When to be concerned, and what to say then.

    Words may name facts in braces: ``{dead}`` as a number, ``{dead%}`` as a percentage,
    ``{leaked_count:row}`` as so many rows.

    Attributes:
        name: How ``pindown.toml`` and ``--fail-on concern:NAME`` call it.
        code: The finding it looks at.
        fact: Which of its numbers; it is a concern above the limit.
        limit: The limit by default; infinite if the rule is off unless asked for.
        meaning: What the limit is about, for the documentation.
        title: The concern in a few words, with its number.
        why: Why it matters.
        todo: What to do about it; ``{remedy}`` and ``{next}`` stand for the finding's.
        fine: What to say if all is well.
        shown: Which fact is the number of the concern, if another one.
        unit: Unit of the number; ``"%"`` shows a share.
        since: Where the default limit comes from.
        sharpens: The rule that it looks closer than: where that one finds nothing and this one does, its
            concern stands in the place of the good word.
    """

    name: str
    code: str
    fact: str
    limit: float
    meaning: str
    title: str
    why: str
    todo: str
    fine: str
    shown: str = ""
    unit: str = "%"
    since: str = ""
    sharpens: str = ""


@dataclass(frozen=True)
class Concern:
    """Something to do something about.

    Attributes:
        name: The rule's.
        title: What is the matter, with its number.
        code: The finding it comes from.
        number: The number behind it.
        value: What was compared with the limit; above it.
        limit: The limit.
        why: Why it matters.
        todo: What to do next.
    """

    name: str
    title: str
    code: str
    number: Quantity
    value: float
    limit: float
    why: str
    todo: str

    _repr_html_ = card

    def __str__(self) -> str:
        return f"{self.title} [{self.code}]\n  {self.why}\n  → {self.todo}"


RULES: tuple[Rule, ...] = (
    Rule(
        "leak", "DAT-01", "leaked", 0.01,
        "share of test rows that are also rows of the data",
        "{leaked%} of the test data are also rows of the data",
        "Accuracy on rows that training has seen says nothing about new ones.",
        "Take the {leaked_count:row} out of the test data (DAT-01 lists them) and audit again.",
        "no test row, or nearly none, is a row of the data",
        since="a percent of duplicates moves an accuracy by at most a point",
    ),
    Rule(
        "input-scaling", "DAT-03", "gain_surely", 0.03,
        "by how much another scaling of the inputs surely raises the accuracy, or the part that it "
        "takes away of a confidence many times too high",
        "the inputs are not scaled as the model expects: right on {given%} and {sure%} sure, after "
        "rescaling right on {scaled%} and {scaled_sure%} sure",
        "A model that is fed inputs of another scale than in training answers at random, or far too "
        "surely.",
        "Change the inputs before they enter the model: {remedy}.",
        "no usual rescaling of the inputs makes it right more often",
        shown="gain",
        since="no scaling helps a model that is used as trained",
    ),
    Rule(
        "input-range", "DAT-03", "outside", 0.2,
        "share of test inputs outside of the range of the data",
        "{outside%} of the test inputs lie outside of the range of the data",
        "The model was not made for such inputs: they were collected or scaled differently.",
        "Compare how both files were made; scale them alike and audit again.",
        "test inputs lie in the range of the data",
        since="of data drawn alike hardly any input leaves a range widened by a tenth",
    ),
    Rule(
        "guessing", "ACC-01", "guess_over", -0.001,
        "by how much guessing the most common class is right more often; negative: the model is better",
        "right on only {accuracy%}: always guessing the most common class is right on {guess%}",
        "A model that is no better than guessing has not learned, or gets the wrong inputs or labels.",
        "Check that labels are numbered and inputs ordered as in training (pindown audit "
        "--only DAT,ACC).",
        "it is better than guessing",
        shown="accuracy",
        since="guessing needs no model",
    ),
    Rule(
        "no-fit", "ACC-01", "unexplained", 0.999,
        "mean squared error, as a share of that of always answering the mean",
        "no better than always answering the mean: R² is {r2}",
        "A model that is no better than the mean has not learned, or gets the wrong inputs or targets.",
        "Check that inputs and targets are ordered and scaled as in training.",
        "it is better than always answering the mean",
        shown="r2", unit="",
        since="the mean needs no model",
    ),
    Rule(
        "label-noise", "DAT-02", "suspicious_surely", 0.02,
        "share of rows whose neighbours surely have another label",
        "{suspicious%} of the labels look wrong: {suspicious_count:row} that nearly no neighbour "
        "agrees with",
        "Wrong labels are learned by heart in training and make every accuracy too low or meaningless.",
        "Look at the rows that DAT-02 lists, correct their labels, and train or audit again.",
        "labels agree with those of their neighbours",
        shown="suspicious",
        since="clean data show none; a few percent are usual in public data sets",
    ),
    Rule(
        "overconfidence", "CAL-01", "overconfidence_surely", 0.03,
        "by how much the mean confidence exceeds the accuracy, if that is no chance",
        "overconfident: {confidence%} sure in the mean, right on {accuracy%}",
        "Whoever relies on its probabilities is wrong more often than they say.",
        "Divide the scores by {temperature} before the softmax (fitted on these rows; "
        "fit it on rows kept "
        "for that), or train with label smoothing.",
        "its confidence is not above its accuracy",
        shown="overconfidence",
        since="within three points a threshold on the confidence means about what it says",
    ),
    Rule(
        "understated-errors", "CAL-01", "times_wrong_surely", 5.0,
        "how many times as often as its confidence says it is wrong, if that is no chance; where the "
        "gap is no concern",
        "wrong {times_wrong} times as often as it says: {confidence%} sure in the mean, right on "
        "{accuracy%}",
        "Its mistakes are few, but nothing in its confidence shows them.",
        "Divide the scores by {temperature} before the softmax (fitted on these rows; fit it on rows "
        "kept for that), and see that inputs are scaled as in training.",
        "it is wrong about as often as it says",
        shown="times_wrong", unit="", sharpens="overconfidence",
        since="where it says one mistake in a hundred there are five",
    ),
    Rule(
        "overfitting", "ACC-01", "gap_surely", 0.05,
        "by how much accuracy on the data exceeds the upper end of that on the test data",
        "overfitted: right on {data%} of the data and on {accuracy%} of the test data",
        "What it learned by heart does not help with new rows.",
        "Train with more data, augmentation or weight decay, or stop earlier; compare by --baseline.",
        "it is about as right on test data as on the data",
        shown="accuracy",
        since="five points beyond chance",
    ),
    Rule(
        "robustness", "ROB-03", "turned_surely", 0.25,
        "share of right decisions surely turned by a change of 1% of the inputs' range",
        "{turned%} of its right decisions can be turned by a change of {share_of_range%} of the inputs' "
        "range",
        "Changes that nobody sees turn decisions; where inputs come from strangers, they will.",
        "Train with adversarial examples or noise{next}.",
        "most decisions withstand small changes of the inputs",
        shown="turned",
        since="a quarter of decisions at one percent of the range",
    ),
    Rule(
        "dead-units", "UNIT-01", "dead_on_many_rows", 0.25,
        "share of units that are never on for any row of the data",
        "{dead%} of the units ({dead_count} of {units}) are dead on the data",
        "They cost memory and time and do nothing on these rows.",
        "{shrink}",
        "few units are dead on the data",
        shown="dead",
        since="a quarter of the units is worth removing",
    ),
    Rule(
        "sure-of-noise", "OUT-03", "sure_of_noise", math.inf,
        "share of noise answered with 95% confidence or more",
        "{sure_of_noise%} of pure noise is answered with 95% confidence or more",
        "It does not notice inputs that mean nothing.",
        "Put an outlier detector before it: pindown detect fit; pindown detect score --fdr 0.05.",
        "it is not sure of noise",
        since="off by default: ReLU networks usually are; set a limit where inputs come unchecked",
    ),
    Rule(
        "confident-mistakes", "ACC-03", "confident_mistakes", math.inf,
        "share of rows wrong with 95% confidence or more",
        "{confident_mistakes%} of rows are wrong with 95% confidence or more",
        "No threshold on the confidence catches these.",
        "Look at the rows that ACC-03 lists.",
        "few mistakes are confident",
        since="off by default: overconfidence and label noise say the same with their cause",
    ),
)  # fmt: skip
NAMES = tuple(rule.name for rule in RULES)


class Judged(NamedTuple):
    """What rules say of findings.

    Attributes:
        concerns: Those above their limits, the weightiest first.
        fine: What could be checked and is well, in words, each with the code of its finding.
        open: Names of rules that could not be checked.
    """

    concerns: tuple[Concern, ...]
    fine: tuple[tuple[str, str], ...]
    open: tuple[str, ...]


def checked_limits(limits: Mapping[str, Any] | None, where: str = "limits") -> dict[str, float]:
    """Return the limit of every rule, those that were given in the place of the defaults.

    Args:
        limits: By the name of a rule: a number, or False to switch it off.
        where: What to call it in errors.

    Raises:
        ValueError: If a name is unknown or a limit no number.

    >>> checked_limits({"dead-units": 0.5})["dead-units"]
    0.5
    """
    made = {rule.name: rule.limit for rule in RULES}
    for name, value in (limits or {}).items():
        if name not in made:
            raise ValueError(f"{where} names an unknown concern {name!r}; known are {', '.join(NAMES)}.")
        if value is False:
            made[name] = math.inf
        elif isinstance(value, (int, float)) and value is not True and not math.isnan(value):
            made[name] = float(value)
        else:
            refuse(f"{where}: {name}", "a number, or false to switch it off", value)
    return made


def judged(findings: Sequence[Finding], limits: Mapping[str, float], shrink: str) -> Judged:
    """Apply all rules.

    Args:
        findings: What was found.
        limits: The limit of every rule.
        shrink: What to do about dead units, in words.
    """
    known = {finding.code: finding for finding in findings if finding.answered}
    by_name = {rule.name: rule for rule in RULES}
    classes = "unexplained" not in known["ACC-01"].facts if "ACC-01" in known else True
    concerns: list[Concern] = []
    fine: list[tuple[str, str]] = []
    unknown: list[str] = []
    for rule in RULES:
        limit, finding = limits[rule.name], known.get(rule.code)
        if math.isinf(limit) or rule.name == ("no-fit" if classes else "guessing"):
            continue
        if rule.sharpens and not _sharper(rule, finding, limit, concerns):
            continue
        if finding is None or rule.fact not in finding.facts:
            unknown.append(rule.name)
        elif finding.facts[rule.fact] > limit:
            concerns.append(_concern(rule, finding, limit, shrink))
            fine = [said for said in fine if not rule.sharpens or said[0] != by_name[rule.sharpens].fine]
        else:
            fine.append((rule.fine, rule.code))
    return Judged(tuple(concerns), tuple(fine), tuple(unknown))


def _sharper(rule: Rule, finding: Finding | None, limit: float, concerns: Sequence[Concern]) -> bool:
    """Return whether a rule that looks closer than another finds something, and the other did not."""
    found = finding is not None and finding.facts.get(rule.fact, -math.inf) > limit
    return found and all(concern.name != rule.sharpens for concern in concerns)


def _concern(rule: Rule, finding: Finding, limit: float, shrink: str) -> Concern:
    proved = f"; {finding.next} decides whether a row withstands all changes" if finding.next else ""
    words = {"remedy": finding.remedy, "shrink": shrink, "next": proved}
    for name, value in finding.facts.items():
        words |= {name: number_text(value), f"{name}%": percent(value)}
        if name.endswith("_count"):
            words |= {f"{name}:row": count(round(value), "row")}
    shown = finding.facts[rule.shown or rule.fact]
    kind = finding.number.kind if finding.number else "estimate"
    number = Quantity(shown, kind, rule.unit, label=rule.meaning)
    return Concern(
        rule.name,
        _filled(rule.title, words),
        rule.code,
        number,
        finding.facts[rule.fact],
        limit,
        rule.why,
        _filled(rule.todo, words),
    )


def _filled(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace("{" + name + "}", value)
    return text


def unchecked(judgement: Judged, findings: Sequence[Finding]) -> str:
    """Return what could not be checked and why, in a sentence; empty if there is nothing.

    >>> late = Finding("DAT-01", verdict="not run, because it is late", status="not run")
    >>> unchecked(Judged((), (), ("leak",)), [late])
    'Not checked: leak (it is late).'
    """
    said = {f.code: f.verdict.partition("because ")[2] for f in findings if not f.answered}
    asked = {f.code for f in findings}
    codes = {rule.name: rule.code for rule in RULES}
    reasons: dict[str, list[str]] = {}
    for name in judgement.open:
        unknown = "nothing to compare it with" if codes[name] in asked else "not asked"
        reasons.setdefault(said.get(codes[name]) or unknown, []).append(name)
    told = [f"{', '.join(names)} ({reason})" for reason, names in reasons.items()]
    return f"Not checked: {'; '.join(told)}." if told else ""


def verdict(judgement: Judged, findings: Sequence[Finding]) -> str:
    """Return the verdict in one sentence: what is the matter, or that nothing is.

    >>> verdict(Judged((), (), ("leak",)), [])
    'Nothing could be checked: give labelled rows with --data, and others that training did not see \
with --test.'
    """
    concerns, fine, unknown = judgement
    checks = len(concerns) + len(fine)
    if not checks:
        return (
            "Nothing could be checked: give labelled rows with --data, and others that training did not "
            "see with --test."
        )
    if concerns:
        first = concerns[0].title
        if len(concerns) == 1:
            return f"One concern: {first}."
        return f"{count(len(concerns), 'concern')} in {checks} checks; begin with this one: {first}."
    accuracy = next((f for f in findings if f.code == "ACC-01" and f.answered), None)
    right = "" if accuracy is None else f"; {accuracy.verdict}"
    rest = f" ({count(len(unknown), 'more check')} had nothing to go on)" if unknown else ""
    return f"No concern in {count(checks, 'check')}{rest}{right}."

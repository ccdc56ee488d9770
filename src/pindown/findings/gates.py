"""Gates: conditions on an audit under which a pipeline fails, alone or only if it got worse.

A condition is ``CODE<LIMIT`` or ``CODE>LIMIT`` on the number of a finding (also ``<=`` and ``>=``),
``CODE.FACT>LIMIT`` on another of its numbers, ``concern:NAME``, or ``concern`` for any.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from pindown.atomic_files import reason_of
from pindown.errors import DataFileError
from pindown.findings.catalogue import CATALOGUE
from pindown.findings.concerns import NAMES, RULES, Judged, Rule
from pindown.findings.finding import Finding
from pindown.findings.tuning import (
    NOISE_IN_STANDARD_ERRORS,
    NOISE_OF_A_SEARCH,
    SURE_IN_STANDARD_ERRORS,
)

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_NUMERIC = re.compile(r"([A-Z]+-\d+)(?:\.(\w+))?\s*(<=|>=|<|>)\s*(\S+)")
_MAX_BYTES = 2**28


class Reading(NamedTuple):
    """A number of an audit.

    Attributes:
        value: The number.
        error: Its standard error about all rows there could be, 0 if it has none.
        draw: What another seed or more time may change, as a standard error.
    """

    value: float
    error: float = 0.0
    draw: float = 0.0


class Readings(NamedTuple):
    """What gates look at.

    Attributes:
        numbers: By code, or by code and fact with a dot between.
        concerns: By name: by how much each was found, and its title.
        late: Codes of questions that the time did not suffice for.
        fingerprint: Fingerprint of the model, the data and the box; empty if that is not known.
    """

    numbers: Mapping[str, Reading]
    concerns: Mapping[str, tuple[float, str]]
    late: frozenset[str] = frozenset()
    fingerprint: str = ""


@dataclass(frozen=True)
class Condition:
    """Something that makes a pipeline fail.

    Attributes:
        text: As it was written.
        key: The number it is about, or the name of a concern; empty for any concern.
        sign: How the number is compared; empty for a concern.
        limit: With what.
    """

    text: str
    key: str
    sign: str = ""
    limit: float = math.nan


class Outcome(NamedTuple):
    """What became of a condition: empty words if it is not met, and what could not be compared."""

    condition: Condition
    words: str
    note: str = ""


def parse_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ValueError: If it is none, or names what does not exist.

    >>> parse_condition("ACC-01<0.95")
    Condition(text='ACC-01<0.95', key='ACC-01', sign='<', limit=0.95)
    """
    word = text.strip()
    if word == "concern":
        return Condition(word, "")
    if word.startswith("concern:"):
        name = word.removeprefix("concern:")
        if name not in NAMES:
            raise ValueError(
                f"--fail-on names an unknown concern {name!r}; known are {', '.join(NAMES)}."
            )
        return Condition(word, name)
    found = _NUMERIC.fullmatch(word)
    if found is None:
        raise ValueError(
            f'--fail-on takes "ACC-01<0.95", "CAL-01.overconfidence>0.1", "concern:robustness" or '
            f'"concern"; got {text!r}.'
        )
    code, fact, sign, limit = found.groups()
    if code not in {question.code for question in CATALOGUE}:
        raise ValueError(f"--fail-on names an unknown finding {code}; docs/findings.md lists them.")
    try:
        value = float(limit.removesuffix("%")) / (100.0 if limit.endswith("%") else 1.0)
    except ValueError:
        raise ValueError(f"--fail-on compares with a number; got {limit!r} in {text!r}.") from None
    if not math.isfinite(value):
        raise ValueError(f"--fail-on compares with a finite number; got {limit!r} in {text!r}.")
    return Condition(word, f"{code}.{fact}" if fact else code, sign, value)


def readings(findings: Sequence[Finding], judgement: Judged, fingerprint: str = "") -> Readings:
    """Return what gates look at in an audit."""
    numbers: dict[str, Reading] = {}
    for f in findings:
        if f.answered:
            number = None if f.number is None else asdict(f.number)
            numbers |= _numbers(f.code, number, f.facts, f.noise)
    late = frozenset(f.code for f in findings if f.status == "not run")
    found = {c.name: (c.value, c.title) for c in judgement.concerns}
    return Readings(numbers, found, late, fingerprint)


def _numbers(
    code: str, number: Mapping[str, Any] | None, facts: Mapping[str, Any], noise: Mapping[str, Any]
) -> dict[str, Reading]:
    """Return the numbers of a finding, by code and by code and fact."""
    number = number or {}
    error = float(number.get("standard_error") or 0.0)
    # A bound is as good as the search was long; so is an estimate that names no error.
    loose = NOISE_OF_A_SEARCH if number.get("bound") or number.get("kind") == "estimate" else 0.0
    read: dict[str, Reading] = {}
    for name, value in {"": number.get("value"), **facts}.items():
        if value is not None:
            draw = noise.get(name, noise.get("", error or loose * abs(float(value))))
            own = Reading(float(value), max(error, float(draw)), float(draw))
            read[f"{code}.{name}" if name else code] = own
    return read


def load_readings(path: str | PathLike[str]) -> Readings:
    """Return what gates look at in an audit that was written as JSON.

    Raises:
        DataFileError: If the file is missing, no audit, or too large.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise DataFileError(f"{file}: the file is too large for an audit.")
        content = json.loads(file.read_text("utf-8"))
        return _read(content)
    except OSError as error:
        raise DataFileError(f"{file}: {reason_of(error)}.") from None
    except (KeyError, TypeError, AttributeError, RecursionError, ValueError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(
            f"{file}: this is no audit with concerns; write one with pindown audit MODEL --json FILE."
        ) from None


def _read(content: Any) -> Readings:
    numbers: dict[str, Reading] = {}
    for f in content["findings"]:
        numbers |= _numbers(f["code"], f["number"], f["facts"], f.get("noise", {}))
    found = {
        entry["name"]: (float(entry["value"]), str(entry["title"])) for entry in content["concerns"]
    }
    late = frozenset(f["code"] for f in content["findings"] if f["status"] == "not run")
    return Readings(numbers, found, late, str(content.get("fingerprint", "")))


def outcomes(
    now: Readings, conditions: Sequence[Condition], baseline: Readings | None = None
) -> list[Outcome]:
    """Return what became of conditions; with a baseline only what got worse since is a failure.

    A number that is not known fails: nothing says that the condition is not met. Beside a baseline it
    does not if it was not known there either, or if only the time did not suffice. Of one model asked
    about the same data nothing got worse, whatever the time or another draw of rows made of it.
    """
    same = baseline is not None and bool(now.fingerprint) and now.fingerprint == baseline.fingerprint
    if same:
        return [Outcome(condition, "", _SAME) for condition in conditions]
    return [_judge(condition, now, baseline) for condition in conditions]


_SAME = "model and data are those of the baseline: nothing got worse"


def _judge(condition: Condition, now: Readings, baseline: Readings | None) -> Outcome:
    if condition.sign:
        return _judge_number(condition, now, baseline)
    names = [condition.key] if condition.key else list(now.concerns)
    found = [name for name in names if name in now.concerns]
    told, late = [], []
    for name in found:
        rule = next(rule for rule in RULES if rule.name == name)
        if baseline is None or not _no_worse(rule, now, baseline):
            told.append(now.concerns[name][1])
        elif rule.code in baseline.late:
            late.append(f"{now.concerns[name][1]} (the baseline had no time for {rule.code})")
    return Outcome(condition, "; ".join(told), "; ".join(late))


def _no_worse(rule: Rule, now: Readings, before: Readings) -> bool:
    """Return whether a concern has not grown, as far as can be told; there may have been no time."""
    if rule.code in before.late:
        return True
    keys = dict.fromkeys([f"{rule.code}.{rule.fact}", f"{rule.code}.{rule.shown or rule.fact}"])
    pairs = [(now.numbers[key], before.numbers.get(key)) for key in keys if key in now.numbers]
    if not pairs:  # numbers were not kept
        old = before.concerns.get(rule.name, (-math.inf, ""))[0]
        return now.concerns[rule.name][0] <= old + 1e-9 * (1.0 + abs(old))
    return any(old is not None and new.value - old.value <= _drawn(new, old) for new, old in pairs)


def _drawn(new: Reading, old: Reading) -> float:
    """Return by how much two answers about one model and the same rows may differ."""
    rounding = 1e-9 * (1.0 + abs(old.value))
    return SURE_IN_STANDARD_ERRORS * math.hypot(new.draw, old.draw) + rounding


def _judge_number(condition: Condition, now: Readings, baseline: Readings | None) -> Outcome:
    key, code = condition.key, condition.key.partition(".")[0]
    reading = now.numbers.get(key)
    old = None if baseline is None else baseline.numbers.get(key)
    if reading is None:
        if baseline is not None and (old is None or code in now.late):
            why = "no time was left" if code in now.late else "it has no answer, as in the baseline"
            return Outcome(condition, "", f"{key} was not compared: {why}")
        return Outcome(
            condition, f"{key} has no answer, so nothing says that it is not {condition.text}"
        )
    met = _COMPARISONS[condition.sign]
    if not met(reading.value, condition.limit):
        return Outcome(condition, "")
    if baseline is not None and old is None and code in baseline.late:
        note = f"{key} is {reading.value:.6g} and was not compared: the baseline had no time for it"
        return Outcome(condition, "", note)
    if old is None:
        return Outcome(condition, f"{key} is {reading.value:.6g} ({condition.text})")
    lower = "<" in condition.sign
    worse = old.value - reading.value if lower else reading.value - old.value
    noise = NOISE_IN_STANDARD_ERRORS * math.hypot(reading.error, old.error)
    so_before = met(old.value, condition.limit)
    if worse <= max(_drawn(reading, old), noise if so_before else 0.0):
        return Outcome(condition, "")
    return Outcome(condition, f"{key} is {reading.value:.6g} and was {old.value:.6g} ({condition.text})")

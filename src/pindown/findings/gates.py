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
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from pindown.atomic_files import reason_of
from pindown.errors import DataFileError
from pindown.findings.catalogue import CATALOGUE
from pindown.findings.concerns import NAMES, Judged
from pindown.findings.finding import Finding
from pindown.findings.tuning import NOISE_IN_STANDARD_ERRORS

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_NUMERIC = re.compile(r"([A-Z]+-\d+)(?:\.(\w+))?\s*(<=|>=|<|>)\s*(\S+)")
_MAX_BYTES = 2**28


class Reading(NamedTuple):
    """A number of an audit and its standard error, 0 if it has none."""

    value: float
    error: float = 0.0


class Readings(NamedTuple):
    """What gates look at.

    Attributes:
        numbers: By code, or by code and fact with a dot between.
        concerns: By name: by how much each was found, and its title.
    """

    numbers: Mapping[str, Reading]
    concerns: Mapping[str, tuple[float, str]]


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
    """What became of a condition: empty words if it is not met."""

    condition: Condition
    words: str


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


def readings(findings: Sequence[Finding], judgement: Judged) -> Readings:
    """Return what gates look at in an audit."""
    numbers: dict[str, Reading] = {}
    for finding in findings:
        if not finding.answered:
            continue
        error = (finding.number.standard_error or 0.0) if finding.number else 0.0
        if finding.number is not None:
            numbers[finding.code] = Reading(finding.number.value, error)
        numbers |= {f"{finding.code}.{name}": Reading(v, error) for name, v in finding.facts.items()}
    return Readings(numbers, {c.name: (c.value, c.title) for c in judgement.concerns})


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
            f"{file}: this is no audit with concerns; write one with pindown audit --json {file.name}."
        ) from None


def _read(content: Any) -> Readings:
    numbers: dict[str, Reading] = {}
    for finding in content["findings"]:
        code, number = finding["code"], finding["number"] or {}
        error = float(number.get("standard_error") or 0.0)
        if number.get("value") is not None:
            numbers[code] = Reading(float(number["value"]), error)
        for name, value in finding["facts"].items():
            if value is not None:
                numbers[f"{code}.{name}"] = Reading(float(value), error)
    found = {
        entry["name"]: (float(entry["value"]), str(entry["title"])) for entry in content["concerns"]
    }
    return Readings(numbers, found)


def outcomes(
    now: Readings, conditions: Sequence[Condition], baseline: Readings | None = None
) -> list[Outcome]:
    """Return what became of conditions; with a baseline only what got worse since is a failure.

    A number that is not known fails: nothing says that the condition is not met.
    """
    return [Outcome(condition, _judge(condition, now, baseline)) for condition in conditions]


def _judge(condition: Condition, now: Readings, baseline: Readings | None) -> str:
    if condition.sign:
        return _judge_number(condition, now, baseline)
    names = [condition.key] if condition.key else list(now.concerns)
    told = [
        now.concerns[name][1]
        for name in names
        if name in now.concerns and not (baseline and _no_worse(name, now, baseline))
    ]
    return "; ".join(told)


def _no_worse(name: str, now: Readings, before: Readings) -> bool:
    """Return whether a concern was there before and has not grown."""
    if name not in before.concerns:
        return False
    old = before.concerns[name][0]
    return now.concerns[name][0] <= old + 1e-9 * (1.0 + abs(old))


def _judge_number(condition: Condition, now: Readings, baseline: Readings | None) -> str:
    reading = now.numbers.get(condition.key)
    if reading is None:
        return f"{condition.key} has no answer, so nothing says that it is not {condition.text}"
    met = _COMPARISONS[condition.sign](reading.value, condition.limit)
    if not met:
        return ""
    old = None if baseline is None else baseline.numbers.get(condition.key)
    if old is not None:
        noise = NOISE_IN_STANDARD_ERRORS * math.hypot(reading.error, old.error)
        noise += 1e-9 * (1.0 + abs(old.value))
        lower = "<" in condition.sign
        worse = old.value - reading.value if lower else reading.value - old.value
        if worse <= noise and _COMPARISONS[condition.sign](old.value, condition.limit):
            return ""
        return f"{condition.key} is {reading.value:.6g} and was {old.value:.6g} ({condition.text})"
    return f"{condition.key} is {reading.value:.6g} ({condition.text})"

"""Questions put to the library as source text, so that each false answer can be had again."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from re import search, sub
from signal import ITIMER_PROF, SIGPROF, setitimer, signal
from typing import Any

import numpy as np
import scipy.sparse as sp

import pindown
from pindown import deadline, equivalence, geometry, guarantees, relaxation, verification
from pindown.equivalence.comparison import _branching as branching
from pindown.equivalence.comparison import _cells as cells
from pindown.equivalence.comparison import _integer_programs as integer_programs
from pindown.equivalence.comparison import _labels as labels
from pindown.geometry.complex import counting
from pindown.relaxation import difference_network as difference_norms
from pindown.relaxation import differential, linear
from pindown.relaxation import lp_balls as balls
from pindown.verification import Property, UnsafeSet
from tests.soundness import searches
from tests.soundness.cases import Case

_LONGEST = 60.0  # seconds after which a question counts as hanging
_GRACE = 3.0  # seconds by which a budget may be exceeded
_PACKAGE = str(Path(pindown.__file__).parent)
_IMPORTS = {
    "pindown": (pindown, "ReluNetwork diff shrink canonical"),
    "pindown.deadline": (deadline, "Deadline"),
    "pindown.geometry": (geometry, "Box interval_bounds output_range lipschitz_constant"),
    "pindown.geometry.complex.counting": (counting, "region_count"),
    "pindown.relaxation.linear": (linear, "linear_bounds"),
    "pindown.equivalence": (equivalence, "decide_shallow"),
    "pindown.equivalence.comparison._branching": (branching, "gap_by_branching"),
    "pindown.equivalence.comparison._cells": (cells, "gap_by_cells"),
    "pindown.equivalence.comparison._labels": (labels, "label_bounds"),
    "pindown.equivalence.comparison._integer_programs": (integer_programs, "gap_by_milp"),
    "pindown.relaxation.difference_network": (difference_norms, "norm_gap"),
    "pindown.relaxation.differential": (differential, "gap_bounds"),
    "pindown.guarantees": (
        guarantees,
        "certified_accuracy lipschitz_bounds minimum_distance",
    ),
    "pindown.verification": (verification, "Property UnsafeSet certified certified_radii verify"),
    "pindown.relaxation": (relaxation, "bounds"),
    "tests.soundness.searches": (searches, "ball_bounds cut_boxes deduce forward_bounds split_units"),
    "pindown.relaxation.lp_balls": (balls, "Balls"),
}


class Refused(Exception):  # noqa: N818 - not an error of the attack
    """The library declined a question, or failed on it; what happened is recorded."""


@dataclass
class Tally:
    """What became of one kind of question."""

    asked: int = 0
    claims: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    refusals: set[str] = field(default_factory=set)
    seconds: float = 0.0
    slowest: float = 0.0

    def add(self, other: Tally) -> None:
        """Take over the counts of another."""
        self.asked, self.claims = self.asked + other.asked, self.claims + other.claims
        self.refused += other.refused
        self.failures += other.failures
        self.errors += other.errors
        self.refusals |= other.refusals
        self.seconds += other.seconds
        self.slowest = max(self.slowest, other.slowest)


@dataclass
class Session:
    """Everything asked about one case."""

    case: Case
    tallies: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    check: str = ""
    source: str = ""
    caught: bool = False
    names: dict[str, Any] = field(default_factory=dict)

    def ask(self, source: str, *, budget: float = 0.0, **names: Any) -> Any:
        """Evaluate a call of the library; ``net``, ``other``, ``box`` and ``x`` are those of the case.

        Raises:
            Refused: If the library raises something.
        """
        case, tally = self.case, self.tallies[self.check]
        self.source, self.caught = source, False
        self.names = {"net": case.net, "other": case.other, "box": case.box, "x": case.x, **names}
        tally.asked += 1
        began = time.thread_time()
        try:
            with warnings.catch_warnings(record=True) as met, _alarm():
                warnings.simplefilter("always", RuntimeWarning)
                answer = eval(source, _namespace() | self.names)
        except Exception as error:
            self._declined(tally, error)
            raise Refused from None
        finally:
            seconds = time.thread_time() - began
            tally.seconds += seconds
            tally.slowest = max(tally.slowest, seconds)
        if met:
            tally.errors.append(
                self.snippet(f"warns at {_place(met[0].filename, met[0].lineno)}: {met[0].message}")
            )
        if seconds > budget + _GRACE:
            tally.errors.append(self.snippet(f"takes {seconds:.1f} s, its budget is {budget} s"))
        return answer

    def claim(self, holds: Any, what: str, *values: Any) -> None:
        """Count a statement about the last answer; record it if it is false."""
        tally = self.tallies[self.check]
        tally.claims += 1
        if not holds and not self.caught:
            self.caught = True  # of one answer the first is enough
            tally.failures.append(self.snippet(what.format(*map(shown, values))))

    def snippet(self, what: str) -> str:
        """Return the last question as a program, and what is wrong with its answer."""
        case = self.case
        used = {name: written(value) for name, value in self.names.items() if _names(name, self.source)}
        text = " ".join([*used.values(), self.source])
        lines = [f"# {self.check}; family {case.family}, seed {case.seed}, case {case.index}: {what}"]
        lines += ["import numpy as np"] if "np." in text else []
        for module, (_, names) in _IMPORTS.items():
            wanted = [name for name in names.split() if _names(name, text)]
            lines += [f"from {module} import {', '.join(wanted)}"] if wanted else []
        lines += [f"{name} = {value}" for name, value in used.items()]
        return "\n".join([*lines, f"print({self.source})"])

    def _declined(self, tally: Tally, error: Exception) -> None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        ours = frame.filename.startswith(_PACKAGE)
        if isinstance(error, (ValueError, TypeError)) and ours and str(error).strip():
            tally.refused += 1
            tally.refusals.add(sub(r"-?\d[\d.]*(e[+-]?\d+)?", "#", str(error)))
        else:
            place = _place(frame.filename, frame.lineno)
            tally.errors.append(self.snippet(f"{type(error).__name__} at {place}: {str(error)[:200]}"))


def _namespace() -> dict[str, Any]:
    found = {
        name: getattr(module, name) for module, names in _IMPORTS.values() for name in names.split()
    }
    return {"np": np, "time": time, **found}


def _names(name: str, text: str) -> bool:
    return search(rf"\b{name}\b(?!=)", text) is not None  # not an argument's name


def _place(path: str, line: int | None) -> str:
    return f"{Path(path).parent.name}/{Path(path).name}:{line}"


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise TimeoutError(f"no answer after {_LONGEST:g} s")

    before = signal(SIGPROF, ring)
    setitimer(ITIMER_PROF, _LONGEST)  # of the processor: others may be using it
    try:
        yield
    finally:
        setitimer(ITIMER_PROF, 0.0)
        signal(SIGPROF, before)


def written(value: Any) -> str:
    """Return an argument as source text that gives it back exactly."""
    if type(value).__name__ == "ReluNetwork":
        layers = [((W.toarray() if sp.issparse(W) else W).tolist(), b.tolist()) for W, b in value.layers]
        return f"ReluNetwork.from_layers({layers!r})"
    if type(value).__name__ == "Box":
        return f"Box({value.lower.tolist()!r}, {value.upper.tolist()!r})"
    if isinstance(value, (Property, UnsafeSet)):
        given = ((part.name, getattr(value, part.name)) for part in fields(value))
        parts = [f"{name}={written(part)}" for name, part in given if part is not None]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, tuple):
        return f"({''.join(written(part) + ', ' for part in value)})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})"
    return repr(value)


def shown(value: Any) -> str:
    """Return a number to read."""
    if not isinstance(value, Fraction):
        return str(value)
    try:
        return f"{float(value)!r}"
    except OverflowError:
        return f"about 2**{value.numerator.bit_length() - value.denominator.bit_length()}"

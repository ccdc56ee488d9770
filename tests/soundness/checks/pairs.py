"""Two networks: the proved interval holds their gap."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pindown.equivalence import Diff
from tests.soundness.cases import Case
from tests.soundness.rational_line import ExactNetwork, Line, along, rationals
from tests.soundness.session import Session
from tests.soundness.truth import (
    difference,
    disagreement_on,
    gap_on,
    inside,
    lines_in,
    nearest_float,
    root_down,
    size,
)


def _lines(case: Case, second: ExactNetwork, cut: bool) -> list[tuple[Line, Line]]:
    """Return both networks on the same lines: in the box, or without ends through 0."""
    if cut:
        theirs = lines_in(second, case.x, case.box, case.ways)
        return list(zip(case.lines, theirs, strict=True))
    start = np.zeros(case.d)
    return [(along(case.exact, start, v), along(second, start, v)) for v in case.ways]


def _largest_gap(case: Case, second: ExactNetwork, cut: bool) -> Fraction:
    return max(gap_on(a, b, relative=not cut) for a, b in _lines(case, second, cut))


def _gap_at(case: Case, second: ExactNetwork, x: np.ndarray, cut: bool) -> Fraction:
    """Return the gap at a point from above; without a box relative to ``1 + |x|``."""
    gap = max(abs(v) for v in difference(case.exact(x), second(x)))
    return gap if cut else gap / (1 + root_down(size(rationals(x), "l2")))


def _judge(session: Session, found: Diff, second: ExactNetwork, true: Fraction, cut: bool) -> None:
    case = session.case
    session.claim(found.gap_upper >= true, "the gap is {}, above {}", true, found.gap_upper)
    if case.d == 1:
        session.claim(found.gap_lower <= true, "the gap is {} at most, below {}", true, found.gap_lower)
    if found.witness is not None:
        there = _gap_at(case, second, found.witness, cut)
        session.claim(
            found.gap_lower <= there, "at the witness the gap is {}, below {}", there, found.gap_lower
        )
        session.claim(
            inside(rationals(found.witness), case.box if cut else None),
            "the witness lies outside the box",
        )
    if found.verdict == "same":
        session.claim(true <= found.allowed, "the gap is {}, said to be at most {}", true, found.allowed)
    if found.verdict == "different" and case.d == 1:
        session.claim(true > found.allowed, "the gap is {}, said to be above {}", true, found.allowed)


def diff(session: Session) -> None:
    """The gap lies between both ends; verdicts follow, with the tolerance at the gap itself."""
    case, rng = session.case, session.case.rng(12)
    cut = bool(rng.random() < 0.6)
    true = _largest_gap(case, case.exact_other, cut)
    tol = float(rng.choice([0.0, 1e-5, 1.0, 1e10, *[nearest_float(true)] * 2]))
    if rng.random() < 0.5:
        tol = float(np.nextafter(tol, 0.0))
    rtol = float(rng.choice([0.0, 0.0, 1e-5]))
    budget = 1.0 if case.turn % 4 == 0 else 0.2
    labels = 0.0 if case.net.out_features > 1 and rng.random() < 0.4 else None
    how = f"{'box=box, ' if cut else ''}tol={tol!r}, rtol={rtol}, labels={labels}, budget={budget}"
    found = session.ask(f"diff(net, other, {how})", budget=budget)
    _judge(session, found, case.exact_other, true, cut)
    if labels is not None and cut:
        told = found.labels
        most = max(disagreement_on(a, b) for a, b in _lines(case, case.exact_other, cut))
        session.claim(told.upper >= most, "they disagree by {}, above {}", most, told.upper)
        session.claim(
            case.d > 1 or told.lower <= most, "they disagree by {}, below {}", most, told.lower
        )
        session.claim(told.verdict != "same" or most <= told.margin, "labels differ by {}", most)


# Each way to bound a gap, by itself: what it says on the box, from below and above.
_METHODS = (
    "gap_by_cells(net, other, box, budget=2.0)",
    "gap_by_milp(net, other, box, budget=2.0)",
    "[*gap_by_branching(net, other, box, precision=1e-3, deadline=Deadline.after(0.3))][-1:]",
    "gap_bounds(net, other, box.lower[None], box.upper[None])[0]",
    "label_bounds(net, other, box.lower[None], box.upper[None])[0]",
    "decide_shallow(net, other, box, budget=0.1)",
    "decide_shallow(net, other, budget=0.1)",
    "norm_gap(net, other)",
)


def gap_methods(session: Session) -> None:
    """So does each method by itself that ``diff`` may come to; for all but cells any box will do."""
    case = session.case
    source = _METHODS[case.turn % len(_METHODS)]
    labels, cut = "label" in source, "box" in source
    if (labels and case.net.out_features < 2) or ("shallow" in source and case.deepest > 2):
        return
    told = session.ask(source, budget=2.0)
    for found in told if isinstance(told, list | np.ndarray) else [told]:
        lower, upper = (
            getattr(found, end, default) for end, default in (("lower", 0.0), ("upper", found))
        )
        both = _lines(case, case.exact_other, cut)
        true = max(disagreement_on(a, b) if labels else gap_on(a, b, relative=not cut) for a, b in both)
        session.claim(upper >= true, "the gap is {}, above {}", true, upper)
        session.claim(case.d > 1 or lower <= true, "the gap is {} at most, below {}", true, lower)
        if getattr(found, "equal", None) is not None:
            session.claim(
                found.equal == (true == 0) or (case.d > 1 and true == 0),
                "equal: {}, but the gap is {}",
                found.equal,
                true,
            )


def shrink(session: Session) -> None:
    """A smaller network is as near as it says, and ``diff`` agrees."""
    case, rng = session.case, session.case.rng(13)
    cut, tol = bool(rng.random() < 0.6), float(rng.choice([0.0, 0.0, 1e-3]))
    box = "box=box, " if cut else ""
    found = session.ask(f"shrink(net, {box}tol={tol}, budget=0.5)", budget=0.5)
    small = ExactNetwork(found.network)
    true = _largest_gap(case, small, cut)
    session.claim(found.gap_upper >= true, "the gap is {}, above {}", true, found.gap_upper)
    answer = session.ask(f"diff(net, small, {box}budget=0.3)", budget=0.3, small=found.network)
    _judge(session, answer, small, true, cut)


def canonical(session: Session) -> None:
    """``diff`` encloses the gap of a network and its canonical form; every other case is asked."""
    case = session.case
    if case.turn % 2 == 0:
        return
    cut = bool(case.rng(14).random() < 0.6)
    copy = session.ask(f"canonical(net, {['unit', 'balanced'][case.turn // 2 % 2]!r})")
    second = ExactNetwork(copy)
    answer = session.ask(
        f"diff(net, copy, {'box=box, ' if cut else ''}budget=0.3)", budget=0.3, copy=copy
    )
    _judge(session, answer, second, _largest_gap(case, second, cut), cut)

"""Properties of networks on boxes: what is said to hold is violated nowhere, what violates it does."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from pindown.box import Box
from pindown.verification.properties import Property, UnsafeSet
from tests.soundness.rational_line import Line, rationals
from tests.soundness.reaching import contains, deepest, excesses, reached, side_by_side
from tests.soundness.session import Session
from tests.soundness.truth import form_range, lines_in, nearest_float

_SHARES = (0.0, 0.0, 0.0, 1e-15, 1e-6, 0.1, -1e-15, -1e-6)


def model_bounds(session: Session) -> None:
    """Bounds of the graph hold by every method, also on forms of the outputs."""
    case, rng = session.case, session.case.rng(20)
    k = case.net.out_features
    rows = np.array([np.eye(k)[0], rng.normal(size=k), rng.integers(-1, 2, k)])
    methods = ("interval", "linear", "optimised")
    for method in methods if case.turn % 3 == 0 else (methods[case.turn % 3],):
        found = session.ask(
            f"bounds(net, box.lower, box.upper, rows, method={method!r})", rows=rows, budget=5.0
        )
        for row, low, high in zip(rows, *found, strict=True):
            least, most = form_range(case.lines, row)
            session.claim(low <= least, "{}: a form is {}, below {}", method, least, low)
            session.claim(high >= most, "{}: a form is {}, above {}", method, most, high)


def verify(session: Session) -> None:
    """Unions of unsafe sets, on several boxes, with forms of the inputs and strict rows."""
    case, rng = session.case, session.case.rng(10)
    sets = [_unsafe(session, rng, case.net.out_features) for _ in range(rng.choice([1, 1, 2, 3]))]
    prop = Property(tuple(one for one, _ in sets), (case.d,), (case.net.out_features,))
    _verified(session, "verify(net, prop, budget=0.2)", prop, [lines for _, lines in sets])


def verify_pairs(session: Session) -> None:
    """The same about two networks side by side, on the same inputs."""
    case, rng = session.case, session.case.rng(21)
    k = case.net.out_features
    sets = [_unsafe(session, rng, k, pair=True) for _ in range(rng.choice([1, 2]))]
    own = np.arange(case.d)
    prop = Property(tuple(one for one, _ in sets), (case.d,) * 2, (k,) * 2, (own, own), (0, 1))
    _verified(session, "verify((net, other), prop, budget=0.2)", prop, [lines for _, lines in sets])


def _verified(session: Session, call: str, prop: Property, lines: list[list[Line]]) -> None:
    found = session.ask(call, budget=0.2, prop=prop)
    if found.verdict == "holds":
        for unsafe, known in zip(prop.unsafe, lines, strict=True):
            session.claim(not reached(known, unsafe), "said to hold, but an input violates it")
    elif found.verdict == "violated":
        case, x = session.case, rationals(found.witness)
        y = case.exact(x) + (case.exact_other(x) if prop.models else [])
        inside = prop.unsafe[found.example.index].inside
        session.claim(contains(inside, x, y), "the witness is none: {}", max(excesses(inside, x, y)))


def split_units(session: Session) -> None:
    """Splitting ReLUs alone proves nothing that is false, and no bound is too low."""
    rng = session.case.rng(22)
    unsafe, lines = _unsafe(session, rng, session.case.net.out_features)
    rounds, steps = rng.choice([1, 3, 12]), rng.choice([0, 8])
    _searched(session, f"split_units(net, unsafe, {rounds}, steps={steps})", unsafe, lines)


def cut_boxes(session: Session) -> None:
    """Cutting boxes alone proves nothing that is false, and no bound is too low."""
    rng = session.case.rng(23)
    unsafe, lines = _unsafe(session, rng, session.case.net.out_features)
    _searched(session, f"cut_boxes(net, unsafe, {rng.choice([1, 3, 9])})", unsafe, lines)


def deduce(session: Session) -> None:
    """Cutting and concluding proves nothing that is false."""
    rng = session.case.rng(25)
    unsafe, lines = _unsafe(session, rng, session.case.net.out_features)
    _searched(session, f"deduce(net, unsafe, {rng.choice([1, 5, 20])})", unsafe, lines)


def _searched(session: Session, call: str, unsafe: UnsafeSet, lines: list[Line]) -> None:
    found = session.ask(call, budget=10.0, unsafe=unsafe)
    if found.proved:
        session.claim(
            not reached(lines, replace(unsafe, strict=None)), "said to be out of reach, but is not"
        )
    for line in lines:
        least = deepest(line, unsafe)
        held = least < 0 or least <= found.bound
        session.claim(held, "the rows are {} inside, above {}", least, found.bound)


# ---------------------------------------------------------------------- unsafe sets


def _unsafe(
    session: Session, rng: np.random.Generator, k: int, *, pair: bool = False
) -> tuple[UnsafeSet, list[Line]]:
    """Draw an unsafe set that is just reached or just not; return it with lines of the network in it."""
    case = session.case
    lower, upper = _corners(rng, case.box.lower, case.box.upper, case.x)
    box = Box(lower, upper)
    lines = lines_in(case.exact, case.x, box, case.ways)
    if pair:
        others = lines_in(case.exact_other, case.x, box, case.ways)
        lines = [side_by_side(a, b) for a, b in zip(lines, others, strict=True)]
    q = int(rng.integers(1, 4))
    rows = rng.choice([-1.0, 0.0, 1.0, 1.0, 0.3], (q, k * (1 + pair)))
    if pair and rng.random() < 0.5:  # differences of the two
        rows[:, k:] = -rows[:, :k]
    input_rows = None
    if rng.random() < 0.3:
        input_rows = rng.choice([-1.0, 0.0, 1.0, 0.7], (q, case.d)) * rng.choice([0.0, 1.0, 1e-3])
    if rng.random() < 0.1:
        rows *= 10.0 ** rng.uniform(-320, 10)
    strict = rng.random(q) < 0.5 if rng.random() < 0.5 else None
    unsafe = UnsafeSet(lower, upper, rows, np.zeros(q), input_rows, strict)
    limits = np.array([_limit(rng, lines, unsafe, i) for i in range(q)])
    unsafe = replace(unsafe, limits=limits)
    if rng.random() < 0.2:
        low = np.nextafter(limits, -inf)
        unsafe = replace(unsafe, inner=UnsafeSet(lower, upper, rows, low, input_rows, strict))
    return unsafe, lines


def _corners(
    rng: np.random.Generator, lower: np.ndarray, upper: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the box, or what of it is on one side of a point in some coordinates, or the point."""
    kind = rng.integers(8)
    if kind == 0:
        return x, x
    if kind < 3:
        return np.where(rng.random(len(x)) < 0.5, x, lower), upper
    return lower, upper


def _limit(rng: np.random.Generator, lines: list[Line], unsafe: UnsafeSet, i: int) -> float:
    """Return a limit of a row at what is just reached, around it, or somewhere between."""
    values = [
        excesses(unsafe, line.point(t), y)[i]
        for line in lines
        for t, y in zip(line.knots, line.values, strict=True)
    ]
    least, most = nearest_float(min(values)), nearest_float(max(values))
    if rng.random() < 0.3:  # reached in passing
        limit = least + rng.random() * (most / 2 - least / 2)
    else:
        limit = least + rng.choice(_SHARES) * (abs(least) + most / 2 - least / 2)
    limit = float(np.nextafter(limit, rng.choice([-inf, limit, limit, inf])))
    return float(np.clip(limit, -1e300, 1e300))

"""Extrema, slopes and cells on a box."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.soundness.rational_line import rationals
from tests.soundness.session import Session
from tests.soundness.truth import (
    NORMS,
    difference,
    form_range,
    inside,
    patterns,
    size,
    steepest,
    steepest_cell,
    to_power,
)

_ROUNDED = Fraction(1, 10**9)  # what "to rounding" may mean at most
_SMALL = 2.0**-1060  # below, float64 has no digits left


def output_range(session: Session) -> None:
    """Extrema lie between their bounds, and their points attain them."""
    case = session.case
    found = session.ask(
        f"output_range(net, box, budget=1.0, certified={case.turn % 2 == 0})", budget=1.0
    )
    for k, (low, high) in enumerate(zip(found.minima, found.maxima, strict=True)):
        least, most = form_range(case.lines, np.eye(case.net.out_features)[k])
        session.claim(low.lower <= least, "output {} is {}, below {}", k, least, low.lower)
        session.claim(high.upper >= most, "output {} is {}, above {}", k, most, high.upper)
        for end in (low, high):
            there = case.exact(end.point)[k]
            session.claim(
                inside(rationals(end.point), case.box), "{}: the point lies outside the box", end.kind
            )
            attained = there >= high.lower if end is high else there <= low.upper
            session.claim(
                attained,
                "{}: the output is {} at the point, outside [{}, {}]",
                end.kind,
                there,
                end.lower,
                end.upper,
            )
            held = end.lower <= end.value <= end.upper
            session.claim(
                held, "{}: the value {} lies outside [{}, {}]", end.kind, end.value, end.lower, end.upper
            )
        if case.d == 1:
            session.claim(
                low.upper >= least, "the minimum of output {} is {}, above {}", k, least, low.upper
            )
            session.claim(
                high.lower <= most, "the maximum of output {} is {}, below {}", k, most, high.lower
            )


def lipschitz_bounds(session: Session) -> None:
    """No slope anywhere is above the upper bounds; the witness is as steep as the lower one."""
    case = session.case
    found = session.ask("lipschitz_bounds(net, box=box, n_points=3, budget=1.0)", budget=1.0)
    true = steepest(case.endless, "l2")
    for name in ("upper", "product", "absolute", "averaged"):
        bound = getattr(found, name)
        if bound is not None:
            session.claim(
                to_power(float(bound), "l2") >= true,
                f"a squared slope is {{}}, {name} {{}}",
                true,
                bound,
            )
    if found.lower > 0:
        a, b = found.witness
        rise = size(difference(case.exact(a), case.exact(b)), "l2")
        needed = to_power(found.lower, "l2") * size(difference(a, b), "l2")
        session.claim(rise >= needed, "the witness is not as steep as {}", found.lower)


def lipschitz_constant(session: Session) -> None:
    """The constant on a box is the steepest slope, to rounding; its bounds hold without."""
    case, rng = session.case, session.case.rng(8)
    norm = str(rng.choice(NORMS))
    output = int(rng.integers(case.net.out_features)) if rng.random() < 0.3 else None
    found = session.ask(
        f"lipschitz_constant(net, box, norm={norm!r}, output={output}, budget=1.0)", budget=1.0
    )
    true, text = steepest(case.lines, norm, output), "a slope (squared in l2) is {}, "
    lower, value, upper = (to_power(float(v), norm) for v in (found.lower, found.value, found.upper))
    session.claim(upper >= true, text + "above {}", true, upper)
    if found.exact:
        near = true * (1 - _ROUNDED) - to_power(_SMALL, norm) <= value
        session.claim(near, text + "the value {}", true, value)
    if case.d > 1 and lower > true:  # what the lines miss, cells in rational numbers show
        cell = to_power(steepest_cell(case.net, case.box, norm, output), norm)
        true = max(true, cell * (1 + _ROUNDED))
    session.claim(lower <= true, text + "below {}", true, lower)


def cells(session: Session) -> None:
    """A certified count of cells is the number of patterns; exact arithmetic agrees."""
    case = session.case
    if case.d > 1:
        return
    true = patterns(case.exact, case.lines[0])
    found = session.ask("region_count(net, box, budget=1.0, certified=True)", budget=1.0)
    session.claim(found.n_regions <= true, "there are {} cells, not {}", true, found.n_regions)
    if found.complete:
        session.claim(found.n_regions == true, "there are {} cells, not {}", true, found.n_regions)

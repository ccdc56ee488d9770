"""Bounds on units and outputs: no value may lie outside."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pindown.model.operations.operation import Interval
from tests.soundness.session import Session
from tests.soundness.truth import NORMS, form_range, ranges, within_ball


def _enclosed(
    session: Session, bounds: Sequence[Interval], true: Sequence[Sequence[tuple[Fraction, Fraction]]]
) -> None:
    for layer, (found, known) in enumerate(zip(bounds, true, strict=True)):
        for unit, (low, high) in enumerate(known):
            where = f"unit {unit} of layer {layer}"
            session.claim(found.lower[unit] <= low, where + " is {}, below {}", low, found.lower[unit])
            session.claim(found.upper[unit] >= high, where + " is {}, above {}", high, found.upper[unit])


def intervals(session: Session) -> None:
    """Interval bounds hold what every unit is on the box."""
    _enclosed(session, session.ask("interval_bounds(net, box)"), ranges(session.case.lines))


def linear(session: Session) -> None:
    """So do linear bounds, also on forms of the outputs such as differences."""
    case, rng = session.case, session.case.rng(2)
    _enclosed(session, session.ask("linear_bounds(net, box)"), ranges(case.lines))
    eye = np.eye(case.net.out_features)
    rows = np.array([eye[0] - eye[-1], rng.normal(size=len(eye)), rng.integers(-1, 2, len(eye))])
    found = session.ask("linear_bounds(net, box, outputs=rows)[-1]", rows=rows)
    for row, low, high in zip(rows, found.lower, found.upper, strict=True):
        least, most = form_range(case.lines, row)
        session.claim(low <= least, "a form is {}, below {}", least, low)
        session.claim(high >= most, "a form is {}, above {}", most, high)


def forwards(session: Session) -> None:
    """So do affine functions that are carried forwards."""
    found = session.ask("forward_bounds(net, box.lower, box.upper)")
    _enclosed(session, found, ranges(session.case.lines))


def optimised(session: Session) -> None:
    """So do bounds with optimised slopes, on balls of every norm."""
    case, rng = session.case, session.case.rng(3)
    norm, eye = str(rng.choice(NORMS)), np.eye(case.net.out_features)
    radius = float(np.max(case.box.radius) * rng.choice([0.1, 0.5, 1.0]))
    rows = np.array([[rng.normal(size=len(eye)), eye[0] - eye[-1], -eye[0]]] * 2)
    ball = f"Balls.around(np.array([x, x]), np.array([{radius!r}, 0.0]), {norm!r}, box)"
    found = session.ask(f"ball_bounds(net, {ball}, rows)", rows=rows)
    for bounds, reach in zip(found, (radius, 0.0), strict=True):
        lines = [within_ball(line, reach, norm) for line in case.lines]
        for row, high in zip(rows[0], bounds, strict=True):
            most = form_range(lines, row)[1]
            session.claim(high >= most, "a form is {} on the ball, above {}", most, high)

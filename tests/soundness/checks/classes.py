"""Certificates and distances: no input of another class may be nearer than they say."""

from __future__ import annotations

from fractions import Fraction
from math import isinf

import numpy as np

from tests.soundness.cases import Case
from tests.soundness.rational_line import Line, rationals
from tests.soundness.session import Session
from tests.soundness.truth import (
    NORMS,
    class_of,
    classes,
    difference,
    inside,
    nearest_change,
    nearest_float,
    power,
    size,
    to_power,
)

_TIES = "radius {} is certified, but a change of {} (squared in l2) ties"


def _question(case: Case, purpose: int) -> tuple[str, str, list[Line]]:
    """Return a norm, with or without a box, and the lines to look for changes on."""
    rng = case.rng(purpose)
    norm, cut = str(rng.choice(NORMS)), rng.random() < 0.5
    return norm, ", box=box" if cut else "", case.lines if cut else case.endless


def _radii(case: Case, true: Fraction | None, norm: str) -> np.ndarray:
    """Return radii around the true distance, as near as float64 comes."""
    if true is None:
        return np.max(case.box.radius) * np.array([0.01, 1.0, 3.0])
    middle = nearest_float(true) ** (1 / power(norm))
    shares = 1.0 - 10.0 ** case.rng(4).uniform(-16, -1, 2)
    return np.array([middle, np.nextafter(middle, 0.0), *(middle * shares), min(middle * 1.001, 1e300)])


def _safe(radius: float, true: Fraction | None, norm: str) -> bool:
    return true is None or true > to_power(radius, norm)


def certified(session: Session) -> None:
    """A certified ball holds no tie, by every method."""
    case = session.case
    norm, box, lines = _question(case, 5)
    label = class_of(case.exact(case.x))
    true = nearest_change(lines, label, norm)
    radii = _radii(case, true, norm)
    given = {"X": np.tile(case.x, (len(radii), 1)), "y": np.full(len(radii), label), "radii": radii}
    for method in ("interval", "linear", "optimised"):
        how = f"norm={norm!r}{box}, method={method!r}"
        found = session.ask(f"certified(net, X, y, radius=radii, {how})", **given)
        for radius, proved in zip(radii.tolist(), found, strict=True):
            session.claim(not proved or _safe(radius, true, norm), _TIES, radius, true)


def certified_radii(session: Session) -> None:
    """Nor does one found by bisection."""
    case = session.case
    norm, box, lines = _question(case, 6)
    label = class_of(case.exact(case.x))
    true = nearest_change(lines, label, norm)
    how = f"norm={norm!r}{box}, largest={float(_radii(case, true, norm)[-1])!r}, steps=10"
    radius = float(session.ask(f"certified_radii(net, [x], [label], {how})", label=label)[0])
    session.claim(radius == 0.0 or _safe(radius, true, norm), _TIES, radius, true)


def certified_accuracy(session: Session) -> None:
    """Nor does one that counts for the certified accuracy; every other case is asked, to save time."""
    case = session.case
    if case.turn % 2:
        return
    norm, box, lines = _question(case, 7)
    label = class_of(case.exact(case.x))
    true = nearest_change(lines, label, norm)
    radii = np.unique(_radii(case, true, norm)[:2])
    how = f"norm={norm!r}{box}, budget=0.1, verbose=0"
    given = {"label": label, "radii": radii}
    found = session.ask(f"certified_accuracy(net, [x], [label], radii, {how})", budget=0.1, **given)
    radius = float(found.certified_radius[0])
    session.claim(radius <= 0.0 or _safe(radius, true, norm), _TIES, radius, true)
    session.claim(
        (found.lower <= found.upper).all(), "lower {} above upper {}", found.lower, found.upper
    )


def minimum_distance(session: Session) -> None:
    """No tie is nearer than the lower bound; the witness has another class and is as near as it says."""
    case = session.case
    norm, box, lines = _question(case, 9)
    methods = ["auto", "relaxation", "cells", *(["programs"] if norm != "l2" else [])]
    how = f"{norm!r}, method={methods[case.turn % len(methods)]!r}, budget=1.0{box}"
    found = session.ask(f"minimum_distance(net, x, {how})", budget=1.0)
    if found.witness is not None and case.d > 1:
        lines = [*lines, *case.lines_to(found.witness, endless=not box)]
    true = nearest_change(lines, found.label, norm)
    if true is not None and true > to_power(float(np.finfo(float).max), norm):
        true = None  # no input of float64 is so far away
    lower, upper = to_power(float(found.lower), norm), to_power(float(found.upper), norm)
    session.claim(
        true is None or lower <= true,
        "lower is {}, but a change of {} (squared in l2) ties",
        found.lower,
        true,
    )
    session.claim(found.lower <= found.upper, "lower {} above upper {}", found.lower, found.upper)
    if found.witness is None:
        session.claim(isinf(found.upper), "upper is {} without a witness", found.upper)
        return
    y = classes(case.exact(found.witness))
    other = max(v for j, v in enumerate(y) if j != found.label)
    session.claim(
        other >= y[found.label], "the witness has the same class: {} is above {}", y[found.label], other
    )
    session.claim(
        inside(rationals(found.witness), case.box if box else None), "the witness lies outside the box"
    )
    length = size(difference(found.witness, case.x), norm)
    session.claim(
        length <= upper, "the witness is {} away (squared in l2), upper {}", length, found.upper
    )

"""A sample of the random attack, and proof that it notices: faults are put in and have to be found."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from pindown.equivalence.comparison import _reduced_pairs as reduced_pairs
from pindown.equivalence.comparison._run import Run
from pindown.equivalence.shrinking import engine
from pindown.geometry.facts import extrema
from pindown.geometry.facts import lipschitz as steepness
from pindown.model.operations import narrowing
from pindown.model.operations.relu import Triangles
from pindown.relaxation import descent, forward_bounds, intervals, lipschitz, propagation
from pindown.relaxation import linear as linear_bounds
from pindown.relaxation import lp_balls as balls
from pindown.relaxation import relaxed_model as relaxed
from pindown.verification import ball_proofs, box_splitting, certificates, distance, falsification
from tests.soundness.attack import main, warm_up
from tests.soundness.checks import CHECKS, run_checks
from tests.soundness.families import FAMILIES, make_case
from tests.soundness.session import Refused, Session

CHEAP = (
    "interval bounds",
    "linear bounds",
    "forward bounds",
    "optimised bounds",
    "model bounds",
    "splitting units",
    "cutting boxes",
    "certified",
    "output range",
)
OTHERS = [name for name in CHECKS if name not in CHEAP]


@pytest.mark.parametrize("part", range(4))
def test_nothing_false_on_a_sample(part):
    """Every family four times, each with the cheap checks and, in turn, one of the others."""
    warm_up()  # budgets are checked, too, and a question must not wait for the compiler
    for index in range(part * len(FAMILIES), (part + 1) * len(FAMILIES)):
        session = run_checks(make_case(2026, index), [*CHEAP, OTHERS[(index * 7) % len(OTHERS)]])
        for tally in session.tallies.values():
            assert not tally.failures and not tally.errors, (tally.failures + tally.errors)[0]


def noticed(check: str, most: int = 240) -> bool:
    """Return whether a check finds something false among the first cases of a seed."""
    sessions = (run_checks(make_case(101, index), [check]) for index in range(most))
    return any(session.tallies[check].failures for session in sessions)


def times(factor):
    """Make the result of a function larger or smaller."""
    return lambda right: lambda *given, **how: factor * np.asarray(right(*given, **how))


def lowered(right):
    """Take a little off a bound from above."""
    return lambda *given, **how: _less(right(*given, **how))


def _less(bound):
    return bound - 1e-9 * (1.0 + np.abs(bound))


def flipped(right):
    """Give the line above an open ReLU the slope 1 - s in place of s."""
    return lambda z: (lines := right(z))._replace(slope=1.0 - lines.slope)


def lower_above(right):
    """Shift the line above an open ReLU down by a thousandth."""
    return lambda z: (lines := right(z))._replace(shift=0.999 * lines.shift)


def beyond_one(right):
    """Take slopes below a ReLU that are no longer below it."""

    def wrong(self, slopes):
        made, above = right(self, slopes), self.slope[:, None]
        return replace(made, lower=np.where((above > 0) & (above < 1), 1.5, made.lower))

    return wrong


def overdone(right):
    """Cut boxes a little too much."""

    def wrong(lower, upper, *given):
        low, high, empty = right(lower, upper, *given)
        margin = 1e-9 * (upper / 2 - lower / 2)
        return low + margin, high - margin, empty

    return wrong


def flatter(right):
    """Make both bounds on the slopes of cells a thousandth smaller."""
    return lambda *given: tuple(0.999 * end for end in right(*given))


def narrower(right):
    """Take a share off every upper end of a gap."""
    return lambda self, method, found: right(self, method, replace(found, upper=0.999 * found.upper))


def without_cost(right):
    """Say that a change of weights changes nothing."""
    return lambda *given, **how: replace(right(*given, **how), value=0.0)


def free(right):
    """Say that no reduction rounds."""
    return lambda net, steps, gap, *rest: right(net, steps, 0.0, *rest)


FAULTS = [
    ("interval bounds", intervals, "gamma", times(0.0)),
    ("interval bounds", intervals, "smallest_nonzero", lambda right: lambda *given: 1.0),
    ("linear bounds", linear_bounds, "gamma", times(0.0)),
    ("linear bounds", linear_bounds, "triangle_relaxation", flipped),
    ("linear bounds", linear_bounds, "triangle_relaxation", lower_above),
    ("optimised bounds", Triangles, "with_slopes", beyond_one),
    ("optimised bounds", balls, "DUALS", lambda right: right | {"l2": "linf"}),
    ("certified", ball_proofs, "margin_bounds", lowered),
    ("certified", ball_proofs, "interval_margins", lowered),
    ("certified radii", certificates, "certified", lambda right: lambda *given, **how: np.array([True])),
    ("minimum distance", distance, "certified_radii", times(1.001)),
    ("output range", extrema, "upper_bounds", lowered),
    ("lipschitz bounds", lipschitz, "product_up", times(0.999)),
    ("lipschitz bounds", lipschitz, "norm_down", times(1.001)),
    ("lipschitz constant", steepness, "_enclosed", flatter),
    ("forward bounds", forward_bounds, "gamma", times(0.0)),
    ("model bounds", relaxed, "dot_up", lowered),
    ("model bounds", relaxed, "charged", lowered),
    ("splitting units", descent.Descent, "proved", lowered),
    ("cutting boxes", box_splitting, "dot_up", lowered),
    ("cutting boxes", box_splitting, "contracted", overdone),
    ("deducing", propagation, "contracted", overdone),
    ("deducing", narrowing, "_least", times(0.99)),
    ("verify", box_splitting, "charged", lowered),
    ("verify", falsification, "proved_violation", lambda right: lambda *given, **how: "intervals"),
    ("verify pairs", box_splitting, "dot_up", lowered),
    ("diff", Run, "take", narrower),
    ("diff", reduced_pairs, "gap_of_changes", without_cost),
    ("shrink", engine, "Shrunk", free),
]


@pytest.mark.parametrize(
    ("check", "place", "name", "wrong"), FAULTS, ids=[f"{check}-{name}" for check, _, name, _ in FAULTS]
)
def test_a_fault_is_noticed(check, place, name, wrong, monkeypatch):
    """With a fault in the library the check finds something false."""
    monkeypatch.setattr(place, name, wrong(getattr(place, name)))
    assert noticed(check)


def test_a_snippet_reproduces_what_was_asked(capsys):
    """What is printed for a false answer runs as it is and gives that answer."""
    session = Session(make_case(1, 0))
    session.check = "interval bounds"
    answer = session.ask("interval_bounds(net, box)[-1].upper")
    session.claim(False, "it is {}", 1)
    (text,) = session.tallies["interval bounds"].failures
    assert text.splitlines()[0] == "# interval bounds; family plain, seed 1, case 0: it is 1"
    exec(text, {})
    assert capsys.readouterr().out == f"{answer}\n"


def test_undocumented_errors_and_warnings_are_recorded():
    """A refusal is the library's own ValueError or TypeError; all else counts as an error."""
    session = Session(make_case(1, 0))
    for source in ("interval_bounds(net, Box([0] * 9, [1] * 9))", "[][1]", "np.float64(1e200) ** 2"):
        with suppress(Refused):
            session.ask(source)
    tally = session.tallies[""]
    assert (tally.asked, tally.refused, len(tally.errors)) == (3, 1, 2)
    assert "IndexError" in tally.errors[0] and "warns" in tally.errors[1]


def test_the_attack_ends_in_a_table(capsys):
    """Counts by family and check; nothing false means exit code 0."""
    assert main(["--seed", "5", "--count", "3", "--jobs", "1", "--only", "interval bounds"]) == 0
    totals = [
        line.split()[:2] for line in capsys.readouterr().out.splitlines() if line.startswith("all ")
    ]
    assert totals == [["all", "3"], ["all", "3"]]

"""How small the network could be without changing its function, and which directions are flat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pindown.deadline import OutOfTime
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    JACOBIAN_SECONDS_PER_ENTRY,
    LOSSLESS_SHARE,
    MAX_SHRINK_SECONDS,
    MAX_SHRINK_STEPS_SHOWN,
    SHRINK_SECONDS_PER_PARAMETER,
)
from pindown.findings.which_function._cells import require_sane
from pindown.findings.wording import at_most, count, shape
from pindown.relaxation.intervals import interval_bounds

if TYPE_CHECKING:
    from pindown.equivalence import FunctionalDimension, Shrunk
    from pindown.network import ReluNetwork


@question(
    "EQV-01",
    "Lossless size",
    group="which",
    needs=("relus",),
    about="How small the network becomes by reductions that are proved not to change its function, for "
    "all inputs or, if a box is known, on the box.",
    cost=(0.5, 5),
    place=6,
)
def lossless_size(subject: Subject) -> Finding:
    """Shrink the network and count what is left."""
    from pindown.equivalence import shrink

    # A statement about all inputs is worth more than one about a box that nobody gave.
    net, box = subject.net, None if subject.assumed else subject.box
    subject.require(SHRINK_SECONDS_PER_PARAMETER * net.n_parameters)
    budget = min(MAX_SHRINK_SECONDS, LOSSLESS_SHARE * subject.turn.left)
    shrunk = shrink(net, box=box, budget=budget)
    small = shrunk.network
    where = "for every input" if box is None else f"on {subject.box_name}"
    return Finding(
        verdict=_verdict(shrunk, net, where),
        number=Quantity(small.size, "exact", "ReLUs", label="enough"),
        hypotheses=(
            Assumption(f"every step is an identity of real functions {where}", "checked"),
            Assumption(
                "no reduction was missed: finding all of them is as hard as deciding equality", "assumed"
            )
            if shrunk.complete
            else Assumption("the search came to its end; it was stopped, so more may go", "violated"),
        ),
        reading="Dead, constant, duplicate and opposite units, units that never switch and layers that "
        "only pass on what they get cost time and memory and say nothing. Each was removed with a "
        f"proof; the smaller network gives {_outputs(shrunk)} {where}. "
        "Parameter counts and statistics of weights mean something for the small network only. "
        "The command pindown shrink writes it.",
        scale="Networks trained from random weights without strong regularisation usually lose nothing "
        "for all inputs; pruned, exported or hand-built ones often lose a large part.",
        table=_steps(shrunk),
        facts={"removable": float(shrunk.saved), "removable_share": shrunk.saved / net.size},
        sentence=_sentence(shrunk, net.size, where),
    )


def _verdict(shrunk: Shrunk, before: ReluNetwork, where: str) -> str:
    after = shrunk.network
    if not shrunk.steps:
        searched = "" if shrunk.complete else " in the time given"
        return f"nothing can go {where}, as far as was found{searched}"
    layers = ""
    if after.depth < before.depth:
        layers = f" and {count(before.depth - after.depth, 'layer')}"
    return (
        f"{_least(shrunk)}{count(shrunk.saved, 'ReLU')} of {before.size:,}{layers} can go {where}: "
        f"{shape(after.widths)} is enough"
    )


def _least(shrunk: Shrunk) -> str:
    """Return the words before a number that a longer search could raise."""
    return "" if shrunk.complete or not shrunk.saved else "at least "


def _outputs(shrunk: Shrunk) -> str:
    if shrunk.gap_upper == 0.0:
        return "exactly the same outputs"
    return f"the same outputs, up to {at_most(shrunk.gap_upper)} of rounding,"


def _sentence(shrunk: Shrunk, size: int, where: str) -> str:
    if not shrunk.saved:
        found = "No unit was found" if shrunk.complete else "In the time given no unit was found"
        return f"{found} that can be removed without changing the function {_any(where)}."
    units = f"{_least(shrunk).capitalize()}{shrunk.saved:,} of {count(size, 'unit')}"
    return (
        f"{units} can be removed without changing the function {_any(where)}{_rounding(shrunk, where)}."
    )


def _rounding(shrunk: Shrunk, where: str) -> str:
    """Say by how much rounding changes it, if it does."""
    if shrunk.gap_upper == 0.0:
        return ""
    size = " times 1 + |x|" if where == "for every input" else ""
    return f", but for rounding (at most {at_most(shrunk.gap_upper)}{size})"


def _any(where: str) -> str:
    return where.replace("every", "any")


def _steps(shrunk: Shrunk) -> Table | None:
    if not shrunk.steps:
        return None
    rows = tuple(
        (step.layer, step.rule, len(step.units), step.saved, step.reason)
        for step in shrunk.steps[:MAX_SHRINK_STEPS_SHOWN]
    )
    more = "" if len(rows) == len(shrunk.steps) else f" (the first {len(rows)} of {len(shrunk.steps)})"
    return Table(f"Steps{more}", ("layer", "rule", "units", "saved", "why"), rows)


@question(
    "EQV-02",
    "Flat directions",
    group="which",
    needs=("box", "relus"),
    about="In how many directions the parameters can move without changing the function: those that "
    "rescale units, which every network has, and hidden ones.",
    cost=(0.5, 3),
    place=18,
)
def flat_directions(subject: Subject) -> Finding:
    """Measure the rank of the derivative by the parameters."""
    from pindown.equivalence.flat_directions import functional_dimension, n_parameters
    from pindown.equivalence.tuning import MAX_WHOLE_PARAMETERS

    net = subject.net
    P = n_parameters(net)
    if P > MAX_WHOLE_PARAMETERS:
        raise NotApplicable(
            f"it has {_with_zeros(net, P, 'parameters')}, and one decomposition takes at most "
            f"{MAX_WHOLE_PARAMETERS:,}"
        )
    subject.require(JACOBIAN_SECONDS_PER_ENTRY * 5.0 * float(P) ** 3 + 0.01)
    require_sane(net, subject.box)
    if not all(np.isfinite(z).all() for z in interval_bounds(net, subject.box)[-1]):
        raise NotApplicable("the network may overflow float64 on the box")
    found = functional_dimension(
        net, subject.box, seed=subject.seed, budget=LOSSLESS_SHARE * subject.turn.left
    )
    if found.n_samples * net.out_features < P:
        raise OutOfTime
    return Finding(
        verdict=f"{found.rank:,} of {_with_zeros(net, P, 'directions')} change the function; "
        f"{found.unavoidable:,} {'rescales' if found.unavoidable == 1 else 'rescale'} units, "
        f"{_hidden(found)}",
        number=Quantity(max(found.hidden, 0), "estimate", "hidden directions", n=found.n_samples),
        hypotheses=(
            Assumption(
                "half of the samples give the same rank", "checked" if found.stable else "violated"
            ),
            Assumption("no cell that the samples miss depends on further parameters"),
        ),
        reading="Moving the parameters along a flat direction leaves the function as it is on the box. "
        "Rescaling a unit is always one. Hidden ones come from dead or always-on units and from "
        "subtler symmetries: along them weights are not determined by the function, so weight decay "
        "or chance chose them, and Hessians and Laplace approximations are singular there.",
        scale=f"0 hidden directions: the function determines the weights locally, up to the "
        f"{found.unavoidable:,} scales. Wide and deep random networks show a few.",
        sentence=f"{count(found.hidden, 'parameter direction')} beyond the rescaling of units "
        f"{'does' if found.hidden == 1 else 'do'} not change the function on {subject.box_name}."
        if found.hidden > 0
        else "",
    )


def _with_zeros(net: ReluNetwork, total: int, noun: str) -> str:
    """Return how many numbers there are, and how many count as parameters if those are fewer."""
    if total == net.n_parameters:
        return f"{total:,} {noun}"
    return f"{total:,} {noun} with the zeros of sparse layers ({net.n_parameters:,} without)"


def _hidden(found: FunctionalDimension) -> str:
    if found.hidden <= 0:
        return "none is hidden"
    return f"{found.hidden:,} more {'is' if found.hidden == 1 else 'are'} flat"

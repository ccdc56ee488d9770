"""What the layers are good for: bends on a line, beside what a shallower network would need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    DEPTH_SHARE,
    LINES_THROUGH_BOX,
    MAX_DEPTHS_LISTED,
)
from pindown.findings.which_function._cells import require_sane
from pindown.findings.which_function._segments import walked
from pindown.findings.wording import count, number_text
from pindown.geometry.counts.bounds import min_size


@question(
    "DEP-01",
    "What depth does",
    group="which",
    needs=("box", "relus"),
    about="How often the network bends on straight lines through the box, and how many units a network "
    "with fewer hidden layers needs at least to bend as often.",
    cost=(0.5, 2),
    place=14,
)
def what_depth_does(subject: Subject) -> Finding:
    """Count bends on lines and compare with what shallower networks can do."""
    net = subject.net
    require_sane(net, subject.box)
    if not (subject.box.lower < subject.box.upper).any():
        raise NotApplicable(f"{subject.box_name} is a single point")
    pieces, cells = _on_lines(subject)
    most = int(pieces.max())
    bends, hidden = most - 1, net.depth - 1
    shallow = min_size(most, 1) if bends else 0
    mean = float(cells.mean())
    return Finding(
        verdict=f"up to {count(bends, 'bend')} on one line; one hidden layer needs at least "
        f"{count(shallow, 'unit')} for that, this network has {net.size:,} in {hidden:,}",
        number=Quantity(bends, "exact", "bends", bound="lower", label="on the line with most"),
        hypotheses=(
            Assumption(
                f"every bend on {count(len(pieces), 'random line')} through {subject.box_name} is found",
                "checked",
            ),
            Assumption("bends as float64 evaluation gives them"),
        ),
        reading="On a straight line the network is a chain of straight pieces. A unit of a first layer "
        "bends it at most once; deeper units can bend it again and again, which is what depth is good "
        f"for. A line crosses {number_text(round(mean, 1), 'cells')} in the mean. "
        + _judged(shallow, net.size, hidden),
        scale=f"{count(net.size, 'unit')} in one layer make at most {net.size:,} bends on a line. "
        "Networks can be built that bend exponentially often in depth; trained ones do not.",
        table=Table(
            "Units that a network needs at least to bend as often on one line",
            ("hidden layers", "units at least"),
            tuple((k, min_size(most, k)) for k in range(1, min(hidden, MAX_DEPTHS_LISTED) + 1)),
        )
        if bends
        else None,
        sentence=_sentence(subject, bends, shallow),
    )


def _judged(shallow: int, size: int, hidden: int) -> str:
    if hidden == 1:
        return "This network has one hidden layer."
    if shallow > size:
        return "So many bends on one line cannot be had from a single layer of as many units."
    return (
        "On these lines a single layer of as many units could bend as often: they do not show a need "
        "for depth."
    )


def _sentence(subject: Subject, bends: int, shallow: int) -> str:
    if subject.net.depth <= 2 or not bends:
        return ""
    told = f"On the straight lines through {subject.box_name} that were tried it bends up to "
    told += count(bends, "time")
    if shallow > subject.net.size:
        return f"{told}, more than a single layer of as many units can."
    return f"{told}, no more than a single layer of as many units can."


def _on_lines(subject: Subject) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pieces and cells on lines through the box, as many lines as the time allows."""
    starts, ends = _lines(subject.box, subject.rng("DEP-01"))
    found = walked(subject, starts, ends, DEPTH_SHARE)
    return np.concatenate([part.n_pieces for part in found]), np.concatenate(
        [part.n_cells for part in found]
    )


def _lines(box: Box, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return where random lines enter and leave the box: through two random points of it each."""
    a, b = box.sample(LINES_THROUGH_BOX, rng), box.sample(LINES_THROUGH_BOX, rng)
    step = b - a
    with np.errstate(divide="ignore", invalid="ignore"):
        to_lower, to_upper = (box.lower - a) / step, (box.upper - a) / step
    flat = step == 0
    enter = np.where(flat, -np.inf, np.minimum(to_lower, to_upper)).max(axis=1)
    leave = np.where(flat, np.inf, np.maximum(to_lower, to_upper)).min(axis=1)
    clip = (box.lower, box.upper)
    return np.clip(a + enter[:, None] * step, *clip), np.clip(a + leave[:, None] * step, *clip)

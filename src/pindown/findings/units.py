"""Which units do something: on the data, and for every input in a box."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pindown.findings.finding import Finding, Hypothesis, Quantity, Table
from pindown.findings.pictures import StackedBars
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import count, percent
from pindown.geometry import interval_bounds

_ON_DATA = ("dead", "constant", "always on", "switching")
_ON_BOX = ("dead", "always on", "undecided")


@question(
    "UNIT-01",
    "Units on the data",
    group="which",
    needs=("data", "relus"),
    about="How many units are dead, constant, always on or switching on the rows of data given.",
    cost=(0.3, 3),
    place=9,
)
def units_on_the_data(subject: Subject) -> Finding:
    """Sort units by the range of what enters them over the data."""
    assert subject.data is not None
    observed = subject.observe(subject.data)
    counts = []
    for low, high in zip(observed.lowest, observed.highest, strict=True):
        dead = high <= 0
        constant = ~dead & (low == high)
        on = ~dead & ~constant & (low >= 0)
        counts.append(
            (int(dead.sum()), int(constant.sum()), int(on.sum()), int((~(dead | constant | on)).sum()))
        )
    dead, constant, on, switching = np.sum(counts, axis=0).tolist()
    size, name = subject.net.size, subject.data.name
    return Finding(
        verdict=f"{dead:,} dead, {constant:,} constant, {on:,} always on, {switching:,} switching "
        f"of {count(size, 'unit')}{'' if observed.n == observed.n_given else f' on {observed.seen}'}",
        number=Quantity(dead / size, "exact", "%", label="dead"),
        hypotheses=(
            Hypothesis(
                f"a complete pass over the {name}: {observed.seen}",
                "checked" if observed.n == observed.n_given else "violated",
            ),
            Hypothesis("signs as float64 evaluation gives them"),
        ),
        reading=f"On {observed.seen} of the {name}: a dead unit is never positive, so removing it "
        "changes nothing on these rows; a unit that is always on acts linearly; only switching units "
        "bend the function. Other inputs may wake a dead unit.",
        scale="The share of dead units. At 0% every unit takes part on some row; dead ones are capacity "
        "that these rows do not use.",
        figure=_bars("Units of each layer by what they do on the data", _ON_DATA, counts),
        table=_layer_table("What the units of each layer do on the data", _ON_DATA, counts),
        sentence=f"On {observed.seen} of the {name}, {_share(dead, size)} {_are(dead)} never on and "
        f"{_many(on + constant)} always on."
        if switching < size
        else f"On {observed.seen} of the {name}, every unit is on for some and off for others.",
    )


@question(
    "UNIT-02",
    "Units on the box",
    group="which",
    needs=("box", "relus"),
    about="How many units are proved dead or always on for every input in the box, by interval bounds.",
    cost=(0.1, 0),
)
def units_on_the_box(subject: Subject) -> Finding:
    """Decide units for every input in the box by interval bounds."""
    subject.require(1e-8 * subject.net.n_parameters)
    counts = []
    for low, high in interval_bounds(subject.net, subject.box)[:-1]:
        dead, on = high <= 0, (low >= 0) & (high > 0)
        counts.append((int(dead.sum()), int(on.sum()), int((~(dead | on)).sum())))
    dead, on, undecided = np.sum(counts, axis=0).tolist()
    size = subject.net.size
    return Finding(
        verdict=f"proved dead: {dead:,}, proved always on: {on:,}, undecided: {undecided:,} "
        f"of {count(size, 'unit')}",
        number=Quantity((dead + on) / size, "exact", "%", label="decided"),
        hypotheses=(
            Hypothesis("bounds rounded outwards, so they hold for the real-number network", "checked"),
            Hypothesis(f"inputs stay in {subject.box_name}"),
        ),
        reading=f"For every input in {subject.box_name}, not only for data: a unit proved dead can be "
        "removed and one proved always on is linear. Undecided units may switch; intervals ignore that "
        "units depend on each other, so deep layers are often undecided although they never switch.",
        scale="The share of units decided. It grows as the box shrinks, to 100% where the network is "
        "affine on the box; at 0% the box is too wide for intervals to say anything.",
        figure=_bars("Units of each layer by what interval bounds prove on the box", _ON_BOX, counts),
        table=_layer_table("What interval bounds prove about the units of each layer", _ON_BOX, counts),
        sentence=f"Anywhere in {subject.box_name}, interval bounds prove {_share(dead, size)} dead and "
        f"{_many(on)} always on."
        if dead + on
        else "",
    )


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _many(n: int) -> str:
    return f"{n:,}" if n else "none"


def _share(part: int, whole: int) -> str:
    return (
        f"{part:,} of {count(whole, 'unit')} ({percent(part / whole)})" if part else "none of the units"
    )


def _bars(caption: str, parts: Sequence[str], counts: Sequence[Sequence[int]]) -> StackedBars:
    return StackedBars(
        caption,
        tuple(f"layer {i}" for i in range(1, len(counts) + 1)),
        tuple(parts),
        tuple(tuple(float(n) for n in row) for row in counts),
        "units",
    )


def _layer_table(caption: str, parts: Sequence[str], counts: Sequence[Sequence[int]]) -> Table:
    rows = tuple((i, sum(row), *row) for i, row in enumerate(counts, 1))
    return Table(caption, ("layer", "units", *parts), rows)

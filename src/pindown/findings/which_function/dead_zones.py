"""Where a whole layer is off, so that the output does not depend on the input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import OutOfTime
from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import chunk_rows
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    DEAD_SHARE_WORTH_SAYING,
    DEAD_ZONE_SAMPLES,
    DEAD_ZONE_SHARE,
    DELTA,
    SECONDS_PER_PARAMETER,
)
from pindown.findings.which_function._cells import domain, regions
from pindown.findings.wording import percent
from pindown.geometry import interval_bounds
from pindown.network import ReluNetwork


class _Shares(NamedTuple):
    """Where layers are off: in each, in any; from how many points (exactly if 0); how it is known."""

    by_layer: tuple[float, ...]
    anywhere: float
    n: int
    how: str


@question(
    "GEO-03",
    "Dead zones",
    group="which",
    needs=("box", "relus"),
    about="On which share of the box, and of the data, a whole layer is off and the output constant.",
    cost=(0.3, 1),
    place=11,
)
def dead_zones(subject: Subject) -> Finding:
    """Find where the output is constant because a whole layer is off."""
    place = domain(subject)
    on_box = _proved_none(subject) or _exact(subject) or _sampled(subject)
    on_data = _on_data(subject)
    of_data = _of_data(subject, on_data)
    return Finding(
        verdict=f"a whole layer is off on {_of_box(on_box)}{f', {of_data}' if of_data else ''}",
        number=_number(on_box),
        hypotheses=(
            Assumption(on_box.how.format(place.text), "checked"),
            Assumption("signs as float64 evaluation gives them"),
        ),
        reading="Where all units of a layer are off, nothing of the input gets through: the output is "
        "the same for all inputs there, gradients vanish, and training cannot move out of it. Elsewhere "
        "the output may be constant as well, but not for this reason.",
        scale="0% is usual. Rows of data in a dead zone all get the same answer, whatever they show; a "
        "dead corner of the box far from the data may not matter.",
        table=_table(subject.net, on_box, on_data),
        sentence=_sentence(place.text, on_box, on_data, of_data),
    )


def _of_box(on_box: _Shares) -> str:
    if on_box.anywhere or not on_box.n:
        return f"{percent(on_box.anywhere)} of the box"
    return f"none of {on_box.n:,} random points of the box"


def _of_data(subject: Subject, on_data: _Shares | None) -> str:
    if on_data is None or subject.data is None:
        return ""
    return f"{percent(on_data.anywhere)} of {on_data.n:,} rows of the {subject.data.name}"


def _sentence(box: str, on_box: _Shares, on_data: _Shares | None, of_data: str) -> str:
    parts = []
    if on_box.anywhere >= DEAD_SHARE_WORTH_SAYING:
        parts.append(f"{'about ' if on_box.n else ''}{percent(on_box.anywhere)} of {box}")
    if on_data is not None and on_data.anywhere:
        parts.append(of_data)
    if not parts:
        return ""
    return (
        f"On {' and on '.join(parts)} a whole layer is off, and the output does not depend on the input."
    )


def _number(on_box: _Shares) -> Quantity:
    share, n = on_box.anywhere, on_box.n
    if not n:
        return Quantity(share, "exact", "%", label="of the box")
    if share == 0.0:
        # All n points missed it: a set of this share of the volume would do so with probability delta.
        most = math.ceil(1e4 * (1.0 - DELTA ** (1.0 / n))) / 1e4
        return Quantity(most, "probability", "%", delta=DELTA, n=n, label="of the box at most")
    error = math.sqrt(share * (1 - share) / n)
    return Quantity(share, "estimate", "%", standard_error=error, n=n, label="of the box")


def _proved_none(subject: Subject) -> _Shares | None:
    """Return no share at all if interval bounds prove that every layer always has a unit that is on."""
    subject.require(SECONDS_PER_PARAMETER * subject.net.n_parameters)
    hidden = interval_bounds(subject.net, subject.box)[:-1]
    if not all((low > 0.0).any() for low, _ in hidden):
        return None
    return _Shares(
        (0.0,) * len(hidden), 0.0, 0, "in every layer interval bounds prove a unit on in all of {}"
    )


def _exact(subject: Subject) -> _Shares | None:
    """Return shares of the volume, if all cells are known."""
    try:
        cells = regions(subject).complex
    except (NotApplicable, OutOfTime):
        return None
    if cells is None or not cells.n_regions:
        return None
    corners = np.diff(cells.offsets)[:, None]
    inside = np.add.reduceat(cells.cell_vertices, cells.offsets[:-1], axis=0) / corners
    off = np.concatenate(
        [_layers_off(cells.net, inside[part]) for part in cells.net.chunks(len(inside))]
    )
    weights = cells.volumes / cells.volumes.sum()
    by_layer = tuple(float(weights[row].sum()) for row in off.T)
    share = float(weights[off.any(axis=1)].sum())
    return _Shares(by_layer, share, 0, "the volumes of all cells of {} were added up")


def _sampled(subject: Subject) -> _Shares:
    box, rng = subject.box, subject.rng("GEO-03")
    return _shares_at(subject, lambda part: box.sample(part.stop - part.start, rng), DEAD_ZONE_SAMPLES)


def _on_data(subject: Subject) -> _Shares | None:
    if subject.data is None:
        return None
    X = subject.data.X
    rows = subject.rng("GEO-03 data").permutation(len(X))[:DEAD_ZONE_SAMPLES]
    return _shares_at(subject, lambda part: X[rows[part]], len(rows))


def _shares_at(subject: Subject, points: Callable[[slice], Array], n: int) -> _Shares:
    """Look at n points one chunk after the other, for less than half of the time left."""
    net, until = subject.net, subject.turn.share(DEAD_ZONE_SHARE)
    found: list[NDArray[np.bool_]] = []
    step = chunk_rows(net)
    for start in range(0, n, step):
        if found and until.passed:
            break
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                found.append(_layers_off(net, points(slice(start, min(start + step, n)))))
            except ValueError:
                raise NotApplicable("the network overflows float64 on the box") from None
    off = np.concatenate(found)
    share = float(off.any(axis=1).mean())
    return _Shares(tuple(off.mean(axis=0).tolist()), share, len(off), "points drawn uniformly from {}")


def _layers_off(net: ReluNetwork, points: Array) -> NDArray[np.bool_]:
    """Return for each point which layers are off altogether, (n, layers)."""
    return np.stack([z.max(axis=1) <= 0.0 for z in net.trace(points)[:-1]], axis=1)


def _table(net: ReluNetwork, on_box: _Shares, on_data: _Shares | None) -> Table:
    rows: list[tuple[Entry, ...]] = []
    for i, width in enumerate(net.hidden_widths):
        rows.append((i + 1, width, on_box.by_layer[i], None if on_data is None else on_data.by_layer[i]))
    columns = ("layer", "units", "share of the box where it is off", "share of the data")
    return Table("Where whole layers are off", columns, tuple(rows))

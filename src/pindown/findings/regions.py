"""How many linear regions the network has."""

from __future__ import annotations

import math

from pindown.findings.deadline import OutOfTime
from pindown.findings.finding import Cell, Finding, Hypothesis, Quantity, Table
from pindown.findings.geometry import MOST_COUNTED, Regions, regions
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import count
from pindown.geometry.counts.bounds import max_regions, zaslavsky


@question(
    "GEO-01",
    "Linear regions",
    group="which",
    needs=("box", "relus"),
    about="How many cells, on each of which the network is affine, there are on the box and after each "
    "layer, and how many a network of this shape could have; up to 6 inputs.",
    cost=(1, 8),
    place=4,
)
def linear_regions(subject: Subject) -> Finding:
    """Count the cells on the box."""
    here = regions(subject)
    found, place = here.found, here.domain
    if found.n_regions == 0:
        raise OutOfTime
    widths = place.net.hidden_widths
    bound = max_regions(place.box.dim, widths)
    pieces = None if here.complex is None else here.complex.n_pieces
    number = f"{'' if found.complete else 'at least '}{count(found.n_regions, 'cell')}"
    merged = "" if pieces is None else f", {count(pieces, 'affine piece')}"
    return Finding(
        verdict=f"{number}{merged}; a network of this shape has at most {_large(bound)}",
        number=Quantity(found.n_regions, "exact", "cells", bound="" if found.complete else "lower"),
        hypotheses=(
            Hypothesis(
                f"a complete search of {place.text}"
                if found.complete
                else f"a search of {place.text} that was stopped {_why(here)}: a lower bound",
                "checked" if found.complete else "violated",
            ),
            Hypothesis("signs as float64 gives them: cells thinner than about 1e-12 are not seen"),
        ),
        reading=_reading(pieces, found.n_regions),
        scale="1 is an affine map. "
        f"{count(place.net.size, 'unit')} in a single layer could make at most "
        f"{_large(zaslavsky(place.net.size, place.box.dim))} cells; in layers, where each may fold "
        f"what the last one made, {_large(bound)}. Trained networks stay far below.",
        table=_table(here),
        sentence=_sentence(here, pieces),
    )


def _sentence(here: Regions, pieces: int | None) -> str:
    found, place = here.found, here.domain.text
    if not found.complete:
        return (
            f"On {place} it has at least {count(found.n_regions, 'linear region')}; the count was "
            f"stopped {_why(here)}."
        )
    if pieces is None:
        return f"On {place} it has exactly {count(found.n_regions, 'linear region')}."
    return f"On {place} it has {count(pieces, 'linear piece')}, in {count(found.n_regions, 'cell')}."


def _why(here: Regions) -> str:
    found = here.found
    if found.n_regions >= MOST_COUNTED:
        return f"at {MOST_COUNTED:,} cells"
    return f"after {found.seconds:.2g} s"


def _reading(pieces: int | None, cells: int) -> str:
    text = (
        "In a cell every ReLU is on or off throughout, so the network is one affine map there. The "
        "cells tile the box; their number says how finely the network can bend, not how well it fits."
    )
    if pieces is not None and pieces < cells:
        text += (
            " A piece joins neighbouring cells with the same map: units switch between them without "
            "any effect on the output, a sign that the network is larger than its function needs."
        )
    return text


def _table(here: Regions) -> Table:
    net, growth = here.domain.net, here.found.growth
    known = here.found.complete and len(growth) == net.depth - 1
    rows: list[tuple[Cell, ...]] = []
    bound, rank = 1, net.in_features
    for i, width in enumerate(net.hidden_widths):
        bound *= zaslavsky(width, rank)
        rank = min(rank, width)
        rows.append((i + 1, width, int(growth[i]) if known else None, _large(bound)))
    columns = ("layer", "units", "cells", "most for this shape")
    return Table("Cells after each layer", columns, tuple(rows))


def _large(n: int) -> str:
    """Return a whole number, as a power of ten if it is very large.

    >>> _large(56_000), _large(2 * 10**400)
    ('56,000', 'about 2e400')
    """
    if n < 10**9:
        return f"{n:,}"
    power = math.floor(math.log10(n))
    return f"about {10 ** (math.log10(n) - power):.2g}e{power}"

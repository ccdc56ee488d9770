"""Functions that are deep by nature: composed zigzags and zonotope networks, pieces counted exactly.

The source draws them in two figures and states how many pieces they have. Here the same networks are
built, their pieces are counted in rational arithmetic, and the printed numbers stand beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.box import Box
from pindown.circuits.arithmetic import depth, size
from pindown.circuits.depth_separation import composed_zigzags
from pindown.circuits.piecewise_1d import PiecewiseLinear1D
from pindown.circuits.zonotopes import zonotope_family
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.exact.complex import exact_complex
from pindown.network import ReluNetwork
from pindown_reproduction.experiment import (
    Cause,
    Cell,
    Experiment,
    Outcome,
    Power,
    Results,
    stream,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SQUARE = [[0, 1], [1, 0]]
_OCTAGON = [[0.25, 0.5], [-0.5, 0], [0, -0.25], [-0.25, -0.25]]
_PANELS = (
    {"figure": "2.2 left", "generators": _SQUARE, "zigzags": 2},
    {"figure": "2.2 middle", "generators": _OCTAGON, "zigzags": 2},
    {"figure": "2.2 right", "generators": _OCTAGON, "zigzags": 3},
)
# Any vectors of these lengths do; the source does not say which it drew.
_FIGURE_1 = {"figure": "2.1", "peaks": [["1/3", "2/3"], ["1/2"]]}


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """The figures, and the family of the first with random peaks."""
    family = [
        {"figure": f"family of 2.1, w = {w}, k = {k}", "peaks": _random_peaks(w, k)}
        for w, k in settings["family"]
    ]
    return [dict(_FIGURE_1), *map(dict, _PANELS), *family]


def run(cell: Cell) -> dict[str, Any]:
    """Build the network and count its pieces: on [0, 1] for zigzags, everywhere for zonotopes."""
    if "peaks" in cell:
        net = composed_zigzags(_fractions(_peaks(cell)))
        pieces = PiecewiseLinear1D.from_network(net).on(0, 1)
        return {"pieces": pieces, "size": size(net), "depth": depth(net)}
    family = _zonotope(cell)
    found = exact_complex(family, _box(cell))
    return {"pieces": found.n_pieces, "size": family.size, "depth": family.depth}


def published(cell: Cell) -> dict[str, Any]:
    """Return the printed pieces, size and depth."""
    if "peaks" in cell:
        widths = [len(a) + 1 for a in cell["peaks"]]
        return {"pieces": [int(np.prod(widths))], "size": sum(widths), "depth": len(widths) + 1}
    n, m, w, k = 2, len(cell["generators"]), 2, cell["zigzags"]
    printed = [(m - 1) ** (n - 1) * w**k, sum(comb(m - 1, i) for i in range(n)) * w**k]
    return {"pieces": printed, "size": 2 * m + w * k, "depth": k + 2}


def compare(results: Results) -> Outcome:
    """Compare every printed number with the measured one."""
    rows, pieces_hold, shapes_hold = [], [], []
    for cell, found in results:
        said = published(cell)
        pieces_hold.append(set(said["pieces"]) == {found["pieces"]})
        shapes_hold.append((said["size"], said["depth"]) == (found["size"], found["depth"]))
        shown = " or ".join(map(str, dict.fromkeys(said["pieces"])))
        rows.append(
            (
                cell["figure"],
                shown,
                found["pieces"],
                f"{said['size']} ReLUs, depth {said['depth']}",
                f"{found['size']} ReLUs, depth {found['depth']}",
                "yes" if pieces_hold[-1] and shapes_hold[-1] else "no",
            )
        )
    words = (
        f"Sizes and depths are as printed in {sum(shapes_hold)} of {len(rows)} networks, the number of "
        f"pieces in {sum(pieces_hold)}."
    )
    if not all(pieces_hold):
        words += (
            " A zonotope has twice the vertices that the source counts, and around it the function is "
            "flat: one piece more."
        )
    return Outcome(
        verdict="reproduced" if all(pieces_hold) and all(shapes_hold) else "not reproduced",
        words=words,
        columns=("figure", "pieces, printed", "pieces", "network, printed", "network", "as printed"),
        rows=tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw both figures: the zigzags with their composition, and the zonotope functions above zero."""
    from matplotlib.figure import Figure

    from pindown.geometry.plots.cells import plot_surface

    figure = Figure()
    shown = [cell for cell, _ in results if not cell["figure"].startswith("family")]
    zigzags = next((cell for cell in shown if "peaks" in cell), _FIGURE_1)
    first, second = _fractions(zigzags["peaks"])
    _draw_zigzag(figure.add_subplot(2, 3, 1), [first], "Figure 2.1: $h_{a^1}$")
    _draw_zigzag(figure.add_subplot(2, 3, 2), [second], "Figure 2.1: $h_{a^2}$")
    ax = figure.add_subplot(2, 3, 3)
    _draw_zigzag(ax, [first], "", style=":")
    _draw_zigzag(ax, [first, second], "Figure 2.1: $h_{a^2} \\circ h_{a^1}$")
    for i, cell in enumerate(cell for cell in shown if "generators" in cell):
        positive = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])]) @ _zonotope(cell)
        ax = figure.add_subplot(2, 3, 4 + i, projection="3d")
        plot_surface(polyhedral_complex(positive, _near(cell)), ax=ax, view=(48.0, -58.0))
        ax.set_title(f"Figure {cell['figure']}")
    return figure


def _draw_zigzag(ax: Any, peaks: Sequence[Sequence[Fraction]], title: str, style: str = "-") -> None:
    f = PiecewiseLinear1D.from_network(composed_zigzags(peaks))
    t = np.array([-0.15, *(float(a) for a in f.breakpoints if 0 <= a < 1), 1.0])
    ax.plot(t, f(t), style, color="C0" if style == "-" else "#7F7F7F", linewidth=1.5)
    ax.set(title=title, xlabel="x", ylabel="value")


def _zonotope(cell: Cell) -> ReluNetwork:
    return zonotope_family([[0.5]] * cell["zigzags"], cell["generators"])


def _box(cell: Cell) -> Box:
    """Return a square outside of which the support function exceeds 1.5: every piece is seen."""
    B = np.array(cell["generators"], dtype=float)
    reach = 1.5 / float(np.linalg.eigvalsh(B.T @ B)[0]) ** 0.5
    return Box.cube(2, -reach, reach)


def _near(cell: Cell) -> Box:
    """Return a square that just holds the points where the support function is 1 or less."""
    B = np.array(cell["generators"], dtype=float)
    corners = np.column_stack([-B[:, 1], B[:, 0]])  # the level set has its corners where a term is 0
    corners /= np.abs(corners @ B.T).sum(axis=1, keepdims=True)
    reach = 1.1 * float(np.abs(corners).max())
    return Box.cube(2, -reach, reach)


def _fractions(peaks: Sequence[Sequence[str]]) -> list[list[Fraction]]:
    return [[Fraction(v) for v in a] for a in peaks]


def _peaks(cell: Cell) -> list[list[str]]:
    """Return the peaks of a cell: those of the figure, or as many others with another seed."""
    peaks: list[list[str]] = cell["peaks"]
    return _random_peaks(len(peaks[0]) + 1, len(peaks), cell) if "seed" in cell else peaks


def _random_peaks(w: int, k: int, cell: Mapping[str, Any] | None = None) -> list[list[str]]:
    rng = np.random.default_rng(stream(cell or {}, w, k))
    drawn = [np.sort(rng.choice(np.arange(1, 60), w - 1, replace=False)) for _ in range(k)]
    return [[f"{int(v)}/60" for v in a] for a in drawn]


EXPERIMENT = Experiment(
    id="depth-separation",
    title="Functions that are deep by nature",
    source="Mukherjee 2020, Figures 2.1 and 2.2, Theorems 2.3.2 and 2.3.10, Proposition 2.3.9",
    published="k zigzags of w pieces compose to w^k pieces on [0, 1]; after a zonotope with m "
    "generators in the plane they make (m - 1) w^k pieces by the proposition, m w^k by the theorem.",
    rule="Reproduced if every printed number of pieces, ReLUs and layers is what exact counting finds.",
    settings={
        "quick": {"family": [(2, 4), (3, 3), (4, 2)]},
        "paper": {"family": [(w, k) for w in (2, 3, 4, 5) for k in (1, 2, 3, 4)]},
    },
    seconds={"quick": 0.1},
    power=Power(seeds=0, why="Pieces are counted in exact arithmetic: one network decides."),
    cause=Cause(
        "the source",
        "In the plane a zonotope with m generators has 2 m vertices, not m, and the function is flat "
        "around it: one piece more. Counting gives 2 m w^k + 1 in every panel.",
        "the table; the erratum on Theorem 2.3.10",
    ),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)

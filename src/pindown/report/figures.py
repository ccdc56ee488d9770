"""Pictures of findings as small inline SVG that follows the page's colours.

Text stays text, colours become CSS variables (so dark mode works without a second picture), and ids
are the same on every run and different between pictures.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from pindown.extras import MissingExtraError
from pindown.findings.pictures import (
    Curves,
    Histogram,
    Narrowing,
    Picture,
    PlaneMap,
    Scale,
    StackedBars,
)
from pindown.findings.wording import at_least, at_most, number_text
from pindown.report.planes import draw_map
from pindown.report.tuning import MAX_BARS, MAX_CORNERS, MAX_TICK_LETTERS

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Colours that occur nowhere else; each is replaced by the CSS variable beside it.
_INK, _MUTED, _LINE, _PAPER = "#010203", "#010204", "#010205", "#010206"
_FILLS = ("#010211", "#010212", "#010213", "#010214")
_WARN, _SPAN = "#010221", "#010222"
_VARIABLES = {
    _INK: "--ink",
    _MUTED: "--muted",
    _LINE: "--line",
    _PAPER: "--card",
    _WARN: "--warn",
    _SPAN: "--span",
    **{fill: f"--fill-{i}" for i, fill in enumerate(_FILLS, 1)},
}
_WIDTH = 4.0  # inches; shown at about this size, so that letters are as large as the page's
_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": _INK,
    "axes.labelcolor": _MUTED,
    "axes.edgecolor": _LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.labelcolor": _INK,
}
_TIP = "tip: "  # begins the id of what the page explains under the pointer
_FAR_RIGHT = 0.6  # share of an axis from which on a label has more room to the left of its line
# The same word has the same colour in every picture; what is ordinary is grey.
_COLOURS = {
    "dead": _WARN,
    "constant": _FILLS[1],
    "always on": _FILLS[0],
    "switching": _FILLS[3],
    "undecided": _FILLS[3],
}


def draw(picture: Picture, prefix: str) -> str:
    """Return the picture as an ``<svg>`` element, a map as a plane with its legend.

    Args:
        picture: What to draw.
        prefix: Put before every id, so that several pictures fit in one page.
    """
    if isinstance(picture, PlaneMap):
        return draw_map(picture, prefix)
    try:
        from pindown.extras import matplotlib as mpl
    except MissingExtraError as missing:
        return f'<p class="note">No picture: {escape(str(missing))}</p>'
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    painters: dict[type, tuple[Callable[[Axes, Any], None], float]] = {
        Histogram: (_draw_histogram, 2.3),
        StackedBars: (_draw_bars, 0.9 + 0.3 * _bars_shown(picture)),
        Scale: (_draw_scale, 1.9),
        Curves: (_draw_curves, 2.6),
        Narrowing: (_draw_narrowing, 2.6),
    }
    paint, height = painters[type(picture)]
    with mpl.rc_context({**_STYLE, "svg.hashsalt": prefix}):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        ax = figure.add_subplot()
        paint(ax, picture)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _inline(buffer.getvalue(), prefix)


def _bars_shown(picture: Picture) -> int:
    return min(len(picture.labels), MAX_BARS) if isinstance(picture, StackedBars) else 0


def _draw_histogram(ax: Axes, picture: Histogram) -> None:
    edges, below = picture.edges, picture.highlight_below
    for left, right, height in zip(edges, edges[1:], picture.counts, strict=False):
        wrong = below is not None and (left + right) / 2 < below
        bar = ax.bar(
            left, height, right - left, align="edge", color=_WARN if wrong else _FILLS[0], linewidth=0
        )
        _tip(bar[0], f"{number_text(left)} to {number_text(right)}: {height:,} {picture.y_label}")
    top = max(picture.counts)
    if picture.logarithmic:
        ax.set_xscale("log")
        ax.set_xlim(edges[0], edges[-1])
        _plain_ticks(ax, edges[0], edges[-1])
    for mark in picture.marks:
        ax.axvline(mark.position, color=_INK, linewidth=1, linestyle=(0, (3, 2)))
        far = ax.transLimits.transform(ax.transScale.transform((mark.position, 0.0)))[0] > _FAR_RIGHT
        ax.annotate(
            f"{mark.label} {number_text(mark.position)}",
            (mark.position, 1.27 * top),
            xytext=(-4 if far else 4, 0),
            textcoords="offset points",
            va="top",
            ha="right" if far else "left",
        )
    if below is not None and edges[0] < below < edges[-1]:
        ax.axvline(below, color=_INK, linewidth=1)
    ax.set_ylim(0, (1.3 if picture.marks else 1.1) * top)
    ax.set_xlabel(picture.x_label)
    ax.set_ylabel(picture.y_label)
    ax.locator_params(axis="y", nbins=4, integer=True)


def _draw_bars(ax: Axes, picture: StackedBars) -> None:
    labels, values = picture.labels[:MAX_BARS], picture.values[:MAX_BARS]
    starts = [0.0] * len(labels)
    # Nothing is worth a colour that nothing has.
    parts = [p for p in range(len(picture.parts)) if any(row[p] for row in values)] or [0]
    for p in parts:
        lengths = [row[p] for row in values]
        bars = ax.barh(
            labels,
            lengths,
            left=starts,
            height=0.62,
            color=_colour(picture.parts[p], p),
            label=picture.parts[p],
        )
        for bar, label, length in zip(bars, labels, lengths, strict=True):
            _tip(bar, f"{label}: {number_text(length)} {picture.parts[p]}")
        starts = [start + length for start, length in zip(starts, lengths, strict=True)]
    if len(picture.parts) == 1:
        for i, total in enumerate(starts):
            ax.annotate(number_text(total), (total, i), (4, 0), textcoords="offset points", va="center")
        ax.set_xlim(0, 1.15 * max(starts, default=1.0) or 1.0)
    else:
        ax.legend(
            loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=4, handlelength=1, columnspacing=1.2
        )
    ax.invert_yaxis()
    ax.set_xlabel(picture.x_label)
    ax.locator_params(axis="x", nbins=6)


def _colour(part: str, index: int) -> str:
    return _COLOURS.get(part, _FILLS[index % len(_FILLS)])


def _draw_scale(ax: Axes, picture: Scale) -> None:
    positions = [mark.position for mark in picture.points]
    low, high = min(positions), max(positions)
    if high > 3 * low > 0:
        ax.set_xscale("log")
        ax.set_xlim(low / (high / low) ** 0.1, high * (high / low) ** 0.25)
    else:
        pad = 0.2 * (high - low) or 0.1 * abs(high) or 1.0
        ax.set_xlim(low - pad, high + 1.5 * pad)
    ax.axvspan(*picture.span, color=_SPAN, linewidth=0)
    labels = [mark.label for mark in picture.points]
    for i, position in enumerate(positions):
        text = at_least(position) if position <= picture.span[0] else at_most(position)
        _tip(ax.plot([position], [labels[i]], "o", color=_FILLS[0])[0], f"{labels[i]}: {text}")
        ax.annotate(text, (position, i), (7, 0), textcoords="offset points", va="center")
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.set_xlabel(picture.x_label)
    _plain_ticks(ax, low, high)


def _draw_curves(ax: Axes, picture: Curves) -> None:
    styles = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
    for i, (name, values) in enumerate(zip(picture.names, picture.values, strict=True)):
        colour = _FILLS[i % 3]
        style = styles[i // 3 % 4]
        curve = ax.plot(picture.x, values, color=colour, linestyle=style, label=name, linewidth=1.6)
        _tip(curve[0], name)
        corners = list(zip(picture.x, values, strict=True))[1:-1]
        for x, y in corners if len(picture.x) <= MAX_CORNERS else ():
            corner = ax.plot([x], [y], "o", color=colour, markersize=3.2)
            _tip(corner[0], f"{name}: {number_text(y)} at {number_text(x)}")
    if len(picture.names) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=3, handlelength=1.6)
    ax.spines["left"].set_visible(True)
    ax.margins(x=0.01)
    ax.set_xlabel(picture.x_label)
    ax.set_ylabel(picture.y_label)
    ax.locator_params(nbins=5)
    if picture.counts:
        ax.set_ylim(bottom=0.0)
        ax.locator_params(axis="y", integer=True)


def _draw_narrowing(ax: Axes, picture: Narrowing) -> None:
    ends = [*picture.lower, *picture.upper, picture.mark]
    known = [end for end in ends if 0 < end < math.inf] or [1.0]
    foot, top = 10 ** (math.log10(min(known)) - 1), 10 ** (math.log10(max(known)) + 1)
    last = max(1.15 * picture.seconds[-1], 1e-3)
    seconds = [0.0, *picture.seconds, last]

    def steps(values: tuple[float, ...], before: float) -> list[float]:
        inside = [min(max(value, foot), top) for value in (before, *values)]
        return [*inside, inside[-1]]

    lower, upper = steps(picture.lower, 0.0), steps(picture.upper, math.inf)
    ax.fill_between(seconds, lower, upper, step="post", color=_SPAN, linewidth=0)
    ax.step(seconds, upper, where="post", color=_FILLS[0], linewidth=1.6, label="proved at most")
    ax.step(seconds, lower, where="post", color=_FILLS[1], linewidth=1.6, label="proved at least")
    if picture.mark > 0:
        ax.axhline(picture.mark, color=_INK, linewidth=1, linestyle=(0, (3, 2)))
        ax.annotate(
            picture.mark_label,
            (last, picture.mark),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
        )
    ax.set_yscale("log")
    ax.set_ylim(foot, top)
    ax.set_xlim(0.0, last)
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, handlelength=1.6)
    ax.spines["left"].set_visible(True)
    ax.minorticks_off()
    ax.set_xlabel("seconds")
    ax.set_ylabel(picture.y_label)


def _tip(artist: Artist, words: str) -> None:
    """Let the page say these words when the pointer is on this part of the picture."""
    artist.set_gid(f"{_TIP}{words}")


def _plain_ticks(ax: Axes, low: float, high: float) -> None:
    """Write 50, not 5 times ten to the one, and only a few of them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    if ax.get_xscale() == "log":
        decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
        per_decade = (1, 2, 5) if len(decades) <= 5 else (1,)
        left, right = ax.get_xlim()
        ticks = [m * 10.0**e for e in decades for m in per_decade if left <= m * 10.0**e <= right]
        letters = sum(len(number_text(tick)) + 2 for tick in ticks)
        ax.xaxis.set_major_locator(FixedLocator(ticks[:: max(1, math.ceil(letters / MAX_TICK_LETTERS))]))
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        ax.locator_params(axis="x", nbins=5)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))


def _inline(svg: str, prefix: str) -> str:
    """Cut a whole SVG file down to an element that fits into the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style.*?</style>\s*", "", svg, flags=re.DOTALL)  # would apply to the whole page
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'font: ([\d.]+)px [^;"]*', r"font-size: \1px", svg)  # the page's own typeface
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(rf'\bid="{_TIP}([^"]*)"', r'data-tip="\1"', svg)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)
    return re.sub(r"\n\s*", "\n", svg).strip()

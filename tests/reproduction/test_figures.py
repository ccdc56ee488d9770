"""Figures of experiments can be read: axes have names, ticks count, nothing lies over anything else."""

import itertools

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

from pindown_reproduction import EXPERIMENTS  # noqa: E402
from pindown_reproduction.experiment import Experiment, Outcome  # noqa: E402
from pindown_reproduction.figures import figure_of, panels, png_of, style, svg_of  # noqa: E402

# Seconds of one core at quick scale: those below run always, those in between with `make slow`.
ALWAYS, SLOW = 1.6, 30


def experiment(draw):
    return Experiment(
        id="a",
        title="",
        source="",
        published="",
        rule="",
        settings={"quick": {}},
        cells=lambda settings: [],
        run=lambda cell: {},
        compare=lambda results: Outcome("reproduced", "", (), ()),
        draw=draw,
    )


def drawn(prepare):
    """Return the figure of an experiment that draws like this on one panel."""

    def draw(results):
        figure = Figure()
        prepare(figure.add_subplot(xlabel="x", ylabel="y"))
        return figure

    return figure_of(experiment(draw), [])


def faults(figure):
    """Return in words what a reader would stumble over."""
    with style():
        figure.draw_without_rendering()
    found = [fault for ax in figure.axes for fault in _unnamed(ax)]
    texts = [text for ax in figure.axes for text in _texts(ax)]
    for (first, a), (second, b) in itertools.combinations(texts, 2):
        if _overlap(a, b):
            found.append(f"{first!r} lies over {second!r}")
    for ax in figure.axes:
        if ax.get_legend() is not None:
            box = ax.get_legend().get_window_extent()
            found += [
                f"the legend {labels(ax)} lies over a panel"
                for other in figure.axes
                if _overlap(box, other.get_window_extent())
            ]
            if not figure.bbox.padded(2).containsx(box.x1):
                found.append(f"the legend {labels(ax)} is cut off")
    return found


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def _unnamed(ax):
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if ax.axison and _shown(axis) and not axis.get_label_text():
            yield f"the {name} axis has no name"
    bars = [group for group in ax.containers if hasattr(group, "has_yerr")]
    said = {group.lines[0] for group in bars if not group.get_label().startswith("_")}
    said |= {cap for group in bars for cap in group.lines[1]}
    dotted = [line for line in ax.lines if line.get_linestyle() == "None" and line not in said]
    words = " ".join([ax.get_title(loc="left"), ax.get_title(), ax.get_xlabel(), ax.get_ylabel()])
    if (
        any(line.get_label().startswith("_") and len(line.get_xdata()) for line in dotted)
        and "dot" not in words
    ):
        yield "dots are not explained"
    colours = {}
    for line, label in zip(*ax.get_legend_handles_labels(), strict=True):
        colours.setdefault(label, set()).add(str(getattr(line, "get_color", lambda: "")()))
    yield from (f"{label!r} has several colours" for label, used in colours.items() if len(used) > 1)


def _shown(axis):
    """Return the ticks' labels that can be seen."""
    letters = [tick.label1 for tick in axis._update_ticks()]
    return [label for label in letters if label.get_visible() and label.get_text()]


def _texts(ax):
    """Return the texts of a panel in the plane with the boxes around them."""
    if ax.name == "3d" or not ax.axison:
        return
    own = [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
    for text in [*_shown(ax.xaxis), *_shown(ax.yaxis), *own, *ax.texts]:
        if text.get_text():
            box = text.get_window_extent()
            # Turned letters fill little of their box.
            turned = text.get_rotation() % 90 != 0
            yield text.get_text(), box.shrunk(0.3, 0.3) if turned else box


def _overlap(a, b):
    across = min(a.x1, b.x1) - max(a.x0, b.x0)
    up = min(a.y1, b.y1) - max(a.y0, b.y0)
    return across > 1 and up > 1


def cases():
    for one in EXPERIMENTS.values():
        seconds = one.seconds.get("quick", np.inf)
        if one.draw is not None and seconds < SLOW:
            yield pytest.param(one.id, marks=[pytest.mark.slow] if seconds > ALWAYS else [])


@pytest.mark.parametrize("name", list(cases()))
def test_a_figure_can_be_read(name):
    one = EXPERIMENTS[name]
    results = [(cell, one.run(cell)) for cell in one.cells(one.settings["quick"])]
    assert faults(figure_of(one, results)) == []


def test_what_cannot_be_read_is_seen():
    def legend_inside(ax):
        ax.plot([1, 2], [1, 2], label="a line")

    figure = drawn(legend_inside)
    assert faults(figure) == []
    (ax,) = figure.axes
    ax.legend(loc="center")
    assert any("lies over a panel" in fault for fault in faults(figure))
    ax.get_legend().remove()
    ax.set_xlabel("")
    assert faults(figure) == ["the x axis has no name"]
    ax.set_xlabel("x")
    ax.set_xticks([1.0, 1.01, 2.0], ["first", "second", "third"])
    assert faults(figure) == ["'first' lies over 'second'"]
    ax.set_xticks([1.0, 2.0])
    ax.plot([1.5], [1.5], "o")
    assert faults(figure) == ["dots are not explained"]


@pytest.mark.parametrize(("depths", "whole"), [([2, 3, 4], True), ([2.0, 3.0, 4.0], False)])
def test_what_is_counted_has_whole_ticks(depths, whole):
    (ax,) = drawn(lambda ax: ax.plot(depths, [0.1, 0.2, 0.3], "o-")).axes
    ticks = [t for t in ax.get_xticks() if 2 <= t <= 4]
    assert (ticks == [2, 3, 4]) == whole
    assert any(t != round(t) for t in ax.get_yticks())


def test_reference_lines_do_not_decide_what_is_counted():
    def prepare(ax):
        ax.plot([1, 2, 3], [0.1, 0.2, 0.3])
        ax.axhline(1)
        ax.axvline(2.5)

    (ax,) = drawn(prepare).axes
    assert any(t != round(t) for t in ax.get_yticks())
    assert any(t != round(t) for t in ax.get_xticks()), "2.5 stands on this axis"


@pytest.mark.parametrize("top", [1.4, 3, 40, 400, 1e5])
def test_short_log_scales_have_ticks_that_can_be_read(top):
    figure = drawn(lambda ax: ax.semilogy([0.5, 1.5], [1.0, top]))
    (ax,) = figure.axes
    assert faults(figure) == []
    assert 2 <= len(_shown(ax.yaxis)) <= 8


def test_a_legend_stands_once_for_panels_that_share_it():
    def draw(results):
        figure, axes = panels(4)
        for i, ax in enumerate(axes):
            ax.plot([1, 2], [1, 2], label="first")
            ax.plot([1, 2], [2, 1], color="C1", label="second")
            ax.plot([1, 2], [2, 2], color="C1", label="second")
            ax.set(xlabel="x", ylabel="y", title=str(i))
        return figure

    figure = figure_of(experiment(draw), [])
    assert [ax.get_legend() is not None for ax in figure.axes] == [False, False, True, False]
    assert labels(figure.axes[2]) == ["first", "second"]
    assert faults(figure) == []
    assert figure.get_figwidth() > figure.get_figheight()


def test_a_users_settings_change_nothing():
    one = experiment(lambda results: drawn(lambda ax: ax.plot([1, 2], [3, 4], "C1o", label="a")))
    plain = figure_of(one, [])
    before = svg_of(plain, "a"), png_of(plain, 50)
    with matplotlib.rc_context({"lines.linewidth": 9, "axes.prop_cycle": matplotlib.cycler(color="k")}):
        again = figure_of(one, [])
        assert (svg_of(again, "a"), png_of(again, 50)) == before

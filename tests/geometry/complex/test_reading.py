"""Facts are read off as many cells as the time allows; nothing else changes them."""

import time

import numpy as np
import pytest

from pindown.box import Box
from pindown.compiling import by, cut_at
from pindown.deadline import NEVER, Deadline, OutOfTime
from pindown.geometry.complex._reading import _read_within, read_cells
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.convexity import convexity
from pindown.geometry.facts.level_sets import volume_above
from tests.geometry.fold_nets import gaussian

NET, SQUARE = gaussian(np.random.default_rng(0), (2, 30, 30, 1)), Box.cube(2, -2.0, 2.0)


class Slow:
    """A reader that takes some milliseconds for every cell, by a clock of its own."""

    def __init__(self, monkeypatch, each):
        self.now, self.each, self.sizes = 0.0, each, []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def __call__(self, cx):
        self.sizes.append(cx.n_regions)
        self.now += self.each * cx.n_regions
        return cx


@pytest.mark.parametrize("budget", [0.5, 2.0, 10.0])
def test_no_more_is_read_than_the_time_allows(monkeypatch, budget):
    reader = Slow(monkeypatch, 1e-3)
    cx = read_cells(reader, NET, SQUARE, budget=budget)
    assert reader.now <= 1.1 * budget + 0.3
    assert cx.n_regions == max(reader.sizes) and cx.complete == (budget == 10.0)


def test_what_there_is_time_for_is_read_whole(monkeypatch):
    reader = Slow(monkeypatch, 1e-6)
    cx = read_cells(reader, NET, SQUARE, budget=10.0)
    assert cx.complete and cx.n_regions == polyhedral_complex(NET, SQUARE).n_regions


def test_no_budget_reads_once(monkeypatch):
    reader = Slow(monkeypatch, 1.0)
    for budget in (None, np.inf):
        read_cells(reader, NET, SQUARE, budget=budget)
    assert len(reader.sizes) == 2 and reader.sizes[0] == reader.sizes[1]


def test_plain_loops_are_given_up_when_the_time_is_over(monkeypatch):
    """Cells may be found by machine code, and read by loops that nobody has compiled."""
    monkeypatch.setattr(time, "monotonic", time.process_time)
    net, box = gaussian(np.random.default_rng(2), (5, 16, 1)), Box.cube(5, -2.0, 2.0)
    cx = polyhedral_complex(net, box, max_cells=100)

    def read(part):
        return part.volumes.sum()

    with by("plain"):
        began = time.process_time()
        volume, n = _read_within(read, cx, Deadline.after(0.2))
        assert time.process_time() - began < 0.6 and n < cx.n_regions
        assert volume == cx.first(n).volumes.sum()
        assert _read_within(read, cx, Deadline.after(0.0)) == (0.0, 0)
        with cut_at(Deadline.after(0.0)), cut_at(NEVER), pytest.raises(OutOfTime):
            read(cx.first(1))
        assert read(cx.first(1)) > 0  # no limit is left behind


@pytest.mark.parametrize("widths", [(1, 9, 1), (2, 12, 8, 1), (3, 6, 5, 1)])
def test_the_first_cells_are_those_of_the_whole(widths):
    net, box = gaussian(np.random.default_rng(1), widths), Box.cube(widths[0], -2.0, 2.0)
    whole = polyhedral_complex(net, box)
    n = whole.n_regions // 2
    part = whole.first(n)
    assert part.n_regions == n and not part.complete and whole.first(10**6) is whole
    np.testing.assert_allclose(part.volumes, whole.volumes[:n])
    both = set(map(tuple, whole.neighbours.tolist()))
    assert set(map(tuple, part.neighbours.tolist())) == {p for p in both if max(p) < n}
    assert volume_above(part).volume <= volume_above(whole).volume * (1 + 1e-9)
    if convexity(part)[0].verdict == "neither":
        assert convexity(whole)[0].verdict == "neither"

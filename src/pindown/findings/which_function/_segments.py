"""Segments walked from fold to fold, as many as time allows; a short piece tells the price of one."""

from __future__ import annotations

from pindown.affine import Array
from pindown.deadline import Stopwatch
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    CELLS_FOR_THE_PRICE,
    FLOPS_PER_SECOND,
    MIN_PIECE,
    SECONDS_PER_LOOK,
    SEGMENTS_PER_LOOK,
)
from pindown.geometry.slices.segment import ManySegmentFolds, along_segments
from pindown.network import ReluNetwork


def walked(subject: Subject, starts: Array, ends: Array, share: float) -> list[ManySegmentFolds]:
    """Return the folds on segments, some at a time.

    Args:
        subject: The network, and the time there is.
        starts: Where they begin, (n, d).
        ends: Where they end.
        share: Share of the time left for this question.

    Raises:
        TooLong: If one of them does not fit.
    """
    until = subject.turn.share(share)
    price = _price(subject, starts[:1], ends[:1])
    subject.require(price, measured=True)
    found: list[ManySegmentFolds] = []
    done, step = 0, SEGMENTS_PER_LOOK if price * SEGMENTS_PER_LOOK <= SECONDS_PER_LOOK else 1
    while done < len(starts) and not (found and until.passed):
        part = slice(done, done + step)
        found.append(along_segments(subject.net, starts[part], ends[part]))
        done += step
    return found


def _price(subject: Subject, start: Array, end: Array) -> float:
    """Return about how many seconds one segment takes, by a piece that crosses some cells."""
    share = MIN_PIECE
    while True:
        subject.require(share * _at_most(subject.net))
        watch = Stopwatch()
        piece = along_segments(subject.net, start, start + share * (end - start))
        if share == 1.0 or piece.n_cells[0] >= CELLS_FOR_THE_PRICE:
            return watch.seconds / share
        share = min(1.0, 4.0 * share)


def _at_most(net: ReluNetwork) -> float:
    """Return what a segment takes on a slow core if every unit switches on it, once."""
    return 2.0 * net.size * net.n_parameters / FLOPS_PER_SECOND

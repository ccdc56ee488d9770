"""Reading facts off a complex: one that was given, or that of a network, found within a budget."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeVar

from numpy.typing import ArrayLike

from pindown.box import Box
from pindown.compiling import cut_at, time_limit
from pindown.deadline import Deadline, OutOfTime, Stopwatch
from pindown.geometry.complex.polyhedral import PolyhedralComplex, polyhedral_complex
from pindown.geometry.tuning import (
    FIRST_CELLS_READ,
    MAX_READING_GROWTH,
    READING_RESERVE,
    TRIAL_WALK_SHARE,
)
from pindown.network import ReluNetwork

BoxLike = Box | tuple[ArrayLike, ArrayLike]
Fact = TypeVar("Fact")


def complex_of(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    budget: float | None = None,
    certified: bool = False,
) -> PolyhedralComplex:
    """Return the complex that was given, or find that of a network on a box.

    Raises:
        TypeError: If a network comes without a box, or a complex with a box or a budget.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    >>> complex_of(net, (-1, 1))
    PolyhedralComplex(2 cells, 2 pieces, complete)
    """
    if isinstance(net, PolyhedralComplex):
        if box is not None or budget is not None:
            raise TypeError(
                "a complex has its own box and is found already; give it without box and budget."
            )
        if certified and not net.certified:
            raise TypeError("this complex is not certified; give the network and the box instead.")
        return net
    if not isinstance(net, ReluNetwork):
        raise TypeError(f"net must be a ReluNetwork or a PolyhedralComplex; got {type(net).__name__}.")
    if box is None:
        raise TypeError("a network needs a box beside it, such as box=(-1, 1).")
    return polyhedral_complex(net, box, budget=budget, certified=certified)


def read_cells(
    read: Callable[[PolyhedralComplex], Fact],
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    budget: float | None = None,
    certified: bool = False,
) -> Fact:
    """Find the cells of a network and read a fact off them, both within a budget.

    Reading can take longer than finding. A short walk tells the price of both; the time is then shared
    such that what is found can be read, and if it cannot, the cells found first are.
    """
    if budget in (None, inf) or isinstance(net, PolyhedralComplex):
        return read(complex_of(net, box, budget=budget, certified=certified))
    deadline = Deadline.of(budget)
    with time_limit(deadline):
        few = complex_of(net, box, budget=TRIAL_WALK_SHARE * budget, certified=certified)
        watch = Stopwatch()
        fact, n = _read_within(read, few, deadline.share(0.5))
        walking, reading = few.seconds, watch.seconds * few.n_regions / max(n, 1)
        if few.complete or n < few.n_regions or deadline.left <= 2 * few.seconds:
            return fact if n == few.n_regions else _read_within(read, few, deadline)[0]
        share = walking / (walking + READING_RESERVE * reading)
        more = complex_of(net, box, budget=share * deadline.left, certified=certified)
        return _read_within(read, more, deadline)[0] if more.n_regions > n else fact


def _read_within(
    read: Callable[[PolyhedralComplex], Fact], cx: PolyhedralComplex, deadline: Deadline
) -> tuple[Fact, int]:
    """Read a fact off as many cells as the time allows; return it and how many.

    Those are a few at least, but where loops are plain there may be no time for one.
    """
    n, best = FIRST_CELLS_READ, None
    while True:
        watch, part = Stopwatch(), cx.first(n)
        try:
            with cut_at(deadline):
                best = read(part), part.n_regions
        except OutOfTime:
            return best or (read(cx.first(0)), 0)
        each = READING_RESERVE * watch.seconds / max(part.n_regions, 1)
        affordable = int(deadline.left / max(each, 1e-12))
        if part is cx or affordable < READING_RESERVE * n:
            return best
        far = cx.n_regions <= affordable / MAX_READING_GROWTH
        n = cx.n_regions if far else min(affordable, MAX_READING_GROWTH * n)

r"""Signs of units proved by cutting the box into smaller ones.

On a small box linear bounds are tight, so a unit that is negative everywhere, with some room, is
proved so on every piece of a fine enough partition. All units share one partition; a piece is cut
while some unit is open on it, and a unit is given up once a point contradicts it or its pieces become
too small.

Bunel et al. 2020, "Branch and bound for piecewise linear neural network verification".
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.shrinking.columns import Mask
from pindown.network import ReluNetwork
from pindown.relaxation.linear import relax

MOST_INPUTS = 6  # every cut halves one coordinate; with more of them partitions grow too fast
_BATCH_ENTRIES = 2**21  # boxes handled at once times the units of the network
_MOST_PIECES = 2**14  # waiting to be cut: what is open on so many will not be settled
_SMALLEST_SIDE = 2.0**-9  # of the box: a unit still open then touches zero, or nearly so


def signs_by_splitting(
    net: ReluNetwork, box: Box, dead: list[Mask], on: list[Mask], until: float
) -> tuple[list[Mask], list[Mask]]:
    """Prove that units are never positive, or never negative, on the box.

    Args:
        net: The network.
        box: The inputs.
        dead: For every hidden layer, which units to prove at most 0.
        on: For every hidden layer, which units to prove at least 0.
        until: When to stop (monotonic time); what is open then is not proved.

    Returns:
        Which of them are proved, in the same two forms.
    """
    ends = np.cumsum([len(mask) for mask in dead])[:-1]
    wanted = np.concatenate(dead) | np.concatenate(on)
    negative = np.concatenate(dead)
    layers = 1 + max((i for i in range(len(dead)) if dead[i].any() or on[i].any()), default=-1)
    if layers == 0:
        return dead, on
    part = net[: layers + 1]
    count = part.size
    proved = _Partition(part, box, negative[:count], wanted[:count]).run(until)
    proved = np.concatenate([proved, np.zeros(len(wanted) - count, dtype=bool)])
    return np.split(proved & negative, ends), np.split(proved & ~negative, ends)


class _Partition:
    """The pieces on which units are still open."""

    def __init__(self, net: ReluNetwork, box: Box, negative: Mask, wanted: Mask) -> None:
        self.net, self.negative, self.wanted = net, negative, wanted.copy()
        self.side = np.where(box.upper > box.lower, box.upper - box.lower, np.inf)
        self.lower, self.upper = box.lower[None], box.upper[None]
        self.open = wanted[None].copy()
        self.batch = max(1, _BATCH_ENTRIES // max(1, net.size * max(net.widths)))

    def run(self, until: float) -> Mask:
        """Cut until nothing is open or time is up; return the units that are proved."""
        while 0 < len(self.open) <= _MOST_PIECES and time.monotonic() < until:
            self._step()
        return self.wanted & ~self.open.any(axis=0)

    def _step(self) -> None:
        now = slice(max(0, len(self.open) - self.batch), None)  # the newest first: memory stays small
        lower, upper, still = self.lower[now], self.upper[now], self.open[now]
        self.lower, self.upper = self.lower[: now.start], self.upper[: now.start]
        self.open = self.open[: now.start]
        bounds = relax(self.net, lower, upper).bounds[:-1]
        low = np.concatenate([z.lower for z in bounds], axis=1)
        high = np.concatenate([z.upper for z in bounds], axis=1)
        still = still & ~np.where(self.negative, high <= 0.0, low >= 0.0)
        keep = still.any(axis=1)
        self._give_up(lower[keep], upper[keep], still[keep])
        still = still[keep] & self.wanted
        self._cut(lower[keep], upper[keep], still)

    def _give_up(self, lower: Array, upper: Array, still: Mask) -> None:
        """Drop units that a midpoint contradicts, or whose open pieces are as small as they may get."""
        if not len(lower):
            return
        z = self.net.preactivations(lower / 2 + upper / 2)
        wrong = np.where(self.negative, z > 0.0, z < 0.0).any(axis=0)
        small = ((upper - lower) / self.side).max(axis=1) < _SMALLEST_SIDE
        self.wanted &= ~(wrong | still[small].any(axis=0))
        self.open &= self.wanted

    def _cut(self, lower: Array, upper: Array, still: Mask) -> None:
        """Halve the widest side of every piece on which something is open."""
        keep = still.any(axis=1)
        lower, upper, still = lower[keep], upper[keep], still[keep]
        rows: NDArray[np.intp] = np.arange(len(lower))
        axis = np.argmax((upper - lower) / self.side, axis=1)
        low, high = lower[rows, axis], upper[rows, axis]
        middle = np.clip(low / 2 + high / 2, low, high)
        left, right = upper.copy(), lower.copy()
        left[rows, axis] = right[rows, axis] = middle
        self.lower = np.concatenate([self.lower, lower, right])
        self.upper = np.concatenate([self.upper, left, upper])
        self.open = np.concatenate([self.open, still, still])

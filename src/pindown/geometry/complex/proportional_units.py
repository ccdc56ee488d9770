r"""Units of one layer with the same zero set: exact multiples of each other, and constants.

If :math:`[W_i, b_i] = m [W_j, b_j]` exactly, units i and j vanish on the same set, on every cell and
whatever the layers below do. One of them, the leader, then stands for all: the states of the others
follow, equal for m > 0 and opposite for m < 0. A unit with :math:`W_i = 0` never changes its state.
Networks written by hand, compiled or pruned are full of both.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Affine, Array, dense
from pindown.network import ReluNetwork

CONSTANT = -1


class ProportionalUnits(NamedTuple):
    """For each unit, by its place in its layer.

    Attributes:
        leader: Itself, the unit that stands for it, or ``CONSTANT``.
        follower: The next unit led by the same leader, -1 after the last.
        opposite: Whether its state is the opposite of the leader's.
    """

    leader: NDArray[np.int32]
    follower: NDArray[np.int32]
    opposite: NDArray[np.uint8]


def proportional_units(net: ReluNetwork) -> ProportionalUnits:
    """Group the units of every hidden layer, exactly.

    >>> net = ReluNetwork.from_layers([([[1.0], [-2.0], [0.0]], [1, -2, 3]), ([[1.0, 1.0, 1.0]], [0])])
    >>> proportional_units(net)
    ProportionalUnits(leader=array([ 0,  0, -1], dtype=int32), follower=array([ 1, -1, -1], dtype=int32),
          opposite=array([0, 1, 0], dtype=uint8))
    """
    layers = [_groups_of_layer(layer) for layer in net.layers[:-1]]
    if not layers:
        return ProportionalUnits(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint8))
    return ProportionalUnits(*(np.concatenate(parts) for parts in zip(*layers, strict=True)))


def flip_hashes(
    net: ReluNetwork, groups: ProportionalUnits, hashes: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Return for each unit what a key changes by when the unit and its multiples change state."""
    flips = hashes.copy()
    starts = np.repeat(np.cumsum([0, *net.hidden_widths])[:-1], net.hidden_widths)
    led = np.flatnonzero((groups.leader >= 0) & (groups.leader + starts != np.arange(net.size)))
    np.bitwise_xor.at(flips, (starts + groups.leader)[led], hashes[led])
    flips[led] = flips[(starts + groups.leader)[led]]
    return flips


def _groups_of_layer(layer: Affine) -> ProportionalUnits:
    rows = np.hstack([dense(layer.weight), layer.bias[:, None]])
    n = len(rows)
    leader = np.arange(n, dtype=np.int32)
    follower, opposite = np.full(n, -1, np.int32), np.zeros(n, np.uint8)
    constant = ~rows[:, :-1].any(axis=1)
    leader[constant] = CONSTANT
    for group in _alike(rows, np.flatnonzero(~constant)):
        chains: list[list[int]] = []  # exact multiples, each led by its first
        for i in group:
            for chain in chains:
                factor = _multiple(rows[i], rows[chain[0]])
                if factor:
                    leader[i], opposite[i] = chain[0], factor < 0
                    follower[chain[-1]] = i
                    chain.append(i)
                    break
            else:
                chains.append([i])
    return ProportionalUnits(leader, follower, opposite)


def _alike(rows: Array, among: NDArray[np.int64]) -> list[list[int]]:
    """Return groups of rows with equal quotients by their largest entry.

    Quotients are rounded correctly, so those of exact multiples are equal bit by bit.
    """
    groups: dict[bytes, list[int]] = {}
    for i in among.tolist():
        direction = rows[i] / rows[i, np.argmax(np.abs(rows[i]))] + 0.0  # no negative zeros
        groups.setdefault(direction.tobytes(), []).append(i)
    return [group for group in groups.values() if len(group) > 1]


def _multiple(row: Array, other: Array) -> Fraction:
    """Return m with ``row = m * other`` exactly, 0 if there is none."""
    if not np.array_equal(row != 0, other != 0):
        return Fraction(0)
    places = np.flatnonzero(row)
    factor = Fraction(row[places[0]]) / Fraction(other[places[0]])
    same = all(Fraction(row[i]) == factor * Fraction(other[i]) for i in places[1:])
    return factor if same else Fraction(0)

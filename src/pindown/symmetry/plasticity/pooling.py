"""Learning which units belong together: units that win in one sequence are pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.signatures.projections import as_samples
from pindown.validation import number

# Two units within this share of the largest response are tied: which of them wins is rounding.
_TIE = 1e-9


@dataclass(frozen=True)
class LearnedPools:
    """Sets of units that were linked by winning in the same sequences.

    Attributes:
        pools: Index sets, each ascending; by first member.
        labels: The pool of each unit, (m,); -1 for a unit that never won.
        ties: Frames in which two units responded equally, so that the winner means little.
        kind: ``"estimate"``.
    """

    pools: tuple[tuple[int, ...], ...]
    labels: NDArray[np.int64] = field(repr=False)
    ties: int
    kind: Kind = "estimate"

    def __str__(self) -> str:
        silent = int((self.labels < 0).sum())
        sizes = ", ".join(map(str, map(len, self.pools)))
        return f"{len(self.pools)} pools of {sizes} units; {silent} units never won; {self.ties} ties."


def learn_pools(
    bank: ArrayLike, sequences: Sequence[ArrayLike], *, share: float = 0.5, normalise: bool = True
) -> LearnedPools:
    r"""Link the winners of each sequence of frames to one complex cell.

    A sequence shows one sample as it is moved, :math:`x, g_2 x, \dots`. If the bank is closed under the
    group, the winner :math:`\arg\max_w \langle w, g x \rangle` is :math:`g \bar w` with the first
    frame's winner :math:`\bar w`: the winners are an orbit. Two units are linked if they won together in
    at least a share of the sequences in which the rarer of them won; pools are what links connect.

    Args:
        bank: Units, (m, d).
        sequences: Frames of each sequence, (T, d).
        share: Least share of common sequences; more than a half resists stray winners in noise.
        normalise: Whether units are scaled to equal length first, without which long units always win.

    >>> from pindown.symmetry.groups import cyclic
    >>> bank = np.concatenate([cyclic(3).orbit(w) for w in ([1.0, 0.0, 0.0], [1.0, 1.0, -1.0])])
    >>> shows = [cyclic(3).orbit(x) for x in ([2.0, 0.1, 0.0], [1.0, 0.9, -1.0])]
    >>> learn_pools(bank, shows).pools
    ((0, 1, 2), (3, 4, 5))

    Lecture course, section on learning the pooling (a trace rule).
    """
    units = as_samples(bank, "bank")
    number("share", share, 0.0, 1.0, above=True)
    if len(sequences) == 0:
        raise ValueError("at least one sequence of frames is needed; got none.")
    lengths = np.linalg.norm(units, axis=1, keepdims=True)
    if not (lengths > 0).all():
        raise ValueError("a unit of zeros never responds; remove it from the bank.")
    if normalise:
        units = units / lengths
    won = np.zeros((len(sequences), len(units)))
    ties = 0
    for row, frames in zip(won, sequences, strict=True):
        responses = _responses(units, frames)
        row[responses.argmax(axis=1)] = 1.0
        if len(units) > 1:
            top = np.partition(responses, -2, axis=1)[:, -2:]
            ties += int((top[:, 1] - top[:, 0] <= _TIE * np.abs(responses).max(axis=1)).sum())
    return _connect(won, share, ties)


def _responses(units: Array, frames: ArrayLike) -> Array:
    shown = as_samples(frames, "a sequence")
    if shown.shape[1] != units.shape[1]:
        raise ValueError(f"frames have {shown.shape[1]} numbers and units {units.shape[1]}.")
    return shown @ units.T


def _connect(won: Array, share: float, ties: int) -> LearnedPools:
    """Connect units that won together often enough."""
    from scipy.sparse.csgraph import connected_components

    together = won.T @ won
    wins = np.diag(together)
    rarer = np.minimum(wins[:, None], wins)
    links = (together > 0) & (together >= share * rarer)
    _, found = connected_components(links, directed=False)
    labels = np.full(len(wins), -1, dtype=np.int64)
    pools: list[tuple[int, ...]] = []
    for unit in np.flatnonzero(wins > 0):
        if labels[unit] < 0:
            members = np.flatnonzero((found == found[unit]) & (wins > 0))
            labels[members] = len(pools)
            pools.append(tuple(members.tolist()))
    return LearnedPools(tuple(pools), labels, ties)

"""What shrinking returns: the smaller network, and every step with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pindown.equivalence.comparison.bracket import TRUSTED
from pindown.network import ReluNetwork
from pindown.text import card, rounded_up

_SHOWN_RUNS = 6
_SHORTEST_RUN = 3  # two neighbours are listed, three are a range


@dataclass(frozen=True, repr=False)
class Step:
    """One reduction, in the numbering of the network as it was just before.

    Attributes:
        rule: What was done: ``"dead"``, ``"unused"``, ``"constant"``, ``"merged"``, ``"linear pair"``,
            ``"narrowed"``, ``"layer removed"``; with a tolerance also ``"near copy"``,
            ``"near opposite"``, ``"faint"``, ``"off zero"`` or ``"negligible"``.
        layer: Number of the ReLU layer, from 1.
        units: The units that went, or changed their form, from 0.
        reason: Why the function stays the same, in plain words.
        saved: How many ReLUs the network has fewer.
        gap: Proved bound on what rounding (or a tolerance) changed; 0.0 if nothing.
    """

    rule: str
    layer: int
    units: tuple[int, ...]
    reason: str
    saved: int = 0
    gap: float = 0.0

    def __str__(self) -> str:
        gap = "" if self.gap == 0.0 else f" (gap <= {rounded_up(self.gap, 2)})"
        return f"layer {self.layer}, {self.rule}, {_listed(self.units)}: {self.reason}{gap}"

    __repr__ = __str__


def _listed(units: tuple[int, ...]) -> str:
    """Return unit numbers in words, neighbours as ranges: a channel is one.

    >>> _listed((3, 8, 9, 10, 11, 20, 21))
    'units 3, 8-11, 20, 21'
    """
    runs: list[list[int]] = []
    for unit in units:
        if runs and unit == runs[-1][-1] + 1:
            runs[-1].append(unit)
        else:
            runs.append([unit])
    parts = [
        part
        for run in runs
        for part in ([f"{run[0]}-{run[-1]}"] if len(run) >= _SHORTEST_RUN else list(map(str, run)))
    ]
    more = f", ... ({len(units)} in all)" if len(parts) > _SHOWN_RUNS else ""
    return f"{'unit' if len(units) == 1 else 'units'} {', '.join(parts[:_SHOWN_RUNS])}{more}"


@dataclass(frozen=True, eq=False, repr=False)
class Shrunk:
    """A smaller network for the same function, and the steps that led there.

    Attributes:
        network: The reduced network; the given one itself if no step was possible.
        steps: The reductions in the order they were made.
        gap_upper: Proved bound on the gap between the given and the reduced network: on a box the
            largest difference of any output, without one relative to ``1 + ||x||``. It is 0.0 if every
            step was an identity that float64 carried out without rounding.
        original: The network that was given.
        complete: Whether every rule was tried to the end; False if the budget stopped the proofs.
        by_programs: Whether signs that steps may rest on were proved by mixed-integer programs.
    """

    network: ReluNetwork
    steps: tuple[Step, ...]
    gap_upper: float
    original: ReluNetwork
    complete: bool = True
    by_programs: bool = False

    @property
    def kind(self) -> Literal["exact"]:
        """How it is known that the function is the same, to ``gap_upper``: every step is proved."""
        return "exact"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the steps rest on: how the model was read, and the solver where it proved signs."""
        return (*self.original.notes, *[TRUSTED] * self.by_programs)

    @property
    def saved(self) -> int:
        """Number of ReLUs that went."""
        return self.original.size - self.network.size

    _repr_html_ = card

    def __str__(self) -> str:
        before, after = self.original, self.network
        steps = "1 step" if len(self.steps) == 1 else f"{len(self.steps)} steps"
        ended = "" if self.complete else ", stopped by the budget"
        return (
            f"{before.size} -> {after.size} ReLUs, {before.depth} -> {after.depth} layers, "
            f"{steps}, gap <= {rounded_up(self.gap_upper)}{ended}"
        )

    __repr__ = __str__

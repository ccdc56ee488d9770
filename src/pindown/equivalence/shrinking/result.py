"""What shrinking returns: the smaller model, and every step with its reason."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from pindown.equivalence.comparison.bracket import TRUSTED
from pindown.model.from_network import model_of_network
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.text import card, rounded_up

_SHOWN_RUNS = 6
_MIN_RUN = 3  # two neighbours are listed, three are a range


@dataclass(frozen=True, repr=False)
class Step:
    """One reduction, in the numbering of the model as it was just before.

    Attributes:
        rule: What was done: ``"dead"``, ``"unused"``, ``"constant"``, ``"merged"``, ``"linear pair"``,
            ``"narrowed"``, ``"layer removed"``; with a tolerance also ``"near copy"``,
            ``"near opposite"``, ``"faint"``, ``"off zero"`` or ``"negligible"``.
        layer: Number of the ReLU layer, from 1; for channels that of the dense or convolutional layer
            that makes them.
        units: The units or channels that went, or changed their form, from 0.
        reason: Why the function stays the same, in plain words.
        saved: How many units there are fewer: ReLUs, or entries of any other activation.
        gap: Proved bound on what rounding (or a tolerance) changed; 0.0 if nothing.
        place: Where channels are made, as the model's author named it.
        counted: What ``units`` numbers: ``"unit"`` or ``"channel"``.
    """

    rule: str
    layer: int
    units: tuple[int, ...]
    reason: str
    saved: int = 0
    gap: float = 0.0
    place: str = ""
    counted: str = "unit"

    def __str__(self) -> str:
        gap = "" if self.gap == 0.0 else f" (gap <= {rounded_up(self.gap, 2)})"
        place = f" at {self.place}" if self.place else ""
        units = _listed(self.units, self.counted)
        return f"layer {self.layer}{place}, {self.rule}, {units}: {self.reason}{gap}"

    __repr__ = __str__


def _listed(units: tuple[int, ...], noun: str = "unit") -> str:
    """Return unit numbers in words, neighbours as ranges: the units of a channel are one.

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
        for part in ([f"{run[0]}-{run[-1]}"] if len(run) >= _MIN_RUN else list(map(str, run)))
    ]
    more = f", ... ({len(units)} in all)" if len(parts) > _SHOWN_RUNS else ""
    return f"{noun}{'s' * (len(units) != 1)} {', '.join(parts[:_SHOWN_RUNS])}{more}"


@dataclass(frozen=True, eq=False, repr=False)
class Shrunk:
    """A smaller model for the same function, and the steps that led there.

    Attributes:
        reduced: The reduced model, as a graph of operations or as a ReLU network, whichever was made
            smaller; what was given itself if no step was possible.
        steps: The reductions in the order they were made.
        gap_upper: Proved bound on the gap between the given and the reduced model: on a box the
            largest difference of any output, without one relative to ``1 + ||x||``. It is 0.0 if every
            step was an identity that float64 carried out without rounding.
        original: What was given.
        complete: Whether every rule was tried to the end; False if the budget stopped the proofs.
        by_programs: Whether signs that steps may rest on were proved by mixed-integer programs.
        by_units: Whether the units of a ReLU network were looked at; else the channels of the model.
    """

    reduced: Model | ReluNetwork
    steps: tuple[Step, ...]
    gap_upper: float
    original: Model | ReluNetwork
    complete: bool = True
    by_programs: bool = False
    by_units: bool = True

    @cached_property
    def model(self) -> Model:
        """The reduced model as a graph of operations, of the float type that the given one had."""
        if isinstance(self.reduced, Model):
            return self.reduced
        model = model_of_network(self.reduced)
        return replace(model, dtype=self.original.dtype) if isinstance(self.original, Model) else model

    @property
    def network(self) -> ReluNetwork:
        """The reduced model as a ReLU network.

        Raises:
            UnsupportedModelError: If it has none; the message names the operation, or the size.
        """
        return self.reduced if isinstance(self.reduced, ReluNetwork) else self.reduced.relu_network()

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
        """Number of units that went."""
        return sum(step.saved for step in self.steps)

    _repr_html_ = card

    def __str__(self) -> str:
        steps = "1 step" if len(self.steps) == 1 else f"{len(self.steps)} steps"
        ended = "" if self.complete else ", stopped by the budget"
        return f"{self._sizes()}, {steps}, gap <= {rounded_up(self.gap_upper)}{ended}"

    def _sizes(self) -> str:
        before, after = self.sides
        if isinstance(before, ReluNetwork) and isinstance(after, ReluNetwork):
            return f"{before.size} -> {after.size} ReLUs, {before.depth} -> {after.depth} layers"
        return f"{before.n_parameters:,} -> {after.n_parameters:,} parameters"

    @property
    def sides(self) -> tuple[Model | ReluNetwork, Model | ReluNetwork]:
        """What was given and what became of it, as ReLU networks if their units were looked at."""
        given = self.original
        if self.by_units and isinstance(given, Model):
            given = given.relu_network()
        return given, self.network if self.by_units else self.model

    __repr__ = __str__

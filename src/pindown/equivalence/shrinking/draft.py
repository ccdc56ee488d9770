"""The network while it is being shrunk: proposals are checked, bounded and recorded here, nowhere else.

A rule proposes new layers that are the same function in real arithmetic, with a bound on the rounding
of every entry it computed. The draft turns these bounds into one on the function, adds it to what
earlier steps cost (the triangle inequality), and takes the proposal or leaves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf, isfinite, nextafter
from typing import Any

import numpy as np

from pindown.affine import Affine, Array, Matrix
from pindown.box import Box
from pindown.equivalence.shrinking.error_bound import Errors, gap_bound
from pindown.equivalence.shrinking.parallel import Sides, parallel_units
from pindown.equivalence.shrinking.products import largest
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.shrinking.signs import both, nothing_known, unit_bounds
from pindown.equivalence.unit_relations import ParallelUnits, unit_relations
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import Interval

# An identity is refused if rounding its new weights may move the function by more than this share of its
# size: such weights are so large that float64 cannot hold the reduced network well.
ROUNDING_LIMIT = 1e-9

_SHARPER_SECONDS = 1.0  # for one sharper gap bound, when the crude one would refuse a step

Layer = Affine | tuple[Matrix, Array]


@dataclass
class Draft:
    """The current network, what is proved about its units, and the steps so far.

    Attributes:
        net: The current network.
        box: The inputs that count, or None for all.
        tol: What steps that change the function may cost in total.
        until: The time (monotonic) at which to stop.
        scale: The size of the function, against which rounding is measured.
        known: For every hidden layer, bounds found by search; they move with the units.
        steps: The steps taken.
        gap: Proved bound on the gap between the given network and ``net``.
        by_programs: Whether mixed-integer programs proved a sign.
    """

    net: ReluNetwork
    box: Box | None
    tol: float
    until: float
    scale: float
    report: Callable[[str, int], None] | None = None
    known: list[Interval] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    gap: float = 0.0
    by_programs: bool = False
    _domain: Box | None = None
    _bounds: list[Interval] | None = None
    _parallel: dict[int, tuple[Affine, list[Sides]]] = field(default_factory=dict)
    _near: dict[tuple[int, float], tuple[Affine, tuple[ParallelUnits, ...]]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self._domain = self.box
        self.known = [nothing_known(width) for width in self.net.hidden_widths]

    @property
    def out_of_time(self) -> bool:
        """Whether the budget is spent."""
        return time.monotonic() > self.until

    @property
    def where(self) -> str:
        """The set of inputs, in words."""
        return "anywhere" if self.box is None else "on the box"

    @contextmanager
    def for_every_input(self) -> Iterator[None]:
        """See only what holds for every input, for a while; gaps are still those on the box."""
        self.box, self._bounds = None, None
        try:
            yield
        finally:
            self.box, self._bounds = self._domain, None

    def bounds(self, layer: int) -> Interval:
        """Return proved bounds on what enters the ReLUs of a hidden layer (from 0), or on the output."""
        if self._bounds is None:
            found = unit_bounds(self.net, self.box)
            self._bounds = [both(z, k) for z, k in zip(found, self.known, strict=False)] + found[-1:]
        return self._bounds[layer]

    def learn(self, layer: int, z: Interval) -> None:
        """Record bounds that a search has proved for a hidden layer of the current network."""
        self.known[layer] = both(self.known[layer], z)
        self._bounds = None

    def parallel(self, layer: int) -> list[Sides]:
        """Return the groups of units of a hidden layer whose rows are exact multiples."""
        affine = self.net.layers[layer]
        if id(affine) not in self._parallel:
            # The layer is kept along so that its id stays its own.
            self._parallel[id(affine)] = affine, parallel_units(affine)
        return self._parallel[id(affine)][1]

    def nearly_parallel(self, layer: int, relative: float) -> tuple[ParallelUnits, ...]:
        """Return the groups of units of a hidden layer whose rows are multiples to a tolerance.

        Raises:
            TimeoutError: If the time is over first.
        """
        affine = self.net.layers[layer]
        key = id(affine), relative
        if key not in self._near:
            pair = ReluNetwork((affine, self.net.layers[layer + 1]))
            (found,) = unit_relations(pair, relative=relative, budget=self.until - time.monotonic())
            self._near[key] = affine, found.parallel
        return self._near[key][1]

    def gap_bound(self, net: ReluNetwork, errors: Errors, enough: float) -> float:
        """Bound how far weights that are off by the errors move a network, sharply only if need be."""
        left = min(_SHARPER_SECONDS, self.until - time.monotonic())
        return gap_bound(net, errors, self._domain, enough, left)

    def propose(
        self,
        layers: Sequence[Layer],
        errors: Errors,
        step: Step,
        known: list[Interval],
        *,
        cost: float | None = None,
    ) -> bool:
        """Take a step if rounding allows it, and return whether it was taken.

        Args:
            layers: All layers of the new network; pairs are new, affine maps as they were.
            errors: For layers (from 0) that were rounded, bounds on the error of weights and biases.
            step: What to record.
            known: Bounds by search that hold for the units of the new network.
            cost: For a step that changes the function, a proved bound on how much, rounding apart;
                it is taken only if the tolerance allows it.
        """
        if not all(isinstance(new, Affine) or _sound(*new) for new in layers):
            return False
        affine = tuple(new if isinstance(new, Affine) else Affine.of(*new) for new in layers)
        net = replace(self.net, layers=affine)
        wrong = {i: e for i, e in errors.items() if largest(e[0]) > 0.0 or largest(e[1]) > 0.0}
        rounding = self.gap_bound(net, wrong, ROUNDING_LIMIT * self.scale) if wrong else 0.0
        price = rounding if not cost else nextafter(rounding + cost, inf)
        total = self.gap if price == 0.0 else nextafter(self.gap + price, inf)
        allowed = rounding <= ROUNDING_LIMIT * self.scale if cost is None else total <= self.tol
        if not (isfinite(total) and allowed):
            return False
        # Bounds by search speak of the units as they were; they hold on below the first change.
        first = min(wrong, default=net.depth) if cost is None else 0
        self.known = [
            k if i < first else nothing_known(width)
            for i, (k, width) in enumerate(zip(known, net.hidden_widths, strict=True))
        ]
        self.steps.append(replace(step, gap=price, saved=self.net.size - net.size))
        self.net, self.gap, self._bounds = net, total, None
        alive = {id(layer) for layer in affine}
        self._parallel = {key: value for key, value in self._parallel.items() if key in alive}
        self._near = {key: value for key, value in self._near.items() if key[0] in alive}
        if self.report is not None:
            self.report(str(self.steps[-1]), len(self.steps))
        return True


def _sound(weight: Matrix, bias: Array) -> bool:
    return 0 not in weight.shape and isfinite(largest(weight)) and isfinite(largest(bias))


def pick(bounds: Interval, keep: Any) -> Interval:
    """Return the bounds of some units."""
    return Interval(np.asarray(bounds.lower[keep]), np.asarray(bounds.upper[keep]))

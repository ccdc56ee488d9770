r"""The network while it is being shrunk: proposals are checked, bounded and recorded here, nowhere else.

A rule proposes new layers that are the same function in real arithmetic, with a bound on the rounding
of every entry it computed. The draft turns these bounds into one on the function, adds it to what
earlier steps cost (the triangle inequality), and takes the proposal or leaves it.

Let the layers of f* lie within :math:`E_l, e_l` of those of f, entry by entry, and let :math:`m_l` bound
the inputs of layer l of f. The two then differ at layer l by at most

.. math:: \delta_{l+1} = |W_l|\,\delta_l + E_l\,(m_l + \delta_l) + e_l, \qquad \delta_0 = 0 ,

because ReLU moves no two numbers apart. On a box :math:`m_l` are interval bounds; without one all sizes
are relative to :math:`1 + \|x\|_2`. The bound is crude for large changes, and small for rounding; where
it is too crude, the sharper methods of :mod:`pindown.equivalence.sensitivity.changes` are asked.

Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf, isfinite, nextafter
from typing import Any

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.related_units import ParallelUnits, unit_relations
from pindown.equivalence.sensitivity.changes import Change, gap_of_changes
from pindown.equivalence.shrinking._rounded_matrices import largest
from pindown.equivalence.shrinking._unit_facts import (
    Sides,
    both,
    nothing_known,
    parallel_units,
    unit_bounds,
)
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.tuning import MAX_SHARPENING, ROUNDING_LIMIT, SHARPER_SECONDS
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.progress import Report, silent
from pindown.relaxation.intervals import interval_bounds
from pindown.rounding import SMALLEST, gamma

Layer = Affine | tuple[Matrix, Array]
Errors = Mapping[int, tuple[Matrix | float, Array | float]]


@dataclass
class Draft:
    """The current network, what is proved about its units, and the steps so far.

    Attributes:
        net: The current network.
        box: The inputs that count, or None for all.
        tol: What steps that change the function may cost in total.
        deadline: When to stop.
        scale: The size of the function, against which rounding is measured.
        known: For every hidden layer, bounds found by search; they move with the units.
        steps: The steps taken.
        gap: Proved bound on the gap between the given network and ``net``.
        by_programs: Whether mixed-integer programs proved a sign.
    """

    net: ReluNetwork
    box: Box | None
    tol: float
    deadline: Deadline
    scale: float
    report: Report = silent
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
        return self.deadline.passed

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
            OutOfTime: If the time is over first.
        """
        affine = self.net.layers[layer]
        key = id(affine), relative
        if key not in self._near:
            pair = ReluNetwork((affine, self.net.layers[layer + 1]))
            (found,) = unit_relations(pair, relative=relative, budget=self.deadline.left)
            self._near[key] = affine, found.parallel
        return self._near[key][1]

    def gap_bound(self, net: ReluNetwork, errors: Errors, enough: float) -> float:
        """Bound how far weights that are off by the errors move a network, sharply only if need be."""
        left = self.deadline.within(SHARPER_SECONDS).left
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
        self.report(str(self.steps[-1]), len(self.steps), None)
        return True


def _sound(weight: Matrix, bias: Array) -> bool:
    return 0 not in weight.shape and isfinite(largest(weight)) and isfinite(largest(bias))


def pick(bounds: Interval, keep: Any) -> Interval:
    """Return the bounds of some units."""
    return Interval(np.asarray(bounds.lower[keep]), np.asarray(bounds.upper[keep]))


def error_bound(net: ReluNetwork, errors: Errors, box: Box | None) -> float:
    """Bound the gap between a network and all whose layers differ from it by at most the errors.

    Args:
        net: The network.
        errors: For layers (from 0) bounds on the change of weights and of biases; 0.0 for none.
        box: The inputs; None for all, the gap then relative to ``1 + ||x||``.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[3.0]], [0])])
    >>> round(error_bound(net, {0: (0.0, np.array([0.1]))}, Box([-1], [1])), 9)
    0.3
    """
    sizes = _sizes(net, box)
    delta = np.zeros(net.in_features)
    for i, layer in enumerate(net.layers):
        new = _times(layer.weight, delta) if delta.any() else np.zeros(layer.out_features)
        if i in errors:
            of_weight, of_bias = errors[i]
            with np.errstate(over="ignore", invalid="ignore"):
                if np.ndim(of_weight) == 2 or sp.issparse(of_weight):
                    new = new + _changed(of_weight, sizes[i], delta, relative=box is None and i == 0)
                new = (new + of_bias) * (1.0 + gamma(4))
        delta = np.where(np.isnan(new), np.inf, new)
    return float(delta.max())


def gap_bound(net: ReluNetwork, errors: Errors, box: Box | None, enough: float, budget: float) -> float:
    """Return :func:`error_bound`, or a sharper bound if that is above what would be enough.

    Args:
        net: The network.
        errors: As for :func:`error_bound`.
        box: The inputs; None for all.
        enough: No sharper bound is sought below this, or if it is far out of reach.
        budget: Seconds for the sharper bound.
    """
    crude = error_bound(net, errors, box)
    if crude <= enough or budget <= 0.0 or not crude <= MAX_SHARPENING * enough:
        return crude
    changes = {}
    for i, (of_weight, of_bias) in errors.items():
        shape = net.layers[i].weight.shape
        nothing = sp.csr_array(shape) if sp.issparse(of_weight) else np.zeros(shape)
        changes[i] = Change(nothing, np.zeros(shape[0]), of_weight, of_bias)
    with np.errstate(over="ignore", invalid="ignore"):
        sharper = gap_of_changes(net, changes, box=box, target=enough, budget=budget)
    return min(crude, sharper.value)


def _changed(of_weight: Matrix, size: Array, delta: Array, *, relative: bool) -> Array:
    if relative:  # a row times x is at most its length times that of x
        squares = of_weight * of_weight  # infinite where they leave float64: a bound all the same
        rows = np.asarray(squares.sum(axis=1)).reshape(-1)
        length = np.sqrt(rows) * (1.0 + gamma(of_weight.shape[1] + 8))
        # Squares may underflow; the largest entry times the root of the count cannot.
        tiny = length < np.sqrt(np.finfo(float).tiny) * 2.0**60
        return np.where(tiny, _times(of_weight, np.ones(of_weight.shape[1])), length)
    return _times(of_weight, (size + delta) * (1.0 + gamma(1)))


def _sizes(net: ReluNetwork, box: Box | None) -> list[Array]:
    """Bound the inputs of every layer."""
    if box is not None:
        hidden = [np.maximum(z.upper, 0.0) for z in interval_bounds(net, box)[:-1]]
        return [np.maximum(np.abs(box.lower), np.abs(box.upper)), *hidden]
    sizes = [np.ones(net.in_features)]
    for layer in net.layers[:-1]:
        with np.errstate(over="ignore"):
            total = _times(layer.weight, sizes[-1]) + np.abs(layer.bias)
            sizes.append(total * (1.0 + gamma(2)))
    return sizes


def _times(weight: Matrix, vector: Array) -> Array:
    """Return an upper bound on ``|W| v`` for ``v >= 0``."""
    n = weight.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.asarray(abs(weight) @ vector)
        return np.where(product == 0.0, product, product * (1.0 + 2.0 * gamma(n + 2))) + n * SMALLEST

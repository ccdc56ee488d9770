r"""Whole channels of a model removed, and its function kept: convolutions stay convolutions.

A channel goes if nothing that follows has weights for it; if it is the same value for every input, which
then becomes part of the next layers' biases; or if it is a positive multiple t of another, whose
outgoing weights take over:

.. math:: K'_{\cdot i} = K_{\cdot i} + t K_{\cdot j} .

A constant other than zero does not go where the next convolution pads with zeros: at the border it would
be missing. What float64 rounds is bounded by :mod:`~pindown.equivalence.shrinking._channel_changes` and
part of ``gap_upper``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import inf, nextafter

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.shrinking._channel_bounds import channel_bounds
from pindown.equivalence.shrinking._channel_changes import Error, change_bound
from pindown.equivalence.shrinking._channel_copies import ChannelCopy, find_copies
from pindown.equivalence.shrinking._channel_graph import (
    ChannelGraph,
    Indices,
    Layer,
    biases,
    weights,
    with_weights,
)
from pindown.equivalence.shrinking._channel_layers import linear_layers, with_merged
from pindown.equivalence.shrinking._duplicate_and_dead_units import _largest_prefix
from pindown.equivalence.shrinking._rounded_matrices import (
    Mask,
    Rounded,
    add,
    affine_image,
    multiply,
    sum_up,
)
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.tuning import NEARLY_CONSTANT, ROUNDING_LIMIT
from pindown.model.graph import Model
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Dense
from pindown.model.operations.elementwise import Elementwise
from pindown.model.operations.operation import Interval
from pindown.progress import Report, silent
from pindown.rounding import SMALLEST, UNIT_ROUNDOFF, gamma

_UNREAD, _ZERO, _FIXED, _NEEDED = range(4)


@dataclass
class ChannelDraft:
    """The current model, and the steps so far.

    Attributes:
        model: The current model.
        box: The inputs that count, or None for all.
        tol: What rounding may cost in total, beyond what is allowed anyway.
        measure: Returns the size of the function, against which rounding is measured.
        deadline: When to stop.
        steps: The steps taken.
        gap: Proved bound on the gap between the given model and ``model``.
    """

    model: Model
    box: Box | None
    tol: float
    measure: Callable[[], float]
    deadline: Deadline
    report: Report = silent
    steps: list[Step] = field(default_factory=list)
    gap: float = 0.0

    @cached_property
    def scale(self) -> float:
        """The size of the function, which nobody needs to know where nothing is rounded."""
        return self.measure()

    @property
    def where(self) -> str:
        """The set of inputs, in words."""
        return "anywhere" if self.box is None else "on the box"

    def run(self) -> None:
        """Remove channels until none is left that can go, or the time is over."""
        while not self.deadline.passed:
            graph = ChannelGraph(self.model)
            if not graph.free.any():
                break
            bounds = channel_bounds(graph, self.box)
            if not (
                self._drop(graph, bounds) or self._merge(graph, bounds) or self._join(graph, bounds)
            ):
                break

    # ------------------------------------------------------------------ channels that are one value

    def _drop(self, graph: ChannelGraph, bounds: list[Interval | None]) -> bool:
        """Remove channels that are not read, zero or constant; return whether any went."""
        state = _states(graph, bounds)
        idle = graph.some_stay(graph.free & (state <= _ZERO))
        if idle.any():
            unread, zero = idle & (state == _UNREAD), idle & (state == _ZERO)
            steps = [
                *_steps(graph, unread, "unused", "nothing reads what they give"),
                *_steps(graph, zero, "dead", f"never other than zero {self.where}"),
            ]
            return self._take(graph, idle, {}, {}, steps)
        fixed = np.flatnonzero(graph.some_stay(graph.free & (state == _FIXED)))
        return _largest_prefix(lambda n: self._fold(graph, fixed[:n], bounds), len(fixed))

    def _fold(self, graph: ChannelGraph, channels: Indices, bounds: list[Interval | None]) -> bool:
        """Make constant channels part of the biases of what reads them."""
        gone = _mask(graph, channels)
        changed: dict[int, Layer] = {}
        errors: dict[int, Error] = {}
        for i, places in graph.readers(gone):
            operation = graph.layer(i)
            x = bounds[graph.model.nodes[i - 1].inputs[0]]
            assert x is not None
            W = weights(operation)
            columns = W[:, places].reshape(len(W), -1)
            low, high = (np.repeat(end[places], W.shape[2]) for end in x)
            middle = np.where(low == high, low, low / 2 + high / 2)
            shifted, off = affine_image(columns, middle, biases(operation))
            if (low != high).any():
                unsure = np.abs(columns) @ (high - low)
                off = sum_up(
                    off, unsure * (1.0 + 2.0 * gamma(columns.shape[1] + 2)) + len(low) * SMALLEST
                )
            new = W.copy()
            new[:, places] = 0.0
            changed[i], errors[i] = with_weights(operation, new, shifted), Error(None, off)
        reason = f"the same value {self.where}, now part of the next biases"
        return self._take(graph, gone, changed, errors, _steps(graph, gone, "constant", reason))

    # ------------------------------------------------------------------ channels that repeat others

    def _merge(self, graph: ChannelGraph, bounds: list[Interval | None]) -> bool:
        """Merge channels that are multiples of others; return whether any went."""
        copies = find_copies(graph, bounds, self.deadline)
        going = graph.some_stay(_mask(graph, (copy.gone for copy in copies)))
        copies = [copy for copy in copies if going[copy.gone]]
        # Those that cost no rounding first: if the others have to stay, these need not.
        copies.sort(key=lambda copy: _rounds(graph, copy))
        return _largest_prefix(lambda n: self._merge_some(graph, copies[:n]), len(copies))

    def _merge_some(self, graph: ChannelGraph, copies: list[ChannelCopy]) -> bool:
        same = _mask(graph, (copy.gone for copy in copies if all(r.factor == 1 for r in copy.readings)))
        gone = _mask(graph, (copy.gone for copy in copies))
        steps = [
            *_steps(graph, same, "merged", "copies of other channels"),
            *_steps(graph, gone & ~same, "merged", "multiples of other channels"),
        ]
        return self._take(graph, gone, *_merged(graph, copies), steps)

    # ------------------------------------------------------------------ layers that are linear

    def _join(self, graph: ChannelGraph, bounds: list[Interval | None]) -> bool:
        """Merge a layer whose ReLUs do nothing with the next one; return whether there was one."""
        for found in linear_layers(graph, bounds):
            model, place = with_merged(self.model, found)
            error = {place: Error(found.weight_error, found.bias_error)}
            price = 0.0 if _exact(error) else change_bound(model, error, self.box)
            everything = _mask(graph, graph.made[found.first].tolist())
            reason = (
                "opposite pairs and channels that are never off are linear; the next layer takes them in"
            )
            step, *_ = _steps(graph, everything, "layer removed", reason)
            if _is_finite(found.operation) and self._allow(price):
                self._record(model, price, [step])
                return True
        return False

    # ------------------------------------------------------------------ taking a step

    def _take(
        self,
        graph: ChannelGraph,
        gone: Mask,
        changed: dict[int, Layer],
        errors: dict[int, Error],
        steps: Iterable[Step],
    ) -> bool:
        """Take a step if rounding allows it, and return whether it was taken."""
        price = 0.0 if _exact(errors) else change_bound(self.model, errors, self.box, changed)
        if not (all(map(_is_finite, changed.values())) and self._allow(price)):
            return False
        self._record(graph.without(gone, changed), price, steps)
        return True

    def _allow(self, price: float) -> bool:
        """Return whether a step may change the function by so much."""
        if price == 0.0:
            return True
        return self._total(price) <= self.tol or price <= ROUNDING_LIMIT * self.scale

    def _total(self, price: float) -> float:
        return self.gap if price == 0.0 else nextafter(self.gap + price, inf)

    def _record(self, model: Model, price: float, steps: Iterable[Step]) -> None:
        self.model, self.gap = model, self._total(price)
        for k, step in enumerate(steps):
            self.steps.append(step if k else replace(step, gap=price))
            self.report(str(self.steps[-1]), len(self.steps), None)


def _exact(errors: Mapping[int, Error]) -> bool:
    """Return whether nothing was rounded."""
    parts = (part for error in errors.values() for part in error if part is not None)
    return not any(part.any() for part in parts)


def _is_finite(layer: Layer) -> bool:
    return bool(np.isfinite(weights(layer)).all() and np.isfinite(biases(layer)).all())


def _mask(graph: ChannelGraph, channels: Iterable[int]) -> Mask:
    gone = np.zeros(len(graph.free), dtype=bool)
    gone[np.asarray(list(channels), dtype=np.intp)] = True
    return gone


def _states(graph: ChannelGraph, bounds: list[Interval | None]) -> Indices:
    """Return for every channel what is known of it where it is read: the least that is known counts."""
    state = np.full(len(graph.free), _UNREAD)
    for i, channels in graph.read.items():
        x = bounds[graph.model.nodes[i - 1].inputs[0]]
        places = np.flatnonzero(channels >= 0)
        if x is None or not len(places):
            continue
        operation = graph.layer(i)
        used = weights(operation).any(axis=(0, 2))
        reach = np.maximum(np.abs(x.lower), np.abs(x.upper))
        with np.errstate(invalid="ignore"):
            fixed = x.upper - x.lower <= NEARLY_CONSTANT * reach
        fixed &= np.isfinite(reach) & _takes_constants(operation)
        here = np.where(fixed, _FIXED, _NEEDED)
        here = np.where(reach == 0.0, _ZERO, here)
        here = np.where(used, here, _UNREAD)
        np.maximum.at(state, channels[places], here[places])
    return state


def _takes_constants(operation: Layer) -> bool:
    """Return whether a constant channel is the same for all that a layer makes: there is no border."""
    if isinstance(operation, Convolution):
        return not any(operation.window.before) and not any(operation.window.after)
    return isinstance(operation, Dense)


def _merged(graph: ChannelGraph, copies: list[ChannelCopy]) -> tuple[dict[int, Layer], dict[int, Error]]:
    """Return the layers that read copies, with their weights added to those of what they copy."""
    found: dict[int, tuple[Array, Array]] = {}
    for copy in copies:
        for i, gone, kept, t in copy.readings:
            if i not in found:
                W = weights(graph.layer(i)).copy()
                found[i] = W, np.zeros(W.shape)
            W, off = found[i]
            W[:, kept], error = _sum(W[:, kept], W[:, gone], t)
            off[:, kept] = sum_up(off[:, kept], error)
            W[:, gone] = 0.0
    changed = {i: with_weights(graph.layer(i), W, graph.layer(i).bias) for i, (W, _) in found.items()}
    return changed, {i: Error(off, np.zeros(len(off))) for i, (_, off) in found.items()}


def _sum(kept: Array, gone: Array, t: Fraction) -> Rounded:
    """Return ``kept + t gone``."""
    factor = float(t)
    term = multiply(gone, np.full((), factor))
    total = add(kept, term.value)
    unsure = 0.0 if Fraction(factor) == t else 2.0 * UNIT_ROUNDOFF * abs(factor)
    more = np.abs(gone) * unsure * (1.0 + gamma(2)) + (SMALLEST if unsure else 0.0)
    return Rounded(total.value, sum_up(sum_up(term.error, total.error), more))


def _rounds(graph: ChannelGraph, copy: ChannelCopy) -> bool:
    """Return whether merging a copy alone costs rounding."""
    for i, gone, kept, t in copy.readings:
        W = weights(graph.layer(i))
        if not _sum(W[:, kept], W[:, gone], t).exact:
            return True
    return False


def _steps(graph: ChannelGraph, gone: Mask, rule: str, reason: str) -> list[Step]:
    """Return a step for each layer that makes channels that go; those that are added up save once."""
    counted: set[int] = set()
    steps = []
    for number, (i, channels) in enumerate(graph.made.items(), 1):
        units = [k for k, channel in enumerate(channels.tolist()) if gone[channel]]
        fresh = {int(channels[k]) for k in units} - counted
        counted |= fresh
        if units:
            saved = _entries(graph, _mask(graph, fresh))
            place = graph.model.nodes[i - 1].name
            steps.append(Step(rule, number, tuple(units), reason, saved, place=place, counted="channel"))
    return steps


def _entries(graph: ChannelGraph, gone: Mask) -> int:
    """Count the entries of activations that belong to some channels."""
    total = 0
    for node, axis in zip(graph.model.nodes, graph.axes[1:], strict=True):
        if axis is not None and isinstance(node.operation, Elementwise):
            here = int(np.count_nonzero(np.append(gone, False)[axis.channels]))
            total += here * (int(np.prod(node.shape)) // len(axis.channels))
    return total

r"""Proved bounds on the outputs of a model on boxes, operation by operation.

*Intervals* go forwards: every operation maps boxes to a box. *Linear bounds* go backwards: a linear
form of the outputs is bounded by one of the inputs of the last operation, that by one of the
operation's before it, and so on to the model's input, where its maximum on the box can be read off.
Each step is proved for the real-number operation, with what rounding does in its offset; the boxes on
which operations are relaxed are those of the intervals, tightened by linear bounds where that can
matter.

Gowal et al. 2018 (intervals); Zhang et al. 2018, "Efficient neural network robustness certification
with general activation functions" (CROWN); Xu et al. 2020, "Automatic perturbation analysis for
scalable certified robustness and beyond" (on graphs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.io.any_model import AnyModel, as_model
from pindown.model.graph import Model
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.dense import Add
from pindown.model.operations.moves import Concat, Constant, Fill, Move
from pindown.model.operations.operation import Interval, Relaxation, charged, dot_up
from pindown.relaxation.tuning import MODEL_BLOCK_ENTRIES, MODEL_TIGHTENED_ENTRIES
from pindown.rounding import TINY

_METHODS = ("interval", "linear")
_EXACT = (AffineOperation, Move, Add, Concat, Fill, Constant)  # their own relaxation, on any box


def bounds(
    model: AnyModel,
    lower: ArrayLike,
    upper: ArrayLike,
    rows: ArrayLike | None = None,
    method: str = "linear",
    *,
    deadline: Deadline = NEVER,
) -> tuple[Array, Array]:
    """Bound a model's outputs, or linear forms of them, on boxes of inputs.

    Args:
        model: A :class:`~pindown.model.Model`, or what can be read as one.
        lower: Lower corners of the boxes, (n, d), or of one box, (d,).
        upper: Upper corners, likewise.
        rows: Linear forms of the outputs, (q, k), to bound instead of the outputs themselves.
        method: ``"interval"``, which is fast, or ``"linear"``, which keeps what operations have in
            common.
        deadline: When to stop tightening the boxes inside the model; bounds are looser then.

    Returns:
        Lower and upper bounds, each (n, k) or (n, q); (k,) or (q,) for one box. They hold for the
        real-number model on the whole box; infinite where float64 cannot tell.

    >>> from pindown import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [2, 1]), ([[1.0, -1.0]], [0])])  # 1 where x > -1
    >>> [float(end[0].round(9)) for end in bounds(net, [0.0], [9.0], method="interval")]
    [-8.0, 10.0]
    >>> [float(end[0].round(9)) for end in bounds(net, [0.0], [9.0])]
    [1.0, 1.0]
    """
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}; got {method!r}.")
    graph = as_model(model, "bounds")
    ends = [np.asarray(end, dtype=np.float64) for end in (lower, upper)]
    single = ends[0].ndim == 1
    ends = [end[None] if single else end for end in ends]
    if any(end.shape != (len(ends[0]), graph.in_features) for end in ends):
        raise ValueError(
            f"lower and upper must have shape (n, {graph.in_features}); "
            f"got {ends[0].shape} and {ends[1].shape}."
        )
    if not (np.isfinite(ends).all() and (ends[0] <= ends[1]).all()):
        raise ValueError("boxes must be finite with lower <= upper.")
    forms = None if rows is None else np.asarray(rows, dtype=np.float64)
    if forms is not None and (forms.ndim != 2 or forms.shape[1] != graph.out_features):
        raise ValueError(f"rows must have shape (q, {graph.out_features}); got {forms.shape}.")
    relaxed = Relaxed.intervals(graph, Interval(*ends))
    if method == "linear":
        relaxed.tighten(deadline)
    low, high = relaxed.output_bounds(forms, linear=method == "linear")
    return (low[0], high[0]) if single else (low, high)


@dataclass(eq=False)
class Relaxed:
    """A model on n boxes: proved bounds on every tensor, and the operations between linear functions.

    Attributes:
        model: The model.
        values: Bounds on the input and on what every node makes, each (n, *shape).
    """

    model: Model
    values: list[Interval]
    _relaxations: dict[int, Relaxation] = field(default_factory=dict)

    @classmethod
    def intervals(cls, model: Model, box: Interval) -> Relaxed:
        """Bound every tensor by intervals."""
        n = len(box.lower)
        values = [Interval(*(end.reshape(n, *model.literal_shape) for end in box))]
        for node in model.nodes:
            values.append(node.operation.interval(*(values[j] for j in node.inputs)))
        return cls(model, values)

    def tighten(self, deadline: Deadline = NEVER) -> None:
        """Bound what enters operations that are not affine by linear forms, in order."""
        for i, node in enumerate(self.model.nodes, 1):
            if isinstance(node.operation, _EXACT):
                self.values[i] = _within(self.values[i], node.operation.interval(*self._into(i)))
                continue
            for j in node.inputs:
                size = math.prod(self.values[j].lower.shape[1:])
                # The first affine map of a box is bounded exactly by intervals.
                if (
                    j > 0
                    and size <= MODEL_TIGHTENED_ENTRIES
                    and not deadline.passed
                    and self._bends_below(j)
                ):
                    self.values[j] = _within(self.values[j], self._linear(j, None))
            self.values[i] = _within(self.values[i], node.operation.interval(*self._into(i)))

    def _into(self, i: int) -> tuple[Interval, ...]:
        return tuple(self.values[j] for j in self.model.nodes[i - 1].inputs)

    def _bends_below(self, index: int) -> bool:
        """Return whether anything but affine operations lies below a tensor."""
        waiting, seen = [index], {index}
        while waiting:
            i = waiting.pop()
            if i == 0:
                continue
            node = self.model.nodes[i - 1]
            if not isinstance(node.operation, _EXACT):
                return True
            new = [j for j in node.inputs if j not in seen]
            seen.update(new)
            waiting.extend(new)
        return False

    def output_bounds(self, rows: Array | None, *, linear: bool) -> tuple[Array, Array]:
        """Bound the outputs, or rows of them, by intervals and, if asked, by linear forms."""
        last = self.values[-1]
        n = len(last.lower)
        if rows is None:
            low, high = (end.reshape(n, -1) for end in last)
        else:
            form = np.broadcast_to(
                rows.reshape(1, len(rows), *last.lower.shape[1:]), (n, len(rows), *last.lower.shape[1:])
            )
            low, high = -dot_up(-form, last), dot_up(form, last)
        if linear:
            found = self._linear(len(self.values) - 1, rows)
            low = np.maximum(low, found.lower.reshape(n, -1))
            high = np.minimum(high, found.upper.reshape(n, -1))
        return low + 0.0, high + 0.0

    def _linear(self, index: int, rows: Array | None) -> Interval:
        """Bound the entries of a tensor, or rows of them, by linear forms of the input."""
        shape = self.values[index].lower.shape
        n, size = shape[0], math.prod(shape[1:])
        count = size if rows is None else len(rows)
        largest = max(math.prod(value.lower.shape[1:]) for value in self.values[: index + 1])
        step = max(1, MODEL_BLOCK_ENTRIES // (2 * n * largest))
        low, high = np.empty((n, count)), np.empty((n, count))
        for start in range(0, count, step):
            part = slice(start, min(count, start + step))
            if rows is None:
                flat = np.zeros((part.stop - part.start, size))
                flat[np.arange(len(flat)), np.arange(part.start, part.stop)] = 1.0
            else:
                flat = rows[part]
            both = np.concatenate([flat, -flat]).reshape(1, -1, *shape[1:])
            ends = self.upper_ends(index, np.broadcast_to(both, (n, *both.shape[1:])))
            high[:, part], low[:, part] = ends[:, : len(flat)], -ends[:, len(flat) :]
        if rows is None:
            return Interval(low.reshape(shape), high.reshape(shape))
        return Interval(low, high)

    def upper_ends(self, index: int, form: Array) -> Array:
        """Return upper bounds (n, q) on ``form . value`` of a tensor, for forms (n, q, *shape)."""
        forms: dict[int, Array] = {index: form}
        offset = np.zeros(form.shape[:2])
        for i in range(index, 0, -1):
            if i not in forms:
                continue
            pulled = self._relaxation(i).upper(forms.pop(i))
            offset = charged(offset + pulled.offset, np.abs(offset) + np.abs(pulled.offset), 1)
            for j, part in zip(self.model.nodes[i - 1].inputs, pulled.forms, strict=True):
                if j not in forms:
                    forms[j] = part
                    continue
                total = forms[j] + part
                forms[j] = total
                offset = charged(offset, _size(total, self.values[j]), 1)
        if 0 not in forms:
            return offset
        end = dot_up(forms[0], self.values[0])
        return charged(offset + end, np.abs(offset) + np.abs(end), 1)

    def _relaxation(self, i: int) -> Relaxation:
        """Return the relaxation of a node, on the bounds of what enters it once they are settled."""
        if i not in self._relaxations:
            self._relaxations[i] = self.model.nodes[i - 1].operation.relaxation(*self._into(i))
        return self._relaxations[i]


def _within(first: Interval, second: Interval) -> Interval:
    """Return where two proved bounds agree."""
    return Interval(np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper))


def _size(form: Array, box: Interval) -> Array:
    n, q = form.shape[:2]
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.abs(form).reshape(n, q, -1) @ box.reach.reshape(n, -1, 1)
    return np.asarray(np.nan_to_num(terms[:, :, 0], nan=np.inf) + TINY)

"""Operations that users know by one name and that are several steps, taken one after the other."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.model.operations.operation import Interval, Numbers, Operation, Pulled, Relaxation, Shape
from pindown.rounding import add_up


class Chain(Operation):
    """An operation that is a sequence of others, of which only the first may take several tensors."""

    @abstractmethod
    def steps(self, *shapes: Shape) -> tuple[Operation, ...]:
        """Return the operations, for inputs of these literal shapes."""

    def fronts(self) -> tuple[Operation, ...] | None:
        """Return one operation for each input that comes before the steps, or None."""
        return None

    def shape(self, *shapes: Shape) -> Shape:
        """Follow the steps."""
        fronts = self.fronts()
        if fronts is not None:
            shapes = tuple(op.shape(shape) for op, shape in zip(fronts, shapes, strict=True))
        for step in self.steps(*shapes):
            shapes = (step.shape(*shapes),)
        return shapes[0]

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Carry out the steps."""
        return self._walk(*inputs)[-1][0]

    def interval(self, *boxes: Interval) -> Interval:
        """Bound every step by the bounds of the one before."""
        return self._boxes(*boxes)[-1][0]

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Chain the steps' linear bounds."""
        between = self._boxes(*boxes)
        fronts = self.fronts()
        first: tuple[Relaxation, ...] = ()
        if fronts is not None:
            first = tuple(op.relaxation(box) for op, box in zip(fronts, boxes, strict=True))
        steps = self.steps(*(box.lower.shape[1:] for box in boxes))
        return ChainedForms(
            first, tuple(op.relaxation(*b) for op, b in zip(steps, between, strict=False))
        )

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Go back through the steps."""
        between = self._walk(*inputs)
        steps = self.steps(*(x.shape[1:] for x in inputs))
        forms: tuple[Array, ...] = (form,)
        for step, values in zip(reversed(steps), reversed(between[:-1]), strict=True):
            forms = step.pull_back(forms[0], *values)
        fronts = self.fronts()
        if fronts is None:
            return forms
        return tuple(op.pull_back(f, x)[0] for op, f, x in zip(fronts, forms, inputs, strict=True))

    def _walk(self, *inputs: Numbers) -> list[tuple[Numbers, ...]]:
        """Return what goes into every step, and at the end what comes out."""
        steps, fronts = self.steps(*(x.shape[1:] for x in inputs)), self.fronts()
        if fronts is not None:
            inputs = tuple(op(x) for op, x in zip(fronts, inputs, strict=True))
        walked = [inputs]
        for step in steps:
            walked.append((step(*walked[-1]),))
        return walked

    def _boxes(self, *boxes: Interval) -> list[tuple[Interval, ...]]:
        """Return bounds on what goes into every step, and at the end on what comes out."""
        steps, fronts = self.steps(*(box.lower.shape[1:] for box in boxes)), self.fronts()
        if fronts is not None:
            boxes = tuple(op.interval(box) for op, box in zip(fronts, boxes, strict=True))
        walked = [boxes]
        for step in steps:
            walked.append((step.interval(*walked[-1]),))
        return walked


@dataclass(frozen=True, eq=False)
class ChainedForms(Relaxation):
    """Relaxations one after the other.

    Attributes:
        fronts: One for each input, or none.
        steps: The rest, in the order of evaluation; the first may take several tensors.
    """

    fronts: tuple[Relaxation, ...]
    steps: tuple[Relaxation, ...]

    def upper(self, form: Array) -> Pulled:
        """Pull back from the last to the first, and add what every step costs."""
        forms: tuple[Array, ...] = (form,)
        offset = np.zeros(form.shape[:2])
        for step in reversed(self.steps):
            forms, cost = step.upper(forms[0])
            offset = add_up(offset, cost)
        if self.fronts:
            pulled = [front.upper(f) for front, f in zip(self.fronts, forms, strict=True)]
            forms = tuple(p.forms[0] for p in pulled)
            for p in pulled:
                offset = add_up(offset, p.offset)
        return Pulled(forms, np.where(np.isnan(offset), np.inf, offset))

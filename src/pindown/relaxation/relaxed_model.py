r"""A model between linear functions: proved bounds on linear forms of its tensors.

A form :math:`c \cdot y` of what an operation makes is bounded by one of what enters it, that by one of
what enters the operation before, and so on to the input x, where its maximum on the box can be read off:

.. math::
    c \cdot y(x) \;\le\; A x + b \;\le\; \max_{l \le x \le u} A x + b .

Where an input of a ReLU is assumed to be :math:`z_j \ge 0` (or :math:`\le 0`), the term
:math:`\beta_j z_j` (or :math:`-\beta_j z_j`) with any :math:`\beta_j \ge 0` may be added on the way, for
it is never negative there. Every step is proved for the real-number operation, with what rounding does
in b. :meth:`RelaxedModel.estimate` is a plain float64 copy of the way back, to search with.

Zhang et al. 2018 (CROWN); Xu et al. 2021, "Fast and complete" (slopes); Wang et al. 2021, "Beta-CROWN:
efficient bound propagation with per-neuron split constraints" (multipliers).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.graph import Model
from pindown.model.operations.operation import Adjustable, Interval, Relaxation, charged, dot_up
from pindown.relaxation.linear import LinearForms
from pindown.relaxation.lp_balls import Balls
from pindown.rounding import TINY

Signs = Mapping[int, NDArray[np.int8]]


@dataclass(eq=False)
class RelaxedModel:
    """A model on n boxes: proved bounds on every tensor, and the operations between linear functions.

    Attributes:
        model: The model.
        values: Bounds on the input and on what every node makes, each ``(n, *shape)``.
        signs: For tensors that enter ReLUs: 1 where an entry is assumed to be >= 0, -1 where it is
            assumed to be <= 0, else 0, each ``(n, *shape)``. Bounds hold where that is so.
        balls: What the inputs lie in besides their boxes, None for nothing: n balls.
    """

    model: Model
    values: list[Interval]
    signs: Signs = field(default_factory=dict)
    balls: Balls | None = None
    _relaxations: dict[int, Relaxation] = field(default_factory=dict)
    _singles: dict[int, Relaxation] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, object]:
        """Send no relaxations: they are made again where they are needed."""
        return vars(self) | {"_relaxations": {}, "_singles": {}}

    @classmethod
    def by_intervals(cls, model: Model, box: Interval, balls: Balls | None = None) -> RelaxedModel:
        """Bound every tensor by intervals; ``balls`` cut the boxes for linear bounds."""
        n = len(box.lower)
        values = [Interval(*(end.reshape(n, *model.literal_shape) for end in box))]
        for node in model.nodes:
            values.append(node.operation.interval(*(values[j] for j in node.inputs)))
        return cls(model, values, balls=balls)

    @classmethod
    def unbounded(cls, model: Model, box: Interval) -> RelaxedModel:
        """Start with nothing known but the box."""
        n = len(box.lower)
        values = [Interval(*(end.reshape(n, *model.literal_shape) for end in box))]
        for node in model.nodes:
            ends = (np.broadcast_to(np.float64(end), (n, *node.shape)) for end in (-np.inf, np.inf))
            values.append(Interval(*ends))
        return cls(model, values)

    def into(self, i: int) -> tuple[Interval, ...]:
        """Return the bounds on what enters a node (1-based)."""
        return tuple(self.values[j] for j in self.model.nodes[i - 1].inputs)

    def of_boxes(self, boxes: NDArray[np.intp], last: int) -> RelaxedModel:
        """Return the model on some of its boxes, up to a tensor."""
        values = [Interval(*(end[boxes] for end in value)) for value in self.values[: last + 1]]
        signs = {j: sign if len(sign) == 1 else sign[boxes] for j, sign in self.signs.items()}
        balls = self.balls if self.balls is None else self.balls.take(boxes)
        return RelaxedModel(self.model, values, signs, balls)

    def assuming(self, signs: Signs) -> RelaxedModel:
        """Return the model where inputs of ReLUs have given signs: bounds are cut at zero there."""
        values = list(self.values)
        for j, sign in signs.items():
            low, high = values[j]
            # Where a cut leaves nothing, both ends meet at zero: any bound holds on the empty set.
            low = np.where(sign > 0, np.maximum(low, 0.0), low)
            high = np.where(sign < 0, np.minimum(high, 0.0), high)
            values[j] = Interval(
                np.minimum(low, np.maximum(high, 0.0)), np.maximum(high, np.minimum(low, 0.0))
            )
        kept, singles = (
            {
                i: relaxation
                for i, relaxation in made.items()
                if not any(j in signs for j in self.model.nodes[i - 1].inputs)
            }
            for made in (self._relaxations, self._singles)
        )
        return replace(self, values=values, signs=dict(signs), _relaxations=kept, _singles=singles)

    def relaxation(self, i: int) -> Relaxation:
        """Return the relaxation of a node, on the bounds of what enters it."""
        if i not in self._relaxations:
            self._relaxations[i] = self.model.nodes[i - 1].operation.relaxation(*self.into(i))
        return self._relaxations[i]

    def single(self, i: int) -> Relaxation:
        """Return the relaxation of a node in float32, to estimate with."""
        if i not in self._singles:
            self._singles[i] = self.relaxation(i).single()
        return self._singles[i]

    def forget(self, i: int) -> None:
        """Make the relaxation of a node anew when it is asked for: bounds of what enters it changed."""
        self._relaxations.pop(i, None)
        self._singles.pop(i, None)

    # ------------------------------------------------------------------ back

    @np.errstate(over="ignore", invalid="ignore")
    def upper_ends(
        self, index: int, form: Array, choice: Choice | None = None, at_input: Array | None = None
    ) -> Array:
        """Return upper bounds (n, q) on ``form . value`` of a tensor, for forms ``(n, q, *shape)``.

        Args:
            index: The tensor: 0 is the input, i is what node i - 1 made.
            form: The forms; n may be larger than the number of boxes if that is one.
            choice: Slopes and multipliers; the usual ones if not given.
            at_input: Forms of the input that are added, (n, q, d).
        """
        slope, offset = self.upper_forms(index, form, choice, at_input)
        if self.balls is not None:
            return self.balls.largest(LinearForms(slope.reshape(*offset.shape, -1), offset))
        end = dot_up(slope, self.values[0])
        return charged(offset + end, np.abs(offset) + np.abs(end), 1)

    @np.errstate(over="ignore", invalid="ignore")
    def upper_forms(
        self, index: int, form: Array, choice: Choice | None = None, at_input: Array | None = None
    ) -> tuple[Array, Array]:
        """Return upper bounds as forms ``(n, q, *input shape)`` of the input, and offsets (n, q)."""
        for at in self.way_back(index, form, choice, at_input):
            forms, offset = at
        return forms[0], offset

    def way_back(
        self, index: int, form: Array, choice: Choice | None = None, at_input: Array | None = None
    ) -> Iterator[tuple[dict[int, Array], Array]]:
        """Carry upper bounds back, one node at a time.

        Yields:
            Forms of tensors, whose sum with the offset (n, q) bounds the form that was given; of the
            input alone at the end. The tensor of the largest index is the next to be replaced.
        """
        forms: dict[int, Array] = {index: form}
        if at_input is not None:
            own = at_input.reshape(*at_input.shape[:2], *self.model.literal_shape)
            forms[0] = own + form if index == 0 else own
        offset = np.zeros(form.shape[:2])
        for i in range(index, 0, -1):
            if i not in forms:
                continue
            yield forms, offset
            own = forms.pop(i)
            if choice is not None and i in self.signs and i in choice.multipliers:
                own = own + self._allowed(i, choice.multipliers[i])
                offset = charged(offset, _size(own, self.values[i]), 1)
            pulled = self._chosen(i, choice).upper(own)
            offset = charged(offset + pulled.offset, np.abs(offset) + np.abs(pulled.offset), 1)
            for j, part in zip(self.model.nodes[i - 1].inputs, pulled.forms, strict=True):
                if j not in forms:
                    forms[j] = part
                    continue
                total = forms[j] + part
                forms[j] = total
                offset = charged(offset, _size(total, self.values[j]), 1)
        if 0 not in forms:
            forms[0] = np.zeros((*form.shape[:2], *self.model.literal_shape))
        if index == 0 and at_input is not None:
            offset = charged(offset, _size(forms[0], self.values[0]), 1)
        yield forms, offset

    def _allowed(self, i: int, multipliers: Array) -> Array:
        """Return multipliers with the sign that the assumption asks for, else zero."""
        sign = self.signs[i][:, None]
        return np.where(
            sign > 0, np.maximum(multipliers, 0.0), np.where(sign < 0, np.minimum(multipliers, 0.0), 0.0)
        )

    def _chosen(self, i: int, choice: Choice | None, *, single: bool = False) -> Relaxation:
        made = self.single(i) if single else self.relaxation(i)
        if choice is None or i not in choice.slopes or not isinstance(made, Adjustable):
            return made
        return made.with_slopes(choice.slopes[i])

    # ------------------------------------------------------------------ back and forth, not proved

    def estimate(
        self, index: int, form: Array, choice: Choice, at_input: Array | None = None
    ) -> Estimate:
        """Bound forms but for rounding: quicker than :meth:`upper_ends`, to search with.

        Args:
            index: The tensor.
            form: Forms ``(n, q, *shape)``; if they are float32, so is what follows.
            choice: Slopes and multipliers, of the same type.
            at_input: Forms of the input that are added, (n, q, d).
        """
        n, q = form.shape[:2]
        forms: dict[int, Array] = {index: form}
        if at_input is not None:
            own = at_input.reshape(n, q, *self.model.literal_shape)
            forms[0] = own + form if index == 0 else own
        offset = np.zeros((n, q))
        met: dict[int, tuple[Array, Relaxation]] = {}
        with np.errstate(all="ignore"):
            for i in range(index, 0, -1):
                if i not in forms:
                    continue
                own = forms.pop(i)
                if i in choice.multipliers:
                    own = own + choice.multipliers[i]
                made = self._chosen(i, choice, single=form.dtype == np.float32)
                met[i] = own, made
                pulled = made.estimate(own)
                offset = offset + pulled.offset
                for j, part in zip(self.model.nodes[i - 1].inputs, pulled.forms, strict=True):
                    forms[j] = forms[j] + part if j in forms else part
            low, high = self.values[0]
            slope = forms.get(0)
            if slope is None:
                slope = np.zeros((n, q, *low.shape[1:]))
            flat = slope.reshape(n, q, -1)
            if self.balls is None:
                point = np.where(slope > 0, high[:, None], low[:, None])
                inner = np.matmul(flat[:, :, None], point.reshape(n, q, -1, 1))[:, :, 0, 0]
            else:
                point = self.balls.farthest(flat).reshape(slope.shape)
                inner = self.balls.support(flat)
            ends = offset + inner
        return Estimate(ends, met, point)

    def followed(self, found: Estimate) -> dict[int, Array]:
        """Return every tensor where a bound is attained, by the linear functions that it took."""
        like = next((form.dtype for form, _ in found.forms.values()), found.point.dtype)
        points: dict[int, Array] = {0: found.point.astype(like, copy=False)}
        with np.errstate(all="ignore"):
            for i, (form, made) in sorted(found.forms.items()):
                inputs = self.model.nodes[i - 1].inputs
                if any(j not in points for j in inputs):
                    continue
                value = made.forward(form, *(points[j] for j in inputs))
                if value is not None:
                    points[i] = value
        return points


class Choice(NamedTuple):
    """What of a bound is free.

    Attributes:
        slopes: For nodes that may be put between other linear functions, as ReLUs: slopes below them,
            ``(n, q, *shape)``, or what else is chosen, ``(n, q, ...)``.
        multipliers: For tensors with assumed signs: what is added to forms of them, ``(n, q, *shape)``;
            of the sign that was assumed.
    """

    slopes: dict[int, Array]
    multipliers: dict[int, Array]


class Estimate(NamedTuple):
    """A bound but for rounding, and where it comes from.

    Attributes:
        ends: The bounds, (n, q).
        forms: The form of what every node makes, ``(n, q, *shape)``, and the relaxation it met.
        point: Where in the box the bound is attained, ``(n, q, *input shape)``.
    """

    ends: Array
    forms: dict[int, tuple[Array, Relaxation]]
    point: Array


def _size(form: Array, box: Interval) -> Array:
    n, q = form.shape[:2]
    reach = box.reach
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.abs(form).reshape(n, q, -1) @ reach.reshape(len(reach), -1, 1)
    return np.asarray(np.nan_to_num(terms[:, :, 0], nan=np.inf) + TINY)

r"""Better slopes and multipliers for linear bounds, by gradient steps.

The bound of :mod:`~pindown.relaxation.relaxed_model` is a function of the slopes
:math:`\alpha \in [0, 1]` below ReLUs of open sign, of the multipliers :math:`\beta \ge 0` of assumed
signs and, where several forms must all be non-negative, of weights :math:`\lambda` on them that sum to
one. At the point of the box where it is attained, with z and a what the linear functions taken make of
it and B the form of a,

.. math::
    \frac{\partial}{\partial \alpha_j} = \min(B_j, 0)\, z_j, \qquad
    \frac{\partial}{\partial \beta_j} = \pm z_j .

Any choice gives a proved bound, so the steps need no care; the best choice seen is kept. Steps are
Adam's.

Xu et al. 2021, "Fast and complete"; Wang et al. 2021, "Beta-CROWN"; Kingma and Ba 2015, "Adam".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.model.operations.operation import Adjustable, charged, dot, in_float32
from pindown.relaxation.relaxed_model import Choice, Estimate, RelaxedModel
from pindown.relaxation.tuning import MULTIPLIER_STEP, SLOPE_STEP, STEP_DECAY, WEIGHT_STEP
from pindown.rounding import TINY, add_up


class _Adam:
    """Steps of about unit size against a gradient, for each entry."""

    def __init__(self, shape: tuple[int, ...], kind: DTypeLike) -> None:
        self.mean, self.square, self.t = np.zeros(shape, kind), np.zeros(shape, kind), 0

    def step(self, gradient: Array) -> Array:
        self.t += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.001 * (gradient * gradient - self.square)
        mean = self.mean / (1 - 0.9**self.t)
        square = self.square / (1 - 0.999**self.t)
        return np.asarray(mean / (np.sqrt(square) + np.finfo(square.dtype).tiny))


@dataclass(eq=False)
class Descent:
    """Bounds on the smaller of forms, on their way down.

    Attributes:
        relaxed: The model, on n boxes or on one for all.
        index: The tensor whose forms are bounded.
        rows: Forms of it, ``(n, q, r, *shape)``: r forms that must all be non-negative at once.
        at_input: Forms of the input that are added, (n, q, r, d), or None.
        constant: Numbers that are added, (n, q, r).
        choice: Slopes and multipliers now.
        weights: Weights of the r forms, (n, q, r), non-negative with sum one.
        single: Whether to search in float32, twice as quick; what is proved is not touched by it.
    """

    relaxed: RelaxedModel
    index: int
    rows: Array
    at_input: Array | None
    constant: Array
    choice: Choice
    weights: Array
    single: bool = False
    best: Array = field(init=False)
    best_choice: Choice = field(init=False)
    best_weights: Array = field(init=False)
    last: Estimate | None = None
    _adams: dict[object, _Adam] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.best = np.full(self.rows.shape[:2], np.inf)
        if self.single:
            self.choice = Choice(*({i: in_float32(v) for i, v in d.items()} for d in self.choice))
        self.best_choice = Choice(
            {i: s.copy() for i, s in self.choice.slopes.items()},
            {i: m.copy() for i, m in self.choice.multipliers.items()},
        )
        self.best_weights = self.weights.copy()

    def combined(self, weights: Array) -> tuple[Array, Array | None, Array]:
        """Return the form, the form of the input and the number that weights make of the r."""
        if self.rows.shape[2] == 1:
            at_input = None if self.at_input is None else self.at_input[:, :, 0]
            return self.rows[:, :, 0], at_input, self.constant[:, :, 0]
        form = np.einsum("nqr,nqr...->nq...", weights, self.rows)
        at_input = None if self.at_input is None else np.einsum("nqr,nqrd->nqd", weights, self.at_input)
        return form, at_input, (weights * self.constant).sum(axis=2)

    @np.errstate(all="ignore")
    def run(self, steps: int, *, goal: float = -np.inf, deadline: Deadline = NEVER) -> None:
        """Take steps until all bounds are below the goal, or time is over."""
        for step in range(steps + 1):
            form, at_input, constant = self.combined(self.weights)
            if self.single:
                form = in_float32(form)
                at_input = None if at_input is None else in_float32(at_input)
            found = self.relaxed.estimate(self.index, form, self.choice, at_input)
            ends = found.ends + constant
            ends = np.where(np.isnan(ends), np.inf, ends)
            self._keep(ends)
            self.last = found
            if step == steps or np.all(self.best < goal) or (step and deadline.passed):
                return
            self._move(found, self.relaxed.followed(found), STEP_DECAY**step)

    def _keep(self, ends: Array) -> None:
        better = ends < self.best
        self.best = np.where(better, ends, self.best)
        for kept, now in zip(self.best_choice, self.choice, strict=True):
            for i, values in now.items():
                kept[i][better] = values[better]
        self.best_weights[better] = self.weights[better]

    def _move(self, found: Estimate, points: dict[int, Array], rate: float) -> None:
        for i, slopes in self.choice.slopes.items():
            inputs = self.relaxed.model.nodes[i - 1].inputs
            if i not in found.forms or any(j not in points for j in inputs):
                continue
            form, made = found.forms[i]
            if not isinstance(made, Adjustable):
                continue
            gradient = made.slope_gradient(form, *(points[j] for j in inputs))
            step = self._adam(("slope", i), gradient.shape).step(np.nan_to_num(gradient, copy=False))
            step *= SLOPE_STEP * rate
            np.clip(slopes - step, 0.0, 1.0, out=slopes)
        for j, multipliers in self.choice.multipliers.items():
            if j not in points or j not in found.forms:
                continue
            sign = self.relaxed.signs[j][:, None]
            gradient = np.nan_to_num(points[j]) * (sign != 0)  # of the multiplier, its sign included
            size = np.abs(found.forms[j][0]).reshape(*found.ends.shape, -1).max(axis=2)
            size = size.reshape(*size.shape, *(1,) * (gradient.ndim - 2))
            step = self._adam(("multiplier", j), gradient.shape).step(gradient)
            moved = multipliers - MULTIPLIER_STEP * rate * size * step
            multipliers[...] = np.where(
                sign > 0, np.maximum(moved, 0.0), np.where(sign < 0, np.minimum(moved, 0.0), 0.0)
            )
        if self.rows.shape[2] > 1 and self.index in points:
            self._reweigh(points, rate)

    def _reweigh(self, points: dict[int, Array], rate: float) -> None:
        """Give more weight to forms that are small where the bound is attained."""
        y = points[self.index]
        n, q, r = self.constant.shape
        value = np.einsum("nqri,nqi->nqr", self.rows.reshape(n, q, r, -1), y.reshape(n, q, -1))
        value = value + self.constant
        if self.at_input is not None:
            x = points[0].reshape(n, q, -1)
            value = value + np.einsum("nqrd,nqd->nqr", self.at_input, x)
        value = np.nan_to_num(value)
        spread = np.abs(value).max(axis=2, keepdims=True)
        weights = self.weights * np.exp(-WEIGHT_STEP * rate * value / np.where(spread > 0, spread, 1.0))
        self.weights = weights / weights.sum(axis=2, keepdims=True)

    def _adam(self, key: object, shape: tuple[int, ...]) -> _Adam:
        if key not in self._adams:
            self._adams[key] = _Adam(shape, np.float32 if self.single else np.float64)
        return self._adams[key]

    def coarsen(self, steps: int) -> None:
        """Round the best choice to numbers that are short to write; any choice gives a proved bound.

        Args:
            steps: Slopes become multiples of ``1 / steps``; multipliers become float32.
        """
        slopes, multipliers = self.best_choice
        with np.errstate(over="ignore"):
            self.best_choice = Choice(
                {
                    i: np.rint(np.clip(s, 0.0, 1.0).astype(np.float64) * steps) / steps
                    for i, s in slopes.items()
                },
                {j: m.astype(np.float32).astype(np.float64) for j, m in multipliers.items()},
            )

    @np.errstate(over="ignore", invalid="ignore")
    def proved(self) -> Array:
        """Return proved upper bounds (n, q) on the smallest of the r forms, by the best choice seen."""
        weights = self.best_weights
        form, at_input, constant = self.combined(weights)
        ends = self.relaxed.upper_ends(self.index, form, self.best_choice, at_input)
        if self.rows.shape[2] == 1:
            return add_up(ends, constant)
        # The weighted sums of forms and numbers were rounded.
        sizes = np.einsum("nqr,nqr...->nq...", weights, np.abs(self.rows))
        terms = dot(sizes, self.relaxed.values[self.index].reach)
        if self.at_input is not None:
            inputs = np.einsum("nqr,nqrd->nqd", weights, np.abs(self.at_input))
            terms = terms + dot(inputs, self.relaxed.values[0].reach)
        terms = terms + (weights * np.abs(self.constant)).sum(axis=2)
        lost = TINY * self._used()  # by underflow
        return charged(
            ends + constant + lost, terms + np.abs(ends) + lost, self.rows.shape[2] + form[0, 0].size
        )

    def _used(self) -> Array:
        """Return how large those entries of tensors can be, in sum, that the forms look at, (n, q)."""
        used = dot((self.rows != 0).any(axis=2) * 1.0, self.relaxed.values[self.index].reach)
        if self.at_input is not None:
            used = used + dot((self.at_input != 0).any(axis=2) * 1.0, self.relaxed.values[0].reach)
        return used

r"""Two models of any operations side by side: values, gaps and leads at points and on boxes of inputs.

Both are one model with the outputs :math:`(f(x), g(x))`; so every linear form of both, such as
:math:`f_k - g_k` or :math:`f_j - f_c`, is bounded by the same linear bounds
(:mod:`pindown.relaxation.model_bounds`), rounded outwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.comparison.layer_pairs import LayerPairs, pair_layers
from pindown.equivalence.tuning import ASCENT_STEPS
from pindown.model.gradients import gradients, outputs
from pindown.model.graph import Model, interval_walk
from pindown.model.joining import joined
from pindown.model.operations.operation import Interval
from pindown.relaxation.difference_models import difference_model
from pindown.relaxation.linear import LinearForms, largest
from pindown.relaxation.model_bounds import output_bounds, tighten, upper_ends
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.relaxation.tuning import MODEL_BLOCK_ENTRIES
from pindown.rounding import add_down, add_up

Labels = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Joint:
    """Two models with equally many inputs and outputs.

    Attributes:
        first: The model f.
        second: The model g.
    """

    first: Model
    second: Model

    @cached_property
    def both(self) -> Model:
        """The model with the outputs of both, those of f first."""
        every = np.arange(self.first.in_features)
        return joined([self.first, self.second], [every, every], len(every))

    @cached_property
    def tied(self) -> Model | None:
        """The model f - g with like operations tied; None if the two are not of one structure."""
        return difference_model(self.first, self.second)

    @cached_property
    def layers(self) -> LayerPairs:
        """What of the two graphs is the same to rounding."""
        return pair_layers(self.first, self.second)

    @property
    def k(self) -> int:
        """How many outputs each has."""
        return self.first.out_features

    @cached_property
    def gap_rows(self) -> Array:
        """Forms of the outputs of both: f - g, (k, 2k)."""
        return np.concatenate([np.eye(self.k), -np.eye(self.k)], axis=1)

    # ------------------------------------------------------------------ at points

    def values(self, X: Array) -> tuple[Array, Array]:
        """Return the outputs of both at rows, (n, k) each, infinite or NaN beyond float64."""
        return outputs(self.first, X), outputs(self.second, X)

    def enclosed(self, X: Array) -> tuple[Interval, Interval]:
        """Return proved bounds on the outputs of both at rows, (n, k) each."""
        found = []
        for model in (self.first, self.second):
            ends = np.empty((2, len(X), self.k))
            with np.errstate(all="ignore"):
                for part in model.chunks(len(X)):
                    *_, last = interval_walk(model, Interval(X[part], X[part]))
                    ends[:, part] = [end.reshape(-1, self.k) for end in last]
            ends[0][np.isnan(ends[0])], ends[1][np.isnan(ends[1])] = -np.inf, np.inf
            found.append(Interval(*ends))
        return found[0], found[1]

    def gaps_between(self, X: Array) -> tuple[Array, Array]:
        """Return proved lower and upper ends of ``max_k |f_k - g_k|`` at rows, (n,) each."""
        f, g = self.enclosed(X)
        with np.errstate(invalid="ignore"):
            lower = np.maximum(add_down(f.lower, -g.upper), add_down(g.lower, -f.upper)).max(axis=1)
            upper = np.maximum(add_up(f.upper, -g.lower), add_up(g.upper, -f.lower)).max(axis=1)
        return np.maximum(np.nan_to_num(lower, nan=0.0), 0.0), np.where(np.isnan(upper), np.inf, upper)

    # ------------------------------------------------------------------ on boxes

    def relaxed(
        self, lower: Array, upper: Array, *, steps: int = 0, deadline: Deadline = NEVER
    ) -> RelaxedModel:
        """Put both between linear functions on n boxes, with slopes by gradient steps if asked."""
        made = RelaxedModel.by_intervals(self.both, Interval(lower, upper))
        tighten(made, steps=steps, deadline=deadline)
        return made

    def gap_upper(self, relaxed: RelaxedModel, *, deadline: Deadline = NEVER) -> Array:
        """Return proved upper bounds on the gap on each box, (n,)."""
        low, high = output_bounds(relaxed, self.gap_rows, "linear", deadline)
        return np.maximum(np.maximum(high, -low).max(axis=1), 0.0)

    def tied_gap(
        self, lower: Array, upper: Array, *, steps: int = 0, deadline: Deadline = NEVER
    ) -> Array:
        """Return upper bounds on the gap on n boxes, (n,), by differences carried along, or infinite.

        What is proved: on every box, of the model :attr:`tied`, no output is larger in absolute value.

        Args:
            lower: Lower corners, (n, d).
            upper: Upper corners.
            steps: Gradient steps on the slopes and planes between which operations are put.
            deadline: When to stop tightening.
        """
        if self.tied is None:
            return np.full(len(lower), np.inf)
        made = RelaxedModel.by_intervals(self.tied, Interval(lower, upper))
        tighten(made, deadline=deadline)
        low, high = output_bounds(made, None, "linear", deadline)
        if steps and not deadline.passed:
            form = np.concatenate([np.eye(self.k), -np.eye(self.k)]).reshape(
                1, -1, *self.tied.output_shape
            )
            forms = np.broadcast_to(form, (len(lower), *form.shape[1:]))
            ends = upper_ends(made, len(made.values) - 1, forms, steps=steps, deadline=deadline)
            high, low = np.minimum(high, ends[:, : self.k]), np.maximum(low, -ends[:, self.k :])
        return np.maximum(np.maximum(high, -low).max(axis=1), 0.0)

    def gap_forms(
        self, lower: Array, upper: Array, *, deadline: Deadline = NEVER
    ) -> tuple[Array, LinearForms]:
        """Return upper bounds on the gap on n boxes, (n,), and linear forms of the input above it."""
        model = self.both if self.tied is None else self.tied
        rows = self.gap_rows if self.tied is None else np.eye(self.k)
        made = RelaxedModel.by_intervals(model, Interval(lower, upper))
        tighten(made, deadline=deadline)
        n, form = len(lower), np.concatenate([rows, -rows]).reshape(1, -1, *model.output_shape)
        slope, offset = made.upper_forms(len(made.values) - 1, np.repeat(form, n, axis=0))
        forms = LinearForms(slope.reshape(n, 2 * self.k, -1), offset)
        return np.maximum(largest(forms, lower, upper).max(axis=1), 0.0), forms

    def leads(
        self, relaxed: RelaxedModel, labels: Labels, *, steps: int = 0, deadline: Deadline = NEVER
    ) -> Array:
        r"""Return how far class c is ahead in f and in g on each whole box, at least: (2, n).

        The lead is :math:`\min_{j \ne c} \min_x (f_c - f_j)`, below zero where it is not proved, and
        unknown of what was not begun before the deadline.
        """
        n, k = len(labels), self.k
        others = np.array([[j for j in range(k) if j != c] for c in labels.tolist()])
        largest = max(value.lower[0].size for value in relaxed.values)
        together = max(1, MODEL_BLOCK_ENTRIES // (n * largest * (4 if steps else 1)))
        ends, at, leads = len(relaxed.values) - 1, np.arange(n)[:, None], np.full((2, n), np.inf)
        for side in (0, 1):
            for start in range(0, k - 1, together):
                if (side or start) and deadline.passed:
                    leads[side] = -np.inf
                    break
                part = others[:, start : start + together]
                rows = np.zeros((n, part.shape[1], 2 * k))
                rows[at, np.arange(part.shape[1]), side * k + part] = 1.0
                rows[at, np.arange(part.shape[1]), side * k + labels[:, None]] = -1.0
                forms = rows.reshape(n, -1, *self.both.output_shape)
                found = upper_ends(relaxed, ends, forms, steps=steps, deadline=deadline)
                leads[side] = np.minimum(leads[side], -found.max(axis=1))
        return leads

    # ------------------------------------------------------------------ uphill

    def ascended(
        self,
        X: Array,
        lower: Array,
        upper: Array,
        deadline: Deadline = NEVER,
        forms: Array | None = None,
    ) -> Array:
        """Return points of n boxes with larger gaps than the rows that are given, one for each.

        Args:
            X: Where to begin, (n, d).
            lower: Lower corners, (n, d).
            upper: Upper corners.
            deadline: When to stop.
            forms: What of ``f - g`` to lead uphill, (n, k); else the largest difference at every step.
        """
        best, k = np.array(X), self.k
        top = self.gaps(best)
        points, half = np.array(X), upper / 2 - lower / 2
        for step in ASCENT_STEPS:
            if deadline.passed:
                break

            def steepest(made: Array, part: slice) -> Array:
                if forms is not None:
                    return np.concatenate([forms[part], -forms[part]], axis=1)
                apart = made[:, :k] - made[:, k:]
                which = np.argmax(np.abs(apart), axis=1)
                at = np.arange(len(made))
                largest = np.zeros_like(made)
                largest[at, which] = np.sign(apart[at, which])
                largest[at, k + which] = -largest[at, which]
                return largest

            _, slopes = gradients(self.both, points, steepest)
            points = np.clip(points + 2.0 * step * half * np.sign(slopes), lower, upper)
            gaps = self.gaps(points)
            better = gaps > top
            best[better], top[better] = points[better], gaps[better]
        return best

    def gaps(self, X: Array) -> Array:
        """Return the gaps at rows in float64, (n,); 0 where an output is not finite."""
        f, g = self.values(X)
        with np.errstate(invalid="ignore", over="ignore"):
            gaps = np.abs(f - g).max(axis=1)
        return np.where(np.isfinite(gaps), gaps, 0.0)

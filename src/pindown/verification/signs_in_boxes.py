r"""Splitting ReLUs inside many small boxes at once: both kinds of cuts together.

On a small box few ReLUs have an open sign. There it takes some gradient steps on the slopes, and some
choices of signs, to prove what many cuts of the box would: a box is cut along its inputs, whereas where
a ReLU bends is a surface that mostly lies askew. Every box has its own tree, one level of all trees is
bounded at a time, and a box whose tree grows too wide is given back, to be cut.

Bounds, multipliers of signs and where to split are those of
:mod:`~pindown.verification.unit_splitting`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.model.operations.relu import Relu, Triangles
from pindown.relaxation.descent import Descent
from pindown.relaxation.relaxed_model import Choice, RelaxedModel
from pindown.verification.tuning import BOX_SIGN_LEVELS, BOX_SIGN_PARTS, BOX_SIGN_STEPS

Indices = NDArray[np.intp]


def open_units(relaxed: RelaxedModel) -> NDArray[np.intp]:
    """Return how many ReLUs have an open sign on each box, (n,)."""
    total = np.zeros(len(relaxed.values[0].lower), np.intp)
    for node in relaxed.model.nodes[: len(relaxed.values) - 1]:
        if isinstance(node.operation, Relu):
            low, high = relaxed.values[node.inputs[0]]
            total += np.count_nonzero((low < 0) & (high > 0), axis=tuple(range(1, low.ndim)))
    return total


def lost_by_lines(
    form: Array, at: Array, below: Array, slope: Array, shift: Array
) -> tuple[Array, Array]:
    """Say what the lines around ReLUs cost a bound: where it is attained, and at most.

    Args:
        form: What the bound takes of each ReLU.
        at: The ReLUs' inputs where the bound is attained.
        below: Slopes of the lines below.
        slope: Slopes of the lines above.
        shift: Their offsets.

    >>> [part.tolist() for part in lost_by_lines(*np.array([[2.0], [-0.5], [0.0], [0.5], [1.0]]))]
    [[1.5], [2.0]]
    """
    relu = np.maximum(at, 0.0)
    here = np.where(form > 0, form * (slope * at + shift - relu), -form * (relu - below * at))
    return here, np.maximum(form, 0.0) * shift


@dataclass(eq=False)
class _Parts:
    """Choices of signs on boxes: which box, signs and multipliers by tensor, slopes by node, weights."""

    owner: Indices
    signs: dict[int, NDArray[np.int8]]
    choice: Choice
    weights: Array

    def halved(self, which: Indices, best: Choice, weights: Array, unit: dict[int, Indices]) -> _Parts:
        """Return two parts for each of some, with both signs of a unit (-1: of another tensor)."""
        twice = np.repeat(which, 2)
        signs = {j: sign[twice] for j, sign in self.signs.items()}
        for j, place in unit.items():
            here = np.flatnonzero(place >= 0)
            flat = signs[j].reshape(len(twice), self.signs[j][0].size)
            flat[2 * here, place[here]], flat[2 * here + 1, place[here]] = 1, -1
        slopes, multipliers = (
            {i: part[twice].astype(np.float64) for i, part in parts.items()} for parts in best
        )
        return _Parts(self.owner[twice], signs, Choice(slopes, multipliers), weights[twice])


@np.errstate(all="ignore")  # what leaves float64 proves nothing
def bound_by_signs(
    relaxed: RelaxedModel,
    index: int,
    form: Array,
    constant: Array,
    at_input: Array | None,
    weights: Array,
    deadline: Deadline,
) -> Array:
    """Bound the smallest of r forms on each of n boxes by gradient steps and choices of signs.

    Args:
        relaxed: The model on the boxes, with the best bounds known.
        index: The tensor whose forms are bounded.
        form: Forms of it, ``(n, r, *shape)``.
        constant: Numbers that are added, (n, r).
        at_input: Forms of the input that are added, (n, r, d), or None.
        weights: Weights of the forms at the beginning, (n, r): non-negative with sum one.
        deadline: When to stop.

    Returns:
        Proved upper bounds (n,), infinite where they are not negative.
    """
    search = _Search(relaxed, index, form, constant, at_input)
    parts = search.begin(weights)
    for level in range(BOX_SIGN_LEVELS + 1):
        left, descent = search.bound(parts, deadline)
        if not len(left):
            break
        if level == BOX_SIGN_LEVELS or deadline.passed:
            search.bounds[parts.owner[left]] = np.inf
            break
        parts = search.split(parts, left, descent)
        if not len(parts.owner):
            break
    return search.bounds


class _Search:
    """Trees of signs on n boxes, one for each; ``bounds`` are infinite where one was given up."""

    def __init__(
        self, relaxed: RelaxedModel, index: int, form: Array, constant: Array, at_input: Array | None
    ) -> None:
        self.relaxed, self.index = relaxed, index
        self.form, self.constant, self.at_input = form, constant, at_input
        self.bounds = np.full(len(form), -np.inf)
        self.units = [
            (i, node.inputs[0])
            for i, node in enumerate(relaxed.model.nodes[:index], 1)
            if isinstance(node.operation, Relu)
            and node.inputs[0] > 0
            and isinstance(relaxed.relaxation(i), Triangles)
        ]

    def begin(self, weights: Array) -> _Parts:
        """Return the boxes themselves, with the usual slopes and no signs."""
        slopes, signs, multipliers = {}, {}, {}
        for i, j in self.units:
            made = self.relaxed.relaxation(i)
            assert isinstance(made, Triangles)
            slopes[i] = made.lower[:, None].copy()
            signs[j] = np.zeros(made.lower.shape, np.int8)
            multipliers[j] = np.zeros(slopes[i].shape)
        return _Parts(np.arange(len(self.form)), signs, Choice(slopes, multipliers), weights)

    def bound(self, parts: _Parts, deadline: Deadline) -> tuple[Indices, Descent]:
        """Bound parts; return those that are not proved, and what their bounds rest on."""
        owner = parts.owner
        at_input = None if self.at_input is None else self.at_input[owner][:, None]
        descent = Descent(
            self.relaxed.of_boxes(owner, self.index).assuming(parts.signs),
            self.index,
            self.form[owner][:, None],
            at_input,
            self.constant[owner][:, None],
            parts.choice,
            parts.weights[:, None],
            single=True,
        )
        descent.run(BOX_SIGN_STEPS, goal=0.0, deadline=deadline)
        bounds = descent.best[:, 0]
        if (bounds < 0.0).any():
            bounds = descent.proved()[:, 0]
        proved = bounds < 0.0
        np.maximum.at(self.bounds, owner[proved], bounds[proved])
        return np.flatnonzero(~proved), descent

    def split(self, parts: _Parts, left: Indices, descent: Descent) -> _Parts:
        """Split parts that are left at the unit whose lines cost most where the bound is attained."""
        scores, owner = self._scores(descent), parts.owner[left]
        none = np.full((len(left), 1), -np.inf)
        best = np.argmax(np.concatenate([none, *(s[left] for s in scores.values())], axis=1), axis=1)
        given_up = np.zeros(len(self.form), bool)
        given_up[owner[best == 0]] = True  # no unit of open sign is left
        given_up |= np.bincount(owner, minlength=len(given_up)) > BOX_SIGN_PARTS
        self.bounds[given_up] = np.inf
        kept = ~given_up[owner]
        best, start, unit = best[kept], 1, {}
        for j, score in scores.items():
            inside = (best >= start) & (best < start + score.shape[1])
            unit[j] = np.where(inside, best - start, -1)
            start += score.shape[1]
        return parts.halved(left[kept], descent.best_choice, descent.best_weights[:, 0], unit)

    def _scores(self, descent: Descent) -> dict[int, Array]:
        """Return what splitting each unit promises, (n, size) by tensor; -inf if its sign is known."""
        found = descent.last
        assert found is not None
        points = descent.relaxed.followed(found)
        scores: dict[int, Array] = {}
        for i, j in self.units:
            if i not in found.forms or j not in points:
                continue
            form, made = found.forms[i]
            assert isinstance(made, Triangles)
            n = len(form)
            below = descent.choice.slopes[i]
            parts = (form, points[j], below, made.slope, made.shift)
            lost, _ = lost_by_lines(*(part.reshape(n, -1) for part in parts))
            score = np.where(made.open_sign.reshape(n, -1), np.nan_to_num(lost), -np.inf)
            scores[j] = np.maximum(scores[j], score) if j in scores else score
        return scores

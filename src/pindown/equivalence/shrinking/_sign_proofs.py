"""Signs that intervals cannot see: linear bounds, then smaller boxes, then mixed-integer programs.

Random inputs first sort out the units that take both signs; only for the others is a proof worth trying.
Every method ends with what it has proved when time is up.

On a small box linear bounds are tight, so a unit that is negative everywhere, with some room, is proved
so on every piece of a fine enough partition. All units share one partition; a piece is cut while some
unit is open on it, and a unit is given up once a point contradicts it or its pieces become too small.

Tjeng, Xiao and Tedrake 2019, "Evaluating robustness of neural networks with mixed integer programming";
Bunel et al. 2020, "Branch and bound for piecewise linear neural network verification".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Affine, Array, stored_entries
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.comparison._integer_programs import largest_output
from pindown.equivalence.shrinking._proposals import Draft
from pindown.equivalence.shrinking._rounded_matrices import Mask
from pindown.equivalence.tuning import (
    FEW_INPUTS,
    FIRST_PROOF_SHARE,
    HILL_POINTS,
    HILL_ROUNDS,
    MAX_BINARIES,
    MAX_FAILURES,
    MAX_PIECES,
    MAX_SPLIT_INPUTS,
    MIN_SIDE,
    SIGN_LINEAR_SHARE,
    SIGN_SAMPLE_FLOPS,
    SIGN_SAMPLES,
    SPLIT_BATCH_ENTRIES,
)
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.linear import linear_bounds, relax
from pindown.relaxation.mixed_integer import encode
from pindown.relaxation.tuning import FLOPS_PER_SECOND
from pindown.rounding import add_up

_Proved = tuple[list[Mask], list[Mask]]
_SEED = 0  # the same candidates every time


def prove_signs(draft: Draft) -> bool:
    """Look for units that are never positive, or never negative, on the box.

    Returns:
        Whether something new was proved; it is then part of the draft's bounds.
    """
    if draft.box is None or draft.net.depth < 3:
        return False  # in the first hidden layer intervals are exact
    if not all(np.isfinite(end).all() for i in range(draft.net.depth) for end in draft.bounds(i)):
        return False  # numbers may leave float64
    return any(not draft.out_of_time and method(draft) for method in (_by_linear_bounds, _by_search))


def _by_linear_bounds(draft: Draft) -> bool:
    assert draft.box is not None
    if _relaxation_seconds(draft) > SIGN_LINEAR_SHARE * draft.deadline.left:
        return False
    found = linear_bounds(draft.net[: draft.net.depth - 1], draft.box)
    return _learn(draft, list(found))


def _relaxation_seconds(draft: Draft) -> float:
    """Return roughly how long linear bounds of all units take on one box."""
    sizes = [stored_entries(layer.weight) for layer in draft.net.layers]
    units = draft.net.widths[1:]
    flops = sum(4.0 * units[i] * sum(sizes[: i + 1]) for i in range(1, len(units)))
    return flops / FLOPS_PER_SECOND


def _by_search(draft: Draft) -> bool:
    dead, on = _candidates(draft)
    if not any(mask.any() for mask in (*dead, *on)):
        return False
    # In the plane boxes win, in space programs do; what the first leaves open is the second's.
    methods = [_by_splitting, _by_programs]
    if draft.net.in_features > FEW_INPUTS:
        methods.reverse()
    new = False
    for share, method in zip((FIRST_PROOF_SHARE, 1.0), methods, strict=True):
        proved = method(draft, dead, on, draft.deadline.share(share))
        learned = _learn(draft, [_as_bounds(*masks) for masks in zip(*proved, strict=True)])
        draft.by_programs |= learned and method is _by_programs
        new |= learned
        dead, on = (
            [mask & ~done for mask, done in zip(masks, found, strict=True)]
            for masks, found in zip((dead, on), proved, strict=True)
        )
    return new


def _candidates(draft: Draft) -> tuple[list[Mask], list[Mask]]:
    """Return units with open sign that are never positive, or never negative, at inputs tried."""
    assert draft.box is not None
    count = int(np.clip(SIGN_SAMPLE_FLOPS / (2.0 * draft.net.n_parameters), 16, SIGN_SAMPLES))
    rng = np.random.default_rng(_SEED)
    points = draft.box.sample(count, rng)
    z = draft.net.preactivations(points)
    undecided = np.concatenate([_undecided(draft, i) for i in range(draft.net.depth - 1)])
    dead, on = undecided & (z.max(axis=0) <= 0.0), undecided & (z.min(axis=0) >= 0.0)
    on &= ~dead
    for radius in 0.5 ** np.arange(1, HILL_ROUNDS + 1):
        open_units = np.flatnonzero(dead | on)
        if not 0 < len(open_units) * HILL_POINTS <= count or draft.out_of_time:
            break  # as many evaluations again, at most, in every round
        near = np.argmin(np.abs(z[:, open_units]), axis=0)
        steps = radius * draft.box.radius * rng.uniform(-1, 1, (HILL_POINTS, len(near), points.shape[1]))
        new = np.clip(points[near] + steps, draft.box.lower, draft.box.upper).reshape(
            -1, points.shape[1]
        )
        points = np.concatenate([points[near], new])
        z = draft.net.preactivations(points)
        dead &= (z <= 0.0).all(axis=0)
        on &= (z >= 0.0).all(axis=0)
    return draft.net.by_layer(dead), draft.net.by_layer(on)


def _undecided(draft: Draft, layer: int) -> Mask:
    z = draft.bounds(layer)
    return (z.lower < 0.0) & (z.upper > 0.0)


def _as_bounds(dead: Mask, on: Mask) -> Interval:
    return Interval(np.where(on, 0.0, -np.inf), np.where(dead, 0.0, np.inf))


def _learn(draft: Draft, found: list[Interval]) -> bool:
    """Record bounds; return whether they decide the sign of a unit that was open."""
    new = False
    for layer, z in enumerate(found):
        undecided = _undecided(draft, layer)
        new |= bool((undecided & ((z.lower >= 0.0) | (z.upper <= 0.0))).any())
        draft.learn(layer, z)
    return new


def _by_splitting(draft: Draft, dead: list[Mask], on: list[Mask], deadline: Deadline) -> _Proved:
    slow = _relaxation_seconds(draft) > SIGN_LINEAR_SHARE * deadline.left
    if draft.net.in_features > MAX_SPLIT_INPUTS or draft.box is None or slow:
        return [np.zeros_like(mask) for mask in dead], [np.zeros_like(mask) for mask in on]
    return signs_by_splitting(draft.net, draft.box, dead, on, deadline)


def _by_programs(draft: Draft, dead: list[Mask], on: list[Mask], deadline: Deadline) -> _Proved:
    """Maximise one unit at a time, layer by layer, until too many in a row stay open."""
    proved = [np.zeros_like(mask) for mask in dead], [np.zeros_like(mask) for mask in on]
    units = [
        (layer, side, unit)
        for layer, masks in enumerate(zip(dead, on, strict=True))
        for side, mask in enumerate(masks)
        for unit in np.flatnonzero(mask).tolist()
    ]
    failures = 0
    for done, (layer, side, unit) in enumerate(units):
        left = deadline.left
        if failures >= MAX_FAILURES or left <= 0:
            break
        seconds = min(left, MAX_FAILURES * left / (len(units) - done))
        found = _never_positive(draft, layer, unit, (1.0, -1.0)[side], seconds)
        proved[side][layer][unit] = found
        failures = 0 if found else failures + 1
    return proved


def _never_positive(draft: Draft, layer: int, unit: int, sign: float, seconds: float) -> bool:
    """Return whether a program proves ``sign * z <= 0`` for one unit, with room for the solver."""
    assert draft.box is not None
    switches = sum(int(_undecided(draft, below).sum()) for below in range(layer))
    if seconds <= 0 or switches > MAX_BINARIES:
        return False
    below = draft.net[: layer + 1]
    weight, bias = below.layers[-1]
    only = Affine.of(weight[[unit]], bias[[unit]])
    program = encode(ReluNetwork((*below.layers[:-1], only)), draft.box)
    if program is None:
        return False
    found = largest_output(program, 0, sign, seconds)
    return bool(add_up(found.bound, program.error[0]) <= 0.0)


def signs_by_splitting(
    net: ReluNetwork, box: Box, dead: list[Mask], on: list[Mask], deadline: Deadline
) -> tuple[list[Mask], list[Mask]]:
    """Prove that units are never positive, or never negative, on the box.

    Args:
        net: The network.
        box: The inputs.
        dead: For every hidden layer, which units to prove at most 0.
        on: For every hidden layer, which units to prove at least 0.
        deadline: When to stop; what is open then is not proved.

    Returns:
        Which of them are proved, in the same two forms.
    """
    ends = np.cumsum([len(mask) for mask in dead])[:-1]
    wanted = np.concatenate(dead) | np.concatenate(on)
    negative = np.concatenate(dead)
    layers = 1 + max((i for i in range(len(dead)) if dead[i].any() or on[i].any()), default=-1)
    if layers == 0:
        return dead, on
    part = net[: layers + 1]
    count = part.size
    proved = _Partition(part, box, negative[:count], wanted[:count]).run(deadline)
    proved = np.concatenate([proved, np.zeros(len(wanted) - count, dtype=bool)])
    return np.split(proved & negative, ends), np.split(proved & ~negative, ends)


class _Partition:
    """The pieces on which units are still open."""

    def __init__(self, net: ReluNetwork, box: Box, negative: Mask, wanted: Mask) -> None:
        self.net, self.negative, self.wanted = net, negative, wanted.copy()
        self.side = np.where(box.upper > box.lower, box.upper - box.lower, np.inf)
        self.lower, self.upper = box.lower[None], box.upper[None]
        self.open = wanted[None].copy()
        self.batch = max(1, SPLIT_BATCH_ENTRIES // max(1, net.size * max(net.widths)))

    def run(self, deadline: Deadline) -> Mask:
        """Cut until nothing is open or time is up; return the units that are proved."""
        while 0 < len(self.open) <= MAX_PIECES and not deadline.passed:
            self._step()
        return self.wanted & ~self.open.any(axis=0)

    def _step(self) -> None:
        now = slice(max(0, len(self.open) - self.batch), None)  # the newest first: memory stays small
        lower, upper, still = self.lower[now], self.upper[now], self.open[now]
        self.lower, self.upper = self.lower[: now.start], self.upper[: now.start]
        self.open = self.open[: now.start]
        bounds = relax(self.net, lower, upper).bounds[:-1]
        low = np.concatenate([z.lower for z in bounds], axis=1)
        high = np.concatenate([z.upper for z in bounds], axis=1)
        still = still & ~np.where(self.negative, high <= 0.0, low >= 0.0)
        keep = still.any(axis=1)
        self._give_up(lower[keep], upper[keep], still[keep])
        still = still[keep] & self.wanted
        self._cut(lower[keep], upper[keep], still)

    def _give_up(self, lower: Array, upper: Array, still: Mask) -> None:
        """Drop units that a midpoint contradicts, or whose open pieces are as small as they may get."""
        if not len(lower):
            return
        z = self.net.preactivations(lower / 2 + upper / 2)
        wrong = np.where(self.negative, z > 0.0, z < 0.0).any(axis=0)
        small = ((upper - lower) / self.side).max(axis=1) < MIN_SIDE
        self.wanted &= ~(wrong | still[small].any(axis=0))
        self.open &= self.wanted

    def _cut(self, lower: Array, upper: Array, still: Mask) -> None:
        """Halve the widest side of every piece on which something is open."""
        keep = still.any(axis=1)
        lower, upper, still = lower[keep], upper[keep], still[keep]
        rows: NDArray[np.intp] = np.arange(len(lower))
        axis = np.argmax((upper - lower) / self.side, axis=1)
        low, high = lower[rows, axis], upper[rows, axis]
        middle = np.clip(low / 2 + high / 2, low, high)
        left, right = upper.copy(), lower.copy()
        left[rows, axis] = right[rows, axis] = middle
        self.lower = np.concatenate([self.lower, lower, right])
        self.upper = np.concatenate([self.upper, left, upper])
        self.open = np.concatenate([self.open, still, still])

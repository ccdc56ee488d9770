r"""How far apart are a network and a slightly changed one? A proved upper bound.

If layer l changes by :math:`D_l, d_l`, the outputs change by

.. math::
    \sum_l J_l(x)\, s_l(x), \qquad s_l = D_l a_{l-1} + d_l, \quad
    J_l = W_L \Lambda_{L-1} W_{L-1} \cdots \Lambda_l, \quad 0 \le \Lambda \le 1,

with the slopes :math:`\Lambda` of the ReLUs between the two networks, which nobody knows. Three ways to
bound it, the cheapest first: absolute values of the weights, their norms, quadratic multipliers. If only
a few biases of one layer change, a fourth: multipliers for every corner of the change, and proofs that
no input has the signs that the remaining ones need.

Fazlyab et al. 2019 (multipliers); Phuong 2021, section 2.4 (what the bound is needed for).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import frexp, inf, isfinite, ldexp

import numpy as np

from pindown.affine import Array, dense
from pindown.box import Box, as_box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.sensitivity._few_changed_biases import (
    FewBiases,
    bound_few_biases,
    excluded_by_signs,
    is_for_corners,
)
from pindown.equivalence.sensitivity._multipliers import (
    SourceChain,
    best_multipliers,
    proved_bounds,
)
from pindown.equivalence.sensitivity._propagation import Propagation, activation_ranges, sum_above
from pindown.equivalence.sensitivity.weight_changes import Change, Source, balanced, find_sources
from pindown.equivalence.tuning import BALANCING_SHARE, MAX_SYSTEM, MIN_EVALUATIONS, NORM_SHARE
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.parallel import few_threads
from pindown.relaxation.tuning import FLOPS_PER_SECOND

__all__ = ["Change", "GapBound", "gap_of_changes"]
# Multipliers that aim at the target stop a little below, for sums and certificates round up.
_JUST_BELOW = 1.0 - 1e-6


@dataclass(frozen=True, repr=False)
class GapBound:
    """A proved bound on the largest gap of two networks.

    Attributes:
        value: The bound; infinite if none was found.
        method: What proved it: ``"equal"``, ``"absolute weights"``, ``"norms"``, ``"multipliers"`` or
            ``"multipliers and signs"``.
        relative: Whether gaps are divided by ``1 + ||x||`` (no box).
    """

    value: float
    method: str
    relative: bool

    def __repr__(self) -> str:
        where = "(1 + ||x||) for every input" if self.relative else "1 on the box"
        return (
            f"GapBound(proved: the outputs differ by at most {self.value:.4g} x {where}; {self.method})"
        )


@on_network
@np.errstate(over="ignore", invalid="ignore")  # what float64 cannot hold ends in an infinite bound
def gap_of_changes(
    net: ReluNetwork,
    changes: Mapping[int, Change],
    *,
    box: Box | None,
    target: float = 0.0,
    budget: float = inf,
    longest: float = 0.0,
) -> GapBound:
    r"""Bound the gap between a network and any network whose layers differ by the changes.

    .. math::
        \sup_{x \in \mathrm{box}} \max_k |f_k(x) - g_k(x)|, \qquad
        \text{without a box} \quad \sup_x \max_k \frac{|f_k(x) - g_k(x)|}{1 + \|x\|_2}.

    Args:
        net: The network :math:`f`.
        changes: By index of the layer, from 0, what :math:`g` has more; other layers are equal.
        box: The inputs, or None for all of :math:`\mathbb{R}^d`.
        target: A bound that is good enough: no further method is tried below it.
        budget: Seconds, roughly; the best bound proved until then is returned.
        longest: Seconds, if more, for the corners of a change of a few biases of one layer: these are
            decided in the end, where other methods only get better.

    Raises:
        ValueError: If a change does not fit its layer, or the box the network.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> change = Change(np.zeros((2, 1)), np.array([0.25, 0.0]))  # relu(x + 0.25) + relu(-x)
    >>> gap_of_changes(net, {0: change}, box=None)
    GapBound(proved: the outputs differ by at most 0.25 x (1 + ||x||) for every input; absolute weights)
    """
    deadline, latest = Deadline.after(budget), Deadline.after(longest)
    box = None if box is None else as_box(box, net.in_features)
    changes = {i: change for i, change in sorted(changes.items()) if _fits(net, i, change)}
    if not changes:
        return GapBound(0.0, "equal", box is None)
    best = _GapSearch(net, changes, box, norms=False, deadline=deadline).bound("absolute weights")
    if best.value <= target or deadline.passed:
        return best
    scaled, moved = balanced(net, changes, deadline=Deadline.after(BALANCING_SHARE * budget))
    search = _GapSearch(scaled, moved, box, norms=True, deadline=deadline.share(NORM_SHARE))
    best = min(best, search.bound("norms"), key=lambda bound: bound.value)
    if best.value <= target or deadline.passed:
        return best
    with few_threads(net):
        search.sharpen(target, deadline, latest)
    how = "multipliers and signs" if search.by_signs else "multipliers"
    return min(best, search.bound(how), key=lambda bound: bound.value)


def _fits(net: ReluNetwork, index: int, change: Change) -> bool:
    """Return whether the change is one; complain if there is no such layer or its shape differs."""
    if not 0 <= index < net.depth:
        raise ValueError(f"changes are given by index of the layer, 0..{net.depth - 1}; got {index}.")
    shape = net.layers[index].weight.shape
    if change.weight.shape != shape:
        raise ValueError(
            f"layer {index} has weights of shape {shape}; its change has {change.weight.shape}."
        )
    return not change.is_zero


class _GapSearch:
    """All sources of one network with the bounds found for each so far."""

    def __init__(
        self,
        net: ReluNetwork,
        changes: Mapping[int, Change],
        box: Box | None,
        *,
        norms: bool,
        deadline: Deadline,
    ) -> None:
        self.net, self.changes, self.box = net, changes, box
        self.chain = Propagation([layer.weight for layer in net.layers], norms=norms, deadline=deadline)
        ranges = activation_ranges(net, self.chain, box, deadline=deadline if norms else None)
        self.relative = box is None
        self.sources = find_sources(self.chain, changes, ranges, relative=self.relative)
        self.by_signs = False
        self.main = [self.chain.to_output(s.layer, s.main) for s in self.sources]
        self.loose = [self.chain.to_output(s.layer, s.loose) for s in self.sources]

    @property
    def is_one_bias(self) -> bool:
        """Whether all that changes, up to a slack that is bounded apart, are biases of one layer."""
        return len(self.sources) == 1 and self.sources[0].matrix is None

    def bound(self, method: str) -> GapBound:
        """Add up what all sources do; of those with one budget only the largest counts."""
        groups: dict[int, Array] = {}
        for source, main, loose in zip(self.sources, self.main, self.loose, strict=True):
            both = sum_above(main, loose)
            groups[source.either] = np.maximum(groups.get(source.either, both), both)
        value = float(np.max(sum_above(*groups.values())))
        return GapBound(value if isfinite(value) else inf, method, self.relative)

    def sharpen(self, target: float, deadline: Deadline, latest: Deadline) -> None:
        """Improve one source after the other, the largest first, by multipliers.

        Args:
            target: A bound that is good enough.
            deadline: When to stop.
            latest: When to stop with corners, if they are all there is.
        """
        order = sorted(range(len(self.sources)), key=lambda i: -float(np.max(self.main[i])))
        for place, i in enumerate(order):
            now = self.bound("multipliers").value
            if now <= target or deadline.passed:
                return
            # What this source may still do if the others stay as they are; none of it: do the best.
            aim = float(np.max(self.main[i])) - (now - target) if isfinite(now) else target
            turn = deadline.share(1.0 / (len(order) - place))
            self._sharpen_one(i, _JUST_BELOW * aim, turn, deadline, latest)

    def _sharpen_one(
        self, i: int, aim: float, turn: Deadline, deadline: Deadline, latest: Deadline
    ) -> None:
        source = self.sources[i]
        last = max(turn, latest, key=lambda d: d.end) if self.is_one_bias else turn
        corners = corner_bounds(self.chain, source, aim, last, collect=self.is_one_bias)
        if corners is not None:
            values, found = corners
            self.main[i] = np.minimum(self.main[i], values)
            if np.max(self.main[i]) > aim and self.is_one_bias:
                bias = self.changes[source.layer].bias
                if excluded_by_signs(self.net, source.layer, bias, found, self.box, deadline=last):
                    self.main[i] = np.minimum(self.main[i], aim)
                    self.by_signs = True
        if np.max(self.main[i]) > aim:
            bounds = multiplier_bounds(self.chain, source, aim, turn, deadline=deadline)
            if bounds is not None:
                self.main[i] = np.minimum(self.main[i], bounds)


def multiplier_bounds(
    weights: Propagation, source: Source, target: float, turn: Deadline, *, deadline: Deadline = NEVER
) -> Array | None:
    """Return proved bounds on what ``fixed + matrix v`` does to the outputs, or None.

    Args:
        weights: The network behind the source.
        source: The source; its loose part is left out.
        target: A bound that is good enough.
        turn: When to stop improving.
        deadline: By when a first bound must be proved; what cannot be done by then is not begun.

    Returns:
        One bound per output; None if the system is too large, or its numbers too far apart.
    """
    scaled = _chain_for(weights, source, deadline)
    if scaled is None:
        return None
    chain, power = scaled
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        x = best_multipliers(chain, target=_shifted(target, -power), deadline=turn)
        return None if x is None else _per_output(proved_bounds(chain, x), chain, power)


def corner_bounds(
    weights: Propagation, source: Source, target: float, deadline: Deadline, *, collect: bool
) -> tuple[Array, FewBiases] | None:
    """Return proved bounds on what a change of a few biases does to the outputs, and their search.

    Args:
        weights: The network behind the source.
        source: The source; its loose part is left out.
        target: A bound that is good enough.
        deadline: When to stop.
        collect: Whether corners that stay above the target are to be collected.

    Returns:
        One bound per output, and the searches; None if the source is something else or too large.
    """
    scaled = None if source.matrix is not None else _chain_for(weights, source, deadline)
    if scaled is None or not is_for_corners(scaled[0], deadline.left):
        return None
    chain, power = scaled
    aim = _shifted(target, -power)
    if not isfinite(aim) or _shifted(aim, power) != target:
        return None
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        found = bound_few_biases(chain, aim, deadline, collect=collect)
        return _per_output(found.bounds, chain, power), found


def _chain_for(
    weights: Propagation, source: Source, deadline: Deadline
) -> tuple[SourceChain, int] | None:
    """Return the scaled chain with its power of two, if it is of a size and kind for multipliers."""
    last = len(weights.weights) - 1
    finite = isfinite(source.reach.length) and np.isfinite(source.fixed).all()
    if source.layer == last or not finite or _variables(weights, source) > MAX_SYSTEM:
        return None
    scaled = _scaled_chain(weights, source)
    if scaled is None or _least_seconds(scaled[0]) > deadline.left:
        return None
    return scaled


def _per_output(bounds: Array, chain: SourceChain, power: int) -> Array:
    """Return the larger of both signs for every output, scaled back."""
    largest = np.maximum(bounds.reshape(-1, len(chain.outputs)).max(axis=0), 0.0)
    return np.asarray(np.nextafter(np.ldexp(largest, power), inf))


def _variables(weights: Propagation, source: Source) -> int:
    layers = weights.weights[source.layer : -1]
    return sum(W.shape[0] for W in layers) + len(source.reach.entries)


def _least_seconds(chain: SourceChain) -> float:
    """Return roughly what a few evaluations and the proof take: less would prove nothing."""
    _, *sizes = chain.sizes
    pairs = list(pairwise(sizes))
    once = sum(n**3 / 3 + n**2 * m + n * m**2 for m, n in pairs) + sizes[0] ** 3
    return (MIN_EVALUATIONS * once + float(sum(sizes)) ** 3) / FLOPS_PER_SECOND


def _scaled_chain(weights: Propagation, source: Source) -> tuple[SourceChain, int] | None:
    """Return the source scaled to sizes near one, and the power of two that the bound then lacks."""
    size, length = source.main.length, source.reach.length
    layers = [dense(W) for W in weights.weights[source.layer + 1 :]]
    gain = float(np.max(np.abs(layers[-1])))
    if not (0.0 < size < inf and 0.0 < gain < inf):
        return None
    here, there, out = (frexp(x)[1] if x else 0 for x in (size, length, gain))
    M = np.zeros((len(source.fixed), 0))
    columns = np.arange(0)
    if source.matrix is not None:
        M = dense(source.matrix)
        columns = np.flatnonzero(M.any(axis=0) & (source.reach.entries > 0.0))
    parts = [
        (source.fixed, -here),
        (M[:, columns], there - here),
        (source.reach.entries[columns], -there),
        (layers[-1], -out),
    ]
    with np.errstate(over="ignore"):
        moved = [np.ldexp(part, power) for part, power in parts]
        if not all(np.array_equal(np.ldexp(m, -q), x) for m, (x, q) in zip(moved, parts, strict=True)):
            return None
    fixed, M, entries, layers[-1] = moved
    rows = np.flatnonzero((fixed != 0.0) | M.any(axis=1))
    layers[0] = layers[0][:, rows]
    chain = SourceChain(
        fixed[rows], M[rows], entries, ldexp(length, -there), tuple(layers[:-1]), layers[-1]
    )
    return chain, here + out


def _shifted(value: float, power: int) -> float:
    try:
        return ldexp(value, power)
    except OverflowError:
        return inf if value > 0 else -inf

r"""Bound what a change of a few biases does to every output, by corners and then by signs.

Corners that stay above the target need slopes that the multipliers name. Whether the network has them
anywhere is a question about signs of its units; if no input gives all of these, the corners are out.
Relative to :math:`1 + \|x\|` only inputs with :math:`1 + \|x\| < B / \mathrm{target}` matter, where B is
the bound that holds anyway.

Which slopes every way above the target must have: at a corner whose bound stays above it, forbid one
unit to be on, or off. With :math:`e_i = 0`, or :math:`e_i = z_i`, added to the quadratic with a
multiplier :math:`\mu` of either sign,

.. math::
    \sup_x \; q(x) + \mu (a \cdot x - c), \qquad \mu = 2 \, (c - a \cdot x^\star) / (a^\top A^{-1} a),

the same matrix A serves all units. Where that is at most the target, the unit must do the opposite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Affine, Array, dense
from pindown.box import Box
from pindown.deadline import NEVER, Deadline, OutOfTime
from pindown.equivalence.sensitivity._concave_quadratics import (
    ConcaveQuadratic,
    linear_parts,
    quadratic_of,
)
from pindown.equivalence.sensitivity._corners_of_changes import (
    CornerSearch,
    OpenCorner,
    cover,
)
from pindown.equivalence.sensitivity._infeasible_signs import no_such_input
from pindown.equivalence.sensitivity._multipliers import SourceChain
from pindown.equivalence.tuning import (
    CORNER_SECONDS,
    MAX_CORNER_BITS,
    MAX_CORNER_BOUNDS,
    MAX_OPEN_CORNERS,
    SIGNS_SHARE,
)
from pindown.network import ReluNetwork
from pindown.relaxation.tuning import FLOPS_PER_SECOND
from pindown.rounding import TINY, gamma

# Promised bounds this much below the target are worth a proof.
_BELOW = 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class FewBiases:
    """What a change of a few biases does: one search over its corners per output and sign.

    Attributes:
        layers: K and the weights that follow.
        target: What was aimed at.
        searches: In the order of ``SourceChain.objectives``; the last ones may be missing.
        objectives: How many there should be.
    """

    layers: Sequence[Array]
    target: float
    searches: Sequence[CornerSearch]
    objectives: int

    @property
    def bounds(self) -> Array:
        """Proved bounds for every objective; infinite where there was no time to look."""
        missing = self.objectives - len(self.searches)
        return np.array([search.value for search in self.searches] + [inf] * missing)

    def signs(self, deadline: Deadline = NEVER) -> list[list[Array]] | None:
        """Return, per objective above the target, the signs that all its open corners ask for.

        The first array is about the source's entries, the others about all units of later layers. None
        if corners are left that were not looked at.

        Raises:
            OutOfTime: If that takes until the deadline.
        """
        found: list[list[Array]] = []
        if not np.isfinite(self.bounds).all():
            return None
        for search in self.searches:
            if search.value <= self.target:
                continue
            if np.count_nonzero(search.bounds > self.target) != len(search.open):
                return None
            corners = np.array([at.corner for at in search.open])
            hardest = sorted(search.open, key=lambda at: -search.bounds[search.cube.place(at.corner)])
            later = common_slopes(self.layers, search.w, self.target, hardest, deadline=deadline)
            if later is not None:
                agreed = np.all(corners == corners[0], axis=0)
                found.append([np.where(agreed, 2.0 * corners[0] - 1.0, 0.0), *later])
        return found


def is_for_corners(chain: SourceChain, seconds: float) -> bool:
    """Return whether the source is fixed, has few entries, and there is time for its corners."""
    n, objectives = len(chain.fixed), chain.objectives.shape[1]
    if chain.matrix.shape[1] or not 1 <= n <= MAX_CORNER_BITS or not chain.weights:
        return False
    if objectives * 2**n > MAX_CORNER_BOUNDS or _underflows(chain.weights[0], chain.fixed):
        return False
    sizes = [float(len(W)) for W in chain.weights]
    each = (6.0 * sum(size**3 for size in sizes) + sum(sizes) ** 3) / FLOPS_PER_SECOND
    return objectives * (each + CORNER_SECONDS * 2**n) < seconds


def _underflows(W: Array, fixed: Array) -> bool:
    """Return whether what entries of the source bring to some unit is lost, or nearly so, in float64."""
    there = (W != 0.0) & (fixed != 0.0)
    return bool(np.any(there & (np.abs(W * fixed) < TINY)))


def bound_few_biases(
    chain: SourceChain, target: float, deadline: Deadline = NEVER, *, collect: bool
) -> FewBiases:
    """Bound all objectives of a chain whose source is fixed.

    Args:
        chain: The source and all that follows.
        target: A bound that is good enough.
        deadline: When to stop.
        collect: Whether corners above the target are to be collected, for their signs.

    >>> chain = SourceChain(  # a source of 3 passes a ReLU or not, then one with slope 0 or 1
    ...     np.array([3.0]), np.ones((1, 0)), np.zeros(0), 0.0, (np.ones((1, 1)),), np.ones((1, 1)))
    >>> bound_few_biases(chain, 0.0, collect=False).bounds.round(2)
    array([3., 0.])
    """
    layers = [chain.weights[0] * chain.fixed, *chain.weights[1:]]
    most_open = MAX_OPEN_CORNERS if collect else 0
    searches = []
    for w in chain.objectives.T:
        if deadline.passed:
            break
        end = deadline.share(1.0 - SIGNS_SHARE) if collect else deadline
        searches.append(cover(layers, w, target, end, most_open=most_open))
    return FewBiases(layers, target, searches, chain.objectives.shape[1])


def excluded_by_signs(
    net: ReluNetwork,
    layer: int,
    bias: Array,
    found: FewBiases,
    box: Box | None,
    *,
    deadline: Deadline,
) -> bool:
    """Return whether no input reaches the target, because none has the signs for it: proved.

    Args:
        net: The unchanged network.
        layer: Whose biases change.
        bias: By how much.
        found: The bounds, up to scaling by powers of two.
        box: The inputs; None for all, relative to ``1 + ||x||``.
        deadline: When to stop.
    """
    if not 0.0 < found.target < inf:
        return False
    try:
        asked = found.signs(deadline)
    except OutOfTime:
        return False
    if asked is None:
        return False
    if box is None:
        radius = max(0.0, float(np.max(found.bounds)) / found.target - 1.0)
        if not isfinite(radius):
            return False
        ends = np.full(net.in_features, radius * (1.0 + 1e-9) + 1e-12)
        box = Box(-ends, ends)
    family = _family(net, layer, bias)
    wider = Box(np.append(box.lower, 0.0), np.append(box.upper, 1.0))
    entries = np.flatnonzero(bias)
    for first, *later in asked:
        signs = [np.zeros(len(W.bias)) for W in family.layers[: layer + 1]]
        signs[layer][entries] = first
        if not no_such_input(family, wider, [*signs, *later], deadline=deadline):
            return False
    return True


def _family(net: ReluNetwork, layer: int, bias: Array) -> ReluNetwork:
    """Return the network of (x, t) with ``bias + t * change``: t is handed up to the layer by a unit."""
    layers = []
    for i, (W, b) in enumerate(net.layers):
        if i > layer:
            layers.append(Affine(W, b))
        elif i == layer:
            layers.append(Affine(np.column_stack([dense(W), bias]), b))
        else:
            weight = np.zeros((len(b) + 1, W.shape[1] + 1))
            weight[:-1, :-1], weight[-1, -1] = dense(W), 1.0
            layers.append(Affine(weight, np.append(b, 0.0)))
    return ReluNetwork(tuple(layers))


def common_slopes(
    layers: Sequence[Array],
    w: Array,
    target: float,
    corners: Sequence[OpenCorner],
    *,
    deadline: Deadline = NEVER,
) -> list[Array] | None:
    """Return which units behind the source must be on (1), off (-1), or either (0), at all open corners.

    Args:
        layers: K and the weights that follow.
        w: Coefficients of the output.
        target: What is to be exceeded.
        corners: With their multipliers; those that are hardest to bound first saves time.
        deadline: When to stop.

    Returns:
        The signs by layer; None if no slopes at any of the corners exceed the target.

    Raises:
        OutOfTime: If the time is over before all corners were asked.

    >>> from pindown.equivalence.sensitivity._corners_of_changes import climb
    >>> layers, w = [np.array([[2.0], [1.0]])], np.array([1.0, -1.0])
    >>> found = climb(layers, w, np.ones((1, 1)))  # on and off: 2
    >>> at = OpenCorner(np.ones(1), found.multipliers(0, 0.01))
    >>> common_slopes(layers, w, 1.5, [at])
    [array([ 1., -1.])]
    """
    ends = np.cumsum([len(W) for W in layers])
    signs: Array | None = None
    for at in corners:
        deadline.check()
        found = _signs_at(layers, w, target, at, signs)
        if found is not None:
            signs = found
    return None if signs is None else np.split(signs, ends[:-1])


def _signs_at(
    layers: Sequence[Array], w: Array, target: float, at: OpenCorner, among: Array | None
) -> Array | None:
    """Return the signs that one corner forces, of those that others do; None if it is ruled out."""
    quadratic = quadratic_of(layers, at.multipliers)
    ends = np.cumsum([len(W) for W in layers])
    n = int(ends[-1])
    if quadratic is None:
        return np.zeros(n)
    u = np.concatenate([[1.0], at.corner])
    H = linear_parts(layers, w, at.multipliers)
    # The blur is more than two roundings of h, so it also covers what h + mu a cancels.
    h, blur = H @ u, gamma(len(u) + 4) * (np.abs(H) @ u)
    test = _Constraints(quadratic, h, blur, target)
    entering, doubt = np.zeros(n), np.zeros(n)
    entering[: ends[0]] = layers[0] @ at.corner
    doubt[: ends[0]] = gamma(len(u) + 4) * (np.abs(layers[0]) @ at.corner)
    maybe_on = np.arange(n) if among is None else np.flatnonzero(among > 0.0)
    maybe_off = np.arange(n) if among is None else np.flatnonzero(among < 0.0)
    signs = np.zeros(n)
    units = np.eye(n)
    signs[maybe_on] += test.impossible(units[maybe_on], np.zeros(len(maybe_on)), np.zeros(len(maybe_on)))
    rows = _off_rows(layers, ends, maybe_off)
    off = test.impossible(rows, entering[maybe_off], doubt[maybe_off])
    if np.any(off & (signs[maybe_off] > 0.0)):
        return None  # neither on nor off
    signs[maybe_off] -= off
    return signs


def _off_rows(layers: Sequence[Array], ends: NDArray[np.int_], units: NDArray[np.int_]) -> Array:
    """Return rows a with ``a x = e_i - z_i``; the first layer's z is a number, not part of x."""
    rows = np.zeros((len(units), int(ends[-1])))
    rows[np.arange(len(units)), units] = 1.0
    for i, W in enumerate(layers[1:], 1):
        here = np.flatnonzero((units >= ends[i - 1]) & (units < ends[i]))
        start = ends[i - 2] if i > 1 else 0
        rows[here, start : ends[i - 1]] = -W[units[here] - ends[i - 1]]
    return rows


@dataclass(frozen=True, eq=False)
class _Constraints:
    """A quadratic with its linear part, known up to ``blur``, that is to be kept below a target."""

    quadratic: ConcaveQuadratic
    h: Array
    blur: Array
    target: float

    def impossible(self, rows: Array, shifts: Array, doubt: Array) -> NDArray[np.bool_]:
        """Return which constraints ``a x = c``, c known up to a doubt, keep it below: proved."""
        found = np.zeros(len(rows), bool)
        if not len(rows):
            return found
        x = self.quadratic.maximisers(self.h[:, None])[:, 0]
        size = 2.0 * np.einsum("ij,ji->i", rows, self.quadratic.maximisers(rows.T))
        away = shifts - rows @ x
        with np.errstate(divide="ignore", invalid="ignore"):
            promised = 0.5 * float(self.h @ x) - away**2 / size
        worth = np.flatnonzero((promised <= _BELOW * self.target) & (size > 0.0))
        mu = 2.0 * away[worth] / size[worth]
        constant = -mu * shifts[worth]
        bounds = self.quadratic.suprema(self.h[:, None] + rows[worth].T * mu, self.blur[:, None])
        rest = np.abs(mu) * doubt[worth] + 1e-15 * (np.abs(bounds) + 4.0 * np.abs(constant))
        found[worth] = bounds + constant + 2.0 * rest <= self.target
        return found

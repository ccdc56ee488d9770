r"""One hidden layer: a normal form, and a complete answer to whether two networks are one function.

Units whose zero sets are the same hyperplane belong together. With reference row :math:`z_g` and
:math:`z_j = t_j z_g`,

.. math::
    \sum_j v_j\, \rho(t_j z_g) = \kappa_g |z_g| + \sigma_g z_g, \qquad
    \kappa_g = \tfrac12 \sum_j |t_j| v_j, \quad \sigma_g = \tfrac12 \sum_j t_j v_j .

Functions :math:`|z_g|` with different hyperplanes through an open box, and affine functions, are
linearly independent. So a sum is zero on the box exactly when all :math:`\kappa_g` are and the affine
rest is, which rational arithmetic decides. Applied to :math:`a - b` it decides equality; networks that
are equal only to rounding get a proved bound from the same sums.

Phuong 2021, section 2.2, and Phuong and Lampert 2020 (one hidden layer).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline, OutOfTime
from pindown.equivalence.comparison._folds import (
    Fold,
    Sum,
    Vector,
    as_sum,
    constant_units,
    exact_folds,
    fractions,
    joined,
    near_multiples,
    relations,
    sides,
    sum_bound,
)
from pindown.equivalence.comparison._witness_search import Witness, search
from pindown.equivalence.related_units import ParallelUnits
from pindown.equivalence.tuning import (
    COARSE_PARALLEL,
    FOLD_STEPS,
    MAX_RATIONAL_PRODUCTS,
    MAX_WITNESS_FOLDS,
    POINTS_PER_FOLD,
)
from pindown.io.accepting import on_network, on_networks
from pindown.network import ReluNetwork
from pindown.text import rounded_down, rounded_up


@dataclass(frozen=True, eq=False, repr=False)
class ShallowForm:
    r"""The function :math:`\sum_g \kappa_g |u_g \cdot x + t_g| + A x + c`, one term for each fold.

    Two networks with one hidden layer are equal on the open domain exactly when these agree (the
    arrays hold the exact values rounded to float64).

    Attributes:
        folds: Rows ``(u_g, t_g)``, u of length one with its largest entry positive, (G, d + 1), sorted.
        kinks: The :math:`\kappa_g`, (G, k).
        weight: A, (k, d).
        offset: c, (k,).
    """

    folds: Array
    kinks: Array
    weight: Array
    offset: Array

    @property
    def n_folds(self) -> int:
        """Number of hyperplanes the function folds at: no shallow network has fewer units."""
        return len(self.folds)

    def __repr__(self) -> str:
        return f"ShallowForm({self.n_folds} folds and an affine map of rank {self._rank})"

    @property
    def _rank(self) -> int:
        return int(np.linalg.matrix_rank(self.weight)) if self.weight.any() else 0


@dataclass(frozen=True, eq=False, repr=False)
class ShallowDecision:
    """Whether two networks with one hidden layer are the same function, and how far apart if not.

    Attributes:
        equal: True or False by exact arithmetic; None if that would take too long, or on a flat box.
        lower: Proved lower bound on the largest gap, attained at ``witness``.
        upper: Proved upper bound; 0 if they are equal.
        witness: An input at which they differ, or None.
        n_folds: How many hyperplanes the difference folds at, or None if not decided.
    """

    equal: bool | None
    lower: float
    upper: float
    witness: Array | None
    n_folds: int | None

    def __repr__(self) -> str:
        word = {True: "equal", False: "different", None: "not decided exactly"}[self.equal]
        lower, upper = rounded_down(self.lower, 6), rounded_up(self.upper, 6)
        return f"ShallowDecision({word}; {lower} <= gap <= {upper})"


@on_network
def shallow_normal_form(net: ReluNetwork, box: Box | None = None) -> ShallowForm:
    """Return the form of a network with one hidden layer that depends on its function only.

    Args:
        net: A network with at most one hidden layer.
        box: The domain, full-dimensional; units that do not change sign on it are affine there.

    Raises:
        ValueError: If there are more hidden layers.

    Example:
        ``relu(x) - relu(-x) + relu(2 x - 2)`` is ``x + |x - 1| + x - 1``:

        >>> hidden = ([[1.0], [-1.0], [2.0]], [0, 0, -2])
        >>> net = ReluNetwork.from_layers([hidden, ([[1.0, -1.0, 1.0]], [0])])
        >>> form = shallow_normal_form(net)
        >>> form.folds, form.kinks, form.weight, form.offset
        (array([[ 1., -1.]]), array([[1.]]), array([[2.]]), array([-1.]))

    Phuong and Lampert 2020.
    """
    total = as_sum(net)
    folds = exact_folds(total, relations(total))
    bent, straight = _split(total, folds, box)
    affine = _affine_rest(total, straight).astype(np.float64)
    rows, kinks = [], []
    for fold in bent:
        row = total.rows[fold.unit]
        largest = np.max(np.abs(row[:-1]))
        length = float(np.linalg.norm(row[:-1] / largest)) * largest
        flip = np.copysign(1.0, row[np.argmax(np.abs(row[:-1]))])
        rows.append(flip * row / length)
        kinks.append(np.array([float(value) for value in fold.kappa]) * length)
    d, k = net.in_features, net.out_features
    found = np.array(rows).reshape(-1, d + 1), np.array(kinks).reshape(-1, k)
    order = np.lexsort(found[0].T[::-1])
    return ShallowForm(found[0][order], found[1][order], affine[:, :-1], affine[:, -1])


@on_networks
def decide_shallow(
    a: ReluNetwork,
    b: ReluNetwork,
    box: Box | None = None,
    *,
    budget: float = 1.0,
    seed: int = 0,
    deadline: Deadline = NEVER,
) -> ShallowDecision:
    """Decide whether two networks with one hidden layer are the same function.

    Args:
        a: A network with at most one hidden layer.
        b: Another, of any width, with as many inputs and outputs.
        box: The domain; None for all inputs, gaps then relative to ``1 + ||x||``.
        budget: Seconds for the search for a witness, once they are known to differ, and again for
            pairing units that differ by more than rounding.
        seed: Chooses the points of that search.
        deadline: When to give up the decision in rational arithmetic; the interval is found all the
            same.

    Returns:
        The answer with a proved interval for the largest gap.

    Raises:
        ValueError: If a network has more hidden layers, or the sizes do not fit.

    Example:
        A unit may be split in two; its fold may not be moved:

        >>> one = ReluNetwork.from_layers([([[1.0]], [0]), ([[3.0]], [0])])
        >>> two = ReluNetwork.from_layers([([[2.0], [1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> decide_shallow(one, two)
        ShallowDecision(equal; 0 <= gap <= 0)
        >>> moved = ReluNetwork.from_layers([([[1.0]], [0.5]), ([[3.0]], [0])])
        >>> decide_shallow(one, moved, Box([-1], [1])).equal
        False

    Phuong and Lampert 2020; linear independence of folds as in Phuong 2021, section 2.2.
    """
    if (a.in_features, a.out_features) != (b.in_features, b.out_features):
        raise ValueError(
            f"networks to compare need equal input and output sizes; got {a.in_features} -> "
            f"{a.out_features} and {b.in_features} -> {b.out_features}."
        )
    total = joined(as_sum(a), as_sum(b, -1.0))
    groups: tuple[ParallelUnits, ...] = ()
    bent: list[Fold] = []
    equal: bool | None = None
    with suppress(OutOfTime):
        groups = relations(total, budget=deadline.left)
        folds, straight = _split(total, exact_folds(total, groups, deadline), box)
        zero = _is_zero(total, straight)
        bent, equal = folds, None if zero is None and not folds else not folds and bool(zero)
    if equal is False and box is not None and np.any(box.lower == box.upper):
        equal = None  # on a flat box different hyperplanes may cut out the same fold
    if equal:
        return ShallowDecision(True, 0.0, 0.0, None, 0)
    upper = sum_bound(total, near_multiples(total, groups), box)
    with suppress(OutOfTime):
        coarse = relations(total, COARSE_PARALLEL, budget=budget)
        upper = min(upper, sum_bound(total, near_multiples(total, coarse), box))
    starts = _points_near_folds(total, bent, box, seed)
    found: Witness = search(a, b, box, budget=budget, seed=seed, starts=starts)
    known = None if equal is None else len(bent)
    return ShallowDecision(equal, found.gap, upper, found.point if found.gap > 0 else None, known)


def _split(
    total: Sum, folds: list[Fold], box: Box | None
) -> tuple[list[Fold], list[tuple[Array, Vector]]]:
    """Return the folds that are there, and the affine rest as pairs (row, coefficients)."""
    side = sides(total, [fold.unit for fold in folds], box)
    bent, straight = [], []
    for fold, s in zip(folds, side.tolist(), strict=True):
        if s == 0 and any(fold.kappa):
            bent.append(fold)
        slope = fold.sigma + s * fold.kappa
        if any(slope):
            straight.append((total.rows[fold.unit], slope))
    level = np.eye(1, total.rows.shape[1], total.rows.shape[1] - 1)[0]
    for unit in constant_units(total):
        value = max(0.0, float(total.rows[unit, -1]))
        straight.append((level, fractions(total.out[:, unit]) * Fraction(value)))
    for row, out in zip(total.plain, total.plain_out.T, strict=True):
        straight.append((row, fractions(out)))
    return bent, straight


def _affine_rest(total: Sum, straight: list[tuple[Array, Vector]]) -> Vector:
    """Add up affine functions exactly: (k, d + 1) of Fraction."""
    k, n = len(total.out), total.rows.shape[1]
    rest = np.full((k, n), Fraction(0), dtype=object)
    for row, coefficients in straight:
        used = np.flatnonzero(row)
        rest[:, used] = rest[:, used] + np.multiply.outer(coefficients, fractions(row[used]))
    return rest


def _is_zero(total: Sum, straight: list[tuple[Array, Vector]]) -> bool | None:
    """Return whether the affine rest vanishes; None if that takes too long to know."""
    work = len(total.out) * sum(int(np.count_nonzero(row)) for row, _ in straight)
    if work > MAX_RATIONAL_PRODUCTS:
        return None
    return not _affine_rest(total, straight).any()


@np.errstate(over="ignore", invalid="ignore")  # candidates: each is evaluated anew
def _points_near_folds(total: Sum, bent: list[Fold], box: Box | None, seed: int) -> Array:
    """Return points on the strongest folds, and a little to both sides of them."""
    d = total.rows.shape[1] - 1
    rng = np.random.default_rng(seed)
    sizes = [max(abs(value) for value in fold.kappa) for fold in bent]
    order = sorted(range(len(bent)), key=lambda i: -sizes[i])[:MAX_WITNESS_FOLDS]
    points = [np.zeros((0, d))]
    for i in order:
        row = total.rows[bent[i].unit]
        w, offset = row[:-1] / np.max(np.abs(row)), row[-1] / np.max(np.abs(row))
        if not np.dot(w, w) > 0.0:
            continue
        if box is None:
            x = rng.standard_normal((POINTS_PER_FOLD, d))
            x = x - ((x @ w + offset) / np.dot(w, w))[:, None] * w
            scale = 1.0 + np.linalg.norm(x, axis=1, keepdims=True)
        else:
            x = _inside(box, w, offset, rng)
            scale = np.max(box.upper / 2 - box.lower / 2)
        normal = w / np.linalg.norm(w)
        points += [x + step * scale * normal for step in FOLD_STEPS]
    found = np.concatenate(points)
    found = found[np.isfinite(found).all(axis=1)]
    return found if box is None else np.clip(found, box.lower, box.upper)


def _inside(box: Box, w: Array, offset: float, rng: np.random.Generator) -> Array:
    """Return points of the box on the hyperplane ``w x + offset = 0``."""
    x = box.sample(POINTS_PER_FOLD, rng)
    high, low = np.where(w > 0, box.upper, box.lower), np.where(w > 0, box.lower, box.upper)
    z = x @ w + offset
    end = np.where((z < 0)[:, None], high, low)
    there = end @ w + offset
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip(z / (z - there), 0.0, 1.0)
    return x + np.where(np.isfinite(share), share, 0.0)[:, None] * (end - x)

r"""How steep the network can be: bounds on its Lipschitz constant in the Euclidean norm.

.. math::
    \mathrm{Lip}(f) = \sup_{x \ne x'} \frac{\|f(x) - f(x')\|_2}{\|x - x'\|_2}

From above, three proved bounds, of which the smallest counts. From below, the steepest pair of points
that was found, evaluated with rounding bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, isfinite, nextafter

import numpy as np

from pindown.affine import Array, Matrix, stored_entries
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.operator_norms import (
    NormBound,
    absolute_product_norm,
    balanced_weights,
    spectral_norm,
    tight_cost,
)
from pindown.relaxation.tuning import (
    ABSOLUTE_NORM_SHARE,
    BALANCING_SHARE,
    FLOPS_PER_SECOND,
    LAYER_NORM_SHARE,
    MAX_GRAM_SIZE,
    MAX_MERGED_ENTRIES,
    MAX_MERGING_SECONDS,
    MAX_SIDE_FOR_EIGENVECTORS,
    MERGING_SHARE,
    POWER_STEPS,
    SECONDS_PER_MERGED_PRODUCT,
    STEEP_PAIR_STEPS,
)
from pindown.rounding import TINY, gamma, norm_down, norm_up, product_up, times_power_up
from pindown.text import rounded_down, rounded_up


@dataclass(frozen=True, eq=False)
class LipschitzBounds:
    r"""``lower <= Lip(f) <= upper`` for Euclidean norms over all of :math:`\mathbb{R}^d`.

    Attributes:
        lower: Slope between the two points of ``witness``, rounded down; 0 if no point was tried.
        upper: The smallest of the three bounds below.
        witness: The pair ``(x, x')``, or None.
        product: :math:`\prod_l \|W_l\|`.
        absolute: :math:`\| |W_L| \cdots |W_1| \|`.
        averaged: The bound of Combettes and Pesquet, or None if its merged products cost too much.
        n_points: At how many points the local slope was computed.
    """

    lower: float
    upper: float
    witness: tuple[Array, Array] | None
    product: float
    absolute: float
    averaged: float | None
    n_points: int

    @property
    def method(self) -> str:
        """Which of the three upper bounds is the smallest."""
        if self.upper == self.averaged:
            return "averaged activations"
        return "product of layer norms" if self.upper == self.product else "absolute weights"

    def __str__(self) -> str:
        lower, upper = rounded_down(self.lower, 4), rounded_up(self.upper, 4)
        return f"Lipschitz constant between {lower} and {upper} (by {self.method})"


@on_network
def lipschitz_bounds(
    net: ReluNetwork,
    X: Array | None = None,
    box: Box | None = None,
    *,
    n_points: int = 256,
    budget: float = inf,
    seed: int = 0,
    layer_norms: Sequence[NormBound] | None = None,
) -> LipschitzBounds:
    """Bound the Lipschitz constant from both sides.

    Args:
        net: The network.
        X: Points (n, d) near which to look for steep places; at most ``n_points`` of them are used.
        box: Where to draw points if there is no X; without both they are standard normal.
        n_points: How many points to try.
        budget: Seconds to stay within, roughly; a smaller budget gives a wider interval.
        seed: Chooses the points.
        layer_norms: Spectral norms of the layers, if they are known already.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, -1.0]], [0])])  # f(x) = x
    >>> bounds = lipschitz_bounds(net)
    >>> round(bounds.lower, 6), round(bounds.upper, 6)
    (1.0, 2.0)
    """
    deadline = Deadline.after(budget)
    weights = [layer.weight for layer in net.layers]
    absolute = absolute_product_norm(weights, budget=ABSOLUTE_NORM_SHARE * budget)
    if layer_norms is None:
        layer_norms = layer_spectral_norms(weights, budget=LAYER_NORM_SHARE * budget)
    product_of_norms = norm_product(layer_norms)
    averaged = averaged_bound(weights, budget=MERGING_SHARE * deadline.left)
    lower, witness, tried = steepest_pair(net, _points(net, X, box, n_points, seed), deadline=deadline)
    uppers = [bound for bound in (product_of_norms, absolute, averaged) if bound is not None]
    return LipschitzBounds(lower, min(uppers), witness, product_of_norms, absolute, averaged, tried)


def layer_spectral_norms(weights: Sequence[Matrix], *, budget: float = inf) -> list[NormBound]:
    """Return the spectral norm of every layer, tight where the time suffices.

    >>> [round(norm.value, 6) for norm in layer_spectral_norms([np.diag([3.0, 1.0]), np.eye(2)])]
    [3.0, 1.0]
    """
    deadline, norms = Deadline.after(budget), []
    for W in sorted(weights, key=tight_cost):  # cheap ones first: what they leave over, others get
        norms.append((W, spectral_norm(W, budget=deadline.left)))
    return [next(norm for known, norm in norms if known is W) for W in weights]


def norm_product(norms: Sequence[NormBound]) -> float:
    r"""Return :math:`\prod_l \|W_l\|_2`, rounded up."""
    return product_up(norm.value for norm in norms)


def averaged_bound(weights: list[Matrix], *, budget: float = inf) -> float | None:
    r"""Return the bound that uses that ReLU is half an identity, or None if it costs too much.

    :math:`\rho = (\mathrm{id} + R) / 2` with R nonexpansive. Expanding all :math:`L - 1` ReLUs,

    .. math::
        \mathrm{Lip}(f) \le 2^{-(L-1)} \sum_{S} \prod_{\text{segments of } S} \|W_j \cdots W_{i+1}\|
        = 2^{-(L-1)} T_L, \qquad
        T_0 = 1, \quad T_j = \sum_{i < j} \|W_j \cdots W_{i+1}\| \, T_i,

    over all subsets S of ReLU layers at which the product is cut. Never above the product bound.

    Args:
        weights: :math:`W_1, \dots, W_L`. They are balanced first, so that the bound does not depend on
            how hidden units are scaled.
        budget: Seconds, roughly.

    Combettes and Pesquet 2020, "Lipschitz certificates for layered network structures driven by
    averaged activation operators", Theorem 4.2.
    """
    if _merging_cost(weights) > min(budget, MAX_MERGING_SECONDS):
        return None
    weights = balanced_weights(weights, deadline=Deadline.after(BALANCING_SHARE * budget))
    depth = len(weights)
    totals = [0.0] * (depth + 1)
    totals[0] = 1.0
    for i in range(depth):
        norms = _merged_norms(weights[i:])
        if norms is None:
            return None
        for j, norm in enumerate(norms, i + 1):
            totals[j] += norm * totals[i]
    bound = times_power_up(totals[depth] * (1.0 + gamma(2 * depth + 4)), 1 - depth)
    return bound if isfinite(bound) else None


def _merged_norms(weights: list[Matrix]) -> list[float] | None:
    r"""Return bounds on :math:`\|W_1\|, \|W_2 W_1\|, \dots`, rounding of the products included.

    None if the products come near the ends of float64, where rounding is no longer relative.
    """
    norms, merged, frobenius, operations = [], None, 1.0, 0
    for W in weights:
        frobenius *= norm_up(W if isinstance(W, np.ndarray) else W.data)
        if not 1e-250 < frobenius < 1e250:
            return None
        merged = W if merged is None else W @ merged
        operations += W.shape[1] + 6  # balancing rounded every weight five times
        # | fl(W_j ... W_1) - W_j ... W_1 | <= gamma |W_j| ... |W_1|, of Frobenius norm below this:
        norms.append(spectral_norm(merged).value + gamma(operations) * frobenius)
    return norms


def _merging_cost(weights: list[Matrix]) -> float:
    """Return roughly the seconds that all merged products and their norms take."""
    flops = 0.0
    for i, first in enumerate(weights):
        columns = first.shape[1]
        for W in weights[i:]:
            rows = W.shape[0]
            n = min(rows, columns)
            if n > MAX_GRAM_SIZE or (W is not first and rows * columns > MAX_MERGED_ENTRIES):
                return inf
            flops += 2.0 * stored_entries(W) * columns + 1.0 * n * (rows * columns + n**2)
    pairs = len(weights) * (len(weights) + 1) / 2
    return flops / FLOPS_PER_SECOND + SECONDS_PER_MERGED_PRODUCT * pairs


def steepest_pair(
    net: ReluNetwork, points: Array, *, deadline: Deadline = NEVER
) -> tuple[float, tuple[Array, Array] | None, int]:
    r"""Find two points with a steep slope between them.

    Near x the network is :math:`A x + c`; along the first right singular vector v of A the slope
    is :math:`\|A\|` until the next kink. The slope from x to x + h v is evaluated with intervals, so
    that it is a true lower bound although A is only a float64 matrix.

    Returns:
        The slope, the pair, and at how many points A was computed.
    """
    steep: list[tuple[float, int, Array]] = []
    for i, x in enumerate(points):
        if i and deadline.passed:
            break
        norm, direction = _top_direction(net, x, seed=i)
        steep.append((norm, i, direction))
    tried = len(steep)
    best, witness = 0.0, None
    candidates = sorted(steep, key=lambda entry: -entry[0])[:3]
    for (_, i, direction), step in product(candidates, STEEP_PAIR_STEPS):
        x = points[i]
        other = x + step * max(1.0, norm_up(x)) * direction
        slope = proved_slope(net, x, other) if np.isfinite(other).all() else 0.0
        if slope > best:
            best, witness = slope, (x, other)
        if deadline.passed:
            break
    return best, witness, tried


def proved_slope(net: ReluNetwork, x: Array, other: Array) -> float:
    r"""Return :math:`\|f(x) - f(x')\| / \|x - x'\|`, rounded down."""
    here, there = (interval_bounds(net, Box(p, p))[-1] for p in (x, other))
    gap = np.maximum(np.maximum(here.lower - there.upper, there.lower - here.upper), 0.0)
    distance = norm_up(other - x)
    if distance == 0.0 or not np.isfinite(gap).all():
        return 0.0
    return nextafter(norm_down(gap) * (1.0 - gamma(8)) / distance, 0.0)


def _top_direction(net: ReluNetwork, x: Array, seed: int) -> tuple[float, Array]:
    """Return the norm of the local matrix A at x and its first right singular vector, to rounding."""
    v = np.random.default_rng(seed).standard_normal(net.in_features)
    if min(net.out_features, net.in_features) > MAX_SIDE_FOR_EIGENVECTORS:
        return _powered(net, x, v)
    A = _local_matrix(net, x)
    if A is None:
        return 0.0, v / np.linalg.norm(v)
    k, d = A.shape
    scale = float(np.abs(A).max()) or 1.0
    A /= scale  # squares of the entries must stay in float64
    top = np.linalg.eigh(A @ A.T if k <= d else A.T @ A)[1][:, -1]
    v = A.T @ top if k <= d else top
    length = float(np.linalg.norm(v))
    if length == 0.0:  # the network is flat here
        return 0.0, np.eye(1, d)[0]
    return scale * float(np.linalg.norm(A @ (v / length))), v / length


def _powered(net: ReluNetwork, x: Array, v: Array) -> tuple[float, Array]:
    """Return the same by repeated passes forth and back, for an A that is not formed."""
    v = v / np.linalg.norm(v)
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            masks = [*net.by_layer(net.pattern(x)), np.ones(net.out_features, bool)]
        except ValueError:  # the network overflows at x
            return 0.0, v
        norm = 0.0
        for _ in range(POWER_STEPS):
            w = v
            for layer, mask in zip(net.layers, masks, strict=True):
                w = np.where(mask, layer.weight @ w, 0.0)
            norm = norm_up(w)
            back = w / max(norm, TINY)
            for layer, mask in zip(reversed(net.layers), reversed(masks), strict=True):
                back = layer.pull_back(np.where(mask, back, 0.0)[None])[0]
            length = norm_up(back)
            if not 0.0 < length < inf:
                return 0.0, v
            v = back / length
    return norm, v


def _local_matrix(net: ReluNetwork, x: Array) -> Array | None:
    """Return A with f = A x + c near x, or None if it is too large to form or leaves float64."""
    if net.out_features * net.in_features > MAX_MERGED_ENTRIES:
        return None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            A, _ = net.local_affine(x)
    except ValueError:  # the network overflows at x
        return None
    return A if np.isfinite(A).all() else None


def _points(net: ReluNetwork, X: Array | None, box: Box | None, n: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if X is not None:
        rows = np.asarray(X, dtype=np.float64).reshape(-1, net.in_features)
        return rows if len(rows) <= n else rows[np.sort(rng.choice(len(rows), n, replace=False))]
    if box is not None:
        return box.sample(n, rng)
    return rng.standard_normal((n, net.in_features))

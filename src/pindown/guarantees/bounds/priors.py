r"""Priors: grids that were fixed before looking, clusters around starts, and what the choice costs.

If the bound for each of K priors fails with probability at most :math:`\delta`, all hold with
probability at least :math:`1 - K \delta`. Shares need not be equal: prior i may fail with probability
:math:`w_i \delta` for any weights with :math:`\sum_i w_i \le 1`, also of infinitely many priors.

Clusters are priors around a start, fixed before training: for each :math:`\lambda = 1, \dots, 314`
weight vectors of the same length as the start b, at an angle of :math:`0.01 \lambda` to it. After
training turned b by an angle :math:`\alpha`, the cluster with the nearest angle becomes the prior;
choosing among 314 costs log 314. Clusters are made when they are asked for, each from a seed of its
own: all are fixed before and none has to be stored. How near the outputs of networks trained from a
cluster are (:func:`niceness`) says what noise they bear.

Mukherjee 2020, Theorem 6.B.1, Definition 26 and section 6.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array, angle
from pindown.guarantees.bounds.bound import outward
from pindown.guarantees.bounds.rescaled_weights import WeightList, weights_of
from pindown.guarantees.tuning import MAX_SHARING_ROUNDS, SCALES_PER_OCTAVE
from pindown.validation import integer, positive, probability, refuse

_WEIGHT_TOTAL = 2.3  # at least the sum of 1 / (1 + |i|)**2 over all integers, pi**2 / 3 - 1
_MAX_PRIORS = 1e300
N_ANGLES = 314
ANGLE_STEP = 0.01


def beta_grid(
    low: float, high: float, depth: int, kind: Literal["geometric", "uniform"] = "geometric"
) -> Array:
    r"""Return points so that every x between low and high has one with :math:`|x - g| \le x / d`.

    Then :math:`x^{d-1}/e \le g^{d-1} \le e\,x^{d-1}`, which is what weight noise chosen at g instead of
    x needs.

    Args:
        low: Lower end a.
        high: Upper end b.
        depth: d, at least 2.
        kind: ``"geometric"``: :math:`a r^i (1 + 1/d)` with :math:`r = (d+1)/(d-1)`, about
            :math:`\log(b/a)/\log r` points; ``"uniform"``: the source's, :math:`d(b-a)/2a` points.

    Example:
        >>> len(beta_grid(1, 20, 5)), len(beta_grid(1, 20, 5, "uniform"))
        (8, 48)

    Mukherjee 2020, section 6.7.
    """
    a, b = positive("low", low), positive("high", high)
    integer("depth", depth, least=2)
    if b < a:
        raise ValueError(f"high must not be below low; got {low} and {high}.")
    if kind == "uniform":
        n = max(1, math.ceil(depth * (b - a) / (2 * a)))
        return a + (np.arange(n) + 0.5) * (b - a) / n
    if kind != "geometric":
        raise ValueError(f"kind must be 'geometric' or 'uniform'; got {kind!r}.")
    ratio = (depth + 1) / (depth - 1)
    n = max(1, math.ceil(math.log(b / a) / math.log(ratio) * (1.0 - 1e-12)))  # b / a a power of ratio
    return np.asarray(a * ratio ** np.arange(n) * (1.0 + 1.0 / depth), dtype=np.float64)


class ScaleChoice(NamedTuple):
    """A standard deviation of the prior, fixed beforehand, and the log of one over its weight."""

    scale: float
    cost: float


def scale_below(scale: float) -> ScaleChoice:
    r"""Return the largest of the fixed scales :math:`2^{i/16}`, i any integer, that is not above.

    Scale i has weight :math:`1 / (2.3 (1 + |i|)^2)`; the weights sum to less than one. Bounds that fail
    with probability :math:`\delta` times the weight of their scale hold for all scales at once.

    Example:
        >>> scale_below(1.03).scale, round(scale_below(1.03).cost - math.log(2.3), 9)
        (1.0, 0.0)
        >>> round(scale_below(1e-4).cost, 2)
        11.56
    """
    given = positive("scale", scale)
    i = math.floor(SCALES_PER_OCTAVE * math.log2(given))
    while 2.0 ** (i / SCALES_PER_OCTAVE) > given:  # the logarithm may have been rounded up
        i -= 1
    return ScaleChoice(
        2.0 ** (i / SCALES_PER_OCTAVE), outward(math.log(_WEIGHT_TOTAL) + 2.0 * math.log1p(abs(i)))
    )


def shared_delta(number_of_priors: Callable[[float], float], delta: float = 0.05) -> float:
    r"""Return a :math:`\delta'` with :math:`K(\delta')\,\delta' \le \delta`, for a K that grows slowly.

    Args:
        number_of_priors: K as a function of :math:`\delta'`, not growing faster than
            :math:`1/\delta'`.
        delta: What all priors together may fail with.

    Example:
        >>> shared_delta(lambda each: 10.0)
        0.005

    Mukherjee 2020, section 6.7 (the priors there depend on the confidence).
    """
    total = each = probability("delta", delta)
    for _ in range(MAX_SHARING_ROUNDS):
        wanted = number_of_priors(each)
        if not wanted < _MAX_PRIORS:
            break
        needed = math.ceil(wanted)
        if needed * each <= total:
            return each
        each = min(total / needed, each)
        if needed * each > total:
            each = math.nextafter(each, 0.0)
    raise ValueError(f"no share of delta={delta} serves all priors: their number grows too fast.")


def cone_sample(axis: Array, theta: float, rng: np.random.Generator) -> Array:
    """Return a random vector of the axis' length at an angle theta to it.

    >>> axis = np.array([3.0, 4.0, 0.0])
    >>> turned = cone_sample(axis, 0.3, np.random.default_rng(0))
    >>> round(float(np.linalg.norm(turned)), 9), round(angle(turned, axis), 9)
    (5.0, 0.3)
    """
    length = float(np.linalg.norm(axis))
    if length == 0.0 or axis.size < 2:
        raise ValueError("a cone needs an axis that is not zero, in at least two dimensions.")
    unit = axis / length
    v = rng.standard_normal(axis.size)
    for _ in range(2):  # twice: once leaves rounding of the first product
        v = v - (v @ unit) * unit
    v /= float(np.linalg.norm(v))
    return np.asarray(math.cos(theta) * axis + math.sin(theta) * length * v)


@dataclass(frozen=True, eq=False)
class ClusterPriors:
    """Clusters of starts around one start, indexed by the angle.

    Attributes:
        start: The network b that training starts from; any model is read, and kept as weights without
            biases (with biases, as a network of an input (x, 1)).
        size: Networks in each cluster.
        seed: Fixes all clusters.
        within: ``"edge"``: all at the angle; ``"cone"``: at angles drawn uniformly from 0 to it.

    >>> start = WeightList("given", (np.eye(3), np.eye(3)))
    >>> priors = ClusterPriors(start, size=4, seed=1)
    >>> priors.index(0.5), [round(angle(b.vector, start.vector), 6) for b in priors.cluster(50)]
    (50, [0.5, 0.5, 0.5, 0.5])
    """

    start: Any
    size: int = 25
    seed: int = 0
    within: Literal["edge", "cone"] = "edge"

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", weights_of([self.start], "ClusterPriors")[0])
        integer("size", self.size)
        if self.within not in ("edge", "cone"):
            raise ValueError(f"within must be 'edge' or 'cone'; got {self.within!r}.")

    def cluster(self, index: int) -> tuple[WeightList, ...]:
        """Return the networks of one cluster; the same every time."""
        if not 1 <= integer("index", index) <= N_ANGLES:
            raise ValueError(f"index must be from 1 to {N_ANGLES}; got {index}.")
        rng = np.random.default_rng([self.seed, index])
        networks = []
        for _ in range(self.size):
            share = 1.0 if self.within == "edge" else float(rng.uniform())
            vector = cone_sample(self.start.vector, ANGLE_STEP * index * share, rng)
            networks.append(self.start.shifted(vector, "start"))
        return tuple(networks)

    def index(self, theta: float) -> int:
        """Return the cluster whose angle is nearest."""
        nearest = round(positive("theta", theta, zero=True) / ANGLE_STEP)
        return min(max(nearest, 1), N_ANGLES)

    def chosen(self, trained: Any) -> int:
        """Return the cluster nearest to the angle by which training turned the start."""
        (weights,) = weights_of([trained], "ClusterPriors.chosen")
        if weights.shapes != self.start.shapes:  # zero biases that were trained, or the other way round
            (weights,) = weights_of([trained], "ClusterPriors.chosen", biases=True)
        if weights.shapes != self.start.shapes:
            raise ValueError(
                f"the trained network must have the shapes of the start, {self.start.shapes}; "
                f"got {weights.shapes}. If training adds biases, start with some that are not zero."
            )
        return self.index(angle(weights.vector, self.start.vector))


@dataclass(frozen=True, eq=False)
class Niceness:
    r"""How far networks of a cluster are from one of them on a sample.

    Attributes:
        eps: :math:`\max_{i, x} \|f_{A_i}(x) - f_A(x)\| / \|f_A(x)\|`; infinite if only :math:`f_A` is 0.
        gamma: eps times the largest :math:`\|f_A(x)\|`: the sample is nice above it.
        gaps: The sharper :math:`\max_x \|f_{A_i}(x) - f_A(x)\|` for each i.
        largest_output: :math:`\max_x \|f_A(x)\|`.
    """

    eps: float
    gamma: float
    gaps: Array
    largest_output: float

    def __str__(self) -> str:
        return (
            f"outputs differ by at most {self.eps:.4g} of their size: nice for margins above "
            f"{self.gamma:.4g} (exact up to rounding)"
        )


def niceness(centre: Any, cluster: Sequence[Any], X: ArrayLike) -> Niceness:
    """Measure how near the outputs of a cluster of networks are on a sample.

    Args:
        centre: A network: any model, or a :class:`WeightList`.
        cluster: Others of its shape.
        X: The sample, (m, d).

    Example:
        Copies of the network are as nice as can be, and a doubled one is off by all of its output:

        >>> net = WeightList("given", (np.eye(2), np.eye(2)))
        >>> double = WeightList("given", (np.eye(2), 2 * np.eye(2)))
        >>> niceness(net, [net, net], [[1.0, 0.0]]).eps, niceness(net, [double], [[3.0, 4.0]]).gamma
        (0.0, 5.0)

    Mukherjee 2020, Definition 25.
    """
    rows = np.asarray(X, dtype=np.float64)
    if not cluster or rows.ndim != 2 or not len(rows):
        raise ValueError("niceness needs at least one network and one point.")
    centre, *cluster = weights_of([centre, *cluster], "niceness")
    if rows.shape[1] + 1 == centre.shapes[0][1]:  # biases
        rows = np.hstack([rows, np.ones((len(rows), 1))])
    outputs = centre(rows)
    sizes = np.linalg.norm(outputs, axis=1)
    moves = np.array([np.linalg.norm(net(rows) - outputs, axis=1) for net in cluster])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(moves > 0, moves / sizes, 0.0)
    eps, largest = float(ratios.max()), float(sizes.max())
    gamma = 0.0 if eps == 0.0 else eps * largest if largest > 0 else math.inf
    return Niceness(eps, gamma, np.asarray(moves.max(axis=1)), largest)


def mixture_noise_scale(
    betas: ArrayLike,
    margin: float,
    *,
    depth: int,
    side: int,
    input_norm: float,
    failure: float,
    weights: ArrayLike | None = None,
    variant: Literal["corrected", "as_printed"] = "corrected",
) -> float:
    r"""Return a noise under which a mixture of networks keeps its outputs within a margin.

    .. math::
        \sigma = \frac{1}{\sqrt{2 h \log(2 d h / p)}}
            \min_i \min\Big\{\frac{\beta_i}{d}, \frac{\gamma}{e d B \beta_i^{d-1}}\Big\}

    For layers of equal norm :math:`\beta_i` and weights from :math:`\sum_i p_i N(A_i, \sigma^2 I)`,
    the output differs from that of the drawn centre by more than :math:`\gamma` with probability at most
    p. The printed form divides by :math:`k\, p_i` as well and has k in the logarithm; it is too large
    for a component of small weight and large norm.

    Args:
        betas: :math:`\beta_i`.
        margin: :math:`\gamma`.
        depth: d.
        side: h, the largest side of a layer.
        input_norm: B.
        failure: p.
        weights: :math:`p_i`, for the printed form; None is 1/k each.
        variant: ``"corrected"`` or ``"as_printed"``.

    >>> round(mixture_noise_scale([1.0], 1.0, depth=2, side=10, input_norm=1.0, failure=0.1), 4)
    0.0168

    Mukherjee 2020, Theorem 6.2.1: noise resilience of a mixture of Gaussians.
    """
    beta = np.asarray(betas, dtype=np.float64).ravel()
    if not beta.size or not (np.isfinite(beta) & (beta > 0)).all():
        raise ValueError(f"betas must be positive and finite, at least one; got {beta}.")
    g, B, p = (
        positive("margin", margin),
        positive("input_norm", input_norm),
        probability("failure", failure),
    )
    reach = math.e * depth * B * beta ** (depth - 1)
    if variant == "corrected":
        tail = math.sqrt(2 * side * math.log(2 * depth * side / p))
        return float(np.min(np.minimum(beta / depth, g / reach))) / tail
    if variant != "as_printed":
        refuse("variant", "'corrected' or 'as_printed'", variant)
    k = beta.size
    shares = np.full(k, 1.0 / k) if weights is None else np.asarray(weights, dtype=np.float64)
    tail = math.sqrt(2 * side * math.log(2 * depth * side * k / p))
    return float(np.min(np.minimum(beta / depth, g / (k * shares * reach)))) / tail

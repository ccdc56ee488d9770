r"""The bound with a mixture of Gaussians around starts as prior, corrected and as printed.

For a trained network A, networks :math:`A_i` trained from the starts :math:`B_j` of a cluster that was
fixed before, and a posterior :math:`N(A_i, \sigma^2 I)`,

.. math::
    L \le \hat L_{\gamma/2}(f_A) + \sqrt{\frac{-\log \frac1k \sum_j e^{-\|A_i - B_j\|^2 / 2 \sigma^2}
        + \log(3 m K / \delta)}{m - 1}}, \qquad
    \sigma = \frac{1}{\sqrt{2 h \log(2 d h / p)}} \min\Big\{\frac{\tilde\beta}{d e^{1/(d-1)}},
        \frac{\gamma / 8}{e^2 d B \tilde\beta^{d-1}}\Big\},

if :math:`\|f_{A_i} - f_A\| \le \gamma / 8` on the sample. The theorem as printed has :math:`\gamma` for
:math:`\gamma / 8`, which makes it about eight times too small, and takes weights that are not balanced,
a width h that leaves out the input, and a margin chosen on the sample for free.

:func:`~pindown.guarantees.bounds.spectral.spectral_margin_bound` with ``centres`` is the sharp form: the
margins of :math:`A_i` itself are used, so that nothing has to be nice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.guarantees.bounds._samples import Sample, reach_of_inputs, read_networks, read_sample
from pindown.guarantees.bounds.bound import INDEPENDENT, Bound, outward
from pindown.guarantees.bounds.priors import N_ANGLES, ClusterPriors, Niceness, beta_grid, niceness
from pindown.guarantees.bounds.relative_entropy import mixture_exponent
from pindown.guarantees.bounds.rescaled_weights import (
    WeightList,
    has_biases,
    representative,
    weights_of,
)
from pindown.guarantees.bounds.spectral import (
    MARGIN_GRID,
    norm_assumption,
    preference,
)
from pindown.io import as_network
from pindown.network import ReluNetwork
from pindown.rounding import norm_up
from pindown.validation import integer, positive, probability, refuse

SOURCE = "Mukherjee 2020, Theorem 6.3.1"
_NICE_FACTOR = 8.0  # of the proof; the statement has 1


def mixture_bound(
    centre: Any,
    cluster: Sequence[Any],
    starts: Sequence[Any],
    X: ArrayLike,
    y: ArrayLike,
    *,
    delta: float = 0.05,
    margin: float | None = None,
    input_norm: float | None = None,
    variant: Literal["corrected", "as_printed"] = "corrected",
    least_distance: float = 1e-6,
    n_clusters: int = N_ANGLES,
) -> Bound:
    r"""Bound the risk with a mixture around starts as prior.

    Args:
        centre: A, the trained network: any model, or a :class:`WeightList`. Biases count as weights of
            a constant input.
        cluster: :math:`A_i`, trained from the starts with the same data.
        starts: :math:`B_j`, the cluster fixed before that the angle of A picked.
        X: The training sample, (m, d).
        y: Its classes.
        delta: Probability with which the bound may fail, all grids included.
        margin: :math:`\gamma`; None takes the best of a fixed grid, paid for; needed if printed.
        input_norm: B; None takes the largest input of the sample.
        variant: ``"corrected"`` or ``"as_printed"``.
        least_distance: Smallest :math:`\|A_i - B_j\|` that the grid of norms provides for.
        n_clusters: How many clusters were fixed; choosing one costs their logarithm.

    Returns:
        The bound at the best i. Where the sample is not nice the corrected form says so by 1.

    Example:
        Two outputs that tell two inputs apart, with a start nearby; a hundred rows prove nothing:

        >>> import numpy as np
        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([(np.eye(2), [0, 0]), (np.eye(2), [0, 0])])
        >>> start = ReluNetwork.from_layers([(0.9 * np.eye(2), [0, 0]), (np.eye(2), [0, 0])])
        >>> mixture_bound(net, [net], [start], [[1.0, 0.0], [0.0, 1.0]] * 50, [0, 1] * 50).vacuous
        True

    Mukherjee 2020, Theorem 6.3.1 and section 6.7.
    """
    n_networks = len(cluster)
    (centre, *others), rows = read_networks([centre, *cluster, *starts], X, "mixture_bound")
    cluster, starts = others[:n_networks], others[n_networks:]
    if centre.depth < 2:
        raise ValueError(f"this bound needs at least 2 layers; got {centre.depth}.")
    if not cluster or not starts or any(w.shapes != centre.shapes for w in (*cluster, *starts)):
        raise ValueError(
            f"cluster and starts must be networks of shapes {centre.shapes}, at least one each."
        )
    sample, delta = read_sample(centre, rows, y), probability("delta", delta)
    longest = float(sample.norms.max())
    B = longest or 1.0
    if input_norm is not None:
        B = reach_of_inputs(positive("input_norm", input_norm), longest, X, rows.shape[1])
    nice = niceness(centre, cluster, rows)
    if variant == "as_printed":
        if margin is None:
            raise ValueError("the printed variant takes a margin; give margin=...")
        return _printed(
            centre, cluster, starts, sample, nice, delta, positive("margin", margin), B, n_clusters
        )
    if variant != "corrected":
        refuse("variant", "'corrected' or 'as_printed'", variant)
    grid = MARGIN_GRID if margin is None else np.array([positive("margin", margin)])
    value, terms = _best(cluster, starts, nice, sample, delta, grid, B, n_clusters, least_distance)
    chosen = "from a grid, paid for" if margin is None else "before the sample was seen"
    assumptions = (
        INDEPENDENT,
        Assumption("the clusters of starts were fixed before the sample was seen"),
        norm_assumption(sample, B, input_norm is not None),
        Assumption(f"the margin was chosen {chosen}", "checked" if margin is None else "assumed"),
        Assumption("computed from copies with layers of equal spectral norm", "checked"),
    )
    about = "expected risk under small weight noise"
    return Bound("mixture", value, delta, about, terms, assumptions, f"{SOURCE}, corrected")


def clusters_bound(
    start: Any,
    train: Callable[[ReluNetwork, int], Any],
    X: ArrayLike,
    y: ArrayLike,
    *,
    size: int = 25,
    seed: int = 0,
    **options: Any,
) -> Bound:
    """Train a network and a cluster of others, and bound the risk with their starts as prior.

    The protocol of the source: clusters around the start are fixed by the seed; the network is trained;
    the angle by which it turned picks a cluster; a network is trained from each of its starts; the
    mixture around these starts is the prior of :func:`mixture_bound`.

    Args:
        start: The network that training starts from, without biases: any model.
        train: ``train(network, number)`` returns the network trained from a start; the number, 0 for
            the start itself and 1, 2, ... for the cluster, is there to seed it.
        X: The training sample, (m, d).
        y: Its classes.
        size: Networks in the cluster.
        seed: Fixes the clusters.
        **options: As :func:`mixture_bound` takes them: ``delta``, ``margin``, ``variant``, ....

    Returns:
        The bound.

    Raises:
        ValueError: If the start has biases, or shapes do not fit.

    Example:
        >>> import numpy as np
        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([(np.eye(2), [0, 0]), (np.eye(2), [0, 0])])
        >>> X, y = [[1.0, 0.0], [0.0, 1.0]] * 50, [0, 1] * 50
        >>> clusters_bound(net, lambda net, number: net, X, y, size=3).terms["network"] < 3
        True

    Mukherjee 2020, sections 6.2 to 6.4.
    """
    given = as_network(start, "clusters_bound")
    if has_biases(given):
        raise ValueError(
            "clusters_bound takes a start without biases, as its source does; got one with some."
        )
    priors = ClusterPriors(given, size, seed)
    centre = train(given, 0)
    starts = priors.cluster(priors.chosen(centre))
    cluster = [train(each.network, i + 1) for i, each in enumerate(starts)]
    return mixture_bound(centre, cluster, starts, X, y, **options)


def mixture_order(
    cluster: Sequence[Any],
    starts: Sequence[Any],
    n_samples: int,
    *,
    margin: float,
    input_norm: float,
    delta: float = 0.05,
) -> float:
    r"""Return the order of the mixture bound: quick to compute, for ranking architectures.

    .. math:: \sqrt{\frac{h \log(2 d h / \delta)}{m}}\; d B \Big(\prod_l \|A_{i,l}\|_2\Big)^{1 - 1/d}\,
        \frac{\min_j \|A_i - B_j\|}{\gamma}

    for the network :math:`A_i` that is nearest to a start. It is **not a bound**: constants, the
    logarithms of choices and the empirical risk are left out, as in the source.

    Args:
        cluster: :math:`A_i`, the trained networks: any models, or :class:`WeightList`.
        starts: :math:`B_j`.
        n_samples: m.
        margin: :math:`\gamma`.
        input_norm: B.
        delta: :math:`\delta`.

    Example:
        Twice the distance from the starts doubles it, four times the sample halves it:

        >>> import numpy as np
        >>> net, start = (WeightList("given", (a * np.eye(2), np.eye(2))) for a in (1.0, 0.9))
        >>> far = WeightList("given", (0.8 * np.eye(2), np.eye(2)))
        >>> one = mixture_order([net], [start], 100, margin=1.0, input_norm=1.0)
        >>> round(mixture_order([net], [far], 100, margin=1.0, input_norm=1.0) / one, 9)
        2.0
        >>> round(mixture_order([net], [far, start], 400, margin=1.0, input_norm=1.0) / one, 9)
        0.5

    Mukherjee 2020, section 6.1.1, the estimate that stands before Theorem 6.3.1.
    """
    if not cluster or not starts:
        raise ValueError("mixture_order needs at least one trained network and one start.")
    nets = weights_of([*cluster, *starts], "mixture_order")
    if any(net.shapes != nets[0].shapes for net in nets):
        raise ValueError(f"all networks must have the shapes of the first, {nets[0].shapes}.")
    trained, first = nets[: len(cluster)], nets[len(cluster) :]
    m, g, B = (
        integer("n_samples", n_samples),
        positive("margin", margin),
        positive("input_norm", input_norm),
    )
    distances = [min(norm_up(net.vector - start.vector) for start in first) for net in trained]
    nearest = int(np.argmin(distances))
    net, d, h = trained[nearest], trained[0].depth, trained[0].largest_side
    noise = math.sqrt(h * math.log(2 * d * h / probability("delta", delta)) / m)
    return noise * d * B * net.geometric_norm ** (d - 1) * distances[nearest] / g


def _best(
    cluster: Sequence[WeightList],
    starts: Sequence[WeightList],
    nice: Niceness,
    sample: Sample,
    delta: float,
    grid: Array,
    B: float,
    n_clusters: int,
    least_distance: float,
) -> tuple[float, dict[str, float]]:
    """Return the smallest corrected value over networks and margins, with its terms."""
    best: tuple[tuple[float, bool, float], dict[str, float]] | None = None
    balanced_starts = [representative(start, "layers").vector for start in starts]
    for i, net in enumerate(cluster):
        copy = representative(net, "layers")
        distances = np.array([norm_up(copy.vector - start) for start in balanced_starts])
        for g in grid.tolist():
            terms, holds = _corrected(
                copy,
                distances,
                float(nice.gaps[i]),
                sample,
                delta,
                g,
                B,
                len(grid) * n_clusters,
                least_distance,
            )
            value = outward(terms["empirical risk"] + terms["complexity"])
            value = value if holds else max(1.0, value)
            rank = preference(value, terms["empirical risk"] if holds else 1.0)
            if best is None or rank < best[0]:
                best = rank, {**terms, "network": float(i)}
    assert best is not None
    return best[0][2], best[1]


def _corrected(
    copy: WeightList,
    distances: Array,
    gap: float,
    sample: Sample,
    delta: float,
    margin: float,
    B: float,
    n_other: int,
    least_distance: float,
) -> tuple[dict[str, float], bool]:
    """Return the terms for one network and margin, and whether the bound holds (else it is vacuous)."""
    d, h, beta = copy.depth, copy.largest_side, max(copy.norms)
    tail = math.sqrt(2 * h * math.log(4 * d * h))  # small noise is needed with probability 1/2 only
    low = (margin / (2 * math.sqrt(2) * B)) ** (1 / d)
    top = margin * math.sqrt(2 * (sample.n - 1)) / (8 * B * math.e**3 * d * least_distance * tail)
    points = beta_grid(low, max(low, top ** (1 / (d - 1))), d)
    inside = beta > 0 and low <= beta <= max(low, top ** (1 / (d - 1)))
    point = float(points[np.argmin(np.abs(points - beta))]) if inside else max(beta, low)
    scale = (
        min(
            point / (d * math.exp(1 / (d - 1))),
            margin / _NICE_FACTOR / (math.e**2 * d * B * point ** (d - 1)),
        )
        / tail
        * (1.0 - 2.0**-44)
    )
    terms = _terms(
        sample, margin, mixture_exponent(distances, scale), scale, len(points) * n_other, delta
    )
    near = float(distances.min()) >= least_distance
    return {**terms, "gap": gap, "beta": point}, inside and near and margin / _NICE_FACTOR > gap


def _terms(
    sample: Sample, margin: float, kl: float, scale: float, n_priors: int, delta: float
) -> dict[str, float]:
    log_terms = outward(math.log(3.0 * sample.n * n_priors / delta))
    return {
        "empirical risk": float(np.mean(sample.margins <= margin / 2)),
        "margin": margin,
        "kl": kl,
        "scale": scale,
        "priors": float(n_priors),
        "log terms": log_terms,
        "complexity": outward(math.sqrt((kl + log_terms) / (sample.n - 1))),
    }


def _printed(
    centre: WeightList,
    cluster: Sequence[WeightList],
    starts: Sequence[WeightList],
    sample: Sample,
    nice: Niceness,
    delta: float,
    margin: float,
    B: float,
    n_clusters: int,
) -> Bound:
    d, hidden = centre.depth, max(rows for rows, _ in centre.shapes[:-1])
    best: dict[str, float] = {}
    for i, net in enumerate(cluster):
        beta = net.geometric_norm
        tail = math.sqrt(2 * hidden * math.log(2 * d * hidden / (delta / n_clusters)))
        scale = (
            min(beta / (d * math.exp(1 / (d - 1))), margin / (math.e**2 * d * B * beta ** (d - 1)))
            / tail
        )
        distances = np.array([norm_up(net.vector - start.vector) for start in starts])
        terms = _terms(sample, margin, mixture_exponent(distances, scale), scale, n_clusters, delta)
        if not best or terms["complexity"] < best["complexity"]:
            best = {**terms, "network": float(i), "beta": beta}
    spread = max(max(net.norms) / min(net.norms) for net in (centre, *cluster)) > 1 + 1e-6
    side = centre.largest_side
    checks = (
        ("layers have equal spectral norms", not spread),
        (f"no side of a layer exceeds h = {hidden} (the largest is {side})", side <= hidden),
        (
            "outputs of the cluster differ by less than an eighth of the margin",
            margin / 8 > nice.gaps.max(),
        ),
        ("the scale uses an eighth of the margin, as the proof needs", False),
        ("the margin and the grid were fixed before the sample was seen", None),
    )
    return Bound(
        "mixture, printed",
        outward(best["empirical risk"] + best["complexity"]),
        delta,
        "expected risk under small weight noise",
        best,
        (INDEPENDENT, *(Assumption.judged(text, held) for text, held in checks)),
        f"{SOURCE}, as printed",
    )

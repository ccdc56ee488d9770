"""Recover a network from values: the public function, and the checks that end it.

What was found is compared with the query on points never asked before, and with the network itself if
the query is one.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import expm1, inf, isnan, log, nan, nextafter
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.deadline import Deadline, checked_budget
from pindown.equivalence.flat_directions import n_parameters
from pindown.equivalence.recovery._known_layers import KnownLayers
from pindown.equivalence.recovery._last_layer import polish
from pindown.equivalence.recovery._layer_by_layer import LayerSearch
from pindown.equivalence.recovery._oracle import Oracle, Query, StopAskingError
from pindown.equivalence.recovery._unit_candidates import LayerNotFoundError
from pindown.equivalence.tuning import (
    DELTA,
    EXACT_NOISES,
    EXACT_SHARE,
    FIT_SIDES,
    FIT_VALUES,
    FRESH_BESIDE,
    FRESH_DISTANCES,
    FRESH_DRAWS,
    FRESH_POINTS,
    PROOF_SECONDS,
    SAME_SHARE,
)
from pindown.network import ReluNetwork
from pindown.progress import Report, silent
from pindown.text import card
from pindown.validation import integer

if TYPE_CHECKING:
    from pindown.equivalence.comparison import Diff


def recover(
    query: Query | ReluNetwork,
    in_features: int,
    *,
    box: Box | tuple[ArrayLike, ArrayLike],
    widths: Sequence[int] | None = None,
    seed: int = 0,
    budget: float = inf,
    max_queries: int = 2_000_000,
    progress: Report | None = None,
) -> Recovered:
    r"""Recover the weights of a ReLU network from its values on a box.

    Units of layer l fold the function along hyperplanes in the coordinates of layer l - 1. Where folds
    are, and how the gradient jumps there, gives each unit up to its scale; so layer after layer

    .. math:: f = W_L\, \rho(\dots \rho(W_1 x + b_1) \dots) + b_L

    is found up to the order and the positive scale of its units. That is all the function can tell, and
    for the networks of :func:`~pindown.equivalence.identifiable.identifiable_network` it is enough.

    Args:
        query: The black box: takes points (n, d), returns values (n, k) or (n,). Logits, not labels or
            probabilities. It is asked for thousands of points at a time. A network is asked for values
            as well; its weights serve for nothing but the proof at the end.
        in_features: The number d of inputs.
        box: Where it may be asked, with an interior.
        widths: All widths :math:`(d_0, \dots, d_L)`. By default they are found, as far as units show.
        seed: Chooses where to ask.
        budget: Seconds.
        max_queries: Points that may be asked for.
        progress: Called with ``(title, done, total)``.

    Returns:
        The network (where only the signs of units are open, one of the same function with units more,
        see ``notes``) with its largest error on fresh points, and the share of the box on which, with
        95 % confidence, it can be worse; or no network, and why. A network that fails the check is never
        returned; a difference on a share below that, such as a narrow bump, can have been missed. If
        the query is a network, ``comparison`` holds what
        :func:`~pindown.equivalence.comparison.diff` proves about the two.

    Raises:
        ValueError: If arguments do not fit each other, or the query returns another shape or NaN.
        TypeError: If the query is no function, or returns no numbers.

    Example:
        >>> kinked = ReluNetwork.from_layers([([[1.0], [1.0]], [0.5, -0.5]), ([[2.0, -1.0]], [3.0])])
        >>> found = recover(kinked, 1, box=(-1, 1))
        >>> found.network.widths, found.max_error < 1e-12
        ((1, 2, 1), True)
        >>> found.comparison.verdict
        'same'

    Phuong 2021, Theorem 2.1 and its proof; Phuong and Lampert 2020.
    """
    domain, hidden = _checked(query, in_features, box, widths)
    budget, max_queries = checked_budget(budget), integer("max_queries", max_queries)
    if sum(hidden or ()) > max_queries:
        raise ValueError(
            f"widths name {sum(hidden or ()):,} hidden units, more than the {max_queries:,} points that "
            "may be asked for; give smaller widths or a larger max_queries."
        )
    oracle = Oracle(query, domain, max_queries=max_queries, deadline=Deadline.after(budget))
    rng = np.random.default_rng(seed)
    try:
        outputs = None if widths is None else int(widths[-1])
        found = _run(oracle, hidden, outputs, rng, progress or silent)
    except LayerNotFoundError as error:
        return _nothing(oracle, error.status, error.reason)
    except StopAskingError:
        late = oracle.deadline.passed
        asked = (
            f"{oracle.n_queries:,} of {max_queries:,} queries were asked and the next step needs more"
        )
        used = f"{budget:g} s were used up" if late else asked
        return _nothing(oracle, ("budget",), f"{used}, before all layers were found")
    return proved(found, query, oracle) if isinstance(query, ReluNetwork) else found


def proved(found: Recovered, truth: ReluNetwork, oracle: Oracle) -> Recovered:
    """Compare what was found with the network that answered; a difference proved takes it back."""
    from pindown.equivalence.comparison import diff  # not needed for black boxes

    if found.network is None or oracle.deadline.passed:
        return found
    tol = max(EXACT_SHARE, EXACT_NOISES * oracle.noise) * float(oracle.spread.max())
    comparison = diff(
        truth,
        found.network,
        box=oracle.box,
        tol=max(SAME_SHARE, tol),
        precision=1.0,
        budget=oracle.deadline.within(PROOF_SECONDS).left,
    )
    if comparison.verdict == "different":
        return _nothing(
            oracle,
            ("mismatch",),
            f"a network was found, but it is off by {comparison.gap_lower:.1g} at {comparison.witness}",
        )
    return replace(found, comparison=comparison)


def _checked(
    query: Query | ReluNetwork,
    in_features: int,
    box: Box | tuple[ArrayLike, ArrayLike],
    widths: Sequence[int] | None,
) -> tuple[Box, tuple[int, ...] | None]:
    if not callable(query):
        raise TypeError(f"query must be a function of points (n, d); got {type(query).__name__}.")
    domain = as_box(box, integer("in_features", in_features))
    if np.any(domain.lower == domain.upper):
        raise ValueError("recovery needs a box with an interior; some side has length 0.")
    if widths is None:
        return domain, None
    sizes = tuple(widths) if isinstance(widths, Iterable) else (widths,)
    whole = all(hasattr(size, "__index__") for size in sizes)
    if not whole or len(sizes) < 2 or sizes[0] != in_features or min(sizes) < 1:
        raise ValueError(
            f"widths must be (d_0, ..., d_L) with d_0 = {in_features} inputs, then the hidden layers, "
            f"then the outputs; got {widths!r}."
        )
    return domain, tuple(operator.index(size) for size in sizes[1:-1])


def _nothing(oracle: Oracle, status: tuple[str | int, ...], reason: str) -> Recovered:
    return Recovered(None, oracle.n_queries, status=status, reason=reason, noise=oracle.noise)


def _run(
    oracle: Oracle,
    hidden: tuple[int, ...] | None,
    outputs: int | None,
    rng: np.random.Generator,
    progress: Report,
) -> Recovered:
    hopeless = oracle.calibrate(rng)
    if hopeless is not None:
        return _nothing(oracle, *hopeless)
    if outputs is not None and outputs != oracle.k:
        raise ValueError(f"widths end in {outputs} outputs, but the query returns {oracle.k}.")
    search = LayerSearch(oracle, hidden, rng, progress)
    lower = search.find(KnownLayers(oracle.d))
    net = _close(oracle, lower, search, rng)
    progress("checking on fresh points", net.depth - 1, net.depth)
    error, n_uniform = fresh_error(oracle, net, rng)
    if not error <= max(EXACT_SHARE, EXACT_NOISES * oracle.noise):
        return _nothing(
            oracle,
            ("mismatch",),
            f"a network was found, but on fresh points it is off by {error:.1g} of the values' spread: "
            "a unit is missing, or the function is not a network of these widths",
        )
    return Recovered(
        to_box(net, oracle),
        oracle.n_queries,
        error * float(oracle.spread.max()),
        excluded_share=excluded_share(n_uniform, DELTA),
        noise=oracle.noise,
        notes=tuple(search.notes),
    )


def _close(
    oracle: Oracle, lower: KnownLayers, search: LayerSearch, rng: np.random.Generator
) -> ReluNetwork:
    """Fit the last layer, then all parameters."""
    sides = search.seen.side.reshape(-1, oracle.d)
    some = rng.permutation(len(sides))[:FIT_SIDES]
    points = np.concatenate([search.points, sides[some]])
    values = np.concatenate([search.values, oracle(sides[some])])
    features = np.column_stack([lower(points), np.ones(len(points))])
    solution = np.linalg.lstsq(features, values, rcond=None)[0]
    net = ReluNetwork.from_layers([*lower.layers, (solution[:-1].T, solution[-1])])
    extra = rng.uniform(-1.0, 1.0, (FIT_VALUES * n_parameters(net), oracle.d))
    points, values = np.concatenate([points, extra]), np.concatenate([values, oracle(extra)])
    return polish(net, points, values)


def to_box(net: ReluNetwork, oracle: Oracle) -> ReluNetwork:
    """Return a network on the cube as one on the box, with values in the query's units."""
    layers = [(np.array(W), np.array(b)) for W, b in net.layers]
    W, b = layers[-1]
    layers[-1] = (oracle.spread[:, None] * W, oracle.spread * b + oracle.center)
    W, b = layers[0]
    scaled = W / oracle.half
    layers[0] = (scaled, b - scaled @ oracle.box.center)
    return ReluNetwork.from_layers(layers)


@dataclass(frozen=True, eq=False, repr=False)
class Recovered:
    """A network found from values, checked on fresh points; or why there is none.

    The check is by samples, not a proof: a black box can differ anywhere it was not asked, but with 95 %
    confidence on no more than ``excluded_share`` of the box. If the query is a network itself,
    ``comparison`` proves the rest.

    Attributes:
        network: The network, or None if no network was found that passes the check.
        n_queries: Points the query was asked for.
        max_error: Largest difference of an output on fresh points of the box; NaN without a network.
        excluded_share: With probability at least 1 - ``delta`` the network differs from the query by
            more than ``max_error`` on at most this share of the box's volume; on less, nothing is
            excluded. NaN without a network.
        status: ``("recovered",)`` (found, and the check passed), or what failed and in which hidden
            layer: ``("few", 2)`` (units of that layer not seen), ``("orient", 1)`` (the side on which a
            unit is on not decided),
            ``("mismatch",)`` (a network was found, but it fails the check),
            ``("not piecewise linear",)``, ``("noisy",)``, ``("budget",)``.
        reason: The same in plain words.
        noise: Measured error of the query's values, relative to their spread.
        notes: What the function does not determine, in plain words.
        comparison: What ``pindown.diff`` proves about the network that answered and the one found; None
            for a black box, without a network, or if the time was over.
    """

    network: ReluNetwork | None
    n_queries: int
    max_error: float = nan
    excluded_share: float = nan
    status: tuple[str | int, ...] = ("recovered",)
    reason: str = ""
    noise: float = nan
    notes: tuple[str, ...] = ()
    comparison: Diff | None = None
    delta: float = DELTA

    @property
    def kind(self) -> Literal["exact", "probability", "estimate"]:
        """``"exact"`` if ``comparison`` proves both the same; ``"probability"``: ``excluded_share``."""
        if self.comparison is not None and self.comparison.verdict == "same":
            return "exact"
        return "estimate" if isnan(self.excluded_share) else "probability"

    @property
    def assumption(self) -> str:
        """What ``excluded_share`` rests on."""
        return (
            "The fresh points are independent and uniform on the box, drawn after the network was "
            "found; the query answers a point the same way whenever it is asked."
        )

    def __bool__(self) -> bool:
        return self.network is not None

    _repr_html_ = card

    def __repr__(self) -> str:
        if self.network is None:
            return f"Recovered(nothing: {self.reason}; {self.n_queries:,} queries)"
        widths = " -> ".join(map(str, self.network.widths))
        same = self.comparison is not None and self.comparison.verdict == "same"
        proof = f", proved within {self.comparison.gap_upper:.1e}" if self.comparison and same else ""
        share = ""
        if self.kind == "probability":
            sure = f"with {1 - self.delta:.0%} confidence"
            share = f", more on at most {self.excluded_share:.2g} of the box {sure}"
        return (
            f"Recovered({widths}, largest error {self.max_error:.1e} on fresh points{proof}{share}, "
            f"{self.n_queries:,} queries)"
        )


def fresh_error(oracle: Oracle, net: ReluNetwork, rng: np.random.Generator) -> tuple[float, int]:
    """Return the largest error of a network in cube coordinates, and how many of the points are uniform.

    The error is relative to the spread of the values. A network that is wrong is wrong on some of its
    cells, and those may be rare. So besides uniform points, points on faces and corners of the box, and
    points beside every fold, one point is taken from every cell that many draws hit.
    """
    uniform = rng.uniform(-1.0, 1.0, (FRESH_DRAWS, oracle.d))
    faces = rng.uniform(-1.0, 1.0, (FRESH_DRAWS, oracle.d))
    faces = np.where(rng.random(faces.shape) < rng.random((FRESH_DRAWS, 1)), np.sign(faces), faces)
    both = np.concatenate([uniform, faces])
    parts = [uniform[:FRESH_POINTS], faces[:FRESH_POINTS], both[_one_of_each_cell(net, both)]]
    parts += [_beside(net, i, rng) for i in range(net.depth - 1)]
    points = np.concatenate(parts)
    return float(np.max(np.abs(oracle(points) - net(points)))), FRESH_POINTS


def excluded_share(n: int, delta: float) -> float:
    r"""Return the share of the box that n uniform points exclude from being worse than all of them.

    If the error exceeds the largest one seen on a share s of the box, n independent uniform points miss
    it with probability at most :math:`(1 - s)^n`, which is :math:`\delta` for

    .. math:: s = 1 - \delta^{1/n}.

    Clopper and Pearson 1934, for no failure in n trials; Wilks 1941, for a threshold that is the largest
    value seen.

    >>> round(excluded_share(1, 0.05), 12), excluded_share(4000, 0.05) < 3 / 4000
    (0.95, True)
    """
    return nextafter(-expm1(log(delta) / n), inf)


def _one_of_each_cell(net: ReluNetwork, points: Array) -> NDArray[np.int64]:
    """Return the numbers of points, one in each cell hit, the rarest cells first."""
    bits = np.packbits(net.pattern(points), axis=1)
    _, first, count = np.unique(bits, axis=0, return_index=True, return_counts=True)
    return np.asarray(first[np.argsort(count, kind="stable")][:FRESH_POINTS], dtype=np.int64)


def _beside(net: ReluNetwork, i: int, rng: np.random.Generator) -> Array:
    """Return points near the zero sets of the units of one layer."""
    below = KnownLayers(net.in_features, tuple((W, b) for W, b in net.layers[:i]))
    found = [np.empty((0, net.in_features))]
    for w, level in zip(*net.layers[i], strict=True):
        zeros = below.zeros(w, float(level), FRESH_BESIDE, rng)
        away = rng.choice(FRESH_DISTANCES, (len(zeros), 1)) * rng.standard_normal(zeros.shape)
        found.append(np.clip(zeros + away, -1.0, 1.0))
    return np.concatenate(found)

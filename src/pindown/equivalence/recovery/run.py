"""Recover a network from values: the public function, and the check that ends it."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from pindown.box import Box, as_box
from pindown.equivalence.flat_directions import n_parameters
from pindown.equivalence.recovery.choices import PeelError
from pindown.equivalence.recovery.fresh import excluded_share, fresh_error
from pindown.equivalence.recovery.lower import Lower
from pindown.equivalence.recovery.oracle import Oracle, Query, StopAskingError
from pindown.equivalence.recovery.peel import Peeler, Progress
from pindown.equivalence.recovery.polish import polish
from pindown.equivalence.recovery.result import DELTA, Recovered
from pindown.network import ReluNetwork

_SIDES = 2_000  # points beside kinks that enter the final fit
_EXACT = 1e-7  # share of the spread that the final check forgives; more if the query is noisy
_NOISES = 200.0
_SAME = 1e-6  # largest difference, in units of the values, that the proof allows at least
_PROOF_SECONDS = 10.0
_PER_PARAMETER = 5  # values for the final fit


def recover(
    query: Query | ReluNetwork,
    in_features: int,
    *,
    box: Box | tuple[ArrayLike, ArrayLike],
    widths: Sequence[int] | None = None,
    seed: int = 0,
    budget: float = inf,
    max_queries: int = 2_000_000,
    progress: Progress | None = None,
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
        The network with its largest error on fresh points, and the share of the box on which, with 95 %
        confidence, it can be worse; or no network, and why. A network that fails the check is never
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
    if not budget > 0 or max_queries < 1:
        raise ValueError(f"budget and max_queries must be positive; got {budget} and {max_queries}.")
    if sum(hidden or ()) > max_queries:
        raise ValueError(
            f"widths name {sum(hidden or ()):,} hidden units, more than the {max_queries:,} points that "
            "may be asked for; give smaller widths or a larger max_queries."
        )
    oracle = Oracle(query, domain, max_queries=max_queries, until=time.monotonic() + budget)
    rng = np.random.default_rng(seed)
    try:
        outputs = None if widths is None else int(widths[-1])
        found = _run(oracle, hidden, outputs, rng, progress or (lambda *_: None))
    except PeelError as error:
        return _nothing(oracle, error.status, error.reason)
    except StopAskingError:
        late = time.monotonic() > oracle.until
        asked = (
            f"{oracle.n_queries:,} of {max_queries:,} queries were asked and the next step needs more"
        )
        used = f"{budget:g} s were used up" if late else asked
        return _nothing(oracle, ("budget",), f"{used}, before all layers were found")
    return proved(found, query, oracle) if isinstance(query, ReluNetwork) else found


def proved(found: Recovered, truth: ReluNetwork, oracle: Oracle) -> Recovered:
    """Compare what was found with the network that answered; a difference proved takes it back."""
    from pindown.equivalence.comparison import diff  # not needed for black boxes

    left = oracle.until - time.monotonic()
    if found.network is None or left <= 0.0:
        return found
    tol = max(_EXACT, _NOISES * oracle.noise) * float(oracle.spread.max())
    comparison = diff(
        truth, found.network, box=oracle.box, tol=max(_SAME, tol), budget=min(_PROOF_SECONDS, left)
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
    if isinstance(in_features, bool) or not hasattr(in_features, "__index__") or in_features < 1:
        raise ValueError(f"in_features must be a whole number, 1 or more; got {in_features!r}.")
    domain = as_box(box, operator.index(in_features))
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
    progress: Progress,
) -> Recovered:
    hopeless = oracle.calibrate(rng)
    if hopeless is not None:
        return _nothing(oracle, *hopeless)
    if outputs is not None and outputs != oracle.k:
        raise ValueError(f"widths end in {outputs} outputs, but the query returns {oracle.k}.")
    peeler = Peeler(oracle, hidden, rng, progress)
    lower = peeler.peel(Lower(oracle.d))
    net = _close(oracle, lower, peeler, rng)
    progress("checking on fresh points", net.depth - 1, net.depth)
    error, n_uniform = fresh_error(oracle, net, rng)
    if not error <= max(_EXACT, _NOISES * oracle.noise):
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
        notes=tuple(peeler.notes),
    )


def _close(oracle: Oracle, lower: Lower, peeler: Peeler, rng: np.random.Generator) -> ReluNetwork:
    """Fit the last layer, then all parameters."""
    sides = peeler.seen.side.reshape(-1, oracle.d)
    some = rng.permutation(len(sides))[:_SIDES]
    points = np.concatenate([peeler.points, sides[some]])
    values = np.concatenate([peeler.values, oracle(sides[some])])
    features = np.column_stack([lower(points), np.ones(len(points))])
    solution = np.linalg.lstsq(features, values, rcond=None)[0]
    net = ReluNetwork.from_layers([*lower.layers, (solution[:-1].T, solution[-1])])
    extra = rng.uniform(-1.0, 1.0, (_PER_PARAMETER * n_parameters(net), oracle.d))
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

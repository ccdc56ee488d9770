"""Bound what one source does to every output by multipliers, chosen and then proved."""

from __future__ import annotations

import time
from itertools import pairwise
from math import frexp, inf, isfinite, ldexp

import numpy as np

from pindown.affine import Array, dense
from pindown.equivalence.sensitivity.certificate import LARGEST_SYSTEM, proved_bounds
from pindown.equivalence.sensitivity.corners.few_biases import (
    FewBiases,
    bound_few_biases,
    is_for_corners,
)
from pindown.equivalence.sensitivity.multipliers import SourceChain, best_multipliers
from pindown.equivalence.sensitivity.propagation import Propagation
from pindown.equivalence.sensitivity.sources import Source
from pindown.relaxation.operator_norms import FLOPS_PER_SECOND

_FEW_EVALUATIONS = 6


def multiplier_bounds(
    weights: Propagation, source: Source, target: float, until: float, *, deadline: float = inf
) -> Array | None:
    """Return proved bounds on what ``fixed + matrix v`` does to the outputs, or None.

    Args:
        weights: The network behind the source.
        source: The source; its loose part is left out.
        target: A bound that is good enough.
        until: Time (``time.monotonic``) at which to stop improving.
        deadline: Time by which a first bound must be proved; what cannot be done by then is not begun.

    Returns:
        One bound per output; None if the system is too large, or its numbers too far apart.
    """
    scaled = _chain_for(weights, source, deadline)
    if scaled is None:
        return None
    chain, power = scaled
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        x = best_multipliers(chain, target=_shifted(target, -power), until=until)
        return None if x is None else _per_output(proved_bounds(chain, x), chain, power)


def corner_bounds(
    weights: Propagation, source: Source, target: float, until: float, *, collect: bool
) -> tuple[Array, FewBiases] | None:
    """Return proved bounds on what a change of a few biases does to the outputs, and their search.

    Args:
        weights: The network behind the source.
        source: The source; its loose part is left out.
        target: A bound that is good enough.
        until: Time (``time.monotonic``) at which to stop.
        collect: Whether corners that stay above the target are to be collected.

    Returns:
        One bound per output, and the searches; None if the source is something else or too large.
    """
    scaled = None if source.matrix is not None else _chain_for(weights, source, until)
    if scaled is None or not is_for_corners(scaled[0], until - time.monotonic()):
        return None
    chain, power = scaled
    aim = _shifted(target, -power)
    if not isfinite(aim) or _shifted(aim, power) != target:
        return None
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        found = bound_few_biases(chain, aim, until, collect=collect)
        return _per_output(found.bounds, chain, power), found


def _chain_for(weights: Propagation, source: Source, deadline: float) -> tuple[SourceChain, int] | None:
    """Return the scaled chain with its power of two, if it is of a size and kind for multipliers."""
    last = len(weights.weights) - 1
    finite = isfinite(source.reach.length) and np.isfinite(source.fixed).all()
    if source.layer == last or not finite or _variables(weights, source) > LARGEST_SYSTEM:
        return None
    scaled = _scaled_chain(weights, source)
    if scaled is None or _least_seconds(scaled[0]) > deadline - time.monotonic():
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
    return (_FEW_EVALUATIONS * once + float(sum(sizes)) ** 3) / FLOPS_PER_SECOND


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

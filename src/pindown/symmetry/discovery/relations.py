"""Which orthogonal maps relate the samples of an orbit: found one by one, completed by products."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.symmetry.discovery.orbits import Pairs
from pindown.symmetry.discovery.orthogonal_maps import (
    Maps,
    is_known,
    procrustes,
    residual_limit,
    residuals,
    second_moment,
    settled,
)

# Residual limits shrink to the final one along this schedule while a candidate is refitted.
_SCHEDULE = (4.0, 2.0, 1.3, 1.0, 1.0)
# A map found by fitting can bend to about as many pairs as there are dimensions; it must explain more.
_BEYOND_FREEDOM = 2
# A product of maps was not fitted: a pair that it explains is evidence at once, two are no accident.
_PRODUCT_SUPPORT = 2
# Maps drawn at random to see what chance explains, and the chance at which a count is no accident.
_RANDOM_MAPS = 20
_ACCIDENT = 1e-5
# If maps that mean nothing explain this share of pairs, the noise is too coarse to tell any two apart.
_TOO_COARSE = 0.05
# Share of the pairs after which those left over are the tail of the noise, not another map.
_ENOUGH = 0.99
# Share of explained pairs from which on a product is an element if it explains a single other pair.
_NEARLY_ALL = 0.85
# Of the share of products that stay in the list for the usual map: a map with less is no element.
_LOYAL = 0.5
# Candidates in a row that come to nothing before the search ends.
_PATIENCE = 12
# In a group no product is dead. Few pairs leave elements unseen, so this many and half of all may be.
_DEAD = 30
# Two inner products count as equal within this many standard deviations of the noise.
_COMPATIBLE = 3.0
# Pairs that vote on one candidate, and that are asked; the cost grows with the square of the first.
_VOTERS = 300
_ASKED = 1600
_POWER_STEPS = 20


def find_maps(
    pairs: Pairs,
    noise: float,
    rng: np.random.Generator,
    *,
    most: int,
    patience: int = _PATIENCE,
    deadline: float = np.inf,
) -> Maps:
    """Return maps that each explain many pairs, until the pairs or the candidates run out.

    Once two maps are known their products are tried before anything is fitted: in a group they are
    elements too, and few maps have to be found from nothing.

    Args:
        pairs: Ordered pairs, both directions, in coordinates that they span.
        noise: Standard deviation of the noise in a coordinate.
        rng: Chooses candidates.
        most: Stop at this many maps.
        patience: Candidates in a row that come to nothing before the search ends.
        deadline: Stop at this ``time.monotonic()``.
    """
    d = pairs.first.shape[1]
    limit = residual_limit(noise, d)
    found = Maps([np.eye(d)], noise, residuals(np.eye(d), pairs) <= limit)
    by_chance = _chance_support(pairs, limit, rng)
    if by_chance > _TOO_COARSE * len(pairs):
        found.coarse = True
        return found
    failures, moment = 0, second_moment(pairs)
    while failures < patience and len(found.matrices) < most:
        if found.explained.mean() >= _ENOUGH or found.dead > _DEAD + len(found.tried) / 2:
            break
        if time.monotonic() > deadline:
            found.out_of_time = True
            break
        candidate = voted_map(pairs, found.explained, noise, rng)
        enough = max(d + _BEYOND_FREEDOM, by_chance)
        if candidate is None or not _accept(found, candidate, pairs, moment, limit, enough):
            failures += 1
            continue
        failures = 0
        _add_products(found, pairs, moment, limit, most, max(_PRODUCT_SUPPORT, by_chance))
    found = settled(_consistent(settled(found, pairs, limit), moment, limit), pairs, limit)
    if (
        found.explained.mean() >= _NEARLY_ALL
    ):  # elements that few pairs use were dropped with the remnants
        _add_products(found, pairs, moment, limit, most, max(1, by_chance))
    return found


def _consistent(found: Maps, moment: Array, limit: float) -> Maps:
    """Drop maps whose products mostly leave the list, where those of the others stay in it."""
    maps, stack = found.matrices, np.array(found.matrices)
    flat = stack.reshape(len(stack), -1).T
    agreement = np.array(
        [((g @ stack @ moment).reshape(len(stack), -1) @ flat).max(axis=1) for g in maps]
    )
    stays = (2.0 * (np.trace(moment) - agreement) <= limit**2).mean(axis=1)
    keep = stays >= _LOYAL * np.sort(stays)[::-1][len(stays) // 2]
    keep[0] = True
    kept = [g for g, kept in zip(maps, keep, strict=True) if kept]
    return Maps(kept, found.noise, found.explained, found.out_of_time)


def _chance_support(pairs: Pairs, limit: float, rng: np.random.Generator) -> int:
    """Return how many pairs a map that means nothing explains at most, by trying random ones.

    Only the mean share matters, and a random map takes a sample to a random vector of its norm.
    """
    from scipy.stats import binom

    norms = np.linalg.norm(pairs.first, axis=1, keepdims=True)
    shares = []
    for _ in range(_RANDOM_MAPS):
        draws = rng.standard_normal(pairs.first.shape)
        draws *= norms / np.linalg.norm(draws, axis=1, keepdims=True)
        shares.append((np.linalg.norm(draws - pairs.second, axis=1) <= limit).mean())
    share = float(np.mean(shares))
    return int(binom.ppf(1.0 - _ACCIDENT, len(pairs), share)) + 1 if share else 0


def _accept(
    found: Maps, candidate: Array, pairs: Pairs, moment: Array, limit: float, least: int
) -> bool:
    """Refit a candidate on the pairs it explains; keep it, and its inverse, if those are enough."""
    free = np.flatnonzero(~found.explained)
    left = pairs.take(free)
    for factor in _SCHEDULE:
        hits = residuals(candidate, left) <= factor * limit
        if hits.sum() < least:
            return False
        candidate = procrustes(left.first[hits], left.second[hits])
    hits = residuals(candidate, left) <= limit
    if hits.sum() < least or is_known(candidate, found.matrices, moment, limit):
        return False
    _keep(found, candidate, free[hits])
    new = np.flatnonzero((residuals(candidate.T, pairs) <= limit) & ~found.explained)
    if len(new) and not is_known(candidate.T, found.matrices, moment, limit):
        _keep(found, candidate.T, new)  # the same pairs, read backwards
    return True


def _keep(found: Maps, matrix: Array, rows: NDArray[np.int64]) -> None:
    found.matrices.append(matrix)
    found.explained[rows] = True


def _add_products(found: Maps, pairs: Pairs, moment: Array, limit: float, most: int, least: int) -> None:
    """Keep products of known maps that explain pairs nobody explained; refitted if they are many."""
    enough = pairs.first.shape[1] + _BEYOND_FREEDOM
    fresh = True
    while fresh and len(found.matrices) < most:
        n = len(found.matrices)
        todo = [(a, b) for a in range(1, n) for b in range(1, n) if (a, b) not in found.tried]
        fresh = bool(todo)
        for one, two in todo:
            found.tried.add((one, two))
            product = found.matrices[one] @ found.matrices[two]
            if is_known(product, found.matrices, moment, limit):
                continue
            free = np.flatnonzero(~found.explained)
            # products carry the errors of both factors
            hits = residuals(product, pairs.take(free)) <= _SCHEDULE[1] * limit
            if hits.sum() >= enough and _accept(found, product, pairs, moment, limit, least):
                continue
            if least <= hits.sum() < enough:
                _keep(found, product, free[hits])
            else:
                found.dead += 1
                if found.dead > _DEAD + len(found.tried) / 2:
                    return


def voted_map(
    pairs: Pairs, explained: NDArray[np.bool_], noise: float, rng: np.random.Generator
) -> Array | None:
    """Return a map fitted to unexplained pairs that agree with a random one, and with each other.

    Args:
        pairs: Ordered pairs.
        explained: Those to leave out.
        noise: Standard deviation of the noise in a coordinate.
        rng: Chooses the first pair.
    """
    d = pairs.first.shape[1]
    free = np.flatnonzero(~explained)
    seed = int(rng.choice(free))
    # within an orbit <x, hx> = <x, h'x> holds by structure, for inverses: only other orbits may vote
    others = free[pairs.orbit[free] != pairs.orbit[seed]]
    if len(others) < d:
        return None
    if len(others) > _ASKED:
        others = rng.choice(others, _ASKED, replace=False)
    gap = _disagreement(pairs, np.array([seed]), others, noise)[0]
    voters = others[np.argsort(gap)][: min(_VOTERS, int((gap <= _COMPATIBLE).sum()))]
    if len(voters) < d:
        return None
    mutual = np.exp(-0.5 * _disagreement(pairs, voters, voters, noise) ** 2)
    weights = mutual.sum(axis=1)
    for _ in range(_POWER_STEPS):  # the leading eigenvector: the largest set that agrees with itself
        weights = mutual @ weights
        weights /= weights.max()
    chosen = _clique(mutual, np.argsort(-weights), 3 * d)
    if len(chosen) < d - 1:
        return None
    rows = np.r_[seed, voters[chosen]]
    return procrustes(pairs.first[rows], pairs.second[rows])


def _disagreement(
    pairs: Pairs, rows: NDArray[np.int64], columns: NDArray[np.int64], noise: float
) -> Array:
    """Return differences of inner products, in standard deviations of what noise would make them."""
    x, y = pairs.first, pairs.second
    gap = x[rows] @ x[columns].T - y[rows] @ y[columns].T
    size_rows = (x[rows] ** 2).sum(axis=1) + (y[rows] ** 2).sum(axis=1)
    size_columns = (x[columns] ** 2).sum(axis=1) + (y[columns] ** 2).sum(axis=1)
    deviation = noise * np.sqrt(size_rows[:, None] + size_columns)
    return np.asarray(np.abs(gap) / np.maximum(deviation, np.finfo(float).tiny))


def _clique(mutual: Array, order: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return voters taken in order, each if it agrees with all taken before it."""
    agree = float(np.exp(-0.5 * _COMPATIBLE**2))
    taken: list[int] = []
    for candidate in order:
        if (mutual[candidate, taken] >= agree).all():
            taken.append(int(candidate))
            if len(taken) == most:
                break
    return np.array(taken, dtype=np.int64)

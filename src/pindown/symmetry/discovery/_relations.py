r"""Which orthogonal maps relate the samples of an orbit: found one by one, completed by products.

Candidates come from votes. Two pairs (x, gx) and (x', g'x') come from one map only if
:math:`\langle x, x' \rangle = \langle gx, g'x' \rangle`. Unrelated pairs pass that test by chance alone,
so pairs that all pass it with each other name a map, without knowing which map they share.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.symmetry.discovery._orbits import Pairs
from pindown.symmetry.discovery._orthogonal_maps import (
    Maps,
    is_known,
    procrustes,
    residual_limit,
    residuals,
    second_moment,
    settled,
)
from pindown.symmetry.discovery.tuning import (
    ACCIDENT_CHANCE,
    COMPATIBLE_DEVIATIONS,
    CONSISTENT_SHARE,
    ENOUGH_EXPLAINED,
    MAP_PATIENCE,
    MAX_ASKED,
    MAX_VOTERS,
    NEARLY_ALL_EXPLAINED,
    POWER_STEPS,
    PRODUCT_SUPPORT,
    RANDOM_MAPS,
    RESIDUAL_SCHEDULE,
    SPARE_DEAD_PRODUCTS,
    SUPPORT_BEYOND_FREEDOM,
    TOO_COARSE_SHARE,
)


def find_maps(
    pairs: Pairs,
    noise: float,
    rng: np.random.Generator,
    *,
    most: int,
    patience: int = MAP_PATIENCE,
    deadline: Deadline = NEVER,
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
        deadline: Try no candidate after it.
    """
    d = pairs.first.shape[1]
    limit = residual_limit(noise, d)
    found = Maps([np.eye(d)], noise, residuals(np.eye(d), pairs) <= limit)
    by_chance = _chance_support(pairs, limit, rng)
    if by_chance > TOO_COARSE_SHARE * len(pairs):
        found.coarse = True
        return found
    failures, moment = 0, second_moment(pairs)
    while failures < patience and len(found.matrices) < most:
        if (
            found.explained.mean() >= ENOUGH_EXPLAINED
            or found.dead > SPARE_DEAD_PRODUCTS + len(found.tried) / 2
        ):
            break
        if deadline.passed:
            found.out_of_time = True
            break
        candidate = _voted_map(pairs, found.explained, noise, rng)
        enough = max(d + SUPPORT_BEYOND_FREEDOM, by_chance)
        if candidate is None or not _accept(found, candidate, pairs, moment, limit, enough):
            failures += 1
            continue
        failures = 0
        _add_products(found, pairs, moment, limit, most, max(PRODUCT_SUPPORT, by_chance))
    found = settled(_consistent(settled(found, pairs, limit), moment, limit), pairs, limit)
    if found.explained.mean() >= NEARLY_ALL_EXPLAINED:
        # Elements that few pairs use were dropped with the remnants.
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
    keep = stays >= CONSISTENT_SHARE * np.sort(stays)[::-1][len(stays) // 2]
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
    for _ in range(RANDOM_MAPS):
        draws = rng.standard_normal(pairs.first.shape)
        draws *= norms / np.linalg.norm(draws, axis=1, keepdims=True)
        shares.append((np.linalg.norm(draws - pairs.second, axis=1) <= limit).mean())
    share = float(np.mean(shares))
    return int(binom.ppf(1.0 - ACCIDENT_CHANCE, len(pairs), share)) + 1 if share else 0


def _accept(
    found: Maps, candidate: Array, pairs: Pairs, moment: Array, limit: float, least: int
) -> bool:
    """Refit a candidate on the pairs it explains; keep it, and its inverse, if those are enough."""
    free = np.flatnonzero(~found.explained)
    left = pairs.take(free)
    for factor in RESIDUAL_SCHEDULE:
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
    enough = pairs.first.shape[1] + SUPPORT_BEYOND_FREEDOM
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
            hits = residuals(product, pairs.take(free)) <= RESIDUAL_SCHEDULE[1] * limit
            if hits.sum() >= enough and _accept(found, product, pairs, moment, limit, least):
                continue
            if least <= hits.sum() < enough:
                _keep(found, product, free[hits])
            else:
                found.dead += 1
                if found.dead > SPARE_DEAD_PRODUCTS + len(found.tried) / 2:
                    return


def _voted_map(
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
    if len(others) > MAX_ASKED:
        others = rng.choice(others, MAX_ASKED, replace=False)
    gap = _disagreement(pairs, np.array([seed]), others, noise)[0]
    voters = others[np.argsort(gap)][: min(MAX_VOTERS, int((gap <= COMPATIBLE_DEVIATIONS).sum()))]
    if len(voters) < d:
        return None
    mutual = np.exp(-0.5 * _disagreement(pairs, voters, voters, noise) ** 2)
    weights = mutual.sum(axis=1)
    for _ in range(POWER_STEPS):  # the leading eigenvector: the largest set that agrees with itself
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
    agree = float(np.exp(-0.5 * COMPATIBLE_DEVIATIONS**2))
    taken: list[int] = []
    for candidate in order:
        if (mutual[candidate, taken] >= agree).all():
            taken.append(int(candidate))
            if len(taken) == most:
                break
    return np.array(taken, dtype=np.int64)

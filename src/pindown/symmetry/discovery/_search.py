"""From orbits to a judged group: noise, coordinates, maps, table, exact matrices, held-out verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.progress import Report, silent
from pindown.symmetry.discovery._orbits import Pairs, noise_level, pairs_of
from pindown.symmetry.discovery._orthogonal_maps import (
    Maps,
    NotClosedError,
    effect,
    exact_representation,
    nearest_elements,
    procrustes,
    table_of,
)
from pindown.symmetry.discovery._relations import find_maps
from pindown.symmetry.discovery.held_out import GroupEvidence, judge
from pindown.symmetry.discovery.tuning import (
    HELD_OUT_SHARE,
    MAX_NOISE_SHARE,
    MIN_COVERAGE,
    MIN_ORBITS,
    MIN_VARIANCE_PER_NOISE,
    NOISE_LADDER,
    NOISE_UNCERTAINTY,
    ONE_NORM_RATIO,
    SAME_ELEMENT_SHARE,
    SPARE_MAPS,
)

# Data stored in single precision carry this error, as a share of a coordinate's scale.
_ROUNDING = 1e-7
_RANK = 1e-10  # of the largest variance: directions below are rounding

MapFinder = Callable[[Pairs, float, np.random.Generator, Deadline], Maps]


@dataclass(frozen=True)
class Discovery:
    """What a search ended with.

    Attributes:
        evidence: The verdict.
        table: The multiplication table; of the trivial group if nothing closed was found.
        matrices: The elements in the coordinates of the data, (order, d, d).
        n_maps: Maps that relate members, closed or not, the identity among them.
        explained: Share of the pairs that were searched which they explain.
    """

    evidence: GroupEvidence
    table: NDArray[np.int64] = field(repr=False)
    matrices: Array = field(repr=False)
    n_maps: int = 0
    explained: float = 0.0

    def __str__(self) -> str:
        return str(self.evidence)


def discover(
    orbits: list[Array],
    n_features: int,
    find: MapFinder | None = None,
    *,
    rng: np.random.Generator,
    largest: int = 60,
    complete: bool = True,
    n_restarts: int = 4,
    deadline: Deadline = NEVER,
    report: Report = silent,
) -> Discovery:
    """Look for a finite group of orthogonal maps that relates the members of every orbit.

    Args:
        orbits: Arrays (m, d) of members; which element relates which is unknown.
        n_features: Numbers in a sample, d.
        find: Finds maps among pairs; by default :func:`find_maps`.
        rng: Splits the orbits and chooses candidates.
        largest: The largest order to look for.
        complete: Whether orbits must be whole; see :func:`judge`.
        n_restarts: Searches at each level of noise, with other candidates, before the next level.
        deadline: Start no attempt after it.
        report: Told what each attempt came to.
    """
    if len(orbits) < MIN_ORBITS:
        return _nothing(
            n_features,
            f"{len(orbits)} orbits of two members or more; {MIN_ORBITS} are needed to find a "
            f"group and to check it on others",
        )
    order = rng.permutation(len(orbits))
    n_held = max(3, int(HELD_OUT_SHARE * len(orbits)))
    held, train = ([orbits[i] for i in part] for part in (order[:n_held], order[n_held:]))
    pairs = pairs_of(train, rng)
    scale = float(np.sqrt(np.mean(pairs.first**2)))
    noise = noise_level(pairs)
    if scale == 0.0:
        return _nothing(n_features, "all samples are zero")
    if noise > MAX_NOISE_SHARE * scale:
        return _nothing(
            n_features,
            f"norms within an orbit differ by {noise / scale:.0%} of a coordinate: no orthogonal map "
            f"relates its members",
        )

    def default(pairs: Pairs, noise: float, rng: np.random.Generator, deadline: Deadline) -> Maps:
        return find_maps(pairs, noise, rng, most=SPARE_MAPS * largest, deadline=deadline)

    best = _nothing(n_features, "nothing was tried")
    levels = _levels(noise, scale, pairs)
    climbing, done = levels[-1] > NOISE_UNCERTAINTY * levels[0], 0
    for level in levels:
        explained = 0.0
        for _ in range(n_restarts):
            try:
                attempt = _attempt(
                    pairs, level, held, orbits, find or default, rng, largest, complete, deadline
                )
            except KeyboardInterrupt:
                return best if best.n_maps else _nothing(n_features, "the search was interrupted")
            done += 1
            report(f"noise {level:.2g}: {attempt}", done, n_restarts * len(levels))
            if _further(attempt, best):
                best = attempt
            if attempt.evidence.coverage >= MIN_COVERAGE or deadline.passed:
                return best  # claimed, or closed and predictive but refused: more tries change nothing
            explained = max(explained, attempt.explained)
            if attempt.n_maps == 1:  # nothing at all at this level: other candidates will not help
                break
        if climbing and explained >= MIN_COVERAGE:
            break  # maps fit this closely and are no group; with coarser eyes they would look like one
    return best


def _further(attempt: Discovery, best: Discovery) -> bool:
    keys = [
        (one.evidence.claimed, one.evidence.n_pairs > 0, one.evidence.score, one.n_maps)
        for one in (attempt, best)
    ]
    return keys[0] > keys[1]


def _levels(noise: float, scale: float, pairs: Pairs) -> list[float]:
    """Return levels of noise to try: what norms within orbits show first, then what they may hide."""
    least = max(noise, _ROUNDING * scale)
    norms = np.linalg.norm(pairs.first, axis=1)
    between = float(np.median(np.abs(norms - np.median(norms))))
    if between > ONE_NORM_RATIO * least:
        return [least, NOISE_UNCERTAINTY * least]
    return [least, *(share * scale for share in NOISE_LADDER if share * scale > 2 * least)]


def _nothing(d: int, reason: str, n_maps: int = 0, explained: float = 0.0) -> Discovery:
    trivial = np.zeros((1, 1), dtype=np.int64)
    return Discovery(GroupEvidence(False, reason), trivial, np.eye(d)[None], n_maps, explained)


def _attempt(
    pairs: Pairs,
    noise: float,
    held: list[Array],
    everything: list[Array],
    find: MapFinder,
    rng: np.random.Generator,
    largest: int,
    complete: bool,
    deadline: Deadline,
) -> Discovery:
    """Search at one level of noise and judge what was found."""
    d = pairs.first.shape[1]
    basis, spread = _directions(pairs, noise)
    inside = pairs.along(basis)
    maps = find(inside, noise, rng, deadline)
    explained, n = float(maps.explained.mean()), len(maps.matrices)
    if maps.coarse:
        return _nothing(
            d, "maps drawn at random explain pairs too: too much noise, or too few dimensions", 1
        )
    if n == 1 and not maps.explained.all():
        late = "; time ran out" if maps.out_of_time else ""
        return _nothing(d, f"no orthogonal map relates the members of several orbits{late}", 1)
    if n > largest:
        return _nothing(
            d,
            f"more than {largest} maps relate members: the group is larger (raise max_order) or is not "
            f"finite",
            n,
            explained,
        )
    if explained < MIN_COVERAGE:
        late = "; time ran out" if maps.out_of_time else ""
        return _nothing(d, f"{n} maps explain only {explained:.0%} of the pairs{late}", n)
    try:
        table, small = _close(np.array(maps.matrices), spread, inside)
    except NotClosedError as problem:
        return _nothing(d, f"not closed: {problem}", n, explained)
    matrices = np.eye(d) + basis.T @ (small - np.eye(len(basis))) @ basis
    level = _fitted_noise(matrices, pairs, noise)
    evidence = judge(matrices, table, held, everything, level, rng, complete=complete)
    return Discovery(evidence, table, matrices, n, explained)


def _directions(pairs: Pairs, noise: float) -> tuple[Array, Array]:
    """Return the directions in which the data vary beyond the noise, and the root of their variances."""
    values, vectors = np.linalg.eigh(pairs.first.T @ pairs.first / len(pairs))
    kept = values > max(_RANK * float(values.max()), MIN_VARIANCE_PER_NOISE * noise**2)
    kept |= values == values.max()
    return vectors[:, kept].T, np.diag(np.sqrt(values[kept]))


def _close(maps: Array, spread: Array, pairs: Pairs) -> tuple[NDArray[np.int64], Array]:
    """Return the table of the maps, and exact matrices refitted to all pairs under it."""
    gaps = effect(maps, maps, spread)
    np.fill_diagonal(gaps, np.inf)
    table = table_of(maps, spread, SAME_ELEMENT_SHARE * float(gaps.min()))
    matrices = exact_representation(maps, table)
    for _ in range(2):  # better maps assign pairs better, which fits better maps
        _, element = nearest_elements(matrices, pairs.first, pairs.second)
        refitted = matrices.copy()
        for number in range(1, len(matrices)):
            rows = element == number
            if rows.sum() > pairs.first.shape[1]:
                refitted[number] = procrustes(pairs.first[rows], pairs.second[rows])
        matrices = exact_representation(refitted, table)
    return table, matrices


def _fitted_noise(matrices: Array, pairs: Pairs, assumed: float) -> float:
    """Return the noise that the residuals show, at most twice what was assumed."""
    from scipy.stats import chi2

    d = matrices.shape[1]
    distances, _ = nearest_elements(matrices, pairs.first, pairs.second)
    level = float(np.median(distances) / np.sqrt(2.0 * chi2.ppf(0.5, d)))
    floor = _ROUNDING * float(np.sqrt(np.mean(pairs.first**2)))
    return min(max(level, floor), 2.0 * assumed)

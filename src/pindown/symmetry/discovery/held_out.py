r"""Whether a recovered group may be claimed: judged on orbits that had no part in finding it.

A claim needs all of these on held-out orbits: the elements predict where members lie; they do *not*
predict where hard negatives lie (else the group is too large, or the noise too coarse to tell); whole
orbits are mapped onto themselves, for a part of one has no symmetry of its own; and pairs use all
elements alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.evidence import Assumption, Kind
from pindown.symmetry.discovery._orbits import Pairs, pairs_of
from pindown.symmetry.discovery._orthogonal_maps import nearest_elements, residual_limit
from pindown.symmetry.discovery.gramians import separation
from pindown.symmetry.discovery.tuning import (
    HARD_NEGATIVE_MAPS,
    HARD_NEGATIVE_TURN,
    MAX_CHANCE,
    MAX_FALSE_COVERAGE,
    MIN_COVERAGE,
    MIN_EVENNESS,
    MIN_HELD_OUT_ORBITS,
    MIN_PAIRS_PER_ELEMENT,
    MIN_SEPARATION,
    MISSING_MEMBER_SHARE,
)


@dataclass(frozen=True)
class GroupEvidence:
    """What held-out orbits say about a group.

    Attributes:
        claimed: Whether all conditions hold.
        reason: Why, or which condition failed.
        order: Elements of the group that was judged; 1 if none was found.
        coverage: Share of held-out pairs that an element explains.
        false_coverage: The same for hard negatives.
        separation: Area under ROC between the two.
        closure: Share of images of members that are members, over orbits of three or more; NaN if none.
        evenness: Chance of elements being used as unevenly by pairs; NaN if not applicable.
        chance: Bound on the chance of this coverage if elements told no more than on negatives.
        noise: Standard deviation of the noise in a coordinate.
        n_pairs: Held-out pairs.
        n_orbits: Held-out orbits.
    """

    claimed: bool
    reason: str
    order: int = 1
    coverage: float = 0.0
    false_coverage: float = 0.0
    separation: float = 0.5
    closure: float = float("nan")
    evenness: float = float("nan")
    chance: float = 1.0
    noise: float = float("nan")
    n_pairs: int = 0
    n_orbits: int = 0

    kind: ClassVar[Kind] = "estimate"
    assumptions: ClassVar[tuple[Assumption, ...]] = (
        Assumption("the group is finite and acts by orthogonal maps"),
        Assumption("orbits are drawn independently"),
        Assumption("each orbit is whole, or is a pair whose element was drawn uniformly"),
    )

    @property
    def score(self) -> float:
        """How much more often pairs are explained than hard negatives: 1 is perfect, 0 is nothing."""
        return self.coverage - self.false_coverage

    def __str__(self) -> str:
        head = f"group of order {self.order} claimed" if self.claimed else "no group claimed"
        if not self.n_pairs:
            return f"{head}: {self.reason}"
        return (
            f"{head}: {self.reason}\n{self.coverage:.1%} of {self.n_pairs} held-out pairs explained, "
            f"{self.false_coverage:.1%} of hard negatives ({self.kind})"
        )


def judge(
    matrices: Array,
    table: NDArray[np.int64],
    held: list[Array],
    everything: list[Array],
    noise: float,
    rng: np.random.Generator,
    *,
    complete: bool = True,
) -> GroupEvidence:
    """Judge a group, given as exact matrices, on held-out orbits.

    Args:
        matrices: The elements, (order, d, d), identity first.
        table: Their multiplication table.
        held: Orbits that were not used to find them, each (m, d).
        everything: All orbits; which elements pairs use is counted on all of them.
        noise: Standard deviation of the noise in a coordinate.
        rng: Draws hard negatives.
        complete: Whether orbits of three or more must be whole, and pairs must use all elements alike.
    """
    pairs = pairs_of(held, rng)
    limit = residual_limit(noise, matrices.shape[1])
    moved = np.linalg.norm(pairs.first - pairs.second, axis=1) > limit
    pairs = pairs.take(moved)
    facts = {"order": len(matrices), "noise": noise, "n_pairs": len(pairs)}
    n_orbits = len(np.unique(pairs.orbit))
    if n_orbits < MIN_HELD_OUT_ORBITS:
        reason = (
            f"only {n_orbits} held-out orbits have two different members; {MIN_HELD_OUT_ORBITS} are "
            f"needed"
        )
        return GroupEvidence(False, reason, n_orbits=n_orbits, **facts)  # type: ignore[arg-type]
    distances, _ = nearest_elements(matrices, pairs.first, pairs.second)
    wrong = _negative_distances(matrices, pairs, rng)
    hits, false = distances <= limit, wrong <= limit
    found = {
        **facts,
        "n_orbits": n_orbits,
        "coverage": float(hits.mean()),
        "false_coverage": float(false.mean()),
        "separation": separation(distances, wrong),
        "chance": _chance(hits, false, pairs.orbit),
        "closure": closure(matrices, held, limit) if complete else float("nan"),
        "evenness": evenness(matrices, everything, limit) if complete else float("nan"),
    }
    objection = _objection(found, len(table))
    reason = objection or "its elements predict held-out members and no hard negatives"
    return GroupEvidence(objection is None, reason, **found)  # type: ignore[arg-type]


def hard_negatives(X: Array, others: Array, matrices: Array, rng: np.random.Generator) -> Array:
    """Return, for each row of X, vectors of its norm that no element should reach: (3 n, d).

    Members of other orbits scaled to the same norm, the row with its coordinates shuffled, and the row
    moved by an element whose axes were turned. Those that happen to be the image under an element, such
    as a shuffle that belongs to the group, are NaN.

    Args:
        X: Where pairs start, (n, d).
        others: Members of other orbits, (n, d).
        matrices: The elements, (order, d, d).
        rng: Draws the negatives.

    >>> rng = np.random.default_rng(0)
    >>> X, others = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    >>> found = hard_negatives(X, others, np.eye(3)[None], rng)
    >>> found.shape
    (12, 3)
    """
    n, d = X.shape
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    lengths = np.linalg.norm(others, axis=1, keepdims=True)
    scaled = others * norms / np.where(lengths > 0, lengths, 1.0)
    scaled[(lengths == 0).ravel()] = np.nan
    shuffled, turned = np.empty((n, d)), np.empty((n, d))
    near = 1e-6 * np.sqrt(d)  # a shuffle that is an element agrees with its matrix to rounding
    for start in range(min(n, HARD_NEGATIVE_MAPS)):
        rows = slice(start, None, HARD_NEGATIVE_MAPS)
        shuffle = np.eye(d)[rng.permutation(d)]
        skew = rng.standard_normal((d, d)) * HARD_NEGATIVE_TURN
        axes, _ = np.linalg.qr(np.eye(d) + skew - skew.T)
        conjugate = axes @ matrices[rng.integers(len(matrices))] @ axes.T
        for kept, map_ in ((shuffled, shuffle), (turned, conjugate)):
            belongs = any(np.abs(matrix - map_).max() <= near for matrix in matrices)
            kept[rows] = np.nan if belongs else X[rows] @ map_.T
    return np.concatenate([scaled, shuffled, turned])


def _negative_distances(matrices: Array, pairs: Pairs, rng: np.random.Generator) -> Array:
    order = rng.permutation(len(pairs))
    foreign = pairs.orbit[order] != pairs.orbit
    others = np.where(foreign[:, None], pairs.first[order], np.nan)
    negatives = hard_negatives(pairs.first, others, matrices, rng)
    usable = np.isfinite(negatives).all(axis=1)
    starts = np.tile(pairs.first, (3, 1))[usable]
    return nearest_elements(matrices, starts, negatives[usable])[0]


def _chance(hits: NDArray[np.bool_], false: NDArray[np.bool_], orbit: NDArray[np.int64]) -> float:
    """Bound the chance of the coverage by counting orbits, of which pairs are not independent copies."""
    from scipy.stats import beta, binom

    numbers = np.unique(orbit)
    whole = sum(bool(hits[orbit == number].mean() >= MIN_COVERAGE) for number in numbers)
    easy = float(beta.ppf(0.999, false.sum() + 1, len(false) - false.sum() or 1))
    return float(binom.sf(whole - 1, len(numbers), easy))


def _objection(found: dict[str, float], order: int) -> str | None:
    """Return the first condition that fails, in words, or None."""
    if order < 2:
        return "samples of one orbit are equal: only the identity relates them"
    if found["coverage"] < MIN_COVERAGE:
        return f"the maps found explain only {found['coverage']:.0%} of held-out pairs"
    if found["false_coverage"] > MAX_FALSE_COVERAGE or found["separation"] < MIN_SEPARATION:
        return (
            f"the maps also explain {found['false_coverage']:.0%} of hard negatives: "
            f"too many elements for this noise"
        )
    if found["closure"] < max(MIN_COVERAGE, 1.0 - MISSING_MEMBER_SHARE / order):
        return (
            f"only {found['closure']:.0%} of the images of members are members: orbits are not whole "
            f"(complete=False if members were drawn at random)"
        )
    if found["evenness"] < MIN_EVENNESS:
        return (
            "pairs use the elements too unevenly, or are too few, for a group whose elements were drawn "
            "alike (complete=False to allow it)"
        )
    if found["chance"] > MAX_CHANCE:
        return f"too few held-out orbits to exclude chance (bound {found['chance']:.2g})"
    return None


def closure(matrices: Array, held: list[Array], limit: float) -> float:
    """Return the share of images of members that are members, over orbits of three or more."""
    shares = []
    for members in held:
        if len(members) < 3 and len(matrices) > 2:
            continue
        shares.append(_closure_of(matrices, members, limit))
    return float(np.mean(shares)) if shares else float("nan")


def _closure_of(matrices: Array, members: Array, limit: float) -> float:
    """Return the share of images of the members of one orbit that are members."""
    from scipy.spatial import cKDTree

    tree = cKDTree(members)
    hits = [np.isfinite(tree.query(members @ g.T, distance_upper_bound=limit)[0]) for g in matrices]
    return float(np.mean(hits))


def evenness(matrices: Array, orbits: list[Array], limit: float) -> float:
    """Return the chance of elements other than the identity being used as unevenly by pairs.

    Zero if one of them is never used: a part of a group would pass for the whole if pairs are few. Pairs
    that are whole orbits by themselves, of samples that many elements leave alone, say nothing here.
    """
    from scipy.stats import chi2

    pairs = [members for members in orbits if len(members) == 2]
    if not pairs or len(matrices) < 3:
        return float("nan")
    first, second = np.array(pairs).transpose(1, 0, 2)
    whole = np.ones(len(first), dtype=bool)
    for g in matrices:
        for start in (first, second):
            gaps = [np.linalg.norm(start @ g.T - end, axis=1) for end in (first, second)]
            whole &= np.minimum(*gaps) <= limit
    if whole.all():
        return float("nan")
    distance, element = nearest_elements(matrices, first[~whole], second[~whole])
    used = np.bincount(element[distance <= limit], minlength=len(matrices))[1:]
    if used.sum() < MIN_PAIRS_PER_ELEMENT * len(used) or not used.all():
        return 0.0
    mean = used.mean()
    return float(chi2.sf(((used - mean) ** 2).sum() / mean, len(used) - 1))

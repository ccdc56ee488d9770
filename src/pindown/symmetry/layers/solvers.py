"""Three ways to all maps that commute with given matrices: orbits of pairs, averages, equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.layers.representations import Representation, matrices_of

# A basis of so many numbers takes one gigabyte.
LARGEST_BASIS = 2**27
# The equations of d_in * d_out unknowns take minutes to decompose beyond this many.
LARGEST_UNKNOWNS = 4096
# How far a sum of products of traces may be from a whole number and still be rounding.
CHARACTER_TOLERANCE = 1e-6
# Singular values below this share of the largest are rounding of zero.
RANK_TOLERANCE = 1e-9
# Random matrices beyond the dimension: they show that the range has no more directions.
EXTRA_PROBES = 8
# Between the two tolerances a singular value is neither clearly zero nor clearly not.
CLEAR_RANK = 100.0
ILL_CONDITIONED = (
    "the matrices are too badly conditioned to tell which maps commute; change to a basis in which they "
    "have entries of one size, orthogonal matrices if possible."
)


@dataclass(frozen=True)
class Problem:
    """Matrices of both sides, which elements generate, and whether they are known to be a group."""

    inner: Array
    outer: Array
    generators: tuple[int, ...]
    inverses: NDArray[np.int64] | None

    @property
    def unknowns(self) -> int:
        """Entries of a map."""
        return self.inner.shape[1] * self.outer.shape[1]


def both_sides(rep_in: Representation, rep_out: Representation) -> Problem:
    """Return the problem, or say why the two sides are not of one group."""
    groups = [rep for rep in (rep_in, rep_out) if isinstance(rep, Group)]
    if len(groups) == 2 and not np.array_equal(groups[0].table, groups[1].table):
        raise ValueError(
            f"both sides must be one group with its elements in one order; got {groups[0].name} of "
            f"order {groups[0].order} and {groups[1].name} of order {groups[1].order}."
        )
    inner, outer = matrices_of(rep_in), matrices_of(rep_out)
    if len(inner) != len(outer):
        raise ValueError(
            f"both sides need a matrix for each element; got {len(inner)} and {len(outer)}."
        )
    if not groups:
        return Problem(inner, outer, tuple(range(len(inner))), None)
    for rep in (rep_in, rep_out):
        if not isinstance(rep, Group):
            groups[0].acting_by(rep)  # refuses matrices that do not multiply as the group does
    return Problem(inner, outer, groups[0].generators, groups[0].inverses)


def mean_character(problem: Problem) -> float:
    """Return the mean product of the traces: the dimension, if the matrices are a finite group."""
    traces = (np.trace(part, axis1=1, axis2=2) for part in (problem.inner, problem.outer))
    return float(np.mean(np.prod(list(traces), axis=0)))


def as_permutations(matrices: Array) -> NDArray[np.int64] | None:
    """Return where each basis vector goes, (order, d), or None if a matrix is no permutation."""
    ones = (matrices == 1.0).sum(axis=1)
    if not (np.count_nonzero(matrices, axis=(1, 2)) == matrices.shape[1]).all() or not (ones == 1).all():
        return None
    if not ((matrices == 1.0).sum(axis=2) == 1).all():
        return None
    return np.argmax(matrices, axis=1)


def pair_orbits(
    outer: NDArray[np.int64], inner: NDArray[np.int64], generators: tuple[int, ...]
) -> Array:
    """Return the indicators of the orbits of index pairs, scaled to norm one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, columns = outer.shape[1], inner.shape[1]
    pairs = np.arange(rows * columns)
    k, label = len(pairs), pairs
    for g in generators:
        goes = label[(outer[g][:, None] * columns + inner[g]).ravel()]
        if not np.array_equal(goes, label):
            links = coo_array((np.ones(len(pairs)), (label, goes)), shape=(k, k))
            k, joined = connected_components(links, directed=False)
            label = joined[label]
    _check_size(k, rows * columns)
    basis = np.zeros((k, rows * columns))
    basis[label, pairs] = 1.0 / np.sqrt(np.bincount(label))[label]
    return basis.reshape(k, rows, columns)


def averaged_range(problem: Problem) -> Array | None:
    """Return the range of the averaging projector, or None if the matrices are not a whole group."""
    mean = mean_character(problem)
    k = round(mean)
    if abs(mean - k) > CHARACTER_TOLERANCE * (1 + abs(mean)) or k < 0:
        return None
    _check_size(k, problem.unknowns)
    shape = (-1, problem.outer.shape[1], problem.inner.shape[1])
    try:
        backward = _inverse(problem)
    except np.linalg.LinAlgError:
        return None
    probes = min(problem.unknowns, k + EXTRA_PROBES)
    random = np.random.default_rng(0).standard_normal((probes, problem.unknowns)).reshape(shape)
    images = _average(random, problem.outer, backward).reshape(probes, -1)
    _, sizes, directions = np.linalg.svd(images, full_matrices=False)
    beyond = sizes[k] if k < len(sizes) else 0.0
    reference = float(np.linalg.norm(random)) / np.sqrt(probes)
    if beyond > RANK_TOLERANCE * reference or (k and sizes[k - 1] <= RANK_TOLERANCE * reference):
        return None
    if not k:
        return np.zeros((0, *shape[1:]))
    # Averaging once more removes the rounding that small singular values have magnified.
    again = _average(directions[:k].reshape(shape), problem.outer, backward).reshape(k, -1)
    basis = np.linalg.qr(again.T)[0].T.reshape(shape)
    return basis if _commutes(basis, problem) else None


def _average(maps: Array, outer: Array, backward: Array) -> Array:
    total = np.zeros_like(maps)
    for left, right in zip(outer, backward, strict=True):
        total += left @ maps @ right
    return total / len(outer)


def _inverse(problem: Problem) -> Array:
    if problem.inverses is not None:
        return problem.inner[problem.inverses]
    return np.asarray(np.linalg.inv(problem.inner), dtype=np.float64)


def _commutes(basis: Array, problem: Problem) -> bool:
    for g in problem.generators:
        scale = 1.0 + np.linalg.norm(problem.outer[g]) + np.linalg.norm(problem.inner[g])
        wrong = np.abs(problem.outer[g] @ basis - basis @ problem.inner[g]).max(initial=0.0)
        if wrong > RANK_TOLERANCE * scale:
            return False
    return True


def null_space(problem: Problem) -> Array:
    """Solve the equations of one generator after the other, each within the solutions so far."""
    rows, columns = problem.outer.shape[1], problem.inner.shape[1]
    if problem.unknowns > LARGEST_UNKNOWNS:
        raise ValueError(
            f"{rows} x {columns} unknowns are too many for matrices that are not a whole finite group; "
            f"give all elements of the group, or at most {LARGEST_UNKNOWNS} unknowns."
        )
    basis = np.eye(problem.unknowns).reshape(-1, rows, columns)
    for g in problem.generators:
        if not len(basis):
            break
        wrong = (problem.outer[g] @ basis - basis @ problem.inner[g]).reshape(len(basis), -1)
        scale = np.linalg.norm(problem.outer[g], 2) + np.linalg.norm(problem.inner[g], 2)
        left, sizes, _ = np.linalg.svd(wrong)
        kept = np.concatenate([sizes, np.zeros(len(left) - len(sizes))]) <= RANK_TOLERANCE * scale
        if (sizes[~kept[: len(sizes)]] < CLEAR_RANK * RANK_TOLERANCE * scale).any():
            raise ValueError(ILL_CONDITIONED)
        basis = np.tensordot(left[:, kept].T, basis, axes=1)
    return basis


def _check_size(k: int, unknowns: int) -> None:
    if k * unknowns > LARGEST_BASIS:
        raise ValueError(
            f"the basis has {k} matrices of {unknowns} numbers, more than {LARGEST_BASIS} in all; use "
            f"smaller representations, or GroupConv for the regular one."
        )

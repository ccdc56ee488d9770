r"""All linear maps that commute with a group: an orthonormal basis, exactly counted.

.. math:: \{M : \rho_{out}(g) M = M \rho_{in}(g) \text{ for all } g\}, \qquad
          \dim = \frac1{|G|} \sum_g \chi_{out}(g) \chi_{in}(g^{-1}), \quad \chi = \operatorname{tr}\rho.

Between permutation representations the maps are those that are constant on the orbits of pairs of
indices. Otherwise the average :math:`|G|^{-1}\sum_g \rho_{out}(g) M \rho_{in}(g)^{-1}` projects
onto them, and random matrices find its range. Matrices that are not all of a finite group have no such
average: for them the equations are solved by a singular value decomposition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.layers.representations import Representation, matrices_of, trivial
from pindown.symmetry.tuning import EXTRA_PROBES, MAX_BASIS_ENTRIES, MAX_UNKNOWNS
from pindown.validation import choice

METHODS = ("auto", "orbits", "average", "null")
# How far a sum of products of traces may be from an integer and still be rounding.
CHARACTER_TOLERANCE = 1e-6
# Singular values below this share of the largest are rounding of zero.
RANK_TOLERANCE = 1e-9
# Between the two tolerances a singular value is neither clearly zero nor clearly not.
CLEAR_RANK = 100.0
ILL_CONDITIONED = (
    "the matrices are too badly conditioned to tell which maps commute; change to a basis in which they "
    "have entries of one size, orthogonal matrices if possible."
)


def equivariant_basis(
    rep_in: Representation, rep_out: Representation | None = None, *, method: str = "auto"
) -> Array:
    r"""Return an orthonormal basis of all matrices M with :math:`\rho_{out}(g)M = M\rho_{in}(g)`.

    Args:
        rep_in: The group acting on inputs: a :class:`~pindown.symmetry.Group`, or matrices
            ``(order, d_in, d_in)``. Matrices may be of generators only, or of an infinite group.
        rep_out: The same group acting on outputs, its elements in the same order; None for ``rep_in``.
        method: ``"orbits"`` (permutation matrices), ``"average"`` (all elements of a finite group),
            ``"null"`` (any matrices, slow), or ``"auto"``: the first of these that applies.

    Returns:
        Array ``(k, d_out, d_in)``; the sum of the products of entries of two of its matrices is 0, of
        one with itself 1. Without commuting maps other than zero, k is 0.

    Raises:
        ValueError: If the two are not of one group, the method does not apply, or it is too much.

    Example:
        What commutes with all permutations of three things treats all alike, or all others alike:

        >>> from pindown.symmetry import symmetric
        >>> basis = equivariant_basis(symmetric(3).permuting())
        >>> (basis > 0).astype(int).tolist()
        [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]]]

    Lecture course, section on equivariance and convolution (after Kondor and Trivedi 2018).
    """
    choice("method", method, METHODS)
    problem = _both_sides(rep_in, rep_in if rep_out is None else rep_out)
    if method in ("auto", "orbits"):
        maps = [_as_permutations(part) for part in (problem.outer, problem.inner)]
        if maps[0] is not None and maps[1] is not None:
            return _pair_orbits(maps[0], maps[1], problem.generators)
        if method == "orbits":
            raise ValueError("method 'orbits' needs permutation matrices on both sides; use 'auto'.")
    if method in ("auto", "average"):
        found = _averaged_range(problem)
        if found is not None:
            return found
        if problem.inverses is not None:
            raise ValueError(ILL_CONDITIONED)
        if method == "average":
            raise ValueError(
                "method 'average' needs the matrices of all elements of a finite group; these are not "
                "closed under products. Use 'auto'."
            )
    return _null_space(problem)


def invariant_basis(representation: Representation, *, method: str = "auto") -> Array:
    r"""Return an orthonormal basis ``(k, d)`` of the vectors with :math:`\rho(g)v = v`: the biases.

    >>> from pindown.symmetry import cyclic
    >>> (invariant_basis(cyclic(4)) * 2).tolist()
    [[1.0, 1.0, 1.0, 1.0]]

    Lecture course, section on equivariance and convolution.
    """
    if isinstance(representation, Group):
        order = representation.order
    else:
        representation = matrices_of(representation)
        order = len(representation)
    return equivariant_basis(trivial(order), representation, method=method)[:, :, 0]


def expected_dimension(rep_in: Representation, rep_out: Representation | None = None) -> int:
    r"""Return :math:`|G|^{-1}\sum_g \chi_{out}(g)\chi_{in}(g^{-1})`, how many maps commute.

    Real matrices of a finite group have :math:`\chi(g^{-1}) = \chi(g)`, so that traces are all it takes.

    Raises:
        ValueError: If the sum is not an integer: the matrices are not all of a finite group.

    Example:
        >>> from pindown.symmetry import symmetric
        >>> expected_dimension(symmetric(3)), expected_dimension(symmetric(3).permuting())
        (6, 2)

    Lecture course, section on equivariance and convolution.
    """
    problem = _both_sides(rep_in, rep_in if rep_out is None else rep_out)
    mean = _mean_character(problem)
    if abs(mean - round(mean)) > CHARACTER_TOLERANCE * (1 + abs(mean)):
        raise ValueError(
            f"the mean product of traces is {mean:.6g}, not an integer; give one matrix for each "
            f"element of a finite group."
        )
    return round(mean)


@dataclass(frozen=True)
class _Problem:
    """Matrices of both sides, which elements generate, and whether they are known to be a group."""

    inner: Array
    outer: Array
    generators: tuple[int, ...]
    inverses: NDArray[np.int64] | None

    @property
    def unknowns(self) -> int:
        """Entries of a map."""
        return self.inner.shape[1] * self.outer.shape[1]


def _both_sides(rep_in: Representation, rep_out: Representation) -> _Problem:
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
        return _Problem(inner, outer, tuple(range(len(inner))), None)
    for rep in (rep_in, rep_out):
        if not isinstance(rep, Group):
            groups[0].acting_by(rep)  # refuses matrices that do not multiply as the group does
    return _Problem(inner, outer, groups[0].generators, groups[0].inverses)


def _mean_character(problem: _Problem) -> float:
    """Return the mean product of the traces: the dimension, if the matrices are a finite group."""
    traces = (np.trace(part, axis1=1, axis2=2) for part in (problem.inner, problem.outer))
    return float(np.mean(np.prod(list(traces), axis=0)))


def _as_permutations(matrices: Array) -> NDArray[np.int64] | None:
    """Return where each basis vector goes, (order, d), or None if a matrix is no permutation."""
    ones = (matrices == 1.0).sum(axis=1)
    if not (np.count_nonzero(matrices, axis=(1, 2)) == matrices.shape[1]).all() or not (ones == 1).all():
        return None
    if not ((matrices == 1.0).sum(axis=2) == 1).all():
        return None
    return np.argmax(matrices, axis=1)


def _pair_orbits(
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


def _averaged_range(problem: _Problem) -> Array | None:
    """Return the range of the averaging projector, or None if the matrices are not a whole group."""
    mean = _mean_character(problem)
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


def _inverse(problem: _Problem) -> Array:
    if problem.inverses is not None:
        return problem.inner[problem.inverses]
    return np.asarray(np.linalg.inv(problem.inner), dtype=np.float64)


def _commutes(basis: Array, problem: _Problem) -> bool:
    for g in problem.generators:
        scale = 1.0 + np.linalg.norm(problem.outer[g]) + np.linalg.norm(problem.inner[g])
        wrong = np.abs(problem.outer[g] @ basis - basis @ problem.inner[g]).max(initial=0.0)
        if wrong > RANK_TOLERANCE * scale:
            return False
    return True


def _null_space(problem: _Problem) -> Array:
    """Solve the equations of one generator after the other, each within the solutions so far."""
    rows, columns = problem.outer.shape[1], problem.inner.shape[1]
    if problem.unknowns > MAX_UNKNOWNS:
        raise ValueError(
            f"{rows} x {columns} unknowns are too many for matrices that are not a whole finite group; "
            f"give all elements of the group, or at most {MAX_UNKNOWNS} unknowns."
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
    if k * unknowns > MAX_BASIS_ENTRIES:
        raise ValueError(
            f"the basis has {k} matrices of {unknowns} numbers, more than {MAX_BASIS_ENTRIES} in all; "
            f"use smaller representations, or GroupConv for the regular one."
        )

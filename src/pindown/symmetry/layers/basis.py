r"""All linear maps that commute with a group: an orthonormal basis, exactly counted.

.. math:: \{M : \rho_{out}(g) M = M \rho_{in}(g) \text{ for all } g\}, \qquad
          \dim = \frac1{|G|} \sum_g \chi_{out}(g) \chi_{in}(g^{-1}), \quad \chi = \operatorname{tr}\rho.

Between permutation representations the maps are those that are constant on the orbits of pairs of
indices. Otherwise the average :math:`|G|^{-1}\sum_g \rho_{out}(g) M \rho_{in}(g)^{-1}` projects
onto them, and random matrices find its range. Matrices that are not all of a finite group have no such
average: for them the equations are solved by a singular value decomposition.
"""

from __future__ import annotations

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.layers.representations import Representation, matrices_of, trivial
from pindown.symmetry.layers.solvers import (
    CHARACTER_TOLERANCE,
    ILL_CONDITIONED,
    as_permutations,
    averaged_range,
    both_sides,
    mean_character,
    null_space,
    pair_orbits,
)

METHODS = ("auto", "orbits", "average", "null")


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
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    problem = both_sides(rep_in, rep_in if rep_out is None else rep_out)
    if method in ("auto", "orbits"):
        maps = [as_permutations(part) for part in (problem.outer, problem.inner)]
        if maps[0] is not None and maps[1] is not None:
            return pair_orbits(maps[0], maps[1], problem.generators)
        if method == "orbits":
            raise ValueError("method 'orbits' needs permutation matrices on both sides; use 'auto'.")
    if method in ("auto", "average"):
        found = averaged_range(problem)
        if found is not None:
            return found
        if problem.inverses is not None:
            raise ValueError(ILL_CONDITIONED)
        if method == "average":
            raise ValueError(
                "method 'average' needs the matrices of all elements of a finite group; these are not "
                "closed under products. Use 'auto'."
            )
    return null_space(problem)


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
        ValueError: If the sum is not a whole number: the matrices are not all of a finite group.

    Example:
        >>> from pindown.symmetry import symmetric
        >>> expected_dimension(symmetric(3)), expected_dimension(symmetric(3).permuting())
        (6, 2)

    Lecture course, section on equivariance and convolution.
    """
    problem = both_sides(rep_in, rep_in if rep_out is None else rep_out)
    mean = mean_character(problem)
    if abs(mean - round(mean)) > CHARACTER_TOLERANCE * (1 + abs(mean)):
        raise ValueError(
            f"the mean product of traces is {mean:.6g}, not a whole number; give one matrix for each "
            f"element of a finite group."
        )
    return round(mean)

r"""Matrices with a group in them: sums and products of representations, cosets, convolutions, templates.

The columns of :func:`~pindown.symmetry.signatures.projections.orbit_matrix` W are the images of one
template. For shifts W is circulant, :math:`W^Tx` the circular *cross-correlation* of x with w, and
:math:`Wx` their convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.network import ReluNetwork
from pindown.symmetry.axioms import check_representation
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import orbit_matrix

# A group with its matrices, or one matrix for each element.
Representation: TypeAlias = Group | ArrayLike
# Products of rotation matrices that were computed from angles are off by rounding.
ORTHOGONALITY_TOLERANCE = 1e-10


def matrices_of(representation: Representation) -> Array:
    """Return the matrices ``(order, d, d)``.

    >>> matrices_of([[[1.0]], [[-1.0]]]).shape
    (2, 1, 1)
    """
    if isinstance(representation, Group):
        return representation.matrices
    return check_representation(representation)


def direct_sum(*representations: Representation) -> Array:
    r"""Return the matrices of :math:`\rho_1 \oplus \dots \oplus \rho_m`: blocks on the diagonal.

    >>> direct_sum([[[1.0]], [[1.0]]], [[[1.0]], [[-1.0]]])[1].tolist()
    [[1.0, 0.0], [0.0, -1.0]]

    Lecture course, section on equivariance and convolution.
    """
    parts = _alike(representations)
    sizes = [part.shape[1] for part in parts]
    total = np.zeros((len(parts[0]), sum(sizes), sum(sizes)))
    start = 0
    for part, size in zip(parts, sizes, strict=True):
        total[:, start : start + size, start : start + size] = part
        start += size
    return total


def tensor_product(*representations: Representation) -> Array:
    r"""Return the matrices of :math:`\rho_1 \otimes \dots \otimes \rho_m`: Kronecker products.

    >>> tensor_product([[[1.0]], [[-1.0]]], [[[1.0]], [[-1.0]]]).ravel().tolist()
    [1.0, 1.0]

    Lecture course, section on equivariance and convolution.
    """
    first, *others = _alike(representations)
    for part in others:
        size = first.shape[1] * part.shape[1]
        first = np.einsum("gij,gkl->gikjl", first, part).reshape(len(part), size, size)
    return first


def trivial(order: int, dimension: int = 1) -> Array:
    """Return identity matrices: an action that moves nothing.

    >>> trivial(3).shape
    (3, 1, 1)
    """
    return np.broadcast_to(np.eye(dimension), (order, dimension, dimension)).copy()


def left_cosets(group: Group, subgroup: Sequence[int]) -> NDArray[np.int64]:
    r"""Return the cosets :math:`uH`, one per row, as indices of elements; the first row is H.

    Args:
        group: The group G.
        subgroup: Indices of the elements of H.

    Returns:
        Array ``(|G| / |H|, |H|)``.

    Raises:
        ValueError: If the indices are not a subgroup.

    Example:
        >>> from pindown.symmetry.groups import cyclic
        >>> left_cosets(cyclic(6), [0, 3]).tolist()
        [[0, 3], [1, 4], [2, 5]]

    Lecture course, section on equivariance and convolution.
    """
    members = np.unique(np.asarray(subgroup))
    inside = (
        members.size > 0 and members.dtype.kind in "iu" and members[0] >= 0 and members[-1] < group.order
    )
    if not inside or not np.isin(group.table[np.ix_(members, members)], members).all():
        raise ValueError(
            f"subgroup must list indices of elements of {group.name} that are closed under products; "
            f"got {list(subgroup)!r}."
        )
    every = np.sort(group.table[:, members], axis=1)
    return every[np.sort(np.unique(every[:, 0], return_index=True)[1])]


def coset_representation(group: Group, subgroup: Sequence[int]) -> Group:
    r"""Return the group acting on functions on :math:`G/H`: g sends the coset uH to guH.

    >>> from pindown.symmetry.groups import dihedral
    >>> coset_representation(dihedral(4), [0, 4]).matrices.shape  # the corners of a square
    (8, 4, 4)

    Lecture course, section on equivariance and convolution.
    """
    cosets = left_cosets(group, subgroup)
    home = np.empty(group.order, dtype=np.int64)
    home[cosets] = np.arange(len(cosets))[:, None]
    moved = home[group.table[:, cosets[:, 0]]]
    matrices = np.zeros((group.order, len(cosets), len(cosets)))
    matrices[np.arange(group.order)[:, None], moved, np.arange(len(cosets))] = 1.0
    return group.acting_by(matrices)


def is_orthogonal(matrices: Array) -> bool:
    """Say whether all matrices keep lengths.

    >>> is_orthogonal(np.eye(2)[None]), is_orthogonal(2 * np.eye(2)[None])
    (True, False)
    """
    gram = np.swapaxes(matrices, 1, 2) @ matrices
    return bool(np.abs(gram - np.eye(matrices.shape[1])).max() <= ORTHOGONALITY_TOLERANCE)


def _alike(representations: Sequence[Representation]) -> list[Array]:
    parts = [matrices_of(each) for each in representations]
    if not parts:
        raise ValueError("no representation was given; give at least one.")
    if len({len(part) for part in parts}) > 1:
        orders = [len(part) for part in parts]
        raise ValueError(f"representations of one group have one number of matrices; got {orders}.")
    return parts


def convolution_matrix(weights: ArrayLike, group: Group) -> Array:
    r"""Return the matrix of :math:`f \mapsto f * w` on functions on the group.

    Its entry (u, s) is :math:`w(s^{-1}u)`. Such matrices are all that commute with left translations.

    >>> from pindown.symmetry import cyclic
    >>> convolution_matrix([1.0, 2.0, 3.0], cyclic(3)).tolist()
    [[1.0, 3.0, 2.0], [2.0, 1.0, 3.0], [3.0, 2.0, 1.0]]

    Lecture course, section on equivariance and convolution (Kondor and Trivedi 2018).
    """
    w = _vector(weights)
    if len(w) != group.order:
        raise ValueError(f"a filter on {group.name} has {group.order} weights; got {len(w)}.")
    return w[group.table[group.inverses].T]


def group_convolution(f: ArrayLike, weights: ArrayLike, group: Group) -> Array:
    r"""Return :math:`(f * w)(u) = \sum_v f(uv^{-1})w(v)`, for f of shape ``(..., order)``.

    >>> from pindown.symmetry import cyclic
    >>> group_convolution([1.0, 0.0, 0.0], [1.0, 2.0, 3.0], cyclic(3)).tolist()
    [1.0, 2.0, 3.0]

    Lecture course, section on equivariance and convolution.
    """
    functions = np.asarray(f, dtype=float)
    if functions.shape[-1:] != (group.order,):
        raise ValueError(f"functions on {group.name} have {group.order} values; got {functions.shape}.")
    return functions @ convolution_matrix(weights, group).T


def template_network(
    templates: Sequence[ArrayLike], group: Group, *, biases: Sequence[float] | None = None
) -> ReluNetwork:
    r"""Return the invariant ReLU network :math:`|G|^{-1} \sum_i \Phi_L(x)_i`, a layer for each template.

    .. math:: \Phi_\ell = \mathrm{relu}(W_\ell^T \Phi_{\ell-1} + b_\ell 1), \qquad \Phi_0 = x,

    where the columns of :math:`W_1` are the images of the first template and those of later ones the
    translates of a function on the group.

    Args:
        templates: A vector that the group acts on, then functions on the group, ``(order,)`` each.
        group: A group acting by orthogonal matrices.
        biases: One for each layer; None for zeros. Without biases x and -x may be confused.

    Returns:
        A network with one output, for every tool of this package.

    Raises:
        ValueError: If the action is not orthogonal or a template has the wrong size.

    Example:
        >>> from pindown.symmetry import cyclic
        >>> net = template_network([[1.0, -1.0, 0.0]], cyclic(3))
        >>> net([[5.0, 2.0, 1.0], [1.0, 5.0, 2.0]]).round(9).ravel().tolist()  # one orbit, one value
        [1.333333333, 1.333333333]

    Lecture course, section on deep networks as templates.
    """
    if not len(templates):
        raise ValueError("templates is empty; give one vector for each layer.")
    first, *later = (_vector(template) for template in templates)
    offsets = [0.0] * len(templates) if biases is None else [float(b) for b in biases]
    if len(offsets) != len(templates):
        raise ValueError(f"{len(templates)} templates need as many biases; got {len(offsets)}.")
    if not is_orthogonal(group.matrices):
        raise ValueError(f"{group.name} must act by orthogonal matrices here; use GroupLift otherwise.")
    sides = [orbit_matrix(first, group), *(orbit_matrix(w, group.regular()) for w in later)]
    layers = [(W.T, np.full(group.order, b)) for W, b in zip(sides, offsets, strict=True)]
    mean = (np.full((1, group.order), 1.0 / group.order), np.zeros(1))
    return ReluNetwork.from_layers([*layers, mean])


def _vector(values: ArrayLike) -> Array:
    vector = np.asarray(values, dtype=float)
    if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
        raise ValueError(f"a template is a vector of finite numbers; got shape {vector.shape}.")
    return vector

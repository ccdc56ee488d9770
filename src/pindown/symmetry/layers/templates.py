r"""Dense matrices and networks with a group in them.

The columns of :func:`~pindown.symmetry.signatures.projections.orbit_matrix` W are the images of one
template. For shifts W is circulant, :math:`W^Tx` the circular *cross-correlation* of x with w, and
:math:`Wx` their convolution.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.network import ReluNetwork
from pindown.symmetry.groups import Group
from pindown.symmetry.layers.representations import is_orthogonal
from pindown.symmetry.signatures.projections import orbit_matrix


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

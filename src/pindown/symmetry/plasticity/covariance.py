"""Second moments of full orbits commute with the group: what that says of their principal components.

Those of data shown with their mirror images are even or odd, never in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import as_samples, check_degree
from pindown.validation import integer

# Eigenvalues closer than this share of the largest belong to one eigenspace.
SAME_EIGENVALUE = 1e-8
# Vectors leave a subspace, or add to a span, by more than this share of their length or not at all.
_LEAVES = 1e-8
# A reflection is its own inverse and keeps lengths, up to rounding of the matrix given.
_REFLECTION = 1e-9


@dataclass(frozen=True)
class Eigenspace:
    """An eigenvalue with an orthonormal basis of all its eigenvectors.

    Attributes:
        value: The eigenvalue.
        basis: Columns, (d, m).
        kind: ``"exact"``, up to rounding.
    """

    value: float
    basis: Array = field(repr=False)
    kind: Kind = "exact"

    @property
    def dimension(self) -> int:
        """The number m of independent eigenvectors."""
        return int(self.basis.shape[1])

    def __str__(self) -> str:
        return f"eigenvalue {self.value:.6g}, dimension {self.dimension}."


def orbit_covariance(templates: ArrayLike, group: Group) -> Array:
    r"""The second moments of the full orbits of some samples.

    .. math:: C = \frac{1}{Q |G|} \sum_g g\, T T^\top g^\top, \qquad T = (t_1, \dots, t_Q)

    If the action is orthogonal, C commutes with every element.

    Args:
        templates: One sample per orbit in rows, (Q, d).
        group: A group that acts on them.

    Returns:
        C, (d, d), not centred.

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_covariance([[1.0, 0.0, 0.0]], cyclic(3)).round(3)
    array([[0.333, 0.   , 0.   ],
           [0.   , 0.333, 0.   ],
           [0.   , 0.   , 0.333]])

    Lecture course, section on learning on orbits.
    """
    samples = as_samples(templates, "templates")
    check_degree(group, samples.shape[1])
    total = np.zeros((samples.shape[1], samples.shape[1]))
    for index in range(group.order):
        moved = group.act(index, samples)
        total += moved.T @ moved
    return total / (len(samples) * group.order)


def commutator_norm(C: ArrayLike, group: Group) -> float:
    r"""The largest entry of :math:`C g - g C` over all elements, relative to that of C.

    >>> from pindown.symmetry.groups import cyclic
    >>> commutator_norm(np.eye(3), cyclic(3)), commutator_norm(np.diag([1.0, 0.0, 0.0]), cyclic(3))
    (0.0, 1.0)

    Lecture course, section on learning on orbits.
    """
    matrix = _symmetric(C)
    check_degree(group, len(matrix))
    size = float(np.abs(matrix).max())
    largest = max(float(np.abs(matrix @ g - g @ matrix).max()) for g in group.matrices)
    return largest / size if size > 0 else 0.0


def eigenspaces(C: ArrayLike, *, tol: float = SAME_EIGENVALUE) -> list[Eigenspace]:
    """Group the eigenvectors of a symmetric matrix by eigenvalue, largest first.

    Args:
        C: Symmetric, (d, d).
        tol: Neighbouring eigenvalues this close, relative to the largest, count as one.

    >>> [str(space) for space in eigenspaces(np.diag([2.0, 1.0, 2.0]))]
    ['eigenvalue 2, dimension 2.', 'eigenvalue 1, dimension 1.']

    Lecture course, section on learning on orbits.
    """
    values, vectors = np.linalg.eigh(_symmetric(C))
    values, vectors = values[::-1], vectors[:, ::-1]
    size = float(np.abs(values).max())
    cuts = np.flatnonzero(np.diff(-values) > tol * size) + 1
    return [
        Eigenspace(float(values[part].mean()), vectors[:, part])
        for part in np.split(np.arange(len(values)), cuts)
    ]


def is_invariant_subspace(basis: ArrayLike, group: Group) -> bool:
    """Whether every element keeps the span of some columns.

    >>> from pindown.symmetry.groups import cyclic
    >>> is_invariant_subspace(np.ones((3, 1)), cyclic(3))
    True
    >>> is_invariant_subspace(np.eye(3)[:, :1], cyclic(3))
    False

    Lecture course, section on learning on orbits.
    """
    columns = np.asarray(basis, dtype=float)
    if columns.ndim != 2 or 0 in columns.shape:
        raise ValueError(f"basis must be columns (d, m); got shape {columns.shape}.")
    check_degree(group, len(columns))
    frame, _ = np.linalg.qr(columns)
    moved = group.matrices @ frame
    outside = moved - frame @ (frame.T @ moved)
    return bool(np.abs(outside).max() <= _LEAVES)


def orbit_span(w: ArrayLike, group: Group) -> int:
    r"""The dimension of the span of an orbit.

    For w in an eigenspace E of a matrix that commutes with the group it is at most dim E, with equality
    for every w only if the group acts irreducibly on E.

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_span([1.0, 1.0, 1.0], cyclic(3)), orbit_span([1.0, 0.0, 0.0], cyclic(3))
    (1, 3)

    Lecture course, section on learning on orbits (irreducibility added).
    """
    orbit = group.orbit(as_samples(w, "w")[0])
    values = np.linalg.svd(orbit, compute_uv=False)
    return int((values > _LEAVES * values[0]).sum()) if values[0] > 0 else 0


def _symmetric(C: ArrayLike) -> Array:
    matrix = np.asarray(C, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"a covariance is a square matrix; got shape {matrix.shape}.")
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise ValueError("a covariance is symmetric and finite; this matrix is not.")
    return (matrix + matrix.T) / 2


@dataclass(frozen=True)
class MirrorComponents:
    """Principal components of mirrored data.

    Attributes:
        components: In rows, (k, d), by falling eigenvalue.
        parities: +1 for even (R w = w), -1 for odd (R w = -w), (k,).
        eigenvalues: The eigenvalue of each, (k,).
        degenerate: Whether the eigenvalue has other eigenvectors, (k,): those are combined here so that
            each is even or odd, and any mixture would be an eigenvector as well.
        asymmetry: The largest entry of R w - parity w.
        kind: ``"exact"``, up to rounding.
    """

    components: Array = field(repr=False)
    parities: NDArray[np.int64]
    eigenvalues: Array = field(repr=False)
    degenerate: NDArray[np.bool_] = field(repr=False)
    asymmetry: float
    kind: Kind = "exact"

    def __str__(self) -> str:
        signs = " ".join("+" if p > 0 else "-" for p in self.parities)
        return f"parities {signs}; even or odd up to {self.asymmetry:.2g}."


def mirrored_covariance(X: ArrayLike, reflection: ArrayLike) -> Array:
    r"""The second moments of samples together with their mirror images.

    .. math:: C = D D^\top = F F^\top + R F F^\top R^\top, \qquad D = (f_1, R f_1, \dots, f_N, R f_N)

    with samples in the columns of F. (The matrix :math:`D^\top D` is of the size of the sample.) It
    commutes with R.

    Args:
        X: Samples in rows, (n, d).
        reflection: R, (d, d) with R R = 1 and orthogonal; or a permutation of the features, (d,).

    >>> mirrored_covariance([[1.0, 2.0]], [1, 0])
    array([[5., 4.],
           [4., 5.]])

    Lecture course, section on learning on mirrored data (transposition corrected).
    """
    samples = as_samples(X)
    R = _as_reflection(reflection, samples.shape[1])
    F = samples.T @ samples
    return F + R @ F @ R.T


def parity_of_components(
    X: ArrayLike, reflection: ArrayLike, n_components: int | None = None, *, tol: float = SAME_EIGENVALUE
) -> MirrorComponents:
    r"""Principal components of mirrored data, with their parities.

    Since C commutes with R, an eigenvector whose eigenvalue is simple satisfies :math:`R w = \pm w`: it
    is mirror-symmetric or antisymmetric, and a unit that squares or rectifies its response answers
    equally to a view and its mirror image, :math:`|\langle w, x \rangle| = |\langle w, R x \rangle|`.

    Args:
        X: Samples in rows, (n, d).
        reflection: R; see :func:`mirrored_covariance`.
        n_components: How many; None is all.
        tol: Eigenvalues this close, relative to the largest, count as one.

    >>> parity_of_components([[3.0, 1.0, 0.0], [0.5, -1.0, 1.0]], [2, 1, 0]).parities.tolist()
    [1, -1, 1]

    Lecture course, section on learning on mirrored data (both signs).
    """
    samples = as_samples(X)
    d = samples.shape[1]
    count = d if n_components is None else integer("n_components", n_components, most=d)
    R = _as_reflection(reflection, d)
    rows, values, shared = [], [], []
    for space in eigenspaces(mirrored_covariance(samples, R), tol=tol):
        # R maps the space to itself: its eigenvectors within are the even and the odd ones.
        _, turn = np.linalg.eigh(space.basis.T @ R @ space.basis)
        rows += list((space.basis @ turn).T[::-1])
        values += [space.value] * space.dimension
        shared += [space.dimension > 1] * space.dimension
    components = np.array(rows[:count])
    parities = np.where(np.einsum("ki,ij,kj->k", components, R, components) > 0, 1, -1)
    off = float(np.abs(components @ R.T - parities[:, None] * components).max())
    return MirrorComponents(
        components, parities, np.array(values[:count]), np.array(shared[:count]), off
    )


def _as_reflection(reflection: ArrayLike, d: int) -> Array:
    """Return an orthogonal matrix that is its own inverse, or say what is wrong.

    >>> _as_reflection([1, 0], 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    given = np.asarray(reflection)
    if given.ndim == 1 and sorted(given.tolist()) == list(range(d)):
        given = np.eye(d)[given.astype(int)]
    if given.shape != (d, d) or not np.isfinite(np.asarray(given, dtype=float)).all():
        raise ValueError(
            f"reflection must be a ({d}, {d}) matrix or a permutation of 0 to {d - 1}; got shape "
            f"{given.shape}."
        )
    R = np.asarray(given, dtype=float)
    if np.abs(R @ R - np.eye(d)).max() > _REFLECTION or np.abs(R - R.T).max() > _REFLECTION:
        raise ValueError("a reflection is symmetric and its own inverse; this matrix is not.")
    return R

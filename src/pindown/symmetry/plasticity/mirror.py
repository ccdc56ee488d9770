"""Principal components of data shown with their mirror images: even or odd, never in between."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.symmetry.plasticity.covariance import SAME_EIGENVALUE, eigenspaces
from pindown.symmetry.signatures.projections import as_samples
from pindown.validation import is_integer

# A reflection is its own inverse and keeps lengths, up to rounding of the matrix given.
_REFLECTION = 1e-9


@dataclass(frozen=True)
class MirrorComponents:
    """Principal components of mirrored data.

    Attributes:
        components: In rows, (k, d), by falling eigenvalue.
        parities: +1 for even (R w = w), -1 for odd (R w = -w), (k,).
        eigenvalues: (k,).
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
    kind: str = "exact"

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
    R = as_reflection(reflection, samples.shape[1])
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
    count = d if n_components is None else n_components
    if not is_integer(count) or count > d:
        raise ValueError(f"n_components must be a whole number from 1 to {d}; got {n_components!r}.")
    R = as_reflection(reflection, d)
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


def as_reflection(reflection: ArrayLike, d: int) -> Array:
    """Return an orthogonal matrix that is its own inverse, or say what is wrong.

    >>> as_reflection([1, 0], 2).tolist()
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

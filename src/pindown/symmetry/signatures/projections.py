"""Projections of samples on the orbits of templates, which every signature is computed from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.symmetry.axioms import permutation_matrices
from pindown.symmetry.groups import Group
from pindown.symmetry.tuning import MAX_SPAN_FEATURES, MIN_TEMPLATES, PROJECTIONS_AT_ONCE
from pindown.validation import array, table

# Squared singular values below this share of the largest count as zero.
_RANK_TOLERANCE = 1e-10


def orbit_matrix(w: ArrayLike, group: Group) -> Array:
    r"""The weights of a dense layer whose units are the orbit of one weight vector.

    .. math:: W = (g_1 w, \dots, g_{|G|} w), \qquad (W^\top x)_i = \langle x, g_i w \rangle

    For cyclic shifts W is a circulant matrix, column j is w shifted by j, and :math:`W^\top x` is the
    circular cross-correlation of x and w.

    Args:
        w: One weight vector, (d,).
        group: A group that acts on vectors of d numbers.

    Returns:
        Columns g w in the order of the elements, (d, order).

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_matrix([1.0, 2.0, 3.0], cyclic(3))
    array([[1., 3., 2.],
           [2., 1., 3.],
           [3., 2., 1.]])

    Lecture course, section on constraints of the topology (third column corrected).
    """
    return group.orbit(as_samples(w, "w")[0]).T


def deep_orbit_features(
    x: ArrayLike, filters: list[ArrayLike] | tuple[ArrayLike, ...], group: Group
) -> list[Array]:
    r"""The layers of a network whose weight matrices are orbits, with rectified units.

    .. math:: \Phi_\ell = \max(W_\ell^\top \Phi_{\ell - 1}, 0), \qquad W_\ell = (g w_\ell)_{g \in G}

    From the first layer on, the values are a function on the group, which it permutes by its regular
    representation: moving x by g moves every layer by g.

    Args:
        x: Samples, (n, d) or (d,).
        filters: One weight vector per layer: the first has d numbers, the others one per element.
        group: An orthogonal action on vectors of d numbers.

    Returns:
        One array (n, order) per layer.

    >>> from pindown.symmetry.groups import cyclic
    >>> deep_orbit_features([1.0, 0.0, 0.0], [[1.0, -1.0, 0.0], [0.0, 1.0, 0.0]], cyclic(3))[1]
    array([[0., 0., 1.]])

    Lecture course, section on deep networks as templates.
    """
    values, layers, acting = as_samples(x), [], group
    for w in filters:
        values = np.maximum(values @ orbit_matrix(w, acting), 0.0)
        layers.append(values)
        acting = group.regular()
    return layers


def orbit_projections(X: ArrayLike, templates: ArrayLike, group: Group) -> Array:
    r"""All projections :math:`\langle g x, t \rangle`, in the order of the elements g.

    For an orthogonal action they are the projections :math:`\langle x, g^{-1} t \rangle` on the orbit of
    the template. For any other linear action the templates are moved by the transposed matrices, so
    that moving x permutes the numbers in every case.

    Args:
        X: Samples, (n, d).
        templates: Templates, (K, d).
        group: A group that acts on vectors of d numbers, by matrices or by a function.

    Returns:
        Projections, (n, K, order).

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_projections([[1.0, 2.0, 3.0]], [[1.0, 0.0, 0.0]], cyclic(3))
    array([[[1., 3., 2.]]])

    Lecture course, section on template signatures.
    """
    samples = as_samples(X)
    chosen = as_samples(templates, "templates")
    check_degree(group, samples.shape[1])
    if chosen.shape[1] != samples.shape[1]:
        raise ValueError(
            f"samples have {samples.shape[1]} features and templates {chosen.shape[1]}; they must agree."
        )
    return Projector(chosen, group)(samples)


class Projector:
    """Templates with their orbit, ready to project many samples.

    Args:
        templates: The templates, (K, d).
        group: The group; cyclic shifts go through the Fourier transform, matrices through one product.
    """

    def __init__(self, templates: Array, group: Group) -> None:
        self.templates, self.group = templates, group
        self._shifts = _shifts_features(group)
        self._bank: Array | None = None
        if self._shifts:
            self._spectrum = np.fft.rfft(templates, axis=1)
        elif group.action is None:
            # <g x, t> = <x, g^T t>
            moved = (templates @ group.matrices).swapaxes(0, 1)
            self._bank = np.ascontiguousarray(moved.reshape(-1, templates.shape[1]).T)

    def __call__(self, X: Array) -> Array:
        """Project samples (n, d) to (n, K, order)."""
        n, K, order = len(X), len(self.templates), self.group.order
        if self._shifts:
            # sum_i x_i t_{i + k}: the correlation of t with x.
            product = np.fft.rfft(X, axis=1).conj()[:, None] * self._spectrum
            return np.fft.irfft(product, order, axis=2)
        if self._bank is not None:
            return (X @ self._bank).reshape(n, K, order)
        out = np.empty((n, K, order))
        for index in range(order):
            out[:, :, index] = self.group.act(index, X) @ self.templates.T
        return out

    def blocks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield rows and their projections, a bounded number of projections at a time."""
        rows = max(1, PROJECTIONS_AT_ONCE // (len(self.templates) * self.group.order))
        for start in range(0, len(X), rows):
            part = slice(start, start + rows)
            yield part, self(X[part])


def _shifts_features(group: Group) -> bool:
    """Whether element k shifts all features by k places, so that Fourier transforms apply.

    >>> from pindown.symmetry.groups import cyclic, dihedral
    >>> _shifts_features(cyclic(5)), _shifts_features(dihedral(3))
    (True, False)
    """
    if group.action is not None:
        return False
    steps = np.arange(group.order)
    if not np.array_equal(group.table, (steps[:, None] + steps) % group.order):
        return False
    if group.representation is None:
        return True
    same_size = group.representation.shape[1] == group.order
    return same_size and np.array_equal(group.representation, permutation_matrices(group.table))


def check_degree(group: Group, n_features: int) -> None:
    """Refuse a group of matrices of another size than the samples have."""
    if not isinstance(group, Group):
        raise TypeError(f"group must be a pindown.symmetry Group, such as cyclic(6); got {group!r}.")
    if group.action is None and group.degree != n_features:
        raise ValueError(
            f"{group.name} acts here on vectors of {group.degree} numbers and the samples have "
            f"{n_features}; choose another action with acting_by() or permuting()."
        )


def as_samples(X: ArrayLike, name: str = "X") -> Array:
    """Return finite samples as an array (n, d); one vector counts as one sample."""
    return table(np.atleast_2d(array(name, X)), name)


def as_vectors(group: Group, *vectors: ArrayLike) -> tuple[Array, ...]:
    """Return vectors that a group acts on, each (d,), or say what is wrong."""
    out = []
    for vector in vectors:
        row = as_samples(vector, "the vector")
        if len(row) != 1:
            raise ValueError(f"one vector is needed; got an array of shape {np.shape(vector)}.")
        check_degree(group, row.shape[1])
        out.append(row[0])
    if len({len(v) for v in out}) > 1:
        raise ValueError(f"vectors must have equal lengths; got {[len(v) for v in out]}.")
    return tuple(out)


def unit_templates(n_templates: int, n_features: int, rng: np.random.Generator) -> Array:
    """Draw templates uniformly from the unit sphere of the features, (K, d)."""
    draws = rng.standard_normal((n_templates, n_features))
    return draws / np.linalg.norm(draws, axis=1, keepdims=True)


def enough_templates(group: Group, d: int, rng: np.random.Generator) -> Array:
    """Draw templates whose orbits span all directions, as far as that is cheap to check.

    A template's orbit holds at most m copies of an irreducible part of dimension m: where the group
    moves little, d / |G| templates are too few, and d always suffice.
    """
    if _shifts_features(group) or group.action is not None:
        return unit_templates(max(MIN_TEMPLATES, -(-d // group.order) + 1), d, rng)
    fixed = round(float(np.trace(group.matrices, axis1=1, axis2=2).mean()))
    templates = unit_templates(max(MIN_TEMPLATES, -(-d // group.order) + 1, fixed), d, rng)
    while d <= MAX_SPAN_FEATURES and len(templates) < d and span_of_orbits(templates, group) < d:
        more = min(len(templates), d - len(templates))
        templates = np.concatenate([templates, unit_templates(more, d, rng)])
    return templates


def span_of_orbits(templates: Array, group: Group) -> int:
    r"""The dimension of the span of all :math:`g^\top t`: a sample orthogonal to it has no projection.

    >>> from pindown.symmetry.groups import cyclic
    >>> span_of_orbits(np.array([[1.0, 1.0, 1.0]]), cyclic(3))
    1
    """
    d = templates.shape[1]
    if _shifts_features(group):
        # Shifts of a signal span a wave of every frequency that it holds.
        power = (np.abs(np.fft.fft(templates, axis=1)) ** 2).max(axis=0)
        return int((power > _RANK_TOLERANCE * power.max()).sum())
    orbits = (templates @ group.matrices).reshape(-1, d)
    gram = orbits.T @ orbits if len(orbits) > d else orbits @ orbits.T
    values = np.linalg.eigvalsh(gram)
    return int((values > _RANK_TOLERANCE * values[-1]).sum()) if values[-1] > 0 else 0

r"""Signals :math:`y = A x` with codes of few positive entries: the model behind sparse coding.

Supports are uniform subsets of size k, entries on the support independent with values in [low, high].
Columns of A, the atoms, have norm one; the coherence is the largest :math:`|\langle A_i, A_j\rangle|`.

Mukherjee 2020, section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.validation import choice, integer, is_integer, is_number, positive

# Columns built in float64 have norm one up to this.
_UNIT_NORM_TOLERANCE = 1e-9
_DISTRIBUTIONS = ("uniform", "two-point")


class SparseSignals(NamedTuple):
    """Signals and the codes they were made of; unpacks as ``Y, X = ...``.

    Attributes:
        Y: Signals, (n_samples, n).
        X: Codes, (n_samples, h).
    """

    Y: Array
    X: Array


@dataclass(frozen=True, eq=False)
class SparseCodingModel:
    r"""The distribution of :math:`y = A x`.

    The source asks only that entries are uncorrelated, but its tail bound needs them independent;
    here they are.

    Attributes:
        dictionary: A of shape (n, h), columns of norm one.
        sparsity: Size k of every support.
        low: Least non-zero entry, not negative.
        high: Largest entry.
        distribution: ``"uniform"`` on [low, high], or ``"two-point"``: low or high, a fair coin.

    Example:
        >>> model = SparseCodingModel(np.eye(4), 2, low=1.0, high=3.0)
        >>> model.mean, round(model.second_moment, 4), model.inclusion(1), model.coherence
        (2.0, 4.3333, 0.5, 0.0)

    Mukherjee 2020, section 4.2.
    """

    dictionary: Array
    sparsity: int
    low: float = 1.0
    high: float = 10.0
    distribution: str = "uniform"

    def __post_init__(self) -> None:
        A = np.array(self.dictionary, dtype=np.float64)
        if A.ndim != 2 or A.size == 0 or not np.isfinite(A).all():
            raise ValueError(f"dictionary must be a finite matrix (n, h); got shape {A.shape}.")
        norms = np.linalg.norm(A, axis=0)
        if np.abs(norms - 1.0).max() > _UNIT_NORM_TOLERANCE:
            worst = norms[np.abs(norms - 1.0).argmax()]
            raise ValueError(
                f"atoms need norm 1: divide columns by their norms; got a norm of {worst:g}."
            )
        k = self.sparsity
        integer("sparsity", k, most=A.shape[1])
        ends = (self.low, self.high)
        if not all(is_number(v, 0) for v in ends) or self.low > self.high:
            raise ValueError(f"entries need 0 <= low <= high, both finite; got {ends}.")
        if self.high == 0.0:
            raise ValueError("high must be positive: with high = 0 every signal is zero.")
        choice("distribution", self.distribution, _DISTRIBUTIONS)
        A.flags.writeable = False
        object.__setattr__(self, "dictionary", A)

    @property
    def n_features(self) -> int:
        """Length n of a signal."""
        return int(self.dictionary.shape[0])

    @property
    def n_atoms(self) -> int:
        """Number h of atoms."""
        return int(self.dictionary.shape[1])

    @property
    def mean(self) -> float:
        """Mean m1 of a non-zero entry."""
        return (self.low + self.high) / 2

    @property
    def second_moment(self) -> float:
        """Second moment m2 of a non-zero entry."""
        ends = self.low**2 + self.high**2
        return ends / 2 if self.distribution == "two-point" else (ends + self.low * self.high) / 3

    @cached_property
    def coherence(self) -> float:
        r"""Largest :math:`|\langle A_i, A_j\rangle|`, i and j different (the source's mu / sqrt n)."""
        return coherence(self.dictionary)

    @property
    def coherence_exponent(self) -> float:
        r""":math:`\xi` with coherence :math:`h^{-\xi}`; infinite for orthogonal atoms."""
        if self.coherence == 0.0 or self.n_atoms == 1:
            return float("inf")
        return float(-np.log(self.coherence) / np.log(self.n_atoms))

    def inclusion(self, t: int) -> float:
        r"""Return :math:`q_t`, the probability that t given atoms are all in the support."""
        k, h = self.sparsity, self.n_atoms
        return float(np.prod([(k - s) / (h - s) if h > s else 0.0 for s in range(t)]))

    def sample(self, n_samples: int, random_state: Any = 0) -> SparseSignals:
        """Draw independent signals with their codes."""
        integer("n_samples", n_samples)
        rng = np.random.default_rng(random_state)
        k, h = self.sparsity, self.n_atoms
        # The k smallest of h independent keys are a uniform subset.
        supports = np.argpartition(rng.random((n_samples, h)), k - 1, axis=1)[:, :k]
        if self.distribution == "uniform":
            values = rng.uniform(self.low, self.high, (n_samples, k))
        else:
            values = np.where(rng.random((n_samples, k)) < 0.5, self.low, self.high)
        X = np.zeros((n_samples, h))
        np.put_along_axis(X, supports, values, axis=1)
        return SparseSignals(X @ self.dictionary.T, X)

    def __str__(self) -> str:
        return (
            f"{self.n_atoms} atoms in {self.n_features} dimensions, coherence {self.coherence:.3g}, "
            f"{self.sparsity} at a time with entries in [{self.low:g}, {self.high:g}]"
        )


def coherence(dictionary: ArrayLike) -> float:
    """Return the largest absolute inner product of two different columns.

    >>> round(coherence([[1.0, 0.6], [0.0, 0.8]]), 12)
    0.6
    """
    A = np.asarray(dictionary, dtype=np.float64)
    if A.ndim != 2 or not A.size:
        raise ValueError(f"dictionary must be a matrix (n, h), one atom at least; got {A.shape}.")
    gram = np.abs(A.T @ A)
    np.fill_diagonal(gram, 0.0)
    return float(gram.max())


def support_size(n_atoms: int, exponent: float) -> int:
    """Return the integer nearest to h^p, at least one; the source leaves the rounding open.

    >>> support_size(256, 0.01), support_size(256, 0.5)
    (1, 16)
    """
    integer("n_atoms", n_atoms)
    positive("exponent", exponent, zero=True)
    return max(1, round(float(n_atoms) ** float(exponent)))


def gaussian_dictionary(n_features: int, n_atoms: int, random_state: Any = 0) -> Array:
    """Return Gaussian columns scaled to norm one, the dictionaries of the source's simulations.

    >>> np.linalg.norm(gaussian_dictionary(3, 5), axis=0).round(12).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    shape = integer("n_features", n_features), integer("n_atoms", n_atoms)
    A = np.random.default_rng(random_state).standard_normal(shape)
    return A / np.linalg.norm(A, axis=0)


def hadamard_dictionary(n_features: int) -> Array:
    r"""Return :math:`[I, H / \sqrt n]` with the Hadamard matrix H: 2n atoms of coherence 1 / sqrt n.

    >>> coherence(hadamard_dictionary(16))
    0.25
    """
    from scipy.linalg import hadamard

    if not is_integer(n_features) or n_features & (n_features - 1):
        raise ValueError(f"a Hadamard matrix needs a power of two; got {n_features!r}.")
    n = int(n_features)
    return np.hstack([np.eye(n), hadamard(n).astype(np.float64) / np.sqrt(n)])


def incoherent_dictionary(
    n_features: int, n_atoms: int, *, n_iter: int = 200, random_state: Any = 0
) -> Array:
    r"""Return a random dictionary made less coherent by alternating projections: best effort.

    In turn the Gram matrix is cut at the level that no dictionary can go below,
    :math:`\sqrt{(h - n) / (n (h - 1))}`, and brought back to rank n; the best dictionary seen is kept.
    How to sample at a given coherence is open in the source.

    Example:
        >>> rough, fine = gaussian_dictionary(8, 12), incoherent_dictionary(8, 12)
        >>> coherence(fine) < 0.7 * coherence(rough)
        True
    """
    A = best = gaussian_dictionary(n_features, n_atoms, random_state)
    h, n = n_atoms, n_features
    if h == 1:
        return best
    level = np.sqrt(max(h - n, 0) / (n * (h - 1)))
    least = coherence(best)
    for _ in range(n_iter):
        gram = np.clip(A.T @ A, -level, level)
        np.fill_diagonal(gram, 1.0)
        A = _of_rank(gram, n)
        if coherence(A) < least:
            best, least = A, coherence(A)
    return best


def _of_rank(gram: Array, n: int) -> Array:
    values, vectors = np.linalg.eigh(gram)
    A = np.sqrt(np.maximum(values[-n:], 0.0))[:, None] * vectors[:, -n:].T
    if len(A) < n:  # fewer atoms than dimensions
        A = np.vstack([A, np.zeros((n - len(A), A.shape[1]))])
    return A / np.linalg.norm(A, axis=0)


def near_dictionary(
    dictionary: ArrayLike, distance: float, random_state: Any = 0
) -> NDArray[np.float64]:
    """Return weights (h, n) whose rows lie at the given distance from the atoms, in random directions.

    >>> W = near_dictionary(np.eye(3), 0.5)
    >>> np.linalg.norm(W - np.eye(3), axis=1).round(12).tolist()
    [0.5, 0.5, 0.5]
    """
    positive("distance", distance, zero=True)
    A = np.asarray(dictionary, dtype=np.float64)
    direction = np.random.default_rng(random_state).standard_normal(A.T.shape)
    return A.T + float(distance) * direction / np.linalg.norm(direction, axis=1, keepdims=True)

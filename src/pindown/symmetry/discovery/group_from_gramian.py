r"""The route of the lectures: learn vectors that form an orbit, then read the group off their Gramian.

Atoms W are fitted to pairs of one orbit by making sorted projections agree, while a penalty keeps the
columns of the Gramian alike and a log-determinant keeps the atoms apart:

.. math::
    \mathrm{mean} \lVert \mathrm{sort}(W^\top x) - \mathrm{sort}(W^\top g x) \rVert^2 + \beta\, r(W)
    - \gamma \log\det(W^\top W + 0.01 I), \qquad \lVert w_i \rVert = 1.

The penalties take a torch tensor ``W`` of shape (d, n), columns the candidate orbit, and can be
differentiated. Zero means that the columns of :math:`W^\top W` hold the same numbers. An orbit does; so
do zero, equal columns, orthonormal columns, and more: a penalty needs a term from the data beside it.

Lecture course, slides on learning symmetries; the source names neither data term nor optimiser.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import torch

from pindown.affine import Array
from pindown.deadline import Deadline, checked_budget
from pindown.symmetry.discovery._orbits import Pairs
from pindown.symmetry.discovery._orthogonal_maps import Maps, nearest_orthogonal, residual_limit, settled
from pindown.symmetry.discovery.gramians import gramian, gramian_automorphisms, sorted_signature
from pindown.symmetry.discovery.tuning import (
    ATOM_BATCH,
    ATOM_RATE,
    LEARNED_TOLERANCE,
    LOG_DET_RIDGE,
    SOLVED_LOSS,
)
from pindown.validation import positive


@dataclass(frozen=True)
class Atoms:
    """Learned vectors.

    Attributes:
        W: The atoms as columns, (d, n).
        loss: Mean squared difference of sorted projections over pairs.
        hard_negative: Mean relative distance between signatures of samples and of shuffled samples; near
            zero means invariance to more than the group.
    """

    W: Array = field(repr=False)
    loss: float
    hard_negative: float

    def __str__(self) -> str:
        return (
            f"{self.W.shape[1]} atoms: pair loss {self.loss:.2g}, distance to hard negatives "
            f"{self.hard_negative:.2g}"
        )


def learn_orbit(
    pairs: Pairs,
    n_atoms: int | None = None,
    *,
    rng: np.random.Generator,
    n_restarts: int = 6,
    steps: int = 2000,
    penalty: float = 1.0,
    spread: float = 0.005,
    budget: float = inf,
) -> list[Atoms]:
    r"""Return the atoms of all restarts, best first: those with a small loss, by distance to negatives.

    Args:
        pairs: Pairs of samples of one orbit.
        n_atoms: Columns of W; by default the dimension.
        rng: Starts, batches and negatives.
        n_restarts: Independent starts.
        steps: Steps of Adam, at a rate that falls linearly to zero.
        penalty: Weight :math:`\beta` of the penalty.
        spread: Weight :math:`\gamma` of the log-determinant.
        budget: Seconds after which the descent stops where it is.
    """
    deadline = Deadline.after(checked_budget(budget, zero=True))
    d = pairs.first.shape[1]
    scale = float(np.sqrt(np.mean(pairs.first**2))) or 1.0
    x, y = pairs.first / scale, pairs.second / scale
    shuffled = x[:, rng.permutation(d)]
    starts = rng.standard_normal((n_restarts, d, n_atoms or d))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on a busy machine small tensors take far longer with several
    try:
        learned = _descend(x, y, starts, rng, steps, penalty, spread, deadline)
    finally:
        torch.set_num_threads(threads)
    found = []
    for W in learned:
        gaps = sorted_signature(x, W) - sorted_signature(y, W)
        apart = np.linalg.norm(sorted_signature(x, W) - sorted_signature(shuffled, W), axis=1)
        size = np.maximum(np.linalg.norm(x @ W, axis=1), np.finfo(float).tiny)
        found.append(Atoms(W, float((gaps**2).sum(axis=1).mean()), float((apart / size).mean())))
    return sorted(found, key=lambda atoms: (max(atoms.loss, SOLVED_LOSS), -atoms.hard_negative))


def _descend(
    x: Array,
    y: Array,
    starts: Array,
    rng: np.random.Generator,
    steps: int,
    penalty: float,
    spread: float,
    deadline: Deadline,
) -> Array:
    """Return all starts after Adam, which moves them side by side: they share only the batches."""
    first, second = torch.from_numpy(x), torch.from_numpy(y)
    raw = torch.from_numpy(starts).requires_grad_()
    optimiser = torch.optim.Adam([raw], lr=ATOM_RATE)
    ridge = LOG_DET_RIDGE * torch.eye(starts.shape[2], dtype=raw.dtype)
    for step in range(steps):
        if deadline.passed:
            break
        optimiser.param_groups[0]["lr"] = ATOM_RATE * (1.0 - step / steps)
        rows = torch.from_numpy(rng.integers(len(x), size=min(ATOM_BATCH, len(x))))
        W = raw / raw.norm(dim=1, keepdim=True)
        gap = torch.sort(first[rows] @ W, dim=2).values - torch.sort(second[rows] @ W, dim=2).values
        alike = torch.stack([sorted_gram_penalty(atoms) for atoms in W]).sum()
        loss = (gap**2).sum(dim=(0, 2)).mean() + penalty * alike
        loss = loss - spread * torch.logdet(W.mT @ W + ridge).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return np.asarray((raw / raw.norm(dim=1, keepdim=True)).detach().numpy())


def group_recovery(W: Array, pairs: Pairs, noise: float, tol: float = LEARNED_TOLERANCE) -> Maps:
    r"""Return the maps that permute the atoms, keep their Gramian, and relate pairs of the data.

    A permutation P with :math:`P^\top W^\top W P = W^\top W` is an orthogonal map :math:`W P W^+` of the
    span of the atoms. The Gramian alone often allows too many: reversing a cycle, for one. Only maps
    that data use are kept.

    Args:
        W: Atoms as columns that span the space, (d, n).
        pairs: Pairs of samples of one orbit.
        noise: Standard deviation of the noise in a coordinate.
        tol: How far entries of the Gramian may differ, as a share of the largest.

    Lecture course, slides on learning symmetries.
    """
    d = len(W)
    limit = residual_limit(noise, d)
    nothing = Maps([np.eye(d)], noise, np.zeros(len(pairs), dtype=bool))
    if np.linalg.matrix_rank(W, tol=tol) < d:
        return nothing
    try:
        permutations = gramian_automorphisms(gramian(W), tol)
    except ValueError:  # orthonormal atoms: every permutation passes and the Gramian says nothing
        return nothing
    inverse = np.linalg.pinv(W)
    maps = [np.eye(d)]
    for permutation in permutations[1:]:
        maps.append(nearest_orthogonal(W[:, permutation] @ inverse))
    found = Maps(maps, noise, np.zeros(len(pairs), dtype=bool))
    # atoms are known to a few per mille: pairs refit the maps before they are held to the noise
    coarse = max(limit, tol * float(np.sqrt(np.mean((pairs.first**2).sum(axis=1)))))
    return settled(settled(found, pairs, coarse), pairs, limit)


def gram_symmetry_penalty(W: Any, sigma: float = 1.0) -> Any:
    r"""Return the Gaussian penalty on differences between the columns of the Gramian.

    .. math::
        r(W) = \sum_{ijkl} (n \delta_{ij} - 1)\, e^{-(w_i^\top w_k - w_j^\top w_l)^2 / \sigma^2}
        = \tfrac12 \sum_{ij} \lVert \phi(c_i) - \phi(c_j) \rVert^2 \ge 0,

    where :math:`\phi(c_i)` is the kernel mean of the numbers in column i. The Gaussian kernel is
    characteristic, so for every :math:`\sigma` it is zero only if all columns hold the same numbers.
    The source prints the weights with the opposite sign, which makes the sum negative and its
    minimisation spread the columns apart.

    Args:
        W: The columns, (d, n).
        sigma: Width of the Gaussian.

    >>> unlike = torch.diag(torch.tensor([1.0, 9.0]))
    >>> float(gram_symmetry_penalty(torch.eye(2))), float(gram_symmetry_penalty(unlike))
    (0.0, 2.0)

    Lecture course, slides on learning symmetries (theorem on the symmetry regulariser), sign corrected.
    """
    positive("sigma", sigma, infinite=True)
    _matrix(W)
    columns = W.T @ W  # symmetric: rows are columns
    n = len(columns)
    gaps = columns[:, None, :, None] - columns[None, :, None, :]
    between = torch.exp(-((gaps / sigma) ** 2)).sum(dim=(2, 3))
    return n * torch.diagonal(between).sum() - between.sum()


def sorted_gram_penalty(W: Any, soft: float | None = None) -> Any:
    r"""Return how far the sorted columns of the Gramian are apart.

    .. math::
        r(W) = \sum_{i<j} \lVert s_i - s_j \rVert^2 = n \sum_i \lVert s_i - \bar s \rVert^2,
        \qquad s_i = \mathrm{sort}(W^\top w_i).

    Zero exactly where :func:`gram_symmetry_penalty` is, at a cost of :math:`n^2 \log n` in place of
    :math:`n^4`, and its gradient does not vanish when columns are far apart.

    Args:
        W: The columns, (d, n).
        soft: Strength of a soft sort in place of the sort; see :func:`soft_sort`.

    >>> W = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    >>> float(sorted_gram_penalty(W))  # the columns of the Gramian are (1, 0) and (0, 4)
    9.0

    Lecture course, slides on learning symmetries (alternative by soft sorting).
    """
    _matrix(W)
    columns = W.T @ W  # symmetric: rows are columns
    ordered = torch.sort(columns, dim=1).values if soft is None else soft_sort(columns, soft)
    return len(columns) * ((ordered - ordered.mean(dim=0)) ** 2).sum()


def soft_sort(values: Any, strength: float = 1.0) -> Any:
    r"""Return each row sorted, increasing, with gaps beyond ``1 / strength`` drawn in.

    The projection of :math:`\rho / \epsilon`, :math:`\rho = (1, \dots, n)`, on the polytope of all
    orders of a row. It equals the sort where all gaps are at most :math:`1/\epsilon`, and goes to the
    row's mean as the strength grows.

    Args:
        values: Rows to be sorted, (m, n).
        strength: :math:`\epsilon`: large values smooth more.

    >>> soft_sort(torch.tensor([[3.0, 1.0, 2.0]]), 0.1).tolist()
    [[1.0, 2.0, 3.0]]
    >>> soft_sort(torch.tensor([[3.0, 1.0, 2.0]]), 1e6).round(decimals=4).tolist()
    [[2.0, 2.0, 2.0]]

    Lecture course, slides on learning symmetries; after Blondel et al. 2020.
    """
    positive("strength", strength, infinite=True)
    from sklearn.isotonic import isotonic_regression

    ordered = torch.sort(values, dim=1).values
    anchors = np.arange(1, values.shape[1] + 1) / strength
    averages = torch.zeros(len(values), values.shape[1], values.shape[1], dtype=values.dtype)
    for row, w in zip(averages, ordered.detach().numpy(), strict=True):
        pooled = isotonic_regression(anchors - w, increasing=True)
        same = np.cumsum(np.r_[0, np.diff(pooled) != 0])
        block = same[:, None] == same
        row[:] = torch.from_numpy(block / block.sum(axis=1, keepdims=True))
    anchored = torch.from_numpy(anchors).to(values.dtype)
    return anchored - averages @ anchored + (averages @ ordered[:, :, None])[:, :, 0]


def _matrix(W: Any) -> None:
    if not torch.is_tensor(W) or W.ndim != 2:
        raise TypeError(
            f"W must be a torch tensor (d, n) with the orbit as columns; got {type(W).__name__}."
        )

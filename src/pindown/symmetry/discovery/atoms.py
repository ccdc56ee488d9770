r"""The route of the lectures: learn vectors that form an orbit, then read the group off their Gramian.

Atoms W are fitted to pairs of one orbit by making sorted projections agree, while a penalty keeps the
columns of the Gramian alike and a log-determinant keeps the atoms apart:

.. math::
    \mathrm{mean} \lVert \mathrm{sort}(W^\top x) - \mathrm{sort}(W^\top g x) \rVert^2 + \beta\, r(W)
    - \gamma \log\det(W^\top W + 0.01 I), \qquad \lVert w_i \rVert = 1.

Lecture course, slides on learning symmetries; the source names neither data term nor optimiser.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import torch

from pindown.affine import Array
from pindown.symmetry.discovery.gramians import gramian, gramian_automorphisms
from pindown.symmetry.discovery.maps import Maps, nearest_orthogonal, residual_limit, settled
from pindown.symmetry.discovery.orbits import Pairs
from pindown.symmetry.discovery.penalties import sorted_gram_penalty
from pindown.symmetry.discovery.scores import sorted_signature

_RIDGE = 0.01  # keeps the log-determinant finite when there are more atoms than dimensions
_BATCH = 64
_RATE = 0.02
# Learned atoms form an orbit up to a per mille or so; their Gramians are compared within this.
_LEARNED = 0.03
# Pair losses below this count as solved; among those the atoms least blind to shuffles are taken.
_SOLVED = 1e-4


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
    deadline: float = np.inf,
) -> list[Atoms]:
    r"""Return the atoms of all restarts, best first: those with a small loss, by distance to negatives.

    Args:
        pairs: Pairs of samples of one orbit.
        n_atoms: Columns of W; by default the dimension.
        rng: Starts, batches and negatives.
        n_restarts: Independent starts.
        steps: Steps of Adam, at a rate that falls linearly to zero.
        penalty: :math:`\beta`.
        spread: :math:`\gamma`.
        deadline: Stop at this ``time.monotonic()``.
    """
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
    return sorted(found, key=lambda atoms: (max(atoms.loss, _SOLVED), -atoms.hard_negative))


def _descend(
    x: Array,
    y: Array,
    starts: Array,
    rng: np.random.Generator,
    steps: int,
    penalty: float,
    spread: float,
    deadline: float,
) -> Array:
    """Return all starts after Adam, which moves them side by side: they share only the batches."""
    first, second = torch.from_numpy(x), torch.from_numpy(y)
    raw = torch.from_numpy(starts).requires_grad_()
    optimiser = torch.optim.Adam([raw], lr=_RATE)
    ridge = _RIDGE * torch.eye(starts.shape[2], dtype=raw.dtype)
    for step in range(steps):
        if time.monotonic() > deadline:
            break
        optimiser.param_groups[0]["lr"] = _RATE * (1.0 - step / steps)
        rows = torch.from_numpy(rng.integers(len(x), size=min(_BATCH, len(x))))
        W = raw / raw.norm(dim=1, keepdim=True)
        gap = torch.sort(first[rows] @ W, dim=2).values - torch.sort(second[rows] @ W, dim=2).values
        alike = torch.stack([sorted_gram_penalty(atoms) for atoms in W]).sum()
        loss = (gap**2).sum(dim=(0, 2)).mean() + penalty * alike
        loss = loss - spread * torch.logdet(W.mT @ W + ridge).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return np.asarray((raw / raw.norm(dim=1, keepdim=True)).detach().numpy())


def group_recovery(W: Array, pairs: Pairs, noise: float, tol: float = _LEARNED) -> Maps:
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

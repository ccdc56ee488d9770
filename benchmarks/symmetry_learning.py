"""Learning a group from pairs of its orbits: how often it is recovered, and how fast.

Vectors of six dimensions in a random basis; 300 pairs, of which 40 % are held out by the learner.
Mixture EM fits as many orthogonal maps as the group has elements (told to it), best of five starts.
The Gramian route learns as many atoms as dimensions. CPU time of one thread: set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from pindown.symmetry import SymmetryLearner
from pindown_reproduction.course.symmetry_learning import matrices_of

SEEDS = 10
PAIRS = 300


def pairs_of(name: str, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, len(name), *map(ord, name)])
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    matrices = turn @ matrices_of(name) @ turn.T
    x = rng.standard_normal((PAIRS, 6))
    y = np.einsum("nij,nj->ni", matrices[rng.integers(1, len(matrices), PAIRS)], x)
    return x + noise * rng.standard_normal(x.shape), y + noise * rng.standard_normal(x.shape), matrices


def expectation_maximisation(x: np.ndarray, y: np.ndarray, n_maps: int, seed: int) -> np.ndarray:
    """Return maps of a mixture: each pair goes to its nearest map, each map is fitted to its pairs."""
    rng = np.random.default_rng(seed)
    best, least = np.zeros((n_maps, 6, 6)), np.inf
    for _ in range(5):
        maps = np.linalg.qr(rng.standard_normal((n_maps, 6, 6)))[0]
        before = np.full(len(x), -1)
        for _ in range(100):
            errors = ((y[:, None] - np.einsum("gij,nj->ngi", maps, x)) ** 2).sum(axis=2)
            nearest = errors.argmin(axis=1)
            if (nearest == before).all():
                break
            before = nearest
            for k in range(n_maps):
                if (nearest == k).any():
                    left, _, right = np.linalg.svd(y[nearest == k].T @ x[nearest == k])
                    maps[k] = left @ right
        loss = float(errors.min(axis=1).sum())
        if loss < least:
            best, least = maps, loss
    return best


def recovered(found: np.ndarray, truth: np.ndarray) -> bool:
    gaps = np.abs(found[:, None] - truth).max(axis=(2, 3))
    return bool(gaps.min(axis=0).max() < 0.1)


def rates(name: str, noise: float) -> tuple[str, str]:
    ours, mixture, spent = 0, 0, [0.0, 0.0]
    for seed in range(SEEDS):
        x, y, truth = pairs_of(name, noise, seed)
        start = time.process_time()
        learner = SymmetryLearner(random_state=seed).fit(x, y)
        spent[0] += time.process_time() - start
        ours += learner.claimed_ and learner.group_.name == name and recovered(learner.matrices_, truth)
        start = time.process_time()
        maps = expectation_maximisation(x, y, len(truth) - 1, seed)
        spent[1] += time.process_time() - start
        mixture += recovered(maps, truth[1:])
    return (
        f"{name}, noise {noise:g}",
        f"recovered {ours} of {SEEDS} in {spent[0] / SEEDS:.2f} s; mixture EM told the order {mixture} "
        f"of {SEEDS} in {spent[1] / SEEDS:.2f} s",
    )


def gramian_route() -> tuple[str, str]:
    right, spent = 0, 0.0
    for seed in range(3):
        x, y, _ = pairs_of("C6", 0.0, seed)
        start = time.process_time()
        learner = SymmetryLearner("gramian", n_restarts=6, budget=120.0, random_state=seed).fit(x, y)
        spent += time.process_time() - start
        right += learner.claimed_ and learner.group_.name == "C6"
    return "C6, Gramian route, 6 starts", f"recovered {right} of 3 in {spent / 3:.1f} s"


def rows() -> Iterator[tuple[str, str]]:
    for name in ("C6", "D6", "T", "Th"):
        for noise in (0.0, 0.05):
            yield rates(name, noise)
    yield gramian_route()


def run() -> list[tuple[str, str]]:
    return list(rows())


if __name__ == "__main__":
    for row in rows():
        print(*row, sep=": ", flush=True)

"""Dictionaries learnt from sparse signals, with the defaults, beside scikit-learn's online learner.

4,000 signals of dimension 128 with three of 256 atoms each, the atoms random directions. An atom counts
as found if a learnt one has a cosine above 0.95 with it. CPU time of one thread.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import MiniBatchDictionaryLearning

from pindown.learn.sparse_coding import SparseCodingAutoencoder

N, DIM, ATOMS, SPARSITY = 4_000, 128, 256, 3
COSINES = (0.9, 0.95, 0.99)


def signals(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    atoms = rng.normal(size=(ATOMS, DIM))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    codes = np.zeros((N, ATOMS))
    for code in codes:
        code[rng.choice(ATOMS, SPARSITY, replace=False)] = rng.uniform(1, 2, SPARSITY)
    return codes @ atoms, atoms


def found(model: Any, Y: np.ndarray, atoms: np.ndarray) -> str:
    began = time.process_time()
    learnt = model.fit(Y).components_
    seconds = time.process_time() - began
    lengths = np.linalg.norm(learnt, axis=1, keepdims=True)
    cosines = np.abs(learnt / np.maximum(lengths, 1e-300) @ atoms.T).max(axis=0)
    counts = ", ".join(f"{int((cosines > least).sum())} above {least}" for least in COSINES)
    return f"cosines of {ATOMS} atoms: {counts}; {seconds:.1f} s"


def run() -> list[tuple[str, str]]:
    warnings.simplefilter("ignore")
    rows = []
    for seed in range(2):
        Y, atoms = signals(seed)
        for name, model in (
            ("ours", SparseCodingAutoencoder(random_state=seed, verbose=0)),
            ("scikit-learn, its defaults", MiniBatchDictionaryLearning(ATOMS, random_state=seed)),
            (
                "scikit-learn, 100 passes",
                MiniBatchDictionaryLearning(
                    ATOMS, alpha=0.5, max_iter=100, batch_size=256, random_state=seed
                ),
            ),
        ):
            rows.append((f"{name}, seed {seed}", found(model, Y, atoms)))
    return rows


if __name__ == "__main__":
    for what, result in run():
        print(f"{what}: {result}", flush=True)

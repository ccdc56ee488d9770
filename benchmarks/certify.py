"""Bounds on the risk of a classifier: examples held out, and PAC-Bayes, on four data sets.

The exact binomial bound of the network that is trained on the rest (a fifth held out, and as many as
``method="auto"`` holds out), and the PAC-Bayes certificate of the random classifier. Confidence 0.95
each, means over two seeds. CPU time of one thread. MNIST is there if PINDOWN_DATA names the data folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from torch import nn

from pindown.guarantees import certify

SEEDS = range(2)
WAYS: dict[str, dict[str, Any]] = {
    "a fifth held out": {"method": "holdout", "prior_share": 0.8},
    "auto": {"method": "auto"},
    "PAC-Bayes": {"method": "pac-bayes"},
}


def tasks() -> Iterator[tuple[str, nn.Module, np.ndarray, np.ndarray, dict[str, float]]]:
    X, y = load_breast_cancer(return_X_y=True)
    scaled = nn.Sequential(
        nn.BatchNorm1d(30, affine=False), nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2)
    )
    yield "breast cancer (569), 30-32-2", scaled, X, y, {}
    X, y = load_digits(return_X_y=True)
    small = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    yield "digits (1,797), 64-64-10", small, X / 16.0, y, {}
    folder = os.environ.get("PINDOWN_DATA")
    if folder and (Path(folder) / "mnist").is_dir():
        from pindown.datasets.public_data import load_mnist

        images = load_mnist(folder)
        X, y = images.train.reshape(-1, 784) / 255.0, images.train_labels
        wide = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        for n in (2_500, 10_000):
            yield f"MNIST ({n:,}), 784-128-10", wide, X[:n], y[:n], {"dropout": 0.3}


def run() -> Iterator[tuple[str, str]]:
    for name, module, X, y, settings in tasks():
        for way, chosen in WAYS.items():
            if way == "auto" and len(X) >= 1500:
                continue  # that is a fifth
            start = time.process_time()
            found = [
                certify(module, X, y, random_state=seed, verbose=0, **settings, **chosen)
                for seed in SEEDS
            ]
            each = (time.process_time() - start) / len(found)
            mean = float(np.mean([bound.value for bound in found]))
            held = f"{len(found[0].rows):,} rows certify"
            yield f"{name}, {way}", f"risk at most {mean:.4f}, {held}, {each:.0f} s"


if __name__ == "__main__":
    for row in run():
        print(*row, sep=": ", flush=True)

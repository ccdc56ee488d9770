"""Risk certificates on real data: the random classifier's, the test set's, and what they cost.

Confidence 0.95. MNIST is there if PINDOWN_DATA names the data folder: 60,000 images, 784-256-256-10.
Published recipes reach 0.02 to 0.03 on it with larger networks and long training. CPU time, one thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from torch import nn

from pindown.guarantees import certify


def tasks() -> Iterator[tuple[str, nn.Module, np.ndarray, np.ndarray, dict[str, float]]]:
    X, y = load_breast_cancer(return_X_y=True)
    scaled = nn.Sequential(
        nn.BatchNorm1d(30, affine=False), nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2)
    )
    yield "breast cancer", scaled, X, y, {}
    X, y = load_digits(return_X_y=True)
    yield "digits", nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)), X / 16.0, y, {}
    folder = os.environ.get("PINDOWN_DATA")
    if folder and (Path(folder) / "mnist").is_dir():
        from pindown.datasets.public_data import load_mnist

        images = load_mnist(folder)
        X, y = images.train.reshape(-1, 784) / 255.0, images.train_labels
        small = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 2))
        yield "MNIST, below five or not (10,000)", small, X[:10_000], y[:10_000] < 5, {"dropout": 0.3}
        wide = nn.Sequential(
            nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
        )
        yield "MNIST (60,000)", wide, X, y, {"dropout": 0.3, "prior_share": 0.6}


def run() -> list[tuple[str, str]]:
    rows = []
    for name, module, X, y, settings in tasks():
        start = time.process_time()
        found = certify(module, X, y, **settings)
        assert found.test_set is not None
        rows.append(
            (
                name,
                f"certified risk {found.value:.4f} (KL {found.terms['kl']:.2f}), test-set bound "
                f"{found.test_set.value:.4f}, {time.process_time() - start:.0f} s",
            )
        )
    return rows


if __name__ == "__main__":
    for row in run():
        print(*row, sep=": ")

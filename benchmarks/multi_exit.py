"""Early exit by the clock: a trained network with exits against the same network without them.

MNIST if PINDOWN_DATA names the data folder, else scikit-learn's digits enlarged. Thresholds are chosen
on held-out images for half of the full network's operations, or of its time; the full network computes
no early heads. Both are timed in turn in one run (medians of wall time, one thread).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from pindown.learn.multi_exit import MultiExitClassifier, MultiExitModel

TRAIN, TEST, RUNS = 1200, 512, 15


def images() -> tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    folder = os.environ.get("PINDOWN_DATA")
    if folder and (Path(folder) / "mnist").is_dir():
        from pindown.datasets.images import load_mnist

        data = load_mnist(folder)
        X, y, T, t = (
            data.train[:TRAIN],
            data.train_labels[:TRAIN],
            data.test[:TEST],
            data.test_labels[:TEST],
        )
        return "MNIST", X[:, None], y, T[:, None], t
    digits = load_digits()
    large = np.kron(digits.images, np.ones((3, 3)))[:, None]
    return "digits, 24 x 24", large[:-600], digits.target[:-600], large[-600:], digits.target[-600:]


def network(shape: tuple[int, ...], n_classes: int) -> MultiExitModel:
    layers: list[nn.Module] = []
    n_in = shape[0]
    for width, stride in ((32, 2), (32, 1), (64, 2), *[(64, 1)] * 5):
        layers += [nn.Conv2d(n_in, width, 3, stride, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(width), nn.ReLU()]
        n_in = width
    body = nn.Sequential(*layers)
    return MultiExitModel.from_sequential(body, (5, 11, 17, 23), torch.zeros(2, *shape), n_classes)


def run() -> list[tuple[str, str]]:
    torch.set_num_threads(1)
    name, X, y, T, t = images()
    model = MultiExitClassifier(
        module=network, max_epochs=4, validation_fraction=0.2, random_state=0
    ).fit(X, y)
    scores = " ".join(f"{score:.1%}" for score in model.exit_scores(T, t))
    shares = " ".join(f"{cost / model.costs_.full:.2f}" for cost in model.costs_.alone)
    rows = [(f"{name}: accuracy of the exits", f"{scores}; cost {shares}")]
    counted = model.costs_
    for batch_size, n in ((1, 100), (256, 512)):
        for unit in ("operations", "time"):
            model.costs_ = counted
            if unit == "time":
                model.measure_costs(T, batch_size=batch_size)
            curve = model.latency_curve(T[:n], t[:n], (0.5,), batch_size=batch_size, runs=RUNS)
            rows.append((f"{name}: batches of {batch_size}, half of the {unit}", str(curve.points[0])))
    return rows


if __name__ == "__main__":
    for row in run():
        print(*row, sep=": ")

"""Attacks within a radius beside foolbox's at equal CPU time, and targets beside exact distances.

200 digits each, in [0, 1]. foolbox runs on a float32 torch module on one thread, with as many steps as
take about as long as ours; of its attacks the one that breaks most counts. The LeNet is trained here on
20,000 digits. Successes of ours are those that float64 sees.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pindown as pn
from pindown.affine import Array
from pindown.datasets import load_mnist
from pindown.guarantees import minimum_distance
from pindown.probes import attack

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[2] / "shared"))
IMAGES = 200
CASES = (("linf", 0.05), ("l2", 1.0))
THEIRS = {
    "linf": ("LinfPGD", "LInfFMNAttack", "LinfDeepFoolAttack", "LinfBasicIterativeAttack"),
    "l2": ("L2PGD", "L2FMNAttack", "L2DeepFoolAttack", "DDNAttack", "L2BasicIterativeAttack"),
}
TRIAL_STEPS = 20  # tell what a step takes
NETWORKS = 50


def run() -> Iterator[tuple[str, str]]:
    """Yield what was measured, and the result."""
    yield from targets()
    if (SHARED / "data/mnist").exists():
        yield from images()


def images() -> Iterator[tuple[str, str]]:
    import torch

    torch.set_num_threads(1)
    data = load_mnist(SHARED / "data")
    X, y = data.test[:IMAGES].reshape(IMAGES, -1) / 255, data.test_labels[:IMAGES]
    dense = pn.load(SHARED / "models/mnist_256x4.onnx.gz")
    convolutional = _lenet(data)
    for name, model, module, rows in (
        ("mnist_256x4", dense, dense.relu_network().to_torch().float(), X),
        (
            "LeNet",
            pn.Model.from_torch(convolutional, (1, 28, 28)),
            convolutional,
            X.reshape(-1, 1, 28, 28),
        ),
    ):
        module.requires_grad_(False).eval()
        for norm, radius in CASES:
            for method in ("pgd", "auto"):
                began = time.process_time()
                found = attack(model, rows, y, norm=norm, radius=radius, box=(0, 1), method=method)
                seconds = time.process_time() - began
                text = f"ours {int(found.success.sum())} in {seconds:.1f} s"
                yield (
                    f"{name}, {norm} {radius:g}, {method}",
                    text + _beside(module, rows, y, norm, radius, seconds),
                )


def _beside(module: Any, X: Array, y: Array, norm: str, radius: float, seconds: float) -> str:
    """Return what foolbox's attacks break in the same time, and in their own."""
    made = {}
    for name in THEIRS[norm]:
        _, trial = _theirs(module, X, y, radius, name, TRIAL_STEPS)
        steps = max(1, round(TRIAL_STEPS * seconds / trial))
        made[name] = (*_theirs(module, X, y, radius, name, steps), steps)
    best = max(made, key=lambda name: made[name][0])
    hits = ", ".join(f"{name} {hit}" for name, (hit, _, _) in made.items())
    _, taken, steps = made[best]
    return f"; foolbox {made[best][0]} ({best}, {steps} steps, {taken:.1f} s; {hits})"


def _theirs(module: Any, X: Array, y: Array, radius: float, name: str, steps: int) -> tuple[int, float]:
    import foolbox
    import torch

    torch.manual_seed(0)
    inputs, classes = torch.tensor(X, dtype=torch.float32), torch.tensor(np.asarray(y, dtype=np.int64))
    one = getattr(foolbox.attacks, name)(steps=steps)
    began = time.process_time()
    model = foolbox.PyTorchModel(module, bounds=(0, 1), device="cpu")
    success = one(model, inputs, classes, epsilons=radius)[2]
    return int(success.sum()), time.process_time() - began


def _lenet(data: Any) -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    module = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )
    X = torch.tensor(data.train[:20000, None] / 255, dtype=torch.float32)
    y = torch.tensor(data.train_labels[:20000])
    optimiser = torch.optim.Adam(module.parameters(), 2e-3)
    for _ in range(2):
        for batch in torch.randperm(len(X)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(module(X[batch]), y[batch]).backward()
            optimiser.step()
    return module


def targets() -> Iterator[tuple[str, str]]:
    """Compare the distance to a target with the exact one, of which the cells are walked."""
    for norm in ("linf", "l2"):
        ratios, began = [], time.process_time()
        for seed in range(NETWORKS):
            net, x, target, score = target_problem(seed)
            exact = minimum_distance(score, x, norm, method="cells", box=(x - 5, x + 5))
            found = attack(net, x, norm=norm, target=target, box=(x - 5, x + 5))
            if np.isfinite(exact.upper):
                ratios.append(found.distance[0] / exact.lower)
            elif found.success[0]:
                raise AssertionError("reached a target that is proved to be out of reach")
        near = sum(ratio <= 1.05 for ratio in ratios)
        missed = sum(not np.isfinite(ratio) for ratio in ratios)
        yield (
            f"targets of {NETWORKS} networks 3-12-3, {norm}",
            f"{len(ratios)} can be reached, {missed} missed, {near} within 5 % of the exact distance, "
            f"largest ratio {max(ratios):.3f}, {time.process_time() - began:.0f} s",
        )


def target_problem(seed: int) -> tuple[pn.ReluNetwork, Array, int, pn.ReluNetwork]:
    """Return a network with three classes, an input, a target, and a score above 0 before the target.

    The score is the larger of the other outputs a, b minus the target's t, written with rectifiers:
    (b - a)+ + (a - t)+ - (t - a)+.
    """
    rng = np.random.default_rng(seed)
    layers = [(rng.standard_normal((m, n)), rng.standard_normal(m)) for m, n in ((12, 3), (3, 12))]
    net, x = pn.ReluNetwork.from_layers(layers), rng.standard_normal(3)
    first, second, target = (int(j) for j in np.argsort(-net(x)))
    rows = np.zeros((3, 3))
    rows[0, [second, first]], rows[1, [first, target]] = (1, -1), (1, -1)
    rows[2] = -rows[1]
    W, b = layers[1]
    score = pn.ReluNetwork.from_layers([layers[0], (rows @ W, rows @ b), ([[1.0, 1.0, -1.0]], [0.0])])
    return net, x, target, score

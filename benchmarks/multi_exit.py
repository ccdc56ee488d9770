"""Early exit by the clock: a trained network with exits against the same network without them.

The network is that of the experiments on early exits (20 labels per class, distillation, 300 epochs) on
MNIST at half its size if PINDOWN_DATA names the data folder, else on scikit-learn's digits. Thresholds
are chosen on held-out images for half of the full network's time at that batch size, or of its
operations. The full network computes no early heads. Both are timed in turn in one run (medians of
wall time, one thread).
"""

from __future__ import annotations

import torch

from pindown.learn.multi_exit import (
    MultiExitModel,
    confidence_policy,
    exit_costs,
    latency_curve,
    timed_policy,
)
from pindown_reproduction.underspecification_thesis._multi_exit import QUICK, fit_network

BUDGET, RUNS = 0.5, 9
SIZES = ((1, 200), (256, 2048))  # inputs in a batch, and in all


def probabilities(model: MultiExitModel, x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return torch.stack(model(x)).softmax(dim=2)


def run(seed: int = 10) -> list[tuple[str, str]]:
    model, data, _ = fit_network({**QUICK, "loss": "distillation", "seed": seed})
    held, test = probabilities(model, data.held).numpy(), probabilities(model, data.test)
    right = (test.argmax(dim=2) == torch.from_numpy(data.test_labels)).double().mean(dim=1).tolist()
    rows = [(f"{data.name}: accuracy of the exits", " ".join(f"{100 * r:.1f}" for r in right))]
    for batch_size, n in SIZES:
        batch, labels = data.test[:n], data.test_labels[:n]
        timed = timed_policy(model, data.held, BUDGET, data.held_labels, batch_size=batch_size)
        counted = confidence_policy(held, exit_costs(model, batch[:1]), BUDGET, data.held_labels)
        curve = latency_curve(model, batch, [timed, counted], labels, batch_size=batch_size, runs=RUNS)
        for unit, point in zip(("time", "operations"), curve.points, strict=True):
            rows.append((f"batches of {batch_size}, half of the {unit}", str(point)))
    return rows


if __name__ == "__main__":
    for row in run():
        print(*row, sep=": ")

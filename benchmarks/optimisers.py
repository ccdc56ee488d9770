"""One step of each optimiser against torch.optim.Adam(fused=True), one and ten million parameters.

CPU time of one thread. Rounds alternate between the optimisers, so that a busy machine slows all alike;
the ratio is that of the best rounds. torch has no fused RMSprop: its foreach form stands beside ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import pairwise

import torch

from pindown.optim import NAG, Adam, HeavyBall, RMSProp

MODELS = {(784, 700, 500, 200, 10): 20, (3000, 2000, 1500, 600, 10): 3}  # and steps in a round
ROUNDS = 15

MAKERS: dict[str, Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]] = {
    "torch Adam, fused": lambda p: torch.optim.Adam(p, fused=True),
    "torch Adam, foreach": lambda p: torch.optim.Adam(p, foreach=True),
    "torch RMSprop, foreach": lambda p: torch.optim.RMSprop(p, foreach=True),
    "NAG": NAG,
    "HeavyBall": HeavyBall,
    "Adam": Adam,
    "Adam, theorem steps": lambda p: Adam(p, schedule="theorem"),
    "Adam, optimal steps": lambda p: Adam(p, schedule="optimal"),
    "RMSProp": RMSProp,
    "RMSProp, no shift": lambda p: RMSProp(p, shift=0.0),
}
ONE_PASS = ("NAG", "HeavyBall", "Adam", "Adam, theorem steps")
SEVERAL_PASSES = ("Adam, optimal steps", "RMSProp", "RMSProp, no shift")


def with_gradients(
    make: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer], widths: Iterable[int]
) -> torch.optim.Optimizer:
    model = torch.nn.Sequential(*(torch.nn.Linear(a, b) for a, b in pairwise(widths)))
    params = list(model.parameters())
    for p in params:
        p.grad = torch.randn_like(p)
    return make(params)


def seconds(optimiser: torch.optim.Optimizer, steps: int) -> float:
    start = time.process_time()
    for _ in range(steps):
        optimiser.step()
    return (time.process_time() - start) / steps


def ratios(
    widths: tuple[int, ...], names: Iterable[str] = MAKERS, rounds: int = ROUNDS
) -> dict[str, tuple[float, float]]:
    """Return milliseconds per step and the ratio to torch's fused Adam, for each optimiser."""
    torch.set_num_threads(1)
    peer = next(iter(MAKERS))
    chosen = {name: with_gradients(MAKERS[name], widths) for name in dict.fromkeys((peer, *names))}
    for optimiser in chosen.values():
        seconds(optimiser, MODELS[widths])
    best = dict.fromkeys(chosen, float("inf"))
    for _ in range(rounds):
        for name, optimiser in chosen.items():
            best[name] = min(best[name], seconds(optimiser, MODELS[widths]))
    return {name: (1e3 * value, value / best[peer]) for name, value in best.items()}


def run() -> list[tuple[str, str]]:
    rows = []
    for widths in MODELS:
        n = sum(a * b + b for a, b in pairwise(widths))
        rows += [
            (
                f"{name}, {n:,} parameters",
                f"{milliseconds:.2f} ms a step, {ratio:.2f} of torch's fused Adam",
            )
            for name, (milliseconds, ratio) in ratios(widths).items()
        ]
    return rows


if __name__ == "__main__":
    for what, result in run():
        print(f"{what:60} {result}")

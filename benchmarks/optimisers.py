"""One step of each optimiser against torch.optim.Adam(foreach=True), a million parameters, one run.

CPU time of one thread. Rounds alternate between the optimisers, so that a busy machine slows all alike;
the ratio is that of the best rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import torch

from pindown.optim import NAG, Adam, HeavyBall, RMSProp

WIDTHS = (784, 700, 500, 200, 10)
ROUNDS = 15
STEPS = 20


def model() -> torch.nn.Sequential:
    pairs = pairwise(WIDTHS)
    return torch.nn.Sequential(*(torch.nn.Linear(a, b) for a, b in pairs))


def with_gradients(
    make: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer],
) -> torch.optim.Optimizer:
    params = list(model().parameters())
    for p in params:
        p.grad = torch.randn_like(p)
    return make(params)


def seconds(optimiser: torch.optim.Optimizer) -> float:
    start = time.process_time()
    for _ in range(STEPS):
        optimiser.step()
    return (time.process_time() - start) / STEPS


MAKERS: dict[str, Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer]] = {
    "torch Adam, foreach": lambda p: torch.optim.Adam(p, foreach=True),
    "NAG": NAG,
    "HeavyBall": HeavyBall,
    "RMSProp": RMSProp,
    "RMSProp, no shift": lambda p: RMSProp(p, shift=0.0),
    "Adam": Adam,
    "Adam, theorem steps": lambda p: Adam(p, schedule="theorem"),
    "Adam, optimal steps": lambda p: Adam(p, schedule="optimal"),
}


def ratios(
    names: tuple[str, ...] = tuple(MAKERS), rounds: int = ROUNDS
) -> dict[str, tuple[float, float]]:
    """Return milliseconds per step and the ratio to torch's Adam, for each optimiser."""
    torch.set_num_threads(1)
    chosen = {name: with_gradients(MAKERS[name]) for name in dict.fromkeys((next(iter(MAKERS)), *names))}
    for optimiser in chosen.values():
        seconds(optimiser)
    best = dict.fromkeys(chosen, float("inf"))
    for _ in range(rounds):
        for name, optimiser in chosen.items():
            best[name] = min(best[name], seconds(optimiser))
    peer = best[next(iter(MAKERS))]
    return {name: (1e3 * value, value / peer) for name, value in best.items()}


def run() -> list[tuple[str, str]]:
    n = sum(p.numel() for p in model().parameters())
    return [
        (f"{name}, {n:,} parameters", f"{milliseconds:.2f} ms a step, {ratio:.2f} of torch's Adam")
        for name, (milliseconds, ratio) in ratios().items()
    ]


if __name__ == "__main__":
    for what, result in run():
        print(f"{what:60} {result}")

"""Measured times: of every exit, and of early exit against the full network."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.deadline import Stopwatch
from pindown.evidence import Kind
from pindown.learn.multi_exit.inference import anytime, early_exit
from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.policy import ExitPolicy
from pindown.validation import choice, integer


@dataclass(frozen=True)
class ExitTimes:
    """Seconds until each exit has answered.

    Attributes:
        mode: ``"budget"`` (the exit's head only) or ``"anytime"`` (all heads on the way).
        median: Median of the runs, for each exit.
        mean: Alike.
        deviation: Standard deviation, alike.
        runs: How many runs.
        kind: ``"estimate"``.
    """

    mode: str
    median: tuple[float, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    runs: int
    kind: Kind = "estimate"

    def __str__(self) -> str:
        times = " ".join(f"{1e3 * t:.3g}" for t in self.median)
        return f"{self.mode} mode, milliseconds until each exit (median of {self.runs}): {times}"


def profile_exits(
    model: MultiExitModel,
    x: Tensor,
    mode: str = "budget",
    *,
    runs: int = 1000,
    warmup: int = 50,
    clock: Callable[[], float] = time.perf_counter,
) -> ExitTimes:
    """Measure how long every exit takes, with the exits taken in turn in every run.

    Args:
        model: The network, in evaluation mode.
        x: Inputs of one answer.
        mode: ``"budget"`` or ``"anytime"``.
        runs: Runs to measure.
        warmup: Runs before.
        clock: Returns seconds; ``time.process_time`` does not count what other programs take.

    Example:
        >>> from pindown.learn.multi_exit.networks import multi_exit_mlp
        >>> model = multi_exit_mlp(3, 2, hidden=(4, 4)).eval()
        >>> times = profile_exits(model, torch.zeros(1, 3), runs=3, warmup=1)
        >>> len(times.median), min(times.median) > 0
        (2, True)

    Phuong 2021, Tables E.1 and E.2.
    """
    integer("runs", runs), integer("warmup", warmup, least=0)
    choice("mode", mode, ("budget", "anytime"))
    seconds = np.empty((runs, model.n_exits))
    for run in range(-warmup, runs):
        seconds[max(run, 0)] = _times(model, x, mode, clock)
    return ExitTimes(
        mode=mode,
        median=tuple(np.median(seconds, axis=0).tolist()),
        mean=tuple(seconds.mean(axis=0).tolist()),
        deviation=tuple(seconds.std(axis=0).tolist()),
        runs=runs,
    )


def _times(model: MultiExitModel, x: Tensor, mode: str, clock: Callable[[], float]) -> Array:
    found = np.empty(model.n_exits)
    if mode == "anytime":
        _finish(x)
        watch = Stopwatch(clock=clock)
        for m, _ in anytime(model, x):
            _finish(x)
            found[m - 1] = watch.seconds
        return found
    for m in range(1, model.n_exits + 1):
        with torch.inference_mode():
            _finish(x)
            watch = Stopwatch(clock=clock)
            model.exit_only(x, m)
            _finish(x)
            found[m - 1] = watch.seconds
    return found


def _finish(x: Tensor) -> None:
    """Wait for a graphics card, which works on after a call has returned."""
    if x.device.type == "cuda":
        torch.cuda.synchronize(x.device)


@dataclass(frozen=True)
class LatencyPoint:
    """One budget: what it cost, how fast it was, how right.

    Attributes:
        budget: Share of the full network's cost (operations, or time if measured) asked for.
        cost: Share spent on these inputs.
        speedup: Time of the full network over that of early exit: medians, measured in turn.
        seconds: Median time for all inputs.
        full_seconds: The same of the full network.
        accuracy: Share that early exit gets right; nan without labels.
        full_accuracy: Share that the full network gets right.
        shares: Share of inputs that left at each exit.
    """

    budget: float
    cost: float
    speedup: float
    seconds: float
    full_seconds: float
    accuracy: float
    full_accuracy: float
    shares: tuple[float, ...]

    def __str__(self) -> str:
        return (
            f"budget {self.budget:.0%}: cost {self.cost:.1%}, {self.speedup:.2f} times as fast, "
            f"accuracy {self.accuracy:.1%} (full network {self.full_accuracy:.1%})"
        )


@dataclass(frozen=True)
class LatencyCurve:
    """Speed and accuracy at several budgets, measured.

    Attributes:
        points: One for each budget.
        batch_size: Inputs in a batch.
        n: Inputs.
        runs: Runs of each, in turn with the full network.
        kind: ``"estimate"``.
    """

    points: tuple[LatencyPoint, ...]
    batch_size: int
    n: int
    runs: int
    kind: Kind = "estimate"

    def __str__(self) -> str:
        head = f"{self.n} inputs in batches of {self.batch_size}, median of {self.runs} runs in turn"
        return "\n".join([head, *(f"  {point}" for point in self.points)])


def latency_curve(
    model: MultiExitModel,
    x: Tensor,
    policies: Sequence[ExitPolicy],
    y: Any = None,
    *,
    batch_size: int = 1,
    runs: int = 11,
    ensemble: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> LatencyCurve:
    """Measure early exit against the full network, in turn so that other load hits both alike.

    The full network is the last exit alone, without the heads on the way.

    Args:
        model: The network, in evaluation mode.
        x: Inputs.
        policies: One for each point of the curve.
        y: Labels, whole numbers from 0; or None.
        batch_size: Inputs handed over at once.
        runs: Runs of each.
        ensemble: Whether exits answer with the mean of those so far.
        clock: Returns seconds.
    """
    integer("batch_size", batch_size), integer("runs", runs)
    if not len(x) or not len(policies):
        raise ValueError("a latency curve needs at least one input and one policy.")
    batches = list(torch.split(x, batch_size))

    def full() -> Tensor:
        with torch.inference_mode():
            return torch.cat([model.exit_only(part, model.n_exits) for part in batches])

    def early(policy: ExitPolicy) -> tuple[Tensor, Tensor]:
        found = [early_exit(model, part, policy.thresholds, ensemble=ensemble) for part in batches]
        return torch.cat([f.probabilities for f in found]), torch.cat([f.exits for f in found])

    seconds = np.empty((runs, 1 + len(policies)))
    answers: list[Any] = []
    for run in range(-1, runs):  # one to warm up
        answers = []
        for k in range(1 + len(policies)):
            watch = Stopwatch(clock=clock)
            answers.append(early(policies[k - 1]) if k else full())
            _finish(x)
            seconds[max(run, 0), k] = watch.seconds
    base = _accuracy(answers[0], y)
    medians = np.median(seconds, axis=0)
    points = []
    for policy, (probabilities, exits), median in zip(policies, answers[1:], medians[1:], strict=True):
        shares = np.bincount(exits.numpy() - 1, minlength=model.n_exits) / len(x)
        points.append(
            LatencyPoint(
                budget=policy.budget,
                cost=policy.cost_of(shares),
                speedup=float(medians[0] / median),
                seconds=float(median),
                full_seconds=float(medians[0]),
                accuracy=_accuracy(probabilities, y),
                full_accuracy=base,
                shares=tuple(shares.tolist()),
            )
        )
    return LatencyCurve(tuple(points), batch_size, len(x), runs)


def _accuracy(scores: Tensor, y: Any) -> float:
    if y is None:
        return float("nan")
    return float((scores.argmax(dim=1).cpu().numpy() == np.asarray(y)).mean())

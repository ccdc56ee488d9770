"""What an exit costs: operations or seconds, counted or measured stage by stage and head by head."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from pindown.deadline import Stopwatch
from pindown.evidence import Kind
from pindown.learn.multi_exit.inference import leavers, select
from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.tuning import SMALLER_BATCH, WARMUP_RUNS
from pindown.validation import integer


@dataclass(frozen=True)
class ExitCosts:
    """Costs of the stages and heads of a network, for one input.

    Attributes:
        stages: Cost of each stage.
        heads: Cost of each head.
        unit: ``"operations"``: floating-point operations of matrix products and convolutions (a product
            and a sum count two; what is done element by element is not counted); or ``"seconds"``.
        kind: ``"exact"`` if counted, ``"estimate"`` if measured.
        fixed_stages: Part of each stage's cost that a batch pays as a whole, however many inputs are
            left in it; nothing if empty.
        fixed_heads: The same of the heads.
        batch_size: Inputs in a batch.

    Example:
        >>> costs = ExitCosts(stages=(10.0, 10.0), heads=(2.0, 2.0))
        >>> print(costs)
        operations of exits: 12 22; all heads on the way: 12 24
    """

    stages: tuple[float, ...]
    heads: tuple[float, ...]
    unit: str = "operations"
    kind: Kind = "exact"
    fixed_stages: tuple[float, ...] = ()
    fixed_heads: tuple[float, ...] = ()
    batch_size: int = 1

    def __post_init__(self) -> None:
        if len(self.stages) != len(self.heads) or not self.stages:
            raise ValueError("costs need one number for each stage and each head.")
        if min(self.stages) < 0 or min(self.heads) < 0 or self.alone[-1] <= 0:
            raise ValueError("costs must not be negative, and not all zero.")
        for whole, fixed in ((self.stages, self.fixed_stages), (self.heads, self.fixed_heads)):
            if fixed and not (
                len(fixed) == len(whole) and all(0 <= f <= w for f, w in zip(fixed, whole, strict=True))
            ):
                raise ValueError("fixed costs must be one part of each cost, or none at all.")

    @property
    def n_exits(self) -> int:
        """Number of exits."""
        return len(self.stages)

    @property
    def alone(self) -> tuple[float, ...]:
        """Cost of each exit with its own head only."""
        return tuple(sum(self.stages[: m + 1]) + self.heads[m] for m in range(len(self.stages)))

    @property
    def on_the_way(self) -> tuple[float, ...]:
        """Cost of each exit with all heads before it."""
        return tuple(
            sum(self.stages[: m + 1]) + sum(self.heads[: m + 1]) for m in range(len(self.heads))
        )

    @property
    def full(self) -> float:
        """Cost of the last exit alone: what a network without early exits would need."""
        return self.alone[-1]

    def __str__(self) -> str:
        alone, way = (" ".join(f"{c:.4g}" for c in part) for part in (self.alone, self.on_the_way))
        return f"{self.unit} of exits: {alone}; all heads on the way: {way}"


def exit_costs(model: MultiExitModel, example: Tensor) -> ExitCosts:
    """Count the operations of every stage and head.

    Args:
        model: The network; it is left as it was.
        example: A batch of inputs; costs are per input.

    Example:
        >>> from pindown.learn.multi_exit.networks import multi_exit_mlp
        >>> costs = exit_costs(multi_exit_mlp(10, 2, hidden=(5, 5)), torch.zeros(1, 10))
        >>> costs.stages, costs.heads  # 2 * 10 * 5 and 2 * 5 * 5; 2 * 5 * 2
        ((100.0, 50.0), (20.0, 20.0))
    """
    stages, heads = [], []
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), _Counter() as counter:  # inference mode would hide operations from it
            state = example
            for stage, head in zip(model.stages, model.heads, strict=True):
                state = stage(state)
                stages.append(counter.since_last() / len(example))
                head(state)
                heads.append(counter.since_last() / len(example))
    finally:
        model.train(training)
    return ExitCosts(tuple(stages), tuple(heads))


def measured_costs(
    model: MultiExitModel,
    example: Tensor,
    *,
    runs: int = 31,
    clock: Callable[[], float] = time.perf_counter,
) -> ExitCosts:
    """Measure how long every stage and head takes, for budgets of time in place of operations.

    Small networks answer single inputs in a time that counts their modules, not their operations. Of a
    batch, part of the time is that of its modules and does not shrink with the batch: it is found by
    measuring a smaller batch too.

    Args:
        model: The network, in evaluation mode.
        example: A batch as it will be used; costs are per input.
        runs: The median of this many is taken, after some to warm up.
        clock: Returns seconds.

    Phuong 2021, section 6.2.2: budgets are of measured time.
    """
    integer("runs", runs)
    n = len(example)
    if not n:
        raise ValueError("costs are measured on at least one input.")
    whole = _seconds(model, example, runs, clock)
    fixed = torch.zeros_like(whole)
    if n > 1:  # time is a + b k for k inputs: two sizes tell
        few = max(1, n // SMALLER_BATCH)
        part = _seconds(model, example[:few], runs, clock)
        fixed = torch.minimum(((n * part - few * whole) / (n - few)).clamp(min=0.0), whole)
    (stages, heads), (fixed_stages, fixed_heads) = (
        tuple(map(tuple, (times / n).tolist())) for times in (whole, fixed)
    )
    return ExitCosts(stages, heads, "seconds", "estimate", fixed_stages, fixed_heads, n)


def _seconds(model: MultiExitModel, x: Tensor, runs: int, clock: Callable[[], float]) -> Tensor:
    """Return median times of the stages and of the heads, (2, exits)."""
    seconds = torch.zeros(runs, 2, model.n_exits, dtype=torch.float64)
    some = torch.arange(0, len(x), 2, device=x.device)
    with torch.inference_mode():
        for run in range(-WARMUP_RUNS, runs):
            state = x
            for m, (stage, head) in enumerate(zip(model.stages, model.heads, strict=True)):
                watch = Stopwatch(clock=clock)
                state = stage(state)
                between = watch.seconds
                logits = head(state)
                if m + 1 < model.n_exits:  # deciding who leaves, and taking them out
                    probabilities = logits.softmax(dim=1)
                    if len(x) == 1:
                        float(probabilities.max())
                    else:
                        leavers(probabilities, 0.5)
                        probabilities.index_copy_(0, some, probabilities.index_select(0, some))
                        select(state, some)
                seconds[max(run, 0), :, m] = torch.tensor([between, watch.seconds - between])
    return seconds.median(dim=0).values


class _Counter(TorchDispatchMode):  # type: ignore[misc]
    """Counts with torch's own formulas, without the second or two its counter takes to start."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.total += formula(*args, **(kwargs or {}), out_val=found)
        return found

    def since_last(self) -> int:
        total, self.total = self.total, 0
        return total

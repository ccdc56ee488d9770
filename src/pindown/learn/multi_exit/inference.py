"""Answers of a network with exits: of all of them, or stopping early.

What is sure at an exit leaves there, and later stages never see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softmax

from pindown.affine import Array
from pindown.learn.multi_exit._inputs import InputScaling
from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.tuning import ROWS_PER_CHUNK

# A threshold that no probability reaches: nobody leaves there, and the head is not computed.
NO_EXIT = 2.0


@dataclass(frozen=True, eq=False)
class EarlyAnswers:
    """Answers of a network that stopped early.

    Attributes:
        probabilities: (n, classes).
        exits: Exit at which each input left, from 1.
    """

    probabilities: Tensor
    exits: Tensor

    def __str__(self) -> str:
        counts = torch.bincount(self.exits).tolist()[1:]
        return f"{len(self.exits)} answers, by exit: " + " ".join(map(str, counts))


def early_exit(
    model: MultiExitModel, x: Tensor, thresholds: Sequence[float], *, ensemble: bool = False
) -> EarlyAnswers:
    r"""Answer each input at the first exit whose largest probability reaches its threshold.

    After every exit, finished inputs are taken out of the batch: later stages are computed for the
    others only, and not at all when none is left. Heads where nobody can leave are skipped.

    Args:
        model: The network, in evaluation mode.
        x: Inputs, (n, ...).
        thresholds: One for each exit but the last (a last one is ignored); above 1 means never.
        ensemble: Whether an exit answers with the mean of its probabilities and those of the exits
            before it (then every head is computed).

    Raises:
        ValueError: If thresholds are not numbers, one for each exit but the last, or the network is in
            training mode.

    Example:
        >>> from pindown.learn.multi_exit.networks import multi_exit_mlp
        >>> model = multi_exit_mlp(3, 2, hidden=(4, 4)).eval()
        >>> print(early_exit(model, torch.zeros(5, 3), [0.0]))  # everybody is sure enough at once
        5 answers, by exit: 5

    Phuong 2021, section 6.2.2, and Huang et al. 2018, for the thresholds.
    """
    _require_evaluation(model)
    n_exits = model.n_exits
    limits = [float(t) for t in thresholds][: n_exits - 1]
    if len(limits) != n_exits - 1:
        raise ValueError(f"{n_exits} exits need {n_exits - 1} thresholds; got {len(list(thresholds))}.")
    if any(map(math.isnan, limits)):
        raise ValueError(f"thresholds must be numbers; got {limits!r}.")
    answer = _single if len(x) == 1 else _batch
    with torch.inference_mode():
        return answer(model, x, [*limits, 0.0], ensemble)


def _single(model: MultiExitModel, x: Tensor, limits: list[float], ensemble: bool) -> EarlyAnswers:
    """Answer one input: no masks, no copies."""
    state, total = x, None
    for m, (stage, head, limit) in enumerate(zip(model.stages, model.heads, limits, strict=True), 1):
        state = stage(state)
        if limit > 1.0 and not ensemble:
            continue
        probabilities = softmax(head(state), dim=1)
        if ensemble:
            total = probabilities if total is None else total + probabilities
            probabilities = total / m
        if limit <= 0.0 or float(probabilities.max()) >= limit:
            return EarlyAnswers(probabilities, torch.full((1,), m))
    raise AssertionError("the last threshold is 0")


def _batch(model: MultiExitModel, x: Tensor, limits: list[float], ensemble: bool) -> EarlyAnswers:
    state: Any = x
    rows = torch.arange(len(x), device=x.device)  # those still here
    exits = torch.full((len(x),), model.n_exits)
    answers, total = None, None
    for m, (stage, head, limit) in enumerate(zip(model.stages, model.heads, limits, strict=True), 1):
        state = stage(state)
        if limit > 1.0 and not ensemble:
            continue
        probabilities = softmax(head(state), dim=1)
        if ensemble:
            total = probabilities if total is None else total + probabilities
            probabilities = total / m
        left, kept = leavers(probabilities, limit)
        if not len(kept):
            exits[rows.cpu()] = m
            if answers is None:
                return EarlyAnswers(probabilities, exits)
            return EarlyAnswers(answers.index_copy_(0, rows, probabilities), exits)
        if len(left):
            if answers is None:
                answers = probabilities.new_empty(len(x), probabilities.shape[1])
            gone = rows.index_select(0, left)
            answers.index_copy_(0, gone, probabilities.index_select(0, left))
            exits[gone.cpu()] = m
            rows, state = rows.index_select(0, kept), select(state, kept)
            total = None if total is None else total.index_select(0, kept)
    raise AssertionError("the last threshold is 0")


def leavers(probabilities: Tensor, limit: float) -> tuple[Tensor, Tensor]:
    """Return the places of those whose largest probability reaches the limit, and of the others.

    At limit 0 everybody leaves, even if the probabilities are not numbers.
    """
    if limit <= 0.0:
        everyone = torch.arange(len(probabilities), device=probabilities.device)
        return everyone, everyone[:0]
    done = probabilities.amax(dim=1) >= limit
    return done.nonzero()[:, 0], (~done).nonzero()[:, 0]


def _require_evaluation(model: MultiExitModel) -> None:
    """Refuse training mode, in which batch normalisation makes answers depend on who is still there."""
    if model.training:
        raise ValueError("the network is in training mode; call model.eval() before early answers.")


def select(state: Any, rows: Tensor) -> Any:
    """Return rows of a state: of a tensor, or of every tensor in a list, tuple or dictionary.

    Example:
        >>> select([torch.arange(3), torch.arange(3) * 10], torch.tensor([2]))
        [tensor([2]), tensor([20])]
    """
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, list | tuple):
        return type(state)([select(part, rows) for part in state])
    if isinstance(state, dict):
        return {name: select(part, rows) for name, part in state.items()}
    raise TypeError(
        f"a state must be tensors in lists, tuples or dictionaries; got {type(state).__name__}."
    )


def anytime(model: MultiExitModel, x: Tensor) -> Iterator[tuple[int, Tensor]]:
    r"""Yield after every exit the mean of the probabilities of all exits so far.

    The next stage is computed when the next answer is asked for: leave the loop to stop.

    Args:
        model: The network, in evaluation mode.
        x: Inputs, (n, ...).

    Yields:
        The number m of the exit, and :math:`\frac1m \sum_{j \le m} p_j`, (n, classes).

    Example:
        >>> from pindown.learn.multi_exit.networks import multi_exit_mlp
        >>> model = multi_exit_mlp(3, 2, hidden=(4, 4, 4)).eval()
        >>> for m, answer in anytime(model, torch.zeros(1, 3)):
        ...     if m == 2:
        ...         break
        >>> round(answer.sum().item(), 4)
        1.0

    Phuong 2021, section 6.2.2, anytime mode.
    """
    _require_evaluation(model)
    state, total = x, None
    for m, (stage, head) in enumerate(zip(model.stages, model.heads, strict=True), 1):
        with torch.inference_mode():
            state = stage(state)
            probabilities = softmax(head(state), dim=1)
            total = probabilities if total is None else total + probabilities
            answer = total / m
        yield m, answer


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A trained network with the scaling of its inputs, and what it says about rows.

    Attributes:
        model: The network.
        scaling: How rows become its inputs.
    """

    model: MultiExitModel
    scaling: InputScaling

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights."""
        return next((p.dtype for p in self.model.parameters()), torch.float32)

    def inputs(self, rows: Array) -> Tensor:
        """Return what the network takes, (n, *shape), where the network is."""
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        return self.scaling.inputs(rows, self.dtype).to(device)

    def all_probabilities(self, x: Tensor) -> Array:
        """Return the probabilities of all exits, (exits, n, classes)."""
        with torch.inference_mode():
            parts = [
                torch.stack([softmax(z, dim=1) for z in self.model(part)])
                for part in torch.split(x, ROWS_PER_CHUNK)
            ]
        return torch.cat(parts, dim=1).cpu().double().numpy()

    def probabilities_at(self, x: Tensor, m: int, *, ensemble: bool) -> Tensor:
        """Return the probabilities of exit m, or the mean of those up to it, (n, classes)."""
        with torch.inference_mode():
            if not ensemble:
                return softmax(self.model.exit_only(x, m), dim=1).cpu()
            logits = self.model.forward_until(x, m)
            return torch.stack([softmax(z, dim=1) for z in logits]).mean(dim=0).cpu()

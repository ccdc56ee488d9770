r"""A network with several exits, cheap ones first: stages in a chain, a classifier head after each.

Stage m turns the state :math:`s_{m-1}` into :math:`s_m` (a tensor, or a list of tensors), head m turns
:math:`s_m` into logits: :math:`z_m = h_m(g_m(\cdots g_1(x)))`. Exits are numbered from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from pindown.validation import integer


class MultiExitModel(nn.Module):  # type: ignore[misc]
    r"""Stages and heads, put together to a network that can stop after any stage.

    Args:
        stages: Modules :math:`g_1, \ldots, g_M`; the first takes the input, the others what the one
            before returned.
        heads: Modules :math:`h_1, \ldots, h_M` that turn states into logits, (n, classes).

    Example:
        >>> stages = [nn.Linear(4, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 3))]
        >>> model = MultiExitModel(stages, [nn.Linear(3, 2), nn.Linear(3, 2)])
        >>> [tuple(z.shape) for z in model(torch.zeros(5, 4))]
        [(5, 2), (5, 2)]
        >>> x = torch.ones(5, 4)
        >>> bool((model.exit_only(x, 1) == model(x)[0]).all())
        True

    Phuong 2021, section 6.2.1.
    """

    def __init__(self, stages: Iterable[nn.Module], heads: Iterable[nn.Module]) -> None:
        super().__init__()
        self.stages, self.heads = nn.ModuleList(stages), nn.ModuleList(heads)
        if len(self.stages) != len(self.heads) or not len(self.stages):
            raise ValueError(
                f"a multi-exit model needs one head per stage, and at least one of each; "
                f"got {len(self.stages)} stages and {len(self.heads)} heads."
            )

    @property
    def n_exits(self) -> int:
        """Number M of exits."""
        return len(self.stages)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return the logits of all exits, cheap to expensive."""
        return self.forward_until(x, self.n_exits)

    def forward_until(self, x: Tensor, m: int) -> list[Tensor]:
        """Return the logits of exits 1, ..., m; later stages are not computed."""
        self.require_exit(m)
        logits, state = [], x
        for stage, head in islice(zip(self.stages, self.heads, strict=True), m):
            state = stage(state)
            logits.append(head(state))
        return logits

    def exit_only(self, x: Tensor, m: int) -> Tensor:
        """Return the logits of exit m; neither later stages nor other heads are computed."""
        self.require_exit(m)
        state = x
        for stage in islice(self.stages, m):  # a slice would build a new module, at a stage's price
            state = stage(state)
        return self.heads[m - 1](state)

    def prefix(self, m: int) -> nn.Sequential:
        """Return the network of exit m alone, as a module of its own that shares the weights."""
        self.require_exit(m)
        return nn.Sequential(*self.stages[:m], self.heads[m - 1])

    def require_exit(self, m: int) -> None:
        """Refuse numbers that no exit has."""
        integer("exit", m, most=self.n_exits)

    @classmethod
    def from_sequential(
        cls,
        sequential: nn.Sequential,
        after: Sequence[int],
        example: Tensor,
        n_classes: int | None = None,
    ) -> MultiExitModel:
        """Give a chain of modules exits after chosen ones; the modules themselves are shared.

        A new head averages over positions (pixels, or tokens of (n, tokens, width)) and is linear. If
        modules remain after the last exit, they are the last exit, with the classifier they end in.

        Args:
            sequential: The chain.
            after: Places (from 0, ascending) of the modules after which there is to be an exit.
            example: An input batch, to find out shapes.
            n_classes: Number of classes; None for what the chain returns.

        Raises:
            ValueError: If a place is not in the chain, or the classes do not fit its output.

        Example:
            >>> body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 3))
            >>> model = MultiExitModel.from_sequential(body, after=[1], example=torch.zeros(2, 4))
            >>> model.n_exits, model.exit_only(torch.zeros(2, 4), 1).shape
            (2, torch.Size([2, 3]))
            >>> bool((model.exit_only(torch.ones(2, 4), 2) == body(torch.ones(2, 4))).all())
            True
        """
        modules, places = list(sequential), list(after)
        if (
            not places
            or sorted(set(places)) != places
            or not 0 <= places[0] <= places[-1] < len(modules)
        ):
            raise ValueError(
                f"after must list ascending places from 0 to {len(modules) - 1}; got {after!r}."
            )
        states = _states(sequential, example)
        tail = modules[places[-1] + 1 :]
        if n_classes is None:
            if not tail:
                raise ValueError("n_classes must be given: the chain ends in an exit, not in classes.")
            n_classes = states[-1].shape[1]
        ends = [*places, len(modules) - 1] if tail else places
        starts = [0, *(end + 1 for end in ends[:-1])]
        stages = [nn.Sequential(*modules[i : j + 1]) for i, j in zip(starts, ends, strict=True)]
        heads = [PooledHead(states[place], n_classes) for place in places]
        if tail:
            if tuple(states[-1].shape[1:]) != (n_classes,):
                raise ValueError(
                    f"the chain returns {tuple(states[-1].shape[1:])}, not {n_classes} classes."
                )
            heads.append(nn.Identity())
        return cls(stages, heads)


class PooledHead(nn.Module):  # type: ignore[misc]
    """Mean over positions, then a linear layer: for (n, d), (n, tokens, d) and (n, d, height, width).

    Args:
        state: A state of the kind the head is for.
        n_classes: Number of logits.

    Example:
        >>> head = PooledHead(torch.zeros(1, 6, 4, 4), n_classes=2)
        >>> head.linear.in_features, head(torch.zeros(5, 6, 4, 4)).shape
        (6, torch.Size([5, 2]))
    """

    def __init__(self, state: Tensor, n_classes: int) -> None:
        super().__init__()
        if not isinstance(state, Tensor) or state.dim() not in (2, 3, 4):
            what = tuple(state.shape) if isinstance(state, Tensor) else type(state).__name__
            raise ValueError(
                f"a pooled head reads (n, d), (n, tokens, d) or (n, d, height, width); got {what}; "
                "make a MultiExitModel with heads of your own."
            )
        self.mean_over = {2: [], 3: [1], 4: [2, 3]}[state.dim()]
        self.linear = nn.Linear(state.shape[2] if state.dim() == 3 else state.shape[1], n_classes)

    def forward(self, state: Tensor) -> Tensor:
        """Return logits, (n, classes)."""
        return self.linear(state.mean(self.mean_over) if self.mean_over else state)


def _states(sequential: nn.Sequential, example: Tensor) -> list[Any]:
    """Return what each module of a chain makes of the example; running means stay as they are."""
    modes = [(module, module.training) for module in sequential.modules()]
    states, state = [], example
    try:
        with torch.no_grad():
            for module in sequential.eval():
                state = module(state)
                states.append(state)
    finally:
        for module, training in modes:
            module.training = training
    return states

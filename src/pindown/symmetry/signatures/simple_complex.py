"""Simple and complex cells as a torch module: project on an orbit, bend, pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from pindown.symmetry.groups import Group
from pindown.validation import choice, integer, refuse

_NONLINEARITIES: dict[str, Callable[[Any], Any]] = {
    "relu": torch.relu,
    "abs": torch.abs,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "square": torch.square,
    "step": lambda u: (u > 0).to(u.dtype),
}
_POOLS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda s: s.sum(dim=2),
    "mean": lambda s: s.mean(dim=2),
    "max": lambda s: s.amax(dim=2),
}


class SimpleComplex(nn.Module):  # type: ignore[misc]
    r"""A block that is invariant to a group for all values of its weights.

    .. math:: s = \sigma(W^\top x - b), \quad W = (g_1 w, \dots), \qquad c = \mathrm{pool}_g \; s

    Simple cells s are permuted when the sample is moved; complex cells c stay. Weights and thresholds
    are trained; the group's matrices are not. Blocks stack: the output is a plain vector.

    Args:
        group: A group that acts by matrices.
        n_templates: K, how many weight vectors.
        nonlinearity: ``"relu"``, ``"abs"``, ``"tanh"``, ``"sigmoid"``, ``"square"`` or ``"step"`` (which
            has no gradient).
        pool: ``"sum"``, ``"mean"`` or ``"max"``.
        thresholds: b, (B,); several make the block tell more orbits apart.
        dtype: Type of the weights; None for torch's default.

    >>> from pindown.symmetry.groups import cyclic
    >>> block = SimpleComplex(cyclic(6), 4, thresholds=(-0.5, 0.0, 0.5)).double()
    >>> x = torch.arange(6.0, dtype=torch.float64)[None]
    >>> block(x).shape, torch.allclose(block(x), block(x.roll(2, dims=1)))
    (torch.Size([1, 12]), True)

    Lecture course, section on simple and complex cells.
    """

    def __init__(
        self,
        group: Group,
        n_templates: int,
        nonlinearity: str = "relu",
        pool: str = "mean",
        thresholds: Sequence[float] = (-1.0, -0.5, 0.0, 0.5, 1.0),
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        choice("nonlinearity", nonlinearity, _NONLINEARITIES)
        choice("pool", pool, _POOLS)
        integer("n_templates", n_templates)
        if len(thresholds) == 0:
            refuse("thresholds", "at least one number", thresholds)
        kind = torch.get_default_dtype() if dtype is None else dtype
        # <g x, w> = <x, g^T w>: transposed, so that other than orthogonal actions are welcome too.
        self.register_buffer("matrices", torch.tensor(np.swapaxes(group.matrices, 1, 2), dtype=kind))
        self.weight = nn.Parameter(torch.randn(n_templates, group.degree, dtype=kind))
        with torch.no_grad():
            self.weight /= self.weight.norm(dim=1, keepdim=True)
        self.thresholds = nn.Parameter(torch.tensor(list(thresholds), dtype=kind))
        self.nonlinearity, self.pool = nonlinearity, pool

    @property
    def out_features(self) -> int:
        """The number of complex cells, K * B."""
        return len(self.weight) * len(self.thresholds)

    def simple(self, x: Any) -> Any:
        """Simple cells, (batch, K, order, B): entry g is the response to the sample moved by g."""
        if x.ndim != 2 or x.shape[1] != self.weight.shape[1]:
            raise ValueError(
                f"the block takes (batch, {self.weight.shape[1]}); got {tuple(x.shape)}. Flatten first."
            )
        bank = torch.einsum("gij,kj->kgi", self.matrices, self.weight)
        u = torch.einsum("bi,kgi->bkg", x, bank)
        return _NONLINEARITIES[self.nonlinearity](u[..., None] - self.thresholds)

    def forward(self, x: Any) -> Any:
        """Complex cells, (batch, K * B)."""
        return _POOLS[self.pool](self.simple(x)).flatten(1)

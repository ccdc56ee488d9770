r"""Layers on sets (DeepSets): outputs move with the elements, or do not depend on their order.

A linear map of M numbers commutes with all permutations if and only if

.. math:: \Theta = \lambda I + \gamma 11^T, \qquad
          \Theta_{ii} = \lambda + \gamma, \quad \Theta_{ij} = \gamma \ (i \ne j).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from pindown.symmetry.layers.convolution import POOLS
from pindown.symmetry.layers.linear import check_shape
from pindown.validation import choice, integer


class PermEquivariant(nn.Module):  # type: ignore[misc]
    r"""A layer on sets that permutes with its input.

    .. math:: Y = X\Lambda + 1\,\mathrm{pool}(X)\Gamma + 1b

    Args:
        c_in: Numbers per element of the input.
        c_out: Numbers per element of the output.
        pool: ``"mean"``, ``"sum"`` (outputs grow with the set) or ``"max"``.
        bias: Whether to add b to every element.
        generator: Source of the first weights.

    Attributes:
        own: :math:`\Lambda`, ``(c_in, c_out)``.
        common: :math:`\Gamma`, ``(c_in, c_out)``.

    Inputs are ``(..., M, c_in)``; a mask ``(..., M)`` says which elements are there. Missing ones have
    outputs 0, and the pool of no element is 0.

    Example:
        With one number per element and sums this is the two-parameter family:

        >>> layer = PermEquivariant(1, 1, "sum", bias=False)
        >>> layer.own.data, layer.common.data = torch.tensor([[2.0]]), torch.tensor([[3.0]])
        >>> layer(torch.eye(3)[:, :, None])[:, :, 0].tolist()
        [[5.0, 3.0, 3.0], [3.0, 5.0, 3.0], [3.0, 3.0, 5.0]]

    Lecture course, section on the permutation equivariant layer (Zaheer et al. 2017, Lemma 3).
    """

    def __init__(
        self,
        c_in: int,
        c_out: int,
        pool: str = "mean",
        *,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        integer("c_in", c_in)
        integer("c_out", c_out)
        self.c_in, self.pool = c_in, choice("pool", pool, POOLS)
        spread = 1.0 / math.sqrt(c_in)
        self.own = nn.Parameter(spread * torch.randn(c_in, c_out, generator=generator))
        self.common = nn.Parameter(spread * torch.randn(c_in, c_out, generator=generator))
        self.bias = nn.Parameter(torch.zeros(c_out)) if bias else None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``(..., M, c_out)``."""
        check_shape(x, (x.shape[-2] if x.ndim > 1 else 1, self.c_in), "a set layer")
        y = x @ self.own + _pooled_elements(x, self.pool, mask).unsqueeze(-2) @ self.common
        y = y if self.bias is None else y + self.bias
        return y if mask is None else y.masked_fill(~mask.bool().unsqueeze(-1), 0.0)


class PermInvariant(nn.Module):  # type: ignore[misc]
    r"""A layer on sets that does not see the order: :math:`y = \mathrm{pool}(X)\Gamma + b`.

    Args:
        c_in: Numbers per element.
        c_out: Numbers of the answer.
        pool: ``"mean"``, ``"sum"`` or ``"max"``.
        bias: Whether to add b.
        generator: Source of the first weights.

    >>> PermInvariant(4, 2)(torch.ones(7, 10, 4)).shape
    torch.Size([7, 2])

    Lecture course, section on the permutation equivariant layer.
    """

    def __init__(
        self,
        c_in: int,
        c_out: int,
        pool: str = "mean",
        *,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        integer("c_in", c_in)
        integer("c_out", c_out)
        self.c_in, self.pool = c_in, choice("pool", pool, POOLS)
        weight = torch.randn(c_in, c_out, generator=generator)
        self.common = nn.Parameter(weight / math.sqrt(c_in))
        self.bias = nn.Parameter(torch.zeros(c_out)) if bias else None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``(..., c_out)``."""
        check_shape(x, (x.shape[-2] if x.ndim > 1 else 1, self.c_in), "a set layer")
        y = _pooled_elements(x, self.pool, mask) @ self.common
        return y if self.bias is None else y + self.bias


class SetNetwork(nn.Module):  # type: ignore[misc]
    """A function of sets: equivariant layers with ReLUs, then an invariant one.

    Args:
        widths: Numbers per element of the input, of each hidden layer, and of the answer.
        pool: The pooling in every layer.
        generator: Source of the first weights.

    >>> SetNetwork([3, 16, 16, 2])(torch.ones(5, 9, 3)).shape
    torch.Size([5, 2])

    Lecture course, section on the permutation equivariant layer.
    """

    def __init__(
        self, widths: Sequence[int], pool: str = "mean", *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        if len(widths) < 2:
            raise ValueError(
                f"widths must name at least the input and the answer; got {list(widths)!r}."
            )
        self.hidden = nn.ModuleList(
            PermEquivariant(a, b, pool, generator=generator) for a, b in pairwise(widths[:-1])
        )
        self.answer = PermInvariant(widths[-2], widths[-1], pool, generator=generator)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return ``(..., answer)``."""
        for layer in self.hidden:
            x = torch.relu(layer(x, mask))
        return self.answer(x, mask)


def _pooled_elements(x: Tensor, how: str, mask: Tensor | None = None) -> Tensor:
    """Pool ``(..., M, c)`` over the elements that are there; of none the pool is 0.

    >>> _pooled_elements(torch.tensor([[1.0], [5.0]]), "max", torch.tensor([True, False])).tolist()
    [1.0]
    """
    if x.shape[-2] == 0:
        return x.sum(-2)
    if mask is None:
        return x.amax(-2) if how == "max" else x.sum(-2) if how == "sum" else x.mean(-2)
    if mask.shape != x.shape[:-1]:
        raise ValueError(f"mask must have shape {tuple(x.shape[:-1])}; got {tuple(mask.shape)}.")
    there = mask.bool().unsqueeze(-1)
    if how == "max":
        largest = x.masked_fill(~there, -torch.inf).amax(-2)
        return torch.where(there.any(-2), largest, torch.zeros_like(largest))
    total = x.masked_fill(~there, 0.0).sum(-2)
    return total if how == "sum" else total / there.sum(-2).clamp(min=1)

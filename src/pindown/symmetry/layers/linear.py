"""Torch layers with exact constants: the most general linear one that commutes, and averaged modules.

Their constants stay in double precision, whatever the parameters are cast to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pindown.symmetry.groups import Group
from pindown.symmetry.layers.basis import equivariant_basis, invariant_basis
from pindown.symmetry.layers.representations import Representation
from pindown.symmetry.smoothing import kind_of_average
from pindown.validation import integer


class ExactConstants(nn.Module):  # type: ignore[misc]
    """A module with constants that ``.float()`` and ``.double()`` leave alone.

    A basis rounded to single precision and widened again commutes with the group to seven digits only.
    The constants are part of the ``state_dict``: weights are coefficients in this very basis.
    """

    def __init__(self) -> None:
        super().__init__()
        self._constants: list[str] = []

    def keep(self, name: str, values: Any) -> None:
        """Store an array as a constant: integers as they are, others in double precision."""
        tensor = torch.as_tensor(values)
        self.register_buffer(name, tensor.double() if tensor.is_floating_point() else tensor)
        self._constants.append(name)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> ExactConstants:
        kept = {name: getattr(self, name) for name in self._constants}
        super()._apply(fn, recurse)
        for name, tensor in kept.items():
            moved = getattr(self, name)
            setattr(self, name, tensor.to(moved.device))
        return self


def check_shape(x: Tensor, expected: tuple[int, ...], what: str) -> None:
    """Refuse tensors whose last axes are not as expected."""
    if tuple(x.shape[-len(expected) :]) != expected or x.ndim < len(expected):
        wanted = ", ".join(map(str, expected))
        raise ValueError(f"{what} takes tensors (..., {wanted}); got shape {tuple(x.shape)}.")


class EquivariantLinear(ExactConstants):
    r"""A linear layer with :math:`f(\rho_{in}(g)x) = \rho_{out}(g)f(x)` for all g, and no other limit.

    .. math:: f(x)_o = \sum_c \sum_{j \le k} \theta_{ocj} B_j x_c + \sum_l \beta_{ol} v_l

    with :math:`B_j` a basis of all maps that commute and :math:`v_l` one of all invariant biases.

    Args:
        rep_in: The group acting on each input channel: a group or matrices ``(order, d_in, d_in)``.
        rep_out: The same group acting on each output channel; None for ``rep_in``.
        c_in: Input channels.
        c_out: Output channels.
        bias: Whether to add an invariant bias.
        generator: Source of the first weights.

    Attributes:
        basis: ``(k, d_out, d_in)``, in double precision.
        weight: Coefficients ``(c_out, c_in, k)``, normal at first and scaled to keep the variance.
        bias: Coefficients ``(c_out, number of invariant vectors)``, or None.

    Inputs are ``(..., c_in, d_in)``, or ``(..., d_in)`` if there is one channel on both sides.

    Example:
        >>> from pindown.symmetry import cyclic
        >>> layer = EquivariantLinear(cyclic(5), c_in=2, c_out=3)
        >>> layer(torch.ones(7, 2, 5)).shape, layer.weight.shape
        (torch.Size([7, 3, 5]), torch.Size([3, 2, 5]))

    Lecture course, section on equivariance and convolution (after Kondor and Trivedi 2018).
    """

    def __init__(
        self,
        rep_in: Representation,
        rep_out: Representation | None = None,
        *,
        c_in: int = 1,
        c_out: int = 1,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        integer("c_in", c_in)
        integer("c_out", c_out)
        basis = equivariant_basis(rep_in, rep_out)
        k, self.d_out, self.d_in = basis.shape
        if not k:
            raise ValueError(
                "only the zero map commutes with these two actions; choose another rep_out."
            )
        self.c_in, self.c_out = c_in, c_out
        self.keep("basis", basis)
        spread = math.sqrt(self.d_out / (k * c_in))  # orthonormal maps: the outputs vary as the inputs
        self.weight = nn.Parameter(spread * torch.randn(c_out, c_in, k, generator=generator))
        self.bias: nn.Parameter | None = None
        if bias:
            vectors = invariant_basis(rep_in if rep_out is None else rep_out)
            self.keep("bias_basis", vectors)
            self.bias = nn.Parameter(torch.zeros(c_out, len(vectors)))

    def matrix(self) -> Tensor:
        """Return the weights as matrices ``(c_out, c_in, d_out, d_in)``."""
        return torch.einsum("ock,kij->ocij", self.weight, self.basis.to(self.weight))

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(..., c_out, d_out)``."""
        plain = self.c_in == self.c_out == 1 and (x.ndim < 2 or x.shape[-2] != 1)
        x = x.unsqueeze(-2) if plain else x
        check_shape(x, (self.c_in, self.d_in), "this layer")
        y = torch.einsum("ocij,...cj->...oi", self.matrix(), x)
        if self.bias is not None:
            y = y + self.bias @ self.bias_basis.to(self.bias)
        return y.squeeze(-2) if plain else y

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.c_in} x {self.d_in} -> {self.c_out} x {self.d_out}, {len(self.basis)} maps"


class SmoothedModule(ExactConstants):
    r"""A module with outputs :math:`|S|^{-1}\sum_{g\in S}\rho(g)^{-1}f(gx)`; the last axes move.

    Args:
        module: The module f.
        group: The group with its matrices on inputs.
        output_rep: The group with its matrices on outputs, or None for invariance.
        elements: Indices of the elements S.

    >>> import torch
    >>> from pindown.symmetry import cyclic
    >>> SmoothedModule(nn.Identity(), cyclic(2), None, [0, 1])(torch.tensor([[1.0, 3.0]])).tolist()
    [[2.0, 2.0]]

    Lecture course, section on invariant function classes.
    """

    def __init__(
        self, module: nn.Module, group: Group, output_rep: Group | None, elements: Sequence[int]
    ) -> None:
        super().__init__()
        chosen = list(elements)
        self.module, self.degree = module, group.degree
        self.kind = kind_of_average(group, chosen)
        self.keep("moves", group.matrices[chosen])
        self.equivariant = output_rep is not None
        if output_rep is not None:
            self.keep("back", output_rep.matrices[group.inverses[chosen]])

    def forward(self, x: Tensor) -> Tensor:
        """Return the averaged outputs."""
        check_shape(x, (self.degree,), "this average")
        if not x.is_floating_point():
            raise ValueError(f"this average takes tensors of floats; got {x.dtype}, say x.double().")
        total = 0.0
        for i, move in enumerate(self.moves.to(x)):
            y = self.module(x @ move.T)
            total = total + (y @ self.back[i].to(y).T if self.equivariant else y)
        return total / len(self.moves)

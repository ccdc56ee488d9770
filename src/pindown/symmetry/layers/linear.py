r"""The most general linear layer that commutes with a group."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pindown.symmetry.layers.basis import equivariant_basis, invariant_basis
from pindown.symmetry.layers.exact import ExactConstants, check_channels, check_shape
from pindown.symmetry.layers.representations import Representation


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
        check_channels(c_in=c_in, c_out=c_out)
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

"""A torch module averaged over a group."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from pindown.symmetry.groups import Group
from pindown.symmetry.layers.exact import ExactConstants, check_shape
from pindown.symmetry.smoothing import kind_of_average


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

r"""Convolution over a finite group: lifting, convolving, coarsening and pooling.

.. math:: (f * w)(u) = \sum_v f(uv^{-1}) w(v)

commutes with :math:`(L_h f)(u) = f(h^{-1}u)`, and nothing else that is linear does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pindown.symmetry.groups import Group
from pindown.symmetry.layers.linear import ExactConstants, check_shape
from pindown.symmetry.layers.representations import left_cosets
from pindown.symmetry.tuning import MAX_CONVOLUTION_ENTRIES
from pindown.validation import choice, integer

POOLS = ("mean", "sum", "max")


class GroupConv(ExactConstants):
    r"""Convolution of functions on a group, :math:`y_o(u) = b_o + \sum_c\sum_v x_c(uv^{-1})w_{oc}(v)`.

    Args:
        group: The group; only its table is used.
        c_in: Input channels.
        c_out: Output channels.
        bias: Whether to add a constant per channel, the only invariant bias.
        generator: Source of the first weights.

    Attributes:
        weight: ``(c_out, c_in, order)``.
        bias: ``(c_out,)``, or None.

    Inputs are ``(..., c_in, order)``, outputs ``(..., c_out, order)``; both move by the regular
    representation.

    Example:
        A filter that is one at a single element shifts:

        >>> from pindown.symmetry import cyclic
        >>> layer = GroupConv(cyclic(3), 1, 1, bias=False)
        >>> layer.weight.data = torch.tensor([[[0.0, 1.0, 0.0]]])
        >>> layer(torch.tensor([[10.0, 20.0, 30.0]])).tolist()
        [[30.0, 10.0, 20.0]]

    Lecture course, section on equivariance and convolution (Kondor and Trivedi 2018, equation 1).
    """

    def __init__(
        self,
        group: Group,
        c_in: int,
        c_out: int,
        *,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        integer("c_in", c_in)
        integer("c_out", c_out)
        if c_in * c_out * group.order**2 > MAX_CONVOLUTION_ENTRIES:
            raise ValueError(
                f"a convolution over the {group.order} elements of {group.name} with {c_in} x {c_out} "
                f"channels needs {c_in * c_out * group.order**2:,} numbers; use fewer channels or a "
                f"smaller group."
            )
        self.name, self.order, self.c_in, self.c_out = group.name, group.order, c_in, c_out
        # Entry (u, s) is the weight that carries s to u: v with u v^-1 = s, so v = s^-1 u.
        self.keep("carries", group.table[group.inverses].T.copy())
        spread = 1.0 / math.sqrt(c_in * group.order)
        weight = torch.randn(c_out, c_in, group.order, generator=generator)
        self.weight = nn.Parameter(spread * weight)
        self.bias = nn.Parameter(torch.zeros(c_out)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(..., c_out, order)``."""
        check_shape(x, (self.c_in, self.order), f"a convolution over {self.name}")
        y = torch.einsum("ocus,...cs->...ou", self.weight[:, :, self.carries], x)
        return y if self.bias is None else y + self.bias[:, None]

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.name}, {self.c_in} -> {self.c_out} channels"


class GroupLift(ExactConstants):
    r"""From vectors to functions on the group, by templates.

    .. math:: y_o(g) = b_o + \sum_c \langle w_{oc}, g^{-1}x_c\rangle

    If the action is orthogonal this is the inner product of x with every image :math:`gw` of a template.

    Args:
        group: The group with its matrices, orthogonal or not.
        c_in: Input channels, each a vector.
        c_out: Output channels, each a function on the group.
        bias: Whether to add a constant per channel.
        generator: Source of the first weights.

    Attributes:
        weight: Templates ``(c_out, c_in, d)``.

    Example:
        >>> from pindown.symmetry import dihedral
        >>> GroupLift(dihedral(4).permuting(), 1, 6)(torch.ones(5, 1, 4)).shape
        torch.Size([5, 6, 8])

    Lecture course, section on convolution, pooling and invariance.
    """

    def __init__(
        self,
        group: Group,
        c_in: int,
        c_out: int,
        *,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        integer("c_in", c_in)
        integer("c_out", c_out)
        self.name, self.degree, self.c_in, self.c_out = group.name, group.degree, c_in, c_out
        self.keep("back", group.matrices[group.inverses])
        spread = 1.0 / math.sqrt(c_in * group.degree)
        weight = torch.randn(c_out, c_in, group.degree, generator=generator)
        self.weight = nn.Parameter(spread * weight)
        self.bias = nn.Parameter(torch.zeros(c_out)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Return ``(..., c_out, order)``."""
        check_shape(x, (self.c_in, self.degree), f"a lift to {self.name}")
        orbits = torch.einsum("oci,gij->ocgj", self.weight, self.back.to(self.weight))
        y = torch.einsum("ocgj,...cj->...og", orbits, x)
        return y if self.bias is None else y + self.bias[:, None]

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.c_in} x {self.degree} -> {self.c_out} functions on {self.name}"


class GroupPool(nn.Module):  # type: ignore[misc]
    """Invariants of functions on a group: the mean, sum or maximum over the last axis.

    >>> GroupPool("max")(torch.tensor([[1.0, 4.0, 2.0]])).tolist()
    [4.0]

    Lecture course, section on convolution, pooling and invariance.
    """

    def __init__(self, how: str = "mean") -> None:
        super().__init__()
        self.how = choice("how", how, POOLS)

    def forward(self, x: Tensor) -> Tensor:
        """Return x without its last axis."""
        return pooled(x, self.how)

    def extra_repr(self) -> str:
        """Return how."""
        return self.how


class CosetPool(ExactConstants):
    r"""Coarsening: functions on G to functions on :math:`G/H`, pooled over each coset :math:`uH`.

    Args:
        group: The group G.
        subgroup: Indices of the elements of H.
        how: ``"mean"``, ``"sum"`` or ``"max"``.

    The outputs ``(..., |G| / |H|)`` move by :func:`~pindown.symmetry.layers.coset_representation`.

    >>> from pindown.symmetry import cyclic
    >>> CosetPool(cyclic(4), [0, 2], "sum")(torch.tensor([1.0, 2.0, 10.0, 20.0])).tolist()
    [11.0, 22.0]

    Lecture course, section on the blueprint of geometric deep learning: local pooling.
    """

    def __init__(self, group: Group, subgroup: Sequence[int], how: str = "mean") -> None:
        super().__init__()
        self.how, self.order = choice("how", how, POOLS), group.order
        self.keep("cosets", left_cosets(group, subgroup))

    def forward(self, x: Tensor) -> Tensor:
        """Return one number for each coset."""
        check_shape(x, (self.order,), "this pooling")
        return pooled(x[..., self.cosets], self.how)


def pooled(x: Tensor, how: str) -> Tensor:
    """Pool over the last axis."""
    if how == "max":
        return x.amax(-1)
    return x.sum(-1) if how == "sum" else x.mean(-1)

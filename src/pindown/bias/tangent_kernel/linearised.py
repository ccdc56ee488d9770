r"""Torch modules of the kernel view: networks in tangent parametrisation, and first-order models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, jvp

from pindown.validation import integers, positive, refuse


class TangentLinear(nn.Module):  # type: ignore[misc]
    r"""The map :math:`z = s W a + r b` with standard normal parameters.

    Keeping :math:`s = \sigma_w / \sqrt{m}` outside of the parameters makes all of them move alike, and
    the tangent kernel converge as the width m grows. In the usual parametrisation (``nn.Linear``) it
    grows with the width, and learning rates must fall like 1/m.

    Args:
        in_features: Length of a.
        out_features: Length of z.
        weight_scale: The factor s.
        bias_scale: The factor r; 0 means no bias.
        generator: Source of the parameters.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_scale: float,
        bias_scale: float,
        generator: torch.Generator,
    ):
        super().__init__()
        self.weight_scale, self.bias_scale = weight_scale, bias_scale
        normal: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
        self.weight = nn.Parameter(torch.randn(out_features, in_features, **normal))
        self.bias: nn.Parameter | None = None
        if bias_scale > 0:
            self.bias = nn.Parameter(torch.randn(out_features, **normal))

    def forward(self, a: torch.Tensor) -> torch.Tensor:
        """Return z for each row."""
        z = self.weight_scale * (a @ self.weight.T)
        return z if self.bias is None else z + self.bias_scale * self.bias

    def extra_repr(self) -> str:
        """Return the shape."""
        out, inputs = self.weight.shape
        return f"{inputs} -> {out}, weights times {self.weight_scale:.3g}"


def tangent_network(
    widths: Sequence[int],
    *,
    weight_std: float = 1.0,
    bias_std: float = 0.0,
    antisymmetric: bool = False,
    random_state: int = 0,
) -> nn.Module:
    r"""Return a ReLU network in the parametrisation whose tangent kernel has a limit.

    The first map is :math:`\sigma_w W_1 x + \sigma_b b_1`, later ones
    :math:`\sigma_w W_l a / \sqrt{m} + \sigma_b b_l`, with standard normal parameters in float64. As
    the hidden widths grow its kernel converges to ``infinite_ntk`` with ``depth = len(widths) - 1``.

    Args:
        widths: Inputs, hidden widths, outputs.
        weight_std: :math:`\sigma_w`.
        bias_std: :math:`\sigma_b`; 0 means no biases.
        antisymmetric: Return :math:`(f - f')/\sqrt2` for two copies with equal parameters. It is 0 at
            the start, and its kernel is that of f.
        random_state: Seed.

    Raises:
        ValueError: If there are fewer than two widths or one is not positive.

    Example:
        >>> tangent_network([3, 4, 1])[0].weight.shape
        torch.Size([4, 3])

    Jacot, Gabriel and Hongler 2018, section 2.
    """
    widths = integers("widths", widths)
    if len(widths) < 2:
        refuse("widths", "inputs, hidden widths and outputs", widths)
    weight_std = positive("weight_std", weight_std, zero=True)
    bias_std = positive("bias_std", bias_std, zero=True)
    if antisymmetric:
        options: dict[str, Any] = {
            "weight_std": weight_std,
            "bias_std": bias_std,
            "random_state": random_state,
        }
        return _Difference(tangent_network(widths, **options), tangent_network(widths, **options))
    generator = torch.Generator().manual_seed(random_state)
    parts: list[nn.Module] = []
    for i, (n, m) in enumerate(pairwise(widths)):
        scale = weight_std / (math.sqrt(n) if i else 1.0)
        parts += [TangentLinear(n, m, scale, bias_std, generator), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


class _Difference(nn.Module):  # type: ignore[misc]
    """Half the difference of two networks, scaled so that the kernel is their mean."""

    def __init__(self, first: nn.Module, second: nn.Module):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        difference: torch.Tensor = self.first(x) - self.second(x)
        return difference / math.sqrt(2.0)


class Linearised(nn.Module):  # type: ignore[misc]
    r"""The first-order model of a module around its present parameters :math:`w_0`.

    .. math:: f_{\text{lin}}(x, w) = f(x, w_0) + \nabla_w f(x, w_0)\,(w - w_0)

    It holds a copy of the parameters, named as in the module but with ``_`` for the dots (and one more
    at the end where that name is taken), and can be trained by any optimiser.

    Args:
        module: The module, in the mode in which it is to be evaluated.

    Example:
        A product of two parameters is replaced by its tangent plane:

        >>> model = Linearised(nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)))
        >>> [name for name, _ in model.named_parameters()]
        ['0_weight', '1_weight']

    Chizat, Oyallon and Bach 2019. Lecture course, slides on lazy training.
    """

    def __init__(self, module: nn.Module):
        super().__init__()
        self._around = [module]  # in a list: its parameters are not parameters of this module
        self._names = [name for name, value in module.named_parameters() if value.requires_grad]
        self._start = {name: module.get_parameter(name).detach().clone() for name in self._names}
        self._fixed = {
            **{n: v.detach().clone() for n, v in module.named_parameters() if n not in self._start},
            **{n: v.detach().clone() for n, v in module.named_buffers()},
        }
        for part in module.modules():
            if part.training and isinstance(part, nn.modules.batchnorm._BatchNorm):
                raise ValueError("batch normalisation is in training mode; call module.eval() first.")
        self._attributes: dict[str, str] = {}
        for name in self._names:
            attribute = name.replace(".", "_")
            while hasattr(self, attribute):  # "a.b_c" and "a_b.c", or a name that modules use
                attribute += "_"
            self._attributes[name] = attribute
            self.register_parameter(attribute, nn.Parameter(self._start[name].clone()))

    def own(self, name: str) -> torch.Tensor:
        """Return this model's copy of the parameter that the module calls by that name."""
        return self.get_parameter(self._attributes[name])

    def forward(self, x: Any) -> torch.Tensor:
        """Return the first-order model at each row."""
        steps = {name: self.own(name) - self._start[name] for name in self._names}

        def outputs(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
            result: torch.Tensor = functional_call(self._around[0], {**self._fixed, **parameters}, (x,))
            return result

        value, slope = jvp(outputs, (self._start,), (steps,))
        total: torch.Tensor = value + slope
        return total

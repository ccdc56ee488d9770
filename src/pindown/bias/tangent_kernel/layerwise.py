r"""The tangent kernel of modules with convolutions, layer by layer: no Jacobian of the whole module.

A linear layer that meets rows :math:`u_p` at places p, where its outputs have the slopes
:math:`\delta_p`, adds

.. math:: \nabla_W f(x) = \sum_p \delta_p(x)\, u_p(x)^\top, \qquad
    K_W(x, x') = \sum_{p, q} \langle \delta_p(x), \delta_q(x')\rangle\, \langle u_p(x), u_q(x')\rangle .

A dense layer has one place, a convolution one for each window. One pass through the module for all rows
and one back for each output give u and :math:`\delta`; then each layer takes the cheaper of the Gram
matrix of its own gradients and the product of the two Gram matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pindown.affine import Array
from pindown.bias.tangent_kernel._autodiff import AXES, CONTRACTIONS, RowFunction, slices
from pindown.bias.tangent_kernel.empirical import Outputs
from pindown.bias.tuning import LAYERWISE_AGREEMENT, LAYERWISE_ROWS, LAYERWISE_TRIED_ROWS
from pindown.torch_modules import called_with

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_KNOWN = (nn.Linear, *_CONVOLUTIONS, *_BATCH_NORMS, nn.LayerNorm)


class NotLayerwiseError(Exception):
    """Some parameter is used in a way that no rule here describes."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """Derivatives by a layer's parameters: (rows, outputs, parameters)."""

    values: Tensor

    def kernel(self, other: Any, outputs: Outputs) -> Tensor:
        """Return the Gram matrix with another block of rows."""
        if outputs == "mean" and other is self and self.values.device.type == "cpu":
            flat = self.values.flatten(1).numpy()
            return torch.from_numpy(flat @ flat.T)  # NumPy sees that it is symmetric
        return torch.einsum(CONTRACTIONS[outputs], self.values, other.values)

    def along(self, weights: Tensor) -> Tensor:
        """Return the gradient of a weighted sum over rows and outputs."""
        return torch.einsum("nk,nkp->p", weights, self.values)

    @property
    def size(self) -> int:
        """Numbers that are kept."""
        return self.values.numel()


@dataclass(frozen=True, eq=False)
class Products:
    """What enters a layer, (rows, places, inputs), and slopes of what leaves it, for each output."""

    entering: Tensor
    slopes: Tensor

    def kernel(self, other: Any, outputs: Outputs) -> Tensor:
        """Return the sum over places of products of inner products."""
        up = torch.tensordot(self.entering, other.entering, dims=([2], [2]))
        if outputs == "mean":
            down = torch.einsum("nkpo,mkqo->npmq", self.slopes, other.slopes)
            return (up * down).sum((1, 3)) if up.shape[1] > 1 else (up * down)[:, 0, :, 0]
        contraction = {"each": "nkpo,mkqo->npmqk", "full": "nkpo,mlqo->npmqkl"}[outputs]
        down = torch.einsum(contraction, self.slopes, other.slopes)
        return (up.reshape(up.shape + (1,) * (down.ndim - 4)) * down).sum((1, 3))

    def along(self, weights: Tensor) -> Tensor:
        """Return the gradient of a weighted sum over rows and outputs."""
        return torch.einsum("nk,nkpo,npi->oi", weights, self.slopes, self.entering).flatten()

    @property
    def size(self) -> int:
        """Numbers that are kept."""
        return self.entering.numel() + self.slopes.numel()


Part: TypeAlias = Gradients | Products


def layerwise_ntk(
    module: nn.Module, X1: Array, X2: Array | None, outputs: Outputs, *, biases: bool, memory: float
) -> Array:
    """Return the tangent kernel of a module whose parameters lie in layers that are known here.

    Args:
        module: Maps each row on its own.
        X1: Inputs (n1, ...).
        X2: Inputs (n2, ...), or None for X1 again.
        outputs: ``"mean"`` over outputs, ``"each"`` output with itself or ``"full"``.
        biases: Whether biases count.
        memory: Bytes that what is kept of the layers may take.

    Raises:
        NotLayerwiseError: If a parameter lies elsewhere, is used twice, or the rules do not add up to
            what automatic differentiation finds on a few rows.
    """
    layers = _Layers(module, biases)
    device = next(iter(layers.function.parameters.values())).device
    first = torch.as_tensor(X1, device=device)
    second = first if X2 is None else torch.as_tensor(X2, device=device)
    few = first[:LAYERWISE_TRIED_ROWS]
    tried = layers.checked(few)
    per_row = 8 * sum(part.size for part in tried) / len(few)
    # Two blocks of rows, and the Gram matrices of one pair of places.
    places = max([part.entering.shape[1] for part in tried if isinstance(part, Products)], default=1)
    rows = min(memory / 4 / per_row, (memory / 32) ** 0.5 / places)
    k = layers.n_outputs
    axes, swap = AXES[outputs]
    kernel = np.empty((len(first), len(second), *(k for _ in range(axes))))
    for i in slices(len(first), max(1, int(rows))):
        left = layers.parts(first[i])
        for j in slices(len(second), max(1, int(rows))):
            if X2 is None and j.start < i.start:
                continue
            right = left if X2 is None and i == j else layers.parts(second[j])
            block = torch.zeros((), dtype=torch.float64, device=device)
            for mine, other in zip(left, right, strict=True):
                block = block + mine.kernel(other, outputs)
            kernel[i, j] = (block / k if outputs == "mean" else block).cpu().numpy()
            if X2 is None and i != j:
                kernel[j, i] = kernel[i, j].transpose(swap)
    return kernel


class _Layers:
    """The layers of a module that hold its trained parameters, and what passes through them."""

    def __init__(self, module: nn.Module, biases: bool) -> None:
        self.function = RowFunction(module, biases)
        self.n_outputs = 0
        owned = {name.rpartition(".")[0] for name in self.function.parameters}
        self.layers = {name: part for name, part in module.named_modules() if name in owned}
        everywhere = [id(p) for part in module.modules() for p in part.parameters(recurse=False)]
        if len(set(everywhere)) < len(everywhere) or any(
            type(part) not in _KNOWN for part in self.layers.values()
        ):
            raise NotLayerwiseError

    def checked(self, X: Tensor) -> list[Part]:
        """Return the parts for a few rows, if they add up to the gradient of the module.

        Raises:
            NotLayerwiseError: If they do not, or a row's output depends on the others.
        """
        try:
            parts = self.parts(X)
            parameters = {
                name: p.clone().requires_grad_() for name, p in self.function.parameters.items()
            }
            alone = torch.stack([self.function(parameters, x) for x in X])
        except (RuntimeError, IndexError, TypeError) as error:
            raise NotLayerwiseError from error
        weights = torch.linspace(1.0, 2.0, alone.numel(), dtype=alone.dtype, device=alone.device)
        weights = weights.reshape(alone.shape)
        if alone.shape != self._outputs.shape or not _close(alone.detach(), self._outputs):
            raise NotLayerwiseError
        names = list(parameters)
        gradients = torch.autograd.grad(
            (weights * alone).sum(), [parameters[name] for name in names], materialize_grads=True,
            allow_unused=True,
        )  # fmt: skip
        found: dict[str, list[Tensor]] = {name: [] for name in names}
        for name, part in zip(self._names, parts, strict=True):
            found[name].append(part.along(weights))
        for name, expected in zip(names, gradients, strict=True):
            if not found[name] or not _close(torch.cat(found[name]), expected.flatten()):
                raise NotLayerwiseError
        return parts

    def parts(self, X: Tensor) -> list[Part]:
        """Return what every trained parameter needs of these rows."""
        blocks = [self._parts(X[rows]) for rows in slices(len(X), LAYERWISE_ROWS)]
        return [_together(parts) for parts in zip(*blocks, strict=True)]

    def _parts(self, X: Tensor) -> list[Part]:
        entered, left = self._through(X)
        self._names, parts = [], []
        for name, part in self.layers.items():
            for parameter, found in _of_layer(part, entered[name], left[name], self._norm(name, part)):
                full = f"{name}.{parameter}" if name else parameter
                if full in self.function.parameters:
                    self._names.append(full)
                    parts.append(found)
        return parts

    def _norm(self, name: str, part: nn.Module) -> tuple[Tensor, Tensor] | None:
        if not isinstance(part, _BATCH_NORMS):
            return None
        if part.running_mean is None:
            raise NotLayerwiseError  # its means are those of the batch
        prefix = f"{name}." if name else ""
        return self.function.fixed[f"{prefix}running_mean"], self.function.fixed[f"{prefix}running_var"]

    def _through(self, X: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return what enters each layer, and the slopes of all outputs by what leaves it."""
        entered: dict[str, Tensor] = {}
        versions: dict[str, int] = {}
        leaving: dict[str, Tensor] = {}
        used: list[str] = []

        def hook(name: str) -> Any:
            def seen(_: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> Tensor:
                used.append(name)
                entered[name], versions[name] = inputs[0], inputs[0]._version
                leaving[name] = out if out.requires_grad else out.detach().requires_grad_()
                return leaving[name].clone()  # what follows may work in place

            return seen

        handles = [part.register_forward_hook(hook(name)) for name, part in self.layers.items()]
        try:
            with torch.enable_grad():
                values = {**self.function.fixed, **self.function.parameters}
                out = called_with(self.function.module, values, (X.double(),))
        finally:
            for handle in handles:
                handle.remove()
        if sorted(used) != sorted(self.layers) or len(out) != len(X):
            raise NotLayerwiseError  # the gradient of a layer that is used twice is a sum over both
        if any(entered[name]._version != version for name, version in versions.items()):
            raise NotLayerwiseError
        out = out.reshape(len(X), -1)
        self._outputs, self.n_outputs = out.detach(), out.shape[1]
        names = list(leaving)
        slopes = [
            torch.autograd.grad(
                out[:, j].sum(), [leaving[name] for name in names], retain_graph=True,
                materialize_grads=True, allow_unused=True,
            )
            for j in range(self.n_outputs)
        ]  # fmt: skip
        stacked = {
            name: torch.stack(of, 1) for name, of in zip(names, zip(*slopes, strict=True), strict=True)
        }
        return {name: u.detach() for name, u in entered.items()}, stacked


def _together(parts: tuple[Part, ...]) -> Part:
    """Return one part for the rows of all."""
    fields = [vars(part).values() for part in parts]
    return type(parts[0])(*(torch.cat(values) for values in zip(*fields, strict=True)))


def _of_layer(
    part: nn.Module, entering: Tensor, slopes: Tensor, norm: tuple[Tensor, Tensor] | None
) -> Iterator[tuple[str, Part]]:
    """Yield the name of each parameter of a layer, and what its kernel needs."""
    n, k = slopes.shape[:2]
    if isinstance(part, nn.Linear):
        rows, down = (
            entering.reshape(n, -1, part.in_features),
            slopes.reshape(n, k, -1, part.out_features),
        )
        yield "weight", _cheaper(rows, down)
        yield "bias", Gradients(down.sum(2))
    elif isinstance(part, _CONVOLUTIONS):
        down = slopes.flatten(3)
        groups = zip(_windows(part, entering), down.chunk(part.groups, 2), strict=True)
        for rows, of_group in groups:
            yield "weight", _cheaper(rows, of_group.transpose(2, 3))
        yield "bias", Gradients(down.sum(3))
    elif norm is not None:
        still = F.batch_norm(entering, *norm, eps=part.eps)
        yield (
            "weight",
            Gradients((slopes * still[:, None]).flatten(2).reshape(n, k, slopes.shape[2], -1).sum(3)),
        )
        yield "bias", Gradients(slopes.reshape(n, k, slopes.shape[2], -1).sum(3))
    else:
        assert isinstance(part, nn.LayerNorm)
        still = F.layer_norm(entering, part.normalized_shape, eps=part.eps)
        last = int(np.prod(part.normalized_shape))
        yield "weight", Gradients((slopes * still[:, None]).reshape(n, k, -1, last).sum(2))
        yield "bias", Gradients(slopes.reshape(n, k, -1, last).sum(2))


def _cheaper(entering: Tensor, slopes: Tensor) -> Part:
    """Return the form whose kernel takes fewer products for each pair of rows."""
    (_, places, inputs), outputs = entering.shape, slopes.shape[3]
    if places**2 * (inputs + outputs) < inputs * outputs:
        return Products(entering, slopes)
    n, k = slopes.shape[:2]
    down = slopes.transpose(2, 3).reshape(n, k * outputs, places)
    return Gradients((down @ entering).reshape(n, k, -1))


def _windows(part: Any, X: Tensor) -> Iterator[Tensor]:
    """Yield, for each group of channels, the numbers that each window sees: (rows, windows, numbers)."""
    mode = "constant" if part.padding_mode == "zeros" else part.padding_mode
    X = F.pad(X, part._reversed_padding_repeated_twice, mode=mode)
    for axis, (size, stride, apart) in enumerate(
        zip(part.kernel_size, part.stride, part.dilation, strict=True), 2
    ):
        X = X.unfold(axis, apart * (size - 1) + 1, stride)[..., ::apart]
    dim = len(part.kernel_size)
    order = (0, *range(2, 2 + dim), 1, *range(2 + dim, 2 + 2 * dim))
    for group in X.chunk(part.groups, 1):
        windows = group.permute(order)
        yield windows.reshape(len(X), int(np.prod(windows.shape[1 : 1 + dim])), -1)


def _close(a: Tensor, b: Tensor) -> bool:
    scale = max(float(b.abs().max()), torch.finfo(b.dtype).tiny)
    return a.shape == b.shape and bool(((a - b).abs() <= LAYERWISE_AGREEMENT * scale).all())

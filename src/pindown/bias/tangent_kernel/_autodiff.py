r"""The tangent kernel of any torch module, from derivatives that ``torch.func`` takes row by row.

.. math:: K(x, x') = \nabla_w f(x, w)^\top \nabla_w f(x', w)

Blocks of rows are chosen so that no Jacobian grows past a given memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from pindown.affine import Array
from pindown.bias.tangent_kernel.empirical import Outputs
from pindown.bias.tuning import JACOBIAN_COPIES, PAIR_ROWS
from pindown.torch_modules import called_with

_BYTES = 8
# Axes for outputs beyond the two for rows, and how a block turns when its rows change places.
AXES: dict[Outputs, tuple[int, tuple[int, ...]]] = {
    "mean": (0, (1, 0)),
    "each": (1, (1, 0, 2)),
    "full": (2, (1, 0, 3, 2)),
}
CONTRACTIONS: dict[Outputs, str] = {
    "mean": "iap,jap->ij",
    "each": "iap,jap->ija",
    "full": "iap,jbp->ijab",
}
_DEPENDS_ON_BATCH = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)


class RowFunction:
    """A module as a function of its trained parameters and one row, in float64."""

    def __init__(self, module: nn.Module, biases: bool = True):
        for name, part in module.named_modules():
            if part.training and isinstance(part, _DEPENDS_ON_BATCH):
                raise ValueError(
                    f"{name or 'the module'} ({type(part).__name__}) is in training mode, where outputs "
                    "depend on chance or on the other rows; call module.eval() first."
                )
        self.module = module
        trained = {
            name: value.requires_grad and (biases or name.rpartition(".")[2] != "bias")
            for name, value in module.named_parameters()
        }
        everything = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        values = {
            name: value.detach().double() if value.is_floating_point() else value.detach()
            for name, value in everything.items()
        }
        self.parameters = {name: values[name] for name, on in trained.items() if on}
        self.fixed = {name: value for name, value in values.items() if name not in self.parameters}
        if not self.parameters:
            raise ValueError(
                "no parameter is trained (requires_grad is False everywhere): the kernel is empty."
            )
        for name, value in self.parameters.items():
            if not bool(torch.isfinite(value).all()):
                raise ValueError(f"parameter {name} holds NaN or infinity.")

    @property
    def n_parameters(self) -> int:
        """Number of trained parameters."""
        return sum(value.numel() for value in self.parameters.values())

    def __call__(self, parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        """Return the outputs at one row, (k,)."""
        out = called_with(self.module, {**self.fixed, **parameters}, (x[None],))
        if not isinstance(out, torch.Tensor):
            raise TypeError(f"the module must return one tensor; got {type(out).__name__}.")
        return out.reshape(-1)


def autodiff_ntk(
    module: nn.Module,
    X1: Array,
    X2: Array | None,
    outputs: Outputs,
    *,
    biases: bool,
    memory: float,
    products: bool = False,
) -> Array:
    """Return the tangent kernel by automatic differentiation.

    Args:
        module: Any module that maps each row on its own.
        X1: Inputs (n1, ...).
        X2: Inputs (n2, ...), or None for X1 again.
        outputs: ``"mean"`` over outputs, ``"each"`` output with itself or ``"full"``.
        biases: Whether parameters called ``bias`` count.
        memory: Bytes that the blocks of Jacobians may take.
        products: Multiply Jacobians by vectors instead of storing them: slow, but with any number of
            parameters in little memory.
    """
    function = RowFunction(module, biases)
    device = next(iter(function.parameters.values())).device
    first = torch.as_tensor(X1, device=device)
    second = first if X2 is None else torch.as_tensor(X2, device=device)
    try:
        with torch.no_grad():
            k = function(function.parameters, first[0]).numel()
        block = _by_products if products else _by_jacobians
        row = JACOBIAN_COPIES * _BYTES * k * function.n_parameters
        rows = PAIR_ROWS if products else int(memory / 2 // row)
        axes, swap = AXES[outputs]
        kernel = np.empty((len(first), len(second), *(k for _ in range(axes))))
        for i, j, part in block(function, first, second, X2 is None, k, max(1, rows), outputs):
            kernel[i, j] = part.cpu().numpy()
            if X2 is None and i != j:
                kernel[j, i] = kernel[i, j].transpose(swap)
    except (RuntimeError, IndexError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"{type(module).__name__} could not be differentiated row by row ({reason}); a module must "
            f"accept one row of shape {tuple(first.shape[1:])} and use torch operations that vmap knows."
        ) from error
    return kernel


_Block = tuple[slice, slice, torch.Tensor]


def _by_jacobians(
    function: RowFunction,
    first: torch.Tensor,
    second: torch.Tensor,
    same: bool,
    k: int,
    rows: int,
    outputs: Outputs,
) -> Iterator[_Block]:
    for i in slices(len(first), rows):
        left = _jacobian(function, first[i], k)
        for j in slices(len(second), rows):
            if same and j.start < i.start:
                continue
            right = left if same and i == j else _jacobian(function, second[j], k)
            # Parameter by parameter: no copy of a whole Jacobian.
            parts = [torch.einsum(CONTRACTIONS[outputs], a, b) for a, b in zip(left, right, strict=True)]
            total = torch.stack(parts).sum(dim=0)
            yield i, j, total / k if outputs == "mean" else total


def _jacobian(function: RowFunction, X: torch.Tensor, k: int) -> list[torch.Tensor]:
    from torch.func import jacrev, vmap

    derivatives: Callable[..., Any] = vmap(jacrev(function), (None, 0))
    by_name = derivatives(function.parameters, X)
    return [value.reshape(len(X), k, -1).detach() for value in by_name.values()]


def _by_products(
    function: RowFunction,
    first: torch.Tensor,
    second: torch.Tensor,
    same: bool,
    k: int,
    rows: int,
    outputs: Outputs,
) -> Iterator[_Block]:
    from torch.func import jvp, vjp, vmap

    basis = torch.eye(k, dtype=torch.float64, device=first.device)

    def pair(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        _, pull = vjp(lambda p: function(p, z), function.parameters)

        def column(v: torch.Tensor) -> torch.Tensor:
            along = pull(v)[0]
            pushed: torch.Tensor = jvp(lambda p: function(p, x), (function.parameters,), (along,))[1]
            return pushed

        columns: torch.Tensor = vmap(column)(basis)
        return columns.T

    table = vmap(vmap(pair, (None, 0)), (0, None))
    for i in slices(len(first), rows):
        for j in slices(len(second), rows):
            if not (same and j.start < i.start):
                yield i, j, _reduced(table(first[i], second[j]).detach(), outputs)


def slices(n: int, rows: int) -> list[slice]:
    """Return n rows in blocks of so many."""
    return [slice(start, min(n, start + rows)) for start in range(0, n, rows)]


def _reduced(part: torch.Tensor, outputs: Outputs) -> torch.Tensor:
    if outputs == "full":
        return part
    own = torch.diagonal(part, dim1=2, dim2=3)
    return own.mean(dim=-1) if outputs == "mean" else own

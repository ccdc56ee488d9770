"""What certify asks of a module and of examples.

A module has parameters that can be moved, a fresh start, and outputs row by row. Examples are checked at
the door, and parted by a draw that does not look at them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

_ROUNDING = 1e-3  # of the largest score: far more than float32 products of other shapes differ by
_PROBES = (2, 3)  # two batch sizes: a layer that sees each example once sees as many rows
_MAX_CLASS = 2**31 - 1
MIN_EXAMPLES = 2  # one for the prior, one for the certificate


def read_module(module: object) -> nn.Module:
    """Return a copy in float32 on the CPU, whose parameters can carry noise.

    Raises:
        TypeError: If it is no module, or a parameter is not a real floating number.
        ValueError: If there is nothing to learn, weights are not finite, or outputs depend on the batch.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"certify takes a torch.nn.Module; got {type(module).__name__}. ReluNetwork has to_torch()."
        )
    for name, parameter in module.named_parameters():
        if isinstance(parameter, nn.parameter.UninitializedParameter):
            raise ValueError(f"parameter {name!r} has no shape yet; run the module once on an input.")
        if not parameter.is_floating_point():
            raise TypeError(f"parameter {name!r} must be floating; got {parameter.dtype}.")
        if not bool(torch.isfinite(parameter).all()):
            raise ValueError(f"parameter {name!r} holds NaN or infinity; train the module again.")
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ValueError("the module has no parameter with requires_grad=True: nothing to certify.")
    for name, part in module.named_modules():
        if getattr(part, "track_running_stats", True) is False and "BatchNorm" in type(part).__name__:
            raise ValueError(
                f"{name!r} normalises by the batch at hand, so that outputs depend on other examples; "
                f"use track_running_stats=True."
            )
    try:
        return copy.deepcopy(module).to(device="cpu", dtype=torch.float32)
    except RuntimeError as error:  # weights that hooks compute hang on a graph
        raise ValueError(f"the module cannot be copied: {error}") from None


def start_again(module: nn.Module) -> None:
    """Draw new parameters, so that nothing is left of what the module has learnt.

    Parts whose parameters are all frozen stay: they count as fixed before the examples were seen.
    Running statistics of parts without parameters start again too.

    Raises:
        ValueError: If a part holds parameters and has no ``reset_parameters``, or that leaves some.
    """
    learning = {name: p for name, p in module.named_parameters() if p.requires_grad}
    with torch.no_grad():
        for parameter in learning.values():
            parameter.fill_(torch.nan)  # what reset_parameters forgets must not go unnoticed
    for name, part in module.named_modules():
        own = list(part.parameters(recurse=False))
        reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
        if not any(parameter.requires_grad for parameter in own):
            if reset is not None and not own and any(True for _ in part.buffers(recurse=False)):
                reset()
            continue
        if reset is None:
            raise ValueError(
                f"{name or 'the module'!r} ({type(part).__name__}) has no reset_parameters(), so it "
                f"cannot start again; add it, or say prior='given' if its weights never saw this data."
            )
        reset()
    for name, parameter in learning.items():
        if not bool(torch.isfinite(parameter).all()):
            raise ValueError(
                f"reset_parameters() does not draw all of {name!r} anew, so it cannot start again; mend "
                f"it, or say prior='given' if its weights never saw this data."
            )


def class_scores(outputs: Tensor) -> Tensor:
    """Return one column per class; a single output f becomes the scores 0 and f.

    >>> class_scores(torch.tensor([[2.0]]))
    tensor([[0., 2.]])
    """
    if outputs.ndim == 1:
        outputs = outputs[:, None]
    return nn.functional.pad(outputs, (1, 0)) if outputs.shape[1] == 1 else outputs


def check_outputs(module: nn.Module, examples: Examples) -> int:
    """Run a few examples and return the number of classes.

    Raises:
        ValueError: If the module does not take X, its outputs are not one score per class of y, or they
            depend on other examples.
    """
    rows = min(examples.n, _PROBES[-1])
    module.eval()
    try:
        with torch.no_grad():
            outputs = module(examples.inputs[:rows])
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        shape = tuple(examples.inputs.shape)
        raise ValueError(f"the module does not take X of shape {shape}: {error}") from None
    if not isinstance(outputs, Tensor) or outputs.ndim > 2 or outputs.ndim < 1 or len(outputs) != rows:
        got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
        raise ValueError(f"the module must give scores (n, classes) for n = {rows} rows; got {got}.")
    classes, largest = class_scores(outputs).shape[1], int(examples.classes.max())
    if largest >= classes:
        raise ValueError(
            f"the module has scores for {classes} classes, 0 to {classes - 1}; y holds class {largest}."
        )
    _require_row_by_row(module, examples.inputs[:rows])
    return classes


def _require_row_by_row(module: nn.Module, batch: Tensor) -> None:
    """Refuse a module whose outputs depend on the rest of the batch, or on what it has met before."""
    before = [buffer.clone() for buffer in module.buffers()]
    with torch.no_grad():
        together, again = class_scores(module(batch)), class_scores(module(batch))
        single = [module(row[None]) for row in batch]
    for output in single:
        if output.ndim < 1 or class_scores(output).shape != (1, together.shape[1]):
            raise ValueError(
                f"the module must give one row of scores for one example; got shape "
                f"{tuple(output.shape)}. A squeeze() without a dimension does that."
            )
    alone = torch.cat([class_scores(output) for output in single])
    same = all(torch.equal(old, new) for old, new in zip(before, module.buffers(), strict=True))
    if same and not torch.equal(together, again):
        return  # noise of its own, drawn for every call: part of the classifier
    size = float(together.abs().nan_to_num(0.0, 0.0).max())
    if not (same and torch.allclose(together, alone, rtol=0.0, atol=_ROUNDING * size, equal_nan=True)):
        raise ValueError(
            "the module's outputs depend on the other examples of a batch or on earlier ones, also in "
            "evaluation mode; a certificate needs one output per example."
        )


def only_linear(module: nn.Module, examples: Examples) -> bool:
    """Return whether all that learns are linear layers, each of which meets every example once.

    Then noise on the weights, drawn anew for every example, is noise on the layers' outputs.
    """
    layers = {
        name: part
        for name, part in module.named_modules()
        if any(p.requires_grad for p in part.parameters(recurse=False))
    }
    plain = all(
        type(part) is nn.Linear
        and all(p.requires_grad for p in part.parameters())
        # Weights made from other parameters, and outputs that a hook changes, are not layers W h + b.
        and {name for name, _ in part.named_parameters()} <= {"weight", "bias"}
        and not (part._forward_hooks or part._forward_pre_hooks)
        for part in layers.values()
    )
    tensors = [id(p) for part in layers.values() for p in part.parameters()]
    if not plain or len(set(tensors)) < len(tensors):
        return False
    for rows in _PROBES:
        batch = examples.inputs[torch.arange(rows) % examples.n]
        calls, hidden = _calls(module, layers, batch)
        if hidden or sorted(calls) != sorted((name, 2, rows) for name in layers):
            return False
    return True


def _calls(
    module: nn.Module, layers: dict[str, nn.Module], batch: Tensor
) -> tuple[list[tuple[str, int, int]], bool]:
    """Return each call of a layer with the input's dimensions and rows; if weights act elsewhere."""
    seen: list[tuple[str, int, int]] = []

    def note(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
        def hook(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            seen.append((name, inputs[0].ndim, len(inputs[0])))
            return output.detach()  # a gradient that still arrives came past the layer

        return hook

    handles = [part.register_forward_hook(note(name)) for name, part in layers.items()]
    try:
        with torch.enable_grad():
            outputs = module(batch)
    finally:
        for handle in handles:
            handle.remove()
    return seen, bool(outputs.requires_grad)


@contextmanager
def dropped_inputs(module: nn.Module, share: float) -> Iterator[None]:
    """Drop a share of the inputs of linear and convolutional layers, half of it before the first."""
    layers = [p for p in module.modules() if isinstance(p, nn.Linear | nn.modules.conv._ConvNd)]

    def drop(part: float) -> Callable[[nn.Module, tuple[Tensor, ...]], tuple[Tensor, ...]]:
        return lambda _, inputs: (nn.functional.dropout(inputs[0], part), *inputs[1:])

    handles = [
        layer.register_forward_pre_hook(drop(share if i else share / 2))
        for i, layer in enumerate(layers if share else [])
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class Examples(NamedTuple):
    """Inputs (n, ...) in float32 and classes 0 to k - 1."""

    inputs: Tensor
    classes: Tensor

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.classes)

    def at(self, rows: Tensor) -> Examples:
        """Return the examples in these rows."""
        return Examples(self.inputs[rows], self.classes[rows])


def read_examples(X: Any, y: Any) -> Examples:
    """Return examples as tensors.

    Args:
        X: Inputs, an array or tensor (n, ...) of finite numbers.
        y: One class per input: 0 to k - 1, or -1 and 1.

    Raises:
        ValueError: If shapes do not fit, a number is not finite, or y does not hold two classes.
        TypeError: If X or y does not hold numbers.

    >>> read_examples([[0.5], [1.5]], [-1, 1]).classes
    tensor([0, 1])
    """
    inputs, labels = _array("X", X), _array("y", y)
    if inputs.ndim < 2:
        raise ValueError(f"X must have shape (n, ...), one row per example; got shape {inputs.shape}.")
    if labels.shape != (len(inputs),):
        raise ValueError(
            f"y must hold one class per row of X, shape ({len(inputs)},); got shape {labels.shape}."
        )
    if len(inputs) < MIN_EXAMPLES:
        raise ValueError(f"certify needs at least {MIN_EXAMPLES} examples; got {len(inputs)}.")
    with np.errstate(over="ignore"):
        short = inputs.astype(np.float32)
    if not np.isfinite(short).all():
        raise ValueError("X must hold finite numbers within float32; it has NaN, infinity or larger.")
    return Examples(torch.from_numpy(short), torch.from_numpy(_classes(labels)))


def part(n: int, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw which rows the prior may see and which certify: both parts hold at least one.

    >>> first, second = part(10, 0.3, torch.Generator().manual_seed(0))
    >>> len(first), len(second), sorted([*first.tolist(), *second.tolist()]) == list(range(10))
    (3, 7, True)
    """
    order = torch.randperm(n, generator=generator)
    cut = min(max(round(share * n), 1), n - 1)
    return order[:cut], order[cut:]


def _array(name: str, values: Any) -> np.ndarray[Any, Any]:
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        values = (values.float() if values.dtype is torch.bfloat16 else values).numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    return array


def _classes(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values = labels.astype(np.float64)
    good = (values == np.round(values)) & (np.abs(values) <= _MAX_CLASS)  # false for NaN
    if not good.all():
        raise ValueError(f"y must hold classes as integers, 0 to k - 1; got {values[~good][0]:g}.")
    present = np.unique(values)
    if len(present) < 2:
        raise ValueError(f"y must hold at least two classes; every label is {present[0]:g}.")
    if present.min() < 0 and not np.array_equal(present, [-1.0, 1.0]):
        raise ValueError(f"y must hold classes 0 to k - 1, or -1 and 1; got {present[:5].tolist()}.")
    if present.min() < 0:
        values = (values + 1.0) / 2.0
    return values.astype(np.int64)

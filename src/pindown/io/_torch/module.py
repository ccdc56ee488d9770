"""Torch modules in and out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn

from pindown.affine import Array, dense
from pindown.errors import UnsupportedModelError
from pindown.io._torch.graph import array
from pindown.io._torch.ops import MODULES
from pindown.io._torch.trace import WEIGHT_HOOKS, Alone, read_module, require_untouched
from pindown.io._torch.values import SINGLE_NOTE
from pindown.model.agreement import (
    DisagreementError,
    Reference,
    require_model_agreement,
    sample_rows,
)
from pindown.model.builder import Tensor
from pindown.model.graph import Model
from pindown.model.limits import MANY_PARAMETERS
from pindown.network import ReluNetwork
from pindown.torch_modules import called_with

# Wrappers that only hand through, by name (their classes may not be loaded), and what they wrap.
_WRAPPERS = {
    "OptimizedModule": "_orig_mod",
    "DataParallel": "module",
    "DistributedDataParallel": "module",
}
_FLOATS = {torch.float16: "float16", torch.float64: "float64"}


def model_from_module(module: Any, input_shape: Sequence[int] | None = None) -> Model:
    """Read a torch module, with dropout off and batch norm in evaluation mode.

    Trained numbers are counted as torch counts them, apart from weights that modules of different kinds
    share, which count twice, those that ``forward`` does not use, and those of parametrisations such as
    weight norm, of which the weight that they make is counted.

    Args:
        module: A ``torch.nn.Module`` whose ``forward`` takes one tensor.
        input_shape: Shape of one input without the batch, for instance ``(3, 32, 32)``. May be left
            out when the first layer is ``Linear``.

    Raises:
        UnsupportedModelError: If an operation is not known, or ``forward`` cannot be traced; the message
            names the operation and where it stands.
    """
    module = unwrapped(module)
    _require_module(module)
    with _borrowed(module), torch.random.fork_rng(devices=[]):
        _refresh_weights(module)
        root = Alone(module) if type(module) in MODULES else module
        shape = tuple(map(int, input_shape)) if input_shape else _first_linear_input(root)
        reader = read_module(root, shape)
        output = reader.values[next(iter(reversed(reader.values)))]
        if not isinstance(output, Tensor):
            raise UnsupportedModelError(_no_tensor(output))
        kinds = {t.dtype for t in module.parameters() if t.is_floating_point()}
        model = reader.graph.builder.model(
            output,
            input_shape=shape,
            dtype=_FLOATS.get(kinds.pop(), "float32") if len(kinds) == 1 else "float32",
        )
        notes = tuple(reader.graph.notes)
        return replace(model, notes=(*notes, *_require_agreement(module, model, SINGLE_NOTE in notes)))


def network_from_module(module: Any, input_shape: Sequence[int] | None = None) -> ReluNetwork:
    """Read a torch module and return its exact normal form; see :func:`model_from_module`."""
    return model_from_module(module, input_shape).relu_network()


def module_from_network(net: ReluNetwork) -> nn.Sequential:
    """Return a float64 ``Sequential`` of ``Linear`` and ``ReLU`` that computes ``net(X)``."""
    parts: list[nn.Module] = [nn.Flatten()] if len(net.input_shape) > 1 else []
    for weight, bias in net.layers:
        linear = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(dense(weight).copy()))
            linear.bias.copy_(torch.from_numpy(bias.copy()))
        parts += [linear, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


# ---------------------------------------------------------------------- what is read


def unwrapped(module: Any) -> Any:
    """Return the module inside wrappers that only hand through, such as a compiled one's."""
    while type(module).__name__ in _WRAPPERS and isinstance(module, nn.Module):
        module = getattr(module, _WRAPPERS[type(module).__name__])
    return module


def _require_module(module: Any) -> None:
    if isinstance(module, torch.jit.ScriptModule):
        raise UnsupportedModelError(
            "a TorchScript module is not read; export it with torch.onnx.export and load the file, or "
            "give the module that it was made from."
        )
    if type(module).__name__ == "ExportedProgram":
        raise UnsupportedModelError(
            "an ExportedProgram is not read; write it with torch.onnx.export and load the file, or give "
            "the module that it was made from."
        )
    if not isinstance(module, nn.Module):
        raise TypeError(f"from_torch reads a torch.nn.Module; got {type(module).__name__}.")
    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in module.parameters()):
        raise UnsupportedModelError(
            "lazy layers have no weights yet; run the module once, then read it."
        )


def _no_tensor(output: Any) -> str:
    kind = type(output).__name__
    if isinstance(output, torch.Tensor):
        return "forward returns a constant: its result does not depend on its input."
    return (
        f"forward must return one tensor made from its input; it returns {kind}. Wrap the module in one "
        "whose forward picks the tensor."
    )


def _first_linear_input(module: nn.Module) -> tuple[int, ...]:
    """Return the input's shape where the first layer with weights is ``Linear``."""
    modules = dict(module.named_modules())
    try:
        graph = fx.Tracer().trace(module)
        called = [modules[str(node.target)] for node in graph.nodes if node.op == "call_module"]
    except Exception:  # forward is arbitrary Python, and asks perhaps for sizes
        called = []
    require_untouched(module)
    for part in called:
        if isinstance(part, nn.Linear):
            return (part.in_features,)
        if next(part.parameters(), None) is not None:
            break
    raise ValueError(
        "the input shape cannot be read off this module; use Model.from_torch(module, "
        "input_shape=(3, 32, 32)) with the shape of one input, without the batch."
    )


@contextmanager
def _borrowed(module: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode, and afterwards leave the module exactly as it was."""
    before = [(part, part.training, dict(vars(part))) for part in module.modules()]
    module.eval()
    for part, _, attributes in before:
        # Nothing is compiled meanwhile, wrappers are taken off, and an epsilon that would follow the
        # float type is that of the type the module has.
        attributes_now = vars(part)
        if attributes.get("_compiled_call_impl") is not None:
            attributes_now["_compiled_call_impl"] = None
        attributes_now["_modules"] = {name: unwrapped(m) for name, m in part._modules.items()}
        if isinstance(part, nn.RMSNorm) and part.eps is None:
            kind = torch.float32 if part.weight is None else part.weight.dtype
            attributes_now["eps"] = torch.finfo(kind).eps
    try:
        yield
    finally:
        for part, training, attributes in before:
            vars(part).clear()  # tracing may store constants there, and forward traced tensors
            vars(part).update(attributes)
            part.training = training


def _refresh_weights(module: nn.Module) -> None:
    """Recompute weights that forward would recompute first: since the last call they may be stale."""
    for part in module.modules():
        for hook in part._forward_pre_hooks.values():
            if isinstance(hook, WEIGHT_HOOKS):
                hook(part, ())


# ---------------------------------------------------------------------- is it the same function?


def _require_agreement(module: nn.Module, model: Model, rounds: bool) -> tuple[str, ...]:
    """Compare the model with the module itself, run in float64 if it can be."""
    kinds = [tensor.dtype for tensor in module.parameters() if tensor.is_floating_point()]
    for dtype in dict.fromkeys([torch.float64, *kinds]):
        reference = _runner(module, model.input_shape, dtype)
        try:
            reference(sample_rows(model.in_features)[0], None)
        except Exception as error:  # forward is arbitrary Python, and may hold tensors that stay float32
            failure = str(error)
            continue
        try:
            return require_model_agreement(model, reference, single=rounds or dtype != torch.float64)
        except DisagreementError as error:
            name = type(module).__name__
            raise UnsupportedModelError(f"{name} was not read as what it is: {error}") from None
    raise UnsupportedModelError(
        f"{type(module).__name__} cannot be run on an input of shape {(1, *model.input_shape)}, so that "
        f"what was read cannot be checked: {failure}"
    )


def _runner(module: nn.Module, shape: tuple[int, ...], dtype: torch.dtype) -> Reference:
    """Return the module as a function of one flat input, with its numbers in the given precision."""
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    floats = {name: t.detach().to(dtype) for name, t in own.items() if t.is_floating_point()}
    few = sum(tensor.numel() for tensor in floats.values()) <= MANY_PARAMETERS
    device = next((tensor.device for tensor in own.values()), torch.device("cpu"))
    outputs: dict[bytes, Array] = {}

    def run(row: Array, change: Any) -> Array:
        key = row.tobytes()
        if change is None and key in outputs:
            return outputs[key]
        weights = floats
        if change is not None:
            row = change(row)
            if few:
                weights = {
                    name: torch.as_tensor(change(array(tensor)), dtype=dtype, device=device)
                    for name, tensor in floats.items()
                }
        x = torch.as_tensor(row.reshape(1, *shape), dtype=dtype, device=device)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):  # the same dice in every run
            made = array(called_with(module, weights, (x,))).ravel()
        if change is None:
            outputs[key] = made
        return made

    return run

"""Torch modules in and out.

A module is traced symbolically by ``torch.fx``, which records the operations of ``forward``
without running them on numbers, and each operation is then rewritten by :mod:`pindown.io._lowering`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from pindown.affine import Array, dense
from pindown.errors import UnsupportedModelError
from pindown.io._agreement import DisagreementError, Reference, require_agreement, sample_rows
from pindown.io._expression import Expression
from pindown.io._limits import MANY_PARAMETERS
from pindown.io._lowering import Lowering
from pindown.io._torch_ops import FUNCTIONS, METHODS, MODULES, OUTPUT_ACTIVATIONS, VIEWS, array
from pindown.network import ReluNetwork

# Hooks that only recompute a weight before forward runs.
_WEIGHT_HOOKS = (BasePruningMethod, SpectralNorm, WeightNorm)
# What a rule raises when the operation's arguments are not what it reads.
_MISFITS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def network_from_module(module: Any, input_shape: Sequence[int] | None = None) -> ReluNetwork:
    """Read a torch module, with dropout off and batch norm in evaluation mode.

    Args:
        module: A ``torch.nn.Module`` whose ``forward`` takes one tensor.
        input_shape: Shape of one input without the batch, for instance ``(3, 32, 32)``. May be left
            out when the first layer is ``Linear``.

    Raises:
        UnsupportedModelError: If an operation is not piecewise linear or not known, or ``forward``
            cannot be traced; the message names the operation.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"from_torch reads a torch.nn.Module; got {type(module).__name__}.")
    with _borrowed(module):
        _refresh_weights(module)
        graph, modules = _trace(module)
        shape = tuple(map(int, input_shape)) if input_shape else _first_linear_input(graph, modules)
        net = _Reader(module, modules, shape).read(graph)
        return replace(net, notes=(*net.notes, *_require_agreement(module, net)))


def _require_agreement(module: nn.Module, net: ReluNetwork) -> tuple[str, ...]:
    """Compare the network with the module itself, run in float64 if it can be."""
    kinds = [tensor.dtype for tensor in module.parameters() if tensor.is_floating_point()]
    for dtype in dict.fromkeys([torch.float64, *kinds]):
        reference = _runner(module, net.input_shape, dtype)
        try:
            reference(sample_rows(net.in_features)[0], None)
        except Exception as error:  # forward is arbitrary Python, and may hold tensors that stay float32
            failure = str(error)
            continue
        try:
            return require_agreement(net, reference, activated=True, single=dtype != torch.float64)
        except DisagreementError as error:
            name = type(module).__name__
            raise UnsupportedModelError(f"{name} was not read as what it is: {error}") from None
    raise UnsupportedModelError(
        f"{type(module).__name__} cannot be run on an input of shape {(1, *net.input_shape)}, so that "
        f"what was read cannot be checked: {failure}"
    )


def _runner(module: nn.Module, shape: tuple[int, ...], dtype: torch.dtype) -> Reference:
    """Return the module as a function of one flat input, with its numbers in the given precision."""
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    floats = {name: t.detach().to(dtype) for name, t in own.items() if t.is_floating_point()}
    few = sum(tensor.numel() for tensor in floats.values()) <= MANY_PARAMETERS
    device = next((tensor.device for tensor in own.values()), torch.device("cpu"))

    def run(row: Array, change: Any) -> Array:
        weights = floats
        if change is not None:
            row = change(row)
            if few:
                weights = {
                    name: torch.as_tensor(change(array(tensor)), dtype=dtype, device=device)
                    for name, tensor in floats.items()
                }
        x = torch.as_tensor(row.reshape(1, *shape), dtype=dtype, device=device)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            return array(torch.func.functional_call(module, weights, (x,))).ravel()

    return run


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


class _Reader:
    """Walks a traced graph; the environment maps each node to an expression or a plain value."""

    def __init__(self, root: nn.Module, modules: dict[str, nn.Module], shape: tuple[int, ...]) -> None:
        self.root, self.modules, self.shape = root, modules, shape
        self.lowering = Lowering()
        self.values: dict[fx.Node, Any] = {}
        self.in_place: set[fx.Node] = set()
        self.output_activation: str | None = None

    def read(self, graph: fx.Graph) -> ReluNetwork:
        for node in graph.nodes:
            try:
                self.values[node] = self._value(node)
                if self._is_in_place(node):
                    self.in_place.add(node)
                    self._overwrite(node)
            except UnsupportedModelError as error:
                raise UnsupportedModelError(f"{self._describe(node)}: {error}") from None
            except _MISFITS as error:
                raise UnsupportedModelError(
                    f"{self._describe(node)} does not fit its input: {error}"
                ) from None
        output = self.values[node]
        if not isinstance(output, Expression):
            kind = type(output).__name__
            raise UnsupportedModelError(
                f"forward must return one tensor made from its input; it returns {kind}."
            )
        return self.lowering.network(
            output, input_shape=self.shape, output_activation=self.output_activation
        )

    def _value(self, node: fx.Node) -> Any:
        arguments = fx.map_arg(node.args, self.values.__getitem__)
        options = fx.map_arg(node.kwargs, self.values.__getitem__)
        match node.op:
            case "placeholder":
                return self._placeholder(node)
            case "output":
                return arguments[0]
            case "get_attr":
                return array(operator.attrgetter(str(node.target))(self.root)).copy()
        if node.op == "call_module":
            _require_untouched(self.modules[str(node.target)])
        if (activation := self._activation(node)) in OUTPUT_ACTIVATIONS.values():
            self._require_over_outputs(node, arguments, options)
            return self._cut_off(node, activation, arguments[0])
        if node.op == "call_module":
            part = self.modules[str(node.target)]
            return _handler(MODULES, type(part))(self.lowering, arguments[0], part)
        table = FUNCTIONS if node.op == "call_function" else METHODS
        if not _depends_on_input([*arguments, *options.values()]):
            return self._plain(node, arguments, options)
        return _handler(table, node.target)(self.lowering, *arguments, **options)

    def _placeholder(self, node: fx.Node) -> Expression | Any:
        if any(isinstance(v, Expression) for v in self.values.values()):
            if node.args:  # a further argument of forward with a default
                return node.args[0]
            raise UnsupportedModelError(f"forward takes more than one input ({node.target}).")
        return self.lowering.input((1, *self.shape))

    def _plain(self, node: fx.Node, arguments: Any, options: Any) -> Any:
        """Compute with Python numbers and constant arrays, such as sizes for a reshape."""
        if node.op == "call_function" and getattr(node.target, "__module__", "") == "_operator":
            return node.target(*arguments, **options)
        raise UnsupportedModelError("it computes with something other than the input.")

    def _is_in_place(self, node: fx.Node) -> bool:
        if not (node.args and isinstance(self.values.get(node.args[0]), Expression)):
            return False
        if node.op == "call_module":
            return bool(getattr(self.modules[str(node.target)], "inplace", False))
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        augmented = getattr(node.target, "__module__", "") == "_operator" and name.startswith("i")
        return bool(node.kwargs.get("inplace")) or name.endswith("_") or augmented

    def _overwrite(self, node: fx.Node) -> None:
        """Let everything that names the changed tensor see the change."""
        changed, memory = self.values[node.args[0]], self._memory(node)
        for other, value in self.values.items():
            if value is changed:
                self.values[other] = self.values[node]
            elif other is node or self._memory(other) is not memory:
                continue
            elif any(user > node for user in other.users):
                raise UnsupportedModelError(
                    "it changes a tensor in place, and a view or base of that tensor is used again."
                )

    def _memory(self, node: fx.Node) -> fx.Node:
        """Return the node that made the memory in which this node's result lies."""
        while node in self.in_place or (node.op.startswith("call") and self._kind(node) in VIEWS):
            node = node.all_input_nodes[0]
        return node

    def _kind(self, node: fx.Node) -> Any:
        return type(self.modules[str(node.target)]) if node.op == "call_module" else node.target

    def _activation(self, node: fx.Node) -> str | None:
        return OUTPUT_ACTIVATIONS.get(self._kind(node))

    def _require_over_outputs(self, node: fx.Node, arguments: Any, options: Any) -> None:
        """Check that a final softmax normalises over all outputs of a sample, not over, say, pixels."""
        if self._activation(node) == "sigmoid":
            return
        shape = arguments[0].shape
        if node.op == "call_module":
            dim = self.modules[str(node.target)].dim
        else:
            dim = options.get("dim", arguments[1] if len(arguments) > 1 else None)
        if dim is None:
            dim = 0 if len(shape) in (0, 1, 3) else 1  # torch's old implicit choice
        if shape[dim] != math.prod(shape):
            raise UnsupportedModelError(
                f"it works along axis {dim} of a tensor of shape {tuple(shape)}; "
                "pindown reads one over all outputs."
            )

    def _cut_off(self, node: fx.Node, activation: str | None, x: Any) -> Any:
        if [user.op for user in node.users] != ["output"]:
            raise UnsupportedModelError("it is not piecewise linear and not the last operation.")
        self.output_activation = activation
        return x

    def _describe(self, node: fx.Node) -> str:
        if node.op == "call_module":
            part = self.modules[str(node.target)]
            return f"module {str(node.target)!r} ({type(part).__name__})"
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "?")
        return f"operation {name!r} (node {node.name!r})"


def _depends_on_input(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_depends_on_input(part) for part in value)
    return isinstance(value, Expression)


def _handler(table: dict[Any, Any], key: Any) -> Any:
    if key in table:
        return table[key]
    names = sorted({name if isinstance(name, str) else name.__name__ for name in table})
    raise UnsupportedModelError(f"not supported; pindown reads {', '.join(names)}.")


class _Proxy(fx.Proxy):  # type: ignore[misc]
    """A traced tensor on which ``x += y`` is recorded as what it is, a change in place."""


def _recorded(function: Any) -> Any:
    def record(self: _Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, other), {})

    return record


for _function in (operator.iadd, operator.isub, operator.imul, operator.itruediv):
    setattr(_Proxy, f"__{_function.__name__}__", _recorded(_function))


class _Tracer(fx.Tracer):  # type: ignore[misc]
    def proxy(self, node: fx.Node) -> _Proxy:
        return _Proxy(node, self)


def _trace(module: nn.Module) -> tuple[fx.Graph, dict[str, nn.Module]]:
    _require_untouched(module)  # hooks of inner modules are traced, those of the outermost are not
    try:
        graph = _Tracer().trace(module)
    except Exception as error:  # forward is arbitrary Python: anything may be raised
        raise UnsupportedModelError(
            f"torch.fx cannot trace {type(module).__name__}.forward ({error}); "
            "export the model with torch.onnx.export and load the file instead."
        ) from error
    return graph, dict(module.named_modules())


@contextmanager
def _borrowed(module: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode, and afterwards leave the module exactly as it was."""
    before = [(part, part.training, dict(vars(part))) for part in module.modules()]
    module.eval()
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
            if isinstance(hook, _WEIGHT_HOOKS):
                hook(part, ())


def _require_untouched(part: nn.Module) -> None:
    """Refuse a module that does not, or not only, compute what its class says."""
    changes = [hook for hook in part._forward_pre_hooks.values() if not isinstance(hook, _WEIGHT_HOOKS)]
    if changes or part._forward_hooks:
        raise UnsupportedModelError(
            f"{type(part).__name__} has forward hooks, which may change what it computes; remove them."
        )
    if "forward" in vars(part):
        raise UnsupportedModelError(
            f"the forward of this {type(part).__name__} is another function than that of its class."
        )


def _first_linear_input(graph: fx.Graph, modules: dict[str, nn.Module]) -> tuple[int, ...]:
    for node in graph.nodes:
        part = modules.get(str(node.target)) if node.op == "call_module" else None
        if isinstance(part, nn.Linear):
            return (part.in_features,)
        if part is not None and next(part.parameters(), None) is not None:
            break
    raise ValueError(
        "the input shape cannot be read off this module; use ReluNetwork.from_torch(module, "
        "input_shape=(3, 32, 32)) with the shape of one input, without the batch."
    )

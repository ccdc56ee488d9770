"""Torch modules as they run: ``torch.fx`` traces ``forward``, and operations are read as they come.

A traced tensor knows its shape, because the operation that made it is read before the next is traced: so
``forward`` may ask for sizes, loop over them and branch on them. What depends on the numbers of the
input cannot be asked for, and is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import fx, nn
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._torch.graph import Graph, describe_module, kind_of, rule_of
from pindown.io._torch.moves import ATTRIBUTES
from pindown.io._torch.ops import (
    MODULES,
    SHARING,
    function_rule,
    is_known_function,
    name_of,
    works_in_place,
)
from pindown.io._torch.values import Unread
from pindown.model.builder import Tensor
from pindown.model.limits import MAX_NODES, check_deadline, reading_deadline
from pindown.torch_modules import called_with

# Hooks that only recompute a weight before forward runs.
WEIGHT_HOOKS = (BasePruningMethod, SpectralNorm, WeightNorm)
# What a rule raises when the operation's arguments are not what it reads.
_MISFITS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
# Names that NumPy has for torch's.
_ALIASES = {"axis": "dim", "keepdims": "keepdim"}
# Operations of a constant that ask another tensor for its shape only.
_SHAPED_AS = ("expand_as", "view_as", "reshape_as", "type_as", "to")


class Reader:
    """Reads traced operations one by one; every node has a value, a tensor of the graph or plain."""

    def __init__(self, root: nn.Module, shape: tuple[int, ...]) -> None:
        self.root = root
        self._outer = "model" if isinstance(root, Alone) else ""
        self.modules = dict(root.named_modules())
        self.parameters = {name: t.numel() for name, t in root.named_parameters(remove_duplicate=False)}
        self.graph = Graph(shape, MODULES)
        self.values: dict[fx.Node, Any] = {}
        self._in_place: set[fx.Node] = set()
        self._stale: set[fx.Node] = set()
        self._origins: dict[fx.Node, frozenset[str]] = {}
        self._counted: set[str] = set()
        self._deadline = reading_deadline()

    def read(self, node: fx.Node) -> None:
        """Find the value of a node, and let changes in place reach what they change."""
        self.graph.builder.place = place = self.describe(node)
        try:
            check_deadline(self._deadline)
            if len(self.values) > MAX_NODES:
                raise UnsupportedModelError(f"forward has more than {MAX_NODES:,} operations.")
            self._require_fresh(node)
            names = self._trained(node)
            self.graph.trained = sum(self.parameters[name] for name in names - self._counted)
            with np.errstate(all="ignore"):  # the graph refuses numbers that are not finite
                self.values[node] = self._value(node)
            if _holds(Tensor, self.values[node]):
                self._counted |= names
            else:
                self._origins[node] = names
            if self._changes_in_place(node):
                self._overwrite(node)
        except (UnsupportedModelError, ModelFileError) as error:
            text = str(error)
            raise type(error)(text if text.startswith(place) else f"{place}: {text}") from None
        except _MISFITS as error:
            raise UnsupportedModelError(f"{place} does not fit its input: {error}") from None

    def _value(self, node: fx.Node) -> Any:
        arguments = fx.map_arg(_arguments(node), self.values.__getitem__)
        options = dict(fx.map_arg(node.kwargs, self.values.__getitem__))
        match node.op:
            case "placeholder":
                return self._placeholder(node)
            case "output":
                return arguments[0]
            case "get_attr":
                return _constant(operator.attrgetter(str(node.target))(self.root))
        for alias, own in _ALIASES.items():
            if alias in options and node.op != "call_module":
                options[own] = options.pop(alias)
        for name in ("input", "out"):
            if name in options and (name == "input" or options[name] is None):
                del options[name]
        depends = _holds(Tensor, [*arguments, *options.values()])
        name = name_of(node.target)
        if _holds(Unread, [*arguments, *options.values()]) and name not in ("getitem", "getattr"):
            raise UnsupportedModelError(
                "the positions of maxima are used; pindown reads their values only."
            )
        if node.op == "call_module":
            part = self.modules[str(node.target)]
            for inner in part.modules():
                require_untouched(inner)
            if not depends:
                return _run(part, arguments, options)
            with self.graph.inside(self._path(str(node.target)), part):
                return rule_of(MODULES, part)(self.graph, part, *arguments, **options)
        if depends and name in _SHAPED_AS and not isinstance(arguments[0], Tensor):
            other = torch.empty(arguments[1].shape, dtype=torch.float64)
            return getattr(arguments[0], name)(other)
        if depends:
            return function_rule(node.target)(self.graph, *arguments, **options)
        if node.op == "call_method":
            return getattr(arguments[0], name)(*arguments[1:], **options)
        return node.target(*arguments, **options)

    def _placeholder(self, node: fx.Node) -> Any:
        name = str(node.target)
        if not self.values:
            return (self.graph.input,) if name.startswith("*") else self.graph.input
        if name.startswith("*"):
            return {} if name.startswith("**") else ()
        if node.args:  # a further argument of forward with a default
            return node.args[0]
        raise UnsupportedModelError(
            f"forward takes more than one input ({name}); wrap the module in one that fixes the others."
        )

    # ------------------------------------------------------------------ trained numbers

    def _trained(self, node: fx.Node) -> frozenset[str]:
        """Return which trained tensors go into this node as constants."""
        names: set[str] = set()
        if node.op == "get_attr" and node.target in self.parameters:
            names.add(str(node.target))
        for given in node.all_input_nodes:
            names |= self._origins.get(given, frozenset())
        if node.op == "call_module" and not any(
            _holds(Tensor, self.values[n]) for n in node.all_input_nodes
        ):
            names |= {name for name in self.parameters if name.startswith(f"{node.target}.")}
        return frozenset(names)

    # ------------------------------------------------------------------ changes in place

    def _require_fresh(self, node: fx.Node) -> None:
        if self._stale.intersection(node.all_input_nodes):
            raise UnsupportedModelError(
                "it uses a view or base of a tensor that was changed in place; write the change as a "
                "new tensor."
            )

    def _changes_in_place(self, node: fx.Node) -> bool:
        if (
            not _arguments(node)
            or not node.op.startswith("call")
            or not isinstance(self.values[node], Tensor)
        ):
            return False
        if node.op == "call_module":
            return bool(getattr(self.modules[str(node.target)], "inplace", False))
        return bool(node.kwargs.get("inplace")) or works_in_place(node.target)

    def _overwrite(self, node: fx.Node) -> None:
        """Let all names of the changed tensor see the change; what shares its memory is stale."""
        first = _arguments(node)[0]
        changed, memory = self.values[first], self._memory(first)
        if changed is self.values[node]:  # nothing was changed: dropout in evaluation mode
            return
        if not isinstance(changed, Tensor):
            raise UnsupportedModelError(
                "it changes a constant in place; write the change as a new tensor."
            )
        self._in_place.add(node)
        for other, value in self.values.items():
            if value is changed:
                self.values[other] = self.values[node]
            elif other is not node and self._memory(other) is memory:
                self._stale.add(other)

    def _memory(self, node: fx.Node) -> fx.Node:
        """Return the node that made the memory in which this node's result lies."""
        while node in self._in_place or (node.op.startswith("call") and self._kind(node) in SHARING):
            node = node.all_input_nodes[0]
        return node

    def _kind(self, node: fx.Node) -> Any:
        if node.op == "call_module":
            return kind_of(self.modules[str(node.target)])
        return name_of(node.target)

    # ------------------------------------------------------------------ words

    def _path(self, path: str) -> str:
        """Return a module's path as the user knows it."""
        return path.removeprefix(self._outer) if self._outer else path

    def describe(self, node: fx.Node) -> str:
        """Return what the user wrote, and where it stands."""
        if node.op == "call_module":
            return describe_module(self._path(str(node.target)), self.modules[str(node.target)])
        if not node.op.startswith("call"):
            return "forward"
        stack = list(node.meta.get("nn_module_stack", {}).values())
        if stack and stack[-1][0]:
            path = stack[-1][0]
            return f"operation {name_of(node.target)!r} in {describe_module(path, self.modules[path])}"
        return f"operation {name_of(node.target)!r} (node {node.name!r})"


class Alone(nn.Module):  # type: ignore[misc]
    """A module of torch's own, to be called by its rule and not traced through."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.model = module

    def forward(self, x: Any) -> Any:
        """Call the module."""
        return self.model(x)


def _arguments(node: fx.Node) -> tuple[Any, ...]:
    """Return the arguments without names; the first one may have been given as ``input=``."""
    return (node.kwargs["input"],) if not node.args and "input" in node.kwargs else node.args


def _holds(kind: type, value: Any) -> bool:
    """Return whether a value is of a kind, or holds one."""
    if isinstance(value, kind):
        return True
    if isinstance(value, dict):
        return any(_holds(kind, part) for part in value.values())
    if isinstance(value, slice):
        return any(_holds(kind, part) for part in (value.start, value.stop, value.step))
    return isinstance(value, list | tuple) and any(_holds(kind, part) for part in value)


def _constant(value: Any) -> Any:
    """Return a copy of a tensor, in float64 if it holds floats."""
    if not isinstance(value, torch.Tensor):
        return value
    kind = torch.float64 if value.is_floating_point() else value.dtype
    return value.detach().to("cpu", kind, copy=True)


def _run(part: nn.Module, arguments: Any, options: Any) -> Any:
    """Run a module on constants, in float64."""
    own = {**dict(part.named_parameters()), **dict(part.named_buffers())}
    return called_with(part, {n: _constant(t) for n, t in own.items()}, arguments, options)


def require_untouched(part: nn.Module) -> None:
    """Refuse a module that does not, or not only, compute what its class says."""
    changes = [hook for hook in part._forward_pre_hooks.values() if not isinstance(hook, WEIGHT_HOOKS)]
    if changes or part._forward_hooks:
        raise UnsupportedModelError(
            f"{type(part).__name__} has forward hooks, which may change what it computes; remove them."
        )
    if "forward" in vars(part):
        raise UnsupportedModelError(
            f"the forward of this {type(part).__name__} is another function than that of its class."
        )


# ---------------------------------------------------------------------- tracing


class _Proxy(fx.Proxy):  # type: ignore[misc]
    """A traced tensor that knows its shape; ``x += y`` is recorded as what it is, a change in place."""

    @property
    def _known(self) -> Any:
        return self.tracer.reader.values[self.node]

    def __getattr__(self, name: str) -> Any:
        if name in ATTRIBUTES:
            return self.tracer.create_proxy("call_function", getattr, (self, name), {})
        return super().__getattr__(name)

    def __len__(self) -> int:
        known = self._known
        return len(known) if isinstance(known, tuple | list | dict) else int(known.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __bool__(self) -> bool:
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        return operator.index(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def _number(self) -> Any:
        if not isinstance(self._known, torch.Tensor):
            raise fx.proxy.TraceError(
                "it asks for a number that depends on the input, for instance in an if"
            )
        return self._known


def _recorded(function: Any) -> Any:
    def record(self: _Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, other), {})

    return record


for _function in (operator.iadd, operator.isub, operator.imul, operator.itruediv):
    setattr(_Proxy, f"__{_function.__name__}__", _recorded(_function))


class _Tracer(fx.Tracer):  # type: ignore[misc]
    """Hands every node to the reader, and gives plain values back as what they are."""

    proxy_buffer_attributes = True  # so that they are constants in float64, as parameters are

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.reader = reader
        self._reading = False

    def proxy(self, node: fx.Node) -> _Proxy:
        return _Proxy(node, self)

    def create_node(self, *arguments: Any, **options: Any) -> fx.Node:
        node = super().create_node(*arguments, **options)
        self._reading = True  # rules look at the modules themselves
        try:
            self.reader.read(node)
        finally:
            self._reading = False
        return node

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, *rest: Any, **options: Any
    ) -> Any:
        if kind == "call_function" and not is_known_function(target):
            return target(*args, **kwargs)  # wrapped by torch.fx.wrap: read what it does
        proxy = super().create_proxy(kind, target, args, kwargs, *rest, **options)
        value = self.reader.values[proxy.node]
        return proxy if _holds((Tensor, torch.Tensor, Unread), value) else value  # type: ignore[arg-type]

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        if self._reading:
            return attr_val
        return super().getattr(attr, attr_val, parameter_proxy_cache)

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        if self._reading:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)


def read_module(module: nn.Module, shape: tuple[int, ...]) -> Reader:
    """Trace a module and read what it does.

    Raises:
        UnsupportedModelError: If ``forward`` cannot be traced, or does something that is not read.
    """
    require_untouched(module)  # hooks of inner modules are traced, those of the outermost are not
    reader = Reader(module, shape)
    try:
        with torch.no_grad():
            _Tracer(reader).trace(module)
    except (UnsupportedModelError, ModelFileError):
        raise
    except Exception as error:  # forward is arbitrary Python: anything may be raised
        raise UnsupportedModelError(
            f"torch.fx cannot trace {type(module).__name__}.forward ({error}); "
            "export the model with torch.onnx.export and load the file instead."
        ) from error
    return reader

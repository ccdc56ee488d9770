r"""Anything with gradients as a model: torch modules and functions of any kind, and pairs of functions.

What can be read as a graph of operations is read as one. Other modules and functions become the one
operation of a graph, of which nothing is known but its values f and how it pulls forms back,
:math:`a \mapsto a \cdot D f(x)`; whatever searches by gradients works on it, and every proved bound of
it is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.io.accepting import is_estimator
from pindown.io.any_model import as_model
from pindown.model.graph import Model, Node
from pindown.model.operations.operation import Interval, Numbers, Operation, Shape, Writer
from pindown.network import ReluNetwork
from pindown.probes.tuning import DIFFERENTIATED_ROWS
from pindown.torch_modules import in_evaluation, is_module


@dataclass(frozen=True, eq=False)
class Differentiable:
    r"""A function with its gradients, for attacks and attributions.

    Attributes:
        function: From inputs (n, \*shape) to outputs (n, k) or (n,), each input alone. Of arrays if
            ``pull_back`` is given, else of torch tensors.
        pull_back: From forms a of the outputs, (n, k), and inputs (n, \*shape) to the gradients of
            :math:`a \cdot f` at each input, (n, \*shape). Left out, torch differentiates.

    Example:
        The circle of radius 2, from (5, 1):

        >>> circle = Differentiable(lambda X: (X**2).sum(axis=1) - 4, lambda a, X: 2 * a * X)
        >>> from pindown.probes import attack
        >>> attack(circle, [[5.0, 1.0]], norm="l2", method="deepfool").X.round(5)
        array([[1.96116, 0.39223]])
    """

    function: Callable[[Any], Any]
    pull_back: Callable[[Array, Array], Array] | None = None


def as_differentiable(model: Any, X: ArrayLike, caller: str) -> Model:
    """Return a model of inputs like X.

    Args:
        model: What :func:`~pindown.io.any_model.as_model` reads; any torch module; a function of torch
            tensors; or a :class:`Differentiable`.
        X: Inputs: one, or several behind each other. Modules and functions want several, (n, ...).
        caller: Who asks; complaints begin with this name.

    Raises:
        TypeError: If it is none of these.
        ValueError: If it does not give one row of numbers for each input.
    """
    if isinstance(model, Differentiable):
        return _called(model.function, model.pull_back, X, caller)
    if is_module(model):
        try:
            return Model.from_torch(model, np.shape(X)[1:] or None)
        except (UnsupportedModelError, ValueError, RuntimeError):
            return _called(model, None, X, caller)
    if isinstance(model, (Model, ReluNetwork)) or is_estimator(model) or not callable(model):
        return as_model(model, caller)
    return _called(model, None, X, caller)


def _called(
    function: Callable[[Any], Any],
    pull_back: Callable[[Array, Array], Array] | None,
    X: ArrayLike,
    caller: str,
) -> Model:
    """Return the model whose one operation is a call."""
    given = np.asarray(X, dtype=np.float64)
    if given.ndim < 2 or not len(given):
        raise ValueError(f"{caller} takes inputs (n, ...) of such a model; got shape {given.shape}.")
    made = _TorchCall(function) if pull_back is None else _ArrayCall(function, pull_back)
    try:
        first = made.values(given[:1])
    except (RuntimeError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(
            f"{caller}: the model does not take inputs of shape {given.shape[1:]}: {error}"
        ) from None
    if first.shape[:1] != (1,) or first.ndim > 2:
        raise ValueError(f"{caller}: a model gives (n, k) for n inputs; it gave {first.shape} for one.")
    shape = tuple(int(side) for side in given.shape[1:])
    operation = Called(made, first.size)
    return Model((Node(operation, (0,), (1, first.size), "the model"),), shape, shape)


@dataclass(frozen=True, eq=False)
class _ArrayCall:
    """Functions of arrays."""

    function: Callable[[Array], Array]
    pull: Callable[[Array, Array], Array]

    def values(self, inputs: Array) -> Array:
        return np.asarray(self.function(inputs), dtype=np.float64)

    def pulled(self, form: Array, inputs: Array) -> Array:
        return np.asarray(self.pull(form, inputs), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _TorchCall:
    """A torch module in evaluation mode, or a function of tensors, in its own precision."""

    function: Any

    def _run(self, inputs: Array, form: Array | None) -> Array:
        from pindown.extras import torch

        some = next(iter(self.function.parameters()), None) if is_module(self.function) else None
        kind = torch.float64 if some is None or not some.is_floating_point() else some.dtype
        device = "cpu" if some is None else some.device
        parts = []
        with torch.enable_grad() if form is not None else torch.no_grad():
            for start in range(0, len(inputs), DIFFERENTIATED_ROWS):
                part = slice(start, start + DIFFERENTIATED_ROWS)
                x = torch.tensor(inputs[part], dtype=kind, device=device)
                x.requires_grad_(form is not None)
                y = self.function(x)
                y = y.reshape(len(y), -1)
                if form is not None:
                    a = torch.tensor(form[part], dtype=y.dtype, device=device)
                    (y,) = torch.autograd.grad((y * a).sum(), x)
                parts.append(y.detach().cpu().to(torch.float64).numpy())
        return np.concatenate(parts)

    def values(self, inputs: Array) -> Array:
        return self._evaluated(inputs, None)

    def pulled(self, form: Array, inputs: Array) -> Array:
        return self._evaluated(inputs, form)

    def _evaluated(self, inputs: Array, form: Array | None) -> Array:
        if not is_module(self.function):
            return self._run(inputs, form)
        with in_evaluation(self.function):
            return self._run(inputs, form)


@dataclass(frozen=True, eq=False)
class Called(Operation):
    """A call of something of which only values and gradients are known.

    Attributes:
        call: What is called.
        n_outputs: Numbers that come out for each input.
    """

    call: _ArrayCall | _TorchCall
    n_outputs: int

    def shape(self, *shapes: Shape) -> Shape:
        """Return one row of outputs."""
        return (1, self.n_outputs)

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Call it."""
        made = self.call.values(inputs[0].astype(np.float64, copy=False))
        if made.size != len(inputs[0]) * self.n_outputs:
            raise ValueError(
                f"the model gave {made.shape} for {len(inputs[0])} inputs; it must treat each alone."
            )
        return made.reshape(-1, 1, self.n_outputs)

    def interval(self, *boxes: Interval) -> Interval:
        """Nothing is known of it on a box."""
        ends = np.full((len(boxes[0].lower), 1, self.n_outputs), np.inf)
        return Interval(-ends, ends)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Differentiate."""
        (x,) = inputs
        form, x = (part.astype(np.float64, copy=False) for part in (form, x))
        return (self.call.pulled(form.reshape(-1, self.n_outputs), x).reshape(x.shape),)

    def multiply_adds(self, *shapes: Shape) -> int:
        """Return its parameters if they can be counted, else the size of an input."""
        function: Any = self.call.function
        if is_module(function):
            return max(1, sum(p.numel() for p in function.parameters()))
        return math.prod(shapes[0])

    def write(self, writer: Writer, *inputs: str) -> str:
        """Refuse: there is nothing to write."""
        raise UnsupportedModelError("a model of which only values are known cannot be written.")

r"""Is a stack of layers what it claims to be: equivariant up to some stage, invariant from there on?

At every stage the outputs on x and on gx are compared, :math:`f_\ell(gx)` with :math:`\rho_\ell(g)
f_\ell(x)`, for all actions :math:`\rho_\ell` that the shape of the outputs allows. The stages of a torch
module are the calls of its parts, seen by hooks in the order in which they are made, whatever way its
``forward`` goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.groups import Group
from pindown.symmetry.measure.models import evaluating
from pindown.symmetry.tuning import MAX_TRIED_ELEMENTS
from pindown.torch_modules import is_module

Layer: TypeAlias = Callable[[Any], Any]

# Rounding of a few layers, in units of the largest output.
TOLERANCES = {"float64": 1e-9, "float32": 1e-4}


@dataclass(frozen=True)
class Stage:
    """What one layer does to a symmetry.

    Attributes:
        name: The layer.
        behaviour: ``"invariant"``, how its outputs move, or ``"broken"``: in none of the ways tried.
        error: Largest difference over inputs and elements, as a share of the largest output.
        shape: Shape of one output.
    """

    name: str
    behaviour: str
    error: float
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.behaviour} (error {self.error:.2g}, shape {self.shape})"


@dataclass(frozen=True)
class Blueprint:
    """How a symmetry fares from layer to layer.

    Attributes:
        stages: One for each layer, in order.
        tolerance: Errors up to this count as rounding.
        n_elements: Group elements that were tried.
        n_samples: Inputs that were tried.
        kind: ``"estimate"``: a symmetry that holds on these inputs may break on others, and outputs may
            move in a way that was not tried; give it in ``actions``.
    """

    stages: tuple[Stage, ...]
    tolerance: float
    n_elements: int
    n_samples: int
    kind: Kind = "estimate"

    @property
    def broken_at(self) -> str | None:
        """The first layer that breaks the symmetry, or None."""
        return next((stage.name for stage in self.stages if stage.behaviour == "broken"), None)

    @property
    def valid(self) -> bool:
        """Whether every stage keeps the symmetry."""
        return self.broken_at is None

    @property
    def invariant(self) -> bool:
        """Whether the answer does not change at all."""
        return self.valid and self.stages[-1].behaviour == "invariant"

    def __str__(self) -> str:
        tried = f"({self.n_elements} elements, {self.n_samples} inputs; {self.kind})"
        if not self.valid:
            return f"the symmetry breaks at {self.broken_at}: its outputs move in no way tried {tried}"
        answer = self.stages[-1].behaviour
        return f"all {len(self.stages)} stages keep the symmetry; the answer is {answer} {tried}"


def validate_blueprint(
    model: Any,
    group: Group,
    X: ArrayLike,
    *,
    actions: Mapping[str, Group] | None = None,
    tol: float | None = None,
    random_state: int = 0,
) -> Blueprint:
    """Check at every stage of a model that it keeps a symmetry, and name the layer that does not.

    Args:
        model: A torch module, whose stages are the calls of its parts, innermost first, and its answer
            if no part makes that; a list of functions or of pairs (name, function); or one function.
        group: The group with its action on inputs.
        X: Inputs to try, ``(n, ...)``.
        actions: Actions on the outputs of layers, by name of the layer. Without one, it is tried whether
            outputs do not move, move as the inputs do, or as functions on the group, along some axis.
        tol: Largest error that counts as rounding; None for what the model's precision allows.
        random_state: Seed of the elements that are tried if the group is large.

    Returns:
        A table of stages that prints the verdict.

    Raises:
        ValueError: If there are no inputs or layers.

    Example:
        >>> from pindown.symmetry import cyclic
        >>> square, first = (lambda x: x**2), (lambda x: x[:, :1])
        >>> print(validate_blueprint([("square", square), ("first", first)], cyclic(3), np.eye(3)))
        the symmetry breaks at first: its outputs move in no way tried (3 elements, 3 inputs; estimate)

    Lecture course, section on the blueprint of geometric deep learning.
    """
    samples = np.asarray(X, dtype=float)
    if samples.ndim < 2 or not len(samples) or not np.isfinite(samples).all():
        raise ValueError(f"X must hold finite inputs (n, ...), n >= 1; got shape {samples.shape}.")
    elements = _elements(group, random_state)
    names, first = _stages(model, samples)
    runs = [first]
    for g in elements:
        again, outputs = _stages(model, group.act(g, samples))
        if again != names:
            raise ValueError(
                "the model calls other layers for moved inputs; its stages cannot be compared."
            )
        runs.append(outputs)
    tolerance = TOLERANCES[_precision(runs[0])] if tol is None else float(tol)
    stages = []
    for i, name in enumerate(names):
        still = runs[0][i]
        given = None if actions is None else actions.get(name)
        tried = [
            (_error([run[i] for run in runs[1:]], elements, still, move), behaviour)
            for behaviour, move in _candidates(group, still, given)
        ]
        error, behaviour = min(tried, key=lambda pair: max(pair[0], tolerance))
        stages.append(Stage(name, behaviour if error <= tolerance else "broken", error, still.shape[1:]))
    return Blueprint(tuple(stages), tolerance, len(elements), len(samples))


def _stages(model: Any, samples: Array) -> tuple[list[str], list[Any]]:
    """Return the names of a model's stages and what each makes of samples."""
    if is_module(model):
        return _watched(model, samples)
    layers = _layers(model)
    return [name for name, _ in layers], _outputs(layers, samples)


def _watched(module: Any, samples: Array) -> tuple[list[str], list[Any]]:
    """Run a module, and return what the calls of its parts made, in order.

    What a part made of others makes is a stage of its own only where its last part did not make it.
    """
    import torch

    names: list[str] = []
    made: list[Any] = []

    def note(name: str, output: Any, whole: bool) -> None:
        if torch.is_tensor(output) and output.ndim and len(output) == len(samples):
            values = np.asarray(output.detach().cpu())
            if whole and made and np.array_equal(values, made[-1]):  # its last part said so already
                return
            again = sum(known.split(" call ")[0] == name for known in names)
            names.append(f"{name} call {again + 1}" if again else name)
            made.append(values.copy())

    def watch(name: str, whole: bool) -> Callable[[Any, Any, Any], None]:
        return lambda _part, _inputs, output: note(name, output, whole)

    hooks = [
        part.register_forward_hook(watch(f"{name} {_name(part)}", any(True for _ in part.children())))
        for name, part in module.named_modules()
        if part is not module
    ]
    try:
        answer = _through_torch(module, samples)
    finally:
        for hook in hooks:
            hook.remove()
    note(f"the answer of {_name(module)}", answer, True)
    if not made:
        raise ValueError("the module gives no tensor with one row for each input.")
    return names, made


def _layers(model: Any) -> list[tuple[str, Layer]]:
    if isinstance(model, Sequence):
        pairs = [
            each if isinstance(each, tuple) else (f"{i} {_name(each)}", each)
            for i, each in enumerate(model)
        ]
    else:
        pairs = [(_name(model), model)]
    if not pairs or not all(callable(layer) for _, layer in pairs):
        raise ValueError("model must be a function, a module, or a list of at least one of these.")
    return pairs


def _name(layer: Any) -> str:
    return str(getattr(layer, "__name__", type(layer).__name__))


def _elements(group: Group, random_state: int) -> list[int]:
    if group.order <= MAX_TRIED_ELEMENTS:
        return list(range(group.order))
    drawn = np.random.default_rng(random_state).choice(group.order, MAX_TRIED_ELEMENTS, replace=False)
    return list(dict.fromkeys([*group.generators, *drawn.tolist()]))


def _outputs(layers: list[tuple[str, Layer]], samples: Array) -> list[Any]:
    """Return the outputs of every stage, as arrays of the precision they were computed in."""
    x: Any = samples
    outputs = []
    for _, layer in layers:
        if hasattr(layer, "parameters") and hasattr(layer, "forward"):
            x = _through_torch(layer, x)
        else:
            x = layer(x)
        outputs.append(np.asarray(x.detach().cpu() if hasattr(x, "detach") else x))
    return outputs


def _through_torch(layer: Any, x: Any) -> Any:
    from pindown.extras import torch

    first = next(iter(layer.parameters()), None)
    if not torch.is_tensor(x):
        x = torch.as_tensor(np.ascontiguousarray(x))  # turned pictures have negative strides
    if first is not None:
        x = x.to(first)
    with evaluating(layer):
        return layer(x)


def _precision(outputs: list[Any]) -> str:
    return "float64" if all(y.dtype in (np.float64, np.int64, np.bool_) for y in outputs) else "float32"


def _candidates(
    group: Group, outputs: Array, given: Group | None
) -> Iterator[tuple[str, Callable[[int, Array], Array]]]:
    """Yield the ways in which outputs of this shape may move."""
    if given is not None:
        yield "moves as given", given.act
        return
    yield "invariant", lambda _, y: y
    if group.action is not None:
        yield "moves like the inputs", group.act
    elif group.representation is not None:
        yield from _along_axes("moves like the inputs", group, outputs.shape)
    yield from _along_axes("moves like functions on the group", group.regular(), outputs.shape)


def _along_axes(
    words: str, group: Group, shape: tuple[int, ...]
) -> Iterator[tuple[str, Callable[[int, Array], Array]]]:
    d = group.degree
    for axis in reversed(range(1, len(shape))):
        if shape[axis] == d:
            yield f"{words} (axis {axis})", partial(_on_axis, group, axis)
    if d > 1 and shape[-1] > d and shape[-1] % d == 0:
        blocks = (*shape[:-1], shape[-1] // d, d)
        yield f"{words} (in blocks)", lambda g, y: group.act(g, y.reshape(blocks)).reshape(shape)


def _on_axis(group: Group, axis: int, g: int, y: Array) -> Array:
    return np.moveaxis(group.act(g, np.moveaxis(y, axis, -1)), -1, axis)


def _error(
    moved: list[Array], elements: list[int], still: Array, move: Callable[[int, Array], Array]
) -> float:
    scale = float(np.abs(still).max(initial=0.0)) or 1.0
    worst = 0.0
    for g, y in zip(elements, moved, strict=True):
        try:
            expected = move(g, still.astype(float))
        except (ValueError, IndexError):  # this action is not made for outputs of this shape
            return np.inf
        if y.shape != expected.shape:
            return np.inf
        wrong = np.abs(y.astype(float) - expected).max(initial=0.0)
        worst = max(worst, float(wrong) / scale if np.isfinite(wrong) else np.inf)
    return worst

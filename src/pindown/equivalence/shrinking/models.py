"""`shrink`: by the units of a model's ReLU network, or by the channels of its graph."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.shrinking.channels import ChannelDraft
from pindown.equivalence.shrinking.engine import (
    CONTRADICTION,
    checked,
    sampled,
    scale_of,
    shrunk_network,
)
from pindown.equivalence.shrinking.result import Shrunk
from pindown.equivalence.tuning import (
    CHANNEL_SHARE,
    CHECKED_MULTIPLY_ADDS,
    CHECKED_SAMPLES,
    EVALUATION_ROUNDING,
    LAYER_COPIES,
    MAX_SHRINKING_BYTES,
    SCALE_SAMPLES,
)
from pindown.errors import UnsupportedModelError
from pindown.io.any_model import AnyModel, as_model
from pindown.model.graph import Model
from pindown.model.operations.elementwise import Elementwise
from pindown.model.operations.piecewise_linear import Relu
from pindown.network import ReluNetwork
from pindown.progress import Report, silent


def shrink(
    model: AnyModel,
    *,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    tol: float = 0.0,
    budget: float = 60.0,
    progress: Report | None = None,
    activation: str | None = None,
) -> Shrunk:
    r"""Make a model smaller without changing its function, by every reduction that can be proved.

    A network of dense layers is reduced as a ReLU network, to a fixed point: units that are unused,
    dead or constant go; copies and positive multiples of a unit are merged; a layer goes whose
    successor can be computed from its input; opposite pairs that add up to a linear map, and always-on
    units beyond that map's rank, are carried by fewer. On a box the signs of units are proved by
    intervals, linear bounds, smaller boxes and mixed-integer programs, as far as the budget goes.

    Of every other model whole channels go, as far as they are followed from the layer that makes them
    to those that read them: channels that are not read, that are constant for all inputs or on the box
    (by intervals), and copies and positive multiples. Convolutions stay convolutions. What is zero or
    equal is decided in exact arithmetic. The result never stores more numbers than what was given.

    Args:
        model: A model or network, the path of a model file, a torch module or a fitted scikit-learn
            estimator.
        box: The inputs that count, a Box or a pair (lower, upper). Without one only reductions that
            hold for every input are made.
        tol: With 0 only steps that are identities in real arithmetic; what rounding of their weights
            changes is part of ``gap_upper``, at most 1e-9 of the function's size in each. Above, units
            of ReLU networks that are nearly copies or nearly constant go as well, each only if the
            proved gap of all steps together is at most ``tol`` then.
        budget: Seconds. When they are over, what was found is returned.
        progress: Told every step and how many there are so far.
        activation: ``"relu"``, if a path is that of a state dict: that is what lies between its layers,
            which the file does not say.

    Returns:
        The model, also as a ReLU network where it is one, the steps with their reasons, and
        ``gap_upper``: a proved bound on what rounding the new weights (and ``tol``) changed, 0.0 if no
        operation rounded.

    Raises:
        ValueError: If the box does not fit the model, or tol or budget is negative or not a number.
        TypeError: If ``model`` is none of these.

    Example:
        ``relu(x) - relu(-x)`` is x, and relu(x + 5) is never off on [-1, 1]:

        >>> layers = [([[1.0], [-1.0], [1.0]], [0, 0, 5]), ([[1.0, -1.0, 2.0]], [0])]
        >>> net = ReluNetwork.from_layers(layers)
        >>> shrink(net, box=([-1], [1]))
        3 -> 0 ReLUs, 2 -> 1 layers, 1 step, gap <= 0
        >>> shrink(net).network.layers == net.layers
        True

    Lossless pruning of redundant units. Phuong 2021, sections 2.1 and 2.2: each rule is the failure of a
    condition for a network to be determined by its function.
    """
    if isinstance(model, ReluNetwork):
        return shrunk_network(model, checked(model, box, tol, budget), tol, budget, progress)
    given = as_model(model, "shrink", activation)
    domain = checked(given, box, tol, budget)
    deadline = Deadline.after(budget)
    if _bends_by_relus(given) and (by_units := _by_units(given, domain, tol, deadline, progress)):
        return by_units
    by_channels = _by_channels(given, domain, tol, deadline, progress)
    if _bends_by_relus(given):
        return by_channels
    left = max(0.0, tol - by_channels.gap_upper)
    more = _by_units(by_channels.model, domain, left, deadline, progress)
    return by_channels if more is None or not more.steps else _one_after_the_other(by_channels, more)


def _one_after_the_other(first: Shrunk, second: Shrunk) -> Shrunk:
    gaps = [gap for gap in (first.gap_upper, second.gap_upper) if gap > 0.0]
    gap = sum(gaps) if len(gaps) < 2 else math.nextafter(sum(gaps), math.inf)
    steps = (*first.steps, *second.steps)
    return replace(second, steps=steps, gap_upper=gap, original=first.original)


# ---------------------------------------------------------------------- by units


def _bends_by_relus(model: Model) -> bool:
    """Return whether ReLUs are all that bends, so that the ReLU network has as many units."""
    return all(isinstance(op, Relu) for op in model.operations[:-1] if isinstance(op, Elementwise))


def _by_units(
    model: Model, box: Box | None, tol: float, deadline: Deadline, progress: Report | None
) -> Shrunk | None:
    """Shrink the ReLU network of a model; None if there is none as small, or none smaller was found."""
    if network_numbers(model) > stored_numbers(model) or (tol == 0.0 and not _leaves_room(model)):
        return None
    try:
        net = model.relu_network()
    except UnsupportedModelError:
        return None
    if _stored(net) > 2 * stored_numbers(model):
        return None
    found = shrunk_network(net, box, tol, deadline.left, progress)
    if not found.steps:
        return replace(found, reduced=model, original=model)
    if _stored(found.network) >= stored_numbers(model):
        return None
    # Other activations move nothing apart.
    factor = 2.0 if net.output_activation == "log_softmax" else 1.0
    return replace(found, original=model, gap_upper=factor * found.gap_upper)


def _leaves_room(model: Model) -> bool:
    """Return whether the rules for units, which copy layers, take little memory beside the model."""
    largest = max((operation.nbytes for operation in model.operations), default=0)
    return model.nbytes + LAYER_COPIES * largest <= MAX_SHRINKING_BYTES


def network_numbers(model: Model) -> int:
    """Return how many numbers the file of a model's ReLU network holds, about, and at least.

    That is one unit for each entry of an activation, and every layer with all of its weights.
    """
    bent = [
        math.prod(node.shape) for node in model.nodes[:-1] if isinstance(node.operation, Elementwise)
    ]
    widths = [model.in_features, *bent, model.out_features]
    return sum(a * b for a, b in pairwise(widths))


def stored_numbers(model: Model) -> int:
    """Return how many numbers a model's file holds: those of all operations, each array once."""
    arrays = {
        id(value): value.size
        for operation in model.operations
        for value in vars(operation).values()
        if isinstance(value, np.ndarray)
    }
    return sum(arrays.values())


def _stored(net: ReluNetwork) -> int:
    """Return how many numbers the file of a network holds: matrices are written in full."""
    return sum(math.prod(W.shape) + b.size for W, b in net.layers)


# ---------------------------------------------------------------------- by channels


def _by_channels(
    model: Model, box: Box | None, tol: float, deadline: Deadline, progress: Report | None
) -> Shrunk:
    large = model.multiply_adds > CHECKED_MULTIPLY_ADDS
    n_scale, n_checked = (2, 2) if large else (SCALE_SAMPLES, CHECKED_SAMPLES)
    draft = ChannelDraft(
        *(model, box, tol, lambda: scale_of(model, box, n_scale), deadline.share(CHANNEL_SHARE)),
        progress or silent,
    )
    draft.run()
    if not draft.steps or stored_numbers(draft.model) >= stored_numbers(model):
        return Shrunk(model, (), 0.0, model, not draft.deadline.passed, by_units=False)
    _check(model, draft, sampled(model, box, n_checked, 1))
    steps, complete = tuple(draft.steps), not draft.deadline.passed
    return Shrunk(draft.model, steps, draft.gap, model, complete, by_units=False)


def _check(model: Model, draft: ChannelDraft, points: Array) -> None:
    """Look at a few inputs: a proof must survive it."""
    try:
        before, after = model(points), draft.model(points)
    except ValueError:  # it overflows
        return
    lengths = 1.0 + np.linalg.norm(points, axis=1) if draft.box is None else np.ones(len(points))
    rounding = EVALUATION_ROUNDING * max(1.0, float(np.abs(before).max()))
    if (np.abs(before - after).max(axis=1) > draft.gap * lengths + rounding).any():
        raise RuntimeError(CONTRADICTION)

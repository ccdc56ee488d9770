r"""Values and gradients of a model, by one pass forth and one back through its operations.

For a linear form a of the outputs the gradient is the form pulled back through every operation,

.. math::
    \nabla_x \, (a \cdot f)(x) = a \, D f_m \cdots D f_2 \, D f_1 (x) ,

where several ways to one tensor are added up. At a kink the derivative is one of those beside it.
Gradients say where to search, and prove nothing: what leaves float64 on the way is cut off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pindown.affine import Array
from pindown.model.graph import Model, interval_walk
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.operation import Interval
from pindown.network import row_chunks

MAX_SLOPE = 1e300  # what is kept of a slope beyond float64


def outputs(model: Model, rows: Array) -> Array:
    """Return the outputs (n, k) at rows (n, d), infinite or NaN where float64 does not reach.

    >>> from pindown.model.from_network import model_of_network
    >>> from pindown.network import ReluNetwork
    >>> model = model_of_network(ReluNetwork.from_layers([([[1e300]], [0])]))
    >>> outputs(model, np.array([[1.0], [1e300]]))
    array([[1.e+300],
           [    inf]])
    """
    made = np.empty((len(rows), model.out_features))
    with np.errstate(all="ignore"):
        for part in model.chunks(len(rows)):
            made[part] = model.evaluate(rows[part]).reshape(-1, model.out_features)
    return made


def gradients(model: Model, rows: Array, forms: Callable[[Array, slice], Array]) -> tuple[Array, Array]:
    r"""Return the outputs (n, k) and the gradients (n, d) of one linear form of them at each row.

    Args:
        model: The model f.
        rows: Points x, (n, d).
        forms: Called with outputs (m, k) and which of the rows they belong to; returns the form a of
            each, (m, k). So a loss can be differentiated where it depends on what comes out.

    Example:
        The product of f = x^2 with the form 3, at 2 and at 5:

        >>> from pindown.model.builder import Builder
        >>> from pindown.model.operations.products import Multiply
        >>> graph = Builder((1, 1))
        >>> model = graph.model(graph.add(Multiply(), graph.input, graph.input), input_shape=(1,))
        >>> values, slopes = gradients(model, np.array([[2.0], [5.0]]), lambda y, at: 3.0 + 0.0 * y)
        >>> values.ravel(), slopes.ravel()
        (array([ 4., 25.]), array([12., 30.]))
    """
    made = np.empty((len(rows), model.out_features))
    slopes = np.empty((len(rows), model.in_features), dtype=rows.dtype)
    most = min(MAX_SLOPE, float(np.finfo(rows.dtype).max))
    with np.errstate(all="ignore"):
        # Every tensor waits for the way back, beside the forms of those that are still open.
        for part in row_chunks(len(rows), 16 * model.tensor_entries):
            values = _walked(model, rows[part])
            made[part] = values[-1].reshape(-1, model.out_features)
            form = forms(made[part], part).astype(rows.dtype, copy=False)
            slopes[part] = _pulled_back(model, values, form.reshape(-1, *model.output_shape))
    return made, np.nan_to_num(slopes, copy=False, posinf=most, neginf=-most)


def in_single_precision(model: Model) -> Model:
    """Return a model whose affine operations hold their numbers in float32, to search with.

    Rows in float32 go through it in half the time, forth and back; what is found proves nothing.

    >>> from pindown.model.from_network import model_of_network
    >>> from pindown.network import ReluNetwork
    >>> third = model_of_network(ReluNetwork.from_layers([([[1 / 3]], [0])]))
    >>> in_single_precision(third).evaluate(np.ones((1, 1), dtype=np.float32)).item()
    0.3333333432674408
    """
    nodes = (
        node._replace(operation=node.operation.single)
        if isinstance(node.operation, AffineOperation)
        else node
        for node in model.nodes
    )
    return replace(model, nodes=tuple(nodes))


def _walked(model: Model, rows: Array) -> list[Array]:
    """Return the input and what every node makes of it."""
    values = [rows.reshape(len(rows), *model.literal_shape)]
    for node in model.nodes:
        values.append(node.operation(*(values[j] for j in node.inputs)))
    return values


def _pulled_back(model: Model, values: list[Array], form: Array) -> Array:
    """Return a form of the output in the input, at points whose tensors are ``values``."""
    forms = {len(model.nodes): form}
    for i in range(len(model.nodes), 0, -1):
        if i not in forms:
            continue
        node = model.nodes[i - 1]
        parts = node.operation.pull_back(forms.pop(i), *(values[j] for j in node.inputs))
        for j, part in zip(node.inputs, parts, strict=True):
            forms[j] = forms[j] + part if j in forms else part
    n = len(form)
    return forms[0].reshape(n, -1) if 0 in forms else np.zeros((n, model.in_features))


def relaxed_gradients(model: Model, box: Interval, forms: Array) -> Array:
    r"""Return the slopes (n, d) of linear functions above linear forms of the outputs on whole boxes.

    They are the slopes of the linear bound on :math:`a \cdot f` that the operations' relaxations give,
    which sees what lies on the other side of kinks: on a small box it is nearly the gradient, on a wide
    one the direction in which the form can grow at all. Zero where only constant bounds are known.

    Args:
        model: The model f.
        box: The boxes, corners (n, d).
        forms: The forms a, (n, k).

    Example:
        At 0 and to the left of it ``relu`` is flat; on the box [-1, 1] it lies below (x + 1) / 2:

        >>> from pindown.model.from_network import model_of_network
        >>> from pindown.network import ReluNetwork
        >>> model = model_of_network(ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])]))
        >>> gradients(model, np.array([[-0.5]]), lambda y, at: np.ones_like(y))[1]
        array([[0.]])
        >>> relaxed_gradients(model, Interval(np.array([[-1.0]]), np.array([[1.0]])), np.ones((1, 1)))
        array([[0.5]])

    Zhang et al. 2018, "Efficient neural network robustness certification with general activation
    functions" (CROWN), with intervals for the tensors inside.
    """
    n, d = box.lower.shape
    slopes = np.empty((n, d))
    with np.errstate(all="ignore"):
        # Two ends of every tensor, and about as much again for its lines.
        for part in row_chunks(n, 32 * model.tensor_entries):
            ends = Interval(box.lower[part], box.upper[part])
            slopes[part] = _relaxed(model, list(interval_walk(model, ends)), forms[part])
    return np.nan_to_num(slopes, copy=False, posinf=MAX_SLOPE, neginf=-MAX_SLOPE)


def _relaxed(model: Model, values: list[Interval], forms: Array) -> Array:
    """Pull forms (n, k) back through relaxations on boxes of all tensors."""
    n = len(forms)
    waiting = {len(model.nodes): forms.reshape(n, 1, *model.output_shape)}
    for i in range(len(model.nodes), 0, -1):
        if i not in waiting:
            continue
        node = model.nodes[i - 1]
        relaxation = node.operation.relaxation(*(values[j] for j in node.inputs))
        for j, part in zip(node.inputs, relaxation.estimate(waiting.pop(i)).forms, strict=True):
            waiting[j] = waiting[j] + part if j in waiting else part
    return waiting[0].reshape(n, -1) if 0 in waiting else np.zeros((n, model.in_features))

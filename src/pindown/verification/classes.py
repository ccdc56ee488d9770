r"""The class of an input, as a comparison of outputs, and what questions about it are given.

The class of x is the first largest output. A network with one output is a two-class one by its sign:
class 1 where :math:`f(x) > 0`, else class 0. Written as the outputs :math:`(0, f)`, this is the first
largest again, so nothing else has to know about it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Affine, Array, dense
from pindown.box import Box, as_box
from pindown.model.gradients import MAX_SLOPE, gradients
from pindown.model.graph import Model, Node
from pindown.model.operations.dense import Dense
from pindown.model.operations.moves import Reshape
from pindown.network import ReluNetwork, as_rows
from pindown.relaxation.lp_balls import Balls
from pindown.verification._goals import Goals

BoxLike = Box | tuple[ArrayLike, ArrayLike] | None
Classes = NDArray[np.intp]
AnyNet = TypeVar("AnyNet", ReluNetwork, Model, ReluNetwork | Model)


def classifier(net: AnyNet) -> AnyNet:
    """Return a network or model with at least two outputs, of which the first largest names the class.

    A last softmax or sigmoid of a model is left out: what comes before has the same order.

    >>> net = ReluNetwork.from_layers([([[2.0]], [1])])
    >>> classifier(net)([[3.0]])
    array([[0., 7.]])
    """
    if isinstance(net, Model):
        return _two_scores(net.scores())
    if not isinstance(net, ReluNetwork):
        raise TypeError(
            f"net must be a ReluNetwork; got {type(net).__name__}. pn.load reads model files."
        )
    if net.out_features > 1:
        return net
    weight, bias = net.layers[-1]
    row = dense(weight)
    last = Affine.of(np.concatenate([np.zeros_like(row), row]), np.concatenate([[0.0], bias]))
    return ReluNetwork((*net.layers[:-1], last), net.input_shape)


def _two_scores(model: Model) -> Model:
    """Return a model with its output behind a zero, if it is the only one."""
    if model.out_features > 1:
        return model
    n, flat, both = len(model.nodes), Reshape((1, 1)), Dense(np.array([[0.0], [1.0]]))
    added = (Node(flat, (n,), (1, 1), "the score"), Node(both, (n + 1,), (1, 2), "two scores"))
    return replace(model, nodes=(*model.nodes, *added))


def predicted(net: ReluNetwork | Model, X: Array) -> NDArray[np.intp]:
    """Return the class of each row."""
    return np.argmax(net(X), axis=-1)


def as_classes(y: ArrayLike, n: int, k: int) -> NDArray[np.intp]:
    """Check labels of n rows against k classes.

    >>> as_classes([0, 2], n=2, k=3)
    array([0, 2])
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y must hold one class for each of {n} rows; got shape {labels.shape}.")
    if labels.dtype.kind not in "biuf" or not np.array_equal(labels, np.round(labels)):
        raise ValueError(f"y must hold whole numbers 0 to {k - 1}; got dtype {labels.dtype}.")
    if n and not (labels.min() >= 0 and labels.max() < k):
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise ValueError(f"y must hold classes 0 to {k - 1} for {k} classes; got {wrong:g}.")
    return labels.astype(np.intp)


def margin_rows(labels: NDArray[np.intp], k: int) -> Array:
    r"""Return for each label c the rows of :math:`f_j - f_c` for all :math:`j \ne c`, (n, k-1, k).

    >>> margin_rows(np.array([1]), 3)[0]
    array([[ 1., -1.,  0.],
           [ 0., -1.,  1.]])
    """
    rows = np.zeros((len(labels), k - 1, k))
    others = np.arange(k - 1)[None, :] + (np.arange(k - 1)[None, :] >= labels[:, None])
    at = np.arange(len(labels))[:, None], np.arange(k - 1)[None, :]
    rows[(*at, others)] = 1.0
    rows[(*at, np.broadcast_to(labels[:, None], others.shape))] -= 1.0
    return rows


class Slopes(NamedTuple):
    """Margins of n inputs with their gradients.

    Attributes:
        margin: The right output minus the best other one, (n,); the class is lost at or below 0.
        gradient: Gradient of the margin with respect to the input, (n, d).
    """

    margin: Array
    gradient: Array


def margin_slopes(net: ReluNetwork | Model, X: Array, labels: NDArray[np.intp]) -> Slopes:
    """Return the margin of each row and its gradient, by one pass forth and one back."""

    def forms(outputs: Array, rows: slice) -> Array:
        at, own, others = np.arange(len(outputs)), labels[rows], outputs.copy()
        others[at, own] = -np.inf
        A = np.zeros_like(outputs)
        A[at, own] = 1.0
        A[at, np.argmax(others, axis=1)] = -1.0
        return A

    if isinstance(net, Model):
        made, slopes = gradients(net, X, forms)
        return Slopes((forms(made, slice(None)) * made).sum(axis=1), slopes)
    values = net.trace(X)
    A = forms(values[-1], slice(None))
    return Slopes((A * values[-1]).sum(axis=1), pulled_back(net, values, A))


def pulled_back(net: ReluNetwork, values: list[Array], A: Array) -> Array:
    """Return gradients (n, d) of ``A[i] . f`` at inputs whose traces are ``values``.

    What leaves float64 is cut off: gradients say where to search, and prove nothing.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for layer, z in zip(net.layers[:0:-1], values[-2::-1], strict=True):
            A = layer.pull_back(A)
            A *= z >= 0.0
        A = net.layers[0].pull_back(A)
    return np.nan_to_num(A, copy=False, posinf=MAX_SLOPE, neginf=-MAX_SLOPE)


def as_inputs(net: ReluNetwork | Model, X: ArrayLike, box: BoxLike) -> tuple[Array, Box | None]:
    """Return inputs as rows and the box, if there is one; the rows must lie in it.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0])])
    >>> as_inputs(net, [0.5], (0, 1))
    (array([[0.5]]), Box(1 dimension, 0 <= x_1 <= 1))
    """
    rows, _ = as_rows(X, net.in_features, net.input_shape)
    if box is None:
        return rows, None
    limits = as_box(box, net.in_features)
    inside = limits.contains(rows)
    if not inside.all():
        raise ValueError(
            f"{int(np.count_nonzero(~inside))} of {len(rows)} inputs lie outside the box; "
            f"changes are measured from inputs inside it."
        )
    return rows, limits


def one_input(net: ReluNetwork | Model, x: ArrayLike, box: BoxLike) -> tuple[Array, Box | None]:
    """Return the single input (d,) that x is, and the box."""
    rows, limits = as_inputs(net, x, box)
    if len(rows) != 1:
        raise ValueError(f"x must be one input of {net.in_features} numbers; got {len(rows)} inputs.")
    return rows[0], limits


def as_radii(radius: ArrayLike, n: int) -> Array:
    """Return one radius >= 0 for each of n inputs.

    >>> as_radii(0.5, 2)
    array([0.5, 0.5])
    """
    radii = np.asarray(radius, dtype=np.float64)
    if radii.ndim > 1 or (radii.ndim == 1 and radii.shape != (n,)):
        raise ValueError(f"radius must be a number or one for each of {n} inputs; got {radii.shape}.")
    if not (np.isfinite(radii).all() and np.all(radii >= 0)):
        raise ValueError(f"a radius must be a finite number >= 0; got {radius!r}.")
    return np.broadcast_to(radii, (n,)).astype(np.float64)


def as_targets(target: ArrayLike, n: int, k: int) -> Classes:
    """Return one class to reach for each of n inputs.

    >>> as_targets(2, n=3, k=4)
    array([2, 2, 2])
    """
    goals = np.asarray(target)
    if goals.ndim:
        return as_classes(goals, n, k)
    return np.repeat(as_classes(goals[None], 1, k), n)


def class_goals(
    outputs: Array, labels: Classes, balls: Balls, target: Classes | None, most: int
) -> tuple[Goals, Classes]:
    r"""Return what attacks have to reach, and to which input each goal belongs.

    Away from class c, each other class j is a goal, :math:`f_c - f_j \le 0`, and strictly so for j > c:
    the first largest output names the class. To a target there is one goal,
    :math:`f_j - f_t \le 0` for all other j, strictly for j < t.

    Args:
        outputs: Outputs at the inputs, (n, k).
        labels: Classes c to leave, (n,).
        balls: Where changed inputs lie, n of them.
        target: Classes t to reach instead, (n,), or None.
        most: Of the other classes only so many are tried, those that are nearest at the input.

    >>> balls = Balls.around(np.zeros((1, 2)), np.ones(1), "linf")
    >>> goals, inputs = class_goals(np.array([[3.0, 1.0, 2.0]]), np.array([0]), balls, None, 5)
    >>> goals.rows[:, 0]
    array([[ 1.,  0., -1.],
           [ 1., -1.,  0.]])
    """
    (n, k), every = outputs.shape, np.arange(len(outputs))
    if target is not None:
        rows = margin_rows(target, k)
        strict = (rows > 0).argmax(axis=2) < target[:, None]
        return Goals.between(balls, every, rows, np.zeros((n, k - 1)), strict), every
    others = outputs.copy()
    others[every, labels] = -np.inf
    nearest = np.argsort(-others, axis=1, kind="stable")[:, : min(most, k - 1)]
    inputs, classes = np.repeat(every, nearest.shape[1]), nearest.ravel()
    rows = np.zeros((len(classes), 1, k))
    at = np.arange(len(classes))
    rows[at, 0, labels[inputs]], rows[at, 0, classes] = 1.0, -1.0
    strict = (classes > labels[inputs])[:, None]
    return Goals.between(balls, inputs, rows, np.zeros((len(classes), 1)), strict), inputs

r"""Integrated gradients: what each input adds to an output on the way from a baseline, exactly.

With the path :math:`x(t) = b + t (x - b)` the attribution of input i to an output f is

.. math::
    a_i = (x_i - b_i) \int_0^1 \partial_i f(x(t))\, dt, \qquad \sum_i a_i = f(x) - f(b).

The second equation is completeness. A piecewise linear network has constant gradients :math:`g_p` on
finitely many pieces :math:`[t_p, t_{p+1}]` of the segment, all of which are known
(:mod:`pindown.geometry.slices`), so the integral is the sum
:math:`\sum_p (t_{p+1} - t_p)\, g_p`: no steps to choose, and nothing is left but rounding.

Of other models the integral is taken by Gauss and Kronrod's rule on intervals that are halved where two
rules of different order differ. Their difference is an estimate of the error, not a proof; that the
attributions add up to the difference of the outputs is a check which every result carries.

Sundararajan, Taly and Yan 2017, "Axiomatic attribution for deep networks".
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.deadline import Deadline, OutOfTime
from pindown.errors import UnsupportedModelError
from pindown.evidence import Kind
from pindown.geometry.slices.segment import along_segments
from pindown.model.gradients import gradients, outputs
from pindown.model.graph import Model
from pindown.network import ReluNetwork, as_rows
from pindown.probes.differentiable import as_differentiable
from pindown.probes.tuning import (
    ATTRIBUTED_SEGMENTS,
    MAX_EXACT_ENTRIES,
    MAX_KRONROD_INTERVALS,
    SHOWN_ATTRIBUTIONS,
)
from pindown.validation import positive
from pindown.verification.classes import as_targets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Attributions:
    """What each number of n inputs adds to one output.

    Attributes:
        values: The attributions, of the shape of the inputs.
        output: Which output is meant, (n,).
        change: The output at each input minus its mean over the baselines, (n,).
        gap: By how much the attributions miss adding up to that, (n,).
        error: Estimated error of each sum of absolute errors, (n,); zero but for rounding where exact.
        pieces: Intervals of the segments on which gradients were taken, (n,).
        kind: ``"exact"``: over all pieces of a piecewise linear network, up to rounding; ``"estimate"``.
    """

    values: Array = field(repr=False)
    output: Indices = field(repr=False)
    change: Array
    gap: Array
    error: Array = field(repr=False)
    pieces: Indices = field(repr=False)
    kind: Kind

    @property
    def relative_gap(self) -> Array:
        """The gap as a share of the sum of absolute attributions, (n,)."""
        total = np.abs(self.values).reshape(len(self.gap), -1).sum(axis=1)
        return np.asarray(self.gap / np.where(total > 0, total, 1.0))

    def __str__(self) -> str:
        off = float(np.max(self.relative_gap, initial=0.0))
        return (
            f"attributions of {len(self.gap):,} inputs over {int(self.pieces.sum()):,} pieces; they "
            f"miss adding up by {off:.2g} of their size ({self.kind})"
        )

    def draw(self, X: ArrayLike | None = None, *, rows: int = 3) -> Figure:
        """Draw attributions: as pictures where inputs are images, else as bars."""
        return draw_attributions(self, X, rows=rows)


def integrated_gradients(
    model: Any,
    X: ArrayLike,
    baseline: ArrayLike = 0.0,
    output: ArrayLike | None = None,
    *,
    through: ArrayLike | None = None,
    tol: float = 1e-6,
    budget: float | None = 60.0,
) -> Array:
    r"""Return what each input adds to an output on the way from a baseline, in X's shape.

    Args:
        model: A model or network, a torch module, a function of tensors or a :class:`Differentiable`.
        X: Inputs (n, d) or ``(n, *input_shape)``, or one of them.
        baseline: Where paths begin: a number for all, one input, or several, (m, ...), whose
            attributions are averaged.
        output: Which output to explain, for all inputs or for each; the largest one if not given.
        through: Points (m, ...) that the paths go through between baseline and input; straight lines
            otherwise. Attributions of the parts are added.
        tol: For models that are not piecewise linear: halve until the estimated error is below this
            share of the sum of absolute attributions.
        budget: Seconds. Where all pieces would take longer, as for networks with very many units, the
            integral is taken as for other models. A first estimate of each row is not cut short.

    Returns:
        The attributions; :func:`attributions` tells how well they are known.

    Example:
        ``relu(x1 + x2 - 1)`` from 0 to (1, 2): on for two thirds of the way, so x1 adds 2/3, x2 4/3:

        >>> net = ReluNetwork.from_layers([([[1.0, 1.0]], [-1.0]), ([[1.0]], [0.0])])
        >>> integrated_gradients(net, [1.0, 2.0])
        array([0.66666667, 1.33333333])

    Sundararajan, Taly and Yan 2017.
    """
    return attributions(model, X, baseline, output, through=through, tol=tol, budget=budget).values


def attributions(
    model: Any,
    X: ArrayLike,
    baseline: ArrayLike = 0.0,
    output: ArrayLike | None = None,
    *,
    through: ArrayLike | None = None,
    tol: float = 1e-6,
    budget: float | None = 60.0,
) -> Attributions:
    """Return :func:`integrated_gradients` with what is known about them; the arguments are its own.

    >>> net = ReluNetwork.from_layers([([[1.0, 1.0]], [-1.0]), ([[1.0]], [0.0])])
    >>> print(attributions(net, [[1.0, 2.0]]))
    attributions of 1 inputs over 2 pieces; they miss adding up by 0 of their size (exact)
    """
    deadline, tol = Deadline.of(budget), positive("tol", tol)
    read = as_differentiable(model, X, "integrated_gradients")
    rows, _ = as_rows(X, read.in_features, read.input_shape)
    n, d = rows.shape
    made = outputs(read, rows)
    if not np.isfinite(made).all():
        raise ValueError("the model's output is not finite at some input; scale the inputs down.")
    chosen = np.argmax(made, axis=1) if output is None else as_targets(output, n, made.shape[1])
    starts = _points("baseline", baseline, read)
    stops = np.zeros((0, d)) if through is None else _points("through", through, read)
    values, error, pieces = np.zeros((n, d)), np.zeros(n), np.zeros(n, np.intp)
    kind: Kind = "exact"
    change = made[np.arange(n), chosen]
    for start in starts:
        way = [np.broadcast_to(point, (n, d)) for point in (start, *stops)] + [rows]
        change = change - outputs(read, start[None])[0][chosen] / len(starts)
        for a, b in pairwise(way):
            part = _integrated(read, a, b, chosen, tol, deadline)
            values += part.mean * (b - a) / len(starts)
            error += part.error / len(starts)
            pieces += part.pieces
            kind = "exact" if kind == part.kind == "exact" else "estimate"
    gap = np.abs(values.sum(axis=1) - change)
    return Attributions(values.reshape(np.shape(X)), chosen, change, gap, error, pieces, kind)


def _points(name: str, given: ArrayLike, model: Model) -> Array:
    """Return points (m, d): of a number one with equal entries."""
    value = np.asarray(given, dtype=np.float64)
    if not np.isfinite(value).all() or not value.size:
        raise ValueError(f"{name} must hold finite numbers; got {given!r}.")
    if value.ndim == 0:
        return np.full((1, model.in_features), float(value))
    return as_rows(value, model.in_features, model.input_shape)[0]


@dataclass(frozen=True, eq=False)
class _Mean:
    """Mean gradients of segments, (n, d), with an error (n,) of the sums of products with the steps."""

    mean: Array
    error: Array
    pieces: Indices
    kind: Kind


def _integrated(
    model: Model, a: Array, b: Array, chosen: Indices, tol: float, deadline: Deadline
) -> _Mean:
    if model.tensor_entries <= MAX_EXACT_ENTRIES:
        with suppress(UnsupportedModelError, OutOfTime):
            net = model.relu_network()
            if net.output_activation is None:
                return _over_pieces(model, net, a, b, chosen, deadline)
    return _by_halving(model, a, b, chosen, tol, deadline)


# ---------------------------------------------------------------------- piecewise linear networks


def _over_pieces(
    model: Model, net: ReluNetwork, a: Array, b: Array, chosen: Indices, deadline: Deadline
) -> _Mean:
    """Add up the gradients of all pieces, each times the share of the segment that it covers."""
    mean, pieces = np.zeros(a.shape), np.zeros(len(a), np.intp)
    for start in range(0, len(a), ATTRIBUTED_SEGMENTS):
        part = slice(start, start + ATTRIBUTED_SEGMENTS)
        folds = along_segments(net, np.array(a[part]), np.array(b[part]))
        counts = np.diff(folds.knot_offsets)
        owner = np.repeat(np.arange(len(counts)), counts)
        inner = np.ones(len(owner), bool)
        inner[folds.knot_offsets[1:] - 1] = False  # nothing follows a last knot
        at = np.flatnonzero(inner)
        spans, times = (
            folds.knots[at + 1] - folds.knots[at],
            folds.knots[at] / 2 + folds.knots[at + 1] / 2,
        )
        who = owner[at]
        began = deadline.spent
        for few in model.chunks(len(at)):
            middle = a[part][who[few]] + times[few, None] * (b[part] - a[part])[who[few]]
            slopes = _slopes(model, middle, chosen[part][who[few]])
            np.add.at(mean[part], who[few], spans[few, None] * slopes)
            if (deadline.spent - began) * (len(at) / few.stop - 1.0) > deadline.left:
                raise OutOfTime("gradients of all pieces take longer than there is time.")
        pieces[part] = counts - 1
    return _Mean(mean, np.zeros(len(a)), pieces, "exact")


def _slopes(model: Model, points: Array, output: Indices | int) -> Array:
    """Return the gradients (n, d) of one output at each point."""
    rows = np.zeros((len(points), model.out_features))
    rows[np.arange(len(points)), output] = 1.0
    return gradients(model, points, lambda _, part: rows[part])[1]


# ---------------------------------------------------------------------- other models

# Nodes in [0, 1] and weights of Kronrod's rule with 15 points, and Gauss's weights at every second one.
_HALF = np.array([0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
                  0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
                  0.586087235467691130294144691693013, 0.405845151377397166906606412076961,
                  0.207784955007898467600689403773245])  # fmt: skip
_NODES = 0.5 + 0.5 * np.concatenate([-_HALF, [0.0], _HALF[::-1]])
_KRONROD_HALF = np.array([0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
                          0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
                          0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
                          0.204432940075298892414161999234649])  # fmt: skip
_KRONROD = 0.5 * np.concatenate(
    [_KRONROD_HALF, [0.209482141084727828012999174891714], _KRONROD_HALF[::-1]]
)
_GAUSS_HALF = np.array([0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
                        0.381830050505118944950369775488975])  # fmt: skip
_GAUSS = np.zeros(15)
_GAUSS[1::2] = 0.5 * np.concatenate(
    [_GAUSS_HALF, [0.417959183673469387755102040816327], _GAUSS_HALF[::-1]]
)


def _by_halving(
    model: Model, a: Array, b: Array, chosen: Indices, tol: float, deadline: Deadline
) -> _Mean:
    """Integrate by Kronrod's rule, halving the intervals whose error is too large a share of all."""
    mean, error, pieces = np.zeros(a.shape), np.zeros(len(a)), np.zeros(len(a), np.intp)
    for i, (start, end) in enumerate(zip(a, b, strict=True)):
        mean[i], error[i], pieces[i] = _halved(model, start, end, int(chosen[i]), tol, deadline)
    return _Mean(mean, error, pieces, "estimate")


def _halved(
    model: Model, a: Array, b: Array, output: int, tol: float, deadline: Deadline
) -> tuple[Array, float, int]:
    """Return the mean gradient of one segment, the sum of the estimated errors, and the intervals."""
    step = np.abs(b - a)
    parts = [(0.0, 1.0, *_kronrod(model, a, b, output, 0.0, 1.0))]
    while len(parts) < MAX_KRONROD_INTERVALS and not deadline.passed:
        errors = np.array([step @ part[3] for part in parts])
        total = float(step @ np.abs(sum(part[2] for part in parts)))
        if errors.sum() <= tol * total:
            break
        worst = int(np.argmax(errors))
        low, high, _, _ = parts.pop(worst)
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        parts += [
            (s, t, *_kronrod(model, a, b, output, s, t)) for s, t in ((low, middle), (middle, high))
        ]
    mean = np.sum([part[2] for part in parts], axis=0)
    return mean, float(step @ np.sum([part[3] for part in parts], axis=0)), len(parts)


def _kronrod(
    model: Model, a: Array, b: Array, output: int, low: float, high: float
) -> tuple[Array, Array]:
    """Return the integral of the gradient over an interval by 15 points, and its change from 7."""
    times = low + (high - low) * _NODES
    slopes = _slopes(model, a + times[:, None] * (b - a), output)
    fine, coarse = _KRONROD @ slopes, _GAUSS @ slopes
    return (high - low) * fine, (high - low) * np.abs(fine - coarse)


# ---------------------------------------------------------------------- pictures


def draw_attributions(found: Attributions, X: ArrayLike | None = None, *, rows: int = 3) -> Figure:
    """Draw the first few inputs: an image beside its map, red for what raises the output and blue for
    what lowers it; of other inputs the largest attributions as bars.

    Args:
        found: From :func:`~pindown.probes.attributions`.
        X: The inputs, to be drawn beside the maps.
        rows: How many inputs to draw at most.

    >>> from pindown import ReluNetwork
    >>> from pindown.probes import attributions
    >>> net = ReluNetwork.from_layers([([[1.0, -2.0]], [0.0])])
    >>> figure = draw_attributions(attributions(net, [[1.0, 1.0]]))
    >>> [round(float(bar.get_width()), 1) for bar in figure.axes[0].patches]
    [1.0, -2.0]
    """  # noqa: D205
    from matplotlib.figure import Figure

    values = found.values.reshape(len(found.gap), *found.values.shape[found.values.ndim > 1 :])
    n = min(rows, len(values))
    given = None if X is None else np.asarray(X, dtype=np.float64).reshape(values.shape)
    image = values.ndim >= 3
    columns = 2 if image and given is not None else 1
    figure = Figure(figsize=(3.2 * columns if image else 5.0, 2.9 * max(n, 1)), layout="constrained")
    axes = figure.subplots(max(n, 1), columns, squeeze=False)
    for i in range(n):
        title = f"output {int(found.output[i])}: {found.change[i]:+.3g} from the baseline"
        if not image:
            _bars(axes[i, 0], values[i].ravel(), title)
            continue
        if given is not None:
            _picture(axes[i, 0], given[i])
        _map(axes[i, -1], values[i], title)
    return figure


def _bars(ax: Axes, values: Array, title: str) -> None:
    order = np.argsort(-np.abs(values), kind="stable")[:SHOWN_ATTRIBUTIONS][::-1]
    order = order if len(values) > SHOWN_ATTRIBUTIONS else np.arange(len(values))
    colours = ["#b2182b" if v > 0 else "#2166ac" for v in values[order]]
    ax.barh(np.arange(len(order)), values[order], color=colours)
    ax.set_yticks(np.arange(len(order)), [f"x{j + 1}" for j in order])
    ax.axvline(0.0, color="0.6", lw=0.8)
    ax.set_title(title, fontsize=10)


def _picture(ax: Axes, image: Array) -> None:
    shown = np.moveaxis(image, 0, -1) if image.ndim == 3 and image.shape[0] == 3 else image
    shown = shown.mean(axis=0) if shown.ndim == 3 and shown.shape[-1] != 3 else shown
    low, high = float(shown.min()), float(shown.max())
    ax.imshow((shown - low) / (high - low or 1.0), cmap="Greys")
    ax.set(xticks=[], yticks=[])


def _map(ax: Axes, values: Array, title: str) -> None:
    summed = values.sum(axis=0) if values.ndim == 3 else values
    size = float(np.abs(summed).max()) or 1.0
    ax.imshow(summed, cmap="RdBu_r", vmin=-size, vmax=size)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=10)

r"""A network by its kinks alone: no unit that is always on, wherever the linear parts were carried.

An always-on unit is affine in what it reads, so it can be left out by letting its readers read that.
What remains are the kinks k, each a function of the inputs and of the kinks below it:

.. math::
    z_k = \sum_i V_{ki}\, x_i + \sum_{j < k} U_{kj}\, \rho(z_j) + c_k .

On a box linear parts can always be carried, so that a kink may be turned round,
:math:`\rho(z) = \rho(-z) + z`; of both the one is taken that is on at a fixed point. Whoever carried the
linear parts before, and by however many units, this form is the same up to the order and scale of the
kinks. To be a layered network again, a kink goes into the layer above the highest kink it reads; what is
read further above, kinks and inputs :math:`x_i - l_i \ge 0` counted from the lower corner of the box, is
passed on by identities.

Phuong 2021, section 2.2 (units that are linear on the domain do not show in the function).
"""

from __future__ import annotations

from itertools import pairwise
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, Matrix, compact, dense
from pindown.equivalence.shrinking._kink_relations import (
    CANCELLED,
    Places,
    Sums,
    copies_among,
    decided_signs,
    table,
)
from pindown.equivalence.shrinking._proposals import Draft, Errors, Layer
from pindown.equivalence.shrinking._rounded_matrices import (
    Mask,
    Rounded,
    add,
    affine_image,
    largest,
    matmul,
    sum_up,
)
from pindown.equivalence.shrinking._unit_facts import nothing_known
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.tuning import MAX_KINK_ENTRIES, SECONDS_PER_PRODUCT
from pindown.network import ReluNetwork
from pindown.rounding import SMALLEST, gamma

Indices = NDArray[np.intp]

_SEED = 0  # of the point at which kinks are on


def settle(draft: Draft) -> bool:
    """Write the network by its kinks, so that all networks with these kinks become alike.

    Returns:
        Whether the network changed: not if no unit is left out or turned round, or numbers are too many
        or too large.
    """
    on = [draft.bounds(layer).lower >= 0.0 for layer in range(draft.net.depth - 1)]
    if not on or _too_large(draft, on):
        return False
    turned = _turned(draft, on)
    if not any(mask.any() for mask in (*on, *turned)) or (draft.box is None and on[0].any()):
        return False  # without a box an input is no ReLU's value, so nothing can pass it on
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        form = _expanded(draft, on, turned)
        if form is None:
            return False
        layers, errors = _layered(draft, *form)
    if len(layers) < 2:
        return False
    units = tuple(np.flatnonzero(np.concatenate(on)).tolist())
    kinks = draft.net.size - len(units)
    reason = f"{len(units)} always-on units left out; the other {kinks} read what these were made of"
    known = [nothing_known(len(bias)) for _, bias in layers[:-1]]
    return draft.propose(layers, errors, Step("settled", 1, units, reason), known)


def settling_seconds(net: ReluNetwork) -> float:
    """Return roughly how long :func:`settle` takes, if all units are kinks."""
    seconds, coordinates = 0.0, net.in_features
    for n, m in pairwise(net.widths):
        seconds += SECONDS_PER_PRODUCT * n * m * coordinates
        coordinates += m
    return seconds


def _too_large(draft: Draft, on: list[Mask]) -> bool:
    """Return whether matrices would get too large, or numbers of networks on a box leave float64."""
    coordinates = draft.net.in_features + sum(int((~mask).sum()) for mask in on)
    if max(draft.net.widths) * coordinates > MAX_KINK_ENTRIES:
        return True
    ends = (end for layer in range(draft.net.depth) for end in draft.bounds(layer))
    return draft.box is not None and not all(np.isfinite(end).all() for end in ends)


def _turned(draft: Draft, on: list[Mask]) -> list[Mask]:
    """Return the kinks to turn round: those that are off at one point, the same for all networks."""
    if draft.box is None:
        return [np.zeros_like(mask) for mask in on]
    share = np.random.default_rng(_SEED).uniform(0.25, 0.75, draft.net.in_features)
    point = (1.0 - share) * draft.box.lower + share * draft.box.upper
    z = draft.net.by_layer(draft.net.preactivations(point[None])[0])
    return [(values < 0.0) & ~mask for values, mask in zip(z, on, strict=True)]


def _expanded(draft: Draft, on: list[Mask], turned: list[Mask]) -> tuple[list[Sums], Array] | None:
    """Return what enters the kinks of every layer, and the outputs, as functions of inputs and kinks.

    A kink that repeats another is that one, times a factor; one that turns out to have one sign is none.
    With them come bounds on the size of the inputs and of what the kinks give, infinite without a box.
    """
    d, box = draft.net.in_features, draft.box
    found: list[Sums] = []
    eye = np.eye(d)
    inputs = Sums(eye, np.zeros(d), 0.0 * eye, np.zeros(d), eye)
    # Without a box no bound on a coordinate is known, so nothing can be charged for leaving it out.
    faintest = 0.0 if box is None else CANCELLED
    sizes = np.full(d, inf) if box is None else np.maximum(np.abs(box.lower), np.abs(box.upper))
    for i, (weight, bias) in enumerate(draft.net.layers):
        z = _image(weight, bias, inputs, faintest)
        if not (isfinite(largest(z.weight)) and isfinite(largest(z.bias))):
            return None
        if i == len(on):
            found.append(z)
            break
        linear, dead, lost = decided_signs(z, on[i], box, sizes)
        kinks = np.flatnonzero(~(linear | dead))
        signs = np.where(turned[i], -1.0, 1.0)[kinks]
        own = Sums(*(part[kinks] for part in z))
        own = own._replace(weight=signs[:, None] * own.weight, bias=signs * own.bias)
        places = copies_among(found, own, sizes)
        found.append(Sums(*(part[places.new] for part in own)))
        lost[kinks] = places.error
        inputs = _after_relu(z, kinks, places, linear | (turned[i] & ~dead), lost)
        bounds = draft.bounds(i)
        top = np.maximum(np.where(turned[i], -bounds.lower, bounds.upper), 0.0)[kinks]
        sizes = np.append(sizes, top[places.new] if box is not None else np.full(len(places.new), inf))
    return found, sizes


def _image(weight: Matrix, bias: Array, inputs: Sums, faintest: float) -> Sums:
    """Return an affine map of the sums; what cancelled up to rounding is zero."""
    product, constant = matmul(weight, inputs.weight), affine_image(weight, inputs.bias, bias)
    size, n = abs(weight), weight.shape[1]
    terms, value = dense(size @ inputs.terms), np.array(dense(product.value))
    error = sum_up(dense(product.error), _up(dense(size @ inputs.weight_error), n))
    faint = (np.abs(value) <= faintest * terms) & (value != 0.0)
    error = np.where(faint, sum_up(error, np.abs(value)), error)
    value[faint] = 0.0
    bias_error = sum_up(constant.error, _up(np.asarray(size @ inputs.bias_error), n))
    return Sums(value, constant.value, error, bias_error, terms)


def _up(total: Array, n: int) -> Array:
    """Return an upper bound on sums of n products that were rounded, none of them negative."""
    return np.where(total > 0.0, total * (1.0 + 2.0 * gamma(n + 8)) + n * SMALLEST, total)


def _after_relu(z: Sums, kinks: Indices, places: Places, linear: Mask, lost: Array) -> Sums:
    """Return what the layer gives: kinks as coordinates of their own, and linear parts as they are.

    ``lost`` is what it costs to say which unit is what.
    """
    before = z.weight.shape[1]
    stay = linear.astype(float)
    rows = stay[:, None]
    more = ((0, 0), (0, len(places.new)))
    weight, error, terms = (np.pad(part * rows, more) for part in (z.weight, z.weight_error, z.terms))
    columns = before - places.known + places.kink  # coordinates are inputs, then kinks
    # What a kink stands for may be read by its linear part as well: then the sum rounds.
    total = add(weight[kinks, columns], places.factor)
    weight[kinks, columns] = total.value
    error[kinks, columns] = sum_up(error[kinks, columns], total.error)
    terms[kinks, columns] += places.factor
    return Sums(weight, z.bias * stay, error, sum_up(z.bias_error * stay, lost), terms)


def _layered(draft: Draft, sums: list[Sums], magnitudes: Array) -> tuple[list[Layer], Errors]:
    """Write kinks and outputs as a layered network, with identities for what is read further above."""
    d, outputs = draft.net.in_features, len(sums[-1].bias)
    shift = np.zeros(d) if draft.box is None else draft.box.lower
    weight, bias, error, bias_error, _ = table(sums)
    if draft.box is not None:
        weight, error = _cleared(weight, bias, error, magnitudes)
    reads = weight != 0.0 if draft.box is not None else (weight != 0.0) | (error > 0.0)
    reader = _reading_layers(reads, d, outputs)
    arises = np.concatenate([np.zeros(d, dtype=np.intp), reader[: len(reader) - outputs]])
    until = np.max(np.where(reads, reader[:, None], 0), axis=0)  # the highest layer that reads it
    layers: list[Layer] = []
    errors: list[tuple[Array, Array]] = []
    below = np.arange(d)
    for t in range(1, int(reader.max()) + 1):
        rows, passed = np.flatnonzero(reader == t), np.flatnonzero((arises < t) & (until > t))
        start = -shift[passed] if t == 1 else np.zeros(len(passed))
        there = np.zeros(len(magnitudes))  # beyond what is passed on: what errors may be multiplied by
        there[below] = 1.0
        beyond = np.where(there > 0.0, 0.0, magnitudes)
        own = Rounded(bias[rows], bias_error[rows])
        if t > 1:  # from here on the inputs are there as x - l
            moved = affine_image(weight[rows, :d], shift, own.value)
            own = Rounded(moved.value, sum_up(moved.error, own.error))
            beyond[:d] += there[:d] * np.abs(shift)
        lost = _up(_products(error[rows], beyond), len(beyond))
        identity = (passed[:, None] == below).astype(float)
        layers.append(
            (compact(np.vstack([identity, weight[rows][:, below]])), np.append(start, own.value))
        )
        off = np.append(np.zeros(len(passed)), sum_up(own.error, lost))
        errors.append((np.vstack([0.0 * identity, error[rows][:, below]]), off))
        below = np.concatenate([passed, d + rows])
    return layers, dict(enumerate(errors))


def _cleared(weight: Array, bias: Array, error: Array, magnitudes: Array) -> tuple[Array, Array]:
    """Return coefficients and errors with zeros for what is rounding beside the rest of its row."""
    parts = np.abs(weight) * magnitudes
    top = np.maximum(np.max(parts, axis=1), np.abs(bias))
    faint = (parts <= CANCELLED * top[:, None]) & (weight != 0.0)
    return np.where(faint, 0.0, weight), np.where(faint, sum_up(error, np.abs(weight)), error)


def _products(error: Array, beyond: Array) -> Array:
    """Return ``error @ beyond`` where no error times infinity is nothing."""
    used = error.any(axis=0)
    return np.asarray(error[:, used] @ beyond[used])


def _reading_layers(reads: NDArray[np.bool_], d: int, outputs: int) -> Indices:
    """Return the layer (from 1) of every row: above all kinks it reads; 0 for kinks nothing reads.

    >>> reads = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]], dtype=bool)  # of one input and two kinks
    >>> _reading_layers(reads, 1, 1)
    array([1, 0, 2])
    """
    n, of_kinks = len(reads) - outputs, reads[:, d:]
    layer = np.ones(len(reads), dtype=np.intp)
    for k in range(n):  # kinks read only those before them
        layer[k] = 1 + np.max(layer[:n][of_kinks[k]], initial=0)
    live = np.asarray(of_kinks[n:].any(axis=0))
    for k in reversed(range(n)):
        if live[k]:
            live |= of_kinks[k]
    layer[:n][~live] = 0
    layer[n:] = 1 + np.max(layer[:n], initial=0)
    return layer

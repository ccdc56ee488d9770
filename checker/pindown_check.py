#!/usr/bin/env python3
"""Check a proof that pindown wrote. Needs NumPy and onnx, and nothing of pindown.

    python pindown_check.py proof model.onnx [model2.onnx] [--property property.vnnlib]

Prints the claim in full. Exit code 0 and a last line "accepted: ..." if the certificate proves it, 1
and "rejected: ..." with the reason if not. With --property it has to be about that VNN-LIB file.

The claim is about *unsafe sets*: boxes of inputs x, each with inequalities C x + R y <= t between x
and the outputs y of the networks, for the real-number functions that the weights define. "holds": no
input lies in any set. "violated": the given inputs lie in sets. "counted": some of either.

  A box is proved if some row C x + R y - t is positive on all of it; to see that, the networks are put
  between linear functions, from the outputs back to the inputs (`Bounds.upper`). A tree of cuts takes a
  set's box apart into boxes that are proved (`check_tree`). Cuts are made here, so that the halves
  cover the whole whatever the file says.
  Or a tree takes it apart by signs of what enters ReLUs: plus on one side, minus on the other (`Root`).
  A leaf is proved with slopes, multipliers and weights from the file. Any slope in [0, 1], multiplier of
  the right sign and weight >= 0 gives a bound that is true: nothing in the file has to be believed.
  The second of two networks may be written as the first one and what it has more (`tie`).

Rounding: float64, and whatever rounding can do is added to the unsafe side. A sum of n products that
float64 computes is within (n + 2) u / (1 - (n + 2) u) times the sum of their absolute values of the true
one, u = 2**-53 (Higham 2002, section 3.1); `error` returns several times that.
"""

import argparse
import hashlib
import itertools
import json
import math
import os
import re
import struct
import sys
import threading
import zlib
from collections import Counter
from fractions import Fraction

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # matrices are small: threads would only wait for each other

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, numpy_helper  # noqa: E402

HEAD = struct.Struct("<16sIIQ32s")
MAGIC, VERSION = b"pindown proof\r\n\x1a", 2
MAX_FILE, MAX_UNPACKED, MAX_MODEL = 100_000_000, 1_000_000_000, 1_000_000_000  # bytes
MAX_TEXT, MAX_PROPERTY = 10_000_000, 20_000_000  # bytes of a certificate's JSON text, and of a property
MAX_TENSOR = 50_000_000  # numbers of one tensor or one weight
MAX_TOTAL = 200_000_000  # of all of a network
MAX_LEVEL = 5_000_000  # of one level of a tree
BLOCK = 3_000_000  # numbers of forms that are carried back at once
EXTRA_BOXES = 1000  # and two for each node: parts of leaves that are not proved at once
EXTRA_CUTS = 30  # how often such a leaf may be cut
OPEN, LEAF, CUT, SHRUNK, SHRUNK_AND_CUT = range(5)
ENDS, BOXES, SIGNS = 1, 2, 3
U = 2.0**-53
SMALL = 1e-150  # numbers below count as this one in error estimates: products then do not underflow
LEAST_WEIGHT = 1e-120


class Rejected(Exception):
    """The certificate does not prove its claim."""


def require(condition, reason):
    if not condition:
        raise Rejected(reason)


# ============================================================================ rounding


def error(magnitude, n):
    """What rounding does at most to n products of absolute sum `magnitude`; 0 if all of them are 0."""
    lost = np.nan_to_num(8.0 * (n + 16) * U * magnitude + 1e-300, nan=np.inf, posinf=np.inf)
    return np.where(magnitude == 0, 0.0, lost)


def up(value, slack):
    """An upper bound on value + slack; infinite where that is unknown. Exact where slack is zero."""
    total = np.where(slack > 0, np.nextafter(value + slack, np.inf), value)
    return np.where(np.isfinite(total), total, np.inf)


def size_of(values):
    """Absolute values for error estimates: zero stays zero, tiny numbers become SMALL."""
    return np.where(values == 0, 0.0, np.maximum(np.abs(values), SMALL))


def dot(form, values):
    """c . v for forms (n, q, size) and values (n or 1, size), (n, q); infinite or NaN if a sum is."""
    return np.matmul(form, values[:, :, None])[:, :, 0]


def check_weights(values):
    least = np.min(np.abs(values), where=values != 0, initial=1.0)
    require(np.isfinite(values).all(), "a model has weights that are not finite.")
    require(least >= LEAST_WEIGHT, "a model has weights that are too small for this checker.")


def blocks(items, size):
    return [items[start : start + size] for start in range(0, len(items), size)]


fractions = np.vectorize(lambda v: Fraction(float(v)), otypes=[object])  # of all numbers of an array


# ============================================================================ operations
# A tensor is an array (n, size) for n boxes or points, flattened. A form is an array (n, q, size): q
# linear functions c . y of a tensor for each of n boxes.


class Linear:
    """y = x[index] W: what is read at P places, (P, K), times a matrix (K, O), written as (O, P).

    An index of n_in reads a zero. Weights of fewer dimensions are multiplied entry by entry, with K = 1.
    spread: at least |W|, relative to which W is rounded itself; divisor: what W is the inverse of.
    """

    def __init__(self, n_in, index, weight, spread=None, divisor=None):
        check_weights(weight)
        self.n_in, self.index, self.weight, self.spread, self.divisor = n_in, index, weight, spread, divisor
        self.positive, self.negative = np.maximum(weight, 0.0), np.maximum(-weight, 0.0)
        self.size = np.abs(weight) if spread is None else spread
        self.n_out = len(index) * (weight.shape[1] if weight.ndim == 2 else 1)
        self.plain = np.array_equal(index.ravel(), np.arange(n_in))
        places, column = index[index < n_in], np.sort(index, axis=0)
        self.once = not ((column[1:] == column[:-1]) & (column[1:] < n_in)).any()
        # Forwards K terms, backwards one for every time that an entry is read.
        self.n = index.shape[1] + int(np.bincount(places).max(initial=1)) * (self.n_out // len(index))

    def forward(self, x, weight):
        """L x with these weights instead of W."""
        if not self.plain:
            x = np.concatenate([x, np.zeros((len(x), 1), x.dtype)], axis=1)[:, self.index.ravel()]
        if weight.ndim < 2:
            return x * weight
        made = (x.reshape(-1, len(weight)) @ weight).reshape(len(x), -1, weight.shape[1])
        return made.swapaxes(1, 2).reshape(len(x), -1)

    def exactly(self, x):
        """L x in rationals."""
        weight = fractions(self.weight) if self.divisor is None else 1 / fractions(self.divisor)
        return self.forward(x, weight)

    def back(self, form):
        """The forms of x that forms of y are."""
        n, q = form.shape[:2]
        if self.weight.ndim < 2:
            parts = form * self.weight
        else:
            parts = form.reshape(n * q, -1, len(self.index)).swapaxes(1, 2)
            parts = parts.reshape(-1, self.weight.shape[1]) @ self.weight.T
        if self.plain:
            return parts.reshape(n, q, self.n_in)
        made, parts = np.zeros((n * q, self.n_in + 1)), parts.reshape(n * q, *self.index.shape)
        for k, places in enumerate(self.index.T):
            if self.once:
                made[:, places] += parts[:, :, k]
            else:
                np.add.at(made, (slice(None), places), parts[:, :, k])
        return made[:, :-1].reshape(n, q, self.n_in)

    def minus(self, other, pair_in, pair_out):
        """L S P - S' P' L', where pairs (P, S) say which units of the other network ours stand for."""
        ours, theirs, n = self.weight, other.weight, other.n_in
        if pair_in is pair_out is None:
            good = n == self.n_in and np.array_equal(self.index, other.index)
        else:
            good = self.plain and other.plain and len(self.index) == len(other.index) == 1 < ours.ndim
        require(good and ours.ndim == theirs.ndim, "tied networks differ in structure.")
        size = np.abs(ours)
        if pair_in is not None:
            moved, ours, size = ours * pair_in.scales[:, None], *np.zeros((2, n, ours.shape[1]))
            np.add.at(ours, pair_in.places, moved)
            np.add.at(size, pair_in.places, np.abs(moved))
        if pair_out is not None:
            theirs = theirs[:, pair_out.places] * pair_out.scales
        require(ours.shape == theirs.shape, "tied networks differ in structure.")
        exact = self.divisor is other.divisor is None
        exact = exact and all(pair is None or pair.exact for pair in (pair_in, pair_out))
        return Linear(n, other.index, ours - theirs, None if exact else size + np.abs(theirs))


class Affine:
    """y = bias + the sum of L x over terms (L, number of tensor x)."""

    def __init__(self, terms, bias, bias_size=None):
        check_weights(bias)
        self.terms, self.inputs, self.bias = terms, [j for _, j in terms], bias
        self.bias_size = size_of(bias) if bias_size is None else bias_size
        self.n = sum(m.n for m, _ in terms) + len(terms) + 2

    def sums(self, given, part):
        return sum(m.forward(given[j], getattr(m, part)) for m, j in self.terms)

    def sizes(self, reach):
        """At least |L| |x| + |b| for every entry of y: what errors are relative to."""
        return self.sums(reach, "size") + self.bias_size

    def rounded(self, reach):
        """What it may do to y that weights are rounded themselves."""
        loose = [(m, j) for m, j in self.terms if m.spread is not None]
        return error(sum(m.forward(reach[j], m.spread) for m, j in loose), self.n)

    def interval(self, values):
        low, high = ({j: values[j][side] for j in self.inputs} for side in (0, 1))
        reach = {j: size_of(np.maximum(np.abs(low[j]), np.abs(high[j]))) for j in self.inputs}
        loose, ends = self.rounded(reach), []
        for near, far in ((low, high), (high, low)):
            value = self.sums(near, "positive") - self.sums(far, "negative") + self.bias
            a, b = ({j: size_of(v) for j, v in each.items()} for each in (near, far))
            slack = error(self.sums(a, "positive") + self.sums(b, "negative") + self.bias_size, self.n)
            ends.append((value, slack + loose))
        return -up(-ends[0][0], ends[0][1]), up(*ends[1])

    def exactly(self, values):
        """y in rationals."""
        return sum(m.exactly(values[j]) for m, j in self.terms) + fractions(self.bias)


def chord(low, high):
    """A line above max(0, z) where low <= z <= high: its slope and shift."""
    slope = np.clip(high / np.where(high > low, high - low, 1.0), 0.0, 1.0)
    slope = np.where(np.isfinite(slope), slope, 1.0)
    # A line is above a convex function on an interval if it is so at both ends.
    shift = np.maximum(-slope * low, high * (1.0 - slope)) * (1.0 + 16.0 * U) + 1e-300
    shift = np.where(np.isnan(shift), np.inf, shift)
    on, off = low >= 0, high <= 0
    return np.where(on, 1.0, np.where(off, 0.0, slope)), np.where(on | off, 0.0, shift)


class Relu:
    """y = max(0, z)."""

    def __init__(self, z):
        self.inputs = [z]

    def interval(self, values):
        return tuple(np.maximum(end, 0.0) for end in values[self.inputs[0]])

    def lines(self, values):
        """Slopes and shifts of lines below and above y."""
        low, high = values[self.inputs[0]]
        below = np.where((low >= 0) | ((high > 0) & (high > -low)), 1.0, 0.0)
        return below, np.zeros(low.shape), *chord(low, high)

    def exactly(self, values):
        return np.maximum(values[self.inputs[0]], Fraction(0))


class Gap:
    """y = max(0, z + d) - max(0, z), which lies between 0 and d; reads d, z and z + d."""

    def __init__(self, d, z, moved):
        self.inputs = [d, z, moved]

    def known(self, values):
        """The ends of d; where y = d, and where y = 0."""
        (low, high), z, moved = (values[j] for j in self.inputs)
        return low, high, (z[0] >= 0) & (moved[0] >= 0), (z[1] <= 0) & (moved[1] <= 0)

    def interval(self, values):
        low, high, on, off = self.known(values)
        q, p = ([np.maximum(end, 0.0) for end in values[j]] for j in self.inputs[1:])
        least, most = -up(q[1] - p[0], error(q[1] + p[0], 1)), up(p[1] - q[0], error(p[1] + q[0], 1))
        least = np.maximum(least, np.where(on, low, np.minimum(low, 0.0)))
        most = np.minimum(most, np.where(on, high, np.maximum(high, 0.0)))
        return np.where(off, 0.0, least), np.where(off, 0.0, most)

    def lines(self, values):
        low, high, on, off = self.known(values)
        above, shift = chord(low, high)
        below, drop = chord(-high, -low)  # y >= min(0, d) = -max(0, -d)
        above, below = (np.where(on, 1.0, np.where(off, 0.0, slope)) for slope in (above, below))
        return below, np.where(on | off, 0.0, -drop), above, np.where(on | off, 0.0, shift)


class Network:
    """Operations in order; tensor 0 is the input, tensor i + 1 is what nodes[i] makes."""

    def __init__(self, size):
        self.nodes, self.sizes, self.widest, self.total = [], [size], size, 0

    def add(self, node):
        maps = [m for m, _ in node.terms] if isinstance(node, Affine) else []
        size = maps[0].n_out if maps else self.sizes[node.inputs[0]]
        self.widest = max(self.widest, size, *(m.index.size for m in maps), 1)
        self.count(size + sum(m.index.size + m.weight.size for m in maps))
        self.nodes.append(node)
        self.sizes.append(size)
        return len(self.nodes)

    def count(self, numbers):
        self.total += numbers
        good = self.widest <= MAX_TENSOR and self.total <= MAX_TOTAL
        require(good, "a model is too large for this checker.")

    def pick(self, j, places=None, weight=1.0):
        """A term: entries of tensor j, in order if no places are given."""
        places = np.arange(self.sizes[j]) if places is None else places
        return Linear(self.sizes[j], places.reshape(-1, 1), np.asarray(weight)), j

    def side_by_side(self, parts):
        """Add the tensor of entries of others, given as (tensor, places), one part after the other."""
        ends, terms = np.cumsum([0, *(places.size for _, places in parts)]), []
        self.count(len(parts) * int(ends[-1]))
        for start, (j, places) in zip(ends, parts):
            index = np.full(ends[-1], self.sizes[j])
            index[start : start + places.size] = places.ravel()
            terms.append(self.pick(j, index))
        return self.add(Affine(terms, np.zeros(ends[-1])))


class Pairs:
    """Unit i of one network stands for scales[i] times unit places[i] of another."""

    def __init__(self, places, scales, n):
        good = len(places) and ((places >= 0) & (places < n) & (scales > 1e-30) & (scales < 1e30)).all()
        require(good, "the units of tied networks are paired badly.")
        self.places, self.scales = places, scales
        self.plain = np.array_equal(places, np.arange(n)) and (scales == 1).all()
        # Whether neither products with powers of two nor sums of one number round.
        self.exact = (np.frexp(scales)[0] == 0.5).all() and len(np.unique(places)) == len(places)


def tie(made, other, take):
    """Add another network to one of the same operations, as what it has more.

    Tensor i of the other is S P y + delta with tensor i here, y. The file says the units P and scales S
    where a tensor enters a ReLU; elsewhere entries are paired with themselves.
    """
    delta, pairs, structure = {0: None}, {0: None}, "tied networks differ in structure."
    require(len(made.nodes) == len(other.nodes) > 0, structure)
    enters = {node.inputs[0] for node in other.nodes if isinstance(node, Relu)}
    for i, (node, theirs) in enumerate(zip(other.nodes, list(made.nodes)), 1):
        require(type(theirs) is type(node) and theirs.inputs == node.inputs, structure)
        j, pairs[i], delta[i] = node.inputs[0], None, None
        if isinstance(node, Relu):
            pairs[i] = pairs[j]
            if delta[j] is not None:
                z, pair = j, pairs[j]
                if pair is not None:
                    term = made.pick(j, pair.places, pair.scales)
                    z = made.add(Affine([term], np.zeros(len(pair.places))))
                both = made.add(Affine([made.pick(z), made.pick(delta[j])], np.zeros(made.sizes[z])))
                delta[i] = made.add(Gap(delta[j], z, both))
            continue
        bias, bias_size, terms = theirs.bias, None, []
        if i in enters:
            n = other.sizes[i]
            pair = Pairs(take("tie_places", n), take("tie_scales", n), made.sizes[i])
            if not pair.plain:
                pairs[i], bias = pair, bias[pair.places] * pair.scales
                bias_size = None if pair.exact else size_of(node.bias) + size_of(bias)
        require(len(node.terms) == len(theirs.terms) and len(bias) == len(node.bias), structure)
        for (ours, j), (others, _) in zip(node.terms, theirs.terms):
            terms.append((ours.minus(others, pairs[j], pairs[i]), j))
            terms += [] if delta[j] is None else [(ours, delta[j])]
        delta[i] = made.add(Affine(terms, node.bias - bias, bias_size))
    last = len(other.nodes)
    require(pairs[last] is None, structure)
    terms = [made.pick(last), *([] if delta[last] is None else [made.pick(delta[last])])]
    return made.add(Affine(terms, np.zeros(other.sizes[last])))


# ============================================================================ linear bounds


class Bounds:
    """A network on n boxes: bounds on every tensor, and linear bounds on forms of tensors.

    slopes[i]: below the ReLU that reads tensor i, (n, 1 or q, size); the usual ones if there are none.
    multipliers[i]: what is added to forms of tensor i, (n, 1, size): m_j x_j >= 0 must hold on the part.
    """

    def __init__(self, network, low, high):
        self.network, self.values = network, [(low, high)]
        self.slopes, self.multipliers, self.cached = {}, {}, {}

    def reach(self, i):
        return np.maximum(np.abs(self.values[i][0]), np.abs(self.values[i][1]))

    def extend(self):
        """Bound the next tensor by the interval of its operation."""
        self.values.append(self.network.nodes[len(self.values) - 1].interval(self.values))

    def complete(self):
        """Bound all tensors so, and return the bounds of the last one."""
        while len(self.values) <= len(self.network.nodes):
            self.extend()
        return self.values[-1]

    def lines(self, i, node):
        if i not in self.cached:
            j, (below, drop, above, shift) = node.inputs[0], node.lines(self.values)
            below = below[:, None]
            if j in self.slopes:
                low, high = self.values[j]
                free = ((low < 0) & (high > 0))[:, None]
                below = np.where(free, np.clip(self.slopes[j], 0.0, 1.0), below)
            self.cached[i] = below, drop, above, shift
        return self.cached[i]

    def upper(self, index, form):
        """Forms A (n, q, d) of the input, numbers b (n, q): form . tensor <= A x + b on the whole boxes.

        A is meant as it stands; everything that rounding did to it is in b.
        """
        forms, offset, slack = {index: form}, np.zeros(form.shape[:2]), np.zeros(form.shape[:2])
        for i in range(index, 0, -1):
            if i not in forms:
                continue
            form, node = forms.pop(i), self.network.nodes[i - 1]
            if i in self.multipliers:
                form = form + self.multipliers[i]
                slack += error(dot(np.abs(form), self.reach(i)), 1)
            if isinstance(node, Affine):
                made = [m.back(form) for m, _ in node.terms]
                offset = offset + form @ node.bias
                if i not in self.cached:
                    self.cached[i] = node.sizes({j: size_of(self.reach(j)) for j in node.inputs})
                # A new form is off by u n |c| |L|: that counts |x| times.
                slack += error(dot(np.abs(form), self.cached[i]), node.n + form.shape[2])
            else:
                below, drop, above, shift = self.lines(i, node)
                lifted = dot(np.maximum(form, 0.0), shift) + dot(np.minimum(form, 0.0), drop)
                offset = offset + lifted
                made = [form * np.where(form > 0, above[:, None], below)]
                slack += error(lifted, form.shape[2])
                slack += error(dot(np.abs(made[0]), self.reach(node.inputs[0])), 1)
            for j, part in zip(node.inputs, made):
                if j in forms:
                    part = forms[j] + part
                    slack += error(dot(np.abs(part), self.reach(j)), 1)
                forms[j] = part
                slack += 1e-300 * self.reach(j).sum(axis=1)[:, None]
            slack += error(np.abs(offset), 1)
        made = forms.get(0, np.zeros((*offset.shape, self.network.sizes[0])))
        return made, up(offset, 2.0 * slack + 1e-300)

    def largest(self, form, offset):
        """The largest value of A x + b on the boxes."""
        low, high = self.values[0]
        value = dot(np.maximum(form, 0.0), high) + dot(np.minimum(form, 0.0), low) + offset
        slack = error(dot(size_of(form), size_of(self.reach(0))) + size_of(offset), form.shape[2] + 2)
        return up(value, slack)

    def ends(self, i, codes):
        """Upper bounds on entries of tensor i, (n, q): 2 e stands for entry e, 2 e + 1 for minus it."""
        form = np.zeros((len(self.values[0][0]), len(codes), self.network.sizes[i]))
        form[:, np.arange(len(codes)), codes // 2] = np.where(codes % 2, -1.0, 1.0)
        return self.largest(*self.upper(i, form))

    def tighten(self):
        """Bound all tensors: by intervals, and linear bounds where they enter what is not linear."""
        n, nodes = len(self.values[0][0]), self.network.nodes
        enters = {node.inputs[0] for node in nodes if not isinstance(node, Affine)}
        for i, size in enumerate(self.network.sizes[1:], 1):
            self.extend()
            if i in enters:
                parts = blocks(np.arange(2 * size), max(1, BLOCK // (n * self.network.widest)))
                most = np.concatenate([self.ends(i, codes) for codes in parts], axis=1)
                low = np.maximum(self.values[i][0], -most[:, 1::2])
                high = np.minimum(self.values[i][1], most[:, ::2])
                # Both are true: where they cross, there is no input, and any bounds are true.
                self.values[i] = np.minimum(low, high), np.maximum(low, high)


# ============================================================================ reading models


def sliced(v, starts, ends, axes=None, steps=None):
    where = [slice(None)] * v.ndim
    axes, steps = axes or range(len(starts)), steps or [1] * len(starts)
    for axis, *part in zip(axes, starts, ends, steps, strict=True):
        where[axis] = slice(*part)
    return v[tuple(where)]


def gathered(v, index, axis):
    require(v.size // v.shape[axis] * index.size <= MAX_TENSOR, "a model gathers too many numbers.")
    return np.take(v, index, axis=axis)


def axes_of(constants, attributes):
    """Axes: an attribute, or in newer files a constant."""
    (axes,) = [*attributes.values(), *(part.tolist() for part in constants)]
    return tuple(axes)


# What only moves numbers, for arrays v of numbers or of their places; c: constants, a: attributes.
MOVES = {
    "Identity": lambda v, c, a: v,
    "Dropout": lambda v, c, a: v,
    "Flatten": lambda v, c, a: v.reshape(math.prod(v.shape[: a.get("axis", 1)]), -1),
    "Reshape": lambda v, c, a: v.reshape([n or v.shape[i] for i, n in enumerate(c[0].tolist())]),
    "Transpose": lambda v, c, a: v.transpose(a.get("perm")),
    "Squeeze": lambda v, c, a: np.squeeze(v, axes_of(c, a)),
    "Unsqueeze": lambda v, c, a: np.expand_dims(v, axes_of(c, a)),
    "Gather": lambda v, c, a: gathered(v, c[0], a.get("axis", 0)),
    "Slice": lambda v, c, a: sliced(v, *(part.tolist() for part in c)),
}
# Of every operation that is read: how many inputs it has, at least and at most, and its attributes.
OPERATIONS = {
    **dict.fromkeys(("Add", "Div", "MatMul", "Mul", "Sub"), (2, 2, "")),
    **dict.fromkeys(("Identity", "Neg", "Relu"), (1, 1, "")),
    "Concat": (1, 10_000, "axis"),
    "Constant": (0, 0, "value"),
    "Conv": (2, 3, "auto_pad dilations group kernel_shape pads strides"),
    "Dropout": (1, 2, "ratio seed"),
    "Flatten": (1, 1, "axis"),
    "Gather": (2, 2, "axis"),
    "Gemm": (2, 3, "alpha beta transA transB"),
    "Reshape": (2, 2, "allowzero"),
    "Slice": (3, 5, ""),
    "Squeeze": (1, 2, "axes"),
    "Transpose": (1, 1, "perm"),
    "Unsqueeze": (1, 2, "axes"),
}
KINDS = {"f": "constant of floats", "i": "constant of integers", "t": "tensor"}
FLOATS = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE


class Reader:
    """Turns an ONNX graph into operations of a network.

    A name stands for a constant, or for a tensor and places in it: what only moves numbers moves places.
    """

    def __init__(self, network, data, reads):
        model = onnx.load_from_string(data)
        graph, self.network, self.known, self.shared = model.graph, network, {}, set()
        versions = [each.version for each in model.opset_import if each.domain in ("", "ai.onnx")]
        good = len(versions) == 1 and versions[0] >= 7 and not model.functions
        require(good and not graph.sparse_initializer, "a model is of an unknown kind.")
        read = [name for node in graph.node for name in node.input] + [v.name for v in graph.output]
        reused = {name for name, n in Counter(read).items() if n > 1}
        for initializer in graph.initializer:
            self.name(initializer.name, self.constant(initializer))
        inputs = [value for value in graph.input if value.name not in self.known]
        require(len(inputs) == len(graph.output) == 1, "a model needs one input and one output.")
        kind = inputs[0].type.tensor_type
        shape = [max(d.dim_value, 1) for d in kind.shape.dim]
        good = math.prod(shape) == len(reads) and kind.elem_type in FLOATS
        require(good, "a model has another number of inputs than the claim says, or of another type.")
        self.name(inputs[0].name, (0, reads.reshape(shape)))
        for node in graph.node:
            least, most, known = OPERATIONS.get(node.op_type, (1, 0, ""))
            good = least <= len(node.input) <= most and node.domain in ("", "ai.onnx")
            reason = f"a model uses the operation {node.op_type[:40]!a} in an unknown way."
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            good = good and len(attributes) == len(node.attribute) and set(attributes) <= {*known.split()}
            require(good, reason)
            made = self.read(node.op_type, list(node.input), attributes)
            require(made is not None, reason)
            self.name(node.output[0], made)
            network.count(made[1].size if isinstance(made, tuple) else made.size)
            if node.output[0] in reused and isinstance(made, tuple):
                self.shared.add(made[0])  # under whatever name
        self.output = self.tensor(*self.get(graph.output[0].name, "t"))[0]

    def name(self, name, made):
        """Note what a name stands for. No name: others may take it for an input that is left out."""
        require(name and name not in self.known, "a model has a constant or makes a tensor twice.")
        self.known[name] = made

    def constant(self, proto):
        require(math.prod(proto.dims) <= MAX_TENSOR, "a model has a constant that is too large.")
        elsewhere = proto.external_data or proto.data_location
        require(not elsewhere, "a model has constants in other files, which no hash is of.")
        given = sum(field.name.endswith("_data") for field, _ in proto.ListFields())
        values = numpy_helper.to_array(proto)
        good = values.dtype.kind in "iu" or values.dtype in (np.float16, np.float32, np.float64)
        require(good and given <= 1, "a model has a constant that is neither float nor integer, or twice.")
        return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)

    def get(self, name, kind):
        """What a name stands for: a constant ("f" or "i"), or a tensor and places in it ("t")."""
        made = self.known.get(name, ())
        good = kind == (made.dtype.kind if isinstance(made, np.ndarray) else "t" if made else "")
        require(good, f"the model takes {name[:80]!a}, which is no {KINDS[kind]}.")
        return made

    def read(self, name, names, attributes):
        """Returns what an operation makes: a constant, or a tensor and places in it; None if unknown."""
        kinds = "".join("c" if isinstance(self.known.get(each), np.ndarray) else "x" for each in names)
        if name == "Constant":
            return self.constant(attributes["value"])
        if name in MOVES:
            if attributes.get("allowzero"):
                return None
            constants = [self.get(each, "i") for each in names[1:] if name != "Dropout"]
            if kinds[0] == "c":
                return MOVES[name](self.known[names[0]], constants, attributes)
            tensor, places = self.get(names[0], "t")
            places = MOVES[name](places, constants, attributes)
            require(0 < places.size <= MAX_TENSOR, "a model makes a tensor of an unknown size.")
            return tensor, places
        tensor, places = self.get(names[kinds == "cx"], "t")
        if kinds in ("xc", "cx") and name in ("Add", "Sub", "Mul", "Div") and (name, kinds) != ("Div", "cx"):
            c = self.get(names[kinds == "xc"], "f")
            check_weights(c)
            require(name != "Div" or (c != 0).all(), "a model divides by zero.")
            less = (1.0, -c) if kinds == "xc" else (-1.0, c)
            # 1 / c is off by u: `error` has room for that.
            made = {"Add": (1.0, c), "Sub": less, "Mul": (c, 0.0), "Div": (1.0 / c, 0.0, c)}[name]
            return self.scaled(tensor, places, *made)
        if name == "Neg":
            return self.scaled(tensor, places, -1.0)
        if name == "Relu":
            tensor, shape = self.tensor(tensor, places)
            return self.make(Relu(tensor), shape)
        if name == "Concat":
            parts = [self.get(each, "t") for each in names]
            ends = np.cumsum([0, *(places.size for _, places in parts)])
            places = [np.arange(a, b).reshape(p.shape) for a, b, (_, p) in zip(ends, ends[1:], parts)]
            return self.network.side_by_side(parts), np.concatenate(places, attributes["axis"])
        if name in ("Add", "Sub") and kinds == "xx":
            other, others = self.get(names[1], "t")
            own, others = np.broadcast_arrays(places, others)
            self.network.count(own.size)
            sign = 1.0 if name == "Add" else -1.0
            terms = [self.network.pick(tensor, own), self.network.pick(other, others, sign)]
            return self.make(Affine(terms, np.zeros(own.size)), own.shape)
        if name == "MatMul" and kinds == "xc":
            return self.product(tensor, places, self.get(names[1], "f"))
        if name == "MatMul" and kinds == "cx" and places.ndim < 3:  # W x = (x' W')'
            columns = places.reshape(len(places), -1).T
            tensor, made = self.product(tensor, columns, self.get(names[0], "f").T)
            return tensor, made.T.reshape(-1, *places.shape[1:])
        if name in ("Conv", "Gemm"):
            way = self.conv if name == "Conv" else self.gemm
            made = way(tensor, places, self.get(names[1], "f"), attributes)
            if made is None or not names[2:] or not names[2]:
                return made
            bias, shape = self.get(names[2], "f"), made[1].shape
            fits = bias.shape == shape[1:2] or (name == "Gemm" and np.broadcast_shapes(bias.shape, shape) == shape)
            require(fits, "a model adds a bias that does not fit.")
            return self.scaled(*made, 1.0, bias[:, None, None] if name == "Conv" else bias)
        return None

    def make(self, node, shape):
        return self.network.add(node), np.arange(math.prod(shape)).reshape(shape)

    def tensor(self, tensor, places):
        """A tensor whose entries are these, in their order, and their shape."""
        if not np.array_equal(places.ravel(), np.arange(self.network.sizes[tensor])):
            tensor = self.network.side_by_side([(tensor, places)])
        return tensor, places.shape

    def scaled(self, tensor, places, weight, bias=0.0, divisor=None):
        """weight x + bias, with constants that are broadcast."""
        full = np.broadcast_shapes(places.shape, np.shape(bias), np.shape(weight))
        self.network.count(math.prod(full))
        places, bias = np.broadcast_to(places, full), np.broadcast_to(bias, full).flatten()
        last = self.network.nodes[tensor - 1] if tensor == len(self.network.nodes) > 0 else None
        fresh = isinstance(last, Affine) and not last.bias.any() and tensor not in self.shared
        fresh = fresh and np.array_equal(np.sort(places, None), np.arange(len(last.bias)))
        if fresh and np.ndim(weight) == 0 and weight == 1.0:
            moved = np.empty(len(bias))
            moved[places.ravel()] = bias  # x W + b in one step
            self.network.nodes[-1] = Affine(last.terms, moved)
            return tensor, places
        weight = np.broadcast_to(weight, full).ravel()
        divisor = None if divisor is None else np.broadcast_to(divisor, full).ravel()
        map_ = Linear(self.network.sizes[tensor], places.reshape(-1, 1), weight, divisor=divisor)
        return self.make(Affine([(map_, tensor)], bias), full)

    def product(self, tensor, places, weight):
        """Matrices (..., K) times a matrix (K, O): a tensor, and the places of (..., O) in it."""
        good = weight.ndim == 2 and places.shape[-1] == len(weight)
        require(good, "a model multiplies matrices that do not fit.")
        rows = places.reshape(-1, len(weight))
        self.network.count(len(rows) * sum(weight.shape))
        map_ = Linear(self.network.sizes[tensor], rows, np.ascontiguousarray(weight))
        made = np.arange(map_.n_out).reshape(-1, len(rows)).T.reshape(*places.shape[:-1], -1)
        return self.network.add(Affine([(map_, tensor)], np.zeros(map_.n_out))), made

    def gemm(self, tensor, places, weight, attributes):
        factors = [attributes.get(name, 1.0) for name in ("alpha", "beta")]
        if factors != [1.0, 1.0] or attributes.get("transA") or places.ndim != 2:
            return None
        return self.product(tensor, places, weight.T if attributes.get("transB") else weight)

    def conv(self, tensor, places, weight, attributes):
        """A convolution of one image: every window is a row of a matrix that is multiplied."""
        padding, spans = attributes.get("auto_pad", b"NOTSET"), list(weight.shape[2:])
        strides, dilations = (list(attributes.get(name, [1, 1])) for name in ("strides", "dilations"))
        pads = list(attributes.get("pads", [0] * 4))
        good = places.ndim == weight.ndim == 4 and places.shape[:2] == (1, weight.shape[1])
        good = good and attributes.get("group", 1) == 1 and attributes.get("kernel_shape", spans) == spans
        good = good and (padding == b"NOTSET" or (padding == b"VALID" and not any(pads)))
        good = good and len(strides) == len(dilations) == 2 and len(pads) == 4
        if not good or min(strides + dilations) < 1 or not 0 <= min(pads) <= max(pads) <= 1000:
            return None
        around = [(0, 0), (pads[0], pads[2]), (pads[1], pads[3])]
        self.network.count(math.prod(n + sum(p) for n, p in zip(places.shape[1:], around)))
        image = np.pad(places[0], around, constant_values=self.network.sizes[tensor])
        spans = [(k - 1) * d + 1 for k, d in zip(spans, dilations)]
        windows = np.lib.stride_tricks.sliding_window_view(image, (len(image), *spans))[0]
        windows = windows[:: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]
        self.network.count(windows.size)
        rows = windows.reshape(1, *windows.shape[:2], -1)
        tensor, made = self.product(tensor, rows, weight.reshape(len(weight), -1).T)
        return tensor, made.transpose(0, 3, 1, 2)


# ============================================================================ the certificate


class Certificate:
    """A certificate's claim and arrays, checked for their form."""

    def __init__(self, data):
        require(len(data) <= MAX_FILE, "the certificate has more than 100 MB.")
        require(len(data) >= HEAD.size and data[:16] == MAGIC, "this is no certificate.")
        _, version, n_text, n_body, digest = HEAD.unpack_from(data)
        require(version == VERSION, f"this certificate has version {version}; known is {VERSION}.")
        good = n_text <= min(n_body, MAX_TEXT) and n_body <= MAX_UNPACKED
        require(good, "the certificate is larger than certificates may be.")
        body = decompressed(zlib.decompressobj(), data[HEAD.size :], n_body)
        good = len(body) == n_body and hashlib.sha256(body).digest() == digest
        require(good, "the certificate is damaged: its checksum does not fit.")
        self.claim, self.arrays, self.cursors, at = json.loads(body[:n_text].decode()), {}, {}, n_text
        for name, kind, shape in self.claim["arrays"]:
            good = kind in ("|u1", "<u2", "<i4", "<f4", "<f8") and name not in self.arrays
            good = good and all(type(n) is int and 0 <= n <= n_body for n in shape)
            good = good and math.prod(shape) <= n_body
            require(good, "the certificate has an array of a type or size that none may have.")
            self.arrays[name] = np.frombuffer(body, np.dtype(kind), math.prod(shape), at).reshape(shape)
            at += self.arrays[name].nbytes
        require(at == n_body, "the certificate has bytes that belong to nothing.")
        self.read_claim()

    def array(self, name, kind, *shape):
        """An array of a type ("i" or "f") and shape; -1 stands for any length."""
        made = self.arrays.get(name)
        good = made is not None and (made.dtype.kind == "f") == (kind == "f") and made.ndim == len(shape)
        good = good and all(want in (-1, have) for want, have in zip(shape, made.shape))
        good = good and made.size <= MAX_TENSOR
        require(good, f"the certificate's array {name!r} is missing, or not as it must be.")
        return made.astype(np.float64 if kind == "f" else np.int64)

    def take(self, name, n):
        """The next n numbers of an array."""
        at, values = self.cursors.get(name, 0), self.arrays.get(name, np.zeros(0))
        require(values.ndim == 1 and 0 <= n <= len(values) - at, f"the array {name!r} ends too early.")
        self.cursors[name] = at + n
        return values[at : at + n].astype(np.float64 if values.dtype.kind == "f" else np.int64)

    def read_claim(self):
        """Check what else a file could say wrong without that anybody noticed."""
        self.verdict, self.models, self.d = (self.claim[key] for key in ("verdict", "models", "inputs"))
        sizes = [self.claim[key] for key in ("networks", "network_inputs", "network_outputs")]
        self.networks, self.n_inputs, self.n_outputs = sizes
        good = all(type(n) is int and 0 <= n <= MAX_TENSOR for n in [self.d, *itertools.chain(*sizes)])
        good = good and len({len(each) for each in sizes}) == 1 and max(self.networks) < len(self.models)
        require(good, "the certificate's claim has bad networks, or numbers of inputs or outputs.")
        flat, k = np.arange(self.d), sum(self.n_outputs)
        if "reads" in self.arrays or len(self.networks) > 1:
            flat = self.array("reads", "i", -1)
        good = len(flat) == sum(self.n_inputs) and ((flat >= 0) & (flat < self.d)).all()
        require(good, "a network reads inputs that are not there.")
        self.reads = np.split(flat, np.cumsum(self.n_inputs)[:-1])
        self.boxes = self.array("boxes", "f", -1, 2, self.d)
        self.set_box, counts = self.array("set_box", "i", -1), self.array("set_rows", "i", -1)
        self.ends, total = np.concatenate([[0], np.cumsum(counts)]), int(counts.sum())
        self.rows, self.limits = self.array("rows", "f", total, k), self.array("limits", "f", total)
        self.strict, self.group = self.array("strict", "i", total) != 0, np.arange(len(counts))
        self.names = [f"Y_{i}" for i in range(k)]
        if "input_rows" in self.arrays:
            self.rows = np.concatenate([self.rows, self.array("input_rows", "f", total, self.d)], axis=1)
            self.names += [f"X_{i}" for i in range(self.d)]
        if "set_group" in self.arrays:
            self.group = self.array("set_group", "i", len(counts))
        growth = self.claim.get("growth")
        good = growth is None or (len(counts) == 0 and type(growth) is float and growth >= 0)
        require(good, "a claim about all inputs has no sets, and a number.")
        good = all(np.isfinite(a).all() for a in (self.boxes, self.rows, self.limits))
        good = good and (self.boxes[:, 0] <= self.boxes[:, 1]).all() and len(self.set_box) == len(counts)
        good = good and ((counts >= 0) & (self.set_box >= 0) & (self.set_box < len(self.boxes))).all()
        require(good, "the claim's sets are bad, or a box is empty.")

    def set(self, s):
        """The corners of a set's box; and its rows, their limits, and whether they are strict."""
        part = slice(self.ends[s], self.ends[s + 1])
        return *self.boxes[self.set_box[s]], (self.rows[part], self.limits[part], self.strict[part])

    def network(self, data, tied=True):
        """The networks side by side; its output are theirs, and the input if there are rows of it."""
        made, outputs = Network(self.d), []
        for i, (model, reads, size) in enumerate(zip(self.networks, self.reads, self.n_outputs)):
            if i == 1 and tied and "tie_places" in self.arrays:
                require(np.array_equal(reads, self.reads[0]), "tied networks read different inputs.")
                other = Network(self.d)
                require(Reader(other, data[model], reads).output == len(other.nodes), "a tie is bad.")
                require(outputs[0] == len(made.nodes), "a tie is bad.")
                output = tie(made, other, self.take)
            else:
                output = Reader(made, data[model], reads).output
            good = made.sizes[output] == size
            require(good, "a model has another number of outputs than the claim says.")
            outputs.append(output)
        outputs += [0] if len(self.names) > sum(self.n_outputs) else []
        if outputs != [len(made.nodes)] or not made.nodes:
            made.side_by_side([(j, np.arange(made.sizes[j])) for j in outputs])
        return made

    def print_claim(self, write):
        for i, model in enumerate(self.models):
            write(f"model {i + 1}: sha256 {model.get('sha256')}")
        if "reads" in self.arrays or self.networks != [0] or len(self.models) > 1:
            ends = np.cumsum([0, *self.n_outputs])
            for i, (model, reads) in enumerate(zip(self.networks, self.reads)):
                said = f"network {i + 1}: model {model + 1}, reads " + ", ".join(f"X_{r}" for r in reads)
                write(f"{said}; gives Y_{ends[i]} to Y_{ends[i + 1] - 1}")
        if "growth" in self.claim:
            k, t = self.n_outputs[0], self.claim["growth"]
            write(f"for all X and i = 0 to {k - 1}: |Y_i - Y_(i + {k})| <= {t!r} (1 + |X|_2)")
        for b, box in enumerate(self.boxes):
            sides = [f"{low!r} <= X_{i} <= {high!r}" for i, (low, high) in enumerate(zip(*box.tolist()))]
            write(f"box {b + 1}: " + ", ".join(sides))
        for s, (box, group) in enumerate(zip(self.set_box, self.group)):
            said = f"unsafe set {s + 1}" + (f", question {group}" if "set_group" in self.arrays else "")
            said += f": box {box + 1}"
            for row, limit, strict in zip(*self.set(s)[2]):
                terms = [f"{c!r} {name}" for c, name in zip(row.tolist(), self.names) if c]
                said += f" and {' + '.join(terms) or '0'} {'<' if strict else '<='} {float(limit)!r}"
            write(said)


# ============================================================================ trees of boxes


def bound_boxes(network, low, high, rows, limits, strict):
    """What linear bounds leave of boxes, whether they are proved, and along which input to cut them."""
    bounds = Bounds(network, low, high)
    bounds.tighten()
    form = np.broadcast_to(-rows, (len(low), *rows.shape))
    form, offset = bounds.upper(len(network.nodes), form)
    offset = up(offset + limits, error(np.abs(offset) + np.abs(limits), 1))
    ends = bounds.largest(form, offset)
    # Where A x + b >= 0: x_j >= high_j - end / A_j if A_j > 0, and likewise.
    reach = np.maximum(ends, 0.0)[:, :, None] / np.abs(form) * (1.0 + 16.0 * U) + 1e-300
    reach = np.where(np.isfinite(reach), reach, np.inf)
    least = np.where(form > 0, np.nextafter(high[:, None] - reach, -np.inf), -np.inf).max(axis=1)
    most = np.where(form < 0, np.nextafter(low[:, None] + reach, np.inf), np.inf).min(axis=1)
    low, high = np.maximum(low, least), np.minimum(high, most)
    proved = ((ends < 0) | (strict & (ends <= 0))).any(axis=1) | (low > high).any(axis=1)
    best = form[np.arange(len(low)), np.argmin(ends, axis=1)]
    return low, high, proved, np.argmax(np.abs(best) * (high - low), axis=1)


def check_tree(certificate, network, s):
    """Go through the tree of boxes of a set, level by level, and return how many boxes were bounded."""
    low, high, rows = certificate.set(s)
    batch = max(1, min(64, BLOCK // (2 * network.widest * max(network.sizes))))
    level, n_bounded, n_nodes, n_extra = [(low, high, False, 0)], 0, 0, 0
    while level:
        # A leaf of the file that is not proved, as bounds round otherwise, is cut here: `extra` times.
        told = [extra == 0 for *_, extra in level]
        codes = iter(certificate.take("box_kinds", sum(told)).tolist())
        kinds = [next(codes) if each else LEAF for each in told]
        require(all(OPEN < kind <= SHRUNK_AND_CUT for kind in kinds), "a part of the set is open.")
        some = [k for k, kind in enumerate(kinds) if kind != CUT and not level[k][2]]
        for part in blocks(some, batch):
            lows, highs = (np.array([level[k][side] for k in part]) for side in (0, 1))
            for k, found in zip(part, zip(*bound_boxes(network, lows, highs, *rows))):
                level[k] = (*found, level[k][3])
        n_bounded, n_nodes, above, level = n_bounded + len(some), n_nodes + sum(told), level, []
        for kind, (low, high, done, *best, extra) in zip(kinds, above):
            if kind in (CUT, SHRUNK_AND_CUT):
                axis = int(certificate.take("box_places", 1)[0])
                require(axis < len(low), "a tree cuts along an input that is not there.")
            elif kind == SHRUNK:
                level.append((low, high, done, 0))
                continue
            elif done:
                continue
            else:
                (axis,), extra, n_extra = best, extra + 1, n_extra + 1
                good = 2 * n_extra <= EXTRA_BOXES + 2 * n_nodes and extra <= EXTRA_CUTS
                require(good, "a box that the certificate calls proved is not.")
            ends, starts = high.copy(), low.copy()
            ends[axis] = starts[axis] = np.clip(low[axis] / 2 + high[axis] / 2, low[axis], high[axis])
            level += [(low, ends, done, extra), (starts, high, done, extra)]
        require(len(level) * len(low) <= MAX_LEVEL, "a tree of boxes is too wide.")
    return n_bounded


def check_boxes(certificate, network, wanted):
    sets = certificate.array("box_sets", "i", -1).tolist()
    require(set(sets) <= wanted, "a tree of boxes belongs to no set that it proves.")
    return set(sets), f"{sum(check_tree(certificate, network, s) for s in sets)} boxes"


# ============================================================================ trees of signs


class Root:
    """Bounds on what enters ReLUs, as the certificate states them, on one box; they are proved first."""

    def __init__(self, network, low, high, take):
        self.bounds, self.n_units = Bounds(network, low[None], high[None]), 0
        self.open, self.starts, self.usual = {}, {}, np.zeros(0)
        for node in network.nodes:
            if isinstance(node, Relu) and node.inputs[0] > 0:
                require(node.inputs[0] not in self.open, "two ReLUs read one tensor.")
                self.settle(node.inputs[0], take)
            self.bounds.extend()

    def settle(self, i, take):
        """Prove what is stated about tensor i: by intervals, else by linear bounds."""
        size = self.bounds.network.sizes[i]
        low, high = take("root_lower", size), take("root_upper", size)
        require((low <= high).all(), "bounds inside the model are empty.")
        entries = take("root_entries", int(take("root_counts", 1)[0])).tolist()
        slopes = take("root_slopes", len(entries) * self.n_units).reshape(len(entries), self.n_units)
        slopes = dict(zip(entries, slopes))
        (known_low,), (known_high,) = self.bounds.values[i]
        unproved = np.flatnonzero(np.stack([known_high > high, known_low < low], axis=1))
        for part in blocks(unproved, max(1, BLOCK // self.bounds.network.widest)):
            codes = np.array([slopes.get(e, self.usual) for e in part.tolist()])
            self.bounds.slopes, self.bounds.cached = self.spread(codes[None]), {}
            most = self.bounds.ends(i, part)[0]
            stated = np.where(part % 2, -low[part // 2], high[part // 2])
            require((most <= stated).all(), "a bound inside the model is not proved.")
        self.bounds.slopes, self.bounds.cached, self.bounds.values[i] = {}, {}, (low[None], high[None])
        self.open[i], self.starts[i] = np.flatnonzero((low < 0) & (high > 0)), self.n_units
        self.n_units += len(self.open[i])
        self.usual = np.append(self.usual, 15.0 * (high > -low)[self.open[i]])

    def spread(self, codes):
        """Slopes (n, q, units) of the units of open sign, in steps of 1 / 15, tensor by tensor."""
        made = {}
        for i, open_ in self.open.items():
            made[i] = np.zeros((*codes.shape[:2], self.bounds.network.sizes[i]))
            made[i][:, :, open_] = codes[:, :, self.starts[i] : self.starts[i] + len(open_)] / 15
        return made

    def check_leaves(self, leaves, rows, limits, strict):
        """Prove leaves [(units, signs, slopes, multipliers, weights)] of one set, all at once."""
        network, n = self.bounds.network, len(leaves)
        bounds = Bounds(network, *self.bounds.values[0])
        bounds.values = list(self.bounds.values)
        bounds.slopes = self.spread(np.array([leaf[2] for leaf in leaves])[:, None])
        for i, open_ in self.open.items():
            low, high = (np.repeat(end, n, axis=0) for end in self.bounds.values[i])
            multipliers, used = np.zeros((n, 1, network.sizes[i])), False
            for k, (units, signs, _, values, _) in enumerate(leaves):
                here = (units >= self.starts[i]) & (units < self.starts[i] + len(open_))
                at, sign, used = open_[units[here] - self.starts[i]], signs[here], used or here.any()
                low[k, at[sign > 0]], high[k, at[sign < 0]] = 0.0, 0.0
                # sign m >= 0, so that m z >= 0 on the part may be added to an upper bound.
                require((sign * values[here] >= 0).all(), "a multiplier has the wrong sign.")
                multipliers[k, 0, at] = values[here]
            if used:
                bounds.values[i], bounds.multipliers[i] = (low, high), multipliers
        weights = np.array([leaf[4] for leaf in leaves])
        require(np.isfinite(weights).all() and (weights >= 0).all(), "weights must not be negative.")
        form, offset = bounds.upper(len(network.nodes), -(weights @ rows)[:, None])
        most, constant = bounds.largest(form, offset)[:, 0], weights @ limits
        # What rounding did to the weighted sums.
        reach = size_of(bounds.reach(len(network.nodes)))
        terms = dot(size_of(weights @ np.abs(rows))[:, None], reach)[:, 0] + weights @ np.abs(limits)
        slack = error(terms, 2 * len(limits) + 4) + 1e-300 * reach.sum()
        total = up(most + constant, slack + error(np.abs(most) + np.abs(constant), 2))
        require((total < 0).all(), "a choice of signs that the certificate calls proved is not.")


def check_signs(certificate, network, wanted):
    sets, n_leaves = certificate.array("sign_sets", "i", -1).tolist(), 0
    roots = certificate.array("sign_root", "i", len(sets)).tolist()
    batch = max(1, min(64, BLOCK // network.widest))
    require(set(sets) <= wanted, "a tree of signs belongs to no set that it proves.")
    box_of = {r: certificate.set_box[s] for s, r in zip(sets, roots)}
    require(set(box_of) == set(range(len(box_of))), "a root of trees is used by no set.")
    take, boxes = certificate.take, certificate.boxes
    made = [Root(network, *boxes[box_of[r]], take) for r in range(len(box_of))]
    for s, r in zip(sets, roots):
        rows, root = certificate.set(s)[2], made[r]
        require(box_of[r] == certificate.set_box[s], "a root is used on two boxes.")
        leaves = leaves_of(certificate, root.n_units, len(rows[1]))
        while part := list(itertools.islice(leaves, batch)):
            root.check_leaves(part, *rows)
            n_leaves += len(part)
    return set(sets), f"{n_leaves} choices of signs"


def leaves_of(certificate, n_units, n_rows):
    """Yield the leaves of a tree of signs, level by level: units, signs, and what proves them."""
    level, take = [((), ())], certificate.take
    while level:
        kinds, level, above = take("sign_kinds", len(level)).tolist(), [], level
        for kind, (units, signs) in zip(kinds, above):
            if kind == LEAF:
                numbers = take("sign_slopes", n_units), take("sign_multipliers", len(units))
                yield *np.array([units, signs], np.int64), *numbers, take("sign_weights", n_rows)
                continue
            require(kind == CUT, "a part of the set is open: the proof is not finished.")
            unit = int(take("sign_places", 1)[0])
            good = 0 <= unit < n_units and unit not in units
            require(good, "a tree chooses the sign of an unknown unit, or one twice.")
            level += [((*units, unit), (*signs, sign)) for sign in (1, -1)]
            require(len(level) * len(level[-1][0]) <= MAX_LEVEL, "a tree of signs is too wide.")


# ============================================================================ the rest of the proof


def exact_row(row, y):
    """A row's value in rationals."""
    return sum((Fraction(c) * Fraction(v) for c, v in zip(row.tolist(), y) if c), Fraction(0))


def check_ends(certificate, network, wanted):
    """A strict row whose least value by intervals is its limit, or above: in rationals."""
    done = set()
    for s in wanted:
        low, high, rows = certificate.set(s)
        (least,), (most,) = Bounds(network, low[None], high[None]).complete()
        for row, limit, strict in zip(*rows):
            y = np.where(row > 0, least, most)
            if strict and np.isfinite(y[row != 0]).all() and exact_row(row, y) >= Fraction(float(limit)):
                done.add(s)
    return done


def check_growth(network):
    """A number t with |f_i(x) - g_i(x)| <= t (1 + |x|_2) for all inputs x and outputs of tied networks.

    Every tensor has |y(x)| <= m (1 + |x|_2), also what the second network has more.
    """
    most = [np.ones((1, network.sizes[0]))]
    for node in network.nodes[:-1]:
        if isinstance(node, Affine):
            reach = [size_of(m) for m in most]
            total = node.sums(reach, "positive") + node.sums(reach, "negative") + np.abs(node.bias)
            most.append(up(total, error(total, node.n) + node.rounded(reach)))
        else:
            most.append(most[node.inputs[0]])  # |max(0, z)| <= |z|, and a Gap lies between 0 and d
    both = network.nodes[-2]  # of the first network, and what the second one has more
    return float(most[both.inputs[1]].max()) if len(both.inputs) == 2 else 0.0


def check_witness(certificate, network, s, x):
    """Whether an input and its outputs satisfy all rows of a set: by intervals, else in rationals."""
    low, high, rows = certificate.set(s)
    require(((low <= x) & (x <= high)).all(), "a witness lies outside of its box.")
    (least,), (most,) = Bounds(network, x[None], x[None]).complete()
    if not all(inside(*row, least, most) for row in zip(*rows)):
        work = sum(node.n * node.bias.size for node in network.nodes if isinstance(node, Affine))
        require(work < 4_000_000, "a witness is too close to its limit for so large a model.")
        values = [fractions(x[None])]
        for node in network.nodes:
            values.append(node.exactly(values))
        good = all(inside(*row, values[-1][0], values[-1][0]) for row in zip(*rows))
        require(good, "a witness does not satisfy the inequalities of its unsafe set.")


def inside(row, limit, strict, low, high):
    """Whether one row is surely satisfied where low <= y <= high."""
    y = [high[i] if c > 0 else low[i] for i, c in enumerate(row)]
    if not all(math.isfinite(v) for v, c in zip(y, row) if c):
        return False
    value, limit = exact_row(row, y), Fraction(float(limit))
    return value < limit or (value == limit and not strict)


# ============================================================================ properties (VNN-LIB)

STRANGE = re.compile(r"[^\t\n\r -~]|\r(?!\n)")  # programs differ in where these end a line or word
TOKEN = re.compile(r"\(|\)|[^\s()]+")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")
VARIABLE = re.compile(r"[XY]_\d{1,8}")
MAX_PARTS = 200_000


def read_property(text):
    """The variables of a VNN-LIB 1.0 file, and its sets as lists of inequalities (form, limit, strict).

    Read are assertions of and, or, <=, >=, <, > with terms that are linear: enough to compare claims.
    """
    stack, names, parts = [[]], set(), [[]]
    require(not STRANGE.search(text), "the property has characters that programs read differently.")
    for found in TOKEN.finditer(re.sub(";.*", "", text)):
        token = found.group()
        if token == "(":
            require(len(stack) < 100, "the property is nested too deeply.")
            stack.append([])
        elif token == ")":
            require(len(stack) > 1, "the property has a parenthesis too many.")
            stack[-2].append(stack.pop())
        else:
            stack[-1].append(token)
    require(len(stack) == 1, "the property has a parenthesis that is never closed.")
    for head, *rest in stack[0]:
        if head in ("declare-const", "declare-fun"):
            names.add(str(rest[0]))
        else:
            good = head == "assert" and len(rest) == 1
            require(good, "the property says what this checker does not read (VNN-LIB 1.0 is read).")
            parts = both(parts, alternatives(rest[0], names))
    return names, parts


def both(first, second):
    require(len(first) * len(second) <= MAX_PARTS, "the property has too many alternatives.")
    return [a + b for a in first for b in second]


def alternatives(term, names):
    """A formula as alternatives, each a list of inequalities."""
    head, *rest = term
    if head == "and":
        made = [[]]
        for each in rest:
            made = both(made, alternatives(each, names))
        return made
    if head == "or":
        return [part for each in rest for part in alternatives(each, names)]
    known = head in ("<=", ">=", "<", ">") and len(rest) == 2
    require(known, f"the property uses {str(head)[:20]!a}, which this checker does not read.")
    a, b = (linear(each, names) for each in (rest if head[0] == "<" else rest[::-1]))
    form = {v: a.get(v, 0) - b.get(v, 0) for v in {*a, *b} if v}
    return [[({v: c for v, c in form.items() if c}, b.get("", 0) - a.get("", 0), head in "<>")]]


def linear(term, names):
    """A term as {variable: coefficient}; "" stands for the constant."""
    if isinstance(term, str):
        if NUMBER.fullmatch(term):
            return {"": Fraction(term)}
        require(VARIABLE.fullmatch(term) and term in names, f"the property uses {term[:20]!a}: unknown.")
        return {term: Fraction(1)}
    head, (made, *rest) = term[0], [linear(each, names) for each in term[1:]]
    require(head in ("+", "-", "*"), "the property has a term that this checker does not read.")
    if head == "-" and not rest:
        return {v: -c for v, c in made.items()}
    for part in rest:
        if head == "*":
            made, factor = (made, part) if set(part) <= {""} else (part, made)
            require(set(factor) <= {""}, "the property multiplies variables.")
            made = {v: c * factor.get("", 0) for v, c in made.items()}
        else:
            sign = 1 if head == "+" else -1
            made = {v: made.get(v, 0) + sign * part.get(v, 0) for v in {*made, *part}}
    return made


def scaled_rows(part):
    """Inequalities as {form of largest coefficient 1: (limit, not strict)}, the sharpest of each."""
    made = {}
    for form, limit, strict in part:
        scale = max(map(abs, form.values()), default=Fraction(1))
        key, end = frozenset((v, c / scale) for v, c in form.items()), (limit / scale, not strict)
        made[key] = min(made.get(key, end), end)
    return made


def opposite(rows, key):
    """The limit of the negative of a form, None if it has none; 0 for constants."""
    return (Fraction(0), True) if not key else rows.get(frozenset((v, -c) for v, c in key))


def is_empty(rows):
    """Whether two inequalities contradict each other."""
    pairs = [(*end, *(opposite(rows, key) or (math.inf, True))) for key, end in rows.items()]
    return any(a < -b or (a == -b and not (closed and too)) for a, closed, b, too in pairs)


def at_float64(rows):
    """The same with inputs that are fixed at a number which float64 does not have at the nearest one."""
    made = dict(rows)
    for key, (limit, closed) in rows.items():
        if len(key) == 1 and next(iter(key))[0][0] == "X" and opposite(rows, key) == (-limit, closed):
            made[key] = Fraction(float(limit)), closed
    return made


def implies(first, second):
    """Whether every inequality of the second follows from one of the first, or is true of constants."""
    constant = Fraction(0), True  # 0 <= 0
    return all((first.get(k, (math.inf,)) if k else constant) <= end for k, end in second.items())


def compare(certificate, text):
    """Reject proofs about anything else: files have to imply sets, and sets with a witness files.

    Returns whether a witness is one of a file only if inputs are rounded that the file fixes.
    """
    (names, parts), sets, violated = read_property(text), [], certificate.verdict == "violated"
    inputs, n_sets = [f"X_{i}" for i in range(certificate.d)], range(len(certificate.set_box))
    good = names == {*inputs, *certificate.names} and "reads" not in certificate.arrays
    good = good and certificate.networks == [0] and len(certificate.models) == 1
    require(good, "the property file is about other inputs or outputs, or there are two networks.")
    for s in certificate.array("witness_sets", "i", -1).tolist() if violated else n_sets:
        low, high, rows = certificate.set(s)
        part = [({name: Fraction(-1)}, -Fraction(v), False) for name, v in zip(inputs, low.tolist())]
        part += [({name: Fraction(1)}, Fraction(v), False) for name, v in zip(inputs, high.tolist())]
        for row, limit, strict in zip(*rows):
            form = {name: Fraction(c) for name, c in zip(certificate.names, row.tolist()) if c}
            part.append((form, Fraction(float(limit)), bool(strict)))
        sets.append(scaled_rows(part))
    parts = [rows for rows in map(scaled_rows, parts) if not is_empty(rows)]
    rounded = list(map(at_float64, parts))
    given, wanted = (sets, rounded) if violated else (parts, sets)
    for i, rows in enumerate(given):
        found = any(implies(rows, other) for other in (*wanted[i : i + 1], *wanted))  # mostly in order
        require(found, "the certificate is about another property than the file.")
    return violated and rounded != parts


# ============================================================================ the check


def read_file(path, limit):
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    if path.lower().endswith(".gz"):
        return decompressed(zlib.decompressobj(31), data, limit)
    require(len(data) <= limit, f"{path} is too large.")
    return data


def decompressed(stream, data, limit):
    """The whole of one stream: programs differ in what they make of what follows it."""
    made = stream.decompress(data, limit + 1)
    require(len(made) <= limit, "a file is too large when it is unpacked.")
    require(stream.eof and not stream.unused_data, "a compressed file is cut off, or goes on after its end.")
    return made


def check(data, models, text=None, write=print):
    """Check a certificate (bytes) of models (decompressed bytes): what is proved, or raises Rejected."""
    certificate = Certificate(data)
    n_sets, verdict = len(certificate.set_box), certificate.verdict
    require(len(models) == len(certificate.models), "the certificate is about another number of models.")
    for i, (model, stated) in enumerate(zip(models, certificate.models)):
        same = hashlib.sha256(model).hexdigest() == stated.get("sha256")
        require(same, f"model {i + 1} is another file than the one that the certificate is about.")
    certificate.print_claim(write)
    network = certificate.network(models)
    require(verdict in ("holds", "violated", "counted"), "the proof is not finished.")
    if "growth" in certificate.claim:
        good = verdict == "holds" and "tie_places" in certificate.arrays and text is None
        good = good and len(certificate.networks) == 2 and len(set(certificate.n_outputs)) == 1
        require(good, "a claim about all inputs needs two tied networks.")
        good = check_growth(network) <= certificate.claim["growth"]
        require(good, "the gap of the networks may grow faster than the certificate says.")
        return "holds: the gap of the networks grows no faster with the input"
    if text is not None:
        require(verdict != "counted", "--property takes proofs that a property holds or is violated.")
        if compare(certificate, text):
            write("inputs that the property file fixes are taken at the nearest number of float64")
    shown = set()
    if verdict != "holds":
        points = certificate.array("witness", "f", -1, certificate.d)
        sets = certificate.array("witness_sets", "i", len(points)).tolist()
        require(np.isfinite(points).all() and all(0 <= s < n_sets for s in sets), "a witness is none.")
        plain = certificate.network(models, tied=False)  # differences of weights are rounded
        for s, x in zip(sets, points):
            write(f"in set {s + 1}: " + ", ".join(f"X_{i} = {v!r}" for i, v in enumerate(x.tolist())))
            check_witness(certificate, plain, s, x)
            shown.add(s)
    if verdict == "violated":
        require(shown, "there is no witness.")
        return f"violated: {len(shown)} of {n_sets} unsafe sets are reached by witnesses"
    proof = certificate.array("proof", "i", n_sets)
    wanted = [set(np.flatnonzero(proof == way).tolist()) for way in (ENDS, BOXES, SIGNS)]
    by_boxes, boxes = check_boxes(certificate, network, wanted[1])
    by_signs, signs = check_signs(certificate, network, wanted[2])
    done = check_ends(certificate, network, wanted[0]) | by_boxes | by_signs
    missing = set(range(n_sets) if verdict == "holds" else np.flatnonzero(proof).tolist()) - done
    require(not missing, f"there is no proof of unsafe set {min(missing, default=0) + 1}.")
    proved = f"bounded were {boxes} and {signs}"
    if verdict == "holds":
        return f"holds: none of {n_sets} unsafe sets is reached ({proved})"
    questions, group = set(certificate.group.tolist()), certificate.group
    bad = {int(group[s]) for s in shown}
    kept = questions - {int(group[s]) for s in range(n_sets) if s not in done}
    for q in sorted(questions):
        write(f"question {q}: {'holds' if q in kept else 'violated' if q in bad else 'open'}")
    counts = f"{len(kept)} hold, {len(bad)} are violated, {len(questions - kept - bad)} open"
    return f"counted: of {len(questions)} questions {counts} ({proved})"


def expire():
    """End the program from a thread of its own, wherever it is: files may be made to take for ever."""
    try:
        print("rejected: checking takes longer than --seconds allows.", flush=True)
    finally:
        os._exit(1)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Check a proof written by pindown.")
    parser.add_argument("certificate")
    parser.add_argument("models", nargs="+", help=".onnx or .onnx.gz, in the order of the certificate")
    parser.add_argument("--property", help="a VNN-LIB file that the certificate has to prove or refute")
    parser.add_argument("--seconds", type=float, default=3600.0, help="reject what takes longer")
    given = parser.parse_args(arguments)
    timer = threading.Timer(min(given.seconds, threading.TIMEOUT_MAX), expire)
    timer.daemon = True
    timer.start()
    try:
        with np.errstate(all="ignore"):
            data = read_file(given.certificate, MAX_FILE)
            models = [read_file(path, MAX_MODEL) for path in given.models]
            text = None if given.property is None else read_file(given.property, MAX_PROPERTY).decode()
            print(f"accepted: {check(data, models, text)}")
            return 0
    except Rejected as reason:
        print(f"rejected: {reason}")
    except OSError as reason:
        print(f"rejected: {reason.filename}: {reason.strerror}")
    except Exception as reason:  # whatever a file makes go wrong: it is no proof
        print(f"rejected: the certificate or a model cannot be read ({type(reason).__name__}).")
    finally:
        timer.cancel()
    return 1


if __name__ == "__main__":
    sys.exit(main())

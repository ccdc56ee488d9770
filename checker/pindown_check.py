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
  set's box apart into boxes that are proved (`check_boxes`). Cuts are made here, so that the halves
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
MAGIC, VERSION = b"pindown proof\r\n\x1a", 3
MAX_FILE, MAX_UNPACKED, MAX_MODEL = 100_000_000, 1_000_000_000, 1_000_000_000  # bytes
MAX_TEXT, MAX_PROPERTY = 10_000_000, 20_000_000  # bytes of a certificate's JSON text, and of a property
MAX_PARTS = 200_000  # alternatives of a property
MAX_NUMBERS = 50_000_000  # of one array; four times as many of all of a network
MAX_LEVEL = 5_000_000  # numbers of one level of a tree
BLOCK = 3_000_000  # numbers of forms that are carried back at once
EXTRA_BOXES, EXTRA_CUTS = 1000, 30  # leaves that are cut here, beside two for each node; and how often
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


def plus(values):
    return np.maximum(values, 0.0)


def minus(values):
    return np.maximum(-values, 0.0)


def dot(form, values):
    """c . v for forms (n, q, size) and values (n or 1, size), (n, q); infinite or NaN if a sum is."""
    return np.matmul(form, values[:, :, None])[:, :, 0]


def check_weights(values):
    least = np.min(np.abs(values), where=values != 0, initial=1.0)
    require(np.isfinite(values).all(), "a model has weights that are not finite.")
    require(least >= LEAST_WEIGHT, "a model has weights that are too small for this checker.")


fractions = np.vectorize(lambda v: Fraction(float(v)), otypes=[object])  # of all numbers of an array


def nearest(exact):
    """Rationals rounded to float64: none becomes zero."""
    made = exact.astype(np.float64)
    require(((made == 0) == (exact == 0)).all(), "numbers of tied networks underflow.")
    return made


# ============================================================================ operations
# A tensor is an array (n, size) for n boxes or points, flattened. A form is an array (n, q, size): q
# linear functions c . y of a tensor for each of n boxes.


class Linear:
    """y = x[index] W: what is read at P places, (P, K), times a matrix (K, O), written as (O, P).

    An index of n_in reads a zero. Weights of one dimension are multiplied entry by entry, with K = 1.
    They are off by u, relatively, if they are inverses of a divisor, or differences of tied networks.
    """

    def __init__(self, n_in, index, weight, divisor=None):
        check_weights(weight)
        self.n_in, self.index, self.weight, self.divisor = n_in, index, weight, divisor
        self.n_out = len(index) * (weight.shape[1] if weight.ndim == 2 else 1)
        self.dense = weight.ndim == 2 and np.array_equal(index, np.arange(n_in)[None])
        self.order = np.argsort(index, axis=None, kind="stable")
        self.places, self.starts = np.unique(index.ravel()[self.order], return_index=True)
        # Forwards K terms, backwards one for every time that an entry is read.
        times = np.bincount(index[index < n_in]).max(initial=1)
        self.n = index.shape[1] + int(times) * (self.n_out // len(index))

    def forward(self, x, weight):
        """L x with these weights instead of W."""
        padded = np.concatenate([x, np.zeros((len(x), 1), x.dtype)], axis=1)
        parts = padded[:, self.index.ravel()]
        if weight.ndim < 2:
            return parts * weight
        made = (parts.reshape(-1, len(weight)) @ weight).reshape(len(x), -1, weight.shape[1])
        return made.swapaxes(1, 2).reshape(len(x), -1)

    def back(self, form):
        """The forms of x that forms of y are."""
        n, q = form.shape[:2]
        if self.weight.ndim < 2:
            parts = form * self.weight
        else:
            parts = form.reshape(n * q, -1, len(self.index)).swapaxes(1, 2)
            parts = parts.reshape(-1, self.weight.shape[1]) @ self.weight.T
        if self.dense:
            return parts.reshape(n, q, self.n_in)
        parts, made = parts.reshape(n * q, -1), np.zeros((n * q, self.n_in + 1))
        made[:, self.places] = np.add.reduceat(parts[:, self.order], self.starts, axis=1)
        return made[:, :-1].reshape(n, q, self.n_in)

    def rational(self):
        return fractions(self.weight) if self.divisor is None else 1 / fractions(self.divisor)


class Affine:
    """y = bias + the sum of L x over terms (L, number of tensor x)."""

    def __init__(self, terms, bias):
        check_weights(bias)
        self.terms, self.inputs, self.bias = terms, [j for _, j in terms], bias
        self.n = sum(m.n for m, _ in terms) + len(terms) + 2

    def sums(self, given, part):
        """The sum of L x, with a part of the weights instead of all."""
        return sum(m.forward(given[j], part(m.weight)) for m, j in self.terms)

    def sizes(self, reach):
        """|L| |x| + |b|, or more, for every entry of y: what errors are relative to."""
        return self.sums({j: size_of(reach(j)) for j in self.inputs}, np.abs) + size_of(self.bias)

    def end(self, near, far):
        """The upper ends of y, or the lower ones: by the ends that weights above 0 take, and below 0."""
        value = self.sums(near, plus) - self.sums(far, minus) + self.bias
        near, far = ({j: size_of(x) for j, x in each.items()} for each in (near, far))
        return value, error(self.sums(near, plus) + self.sums(far, minus) + size_of(self.bias), self.n)

    def interval(self, values):
        low, high = ({j: values[j][side] for j in self.inputs} for side in (0, 1))
        (least, below), (most, above) = self.end(low, high), self.end(high, low)
        return -up(-least, below), up(most, above)

    def exactly(self, values):
        """y in rationals."""
        return sum(m.forward(values[j], m.rational()) for m, j in self.terms) + fractions(self.bias)


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
        return tuple(plus(end) for end in values[self.inputs[0]])

    def lines(self, values):
        """Slopes and shifts of lines below and above y."""
        low, high = values[self.inputs[0]]
        below = np.where((low >= 0) | ((high > 0) & (high > -low)), 1.0, 0.0)
        return below, np.zeros(low.shape), *chord(low, high)

    def exactly(self, values):
        return np.maximum(values[self.inputs[0]], Fraction(0))


class Gap:
    """y = max(0, z + d) - max(0, z), which lies between 0 and d; d where both are on, 0 where off."""

    def __init__(self, d, z):
        self.inputs = [d, z]

    def known(self, on, off, otherwise, values):
        """Numbers for where both ReLUs are on, where both are off, and elsewhere."""
        (d_low, d_high), (low, high) = (values[j] for j in self.inputs)
        both_on, both_off = (low >= 0) & (low + d_low >= 0), (high <= 0) & (high + d_high <= 0)
        return np.where(both_on, on, np.where(both_off, off, otherwise))

    def interval(self, values):
        low, high = values[self.inputs[0]]
        return self.known(low, 0.0, -minus(low), values), self.known(high, 0.0, plus(high), values)

    def lines(self, values):
        low, high = values[self.inputs[0]]
        (above, shift), (below, drop) = chord(low, high), chord(-high, -low)  # min(0, d) = -max(0, -d)
        lines = zip((1.0, 0.0, 1.0, 0.0), (below, -drop, above, shift))
        return tuple(self.known(on, 0.0, line, values) for on, line in lines)


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
        require(self.total <= 4 * MAX_NUMBERS, "a model is too large for this checker.")

    def pick(self, j, places=None, weight=1.0):
        """A term: entries of tensor j, in order if no places are given."""
        places = np.arange(self.sizes[j]) if places is None else places
        return Linear(self.sizes[j], places.reshape(-1, 1), np.full(places.size, weight)), j

    def side_by_side(self, parts):
        """Add the tensor of entries of others, given as (tensor, places), one part after the other."""
        ends, terms = np.cumsum([0, *(places.size for _, places in parts)]), []
        self.count(len(parts) * int(ends[-1]))
        for start, (j, places) in zip(ends, parts):
            index = np.full(ends[-1], self.sizes[j])
            index[start : start + places.size] = places.ravel()
            terms.append(self.pick(j, index))
        return self.add(Affine(terms, np.zeros(ends[-1])))


# ============================================================================ two networks


DIFFER = "tied networks differ in structure."


def difference(ours, theirs, before, after):
    """ours S P - S' P' theirs; S P are the pairs of what is read, S' P' of what is made, or None."""
    moved = before is not None or after is not None
    exact = moved or ours.divisor is not None or theirs.divisor is not None
    a, b = (m.rational() if exact else m.weight for m in (ours, theirs))
    same = ours.n_in == theirs.n_in and np.array_equal(ours.index, theirs.index)
    require((ours.dense and theirs.dense) if moved else same, DIFFER)
    if before is not None:
        columns, a = a * before.rational()[:, None], np.zeros((theirs.n_in, a.shape[1]), object)
        np.add.at(a, before.index[:, 0], columns)
    if after is not None:
        b = after.forward(b, after.rational())
    require(a.shape == b.shape, DIFFER)
    return Linear(theirs.n_in, theirs.index, nearest(a - b))


def tie(made, other, take):
    """Add another network to one of the same operations, as what it has more.

    Tensor i of the other is S P y + delta with tensor i here, y. The file says the units P and scales S
    where a tensor enters a ReLU; elsewhere entries are paired with themselves.
    """
    first, n_in = list(made.nodes), made.sizes[0]
    delta, pairs = {0: made.add(Affine([made.pick(0, weight=0.0)], np.zeros(n_in)))}, {0: None}
    require(len(first) == len(other.nodes) > 0, DIFFER)
    enters = {node.inputs[0] for node in other.nodes if isinstance(node, Relu)}
    for i, (node, theirs) in enumerate(zip(other.nodes, first), 1):
        require(type(theirs) is type(node) and theirs.inputs == node.inputs, DIFFER)
        if isinstance(node, Relu):
            z = j = node.inputs[0]
            pair = pairs[i] = pairs[j]
            if pair is not None:
                z = made.add(Affine([(pair, j)], np.zeros(pair.n_out)))
            delta[i] = made.add(Gap(delta[j], z))
            continue
        pair = pairs[i] = paired(made.sizes[i], other.sizes[i], take) if i in enters else None
        bias, terms = theirs.bias, []
        if pair is not None:
            bias = pair.forward(fractions(bias)[None], pair.rational())[0]
        require(len(node.terms) == len(theirs.terms) and len(bias) == len(node.bias), DIFFER)
        for (ours, j), (others, _) in zip(node.terms, theirs.terms):
            terms += [(difference(ours, others, pairs[j], pair), j), (ours, delta[j])]
        own = node.bias if pair is None else fractions(node.bias)
        delta[i] = made.add(Affine(terms, nearest(own - bias)))
    last = len(first)
    require(pairs[last] is None, DIFFER)
    return made.add(Affine([made.pick(last), made.pick(delta[last])], np.zeros(other.sizes[last])))


def paired(n_in, n_out, take):
    """The map S P that the file says; None if it changes nothing."""
    places, scales = take("tie_places", n_out), take("tie_scales", n_out)
    good = len(places) and ((places >= 0) & (places < n_in) & (scales > 1e-30) & (scales < 1e30)).all()
    require(good, "the units of tied networks are paired badly.")
    plain = np.array_equal(places, np.arange(n_in)) and (scales == 1).all()
    return None if plain else Linear(n_in, places[:, None], scales)


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

    def lines(self, node):
        below, drop, above, shift = node.lines(self.values)
        j, below = node.inputs[0], below[:, None]
        if j in self.slopes:
            low, high = self.values[j]
            free = ((low < 0) & (high > 0))[:, None]
            below = np.where(free, np.clip(self.slopes[j], 0.0, 1.0), below)
        return below, drop, above[:, None], shift

    def upper(self, index, form):
        """Forms A (n, q, d) of the input, numbers b (n, q): form . tensor <= A x + b on the whole boxes.

        A is meant as it stands; everything that rounding did to it is in b.
        """
        forms, offset, slack = {index: form}, np.zeros(form.shape[:2]), np.zeros(form.shape[:2])
        for i in range(index, 0, -1):
            if i not in forms:
                continue
            form, node = forms.pop(i), self.network.nodes[i - 1]
            affine = isinstance(node, Affine)
            if i in self.multipliers:
                form = form + self.multipliers[i]
                slack += error(dot(np.abs(form), self.reach(i)), 1)
            if i not in self.cached:
                self.cached[i] = node.sizes(self.reach) if affine else self.lines(node)
            if affine:
                made = [m.back(form) for m, _ in node.terms]
                offset = offset + form @ node.bias
                # A new form is off by u n |c| |L|: that counts |x| times.
                slack += error(dot(np.abs(form), self.cached[i]), node.n + form.shape[2])
            else:
                below, drop, above, shift = self.cached[i]
                lifted = dot(plus(form), shift) - dot(minus(form), drop)
                offset = offset + lifted
                made = [form * np.where(form > 0, above, below)]
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
        value = dot(plus(form), high) - dot(minus(form), low) + offset
        slack = error(dot(size_of(form), size_of(self.reach(0))) + size_of(offset), form.shape[2] + 2)
        return up(value, slack)

    def ends(self, i, codes):
        """Upper bounds on entries of tensor i, (n, q): 2 e stands for entry e, 2 e + 1 for minus it."""
        form = np.zeros((len(self.values[0][0]), len(codes), self.network.sizes[i]))
        form[:, np.arange(len(codes)), codes // 2] = np.where(codes % 2, -1.0, 1.0)
        return self.largest(*self.upper(i, form))

    def complete(self, linear=False):
        """Bound all tensors by intervals, and by linear bounds where they enter what is not linear."""
        n, nodes = len(self.values[0][0]), self.network.nodes
        enters = {node.inputs[0] for node in nodes if not isinstance(node, Affine)} if linear else set()
        for i, size in enumerate(self.network.sizes[1:], 1):
            self.extend()
            if i in enters:
                parts = blocks(np.arange(2 * size), max(1, BLOCK // (n * self.network.widest)))
                most = np.concatenate([self.ends(i, codes) for codes in parts], axis=1)
                low = np.maximum(self.values[i][0], -most[:, 1::2])
                high = np.minimum(self.values[i][1], most[:, ::2])
                # Both are true: where they cross, there is no input, and any bounds are true.
                self.values[i] = np.minimum(low, high), np.maximum(low, high)
        return self.values[-1]


def blocks(items, size):
    """Parts of some size."""
    return [items[start : start + size] for start in range(0, len(items), size)]


# ============================================================================ reading models


def gathered(v, index, axis):
    require(v.size // v.shape[axis] * index.size <= MAX_NUMBERS, "a model gathers too many numbers.")
    return np.take(v, index, axis=axis)


def sliced(v, starts, ends, axes=None, steps=None):
    where = [slice(None)] * v.ndim
    axes, steps = axes or range(len(starts)), steps or [1] * len(starts)
    for axis, *part in zip(axes, starts, ends, steps, strict=True):
        require(where[axis] == slice(None), "a model slices along an axis twice.")
        where[axis] = slice(*part)
    return v[tuple(where)]


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
FLOATS = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
INTEGERS = TensorProto.INT32, TensorProto.INT64


class Reader:
    """Turns an ONNX graph into operations of a network.

    A name stands for a tensor and places in it, or for None and constants: what only moves numbers
    moves places. Which inputs and attributes an operation has in which version is known to onnx.
    """

    def __init__(self, network, data, reads):
        model = onnx.load_from_string(data)
        graph, self.network, self.known, self.shared = model.graph, network, {}, set()
        versions = [each.version for each in model.opset_import if each.domain in ("", "ai.onnx")]
        good = len(versions) == 1 and 7 <= versions[0] <= onnx.defs.onnx_opset_version()
        good = good and not model.functions and not graph.sparse_initializer
        require(good, "a model is of an unknown kind.")
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
        self.name(inputs[0].name, (0, np.array(reads).reshape(shape)))
        context = type(onnx.checker.DEFAULT_CONTEXT)()
        context.ir_version, context.opset_imports = onnx.IR_VERSION, {"": versions[0]}
        for node in graph.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            good = node.domain in ("", "ai.onnx") and len(attributes) == len(node.attribute)
            self.unknown = f"a model uses {node.op_type[:40]!a} in an unknown way."
            require(good, self.unknown)
            node.domain = ""
            onnx.checker.check_node(node, context)
            made = self.read(node.op_type, list(node.input), attributes)
            self.name(node.output[0], made)
            network.count(made[1].size)
            if node.output[0] in reused:
                self.shared.add(made[0])  # under whatever name
        self.output = self.tensor(*self.get(graph.output[0].name))[0]

    def name(self, name, made):
        """Note what a name stands for. No name: others may take it for an input that is left out."""
        require(name and name not in self.known, "a model has a constant or makes a tensor twice.")
        self.known[name] = made

    def constant(self, proto):
        require(math.prod(proto.dims) <= MAX_NUMBERS, "a model has a constant that is too large.")
        elsewhere = proto.external_data or proto.data_location
        require(not elsewhere, "a model has constants in other files, which no hash is of.")
        given = sum(field.name.endswith("_data") for field, _ in proto.ListFields())
        good = proto.data_type in FLOATS + INTEGERS and given <= 1
        require(good, "a model has a constant that is neither float nor integer, or twice.")
        kind = np.float64 if proto.data_type in FLOATS else np.int64
        return None, numpy_helper.to_array(proto).astype(kind)

    def get(self, name):
        """The tensor, and places in it, that a name stands for."""
        tensor, places = self.known.get(name, (None, None))
        require(tensor is not None, f"a model takes {name[:80]!a} for a tensor, which it is not.")
        return tensor, places

    def number(self, name, kind=np.float64):
        """The constant of a type that a name stands for."""
        tensor, values = self.known.get(name, (0, None))
        good = tensor is None and values.dtype == kind
        require(good, f"a model takes {name[:80]!a} for a constant of another type, or for one.")
        return values

    def read(self, name, names, attributes):
        """Returns what an operation makes: a tensor and places in it, or None and a constant."""
        if name == "Constant":
            require(set(attributes) == {"value"}, self.unknown)
            return self.constant(attributes["value"])
        if name in MOVES:
            require(name != "Dropout" or len(names) < 3, self.unknown)  # it may drop, as in training
            require(not attributes.get("allowzero"), self.unknown)
            constants = [self.number(each, np.int64) for each in names[1:] if name != "Dropout"]
            tensor, v = self.known[names[0]]
            made = MOVES[name](v, constants, attributes)
            require(0 < made.size <= MAX_NUMBERS, "a model makes a tensor of an unknown size.")
            return tensor, made
        if name == "Concat":
            return self.joined(list(map(self.get, names)), attributes["axis"])
        left = len(names) == 2 and self.known.get(names[0], (0,))[0] is None  # a constant comes first
        tensor, places = self.get(names[left])
        if name == "Relu":
            tensor, shape = self.tensor(tensor, places)
            return self.make(Relu(tensor), shape)
        if name == "Neg":
            return self.scaled(tensor, places, -1.0)
        if name in ("Conv", "Gemm"):
            made = (self.conv if name == "Conv" else self.gemm)(tensor, places, names, attributes)
            return self.biased(name, *made, names[2]) if names[2:] and names[2] else made
        if name in ("Add", "Sub") and not left and self.known[names[1]][0] is not None:
            return self.sum(1.0 if name == "Add" else -1.0, tensor, places, *self.get(names[1]))
        c = self.number(names[not left])
        if name == "MatMul":
            return self.from_left(c, tensor, places) if left else self.product(tensor, places, c)
        require(name in ("Add", "Sub", "Mul", "Div") and (name, left) != ("Div", True), self.unknown)
        check_weights(c)
        require(name != "Div" or (c != 0).all(), "a model divides by zero.")
        less = (-1.0, c) if left else (1.0, -c)
        made = {"Add": (1.0, c), "Sub": less, "Mul": (c, 0.0), "Div": (1.0 / c, 0.0, c)}[name]
        return self.scaled(tensor, places, *made)

    def make(self, node, shape):
        return self.network.add(node), np.arange(math.prod(shape)).reshape(shape)

    def tensor(self, tensor, places):
        """A tensor whose entries are these, in their order, and their shape."""
        if not np.array_equal(places.ravel(), np.arange(self.network.sizes[tensor])):
            tensor = self.network.side_by_side([(tensor, places)])
        return tensor, places.shape

    def joined(self, parts, axis):
        ends = np.cumsum([0, *(places.size for _, places in parts)])
        places = [np.arange(a, b).reshape(p.shape) for a, b, (_, p) in zip(ends, ends[1:], parts)]
        return self.network.side_by_side(parts), np.concatenate(places, axis)

    def sum(self, sign, tensor, places, other, others):
        places, others = np.broadcast_arrays(places, others)
        self.network.count(places.size)
        terms = [self.network.pick(tensor, places), self.network.pick(other, others, sign)]
        return self.make(Affine(terms, np.zeros(places.size)), places.shape)

    def scaled(self, tensor, places, weight, bias=0.0, divisor=None):
        """weight x + bias, with constants that are broadcast."""
        full = np.broadcast_shapes(places.shape, np.shape(bias), np.shape(weight))
        self.network.count(math.prod(full))
        places, weight, bias = (np.broadcast_to(v, full).flatten() for v in (places, weight, bias))
        last = self.network.nodes[tensor - 1] if tensor == len(self.network.nodes) > 0 else None
        fresh = isinstance(last, Affine) and not last.bias.any() and tensor not in self.shared
        if fresh and (weight == 1).all() and np.array_equal(np.sort(places), np.arange(len(last.bias))):
            moved = np.empty(len(bias))
            moved[places] = bias  # x W + b in one step
            self.network.nodes[-1] = Affine(last.terms, moved)
            return tensor, places.reshape(full)
        divisor = None if divisor is None else np.broadcast_to(divisor, full).ravel()
        map_ = Linear(self.network.sizes[tensor], places[:, None], weight, divisor)
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

    def from_left(self, weight, tensor, places):
        """W x = (x' W')'."""
        require(places.ndim <= 2, self.unknown)
        tensor, made = self.product(tensor, places.reshape(len(places), -1).T, weight.T)
        return tensor, made.T.reshape(-1, *places.shape[1:])

    def biased(self, name, tensor, places, bias):
        """What a convolution or Gemm makes, with its bias."""
        bias = self.number(bias)
        good = name == "Gemm" or bias.shape == places.shape[1:2]
        require(good, "a model adds a bias that does not fit.")
        tensor, made = self.scaled(tensor, places, 1.0, bias if name == "Gemm" else bias[:, None, None])
        require(made.shape == places.shape, "a model adds a bias that does not fit.")
        return tensor, made

    def gemm(self, tensor, places, names, attributes):
        good = attributes.get("alpha", 1.0) == attributes.get("beta", 1.0) == 1.0 and places.ndim == 2
        require(good and not attributes.get("transA"), self.unknown)
        weight = self.number(names[1])
        return self.product(tensor, places, weight.T if attributes.get("transB") else weight)

    def conv(self, tensor, places, names, attributes):
        """A convolution of one image: every window is a row of a matrix that is multiplied."""
        weight, padding = self.number(names[1]), attributes.get("auto_pad", b"NOTSET")
        spans, pads = list(weight.shape[2:]), list(attributes.get("pads", [0] * 4))
        strides, dilations = (list(attributes.get(name, [1, 1])) for name in ("strides", "dilations"))
        good = places.ndim == weight.ndim == 4 and places.shape[:2] == (1, weight.shape[1])
        good = good and attributes.get("group", 1) == 1
        good = good and attributes.get("kernel_shape", spans) == spans
        good = good and (padding == b"NOTSET" or (padding == b"VALID" and not any(pads)))
        good = good and len(strides) == len(dilations) == 2 and len(pads) == 4
        good = good and min(strides + dilations) >= 1 and min(pads) >= 0 and max(pads) <= 1000
        require(good, self.unknown)
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
        require(len(data) >= HEAD.size and data[:16] == MAGIC, "this is no certificate.")
        _, version, n_text, n_body, digest = HEAD.unpack_from(data)
        require(version == VERSION, f"this certificate has version {version}; known is {VERSION}.")
        good = n_text <= min(n_body, MAX_TEXT) and n_body <= MAX_UNPACKED and len(data) <= MAX_FILE
        require(good, "the certificate is larger than certificates may be.")
        body = decompressed(zlib.decompressobj(), data[HEAD.size :], n_body)
        good = len(body) == n_body and hashlib.sha256(body).digest() == digest
        require(good, "the certificate is damaged: its checksum does not fit.")
        self.claim, self.arrays, self.cursors, at = json.loads(body[:n_text].decode()), {}, {}, n_text
        for name, kind, shape in self.claim["arrays"]:
            good = kind in ("|u1", "<u2", "<i4", "<f4", "<f8") and name not in self.arrays
            good = good and all(is_count(n, n_body) for n in shape) and math.prod(shape) <= MAX_NUMBERS
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
        self.networks = [
            (each["model"], each.get("reads", range(self.d)), each["outputs"])
            for each in self.claim["networks"]
        ]
        good = is_count(self.d, MAX_NUMBERS) and self.networks
        for model, reads, size in self.networks:
            good = good and is_count(model, len(self.models) - 1) and is_count(size, MAX_NUMBERS)
            good = good and all(is_count(r, self.d - 1) for r in reads)
        require(good, "the claim's networks, or numbers of inputs or outputs, make no sense.")
        k = sum(size for *_, size in self.networks)
        self.boxes = self.array("boxes", "f", -1, 2, self.d)
        self.set_box, counts = self.array("set_box", "i", -1), self.array("set_rows", "i", -1)
        self.ends, total = np.concatenate([[0], np.cumsum(counts)]), int(counts.sum())
        self.rows, self.limits = self.array("rows", "f", total, k), self.array("limits", "f", total)
        self.strict, self.group = self.array("strict", "i", total) != 0, np.zeros(len(counts), np.int64)
        self.names = [f"Y_{i}" for i in range(k)]
        if "input_rows" in self.arrays:
            self.rows = np.concatenate([self.rows, self.array("input_rows", "f", total, self.d)], axis=1)
            self.names += [f"X_{i}" for i in range(self.d)]
        if "set_group" in self.arrays:
            self.group = self.array("set_group", "i", len(counts))
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
        for i, (model, reads, size) in enumerate(self.networks):
            if i == 1 and tied and "tie_places" in self.arrays:
                other = Network(self.d)
                good = list(reads) == list(self.networks[0][1]) and outputs == [len(made.nodes)]
                good = good and Reader(other, data[model], reads).output == len(other.nodes)
                require(good, "the networks cannot be tied.")
                outputs.append(tie(made, other, self.take))
            else:
                outputs.append(Reader(made, data[model], reads).output)
            good = made.sizes[outputs[-1]] == size
            require(good, "a model has another number of outputs than the claim says.")
        outputs += [0] if "input_rows" in self.arrays else []
        if outputs != [len(made.nodes)] or not made.nodes:
            made.side_by_side([(j, np.arange(made.sizes[j])) for j in outputs])
        return made

    def print_claim(self, write):
        for i, model in enumerate(self.models):
            write(f"model {i + 1}: sha256 {model.get('sha256')}")
        first = 0
        for i, (model, reads, size) in enumerate(self.networks):
            read, last = ", ".join(f"X_{r}" for r in reads), first + size - 1
            write(f"network {i + 1}: model {model + 1}, reads {read}; gives Y_{first} to Y_{last}")
            first += size
        if "growth" in self.claim:
            k, t = self.networks[0][2], self.claim["growth"]
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


def is_count(n, most):
    return type(n) is int and 0 <= n <= most


# ============================================================================ trees of boxes


def bound_boxes(network, low, high, rows, limits, strict):
    """What linear bounds leave of boxes, whether they are proved, and along which input to cut them."""
    bounds = Bounds(network, low, high)
    bounds.complete(linear=True)
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


def check_boxes(certificate, network, s):
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


# ============================================================================ trees of signs


class Root:
    """Bounds on what enters ReLUs, as the certificate states them, on one box; they are proved first."""

    def __init__(self, network, low, high, take):
        self.bounds = Bounds(network, low[None], high[None])
        self.units, self.open, self.usual = [], {}, []
        for node in network.nodes:
            if isinstance(node, Relu) and node.inputs[0] > 0:
                require(node.inputs[0] not in self.open, "two ReLUs read one tensor.")
                self.settle(node.inputs[0], take)
            self.bounds.extend()

    def settle(self, i, take):
        """Prove what is stated about tensor i: by intervals, else by linear bounds."""
        size, bounds = self.bounds.network.sizes[i], self.bounds
        low, high = take("root_lower", size), take("root_upper", size)
        require((low <= high).all(), "bounds inside the model are empty.")
        entries = take("root_entries", int(take("root_counts", 1)[0])).tolist()
        slopes = {e: take("root_slopes", len(self.units)) for e in entries}
        (known_low,), (known_high,) = bounds.values[i]
        unproved = np.flatnonzero(np.stack([known_high > high, known_low < low], axis=1))
        for part in blocks(unproved, max(1, BLOCK // bounds.network.widest)):
            codes = np.array([slopes.get(e, self.usual) for e in part.tolist()])
            bounds.slopes, bounds.cached = self.spread(codes[None]), {}
            stated = np.where(part % 2, -low[part // 2], high[part // 2])
            require((bounds.ends(i, part)[0] <= stated).all(), "a bound inside the model is not proved.")
        bounds.slopes, bounds.cached, bounds.values[i] = {}, {}, (low[None], high[None])
        units = np.flatnonzero((low < 0) & (high > 0))
        self.open[i] = slice(len(self.units), len(self.units) + len(units)), units
        self.units += [(i, unit) for unit in units.tolist()]
        self.usual += (15.0 * (high > -low)[units]).tolist()

    def spread(self, codes):
        """Slopes (n, q, units) of the units of open sign, in steps of 1 / 15, tensor by tensor."""
        made = {}
        for i, (part, units) in self.open.items():
            made[i] = np.zeros((*codes.shape[:2], self.bounds.network.sizes[i]))
            made[i][:, :, units] = codes[:, :, part] / 15
        return made

    def check_leaves(self, leaves, rows, limits, strict):
        """Prove leaves [(units, signs, slopes, multipliers, weights)] of one set, all at once."""
        network, n = self.bounds.network, len(leaves)
        bounds = Bounds(network, *self.bounds.values[0])
        bounds.values = list(self.bounds.values)
        bounds.slopes = self.spread(np.array([leaf[2] for leaf in leaves])[:, None])
        for k, (units, signs, _, multipliers, _) in enumerate(leaves):
            for unit, sign, multiplier in zip(units, signs, multipliers.tolist()):
                i, entry = self.units[unit]
                if i not in bounds.multipliers:
                    bounds.values[i] = [np.repeat(end, n, axis=0) for end in bounds.values[i]]
                    bounds.multipliers[i] = np.zeros((n, 1, network.sizes[i]))
                bounds.values[i][0 if sign > 0 else 1][k, entry] = 0.0
                # sign m >= 0, so that m z >= 0 on the part may be added to an upper bound.
                require(sign * multiplier >= 0, "a multiplier has the wrong sign.")
                bounds.multipliers[i][k, 0, entry] = multiplier
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


def check_signs(certificate, network, s, number, roots):
    """Prove the tree of signs of a set with root `number`, which may be the next one of the file."""
    low, high, rows = certificate.set(s)
    if number == len(roots):
        roots.append((certificate.set_box[s], Root(network, low, high, certificate.take)))
    good = 0 <= number < len(roots) and roots[number][0] == certificate.set_box[s]
    require(good, "a tree of signs has a root on another box, or none.")
    root, n_leaves = roots[number][1], 0
    leaves = leaves_of(certificate.take, len(root.units), len(rows[1]))
    while part := list(itertools.islice(leaves, max(1, min(64, BLOCK // network.widest)))):
        root.check_leaves(part, *rows)
        n_leaves += len(part)
    return n_leaves


def leaves_of(take, n_units, n_rows):
    """Yield the leaves of a tree of signs, level by level: units, signs, and what proves them."""
    level = [((), ())]
    while level:
        kinds, level, above = take("sign_kinds", len(level)).tolist(), [], level
        for kind, (units, signs) in zip(kinds, above):
            if kind == LEAF:
                numbers = take("sign_slopes", n_units), take("sign_multipliers", len(units))
                yield units, signs, *numbers, take("sign_weights", n_rows)
                continue
            require(kind == CUT, "a part of the set is open: the proof is not finished.")
            unit = int(take("sign_places", 1)[0])
            good = 0 <= unit < n_units and unit not in units
            require(good, "a tree chooses the sign of an unknown unit, or one twice.")
            level += [((*units, unit), (*signs, sign)) for sign in (1, -1)]
            require(len(level) * len(level[-1][0]) <= MAX_LEVEL, "a tree of signs is too wide.")


# ============================================================================ the rest of the proof


def highest(row, low, high):
    """The largest value of a row where low <= y <= high, in rationals; infinite if it has no end."""
    y = [high[i] if c > 0 else low[i] for i, c in enumerate(row)]
    if not all(math.isfinite(v) for v, c in zip(y, row) if c):
        return math.inf
    return sum((Fraction(float(c)) * Fraction(v) for v, c in zip(y, row) if c), Fraction(0))


def check_ends(certificate, network, s):
    """Prove a set by a strict row whose least value by intervals is its limit, or above."""
    low, high, rows = certificate.set(s)
    (least,), (most,) = Bounds(network, low[None], high[None]).complete()
    good = any(
        strict and -highest(-row, least, most) >= Fraction(float(limit))
        for row, limit, strict in zip(*rows)
    )
    require(good, f"there is no proof of unsafe set {s + 1}.")
    return 1


def check_growth(network):
    """A number t with |f_i(x) - g_i(x)| <= t (1 + |x|_2) for all inputs x and outputs of tied networks.

    Every tensor has |y(x)| <= m (1 + |x|_2), also what the second network has more.
    """
    most = [np.ones((1, network.sizes[0]))]
    for node in network.nodes:
        if isinstance(node, Affine):
            total = node.sums(list(map(size_of, most)), np.abs) + np.abs(node.bias)
            most.append(up(total, error(total, node.n)))
        else:
            most.append(most[node.inputs[0]])  # |max(0, z)| <= |z|, and a Gap lies between 0 and d
    both = network.nodes[-2]  # of the first network, and what the second one has more
    return float(most[both.inputs[1]].max())


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
    value, limit = highest(row, low, high), Fraction(float(limit))
    return value < limit or (value == limit and not strict)


# ============================================================================ properties (VNN-LIB)

STRANGE = re.compile(r"[^\t\n\r -~]|\r(?!\n)")  # programs differ in where these end a line or word
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")
VARIABLE = re.compile(r"[XY]_\d{1,8}")


def read_property(text):
    """The variables of a VNN-LIB 1.0 file, and its sets: {form: end} as `inequality` makes them.

    Read are assertions of and, or, <=, >=, <, > with terms that are linear: enough to compare claims.
    """
    require(not STRANGE.search(text), "the property has characters that programs read differently.")
    text = re.sub(";.*", "", text)
    require(not re.search(r'["\\]', text), "the property has strings, which this checker does not read.")
    words = re.sub(r"[^\s()]+", r'"\g<0>"', text)  # in quotes, and lists in brackets: that is JSON
    lists = re.sub(r'(?<=["\])])\s*(?=["(])', ",", f"({words.strip()})")
    names, parts = set(), [[]]
    for head, *rest in json.loads(lists.replace("(", "[").replace(")", "]")):
        if head in ("declare-const", "declare-fun"):
            names.add(str(rest[0]))
        else:
            good = head == "assert" and len(rest) == 1
            require(good, "the property says what this checker does not read (VNN-LIB 1.0 is read).")
            parts = both(parts, alternatives(rest[0], names))
    return names, list(map(sharpest, parts))


def both(first, second):
    require(len(first) * len(second) <= MAX_PARTS, "the property has too many alternatives.")
    return [a + b for a in first for b in second]


def alternatives(term, names):
    """A formula as alternatives, each a list of inequalities."""
    require(isinstance(term, list) and term, "the property has a formula that is none.")
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
    made = added(a, b, -1)
    return [[inequality(made, -made.pop("", Fraction(0)), head in "<>")]]


def linear(term, names):
    """A term as {variable: coefficient}; "" stands for the constant."""
    if isinstance(term, str):
        if NUMBER.fullmatch(term):
            return {"": Fraction(term)}
        require(VARIABLE.fullmatch(term) and term in names, f"the property uses {term[:20]!a}: unknown.")
        return {term: Fraction(1)}
    head, parts = term[0], [linear(each, names) for each in term[1:]]
    require(head in ("+", "-", "*") and parts, "the property has a term that is not read here.")
    if head == "*":
        factor = math.prod(part.get("", 0) for part in parts if set(part) <= {""})
        others = [part for part in parts if set(part) - {""}] or [{"": Fraction(1)}]
        require(len(others) == 1, "the property multiplies variables.")
        return added({}, others[0], factor)
    made, *rest = parts if head == "+" or len(parts) > 1 else [{}, *parts]
    for part in rest:
        made = added(made, part, 1 if head == "+" else -1)
    return made


def added(first, second, factor):
    return {v: first.get(v, 0) + factor * second.get(v, 0) for v in {**first, **second}}


def inequality(form, limit, strict):
    """An inequality as (form of largest coefficient 1, (limit, not strict)): lesser ends say more."""
    scale = max(map(abs, form.values()), default=0) or Fraction(1)
    return frozenset((v, c / scale) for v, c in form.items() if c), (limit / scale, not strict)


def sharpest(inequalities):
    made = {}
    for form, end in inequalities:
        made[form] = min(made.get(form, end), end)
    return made


def opposite(rows, form):
    """The end of the negative of a form, infinite if it has none; 0 for constants."""
    negative = frozenset((v, -c) for v, c in form)
    return rows.get(negative, (math.inf, True)) if form else (Fraction(0), True)


def is_empty(rows):
    """Whether two inequalities contradict each other."""
    pairs = [(*end, *opposite(rows, form)) for form, end in rows.items()]
    return any(a < -b or (a == -b and not (closed and too)) for a, closed, b, too in pairs)


def at_float64(rows):
    """The same with inputs that are fixed at a number which float64 does not have at the nearest one."""
    made = dict(rows)
    for form, (limit, closed) in rows.items():
        if [v[0] for v, _ in form] == ["X"] and opposite(rows, form) == (-limit, closed):
            made[form] = Fraction(float(limit)), closed
    return made


def implies(first, second):
    """Whether every inequality of the second follows from one of the first, or is true of constants."""
    constant = Fraction(0), True  # 0 <= 0
    return all((first.get(k, (math.inf,)) if k else constant) <= end for k, end in second.items())


def compare(certificate, text):
    """Reject proofs about anything else: files have to imply sets, and sets with a witness files.

    Returns whether a witness is one of a file only if inputs are rounded that the file fixes.
    """
    (names, parts), sets, d = read_property(text), [], certificate.d
    violated, models = certificate.verdict == "violated", len(certificate.models)
    inputs = [f"X_{i}" for i in range(d)]
    good = names == {*inputs, *certificate.names} and models == len(certificate.networks) == 1
    good = good and list(certificate.networks[0][1]) == list(range(d))
    good = good and certificate.verdict != "counted"
    require(good, "the property file is about other inputs or outputs, or there are two networks.")
    n_sets = range(len(certificate.set_box))
    for s in certificate.array("witness_sets", "i", -1).tolist() if violated else n_sets:
        low, high, rows = certificate.set(s)
        part = [({name: Fraction(-1)}, -Fraction(v), False) for name, v in zip(inputs, low.tolist())]
        part += [({name: Fraction(1)}, Fraction(v), False) for name, v in zip(inputs, high.tolist())]
        for row, limit, strict in zip(*rows):
            form = {name: Fraction(c) for name, c in zip(certificate.names, row.tolist())}
            part.append((form, Fraction(float(limit)), bool(strict)))
        sets.append(sharpest(itertools.starmap(inequality, part)))
    parts = [rows for rows in parts if not is_empty(rows)]
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
    whole = stream.eof and not stream.unused_data
    require(whole, "a compressed file is cut off, or goes on after its end.")
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
        growth, sizes = certificate.claim["growth"], [size for *_, size in certificate.networks]
        good = n_sets == 0 and verdict == "holds" and "tie_places" in certificate.arrays and text is None
        good = good and len(sizes) == 2 and sizes[0] == sizes[1] and type(growth) is float
        require(good, "a claim about all inputs has two tied networks, a number and no sets.")
        require(check_growth(network) <= growth, "the gap of the networks may grow faster.")
        return "holds: the gap of the networks grows no faster with the input"
    if text is not None and compare(certificate, text):
        write("inputs that the property file fixes are taken at the nearest number of float64")
    shown, done = set(), set()
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
    proof, counts, trees = certificate.array("proof", "i", n_sets).tolist(), Counter(), []
    roots = iter(certificate.array("sign_root", "i", proof.count(SIGNS)).tolist())
    for s, way in enumerate(proof):
        if way == ENDS:
            check_ends(certificate, network, s)
        elif way == BOXES:
            counts[way] += check_boxes(certificate, network, s)
        elif way == SIGNS:
            counts[way] += check_signs(certificate, network, s, next(roots), trees)
        else:
            require(verdict == "counted", f"there is no proof of unsafe set {s + 1}.")
            continue
        done.add(s)
    proved = f"bounded were {counts[BOXES]} boxes and {counts[SIGNS]} choices of signs"
    if verdict == "holds":
        return f"holds: none of {n_sets} unsafe sets is reached ({proved})"
    group = certificate.group.tolist()
    bad, left = {group[s] for s in shown}, {group[s] for s in range(n_sets) if s not in done}
    said = {q: "violated" if q in bad else "open" if q in left else "holds" for q in sorted(set(group))}
    for q, answer in said.items():
        write(f"question {q}: {answer}")
    n = Counter(said.values())
    counts = f"{n['holds']} hold, {n['violated']} are violated, {n['open']} open"
    return f"counted: of {len(said)} questions {counts} ({proved})"


def expire():
    """End the program from a thread of its own, wherever it is: files may be made to take for ever."""
    os.write(1, b"rejected: checking takes longer than --seconds allows.\n")
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
    except onnx.checker.ValidationError:
        print("rejected: a model uses an operation in a way that ONNX does not know.")
    except OSError as reason:
        print(f"rejected: {reason.filename}: {reason.strerror}")
    except Exception as reason:  # whatever a file makes go wrong: it is no proof
        print(f"rejected: the certificate or a model cannot be read ({type(reason).__name__}).")
    finally:
        timer.cancel()
    return 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Check a proof that `pindown verify --certificate` wrote. Needs NumPy and onnx, and nothing of pindown.

    python pindown_check.py proof.cert model.onnx [model2.onnx] [--property property.vnnlib]

Prints the claim in full. Exit code 0 and a last line "accepted: ..." if the certificate proves it, 1 and "rejected:
..." with the reason if it does not. With --property it has to prove what that VNN-LIB file says.

The claim "holds" is about *unsafe sets*: boxes of inputs x, each with inequalities C x + R y <= t between x and the
outputs y of the networks. None of them contains any input with its outputs, for the real-number functions that the
weights define. The claim "violated" is that one given input lies in one of the sets.

How the proof is checked:

  A box is proved if some row C x + R y - t is positive on all of it; to see that, the networks are put between linear
  functions, from the outputs back to the inputs (`Bounds.upper`). A tree of cuts takes a set's box apart into boxes
  that are proved (`check_boxes`). Cuts are made here, so that the halves cover the whole whatever the file says.
  Or a tree takes it apart by signs of what enters ReLUs: plus on one side, minus on the other (`check_signs`). A leaf
  is proved with slopes, multipliers and weights from the file. Any slope in [0, 1], any multiplier of the right sign
  and any weight >= 0 gives a bound that is true, so that nothing in the file has to be believed.

Rounding: float64, and whatever rounding can do is added to the unsafe side. A sum of n products that float64
computes is within (n + 2) u / (1 - (n + 2) u) times the sum of their absolute values of the true one, u = 2**-53
(Higham 2002, section 3.1); `error` returns several times that. Products that underflow lose 2**-1074 at most.
"""

import argparse
import hashlib
import json
import math
import os
import re
import struct
import sys
import time
import zlib
from collections import Counter
from fractions import Fraction

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # matrices are small: threads would only wait for each other

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

MAGIC = b"pindown proof\r\n\x1a"
HEAD = struct.Struct("<16sIIQ32s")
VERSION = 1
MAX_FILE = 100_000_000  # bytes of a certificate,
MAX_UNPACKED = 1_000_000_000  # and unpacked
MAX_MODEL = 2_000_000_000
MAX_TENSOR = 50_000_000  # numbers of one tensor or one weight
BLOCK = 3_000_000  # numbers of forms that are carried back at once
EXTRA_CUTS = 30  # a leaf of a tree of boxes may be cut so often if it is not proved at once
UNKNOWNS = 64  # of zonotopes, beside the inputs
SLOPE_STEPS = 15
OPEN, LEAF, CUT, SHRUNK, SHRUNK_AND_CUT = range(5)
ENDS, BOXES, SIGNS = 1, 2, 3
U = 2.0**-53
SMALL = 1e-150  # numbers below count as this one where errors are estimated: products then do not underflow
LEAST_WEIGHT = 1e-120


class Rejected(Exception):
    """The certificate does not prove its claim."""


def require(condition, reason):
    if not condition:
        raise Rejected(reason)


# ============================================================================ rounding


def error(magnitude, n):
    """What rounding does at most to a sum of n products of absolute sum `magnitude`; 0 if all of them are 0."""
    return np.where(magnitude == 0, 0.0, np.nan_to_num(8.0 * (n + 16) * U * magnitude + 1e-300, nan=np.inf))


def up(value, slack):
    """An upper bound on value + slack; infinite where that is unknown. Exact where slack is zero."""
    total = np.where(slack > 0, np.nextafter(value + slack, np.inf), value)
    return np.where(np.isfinite(total), total, np.inf)


def size_of(values):
    """Absolute values for error estimates: zero stays zero, tiny numbers become SMALL."""
    return np.where(values == 0, 0.0, np.maximum(np.abs(values), SMALL))


def fractions(array):
    made = np.empty(array.shape, dtype=object)
    made.ravel()[:] = [Fraction(float(v)) for v in array.ravel()]
    return made


# ============================================================================ operations
# A tensor is an array (n, size) for n boxes or points, flattened. A form is an array (n, q, size): q linear
# functions c . y of a tensor for each of n boxes.


class Linear:
    """y = L x + b. `forward` applies L or its parts, `back` its transpose; n_terms products are summed."""

    def prepare(self, weight, bias, n_terms):
        require(np.isfinite(weight).all() and np.isfinite(bias).all(), "a model has weights that are not finite.")
        for values in (weight, bias):
            least = np.min(np.abs(values), where=values != 0, initial=1.0)
            require(least >= LEAST_WEIGHT, "a model has weights that are too small for this checker.")
        self.weight, self.bias, self.n_terms = weight, bias, n_terms
        self.positive, self.negative = np.maximum(weight, 0.0), np.maximum(-weight, 0.0)
        self.exact = None

    def at(self, x):
        if self.exact is None:
            self.exact = fractions(self.weight), fractions(self.bias)
        return self.forward(x, self.exact[0]) + self.exact[1]

    def interval(self, low, high):
        value_low = self.forward(low, self.positive) - self.forward(high, self.negative) + self.bias
        value_high = self.forward(high, self.positive) - self.forward(low, self.negative) + self.bias
        a, b, c = size_of(low), size_of(high), np.abs(self.bias)
        slack_low = error(self.forward(a, self.positive) + self.forward(b, self.negative) + c, self.n_terms + 2)
        slack_high = error(self.forward(b, self.positive) + self.forward(a, self.negative) + c, self.n_terms + 2)
        return -up(-value_low, slack_low), up(value_high, slack_high)

    def sizes(self, reach):
        """|L| |x| + |b| for every entry of y: what errors are relative to."""
        return self.forward(reach, self.positive) + self.forward(reach, self.negative) + np.abs(self.bias)


class Dense(Linear):
    """Rows of the input times a matrix: (rows, k) -> (rows, m)."""

    def __init__(self, weight, bias, rows):
        self.rows = rows
        self.prepare(weight, bias, weight.shape[0])
        self.n_back = weight.shape[1]

    def forward(self, x, weight):
        return (x.reshape(len(x) * self.rows, -1) @ weight).reshape(len(x), -1)

    def back(self, form):
        return (form.reshape(-1, self.weight.shape[1]) @ self.weight.T).reshape(*form.shape[:2], -1)


class Scale(Linear):
    """Entry by entry: y = s x + b. `exact` is s in rationals if float64 does not hold it."""

    def __init__(self, weight, bias, exact=None):
        self.prepare(weight, bias, 3)
        self.n_back = 3
        if exact is not None:
            self.exact = exact, fractions(bias)

    def forward(self, x, weight):
        return x * weight

    def back(self, form):
        return form * self.weight


class Conv(Linear):
    """A convolution of images (C, H, W) -> (O, H', W')."""

    def __init__(self, weight, bias, shape, strides, pads, dilations):
        channels, height, width = shape
        outs, _, kernel_height, kernel_width = weight.shape
        self.strides, self.dilations, self.pads, self.channels = strides, dilations, pads, channels
        self.padded = height + pads[0] + pads[2], width + pads[1] + pads[3]
        spans = [(k - 1) * d + 1 for k, d in zip((kernel_height, kernel_width), dilations)]
        self.made = tuple((p - span) // s + 1 for p, span, s in zip(self.padded, spans, strides))
        require(min(self.made) > 0, "a convolution's kernel is larger than its image.")
        self.inner = slice(pads[0], pads[0] + height), slice(pads[1], pads[1] + width)
        self.shape, self.outs = shape, outs
        self.prepare(weight, np.repeat(bias, self.made[0] * self.made[1]), weight[0].size)
        self.n_back = outs * kernel_height * kernel_width

    def windows(self, weight):
        """Yield for every place in the kernel where it looks in the padded image, and its matrix (O, C)."""
        for i in range(weight.shape[2]):
            for j in range(weight.shape[3]):
                where = tuple(
                    slice(k * d, k * d + (m - 1) * s + 1, s)
                    for k, d, s, m in zip((i, j), self.dilations, self.strides, self.made)
                )
                yield (slice(None), slice(None), *where), weight[:, :, i, j]

    def forward(self, x, weight):
        image = np.zeros((len(x), self.channels, *self.padded), dtype=x.dtype)
        image[:, :, self.inner[0], self.inner[1]] = x.reshape(len(x), *self.shape)
        total = np.zeros((self.outs, len(x), *self.made), dtype=x.dtype)
        for where, matrix in self.windows(weight):
            total = total + np.tensordot(matrix, image[where], (1, 1))
        return np.moveaxis(total, 0, 1).reshape(len(x), -1)

    def back(self, form):
        flat = form.reshape(-1, self.outs, *self.made)
        image = np.zeros((self.channels, len(flat), *self.padded))
        for where, matrix in self.windows(self.weight):
            image[where] += np.tensordot(matrix, flat, (0, 1))
        inside = np.moveaxis(image[:, :, self.inner[0], self.inner[1]], 0, 1)
        return np.ascontiguousarray(inside).reshape(*form.shape[:2], -1)


class Take:
    """y = x[index]."""

    def __init__(self, index, size):
        self.index, self.size, self.once = index, size, len(np.unique(index)) == len(index)

    def back(self, form):
        made = np.zeros((*form.shape[:2], self.size))
        if self.once:
            made[:, :, self.index] = form
        else:
            np.add.at(made, (slice(None), slice(None), self.index), form)
        return made


class Sum:
    """y = x_1 + x_2, or x_1 - x_2."""

    def __init__(self, signs):
        self.signs = signs


class Join:
    """Tensors one after the other."""


class Relu:
    """y = max(0, x)."""


class Network:
    """Operations in order; tensor 0 is the input, tensor i + 1 is made by nodes[i] = (operation, its tensors)."""

    def __init__(self, size):
        self.nodes, self.sizes = [], [size]
        self.bends = [False]  # whether a tensor depends on a ReLU

    def add(self, operation, *inputs):
        sizes = [self.sizes[j] for j in inputs]
        if isinstance(operation, Linear):
            made = operation.bias.size
        elif isinstance(operation, Take):
            made = len(operation.index)
        elif isinstance(operation, Join):
            made = sum(sizes)
        else:
            made = sizes[0]
        require(made <= MAX_TENSOR, "a model has a tensor that is too large for this checker.")
        self.nodes.append((operation, inputs))
        self.sizes.append(made)
        self.bends.append(isinstance(operation, Relu) or any(self.bends[j] for j in inputs))
        return len(self.nodes)

    def exact(self, x):
        """The output at one input, in rationals."""
        values = [fractions(x[None])]
        for operation, inputs in self.nodes:
            given = [values[j] for j in inputs]
            if isinstance(operation, Linear):
                made = operation.at(given[0])
            elif isinstance(operation, Take):
                made = given[0][:, operation.index]
            elif isinstance(operation, Sum):
                made = given[0] + operation.signs[1] * given[1]
            elif isinstance(operation, Join):
                made = np.concatenate(given, axis=1)
            else:
                made = np.maximum(given[0], Fraction(0))
            values.append(made)
        return values[-1][0]

    def relu_tensors(self):
        """Tensors that enter ReLUs, the input apart, in order; each is read by one ReLU."""
        found = [inputs[0] for operation, inputs in self.nodes if isinstance(operation, Relu) and inputs[0] > 0]
        require(len(set(found)) == len(found), "two ReLUs read one tensor: this checker does not know that.")
        return found


def interval_of(operation, given):
    """Bounds on what an operation makes of tensors between bounds [(low, high), ...]."""
    low, high = given[0]
    if isinstance(operation, Linear):
        return operation.interval(low, high)
    if isinstance(operation, Take):
        return low[:, operation.index], high[:, operation.index]
    if isinstance(operation, Sum):
        a, b = given[1] if operation.signs[1] > 0 else (-given[1][1], -given[1][0])
        return -up(-(low + a), error(size_of(low) + size_of(a), 1)), up(high + b, error(size_of(high) + size_of(b), 1))
    if isinstance(operation, Join):
        return tuple(np.concatenate(ends, axis=1) for ends in zip(*given))
    return np.maximum(low, 0.0), np.maximum(high, 0.0)


# ============================================================================ linear bounds


class Bounds:
    """A network on n boxes: bounds on every tensor, and linear bounds on forms of tensors.

    slopes[i]: slopes below the ReLU that reads tensor i, (n, 1 or q, size); the usual ones where there are none.
    multipliers[i]: what is added to forms of tensor i, (n, 1, size): m_j x_j >= 0 must hold on the part.
    """

    def __init__(self, network, low, high):
        self.network, self.values = network, [(low, high)]
        self.slopes, self.multipliers, self.cached = {}, {}, {}

    def reach(self, i):
        return np.maximum(np.abs(self.values[i][0]), np.abs(self.values[i][1]))

    def extend(self):
        """Bound the next tensor by the interval of its operation."""
        operation, inputs = self.network.nodes[len(self.values) - 1]
        self.values.append(interval_of(operation, [self.values[j] for j in inputs]))

    def complete(self):
        while len(self.values) <= len(self.network.nodes):
            self.extend()

    def lines(self, i, inputs):
        """Of a ReLU: slope z <= relu(z) <= above z + shift where low <= z <= high."""
        if i not in self.cached:
            low, high = self.values[inputs[0]]
            on, off = low >= 0, high <= 0
            above = np.clip(high / np.where(high > low, high - low, 1.0), 0.0, 1.0)
            above = np.where(np.isfinite(above), above, 1.0)
            # A line is above a convex function on an interval if it is so at both ends.
            shift = np.maximum(-above * low, high * (1.0 - above)) * (1.0 + 16.0 * U) + 1e-300
            shift = np.where(np.isnan(shift), np.inf, shift)
            usual = np.where(on | (~off & (high > -low)), 1.0, 0.0)
            above, shift = np.where(on, 1.0, np.where(off, 0.0, above)), np.where(on | off, 0.0, shift)
            slope = usual[:, None]
            if inputs[0] in self.slopes:
                free = (~on & ~off)[:, None]
                slope = np.where(free, np.clip(self.slopes[inputs[0]], 0.0, 1.0), slope)
            self.cached[i] = slope, above, shift
        return self.cached[i]

    def sizes(self, i, operation, inputs):
        if i not in self.cached:
            self.cached[i] = operation.sizes(size_of(self.reach(inputs[0])))
        return self.cached[i]

    def upper(self, index, form, at_input=None):
        """Forms A (n, q, d) of the input and numbers b (n, q): form . tensor <= A x + b, everywhere on the boxes.

        A is meant as it stands; everything that rounding did to it is in b.
        """
        forms = {index: form}
        if at_input is not None:
            forms[0] = at_input + form if index == 0 else at_input
        offset, slack = np.zeros(form.shape[:2]), np.zeros(form.shape[:2])
        if index == 0 and at_input is not None:
            slack += error(dot(np.abs(forms[0]), self.reach(0)), 1)
        for i in range(index, 0, -1):
            if i not in forms:
                continue
            form = forms.pop(i)
            if i in self.multipliers:
                form = form + self.multipliers[i]
                slack += error(dot(np.abs(form), self.reach(i)), 1)
            operation, inputs = self.network.nodes[i - 1]
            if isinstance(operation, Relu):
                slope, above, shift = self.lines(i, inputs)
                lifted = dot(np.maximum(form, 0.0), shift)
                offset = offset + lifted
                made = [form * np.where(form > 0, above[:, None], slope)]
                slack += error(lifted, form.shape[2]) + error(dot(np.abs(made[0]), self.reach(inputs[0])), 1)
            elif isinstance(operation, Linear):
                made = [operation.back(form)]
                offset = offset + form @ operation.bias
                # The new form is off by u n |c| |L|: that counts |x| times.
                sizes = self.sizes(i, operation, inputs)
                slack += error(dot(np.abs(form), sizes), operation.n_back + form.shape[2])
            elif isinstance(operation, Take):
                made = [operation.back(form)]
                if not operation.once:
                    slack += error(dot(np.abs(form), self.reach(i)), form.shape[2])
            elif isinstance(operation, Sum):
                made = [form, operation.signs[1] * form]
            else:
                ends = np.cumsum([self.network.sizes[j] for j in inputs])[:-1]
                made = np.split(form, ends, axis=2)
            for j, part in zip(inputs, made):
                if j in forms:
                    part = forms[j] + part
                    slack += error(dot(np.abs(part), self.reach(j)), 1)
                forms[j] = part
            slack += error(np.abs(offset), 1) + sum(1e-300 * self.reach(j).sum(axis=1)[:, None] for j in inputs)
        made = forms.get(0)
        if made is None:
            made = np.zeros((*offset.shape, self.network.sizes[0]))
        return made, up(offset, 2.0 * slack + 1e-300)

    def largest(self, form, offset):
        """The largest value of A x + b on the boxes."""
        low, high = self.values[0]
        value = dot(np.maximum(form, 0.0), high) + dot(np.minimum(form, 0.0), low) + offset
        slack = error(dot(size_of(form), size_of(self.reach(0))) + size_of(offset), form.shape[2] + 2)
        return up(value, slack)

    def tighten(self, i, rows=None):
        """Improve the bounds on tensor i, by linear bounds of the entries whose sign is open."""
        low, high = (end.copy() for end in self.values[i])
        is_open = (low < 0) & (high > 0)
        most_open, n = int(is_open.sum(axis=1).max()), len(low)
        entries = np.argsort(~is_open, axis=1, kind="stable")[:, :most_open]  # of every box its own
        step = max(1, BLOCK // (2 * n * max(self.network.sizes[: i + 1])))
        boxes = np.arange(n)[:, None]
        for start in range(0, most_open, step):
            part = entries[:, start : start + step]
            k = part.shape[1]
            form = np.zeros((n, 2 * k, self.network.sizes[i]))
            form[boxes, np.arange(k), part], form[boxes, k + np.arange(k), part] = 1.0, -1.0
            most = self.largest(*self.upper(i, form))
            high[boxes, part] = np.minimum(high[boxes, part], most[:, :k])
            low[boxes, part] = np.maximum(low[boxes, part], -most[:, k:])
        # Both are true: where they cross, there is no input, and any bounds are true.
        self.values[i] = np.minimum(low, high), np.maximum(low, high)


class Zonotope:
    """A tensor as c + sum_i g_i e_i + rho with unknowns |e_i| <= 1 that tensors share, and |rho| <= r (DeepZ).

    c (n, size), g (n, k, size), r (n, size). Rounding and unknowns for which there is no room are in r.
    """

    def __init__(self, c, g, r):
        self.c, self.g, self.r = c, g, r

    @staticmethod
    def of_box(low, high):
        c = low / 2 + high / 2
        radius = np.nextafter(np.maximum(high - c, c - low), np.inf)
        return Zonotope(c, radius[:, None] * np.eye(low.shape[1]), np.zeros(low.shape))

    def size(self):
        return np.abs(self.c) + np.abs(self.g).sum(axis=1) + self.r

    def range(self):
        radius = np.abs(self.g).sum(axis=1) + self.r
        slack = error(np.abs(self.c) + radius, self.g.shape[1] + 4)
        return -up(radius - self.c, slack), up(self.c + radius, slack)

    def wide(self, k):
        """Generators with zeros for unknowns that this tensor does not have."""
        return np.concatenate([self.g, np.zeros((len(self.g), k - self.g.shape[1], self.g.shape[2]))], axis=1)

    @staticmethod
    def carried(operation, given, lines, most):
        """What an operation makes of zonotopes; lines are those of a ReLU."""
        z = given[0]
        n, k = z.g.shape[:2]
        if isinstance(operation, Linear):
            images = operation.forward(z.g.reshape(n * k, -1), operation.weight).reshape(n, k, -1)
            both = [operation.forward(z.r, part) for part in (operation.positive, operation.negative)]
            slack = error(operation.sizes(size_of(z.size())), operation.n_terms + k + 8)
            centre = operation.forward(z.c, operation.weight) + operation.bias
            return Zonotope(centre, images, both[0] + both[1] + 2.0 * slack)
        if isinstance(operation, Take):
            return Zonotope(z.c[:, operation.index], z.g[:, :, operation.index], z.r[:, operation.index])
        if isinstance(operation, (Sum, Join)):
            k = max(each.g.shape[1] for each in given)
            wide = [each.wide(k) for each in given]
            if isinstance(operation, Join):
                r = np.concatenate([each.r for each in given], axis=1)
                return Zonotope(np.concatenate([each.c for each in given], axis=1), np.concatenate(wide, axis=2), r)
            sign, other = operation.signs[1], given[1]
            slack = error(size_of(z.size()) + size_of(other.size()), k + 4)
            return Zonotope(z.c + sign * other.c, wide[0] + sign * wide[1], z.r + other.r + 2.0 * slack)
        # A ReLU lies between above z and above z + shift: half of shift, and as much again to either side.
        _, above, shift = lines
        half = shift / 2
        r = above * z.r + 2.0 * error(above * size_of(z.size()) + shift, 8)
        room = min(int((half > 0).sum(axis=1).max()), max(0, (most - k) // 2))
        which, rows = np.argsort(-half, axis=1, kind="stable")[:, :room], np.arange(n)[:, None]
        new = np.zeros((n, room, half.shape[1]))
        new[rows, np.arange(room), which] = half[rows, which]
        rest = half.copy()
        rest[rows, which] = 0.0
        return Zonotope(above * z.c + half, np.concatenate([z.g * above[:, None], new], axis=1), r + rest)


def dot(form, values):
    """c . v for forms (n, q, size) and values (n or 1, size), (n, q); infinite or no number where a sum is."""
    return np.matmul(form, values[:, :, None])[:, :, 0]


# ============================================================================ reading models


class Reader:
    """Turns an ONNX graph into operations of a network. Names stand for constants or for (tensor, shape)."""

    def __init__(self, network, data, tensor):
        try:
            graph = onnx.load_from_string(data).graph
        except Exception:
            raise Rejected("a model is no ONNX file.") from None
        self.network, self.known, self.first = network, {}, len(network.nodes)
        read = [name for node in graph.node for name in node.input] + [value.name for value in graph.output]
        self.reused, self.shared = {name for name, n in Counter(read).items() if n > 1}, set()
        for initializer in graph.initializer:
            self.known[initializer.name] = self.constant(initializer)
        inputs = [value for value in graph.input if value.name not in self.known]
        require(len(inputs) == 1 and len(graph.output) == 1, "a model needs one input and one output.")
        dims = inputs[0].type.tensor_type.shape.dim
        shape = tuple(d.dim_value if d.dim_value > 0 else 1 for d in dims)
        require(math.prod(shape) == network.sizes[tensor], "a model has another number of inputs than the claim says.")
        self.known[inputs[0].name] = tensor, shape
        for node in graph.node:
            self.read(node)
        self.output = self.tensor(graph.output[0].name)[0]

    def constant(self, proto):
        require(math.prod(proto.dims) <= MAX_TENSOR, "a model has a constant that is too large for this checker.")
        values = numpy_helper.to_array(proto)
        if values.dtype.kind == "f" and values.dtype.itemsize in (2, 4, 8):
            return values.astype(np.float64)
        require(values.dtype.kind in "iu", "a model has a constant that is neither float nor integer.")
        return values.astype(np.int64)

    def tensor(self, name):
        value = self.known.get(name)
        require(isinstance(value, tuple), f"the model takes {name[:80]!r}, which is no tensor.")
        return value

    def numbers(self, name, kind):
        value = self.known.get(name)
        good = isinstance(value, np.ndarray) and value.dtype.kind == kind
        require(good, f"the model takes {name[:80]!r}, which is no constant of the right type.")
        return value

    def read(self, node):
        require(node.domain in ("", "ai.onnx"), "a model uses operations of another domain.")
        method = getattr(self, "read_" + node.op_type.lower(), None)
        require(method is not None, f"a model uses the operation {node.op_type[:40]}, which this checker does not know.")
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        require(node.output and node.output[0] not in self.known, "a model makes a tensor twice.")
        made = self.known[node.output[0]] = method(list(node.input), attributes)
        if node.output[0] in self.reused and isinstance(made, tuple):
            self.shared.add(made[0])  # under whatever name

    # Operations that only move numbers: NumPy moves the positions, whatever they are.

    def moved(self, name, move):
        value = self.known.get(name)
        if isinstance(value, np.ndarray):
            return move(value)
        tensor, shape = self.tensor(name)
        places = move(np.arange(math.prod(shape)).reshape(shape))
        if np.array_equal(places.ravel(), np.arange(math.prod(shape))):
            return tensor, places.shape
        require(0 < places.size <= MAX_TENSOR, "a model makes a tensor of a size that this checker does not take.")
        return self.network.add(Take(places.ravel(), math.prod(shape)), tensor), places.shape

    def read_constant(self, names, attributes):
        require(set(attributes) == {"value"}, "a model has a constant in a form that this checker does not know.")
        return self.constant(attributes["value"])

    def read_identity(self, names, attributes):
        return self.known.get(names[0])

    def read_dropout(self, names, attributes):
        require(len(names) < 3, "a model drops out at random.")
        return self.known.get(names[0])

    def read_flatten(self, names, attributes):
        axis = attributes.get("axis", 1)
        return self.moved(names[0], lambda v: v.reshape(math.prod(v.shape[:axis]), -1))

    def read_reshape(self, names, attributes):
        target = [int(n) for n in self.numbers(names[1], "i").ravel()]
        require(not attributes.get("allowzero"), "a model reshapes in a way that this checker does not know.")
        return self.moved(names[0], lambda v: v.reshape([v.shape[i] if n == 0 else n for i, n in enumerate(target)]))

    def read_transpose(self, names, attributes):
        return self.moved(names[0], lambda v: v.transpose(attributes.get("perm")))

    def axes(self, names, attributes):
        if "axes" in attributes:
            return tuple(attributes["axes"])
        return tuple(int(i) for i in self.numbers(names[1], "i").ravel())

    def read_squeeze(self, names, attributes):
        return self.moved(names[0], lambda v: np.squeeze(v, self.axes(names, attributes)))

    def read_unsqueeze(self, names, attributes):
        return self.moved(names[0], lambda v: np.expand_dims(v, self.axes(names, attributes)))

    def read_gather(self, names, attributes):
        return self.moved(names[0], lambda v: np.take(v, self.numbers(names[1], "i"), axis=attributes.get("axis", 0)))

    def read_slice(self, names, attributes):
        starts, ends, *rest = (self.numbers(name, "i").ravel().tolist() for name in names[1:])
        axes = rest[0] if rest else list(range(len(starts)))
        steps = rest[1] if len(rest) > 1 else [1] * len(starts)

        def sliced(v):
            where = [slice(None)] * v.ndim
            for axis, start, end, step in zip(axes, starts, ends, steps):
                require(step > 0, "a model slices backwards: this checker does not know that.")
                where[axis] = slice(start, end, step)
            return v[tuple(where)]

        return self.moved(names[0], sliced)

    def read_concat(self, names, attributes):
        values = [self.tensor(name) for name in names]
        sizes = [math.prod(shape) for _, shape in values]
        starts = np.cumsum([0, *sizes[:-1]])
        blocks = [start + np.arange(n).reshape(shape) for start, n, (_, shape) in zip(starts, sizes, values)]
        places = np.concatenate(blocks, axis=attributes["axis"])
        joined = self.network.add(Join(), *(tensor for tensor, _ in values))
        return self.network.add(Take(places.ravel(), sum(sizes)), joined), places.shape

    # Operations that compute.

    def read_relu(self, names, attributes):
        tensor, shape = self.tensor(names[0])
        return self.network.add(Relu(), tensor), shape

    def scaled(self, name, weight, bias, exact=None):
        """weight x + bias, with constants that are broadcast."""
        tensor, shape = self.tensor(name)
        full = np.broadcast_shapes(shape, weight.shape, bias.shape)
        require(math.prod(full) == math.prod(shape), "a model repeats a tensor: this checker does not know that.")
        weight, bias = (np.broadcast_to(v, full).ravel() for v in (weight, bias))
        before = self.network.nodes[tensor - 1][0] if tensor == len(self.network.nodes) > self.first else None
        if isinstance(before, Dense) and (weight == 1).all() and not before.bias.any() and tensor not in self.shared:
            before.prepare(before.weight, bias, before.n_terms)  # x W + b in one step
            return tensor, full
        exact = None if exact is None else np.broadcast_to(exact, full).ravel()
        return self.network.add(Scale(weight, bias, exact), tensor), full

    def added(self, names, sign):
        first, second = (self.known.get(name) for name in names)
        if isinstance(second, np.ndarray):
            return self.scaled(names[0], np.ones(()), sign * self.numbers(names[1], "f"))
        if isinstance(first, np.ndarray):
            return self.scaled(names[1], np.full((), float(sign)), self.numbers(names[0], "f"))
        (a, shape), (b, other) = self.tensor(names[0]), self.tensor(names[1])
        require(shape == other, "a model adds tensors of different shapes: this checker does not know that.")
        return self.network.add(Sum((1, sign)), a, b), shape

    def read_add(self, names, attributes):
        return self.added(names, 1)

    def read_sub(self, names, attributes):
        return self.added(names, -1)

    def read_neg(self, names, attributes):
        return self.scaled(names[0], -np.ones(()), np.zeros(()))

    def read_mul(self, names, attributes):
        names = names if isinstance(self.known.get(names[1]), np.ndarray) else names[::-1]
        return self.scaled(names[0], self.numbers(names[1], "f"), np.zeros(()))

    def read_div(self, names, attributes):
        divisor = self.numbers(names[1], "f")
        require((divisor != 0).all(), "a model divides by zero.")
        inverse = np.array([1 / Fraction(v) for v in divisor.ravel().tolist()], dtype=object).reshape(divisor.shape)
        return self.scaled(names[0], 1.0 / divisor, np.zeros(()), inverse)  # 1 / divisor is off by u: see `error`

    def read_matmul(self, names, attributes):
        weight = self.numbers(names[1], "f")
        tensor, shape = self.tensor(names[0])
        require(weight.ndim == 2 and shape[-1:] == weight.shape[:1], "a model multiplies matrices that do not fit.")
        rows = math.prod(shape[:-1])
        operation = Dense(weight, np.zeros(rows * weight.shape[1]), rows)
        return self.network.add(operation, tensor), (*shape[:-1], weight.shape[1])

    def read_gemm(self, names, attributes):
        plain = [attributes.get(name, 1.0) for name in ("alpha", "beta")] == [1.0, 1.0] and not attributes.get("transA")
        require(plain, "a model has a Gemm of a kind that this checker does not know.")
        weight = self.numbers(names[1], "f")
        weight = weight.T if attributes.get("transB") else weight
        tensor, shape = self.tensor(names[0])
        require(weight.ndim == 2 and len(shape) == 2 and shape[1] == len(weight), "a model has a Gemm that does not fit.")
        made = shape[0], weight.shape[1]
        bias = self.numbers(names[2], "f") if len(names) > 2 and names[2] else np.zeros(())
        operation = Dense(np.ascontiguousarray(weight), np.broadcast_to(bias, made).ravel(), shape[0])
        return self.network.add(operation, tensor), made

    def read_conv(self, names, attributes):
        weight = self.numbers(names[1], "f")
        tensor, shape = self.tensor(names[0])
        fits = weight.ndim == 4 and len(shape) == 4 and shape[0] == 1 and shape[1] == weight.shape[1]
        plain = attributes.get("group", 1) == 1 and attributes.get("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID")
        require(fits and plain, "a model has a convolution of a kind that this checker does not know.")
        strides, dilations = (list(attributes.get(name, [1, 1])) for name in ("strides", "dilations"))
        pads = list(attributes.get("pads", [0] * 4)) if attributes.get("auto_pad", b"NOTSET") == b"NOTSET" else [0] * 4
        good = len(strides) == len(dilations) == 2 and len(pads) == 4 and min(strides + dilations) > 0 and min(pads) >= 0
        require(good and max(pads) <= 1000, "a model has a convolution of a kind that this checker does not know.")
        bias = self.numbers(names[2], "f") if len(names) > 2 and names[2] else np.zeros(len(weight))
        require(bias.shape == (len(weight),), "a model has a convolution whose bias does not fit.")
        operation = Conv(weight, bias, shape[1:], strides, pads, dilations)
        return self.network.add(operation, tensor), (1, len(weight), *operation.made)


# ============================================================================ the certificate


class Certificate:
    """A certificate's claim and arrays, checked for their form."""

    def __init__(self, data):
        require(len(data) <= MAX_FILE, "the certificate has more than 100 MB.")
        require(len(data) >= HEAD.size, "this is no certificate.")
        magic, version, n_text, n_body, digest = HEAD.unpack_from(data)
        require(magic == MAGIC, "this is no certificate.")
        require(version == VERSION, f"this certificate has version {version}; this checker knows version {VERSION}.")
        require(n_text <= n_body <= MAX_UNPACKED, "the certificate is larger than certificates may be.")
        body = zlib.decompressobj().decompress(data[HEAD.size :], n_body + 1)
        require(len(body) == n_body, "the certificate is damaged: its length is another one.")
        require(hashlib.sha256(body).digest() == digest, "the certificate is damaged: its checksum does not fit.")
        self.claim = json.loads(body[:n_text].decode())
        require(isinstance(self.claim, dict), "the certificate has no claim.")
        self.arrays, at = {}, n_text
        for name, kind, shape in self.claim["arrays"]:
            require(kind in ("|u1", "<u2", "<i4", "<f4", "<f8"), "the certificate has an array of another type.")
            require(all(isinstance(n, int) and 0 <= n <= n_body for n in shape), "the certificate has a bad array.")
            count = math.prod(shape)
            require(count <= n_body, "the certificate has an array that is larger than itself.")
            self.arrays[name] = np.frombuffer(body, np.dtype(kind), count, at).reshape(shape)
            at += count * np.dtype(kind).itemsize
        require(at == n_body, "the certificate has bytes that belong to nothing.")
        self.read_claim()

    def array(self, name, kind, *shape):
        """An array of a type ("u", "i" or "f") and shape; -1 stands for any length."""
        made = self.arrays.get(name)
        good = made is not None and made.dtype.kind in ("ui" if kind == "i" else kind) and made.ndim == len(shape)
        good = good and all(want in (-1, have) for want, have in zip(shape, made.shape))
        require(good, f"the certificate's array {str(name)[:40]!r} is missing, or not as it must be.")
        made = made.astype(np.float64 if kind == "f" else np.int64)
        return made

    def integers(self, name, least):
        values = self.claim.get(name)
        good = isinstance(values, list) and values and all(type(v) is int and least <= v < 2**31 for v in values)
        require(good and len(values) <= 64, f"the certificate's claim has a bad entry {name!r}.")
        return values

    def read_claim(self):
        claim = self.claim
        require(claim.get("claim") == "verify", "the certificate has a claim of another kind.")
        self.verdict = claim.get("verdict")
        require(self.verdict in ("holds", "violated", "undecided"), "the certificate has no verdict.")
        self.models = claim.get("models")
        good = isinstance(self.models, list) and 0 < len(self.models) <= 64
        require(good and all(isinstance(m, dict) for m in self.models), "the certificate names no models.")
        self.n_inputs, self.n_outputs = self.integers("network_inputs", 1), self.integers("network_outputs", 1)
        self.networks, self.d = self.integers("networks", 0), claim.get("inputs")
        same = len(self.networks) == len(self.n_inputs) == len(self.n_outputs)
        require(same and max(self.networks) < len(self.models), "the certificate's networks do not fit its models.")
        require(type(self.d) is int and 0 < self.d <= MAX_TENSOR, "the certificate's claim has a bad number of inputs.")
        self.reads = [np.arange(self.d)]
        if "reads" in self.arrays:
            flat = self.array("reads", "i", sum(self.n_inputs))
            require(flat.min() >= 0 and flat.max() < self.d, "a network reads inputs that are not there.")
            self.reads = np.split(flat, np.cumsum(self.n_inputs)[:-1])
        require([len(r) for r in self.reads] == self.n_inputs, "the networks' inputs are not those of the claim.")
        k = sum(self.n_outputs)
        self.boxes = self.array("boxes", "f", -1, 2, self.d)
        ordered = np.isfinite(self.boxes).all() and (self.boxes[:, 0] <= self.boxes[:, 1]).all()
        require(ordered, "a box of the claim is empty or not finite.")
        self.set_box, counts = self.array("set_box", "i", -1), self.array("set_rows", "i", -1)
        good = len(self.set_box) == len(counts) and (counts >= 0).all() and counts.sum() < 2**31
        require(good and (self.set_box >= 0).all() and (self.set_box < len(self.boxes)).all(), "the claim's sets are bad.")
        total = int(counts.sum())
        self.rows, self.limits = self.array("rows", "f", total, k), self.array("limits", "f", total)
        self.strict = self.array("strict", "i", total) != 0
        self.input_rows = self.array("input_rows", "f", total, self.d) if "input_rows" in self.arrays else None
        finite = [self.rows, self.limits, *([] if self.input_rows is None else [self.input_rows])]
        require(all(np.isfinite(a).all() for a in finite), "the claim has numbers that are not finite.")
        self.ends = np.concatenate([[0], np.cumsum(counts)])

    def rows_of(self, s):
        """The rows of a set: of outputs, of inputs, limits."""
        part = slice(int(self.ends[s]), int(self.ends[s + 1]))
        inputs = np.zeros((part.stop - part.start, self.d)) if self.input_rows is None else self.input_rows[part]
        return self.rows[part], inputs, self.limits[part]

    def network(self, data):
        """The networks of the claim side by side, reading the inputs x."""
        made, outputs = Network(self.d), []
        for model, reads, size in zip(self.networks, self.reads, self.n_outputs):
            own = 0 if np.array_equal(reads, np.arange(self.d)) else made.add(Take(reads, self.d), 0)
            output = Reader(made, data[model], own).output
            require(made.sizes[output] == size, "a model has another number of outputs than the claim says.")
            outputs.append(output)
        if len(outputs) > 1 or outputs[0] != len(made.nodes):
            made.add(Join(), *outputs)
        require(made.nodes, "a model does nothing.")
        return made

    def print_claim(self, write):
        for i, model in enumerate(self.models):
            write(f"model {i + 1}: sha256 {model.get('sha256')}")
        if len(self.networks) > 1 or "reads" in self.arrays:
            for i, (model, reads) in enumerate(zip(self.networks, self.reads)):
                write(f"network {i + 1}: model {model + 1}, reads " + ", ".join(f"X_{r}" for r in reads))
        for b, (low, high) in enumerate(self.boxes):
            write(f"box {b + 1}: " + ", ".join(f"{a!r} <= X_{i} <= {z!r}" for i, (a, z) in enumerate(zip(low.tolist(), high.tolist()))))
        for s, box in enumerate(self.set_box):
            rows, inputs, limits = self.rows_of(s)
            strict = self.strict[self.ends[s] : self.ends[s + 1]]
            said = [
                f"{words(inputs[r], rows[r])} {'<' if strict[r] else '<='} {float(limits[r])!r}" for r in range(len(limits))
            ]
            write(f"unsafe set {s + 1}: box {box + 1}" + "".join(f" and {each}" for each in said))


def words(inputs, outputs):
    terms = [f"{c!r} X_{i}" for i, c in enumerate(inputs.tolist()) if c]
    terms += [f"{c!r} Y_{i}" for i, c in enumerate(outputs.tolist()) if c]
    return " + ".join(terms) or "0"


# ============================================================================ trees of boxes


def tree_of(kinds, start, places, place):
    """Read a tree from its root down. Returns its second children and places by position, and where it ends."""
    second, where, waiting = {}, {}, [(-1, -1)]
    at = start
    while waiting:
        parent, _ = waiting.pop()
        require(at < len(kinds), "a tree of cuts ends too early.")
        if parent >= 0:
            second[parent] = at
        kind = kinds[at]
        require(kind in (OPEN, LEAF, CUT, SHRUNK, SHRUNK_AND_CUT), "a tree has a node of an unknown kind.")
        if kind in (CUT, SHRUNK_AND_CUT):
            require(place < len(places), "a tree has more cuts than places.")
            where[at] = places[place]
            place += 1
            waiting += [(at, 1), (-1, 0)]
        elif kind == SHRUNK:
            waiting.append((-1, 0))
        at += 1
    return second, where, at, place


class BoxCheck:
    """Goes through the tree of boxes of one set."""

    def __init__(self, network, rows, inputs, limits, deadline):
        self.network, self.rows, self.inputs, self.limits, self.deadline = network, rows, inputs, limits, deadline
        self.n_boxes = self.n_extra = 0
        widest = max(network.sizes)
        self.batch = max(1, min(64, BLOCK // (widest * (network.sizes[0] + UNKNOWNS))))

    def bound(self, low, high, thorough):
        """Upper bounds (n, q) on limit - row, and the forms A and their largest values behind them."""
        require(time.monotonic() < self.deadline, "checking takes longer than --seconds allows.")
        self.n_boxes += len(low)
        bounds, n = Bounds(self.network, low, high), len(low)
        made = [Zonotope.of_box(low, high)]
        for i, (operation, inputs) in enumerate(self.network.nodes, 1):
            if isinstance(operation, Relu) and thorough and self.network.bends[inputs[0]]:
                bounds.tighten(inputs[0])
            bounds.extend()
            lines = bounds.lines(i, inputs) if isinstance(operation, Relu) else None
            made.append(Zonotope.carried(operation, [made[j] for j in inputs], lines, low.shape[1] + UNKNOWNS))
            if lines is None:  # bounds cross only where there is no input
                (a, b), (c, d) = bounds.values[i], made[i].range()
                bounds.values[i] = np.minimum(np.maximum(a, c), np.minimum(b, d)), np.maximum(np.maximum(a, c), np.minimum(b, d))
        form = np.broadcast_to(-self.rows, (n, *self.rows.shape))
        at_input = np.broadcast_to(-self.inputs, (n, *self.inputs.shape))
        form, offset = bounds.upper(len(self.network.nodes), form, at_input if self.inputs.any() else None)
        offset = up(offset + self.limits, error(np.abs(offset) + np.abs(self.limits), 1))
        return bounds.largest(form, offset), form

    def shrink(self, low, high, ends, form):
        """Cut off where A x + b < 0 for a row: x_j >= high_j - end / A_j where A_j > 0, and likewise."""
        ends = np.maximum(ends, 0.0)[:, :, None]
        reach = ends / np.abs(form) * (1.0 + 16.0 * U) + 1e-300
        reach = np.where(np.isfinite(reach), reach, np.inf)
        least = np.where(form > 0, np.nextafter(high[:, None] - reach, -np.inf), -np.inf).max(axis=1)
        most = np.where(form < 0, np.nextafter(low[:, None] + reach, np.inf), np.inf).min(axis=1)
        return np.maximum(low, least), np.minimum(high, most)

    def run(self, low, high, kinds, start, places, place):
        """Check a tree from a position on; returns where it and its places end."""
        second, where, end, last = tree_of(kinds, start, places, place)
        # A waiting box: its node, or -k for one that is cut here for the k-th time; its corners.
        waiting = [(start, low, high)]
        while waiting:
            taken = []
            while waiting and len(taken) < self.batch:
                node, low, high = waiting.pop()
                require(node < 0 or kinds[node] != OPEN, "a part of the set is open: the proof is not finished.")
                if node >= 0 and kinds[node] == CUT:
                    self.cut(waiting, (node + 1, second[node]), low, high, where[node])
                else:
                    taken.append((node, low, high))
            if taken:
                self.settle(taken, waiting, kinds, second, where)
        return end, last

    def settle(self, taken, waiting, kinds, second, where):
        nodes = [node for node, _, _ in taken]
        low, high = (np.array([each[k] for each in taken]) for k in (1, 2))
        ends, form = self.bound(low, high, False)
        if any(node < 0 for node in nodes):  # of two true bounds, take the better
            others, other_form = self.bound(low, high, True)
            form, ends = np.where((others < ends)[:, :, None], other_form, form), np.minimum(ends, others)
        smaller = self.shrink(low, high, ends, form)
        empty = (ends < 0).any(axis=1) | (smaller[0] > smaller[1]).any(axis=1)
        for k in np.flatnonzero(~empty)[::-1]:
            node, low, high = nodes[k], smaller[0][k], smaller[1][k]
            if node >= 0 and kinds[node] == SHRUNK:
                waiting.append((node + 1, low, high))
            elif node >= 0 and kinds[node] == SHRUNK_AND_CUT:
                self.cut(waiting, (node + 1, second[node]), low, high, where[node])
            else:
                depth = 0 if node >= 0 else -node
                self.n_extra += 1
                require(depth < EXTRA_CUTS, "a box that the certificate calls proved is not.")
                require(self.n_extra <= 1000 + len(kinds), "too many boxes that the certificate calls proved are not.")
                best = np.argmin(ends[k])
                self.cut(waiting, (-depth - 1,) * 2, low, high, np.argmax(np.abs(form[k, best]) * (high - low)))

    def cut(self, waiting, children, low, high, axis):
        require(0 <= axis < len(low), "a tree cuts along an input that is not there.")
        middle = low[axis] / 2 + high[axis] / 2
        left, right = high.copy(), low.copy()
        left[axis] = right[axis] = min(max(middle, low[axis]), high[axis])
        waiting += [(children[1], right, high), (children[0], low, left)]


def check_boxes(certificate, network, proof, deadline):
    kinds, places = certificate.array("box_kinds", "i", -1).tolist(), certificate.array("box_places", "i", -1).tolist()
    at = place = n_boxes = 0
    for s in certificate.array("box_sets", "i", -1).tolist():
        require(0 <= s < len(proof), "the certificate has a proof of a set that is not there.")
        if proof[s] != BOXES:
            _, _, at, place = tree_of(kinds, at, places, place)
            continue
        low, high = certificate.boxes[certificate.set_box[s]]
        check = BoxCheck(network, *certificate.rows_of(s), deadline)
        require(len(check.limits), "a set without inequalities is its whole box.")
        at, place = check.run(low, high, kinds, at, places, place)
        n_boxes += check.n_boxes
        yield s
    yield f"{n_boxes} boxes bounded"


# ============================================================================ trees of signs


class Root:
    """Bounds on what enters ReLUs, as the certificate states them, on one box; they are proved first."""

    def __init__(self, network, low, high, take, deadline):
        self.bounds = Bounds(network, low[None], high[None])
        self.tensors, self.open, self.starts = network.relu_tensors(), {}, {}
        self.n_units = 0
        for operation, inputs in network.nodes:
            if isinstance(operation, Relu) and inputs[0] > 0:
                self.settle(inputs[0], take, deadline)
            self.bounds.extend()

    def settle(self, i, take, deadline):
        """Prove what is stated about tensor i: by intervals, else by linear bounds, with slopes if there are."""
        size = self.bounds.network.sizes[i]
        low, high = take("root_lower", size), take("root_upper", size)
        require((low <= high).all(), "bounds inside the model are empty.")
        entries = take("root_entries", int(take("root_counts", 1)[0]))
        slopes = take("root_slopes", len(entries) * self.n_units).reshape(len(entries), self.n_units)
        require((entries >= 0).all() and (entries < 2 * size).all(), "bounds are given of entries that are not there.")
        known = self.bounds.values[i]
        unproved = np.concatenate([2 * np.flatnonzero(known[1][0] > high), 2 * np.flatnonzero(known[0][0] < low) + 1])
        own = dict(zip(entries.tolist(), range(len(entries))))
        special = np.array([e for e in unproved.tolist() if e in own], np.int64)
        usual = np.array([e for e in unproved.tolist() if e not in own], np.int64)
        step = max(1, BLOCK // max(self.bounds.network.sizes[: i + 1]))
        for group in (usual, special):
            for start in range(0, len(group), step):
                require(time.monotonic() < deadline, "checking takes longer than --seconds allows.")
                part = group[start : start + step]
                if group is special:
                    self.give_slopes(slopes[[own[e] for e in part.tolist()]][None])
                form = np.zeros((1, len(part), size))
                form[0, np.arange(len(part)), part // 2] = np.where(part % 2, -1.0, 1.0)
                most = self.bounds.largest(*self.bounds.upper(i, form))[0]
                stated = np.where(part % 2, -low[part // 2], high[part // 2])
                require((most <= stated).all(), "a bound inside the model is tighter than it is proved to be.")
        self.give_slopes(None)
        self.bounds.values[i] = low[None], high[None]
        self.open[i] = np.flatnonzero((low < 0) & (high > 0))
        self.starts[i] = self.n_units
        self.n_units += len(self.open[i])

    def give_slopes(self, codes):
        """Use slopes (n, q, units) in steps of 1 / 15, or the usual ones."""
        self.bounds.slopes, self.bounds.cached = ({} if codes is None else self.spread(codes)), {}

    def spread(self, codes):
        """Slopes of all units of open sign as arrays (n, q, size) by tensor."""
        made = {}
        for i, open_ in self.open.items():
            made[i] = np.zeros((*codes.shape[:2], self.bounds.network.sizes[i]))
            made[i][:, :, open_] = codes[:, :, self.starts[i] : self.starts[i] + len(open_)] / SLOPE_STEPS
        return made

    def check_leaves(self, leaves, rows, inputs, limits):
        """Prove leaves [(units, signs, slopes, multipliers, weights)] of one set, all at once."""
        network, n = self.bounds.network, len(leaves)
        bounds = Bounds(network, *self.bounds.values[0])
        bounds.values = list(self.bounds.values)
        bounds.slopes = self.spread(np.array([leaf[2] for leaf in leaves])[:, None])
        for i, open_ in self.open.items():
            low, high = (np.repeat(end, n, axis=0) for end in self.bounds.values[i])
            multipliers = np.zeros((n, 1, network.sizes[i]))
            used = False
            for k, (units, signs, _, values, _) in enumerate(leaves):
                here = (units >= self.starts[i]) & (units < self.starts[i] + len(open_))
                if here.any():
                    at, sign, used = open_[units[here] - self.starts[i]], signs[here], True
                    low[k, at] = np.where(sign > 0, np.maximum(low[k, at], 0.0), low[k, at])
                    high[k, at] = np.where(sign < 0, np.minimum(high[k, at], 0.0), high[k, at])
                    # sign m >= 0, so that m z >= 0 on the part may be added to an upper bound.
                    require((sign * values[here] >= 0).all(), "a multiplier has the wrong sign.")
                    multipliers[k, 0, at] = values[here]
            if used:
                bounds.values[i] = low, high
                bounds.multipliers[i] = multipliers
        weights = np.array([leaf[4] for leaf in leaves])
        require(np.isfinite(weights).all() and (weights >= 0).all(), "weights must not be negative.")
        form, at_input = -(weights @ rows)[:, None], -(weights @ inputs)[:, None]
        constant = weights @ limits
        # What rounding did to the weighted sums.
        reach_in, reach_out = size_of(bounds.reach(0)), size_of(bounds.reach(len(network.nodes)))
        terms = dot(size_of(weights @ np.abs(rows))[:, None], reach_out)[:, 0]
        terms = terms + dot(size_of(weights @ np.abs(inputs))[:, None], reach_in)[:, 0] + weights @ np.abs(limits)
        slack = error(terms, 2 * len(limits) + 4) + 1e-300 * (reach_in.sum() + reach_out.sum())
        form, offset = bounds.upper(len(network.nodes), form, at_input if inputs.any() else None)
        most = bounds.largest(form, offset)[:, 0]
        total = up(most + constant, slack + error(np.abs(most) + np.abs(constant), 2))
        require((total < 0).all(), "a choice of signs that the certificate calls proved is not.")


def check_signs(certificate, network, proof, deadline):
    cursors = {}

    def take(name, n):
        """The next n numbers of an array."""
        if name not in cursors:
            kind = "f" if certificate.arrays.get(name, np.zeros(0)).dtype.kind == "f" else "i"
            cursors[name] = [certificate.array(name, kind, -1), 0]
        values, at = cursors[name]
        require(at + n <= len(values), f"the array {name!r} ends too early.")
        cursors[name][1] = at + n
        return values[at : at + n]

    sets, roots = certificate.array("sign_sets", "i", -1).tolist(), certificate.array("sign_root", "i", -1).tolist()
    kinds, places = certificate.array("sign_kinds", "i", -1).tolist(), certificate.array("sign_places", "i", -1).tolist()
    require(len(sets) == len(roots) and all(0 <= s < len(proof) for s in sets), "the proofs by signs are bad.")
    made, n_leaves, at, place = {}, 0, 0, 0
    box_of = {}
    for s, r in zip(sets, roots):
        require(box_of.setdefault(r, certificate.set_box[s]) == certificate.set_box[s], "a root is used on two boxes.")
    for r in range(max(roots, default=-1) + 1):
        require(r in box_of, "a root is used by no set.")
        made[r] = Root(network, *certificate.boxes[box_of[r]], take, deadline)
    for s, r in zip(sets, roots):
        rows, inputs, limits = certificate.rows_of(s)
        require(len(limits), "a set without inequalities is its whole box.")
        root, waiting = made[r], []
        second, where, end, place = tree_of(kinds, at, places, place)
        batch = max(1, min(64, BLOCK // max(network.sizes)))
        for node, units, signs in walk(kinds, at, second, where):
            require(kinds[node] in (LEAF, OPEN), "a tree of signs has a node of an unknown kind.")
            leaf = take("sign_slopes", root.n_units), take("sign_multipliers", len(units)), take("sign_weights", len(limits))
            if proof[s] != SIGNS:
                continue
            require(kinds[node] == LEAF, "a part of the set is open: the proof is not finished.")
            units, signs = np.array(units, np.int64), np.array(signs, np.int64)
            require(((units >= 0) & (units < root.n_units)).all(), "a tree chooses signs of units that are not there.")
            waiting.append((units, signs, *leaf))
            n_leaves += 1
            if len(waiting) == batch:
                require(time.monotonic() < deadline, "checking takes longer than --seconds allows.")
                root.check_leaves(waiting, rows, inputs, limits)
                waiting = []
        if waiting:
            root.check_leaves(waiting, rows, inputs, limits)
        at = end
        if proof[s] == SIGNS:
            yield s
    yield f"{n_leaves} choices of signs bounded"


def walk(kinds, start, second, where):
    """Yield the ends of a tree of signs in order: position, units and signs on the way there."""
    waiting = [(start, (), ())]
    while waiting:
        node, units, signs = waiting.pop()
        if kinds[node] != CUT:
            yield node, units, signs
            continue
        require(where[node] not in units, "a tree chooses the sign of a unit twice.")
        require(len(units) < 100_000, "a tree is too deep.")
        waiting += [
            (second[node], (*units, where[node]), (*signs, -1)),
            (node + 1, (*units, where[node]), (*signs, 1)),
        ]


# ============================================================================ the rest of the proof


def exact_row(inputs, outputs, x, y):
    """A row's value in rationals, at numbers that are Fractions or floats."""
    pairs = [(c, x[i]) for i, c in enumerate(inputs.tolist()) if c]
    pairs += [(c, y[i]) for i, c in enumerate(outputs.tolist()) if c]
    return sum((Fraction(c) * Fraction(v) for c, v in pairs), Fraction(0))


def check_ends(certificate, network, proof):
    """A strict row whose least value by intervals is its limit, or above: in rationals."""
    for s in np.flatnonzero(proof == ENDS).tolist():
        rows, inputs, limits = certificate.rows_of(s)
        low, high = certificate.boxes[certificate.set_box[s]]
        bounds = Bounds(network, low[None], high[None])
        bounds.complete()
        ends = bounds.values[-1]
        found = False
        for r in range(len(limits)):
            x, y = np.where(inputs[r] > 0, low, high), np.where(rows[r] > 0, ends[0][0], ends[1][0])
            if certificate.strict[certificate.ends[s] + r] and np.isfinite(y[rows[r] != 0]).all():
                found = found or exact_row(inputs[r], rows[r], x, y) >= Fraction(float(limits[r]))
        require(found, f"unsafe set {s + 1} is not seen to be out of reach by intervals.")
        yield s


def outputs_at(network, x):
    """The outputs at one input between two numbers each, and in rationals if that is asked for."""
    bounds = Bounds(network, x[None], x[None])
    bounds.complete()
    yield bounds.values[-1][0][0], bounds.values[-1][1][0]
    work = sum(op.n_terms * op.bias.size for op, _ in network.nodes if isinstance(op, Linear))
    require(work < 2_000_000, "the witness is too close to the limit to be checked for a model of this size.")
    exact = network.exact(x)
    yield exact, exact


def in_set(network, x, rows, inputs, limits, strict):
    """Whether inputs and outputs satisfy all rows: True or False, proved."""
    for low, high in outputs_at(network, x):
        known = [inside_row(*row, x, low, high) for row in zip(rows, inputs, limits, strict)]
        if all(known):
            return True
        if any(k is False for k in known):
            return False
    return False


def inside_row(row, own, limit, strict, x, low, high):
    """Whether one row is satisfied where low <= y <= high: True, False, or None if that is not known."""
    if not all(math.isfinite(v) for v in (*low[row != 0], *high[row != 0])):
        return None
    up_to = exact_row(own, row, x, [high[i] if c > 0 else low[i] for i, c in enumerate(row)])
    at_least = exact_row(own, row, x, [low[i] if c > 0 else high[i] for i, c in enumerate(row)])
    limit = limit if isinstance(limit, Fraction) else Fraction(float(limit))
    if up_to < limit or (up_to == limit and not strict):
        return True
    return False if at_least > limit or (at_least == limit and strict) else None


# ============================================================================ properties (VNN-LIB)

TOKEN = re.compile(r"\(|\)|[^\s()]+")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?$")
VARIABLE = re.compile(r"([XY])_(\d{1,8})$")
MAX_PARTS = 200_000


class PropertyFile:
    """A VNN-LIB 1.0 file as a union of conjunctions: each a box {i: [low, high]} and rows [(coefficients, limit, strict)].

    Read are assertions of and, or, <=, >=, <, > with terms that are linear: enough to compare claims.
    """

    def __init__(self, text):
        text = "\n".join(line.split(";")[0] for line in text.splitlines())
        stack, self.names, self.parts = [[]], set(), [[]]
        for token in TOKEN.findall(text):
            if token == "(":
                require(len(stack) < 100, "the property is nested too deeply.")
                stack.append([])
            elif token == ")":
                require(len(stack) > 1, "the property has a parenthesis too many.")
                stack[-2].append(stack.pop())
            else:
                stack[-1].append(token)
        require(len(stack) == 1, "the property has a parenthesis that is never closed.")
        for statement in stack[0]:
            require(isinstance(statement, list) and statement, "the property has words outside of parentheses.")
            if statement[0] in ("declare-const", "declare-fun"):
                self.names.add(str(statement[1]))
            elif statement[0] == "assert" and len(statement) == 2:
                self.parts = self.both(self.parts, self.alternatives(statement[1]))
            else:
                raise Rejected("the property says what this checker does not read (VNN-LIB 1.0 is read).")

    def both(self, first, second):
        require(len(first) * len(second) <= MAX_PARTS, "the property has too many alternatives for this checker.")
        return [a + b for a in first for b in second]

    def alternatives(self, term):
        """A formula as alternatives, each a list of inequalities (coefficients, limit, strict)."""
        require(isinstance(term, list) and term and isinstance(term[0], str), "the property has no formula in an assertion.")
        head, *rest = term
        if head == "and":
            made = [[]]
            for each in rest:
                made = self.both(made, self.alternatives(each))
            return made
        if head == "or":
            return [part for each in rest for part in self.alternatives(each)]
        known = head in ("<=", ">=", "<", ">") and len(rest) == 2
        require(known, f"the property uses {str(head)[:20]!r}, which this checker does not read.")
        a, b = (self.linear(each) for each in (rest if head[0] == "<" else rest[::-1]))
        form = {v: a.get(v, 0) - b.get(v, 0) for v in {*a, *b} if v}
        return [[({v: c for v, c in form.items() if c}, b.get("", 0) - a.get("", 0), head in "<>")]]

    def linear(self, term):
        """A term as {variable: coefficient}; "" stands for the constant."""
        if isinstance(term, str):
            if NUMBER.match(term):
                return {"": Fraction(term)}
            require(VARIABLE.match(term) and term in self.names, f"the property uses {term[:20]!r}, which is unknown.")
            return {term: Fraction(1)}
        require(len(term) > 1 and term[0] in ("+", "-", "*"), "the property has a term that this checker does not read.")
        parts = [self.linear(each) for each in term[1:]]
        if term[0] == "*":
            made = {"": Fraction(1)}
            for part in parts:
                require(set(made) <= {""} or set(part) <= {""}, "the property multiplies variables.")
                made = {v: c * part.get("", 0) for v, c in made.items()} if set(part) <= {""} else {
                    v: c * made.get("", 0) for v, c in part.items()
                }
            return made
        signs = [1] + [1 if term[0] == "+" else -1] * (len(parts) - 1)
        signs = [-1] if term[0] == "-" and len(parts) == 1 else signs
        made = {}
        for sign, part in zip(signs, parts):
            for v, c in part.items():
                made[v] = made.get(v, 0) + sign * c
        return made

    def split(self, part):
        """A conjunction as bounds of inputs {i: [low, high]}, strict ends, and the other inequalities."""
        box, rows = {}, []
        for form, limit, strict in part:
            if len(form) == 1 and next(iter(form))[0] == "X":
                ((name, c),) = form.items()
                low, high, *out = box.get(int(name[2:]), [None, None, False, False])
                end = limit / c
                if c > 0 and (high is None or end < high or (end == high and strict)):
                    high, out[1] = end, strict
                elif c < 0 and (low is None or end > low or (end == low and strict)):
                    low, out[0] = end, strict
                box[int(name[2:])] = [low, high, *out]
            else:
                rows.append((form, limit, strict))
        return box, rows


def named(inputs, outputs):
    made = {f"X_{i}": Fraction(c) for i, c in enumerate(inputs.tolist()) if c}
    return made | {f"Y_{i}": Fraction(c) for i, c in enumerate(outputs.tolist()) if c}


def contains(certificate, s, corners, box, rows):
    """Whether a conjunction of the file lies in unsafe set s: in its box, and every row of the set follows."""
    low, high = corners[certificate.set_box[s]]
    for i in range(certificate.d):
        if i not in box or box[i][0] is None or box[i][1] is None:
            return False
        if box[i][0] < low[i] or box[i][1] > high[i]:
            return False
    for row, own, limit, strict in zip(*certificate.rows_of(s), certificate.strict[certificate.ends[s] : certificate.ends[s + 1]]):
        wanted, limit = named(own, row), Fraction(float(limit))
        implied = not wanted and (limit > 0 or (limit == 0 and not strict))
        for form, end, sharp in rows:
            factor = proportion(form, wanted)
            implied = implied or (factor and (end * factor < limit or (end * factor == limit and (sharp or not strict))))
        if not implied:
            return False
    return True


def proportion(form, wanted):
    """The number f > 0 with f * form = wanted, or None."""
    if not form or set(form) != set(wanted):
        return None
    name = next(iter(form))
    factor = wanted[name] / form[name]
    return factor if factor > 0 and all(form[v] * factor == c for v, c in wanted.items()) else None


def compare(certificate, text):
    """Reject a proof that no input satisfies other formulas than those of a property file."""
    require("reads" not in certificate.arrays, "--property reads properties of one network.")
    stated = PropertyFile(text)
    inputs = {name for name in stated.names if name.startswith("X_")}
    outputs = {name for name in stated.names if name.startswith("Y_")}
    sizes = len(inputs) == certificate.d and len(outputs) == sum(certificate.n_outputs)
    require(sizes and stated.names == inputs | outputs, "the property file is about other inputs or outputs.")
    corners = [[list(map(Fraction, map(float, end))) for end in box] for box in certificate.boxes]
    likely = 0
    for part in stated.parts:
        box, rows = stated.split(part)
        if any(low is not None and high is not None and low > high for low, high, *_ in box.values()):
            continue
        order = [*range(likely, len(certificate.set_box)), *range(likely)]
        found = next((s for s in order if contains(certificate, s, corners, box, rows)), None)
        if found is None and contradictory(rows):
            continue
        require(found is not None, "the certificate is about another property than the file: a part of it is not covered.")
        likely = (found + 1) % len(order)


def contradictory(rows):
    """Whether inequalities between constants are false."""
    return any(not form and (limit < 0 or (limit == 0 and strict)) for form, limit, strict in rows)


def violates(stated, network, x):
    """Whether an input lies in a property file's set, as written."""
    for part in stated.parts:
        box, rows = stated.split(part)
        if set(box) == set(range(len(x))) and all(inside(float(v), *box[i]) for i, v in enumerate(x)):
            n_out = network.sizes[-1]
            forms = np.array([[float(form.get(f"Y_{j}", 0)) for j in range(n_out)] for form, _, _ in rows]).reshape(-1, n_out)
            own = np.array([[float(form.get(f"X_{i}", 0)) for i in range(len(x))] for form, _, _ in rows]).reshape(-1, len(x))
            exact = all(named(o, f) == form for (form, _, _), f, o in zip(rows, forms, own))
            require(exact, "the property has coefficients that float64 does not hold.")
            if in_set(network, x, forms, own, [limit for _, limit, _ in rows], [strict for _, _, strict in rows]):
                return True
    return False


def inside(v, low, high, open_low, open_high):
    """Whether a number lies in an interval; where no float64 does, the nearest one counts."""
    if low is None or high is None:
        return False
    x = Fraction(v)
    if (low < x or (low == x and not open_low)) and (x < high or (x == high and not open_high)):
        return True
    nearest = float((low + high) / 2)
    empty = not (low <= Fraction(nearest) <= high) and not any(
        low <= Fraction(math.nextafter(nearest, side)) <= high for side in (math.inf, -math.inf)
    )
    return empty and not open_low and not open_high and v == nearest


# ============================================================================ the check


def read_file(path, limit):
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    require(len(data) <= limit, f"{path} is too large.")
    if not path.lower().endswith(".gz"):
        return data
    data = zlib.decompressobj(31).decompress(data, limit + 1)
    require(len(data) <= limit, f"{path} is too large.")
    return data


def check(data, models, text=None, seconds=3600.0, write=print):
    """Check a certificate (bytes) of models (decompressed bytes); returns what was proved, or raises Rejected."""
    deadline = time.monotonic() + seconds
    certificate = Certificate(data)
    certificate.print_claim(write)
    require(len(models) == len(certificate.models), f"the certificate is about {len(certificate.models)} models.")
    for i, (model, named_) in enumerate(zip(models, certificate.models)):
        same = hashlib.sha256(model).hexdigest() == named_.get("sha256")
        require(same, f"model {i + 1} is another file than the one that the certificate is about.")
    network = certificate.network(models)
    n_sets = len(certificate.set_box)
    if certificate.verdict == "violated":
        x, s = certificate.array("witness", "f", certificate.d), certificate.claim.get("witness_set")
        require(np.isfinite(x).all() and type(s) is int and 0 <= s < n_sets, "the witness is none.")
        write("witness: " + ", ".join(f"X_{i} = {float(v)!r}" for i, v in enumerate(x)))
        low, high = certificate.boxes[certificate.set_box[s]]
        require((x >= low).all() and (x <= high).all(), "the witness lies outside of its box.")
        part = slice(int(certificate.ends[s]), int(certificate.ends[s + 1]))
        good = in_set(network, x, *(certificate.rows_of(s)), certificate.strict[part])
        require(good, "the witness does not satisfy the inequalities of its unsafe set.")
        if text is not None:
            require(violates(PropertyFile(text), network, x), "the witness does not violate the property file.")
        return f"violated: the witness lies in unsafe set {s + 1}"
    if text is not None:
        compare(certificate, text)
    require(certificate.verdict == "holds", "the proof is not finished: the verdict is undecided.")
    proof, done, notes = certificate.array("proof", "i", n_sets), set(), []
    ways = check_ends(certificate, network, proof), check_boxes(certificate, network, proof, deadline)
    for way in (*ways, check_signs(certificate, network, proof, deadline)):
        for each in way:
            done.add(each) if isinstance(each, int) else notes.append(each)
    left = sorted(set(range(n_sets)) - done)
    require(not left, f"there is no proof of unsafe set {left[0] + 1 if left else 0}.")
    return f"holds: none of {n_sets} unsafe sets is reached ({', '.join(notes)})"


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Check a proof written by pindown verify --certificate.")
    parser.add_argument("certificate")
    parser.add_argument("models", nargs="+", help=".onnx or .onnx.gz, in the order of the certificate")
    parser.add_argument("--property", help="a VNN-LIB file that the certificate has to prove or refute")
    parser.add_argument("--seconds", type=float, default=3600.0, help="reject what takes longer")
    given = parser.parse_args(arguments)
    try:
        with np.errstate(all="ignore"):
            data = read_file(given.certificate, MAX_FILE)
            models = [read_file(path, MAX_MODEL) for path in given.models]
            text = None if given.property is None else read_file(given.property, MAX_MODEL).decode()
            said = check(data, models, text, given.seconds)
    except Rejected as reason:
        print(f"rejected: {reason}")
        return 1
    except OSError as reason:
        print(f"rejected: {reason.filename}: {reason.strerror}")
        return 1
    except Exception as reason:  # whatever a file makes go wrong: it is no proof
        print(f"rejected: the certificate or a model cannot be read ({type(reason).__name__}).")
        return 1
    print(f"accepted: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

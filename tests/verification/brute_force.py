"""Whether small networks of one or two inputs reach an unsafe set: every cell, in rational numbers."""

from fractions import Fraction
from itertools import pairwise

import numpy as np


def reaches(net, unsafe, slack=0.0):
    """Return whether a ReluNetwork of one or two inputs reaches an unsafe set.

    Every pattern of the units is tried: its cell is a polygon on which all rows are affine, and cut by
    them. The middle of what is left is strictly inside every row that is not constant there.

    Args:
        net: The network.
        unsafe: The set; strict rows count as such.
        slack: What is added to all limits.
    """
    d = net.in_features
    limits = [Fraction(float(t)) + Fraction(slack) for t in unsafe.limits]
    strict = [False] * len(limits) if unsafe.strict is None else unsafe.strict
    for cell, outputs in _cells(net, unsafe.lower, unsafe.upper):
        corners, forms = cell, []
        for i, row in enumerate(unsafe.rows):
            form = _combined(row, outputs)
            if unsafe.input_rows is not None:
                own = [Fraction(float(v)) for v in unsafe.input_rows[i]] + [Fraction(0)] * (3 - d)
                form = [a + b for a, b in zip(form, own, strict=True)]
            form[2] -= limits[i]
            forms.append(form)
            corners = _clipped(corners, form)
        if corners:
            middle = [sum(column) / len(corners) for column in zip(*corners, strict=True)]
            if all(_at(form, middle) < 0 or not s for form, s in zip(forms, strict, strict=True)):
                return True
    return False


def _cells(net, lower, upper):
    """Yield the corners of every cell, and the outputs there as affine forms (a, b, constant)."""
    lows, highs = ([Fraction(float(v)) for v in end] for end in (lower, upper))
    if len(lows) == 1:  # a second input that is 0
        lows, highs = [*lows, Fraction(0)], [*highs, Fraction(0)]
    square = [(x, y) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
    corners = [(highs[0] if x else lows[0], highs[1] if y else lows[1]) for x, y in square]
    units = [[Fraction(int(i == j)) for j in range(3)] for i in range(net.in_features)]
    layers = [(np.asarray(W), np.asarray(b)) for W, b in net.layers]
    yield from _split(layers, corners, units)


def _split(layers, corners, units):
    """Cut a cell at the units of the next layer, one after the other."""
    (W, b), *rest = layers
    made = []
    for row, shift in zip(W, b, strict=True):
        form = _combined(row, units)
        form[2] += Fraction(float(shift))
        made.append(form)
    if not rest:
        yield corners, made
        return
    waiting = [(corners, [])]
    for form in made:
        cut = []
        for part, signs in waiting:
            on, off = _clipped(part, [-v for v in form]), _clipped(part, form)
            cut += [(on, [*signs, form])] if on else []
            cut += [(off, [*signs, [Fraction(0)] * 3])] if off else []
        waiting = cut
    for part, relus in waiting:
        yield from _split(rest, part, relus)


def _combined(row, forms):
    """Return a linear combination of affine forms."""
    weights = [Fraction(float(w)) for w in row]
    return [sum((w * f[i] for w, f in zip(weights, forms, strict=True)), Fraction(0)) for i in range(3)]


def _at(form, point):
    return form[0] * point[0] + form[1] * point[1] + form[2]


def _clipped(corners, form):
    """Return the part of a convex polygon in which a form is not above zero."""
    if not corners:
        return []
    values = [_at(form, point) for point in corners]
    kept = []
    loop = zip([*corners, corners[0]], [*values, values[0]], strict=True)
    for (p, a), (q, b) in pairwise(loop):
        if a <= 0:
            kept.append(p)
        if (a < 0 < b) or (b < 0 < a):
            share = a / (a - b)
            kept.append(tuple(u + share * (v - u) for u, v in zip(p, q, strict=True)))
    return list(dict.fromkeys(kept))

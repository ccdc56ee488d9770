"""Certificates read from the document alone: neither the library's nor the checker's code is asked.

What is stated about bounds inside the model is taken over here; the checker's own tests are about that.
"""

import hashlib
import json
import re
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.verification.checking import certified, problems

PAGE = (Path(__file__).parents[2] / "docs" / "certificates.md").read_text("utf-8")
TYPES = {"|u1": "B", "<u2": "H", "<i4": "i", "<f4": "f", "<f8": "d"}
OPEN, LEAF, CUT, SHRUNK, SHRUNK_AND_CUT = range(5)


def unpacked(data):
    """Return the JSON object and the arrays, as lists of numbers, by the section "The format"."""
    assert data[:16] == b"pindown proof\r\n\x1a"
    version, n_text, n_body = struct.unpack("<IIQ", data[16:32])
    stream = zlib.decompressobj()
    body = stream.decompress(data[64:])
    assert version == 3 and stream.eof and not stream.unused_data
    assert len(body) == n_body and hashlib.sha256(body).digest() == data[32:64]
    claim, at, arrays = json.loads(body[:n_text]), n_text, {}
    for name, kind, shape in claim["arrays"]:
        size = struct.calcsize(TYPES[kind]) * int(np.prod(shape))
        arrays[name] = [v for (v,) in struct.iter_unpack("<" + TYPES[kind], body[at : at + size])]
        at += size
    assert at == len(body)
    return claim, arrays


class Streams:
    """Arrays that are read from the front."""

    def __init__(self, arrays):
        self.left = {name: list(values) for name, values in arrays.items()}

    def take(self, name, n):
        assert len(self.left[name]) >= n
        values, self.left[name] = self.left[name][:n], self.left[name][n:]
        return values


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    made = {}
    for name, problem in problems().items():
        _, _, data = certified(problem, tmp_path_factory.mktemp("proof"))
        made[name] = *unpacked(data), problem
    return made


def test_every_entry_and_array_is_in_the_document(written):
    cells = re.findall(r"^\| ([^|]*) \|", PAGE, re.MULTILINE)
    named = {word for cell in cells for word in re.findall(r"`(\w+)`", cell)}
    for claim, arrays, _ in written.values():
        assert set(claim) <= named and set(arrays) <= named


def test_claims_are_what_was_asked(written):
    for claim, arrays, problem in written.values():
        if claim["verdict"] == "violated":
            continue  # boxes are rounded inwards
        d, k = claim["inputs"], sum(each["outputs"] for each in claim["networks"])
        first = 0
        for s, unsafe in enumerate(problem.prop.unsafe):
            n, box = arrays["set_rows"][s], 2 * d * arrays["set_box"][s]
            assert arrays["boxes"][box : box + 2 * d] == [*unsafe.lower, *unsafe.upper]
            assert arrays["rows"][first * k : (first + n) * k] == unsafe.rows.ravel().tolist()
            assert arrays["limits"][first : first + n] == unsafe.limits.tolist()
            first += n


def test_witnesses_are_inputs_of_their_sets(written):
    claim, arrays, problem = written["witness"]
    (s,), x = arrays["witness_sets"], np.array(arrays["witness"])
    rows = np.array(arrays["rows"]).reshape(-1, 1)
    assert claim["verdict"] == "violated" and s == 0
    assert (rows @ problem.models[0](x) <= arrays["limits"]).all()


@pytest.mark.parametrize("name", ["boxes", "many boxes"])
def test_trees_of_boxes_are_walked_as_the_document_says(written, name):
    """Every number is used, and without shrinking the leaves fill the box."""
    claim, arrays, _ = written[name]
    streams, d = Streams(arrays), claim["inputs"]
    (s,) = (s for s, way in enumerate(arrays["proof"]) if way == 2)
    corners = arrays["boxes"][2 * d * arrays["set_box"][s] :][: 2 * d]
    level, volume = [(corners[:d], corners[d:])], 0.0
    whole = float(np.prod(np.subtract(corners[d:], corners[:d])))
    while level:
        below = []
        for kind, (low, high) in zip(streams.take("box_kinds", len(level)), level, strict=True):
            assert kind in {LEAF, CUT, SHRUNK, SHRUNK_AND_CUT}
            if kind == LEAF:
                volume += float(np.prod(np.subtract(high, low)))
            elif kind == SHRUNK:
                below.append((low, high))
            else:
                (place,) = streams.take("box_places", 1)
                first, second = list(high), list(low)
                first[place] = second[place] = low[place] / 2 + high[place] / 2
                below += [(low, first), (second, high)]
        level = below
    assert not streams.left["box_kinds"] and not streams.left["box_places"]
    assert volume == pytest.approx(whole)


def affine(streams, sizes):
    """Return the bounds of one root, tensor by tensor, and its units of open sign."""
    bounds, units = [], []
    for t, size in enumerate(sizes):
        low, high = (streams.take(f"root_{side}", size) for side in ("lower", "upper"))
        bounds.append((low, high))
        (n,) = streams.take("root_counts", 1)
        assert all(0 <= entry < 2 * size for entry in streams.take("root_entries", n))
        streams.take("root_slopes", n * len(units))
        units += [(t, i) for i in range(size) if low[i] < 0 < high[i]]
    return bounds, units


def bounded(layers, box, bounds, signs, slopes, multipliers, form, constant):
    """Return the largest value of a form of the outputs on one choice of signs, in rationals."""
    for t in range(len(layers) - 1, -1, -1):
        W, b = layers[t]
        if t < len(layers) - 1:  # through a ReLU: from its output to what enters it
            made = []
            stated = (map(Fraction, ends) for ends in bounds[t])
            for i, (c, low, high) in enumerate(zip(form, *stated, strict=True)):
                on, off = low >= 0 or signs.get((t, i)) == 1, high <= 0 or signs.get((t, i)) == -1
                if on or off:
                    made.append(c if on else Fraction(0))
                elif c > 0:  # the chord from (l, 0) to (u, u)
                    made.append(c * high / (high - low))
                    constant -= c * high * low / (high - low)
                else:
                    made.append(c * slopes[t, i])
            form = [c + multipliers.get((t, i), 0) for i, c in enumerate(made)]
        constant += sum((c * Fraction(v) for c, v in zip(form, b, strict=True)), Fraction(0))
        form = [
            sum((c * Fraction(v) for c, v in zip(form, column, strict=True)), Fraction(0))
            for column in W.T
        ]
    ends = [Fraction(high if c > 0 else low) for c, low, high in zip(form, *box, strict=True)]
    return constant + sum((c * v for c, v in zip(form, ends, strict=True)), Fraction(0))


@pytest.mark.parametrize("name", ["bounds", "signs", "many signs"])
def test_every_leaf_of_a_tree_of_signs_is_proved_by_the_documents_formula(written, name):
    claim, arrays, problem = written[name]
    layers = [(np.asarray(W), b.tolist()) for W, b in problem.models[0].layers]
    streams, d, k, n_leaves = Streams(arrays), claim["inputs"], claim["networks"][0]["outputs"], 0
    sizes = [len(b) for _, b in layers[:-1]]
    roots = [affine(streams, sizes) for _ in range(max(arrays["sign_root"]) + 1)]
    firsts = np.cumsum([0, *arrays["set_rows"]])
    sets = (s for s, way in enumerate(arrays["proof"]) if way == 3)
    for s, r in zip(sets, arrays["sign_root"], strict=True):
        bounds, units = roots[r]
        n, corners = arrays["set_rows"][s], arrays["boxes"][2 * d * arrays["set_box"][s] :][: 2 * d]
        rows = np.array(arrays["rows"]).reshape(-1, k)[firsts[s] :][:n]
        limits = arrays["limits"][firsts[s] :][:n]
        level = [()]
        while level:
            below = []
            for kind, way in zip(streams.take("sign_kinds", len(level)), level, strict=True):
                if kind == CUT:
                    (unit,) = streams.take("sign_places", 1)
                    below += [(*way, (units[unit], 1)), (*way, (units[unit], -1))]
                    continue
                assert kind == LEAF
                codes = streams.take("sign_slopes", len(units))
                slopes = {u: Fraction(c, 15) for u, c in zip(units, codes, strict=True)}
                factors = [Fraction(m) for m in streams.take("sign_multipliers", len(way))]
                weights = [Fraction(w) for w in streams.take("sign_weights", n)]
                assert all(m * sign >= 0 for m, (_, sign) in zip(factors, way, strict=True))
                assert all(c <= 15 for c in codes) and min(weights) >= 0
                multipliers = {u: m for (u, _), m in zip(way, factors, strict=True)}
                form = [
                    -sum(w * Fraction(c) for w, c in zip(weights, column, strict=True))
                    for column in rows.T
                ]
                constant = sum(w * Fraction(t) for w, t in zip(weights, limits, strict=True))
                box = corners[:d], corners[d:]
                most = bounded(layers, box, bounds, dict(way), slopes, multipliers, form, constant)
                assert most < 0
                n_leaves += 1
            level = below
    left = [key for key, values in streams.left.items() if values and key.startswith(("sign_", "root_"))]
    assert n_leaves and set(left) <= {"sign_root"}

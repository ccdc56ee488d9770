"""The checker's bounds of random graphs, beside an evaluation of the ONNX files in rationals."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.verification.checking import load_checker

checker = load_checker()


def rational(values):
    made = np.empty(np.shape(values), object)
    made.ravel()[:] = [Fraction(float(v)) for v in np.ravel(values)]
    return made


class Graph:
    """A random ONNX file that branches, made operation by operation."""

    def __init__(self, rng, hostile):
        self.rng, self.hostile, self.nodes, self.constants = rng, hostile, [], {}
        self.shapes = {"x": (1, int(rng.integers(1, 5)))}

    def constant(self, *shape):
        """Weights of float32 or float64: also zeros, cancelling large ones, and subnormal ones."""
        values = self.rng.standard_normal(shape)
        if self.hostile:
            sizes = self.rng.choice([0.0, 1e-44, 1e-20, 1e-3, 1.0, 3e7, 1e16], shape)
            values = np.where(self.rng.random(shape) < 0.5, sizes * np.sign(values), values)
        name = f"c{len(self.constants)}"
        self.constants[name] = values.astype(self.rng.choice([np.float32, np.float64]))
        return name, values

    def integers(self, values):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(values, np.int64)
        return name

    def put(self, operation, names, shape, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, names, [name], **attributes))
        self.shapes[name] = tuple(int(n) for n in shape)
        return name

    def flat(self, name):
        """The same numbers as a row."""
        n = int(np.prod(self.shapes[name]))
        return self.put("Reshape", [name, self.integers([1, -1])], (1, n))

    def step(self):
        rng = self.rng
        a = str(rng.choice(list(self.shapes)))
        shape, kind = self.shapes[a], int(rng.integers(13))
        n = int(np.prod(shape))
        if kind in {0, 1}:
            self.put("Relu", [a], shape)
        elif kind == 2:
            m = int(rng.integers(1, 5))
            weight, bias = self.constant(m, n)[0], self.constant(m)[0]
            self.put("Gemm", [self.flat(a), weight, bias], (1, m), transB=1)
        elif kind == 3:
            m = int(rng.integers(1, 4))
            self.put("MatMul", [a, self.constant(shape[-1], m)[0]], (*shape[:-1], m))
        elif kind == 4 and len(shape) == 2:
            m = int(rng.integers(1, 4))
            self.put("MatMul", [self.constant(m, shape[0])[0], a], (m, shape[1]))
        elif kind == 5:
            operation = str(rng.choice(["Add", "Sub"]))
            others = [name for name, own in self.shapes.items() if own == shape]
            b = str(rng.choice(others)) if rng.random() < 0.6 else self.constant(*shape)[0]
            self.put(operation, [a, b] if rng.random() < 0.7 else [b, a], shape)
        elif kind == 6:
            name, values = self.constant(*shape[-1:])
            divides = (self.constants[name] != 0).all() and np.abs(values).min() > 1e-3
            self.put("Div" if divides else "Mul", [a, name], shape)
        elif kind == 7:
            b = str(rng.choice(list(self.shapes)))
            names = [self.flat(a), self.flat(b)]
            self.put("Concat", names, (1, n + int(np.prod(self.shapes[b]))), axis=1)
        elif kind == 8 and len(shape) > 1:
            order = rng.permutation(len(shape))
            self.put("Transpose", [a], np.array(shape)[order], perm=order.tolist())
        elif kind == 9 and n >= 4:
            places = rng.integers(0, n, int(rng.integers(1, 5)))
            self.put("Gather", [self.flat(a), self.integers(places)], (1, len(places)), axis=1)
        elif kind == 10 and n >= 4:
            image = 1, (2 if n % 8 == 0 else 1), 2, n // (4 if n % 8 == 0 else 2)
            if np.prod(image) == n:
                self.convolution(self.put("Reshape", [a, self.integers(image)], image), image)
        elif kind == 11 and n <= 4:
            b = str(rng.choice([name for name in self.shapes if np.prod(self.shapes[name]) <= 6]))
            row = self.flat(b) if rng.random() < 0.5 else self.constant(1, 3)[0]
            column = self.put("Reshape", [a, self.integers([n, 1])], (n, 1))
            m = 3 if row.startswith("c") else int(np.prod(self.shapes[b]))
            self.put(str(rng.choice(["Add", "Sub"])), [column, row], (n, m))
        elif kind == 12:
            step = -int(rng.integers(1, 3))
            whole = [[-1], [np.iinfo(np.int64).min], [1], [step]]
            names = [self.flat(a), *map(self.integers, whole)]
            self.put("Slice", names, (1, -(-n // -step)))

    def convolution(self, name, image):
        rng = self.rng
        kernel, pads = rng.integers(1, 3, 2), rng.integers(0, 2, 4)
        strides, dilations = rng.integers(1, 3, 2), rng.integers(1, 3, 2)
        out = int(rng.integers(1, 3))
        sides = [image[2] + pads[0] + pads[2], image[3] + pads[1] + pads[3]]
        made = [
            (s - (k - 1) * d - 1) // t + 1
            for s, k, d, t in zip(sides, kernel, dilations, strides, strict=True)
        ]
        if min(made) < 1:
            return
        given = [name, self.constant(out, image[1], *kernel)[0], self.constant(out)[0]]
        numbers = {"pads": pads, "strides": strides, "dilations": dilations}
        attributes = {key: values.tolist() for key, values in numbers.items()}
        self.put("Conv", given, (1, out, *made), **attributes)

    def finished(self):
        name = self.flat(list(self.shapes)[-1])
        ends = [
            helper.make_tensor_value_info(each, TensorProto.FLOAT, self.shapes[each])
            for each in ("x", name)
        ]
        stored = [numpy_helper.from_array(v, key) for key, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, "g", ends[:1], ends[1:], stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def evaluated(model, x):
    """Return the output of an ONNX file at a point in rationals, written from ONNX's own definitions."""
    known = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    known = {k: v if v.dtype.kind == "i" else rational(v) for k, v in known.items()}
    known["x"] = rational(x)[None]
    for node in model.graph.node:
        a, *rest = (known[name] for name in node.input)
        options = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        known[node.output[0]] = {
            "Relu": lambda a, r, o: np.maximum(a, Fraction(0)),
            "Gemm": lambda a, r, o: a @ r[0].T + r[1],
            "MatMul": lambda a, r, o: a @ r[0],
            "Add": lambda a, r, o: a + r[0],
            "Sub": lambda a, r, o: a - r[0],
            "Mul": lambda a, r, o: a * r[0],
            "Div": lambda a, r, o: a / r[0],
            "Concat": lambda a, r, o: np.concatenate([a, *r], o["axis"]),
            "Transpose": lambda a, r, o: a.transpose(o["perm"]),
            "Gather": lambda a, r, o: a[:, r[0]],
            "Slice": lambda a, r, o: a[:, :: int(r[3][0])],
            "Reshape": lambda a, r, o: a.reshape(r[0]),
            "Conv": convolved,
        }[node.op_type](a, rest, options)
    return known[model.graph.output[0].name].ravel()


def convolved(image, given, options):
    kernel, bias = given
    top, left, bottom, right = options["pads"]
    padded = np.pad(image[0], [(0, 0), (top, bottom), (left, right)], constant_values=Fraction(0))
    (s, t), (d, e) = options["strides"], options["dilations"]
    height = (padded.shape[1] - (kernel.shape[2] - 1) * d - 1) // s + 1
    width = (padded.shape[2] - (kernel.shape[3] - 1) * e - 1) // t + 1
    made = np.empty((1, len(kernel), height, width), object)
    for o, i, j in product(range(len(kernel)), range(height), range(width)):
        total = bias[o]
        for c, p, q in product(*map(range, kernel.shape[1:])):
            total += kernel[o, c, p, q] * padded[c, i * s + p * d, j * t + q * e]
        made[0, o, i, j] = total
    return made


def graph_of(rng, hostile):
    graph = Graph(rng, hostile)
    for _ in range(int(rng.integers(3, 14))):
        graph.step()
    return graph.finished(), graph.shapes["x"][1]


def look(seed):
    """Compare every kind of bound on one graph; return whether the checker read it."""
    rng = np.random.default_rng(seed)
    model, d = graph_of(rng, hostile=bool(rng.integers(2)))
    network = checker.Network(d)
    try:
        output = checker.Reader(network, model.SerializeToString(), np.arange(d)).output
    except checker.Rejected as reason:
        assert "too small" in str(reason)
        return False
    centre = rng.standard_normal(d) * rng.choice([0.0, 1.0, 1e8], d)
    radius = rng.choice([0.0, 1e-160, 1e-9, 0.1, 1.0, 1e6], d)
    low, high = centre - radius, centre + radius
    points = [np.where(c, low, high) for c in product((0, 1), repeat=d)]
    points += list(rng.uniform(low, high, (6, d)))
    truths = [evaluated(model, x) for x in points]
    bounds = {}
    for name in ("intervals", "linear bounds"):
        bounds[name] = checker.Bounds(network, low[None], high[None])
        bounds[name].complete(linear=name != "intervals")
        (least,), (most,) = bounds[name].values[output]
        for y in truths:
            assert all(a <= v <= b for a, v, b in zip(least, y, most, strict=True)), (seed, name)
    size = network.sizes[output]
    for own in bounds.values():
        own.slopes = {i: rng.random((1, 1, n)) for i, n in enumerate(network.sizes)}
        form = rng.standard_normal((1, 3, size)) * rng.choice([0.0, 1e-200, 1e-30, 1.0], (1, 3, size))
        made, offset = own.upper(output, form)
        ends = own.largest(made, offset)[0]
        for x, y in zip(points, truths, strict=True):
            for q in range(3):
                value = sum(Fraction(c) * v for c, v in zip(form[0, q].tolist(), y, strict=True))
                if np.isfinite(offset[0, q]) and np.isfinite(made[0, q]).all():
                    line = sum((Fraction(a) * Fraction(v) for a, v in zip(made[0, q], x, strict=True)))
                    assert value <= line + Fraction(offset[0, q]), seed
                assert value <= ends[q], seed
    return True


@pytest.mark.parametrize("part", range(4))
def test_no_bound_of_a_random_graph_is_wrong(part):
    with np.errstate(all="ignore"):
        assert sum(look(100 * part + i) for i in range(25)) >= 12


@pytest.mark.slow
def test_no_bound_of_a_thousand_random_graphs_is_wrong():
    with np.errstate(all="ignore"):
        assert sum(look(10_000 + i) for i in range(1000)) >= 500


def tied_pair(rng):
    """Return two random ONNX files of one structure, their layers, and pairs that the file may state."""
    sizes = [int(n) for n in rng.integers(1, 5, 4)]
    others = [sizes[0], *(int(n) for n in rng.integers(1, 5, 2)), sizes[3]]
    hostile = bool(rng.integers(2))
    files, nets, shift = [], [], float(rng.choice([0.0, 2.0**-40, 1e-3]))
    for own in (sizes, others):
        layers = []
        for i, (n, m) in enumerate(pairwise(own)):
            W, b = rng.standard_normal((n, m)), rng.standard_normal(m)
            if hostile:
                W = np.where(rng.random((n, m)) < 0.4, rng.choice([0.0, 1e-44, 1e16, -3e7], (n, m)), W)
            if nets and nets[0][i][0].shape == W.shape:  # the same but for a little
                W, b = nets[0][i][0] * (1.0 + shift), nets[0][i][1] - shift
            layers.append((W, b))
        nodes, stored, name = [], [], "x"
        for i, (W, b) in enumerate(layers):
            stored += [numpy_helper.from_array(W, f"W{i}"), numpy_helper.from_array(b[None], f"b{i}")]
            nodes.append(helper.make_node("Gemm", [name, f"W{i}", f"b{i}"], [f"z{i}"]))
            name = f"z{i}"
            if i < 2:
                nodes.append(helper.make_node("Relu", [name], [f"y{i}"]))
                name = f"y{i}"
        ends = [
            helper.make_tensor_value_info(end, TensorProto.DOUBLE, [1, k])
            for end, k in (("x", own[0]), (name, own[3]))
        ]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        files.append(model.SerializeToString())
        nets.append(layers)
    places = [rng.integers(0, sizes[i], others[i]) for i in (1, 2)]
    scales = [rng.choice([1.0, 0.5, 0.1, 3e5, 1e-9], others[i]) for i in (1, 2)]
    if sizes == others and rng.random() < 0.5:
        places, scales = [np.arange(n) for n in sizes[1:3]], [np.ones(n) for n in sizes[1:3]]
    taken = {"tie_places": np.concatenate(places), "tie_scales": np.concatenate(scales)}
    return files, nets, taken


def exact(layers, x):
    values = rational(x)
    for i, (W, b) in enumerate(layers):
        values = values @ rational(W) + rational(b)
        values = np.maximum(values, Fraction(0)) if i < 2 else values
    return values


def test_no_bound_of_tied_networks_is_wrong():
    """Also with pairs that make no sense: they only make what the second network has more larger."""
    tested = 0
    with np.errstate(all="ignore"):
        for seed in range(60):
            rng = np.random.default_rng(seed)
            files, nets, taken = tied_pair(rng)
            d = len(nets[0][0][0])
            made, other = checker.Network(d), checker.Network(d)
            for network, file in zip((made, other), files, strict=True):
                checker.Reader(network, file, np.arange(d))
            left = {name: list(values) for name, values in taken.items()}

            def take(name, n, left=left):
                values, left[name] = np.array(left[name][:n]), left[name][n:]
                return values

            try:
                output = checker.tie(made, other, take)
            except checker.Rejected as reason:
                assert "too small" in str(reason) or "underflow" in str(reason), seed
                continue
            tested += 1
            growth = checker.check_growth(with_last(made))
            centre = rng.standard_normal(d) * rng.choice([0.0, 1.0, 1e8], d)
            radius = rng.choice([0.0, 1e-160, 1e-9, 0.1, 1.0, 1e6], d)
            low, high = centre - radius, centre + radius
            bounds = checker.Bounds(made, low[None], high[None])
            bounds.complete(linear=True)
            (least,), (most,) = bounds.values[output]
            k = len(least)
            form = np.concatenate([np.eye(k), -np.eye(k)])[None]
            ends = bounds.largest(*bounds.upper(output, form))[0]
            points = [low, high, *rng.uniform(low, high, (6, d))]
            for x in points:
                f, g = (exact(layers, x) for layers in nets)
                assert all(a <= v <= b for a, v, b in zip(least, g, most, strict=True)), seed
                assert all(v <= b for v, b in zip([*g, *-g], ends, strict=True)), seed
                size = 1 + Fraction(float(np.linalg.norm(x))) * (1 + Fraction(1, 10**12))
                assert np.isinf(growth) or max(abs(f - g)) <= Fraction(growth) * size, seed
    assert tested > 30


def with_last(network):
    """Return the network with its outputs side by side, as certificates have it."""
    made = checker.Network(network.sizes[0])
    for node in network.nodes:
        made.add(node)
    n = len(made.nodes)
    made.side_by_side([(n, np.arange(made.sizes[n]))])
    return made


def test_the_witness_in_rationals_is_the_files():
    """What decides close calls: the networks at a point, in rationals, beside ONNX's definitions."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        model, d = graph_of(rng, hostile=False)
        network = checker.Network(d)
        output = checker.Reader(network, model.SerializeToString(), np.arange(d)).output
        x = rng.standard_normal(d)
        values = [checker.fractions(x[None])]
        for node in network.nodes:
            values.append(node.exactly(values))
        assert (values[output][0] == evaluated(model, x)).all()

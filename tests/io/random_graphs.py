"""Random ONNX graphs of every operation that is read, with weights of ordinary or of wild sizes."""

import numpy as np

from tests.io.onnx_models import make_model

i64 = np.int64
OPSETS = (7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 21, 23)


class _Graph:
    """A graph in the making: tensors with their shapes, nodes, weights."""

    def __init__(self, rng):
        self.rng = rng
        self.opset = int(rng.choice(OPSETS))
        self.wild = bool(rng.integers(2))
        self.nodes, self.weights = [], {}
        image = bool(rng.integers(2))
        shape = (
            (1, *rng.integers(1, 4, 1), *rng.integers(2, 7, rng.integers(1, 3)))
            if image
            else (
                1,
                *rng.integers(1, 6, rng.integers(1, 3)),
            )
        )
        self.tensors = [("x", tuple(int(n) for n in shape))]

    def weight(self, *shape, positive=False):
        """Add float32 numbers, of sizes from 1e-45 to 3e38 in a wild graph."""
        values = self.rng.normal(size=shape)
        if self.wild and self.rng.integers(3) == 0:
            values = np.sign(values) * 10.0 ** self.rng.uniform(-45, 38.4, size=shape)
        elif self.wild:
            values = values * 10.0 ** self.rng.uniform(-8, 8)
        return self.constant(np.abs(values) if positive else values, "f4")

    def constant(self, values, dtype=i64):
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(values, dtype)
        return name

    def pick(self, *items):
        return items[int(self.rng.integers(len(items)))]

    def tensor(self, rank=None):
        fitting = [t for t in self.tensors if rank is None or len(t[1]) in rank]
        # Mostly the newest: otherwise half of the graph is never used.
        return None if not fitting else fitting[-1] if self.rng.integers(3) else self.pick(*fitting)

    def add(self, op, inputs, shape, outputs=1, **attributes):
        names = [f"t{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append((op, list(inputs), names, attributes))
        shapes = shape if outputs > 1 else [shape]
        self.tensors += [(n, tuple(int(d) for d in s)) for n, s in zip(names, shapes, strict=True)]


def random_model(rng):
    """Return a ModelProto of two to eight operations."""
    graph = _Graph(rng)
    for _ in range(int(rng.integers(2, 9))):
        graph.pick(*_MAKERS)(graph)
    name, _ = graph.tensors[-1]
    graph.nodes.append(("Identity", [name], ["y"], {}))
    return make_model(graph.nodes, graph.weights, graph.tensors[0][1], None, graph.opset)


def _dense(g):
    name, shape = g.tensor(rank=(2,)) or g.tensors[0]
    if len(shape) != 2:
        return
    out = int(g.rng.integers(1, 5))
    if g.rng.integers(2):
        g.add(
            "Gemm",
            [name, g.weight(out, shape[1]), g.weight(out)],
            (shape[0], out),
            transB=1,
            alpha=float(g.pick(1.0, 0.5)),
        )
    else:
        g.add("MatMul", [name, g.weight(shape[1], out)], (shape[0], out))


def _arithmetic(g):
    name, shape = g.tensor()
    op = g.pick("Add", "Sub", "Mul", "Div", "Max", "Min")
    if g.opset < 8 and op in ("Max", "Min"):
        return
    other = g.weight(*g.pick((), (1,), shape, shape[-1:]))
    pair = [name, other] if op == "Div" or g.rng.integers(2) else [other, name]
    g.add(op, pair, shape)


def _two_tensors(g):
    name, shape = g.tensor()
    same = [t for t, s in g.tensors if s == shape]
    op = g.pick("Add", "Sub", "Max", "Min", "Sum")
    g.add(op, [name, g.pick(*same)], shape)


def _elementwise(g):
    name, shape = g.tensor()
    op = g.pick("Relu", "Relu", "LeakyRelu", "Abs", "Neg", "Dropout", "Identity", "PRelu", "Clip")
    if op == "PRelu":
        g.add(op, [name, g.weight(*g.pick((1,), shape[-1:]))], shape)
    elif op == "LeakyRelu":
        g.add(op, [name], shape, alpha=float(g.pick(0.01, 0.5, -0.3, 1e-10)))
    elif op == "Clip" and g.opset >= 11:
        low, high = np.sort(g.weights.pop(g.weight(2)))
        g.add(op, [name, g.pick("", g.constant(low, "f4")), g.pick("", g.constant(high, "f4"))], shape)
    elif op == "Clip":
        g.add(op, [name], shape, min=-0.5, max=float(g.pick(0.25, 6.0, 1e10)))
    else:
        g.add(op, [name], shape)


def _window(g, shape):
    rank = len(shape) - 2
    kernel = [int(n) for n in g.rng.integers(1, 4, rank)]
    strides = [int(n) for n in g.rng.integers(1, 4, rank)]
    attributes = {"kernel_shape": kernel, "strides": strides}
    auto = g.pick("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    if auto == "NOTSET":
        attributes["pads"] = [int(g.rng.integers(0, k)) for k in (*kernel, *kernel)]
    else:
        attributes["auto_pad"] = auto
    pads = attributes.get("pads", [0] * (2 * rank))
    if auto.startswith("SAME"):
        lengths = [-(-n // s) for n, s in zip(shape[2:], strides, strict=True)]
    else:
        lengths = [
            (n + pads[i] + pads[rank + i] - kernel[i]) // strides[i] + 1 for i, n in enumerate(shape[2:])
        ]
    return attributes, lengths


def _images(g):
    name, shape = g.tensor(rank=(3, 4)) or ("x", ())
    if len(shape) < 3:
        return
    attributes, lengths = _window(g, shape)
    if min(lengths) < 1:
        return
    op = g.pick(
        "Conv", "MaxPool", "AveragePool", "BatchNormalization", "GlobalAveragePool", "GlobalMaxPool"
    )
    channels = shape[1]
    if op == "Conv":
        out = int(g.rng.integers(1, 4))
        bias = [g.weight(out)] if g.rng.integers(2) else []
        kernel = g.weight(out, channels, *attributes["kernel_shape"])
        g.add(op, [name, kernel, *bias], (1, out, *lengths), **attributes)
    elif op == "BatchNormalization":
        parameters = [g.weight(channels) for _ in range(3)] + [g.weight(channels, positive=True)]
        g.add(op, [name, *parameters], shape)
    elif op.startswith("Global"):
        g.add(op, [name], (*shape[:2], *[1] * (len(shape) - 2)))
    else:
        if op == "AveragePool":
            attributes["count_include_pad"] = int(g.rng.integers(2))
        g.add(op, [name], (*shape[:2], *lengths), **attributes)


def _sums(g):
    name, shape = g.tensor()
    op, axis, keep = g.pick("ReduceSum", "ReduceMean"), len(shape) - 1, int(g.rng.integers(2))
    if axis == 0:
        return
    left = (*shape[:-1], 1) if keep else shape[:-1]
    if g.opset >= (13 if op == "ReduceSum" else 18):
        g.add(op, [name, g.constant([axis])], left, keepdims=keep)
    else:
        g.add(op, [name], left, axes=[axis], keepdims=keep)


def _moves(g):
    name, shape = g.tensor()
    op = g.pick("Reshape", "Flatten", "Transpose", "Concat", "Pad", "Gather", "Expand", "Tile", "Split")
    last = len(shape) - 1
    if op == "Reshape":
        g.add(op, [name, g.constant([1, -1])], (1, np.prod(shape)))
    elif op == "Flatten":
        g.add(op, [name], (shape[0], np.prod(shape[1:])))
    elif op == "Transpose":
        order = [0, *(1 + g.rng.permutation(last))]
        g.add(op, [name], [shape[i] for i in order], perm=[int(i) for i in order])
    elif op == "Concat":
        g.add(op, [name, g.weight(*shape)], (*shape[:-1], 2 * shape[-1]), axis=last)
    elif op == "Pad" and g.opset >= 11:
        pads = np.zeros((2, len(shape)), i64)
        pads[:, -1] = g.rng.integers(0, 2, 2)
        fill = g.weight()
        g.add(op, [name, g.constant(pads.ravel()), fill], (*shape[:-1], shape[-1] + pads[:, -1].sum()))
    elif op == "Gather":
        index = g.rng.integers(0, shape[-1], 2)
        g.add(op, [name, g.constant(index)], (*shape[:-1], 2), axis=last)
    elif op == "Expand" and g.opset >= 8:
        g.add(op, [name, g.constant([2, *[1] * last])], (max(2, shape[0]), *shape[1:]))
    elif op == "Tile":
        g.add(op, [name, g.constant([*[1] * last, 2])], (*shape[:-1], 2 * shape[-1]))
    elif op == "Split" and shape[-1] > 1 and g.opset >= 13:
        sizes = [1, shape[-1] - 1]
        g.add(op, [name, g.constant(sizes)], [(*shape[:-1], n) for n in sizes], outputs=2, axis=last)


def _smooth(g):
    name, shape = g.tensor()
    ops = [
        ("Sigmoid", 7),
        ("Tanh", 7),
        ("Exp", 7),
        ("Elu", 7),
        ("Selu", 7),
        ("Softplus", 7),
        ("Softsign", 7),
        ("HardSigmoid", 7),
        ("Sin", 7),
        ("Cos", 7),
        ("Atan", 7),
        ("Erf", 9),
        ("Sinh", 9),
        ("Cosh", 9),
        ("Asinh", 9),
        ("Celu", 12),
        ("HardSwish", 14),
        ("Mish", 18),
        ("Gelu", 20),
        ("Swish", 24),
    ]
    op = g.pick(*(name for name, since in ops if since <= g.opset))
    extra = {"alpha": float(g.pick(0.5, 1.0))} if op in ("Elu", "Celu", "HardSigmoid") else {}
    g.add(op, [name], shape, **extra)


def _positive(g):
    """Roots, logarithms, powers and quotients, of what is not negative."""
    name, shape = g.tensor()
    g.add("Abs", [name], shape)
    g.add("Add", [g.tensors[-1][0], g.constant(0.5, "f4")], shape)
    inner, op = g.tensors[-1][0], g.pick("Sqrt", "Log", "Reciprocal", "Pow", "Div")
    if op == "Pow":
        g.add(op, [inner, g.constant(g.pick(2.0, 3.0, 0.5, -1.0, -0.5, 1.5), "f4")], shape)
    elif op == "Div":
        g.add(op, [name, inner], shape)
    else:
        g.add(op, [inner], shape)


def _steps(g):
    name, shape = g.tensor()
    op = g.pick(
        "Floor", "Ceil", *(("Sign",) if g.opset >= 9 else ()), *(("Round",) if g.opset >= 11 else ())
    )
    g.add(op, [name], shape)


def _tensor_products(g):
    name, shape = g.tensor()
    same = [t for t, s in g.tensors if s == shape]
    if g.rng.integers(2) and len(shape) > 1:
        other = g.pick(*same)
        turned = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
        g.add("Transpose", [other], [shape[i] for i in turned], perm=turned)
        turned_name = g.tensors[-1][0]
        if g.opset >= 12 and len(shape) == 3 and g.rng.integers(2):
            g.add("Einsum", [name, other], (*shape[:-1], shape[-2]), equation="bij,bkj->bik")
        else:
            g.add("MatMul", [name, turned_name], (*shape[:-1], shape[-2]))
    else:
        g.add("Mul", [name, g.pick(*same)], shape)


def _norms(g):
    name, shape = g.tensor()
    last, op = (
        len(shape) - 1,
        g.pick("Softmax", "LogSoftmax", "LpNormalization", "Layer", "Instance", "Group", "RMS"),
    )
    if op in ("Softmax", "LogSoftmax"):
        g.add(op, [name], shape, axis=int(g.rng.integers(len(shape))))
    elif op == "LpNormalization":
        g.add(op, [name], shape, axis=last, p=int(g.pick(1, 2)))
    elif op == "Layer" and g.opset >= 17 and shape[-1] > 1:
        bias = [g.weight(shape[-1])] if g.rng.integers(2) else []
        g.add("LayerNormalization", [name, g.weight(shape[-1]), *bias], shape, axis=-1)
    elif op == "RMS" and g.opset >= 23:
        g.add("RMSNormalization", [name, g.weight(shape[-1])], shape, axis=-1)
    elif op == "Instance" and len(shape) > 2 and np.prod(shape[2:]) > 1:  # one pixel is all rounding
        g.add("InstanceNormalization", [name, g.weight(shape[1]), g.weight(shape[1])], shape)
    elif op == "Group" and g.opset >= 21 and len(shape) > 2 and np.prod(shape[1:]) > 1:
        g.add("GroupNormalization", [name, g.weight(shape[1]), g.weight(shape[1])], shape, num_groups=1)


def _other_sums(g):
    name, shape = g.tensor()
    op = g.pick(
        "ReduceMax",
        "ReduceMin",
        "ReduceSumSquare",
        "ReduceL1",
        "ReduceL2",
        "ReduceProd",
        "ReduceLogSumExp",
    )
    axis, keep = len(shape) - 1, int(g.rng.integers(2))
    if axis == 0:
        return
    left = (*shape[:-1], 1) if keep else shape[:-1]
    if g.opset >= 18:
        g.add(op, [name, g.constant([axis])], left, keepdims=keep)
    else:
        g.add(op, [name], left, axes=[axis], keepdims=keep)


def _larger_images(g):
    name, shape = g.tensor(rank=(3, 4)) or ("x", ())
    if len(shape) < 3:
        return
    rank, op = (
        len(shape) - 2,
        g.pick("ConvTranspose", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "LRN"),
    )
    if op == "ConvTranspose":
        kernel = [int(n) for n in g.rng.integers(1, 4, rank)]
        strides = [int(n) for n in g.rng.integers(1, 3, rank)]
        out = int(g.rng.integers(1, 3))
        pads = [int(g.rng.integers(0, k)) if k > 1 else 0 for k in kernel]
        extra = [int(g.rng.integers(0, s)) for s in strides]
        lengths = [
            s * (n - 1) + k + e - 2 * p
            for n, s, k, e, p in zip(shape[2:], strides, kernel, extra, pads, strict=True)
        ]
        if min(lengths) < 1:
            return
        weights = [g.weight(shape[1], out, *kernel), *([g.weight(out)] if g.rng.integers(2) else [])]
        g.add(
            op,
            [name, *weights],
            (shape[0], out, *lengths),
            strides=strides,
            pads=[*pads, *pads],
            output_padding=extra,
        )
    elif op == "Resize" and g.opset >= 13:
        sizes = [int(n) for n in g.rng.integers(1, 8, rank)]
        mode = g.pick("nearest", "linear")
        coordinate = g.pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
        nearest = {"nearest_mode": g.pick("floor", "round_prefer_floor")} if mode == "nearest" else {}
        g.add(
            op,
            [name, "", "", g.constant([*shape[:2], *sizes])],
            (*shape[:2], *sizes),
            mode=mode,
            coordinate_transformation_mode=coordinate,
            **nearest,
        )
    elif op == "Upsample" and g.opset in (7, 8, 9):
        scales = [1.0, 1.0, *[2.0] * rank]
        grown = (*shape[:2], *(2 * n for n in shape[2:]))
        if g.opset == 9:
            g.add(op, [name, g.constant(scales, "f4")], grown, mode="nearest")
        else:
            g.add(op, [name], grown, mode="nearest", scales=scales)
    elif op == "SpaceToDepth" and rank == 2 and not (shape[2] % 2 or shape[3] % 2):
        g.add(op, [name], (shape[0], 4 * shape[1], shape[2] // 2, shape[3] // 2), blocksize=2)
    elif op == "DepthToSpace" and rank == 2 and shape[1] % 4 == 0:
        mode = {"mode": g.pick("DCR", "CRD")} if g.opset >= 11 else {}
        g.add(op, [name], (shape[0], shape[1] // 4, 2 * shape[2], 2 * shape[3]), blocksize=2, **mode)
    elif op == "LRN" and rank == 2:
        g.add(op, [name], shape, size=3)


def _other_moves(g):
    name, shape = g.tensor()
    last, op = (
        len(shape) - 1,
        g.pick("Where", "GatherElements", "GatherND", "ScatterND", "Trilu", "CumSum", "Slice"),
    )
    if op == "Where" and g.opset >= 9:
        condition = g.rng.integers(0, 2, shape[-1:]).astype(bool)
        g.add(op, [g.constant(condition, bool), name, g.weight(*g.pick((), shape[-1:]))], shape)
    elif op == "GatherElements" and g.opset >= 11:
        index = g.rng.integers(-shape[-1], shape[-1], (*shape[:-1], 3))
        g.add(op, [name, g.constant(index)], index.shape, axis=last)
    elif op == "GatherND" and g.opset >= 11 and len(shape) > 1:
        index = np.stack([g.rng.integers(0, n, 4) for n in shape[:2]], axis=1)
        g.add(op, [name, g.constant(index)], (4, *shape[2:]))
    elif op == "ScatterND" and g.opset >= 11:
        g.add(op, [name, g.constant([[0]]), g.weight(1, *shape[1:])], shape)
    elif op == "Trilu" and g.opset >= 14 and len(shape) > 1:
        g.add(op, [name], shape, upper=int(g.rng.integers(2)))
    elif op == "CumSum" and g.opset >= 11:
        g.add(
            op,
            [name, g.constant(last)],
            shape,
            exclusive=int(g.rng.integers(2)),
            reverse=int(g.rng.integers(2)),
        )
    elif op == "Slice" and g.opset >= 10 and shape[-1] > 1:
        g.add(
            op, [name, g.constant([-1]), g.constant([-100]), g.constant([last]), g.constant([-1])], shape
        )


def _recurrent(g):
    name, shape = g.tensor(rank=(3,)) or ("x", ())
    if len(shape) != 3:
        return
    op, gates = g.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    sides, hidden = int(g.rng.integers(1, 3)), int(g.rng.integers(1, 4))
    weights = [
        g.weight(sides, gates * hidden, shape[2]),
        g.weight(sides, gates * hidden, hidden),
        g.weight(sides, 2 * gates * hidden),
    ]
    direction = "bidirectional" if sides == 2 else g.pick("forward", "reverse")
    extra = {"linear_before_reset": int(g.rng.integers(2))} if op == "GRU" else {}
    g.add(
        op,
        [name, *weights],
        (shape[0], sides, shape[1], hidden),
        hidden_size=hidden,
        direction=direction,
        **extra,
    )


def _integers(g):
    """Quantise and dequantise again."""
    name, shape = g.tensor()
    if g.opset < 10:
        return
    kind = g.pick("u1", "i1")
    scale, zero = g.constant(g.rng.uniform(0.01, 0.1), "f4"), g.constant(g.rng.integers(0, 100), kind)
    g.add("QuantizeLinear", [name, scale, zero], shape)
    g.add("DequantizeLinear", [g.tensors[-1][0], scale, zero], shape)
    g.tensors.pop(-2)  # integers: nothing else takes them


_MAKERS = (
    _dense,
    _arithmetic,
    _arithmetic,
    _two_tensors,
    _elementwise,
    _elementwise,
    _images,
    _images,
    _sums,
    _moves,
    _smooth,
    _smooth,
    _positive,
    _steps,
    _tensor_products,
    _norms,
    _other_sums,
    _larger_images,
    _other_moves,
    _recurrent,
    _integers,
)

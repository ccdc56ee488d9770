"""Ways to damage a model file: byte by byte, or as a model whose parts do not fit."""

import numpy as np
import onnx
from onnx import helper

from pindown.io._onnx.ops import OPERATIONS

NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    4,
    7,
    64,
    255,
    1000,
    20_000,
    10**6,
    10**7,
    10**9,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**62,
    2**63 - 1,
    -2,
    -3,
    -(2**31),
    -(2**63),
]
i64 = np.int64


def mutated_bytes(data, rng):
    """Flip, overwrite, cut, insert, repeat or delete, once or twice."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 3))):
        if not data:
            break
        at = int(rng.integers(len(data)))
        span = int(min(len(data) - at, 2 ** rng.integers(0, 7)))
        kind = rng.integers(7)
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at] = int(rng.integers(256))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at:at] = rng.bytes(span)
        elif kind == 4:
            data[at:at] = data[at : at + span]
        elif kind == 5:
            del data[at : at + span]
        else:
            value = int(rng.choice(NUMBERS)) % 2**64
            data[at : at + 8] = value.to_bytes(8, "little")
    return bytes(data)


def mutated_model(model, rng):
    """Change a sound model in a few places and leave it well-formed protobuf."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    mutations = [
        _change_operation,
        _change_attribute,
        _change_attribute,
        _add_attribute,
        _change_dims,
        _change_numbers,
        _change_numbers,
        _change_type,
        _change_wires,
        _change_nodes,
        _change_input,
        _change_input,
        _change_opset,
    ]
    for _ in range(int(rng.integers(1, 4))):
        mutations[int(rng.integers(len(mutations)))](result, rng)
    return result.SerializeToString()


def _number(rng):
    return int(NUMBERS[int(rng.integers(len(NUMBERS)))])


def pick(rng, items):
    return items[int(rng.integers(len(items)))] if len(items) else None


def _change_operation(model, rng):
    node = pick(rng, model.graph.node)
    if node is not None:
        node.op_type = pick(rng, [*OPERATIONS, "Loop", "Det", ""])


def _change_attribute(model, rng):
    attribute = pick(rng, [a for node in model.graph.node for a in node.attribute])
    if attribute is None:
        return
    kind = rng.integers(6)
    if kind == 0:
        attribute.type = int(rng.integers(0, 12))
    elif kind == 1:
        attribute.name = "other"
    elif attribute.ints and kind == 2:
        del attribute.ints[int(rng.integers(len(attribute.ints))) :]
    elif attribute.ints:
        attribute.ints[int(rng.integers(len(attribute.ints)))] = _number(rng)
    else:
        attribute.i = _number(rng)
        attribute.f = float(pick(rng, [0.0, np.nan, np.inf, -1.0, 1e38]))


def _add_attribute(model, rng):
    names = [
        "axis",
        "axes",
        "perm",
        "pads",
        "strides",
        "dilations",
        "group",
        "kernel_shape",
        "auto_pad",
        "keepdims",
        "ceil_mode",
        "to",
        "transA",
        "transB",
        "alpha",
        "mode",
        "allowzero",
        "start",
        "end",
        "split",
    ]
    values = [_number(rng), [_number(rng) for _ in range(rng.integers(1, 5))], "SAME_UPPER", "edge", 0.5]
    node = pick(rng, model.graph.node)
    if node is not None:
        node.attribute.append(helper.make_attribute(pick(rng, names), pick(rng, values)))


def _change_dims(model, rng):
    tensor = pick(rng, model.graph.initializer)
    if tensor is None:
        return
    if len(tensor.dims) and rng.integers(2):
        tensor.dims[int(rng.integers(len(tensor.dims)))] = _number(rng)
    else:
        tensor.dims.extend([pick(rng, [1, 1, 1, _number(rng)])] * int(rng.integers(1, 70)))


def _change_numbers(model, rng):
    """Replace numbers of a weight, or the whole list that an integer tensor holds."""
    tensor = pick(rng, model.graph.initializer)
    if tensor is None:
        return
    if tensor.data_type == tensor.INT64:
        count = int(rng.integers(0, 6)) if rng.integers(2) else len(tensor.raw_data) // 8
        tensor.raw_data = np.array([_number(rng) for _ in range(count)], i64).tobytes()
        if len(tensor.dims):
            tensor.dims[:] = [count]
    elif tensor.data_type == tensor.FLOAT:
        values = np.frombuffer(tensor.raw_data, "f4").copy()
        if values.size:
            values[rng.integers(values.size)] = pick(rng, [np.nan, np.inf, 0.0, -1.0, 1e38, 1e-40])
        tensor.raw_data = values.tobytes()


def _change_type(model, rng):
    tensor = pick(rng, model.graph.initializer)
    if tensor is not None:
        tensor.data_type = int(rng.integers(0, 25))


def _change_wires(model, rng):
    names = [name for node in model.graph.node for name in (*node.input, *node.output)] + ["", "nowhere"]
    node = pick(rng, model.graph.node)
    if node is None:
        return
    wires = node.input if rng.integers(4) else node.output
    kind = rng.integers(3)
    if kind == 0 and len(wires):
        del wires[int(rng.integers(len(wires)))]
    elif kind == 1 and len(wires):
        wires[int(rng.integers(len(wires)))] = pick(rng, names)
    else:
        wires.append(pick(rng, names))


def _change_nodes(model, rng):
    nodes = model.graph.node
    if not nodes:
        return
    at = int(rng.integers(len(nodes)))
    if rng.integers(2):
        del nodes[at]
    else:
        # The same operation once more on its own result.
        copy = nodes.add()
        copy.CopyFrom(nodes[at])
        if copy.input and copy.output:
            copy.input[0] = nodes[at].output[0]
            copy.output[:] = ["y" if nodes[at].output[0] != "y" else "again"]


def _change_input(model, rng):
    entry = pick(rng, [*model.graph.input, *model.graph.output])
    dims = entry.type.tensor_type.shape.dim
    kind = rng.integers(4)
    if kind == 0:
        entry.type.tensor_type.elem_type = int(rng.integers(0, 20))
    elif kind == 1 and len(dims):
        del dims[int(rng.integers(len(dims)))]
    elif kind == 2 or not len(dims):
        dims.add().dim_value = _number(rng)
    else:
        dims[int(rng.integers(len(dims)))].dim_value = _number(rng)


def _change_opset(model, rng):
    if len(model.opset_import):
        model.opset_import[0].version = int(
            pick(rng, [1, 6, 7, 8, 9, 10, 11, 12, 13, 17, 18, 21, 28, 29, 2**40])
        )

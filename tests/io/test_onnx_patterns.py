"""What the author wrote is found again in what exporters make of it, and only there."""

import numpy as np
import pytest

from pindown.errors import UnsupportedModelError
from tests.io.onnx_models import assert_agrees, f32, make_model, read

rng = np.random.default_rng(0)
SQRT2, OUTER = 2**0.5, (2 / np.pi) ** 0.5


def chain(*steps, shape=("n", 3), opset=13, **arrays):
    """A model from lines such as ``"e = Erf d"``; numbers in them become constants."""
    nodes, weights = [], {name: np.asarray(array) for name, array in arrays.items()}
    for step in steps:
        out, line = step.split(" = ")
        op, *words = line.split()
        inputs, attributes = [], {}
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                attributes[name] = [int(n) for n in value.split(",")] if name == "axes" else float(value)
            elif name.lstrip("-")[0].isdigit():
                inputs.append(f"c{len(weights)}")
                weights[inputs[-1]] = np.float32(name)
            else:
                inputs.append(name)
        nodes.append((op, inputs, [out], attributes))
    return make_model(nodes, weights, list(shape), opset=opset)


GELU = ("d = Div x 1.41421356", "e = Erf d", "a = Add e 1", "m = Mul x a", "y = Mul m 0.5")
LAYER_NORM = (
    "m = ReduceMean x axes=-1",
    "d = Sub x m",
    "q = Pow d 2",
    "v = ReduceMean q axes=-1",
    "w = Add v 1e-5",
    "s = Sqrt w",
    "n = Div d s",
)
CUBIC = (
    "kc = Mul c 0.044715",
    "s = Add x kc",
    "r = Mul s 0.7978845608",
    "t = Tanh r",
    "u = Add t 1",
    "v = Mul x u",
    "y = Mul v 0.5",
)
FOUND = {
    "SiLU": (chain("s = Sigmoid x", "y = Mul x s"), ["SiLU"]),
    "SiLU, turned": (chain("s = Sigmoid x", "y = Mul s x"), ["SiLU"]),
    "SiLU of a product": (
        chain("e = Tanh x", "p = Mul x e", "s = Sigmoid p", "y = Mul p s"),
        ["Tanh", "Mul", "SiLU"],
    ),
    "SiLU of twice x": (chain("p = Mul x 2", "s = Sigmoid p", "y = Mul p s"), ["Mul", "SiLU"]),
    "SiLU of x + 2": (chain("p = Add x 2", "s = Sigmoid p", "y = Mul p s"), ["Add", "SiLU"]),
    "quick GELU": (chain("p = Mul x 1.702", "s = Sigmoid p", "y = Mul x s"), ["Scale", "SiLU", "Scale"]),
    "GELU": (chain(*GELU), ["GELU"]),
    "GELU of 16 bits": (chain("d = Div x 1.4140625", *GELU[1:]), ["GELU"]),
    "GELU, half first": (
        chain("h = Mul x 0.5", "d = Mul x 0.70710678", "e = Erf d", "a = Add e 1", "y = Mul h a"),
        ["GELU"],
    ),
    "GELU, half on the gate": (
        chain("d = Mul x 0.70710678", "e = Erf d", "a = Add e 1", "b = Mul a 0.5", "y = Mul b x"),
        ["GELU"],
    ),
    "GELU of x + 2": (
        chain(
            "z = Add x 2",
            "h = Mul z 0.5",
            "d = Div z 1.41421356",
            "e = Erf d",
            "a = Add e 1",
            "y = Mul h a",
        ),
        ["Add", "GELU"],
    ),
    "GELU by tanh": (chain("c = Pow x 3", *CUBIC), ["GELU"]),
    "GELU by tanh, cube by products": (chain("q = Mul x x", "c = Mul q x", *CUBIC), ["GELU"]),
    "GELU by tanh, factored": (
        chain(
            "q = Mul x x",
            "k = Mul q 0.044715",
            "o = Add k 1",
            "p = Mul x o",
            "r = Mul p 0.7978845608",
            "t = Tanh r",
            "u = Add t 1",
            "h = Mul x 0.5",
            "y = Mul h u",
        ),
        ["GELU"],
    ),
    "Hardswish": (chain("s = HardSigmoid x alpha=0.16666667 beta=0.5", "y = Mul x s"), ["Hardswish"]),
    "Hardswish by clip": (
        chain("a = Add x 3", "c = Clip a 0 6", "m = Mul x c", "y = Div m 6"),
        ["Hardswish"],
    ),
    "Hardswish by clip, six first": (
        chain("a = Add x 3", "c = Clip a 0 6", "d = Div c 6", "y = Mul x d"),
        ["Hardswish"],
    ),
    "HardSigmoid": (chain("a = Add x 3", "c = Clip a 0 6", "y = Div c 6"), ["HardSigmoid"]),
    "Mish": (chain("s = Softplus x", "t = Tanh s", "y = Mul x t"), ["Mish"]),
    "Softplus": (chain("e = Exp x", "a = Add e 1", "y = Log a"), ["Softplus"]),
    "Softplus with a threshold": (
        chain("s = Softplus x", "g = Greater x 20", "y = Where g x s"),
        ["Softplus"],
    ),
    "LayerNorm": (
        chain(
            *LAYER_NORM, "o = Mul n g", "y = Add o b", shape=("n", 3, 4), g=f32(rng, 4), b=f32(rng, 4)
        ),
        ["LayerNorm"],
    ),
    "LayerNorm without a scale": (
        chain(*LAYER_NORM[:-1], "y = Div d s", shape=("n", 3, 4)),
        ["LayerNorm"],
    ),
    "LayerNorm by a reciprocal": (
        chain(*LAYER_NORM[:-1], "i = Reciprocal s", "y = Mul d i", shape=("n", 3, 4)),
        ["LayerNorm"],
    ),
    "RmsNorm": (
        chain(
            "q = Mul x x",
            "v = ReduceMean q axes=-1",
            "w = Add v 1e-5",
            "s = Sqrt w",
            "i = Reciprocal s",
            "n = Mul x i",
            "y = Mul g n",
            shape=("n", 3, 4),
            g=f32(rng, 4),
        ),
        ["RmsNorm"],
    ),
    "Softmax": (
        chain(
            "m = ReduceMax x axes=-1",
            "d = Sub x m",
            "e = Exp d",
            "s = ReduceL1 e axes=-1",
            "y = Div e s",
        ),
        None,
    ),
    "Dense": (
        chain("h = MatMul x W", "y = Add b h", shape=("n", 2, 3), W=f32(rng, 3, 4), b=f32(rng, 4)),
        ["Dense"],
    ),
    "Conv2d": (
        chain(
            "h = Conv x K",
            "y = Add h b",
            shape=("n", 1, 4, 4),
            K=f32(rng, 2, 1, 3, 3),
            b=f32(rng, 2, 1, 1),
        ),
        ["Conv2d"],
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_groups_of_nodes_are_one_operation(case):
    model, names = FOUND[case]
    ours = assert_agrees(model, n=10)
    if names is not None:
        assert [operation.name for operation in ours.operations] == names


OTHER = {
    "another gate": chain("s = Sigmoid x", "t = Tanh x", "y = Mul t s"),
    "another root": chain(*("d = Div x 1.5", *GELU[1:])),
    "another half": chain(*GELU[:-1], "y = Mul m 0.4"),
    "another cubic": chain("c = Pow x 3", "kc = Mul c 0.05", *CUBIC[1:]),
    "another outer factor": chain("c = Pow x 3", *CUBIC[:2], "r = Mul s 0.7978515625", *CUBIC[3:]),
    "another power": chain("c = Pow x 5", *CUBIC),
    "another clip": chain("a = Add x 3", "c = Clip a 0 5", "m = Mul x c", "y = Div m 6"),
    "another shift": chain("a = Add x 2", "c = Clip a 0 6", "y = Div c 6"),
    "another hard sigmoid": chain("s = HardSigmoid x alpha=0.2 beta=0.5", "y = Mul x s"),
    "one more in the logarithm": chain("e = Exp x", "a = Add e 2", "y = Log a"),
    "a low threshold": chain("s = Softplus x", "g = Greater x 1", "y = Where g x s"),
    "another mean": chain(
        "z = Tanh x", "m = ReduceMean z axes=-1", *LAYER_NORM[1:-1], "y = Div d s", shape=("n", 3, 4)
    ),
    "another square": chain(
        *LAYER_NORM[:2], "q = Pow x 2", *LAYER_NORM[3:-1], "y = Div d s", shape=("n", 3, 4)
    ),
    "other axes": chain(
        "m = ReduceMean x axes=-1",
        "d = Sub x m",
        "q = Pow d 2",
        "v = ReduceMean q axes=1",
        *LAYER_NORM[4:-1],
        "y = Div d s",
        shape=("n", 3, 4),
    ),
    "a bias used twice": chain(
        "h = MatMul x W", "a = Add h b", "y = Mul a h", W=f32(rng, 3, 4), b=f32(rng, 4)
    ),
}
NAMES = {"SiLU", "GELU", "Hardswish", "HardSigmoid", "Mish", "LayerNorm", "RmsNorm"}


@pytest.mark.parametrize("case", OTHER)
def test_what_only_looks_like_it_stays_as_it_is(case):
    ours = assert_agrees(OTHER[case], n=10)
    found = {operation.name for operation in ours.operations} & NAMES
    # A difference over its own root mean square is an RMS norm, whatever was taken away.
    allowed = {"another hard sigmoid": {"HardSigmoid"}, "another mean": {"RmsNorm"}}
    assert found <= allowed.get(case, set())


def test_the_user_s_word_is_in_the_message():
    with pytest.raises(
        UnsupportedModelError, match=r"node 1 'Mul_1' \(SiLU\): SiLU is not piecewise linear"
    ):
        read(FOUND["SiLU"][0]).relu_network()
    with pytest.raises(UnsupportedModelError, match=r"\(GELU\)"):
        read(FOUND["GELU"][0]).relu_network()


def test_a_product_that_others_read_too_keeps_its_bias_apart():
    ours = read(OTHER["a bias used twice"])
    assert [operation.name for operation in ours.operations] == ["Dense", "Add", "Mul"]
    assert ours.n_parameters == 12 + 4

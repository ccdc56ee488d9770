"""Attention in one node, beside onnxruntime, and what its optimiser of transformers makes."""

import math
import warnings

import numpy as np
import onnx
import pytest

from pindown.errors import ModelFileError
from pindown.model import Model
from tests.io.onnx_models import assert_agrees, f32, make_model, refusal

rng = np.random.default_rng(0)
ATTENTION, MULTI_HEAD = "com.microsoft:Attention", "com.microsoft:MultiHeadAttention"
TOKENS, WIDTH, HEADS = 5, 8, 2
W, B = f32(rng, WIDTH, 3 * WIDTH), f32(rng, 3 * WIDTH)
MASK = np.array([[1, 1, 0, 1, 0]], "i4")
SCORES = f32(rng, 1, HEADS, TOKENS, TOKENS)
# Queries, keys and values are made by one product each; of keys there are fewer than of queries.
PARTS = [(op, ["x", f"{name}w"], [name], {}) for op, name in zip(["MatMul"] * 3, "qkv", strict=True)]
FEWER = [
    ("Slice", ["k", "one", "four", "one"], ["ks"], {}),
    ("Slice", ["v", "one", "four", "one"], ["vs"], {}),
]
WEIGHTS = {f"{name}w": f32(rng, WIDTH, WIDTH) for name in "qkv"}
ENDS = {"one": np.array([1]), "four": np.array([4])}


def attention(*inputs, weight=W, bias=B, batch=1, **attributes):
    """A model of one node; further inputs are constants, or None where one is left out."""
    names = ["" if array is None else f"c{i}" for i, array in enumerate(inputs)]
    stored = {name: array for name, array in zip(names, inputs, strict=True) if name}
    node = (ATTENTION, ["x", "W", "B", *names], ["y"], {"num_heads": HEADS, **attributes})
    return make_model([node], {"W": weight, "B": bias, **stored}, [batch, TOKENS, WIDTH])


def multi_head(*inputs, fewer=False, **attributes):
    names = ["" if array is None else f"c{i}" for i, array in enumerate(inputs)]
    stored = {name: array for name, array in zip(names, inputs, strict=True) if name}
    read = ["q", "ks", "vs"] if fewer else ["q", "k", "v"]
    node = (MULTI_HEAD, [*read, *names], ["y"], {"num_heads": HEADS, **attributes})
    nodes = [*PARTS, *(FEWER if fewer else ()), node]
    return make_model(nodes, {**WEIGHTS, **(ENDS if fewer else {}), **stored}, [1, TOKENS, WIDTH])


CASES = {
    "plain": attention(),
    "open batch": attention(batch="n"),
    "its own scale": attention(scale=0.3),
    "causal": attention(unidirectional=1),
    "hidden keys": attention(MASK),
    "hidden keys, less so": attention(MASK, mask_filter_value=-2.0),
    "scores added": attention(None, None, SCORES),
    "narrow values": attention(
        weight=f32(rng, WIDTH, 20), bias=f32(rng, 20), qkv_hidden_sizes=[WIDTH, WIDTH, 4]
    ),
    "parts": multi_head(),
    "parts with a bias": multi_head(B),
    "fewer keys": multi_head(fewer=True),
    "fewer keys, their own scale": multi_head(B, fewer=True, scale=0.5),
    "parts, hidden keys": multi_head(None, MASK),
    "parts, scores added": multi_head(B, None, SCORES[:, :1]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_runtime_computes_the_same(case):
    ours = assert_agrees(CASES[case], n=10)
    assert ours.multiply_adds > 0 and {"Softmax", "Dense"} <= {op.name for op in ours.operations}


def test_what_is_counted():
    length, keys = TOKENS * WIDTH, 2 * TOKENS**2 * WIDTH
    ours = assert_agrees(CASES["plain"])
    assert (ours.n_parameters, ours.multiply_adds) == (W.size + B.size, 3 * length * WIDTH + keys)
    ours = assert_agrees(CASES["parts with a bias"])
    assert (ours.n_parameters, ours.multiply_adds) == (W.size + B.size, 3 * length * WIDTH + keys)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (attention(num_heads=3), "3 heads do not fit"),
        (attention(weight=f32(rng, WIDTH, 20), bias=f32(rng, 20)), "cannot cut 20"),
        (attention(qkv_hidden_sizes=[4, 8, 12]), "cannot cut 24"),
        (attention(bias=f32(rng, 8)), "bias of 24 numbers"),
        (attention(bias=B.astype("f8")), "one type"),
        (attention(MASK.astype("f4")), "type int32"),
        (attention(None, None, SCORES[..., :1]), "added to the scores"),
    ],
)
def test_what_does_not_fit_is_refused(model, words):
    assert words in refusal(model, ModelFileError)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (attention(np.array([3], "i4")), r"mask of shape (1,)"),
        (attention(None, f32(rng, 2, 1, HEADS, 3, 4)), "a past"),
        (attention(do_rotary=1), "rotated positions"),
    ],
)
def test_what_is_not_read(model, words):
    assert words in refusal(model)


# ---------------------------------------------------------------------- onnxruntime's optimiser

torch = pytest.importorskip("torch")
nn = torch.nn


class SelfAttention(nn.Module):
    """Attention with a layer each for queries, keys and values, as Hugging Face writes it."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def by_head(self, x):
        return x.view(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = (self.by_head(layer(x)) for layer in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(WIDTH // HEADS)
        mixed = torch.matmul(torch.softmax(scores, -1), v).permute(0, 2, 1, 3).contiguous()
        return self.out(mixed.view(x.shape[0], x.shape[1], WIDTH))


class Encoder(nn.Module):
    """A layer of an encoder."""

    def __init__(self):
        super().__init__()
        self.first, self.attention = nn.LayerNorm(WIDTH), SelfAttention()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.body = nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH))

    def forward(self, x):
        x = self.first(x)
        x = self.norms[0](x + self.attention(x))
        return self.norms[1](x + self.body(x))


@pytest.mark.parametrize("operation", ["Attention", "MultiHeadAttention"])
def test_files_of_the_optimiser_of_transformers(tmp_path, operation):
    pytest.importorskip("onnxruntime.transformers.optimizer")
    from onnxruntime.transformers import fusion_options, optimizer

    torch.manual_seed(0)
    module, path = Encoder().eval(), tmp_path / "encoder.onnx"
    example = torch.zeros(1, TOKENS, WIDTH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (example,), str(path), dynamo=False, opset_version=17)
        options = fusion_options.FusionOptions("bert")
        options.use_multi_head_attention = operation == "MultiHeadAttention"
        fused = optimizer.optimize_model(
            str(path),
            model_type="bert",
            num_heads=HEADS,
            hidden_size=WIDTH,
            opt_level=0,
            optimization_options=options,
        )
    fused.save_model_to_file(str(path))
    kinds = {node.op_type for node in onnx.load(path).graph.node if node.domain == "com.microsoft"}
    assert kinds == {operation, "SkipLayerNormalization", "BiasGelu"}
    ours = assert_agrees(onnx.load(path), n=10)
    plain = Model.from_torch(module, (TOKENS, WIDTH))
    assert ours.n_parameters == plain.n_parameters and ours.multiply_adds == plain.multiply_adds
    X = rng.normal(size=(5, TOKENS, WIDTH))
    np.testing.assert_allclose(ours(X), plain(X), rtol=0, atol=1e-9)

"""Functions, methods and operators of torch inside forward: each against torch itself."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._torch.module import model_from_module
from pindown.model.operations.products import Square
from pindown.model.operations.smooth import Silu
from tests.io.torch_checks import Function, check_model


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


# Of a module m with a vector and a matrix that are trained, a scale and a lower triangle that are not,
# and an input x of shape (1, 4, 6).
FUNCTIONS = {
    "arithmetic": lambda m, x: (2 - x) * m.vector + x / m.scale - 3 * x + torch.rsub(x, 1) + m.scale - x,
    "shares of a sum": lambda m, x: torch.add(x, x.flip(1), alpha=0.5) - torch.sub(m.vector, x, alpha=2),
    "quotients": lambda m, x: 1 / (x * x + 1) + m.vector / (x.exp() + 1) + x / (x.abs() + 1),
    "powers": lambda m, x: x**2 + x.pow(3) + 2**x + (x.square() + 1) ** -0.5 + torch.rsqrt(x * x + 0.1),
    "exponentials": lambda m, x: (x.exp() + 1).log() + x.expm1() + torch.log1p(x * x) + x.exp2(),
    "waves": lambda m, x: x.sin() * x.cos() + x.atan() + torch.erf(x) + x.sinh() - x.cosh(),
    "where": lambda m, x: torch.where(m.scale > 1, m.vector, x) + x.where(m.lower[:, :1] > 0, -x),
    "masked_fill": lambda m, x: x.masked_fill(m.scale > 1, 3.0),
    "extremes": lambda m, x: (
        torch.maximum(x, x.flip(1)) + torch.minimum(x, m.vector) + x.clamp(min=m.scale)
    ),
    "clamp": lambda m, x: (
        x.clamp(-0.5, 0.5) + x.clamp(max=0.1) + torch.clip(x, min=0) + x.clamp_min(0.2)
    ),
    "extremes of both": lambda m, x: torch.max(x, torch.zeros(6)) + torch.min(x, m.vector),
    "extremes along an axis": lambda m, x: x.amax(1) + x.min(1).values + x.max(dim=1)[0] + x.amin(dim=1),
    "sums": lambda m, x: (
        x.sum(1) + x.mean(dim=(1,), keepdim=True)[:, 0] + x.sum(axis=1, keepdims=True)[:, 0]
    ),
    "everything": lambda m, x: x.sum() + x.max() + x.mean() + x.amin() + x.std() + x.var(unbiased=False),
    "variance": lambda m, x: x.var(1) + x.std(dim=1) + torch.var(x, dim=1, correction=0),
    "norms": lambda m, x: (
        x.norm(dim=1)
        + torch.linalg.norm(x, dim=1)
        + torch.linalg.vector_norm(x, 1, dim=1)
        + torch.linalg.norm(x, float("inf"), dim=1)
    ),
    "normalize": lambda m, x: F.normalize(x, dim=-1) + F.normalize(x, p=1, dim=1),
    "cosine": lambda m, x: (
        F.cosine_similarity(x, x.roll(1, 1), dim=-1) + F.cosine_similarity(x, m.vector, -1)
    ),
    "cumulative": lambda m, x: x.cumsum(1) + x.logsumexp(1, keepdim=True),
    "cat": lambda m, x: torch.cat([x, m.vector.expand(1, 1, 6), x.roll((1, 2), (1, 2))], 1),
    "stack": lambda m, x: torch.stack([x, x.relu(), torch.zeros_like(x)], 1).mean(1),
    "split": lambda m, x: sum(x.split(2, 1)) + sum(x.chunk(2, dim=1)) + torch.split(x, [1, 2, 1], 1)[1],
    "unbind": lambda m, x: torch.stack([i * part for i, part in enumerate(x.unbind(1))], 1),
    "rows": lambda m, x: torch.stack([row * len(x[0]) for row in x[0]]),
    "slices": lambda m, x: (
        x[:, 1:2] + x[:, None].squeeze(1) + x[:, -1].unsqueeze(1) + x[..., ::2].repeat(1, 1, 2)
    ),
    "positions": lambda m, x: (
        x[:, [0, 2, 1, 3]] + x[:, torch.tensor([3, 2, 1, 0])] + x.index_select(1, torch.tensor([1]))
    ),
    "several positions": lambda m, x: x[:, [0, 1], [1, 2]] + x[0, :2, 0] + x[..., m.scale > 0][0, :2, 0],
    "axes": lambda m, x: (
        x.permute(0, 2, 1).reshape(1, -1).view(1, 6, 4).transpose(1, 2) + x.movedim(1, 2).mT + x[0].T.t()
    ),
    "repeats": lambda m, x: (
        x.repeat(1, 2, 1)[:, :4] + x.repeat_interleave(2, 1)[:, 4:] + x.tile((2,))[..., 3:9]
    ),
    "expand": lambda m, x: (
        x.unsqueeze(1).expand(-1, 3, -1, -1).sum(1) + m.vector.expand_as(x) + x[:, :1].expand_as(x)
    ),
    "pad": lambda m, x: (
        F.pad(x, (1, 2, 0, 1), value=2.0)[:, :4, :6]
        + F.pad(x, (1, 1), mode="reflect")[..., :6]
        + F.pad(x, (1, 1), mode="replicate")[..., 2:]
        + F.pad(x, (2, 0), mode="circular")[..., :6]
        + F.pad(x, (-1, 1))
    ),
    "matmul": lambda m, x: (
        x @ m.matrix + m.lower @ x + torch.matmul(x, m.vector)[..., None] + F.linear(x, m.matrix)
    ),
    "addmm": lambda m, x: torch.addmm(m.vector, x[0], m.matrix) + torch.bmm(x, m.matrix[None])[0],
    "products": lambda m, x: (x @ x.mT) @ x + x[0, 0] @ x[0, 1] + torch.outer(x[0, 0, :4], x[0, 1]),
    "einsum": lambda m, x: (
        torch.einsum("bld,de->ble", x, m.matrix)
        + torch.einsum("...d,d->...d", x, m.vector)
        + torch.einsum("ij,bjd->bid", m.lower, x)
        + torch.einsum("bld,bmd->blm", x, x) @ x
        + torch.einsum("bld,bld->bl", x, x)[..., None]
        + torch.einsum("bld->bd", x)[:, None]
        + torch.einsum("bhd,hde->bhe", x, m.matrix.view(6, 6, 1).expand(6, 6, 6)[:4])
    ),
    "causal attention": lambda m, x: (
        (x @ x.transpose(-2, -1) / 6**0.5).masked_fill(m.lower == 0, float("-inf")).softmax(-1) @ x
    ),
    "dot product attention": lambda m, x: (
        F.scaled_dot_product_attention(x, x, x, is_causal=True)
        + F.scaled_dot_product_attention(x, x, m.matrix[:4][None], attn_mask=m.lower > 0, scale=0.3)
    ),
    "norm layers": lambda m, x: (
        F.layer_norm(x, (6,), m.vector, m.scale)
        + F.rms_norm(x, (6,), m.vector, 1e-6)
        + F.group_norm(x, 2)
    ),
    "convolution": lambda m, x: (
        F.conv1d(x, m.matrix[:, :4, None], padding=1)[:, :4, 1:7] + F.avg_pool1d(x, 3, 1, 1)
    ),
    "interpolate": lambda m, x: (
        F.interpolate(x, scale_factor=2.0, mode="linear") + F.interpolate(x, size=12)
    ),
    "activations": lambda m, x: (
        F.gelu(x)
        + F.silu(x)
        + F.elu(x)
        + F.softplus(x)
        + F.mish(x)
        + F.hardswish(x)
        + F.log_softmax(x, -1)
    ),
    "a gate": lambda m, x: F.glu(x) + torch.sigmoid(x[..., :3]),
    "steps": lambda m, x: x.sign() + x.floor() + x.round() + x.ceil(),
    "constants": lambda m, x: (
        x + torch.arange(6) * 0.1 + m.matrix.softmax(0)[0] + (m.scale * m.vector).sum()
    ),
    "new constants": lambda m, x: (
        x + x.new_zeros(6) + torch.full_like(x, 2.0) + torch.zeros(x.shape[0], 1, x.size(-1))
    ),
    "sizes": lambda m, x: x.view(x.size(0), -1)[:, :5] + len(x) + x.dim() + x.numel() + x.shape[-1],
    "loops over sizes": lambda m, x: (
        sum(x[:, t] * t for t in range(x.shape[1])) if x.shape[-1] == 6 else x
    ),
    "named arguments": lambda m, x: (
        torch.sum(input=x, dim=1) + F.relu(input=x)[:, 0] + x.permute(dims=(0, 2, 1))[..., 0]
    ),
    "kinds": lambda m, x: x.double() + m.vector.to(x.dtype).type_as(x) + x.to(x.device).detach(),
    "triangles": lambda m, x: (x @ x.mT).tril() + (x @ x.mT).triu(1),
    "in place": lambda m, x: (x * 1.0).add_(1).mul_(2).clamp_(0, 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check_model(Function(FUNCTIONS[name]), (4, 6))


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda m, x: x + m.vector, 6),
        (lambda m, x: x * m.scale, 0),
        (lambda m, x: x * m.vector + m.vector, 6),  # once, however often it is used
        (lambda m, x: F.linear(x, m.matrix, m.vector), 42),
        (lambda m, x: F.linear(F.linear(x, m.matrix), m.matrix), 36),
        (lambda m, x: m.lower @ x, 0),
        (lambda m, x: x + m.matrix.softmax(0)[0] * m.vector, 42),
        (lambda m, x: torch.cat([m.vector.expand(1, 1, 6), x], 1), 6),
    ],
)
def test_trained_constants_are_counted_once(function, count):
    assert check_model(Function(function), (4, 6)).n_parameters == count


def test_squares_and_gated_tensors_are_recognised():
    model = check_model(Function(lambda m, x: x * x + x * torch.sigmoid(x)), (4, 6))
    assert [type(op) for op in model.operations[:1]] == [Square]
    assert any(isinstance(op, Silu) for op in model.operations)


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(ModelFileError, match=r"'truediv'.*infinite"):
        model_from_module(Function(lambda m, x: x / 0), (4, 6))


def test_masks_of_minus_infinity_are_noted():
    model = check_model(Function(FUNCTIONS["causal attention"]), (4, 6))
    assert "-infinity" in model.notes[0]


def test_casts_to_float32_are_no_change_of_a_float32_module():
    module = Function(lambda m, x: (x.float() * m.vector).to(torch.float32))
    model = model_from_module(module, (4, 6))
    assert "float32" in model.notes[0]
    x = torch.randn(1, 4, 6)
    np.testing.assert_allclose(model(x.numpy()), module(x).detach().numpy().reshape(1, -1), rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda m, x: x * (x > 0), "'gt'.*compares computed tensors"),
        (lambda m, x: x.argmax(1), "'argmax'.*positions"),
        (lambda m, x: x.max(1)[1] + 1.0, "'add'.*positions of maxima"),
        (lambda m, x: x.topk(2, 1)[0], "'topk'.*positions"),
        (lambda m, x: x + torch.randn_like(x), "'randn_like'.*random"),
        (lambda m, x: x * x.sum().item(), "'item'.*number out of a computed tensor"),
        (lambda m, x: x if x.sum() else -x, "cannot trace Function.forward.*depends on the input"),
        (lambda m, x: x.half(), "'half'.*no rule for half"),
        (lambda m, x: x.to(torch.float16), "'to'.*float16"),
        (lambda m, x: torch.fft.fft(x), "no rule for fft_fft"),
        (lambda m, x: (x, x), "one tensor.*tuple"),
        (lambda m, x: {"logits": x}, "one tensor.*dict"),
        (lambda m, x: m.vector * 2, "constant"),
        (lambda m, x: x**x, "to the power of another"),
        (lambda m, x: x.masked_fill(m.scale > 1, float("-inf")), "was not read as what it is"),
        (lambda m, x: torch.einsum("abc,abc,abc->abc", x, x, x), "more than two"),
        (lambda m, x: m.scale.add_(x), "'add_'.*changes a constant in place"),
        (lambda m, x: x.view(5, 5), r"\(1, 4, 6\) cannot take shape \(5, 5\)"),
        (lambda m, x: F.conv1d(x, x), "kernel that is computed"),
        (lambda m, x: F.dropout(x), "training=self.training"),
        (lambda m, x: F.one_hot(x.round()), "looks integers up"),
    ],
)
def test_what_is_not_read_is_named(function, words):
    with pytest.raises(UnsupportedModelError, match=words) as caught:
        model_from_module(Function(function), (4, 6))
    assert "\n" not in str(caught.value)

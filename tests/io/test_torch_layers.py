"""Layers of torch.nn: values and counts of parameters, each against torch itself."""

import pytest
import torch
from torch import nn

from pindown.errors import UnsupportedModelError
from pindown.model.operations.pooling import AveragePool
from tests.io.torch_checks import check_agreement, check_counted


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


ACTIVATIONS = [
    *(
        nn.ReLU(),
        nn.ReLU6(),
        nn.LeakyReLU(),
        nn.RReLU(),
        nn.PReLU(),
        nn.PReLU(4),
        nn.Hardtanh(-0.5, 0.7),
    ),
    *(
        nn.Hardsigmoid(),
        nn.Softshrink(0.2),
        nn.Hardshrink(0.0),
        nn.Threshold(0.1, 0.1),
        nn.Threshold(0, 0),
    ),
]
SMOOTH = [
    *(
        nn.ELU(),
        nn.SELU(),
        nn.CELU(0.7),
        nn.GELU(),
        nn.GELU("tanh"),
        nn.SiLU(),
        nn.Mish(),
        nn.Hardswish(),
    ),
    *(nn.Softplus(), nn.Softplus(2.0), nn.Softsign(), nn.Sigmoid(), nn.Tanh(), nn.LogSigmoid()),
    *(nn.Tanhshrink(), nn.GLU(), nn.Softmax(1), nn.LogSoftmax(-1), nn.Softmin(1)),
]


@pytest.mark.parametrize("layer", ACTIVATIONS, ids=repr)
def test_piecewise_linear_activations(layer):
    check_agreement(nn.Sequential(nn.Linear(4, 4), layer), (4,))


@pytest.mark.parametrize("layer", [*ACTIVATIONS, *SMOOTH], ids=repr)
def test_activations(layer):
    model = check_counted(nn.Sequential(nn.Linear(4, 4), layer), (4,))
    assert any("threshold" in note for note in model.notes) == isinstance(layer, nn.Softplus)


def _running(norm):
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return norm


def _layers(d: int):
    """Yield layers for d spatial axes."""
    conv, back = getattr(nn, f"Conv{d}d"), getattr(nn, f"ConvTranspose{d}d")
    batch, instance = getattr(nn, f"BatchNorm{d}d"), getattr(nn, f"InstanceNorm{d}d")
    average, largest = getattr(nn, f"AvgPool{d}d"), getattr(nn, f"MaxPool{d}d")
    to_average, to_largest = getattr(nn, f"AdaptiveAvgPool{d}d"), getattr(nn, f"AdaptiveMaxPool{d}d")
    yield from (
        conv(4, 2, 3, padding=1, padding_mode=mode) for mode in ("reflect", "replicate", "circular")
    )
    yield from (back(4, 6, 3, 2, 1, 1, groups=2), back(4, 2, 2, dilation=2, bias=False))
    yield from (_running(batch(4)), _running(batch(4, affine=False)))
    yield from (instance(4), instance(4, affine=True))
    yield _running(instance(4, affine=True, track_running_stats=True))
    yield from (average(2, ceil_mode=True), average(3, 2, 1, count_include_pad=False), largest(3, 2, 1))
    yield from (to_average(1), to_average(3), to_average(9), to_largest(1), to_largest(3), to_largest(9))
    linear = ("linear", "bilinear", "trilinear")[d - 1]
    size = (9, 5, 4)[:d]
    yield from (nn.Upsample(scale_factor=2), nn.Upsample(scale_factor=0.6), nn.Upsample(size))
    yield from (nn.Upsample(size, mode="nearest-exact"), nn.Upsample(scale_factor=1.7, mode=linear))
    yield from (nn.Upsample(size, mode=linear), nn.Upsample(size, mode=linear, align_corners=True))
    for kind in ("ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"):
        yield getattr(nn, f"{kind}{d}d")(1)
    yield getattr(nn, f"ConstantPad{d}d")((1, 2) * d, 2.5)


SPATIAL = [(layer, (4, *(7, 6, 5)[:d])) for d in (1, 2, 3) for layer in _layers(d)]
OTHERS = [
    (nn.GroupNorm(2, 4), (4, 3, 5)),
    (nn.GroupNorm(4, 4, affine=False), (4, 3, 5)),
    (nn.LayerNorm((3, 5)), (4, 3, 5)),
    (nn.LayerNorm(5, bias=False), (4, 3, 5)),
    (nn.LayerNorm(5, elementwise_affine=False), (5,)),
    (nn.RMSNorm(5), (4, 5)),
    (nn.RMSNorm((4, 5), eps=1e-3), (4, 5)),
    (nn.Conv2d(1, 2, 3), (6, 5)),  # without a batch: (channels, height, width) of one channel
    (nn.Upsample((9, 8), mode="bicubic"), (2, 5, 6)),
    (nn.Upsample(1, mode="bilinear"), (2, 3, 4)),
    (nn.UpsamplingBilinear2d(scale_factor=2), (2, 3, 3)),
    (nn.AvgPool2d(2, divisor_override=3), (2, 5, 6)),
    (nn.PixelShuffle(2), (8, 3, 4)),
    (nn.PixelUnshuffle(2), (2, 4, 6)),
    (nn.ChannelShuffle(2), (4, 3, 3)),
    (nn.Unfold(2, stride=2, padding=1), (2, 5, 6)),
    (nn.Softmax2d(), (2, 3, 3)),
    (nn.Sequential(nn.Flatten(), nn.Unflatten(1, (2, -1)), nn.Dropout1d()), (2, 3)),
    (nn.Sequential(nn.Identity(), nn.AlphaDropout()), (2, 3)),
]


@pytest.mark.parametrize(("layer", "shape"), [*SPATIAL, *OTHERS], ids=lambda value: repr(value)[:60])
def test_layers(layer, shape):
    check_counted(layer, shape)


def test_even_adaptive_pooling_is_average_pooling():
    model = check_counted(nn.AdaptiveAvgPool2d((3, 2)), (4, 6, 6))
    assert [type(op) for op in model.operations] == [AveragePool]


# ---------------------------------------------------------------------- sequences


class Last(nn.Module):
    """What a recurrent layer makes at all steps, and its last state."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(3, 4, **options)

    def forward(self, x):
        steps, state = self.layer(x)
        states = state if isinstance(self.layer, nn.LSTM) else (state,)
        return torch.cat([steps.flatten(), *(part.flatten() for part in states)])


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"batch_first": True}, (3, 3)),
        ({"num_layers": 2, "bidirectional": True, "batch_first": True, "bias": False}, (3, 3)),
        ({}, (2, 3)),  # the first axis is time: one step of two sequences
        ({}, (3,)),  # without a batch
    ],
)
def test_recurrent_layers(kind, options, shape):
    model = check_counted(Last(kind, **options), shape)
    assert {node.name for node in model.nodes if "layer" in node.name} == {
        f"module 'layer' ({kind.__name__})"
    }


def test_other_recurrent_layers():
    check_counted(Last(nn.LSTM, proj_size=2, batch_first=True), (3, 3))
    check_counted(Last(nn.RNN, nonlinearity="relu", batch_first=True), (3, 3))
    net = check_agreement(Last(nn.RNN, nonlinearity="relu", batch_first=True), (3, 3))
    assert net.depth == 4


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_cells_in_a_loop(kind):
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = kind(3, 4)

        def forward(self, x):
            state = None
            for t in range(x.shape[1]):
                state = self.cell(x[:, t], state)
            return state[0] if kind is nn.LSTMCell else state

    check_counted(Loop(), (3, 3))


def test_long_sequences_are_refused_before_they_are_unrolled():
    with pytest.raises(UnsupportedModelError, match=r"5000 steps.*shorter sequences"):
        check_counted(Last(nn.LSTM, batch_first=True), (5000, 3))


# ---------------------------------------------------------------------- attention


class Attention(nn.Module):
    """Self-attention and attention to another tensor, with masks, and the weights."""

    def __init__(self, batch_first):
        super().__init__()
        self.own = nn.MultiheadAttention(8, 2, batch_first=batch_first)
        self.other = nn.MultiheadAttention(8, 4, kdim=6, vdim=5, bias=False, batch_first=batch_first)
        self.key, self.value = nn.Linear(8, 6), nn.Linear(8, 5)
        self.register_buffer("mask", torch.ones(3, 3, dtype=torch.bool).triu(1))
        self.batch_first = batch_first

    def forward(self, x):
        x = x if self.batch_first else x.transpose(0, 1)
        y, _ = self.own(x, x, x, need_weights=False, attn_mask=self.mask)
        z, weights = self.other(y, self.key(x), self.value(x), key_padding_mask=self.mask[1][None])
        _, all_weights = self.own(y, y, y, average_attn_weights=False)
        return torch.cat([z.flatten(), weights.flatten(), all_weights.flatten()])


@pytest.mark.parametrize("batch_first", [True, False])
def test_multihead_attention(batch_first):
    check_counted(Attention(batch_first), (3, 8))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", nn.SiLU()])
def test_transformer_encoder(norm_first, activation):
    layer = nn.TransformerEncoderLayer(
        8, 2, 16, 0.1, activation, batch_first=True, norm_first=norm_first
    )
    model = check_counted(nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)), (3, 8))
    assert "module 'layers.1.self_attn.out_proj' (Linear)" in {n.name for n in model.nodes}
    # Linear layers, and two matrix products of three positions in each layer's attention.
    products = 2 * (3 * 8 * 24 + 3 * 8 * 8 + 2 * 3 * 8 * 16 + 2 * 3 * 3 * 8)
    assert products <= model.multiply_adds <= 1.2 * products


def test_transformer_decoder_with_trained_queries():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.queries = nn.Parameter(torch.randn(1, 2, 8))
            self.decoder = nn.TransformerDecoder(
                nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2
            )
            self.whole = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

        def forward(self, x):
            mask = nn.Transformer.generate_square_subsequent_mask(2)
            return self.decoder(self.queries, x, tgt_mask=mask) + self.whole(x, x[:, :2])

    check_counted(Decoder(), (3, 8))

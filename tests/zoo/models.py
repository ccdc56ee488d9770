"""The networks of the zoo, as torch modules at their usual sizes with seeded weights.

Parameter counts are the published ones where there are any. Batch norms have seen data: their statistics
are those of two batches of noise, their scales and shifts are drawn, so that nothing in them is 0 or 1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel


def conv_norm(
    inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    """Return a convolution that keeps the size, without bias, and its batch norm."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class Residual(nn.Module):
    """relu(body(x) + shortcut(x)); the shortcut is a convolution of size one where shapes differ."""

    def __init__(self, body: nn.Sequential, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        same = inputs == outputs and stride == 1
        self.body = body
        self.shortcut = nn.Identity() if same else conv_norm(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(x) + self.shortcut(x))


BlockMaker: TypeAlias = Callable[[int, int, int], Residual]  # of inputs, width and stride


def basic_block(inputs: int, width: int, stride: int) -> Residual:
    body = nn.Sequential(conv_norm(inputs, width, 3, stride), nn.ReLU(), conv_norm(width, width))
    return Residual(body, inputs, width, stride)


def bottleneck(inputs: int, width: int, stride: int) -> Residual:
    body = nn.Sequential(
        *(conv_norm(inputs, width, 1), nn.ReLU(), conv_norm(width, width, 3, stride), nn.ReLU()),
        conv_norm(width, 4 * width, 1),
    )
    return Residual(body, inputs, 4 * width, stride)


def residual_stages(
    block: BlockMaker, inputs: int, widths: tuple[int, ...], depths: tuple[int, ...]
) -> nn.Sequential:
    """Return stages of blocks; every stage but the first halves the picture."""
    blocks = []
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        for i in range(depth):
            blocks.append(block(inputs, width, 2 if stage and i == 0 else 1))
            inputs = 4 * width if block is bottleneck else width
    return nn.Sequential(*blocks)


def resnet_20() -> nn.Module:
    stages = residual_stages(basic_block, 16, (16, 32, 64), (3, 3, 3))
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return nn.Sequential(conv_norm(3, 16), nn.ReLU(), stages, *head)


def resnet(block: BlockMaker, depths: tuple[int, ...], features: int) -> nn.Module:
    stages = residual_stages(block, 64, (64, 128, 256, 512), depths)
    start = (conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(features, 1000))
    return nn.Sequential(*start, stages, *head)


def mlp_norm() -> nn.Module:
    def hidden(inputs: int) -> tuple[nn.Module, ...]:
        return nn.Linear(inputs, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1)

    return nn.Sequential(*hidden(20), *hidden(64), nn.Linear(64, 5))


def mlp(activation: type[nn.Module]) -> nn.Module:
    return nn.Sequential(
        nn.Linear(12, 32), activation(), nn.Linear(32, 32), activation(), nn.Linear(32, 4)
    )


def lenet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )


def vgg() -> nn.Module:
    """Six convolutions with max pooling after every second one, as for pictures of 32 x 32."""
    layers: list[nn.Module] = []
    inputs = 3
    for width in (32, 64, 128):
        layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)]
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        inputs = width
    head = (nn.Flatten(), nn.Linear(2048, 128), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(128, 10))
    return nn.Sequential(*layers, *head)


class SqueezeExcite(nn.Module):
    """Scales every channel by a number in [0, 1] that depends on the means of all channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            *(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels // 4, 1), nn.ReLU()),
            *(nn.Conv2d(channels // 4, channels, 1), nn.Hardsigmoid()),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x)


class InvertedResidual(nn.Module):
    """Widen, filter every channel by itself, narrow again."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, activation: type[nn.Module], gated: bool = False
    ) -> None:
        super().__init__()
        wide = 4 * inputs
        self.body = nn.Sequential(
            *(conv_norm(inputs, wide, 1), activation()),
            *(conv_norm(wide, wide, 3, stride, groups=wide), activation()),
            *((SqueezeExcite(wide),) if gated else ()),
            conv_norm(wide, outputs, 1),
        )
        self.skips = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.skips else self.body(x)


def mobilenet() -> nn.Module:
    return nn.Sequential(
        *(conv_norm(3, 16, 3, 2), nn.ReLU6()),
        *(InvertedResidual(16, 16, 1, nn.ReLU6), InvertedResidual(16, 24, 2, nn.ReLU6)),
        InvertedResidual(24, 24, 1, nn.Hardswish, gated=True),
        InvertedResidual(24, 40, 2, nn.Hardswish, gated=True),
        *(
            conv_norm(40, 96, 1),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(96, 10),
        ),
    )


class UNet(nn.Module):
    """Two levels down and up: one up by a transposed convolution, one by linear interpolation."""

    def __init__(self) -> None:
        super().__init__()

        def double(inputs: int, outputs: int) -> nn.Sequential:
            return nn.Sequential(
                *(conv_norm(inputs, outputs), nn.ReLU(), conv_norm(outputs, outputs), nn.ReLU())
            )

        self.first, self.second, self.bottom = double(3, 8), double(8, 16), double(16, 32)
        self.up_second = nn.ConvTranspose2d(32, 16, 2, 2)
        self.up_first = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.join_second, self.join_first = double(32, 16), double(24, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.first(x)
        second = self.second(functional.max_pool2d(first, 2))
        bottom = self.bottom(functional.max_pool2d(second, 2))
        second = self.join_second(torch.cat([self.up_second(bottom), second], 1))
        return self.head(self.join_first(torch.cat([self.up_first(second), first], 1)))


class Recurrent(nn.Module):
    """A recurrent layer over 16 steps; what it says after the last one."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.recurrent = kind(8, 32, batch_first=True)
        self.head = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(x)[0][:, -1])


class Transformer(nn.Module):
    """torch's own encoder over 16 tokens of 32 numbers; the mean over tokens is classified."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x).mean(1))


class Attention(nn.Module):
    """Self-attention with one matrix for queries, keys and values, as vision transformers write it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, tokens, width = x.shape
        qkv = self.qkv(x).reshape(n, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        return self.out(mixed.transpose(1, 2).reshape(n, tokens, width))


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm_1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class VisionTransformer(nn.Module):
    """Patches of 4 x 4, a class token, four blocks; the class token is classified."""

    def __init__(self, size: int = 32, width: int = 64, heads: int = 4, depth: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(0.1 * torch.randn(1, (size // 4) ** 2 + 1, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


def small_cnn() -> nn.Module:
    """What is exported in every operator set: a little of everything that changed between them."""
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU6(), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 8, 3, groups=2), nn.ELU(), nn.ZeroPad2d(1), nn.LeakyReLU(0.1), nn.AvgPool2d(2)),
        *(
            nn.Upsample(scale_factor=2),
            nn.Flatten(),
            nn.Linear(128, 16),
            nn.Hardswish(),
            nn.Linear(16, 3),
        ),
        nn.Softmax(1),
    )


@dataclass(frozen=True)
class Entry:
    """A network of the zoo.

    Attributes:
        build: Makes the module, with weights from torch's generator.
        shape: Shape of one input.
        parameters: How many trained numbers it has, as published where it was.
        large: Whether it is left to the slow tests.
    """

    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    parameters: int
    large: bool = False


ZOO = {
    "mlp_norm": Entry(mlp_norm, (20,), 6_085),
    "mlp_tanh": Entry(lambda: mlp(nn.Tanh), (12,), 1_604),
    "mlp_sigmoid": Entry(lambda: mlp(nn.Sigmoid), (12,), 1_604),
    "lenet": Entry(lenet, (1, 28, 28), 61_706),
    "vgg": Entry(vgg, (3, 32, 32), 550_570),
    "resnet_20": Entry(resnet_20, (3, 32, 32), 272_474),
    "resnet_18": Entry(lambda: resnet(basic_block, (2, 2, 2, 2), 512), (3, 224, 224), 11_689_512, True),
    "resnet_50": Entry(lambda: resnet(bottleneck, (3, 4, 6, 3), 2048), (3, 224, 224), 25_557_032, True),
    "mobilenet": Entry(mobilenet, (3, 32, 32), 34_650),
    "unet": Entry(UNet, (3, 32, 32), 29_690),
    "lstm": Entry(lambda: Recurrent(nn.LSTM), (16, 8), 5_508),
    "gru": Entry(lambda: Recurrent(nn.GRU), (16, 8), 4_164),
    "transformer": Entry(Transformer, (16, 32), 17_220),
    "vit": Entry(VisionTransformer, (3, 32, 32), 142_026),
}
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def seeded(build: Callable[[], nn.Module], shape: tuple[int, ...]) -> nn.Module:
    """Return a module that is the same every time, in evaluation mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return prepared(build(), shape)


def prepared(module: nn.Module, shape: tuple[int, ...]) -> nn.Module:
    """Draw weights of He's size, and show the batch norms two batches of noise."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):  # so that what goes in matters to what comes out
            nn.init.kaiming_normal_(layer.weight)
            if layer.bias is not None:
                nn.init.normal_(layer.bias, 0.0, 0.1)
        elif isinstance(layer, nn.MultiheadAttention):  # torch copies a layer with all its weights
            nn.init.xavier_uniform_(layer.in_proj_weight)
            nn.init.normal_(layer.in_proj_bias, 0.0, 0.1)
        elif isinstance(layer, nn.LayerNorm):
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.normal_(layer.bias, 0.0, 0.1)
    norms = [layer for layer in module.modules() if isinstance(layer, NORMS)]
    for norm in norms:
        norm.momentum = None  # plain averages over what was seen
        nn.init.uniform_(norm.weight, 0.5, 1.0)
        nn.init.normal_(norm.bias, 0.0, 0.1)
    for block in module.modules():
        if isinstance(block, Residual):  # small steps, as in trained ones: else rounding grows
            nn.init.uniform_(block.body[-1][1].weight, 0.1, 0.3)
    with torch.no_grad():
        for _ in range(2 if norms else 0):
            module.train()(torch.randn(4 if len(shape) == 3 else 64, *shape))
    return module.eval()


def module_of(name: str) -> nn.Module:
    """Return the module of that name, in evaluation mode, always with the same weights."""
    return seeded(ZOO[name].build, ZOO[name].shape)


def inputs_of(shape: tuple[int, ...], n: int, seed: int = 1) -> np.ndarray:
    """Return n inputs of noise, as float32."""
    return np.random.default_rng(seed).normal(size=(n, *shape)).astype(np.float32)


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Compute attention by matrix products, layer by layer: fused kernels go round whoever counts."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def multiply_adds(module: nn.Module, shape: tuple[int, ...]) -> int:
    """Count the multiplications with weights, and of matrices, that one input costs, as torch does.

    Batch norms, pooling and activations count nothing; an average is no multiplication. A matrix product
    of two tensors (attention) counts what it multiplies.
    """
    total = 0

    def count(layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        nonlocal total
        match layer:
            case nn.ConvTranspose2d():
                total += inputs[0][0].numel() * layer.weight[0].numel()
            case nn.Conv2d():
                total += output[0].numel() * layer.weight[0].numel()
            case nn.Linear():
                total += output[0].numel() * layer.in_features
            case nn.LSTM() | nn.GRU():
                weights = layer.weight_ih_l0.numel() + layer.weight_hh_l0.numel()
                total += inputs[0].shape[1] * weights
            case nn.MultiheadAttention():
                tokens, width = inputs[0].shape[1:]
                total += 4 * tokens * width**2 + 2 * tokens**2 * width
            case Attention():
                tokens, width = inputs[0].shape[1:]
                total += 2 * tokens**2 * width

    hooks = [layer.register_forward_hook(count) for layer in module.modules()]
    with plain_attention(), torch.no_grad():
        module(torch.zeros(1, *shape))
    for hook in hooks:
        hook.remove()
    return total

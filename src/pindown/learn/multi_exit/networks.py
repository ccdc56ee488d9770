r"""Networks with exits, ready to train: for tables, for images, and the multi-scale dense network.

In the last one every layer keeps features at several scales, each half as fine as the one before, and
joins new ones to them; a head reads the coarsest scale, which even after a few layers has seen the whole
image. On the way the finest scales are dropped, and 1 x 1 convolutions (transitions) halve the channels
of the others.

Huang et al. 2018 ("Multi-scale dense networks for resource efficient image classification"), with the
sizes of Phuong 2021, section 6.3.1.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pindown.learn.multi_exit.model import MultiExitModel
from pindown.validation import integer, integers, number, refuse

NETWORKS = ("auto", "mlp", "cnn", "msdnet")


def multi_exit_mlp(
    n_features: int, n_classes: int, hidden: Sequence[int] = (64, 64, 64)
) -> MultiExitModel:
    """Return fully connected layers with batch normalisation, and an exit after each.

    Every prefix is a plain ReLU network. The normalisation is needed: without it, students that chase
    the logits of a teacher which shares their weights lose ten points where they should gain.

    Example:
        >>> multi_exit_mlp(5, 3, hidden=(8, 8)).n_exits
        2
    """
    sizes = [n_features, *hidden]
    pairs = zip(sizes[:-1], sizes[1:], strict=True)  # noqa: RUF007
    stages = [
        nn.Sequential(nn.Linear(n_in, n_out, bias=False), nn.BatchNorm1d(n_out), nn.ReLU())
        for n_in, n_out in pairs
    ]
    return MultiExitModel(stages, [nn.Linear(n, n_classes) for n in hidden])


def multi_exit_cnn(
    in_channels: int,
    n_classes: int,
    *,
    channels: Sequence[int] = (16, 32, 32, 32),
    halve: Sequence[int] = (0, 1),
    head_channels: int = 32,
) -> MultiExitModel:
    """Return convolutions with an exit after each: one more with stride 2, mean over positions, linear.

    Args:
        in_channels: Channels of an image.
        n_classes: Number of classes.
        channels: Output channels of each stage: two 3 x 3 convolutions, each with
            batch normalisation and ReLU.
        halve: Stages (from 0) that begin with stride 2.
        head_channels: Channels of the convolution in a head.

    Example:
        >>> model = multi_exit_cnn(1, 10, channels=(4, 8))
        >>> model.exit_only(torch.zeros(2, 1, 8, 8), 2).shape
        torch.Size([2, 10])
    """
    stages, n_in = [], in_channels
    for i, n_out in enumerate(channels):
        stride = 2 if i in halve else 1
        stages.append(nn.Sequential(*_layer(n_in, n_out, stride), *_layer(n_out, n_out, 1)))
        n_in = n_out
    heads = [
        nn.Sequential(
            *_layer(n, head_channels, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(head_channels, n_classes),
        )
        for n in channels
    ]
    return MultiExitModel(stages, heads)


def _layer(n_in: int, n_out: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU()]


def seeded(make: Callable[[], MultiExitModel], seed: int) -> MultiExitModel:
    """Return what ``make()`` returns with torch's random numbers started from a seed, and put back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def _unit(n_in: int, n_out: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    """Return convolution, batch normalisation and ReLU."""
    convolution = nn.Conv2d(n_in, n_out, kernel, stride, padding=kernel // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(n_out), nn.ReLU(inplace=True))


def _bottlenecked(n_in: int, n_out: int, width: int, stride: int) -> nn.Sequential:
    """Return a 3 x 3 unit behind a 1 x 1 unit with at most ``width`` times as many channels."""
    inner = min(n_in, width * n_out)
    return nn.Sequential(*_unit(n_in, inner, kernel=1), *_unit(inner, n_out, stride=stride))


class _FirstLayer(nn.Module):  # type: ignore[misc]
    """The image at every scale; a large one is first made four times smaller."""

    def __init__(self, channels: Sequence[int], in_channels: int, large: bool) -> None:
        super().__init__()
        pairs = zip([in_channels, *channels[:-1]], channels, strict=True)
        units = [
            _unit(n_in, n_out, stride=2 if scale else 1) for scale, (n_in, n_out) in enumerate(pairs)
        ]
        if large:
            smaller = _unit(in_channels, channels[0], kernel=7, stride=2)
            units[0] = nn.Sequential(*smaller, nn.MaxPool2d(3, 2, padding=1))
        self.units = nn.ModuleList(units)

    def forward(self, x: Tensor) -> list[Tensor]:
        state = []
        for unit in self.units:
            x = unit(x)
            state.append(x)
        return state


class _DenseLayer(nn.Module):  # type: ignore[misc]
    """New features at every scale that is kept: half from the same scale, half from the finer one."""

    def __init__(
        self, channels: Sequence[int], growth: Sequence[int], factors: Sequence[int], drop: int
    ) -> None:
        super().__init__()
        self.drop = drop
        self.same, self.finer = nn.ModuleList(), nn.ModuleList()
        for scale in range(drop, len(channels)):
            has_finer = scale > 0
            new = growth[scale] // 2 if has_finer else growth[scale]
            self.same.append(_bottlenecked(channels[scale], new, factors[scale], stride=1))
            if has_finer:
                below = scale - 1
                rest = growth[scale] - new
                self.finer.append(_bottlenecked(channels[below], rest, factors[below], stride=2))

    def forward(self, state: list[Tensor]) -> list[Tensor]:
        kept, finer = state[self.drop :], state if self.drop else [None, *state]
        offset = len(self.same) - len(self.finer)  # 1 if the finest of all scales is kept
        joined = []
        for i, (same, x) in enumerate(zip(self.same, kept, strict=True)):
            parts = [x, same(x)]
            if i >= offset:
                parts.insert(1, self.finer[i - offset](finer[i]))
            joined.append(torch.cat(parts, dim=1))
        return joined


class _Transition(nn.Module):  # type: ignore[misc]
    """Fewer channels at every scale."""

    def __init__(self, before: Sequence[int], after: Sequence[int]) -> None:
        super().__init__()
        self.units = nn.ModuleList(_unit(a, b, kernel=1) for a, b in zip(before, after, strict=True))

    def forward(self, state: list[Tensor]) -> list[Tensor]:
        return [unit(x) for unit, x in zip(self.units, state, strict=True)]


class _Head(nn.Module):  # type: ignore[misc]
    """Two convolutions with stride 2 on the coarsest scale, mean over positions, linear."""

    def __init__(self, n_in: int, width: int, n_classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(_unit(n_in, width, stride=2), _unit(width, width, stride=2))
        self.linear = nn.Linear(width, n_classes)

    def forward(self, state: list[Tensor]) -> Tensor:
        return self.linear(self.body(state[-1]).mean([2, 3]))


class MSDNet(MultiExitModel):
    """A multi-scale dense network with exits.

    The defaults are small; :meth:`cifar` and :meth:`imagenet` have the published sizes.

    Args:
        n_classes: Number of classes.
        in_channels: Channels of an image.
        n_exits: Number of exits.
        base: Layers before the first exit, the first one included.
        step: Layers between two exits.
        channels: Channels of the first layer, at the finest scale.
        growth: Channels a layer adds, at the finest scale.
        factors: How many times as many at each scale; one number for each scale.
        reduction: Share of the channels a transition keeps; 1 for no transitions.
        head_channels: Channels inside a head; None for as many as it reads.
        large: Whether images are large: a 7 x 7 convolution with stride 2 and a maximum over 3 x 3 with
            stride 2 come first.

    Attributes:
        n_layers: Layers in all.
        exit_layers: The layer after which each exit is.
        n_scales: Number of scales.

    Example:
        >>> model = MSDNet(10, in_channels=1)
        >>> model.n_exits, model.exit_layers
        (4, (2, 4, 6, 8))
        >>> [tuple(z.shape) for z in model.eval()(torch.zeros(2, 1, 28, 28))]
        [(2, 10), (2, 10), (2, 10), (2, 10)]

    Huang et al. 2018; Phuong 2021, section 6.3.1.
    """

    def __init__(
        self,
        n_classes: int,
        *,
        in_channels: int = 3,
        n_exits: int = 4,
        base: int = 2,
        step: int = 2,
        channels: int = 8,
        growth: int = 4,
        factors: Sequence[int] = (1, 2, 4),
        reduction: float = 0.5,
        head_channels: int | None = 32,
        large: bool = False,
    ) -> None:
        sizes = {"n_classes": n_classes, "in_channels": in_channels, "n_exits": n_exits, "base": base}
        sizes |= {"step": step, "channels": channels, "growth": growth}
        sizes |= {} if head_channels is None else {"head_channels": head_channels}
        for name, value in sizes.items():
            integer(name, value)
        if not integers("factors", factors):
            refuse("factors", "integers of at least 1, one for each scale", factors)
        number("reduction", reduction, 0.0, 1.0, above=True)
        if len(factors) > 1 and growth * factors[1] < 2:
            raise ValueError(
                "growth times each coarser scale's factor must be at least 2: half of it is new."
            )
        total = base + step * (n_exits - 1)
        layers = _Layers(tuple(factors), total, in_channels, channels, growth, reduction, large)
        stages, heads = [], []
        for exit_number in range(n_exits):
            count = step if exit_number else base
            stages.append(nn.Sequential(*(part for _ in range(count) for part in layers.next())))
            heads.append(_Head(layers.coarsest, head_channels or layers.coarsest, n_classes))
        super().__init__(stages, heads)
        self.n_layers, self.n_scales = total, len(factors)
        self.exit_layers = tuple(range(base, total + 1, step))

    @classmethod
    def cifar(cls, n_classes: int = 100) -> MSDNet:
        """Return the published network for 32 x 32 images: 3 scales, 24 layers, 11 exits."""
        return cls(n_classes, n_exits=11, base=4, step=2, channels=16, growth=6, head_channels=128)

    @classmethod
    def imagenet(cls, n_classes: int = 1000) -> MSDNet:
        """Return the published network for 224 x 224 images: 4 scales, 38 layers, 5 exits.

        The exits are at layers 10, 17, 24, 31 and 38; channels, growth and factors are those that the
        network's authors use for ImageNet.
        """
        return cls(
            n_classes,
            n_exits=5,
            base=10,
            step=7,
            channels=32,
            growth=16,
            factors=(1, 2, 4, 4),
            head_channels=None,
            large=True,
        )


class _Layers:
    """Makes one layer after another, and keeps count of channels and scales."""

    def __init__(
        self,
        factors: tuple[int, ...],
        total: int,
        in_channels: int,
        channels: int,
        growth: int,
        reduction: float,
        large: bool,
    ) -> None:
        self.factors, self.in_channels, self.large = factors, in_channels, large
        self.growth, self.reduction = growth, reduction
        self.width, self.done, self.first_scale = channels, 0, 0
        self.interval = math.ceil(total / len(factors))  # layers after which the finest scale goes

    @property
    def coarsest(self) -> int:
        return self.width * self.factors[-1]

    def next(self) -> list[nn.Module]:
        parts: list[nn.Module] = []
        if not self.done:
            widths = [self.width * f for f in self.factors]
            parts.append(_FirstLayer(widths, self.in_channels, self.large))
        self.done += 1
        first = (self.done - 1) // self.interval
        drop = first - self.first_scale
        here = self.factors[self.first_scale :]
        layer = _DenseLayer(
            [self.width * f for f in here], [self.growth * f for f in here], list(here), drop
        )
        parts.append(layer)
        self.first_scale = first
        self.width += self.growth
        if drop and self.reduction < 1:
            kept, before = self.factors[first:], self.width
            self.width = max(1, int(self.reduction * before))
            parts.append(_Transition([before * f for f in kept], [self.width * f for f in kept]))
        return parts


def make_model(network: str, module: Any, shape: tuple[int, ...], n_classes: int) -> MultiExitModel:
    """Return an untrained network.

    Args:
        network: Its name, or ``"auto"``: by the shape.
        module: A network to copy, or a function that makes one, in place of the name; or None.
        shape: Shape of one input.
        n_classes: How many classes there are.

    Raises:
        ValueError: If the network is not for such inputs.
        TypeError: If the function makes something else.
    """
    is_image = len(shape) == 3
    if isinstance(module, torch.nn.Module):
        return copy.deepcopy(module).float()
    if module is not None:
        made = module(shape, n_classes)
        if not isinstance(made, torch.nn.Module):
            raise TypeError(f"module must make a MultiExitModel; it made {type(made).__name__}.")
        return made
    kind = network
    if kind == "auto":
        kind = "cnn" if is_image else "mlp"
    if kind == "mlp":
        if is_image:
            raise ValueError("network 'mlp' needs rows (n, features); images go to 'cnn' or 'msdnet'.")
        return multi_exit_mlp(shape[0], n_classes)
    if not is_image:
        raise ValueError(f"network {kind!r} needs images (n, channels, height, width); got rows.")
    return (
        MSDNet(n_classes, in_channels=shape[0])
        if kind == "msdnet"
        else multi_exit_cnn(shape[0], n_classes)
    )


def check_model(model: Any, x: Tensor, n_classes: int) -> None:
    """Refuse what has no exits, or exits of other shapes.

    Raises:
        TypeError: If it is no network with exits.
        ValueError: If an exit does not answer with one number for each class.
    """
    for name in ("stages", "heads", "n_exits", "forward_until", "exit_only"):
        if not hasattr(model, name):
            raise TypeError(f"module must be a MultiExitModel; {type(model).__name__} has no {name}.")
    model.eval()
    with torch.no_grad():
        logits = model(x)
    for m, z in enumerate(logits, 1):
        if tuple(z.shape) != (len(x), n_classes):
            raise ValueError(
                f"exit {m} of the module returns shape {tuple(z.shape)} for {len(x)} rows of "
                f"{n_classes} classes."
            )

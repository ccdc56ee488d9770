"""Small networks with exits for tables and images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from pindown.learn.multi_exit.model import MultiExitModel


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


def seeded(make: object, seed: int) -> MultiExitModel:
    """Return what ``make()`` returns with torch's random numbers started from a seed, and put back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()  # type: ignore[operator]

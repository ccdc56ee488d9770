"""Convolutional networks as torch builds them, with redundant channels put in on purpose."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from pindown.model.graph import Model

_OFFSET = 1024.0  # keeps a channel on for all inputs of the unit cube that the tests use


def single(rng, *shape):
    """Numbers in single precision, as in a model file, so that their small multiples are exact."""
    return rng.standard_normal(shape).astype(np.float32).astype(float)


def small_integers(rng, shape):
    return rng.integers(-2, 3, shape).astype(float)


@dataclass
class Conv:
    """A convolution, the ReLU after it, and the pooling after that."""

    weight: np.ndarray
    bias: np.ndarray
    stride: int = 1
    padding: int = 1
    pool: nn.Module | None = None

    def modules(self):
        out, inputs, *kernel = self.weight.shape
        conv = nn.Conv2d(inputs, out, kernel, self.stride, self.padding, dtype=torch.float64)
        return [_filled(conv, self.weight, self.bias), nn.ReLU(), *([self.pool] if self.pool else [])]


class ConvNet:
    """Convolutions, then two dense layers; channels can be added to any convolution.

    What reads a channel is the next convolution or the first dense layer, written as an array
    (readers, channels, positions).
    """

    def __init__(self, rng, shape, convs, hidden=5):
        self.shape, self.convs, channels = shape, [], shape[0]
        for out, options in convs:
            self.convs.append(Conv(single(rng, out, channels, 3, 3), single(rng, out), **options))
            channels = out
        with torch.no_grad():
            image = nn.Sequential(*(part for conv in self.convs for part in conv.modules()))(
                torch.zeros(1, *shape, dtype=torch.float64)
            )
        self.positions = int(np.prod(image.shape[2:]))
        n = channels * self.positions
        self.dense = [
            (single(rng, hidden, n), single(rng, hidden)),
            (single(rng, 2, hidden), np.zeros(2)),
        ]

    def copy(self):
        return deepcopy(self)

    def network(self):
        return self.model().relu_network()

    def model(self):
        parts = [part for conv in self.convs for part in conv.modules()] + [nn.Flatten()]
        for i, (weight, bias) in enumerate(self.dense):
            linear = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
            parts += [*([nn.ReLU()] if i else []), _filled(linear, weight, bias)]
        return Model.from_torch(nn.Sequential(*parts).eval(), self.shape)

    def reads(self, layer):
        if layer + 1 < len(self.convs):
            weight = self.convs[layer + 1].weight
            return weight.reshape(*weight.shape[:2], -1)
        weight = self.dense[0][0]
        return weight.reshape(len(weight), -1, self.positions)

    def set_reads(self, layer, reads):
        if layer + 1 < len(self.convs):
            following = self.convs[layer + 1]
            following.weight = reads.reshape(*reads.shape[:2], *following.weight.shape[2:])
        else:
            self.dense[0] = reads.reshape(len(reads), -1), self.dense[0][1]

    def add(self, layer, kernel, bias, reads):
        """Add one channel, and what the next layer's readers make of it."""
        conv = self.convs[layer]
        conv.weight = np.concatenate([conv.weight, kernel[None]])
        conv.bias = np.append(conv.bias, bias)
        self.set_reads(layer, np.concatenate([self.reads(layer), reads[:, None]], axis=1))

    def drawn(self, layer, rng):
        """Return a kernel and readers for a new channel, small integers."""
        reads = self.reads(layer)
        kernel = small_integers(rng, self.convs[layer].weight.shape[1:])
        kernel.flat[0] = 1.0
        return kernel, small_integers(rng, (len(reads), reads.shape[2]))


def _filled(module, weight, bias):
    with torch.no_grad():
        module.weight[:], module.bias[:] = torch.tensor(weight), torch.tensor(bias)
    return module


def dead(net, layer, rng):
    """Channels that nothing switches on (with padding: at the border neither), and one unread."""
    kernel, reads = net.drawn(layer, rng)
    net.add(layer, 0.0 * kernel, -1.0, reads)
    net.add(layer, kernel, 1.0, 0.0 * reads)
    if layer:  # it reads ReLUs
        net.add(layer, -np.abs(kernel), -0.5, reads)


def constant(net, layer, rng):
    """A channel with one value everywhere, and a second that takes it back, at borders too."""
    kernel, reads = net.drawn(layer, rng)
    net.add(layer, 0.0 * kernel, 0.5, reads)
    net.add(layer, 0.0 * kernel, 1.0, -0.5 * reads)


def multiple(net, layer, rng, factor):
    """A channel once more, times a factor, with readers taken from the old one's."""
    conv, (_, reads) = net.convs[layer], net.drawn(layer, rng)
    channel = int(rng.integers(len(conv.bias)))
    old = net.reads(layer).copy()
    old[:, channel] -= factor * reads
    net.set_reads(layer, old)
    net.add(layer, factor * conv.weight[channel], factor * conv.bias[channel], reads)


def duplicate(net, layer, rng):
    multiple(net, layer, rng, 1.0)


def proportional(net, layer, rng):
    multiple(net, layer, rng, 3.0)


def opposite_pairs(net, layer, rng):
    """Two pairs relu(u) - relu(-u) = u that take each other back."""
    kernel, reads = net.drawn(layer, rng)
    for factor, share in ((1.0, 1.0), (-1.0, -1.0), (2.0, -0.5), (-2.0, 0.5)):
        net.add(layer, factor * kernel, factor, share * reads)


def always_on(net, layer, rng):
    """Two channels that are never off on the unit cube, taken back by a constant channel."""
    kernel, reads = net.drawn(layer, rng)
    net.add(layer, kernel, _OFFSET, reads)
    net.add(layer, 2.0 * kernel, _OFFSET, -0.5 * reads)
    net.add(layer, 0.0 * kernel, 1.0, -0.5 * _OFFSET * reads)


def split_layer(net, layer, rng):
    """Every channel as an opposite pair, whose difference a convolution of size one takes."""
    conv = net.convs[layer]
    n = len(conv.bias)
    weight, eye = conv.weight, np.eye(n)[:, :, None, None]
    taking = Conv(np.concatenate([eye, -eye], axis=1), conv.bias, padding=0, pool=conv.pool)
    conv.weight, conv.bias, conv.pool = np.concatenate([weight, -weight]), np.zeros(2 * n), None
    net.convs.insert(layer + 1, taking)


def identity_layer(net, layer, rng):
    """A convolution of size one that passes every channel on."""
    conv = net.convs[layer]
    n = len(conv.bias)
    passing = Conv(
        np.eye(n)[rng.permutation(n)][:, :, None, None], np.zeros(n), padding=0, pool=conv.pool
    )
    order = np.argmax(passing.weight[:, :, 0, 0], axis=1)
    net.set_reads(layer, net.reads(layer)[:, order])
    conv.pool = None
    net.convs.insert(layer + 1, passing)

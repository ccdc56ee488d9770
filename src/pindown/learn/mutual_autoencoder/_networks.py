r"""The three networks: encoder q(z | x), decoder p(x | z), and r(z | x), which measures information.

All read the data through a *reader*, which turns rows into plain features: nothing to do for numbers,
indicators for symbols, a recurrent network for sentences. Whatever has these methods can be trained: an
encoder returns mean and log standard deviation, a decoder has ``log_prob(x, z)``, ``sample(z, random)``
and ``reparametrised``, a guess has ``log_prob(z, x)``.

Phuong 2021, sections 4.4 and 4.6.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from pindown.learn.mutual_autoencoder.tuning import WORD_FEATURES

# Standard deviations between e^-7 and e^3: beyond, float32 rounds them away or overflows their inverse.
MIN_LOG_DEVIATION, MAX_LOG_DEVIATION = -7.0, 3.0
_LOG_TWO_PI = math.log(2.0 * math.pi)


def perceptron(
    inputs: int, hidden: Sequence[int], outputs: int, random: torch.Generator
) -> nn.Sequential:
    """Return a network with smooth hidden layers; without any it is affine.

    Example:
        >>> net = perceptron(2, (8,), 3, torch.Generator().manual_seed(0))
        >>> tuple(net(torch.zeros(5, 2)).shape)
        (5, 3)
    """
    blocks: list[nn.Module] = []
    sizes = [inputs, *hidden]
    for a, b in pairwise(sizes):
        blocks += [_linear(a, b, random), nn.Tanh()]
    return nn.Sequential(*blocks, _linear(sizes[-1], outputs, random))


def _linear(inputs: int, outputs: int, random: torch.Generator) -> nn.Linear:
    # Filled from a generator of one's own: the program's global seed is neither used nor moved.
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)
    return fill(layer, 1.0 / math.sqrt(inputs), random)


def fill(module: Any, bound: float, random: torch.Generator) -> Any:
    """Fill all parameters uniformly from [-bound, bound]."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-bound, bound, generator=random)
    return module


def normal_log_density(x: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Return the log density of independent normals, summed over the last axis.

    >>> zero = torch.zeros(1)
    >>> round(float(normal_log_density(zero, zero, zero)), 4)
    -0.9189
    """
    scaled = (x - mean) * torch.exp(-log_std)
    return (-0.5 * scaled * scaled - log_std - 0.5 * _LOG_TWO_PI).sum(-1)


def prior_log_density(z: Tensor) -> Tensor:
    """Return log N(z; 0, I)."""
    return (-0.5 * z * z - 0.5 * _LOG_TWO_PI).sum(-1)


class Numbers(nn.Module):  # type: ignore[misc]
    """Reader of rows of numbers: they are their own features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        """Return the features, (n, width)."""
        return x


class Symbols(nn.Module):  # type: ignore[misc]
    """Reader of rows of symbols 0, ..., size - 1: one indicator per symbol of every column."""

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.width = sum(self.sizes)
        self.register_buffer("unit", torch.ones(()))  # has the precision that the networks have

    def forward(self, x: Tensor) -> Tensor:
        """Return the features, (n, width)."""
        parts = [one_hot(x[..., j], size) for j, size in enumerate(self.sizes)]
        return torch.cat(parts, -1).to(self.unit.dtype)


class GaussianEncoder(nn.Module):  # type: ignore[misc]
    """q(z | x): a normal with independent coordinates."""

    def __init__(self, reader: Any, latent: int, hidden: Sequence[int], random: torch.Generator) -> None:
        super().__init__()
        self.reader, self.latent = reader, latent
        self.body = perceptron(reader.width, hidden, 2 * latent, random)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and log standard deviations, (n, latent) each."""
        mean, log_std = self.body(self.reader(x)).split(self.latent, -1)
        return mean, log_std.clamp(MIN_LOG_DEVIATION, MAX_LOG_DEVIATION)


class GaussianDecoder(nn.Module):  # type: ignore[misc]
    """p(x | z): a normal with independent coordinates, mean and deviation from a network."""

    reparametrised = True

    def __init__(self, width: int, latent: int, hidden: Sequence[int], random: torch.Generator) -> None:
        super().__init__()
        self.width, self.latent = width, latent
        self.body = perceptron(latent, hidden, 2 * width, random)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and log standard deviations, (n, width) each."""
        mean, log_std = self.body(z).split(self.width, -1)
        return mean, log_std.clamp(MIN_LOG_DEVIATION, MAX_LOG_DEVIATION)

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """Return log p(x | z)."""
        return normal_log_density(x, *self(z))

    def sample(self, z: Tensor, random: torch.Generator) -> Tensor:
        """Draw x given z; gradients pass through x to the decoder."""
        mean, log_std = self(z)
        noise = torch.randn(mean.shape, generator=random, dtype=mean.dtype)
        return mean + log_std.exp() * noise.to(mean.device)

    def likeliest(self, z: Tensor) -> Tensor:
        """Return the mean."""
        return self(z)[0]


class CategoricalDecoder(nn.Module):  # type: ignore[misc]
    """p(x | z): independent columns, each a softmax over its symbols."""

    reparametrised = False

    def __init__(
        self, sizes: Sequence[int], latent: int, hidden: Sequence[int], random: torch.Generator
    ) -> None:
        super().__init__()
        self.sizes, self.latent = tuple(sizes), latent
        self.body = perceptron(latent, hidden, sum(self.sizes), random)

    def forward(self, z: Tensor) -> list[Tensor]:
        """Return log probabilities of the symbols, one (n, size) per column."""
        return [part.log_softmax(-1) for part in self.body(z).split(self.sizes, -1)]

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """Return log p(x | z)."""
        total: Tensor = torch.zeros(())
        for j, logits in enumerate(self(z)):
            column = x[..., j, None]
            shape = torch.broadcast_shapes(column.shape[:-1], logits.shape[:-1])
            told = logits.expand(*shape, -1).gather(-1, column.expand(*shape, 1))
            total = total + told[..., 0]
        return total

    def sample(self, z: Tensor, random: torch.Generator) -> Tensor:
        """Draw x given z; no gradient passes through symbols."""
        with torch.no_grad():
            draws = [torch.multinomial(part.exp().cpu(), 1, generator=random) for part in self(z)]
        return torch.cat(draws, -1).to(z.device)

    def likeliest(self, z: Tensor) -> Tensor:
        """Return the likeliest symbol of every column."""
        return torch.stack([part.argmax(-1) for part in self(z)], -1)


class MixtureGuess(nn.Module):  # type: ignore[misc]
    """r(z | x): a mixture of normals whose parameters a network reads off x; one part is a normal."""

    def __init__(
        self, reader: Any, latent: int, hidden: Sequence[int], normals: int, random: torch.Generator
    ) -> None:
        super().__init__()
        self.reader, self.latent, self.normals = reader, latent, normals
        self.body = perceptron(reader.width, hidden, normals * (2 * latent + 1), random)

    def log_prob(self, z: Tensor, x: Tensor) -> Tensor:
        """Return log r(z | x)."""
        out = self.body(self.reader(x)).unflatten(-1, (self.normals, 2 * self.latent + 1))
        weight = out[..., 0].log_softmax(-1)
        mean, log_std = out[..., 1:].split(self.latent, -1)
        inside = normal_log_density(
            z[..., None, :], mean, log_std.clamp(MIN_LOG_DEVIATION, MAX_LOG_DEVIATION)
        )
        return torch.logsumexp(weight + inside, -1)


def _recurrent(inputs: int, width: int, random: torch.Generator, both: bool = False) -> nn.LSTM:
    # Built without numbers: the constructor would draw them from the program's global seed.
    net = nn.LSTM(inputs, width, batch_first=True, bidirectional=both, device="meta")
    return fill(net.to_empty(device="cpu"), 1.0 / math.sqrt(width), random)


def _words(count: int, random: torch.Generator) -> nn.Embedding:
    table: nn.Embedding = nn.utils.skip_init(nn.Embedding, count, WORD_FEATURES)
    return fill(table, 1.0, random)


class SentenceReader(nn.Module):  # type: ignore[misc]
    """Words in both directions, to the last states."""

    def __init__(self, count: int, width: int, random: torch.Generator) -> None:
        super().__init__()
        self.width = 2 * width
        self.table = _words(count, random)
        self.net = _recurrent(WORD_FEATURES, width, random, both=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of sentences (n, length), (n, width)."""
        _, (last, _) = self.net(self.table(x))
        return last.transpose(0, 1).flatten(1)


class SentenceDecoder(nn.Module):  # type: ignore[misc]
    """Word after word, the code beside each; word 0 ends a sentence and also stands before it."""

    reparametrised = False

    def __init__(
        self, count: int, length: int, latent: int, width: int, random: torch.Generator
    ) -> None:
        super().__init__()
        self.latent, self.length = latent, length
        self.table = _words(count, random)
        self.net = _recurrent(WORD_FEATURES + latent, width, random)
        self.head = perceptron(width, (), count, random)

    def log_prob(self, x: Tensor, z: Tensor) -> Tensor:
        """Return log p(x | z) for codes (..., n, latent)."""
        shape = z.shape[:-1]
        z = z.reshape(-1, self.latent)
        x = x.expand(*shape, self.length).reshape(-1, self.length)
        before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
        seen = torch.cat([self.table(before), z[:, None, :].expand(-1, self.length, -1)], -1)
        logits = self.head(self.net(seen)[0]).log_softmax(-1)
        return logits.gather(-1, x[..., None])[..., 0].sum(-1).reshape(shape)

    def sample(self, z: Tensor, random: torch.Generator) -> Tensor:
        """Draw sentences given codes."""

        def drawn(p: Tensor) -> Tensor:
            return torch.multinomial(p.softmax(-1).cpu(), 1, generator=random)[:, 0].to(z.device)

        return self._unroll(z, drawn)

    def likeliest(self, z: Tensor) -> Tensor:
        """Return sentences that take the likeliest word each time."""
        return self._unroll(z, lambda p: p.argmax(-1))

    def _unroll(self, z: Tensor, choose: Any) -> Tensor:
        with torch.no_grad():
            word, state, found = torch.zeros(len(z), dtype=torch.int64, device=z.device), None, []
            for _ in range(self.length):
                out, state = self.net(torch.cat([self.table(word), z], -1)[:, None, :], state)
                word = choose(self.head(out[:, 0]))
                found.append(word)
        return torch.stack(found, 1)

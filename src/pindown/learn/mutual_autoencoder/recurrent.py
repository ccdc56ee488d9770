"""Recurrent networks of short sentences: a reader in both directions, a decoder with the code at each.

Phuong 2021, section 4.6.3.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from pindown.learn.mutual_autoencoder.networks import fill, perceptron

_WORD = 16  # features of a word


def _recurrent(inputs: int, width: int, random: torch.Generator, both: bool = False) -> nn.LSTM:
    # Built without numbers: the constructor would draw them from the program's global seed.
    net = nn.LSTM(inputs, width, batch_first=True, bidirectional=both, device="meta")
    return fill(net.to_empty(device="cpu"), 1.0 / math.sqrt(width), random)


def _words(count: int, random: torch.Generator) -> nn.Embedding:
    table: nn.Embedding = nn.utils.skip_init(nn.Embedding, count, _WORD)
    return fill(table, 1.0, random)


class SentenceReader(nn.Module):  # type: ignore[misc]
    """Words in both directions, to the last states."""

    def __init__(self, count: int, width: int, random: torch.Generator) -> None:
        super().__init__()
        self.width = 2 * width
        self.table = _words(count, random)
        self.net = _recurrent(_WORD, width, random, both=True)

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
        self.net = _recurrent(_WORD + latent, width, random)
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

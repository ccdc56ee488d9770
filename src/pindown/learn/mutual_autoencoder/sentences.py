"""Recurrent encoder and decoder for short sentences, and the function that trains them.

The reader is a bidirectional LSTM; the decoder an LSTM that sees the code at every word. Without a
target for the information such a decoder is strong enough to ignore its code. The gradient of the
information is the score-function estimate with four sentences per code, each with the mean of the other
three as baseline.

Phuong 2021, section 4.6.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pindown.affine import Array
from pindown.datasets.checks import is_number, require_whole
from pindown.learn.mutual_autoencoder.grammar import LONGEST
from pindown.learn.mutual_autoencoder.measure import MeasuredInformation, measure_information
from pindown.learn.mutual_autoencoder.networks import GaussianEncoder, MixtureGuess, fill, perceptron
from pindown.learn.mutual_autoencoder.sampling import sampled_information
from pindown.learn.mutual_autoencoder.training import Parts, Recipe, Trace, train
from pindown.learn.one_class.torch_state import own_torch

_WORD = 16  # features of a word
_DRAWS = 4  # sentences per code in the gradient of the information
_GLANCE = (64, 512)  # sentences and codes of an estimate on the way
_GUESS_STEPS = 300  # of the fresh guess of the measurement at most
_FINAL = (300, 1_000)  # and of the last one


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
        return self._unroll(z, lambda p: torch.multinomial(p.softmax(-1), 1, generator=random)[:, 0])

    def likeliest(self, z: Tensor) -> Tensor:
        """Return sentences that take the likeliest word each time."""
        return self._unroll(z, lambda p: p.argmax(-1))

    def _unroll(self, z: Tensor, choose: Any) -> Tensor:
        with torch.no_grad():
            word, state, found = torch.zeros(len(z), dtype=torch.int64), None, []
            for _ in range(self.length):
                out, state = self.net(torch.cat([self.table(word), z], -1)[:, None, :], state)
                word = choose(self.head(out[:, 0]))
                found.append(word)
        return torch.stack(found, 1)


@dataclass(frozen=True)
class SentenceAutoencoder:
    """A trained model of sentences.

    Attributes:
        vocabulary: Words; number 0 is the end.
        parts: Encoder, decoder and guess.
        measured: Information between code and sentence, from below: by a guess trained afresh.
        at_most: The same from above, up to its standard error: by averaging over codes.
        trace: What was seen in training.
        length: Most words, the end included.
    """

    vocabulary: tuple[str, ...]
    parts: Parts
    measured: MeasuredInformation
    at_most: MeasuredInformation
    trace: Trace
    length: int

    def __str__(self) -> str:
        return (
            f"sentences of {len(self.vocabulary) - 1} words; information between "
            f"{self.measured.value:.2f} and {self.at_most.value:.2f} "
            f"± {self.at_most.standard_error:.2g} nats (estimate)"
        )

    def encode(self, sentences: Sequence[str]) -> Array:
        """Return the mean code of every sentence, (n, latent)."""
        with own_torch(), torch.no_grad():
            rows = _rows(sentences, self.vocabulary, self.length)
            out: Array = self.parts.encoder(rows)[0].numpy()
            return out

    def decode(self, codes: Array) -> list[str]:
        """Return the sentence that takes the likeliest word each time."""
        z = torch.as_tensor(np.asarray(codes, dtype=np.float64))
        with own_torch():
            return _sentences(self.parts.decoder.likeliest(z), self.vocabulary)

    def reconstruct(self, sentences: Sequence[str]) -> list[str]:
        """Return what comes back from the mean codes."""
        return self.decode(self.encode(sentences))

    def interpolate(self, first: str, last: str, steps: int = 5) -> list[str]:
        """Return sentences along the straight line between two codes."""
        a, b = self.encode([first, last])
        return self.decode(np.linspace(a, b, require_whole("steps", steps, 2)))


def fit_sentences(
    sentences: Sequence[str],
    information: float,
    *,
    latent: int = 4,
    width: int = 32,
    steps: int = 900,
    penalty: float = 5.0,
    proposals: int | None = None,
    warm_start: float = 0.4,
    batch_size: int = 128,
    learning_rate: float = 1e-2,
    random_state: int = 0,
    verbose: int = 1,
) -> SentenceAutoencoder:
    """Train a mutual autoencoder of sentences.

    A decoder pushed towards information from the first step on finds a code of its own that the encoder
    never learns. So training starts as an autoencoder: for a share ``warm_start`` of the steps there is
    no push and hardly any divergence; over as many more the divergence comes in while the dial holds the
    information. The decoder sees the true words before each word (teacher forcing), none dropped.

    Args:
        sentences: Words separated by blanks, at most eight each.
        information: M, in nats.
        latent: Length of the code.
        width: Of the recurrent networks.
        steps: Training steps.
        penalty: C; 0 for a plain variational autoencoder.
        proposals: Of the resampling encoder; None for the plain one.
        warm_start: Share of the steps, at most a half; not used if ``information`` or ``penalty`` is 0.
        batch_size: Sentences, and draws from the model, per step.
        learning_rate: First step size of Adam.
        random_state: Seed.
        verbose: Whether a bar appears after two seconds; Ctrl-C keeps what was reached.

    Raises:
        ValueError: If there are no sentences, one is empty or too long, or a number means nothing.

    Phuong 2021, section 4.6; the source gives no sizes and no schedule, so these are ours.
    """
    if not is_number(information, 0) or not is_number(penalty, 0):
        raise ValueError(
            f"information and penalty must be zero or positive; got {information!r}, {penalty!r}."
        )
    if not is_number(warm_start, 0) or warm_start > 0.5:
        raise ValueError(f"warm_start must be between 0 and 0.5; got {warm_start!r}.")
    for name, value in (("latent", latent), ("width", width), ("steps", steps)):
        require_whole(name, value)
    vocabulary = _vocabulary(sentences)
    rows = _rows(sentences, vocabulary, 1 + max(len(s.split()) for s in sentences))
    _warn_beyond_entropy(rows, information, penalty)
    recipe = Recipe(
        float(information),
        penalty=float(penalty),
        proposals=proposals,
        steps=steps,
        batch_size=require_whole("batch_size", batch_size),
        learning_rate=learning_rate,
        draws=_DRAWS,
        warm_start=float(warm_start) if information > 0 and penalty > 0 else 0.0,
    )
    random = torch.Generator().manual_seed(random_state)
    with own_torch():
        return _trained(vocabulary, rows, recipe, (latent, width), random, verbose)


def _trained(
    vocabulary: tuple[str, ...],
    rows: Tensor,
    recipe: Recipe,
    sizes: tuple[int, int],
    random: torch.Generator,
    verbose: int,
) -> SentenceAutoencoder:
    (latent, width), count, length = sizes, len(vocabulary), rows.shape[1]

    def guess() -> MixtureGuess:
        return MixtureGuess(SentenceReader(count, width, random), latent, (), 1, random)

    encoder = GaussianEncoder(SentenceReader(count, width, random), latent, (), random)
    decoder = SentenceDecoder(count, length, latent, width, random)
    parts = Parts(encoder, decoder, guess())

    def look() -> float:
        return sampled_information(decoder, random, n=_GLANCE[0], codes=_GLANCE[1])[0]

    trace = train(parts, rows, recipe, random, exact=look, verbose=verbose)
    value, error = sampled_information(decoder, random, n=_FINAL[0], codes=_FINAL[1])
    above = MeasuredInformation(max(value, 0.0), error, "estimate", "average over codes", _FINAL[0])
    most = min(recipe.steps, _GUESS_STEPS)
    below = measure_information(decoder, guess(), random, steps=most, batch_size=recipe.batch_size)
    for net in (parts.encoder, parts.decoder, parts.guess):
        net.double().requires_grad_(False)
    return SentenceAutoencoder(vocabulary, parts, below, above, trace, length)


def _vocabulary(sentences: Sequence[str]) -> tuple[str, ...]:
    if isinstance(sentences, str) or len(sentences) == 0:
        raise ValueError("sentences must be a sequence with at least one sentence; got none.")
    for sentence in sentences:
        if not 0 < len(sentence.split()) <= LONGEST:
            raise ValueError(f"a sentence must have 1 to {LONGEST} words; got {sentence!r}.")
    return ("<end>", *sorted({word for sentence in sentences for word in sentence.split()}))


def _rows(sentences: Sequence[str], vocabulary: Sequence[str], length: int) -> Tensor:
    place = {word: i for i, word in enumerate(vocabulary)}
    rows = torch.zeros((len(sentences), length), dtype=torch.int64)
    for i, sentence in enumerate(sentences):
        words = sentence.split()
        unknown = [word for word in words if word not in place]
        if unknown or len(words) >= length:
            reason = f"the word {unknown[0]!r}" if unknown else f"{len(words)} words"
            raise ValueError(f"sentence {sentence!r} has {reason}, which training did not have.")
        rows[i, : len(words)] = torch.tensor([place[word] for word in words])
    return rows


def _sentences(rows: Tensor, vocabulary: Sequence[str]) -> list[str]:
    found = []
    for row in rows.tolist():
        words = row[: row.index(0)] if 0 in row else row
        found.append(" ".join(vocabulary[i] for i in words))
    return found


def _warn_beyond_entropy(rows: Tensor, information: float, penalty: float) -> None:
    counts = torch.unique(rows, dim=0, return_counts=True)[1].double()
    p = counts / counts.sum()
    entropy = -float((p * p.log()).sum())
    if penalty > 0 and information > entropy:
        warnings.warn(
            f"information={information:g} is more than the {entropy:.4g} nats of entropy of the "
            "sentences; no code can carry it. Ask for less.",
            stacklevel=3,
        )

"""Recurrent encoder and decoder for short sentences, and the function that trains them.

The reader is a bidirectional LSTM; the decoder an LSTM that sees the code at every word. Without a
target for the information such a decoder is strong enough to ignore its code. The gradient of the
information is the score-function estimate with four sentences per code, each with the mean of the other
three as baseline.

Phuong 2021, section 4.6.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.learn.mutual_autoencoder.grammar import LONGEST
from pindown.learn.mutual_autoencoder.measure import MeasuredInformation, measure_information
from pindown.learn.mutual_autoencoder.networks import GaussianEncoder, MixtureGuess
from pindown.learn.mutual_autoencoder.recurrent import SentenceDecoder, SentenceReader
from pindown.learn.mutual_autoencoder.sampling import sampled_information
from pindown.learn.mutual_autoencoder.training import Parts, Recipe, Trace, train
from pindown.learn.torch_isolation import PROCESSOR, on_processor, own_torch, usable_device
from pindown.validation import integer, is_number

_DRAWS = 4  # sentences per code in the gradient of the information
_GLANCE = (64, 512)  # sentences and codes of an estimate on the way
_GUESS_STEPS = 300  # of the fresh guess of the measurement at most
_FINAL = (300, 1_000)  # and of the last one


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
        return self.decode(np.linspace(a, b, integer("steps", steps, least=2)))


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
    device: str = "cpu",
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
        device: Where the networks are trained, as torch names it. Only ``"cpu"`` is tested.
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
        integer(name, value)
    place, vocabulary = usable_device(device), _vocabulary(sentences)
    rows = _rows(sentences, vocabulary, 1 + max(len(s.split()) for s in sentences))
    _warn_beyond_entropy(rows, information, penalty)
    recipe = Recipe(
        float(information),
        penalty=float(penalty),
        proposals=proposals,
        steps=steps,
        batch_size=integer("batch_size", batch_size),
        learning_rate=learning_rate,
        draws=_DRAWS,
        warm_start=float(warm_start) if information > 0 and penalty > 0 else 0.0,
    )
    random = torch.Generator().manual_seed(random_state)
    with own_torch():
        return _trained(vocabulary, rows.to(place), recipe, (latent, width), random, verbose)


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
        here = on_processor(decoder)
        return sampled_information(here, random, n=_GLANCE[0], codes=_GLANCE[1])[0]

    trace = train(parts.to(rows.device), rows, recipe, random, exact=look, verbose=verbose)
    parts.to(PROCESSOR)
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

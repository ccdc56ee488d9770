"""A mutual autoencoder of short sentences, and a small grammar to draw them from.

The reader is a bidirectional LSTM; the decoder an LSTM that sees the code at every word. Without a
target for the information such a decoder is strong enough to ignore its code. The gradient of the
information is the score-function estimate with four sentences per code, each with the mean of the other
three as baseline. Every sentence of the grammar has one derivation, so its probability and the entropy
of the language are known exactly.

Phuong 2021, section 4.6.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.learn.mutual_autoencoder._networks import (
    GaussianEncoder,
    MixtureGuess,
    SentenceDecoder,
    SentenceReader,
)
from pindown.learn.mutual_autoencoder.information import (
    MeasuredInformation,
    measure_information,
    sampled_information,
)
from pindown.learn.mutual_autoencoder.training import Networks, Recipe, Trace, train
from pindown.learn.mutual_autoencoder.tuning import (
    FINAL_ESTIMATE,
    MAX_GUESS_STEPS,
    QUICK_ESTIMATE,
    SENTENCES_PER_CODE,
)
from pindown.torch_modules import on_processor, own_torch, usable_device
from pindown.validation import integer, number, positive

_WORDS = {
    "the": ("the", "this"),
    "kind": ("dull", "clever", "slow", "noisy"),
    "thing": ("film", "scene", "story", "actor", "ending", "song"),
    "does": ("moves", "bores", "amuses", "surprises"),
    "whom": ("me", "us", "critics", "children"),
    "who": ("we", "they", "people"),
    "feel": ("loved", "hated", "forgot", "watched"),
    "when": ("again", "today", "twice"),
}
_FORMS = (
    ("the", "kind", "thing", "does", "whom"),
    ("who", "feel", "the", "kind", "thing", "when"),
    ("the", "thing", "does", "whom", "when"),
)
MAX_WORDS = 8  # words of a sentence, as in the source's selection


@dataclass(frozen=True)
class SentenceAutoencoder:
    """A trained model of sentences.

    Attributes:
        vocabulary: Words; number 0 is the end.
        networks: Encoder, decoder and guess.
        measured: Information between code and sentence, from below: by a guess trained afresh.
        at_most: The same from above, up to its standard error: by averaging over codes.
        trace: What was seen in training.
        length: Most words, the end included.
    """

    vocabulary: tuple[str, ...]
    networks: Networks
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
            out: Array = self.networks.encoder(rows)[0].numpy()
            return out

    def decode(self, codes: Array) -> list[str]:
        """Return the sentence that takes the likeliest word each time."""
        z = torch.as_tensor(np.asarray(codes, dtype=np.float64))
        with own_torch():
            return _sentences(self.networks.decoder.likeliest(z), self.vocabulary)

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
        width: Width of the recurrent networks.
        steps: Training steps.
        penalty: C; 0 for a plain variational autoencoder.
        proposals: Number of proposals of the resampling encoder; None for the plain one.
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
    positive("information", information, zero=True)
    positive("penalty", penalty, zero=True)
    number("warm_start", warm_start, 0.0, 0.5)
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
        draws=SENTENCES_PER_CODE,
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
    networks = Networks(encoder, decoder, guess())

    def look() -> float:
        n, codes = QUICK_ESTIMATE
        return sampled_information(on_processor(decoder), random, n=n, codes=codes)[0]

    trace = train(networks.to(rows.device), rows, recipe, random, exact=look, verbose=verbose)
    networks.to("cpu")
    n, codes = FINAL_ESTIMATE
    value, error = sampled_information(decoder, random, n=n, codes=codes)
    above = MeasuredInformation(max(value, 0.0), error, "estimate", "average over codes", n)
    most = min(recipe.steps, MAX_GUESS_STEPS)
    below = measure_information(decoder, guess(), random, steps=most, batch_size=recipe.batch_size)
    for net in (networks.encoder, networks.decoder, networks.guess):
        net.double().requires_grad_(False)
    return SentenceAutoencoder(vocabulary, networks, below, above, trace, length)


def _vocabulary(sentences: Sequence[str]) -> tuple[str, ...]:
    if isinstance(sentences, str) or len(sentences) == 0:
        raise ValueError("sentences must be a sequence with at least one sentence; got none.")
    for sentence in sentences:
        if not 0 < len(sentence.split()) <= MAX_WORDS:
            raise ValueError(f"a sentence must have 1 to {MAX_WORDS} words; got {sentence!r}.")
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


def film_sentences(n: int, random_state: int = 0, *, forms: int = 1) -> list[str]:
    """Draw sentences: a form, then each of its words, all with equal chances.

    Args:
        n: How many.
        random_state: Seed.
        forms: How many of the three forms are in use; the first has 768 sentences, all have 3,072.

    >>> film_sentences(2)
    ['this slow actor bores us', 'the dull film moves children']
    """
    rng, used = np.random.default_rng(random_state), _used(forms)
    found = []
    for _ in range(integer("n", n)):
        form = used[rng.integers(len(used))]
        found.append(" ".join(_WORDS[slot][rng.integers(len(_WORDS[slot]))] for slot in form))
    return found


def grammar_entropy(forms: int = 1) -> float:
    """Return the entropy of a sentence in nats: no code can carry more.

    >>> round(grammar_entropy(), 3), round(grammar_entropy(3), 3)
    (6.644, 7.917)
    """
    used = _used(forms)
    inside = [sum(math.log(len(_WORDS[slot])) for slot in form) for form in used]
    return math.log(len(used)) + sum(inside) / len(used)


def _used(forms: int) -> tuple[tuple[str, ...], ...]:
    return _FORMS[: integer("forms", forms, most=len(_FORMS))]


def exact_matches(given: Sequence[str], back: Sequence[str]) -> float:
    """Return the share of sentences that came back word for word.

    >>> exact_matches(["a b", "c d"], ["a b", "c e"])
    0.5
    """
    _same_length(given, back)
    return sum(a.split() == b.split() for a, b in zip(given, back, strict=True)) / len(given)


def word_matches(given: Sequence[str], back: Sequence[str]) -> float:
    """Return the share of words that came back at their place.

    >>> word_matches(["a b", "c d e"], ["a x", "c d"])
    0.6
    """
    _same_length(given, back)
    total = sum(len(a.split()) for a in given)
    pairs = [
        pair for a, b in zip(given, back, strict=True) for pair in zip_longest(a.split(), b.split())
    ]
    return sum(a == b for a, b in pairs) / total


def position_baseline(sentences: Sequence[str]) -> float:
    """Return the share of words that the commonest word of every place gets right.

    >>> position_baseline(["a b", "a c", "d b"])
    0.6666666666666666
    """
    places: dict[int, Counter[str]] = {}
    for sentence in sentences:
        for i, word in enumerate(sentence.split()):
            places.setdefault(i, Counter())[word] += 1
    total = sum(sum(counts.values()) for counts in places.values())
    return sum(counts.most_common(1)[0][1] for counts in places.values()) / total


def _same_length(given: Sequence[str], back: Sequence[str]) -> None:
    if not given or len(given) != len(back):
        raise ValueError(
            f"needs as many sentences back as given, at least one; got {len(given)}, {len(back)}."
        )

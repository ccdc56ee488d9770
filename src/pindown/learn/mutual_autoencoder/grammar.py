"""Short sentences about films from a small grammar, and how many words of a sentence came back.

Every sentence has one derivation, so its probability and the entropy of the language are known exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from pindown.validation import integer

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
LONGEST = 8  # words of a sentence, as in the source's selection


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
    if integer("forms", forms) > len(_FORMS):
        raise ValueError(f"forms must be 1 to {len(_FORMS)}; got {forms}.")
    return _FORMS[:forms]


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

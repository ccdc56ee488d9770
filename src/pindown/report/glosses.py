"""Words of the house, each explained once, where a page says it first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# What a reader meets, as a pattern, the word to show, and what it means in one line.
_TERMS: tuple[tuple[str, str, str], ...] = (
    (r"units?\b", "unit", "one ReLU: a number max(0, ...) inside the model"),
    (r"dead\b", "dead", "off, that is 0, wherever one looked"),
    (r"overconfiden|calibrat|sure in the mean", "calibrated",
     "of answers given with 80% confidence, 80% are right"),
    (r"temperature|before the softmax", "temperature",
     "what scores are divided by before they become probabilities; above 1 it makes them less sure"),
    (r"scores?\b", "score", "what the model puts out for a class, before probabilities"),
    (r"neighbours?\b", "neighbour", "one of the rows whose inputs are most alike"),
    (r"error rate", "error rate", "the share of new rows it is wrong on, if they are like these"),
    (r"certified|certainly keep", "certified", "proved for every input in reach, not tried on some"),
    (r"linf\b", "linf", "distance as the largest change of any one input"),
    (r"(?:bounding |given |reference )?box\b", "box", "all inputs between two ends, input by input"),
    (r"margins?\b", "margin", "the score of the right class minus the best other score"),
    (r"cells?\b|linear regions?", "cell", "a part of the inputs on which the model is one affine map"),
    (r"folds?\b", "fold", "where two cells meet and the model bends"),
    (r"affine\b", "affine", "a matrix times the inputs, plus a constant"),
    (r"lossless", "lossless", "without changing what the model computes"),
    (r"flat directions?", "flat direction", "a change of the weights that does not change the model"),
    (r"Lipschitz", "Lipschitz constant",
     "how many times as long as a change of the inputs the change of the outputs can be"),
    (r"spectral norm", "spectral norm", "how much a matrix can lengthen a vector"),
    (r"(?:stable|effective) rank", "effective rank", "about how many directions a matrix uses"),
    (r"tangent kernel", "tangent kernel",
     "how much a step of training on one row moves the answer to another"),
    (r"vacuous", "vacuous", "true, and no more than is known without it"),
    (r"separab", "separable", "rows of one class point alike, rows of different classes apart"),
    (r"relaxation", "relaxation", "a simpler problem whose answer is a bound for the real one"),
)  # fmt: skip
_PATTERNS = [(re.compile(rf"\b(?:{p})", re.IGNORECASE), term, means) for p, term, means in _TERMS]


def first_glosses(places: Iterable[tuple[str, str]]) -> Mapping[str, list[tuple[str, str]]]:
    """Return for every place of a page the words that come up there first, with their meaning.

    Args:
        places: Name and text of each place, in the order of the page.

    >>> first_glosses([("top", "3 cells"), ("card", "cells and folds")])["card"]
    [('fold', 'where two cells meet and the model bends')]
    """
    left = list(_PATTERNS)
    found: dict[str, list[tuple[str, str]]] = {}
    for place, text in places:
        here = [(term, meaning) for pattern, term, meaning in left if pattern.search(text)]
        if here:
            found[place] = here
            left = [entry for entry in left if (entry[1], entry[2]) not in here]
    return found

"""Find results by a number ("Mukherjee 3.3.1", "K14") or by plain words, best first."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from difflib import get_close_matches
from functools import cache

from pindown.theorems.tables import FIELDS, Result, results, sources

# How much a word counts by where it stands; set with a part of tests/theorems/questions.toml.
_WEIGHTS = {
    "title": 3.0, "words": 3.0, "statement": 1.0, "functions": 1.0, "field": 1.0, "errata": 0.3,
}  # fmt: skip
_EXPERIMENT = 0.7  # factor of results that are runs of published numbers, unless one asks for them
_PHRASE = 2.0  # for each subject of several words that the question holds whole, times its words
_ENDINGS = re.compile(
    "(?:isations|izations|isation|ization|ising|izing|ised|ized|ise|ize|ations|ation|ities|ity|ings|ing"
    "|edly|ences|ence|ent|ed|ies|es|ly|s|e|y)$"
)
_STEM = 3  # letters that are left at least
_STOP = re.compile(
    r"(?:a|an|and|are|as|at|be|best|by|can|do|does|for|from|get|has|have|how|i|if|in|into|is|it|its|like"
    r"|make|many|much|must|my|need|needed|number|of|on|one|or|should|that|the|them|there|they|this|to|use"
    r"|was|what|when|where|which|why|will|with|you|your)"
)
_DOTTED = r"(?:[0-9]+|[A-E])(?:\.(?:[0-9]+|[A-G]))+"
_KINDS = (
    "theorem|lemma|definition|corollary|corollaries|proposition|claim|algorithm|table|figure|section"
    "|chapter|appendix"
)
_PARTS = re.compile(rf"\b({_KINDS})(?:s)?\b|\b({_DOTTED}|[0-9]+)\b(?: to ({_DOTTED}))?", re.IGNORECASE)


def find(question: str, *, n: int = 10) -> list[Result]:
    """Return the results that answer a question, best first.

    Args:
        question: An id, a number of a source with or without its author, or plain words.
        n: At most so many.

    Returns:
        Results; none if no word of the question is known, or no result of the source has the number.

    >>> [one.id for one in find("Mukherjee 3.3.1")], find("representer theorem")[0].id
    (['R26'], 'K14')
    """
    text = " ".join(question.split())
    if text.upper() in results():
        return [results()[text.upper()]]
    asked = _numbers(text)
    named = [s.name for s in sources() if _names(s.name, s.aliases, text)]
    if asked:
        mine = [one for one in results().values() if not named or one.source in named]
        near = [one for one in mine if asked.keys() & _numbers(one.number).keys()]
        near = near or [one for one in mine if asked.keys() & _numbers(one.also).keys()]
        exact = [one for one in near if asked.items() & _numbers(one.number).items()]
        exact = exact or [one for one in mine if asked.items() & _numbers(one.also).items()]
        text = _without_numbers(text, named)
        if near or not _words(text):
            return (exact or near)[:n]
    scores = _scores(text)
    if named:
        scores = {name: score for name, score in scores.items() if results()[name].source in named}
    order = list(results())
    ranked = sorted(scores, key=lambda name: (-scores[name], order.index(name)))
    return [results()[name] for name in ranked[:n]]


def _without_numbers(text: str, named: list[str]) -> str:
    """Return what a question says besides numbers of results and the sources that it names."""
    words = _PARTS.sub(" ", text)
    for one in sources():
        if one.name in named:
            for alias in (one.name.split(maxsplit=1)[0], *one.aliases):
                words = re.sub(rf"\b{re.escape(alias)}\b", " ", words, flags=re.IGNORECASE)
    return words


def _names(name: str, aliases: tuple[str, ...], text: str) -> bool:
    first = name.split(maxsplit=1)[0].lower()
    return any(re.search(rf"\b{re.escape(alias)}\b", text.lower()) for alias in (first, *aliases))


def _numbers(text: str) -> dict[str, str]:
    """Return the numbers of theorems in a text with what they count, ranges in full.

    >>> _numbers("Lemmas A.10 to A.12, Algorithm 2, section 6.7")
    {'A.10': 'lemma', 'A.11': 'lemma', 'A.12': 'lemma', 'algorithm 2': 'algorithm', '6.7': 'section'}
    """
    found: dict[str, str] = {}
    kind = ""
    for name, number, end in _PARTS.findall(text):
        if name:
            kind = name.lower().replace("corollaries", "corollary")
        elif "." in number:
            head, _, first = number.rpartition(".")
            last = end.rpartition(".")[2] if end else first
            whole = first.isdigit() and last.isdigit()
            ends = [f"{head}.{i}" for i in range(int(first), int(last) + 1)] if whole else [number]
            found |= dict.fromkeys(ends, kind)
        elif kind:
            found[f"{kind} {number}"] = kind
    return found


def _words(text: str) -> list[str]:
    """Return the words of a text without endings, accents and formulas' backslashes.

    >>> _words("Regularised risks, the regularisation of Cramér")
    ['regular', 'risk', 'regular', 'cramer']
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return [_stem(word) for word in re.findall(r"[a-z0-9]+", plain) if not _STOP.fullmatch(word)]


def _stem(word: str) -> str:
    """Return a word without its longest ending that leaves enough of it."""
    found = _ENDINGS.search(word, _STEM)
    return word[: found.start()] if found else word


@cache
def _index() -> tuple[dict[str, dict[str, float]], dict[str, float], dict[str, list[list[str]]]]:
    """Return weights of words by result, how rare each word is, and the results' phrases."""
    weights: dict[str, dict[str, float]] = {}
    phrases: dict[str, list[list[str]]] = {}
    for name, one in results().items():
        parts = {
            "title": one.title,
            "words": " ".join(one.words),
            "statement": re.sub(r"\$[^$]*\$|\\[a-zA-Z]+", " ", one.statement),
            "functions": " ".join(path.rpartition(".")[2].replace("_", " ") for path in one.functions),
            "field": FIELDS[one.field],
            "errata": " ".join(each.where for each in one.errata),
        }
        held: dict[str, float] = {}
        for part, text in parts.items():
            for word in set(_words(text)):
                held[word] = max(held.get(word, 0.0), _WEIGHTS[part])
        weights[name] = held
        phrases[name] = [_words(phrase) for phrase in (one.title, *one.words)]
    counts = Counter(word for held in weights.values() for word in held)
    rarity = {word: math.log(1.0 + len(weights) / count) for word, count in counts.items()}
    return weights, rarity, phrases


def _scores(text: str) -> dict[str, float]:
    weights, rarity, phrases = _index()
    asked = [_nearest(word, rarity) for word in _words(text)]
    known = {word for word in asked if word}
    together = " ".join(word or "?" for word in asked)
    scores = {}
    for name, held in weights.items():
        score = sum(rarity[word] * held[word] for word in known if word in held)
        for phrase in phrases[name]:
            if len(phrase) > 1 and f" {' '.join(phrase)} " in f" {together} ":
                score += _PHRASE * len(phrase)
        if score > 0.0:
            run = _is_run(results()[name]) and _stem("experiment") not in known
            scores[name] = score * (_EXPERIMENT if run else 1.0)
    return scores


def _is_run(one: Result) -> bool:
    """Return whether a result is a published table or figure, not a statement."""
    return "experiment" in one.words


def _nearest(word: str, rarity: dict[str, float]) -> str:
    """Return a word, or the known one that it misspells; empty if there is none."""
    if word in rarity:
        return word
    near = get_close_matches(word, rarity, n=1, cutoff=0.84) if len(word) > _STEM + 1 else []
    return near[0] if near else ""

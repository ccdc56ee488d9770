"""Find results by a number ("Mukherjee 3.3.1", "K14") or by plain words, best first.

Words count by where they stand, the more the rarer they are, and less each time they come again (BM25).
A word that a result does not have may be met by a neighbour in ``thesaurus.toml``. What docstrings say
counts least; it is read from their files, so that a search imports nothing.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections import Counter
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from pindown.lazy import homes_of
from pindown.theorems.tables import FIELDS, Result, results, sources

# How much a word counts by where it stands; set with parts of tests/theorems/questions.toml.
_WEIGHTS = {
    "title": 3.0, "words": 3.0, "statement": 1.0, "functions": 1.0, "field": 1.0, "errata": 0.3,
    "function": 0.5, "module": 0.3,
}  # fmt: skip
# Of BM25: how soon more of a word says nothing new, how much short texts gain.
_SATURATION, _LENGTH = 2.0, 0.3
_NEIGHBOUR = 0.7  # of a word of the thesaurus in place of the one that was asked
_EXPERIMENT = 0.7  # factor of results that are runs of published numbers, unless one asks for them
_PHRASE = 1.0  # for each subject of several words that the question holds whole, times its words
_ENDINGS = re.compile(
    "(?:isations|izations|isation|ization|ising|izing|ised|ized|ise|ize|ations|ation|itions|ition|ities|ity|ings|ing"
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
        near = [one for one in mine if _bare(asked) & _bare(_numbers(one.number))]
        near = near or [one for one in mine if _bare(asked) & _bare(_numbers(one.also))]
        exact = [one for one in near if set(asked) & set(_numbers(one.number))]
        exact = exact or [one for one in mine if set(asked) & set(_numbers(one.also))]
        text = _without_numbers(text, named)
        if near or not _words(text):
            opening = [one for one in exact if _opens(one.number, asked)]  # before its proof, say
            return (opening + [one for one in exact or near if one not in opening])[:n]
    scores = _scores(text)
    if named:
        scores = {name: score for name, score in scores.items() if results()[name].source in named}
    order = list(results())
    ranked = sorted(scores, key=lambda name: (-scores[name], order.index(name)))
    return [results()[name] for name in ranked[:n]]


def _bare(numbers: list[tuple[str, str]]) -> set[str]:
    """Return numbers alone, whatever they count."""
    return {number for number, _ in numbers}


def _opens(number: str, asked: list[tuple[str, str]]) -> bool:
    """Return whether the first that a reference names was asked for.

    >>> asked = _numbers("Theorem 2.1")
    >>> _opens("Theorem 2.1 (A.1)", asked), _opens("proof of Theorem 2.1", asked)
    (True, False)
    """
    first = _PARTS.match(number)
    return first is not None and bool(_bare(asked) & _bare(_numbers(number)[:1]))


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


def _numbers(text: str) -> list[tuple[str, str]]:
    """Return the numbers of theorems in a text with what they count, ranges in full.

    >>> _numbers("Lemmas A.1 to A.2, Algorithm 2, Theorem 3.1")
    [('A.1', 'lemma'), ('A.2', 'lemma'), ('algorithm 2', 'algorithm'), ('3.1', 'theorem')]
    """
    found: list[tuple[str, str]] = []
    kind = ""
    for name, number, end in _PARTS.findall(text):
        if name:
            kind = name.lower().replace("corollaries", "corollary")
        elif "." in number:
            head, _, first = number.rpartition(".")
            last = end.rpartition(".")[2] if end else first
            whole = first.isdigit() and last.isdigit()
            ends = [f"{head}.{i}" for i in range(int(first), int(last) + 1)] if whole else [number]
            found += [(each, kind) for each in ends]
        elif kind:
            found.append((f"{kind} {number}", kind))
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


class _Index(NamedTuple):
    """What the search knows of all results."""

    counts: dict[str, dict[str, float]]  # of a word in a result, saturated
    rarity: dict[str, float]
    phrases: dict[str, list[list[str]]]
    neighbours: dict[str, set[str]]
    sayings: list[tuple[list[str], list[str]]]


@cache
def _index() -> _Index:
    held: dict[str, dict[str, float]] = {}
    phrases: dict[str, list[list[str]]] = {}
    for name, one in results().items():
        own, module = prose_of(one.functions[0])
        parts = {
            "title": one.title,
            "words": " ".join(one.words),
            "statement": re.sub(r"\$[^$]*\$|\\[a-zA-Z]+", " ", one.statement),
            "functions": " ".join(path.rpartition(".")[2].replace("_", " ") for path in one.functions),
            "field": FIELDS[one.field],
            "errata": " ".join(each.where for each in one.errata),
            "function": own,
            "module": module,
        }
        weights: dict[str, float] = {}
        for part, text in parts.items():
            for word, times in Counter(_words(text)).items():
                weights[word] = weights.get(word, 0.0) + _WEIGHTS[part] * (1.0 + math.log(times))
        held[name] = weights
        phrases[name] = [_words(phrase) for phrase in (one.title, *one.words)]
    mean = sum(sum(weights.values()) for weights in held.values()) / len(held)
    counts = {}
    for name, weights in held.items():
        soft = _SATURATION * (1.0 - _LENGTH + _LENGTH * sum(weights.values()) / mean)
        counts[name] = {word: w * (_SATURATION + 1.0) / (w + soft) for word, w in weights.items()}
    times_held = Counter(word for weights in held.values() for word in weights)
    rarity = {word: math.log1p((len(held) - n + 0.5) / (n + 0.5)) for word, n in times_held.items()}
    return _Index(counts, rarity, phrases, *_thesaurus())


def _thesaurus() -> tuple[dict[str, set[str]], list[tuple[list[str], list[str]]]]:
    """Return words that may stand for each other, and what is said in several words.

    >>> neighbours, sayings = _thesaurus()
    >>> "imag" in neighbours["photo"], (["learn", "rat"], ["step", "siz"]) in sayings
    (True, True)
    """
    table = tomllib.loads(files(__package__).joinpath("thesaurus.toml").read_text("utf-8"))
    neighbours: dict[str, set[str]] = {}
    for group in map(_words, table["groups"]):
        for word in group:
            neighbours.setdefault(word, set()).update(group)
    pairs = [tuple(map(_words, pair)) for pair in table["phrases"]]
    return neighbours, [(a, b) for one, other in pairs for a, b in ((one, other), (other, one))]


def _scores(text: str) -> dict[str, float]:
    index, asked = _index(), _words(text)
    known = {word: near for word in asked if (near := _nearest(word, index))}
    wanted = {  # each word, and how much its neighbours count at most in its place
        word: {
            other: _NEIGHBOUR * min(index.rarity[other], index.rarity.get(known.get(word, ""), math.inf))
            for other in index.neighbours.get(word, ())
            if other in index.rarity and other not in known.values()
        }
        for word in dict.fromkeys(asked)
    }
    together = f" {' '.join(known.get(word, '?') for word in asked)} "
    for saying, meant in index.sayings:
        if f" {' '.join(saying)} " in f" {' '.join(asked)} ":
            new = [word for word in meant if word in index.rarity and word not in wanted]
            wanted |= {word: {word: _NEIGHBOUR * index.rarity[word]} for word in new}
    scores = {}
    for name, counts in index.counts.items():
        score = 0.0
        for word, others in wanted.items():
            near = known.get(word, "")
            own = index.rarity[near] * counts[near] if near in counts else 0.0
            score += max([own, *(w * counts[other] for other, w in others.items() if other in counts)])
        for phrase in index.phrases[name]:
            if len(phrase) > 1 and f" {' '.join(phrase)} " in together:
                score += _PHRASE * len(phrase)
        if score > 0.0:
            run = _is_run(results()[name]) and _stem("experiment") not in known.values()
            scores[name] = score * (_EXPERIMENT if run else 1.0)
    return scores


def _is_run(one: Result) -> bool:
    """Return whether a result is a published table or figure, not a statement."""
    return "experiment" in one.words


def _nearest(word: str, index: _Index) -> str:
    """Return a word, or the known one that it misspells; empty if there is none."""
    if word in index.rarity or word in index.neighbours:
        return word if word in index.rarity else ""
    near = get_close_matches(word, index.rarity, n=1, cutoff=0.84) if len(word) > _STEM + 1 else []
    return near[0] if near else ""


# ---------------------------------------------------------------------- what docstrings say

_PACKAGE = Path(__file__).parents[1]
_FIRST = re.compile(r'\A(?:#.*\n|\s)*r?"""(.*?)"""', re.DOTALL)
_PASSED_OVER = re.compile(
    r"^[ ]*(?:>>>|\.\.\.)[^\n]*$"  # sessions
    r"|\.\. math::.*?(?=\n\n|\Z)|:math:`[^`]*`"
    r"|\n[ ]*(?:Raises|Example):.*\Z"
    r"|\b(?:Mukherjee|Phuong|Wolf|Brutzkus)[^.]*\d{4}[^.]*\.",  # sources
    re.MULTILINE | re.DOTALL,
)
_ROLE = re.compile(r":\w+:`~?([^`]*)`")


def prose_of(path: str) -> tuple[str, str]:
    """Return what the docstrings of a public name and of its module say; empty where there is no text.

    Args:
        path: A dotted name.

    >>> prose_of("pindown.canonical")[0].split(". ")[0]
    'Return the representative of all symmetric copies of the network'
    """
    module, _, name = path.rpartition(".")
    while _place(module).with_suffix(".pyi").is_file():  # a package that has it from elsewhere
        import_module(module)
        module, name = homes_of(module)[name]
    text = _text(module)
    own = re.search(rf'^(?:def|class) {name}\b.*?"""(.*?)"""', text, re.DOTALL | re.MULTILINE)
    whole = _FIRST.search(text)
    return _plain(own[1] if own else ""), _plain(whole[1] if whole else "")


def _plain(docstring: str) -> str:
    return " ".join(_ROLE.sub(r"\1", _PASSED_OVER.sub(" ", docstring)).split())


def _place(module: str) -> Path:
    """Return the file of a module, or of a package's list."""
    place = _PACKAGE.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def _text(module: str) -> str:
    try:
        return _place(module).read_text("utf-8")
    except OSError:
        return ""  # a program without its sources

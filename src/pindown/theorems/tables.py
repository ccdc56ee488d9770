"""The tables of results, read once: what a source says, where it is computed, and what tests it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent

# Tables of results, in the order in which pages show them, with the letter that their ids begin with.
TABLES = {
    "course": "K",
    "relu_thesis": "R",
    "underspecification_thesis": "U",
    "local_maxima": "L",
    "max_pooling": "M",
}

# Subjects, in the order in which pages show them.
FIELDS = {
    "margins": "Linear separators and margins",
    "kernels": "Kernels and their function spaces",
    "regularisation": "Regularisation and least squares",
    "ntk": "The neural tangent kernel",
    "bias": "What training chooses: implicit bias",
    "optimisers": "Optimisers",
    "gates": "Learning one gate",
    "exact": "Training to the global optimum",
    "approximation": "Classes of functions and approximation",
    "depth": "Piecewise linear functions, pieces and depth",
    "boolean": "Boolean circuits",
    "identity": "Same function, same weights: identifiability",
    "bounds": "Generalisation bounds",
    "robustness": "Adversarial robustness",
    "fourier": "Frequencies",
    "probes": "What networks look at",
    "gan": "Generative adversarial networks",
    "symmetry": "Groups, invariance and equivariance",
    "graphs": "Sets and graphs",
    "signatures": "Invariant signatures",
    "plasticity": "Hebbian learning and plasticity",
    "discovery": "Finding a symmetry in data",
    "sparse": "Sparse coding and autoencoders",
    "information": "Information in codes",
    "distillation": "Distillation",
    "exits": "Networks with early exits",
    "maxpool": "Max pooling",
    "oneclass": "One-class learning: local maxima",
}


@dataclass(frozen=True)
class Chapter:
    """A part of a source.

    Attributes:
        title: Its title.
        first: Id of its first result.
        last: Id of its last one.
        guide: The page of the documentation on its subject.
        about: What it is about, and what did not hold.
    """

    title: str
    first: str
    last: str
    guide: str
    about: str

    @property
    def results(self) -> tuple[Result, ...]:
        """Its results, in order."""
        names = list(results())
        return tuple(results()[i] for i in names[names.index(self.first) : names.index(self.last) + 1])


@dataclass(frozen=True)
class Source:
    """A source of results.

    Attributes:
        key: Its table: ``"course"``, ``"relu_thesis"``, ....
        name: How it is cited.
        title: What it is called.
        aliases: Other names that people ask for it by.
        chapters: Its parts, in order.
    """

    key: str
    name: str
    title: str
    aliases: tuple[str, ...]
    chapters: tuple[Chapter, ...]


@dataclass(frozen=True)
class Erratum:
    """What is wrong in a source, and what holds.

    Attributes:
        source: How the source is cited.
        where: The place in it.
        results: Ids of the results it is about.
        printed: What is printed.
        corrected: What holds.
        tests: Tests that show the printed version failing and ours holding, ``path::name``.
    """

    source: str
    where: str
    results: tuple[str, ...]
    printed: str
    corrected: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """A theorem, algorithm, construction or experiment of a source.

    Attributes:
        id: ``"K1"`` to ``"K109"``, ``"R1"``, ....
        title: Its usual name.
        source: How the source is cited.
        number: Its number or place there.
        field: The subject, a key of ``FIELDS``.
        words: Subject words as textbooks use them.
        statement: What it says, in a line with its equation.
        functions: Public names that compute it, the first first.
        variants: Forms that they offer: ``"corrected"``, ``"as_printed"``, ``"sharp"``.
        test: The test of its claim, ``path::name``.
        experiment: What ``pindown reproduce`` calls it; empty if there is none.
        picture: The page of the gallery that shows it; empty if there is none.
        also: Further statements of the source that belong to it: lemmas of its proof, corollaries.
        own_example: A session written for it; empty if the first function's own serves.

    >>> from pindown.theorems import results
    >>> print(results()["R30"].reference)
    Mukherjee 2020, Algorithm 4, Lemma 3.5.1, Theorems 3.5.2 and 3.5.3
    """

    id: str
    title: str
    source: str
    number: str
    field: str
    words: tuple[str, ...]
    statement: str
    functions: tuple[str, ...]
    test: str
    variants: tuple[str, ...] = ()
    experiment: str = ""
    picture: str = ""
    also: str = ""
    own_example: str = ""

    @property
    def reference(self) -> str:
        """Source and number."""
        return f"{self.source}, {self.number}"

    @property
    def errata(self) -> tuple[Erratum, ...]:
        """What is wrong in the source's version."""
        return tuple(one for one in errata() if self.id in one.results)

    @property
    def example(self) -> str:
        """A session that runs as it stands: prompts, and what they print."""
        from pindown.theorems.examples import session_of

        return self.own_example or session_of(self.functions[0])

    def __str__(self) -> str:
        return f"{self.id}  {self.title} ({self.reference})"


@cache
def results() -> dict[str, Result]:
    """Return all results by id, source by source.

    >>> len(results()), results()["K14"].title
    (257, 'Representer theorem')
    """
    found: dict[str, Result] = {}
    for key in TABLES:
        table = _read(key)
        for name, entry in table["results"].items():
            fields = _frozen(entry)
            fields["words"] = tuple(word.strip() for word in entry["words"].split(","))
            fields["own_example"] = fields.pop("example", "").strip("\n")
            found[name] = Result(id=name, source=table["source"]["name"], **fields)
    return found


@cache
def sources() -> tuple[Source, ...]:
    """Return the sources, in the order of the tables.

    >>> [source.name for source in sources()][:2]
    ['Lecture course', 'Mukherjee 2020']
    """
    tables = {key: _read(key)["source"] for key in TABLES}
    return tuple(
        Source(
            key,
            table["name"],
            table["title"],
            tuple(table["aliases"]),
            tuple(Chapter(**chapter) for chapter in table["chapters"]),
        )
        for key, table in tables.items()
    )


@cache
def errata() -> tuple[Erratum, ...]:
    """Return what is wrong in the sources.

    >>> [one.where for one in errata() if "K108" in one.results]
    ['complementary mask']
    """
    return tuple(Erratum(**_frozen(entry)) for entry in _read("errata")["errata"])


def _frozen(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def _read(table: str) -> dict[str, Any]:
    return tomllib.loads((_HERE / f"{table}.toml").read_text("utf-8"))

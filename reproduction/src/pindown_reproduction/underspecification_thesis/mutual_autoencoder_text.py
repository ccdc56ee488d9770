"""Sentences: the more information is asked for, the more words come back.

The source uses sentences of at most eight words from film reviews; here a small grammar makes them.

Phuong 2021, section 4.6, Figure 4.4 and Table 4.1.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, SourceData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 500  # training sentences that are reconstructed
_TIE = 0.01  # that words may fall from one target to the next and count as the same
_POINTS = 0.05  # that a plain autoencoder may do better than the commonest words


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per target (None: plain autoencoder) and seed."""
    return [
        {
            "information": target,
            "seed": seed,
            "sentences": settings["sentences"],
            "forms": settings["forms"],
            "steps": settings["steps"] if target else settings["plain_steps"],
            "proposals": settings["proposals"],
        }
        for target in settings["targets"]
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Train, measure, reconstruct."""
    from pindown.learn.mutual_autoencoder.sentences import (
        exact_matches,
        film_sentences,
        fit_sentences,
        position_baseline,
        word_matches,
    )

    sentences = film_sentences(cell["sentences"], cell["seed"], forms=cell["forms"])
    plain = cell["information"] is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit_sentences(
            sentences,
            0.0 if plain else cell["information"],
            penalty=0.0 if plain else 5.0,
            steps=cell["steps"],
            proposals=cell["proposals"],
            random_state=cell["seed"],
            verbose=0,
        )
    given = sentences[:_SHOWN]
    back = model.reconstruct(given)
    return {
        "information": model.at_most.value,
        "least": model.measured.value,
        "exact": exact_matches(given, back),
        "words": word_matches(given, back),
        "baseline": position_baseline(given),
        "example": [given[0], back[0]],
        "between": model.interpolate(given[0], given[1]),
    }


def compare(results: Results) -> Outcome:
    """Word matches against the target and the commonest words."""
    targets = list(dict.fromkeys(cell["information"] for cell, _ in results))
    rows: list[tuple[Any, ...]] = []
    words: dict[Any, float] = {}
    fine = True
    for target in targets:
        mine = [found for cell, found in results if cell["information"] == target]
        least, told, exact, match, base = (
            float(np.mean([found[name] for found in mine]))
            for name in ("least", "information", "exact", "words", "baseline")
        )
        words[target] = match
        if target is None:
            fine = match <= base + _POINTS
        example = " -> ".join(mine[0]["example"])
        name = "plain" if target is None else target
        rows.append((name, least, told, exact, match, base, example))
    asked = sorted(target for target in targets if target is not None)
    shares = [words[target] for target in asked]
    rises = len(asked) > 1 and all(a <= b + _TIE for a, b in pairwise(shares)) and shares[-1] > shares[0]
    path = ", ".join(f"{100 * words[target]:.0f} % at M = {target:g}" for target in asked)
    text = f"Words that come back: {path or 'not run'}."
    if None in words:
        text += f" Plain: {100 * words[None]:.0f} %."
    return Outcome(
        "reproduced" if rises and fine else "not reproduced",
        text,
        ("target M", "nats, at least", "nats, at most", "exact", "words", "commonest words", "example"),
        tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw both shares over the measured information."""
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.subplots()
    for name, mark in (("words", "o"), ("exact", "s")):
        points = [(found["information"], found[name]) for _, found in results]
        axes.plot(*zip(*points, strict=True), mark, label=f"{name} that come back")
    axes.axhline(results[0][1]["baseline"], linestyle="--", color="#7F7F7F", label="commonest words")
    axes.set(xlabel="information (nats), a dot per run", ylabel="share", ylim=(-0.03, 1.03))
    return figure


EXPERIMENT = Experiment(
    id="mutual-autoencoder-text",
    title="Sentences that come back",
    source="Phuong 2021, Figure 4.4 and Table 4.1",
    published="Exactly reconstructed sentences and matching words both rise with M; a plain autoencoder "
    "returns unrelated sentences, M = 5 paraphrases, M = 10 near copies. No numbers are printed.",
    rule="Reproduced if words that come back rise with M (none falls by more than a point, and more "
    "come "
    "back at the largest M than at the smallest), and the plain "
    "autoencoder is at most five points better than the commonest word of every place.",
    settings={
        "quick": {
            "targets": [None, 0.0, 2.0, 4.0],
            "seeds": 1,
            "sentences": 2000,
            "forms": 1,
            "steps": 400,
            "plain_steps": 120,  # collapse is quick, and more steps do not undo it
            "proposals": None,
        },
        "decisive": {
            "targets": [None, 0.0, 2.0, 4.0],
            "seeds": 3,
            "sentences": 2000,
            "forms": 1,
            "steps": 400,
            "plain_steps": 120,
            "proposals": None,
        },
        "paper": {
            "targets": [None, 0.0, 2.0, 4.0, 6.0, 8.0],
            "seeds": 3,
            "sentences": 20_000,
            "forms": 3,
            "steps": 5000,
            "plain_steps": 5000,
            "proposals": 5,
        },
    },
    seconds={"quick": 51, "decisive": 150},
    power=Power(
        why="Three seeds: words that come back differ by a few points from run to run.",
    ),
    remark="A shorter run was not monotone.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
    data=SourceData("film reviews", otherwise="sentences of a grammar"),
)

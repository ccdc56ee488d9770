"""Gradient descent towards the dictionary: the printed percentages beside those of the zero matrix.

The source starts h/5 delta away, that is 17 to 357 lengths of an atom. From there the zero matrix alone
covers 94 to 99.7 % of the distance. Starts near a dictionary for which the theorem certifies a threshold
are shown as well, with that threshold and with a fifth of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pindown.datasets.sparse_codes import SparseCodingModel, hadamard_dictionary, near_dictionary
from pindown.learn.sparse_coding.gradient_descent import dead_fraction, descend, dictionary_error
from pindown.learn.sparse_coding.support_recovery import recovery_certificate, recovery_threshold
from pindown_reproduction.experiment import (
    Cause,
    Cell,
    Experiment,
    Outcome,
    Power,
    Results,
    stream,
)
from pindown_reproduction.relu_thesis.sparse_coding_gradient import BIASES, model_of, threshold

# Table 4.6.2: decrease of the mean distance in percent, by h and p.
PRINTED = {
    (256, 0.05): 97.7,
    (512, 0.05): 98.6,
    (1024, 0.05): 99.0,
    (2048, 0.05): 99.2,
    (4096, 0.05): 99.4,
    (256, 0.1): 96.9,
    (512, 0.1): 98.2,
    (1024, 0.1): 98.8,
    (2048, 0.1): 99.0,
    (4096, 0.1): 99.2,
}
_POINTS = 1.0  # percentage points within which a decrease counts as printed
_NEAR = 0.05  # the distance for which the theorem's threshold is taken near a dictionary
_SHARES = {"theorem": 1.0, "a fifth": 0.2}  # of that threshold; only all of it is certified


def zero_baseline(h: int, p: float) -> float:
    """Return the decrease in percent that the zero matrix scores: its distance is 1.

    >>> round(zero_baseline(256, 0.05), 1), round(zero_baseline(4096, 0.1), 1)
    (96.6, 99.4)
    """
    return 100.0 * (1.0 - 5.0 / (h * h ** (-2 * p)))


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Starts of the source with all thresholds, and starts near a Hadamard dictionary."""
    common = {"samples": settings["samples"], "max_iter": settings["max_iter"]}
    seeds = range(settings["seeds"])
    far = [
        {"kind": "far", "h": h, "p": p, "bias": bias, "seed": seed, **common}
        for seed in seeds
        for h, p in PRINTED
        if h in settings["sizes"]
        for bias in BIASES
    ]
    near = [
        {"kind": "near", "n": n, "distance": distance, "bias": bias, "seed": seed, **common}
        for seed in seeds
        for n in settings["near_sizes"]
        for distance in (_NEAR, 0.25, 0.5)
        for bias in _SHARES
    ]
    return far + near


def run(cell: Cell) -> dict[str, Any]:
    """Descend; return distances at the start and the end."""
    if cell["kind"] == "far":
        h, p = cell["h"], cell["p"]
        model, delta = model_of(h, p), float(h) ** (-2 * p)
        eps, distance = threshold(model, delta, cell["bias"]), h / 5 * delta
    else:
        model = SparseCodingModel(hadamard_dictionary(cell["n"]), 1, 1.0, 1.2)
        delta, distance = _NEAR, cell["distance"]
        eps = _SHARES[cell["bias"]] * recovery_threshold(model, delta)
    all_of_it = cell["bias"] == "theorem"  # of the threshold that the certificate is about
    certified = all_of_it and distance <= delta and bool(recovery_certificate(model, delta))
    W = near_dictionary(model.dictionary, distance, stream(cell, 1))
    Y, _ = model.sample(cell["samples"], stream(cell, 2))
    found = descend(W, Y, eps, max_iter=cell["max_iter"])
    before, after = (dictionary_error(V, model.dictionary) for V in (W, found.weights))
    return {
        "certified": certified,
        "before": before.columnwise,
        "after": after.columnwise,
        "direction before": before.direction,
        "direction": after.direction,
        "ratio": found.gradient_ratio,
        "steps": found.n_iter,
        "dead": dead_fraction(W, Y, eps),
    }


def compare(results: Results) -> Outcome:
    """Tabulate decreases beside the printed ones and the zero matrix."""
    rows: list[tuple[Any, ...]] = []
    hits: dict[str, list[bool]] = {}
    for cell, r in results:
        decrease = 100.0 * (1.0 - r["after"] / r["before"])
        if cell["kind"] == "far":
            said, zero = PRINTED[cell["h"], cell["p"]], zero_baseline(cell["h"], cell["p"])
            hits.setdefault(cell["bias"], []).append(abs(decrease - said) <= _POINTS)
            name = f"h = {cell['h']}, p = {cell['p']}, threshold {cell['bias']}"
        else:
            said, zero = float("nan"), 100.0 * (1.0 - 1.0 / r["before"])
            name = f"Hadamard, h = {2 * cell['n']}, start {cell['distance']}, threshold {cell['bias']}"
        rows.append(
            (
                name,
                said,
                decrease,
                zero,
                r["after"],
                r["direction before"],
                r["direction"],
                r["dead"],
                r["steps"],
                r["ratio"],
            )
        )
    beaten = [key for key, said in PRINTED.items() if zero_baseline(*key) >= said]
    words = (
        "Runs that end within one point of the print: "
        + ", ".join(f"{name} {sum(found)} of {len(found)}" for name, found in hits.items())
        + f". The zero matrix scores as much as "
        f"or more than the printed value in {len(beaten)} of {len(PRINTED)} cells of the "
        f"table, and within two "
        f"points in "
        f"{sum(zero_baseline(*key) >= said - 2 for key, said in PRINTED.items())}: such a decrease "
        "says little about the dictionary."
    )
    near = [r for cell, r in results if cell["kind"] == "near"]
    for certified, which in ((True, "with distance and threshold certified"), (False, "not certified")):
        nearer = [r["direction"] < r["direction before"] for r in near if r["certified"] is certified]
        if nearer:
            words += f" Starts near a dictionary, {which}, that end nearer in direction: "
            words += f"{sum(nearer)} of {len(nearer)}."
    names = ("run", "printed %", "decrease %", "zero matrix %", "final distance", "direction, start")
    return Outcome(
        verdict="reproduced" if any(all(found) for found in hits.values()) else "not reproduced",
        words=words,
        columns=(*names, "direction, end", "dead at start", "steps", "gradient ratio"),
        rows=tuple(rows),
    )


EXPERIMENT = Experiment(
    id="sparse-coding-recovery",
    title="Gradient descent towards the dictionary",
    source="Mukherjee 2020, Table 4.6.2",
    published="Started h/5 delta away, gradient descent covers 96.9 to 99.4 % of the mean "
    "distance to the "
    "dictionary. Threshold, step size and batch are not stated.",
    rule="Reproduced if with one of the thresholds (the theorem's, half or a sixth of it, none, 2 "
    "m1) every "
    "run ends within one percentage point of the printed decrease. The zero matrix, the final "
    "distance and "
    "the direction error are printed beside.",
    settings={
        "quick": {"sizes": [256], "samples": 500, "max_iter": 100, "near_sizes": [32], "seeds": 1},
        "decisive": {"sizes": [256], "samples": 500, "max_iter": 2000, "near_sizes": [32], "seeds": 3},
        "paper": {
            "sizes": [256, 512, 1024, 2048, 4096],
            "samples": 5000,
            "max_iter": 5000,
            "near_sizes": [64, 256, 1024],
            "seeds": 3,
        },
    },
    seconds={"quick": 1.6, "decisive": 240},
    power=Power(
        least={"max_iter": 2_000},
        why="The source stops where the gradient is 2e-5 of the first; two thousand steps get there or "
        "to a plateau (the columns of steps and of the gradient ratio say which). One size decides: the "
        "rule is about every cell.",
    ),
    cause=Cause(
        "the source",
        "It states neither threshold nor step. Started 13 to 29 lengths of an atom away, the first "
        "gradient is so "
        "large that its stopping rule, 2e-5 of it, is met after 20 to 50 steps, still 1.3 to 11 "
        "lengths away; "
        "without a threshold the end is near the zero matrix, which alone scores 94.1 to 99.7 %.",
        "the columns of steps, gradient ratio, final distance and the zero matrix; the erratum on "
        "Table 4.6.2",
    ),
    cells=cells,
    run=run,
    compare=compare,
)

"""The comparison with full batches again, on smaller images."""

from __future__ import annotations

from pindown_reproduction.experiment import Experiment, Outcome, Results, SourceData
from pindown_reproduction.relu_thesis._optimisers import (
    DECISIVE_STEPS,
    QUICK_STEPS,
    Claim,
    at_the_end,
    autoencoder_power,
    autoencoder_setting,
    best_runs,
    contender_run,
    draw_curves,
    missing,
    settle,
)
from pindown_reproduction.relu_thesis.optimisers_full_batch import cells, full_batch_claims


def compare(results: Results) -> Outcome:
    """Check the orderings on every image size."""
    claims: list[Claim] = []
    ends: list[str] = []
    for side in dict.fromkeys(cell["side"] for cell, _ in results):
        found = best_runs(results, side=side)
        ends += at_the_end(results, found)
        claims += missing(found) or full_batch_claims(found, f" ({side} x {side})")
    return settle(claims, autoencoder_setting(results), list(dict.fromkeys(ends)))


EXPERIMENT = Experiment(
    id="optimisers-image-size",
    title="Optimisers on autoencoders of smaller images",
    source="Mukherjee 2020, section 5.F.2, Figures 5.F.4 and 5.F.5",
    published="On MNIST resized to 17 x 17 and 12 x 12, three hidden layers of 1,000 units: ADAM "
    "with beta1 = 0.99 is fastest and generalises best, NAG does better than ADAM with 0.9. No "
    "number is printed.",
    rule="Reproduced if every one of these orderings holds for both sizes, step sizes tuned by the "
    "training loss.",
    settings={
        "quick": {
            "nets": [(3, 60)],
            "sides": [17, 12],
            "seeds": 1,
            "train": 200,
            "test": 500,
            "iterations": 300,
            "batch": None,
            "step_sizes": QUICK_STEPS,
        },
        "decisive": {
            "nets": [(3, 60)],
            "sides": [17, 12],
            "seeds": 3,
            "train": 1000,
            "test": 1000,
            "iterations": 5000,
            "batch": None,
            "step_sizes": DECISIVE_STEPS,
        },
        "paper": {
            "nets": [(3, 1000)],
            "sides": [17, 12],
            "seeds": 1,
            "train": 5500,
            "test": 1000,
            "iterations": 100_000,
            "batch": None,
        },
    },
    seconds={"quick": 42, "decisive": 5000},
    power=autoencoder_power(iterations=5_000, train=1_000),
    cells=cells,
    run=contender_run,
    compare=compare,
    draw=draw_curves,
    data=SourceData("MNIST", ("mnist",)),
)

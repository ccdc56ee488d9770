"""RMSProp, ADAM and Nesterov's method on tied autoencoders, a hundred images at a time."""

from __future__ import annotations

from collections.abc import Mapping

from pindown_reproduction.experiment import Experiment, Outcome, Results, SourceData
from pindown_reproduction.relu_thesis._optimisers import (
    DECISIVE_STEPS,
    QUICK_STEPS,
    Claim,
    Run,
    at_the_end,
    autoencoder_power,
    autoencoder_setting,
    best_runs,
    contender_run,
    draw_curves,
    least,
    missing,
    of,
    settle,
    shown,
)
from pindown_reproduction.relu_thesis.optimisers_full_batch import cells


def compare(results: Results) -> Outcome:
    """Check the orderings: on the smallest network, and on the largest."""
    sizes = sorted({(cell["hidden_layers"], cell["width"]) for cell, _ in results})
    small, large = (
        best_runs(results, hidden_layers=layers, width=width) for layers, width in (sizes[0], sizes[-1])
    )
    claims = missing(large) or _large(large)
    if len(sizes) > 1 and not missing(small):
        values = of(small, "NAG", "test"), of(small, "ADAM", "test")
        said = Claim(
            "on the smallest network NAG has a lower test loss than ADAM",
            f"{values[0]:.3g} against {values[1]:.3g}",
            values[0] < values[1],
        )
        claims.append(said)
    ends = dict.fromkeys([*at_the_end(results, small), *at_the_end(results, large)])
    return settle(claims, autoencoder_setting(results), list(ends))


def _large(found: Mapping[str, Run]) -> list[Claim]:
    adam, nag = found["ADAM 0.99"]["test"], of(found, "NAG", "test")
    closer = [
        found[f"{method} 0.99"][measure] <= found[f"{method} 0.9"][measure]
        for method in ("NAG", "ADAM")
        for measure in ("train", "test", "gradient")
    ]
    return [
        Claim(
            "ADAM 0.99 has a lower test loss than NAG with any momentum",
            f"{adam:.3g} against {nag:.3g}",
            adam < nag,
        ),
        Claim(
            "ADAM 0.99 has the lowest training loss",
            shown(found, "train"),
            least(found, "train") == "ADAM 0.99",
        ),
        Claim(
            "NAG has the lowest gradient norm",
            shown(found, "gradient"),
            least(found, "gradient").startswith("NAG"),
        ),
        Claim(
            "NAG and ADAM improve in every measure when momentum goes from 0.9 to 0.99",
            f"{sum(closer)} of {len(closer)}",
            all(closer),
        ),
    ]


EXPERIMENT = Experiment(
    id="optimisers-mini-batch",
    title="Optimisers on autoencoders, batches of 100",
    source="Mukherjee 2020, section 5.6.4, Figures 5.6.4 and 5.F.6",
    published="Five hidden layers of 1,000 units, all of MNIST, 100,000 iterations: ADAM with beta1 "
    "= 0.99 has a lower test loss than NAG with any momentum and the lowest training loss, NAG the "
    "lowest gradient norm, and both improve when their momentum goes to 1; on small networks NAG is "
    "better. No number is printed.",
    rule="Reproduced if every one of these orderings holds for step sizes tuned by the training loss.",
    settings={
        "quick": {
            "nets": [(1, 30), (5, 100)],
            "sides": [22],
            "seeds": 1,
            "train": 2000,
            "test": 500,
            "iterations": 500,
            "batch": 100,
            "step_sizes": QUICK_STEPS,
        },
        "decisive": {
            "nets": [(1, 30), (5, 100)],
            "sides": [22],
            "seeds": 3,
            "train": 5000,
            "test": 1000,
            "iterations": 5000,
            "batch": 100,
            "step_sizes": DECISIVE_STEPS,
        },
        "paper": {
            "nets": [(1, 300), (5, 1000)],
            "sides": [22],
            "seeds": 1,
            "train": 55_000,
            "test": 10_000,
            "iterations": 100_000,
            "batch": 100,
        },
    },
    seconds={"quick": 96, "decisive": 2000},
    power=autoencoder_power(iterations=5_000, train=5_000),
    cells=cells,
    run=contender_run,
    compare=compare,
    draw=draw_curves,
    data=SourceData("MNIST", ("mnist",)),
)

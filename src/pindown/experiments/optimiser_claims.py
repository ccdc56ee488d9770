"""Orderings that a source states in words, checked one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pindown.experiments.declaration import Outcome, Results
from pindown.experiments.optimiser_training import CONTENDERS, autoencoder_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Run: TypeAlias = Mapping[str, Any]
MEASURES = ("train", "test", "gradient")
_COLOURS = dict(
    zip(CONTENDERS, ("#56B4E9", "#0072B2", "#F0E442", "#E69F00", "#CC79A7", "#D55E00"), strict=True)
)


@dataclass(frozen=True)
class Claim:
    """A sentence with what was measured.

    Attributes:
        words: What the source says.
        measured: The numbers that decide it.
        holds: Whether they agree.
    """

    words: str
    measured: str
    holds: bool


def contender_run(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Train an autoencoder as a cell says."""
    return autoencoder_run(cell["contender"], cell["lr"], cell)


def best_runs(results: Results, **wanted: Any) -> dict[str, Run]:
    """Return the run of every contender with the lowest training loss, for cells with these settings."""
    best: dict[str, Run] = {}
    for cell, found in results:
        name = cell["contender"]
        if any(cell[key] != value for key, value in wanted.items()) or not math.isfinite(found["train"]):
            continue
        if name not in best or found["train"] < best[name]["train"]:
            best[name] = {**found, "lr": cell["lr"]}
    return best


def at_the_end(results: Results, best: Mapping[str, Run]) -> list[str]:
    """Return the contenders whose best step size is the largest or the smallest that was tried."""
    tried = {name: [cell["lr"] for cell, _ in results if cell["contender"] == name] for name in best}
    return [name for name, run in best.items() if run["lr"] in (min(tried[name]), max(tried[name]))]


def missing(best: Mapping[str, Run], needed: Iterable[str] = CONTENDERS) -> list[Claim]:
    """Return a claim that cannot be decided if contenders are missing, else nothing."""
    absent = [name for name in needed if name not in best]
    return [Claim("all contenders were run", f"missing: {', '.join(absent)}", False)] if absent else []


def autoencoder_setting(results: Results) -> str:
    """Return the data and the length of the runs, in words."""
    cell, first = results[0]
    batch = "full batches" if cell["batch"] is None else f"batches of {cell['batch']}"
    return f"{first['data']}, {cell['train']:,} images, {cell['iterations']:,} iterations with {batch}"


def least(found: Mapping[str, Run], measure: str) -> str:
    """Return who has the least of a measure."""
    return min(found, key=lambda name: found[name][measure])


def of(found: Mapping[str, Run], method: str, measure: str) -> float:
    """Return the best value of a method over its momenta."""
    return min(float(values[measure]) for name, values in found.items() if CONTENDERS[name][0] == method)


def settle(claims: Sequence[Claim], where: str, ends: Sequence[str] = ()) -> Outcome:
    """Return the outcome: reproduced if every claim holds.

    Args:
        claims: What was checked.
        where: The data and the setting, in words.
        ends: Who had the best step size at an end of the grid.
    """
    held = sum(claim.holds for claim in claims)
    failed = "; ".join(claim.words for claim in claims if not claim.holds)
    words = f"{held} of {len(claims)} published orderings hold on {where}."
    if failed:
        words += f" Not seen: {failed}."
    if ends:
        words += f" The best step size is at an end of the grid for {', '.join(ends)}."
    return Outcome(
        verdict="reproduced" if held == len(claims) else "not reproduced",
        words=words,
        columns=("published ordering", "measured", "holds"),
        rows=tuple((claim.words, claim.measured, "yes" if claim.holds else "no") for claim in claims),
    )


def shown(found: Mapping[str, Run], measure: str) -> str:
    """Return all values of a measure, best first.

    >>> shown({"NAG 0.9": {"test": 2.0}, "ADAM 0.9": {"test": 1.5}}, "test")
    'ADAM 0.9: 1.5, NAG 0.9: 2'
    """
    order = sorted(found, key=lambda name: found[name][measure])
    return ", ".join(f"{name}: {found[name][measure]:.3g}" for name in order)


def draw_curves(results: Results) -> Figure:
    """Draw training loss, test loss and gradient norm of the best runs on the first network."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    panels = figure.subplots(1, 3)
    titles = ("loss on the training set", "loss on the test set", "gradient norm")
    first = {key: results[0][0][key] for key in ("hidden_layers", "width", "side", "seed")}
    best = best_runs(results, **first)
    for i, (ax, title) in enumerate(zip(panels, titles, strict=True), 1):
        for name, run in best.items():
            t, values = [p[0] for p in run["curve"]], [p[i] for p in run["curve"]]
            ax.loglog(t, values, label=name, color=_COLOURS[name])
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("iterations")
    panels[0].legend(frameon=False, fontsize=7)
    return figure

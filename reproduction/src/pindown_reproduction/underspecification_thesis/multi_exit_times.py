"""How long every exit takes, alone and with the exits before it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cause, Cell, Experiment, Outcome, Power, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Phuong 2021, Table E.1: seconds on a CPU for one 32 x 32 image, mean of 1000 runs.
PUBLISHED = {
    "budget": (0.024, 0.034, 0.043, 0.051, 0.062, 0.067, 0.071, 0.085, 0.093, 0.103, 0.105),
    "anytime": (0.026, 0.043, 0.062, 0.081, 0.099, 0.121, 0.139, 0.164, 0.169, 0.196, 0.219),
}
_SAME = 0.25  # a share counts as the printed one within this part of it


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell for each mode."""
    return [{"mode": mode, "runs": settings["runs"], "warmup": settings["warmup"]} for mode in PUBLISHED]


def run(cell: Cell) -> dict[str, Any]:
    """Measure the published network (with random weights) on one image, in CPU time of one thread."""
    import torch

    from pindown.learn.multi_exit.latency import profile_exits
    from pindown.learn.multi_exit.networks import MSDNet, seeded

    torch.set_num_threads(1)
    model = seeded(MSDNet.cifar, 0).eval()
    settings = {"runs": cell["runs"], "warmup": cell["warmup"], "clock": time.process_time}
    found = profile_exits(model, torch.zeros(1, 3, 32, 32), cell["mode"], **settings)
    kept = {"median": list(found.median), "mean": list(found.mean), "deviation": list(found.deviation)}
    return {**kept, **shares_of_work(model, torch.zeros(1, 3, 32, 32))}


def shares_of_work(model: Any, x: Any) -> dict[str, list[float]]:
    """Return the shares of multiplications, and of layers, that are done by the time an exit answers."""
    import torch

    done: dict[str, list[float]] = {}

    def count(name: str, layer: Any, _inputs: Any, output: Any) -> None:
        found = done.setdefault(name, [0.0, 0.0])
        found[0] += output.numel() * layer.weight[0].numel()
        found[1] += 1.0

    handles = [
        layer.register_forward_hook(partial(count, ".".join(name.split(".")[:2])))
        for name, layer in model.named_modules()
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear)
    ]
    with torch.inference_mode():
        model(x)
    for handle in handles:
        handle.remove()
    stages, heads = (
        np.array([done[f"{part}.{m}"] for m in range(model.n_exits)]) for part in ("stages", "heads")
    )
    at = np.cumsum(stages, axis=0) + heads
    operations, layers = (at / at[-1]).T.tolist()
    return {"operations": operations, "layers": layers}


def compare(results: Results) -> Outcome:
    """Set times beside the published ones, as shares of the last exit's budget-mode time."""
    found = {cell["mode"]: np.array(result["median"]) for cell, result in results}
    unit, said = float(next(iter(found.values()))[-1]), PUBLISHED["budget"][-1]
    off = {
        mode: np.abs(times / unit * said / np.array(PUBLISHED[mode]) - 1.0)
        for mode, times in found.items()
    }
    rows, first = [], results[0][1]
    for m in range(len(PUBLISHED["budget"])):
        row: list[Any] = [m + 1]
        for mode, times in PUBLISHED.items():
            own = f"{1e3 * found[mode][m]:.3g} ({found[mode][m] / unit:.2f})" if mode in found else "-"
            row += [own, f"{1e3 * times[m]:.3g} ({times[m] / PUBLISHED['budget'][-1]:.2f})"]
        row += [first.get(key, [float("nan")] * (m + 1))[m] for key in ("operations", "layers")]
        rows.append(tuple(row))
    close = {mode: int((parts <= _SAME).sum()) for mode, parts in off.items()}
    good = len(found) == 2 and all((parts <= _SAME).all() for parts in off.values())
    words = (
        f"The first exit takes {found[next(iter(found))][0] / unit:.2f} of the last one's time "
        f"(published {PUBLISHED['budget'][0] / said:.2f}), all heads "
        f"{float(next(reversed(found.values()))[-1]) / unit:.2f} (published "
        f"{PUBLISHED['anytime'][-1] / said:.2f}); within a quarter of the print are "
        + ", ".join(f"{n} of {len(off[mode])} exits in {mode} mode" for mode, n in close.items())
        + "."
    )
    columns = (
        *("exit", "budget, ms (share)", "published", "anytime, ms (share)", "published "),
        *("multiplications", "layers"),
    )
    return Outcome("reproduced" if good else "not reproduced", words, columns, tuple(rows))


def draw(results: Results) -> Figure:
    """Draw time against the exit, measured and published, both as shares of the last exit's."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    unit = results[0][1]["median"][-1]
    for k, (cell, result) in enumerate(results):
        exits = np.arange(1, len(result["median"]) + 1)
        ax.plot(exits, np.array(result["median"]) / unit, "o-", ms=3, color=f"C{k}", label=cell["mode"])
        published = np.array(PUBLISHED[cell["mode"]]) / PUBLISHED["budget"][-1]
        ax.plot(exits, published, ":", color=f"C{k}", label=f"{cell['mode']}, published")
    ax.set_xlabel("exit")
    ax.set_ylabel("time, share of the last exit's")
    return figure


EXPERIMENT = Experiment(
    id="multi-exit-times",
    title="Time grows with the exit, and anytime answers pay for the heads on the way",
    source="Phuong 2021, Table E.1",
    published="On a CPU the first of 11 exits takes 24 ms and the last 105 ms; 219 ms with all heads.",
    rule="Reproduced if the time of every exit in both modes, as a share of that of the last exit in "
    "budget "
    "mode, is within a quarter of the printed share. Milliseconds are another machine's and are not "
    "compared.",
    cause=Cause(
        "the machine",
        "The first exit holds 17 % of the multiplications and 29 % of the layers of the last; the "
        "source's "
        "machine took 23 % of the time, this one 30 %. It is ten times as fast, and time goes by the "
        "layer.",
        "the last two columns",
    ),
    remark="The rule first asked for times that rise with the exit, which they do in any network.",
    settings={"quick": {"runs": 8, "warmup": 1}, "paper": {"runs": 1000, "warmup": 50}},
    seconds={"quick": 3.1},
    power=Power(seeds=0, least={"runs": 8}, why="Medians of CPU time; nothing is drawn."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)

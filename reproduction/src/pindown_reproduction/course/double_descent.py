r"""Test error of least squares on random ReLU features against their number.

A hundred samples, twenty inputs, noise 0.3; the interpolant of least norm, and ridge with a penalty
that leave-one-out chooses.

Lecture course, slides on double descent (a sketch without numbers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SAMPLES, _INPUTS, _NOISE, _TEST = 100, 20, 0.3, 1_000
_NEAR = 0.1  # the peak is to lie within this share of the number of samples
_FALL = 10.0  # and to be this many times the error at ten times as many features


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return one cell for each number of features."""
    return [{"width": width, "repeats": settings["repeats"]} for width in settings["widths"]]


def run(cell: Cell) -> dict[str, Any]:
    """Measure errors and norms at one number of features."""
    from pindown.bias.least_squares import double_descent_curve

    rng = np.random.default_rng(stream(cell, 0))
    direction = rng.standard_normal(_INPUTS) / np.sqrt(_INPUTS)

    def draw_data(n: int, noise: float) -> tuple[Any, Any]:
        X = rng.standard_normal((n, _INPUTS))
        return X, np.tanh(X @ direction) + noise * rng.standard_normal(n)

    X, y = draw_data(_SAMPLES, _NOISE)
    X_test, y_test = draw_data(_TEST, 0.0)
    found = {}
    choices: dict[str, Any] = {"least norm": 0.0, "tuned": "tuned"}
    for name, ridge in choices.items():
        curve = double_descent_curve(
            X,
            y,
            X_test,
            y_test,
            [cell["width"]],
            ridge=ridge,
            repeats=cell["repeats"],
        )
        found[name] = {
            "test": float(curve.test_error[0]),
            "train": float(curve.train_error[0]),
            "norm": float(curve.norm[0]),
        }
    return found


def compare(results: Results) -> Outcome:
    """Decide by where the peak is, how high it is, and whether ridge removes it."""
    widths = np.array([cell["width"] for cell, _ in results])
    plain, tuned = (
        np.array([found[name]["test"] for _, found in results]) for name in ("least norm", "tuned")
    )
    norms = np.array([found["least norm"]["norm"] for _, found in results])
    peak, norm_peak = int(widths[plain.argmax()]), int(widths[norms.argmax()])
    wide = plain[widths >= 10 * _SAMPLES]
    checks = (
        max(abs(peak - _SAMPLES), abs(norm_peak - _SAMPLES)) <= _NEAR * _SAMPLES,
        bool(len(wide)) and bool(wide.max(initial=0.0) < plain.max() / _FALL),
        bool(tuned[plain.argmax()] <= 1.5 * np.median(tuned)),
    )
    words = (
        f"The test error peaks at {peak} features ({plain.max():.3g}) and the norm at {norm_peak}, for "
        f"{_SAMPLES} samples; at {int(widths.max())} features it is {plain[widths.argmax()]:.3g}. "
        f"With a tuned penalty the error at the peak is {tuned[plain.argmax()]:.3g}."
    )
    return Outcome(
        verdict="reproduced" if all(checks) else "not reproduced",
        words=words,
        columns=("features", "published", "test error", "norm", "test error, tuned ridge"),
        rows=tuple(
            (
                int(width),
                "worst here" if width == _SAMPLES else "lower",
                f"{found['least norm']['test']:.3g}",
                f"{found['least norm']['norm']:.3g}",
                f"{found['tuned']['test']:.3g}",
            )
            for width, (_, found) in zip(widths, results, strict=True)
        ),
    )


def draw(results: Results) -> Figure:
    """Draw test errors and the norm over the number of features."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    widths = [cell["width"] for cell, _ in results]
    for name, style in (("least norm", "o-"), ("tuned", "s--")):
        ax.loglog(
            widths, [found[name]["test"] for _, found in results], style, label=f"test error, {name}"
        )
    norms = [found["least norm"]["norm"] for _, found in results]
    ax.loglog(widths, norms, "^:", color="#7F7F7F", label="norm, least norm")
    ax.axvline(_SAMPLES, color="#7F7F7F", linewidth=1, label="as many as samples")
    ax.set(xlabel="features", ylabel="median over draws")
    return figure


EXPERIMENT = Experiment(
    id="double-descent",
    title="Worst where features and samples are as many",
    source="Lecture course, slides on double descent",
    published="Few features fit well, as many as samples interpolate with a large norm and the test "
    "error peaks, many more interpolate with a small norm and it falls again. No numbers.",
    rule="Reproduced if test error and norm peak within 10 % of the number of samples, the error at ten "
    "times as many features is below a tenth of the peak, and a penalty chosen by leave-one-out keeps "
    "the error at the peak below 1.5 times its median over widths.",
    settings={
        "quick": {"widths": [25, 50, 75, 90, 100, 110, 150, 200, 400, 1000, 3000], "repeats": 20},
        "paper": {
            "widths": [10, 25, 50, 75, 90, 95, 100, 105, 110, 150, 200, 400, 1000, 3000, 10000],
            "repeats": 100,
        },
    },
    seconds={"quick": 4.4},
    power=Power(seeds=10, repeats="repeats", why="Medians over draws of the features."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)

r"""The frequencies that activations make out of one tone, and a square out of two.

Lecture course, slides on harmonic distortion: the square of two tones in a formula, spectra of a sine
behind four activations in a figure. The closed form for ReLU is ours:
:math:`h_1 = \frac12` and :math:`h_{2n} = 2/(\pi(4n^2 - 1))`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results
from pindown_reproduction.figures import panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TONES = (3, 7)  # whole numbers, so that sums and differences are harmonics of one period
# 1 + cos(2 a t)/2 + cos(2 b t)/2 + cos((a + b) t) + cos((a - b) t), as printed
_PRINTED = {0: 1.0, 2 * _TONES[0]: 0.5, 2 * _TONES[1]: 0.5, sum(_TONES): 1.0, _TONES[1] - _TONES[0]: 1.0}
_EXACT = 1e-9  # of an amplitude that is a formula
_FOLDED = 1e-6  # a kink has harmonics of every order, and those beyond the samples fold back


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return one cell for each activation."""
    return [{"activation": name, "harmonics": settings["harmonics"]} for name in settings["activations"]]


def run(cell: Cell) -> dict[str, Any]:
    """Return the spectrum of one activation."""
    from pindown.bias.harmonic_distortion import harmonic_spectrum, relu_harmonics

    n = cell["harmonics"]
    if cell["activation"] == "square of two tones":
        t = 2 * np.pi * np.arange(256) / 256
        signal = np.cos(_TONES[0] * t) + np.cos(_TONES[1] * t)
        spectrum = np.abs(np.fft.rfft(signal**2)) / 256
        return {"mean": float(spectrum[0]), "amplitudes": (2 * spectrum[1 : n + 1]).tolist()}
    activations: dict[str, Any] = {
        "ReLU": lambda u: np.maximum(u, 0.0),
        "softplus": lambda u: np.logaddexp(0.0, u),
        "tanh": np.tanh,
        "hardtanh": lambda u: np.clip(2.0 * u, -1.0, 1.0),  # a tone of 1 would pass unchanged
    }
    found = harmonic_spectrum(activations[cell["activation"]], n)
    closed = relu_harmonics(n).tolist() if cell["activation"] == "ReLU" else None
    return {"mean": found.mean, "amplitudes": found.amplitudes.tolist(), "closed": closed}


def _claim(cell: Cell, found: Mapping[str, Any]) -> tuple[str, float, bool]:
    """Return what is claimed, the largest deviation from it, and whether that is small enough."""
    amplitudes, name = np.array(found["amplitudes"]), cell["activation"]
    odd, even = amplitudes[0::2], amplitudes[1::2]
    if name == "square of two tones":
        wanted = np.array([_PRINTED.get(k, 0.0) for k in range(len(amplitudes) + 1)])
        off = float(np.abs(np.r_[found["mean"], amplitudes] - wanted).max())
        return "sums, differences and doubles of the two", off, off < _EXACT
    if name == "ReLU":
        off = float(np.abs(amplitudes - found["closed"]).max())
        return "1/2 of the tone and even harmonics 2/(pi(4n^2 - 1))", off, off < _FOLDED
    if name == "softplus":
        off = max(abs(odd[0] - 0.5), float(np.abs(odd[1:]).max()))
        return "1/2 of the tone and even harmonics only", off, off < _EXACT
    off = float(np.abs(even).max())
    return "odd harmonics only", off, off < _EXACT


def compare(results: Results) -> Outcome:
    """Compare every spectrum with its formula."""
    rows, good = [], []
    for cell, found in results:
        words, off, holds = _claim(cell, found)
        good.append(holds)
        shown = ", ".join(f"{a:.4f}" for a in found["amplitudes"][:6])
        rows.append((cell["activation"], words, f"{found['mean']:.4f}", shown, f"{off:.1e}"))
    return Outcome(
        "reproduced" if all(good) else "not reproduced",
        f"{sum(good)} of {len(good)} spectra are as the formulas say.",
        ("activation", "published or derived", "mean", "harmonics 1 to 6", "largest deviation"),
        tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw the harmonics of every activation."""
    figure, axes = panels(len(results))
    for ax, (cell, found) in zip(axes, results, strict=True):
        ax.bar(range(1, len(found["amplitudes"]) + 1), found["amplitudes"])
        ax.set(title=cell["activation"], xlabel="harmonic", ylabel="amplitude")
    return figure


_ACTIVATIONS = ["square of two tones", "ReLU", "softplus", "tanh", "hardtanh"]
EXPERIMENT = Experiment(
    id="harmonic-distortion",
    title="The frequencies that a nonlinearity adds",
    source="Lecture course, slides on harmonic distortion",
    published="The square of two tones holds the mean, both doubles, the sum and the difference with "
    "amplitudes 1, 1/2, 1/2, 1, 1; spectra of a sine behind softplus, tanh, ReLU and hardtanh are a "
    "figure without numbers.",
    rule="Reproduced if the printed amplitudes and softplus' one half are met to 1e-9, ReLU's closed "
    "form to 1e-6, tanh and hardtanh have no even harmonics and softplus no odd one above the first.",
    settings={
        "quick": {"activations": _ACTIVATIONS, "harmonics": 16},
        "paper": {"activations": _ACTIVATIONS, "harmonics": 64},
    },
    seconds={"quick": 0.1},
    power=Power(seeds=0, why="Spectra are computed; nothing is drawn."),
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
)

r"""Signatures under changing light: invariant with the right pooling, not with powers.

Patches of a photograph are lit by smooth multiplicative fields :math:`e^{\zeta h}`. Templates are other
patches under a window of lights. Signatures of one patch under several lights are compared with those of
other patches; a control replaces each template's family by unrelated random images.

Lecture course, section on illumination (faces; no data set named, no numbers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, SourceData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pindown.affine import Array

_SIDE = 8
_INVARIANT = 1e-6  # largest ratio within over between that counts as invariant
_BROKEN = 0.3  # least ratio of the control
_LIGHTS = (-1.0, -0.5, 0.5, 1.0)


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per half-width of the window of lights and seed."""
    return [
        {
            "window": window,
            "seed": seed,
            "images": settings["images"],
            "templates": settings["templates"],
        }
        for window in settings["windows"]
        for seed in range(settings["seeds"])
    ]


def run(cell: Cell) -> dict[str, Any]:
    """Run the protocol with bumps and with powers."""
    from pindown.symmetry.signatures import illumination_protocol

    rng = np.random.default_rng(cell["seed"])
    patches = _patches(cell["images"] + cell["templates"], rng)
    half = float(cell["window"])
    window = np.linspace(-half, half, round(20 * half) + 1)
    field = _field(rng)
    out: dict[str, Any] = {}
    for readout in ("bumps", "moments"):
        report = illumination_protocol(
            patches[: cell["images"]],
            patches[cell["images"] :],
            field,
            window=window,
            lights=_LIGHTS,
            readout=readout,
            random_state=cell["seed"],
        )
        out[readout] = {"ratio": report.ratio, "control": report.control, "between": report.inter}
    return out


def _patches(count: int, rng: np.random.Generator) -> Array:
    """Patches of a photograph with positive values."""
    from sklearn.datasets import load_sample_image

    photograph = load_sample_image("flower.jpg").mean(axis=2) / 255 + 0.1  # no pixel is black
    rows = rng.integers(0, photograph.shape[0] - _SIDE, count)
    columns = rng.integers(0, photograph.shape[1] - _SIDE, count)
    patches = np.array(
        [
            photograph[r : r + _SIDE, c : c + _SIDE].ravel()
            for r, c in zip(rows.tolist(), columns.tolist(), strict=True)
        ]
    )
    # Equal brightness: else that alone, which is light too, would tell patches apart.
    return np.asarray(patches / patches.mean(axis=1, keepdims=True))


def _field(rng: np.random.Generator) -> Array:
    """A smooth field of both signs, of largest size one: light from one side with a soft edge."""
    p = np.linspace(-1, 1, _SIDE)
    slope = rng.standard_normal(2)
    field = slope[0] * p[:, None] + slope[1] * p + 0.3 * rng.standard_normal() * np.outer(p, p)
    return (field / np.abs(field).max()).ravel()


def compare(results: Results) -> Outcome:
    """Judge bumps by the rule; show powers beside them."""
    rows: list[tuple[Any, ...]] = []
    good, powers = [], []
    for cell, found in results:
        bumps, moments = found["bumps"], found["moments"]
        holds = bumps["ratio"] < _INVARIANT and bumps["control"] > _BROKEN and bumps["between"] > 0
        good.append(holds)
        powers.append(moments["ratio"])
        rows.append(
            (
                f"window {cell['window']:g}, seed {cell['seed']}",
                "0 and not 0",
                f"{bumps['ratio']:.2g}",
                f"{bumps['control']:.2g}",
                f"{moments['ratio']:.2g}",
                "yes" if holds else "no",
            )
        )
    words = (
        f"Pooled bumps are invariant to light, tell patches apart and need a true family of templates "
        f"in {sum(good)} of {len(good)} runs. Powers over a window, as printed, change with light by "
        f"{min(powers):.2g} to {max(powers):.2g} of the distance between patches."
    )
    return Outcome(
        verdict="reproduced" if good and all(good) else "not reproduced",
        words=words,
        columns=(
            "run",
            "published: within, between",
            "within / between, bumps",
            "the same, fake family",
            "the same, powers",
            "as claimed",
        ),
        rows=tuple(rows),
    )


def draw(results: Results) -> Figure:
    """Draw the three ratios of every run."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    series = {
        "bumps": [found["bumps"]["ratio"] for _, found in results],
        "bumps, fake family": [found["bumps"]["control"] for _, found in results],
        "powers, as printed": [found["moments"]["ratio"] for _, found in results],
    }
    for name, values in series.items():
        ax.semilogy(range(len(values)), values, "o", label=name)
    ax.axhline(1.0, color="#7F7F7F", linestyle=":")
    ax.set(xlabel="run", ylabel="within one patch / between patches")
    return figure


EXPERIMENT = Experiment(
    id="illumination-signature",
    title="Signatures that ignore the light",
    source="Lecture course, section on illumination (faces; figures only)",
    published="Distances between an image's signatures under different lights are about zero, those "
    "between images are not, and with a fake family of templates invariance is lost. No numbers.",
    rule="Reproduced if with bumps in the logarithm of projections the root mean square distance within "
    "an image is below 1e-6 of that between images in every run, and above 0.3 with the fake family.",
    settings={
        "quick": {"windows": [12, 16], "seeds": 4, "images": 12, "templates": 3},
        "paper": {"windows": [12, 16, 24], "seeds": 20, "images": 40, "templates": 10},
    },
    seconds={"quick": 0.57},
    power=Power(why="The rule is about every run."),
    remark="The control images were changed after a first run.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
    data=SourceData("faces", otherwise="parts of two photographs"),
)

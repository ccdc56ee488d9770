"""Does a convolutional network follow texture or shape, where both are right in training?

Drawn outlines with drawn textures in place of photographs. One network learns from images whose outline
and texture agree, so that either will do; a control learns from images of conflicting cues with the
outline as the label. Both are asked about fresh images of conflicting cues.

Lecture course, section on texture and shape, after Geirhos et al. 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Cell, Experiment, Outcome, Power, Results, SourceData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HALF = 0.5  # neither cue is preferred
_LEARNED = 0.9  # accuracy on images like those of training, without which a network says nothing
_TRAINING = ("cues agree", "outline is the label")


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """Return one cell for each seed and way of training."""
    sizes = {name: settings[name] for name in ("images", "size", "epochs")}
    return [{"training": t, "seed": s, **sizes} for t in _TRAINING for s in range(settings["seeds"])]


def run(cell: Cell) -> dict[str, Any]:
    """Train one network; return its accuracy and its decisions on conflicting cues."""
    import torch

    from pindown.probes.texture_shape import SHAPES, make_cue_images, shape_bias

    conflict = cell["training"] != _TRAINING[0]
    rng = np.random.default_rng(cell["seed"])
    train, like, conflicting = (
        make_cue_images(n, conflict=which, size=cell["size"], random_state=rng)
        for n, which in ((cell["images"], conflict), (500, conflict), (1_000, True))
    )
    torch.manual_seed(cell["seed"])
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.LazyLinear(64), torch.nn.ReLU(), torch.nn.Linear(64, len(SHAPES)),
    )  # fmt: skip

    def scores(images: Any) -> Any:
        with torch.no_grad():
            return network(torch.from_numpy(images).float() - _HALF)

    scores(train.images[:1])  # the width of the first dense layer follows from the images
    optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
    X, y = torch.from_numpy(train.images).float() - _HALF, torch.from_numpy(train.shapes)
    for _ in range(cell["epochs"]):
        for batch in torch.randperm(len(X)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(X[batch]), y[batch]).backward()
            optimiser.step()
    right = scores(like.images).numpy().argmax(axis=1) == like.shapes
    found = shape_bias(scores, conflicting)
    counts = {"shape": found.shape, "texture": found.texture, "other": found.other}
    return {"accuracy": float(right.mean()), "bias": found.value, "data": "drawn images", **counts}


def compare(results: Results) -> Outcome:
    """Decide by the cue that networks trained on agreeing cues follow."""
    by_training = {
        name: [found["bias"] for cell, found in results if cell["training"] == name]
        for name in _TRAINING
    }
    learned = all(found["accuracy"] >= _LEARNED for _, found in results)
    texture = all(bias < _HALF for bias in by_training[_TRAINING[0]])
    shape = all(bias > _HALF for bias in by_training[_TRAINING[1]])
    parts = [
        f"{min(found):.2f} to {max(found):.2f} where {name}"
        for name, found in by_training.items()
        if found
    ]
    rows = tuple(
        (
            f"{cell['training']}, seed {cell['seed']}",
            "texture" if cell["training"] == _TRAINING[0] else "shape (control)",
            f"{found['accuracy']:.3f}",
            f"{found['shape']} / {found['texture']} / {found['other']}",
            f"{found['bias']:.3f}",
        )
        for cell, found in results
    )
    return Outcome(
        "reproduced" if learned and texture and shape else "not reproduced",
        f"Share of shape among decisions for either cue: {'; '.join(parts)}.",
        ("training", "published: follows", "accuracy", "shape / texture / neither", "shape bias"),
        rows,
    )


def draw(results: Results) -> Figure:
    """Draw the shape bias of every network."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    for cell, found in results:
        ax.plot(found["bias"], cell["training"], "o", color="C0", alpha=0.7, label="a network")
    ax.axvline(_HALF, color="#7F7F7F", linewidth=1)
    ax.set(ylabel="training images", xlabel="shape bias (0: texture, 1: shape)", xlim=(-0.02, 1.02))
    ax.margins(y=0.4)
    return figure


EXPERIMENT = Experiment(
    id="texture-shape",
    title="Texture wins over shape where both were right",
    source="Lecture course, section on texture and shape (Geirhos et al. 2019)",
    published="A network trained on ImageNet calls a cat with the skin of an elephant an Indian "
    "elephant (63.9 %), and no class of its first three is a cat.",
    rule="Reproduced if every network reaches 90 % on images like those it learned from, every one "
    "trained on agreeing cues has a shape bias below one half, and every control above.",
    settings={
        "quick": {"images": 1_500, "size": 20, "epochs": 12, "seeds": 3},
        "paper": {"images": 10_000, "size": 32, "epochs": 20, "seeds": 10},
    },
    seconds={"quick": 26},
    power=Power(why="The rule is about every network."),
    remark="Drawn textures are easier than drawn outlines, so this shows the measure and the effect,"
    " not its size in photographs.",
    cells=cells,
    run=run,
    compare=compare,
    draw=draw,
    data=SourceData("ImageNet"),
)

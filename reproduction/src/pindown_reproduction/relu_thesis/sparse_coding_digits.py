"""Tied autoencoders on pictures of the digits 6 and 7, one hidden layer or two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.datasets.public_data import read_idx
from pindown_reproduction.experiment import Cell, Experiment, Outcome, Results, SourceData
from pindown_reproduction.relu_thesis._optimisers import data_folder


def cells(settings: Mapping[str, Any]) -> list[Cell]:
    """One cell per network."""
    return [
        {
            "layers": layers,
            "units": units,
            "data": settings["data"],
            "epochs": settings["epochs"],
            "seed": seed,
        }
        for layers, units in ((1, settings["units"][0]), (2, settings["units"][1]))
        for seed in range(settings["seeds"])
    ]


def pictures(data: str) -> tuple[Array, str]:
    """Return pictures of 6 and 7 with pixels in [0, 1]; small ones if MNIST cannot be had.

    MNIST is read from the folder that ``PINDOWN_DATA`` names, else asked for from OpenML.
    """
    from sklearn.datasets import fetch_openml, load_digits

    folder = data_folder()
    if data == "mnist" and folder is not None and (folder / "mnist").is_dir():
        images = read_idx(folder / "mnist" / "train-images-idx3-ubyte.gz")
        labels = read_idx(folder / "mnist" / "train-labels-idx1-ubyte.gz")
        chosen = images[np.isin(labels, [6, 7])][:6000]
        return chosen.reshape(len(chosen), -1) / 255.0, "MNIST"
    if data == "mnist":
        try:
            X, y = fetch_openml(
                "mnist_784", version=1, return_X_y=True, as_frame=False, parser="liac-arff"
            )
            return X[np.isin(y, ["6", "7"])][:6000] / 255.0, "MNIST"
        except Exception:  # whatever kept it away (network, cache): the small pictures do as well
            pass
    X, y = load_digits(return_X_y=True)
    return X[np.isin(y, [6, 7])] / 16.0, "8 x 8 digits"


def run(cell: Cell) -> dict[str, Any]:
    """Train with RMSProp on the squared loss; return errors on held-out pictures."""
    import torch

    from pindown.learn.sparse_coding.tied_autoencoder import TiedAutoencoder
    from pindown.optim import RMSProp

    X, name = pictures(cell["data"])
    rng = np.random.default_rng(cell["seed"])
    order = rng.permutation(len(X))
    held, kept = np.split(X[order], [len(X) // 5])
    # The second hidden layer of the source is the rectified output, with a fixed identity behind it.
    model = TiedAutoencoder(
        [X.shape[1], cell["units"]], rectified_output=cell["layers"] == 2, seed=cell["seed"]
    )
    points, fresh = torch.from_numpy(kept), torch.from_numpy(held)

    def error() -> float:
        with torch.no_grad():
            return float(((model(fresh) - fresh) ** 2).mean())

    optimizer = RMSProp(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(cell["seed"])
    start = error()
    for _ in range(cell["epochs"]):
        for batch in torch.randperm(len(points), generator=generator).split(64):
            optimizer.zero_grad()
            ((model(points[batch]) - points[batch]) ** 2).mean().backward()
            optimizer.step()
    mean = float(((held - kept.mean(axis=0)) ** 2).mean())
    return {"data": name, "start": start, "end": error(), "mean picture": mean}


def compare(results: Results) -> Outcome:
    """Compare errors with the start, the mean picture and each other."""
    rows = [
        (r["data"], cell["layers"], cell["units"], r["start"], r["end"], r["mean picture"])
        for cell, r in results
    ]
    falls = all(r["end"] <= r["start"] / 10 and r["end"] < r["mean picture"] for _, r in results)
    ends = {}
    for layers in (1, 2):
        mine = [r["end"] for cell, r in results if cell["layers"] == layers]
        ends[layers] = float(np.mean(mine)) if mine else float("nan")
    deeper = ends[2] < ends[1]
    words = (
        f"Error on held-out pictures {ends[1]:.2g} with one hidden layer, {ends[2]:.2g} with two; "
        f"{'all' if falls else 'not all'} runs fall tenfold and beat the mean picture."
    )
    return Outcome(
        verdict="reproduced" if falls and deeper else "not reproduced",
        words=words,
        columns=(
            "data",
            "hidden layers",
            "units",
            "error, start",
            "error, end",
            "error of the mean picture",
        ),
        rows=tuple(rows),
    )


EXPERIMENT = Experiment(
    id="sparse-coding-digits",
    title="Tied autoencoders on digits",
    source="Mukherjee 2020, section 4.1.1",
    published="Trained by RMSProp on 6,000 MNIST pictures of 6 and 7, tied autoencoders "
    "with one (10,000) and "
    "two (5,000 and 784) hidden layers give recognisable pictures, better with two; there "
    "are no numbers.",
    rule="Reproduced if in every run the held-out error falls tenfold and beats the mean "
    "picture, and two "
    "hidden layers are better than one on average.",
    settings={
        "quick": {"data": "digits", "units": [512, 256], "epochs": 60, "seeds": 2},
        "paper": {"data": "mnist", "units": [10_000, 5_000], "epochs": 30, "seeds": 1},
    },
    seconds={"quick": 7.1},
    cells=cells,
    run=run,
    compare=compare,
    data=SourceData("MNIST", ("mnist",)),
)

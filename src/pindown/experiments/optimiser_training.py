"""Training runs that are compared: settings of an optimiser, the search for its step size."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

# The grids of the source.
STEP_SIZES = {
    "NAG": (3e-3, 1e-3, 3e-4, 1e-4, 3e-5),
    "RMSProp": (3e-4, 1e-4, 3e-5, 1e-5, 3e-6),
    "ADAM": (3e-4, 1e-4, 3e-5, 1e-5, 3e-6),
}
# For runs of a few hundred iterations, which need larger steps.
QUICK_STEPS = {
    "NAG": (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5),
    "adaptive": (1e-2, 3e-3, 1e-3, 3e-4, 1e-4),
}
# What is compared: the name, the method, and its momentum (for RMSProp, the decay of its average).
CONTENDERS = {
    "NAG 0.9": ("NAG", 0.9),
    "NAG 0.99": ("NAG", 0.99),
    "RMSProp 0.9": ("RMSProp", 0.9),
    "RMSProp 0.99": ("RMSProp", 0.99),
    "ADAM 0.9": ("ADAM", 0.9),
    "ADAM 0.99": ("ADAM", 0.99),
}
SHIFTS = {"RMSProp": 1e-10, "ADAM": 1e-8}
_CURVE = 25  # points of a recorded curve
_EXPLODED = 1e3  # times the first loss: such a run is given up


def make_optimiser(
    contender: str, parameters: Any, lr: float, *, shift: float | None = None, **more: Any
) -> Any:
    """Return the optimiser with the settings of the source."""
    from pindown.optim import NAG, Adam, RMSProp

    method, momentum = CONTENDERS[contender]
    if method == "NAG":
        return NAG(parameters, lr, momentum, **more)
    shift = SHIFTS[method] if shift is None else shift
    if method == "RMSProp":
        return RMSProp(parameters, lr, momentum, shift, **more)
    return Adam(parameters, lr, (momentum, 0.999), shift, **more)


def step_sizes(contender: str, settings: Mapping[str, Any]) -> list[float]:
    """Return the step sizes to try: those of the settings, else the source's with two more at each end.

    The source extends its grid while the best step size is at an end. With a grid that is wide enough
    from the start, all runs are independent of each other.

    >>> step_sizes("NAG 0.9", {})
    [3e-06, 1e-05, 3e-05, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03]
    """
    method = CONTENDERS[contender][0]
    if "step_sizes" in settings:
        return list(settings["step_sizes"]["NAG" if method == "NAG" else "adaptive"])
    grid = sorted(STEP_SIZES[method])
    below, above = [_neighbour(grid[0], -i) for i in (2, 1)], [_neighbour(grid[-1], i) for i in (1, 2)]
    return [*below, *grid, *above]


def _neighbour(lr: float, way: int) -> float:
    """Return a later one of ..., 1e-3, 3e-3, 1e-2, 3e-2, ..., or an earlier one."""
    place = round(2 * math.log10(lr)) + way
    return float(f"{'1' if place % 2 == 0 else '3'}e{place // 2}")


def autoencoder_run(
    contender: str,
    lr: float,
    cell: Mapping[str, Any],
    *,
    shift: float | None = None,
    watch: Callable[[int, Any, Any], None] | None = None,
) -> dict[str, Any]:
    """Train a tied autoencoder and measure it.

    Args:
        contender: A key of ``CONTENDERS``.
        lr: Step size.
        cell: ``hidden_layers``, ``width``, ``train``, ``test``, ``side``, ``iterations``, ``batch``
            (None for all images at once) and ``seed``.
        shift: Of RMSProp or ADAM, if not the usual one.
        watch: Called with the iteration, the model and the training images, at each point of the curve.

    Returns:
        Losses (mean over images of the squared distance), the norm of the gradient over all training
        images, and the curve of these; nan if the run exploded.
    """
    import torch

    from pindown.experiments.optimiser_data import digit_images
    from pindown.experiments.optimiser_models import TiedAutoencoder

    torch.set_num_threads(1)
    images = digit_images(cell["train"], cell["test"], cell["side"])
    X, X_test = (torch.from_numpy(part.reshape(len(part), -1)) for part in (images.train, images.test))
    model = TiedAutoencoder(X.shape[1], cell["width"], cell["hidden_layers"], cell["seed"])
    optimiser = make_optimiser(contender, model.parameters(), lr, shift=shift)
    batches = _batches(len(X), cell["batch"], cell["seed"])
    marks = set(np.unique(np.geomspace(1, cell["iterations"], _CURVE).astype(int)).tolist())
    curve, first = [], reconstruction_loss(model, X).item()
    for iteration in range(1, cell["iterations"] + 1):
        rows = batches()
        optimiser.zero_grad()
        loss = reconstruction_loss(model, X if rows is None else X[rows])
        loss.backward()
        optimiser.step()
        if not loss.item() < _EXPLODED * first:
            return {
                "data": images.name,
                "train": math.nan,
                "test": math.nan,
                "gradient": math.nan,
                "curve": [],
            }
        if iteration in marks:
            curve.append([iteration, *_measures(model, X, X_test)])
            if watch is not None:
                watch(iteration, model, X)
    _, train, test, gradient = curve[-1]
    return {"data": images.name, "train": train, "test": test, "gradient": gradient, "curve": curve}


def reconstruction_loss(model: Any, X: Any) -> Any:
    """Return the mean squared distance between images and their reconstructions."""
    return ((model(X) - X) ** 2).sum(dim=1).mean()


def _measures(model: Any, X: Any, X_test: Any) -> tuple[float, float, float]:
    import torch

    model.zero_grad()
    loss = reconstruction_loss(model, X)
    grads = torch.autograd.grad(loss, list(model.parameters()))
    with torch.no_grad():
        test = reconstruction_loss(model, X_test).item()
    return loss.item(), test, math.sqrt(sum(float((g**2).sum()) for g in grads))


def _batches(n: int, size: int | None, seed: int) -> Callable[[], Any]:
    """Return a function that gives the rows of the next batch: a new order in every epoch."""
    import torch

    if size is None:
        return lambda: None
    rng, order = np.random.default_rng(seed), np.array([], dtype=np.int64)

    def rows() -> Any:
        nonlocal order
        if len(order) < size:
            order = rng.permutation(n)
        chosen, order = order[:size], order[size:]
        return torch.from_numpy(chosen)

    return rows

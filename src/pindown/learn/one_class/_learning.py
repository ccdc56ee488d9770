"""How a detector learns from rows: density, networks, calibration."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.learn.one_class._density import NeighbourDensity, density_points, points_of_inputs
from pindown.learn.one_class._inputs import InputScaling
from pindown.learn.one_class._negatives import generic_negatives
from pindown.learn.one_class._plan import Plan
from pindown.learn.one_class.ensemble import (
    HeldOutLosses,
    held_out_losses,
    may_vote,
    network_inputs,
    trained,
)
from pindown.learn.one_class.scoring import Mixture, Scorer
from pindown.learn.one_class.tuning import (
    MADE_UP_IMAGES,
    MADE_UP_ROWS,
    MAX_POINTS,
    MAX_SHARED_POINTS,
    N_NEIGHBOURS,
    SPACING_ROWS,
)
from pindown.progress import watched
from pindown.torch_modules import own_torch


def learned(
    rows: Array,
    scaling: InputScaling,
    plan: Plan,
    rng: np.random.Generator,
    *,
    device: torch.device,
    verbose: int,
    earlier: Scorer | None = None,
    keeps_points: bool = False,
    what: str = "training",
) -> tuple[Scorer, HeldOutLosses | None]:
    """Learn from rows; return what scores new ones, and what tells whether networks learned anything.

    Args:
        rows: Members, (n, d).
        scaling: How rows become inputs.
        plan: What to train.
        rng: Where randomness comes from.
        device: Where to train.
        verbose: Nothing is shown if it is zero.
        earlier: What to go on with, or None.
        keeps_points: Whether the points of the earlier density part stay.
        what: What the progress bar says.
    """
    with own_torch():
        inputs = network_inputs(scaling, rows, plan.printed, torch.float32)
        spacing = _spacing(inputs, rng)
        density = _density(rows, inputs, scaling, plan, spacing, rng, earlier, keeps_points)
        if density is not None and plan.expects:
            trusted = _trusted(density.log_odds(density_points(scaling, rows)), plan.expects)
            rows, inputs = rows[trusted], inputs[torch.as_tensor(trusted)]
        epochs = watched(range(plan.n_members * plan.epochs), what, verbose=verbose)
        known = None if earlier is None else earlier.ensemble
        try:
            ensemble, held = trained(
                plan, inputs, spacing, rng, lambda: next(epochs, None), known, device
            )
        except BaseException:
            if known is not None:
                # Half changed: the networks that score are what to go on from.
                known.trainers = None
            raise
        finally:
            epochs.close()  # type: ignore[attr-defined]
        losses = held_out_losses(ensemble, plan, inputs, spacing)
        bare = Scorer(scaling, plan, ensemble, density, None)
        weight = plan.learned_weight if may_vote(losses, ensemble) else 0.0
        return replace(bare, mixture=_mixture(bare, rows, held, weight)), losses


def _density(
    rows: Array,
    inputs: torch.Tensor,
    scaling: InputScaling,
    plan: Plan,
    spacing: float,
    rng: np.random.Generator,
    earlier: Scorer | None,
    keeps_points: bool,
) -> NeighbourDensity | None:
    if not plan.has("density"):
        return None
    before = None if earlier is None else earlier.density
    points = density_points(scaling, rows)
    steps = plan.epochs * math.ceil(len(inputs) / plan.batch_size)
    if before is not None and keeps_points:
        points = np.concatenate([before.points.astype(np.float64), points])
    most = MAX_SHARED_POINTS if plan.expects else MAX_POINTS
    if len(points) > most:
        points = points[np.sort(rng.choice(len(points), most, replace=False))]
    if plan.expects:
        # Outliers in a group have each other for neighbours, unless neighbours outnumber them.
        k = max(*N_NEIGHBOURS, math.ceil(plan.expects * len(points)))
        weight = np.array([1.0 if steps else 0.0])
        return NeighbourDensity.of(points, weights=weight, neighbours=(k,))
    can_learn = plan.has("negatives")
    if can_learn and steps:
        return NeighbourDensity.of(points, _made_up_points(inputs, scaling, spacing), steps)
    if before is not None and before.weights.any():
        return NeighbourDensity.of(points, weights=before.weights)
    return NeighbourDensity.of(points, weights=np.zeros(len(N_NEIGHBOURS)) if can_learn else None)


def _trusted(log_odds: Array, expects: float) -> NDArray[np.int64]:
    """Return the rows, in order, that are left without the share of those that are farthest away."""
    kept = max(2, len(log_odds) - math.ceil(expects * len(log_odds)))
    return np.sort(np.argsort(-log_odds, kind="stable")[:kept])


def _made_up_points(inputs: torch.Tensor, scaling: InputScaling, spacing: float) -> Array:
    """Return points of generic negatives, always the same ones of the same rows."""
    random = torch.Generator().manual_seed(0)
    wanted = MADE_UP_IMAGES if scaling.is_image else MADE_UP_ROWS
    rows = inputs[:: math.ceil(len(inputs) / wanted)]
    draws = math.ceil(wanted / (2 * len(rows)))
    made = torch.cat([generic_negatives(rows, random, spacing)[0] for _ in range(draws)])
    return points_of_inputs(scaling, made.double())


def _mixture(scorer: Scorer, rows: Array, held: Array, weight: float) -> Mixture | None:
    """Calibrate the log-odds; the printed algorithm has none."""
    if scorer.plan.printed:
        return None
    every = math.ceil(len(rows) / MAX_POINTS)  # quantiles need no more
    rows, held = rows[::every], held[::every]
    density = None
    if scorer.density is not None:
        density = scorer.density.log_odds(density_points(scorer.scaling, rows))
    if scorer.plan.ablation == "h":
        held = np.full(len(rows), np.nan)
    return Mixture.of(density, held, scorer.learned(rows), weight)


def _spacing(inputs: torch.Tensor, rng: np.random.Generator) -> float:
    """Return the median distance of a row to its nearest other row."""
    rows = inputs.flatten(1)
    if len(rows) > SPACING_ROWS:
        rows = rows[torch.as_tensor(np.sort(rng.choice(len(rows), SPACING_ROWS, replace=False)))]
    distances = torch.cdist(rows.double(), rows.double())
    distances.fill_diagonal_(float("inf"))
    return float(distances.min(dim=1).values.median())

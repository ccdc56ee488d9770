"""How a detector learns its parts from rows: density, networks, calibration, threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from pindown.affine import Array
from pindown.learn.gates.progress import watched
from pindown.learn.one_class.checks import check_goes_on, n_axes, plan_for
from pindown.learn.one_class.density import EDGE, N_NEIGHBOURS, NeighbourDensity
from pindown.learn.one_class.ensemble import Ensemble, network_inputs, trained
from pindown.learn.one_class.evidence import Prices, may_vote, prices, warn_of_nothing_learned
from pindown.learn.one_class.frame import image_layout
from pindown.learn.one_class.mixture import Mixture
from pindown.learn.one_class.negatives import generic_negatives
from pindown.learn.one_class.scores import Scores
from pindown.learn.torch_isolation import own_torch, usable_device

_MOST_POINTS = 20_000  # training points kept for distances
_SPACING_ROWS = 1000
_MADE_UP_ROWS, _MADE_UP_IMAGES = 2000, 400  # at most, and at least half: what distances are weighed by


class Learner(Scores):
    """What learning does to a detector: all of it, or nothing if it fails or is stopped too early."""

    preset: str
    image_shape: Any
    contamination: Any
    device: Any
    verbose: int
    random_state: Any
    history_: list[dict[str, float]]
    prices_: Prices | None

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put every attribute back if learning does not come to its end."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _layout(self, X: Any) -> tuple[tuple[int, ...], bool]:
        axes = n_axes(X)
        if axes == 2 and self.image_shape is None:
            if self.preset == "image":
                raise ValueError("preset 'image' needs images, or image_shape for flat rows of pixels.")
            return (), False
        if axes < 2 or self.preset == "tabular":
            return (), False
        return image_layout(X, self.image_shape)

    def _learn(
        self, rows: Array, earlier: Ensemble | None, points: NeighbourDensity | None = None
    ) -> None:
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        device = usable_device(self.device)
        plan = plan_for(self, self.frame_, len(rows))
        if earlier is not None:
            check_goes_on(plan, self.plan_, len(earlier.members))
        known = None if earlier is None or self.density_ is None else self.density_.weights
        self.plan_ = plan
        with own_torch():
            inputs = network_inputs(self.frame_, rows, plan.printed, torch.float32)
            spacing = _spacing(inputs, rng)
            self.density_ = self._density(rows, inputs, spacing, rng, points, known)
            epochs = watched(plan.n_members * plan.epochs, self.verbose, "training")
            try:
                self.ensemble_, held = trained(
                    plan, inputs, spacing, rng, lambda: next(epochs, None), earlier, device
                )
            except BaseException:
                if earlier is not None:
                    earlier.trainers = (
                        None  # half changed: the networks that score are what to go on from
                    )
                raise
            finally:
                epochs.close()  # type: ignore[attr-defined]
            self.history_ = self.ensemble_.history
            self.prices_ = prices(self.ensemble_, plan, inputs, spacing)
            self.mixture_ = self._mixture(rows, held)
        self.offset_ = self._offset(rows)
        warn_of_nothing_learned(self.prices_, self.ensemble_, len(rows))

    def _density(
        self,
        rows: Array,
        inputs: torch.Tensor,
        spacing: float,
        rng: np.random.Generator,
        earlier: NeighbourDensity | None,
        known: Array | None,
    ) -> NeighbourDensity | None:
        if not self.plan_.has("density"):
            return None
        points = self._features(rows)
        if earlier is not None:
            points = np.concatenate([earlier.points.astype(np.float64), points])
        if len(points) > _MOST_POINTS:
            points = points[np.sort(rng.choice(len(points), _MOST_POINTS, replace=False))]
        steps = self.plan_.epochs * math.ceil(len(inputs) / self.plan_.batch_size)
        can_learn = self.plan_.has("negatives")
        if can_learn and steps:
            return NeighbourDensity.of(points, self._made_up_points(inputs, spacing), steps)
        if known is not None and known.any():
            return NeighbourDensity.of(points, weights=known)
        return NeighbourDensity.of(points, weights=np.zeros(len(N_NEIGHBOURS)) if can_learn else None)

    def _made_up_points(self, inputs: torch.Tensor, spacing: float) -> Array:
        """Return points of generic negatives, always the same ones of the same rows."""
        random = torch.Generator().manual_seed(0)
        wanted = _MADE_UP_IMAGES if self.frame_.is_image else _MADE_UP_ROWS
        rows = inputs[:: math.ceil(len(inputs) / wanted)]
        draws = math.ceil(wanted / (2 * len(rows)))
        made = torch.cat([generic_negatives(rows, random, spacing)[0] for _ in range(draws)])
        return self._points(made.double())

    def _mixture(self, rows: Array, held: Array) -> Mixture | None:
        """Calibrate the log-odds; the printed algorithm has none."""
        if self.plan_.printed:
            return None
        density = None if self.density_ is None else self.density_.log_odds(self._features(rows))
        if self.plan_.ablation == "h":
            held = np.full(len(rows), np.nan)
        weight = self.plan_.learned_weight if may_vote(self.prices_, self.ensemble_) else 0.0
        return Mixture.of(density, held, self._learned(rows), weight)

    def _offset(self, rows: Array) -> float:
        if isinstance(self.contamination, str):
            # Printed log-odds are not calibrated: nearly everything is above even odds.
            return float(np.quantile(self._scores(rows), EDGE)) if self.plan_.printed else 0.0
        return float(np.percentile(self._scores(rows), 100.0 * float(self.contamination)))


def _spacing(inputs: torch.Tensor, rng: np.random.Generator) -> float:
    """Return the median distance of a row to its nearest other row."""
    rows = inputs.flatten(1)
    if len(rows) > _SPACING_ROWS:
        rows = rows[torch.as_tensor(np.sort(rng.choice(len(rows), _SPACING_ROWS, replace=False)))]
    distances = torch.cdist(rows.double(), rows.double())
    distances.fill_diagonal_(float("inf"))
    return float(distances.min(dim=1).values.median())

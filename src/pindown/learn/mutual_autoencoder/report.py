"""What a fitted autoencoder's code carries, in a few numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pindown.learn.mutual_autoencoder import evaluation
from pindown.learn.mutual_autoencoder.measure import MeasuredInformation
from pindown.learn.mutual_autoencoder.rows import SymbolRows
from pindown.learn.torch_isolation import own_torch

_ACTIVE = 0.01  # nats of divergence above which a coordinate of the code is in use


@dataclass(frozen=True)
class InformationReport:
    """Target and measurement side by side.

    Attributes:
        target: M, in nats; None for a plain variational autoencoder.
        measured: Information of the model, with how it was measured.
        running: The training's own last estimate, a lower bound by the guess r.
        elbo: Mean evidence bound of the rows given.
        rate: Mean divergence of q(z | x) from the prior over these rows.
        active: Coordinates of the code with a mean divergence above 0.01 nats.
        reconstruction: Root mean squared error in the data's units, or the share of entries that come
            back the same.
        exact_rows: Share of rows that come back the same; None for numbers.
        entropy: Of the rows of the training data, if they are symbols: no code can tell more.
        n: Rows given.
        dropped: Nats of evidence that all training rows gained by the code before it was dropped;
            None if it was not.
    """

    target: float | None
    measured: MeasuredInformation
    running: float
    elbo: float
    rate: float
    active: int
    reconstruction: float
    exact_rows: float | None
    entropy: float | None
    n: int
    dropped: float | None = None

    def __str__(self) -> str:
        wanted = "no target" if self.target is None else f"target {self.target:g} nats"
        back = (
            f"root mean squared error {self.reconstruction:.3g}"
            if self.exact_rows is None
            else f"{100 * self.exact_rows:.1f} % of rows come back exactly"
        )
        idle = (
            "" if self.dropped is None else f"; code dropped, it gained {self.dropped:.2g} nats in all"
        )
        return (
            f"information {self.measured}, {wanted}; ELBO {self.elbo:.4g}, rate {self.rate:.4g}, "
            f"{self.active} active coordinates; {back}{idle} (n = {self.n:,})"
        )


def report_on(model: Any, X: Any, rows: torch.Tensor) -> InformationReport:
    """Return target and measurement of a fitted autoencoder, and how it does on given rows.

    Args:
        model: The autoencoder.
        X: Rows, as they were given.
        rows: The same, as its networks take them.
    """
    with own_torch():
        rate = evaluation.rates(model.parts_.encoder, rows)
    given = np.asarray(X)
    back = model.inverse_transform(model.transform(X))
    symbols = isinstance(model.rows_, SymbolRows)
    same = given == back if symbols else None
    error = float(np.sqrt(np.mean((given - back) ** 2))) if same is None else float(same.mean())
    seen = model.history_["information"][-100:]
    return InformationReport(
        target=float(model.information) if model.penalty > 0 else None,
        measured=model.measurement_,
        running=float(seen.mean()) if len(seen) and model.penalty > 0 else math.nan,
        elbo=model.score(X),
        rate=float(rate.sum(1).mean()),
        active=int((rate.mean(0) > _ACTIVE).sum()),
        reconstruction=error,
        exact_rows=None if same is None else float(same.all(axis=1).mean()),
        entropy=model.entropy_,
        n=len(rows),
        dropped=model.code_gain_ if model.code_dropped_ else None,
    )

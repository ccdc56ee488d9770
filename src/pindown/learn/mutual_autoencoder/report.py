"""What a fitted autoencoder's code carries, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from pindown.learn.mutual_autoencoder.measure import MeasuredInformation


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

    def __str__(self) -> str:
        wanted = "no target" if self.target is None else f"target {self.target:g} nats"
        back = (
            f"root mean squared error {self.reconstruction:.3g}"
            if self.exact_rows is None
            else f"{100 * self.exact_rows:.1f} % of rows come back exactly"
        )
        return (
            f"information {self.measured}, {wanted}; ELBO {self.elbo:.4g}, rate {self.rate:.4g}, "
            f"{self.active} active coordinates; {back} (n = {self.n:,})"
        )

r"""Mutual information from below: fit a guess r(z | x), then look at fresh draws.

.. math:: I(z; x) \ge H(z) + E[\log r(z \mid x)]

with equality exactly when r is the posterior. A weak r makes the number too small, never too large.

Phuong 2021, Theorem 4.1; Barber and Agakov 2003.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import entr
from torch import Tensor

from pindown.affine import Array
from pindown.guarantees.bounds.mutual_information import (
    InformationBound,
    Units,
    information_lower_bound,
    standard_normal_entropy,
)
from pindown.learn.mutual_autoencoder._networks import MixtureGuess, Numbers
from pindown.learn.mutual_autoencoder.tuning import BEYOND_CHANCE, BINS, DRAW_BLOCK, MIN_HISTOGRAM_DRAWS
from pindown.progress import watched
from pindown.torch_modules import own_torch
from pindown.validation import integer, positive

Indices: TypeAlias = npt.NDArray[np.int64]
Draw: TypeAlias = Callable[[int, torch.Generator], tuple[Any, Any]]


def fit_guess(
    guess: Any,
    draw: Draw,
    random: torch.Generator,
    *,
    steps: int,
    batch_size: int = 256,
    learning_rate: float = 1e-2,
    verbose: int = 0,
) -> None:
    """Raise the mean log r on fresh draws (z, x), in place, with a step size that falls to zero."""
    learner = torch.optim.Adam(list(guess.parameters()), lr=learning_rate, fused=True)
    for t in watched(range(steps), "information", verbose=verbose):
        learner.param_groups[0]["lr"] = learning_rate * 0.5 * (1.0 + math.cos(math.pi * t / steps))
        z, x = draw(batch_size, random)
        learner.zero_grad()
        (-guess.log_prob(z, x).mean()).backward()
        learner.step()


def guessed_information(
    guess: Any, draw: Draw, random: torch.Generator, *, entropy: float, n: int, units: Units = "nats"
) -> InformationBound:
    """Return the bound of a fitted r, on n fresh draws."""
    values = []
    with torch.no_grad():
        for start in range(0, n, DRAW_BLOCK):
            z, x = draw(min(DRAW_BLOCK, n - start), random)
            values.append(guess.log_prob(z, x).double())
    return information_lower_bound(torch.cat(values).numpy(), entropy, units=units)


def binned_information(z: Array, x: Array, *, units: Units = "nats") -> InformationBound:
    r"""Return the bound from histograms of one coordinate of z and one of x.

    With equally filled bins B and C, by the data-processing inequality and the bound above,

    .. math:: I(z; x) \ge I(B(z_j); C(x_i)) \ge H(B) + E[\log r(B \mid C)].

    Bins, r and the pair (j, i) come from the first half of the draws, the rest from the second: too
    small on average, never too large.

    Args:
        z: Draws (n, k).
        x: The same draws, (n, d).
        units: ``"nats"`` or ``"bits"``.

    The size of z leaves its sign open, log 2 of the log 16 that tell the bins apart:

    >>> z = np.random.default_rng(0).standard_normal((20_000, 1))
    >>> round(binned_information(z, np.abs(z)).value, 1), round(math.log(8), 1)
    (1.9, 2.1)
    """
    half = len(z) // 2
    B, C = _binned(z, half), _binned(x, half)
    cells = [(j, i) for j in range(B.shape[1]) for i in range(C.shape[1])]
    tables = {(j, i): _table(B[:half, j], C[:half, i]) for j, i in cells}
    j, i = max(cells, key=lambda cell: _plug_in(tables[cell]))
    guess = tables[j, i] + 1.0 / BINS
    log_r = np.log(guess / guess.sum(axis=0))[B[half:, j], C[half:, i]]
    shares = np.bincount(B[half:, j], minlength=BINS) / (len(z) - half)
    return information_lower_bound(log_r, float(entr(shares).sum()), units=units)


def _binned(values: Array, half: int) -> Indices:
    """Return the bin of every value, with edges that divide each column's first half evenly."""
    edges = np.quantile(values[:half], np.arange(1, BINS) / BINS, axis=0)
    columns = [np.searchsorted(e, v) for e, v in zip(edges.T, values.T, strict=True)]
    return np.stack(columns, axis=1).astype(np.int64)


def _table(b: Indices, c: Indices) -> Array:
    return np.bincount(b * BINS + c, minlength=BINS**2).reshape(BINS, BINS).astype(np.float64)


def _plug_in(table: Array) -> float:
    p = table / table.sum()
    return float(entr(p.sum(axis=0)).sum() + entr(p.sum(axis=1)).sum() - entr(p).sum())


class InfomaxEstimator:
    r"""The variational bound for any joint distribution one can draw from.

    The answer is a lower bound that is as good as r can become: a family without the posterior, or too
    few steps, leave it anywhere below the truth. Histograms give another lower bound
    (:func:`binned_information`); where that one is higher beyond chance, a warning says so. No warning
    is no proof that the bound is tight.

    Args:
        mixture: Normals in the mixture r.
        hidden: Widths of r's hidden layers.
        steps: Updates of r.
        batch_size: Draws per update.
        learning_rate: First step size of Adam.
        n_test: Fresh draws for the answer.
        units: ``"nats"`` or ``"bits"``.
        random_state: Seed.
        verbose: Whether a bar appears after two seconds.

    Attributes:
        bound_: The answer, with its standard error.
        guess_: r, a torch module.
        histogram_: The bound from histograms of single coordinates, on as many draws.

    Example:
        For x = z + e with two standard normals, I = 0.5 log 2 = 0.347 nats:

        >>> def draw(n, random):
        ...     z = torch.randn((n, 1), generator=random)
        ...     return z, z + torch.randn((n, 1), generator=random)
        >>> bound = InfomaxEstimator(mixture=1, hidden=(), steps=600, n_test=4000).fit(draw).bound_
        >>> abs(bound.value - 0.347) < 5 * bound.standard_error
        True

    Phuong 2021, Theorem 4.1.
    """

    def __init__(
        self,
        *,
        mixture: int = 4,
        hidden: Sequence[int] = (32, 32),
        steps: int = 1500,
        batch_size: int = 256,
        learning_rate: float = 1e-2,
        n_test: int = 20_000,
        units: Units = "nats",
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        for name, value in {"mixture": mixture, "batch_size": batch_size, "n_test": n_test}.items():
            integer(name, value)
        integer("steps", steps, least=0)
        positive("learning_rate", learning_rate, zero=True)
        self.mixture, self.hidden, self.steps, self.batch_size = mixture, hidden, steps, batch_size
        self.learning_rate, self.n_test, self.units = learning_rate, n_test, units
        self.random_state, self.verbose = random_state, verbose

    def fit(self, draw: Draw, *, entropy: float | None = None) -> InfomaxEstimator:
        """Fit r and measure.

        Args:
            draw: Number of draws and a generator to z, (n, k), and x, (n, d).
            entropy: H(z) in nats; None if z is standard normal.

        Raises:
            ValueError: If the draws do not have these shapes.
        """
        random = torch.Generator().manual_seed(self.random_state)

        def drawn(n: int, own: torch.Generator) -> tuple[Tensor, Tensor]:
            z, x = (torch.as_tensor(part, dtype=torch.float32) for part in draw(n, own))
            if z.ndim != 2 or x.ndim != 2 or not len(z) == len(x) == n:
                raise ValueError(
                    f"draw({n}, generator) must return z ({n}, k) and x ({n}, d); "
                    f"got {tuple(z.shape)} and {tuple(x.shape)}."
                )
            return z, x

        with own_torch():
            z, x = drawn(2, random)
            latent, width = z.shape[1], x.shape[1]
            self.guess_ = MixtureGuess(Numbers(width), latent, self.hidden, self.mixture, random)
            fit_guess(
                self.guess_,
                drawn,
                random,
                steps=self.steps,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                verbose=self.verbose,
            )
            known = standard_normal_entropy(latent) if entropy is None else entropy
            n, units = self.n_test, self.units
            self.bound_ = guessed_information(
                self.guess_, drawn, random, entropy=known, n=n, units=units
            )
            z, x = drawn(max(n, MIN_HISTOGRAM_DRAWS), random)
        self.histogram_ = binned_information(z.double().numpy(), x.double().numpy(), units=units)
        missing = self.histogram_.value - self.bound_.value
        chance = math.hypot(self.histogram_.standard_error, self.bound_.standard_error)
        if missing > BEYOND_CHANCE * chance:
            warnings.warn(
                f"the bound, {self.bound_.value:.3g} {units}, is too low: histograms of one coordinate "
                f"each show at least {self.histogram_.value:.3g}. Its r does not come near the "
                "posterior; give it a larger mixture, more hidden layers or steps.",
                stacklevel=2,
            )
        return self

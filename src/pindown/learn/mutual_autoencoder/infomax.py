r"""Mutual information from below: fit a guess r(z | x), then look at fresh draws.

.. math:: I(z; x) \ge H(z) + E[\log r(z \mid x)]

with equality exactly when r is the posterior. A weak r makes the number too small, never too large.

Phuong 2021, Theorem 4.1; Barber and Agakov 2003.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pindown.datasets.checks import is_number, require_whole
from pindown.guarantees.bounds.information import (
    InformationBound,
    Units,
    information_lower_bound,
    standard_normal_entropy,
)
from pindown.learn.gates.progress import watched
from pindown.learn.mutual_autoencoder.networks import MixtureGuess, Numbers
from pindown.learn.one_class.torch_state import own_torch

Draw: TypeAlias = Callable[[int, torch.Generator], tuple[Any, Any]]
_BLOCK = 2_000  # draws looked at in one go


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
    for t in watched(steps, verbose, "information"):
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
        for start in range(0, n, _BLOCK):
            z, x = draw(min(_BLOCK, n - start), random)
            values.append(guess.log_prob(z, x).double())
    return information_lower_bound(torch.cat(values).numpy(), entropy, units=units)


class InfomaxEstimator:
    r"""The variational bound for any joint distribution one can draw from.

    Args:
        parts: Normals in the mixture r.
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

    Example:
        For x = z + e with two standard normals, I = 0.5 log 2 = 0.347 nats:

        >>> def draw(n, random):
        ...     z = torch.randn((n, 1), generator=random)
        ...     return z, z + torch.randn((n, 1), generator=random)
        >>> bound = InfomaxEstimator(parts=1, hidden=(), steps=600, n_test=4000).fit(draw).bound_
        >>> abs(bound.value - 0.347) < 5 * bound.standard_error
        True

    Phuong 2021, Theorem 4.1.
    """

    def __init__(
        self,
        *,
        parts: int = 4,
        hidden: Sequence[int] = (32, 32),
        steps: int = 1500,
        batch_size: int = 256,
        learning_rate: float = 1e-2,
        n_test: int = 20_000,
        units: Units = "nats",
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        for name, value in {"parts": parts, "batch_size": batch_size, "n_test": n_test}.items():
            require_whole(name, value)
        require_whole("steps", steps, 0)
        if not is_number(learning_rate, 0):
            raise ValueError(f"learning_rate must be a number, zero or positive; got {learning_rate!r}.")
        self.parts, self.hidden, self.steps, self.batch_size = parts, hidden, steps, batch_size
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
            self.guess_ = MixtureGuess(Numbers(width), latent, self.hidden, self.parts, random)
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
        return self

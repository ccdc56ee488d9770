r"""A temperature that rises as the teachers grow sure of themselves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softmax

from pindown.validation import is_number

_HOTTEST = 1e6  # tempered probabilities are even to single precision long before


class TemperatureAnnealer:
    r"""The temperature :math:`\tau`, raised after every batch in which teachers are too confident.

    Confidence is the mean over the batch of
    :math:`\max_k \frac1{|T|}\sum_{t \in T} [p_t^{1/\tau}]_k`; above ``mu``, :math:`\tau` is
    multiplied by ``tau_star``. It never falls.

    Args:
        mu: Confidence to keep, between one over the number of classes and 1.
        tau_star: Factor above 1.

    Attributes:
        tau: The temperature, 1 at the start.
        confidence: Of the last batch, tempered; nan before the first.

    Example:
        >>> annealer = TemperatureAnnealer(mu=0.5, tau_star=2.0)
        >>> sure = torch.tensor([[6.0, 0.0, 0.0, 0.0]])
        >>> [annealer.update([sure]) for _ in range(4)]  # softmax of (1.5, 0, 0, 0) has maximum 0.6
        [2.0, 4.0, 8.0, 8.0]

    Phuong 2021, section 6.2.4, in words; line 12 of Algorithm 6.1 takes the maximum of the batch's mean.
    """

    def __init__(self, mu: float = 0.5, tau_star: float = 1.05) -> None:
        if not (is_number(mu, 0, 1) and 0 < mu < 1):
            raise ValueError(f"mu must be a number between 0 and 1, got {mu!r}.")
        if not (is_number(tau_star) and tau_star > 1):
            raise ValueError(f"tau_star must be a number above 1, got {tau_star!r}.")
        self.mu, self.tau_star = float(mu), float(tau_star)
        self.tau, self.confidence = 1.0, float("nan")
        self._warned = False

    def update(self, teacher_logits: Sequence[Tensor]) -> float:
        """See the teachers' logits on a batch, raise the temperature if need be, and return it.

        Args:
            teacher_logits: Logits of the teachers, each (n, classes); none leaves the temperature alone.
        """
        if not len(teacher_logits):
            return self.tau
        classes = teacher_logits[0].shape[1]
        if self.mu * classes <= 1.0 and not self._warned:
            self._warned = True
            warnings.warn(
                f"mu = {self.mu:g} is at most one over the number of classes, {classes}: "
                "the temperature would rise for ever",
                stacklevel=2,
            )
        with torch.no_grad():
            mean = torch.stack([softmax(z / self.tau, dim=1) for z in teacher_logits]).mean(dim=0)
            self.confidence = float(mean.max(dim=1).values.mean())
        if self.confidence > self.mu:
            self.tau = min(self.tau * self.tau_star, _HOTTEST)
        return self.tau

    def state_dict(self) -> dict[str, float]:
        """Return what a checkpoint has to keep."""
        return {"tau": self.tau, "mu": self.mu, "tau_star": self.tau_star}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        restored = TemperatureAnnealer(state["mu"], state["tau_star"])
        if not is_number(state["tau"], 1.0):
            raise ValueError(f"tau must be a number, at least 1; got {state['tau']!r}.")
        self.mu, self.tau_star, self.tau = restored.mu, restored.tau_star, float(state["tau"])

"""Distillation among a network's own exits, for any training loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from pindown.learn.multi_exit.annealing import TemperatureAnnealer
from pindown.learn.multi_exit.losses import distillation_loss, exit_wise_loss, teacher_sets
from pindown.validation import is_integer, is_number

UNLABELLED = -1


class MultiExitDistiller:
    r"""The loss :math:`\ell_{\rm cls} + \ell_{\rm dist}` of a network with exits, and its temperature.

    Args:
        model: A model with ``n_exits``, or the number of exits.
        teachers: ``"last"``, ``"later"``, ``"next"``, ``"ensemble"``, ``"none"`` (the exit-wise loss),
            or a list of exits for each exit.
        mu: Confidence at which the temperature is kept.
        tau_star: Factor by which it rises.
        temperature: A constant one, in place of the rising one.
        weight: Of the distillation loss; 1 in the source.
        per: What the distillation loss is divided by: ``"exit"`` or ``"student"``.

    Attributes:
        annealer: The rising temperature, or None.

    Example:
        >>> import torch
        >>> distiller = MultiExitDistiller(2, teachers="last")
        >>> logits = [torch.zeros(3, 2, requires_grad=True), torch.ones(3, 2, requires_grad=True)]
        >>> distiller.loss(logits).backward()  # without labels: the first exit learns, the last teaches
        >>> logits[0].grad is None, logits[1].grad is None
        (False, True)

    Phuong 2021, Algorithm 6.1.
    """

    def __init__(
        self,
        model: Any,
        teachers: Any = "last",
        *,
        mu: float = 0.5,
        tau_star: float = 1.05,
        temperature: float | None = None,
        weight: float = 1.0,
        per: str = "exit",
    ) -> None:
        n_exits: Any = model if is_integer(model) else getattr(model, "n_exits", None)
        if not is_integer(n_exits):
            raise TypeError(f"model must have n_exits, or be the number of exits; got {model!r}.")
        if temperature is not None and not (is_number(temperature) and temperature > 0):
            raise ValueError(f"temperature must be a positive number or None, got {temperature!r}.")
        if not is_number(weight, 0):
            raise ValueError(f"weight must be a number, zero or positive; got {weight!r}.")
        if per not in ("exit", "student"):
            raise ValueError(f"per must be 'exit' or 'student', got {per!r}.")
        self.n_exits, self.teachers, self.weight, self.per = int(n_exits), teachers, float(weight), per
        self.teacher_sets = teacher_sets(teachers, self.n_exits)
        self.annealer = TemperatureAnnealer(mu, tau_star) if temperature is None else None
        self._constant = 1.0 if temperature is None else float(temperature)

    @property
    def temperature(self) -> float:
        """The temperature that the next loss is computed with."""
        return self._constant if self.annealer is None else self.annealer.tau

    def classification(self, logits: Sequence[Tensor], y: Tensor) -> Tensor:
        """Return the exit-wise loss of the samples that have labels (label -1: none)."""
        self._check(logits)
        known = y != UNLABELLED
        if not bool(known.any()):
            return logits[0].new_zeros(())
        if not bool(known.all()):
            logits, y = [z[known] for z in logits], y[known]
        return exit_wise_loss(logits, y)

    def distillation(self, logits: Sequence[Tensor]) -> Tensor:
        """Return the weighted distillation loss, which needs no labels."""
        self._check(logits)
        loss = distillation_loss(logits, self.teachers, self.temperature, per=self.per)
        return self.weight * loss

    def loss(self, logits: Sequence[Tensor], y: Tensor | None = None) -> Tensor:
        """Return the loss of a batch; without labels, of distillation alone.

        Args:
            logits: Of all exits, cheap to expensive.
            y: Labels, with -1 for samples that have none; they count in the distillation loss only.
        """
        loss = self.distillation(logits)
        return loss if y is None else loss + self.classification(logits, y)

    def semi_supervised_loss(
        self, labelled: Sequence[Tensor], y: Tensor, everything: Sequence[Tensor]
    ) -> Tensor:
        """Return the loss of a labelled batch plus the distillation loss of a batch of all samples.

        Both are means over their own batch, so their sum is an unbiased estimate of the objective if
        the second batch is drawn from labelled and unlabelled samples together.

        Phuong 2021, section 6.2.5 and (6.6).
        """
        return self.classification(labelled, y) + self.distillation(everything)

    def update(self, logits: Sequence[Tensor]) -> float:
        """See a batch's logits after the step, and return the temperature of the next one."""
        self._check(logits)
        if self.annealer is None:
            return self.temperature
        everyone = sorted({t for own in self.teacher_sets for t in own})
        return self.annealer.update([logits[t - 1].detach() for t in everyone])

    def state_dict(self) -> dict[str, float]:
        """Return what a checkpoint has to keep."""
        return {} if self.annealer is None else self.annealer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        if self.annealer is not None:
            self.annealer.load_state_dict(state)

    def _check(self, logits: Sequence[Tensor]) -> None:
        if len(logits) != self.n_exits:
            raise ValueError(f"logits of {self.n_exits} exits are needed, got {len(logits)}.")

r"""Losses of networks with exits: every exit learns the labels, early exits learn from later ones.

With :math:`p_m` the probabilities of exit m and :math:`[p^{1/\tau}]` the tempered ones, the softmax of
logits over :math:`\tau`,

.. math::
    \ell_{\rm cls} = \frac1M \sum_m -\log p_m(y), \qquad
    \ell_{\rm dist} = \frac1M \sum_m \frac1{|T(m)|} \sum_{t \in T(m)}
        -\tau^2 \sum_k [p_t^{1/\tau}]_k \log [p_m^{1/\tau}]_k .

Exits without a teacher add nothing. Teachers are constants here: no gradient reaches them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, softmax

from pindown.errors import ParameterError
from pindown.learn.multi_exit.tuning import MAX_TEMPERATURE
from pindown.validation import choice, is_integer, number, optional, positive, probability, refuse

TeacherSets: TypeAlias = tuple[tuple[int, ...], ...]
STRATEGIES = ("last", "later", "next", "ensemble", "none")
UNLABELLED = -1


def teacher_sets(strategy: Any, n_exits: int) -> TeacherSets:
    """Return the teachers T(m) of every exit, numbered from 1.

    Args:
        strategy: ``"last"`` for the last exit, ``"later"`` and ``"ensemble"`` for all later ones,
            ``"next"``, ``"none"``, or a list with a list of exits for each exit.
        n_exits: Number M of exits.

    Raises:
        ValueError: If the strategy is not known, or an exit would teach itself or is not there.

    Example:
        >>> teacher_sets("last", 3), teacher_sets("later", 3), teacher_sets("next", 3)
        (((3,), (3,), ()), ((2, 3), (3,), ()), ((2,), (3,), ()))

    Phuong 2021, section 6.2.3 and appendix E.1; ``"next"`` and ``"ensemble"`` are ours.
    """
    exits = range(1, n_exits + 1)
    if isinstance(strategy, str):
        if strategy not in STRATEGIES:
            raise ValueError(
                f"teachers must be one of {', '.join(STRATEGIES)}, or a list of exits for each exit; "
                f"got {strategy!r}."
            )
        firsts = {"last": n_exits, "none": n_exits + 1}
        lasts = {"next": 1}
        return tuple(
            tuple(
                range(
                    max(m + 1, firsts.get(strategy, 0)),
                    min(n_exits, m + lasts.get(strategy, n_exits)) + 1,
                )
            )
            for m in exits
        )
    try:
        sets = tuple(tuple(own) for own in strategy)
    except TypeError:
        raise ValueError(f"teachers must be a list of exits for each exit; got {strategy!r}.") from None
    if len(sets) != n_exits:
        raise ValueError(f"teachers must have a list for each of {n_exits} exits; got {len(sets)}.")
    for m, own in zip(exits, sets, strict=True):
        if any(not is_integer(t) or t > n_exits or t == m for t in own) or len(set(own)) != len(own):
            raise ValueError(
                f"teachers of exit {m} must be other exits from 1 to {n_exits}; got {own!r}."
            )
    return sets


def exit_wise_loss(logits: Sequence[Tensor], y: Tensor) -> Tensor:
    """Return the mean cross-entropy over exits and samples.

    Example:
        >>> z = torch.zeros(4, 2)
        >>> round(exit_wise_loss([z, z], torch.tensor([0, 1, 1, 0])).item(), 6)  # log 2
        0.693147

    Phuong 2021, (6.5) and (6.7).
    """
    return cross_entropy(torch.cat(list(logits)), y.repeat(len(logits)))


def tempered_cross_entropy(teacher: Tensor, student_logits: Tensor, tau: float) -> Tensor:
    r"""Return :math:`-\tau^2 \sum_k t_k \log [s^{1/\tau}]_k`, averaged over samples.

    The factor keeps gradients from vanishing: they are :math:`\tau ([s^{1/\tau}] - t)`, for large
    :math:`\tau` the difference of centred logits over the number of classes.

    Args:
        teacher: Probabilities of the teacher, tempered already, (n, classes).
        student_logits: Logits of the student, (n, classes).
        tau: Temperature.

    Phuong 2021, (6.2) and (6.3).
    """
    return -(tau**2) * (teacher * log_softmax(student_logits / tau, dim=1)).sum(dim=1).mean()


def distillation_loss(
    logits: Sequence[Tensor], teachers: Any = "last", tau: float = 1.0, *, per: str = "exit"
) -> Tensor:
    """Return the distillation loss of a batch.

    Args:
        logits: Logits of all exits, cheap to expensive.
        teachers: As in :func:`teacher_sets`. ``"ensemble"`` averages the probabilities of later exits
            and tempers the mean; ``"later"`` averages tempered probabilities, or losses: these agree.
        tau: Temperature, the same for teachers and students.
        per: ``"exit"`` divides by the number of exits, as printed; ``"student"`` by those with teachers.

    Example:
        >>> sure, unsure = torch.tensor([[50.0, 0.0]]), torch.tensor([[0.0, 0.0]])
        >>> round(distillation_loss([unsure, sure]).item(), 4)  # half of log 2
        0.3466

    Phuong 2021, (6.4); Algorithm 6.1 would temper teachers twice.
    """
    choice("per", per, ("exit", "student"))
    sets = teacher_sets(teachers, len(logits))
    targets: dict[tuple[int, ...], Tensor] = {}  # later exits share their teachers
    terms = []
    for own, student in zip(sets, logits, strict=True):
        if own:
            if own not in targets:
                targets[own] = teacher_probabilities([logits[t - 1] for t in own], tau, teachers)
            terms.append(tempered_cross_entropy(targets[own], student, tau))
    if not terms:
        return logits[0].new_zeros(())
    return torch.stack(terms).sum() / (len(logits) if per == "exit" else len(terms))


def teacher_probabilities(logits: Sequence[Tensor], tau: float, teachers: Any = "last") -> Tensor:
    """Return what students are to imitate: tempered once, averaged over teachers, without gradient."""
    with torch.no_grad():
        if isinstance(teachers, str) and teachers == "ensemble":
            mean = torch.stack([softmax(z, dim=1) for z in logits]).mean(dim=0)
            return softmax(mean.log() / tau, dim=1)
        return torch.stack([softmax(z / tau, dim=1) for z in logits]).mean(dim=0)


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
        confidence: Confidence of the last batch, tempered; nan before the first.

    Example:
        >>> annealer = TemperatureAnnealer(mu=0.5, tau_star=2.0)
        >>> sure = torch.tensor([[6.0, 0.0, 0.0, 0.0]])
        >>> [annealer.update([sure]) for _ in range(4)]  # softmax of (1.5, 0, 0, 0) has maximum 0.6
        [2.0, 4.0, 8.0, 8.0]

    Phuong 2021, section 6.2.4, in words; line 12 of Algorithm 6.1 takes the maximum of the batch's mean.
    """

    def __init__(self, mu: float = 0.5, tau_star: float = 1.05) -> None:
        self.mu, self.tau_star = probability("mu", mu), number("tau_star", tau_star, 1.0, above=True)
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
            self.tau = min(self.tau * self.tau_star, MAX_TEMPERATURE)
        return self.tau

    def state_dict(self) -> dict[str, float]:
        """Return what a checkpoint has to keep."""
        return {"tau": self.tau, "mu": self.mu, "tau_star": self.tau_star}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        restored = TemperatureAnnealer(state["mu"], state["tau_star"])
        self.mu, self.tau_star = restored.mu, restored.tau_star
        self.tau = number("tau", state["tau"], 1.0)


class MultiExitDistiller:
    r"""The loss :math:`\ell_{\rm cls} + \ell_{\rm dist}` of a network with exits, and its temperature.

    Args:
        model: A model with ``n_exits``, or the number of exits.
        teachers: ``"last"``, ``"later"``, ``"next"``, ``"ensemble"``, ``"none"`` (the exit-wise loss),
            or a list of exits for each exit.
        mu: Confidence at which the temperature is kept.
        tau_star: Factor by which it rises.
        temperature: A constant one, in place of the rising one.
        weight: Weight of the distillation loss; 1 in the source.
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

    Phuong 2021, Algorithm 6.1: training with partial detaching (a stop gradient); exit-wise training.
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
            refuse("model", "a network with n_exits, or the number of exits", model)
        constant = optional(positive, "temperature", temperature)
        self.n_exits, self.teachers = int(n_exits), teachers
        self.weight = positive("weight", weight, zero=True)
        self.per = choice("per", per, ("exit", "student"))
        self.teacher_sets = teacher_sets(teachers, self.n_exits)
        self.annealer = TemperatureAnnealer(mu, tau_star) if constant is None else None
        self._constant = 1.0 if constant is None else constant

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
            logits: Logits of all exits, cheap to expensive.
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
            raise ParameterError(f"logits must be those of {self.n_exits} exits; got {len(logits)}.")

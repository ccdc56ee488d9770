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

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, log_softmax, softmax

from pindown.validation import is_integer

TeacherSets: TypeAlias = tuple[tuple[int, ...], ...]
STRATEGIES = ("last", "later", "next", "ensemble", "none")


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
        logits: Of all exits, cheap to expensive.
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
    if per not in ("exit", "student"):
        raise ValueError(f"per must be 'exit' or 'student', got {per!r}.")
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

"""Losses and temperature: formulas by hand, gradients, teachers, and what the source misprints."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, softmax

from pindown.learn.multi_exit import MultiExitDistiller, TemperatureAnnealer
from pindown.learn.multi_exit.self_distillation import (
    distillation_loss,
    exit_wise_loss,
    teacher_probabilities,
    teacher_sets,
    tempered_cross_entropy,
)


def logits_of(n_exits=4, n=6, classes=5, seed=0, scale=2.0):
    source = torch.Generator().manual_seed(seed)
    return [
        (scale * torch.randn(n, classes, generator=source, dtype=torch.float64)).requires_grad_()
        for _ in range(n_exits)
    ]


def by_hand(logits, sets, tau, divisor=None):
    """The formula, sample by sample in NumPy, from probabilities and not from logits."""
    P = [softmax(z.detach(), dim=1).numpy() for z in logits]

    def tempered(p):
        powers = p ** (1 / tau)
        return powers / powers.sum()

    total = 0.0
    for m, own in enumerate(sets):
        for t in own:
            for i in range(len(P[0])):
                teacher, student = tempered(P[t - 1][i]), tempered(P[m][i])
                total -= tau**2 * (teacher * np.log(student)).sum() / len(own) / len(P[0])
    return total / (divisor or len(logits))


@pytest.mark.parametrize("strategy", ["last", "later", "next", [[2, 3], [1], [4], []]])
@pytest.mark.parametrize("tau", [1.0, 2.5])
def test_distillation_is_the_formula(strategy, tau):
    logits = logits_of()
    found = distillation_loss(logits, strategy, tau).item()
    assert found == pytest.approx(by_hand(logits, teacher_sets(strategy, 4), tau), rel=1e-12)
    students = sum(bool(own) for own in teacher_sets(strategy, 4))
    other = distillation_loss(logits, strategy, tau, per="student").item()
    assert other == pytest.approx(found * 4 / students, rel=1e-12)


def test_teachers_of_every_strategy():
    later = ((2, 3, 4), (3, 4), (4,), ())
    assert teacher_sets("last", 4) == ((4,), (4,), (4,), ())
    assert teacher_sets("later", 4) == teacher_sets("ensemble", 4) == later
    assert teacher_sets("next", 4) == ((2,), (3,), (4,), ())
    assert teacher_sets("none", 4) == ((),) * 4
    assert teacher_sets([[2], [], [1, 2]], 3) == ((2,), (), (1, 2))


def test_exit_wise_loss_is_the_mean_over_exits():
    logits, y = logits_of(), torch.tensor([0, 1, 2, 3, 4, 0])
    mean = sum(cross_entropy(z, y).item() for z in logits) / 4
    assert exit_wise_loss(logits, y).item() == pytest.approx(mean, rel=1e-12)


def test_it_is_the_divergence_up_to_the_teachers_entropy():
    student, teacher = logits_of(2)
    tau = 3.0
    t = softmax(teacher.detach() / tau, dim=1)
    s = softmax(student.detach() / tau, dim=1)
    divergence = (t * (t / s).log()).sum(1).mean() * tau**2
    entropy = -(t * t.log()).sum(1).mean() * tau**2
    found = tempered_cross_entropy(t, student.detach(), tau)
    assert found.item() == pytest.approx((divergence + entropy).item(), rel=1e-12)


@pytest.mark.parametrize("tau", [1.0, 4.0, 1000.0])
def test_gradients_are_temperature_times_difference_and_stay_when_it_is_hot(tau):
    student, teacher = logits_of(2, n=1)
    (tempered_cross_entropy(softmax(teacher.detach() / tau, dim=1), student, tau)).backward()
    s, t = softmax(student.detach() / tau, dim=1), softmax(teacher.detach() / tau, dim=1)
    assert torch.allclose(student.grad, tau * (s - t), atol=1e-12)
    if tau == 1000.0:  # the difference of centred logits over the number of classes
        difference = (student - teacher).detach()
        limit = (difference - difference.mean(dim=1, keepdim=True)) / 5
        assert torch.allclose(student.grad, limit, atol=1e-2)


@pytest.mark.parametrize("strategy", ["last", "later", "next", "ensemble"])
def test_no_gradient_reaches_teachers_and_equal_students_rest(strategy):
    logits = logits_of()
    distillation_loss(logits, strategy, 2.0).backward()
    assert logits[-1].grad is None and all(z.grad.abs().max() > 0 for z in logits[:-1])
    same = [logits[0].detach().clone().requires_grad_() for _ in range(4)]
    distillation_loss(same, strategy, 2.0).backward()
    assert all(z.grad.abs().max() < 1e-14 for z in same[:-1])
    labels = torch.zeros(6, dtype=torch.int64)
    MultiExitDistiller(4, strategy).loss(logits, labels).backward()
    assert logits[-1].grad.abs().max() > 0  # teachers learn from labels


def test_later_teachers_average_and_the_ensemble_is_tempered_after_averaging():
    logits = [z.detach() for z in logits_of(3)]
    for tau in (1.0, 3.0):
        mean = torch.stack([softmax(z / tau, dim=1) for z in logits]).mean(0)
        assert torch.allclose(teacher_probabilities(logits, tau, "later"), mean)
    assert torch.allclose(
        teacher_probabilities(logits, 1.0, "ensemble"), teacher_probabilities(logits, 1.0, "later")
    )
    powers = torch.stack([softmax(z, dim=1) for z in logits]).mean(0) ** (1 / 3)
    expected = powers / powers.sum(1, keepdim=True)
    assert torch.allclose(teacher_probabilities(logits, 3.0, "ensemble"), expected)
    assert not torch.allclose(expected, teacher_probabilities(logits, 3.0, "later"), atol=1e-3)


def test_without_teachers_it_is_the_exit_wise_loss():
    logits, y = logits_of(), torch.tensor([0, 1, 2, 3, 4, 0])
    distiller = MultiExitDistiller(4, "none")
    assert distiller.loss(logits, y).item() == exit_wise_loss(logits, y).item()
    assert distiller.update(logits) == 1.0 and distiller.loss(logits).item() == 0.0


def test_unlabelled_samples_count_in_the_distillation_loss_only():
    logits = logits_of()
    y = torch.tensor([0, -1, 2, -1, -1, 0])
    known = [0, 2, 5]
    distiller = MultiExitDistiller(4)
    expected = exit_wise_loss([z[known] for z in logits], y[known]) + distillation_loss(logits)
    assert distiller.loss(logits, y).item() == pytest.approx(expected.item(), rel=1e-12)
    nothing = distiller.loss(logits, torch.full((6,), -1))
    assert nothing.item() == distillation_loss(logits).item()
    both = distiller.semi_supervised_loss([z[known] for z in logits], y[known], logits)
    assert both.item() == pytest.approx(expected.item(), rel=1e-12)


# ---------------------------------------------------------------------- temperature


def test_temperature_rises_until_confidence_is_kept_and_then_stays():
    annealer, sure = TemperatureAnnealer(0.5, 1.05), torch.tensor([[8.0, 0.0, 0.0, 1.0]])
    found = [annealer.update([sure]) for _ in range(200)]
    assert found == sorted(found) and found[-1] == found[-2]
    steps = sum(b > a for a, b in zip([1.0, *found], found, strict=False))
    assert steps == math.ceil(math.log(found[-1]) / math.log(1.05) - 1e-9)
    final = softmax(sure / found[-1], dim=1).max().item()
    before = softmax(sure / (found[-1] / 1.05), dim=1).max().item()
    assert final <= 0.5 < before and annealer.confidence == pytest.approx(final)


def test_temperature_survives_a_checkpoint():
    annealer, sure = TemperatureAnnealer(0.4, 1.5), torch.tensor([[8.0, 0.0, 0.0]])
    annealer.update([sure])
    other = TemperatureAnnealer()
    other.load_state_dict(annealer.state_dict())
    assert other.update([sure]) == annealer.update([sure]) == 1.5**2
    distiller = MultiExitDistiller(2, mu=0.4, tau_star=1.5)
    distiller.load_state_dict(annealer.state_dict())
    assert distiller.temperature == 1.5**2
    with pytest.raises(ValueError, match="tau must be a finite number of at least 1"):
        other.load_state_dict({"mu": 0.5, "tau_star": 2.0, "tau": 0.5})


def test_confidence_no_teacher_can_have_is_warned_about():
    annealer = TemperatureAnnealer(mu=0.5)
    with pytest.warns(UserWarning, match="at most one over the number of classes, 2"):
        annealer.update([torch.zeros(3, 2)])


def test_constant_temperature_stays():
    distiller = MultiExitDistiller(2, temperature=3.0)
    logits = [10 * z for z in logits_of(2)]
    assert distiller.update(logits) == 3.0 and distiller.state_dict() == {}
    assert distiller.loss(logits).item() == distillation_loss(logits, "last", 3.0).item()


# ---------------------------------------------------------------------- what the source misprints


def test_printed_algorithm_tempers_teachers_twice_and_moves_students_that_agree():
    tau = 2.0
    student = torch.tensor([[2.0, 0.0, -1.0]], dtype=torch.float64, requires_grad=True)
    once = softmax(student.detach() / tau, dim=1)
    twice = softmax(once.log() / tau, dim=1)  # the loss tempers what the algorithm has tempered already
    tempered_cross_entropy(twice, student, tau).backward()
    assert student.grad.abs().max() > 0.1
    student.grad = None
    tempered_cross_entropy(once, student, tau).backward()
    assert student.grad.abs().max() < 1e-15


def test_printed_sum_divides_by_the_last_exits_number_of_teachers_which_is_zero():
    sets = teacher_sets("last", 3)
    with pytest.raises(ZeroDivisionError):
        _ = [1 / len(own) for own in sets]
    assert math.isfinite(distillation_loss(logits_of(3)).item())


def test_printed_confidence_is_the_maximum_of_a_mean_and_misses_sure_teachers():
    sure = torch.tensor([[20.0, 0.0], [0.0, 20.0]])  # sure of class 0, then of class 1
    printed = softmax(sure, dim=1).mean(dim=0).max().item()
    assert printed == pytest.approx(0.5)
    annealer = TemperatureAnnealer(mu=0.75, tau_star=2.0)
    assert printed < annealer.mu  # as printed the temperature would never rise
    assert annealer.update([sure]) == 2.0 and annealer.confidence == pytest.approx(1.0)


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("first", "must be one of last, later"),
        ([[2], []], "a list for each of 3 exits; got 2"),
        ([[1], [3], []], "teachers of exit 1 must be other exits"),
        ([[4], [3], []], "teachers of exit 1 must be other exits"),
        ([[2, 2], [3], []], "teachers of exit 1 must be other exits"),
        (5, "must be a list of exits for each exit"),
    ],
)
def test_bad_teachers_are_refused(strategy, words):
    with pytest.raises(ValueError, match=words):
        teacher_sets(strategy, 3)


def test_bad_settings_are_refused():
    for mu in (0.0, 1.0, float("nan"), "a"):
        with pytest.raises(ValueError, match="mu must be a number above 0 and below 1"):
            TemperatureAnnealer(mu=mu)
    with pytest.raises(ValueError, match="tau_star must be a finite number above 1"):
        TemperatureAnnealer(tau_star=1.0)
    with pytest.raises(ValueError, match="temperature must be a finite number above 0, or None"):
        MultiExitDistiller(3, temperature=0.0)
    with pytest.raises(TypeError, match="model must be a network with n_exits"):
        MultiExitDistiller(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="logits must be those of 3 exits; got 2"):
        MultiExitDistiller(3).loss(logits_of(2))
    with pytest.raises(ValueError, match="per must be"):
        distillation_loss(logits_of(2), per="batch")
    with pytest.raises(ValueError, match="weight must be a finite number of at least 0"):
        MultiExitDistiller(3, weight=-1.0)

"""Tasks: angles and signs follow their law, and the integral of the risk agrees with counting."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc
from scipy.stats import kstest, norm

from pindown.guarantees.bounds.linear_distillation import unsigned_angle
from pindown.learn.distillation import (
    LinearDistillationTask,
    axial_task,
    boundary_task,
    gaussian_task,
    margin_task,
    power_angle_task,
)
from pindown.learn.distillation.tasks import student_angle

LEAST = 1e-4  # p-values of seeded samples; a wrong law gives 1e-50


@pytest.mark.parametrize("kappa", [0.5, 1.0, 3.0])
def test_power_task_has_the_angles_it_says(kappa):
    w = np.arange(1.0, 9.0)
    X = power_angle_task(kappa, 8, teacher=w).draw(5000, 0)
    angles = unsigned_angle(X, w)
    assert kstest(angles, lambda t: 1 - (1 - 2 * t / np.pi) ** kappa).pvalue > LEAST
    assert kstest(angles, lambda t: 1 - (1 - 2 * t / np.pi) ** (1.3 * kappa)).pvalue < 1e-6
    assert abs(np.mean(X @ w > 0) - 0.5) < 5 * 0.5 / np.sqrt(5000)
    assert kstest(np.linalg.norm(X, axis=1), lambda r: 2 * norm.cdf(r) - 1).pvalue > LEAST
    # Around the teacher no direction is preferred: a coordinate of v follows the law of a sphere.
    axis = w / np.linalg.norm(w)
    v = X - np.outer(X @ axis, axis)
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    other = np.linalg.svd(axis[None])[2][3]
    assert kstest((v @ other) ** 2, lambda s: betainc(0.5, 3.0, s)).pvalue > LEAST


@pytest.mark.parametrize(
    "task",
    [power_angle_task(2.0, 6), margin_task(0.9, 6), boundary_task(4.0, 6), gaussian_task(6)],
    ids=str,
)
def test_profiles_and_samples_agree(task):
    angles = unsigned_angle(task.draw(4000, 1), task.teacher)
    assert kstest(angles, lambda t: 1 - task.profile(t)).pvalue > LEAST
    shares = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(task.profile(task.angle_at(shares)), shares, atol=1e-9)


def test_margin_and_boundary_are_on_their_sides():
    assert unsigned_angle(margin_task(0.5, 4).draw(500, 0), np.eye(4)[0]).max() <= 0.5 + 1e-12
    near = unsigned_angle(boundary_task(9.0, 4).draw(500, 0), np.eye(4)[0])
    assert (
        np.median(near)
        > 1.4
        > np.median(unsigned_angle(power_angle_task(1, 4).draw(500, 0), np.eye(4)[0]))
    )


@pytest.mark.parametrize("d", [2, 3, 5, 40])
def test_risk_of_gaussian_inputs_is_the_angle_over_pi(d):
    rng = np.random.default_rng([d, 1])
    for _ in range(5):
        w, teacher = rng.standard_normal((2, d))
        cos = w @ teacher / np.linalg.norm(w) / np.linalg.norm(teacher)
        risk = gaussian_task(d, teacher=teacher).transfer_risk(w)
        assert risk.value == pytest.approx(np.arccos(cos) / np.pi, abs=1e-9)
        assert risk.kind == "exact"


@pytest.mark.parametrize("make", [lambda d: power_angle_task(0.5, d), lambda d: boundary_task(3.0, d)])
@pytest.mark.parametrize("d", [3, 20])
def test_integral_agrees_with_counting_and_with_adaptive_quadrature(make, d):
    task = make(d)
    w = 0.4 * task.teacher + np.random.default_rng(d).standard_normal(d) / np.sqrt(d)
    exact, counted = task.transfer_risk(w), task.transfer_risk(w, n_test=40_000, random_state=0)
    assert counted.kind == "estimate" and "40,000" in str(counted)
    assert abs(exact.value - counted.value) < 5 * counted.standard_error
    along, across = w[0], np.linalg.norm(w[1:])

    def mistake(share):
        bar = along / (across * np.tan(task.angle_at(share)))
        return 0.5 * betainc((d - 2) / 2, 0.5, 1 - bar**2) if bar < 1 else 0.0

    assert exact.value == pytest.approx(quad(mistake, 0, 1, limit=400)[0], abs=1e-6)


def test_signs_lengths_and_extremes():
    task = power_angle_task(1.0, 5)
    w = np.array([1.0, 0.5, -0.3, 0.0, 0.2])
    value = task.transfer_risk(w).value
    assert task.transfer_risk(7 * w).value == pytest.approx(value)
    assert task.transfer_risk(-w).value == pytest.approx(1 - value)
    assert task.transfer_risk(task.teacher).value == 0.0
    assert task.transfer_risk(-task.teacher).value == 1.0
    assert task.transfer_risk(np.zeros(5)).value == 0.5
    assert task.transfer_risk([0, 1.0, 0, 0, 0]).value == pytest.approx(0.5)
    assert student_angle(task, w) == pytest.approx(np.arctan2(np.linalg.norm(w[1:]), 1))
    assert margin_task(0.5, 5).transfer_risk([1.0, 0.1, 0, 0, 0]).value == 0.0


def test_loss_labels_and_a_task_of_ones_own():
    task = LinearDistillationTask([1.0, -1.0], lambda n, rng: rng.exponential(size=(n, 2)))
    X = task.draw(7, 0)
    assert task.dimension == 2 and task.loss(task.teacher, X) == 0.0
    assert not task.gradient(task.teacher, X).any()
    np.testing.assert_allclose(task.soft_labels(X), 1 / (1 + np.exp(X[:, 1] - X[:, 0])))
    risk = task.transfer_risk([1.0, 0.0], random_state=0)
    assert risk.kind == "estimate" and abs(risk.value - 0.5) < 5 * risk.standard_error


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: power_angle_task(0.0, 5), "exponent"),
        (lambda: power_angle_task(1.0, 1), "at least 2"),
        (lambda: margin_task(1.6, 5), "below pi / 2"),
        (lambda: axial_task(lambda s: s, 3, teacher=[1.0]), "teacher"),
        (lambda: LinearDistillationTask([0.0], lambda n, rng: np.ones((n, 1))), "not zero"),
        (lambda: power_angle_task(1.0, 3).transfer_risk([1.0]), "shape"),
        (lambda: power_angle_task(1.0, 3).draw(0), "n must be"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""The transfer-risk bound as a certificate: above the risk at every size, from unlabelled inputs."""

import numpy as np
import pytest

from pindown.guarantees.bounds import AngularProfile, large_margin_bound, transfer_risk_bound
from pindown.learn.distillation import (
    boundary_task,
    deep_limit,
    deep_start,
    error_bound,
    gaussian_task,
    margin_task,
    minimum_norm,
    power_angle_task,
    risk_curve,
    start_norm_for,
    transfer_certificate,
)

D = 12
TASKS = {
    "power 0.5": power_angle_task(0.5, D),
    "power 1": power_angle_task(1.0, D),
    "power 3": power_angle_task(3.0, D),
    "margin": margin_task(1.0, D),
    "boundary": boundary_task(3.0, D),
    "gaussian": gaussian_task(D),
}


def mean_risk(task, n, repetitions, student=None):
    rng = np.random.default_rng([n, 7])
    student = student or (lambda X, z: minimum_norm(X, z).weights)
    risks = []
    for _ in range(repetitions):
        X = task.draw(n, rng)
        risks.append(task.transfer_risk(student(X, task.logits(X))).value)
    return np.mean(risks), np.std(risks) / np.sqrt(repetitions)


@pytest.mark.parametrize("name", TASKS)
def test_the_bound_is_above_the_risk_at_every_size(name):
    task = TASKS[name]
    curve = risk_curve(task.profile, range(1, D + 2), dimension=D)
    for n, bound in zip(curve.sizes, curve.bounds, strict=True):
        risk, error = mean_risk(task, n, 40)
        if n < D:
            assert risk - 5 * error <= bound.value
        else:
            # Rounding of the student's angle, 1e-15, is a share of 1e-7 where p is a square root.
            assert bound.value == 0.0 and risk < 1e-6
    assert (np.diff(curve.values) <= 1e-12).all()
    assert np.isnan(curve.angles[-1]) and (curve.angles[: D - 1] <= np.pi / 2).all()


def test_the_bound_is_above_the_risk_of_deep_students():
    """Starts are chosen for each sample so that the relative error is at most r."""
    task, r, n = power_angle_task(1.0, D), 0.2, 5

    def deep(X, z):
        length = np.linalg.norm(minimum_norm(X, z).weights)
        norm = start_norm_for(r * length, length, 2)
        limit = deep_limit(X, z, deep_start(X, z, norm, 3), 2)
        assert limit.relative_error <= r * (1 + 1e-9) and error_bound(norm, length, 2) > 0
        return limit.weights

    risk, error = mean_risk(task, n, 60, deep)
    exact = mean_risk(task, n, 60)[0]
    bound = transfer_risk_bound(task.profile, n, dimension=D, relative_error=r)
    assert exact < risk and risk - 5 * error <= bound.value < 1


def test_the_margin_corollary_is_above_the_risk():
    task = margin_task(1.0, D)
    for n in range(1, D):
        rate = float(task.profile(np.pi / 2 - 1.0))
        risk, error = mean_risk(task, n, 40)
        assert risk - 5 * error <= large_margin_bound(rate, n).value


def test_the_certificate_of_a_sample_is_above_the_true_bound_as_often_as_it_says():
    task, fails = power_angle_task(1.0, 30), 0
    true = transfer_risk_bound(task.profile, 10, dimension=30).value
    for seed in range(100):
        found = transfer_certificate(task.draw(150, seed), task.teacher, 10, delta=0.2)
        fails += found.value < true
        assert found.estimate.value <= found.value
    assert fails <= 20 + 5 * np.sqrt(100 * 0.2 * 0.8)


def test_parts_of_a_certificate():
    task = margin_task(0.7, 40)
    found = transfer_certificate(task.draw(20_000, 0), task.teacher, 8)
    # Every input is within 0.7, and pi/2 - 0.7 > 0.7: one good input is enough.
    assert found.margin.value < 1e-9 and found.estimate.value < 1e-9 and found.value < 0.03
    assert found.bound.kind == "probability" and found.estimate.kind == "estimate"
    assert "20,000 unlabelled inputs" in str(found) and found.power is not None
    full = transfer_certificate(task.draw(100, 0), task.teacher, 40)
    assert full.value == 0.0 and full.margin is None and full.power is None
    near = transfer_certificate(boundary_task(5.0, 40).draw(500, 0), task.teacher, 8)
    assert near.bound.vacuous and near.value == 1.0
    worse = transfer_certificate(task.draw(20_000, 0), task.teacher, 8, relative_error=0.3)
    assert worse.value >= found.value and worse.margin is None


def test_a_certificate_is_the_bound_of_the_band_around_the_sample():
    task = power_angle_task(1.0, 30)
    X = task.draw(4000, 3)
    band = AngularProfile.from_samples(X, task.teacher, delta=0.1)
    values = []
    for off in (0.0, 0.3):
        found = transfer_certificate(X, task.teacher, 10, delta=0.1, relative_error=off)
        bound = transfer_risk_bound(band, 10, dimension=30, relative_error=off)
        assert found.value == bound.value < 1
        assert found.margin is None  # inputs of every angle: no margin
        assert (found.power is None) is (off > 0)
        values.append(found.value)
    assert values[0] < values[1]


def test_scale_of_inputs_and_teacher_does_not_matter():
    X = power_angle_task(2.0, 6).draw(300, 0)
    a = transfer_certificate(X, np.eye(6)[0], 3).value
    assert transfer_certificate(-5 * X, 9 * np.eye(6)[0], 3).value == pytest.approx(a)


def test_curve():
    curve = risk_curve(AngularProfile.power(1.0), [5, 20, 400], dimension=1000)
    assert curve.size_for(0.2) == 20 and curve.size_for(1e-9) is None
    assert "20: 0.182" in str(curve)
    with pytest.raises(ValueError, match="empty"):
        risk_curve(AngularProfile.power(1.0), [])
    with pytest.raises(ValueError, match="size"):
        risk_curve(AngularProfile.power(1.0), [0])
    with pytest.raises(ValueError, match="delta"):
        transfer_certificate(np.ones((3, 2)), [1.0, 0.0], 2, delta=0.9)

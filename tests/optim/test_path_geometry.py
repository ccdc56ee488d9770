"""Growth and turn of the weights, on paths that were made by hand."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from pindown.optim import TrainingPathGeometry, angle, angle_density, dispersion


def test_a_scripted_rotation_gives_its_angles_and_dilations():
    net = torch.nn.Linear(2, 1, bias=True).double()
    net.weight.data = torch.tensor([[3.0, 0.0]], dtype=torch.float64)
    path = TrainingPathGeometry(net)
    turns, growths = np.linspace(0, math.pi, 9), np.linspace(1, 2.5, 9)
    for turn, growth in zip(turns, growths, strict=True):
        row = [[3 * growth * math.cos(turn), 3 * growth * math.sin(turn)]]
        net.weight.data = torch.tensor(row, dtype=torch.float64)
        net.bias.data += 100  # biases do not count
        path.update()
    report = path.report()
    assert report.initial_norm == pytest.approx(3)
    assert np.allclose(report.angles, turns, atol=1e-12)
    assert np.allclose(report.dilations, growths, rtol=1e-12)
    assert report.dilation == pytest.approx(2.5) and report.angle == pytest.approx(math.pi)


def test_the_norm_is_that_of_all_weights_stacked_not_a_sum_of_norms():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))
    stacked = np.concatenate([net[i].weight.detach().numpy().ravel() for i in (0, 2)])
    found = TrainingPathGeometry(net).report().initial_norm
    assert found == pytest.approx(np.linalg.norm(stacked))
    assert found < sum(float(torch.linalg.norm(net[i].weight.detach())) for i in (0, 2))


def test_a_report_before_any_step_says_nothing_moved():
    report = TrainingPathGeometry(torch.nn.Linear(2, 1)).report()
    assert report.dilation == 1 and report.angle == 0 and str(report).startswith("0 steps")


def test_the_angle_does_not_depend_on_lengths():
    rng = np.random.default_rng(0)
    for _ in range(50):
        u, v = rng.normal(size=(2, 7))
        cosine = u @ v / (np.linalg.norm(u) * np.linalg.norm(v))
        assert angle(u, v) == pytest.approx(math.acos(cosine), abs=1e-9)
        assert angle(1e150 * u, 1e-150 * v) == pytest.approx(angle(u, v), rel=1e-12)
        assert angle(u, -u) == pytest.approx(math.pi) and angle(u, u) == 0


def test_dispersion_against_all_angles():
    rng = np.random.default_rng(1)
    starts, ends = rng.normal(size=(2, 6, 10))
    found = dispersion(starts, ends)
    assert found.initial == max(angle(starts[0], s) for s in starts[1:])
    assert found.growth == pytest.approx(max(angle(ends[0], e) for e in ends[1:]) / found.initial)


def test_density_has_scotts_bandwidth():
    values = np.array([0.1, 0.25, 0.3, 0.42])
    width = len(values) ** (-1 / 5) * values.std(ddof=1)
    expected = norm.pdf(0.2, values, width).mean()
    assert angle_density(values)(0.2)[0] == pytest.approx(expected)


def test_bad_input_is_refused_in_words():
    with pytest.raises(TypeError, match="torch module"):
        TrainingPathGeometry("net")
    with pytest.raises(ValueError, match="nothing to follow"):
        TrainingPathGeometry(torch.nn.BatchNorm1d(3))
    zero = torch.nn.Linear(2, 2)
    torch.nn.init.zeros_(zero.weight)
    with pytest.raises(ValueError, match="not all zero"):
        TrainingPathGeometry(zero)
    with pytest.raises(ValueError, match="same length"):
        angle([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="not zero"):
        angle([0.0], [1.0])
    with pytest.raises(ValueError, match="two or more"):
        dispersion([[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="two or more different"):
        angle_density([0.1, 0.1])


def test_weights_that_vanish_are_refused_and_the_record_stays_whole():
    layer = torch.nn.Linear(2, 1, bias=False)
    path = TrainingPathGeometry(layer)
    path.update()
    for value in (0.0, float("nan")):
        with torch.no_grad():
            layer.weight.fill_(value)
        with pytest.raises(ValueError, match="norm is now"):
            path.update()
    report = path.report()
    assert len(report.dilations) == len(report.angles) == 1

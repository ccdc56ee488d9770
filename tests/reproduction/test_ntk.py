"""The tangent kernel beside networks: small runs of both experiments, and their rules."""

from dataclasses import replace

import pytest
import torch

from pindown_reproduction import reproduce
from pindown_reproduction.course import ntk_spectral_bias, ntk_versus_network

torch.set_num_threads(1)


def small(module, settings, folder):
    tiny = replace(module.EXPERIMENT, settings={"quick": settings, "paper": settings})
    return reproduce(tiny, out=folder)


def test_a_network_beats_its_kernels(tmp_path):
    run = small(ntk_versus_network, {"widths": [60], "seeds": 3, "steps": 1200}, tmp_path)
    assert run.outcome.verdict == "reproduced" and (run.folder / "figure.svg").exists()
    for row in run.outcome.rows:
        network, start, after, infinite = map(float, row[2:6])
        # The kernel has learned the features: after training it is nearly as good as the network.
        assert network < infinite < start and after < 0.6 * start


def test_low_frequencies_come_first(tmp_path):
    run = small(ntk_spectral_bias, {"width": 1024, "seeds": 3}, tmp_path)
    assert run.outcome.verdict == "reproduced" and (run.folder / "figure.svg").exists()
    rows = {row[0]: row for row in run.outcome.rows}
    assert rows["without biases, seed 0, frequency 3"][2:4] == ("never", "never")
    assert rows["without biases, seed 0, frequency 3"][-1] == "100 % left"
    measured = [int(rows[f"with biases, seed 0, frequency {k}"][-1]) for k in range(7)]
    assert measured == sorted(measured)


@pytest.mark.parametrize(("error", "verdict"), [(0.1, "reproduced"), (0.3, "not reproduced")])
def test_the_rule_of_the_comparison(error, verdict):
    names = ("kernel at the start", "kernel after training", "infinite width")
    found = {"network": error, **dict.fromkeys(names, 0.2), "target before": 0.1, "target after": 0.2}
    cell = {"width": 10, "seed": 0, "steps": 1}
    assert ntk_versus_network.compare([(cell, found)]).verdict == verdict


def test_the_rule_of_the_half_times():
    good = {
        "eigenvalues": [1.0, 0.1],
        "limit": [1.0, 10.0],
        "predicted": [1, 10],
        "measured": [2, 12],
        "left": [0.0, 0.1],
    }
    cell = {"bias": True, "width": 8, "seed": 0}
    assert ntk_spectral_bias.compare([(cell, good)]).verdict == "reproduced"
    for wrong in ({"measured": [2, 14]}, {"measured": [2, None]}, {"predicted": [1, None]}):
        assert ntk_spectral_bias.compare([(cell, {**good, **wrong})]).verdict == "not reproduced"

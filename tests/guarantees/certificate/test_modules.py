"""Modules that would make a certificate false: weights that stay, rows that meet, lost noise."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune

from pindown.guarantees import certify as certify_by
from pindown.guarantees.certificate import run as run_module
from pindown.guarantees.certificate.modules import (
    check_outputs,
    only_linear,
    read_examples,
    read_module,
    start_again,
)

certify = partial(certify_by, method="pac-bayes")
TINY = {"epochs": 1, "steps": 3, "draws": 300}


def data(n=60):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, (X[:, 0] > X[:, 1]).astype(int)


def pruned():
    module = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    prune.l1_unstructured(module[0], "weight", 0.5)
    with torch.no_grad():
        module(torch.zeros(1, 3))  # else its weights hang on a graph and cannot be copied
    return module


class HalfReset(nn.Linear):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        nn.init.ones_(self.weight)  # else it is whatever the memory held, at times not a number

    def reset_parameters(self):
        if self.bias is not None:
            nn.init.zeros_(self.bias)


def test_weights_that_reset_parameters_leaves_alone_are_refused():
    with pytest.raises(ValueError, match=r"does not draw all of '0\.weight_orig'"):
        start_again(read_module(pruned()))
    with pytest.raises(ValueError, match="does not draw all of 'weight'"):
        certify(HalfReset(3, 2), *data(), **TINY)


def test_weights_made_from_other_parameters_get_their_noise():
    # Noise at outputs would look for a parameter called weight, find none, and add nothing.
    X, y = data()
    assert not only_linear(read_module(pruned()), read_examples(X, y))
    found = certify(pruned(), X, y, prior="given", noise=5.0, steps=0, draws=300)
    generator = torch.Generator().manual_seed(0)
    one, two = (found.posterior.scores(torch.ones(1, 3), generator) for _ in range(2))
    assert not torch.equal(one, two)


def test_noise_does_not_go_behind_a_hook():
    module = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    examples = read_examples(*data())
    assert only_linear(module, examples)
    module[0].register_forward_hook(lambda layer, inputs, output: torch.relu(output))
    assert not only_linear(module, examples)


def test_running_statistics_without_parameters_start_again_and_other_buffers_are_named():
    module = nn.Sequential(nn.BatchNorm1d(3, affine=False), nn.Linear(3, 2))
    module[0].running_mean.fill_(7.0)
    start_again(module)
    assert not module[0].running_mean.any()
    X, y = data()
    assert "buffers" not in str(certify(module, X, y, **TINY))
    scaled = nn.Sequential(nn.Linear(3, 2))
    scaled.register_buffer("mean", torch.zeros(3))
    assert "buffers never saw these examples (assumed)" in str(certify(scaled, X, y, **TINY))


class Centred(nn.Linear):
    def forward(self, x):
        return super().forward(x - x.mean(0))


class Counting(nn.Linear):
    def __init__(self):
        super().__init__(3, 2)
        self.register_buffer("met", torch.zeros(()))

    def forward(self, x):
        self.met += len(x)
        return super().forward(x)


class Squeezed(nn.Linear):
    def forward(self, x):
        return super().forward(x).squeeze()


class Shaken(nn.Linear):
    def forward(self, x):
        return super().forward(nn.functional.dropout(x, 0.3, training=True))


def test_outputs_that_depend_on_other_rows_are_refused():
    examples = read_examples(*data())
    for module in (Centred(3, 2), Counting()):
        with pytest.raises(ValueError, match="depend on the other examples"):
            check_outputs(module, examples)
    for outputs in (1, 2):
        with pytest.raises(ValueError, match="one row of scores for one example"):
            check_outputs(Squeezed(3, outputs), examples)
    assert check_outputs(Shaken(3, 2), examples) == 2


def test_noise_of_the_module_itself_leaves_the_global_state():
    module, state = Shaken(3, 2), torch.get_rng_state()
    certify(module, *data(), **TINY)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("kind", ["linear", "convolution"])
def test_the_default_type_does_not_matter(kind):
    def make():
        if kind == "linear":
            return nn.Linear(3, 2)
        return nn.Sequential(nn.Unflatten(1, (1, 3)), nn.Conv1d(1, 2, 3), nn.Flatten())

    expected = certify(make(), *data(), **TINY).value
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        found = certify(make(), *data(), **TINY)
    finally:
        torch.set_default_dtype(before)
    assert found.value == expected
    assert found.posterior.local == (kind == "linear")


def test_noise_beyond_float32_is_vacuous():
    found = certify(nn.Linear(3, 2), *data(), noise=1e60, **TINY)
    assert found.vacuous and found.terms["kl"] == np.inf


def test_an_interrupt_while_noise_is_chosen_leaves_a_certificate(monkeypatch):
    real, calls = run_module.around, []

    def stop_once(*args):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(run_module, "around", stop_once)
    with pytest.warns(UserWarning, match="little noise"):
        found = certify(nn.Linear(3, 2), *data(), **TINY)
    assert found.interrupted and found.value <= 1.0 and found.terms["prior noise"] < 0.1


@pytest.mark.parametrize("label", [np.inf, 1e300, -np.inf])
def test_labels_beyond_all_classes(label):
    X, y = data()
    with pytest.raises(ValueError, match="integers"):
        certify(nn.Linear(3, 2), X, np.where(y, label, 0.0))


class Idle(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.idle = nn.Linear(3, 2), nn.Linear(7, 3)

    def forward(self, x):
        return self.used(x)


def test_parameters_without_effect_stay_at_the_prior():
    found = certify(Idle(), *data(), **TINY)
    posterior = found.posterior
    prior = dict(posterior.module.named_parameters())
    assert torch.equal(posterior.means["idle.weight"], prior["idle.weight"]) and found.value <= 1.0


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_works_where_gradients_are_off(mode):
    module = nn.Linear(3, 2)
    expected = certify(module, *data(), **TINY).value
    with mode():
        assert certify(module, *data(), **TINY).value == expected
        assert not torch.is_grad_enabled()


def test_short_floats_are_read():
    X, y = data()
    short = torch.tensor(X).bfloat16()
    assert torch.equal(read_examples(short, y).inputs, short.float())

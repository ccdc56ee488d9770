"""Steps of training beside the same steps written out: evidence, push, and the guess that is trained."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from pindown.learn.mutual_autoencoder._networks import (
    GaussianDecoder,
    GaussianEncoder,
    MixtureGuess,
    Numbers,
)
from pindown.learn.mutual_autoencoder._objective import evidence_bound, information_surrogate
from pindown.learn.mutual_autoencoder.training import Dial, Networks, Recipe, Trace, _Loop


def small_parts():
    random = torch.Generator().manual_seed(0)
    return Networks(
        GaussianEncoder(Numbers(1), 1, (5,), random),
        GaussianDecoder(1, 1, (5,), random),
        MixtureGuess(Numbers(1), 1, (5,), 2, random),
    )


@pytest.mark.parametrize("warm_start", [0.0, 0.3])
def test_steps_by_hand(warm_start):
    parts, steps = small_parts(), 10
    other = copy.deepcopy(parts)
    rows = torch.randn(40, 1, generator=torch.Generator().manual_seed(1)) * 2 + 1
    recipe = Recipe(
        0.8, penalty=3.0, control="clip", width=0.5, steps=steps, batch_size=12, learning_rate=0.02,
        guess_steps=2, draws=3, warm_start=warm_start,
    )  # fmt: skip
    trace = Trace()
    loop = _Loop(parts, rows, recipe, torch.Generator().manual_seed(7), trace)

    random = torch.Generator().manual_seed(7)
    model = [*other.encoder.parameters(), *other.decoder.parameters()]
    for_model, for_guess = (torch.optim.Adam(p, lr=0.02) for p in (model, other.guess.parameters()))
    estimate, begun = 0.0, warm_start * steps
    for t in range(8):
        loop.step(t)
        rate = 0.02 * (0.01 + 0.99 * math.cos(math.pi * t / (2 * steps)) ** 2)
        for_model.param_groups[0]["lr"] = for_guess.param_groups[0]["lr"] = rate
        x = rows[torch.randint(40, (12,), generator=random)]
        weight = 1.0 if t >= 2 * begun else 0.05 + 0.95 * max(0.0, t / begun - 1)
        evidence = evidence_bound(other.encoder, other.decoder, x, random, None, weight).mean()
        off = (max(estimate, 0.0) - 0.8) / 0.5
        push = 3.0 * max(-1.0, min(1.0, off)) if t >= begun else 0.0
        loss = -evidence
        if push:
            z = torch.randn((4, 1), generator=random)
            told = information_surrogate(other.decoder, other.guess, z, random, draws=3)
            loss = loss + push * told  # too little information is a negative push: it is raised
        for weights, slope in zip(model, torch.autograd.grad(loss, model), strict=True):
            weights.grad = slope
        size = math.sqrt(sum(float(w.grad.square().sum()) for w in model))
        for weights in model:
            weights.grad *= min(1.0, 10.0 / size)
        for_model.step()
        if 2 * t >= begun:
            means = []
            for _ in range(2):
                z = torch.randn((12, 1), generator=random)
                with torch.no_grad():
                    made = other.decoder.sample(z, random)
                mean = other.guess.log_prob(z, made).mean()
                for_guess.zero_grad()
                (-mean).backward()
                for_guess.step()
                means.append(float(mean.detach()))
            estimate = 0.5 * math.log(2 * math.pi * math.e) + sum(means) / 2
        assert trace.evidence[t] == pytest.approx(float(evidence.detach()), rel=1e-3, abs=1e-4)
        assert trace.information[t] == pytest.approx(estimate, abs=1e-3)
        assert trace.push[t] == pytest.approx(push, abs=1e-2)
    for name in ("encoder", "decoder", "guess"):
        nets = (getattr(parts, name).parameters(), getattr(other, name).parameters())
        assert all(torch.allclose(a, b, atol=2e-3) for a, b in zip(*nets, strict=True)), name


def test_a_look_at_the_truth_corrects_the_estimate_slowly():
    loop = _Loop(small_parts(), torch.zeros(4, 1), Recipe(1.0), torch.Generator(), Trace())
    loop.trace.information += [9.0] * 100 + [0.5] * 25
    loop.look(0.9)
    assert loop.shortfall == pytest.approx(0.3 * 0.4)
    loop.look(0.9)
    assert loop.shortfall == pytest.approx(0.7 * 0.12 + 0.3 * 0.4)


def plant(dial, pull, steps=4000, gain=2e-3):
    """A quantity that drifts by ``pull`` per step unless pushed; returns where it settles."""
    value, largest = 0.0, 0.0
    for _ in range(steps):
        value += gain * (pull - dial.push(value))
        largest = max(largest, value)
    return value, largest


def test_the_integral_leaves_no_offset_and_the_clip_does():
    assert plant(Dial(1.0, 10.0), pull=-3.0)[0] == pytest.approx(1.0, abs=1e-3)
    assert plant(Dial(1.0, 10.0, "clip", width=0.5), pull=-3.0)[0] == pytest.approx(0.85, abs=1e-3)


def test_a_long_way_does_not_wind_the_integral_up():
    assert plant(Dial(2.0, 5.0), pull=-1.0)[1] < 2.2


@pytest.mark.parametrize("control", ["integral", "clip", "sign"])
def test_pushes_stay_within_the_penalty(control):
    dial = Dial(1.0, 0.5, control)
    assert all(abs(dial.push(value)) <= 0.5 for value in (-9.0, 0.0, 0.99, 1.0, 1.5, 80.0))
    assert Dial(1.0, 0.0, control).push(7.0) == 0.0


def test_a_negative_estimate_never_pushes_information_up_from_a_target_of_zero():
    for control in ("integral", "clip", "sign"):
        assert Dial(0.0, 10.0, control).push(-0.3) == 0.0

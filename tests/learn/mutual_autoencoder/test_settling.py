"""The last correction: onto the target, the shortest way, and only from nearby."""

import math

import pytest
import torch

from pindown.learn.mutual_autoencoder.networks import CategoricalDecoder, GaussianDecoder
from pindown.learn.mutual_autoencoder.quadrature import (
    differentiable_information,
    exact_information,
    quick_information,
)
from pindown.learn.mutual_autoencoder.settling import settle
from tests.learn.mutual_autoencoder.test_measure import seeded, straight


def told_about(kind):
    """A decoder with some tenths of a nat."""
    if kind == "numbers":
        return straight([[0.8]], 0.6).requires_grad_(True)
    decoder = CategoricalDecoder([6], 1, (8,), seeded()).double()
    with torch.no_grad():
        decoder.body[-1].weight.mul_(4.0)
    return decoder


@pytest.mark.parametrize("kind", ["numbers", "symbols"])
@pytest.mark.parametrize("miss", [-0.1, 0.1])
def test_ends_on_the_target(kind, miss):
    decoder = told_about(kind)
    before = [p.detach().clone() for p in decoder.parameters()]
    target = quick_information(decoder) - miss
    settle(decoder, target)
    assert exact_information(decoder)[0] == pytest.approx(target, abs=2e-3)
    moved = sum(
        float(((a.detach() - b) ** 2).sum()) for a, b in zip(decoder.parameters(), before, strict=True)
    )
    assert 0 < moved < 1.0


def test_a_large_miss_is_left_alone():
    decoder = told_about("symbols")
    before = [p.detach().clone() for p in decoder.parameters()]
    settle(decoder, quick_information(decoder) + 0.5)
    assert all(torch.equal(a, b) for a, b in zip(decoder.parameters(), before, strict=True))


def test_nothing_to_move_along_is_no_error():
    """A decoder that ignores its code has information 0 and no slope there."""
    decoder = straight([[0.0]], 1.0).requires_grad_(True)
    settle(decoder, 0.1)
    assert quick_information(decoder) == pytest.approx(0.0, abs=1e-9)


def test_the_derivative_against_the_closed_form():
    """I = 0.5 log(1 + a^2 / s^2): dI/da = a / (a^2 + s^2)."""
    decoder = straight([[0.7]], 0.5).requires_grad_(True)
    assert isinstance(decoder, GaussianDecoder)
    value = differentiable_information(decoder)
    assert float(value.detach()) == pytest.approx(0.5 * math.log1p(0.49 / 0.25), abs=1e-8)
    (slope,) = torch.autograd.grad(value, [decoder.body[0].weight])
    assert float(slope[0, 0]) == pytest.approx(0.7 / (0.49 + 0.25), abs=1e-6)

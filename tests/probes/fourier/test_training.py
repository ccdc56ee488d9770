"""What masks are trained for, and what is wrong with the printed form of it."""

import math

import numpy as np
import pytest
import torch

from pindown.probes.fourier import data_term, fourier_mask, kept_frequencies, mask_check
from pindown.probes.fourier.training import size_penalty
from pindown.probes.tuning import STRAIGHT_ABOVE

from .planted import noise, planted


def test_printed_sum_has_the_sample_size_as_its_floor_and_overflows():
    """The course sums exp of the squared change: at no change n, and soon infinite."""
    change = torch.zeros(500)
    assert float(torch.exp(change**2).sum()) == 500.0  # as printed, with nothing lost
    assert float(data_term(change).mean()) == 0.0
    far = torch.tensor([10.0])  # a confident classifier that is wrong behind the mask
    assert torch.isinf(torch.exp(far**2)) and torch.isfinite(data_term(far))
    slope = torch.tensor([10.0], requires_grad=True)
    data_term(slope).sum().backward()
    assert torch.isfinite(slope.grad) and slope.grad > 0  # a clipped exponential would have none


def test_the_term_is_the_printed_one_where_it_matters_and_smooth_beyond():
    change = torch.linspace(-2, 2, 101, dtype=torch.float64)
    torch.testing.assert_close(data_term(change), torch.exp(change**2) - 1)
    corner = math.sqrt(STRAIGHT_ABOVE)
    x = torch.tensor([corner - 1e-6, corner + 1e-6], dtype=torch.float64, requires_grad=True)
    data_term(x).sum().backward()
    assert x.grad[0] == pytest.approx(float(x.grad[1]), rel=1e-4)


def test_one_sided_lets_improvements_go_free():
    assert data_term(torch.tensor([-1.0, 1.0]), one_sided=True).tolist() == pytest.approx(
        [0, math.e - 1]
    )


def test_complement_of_the_soft_mask_still_passes_what_it_keeps():
    """The penalty draws kept weights below 1; so the complement is that of the kept frequencies."""
    net, X = planted((3, 2), side=8), noise(200, side=8)
    found = fourier_mask(net, X, sparsity=0.02, steps=200, verbose=0)
    soft = np.clip(1 - found.mask, 0, 1)
    assert mask_check(net, soft, X).masked >= 0.99  # 1 - M of the course
    assert mask_check(net, found.complement.astype(float), X).masked <= 0.6


def test_penalty_is_the_norm():
    masks = torch.tensor([[[0.0, 1.0], [0.5, 0.5]]])
    assert size_penalty(masks, 1.0).tolist() == [2.0]
    assert size_penalty(masks, 2.0).tolist() == pytest.approx([np.sqrt(1.5)])
    assert size_penalty(masks, 0.5).tolist() == pytest.approx([(1 + 2 * np.sqrt(0.5)) ** 2])


@pytest.mark.parametrize("exponent", [0.5, 2.0])
def test_other_exponents_find_the_planted_frequency(exponent):
    net, X = planted((3, 2), side=8), noise(100, side=8)
    price = {0.5: 2e-5, 2.0: 0.02}[exponent]
    found = fourier_mask(net, X, exponent=exponent, sparsity=price, steps=300, verbose=0)
    assert {(3, 2), (-3, -2)} <= set(found.frequencies())
    assert found.check.complement <= 0.6


def test_a_mask_without_weight_keeps_nothing():
    assert not kept_frequencies(np.full((4, 4), 0.01)).any()
    assert kept_frequencies(np.full((4, 4), 0.3)).all()

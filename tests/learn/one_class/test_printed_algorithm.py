"""The printed losses against numbers worked out by hand, term by term."""

import math

import numpy as np
import pytest
import torch

from pindown.learn import LocalMaximaDetector
from pindown.learn.one_class import _printed_algorithm as losses
from pindown.learn.one_class._inputs import InputScaling
from pindown.learn.one_class._plan import plan_for

LOG2 = math.log(2.0)
LOG3 = math.log(3.0)
HALF = 0.0  # log-odds of probability 1/2
QUARTER = -LOG3  # of 1/4
THREE_QUARTERS = LOG3


def logits(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_the_two_halves_of_the_cross_entropy():
    assert losses.accepted(logits(HALF, QUARTER)).tolist() == pytest.approx([LOG2, math.log(4)])
    assert losses.rejected(logits(HALF, QUARTER)).tolist() == pytest.approx([LOG2, math.log(4 / 3)])


def test_membership_loss_is_the_mean_of_products_not_the_product_of_means():
    # c(x) = 1/2, 3/4; c(G(x)) = 1/2, 1/4; h(G(x), x) = 1/4, 1/2
    value = losses.membership_loss(
        logits(HALF, THREE_QUARTERS), logits(HALF, QUARTER), logits(QUARTER, HALF)
    )
    real = (LOG2 + math.log(4 / 3)) / 2
    product = (LOG2 * math.log(4 / 3) + math.log(4 / 3) * LOG2) / 2
    assert value.item() == pytest.approx(real + product)


def test_comparator_loss_by_hand():
    value = losses.comparator_loss(logits(THREE_QUARTERS), logits(QUARTER), logits(HALF))
    assert value.item() == pytest.approx(math.log(4 / 3) + LOG2 * math.log(4 / 3))


def test_symmetric_comparator_loss_adds_one_term():
    plain = losses.comparator_loss(logits(HALF), logits(HALF), logits(QUARTER))
    both = losses.comparator_loss(logits(HALF), logits(HALF), logits(QUARTER), logits(THREE_QUARTERS))
    assert (both - plain).item() == pytest.approx(math.log(4 / 3) * math.log(4 / 3))


def test_without_the_other_function_the_weight_is_one():
    alone = losses.membership_loss(logits(HALF), logits(QUARTER), None)
    assert alone.item() == pytest.approx(LOG2 + math.log(4 / 3))


def test_the_generators_raise_what_the_networks_lower():
    c_fake, h_fake = logits(HALF, QUARTER), logits(QUARTER, HALF)
    total = losses.membership_loss(logits(HALF), c_fake, h_fake)
    raised = losses.membership_generator_loss(c_fake, h_fake)
    assert (total + raised).item() == pytest.approx(LOG2)  # only the real part is left


def test_the_generator_of_h_pays_its_plain_distance():
    real, fake = torch.zeros(2, 1, 1, 2), torch.tensor([3.0, 4.0, 0.0, 0.0]).reshape(2, 1, 1, 2)
    value = losses.comparator_generator_loss(
        real.double(), fake.double(), logits(HALF, HALF), None, pull=2.0
    )
    assert value.item() == pytest.approx(2.0 * 2.5 - LOG2)


def test_the_printed_generator_loss_has_no_gradient_where_both_reject():
    """Why learned negatives die out as printed: 1e-8 of the gradient of the non-saturating loss."""
    c_fake = logits(-10.0).requires_grad_(True)
    (printed,) = torch.autograd.grad(losses.membership_generator_loss(c_fake, logits(-10.0)), c_fake)
    (ours,) = torch.autograd.grad(losses.accepted(c_fake).mean(), c_fake)
    assert abs(printed.item()) < 1e-8
    assert abs(ours.item()) > 0.99


def test_products_do_not_overflow():
    assert torch.isfinite(losses.membership_loss(*(logits(1e6),) * 3))


def test_images_begin_as_the_architecture_that_the_source_names():
    images = np.random.default_rng(0).uniform(size=(4, 28, 28))
    plan = plan_for(
        LocalMaximaDetector("paper", hidden=8),
        InputScaling.of(images.reshape(4, -1), (28, 28, 1), False),
        4,
    )
    member = losses.PrintedMember(plan, torch.Generator().manual_seed(0))
    for net in (member.c, member.h, member.g_c, member.g_h):
        for part in net.modules():
            if (
                isinstance(part, torch.nn.Conv2d | torch.nn.ConvTranspose2d)
                and part.weight.numel() > 1000
            ):
                assert part.weight.std().item() == pytest.approx(0.02, rel=0.1)
            if isinstance(part, torch.nn.BatchNorm2d):
                assert 0 < (part.weight - 1).abs().mean().item() < 0.03


def test_statistics_of_batch_norm_are_those_of_real_points():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    plan = plan_for(
        LocalMaximaDetector("paper", hidden=(5, 4), batch_size=20, max_epochs=2),
        InputScaling.of(rows, (), False),
        40,
    )
    member = losses.PrintedMember(plan, torch.Generator().manual_seed(0))
    x = torch.as_tensor(rows, dtype=torch.float32)
    member.train(x, x[:0], lambda: None)
    first, norm = member.c[0], member.c[1]
    with torch.no_grad():
        torch.testing.assert_close(norm.running_mean, first(x).mean(0), rtol=1e-4, atol=1e-5)
        spread = torch.stack([first(part).var(0) for part in x.split(20)]).mean(0)
        torch.testing.assert_close(norm.running_var, spread, rtol=1e-4, atol=1e-5)
    assert norm.momentum == 0.1

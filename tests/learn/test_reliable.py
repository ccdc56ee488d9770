"""Reliable learning on a table small enough to count by hand."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.learn.reliable import false_positive_loss, is_reliable, positive_loss

#            zeros         positives
Y = np.array([0, 0, 0, 0.5, 1.0, 0.25])
H = np.array([0, 0.5, -1, 0.5, 0.5, 0.0])


def test_table_by_hand():
    assert false_positive_loss(Y, H) == pytest.approx(
        2 / 6
    )  # points 1 and 2; a negative value counts too
    assert positive_loss(Y, H) == pytest.approx((0 + 0.25 + 0.0625) / 6)
    assert positive_loss(Y, H, loss=lambda h, y: np.abs(h - y)) == pytest.approx((0.5 + 0.25) / 6)


def test_losses_split_the_risk():
    """With a loss that charges 1 for each false positive, the two parts add up to the whole."""
    whole = np.mean(np.where(Y == 0, H != 0, (H - Y) ** 2))
    assert false_positive_loss(Y, H) + positive_loss(Y, H) == pytest.approx(whole)


def test_weights_count_as_repetitions():
    counts = np.array([1, 2, 0, 3, 1, 1])
    for measure in (false_positive_loss, positive_loss):
        repeated = measure(np.repeat(Y, counts), np.repeat(H, counts))
        assert measure(Y, H, sample_weight=counts) == pytest.approx(repeated)


def test_unit_that_is_off_on_the_zeros_has_no_false_positive():
    x = np.linspace(-1, 1, 21)
    y = np.where(x > 0, x, 0.0)
    unit = ReluNetwork.from_layers([([[1.0]], [0.0]), ([[0.7]], [0.0])])
    h = unit(x[:, None])[:, 0]
    assert false_positive_loss(y, h) == 0.0
    assert positive_loss(y, h) == pytest.approx(np.mean((0.3 * y) ** 2))
    assert false_positive_loss(y, h + 0.01) == pytest.approx(11 / 21)


def test_reliable_with_reasons():
    clean_but_poor = np.array([0, 0, 0, 0, 0, 0.25])
    good_but_unclean = np.array([0.1, 0, 0, 0.5, 1, 0.25])
    h = np.array([0, 0, 0, 0.5, 0.5, 0.0])
    answer = is_reliable(Y, h, [good_but_unclean, clean_but_poor], eps=0.0)
    assert answer
    assert answer.best_competitor == 1  # the better one has a false positive and does not count
    assert "eps + loss of competitor 1" in str(answer)
    loose = is_reliable(Y, h, [good_but_unclean, clean_but_poor], eps=0.2)
    assert loose.best_competitor == 1  # whatever eps allows the hypothesis itself
    assert not is_reliable(Y, h, [[0, 0, 0, 0.5, 1, 0.25]], eps=0.01)
    assert is_reliable(Y, h, [[0, 0, 0, 0.5, 1, 0.25]], eps=0.06)


def test_too_many_false_positives_are_never_reliable():
    answer = is_reliable(Y, H, [np.zeros(6)], eps=0.3)
    assert not answer
    assert str(answer).startswith("not reliable: false positives 0.333333 > eps = 0.3")
    assert is_reliable(Y, H, [np.zeros(6)], eps=1 / 3)


def test_without_a_clean_competitor_the_positives_are_free():
    answer = is_reliable(Y, np.zeros(6), [np.ones(6)], eps=0.0)
    assert answer
    assert answer.best_competitor is None
    assert "no competitor is free of false positives" in str(answer)


@pytest.mark.parametrize(
    ("y", "h", "message"),
    [
        ([0, 2], [0, 0], r"labels must lie in \[0, 1\]; got 0 to 2"),
        ([0, -0.5], [0, 0], "labels must lie in"),
        ([0, np.nan], [0, 0], "labels must be finite"),
        ([0, 1], [0, np.inf], "predictions must be finite"),
        ([0, 1], [0], "must match"),
        ([], [], "not be empty"),
    ],
)
def test_bad_arrays(y, h, message):
    with pytest.raises(ValueError, match=message):
        false_positive_loss(y, h)


@pytest.mark.parametrize("eps", [-0.1, np.nan, np.inf, None, "small"])
def test_bad_eps(eps):
    with pytest.raises(ValueError, match="eps must be a finite number of at least 0"):
        is_reliable([0, 1], [0, 1], [], eps)


def test_bad_weights():
    for weights in ([-1, 2], [0, 0]):
        with pytest.raises(ValueError, match="weights must not be negative"):
            positive_loss([0, 1], [0, 1], sample_weight=weights)

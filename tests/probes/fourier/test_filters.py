"""Filters over frequencies against the transform written out as a sum."""

import numpy as np
import pytest

from pindown.probes.fourier import (
    MaskCheck,
    apply_mask,
    is_symmetric,
    mask_check,
    mirrored,
    random_masks,
    sufficient_frequencies,
)

from .planted import noise, planted, wave


def by_sums(x, mask):
    """The filtered image by the definition, one exponential at a time."""
    h, w = x.shape
    a, b = np.arange(h), np.arange(w)
    F = np.exp(-2j * np.pi * np.outer(a, a) / h), np.exp(-2j * np.pi * np.outer(b, b) / w)
    back = F[0].conj() @ (mask * (F[0] @ x @ F[1])) @ F[1].conj() / (h * w)
    return back


@pytest.mark.parametrize("shape", [(4, 4), (5, 7), (1, 6), (3, 8)])
def test_filtering_is_the_definition(shape):
    rng = np.random.default_rng(0)
    x, raw = rng.standard_normal(shape), rng.random(shape)
    mask = (raw + mirrored(raw)) / 2
    truth = by_sums(x, mask)
    assert np.abs(truth.imag).max() < 1e-12 and is_symmetric(mask)
    np.testing.assert_allclose(apply_mask(x, mask), truth.real, atol=1e-12)
    assert np.abs(by_sums(x, raw).imag).max() > 1e-3 or min(shape) == 1  # symmetry is what keeps it real


def test_mirror_is_the_opposite_frequency():
    for size in (4, 5):
        k = np.fft.fftfreq(size, 1 / size)
        opposite = mirrored(k, axes=1)
        assert all((a + b) % size == 0 for a, b in zip(k, opposite, strict=True))


def test_a_mask_of_one_wave_leaves_that_wave():
    mask = np.zeros((16, 16))
    mask[3, 2] = mask[-3, -2] = 1
    np.testing.assert_allclose(apply_mask(wave((3, 2), (0, 5)), mask), wave((3, 2)), atol=1e-12)


def test_random_masks_are_as_large_symmetric_and_spread():
    like = np.zeros((8, 8))
    like[0, 0] = like[1, 2] = like[-1, -2] = like[0, 3] = like[0, -3] = 1
    masks = random_masks(like, 400, random_state=0)
    assert (masks.sum(axis=(1, 2)) == 5).all() and all(is_symmetric(mask) for mask in masks)
    share = masks.mean(axis=0)
    assert share.min() > 0.02  # 4 of 60 in pairs, 1 of 4 alone
    assert share[0, 0] == pytest.approx(0.25, abs=0.08) and share[1, 2] == pytest.approx(
        4 / 60, abs=0.05
    )


def test_sufficient_frequencies_are_the_fewest_in_the_order_of_the_mask():
    net, X = planted((1, 0), (0, 1), side=8), noise(300, side=8)
    weights = np.random.default_rng(0).random((8, 8)) * 0.5
    mask = (weights + mirrored(weights)) / 2
    mask[1, 0] = mask[-1, 0] = 0.9
    mask[0, 1] = mask[0, -1] = 0.8
    both = sufficient_frequencies(net, mask, X, share=0.95)
    assert np.argwhere(both).tolist() == [[0, 1], [0, 7], [1, 0], [7, 0]]
    one = sufficient_frequencies(net, mask, X, share=0.6)
    assert np.argwhere(one).tolist() == [[1, 0], [7, 0]]
    assert is_symmetric(both) and sufficient_frequencies(net, np.ones((8, 8)), X).all()
    with pytest.raises(ValueError, match="share"):
        sufficient_frequencies(net, mask, X, share=0.0)


def test_check_counts_by_hand():
    net, X = planted((1, 0), (0, 1), side=8), noise(500, side=8)
    mask = np.zeros((8, 8))
    mask[1, 0] = mask[-1, 0] = 1
    found = mask_check(net, mask, X)
    a, b = (np.tensordot(X, wave(k, side=8), 2) for k in ((1, 0), (0, 1)))
    assert found.clean == 1.0 and found.frequencies == 2 and found.n_frequencies == 64
    assert found.kept == found.masked == np.mean((a > 0) == (a + b > 0))
    assert found.complement == np.mean((b > 0) == (a + b > 0))
    signs = np.where(a + b > 0, 1, -1)
    assert mask_check(net, mask, X, signs) == found  # labels by sign
    assert mask_check(net, mask, X, -signs).clean == 0.0


def test_a_mask_holds_if_it_beats_its_complement_and_chance():
    shares = {"clean": 1.0, "masked": 0.9, "random_error": 0.01, "n": 9, "frequencies": 2.0}
    for complement, random, holds in ((0.5, 0.4, True), (0.5, 0.7, False), (0.7, 0.5, False)):
        found = MaskCheck(kept=0.6, complement=complement, random=random, n_frequencies=64, **shares)
        assert found.holds == holds


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ([[0.0, 2.0], [0.0, 0.0]], "0 to 1"),
        ([[np.nan, 0.0], [0.0, 0.0]], "0 to 1"),
        ([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], "opposite frequencies"),
        (np.zeros((0, 2)), "at least 2 axes"),
        (np.ones((3, 3)), "must end as X does"),
    ],
)
def test_bad_masks_are_refused(mask, words):
    with pytest.raises(ValueError, match=words):
        apply_mask(np.zeros((5, 2, 2)), mask)


def test_other_bad_input_is_refused():
    with pytest.raises(ValueError, match="finite"):
        apply_mask([[np.inf, 0.0], [0.0, 0.0]], np.ones((2, 2)))
    with pytest.raises(ValueError, match="zeros and ones"):
        random_masks([[0.5]], 2)
    with pytest.raises(ValueError, match="at least 1"):
        random_masks([[1.0]], 0)
    net = planted((1, 0), side=8)
    with pytest.raises(ValueError, match="or one for each of 3 images"):
        mask_check(net, np.ones((2, 8, 8)), noise(3, side=8))
    with pytest.raises(ValueError, match="n_random"):
        mask_check(net, np.ones((8, 8)), noise(3, side=8), n_random=0)

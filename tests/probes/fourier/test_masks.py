"""Masks find the frequencies that a classifier was made to use, and nothing else."""

import hashlib

import numpy as np
import pytest
import torch
from torch import nn

from pindown.probes.fourier import apply_mask, fourier_mask, is_symmetric, mask_check
from pindown.probes.fourier import training as descent

from .planted import SIDE, both_signs, noise, planted, wave

torch.set_num_threads(1)


@pytest.mark.parametrize(
    "frequencies", [[(3, 2)], [(3, 2), (0, 5)], [(1, 0), (0, 3), (-2, 4)]], ids=["one", "two", "three"]
)
@pytest.mark.parametrize("scale", [0.03, 0.5])
def test_planted_frequencies_come_back_exactly(frequencies, scale):
    net, X = planted(*frequencies, scale=scale), noise(400)
    y = (np.tensordot(X, wave(*frequencies), 2) > 0).astype(int)
    found = fourier_mask(net, X, y, steps=200, batch_size=128, verbose=0)
    assert found.frequencies() == both_signs(*frequencies)
    fresh = noise(400, seed=1)
    check = mask_check(
        net, found.mask, fresh, (np.tensordot(fresh, wave(*frequencies), 2) > 0).astype(int)
    )
    assert check.clean == 1.0 and check.kept == 1.0 and check.masked >= 0.98
    assert check.complement <= 0.6 and check.random <= 0.65 and check.holds


def test_labels_made_by_a_frequency_are_learnt_and_the_mask_finds_it():
    """The whole way: a classifier trained by gradient descent on labels that one coefficient decides."""
    X = noise(1500, side=8, seed=2)
    y = (np.tensordot(X, wave((2, 1), side=8), 2) > 0).astype(np.int64)
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 2))
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=1e-3)
    images, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    for _ in range(200):
        loss = nn.functional.cross_entropy(module(images), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    found = fourier_mask(module, X[:300], y[:300], sparsity=0.03, verbose=0)
    assert found.frequencies() == [(-2, -1), (2, 1)]
    assert found.check.kept >= 0.97 and found.check.complement <= 0.7


def test_each_image_has_its_own_frequencies():
    """Two outputs look at two frequencies; an image with one of them alone needs only that one."""
    first, second = wave((3, 0)), wave((0, 2))
    W = np.stack([first.ravel(), second.ravel()]) / 16
    module = nn.Sequential(nn.Flatten(), nn.Linear(SIDE**2, 2))
    with torch.no_grad():
        module[1].weight.copy_(torch.tensor(W))
        module[1].bias.zero_()
    rng = np.random.default_rng(0)
    X = np.stack([first, second]) + 0.01 * rng.standard_normal((2, SIDE, SIDE))
    found = fourier_mask(module, X, mode="image", sparsity=0.01, verbose=0)
    assert [np.argwhere(kept).tolist() for kept in found.kept] == [[[3, 0], [13, 0]], [[0, 2], [0, 14]]]
    assert found.finished == 2 and found.mask.shape == (2, SIDE, SIDE)
    with pytest.raises(ValueError, match="one mask for each image"):
        found.frequencies()


def test_images_trained_together_do_not_touch_each_other():
    net, X = planted((3, 2), (0, 5)), noise(6)
    together = fourier_mask(net, X, mode="image", steps=30, verbose=0)
    apart = fourier_mask(net, X, mode="image", steps=30, batch_size=1, verbose=0)
    np.testing.assert_allclose(together.mask, apart.mask, atol=1e-9)


def test_the_same_seed_gives_the_same_mask():
    net, X = planted((3, 2)), noise(100)
    masks = [fourier_mask(net, X, steps=20, batch_size=32, seed=s, verbose=0).mask for s in (0, 0, 1)]
    assert np.array_equal(masks[0], masks[1]) and not np.array_equal(masks[0], masks[2])
    torch.manual_seed(5)
    before = torch.rand(1)
    torch.manual_seed(5)
    fourier_mask(net, X, steps=2, verbose=0)
    assert torch.equal(before, torch.rand(1))  # the caller's randomness is left alone


def test_masked_images_are_real_and_masks_symmetric():
    found = fourier_mask(planted((3, 2)), noise(50), steps=40, verbose=0)
    assert is_symmetric(found.mask) and 0 <= found.mask.min() <= found.mask.max() <= 1
    behind = np.fft.ifft2(found.mask * np.fft.fft2(noise(5)))
    assert np.abs(behind.imag).max() < 1e-12
    np.testing.assert_allclose(apply_mask(noise(5), found.mask), behind.real, atol=1e-12)


def test_without_a_price_the_data_term_goes_to_its_floor():
    found = fourier_mask(planted((3, 2), (0, 5)), noise(100), sparsity=0.0, steps=300, verbose=0)
    assert 0 <= found.objective[-1] < 1e-4 < found.objective[0]
    assert found.check.masked >= 0.99


def test_a_price_that_is_too_high_closes_the_mask_and_says_so():
    found = fourier_mask(planted((3, 2), scale=0.02), noise(100), sparsity=0.3, verbose=0)
    assert found.closed and not found.kept.any() and "lower sparsity" in str(found)
    assert found.check.frequencies == 0


def test_the_model_is_left_as_it_was():
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    module.train()

    def digest():
        state = b"".join(v.numpy().tobytes() for v in module.state_dict().values())
        return hashlib.sha256(state).hexdigest()

    before = digest()
    fourier_mask(module, noise(20, side=8), steps=5, verbose=0)
    assert digest() == before and module.training
    assert all(p.requires_grad and p.grad is None for p in module.parameters())


def test_colour_channels_share_a_mask_and_rows_can_be_images():
    net, X = planted((1, 2), side=8), noise(100, side=8)
    rows = fourier_mask(net, X.reshape(100, 64), steps=30, verbose=0)  # the network knows its shape
    images = fourier_mask(net, X, steps=30, verbose=0)
    asked = fourier_mask(net, X.reshape(100, 64), image_shape=(8, 8), steps=30, verbose=0)
    assert np.array_equal(rows.mask, images.mask) and np.array_equal(asked.mask, images.mask)
    colour = nn.Sequential(nn.Flatten(), nn.Linear(128, 1))
    with torch.no_grad():
        colour[1].weight.copy_(torch.tensor(np.tile(wave((1, 2), side=8).ravel() / 8, 2)))
        colour[1].bias.zero_()
    found = fourier_mask(colour, np.stack([X, X[::-1]], axis=1), steps=150, verbose=0)
    assert found.mask.shape == (8, 8) and found.frequencies() == [(-1, -2), (1, 2)]


def test_sparse_networks_stay_sparse_and_agree_with_dense_ones():
    import scipy.sparse as sp

    from pindown import ReluNetwork

    rng = np.random.default_rng(0)
    W = rng.standard_normal((12, 64)) * (rng.random((12, 64)) < 0.2)
    V = rng.standard_normal((3, 12))
    b = rng.standard_normal(12)
    X = noise(40, side=8)
    masks = [
        fourier_mask(
            ReluNetwork.from_layers([(kind(W), b), (V, np.zeros(3))], input_shape=(8, 8)),
            X,
            steps=20,
            verbose=0,
        ).mask
        for kind in (np.asarray, sp.csr_array)
    ]
    np.testing.assert_allclose(masks[0], masks[1], atol=1e-9)


def test_ctrl_c_keeps_the_mask_so_far(monkeypatch):
    calls, step = [], descent._step

    def stopped(*args):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return step(*args)

    monkeypatch.setattr(descent, "_step", stopped)
    found = fourier_mask(planted((3, 2)), noise(20), steps=50, verbose=0)
    assert found.stopped == "interrupted" and len(found.objective) == 4 and "interrupted" in str(found)
    calls.clear()
    some = fourier_mask(planted((3, 2)), noise(4), mode="image", steps=3, batch_size=1, verbose=0)
    assert some.stopped == "interrupted" and some.finished == 1
    assert some.mask[0].max() < 1 and (some.mask[2:] == 1).all()
    assert some.mask[1].max() < 1  # one step was done


def test_counts_are_whole_numbers():
    for settings in ({"steps": float("nan")}, {"steps": 2.5}, {"batch_size": float("inf")}):
        with pytest.raises(ValueError, match="an integer"):
            fourier_mask(planted((3, 2)), noise(4), verbose=0, **settings)


def test_a_budget_ends_training():
    found = fourier_mask(planted((3, 2)), noise(20), steps=10_000, budget=0.0, verbose=0)
    assert found.stopped == "budget" and len(found.objective) == 1
    each = fourier_mask(planted((3, 2)), noise(4), mode="image", steps=10_000, budget=0.0, verbose=0)
    assert each.stopped == "budget" and each.finished == 0


def test_one_image_and_one_class_are_enough():
    found = fourier_mask(planted((3, 2)), noise(1), [0], steps=5, verbose=0)
    assert found.check.n == 1 and np.isfinite(found.mask).all()


NET = planted((1, 1), side=4)
X4 = noise(6, side=4)


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        (("model", X4), {}, "torch.nn.Module or a ReluNetwork; got str"),
        ((NET, np.full((2, 4, 4), np.nan)), {}, "finite"),
        ((NET, np.zeros((0, 4, 4))), {}, "at least one image"),
        ((NET, np.zeros((3, 5, 5))), {}, "does not take X"),
        ((NET, X4, [0, 1]), {}, "one class for each of 6 images"),
        ((NET, X4, [0, 1, 2, 0, 0, 0]), {}, "classes 0 to 1; got 2"),
        ((NET, X4, [0.5] * 6), {}, "classes 0 to 1; got 0.5"),
        ((NET, X4, ["a"] * 6), {}, "one class for each"),
        ((nn.Linear(16, 2), X4.reshape(6, 16)), {}, r"say image_shape=\(height, width\)"),
        ((nn.Linear(16, 2), X4.reshape(6, 16)), {"image_shape": (3, 5)}, "does not hold"),
        ((nn.Flatten(), np.zeros((2, 8, 8, 3))), {}, "channels come first"),
        ((nn.Identity(), X4), {}, "scores"),
        ((NET, X4), {"mode": "all"}, "'dataset', 'image'; got 'all'"),
        ((NET, X4), {"sparsity": -1.0}, "sparsity must be"),
        ((NET, X4), {"exponent": 0.0}, "exponent must be"),
        ((NET, X4), {"rate": np.inf}, "rate must be"),
        ((NET, X4), {"steps": 0}, "steps must be"),
        ((NET, X4), {"batch_size": 1.5}, "batch_size must be"),
        ((NET, X4), {"budget": -1.0}, "budget must be"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(arguments, settings, words):
    with pytest.raises((TypeError, ValueError), match=words):
        fourier_mask(*arguments, **settings, verbose=0)


def test_text_is_refused():
    with pytest.raises(TypeError, match="real numbers"):
        fourier_mask(NET, np.array([["a"]]), verbose=0)

"""Stimuli behind a network's frequencies: what passes, what does not, and how observers come out."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.probes import fourier_mask, make_filtered_stimuli
from pindown.probes.filtered_stimuli import CONDITIONS

SIDE = 8


def wave():
    rows, columns = np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij")
    return np.cos(2 * np.pi * (2 * rows + columns) / SIDE)


def problem(n=200, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, SIDE, SIDE))
    return X, (np.einsum("nhw,hw->n", X, wave()) > 0).astype(int)


def one_wave():
    mask = np.zeros((SIDE, SIDE))
    mask[2, 1] = mask[-2, -1] = 1.0
    return mask


def observer(images):
    return (np.einsum("nhw,hw->n", images, wave()) > 0).astype(int)


def test_conditions_are_the_filters_they_name():
    X, y = problem(20)
    made = make_filtered_stimuli(one_wave(), X, y, random_state=3)
    spectra = np.abs(np.fft.fft2(made.images)) > 1e-9
    for i, name in enumerate(CONDITIONS):
        rows = made.condition == i
        order = np.argsort(made.source[rows])
        passed = spectra[rows]
        if name == "unfiltered":
            np.testing.assert_array_equal(made.images[rows][order], X)
        elif name == "kept":
            assert (passed == made.kept).all()
        elif name == "complement":
            assert (passed == ~made.kept).all()
        else:
            assert (passed.sum(axis=(1, 2)) == made.kept.sum()).all()
    sums = sum(
        made.images[made.condition == i][np.argsort(made.source[made.condition == i])] for i in (1, 2)
    )
    np.testing.assert_allclose(sums, X, atol=1e-12)
    np.testing.assert_array_equal(made.labels, y[made.source])


def test_observer_like_the_network_and_one_unlike():
    X, y = problem()
    made = make_filtered_stimuli(one_wave(), X, y)
    alike = made.report(observer(made.images))
    assert alike.accuracy["unfiltered"] == alike.accuracy["kept"] == 1.0
    assert alike.accuracy["complement"] < 0.65 and alike.needs_the_same
    guesses = np.random.default_rng(1).integers(0, 2, len(made.labels))
    assert not made.report(guesses).needs_the_same
    assert "kept 100.0%" in str(alike)


def test_standard_errors_are_the_spread_of_repeated_experiments():
    X, y = problem()
    made, rng = make_filtered_stimuli(one_wave(), X, y), np.random.default_rng(0)
    runs = []
    for _ in range(200):
        right = rng.uniform(size=len(made.labels)) < 0.7
        runs.append(made.report(np.where(right, made.labels, -1)))
    spread = np.std([run.accuracy["kept"] for run in runs], ddof=1)
    assert np.mean([run.standard_error["kept"] for run in runs]) == pytest.approx(spread, rel=0.2)


def test_two_images_are_no_evidence():
    made = make_filtered_stimuli(np.eye(4), np.random.default_rng(0).random((2, 4, 4)), [1, 1])
    report = made.report((made.condition <= CONDITIONS.index("kept")).astype(int))
    assert report.accuracy["kept"] == 1.0 and report.accuracy["random"] == 0.0
    assert not report.needs_the_same


def test_from_a_network_to_its_stimuli():
    X, y = problem(100)
    net = ReluNetwork.from_layers(
        [(np.vstack([-wave().ravel(), wave().ravel()]) / 8, [0, 0])], input_shape=(SIDE, SIDE)
    )
    found = fourier_mask(net, X, y, steps=150, verbose=0)
    made = make_filtered_stimuli(found.mask, X, y)
    assert made.kept.sum() == 2 and made.kept[2, 1]
    assert made.report(net(made.images.reshape(len(made.images), -1)).argmax(axis=1)).needs_the_same


def test_manifest_and_colours():
    X, y = problem(5)
    made = make_filtered_stimuli(one_wave(), np.repeat(X[:, None], 3, axis=1), y, random_state=1)
    rows = made.manifest()
    assert made.images.shape == (20, 3, SIDE, SIDE) and len(rows) == 20
    assert rows[4]["condition"] == CONDITIONS[made.condition[4]] and rows[4]["label"] == made.labels[4]
    counts = {name: sum(row["condition"] == name for row in rows) for name in CONDITIONS}
    assert set(counts.values()) == {5}


@pytest.mark.parametrize(
    ("mask", "X", "y", "words"),
    [
        (np.ones((SIDE, SIDE)), np.zeros((2, SIDE, SIDE)), [0, 1], "all frequencies or none"),
        (one_wave(), np.zeros((2, 4, 4)), [0, 1], "must end as X"),
        (one_wave(), np.zeros((2, SIDE, SIDE)), [0], "X must be images"),
        (np.stack([one_wave()] * 2), np.zeros((2, SIDE, SIDE)), [0, 1], "one mask"),
    ],
)
def test_refuses(mask, X, y, words):
    with pytest.raises(ValueError, match=words):
        make_filtered_stimuli(mask, X, y)
    X, y = problem(3)
    with pytest.raises(ValueError, match="one class per image"):
        make_filtered_stimuli(one_wave(), X, y).report([0])

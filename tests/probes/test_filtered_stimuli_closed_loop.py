"""The loop finds a planted band of frequencies through noise, within its budget."""

import numpy as np
import pytest

from pindown.probes import closed_loop_filter
from pindown.probes.filtered_stimuli import frequency_bins
from pindown.probes.fourier import is_symmetric


def overlap(found, planted):
    """Jaccard's index, without the constant frequency."""
    a, b = found.copy().astype(bool), planted.copy()
    a[0, 0] = b[0, 0] = False
    return np.sum(a & b) / np.sum(a | b)


class BandPassNeuron:
    """Responds to energy in a band, is inhibited by energy outside, and is noisy."""

    def __init__(self, band, noise, seed):
        rng = np.random.default_rng(seed)
        self.energy = rng.uniform(0.5, 1.5, band.shape)
        self.energy = self.energy + np.roll(np.flip(self.energy), 1, axis=(0, 1))
        self.band, self.noise, self.rng, self.asked = band, noise, rng, 0

    def __call__(self, mask):
        self.asked += 1
        inside = np.sum((mask * self.energy)[self.band]) / np.sum(self.energy[self.band])
        outside = np.sum((mask * self.energy)[~self.band]) / np.sum(self.energy[~self.band])
        return inside / (0.2 + outside) + self.noise * self.rng.standard_normal()


def band(shape, low, high):
    v, u = np.meshgrid(np.fft.fftfreq(shape[0]), np.fft.fftfreq(shape[1]), indexing="ij")
    radius = np.hypot(v, u)
    return (radius >= low) & (radius < high)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("low", "high"), [(0.0, 0.236), (0.236, 0.472)])
def test_planted_band_is_found_within_five_hundred_queries(low, high, seed):
    neuron = BandPassNeuron(band((16, 16), low, high), 0.05, seed)
    found = closed_loop_filter(neuron, (16, 16), random_state=seed)
    assert found.n_queries == neuron.asked <= 500
    assert overlap(found.mask, neuron.band) > 0.8
    assert is_symmetric(found.mask) and found.mask[0, 0] == 1.0
    assert "after" in str(found)


def test_bands_that_are_no_multiples_of_the_rings_are_found():
    """Bins are refined where the answer changes: at least 16 of 20 rings with random limits."""
    assert random_bands_found(1000) >= 16


def random_bands_found(first):
    """Return how many of 20 rings with random limits are found through noise of one hundredth."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(first + seed)
        low = rng.uniform(0.03, 0.35)
        neuron = BandPassNeuron(band((16, 16), low, low + rng.uniform(0.1, 0.3)), 0.05, seed)
        made = closed_loop_filter(neuron, (16, 16), random_state=seed)
        assert made.n_queries == neuron.asked <= 500 and is_symmetric(made.mask)
        found.append(overlap(made.mask, neuron.band) > 0.8)
    return sum(found)


def test_noise_that_hides_parts_leaves_bins_whole():
    rng = np.random.default_rng(0)
    quiet, loud = (
        closed_loop_filter(lambda m, s=s: float(m[:, :3].sum()) + s * rng.standard_normal(), (8, 8))
        for s in (0.0, 30.0)
    )
    assert len(loud.effects) == frequency_bins((8, 8), 6, 4)[1] < len(quiet.effects)


def test_random_filters_do_not_overlap_that_much():
    target = band((16, 16), 0.236, 0.472)
    bins, used = frequency_bins((16, 16), 6, 4)
    rng = np.random.default_rng(0)
    masks = [np.append(rng.integers(0, 2, used), 1)[bins] for _ in range(100)]
    assert max(overlap(mask, target) for mask in masks) < 0.8


@pytest.mark.parametrize("shape", [(8, 8), (7, 7), (6, 9), (1, 8)])
def test_bins_are_symmetric_and_cover_everything(shape):
    bins, used = frequency_bins(shape, 3, 4)
    opposite = np.roll(np.flip(bins), 1, axis=(0, 1))
    np.testing.assert_array_equal(bins, opposite)
    assert set(np.unique(bins)) == {-1, *range(used)} and bins[0, 0] == -1 and (bins == -1).sum() == 1


def test_the_response_is_not_that_of_the_luckiest_filter():
    runs, noise, shape = 300, 1.0, (4, 4)
    errors, chosen = [], []
    for seed in range(runs):
        rng, answers = np.random.default_rng([seed, 1]), []

        def query(mask, rng=rng, answers=answers):
            answers.append(noise * rng.standard_normal())  # likes all filters alike: all is luck
            return answers[-1]

        found = closed_loop_filter(
            query, shape, max_queries=40, n_radial=2, n_angular=2, random_state=seed
        )
        assert found.n_queries == len(answers) <= 40
        assert found.response == pytest.approx(np.mean(answers[-3:]))
        errors.append(found.response)
        chosen.append(max(np.mean(answers[-6:-3]), np.mean(answers[-9:-6])))
    five_sigma = 5 * noise / np.sqrt(3 * runs)
    assert abs(np.mean(errors)) < five_sigma
    assert np.mean(chosen) > five_sigma  # the larger of the two that were compared last


@pytest.mark.parametrize("budget", range(4, 30))
def test_small_budgets_are_kept_and_leave_a_response(budget):
    found = closed_loop_filter(
        lambda mask: mask.sum(), (2, 2), max_queries=budget, n_radial=1, n_angular=1
    )
    assert found.n_queries <= budget
    assert found.response == found.mask.sum()


def test_unit_that_likes_everything_or_nothing():
    assert closed_loop_filter(lambda mask: mask.sum(), (8, 8)).mask.all()
    assert closed_loop_filter(lambda mask: -mask.sum(), (8, 8)).mask.sum() == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_queries": 5}, "max_queries"),
        ({"n_radial": 0}, "n_radial"),
        ({"shape": (1, 1)}, "only the constant"),
    ],
)
def test_refuses(settings, words):
    with pytest.raises(ValueError, match=words):
        closed_loop_filter(lambda mask: 0.0, **{"shape": (8, 8)} | settings)
    with pytest.raises(ValueError, match="finite response"):
        closed_loop_filter(lambda mask: np.nan, (8, 8))

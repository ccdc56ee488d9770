"""Profiles by radius and direction."""

import numpy as np
import pytest

from pindown.probes.fourier import fourier_mask, frequency_profile, frequency_radius
from pindown.probes.fourier.filters import draw_mask

from .planted import noise, planted, wave


def test_radius_is_symmetric_and_counts_cycles():
    radius = frequency_radius((6, 5))
    assert radius[0, 0] == 0 and radius[1, 0] == radius[-1, 0] == 1 and radius[3, 0] == 3
    assert radius[2, 2] == radius[-2, -2] == pytest.approx(np.sqrt(8))


def test_energy_is_shared_out_as_parseval_says():
    X = noise(30) + 5.0
    profile = frequency_profile(np.ones((16, 16)), X)
    assert profile.energy.sum() == pytest.approx(1) and profile.energy[0] == 0
    np.testing.assert_allclose(profile.passed, profile.energy)
    half = frequency_profile(np.full((16, 16), 0.5), X)
    np.testing.assert_allclose(half.passed, profile.energy / 4)
    assert half.centroid == pytest.approx(frequency_radius((16, 16)).mean())
    # A wave of twice the height has four times the energy.
    waves = frequency_profile(np.ones((16, 16)), [2 * wave((0, 5)) + wave((3, 0))])
    assert waves.energy[[5, 3]].tolist() == pytest.approx([0.8, 0.2])
    assert waves.energy_centroid == pytest.approx(0.8 * 5 + 0.2 * 3)


def test_directions():
    mask = np.zeros((16, 16))
    mask[0, 3] = mask[0, -3] = 1  # a wave along the second axis
    assert frequency_profile(mask).direction[frequency_profile(mask).angular > 0].tolist() == [0]
    assert frequency_profile(mask.T).direction[frequency_profile(mask.T).angular > 0].tolist() == [90]
    assert frequency_profile(mask).entropy == 0
    assert frequency_profile(np.ones((16, 16))).entropy == pytest.approx(1)


def test_low_pass_has_a_lower_centroid_than_high_pass():
    low = (frequency_radius((16, 16)) < 4).astype(float)
    assert frequency_profile(low).centroid < 3
    assert frequency_profile(1 - low).centroid > 6


def test_nothing_kept_and_no_images_have_no_centroid():
    profile = frequency_profile(np.zeros((4, 4)))
    assert np.isnan(profile.centroid) and np.isnan(profile.energy).all() and "nan" in str(profile)
    assert frequency_profile(np.ones(8), axes=1).entropy == 1.0
    with pytest.raises(ValueError, match="images of shape"):
        frequency_profile(np.ones((4, 4)), np.ones((2, 5, 5)))
    with pytest.raises(ValueError, match="each of 3 masks"):
        frequency_profile(np.ones((3, 4, 4)), np.ones((2, 4, 4)))


@pytest.mark.parametrize("mode", ["dataset", "image"])
def test_pictures_can_be_drawn(mode, tmp_path):
    X = noise(5, side=8)
    found = fourier_mask(planted((1, 2), side=8), X, mode=mode, steps=5, verbose=0)
    for images in (None, X, np.stack([X, X], axis=1)):
        figure = draw_mask(found, images, rows=2)
        figure.savefig(tmp_path / "mask.png")
        assert (tmp_path / "mask.png").stat().st_size > 2000
        assert len(figure.axes) == (3 if images is None else 12)
    with pytest.raises(ValueError, match="images of 8 x 8"):
        draw_mask(found, X[:, :4])

"""Light: multiplicative fields form a group, powers over a window are not invariant, bumps are."""

import numpy as np
import pytest

from pindown.symmetry.signatures import (
    illuminate,
    illumination_moments,
    illumination_protocol,
    illumination_signature,
    interior_centres,
)

WINDOW = np.linspace(-8, 8, 161)


def scene(seed=0, n=12, d=64):
    rng = np.random.default_rng(seed)
    field = np.sin(2 * np.pi * np.arange(d) / d + 0.3) + 0.3 * rng.standard_normal(d)
    return rng.uniform(0.3, 1.5, (n, d)), rng.uniform(0.3, 1.5, (3, d)), field


def test_light_moves_from_image_to_template():
    images, templates, h = scene()
    lit = illuminate(images[:1], h, [0.7])[0, 0]
    left = illuminate(templates, h, WINDOW) @ lit
    right = illuminate(templates, h, WINDOW + 0.7) @ images[0]
    assert np.allclose(left, right, rtol=1e-12)


def test_bumps_are_invariant_to_light_and_tell_images_apart():
    images, templates, h = scene()
    report = illumination_protocol(images, templates, h, window=WINDOW, lights=[-1.0, -0.4, 0.3, 1.0])
    assert report.ratio < 1e-6
    assert report.ratio**2 * report.inter == pytest.approx(report.intra, rel=1e-6, abs=0)
    assert report.control > 0.3
    assert report.inter > 1e-3 and "fake" in str(report)


def test_off_grid_lights_keep_the_signature():
    """Bumps are smooth: a sum over a fine grid is as good as the integral."""
    images, templates, h = scene(1)
    report = illumination_protocol(images, templates, h, window=WINDOW, lights=[0.0371, -0.518])
    assert report.ratio < 1e-6


def test_one_sided_fields_are_windowed_at_both_ends():
    images, templates, h = scene(2)
    report = illumination_protocol(
        images, templates, np.abs(h) + 0.5, window=np.linspace(-12, 12, 481), lights=[-0.5, 0.5]
    )
    assert report.ratio < 1e-6 < report.control


def test_printed_powers_over_a_window_are_decided_by_its_ends():
    """The integral of powers diverges: a longer window multiplies it, and light changes it."""
    images, templates, h = scene()
    report = illumination_protocol(
        images, templates, h, window=WINDOW, lights=[-1.0, 1.0], readout="moments"
    )
    assert report.ratio > 0.5
    short, long = (
        illumination_moments(images[:1], illuminate(templates, h, z), 2)
        for z in (WINDOW, np.linspace(-12, 12, 241))
    )
    assert (long - short).min() > 2  # logarithms: more than sevenfold


def test_bumps_are_normal_curves_of_the_logarithm():
    from scipy.stats import norm

    images, templates, h = scene()
    orbits, centres, width = illuminate(templates, h, np.linspace(-1, 1, 5)), np.array([2.0, 3.5]), 0.4
    logs = np.log(np.einsum("nd,kzd->nkz", images, orbits))
    curves = norm.pdf(logs[..., None], centres, width) / norm.pdf(0, 0, width)
    found = illumination_signature(images, orbits, centres, width=width)
    np.testing.assert_allclose(found, curves.sum(axis=2).reshape(len(images), -1), rtol=1e-9)


def test_moments_are_sums_of_powers_of_projections():
    images, templates, h = scene()
    orbits = illuminate(templates, h, np.linspace(-1, 1, 5))
    products = np.einsum("nd,kzd->nkz", images, orbits)
    wanted = np.stack([(products**n).sum(axis=2) for n in (1, 2, 3)], axis=2)
    found = illumination_moments(images, orbits, 3)
    np.testing.assert_allclose(np.exp(found).reshape(wanted.shape), wanted, rtol=1e-9)


def test_printed_half_line_of_lights_has_no_inverses():
    """With zeta from 0 the family loses its beginning when the image is lit: not invariant."""
    images, templates, h = scene(3)
    h = np.abs(h) + 0.5
    half = illuminate(templates, h, np.linspace(0, 16, 321))
    whole = illuminate(templates, h, np.linspace(-16, 16, 641))
    pair = illuminate(images[:1], h, [0.0, 1.0])[0]
    start = np.log(half[:, 0] @ images[0])  # bumps that the first light excites
    centres = start[:, None] + np.linspace(0.1, 0.6, 4)
    first, second = illumination_signature(pair, half, centres)
    assert np.abs(first - second).max() > 0.5
    first, second = illumination_signature(pair, whole, centres)
    assert np.abs(first - second).max() < 1e-9


def test_equal_images_are_not_told_apart():
    images, templates, h = scene()
    same = np.repeat(images[:1], 3, axis=0)
    assert illumination_protocol(same, templates, h, window=WINDOW, lights=[1.0]).ratio == np.inf


def test_short_windows_and_dark_images_are_refused():
    images, templates, h = scene()
    with pytest.raises(ValueError, match="too short"):
        interior_centres(images, illuminate(templates, h, np.linspace(-0.5, 0.5, 11)))
    with pytest.raises(ValueError, match="positive"):
        illumination_signature(-images, illuminate(templates, h, WINDOW), [0.0])
    with pytest.raises(ValueError, match="overflows"):
        illuminate(images, h, [1e6])
    with pytest.raises(ValueError, match="field"):
        illuminate(images, h[:-1], [0.0])
    with pytest.raises(ValueError, match="two images"):
        illumination_protocol(images[:1], templates, h, window=WINDOW, lights=[1.0])
    with pytest.raises(ValueError, match="readout"):
        illumination_protocol(images, templates, h, window=WINDOW, lights=[1.0], readout="mean")
    with pytest.raises(ValueError, match="template_orbits"):
        illumination_signature(images, templates, [0.0])

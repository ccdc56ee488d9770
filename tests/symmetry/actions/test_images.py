"""Actions on images are actions: products act as one after the other, exactly or nearly."""

import pickle

import numpy as np
import pytest

from pindown.symmetry import cyclic, direct_product
from pindown.symmetry.actions import (
    affine_images,
    contrast_changes,
    flattened,
    gamma_changes,
    graph_permutations,
    illumination,
    image_dihedral,
    image_reflection,
    image_rotations,
    image_scalings,
    image_translations,
    image_turns,
    set_permutations,
    smooth_displacement,
    smooth_warps,
    warp,
)

IMAGES = np.random.default_rng(0).standard_normal((2, 3, 6, 6))


def check_action(group, X, tol=0.0):
    for i in range(group.order):
        for j in range(group.order):
            twice = group.act(i, group.act(j, X))
            assert np.abs(twice - group.act(int(group.table[i, j]), X)).max() <= tol
    assert np.array_equal(group.act(0, X), X)


@pytest.mark.parametrize(
    "group",
    [image_rotations(), image_reflection(), image_reflection("up-down"), image_dihedral(),
     image_translations(6, 6, step=2), image_translations(6, 6, step=3), image_turns(4)],
    ids=["turns", "left-right", "up-down", "square", "shifts by 2", "shifts by 3", "interpolated"],
)  # fmt: skip
def test_symmetries_of_the_grid_are_exact(group):
    check_action(group, IMAGES)
    flat = flattened(group, (3, 6, 6))
    rows = IMAGES.reshape(2, -1)
    assert np.array_equal(flat.act(1, rows), group.act(1, IMAGES).reshape(2, -1))
    # They permute pixels: nothing is lost.
    assert np.array_equal(np.sort(flat.act(1, rows)), np.sort(rows))


def test_shifts_of_images_that_are_not_square():
    group, X = image_translations(4, 6, step=2), IMAGES[..., :4, :]
    check_action(group, X)
    for index, (down, right) in enumerate(group.elements):
        assert np.array_equal(group.act(index, X), np.roll(X, (2 * down, 2 * right), axis=(-2, -1)))


def test_the_square_acts_by_different_transformations():
    orbit = image_dihedral().orbit(IMAGES[0])
    assert len(np.unique(orbit.reshape(8, -1), axis=0)) == 8


def blob(side=33, centre=(4.0, 2.0)):
    y, x = np.meshgrid((side - 1) / 2 - np.arange(side), np.arange(side) - (side - 1) / 2, indexing="ij")
    return np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / 18)[None]


def test_a_turned_blob_is_the_blob_at_the_turned_place():
    turns = image_turns(12)
    for k in range(12):
        angle = 2 * np.pi * k / 12
        place = (4 * np.cos(angle) - 2 * np.sin(angle), 4 * np.sin(angle) + 2 * np.cos(angle))
        assert np.abs(turns.act(k, blob()) - blob(centre=place)).max() < 0.03


def test_interpolated_turns_are_nearly_an_action_on_smooth_images():
    turns = image_turns(12)
    twice = turns.act(5, turns.act(4, blob()))
    assert 1e-6 < np.abs(twice - turns.act(9, blob())).max() < 0.06


def test_affine_maps_follow_matrices():
    shear = np.array([[1.0, 0.5], [0.0, 1.0]])
    moved = affine_images(blob(), shear, shift=(1.0, -2.0))
    peak = np.unravel_index(moved[0].argmax(), moved[0].shape)
    x, y = shear @ [4.0, 2.0] + [1.0, -2.0]
    assert (peak[1] - 16, 16 - peak[0]) == (x, y)
    assert np.array_equal(affine_images(blob(), np.eye(2)), blob())
    centred = blob(centre=(1.0, 0.0))
    larger = image_scalings([2.0]).act(0, centred)
    assert abs(larger.sum() / centred.sum() - 4.0) < 0.1


def test_light_acts_on_values():
    X = np.abs(IMAGES)
    assert np.array_equal(illumination([3.0]).act(0, X), 3 * X)
    assert np.array_equal(contrast_changes([2.0], [1.0]).act(0, X), 2 * X + 1)
    back = gamma_changes([0.5]).act(0, gamma_changes([2.0]).act(0, X))
    assert np.allclose(back, X)
    assert np.allclose(gamma_changes([2.0]).act(0, X), X * X)


def test_warps_are_small_smooth_and_fix_the_border():
    field = smooth_displacement(20, 30, size=1.5, seed=3)
    assert np.abs(field[:, 0]).max() < 1e-12 and np.abs(field[:, :, -1]).max() < 1e-12
    assert np.abs(np.diff(field, axis=1)).max() < 1.5
    assert np.linalg.norm(field, axis=0).max() == pytest.approx(1.5)
    still = warp(np.ones((1, 20, 30)), 0 * field)
    assert np.array_equal(still, np.ones((1, 20, 30)))
    first, second = (smooth_warps(6, 6, 1.0, n=2, seed=5) for _ in range(2))
    assert np.array_equal(first.act(1, IMAGES), second.act(1, IMAGES))
    assert 0.01 < np.abs(first.act(1, blob()[:, 10:16, 10:16]) - blob()[:, 10:16, 10:16]).max() < 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: image_rotations().act(1, np.zeros((2, 3, 4))), "square images"),
        (lambda: image_rotations().act(1, np.zeros((2, 9))), "flattened"),
        (lambda: image_reflection("diagonal"), "left-right"),
        (lambda: image_translations(5, 6, 2), "multiples of the step"),
        (lambda: image_translations(6, 6).act(1, np.zeros((1, 5, 6))), "act on images"),
        (lambda: image_scalings([0.0]), "positive"),
        (lambda: affine_images(np.zeros((1, 3, 3)), np.zeros((2, 2))), "invertible"),
        (lambda: illumination([]), "at least one"),
        (lambda: contrast_changes([1.0], [np.nan]), "finite"),
        (lambda: gamma_changes([2.0]).act(0, -np.ones((1, 2))), "from 0"),
        (lambda: warp(np.zeros((1, 3, 3)), np.zeros((2, 3, 4))), "displacement"),
        (lambda: smooth_displacement(2, 2, 1.0), "from 3 x 3"),
        (lambda: flattened(image_rotations(), (3, 3)).act(1, np.zeros((1, 8))), "rows of 9"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("group", "shape"),
    [
        (image_rotations(), (4, 4)),
        (image_reflection("up-down"), (4, 4)),
        (image_dihedral(), (4, 4)),
        (image_translations(4, 6, 2), (4, 6)),
        (image_turns(5), (4, 4)),
        (flattened(image_dihedral(), (4, 4)), (16,)),
        (set_permutations(3), (3, 2)),
        (graph_permutations(3), (3, 4)),
        (direct_product(cyclic(6), cyclic(6), "together"), (6,)),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_actions_can_be_saved_with_the_models_that_hold_them(group, shape):
    X = np.random.default_rng(1).standard_normal((2, *shape))
    loaded = pickle.loads(pickle.dumps(group))
    assert all(np.array_equal(loaded.act(i, X), group.act(i, X)) for i in range(group.order))

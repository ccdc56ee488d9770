"""Shapes, features, negatives and damage of images."""

import math

import numpy as np
import pytest
import torch

from pindown.learn.one_class._density import orientation_features
from pindown.learn.one_class._inputs import InputScaling, image_layout, paper_inputs
from pindown.learn.one_class._negatives import (
    IMAGE_KINDS,
    graded_pair,
    image_negatives,
    vector_negatives,
)
from pindown.learn.one_class.tuning import GRADIENT_AMOUNT, GRADIENT_FLOOR


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_features_by_a_loop_over_pixels():
    image = np.random.default_rng(0).random((9, 11))
    cells = [range(2, 9, 4), range(2, 11, 4)]
    votes = np.zeros((len(cells[0]), len(cells[1]), 8))
    for r in range(9):
        for c in range(11):
            across = image[r, c + 1] - image[r, c - 1] if 0 < c < 10 else 0.0
            down = image[r + 1, c] - image[r - 1, c] if 0 < r < 8 else 0.0
            length = max(math.hypot(across, down) - GRADIENT_FLOOR, 0.0)
            angle = (math.atan2(down, across) * 8 / (2 * math.pi)) % 8
            for i, y in enumerate(cells[0]):
                for j, x in enumerate(cells[1]):
                    window = math.exp(-((r - y) ** 2 + (c - x) ** 2) / 8) / (8 * math.pi)
                    if max(abs(r - y), abs(c - x)) <= 8:
                        votes[i, j, int(angle) % 8] += window * length * (1 - angle % 1)
                        votes[i, j, (int(angle) + 1) % 8] += window * length * (angle % 1)
    roots = np.sqrt(votes).ravel()
    size = np.linalg.norm(roots)
    expected = np.append(roots / size, GRADIENT_AMOUNT * math.log1p(size))
    found = orientation_features(torch.as_tensor(image)[None, None])[0].numpy()
    assert np.allclose(found, expected, atol=1e-10)


def test_flat_images_have_finite_features():
    assert torch.equal(orientation_features(torch.ones(2, 3, 8, 8)), torch.zeros(2, 33))


def test_every_kind_of_negative_differs_from_its_image():
    images = torch.rand(90, 2, 12, 10, generator=seeded())
    made, kinds = image_negatives(images, seeded(1))
    assert made.shape == images.shape
    assert sorted(kinds.unique().tolist()) == list(range(IMAGE_KINDS))
    assert ((made - images).abs().flatten(1).amax(1) > 0.01).all()
    assert torch.equal(made[kinds == 2], images[kinds == 2].flip(3))


def test_noise_of_vectors_is_not_narrower_than_the_spacing():
    x = torch.zeros(4000, 4)
    made, kinds = vector_negatives(x, seeded(), spacing=2.0)
    distances = made[kinds == 0].norm(dim=1)
    close, _ = vector_negatives(x, seeded(), spacing=0.0)
    assert distances.median() > 1.5 * close[kinds == 0].norm(dim=1).median()


def test_damage_is_graded():
    images = torch.rand(200, 1, 12, 12, generator=seeded())
    less, more = graded_pair(images, seeded(1))
    smaller = (less - images).flatten(1).norm(dim=1) <= (more - images).flatten(1).norm(dim=1) + 1e-6
    assert smaller.float().mean() > 0.95  # a second blur can undo a little of the first


def test_paper_inputs_are_padded_to_32_and_scaled():
    padded = paper_inputs(torch.ones(1, 1, 28, 28))
    assert padded.shape == (1, 1, 32, 32)
    assert padded[0, 0, :2].eq(-1).all()
    assert padded[0, 0, 2:30, 2:30].eq(1).all()


def test_rows_come_back_from_inputs():
    X = np.random.default_rng(0).random((5, 6, 7, 3)) * 255
    frame = InputScaling.of(X.reshape(5, -1), (6, 7, 3), False)
    assert np.allclose(frame.rows(frame.inputs(X.reshape(5, -1), torch.float64)), X.reshape(5, -1))
    big = InputScaling.of(np.zeros((2, 64 * 64)), (64, 64, 1), False)
    assert big.inputs(np.zeros((2, 64 * 64))).shape == (2, 1, 32, 32)
    with pytest.raises(ValueError, match="cannot be turned back"):
        big.rows(big.inputs(np.zeros((2, 64 * 64))))


@pytest.mark.parametrize("shape", [(5, 1, 9), (5, 9, 9, 9), (5, 2, 2, 2, 2)])
def test_shapes_that_are_no_images_are_refused(shape):
    with pytest.raises(ValueError, match=r"images|axes"):
        image_layout(np.zeros(shape), None)

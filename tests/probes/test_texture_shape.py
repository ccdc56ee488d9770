"""Drawn cues are what they say, and the bias of those who follow one cue is known."""

import math

import numpy as np
import pytest

from pindown.probes import CueImages, make_cue_images, shape_bias
from pindown.probes.texture_shape import BACKGROUND, SHAPES, TEXTURES


def by_outline(images):
    """Tell shapes by how much of their bounding box they fill, and whether its corners are filled."""
    classes = []
    for image in images[:, 0]:
        inside = image != BACKGROUND
        rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
        part = inside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        if part.mean() > 0.95:
            classes.append(SHAPES.index("square"))
        elif part[-1].mean() > 0.9:
            classes.append(SHAPES.index("triangle"))
        else:
            classes.append(SHAPES.index("disc" if part.mean() > 0.65 else "cross"))
    return np.array(classes)


def by_texture(images):
    """Tell textures by how often neighbours inside differ, downwards and across."""
    classes = []
    for image in images[:, 0]:
        inside = image != BACKGROUND
        down = np.mean((image[1:] != image[:-1])[inside[1:] & inside[:-1]])
        across = np.mean((image[:, 1:] != image[:, :-1])[inside[:, 1:] & inside[:, :-1]])
        second = (image[2:] == image[:-2])[inside[2:] & inside[:-2]]
        if across == 0:
            name = "horizontal stripes"
        elif down == 0:
            name = "vertical stripes"
        else:
            name = "noise" if second.any() else "checks"
        classes.append(TEXTURES.index(name))
    return np.array(classes)


@pytest.mark.parametrize("conflict", [False, True])
def test_cues_can_be_read_off_the_pixels(conflict):
    drawn = make_cue_images(120, conflict=conflict)
    np.testing.assert_array_equal(by_outline(drawn.images), drawn.shapes)
    np.testing.assert_array_equal(by_texture(drawn.images), drawn.textures)
    assert (drawn.conflict == conflict).all()
    assert len(set(drawn.shapes.tolist())) == len(set(drawn.textures.tolist())) == 4


def test_those_who_follow_one_cue():
    drawn = make_cue_images(100, conflict=True, random_state=1)
    assert shape_bias(by_outline, drawn).value == 1.0
    assert shape_bias(by_texture, drawn).value == 0.0
    half = shape_bias(np.where(np.arange(100) % 2, drawn.shapes, drawn.textures), drawn)
    assert half.value == 0.5 and half.standard_error == 0.05


def test_decisions_for_neither_are_left_out():
    drawn = make_cue_images(50, conflict=True)
    neither = [next(k for k in range(4) if k not in pair) for pair in zip(drawn.shapes, drawn.textures)]  # noqa: B905
    nothing = shape_bias(neither, drawn)
    assert math.isnan(nothing.value) and nothing.other == 50 and "unknown" in str(nothing)
    mixed = np.where(np.arange(50) < 10, drawn.shapes, neither)
    assert shape_bias(mixed, drawn).value == 1.0 and shape_bias(mixed, drawn).other == 40


def test_scores_and_class_maps():
    drawn = make_cue_images(30, conflict=True)
    assert shape_bias(np.eye(4)[drawn.shapes], drawn).value == 1.0
    names = {100: 0, 200: 1, 300: 2, 301: 3}
    back = {v: k for k, v in names.items()}
    fine = np.array([back[int(k)] for k in drawn.textures])
    assert shape_bias(fine, drawn, class_map=names).value == 0.0
    assert shape_bias(np.full(30, 7), drawn, class_map=names).other == 30


def test_images_without_conflict_do_not_count():
    a, b = make_cue_images(20, conflict=True), make_cue_images(20, conflict=False)
    both = CueImages(
        np.concatenate([a.images, b.images]),
        np.append(a.shapes, b.shapes),
        np.append(a.textures, b.textures),
    )
    found = shape_bias(both.textures, both)
    assert found.value == 0.0 and found.texture == 20


def test_refuses():
    drawn = make_cue_images(5, conflict=False)
    with pytest.raises(ValueError, match="conflict=True"):
        shape_bias(drawn.shapes, drawn)
    with pytest.raises(ValueError, match="one class per image"):
        shape_bias([0], make_cue_images(5, conflict=True))
    for settings in ({"n": 0}, {"n": 5, "size": 4}, {"n": 2.5}):
        with pytest.raises(ValueError, match="an integer"):
            make_cue_images(**{"conflict": True} | settings)


def test_standard_error_is_the_spread_of_repeated_experiments():
    drawn, rng = make_cue_images(120, conflict=True, size=12), np.random.default_rng(0)
    neither = np.full(120, -1)
    found = []
    for _ in range(300):
        kind = rng.choice(3, 120, p=[0.35, 0.15, 0.5])
        found.append(shape_bias(np.choose(kind, [drawn.shapes, drawn.textures, neither]), drawn))
    spread = np.std([run.value for run in found], ddof=1)
    assert np.mean([run.standard_error for run in found]) == pytest.approx(spread, rel=0.15)


def test_modules_for_colour_images_of_any_size():
    """A module that follows texture, grey images in three channels; it stays in its mode."""
    torch = pytest.importorskip("torch")

    class ByTexture(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.same = torch.nn.Conv2d(3, 3, 1, bias=False)
            torch.nn.init.dirac_(self.same.weight)

        def forward(self, images):
            assert images.shape[1:] == (3, 96, 96) and images.dtype == torch.float32
            assert not self.training and (images[:, 0] == images[:, 2]).all()
            classes = by_texture(self.same(images)[:, :1].numpy())
            return torch.nn.functional.one_hot(torch.from_numpy(classes), 4).float()

    drawn, module = make_cue_images(80, conflict=True, size=96, random_state=2), ByTexture()
    found = shape_bias(module, drawn)
    assert found.value == 0.0 and found.texture == 80 and module.training

r"""Texture or shape: which cue does a classifier follow where the two disagree?

An image with conflicting cues has the outline of one class and the texture of another. Over the images
on which a classifier names either,

.. math::
    \text{shape bias} = \frac{\#\text{shape decisions}}
                             {\#\text{shape decisions} + \#\text{texture decisions}} .

Here outlines and textures are drawn, so that nothing has to be downloaded; the measure takes any images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.probes.tuning import DIFFERENTIATED_ROWS, MIN_IMAGE_SIZE, OUTLINE_SCALES
from pindown.torch_modules import is_module, layer_outputs
from pindown.validation import integer

SHAPES = ("disc", "square", "triangle", "cross")
TEXTURES = ("horizontal stripes", "vertical stripes", "checks", "noise")
BACKGROUND = 0.5  # textures are 0 and 1, so the outline can be read off


@dataclass(frozen=True, eq=False)
class CueImages:
    """Images whose outline and texture are known.

    Attributes:
        images: (n, 1, size, size), from 0 to 1.
        shapes: Index into :data:`SHAPES`, (n,).
        textures: Index into :data:`TEXTURES`, (n,).
    """

    images: Array = field(repr=False)
    shapes: NDArray[np.int64]
    textures: NDArray[np.int64]

    @property
    def conflict(self) -> NDArray[np.bool_]:
        """Where outline and texture say different classes, (n,)."""
        return self.shapes != self.textures

    def __str__(self) -> str:
        n, size = len(self.images), self.images.shape[-1]
        return f"{n} images of size {size}, {self.conflict.sum()} conflicting"


@dataclass(frozen=True)
class ShapeBias:
    """How often shape won.

    Attributes:
        value: Share of shape among the decisions for either cue; NaN if there was none.
        shape: Decisions for the shape's class.
        texture: Decisions for the texture's class.
        other: Decisions for neither.
        kind: ``"estimate"``.
    """

    value: float
    shape: int
    texture: int
    other: int
    kind: Kind = "estimate"

    @property
    def standard_error(self) -> float:
        """Of the share, over images; NaN if no image was decided for either cue."""
        n = self.shape + self.texture
        return math.sqrt(self.value * (1.0 - self.value) / n) if n else math.nan

    def __str__(self) -> str:
        counts = f"{self.shape} shape, {self.texture} texture, {self.other} neither"
        if math.isnan(self.value):
            return f"shape bias unknown: no decision for either cue ({counts})"
        return f"shape bias {self.value:.3f} +- {self.standard_error:.3f} ({counts}; estimate)"


def make_cue_images(
    n: int, *, conflict: bool, size: int = 32, random_state: int | np.random.Generator = 0
) -> CueImages:
    """Draw outlines filled with textures; classes are shared by :data:`SHAPES` and :data:`TEXTURES`.

    Args:
        n: How many.
        conflict: Whether the texture is of another class than the shape, or of the same.
        size: Pixels of a side.
        random_state: Seed or generator.

    Example:
        >>> drawn = make_cue_images(8, conflict=True, size=16)
        >>> drawn.images.shape, bool(drawn.conflict.all())
        ((8, 1, 16, 16), True)

    Geirhos et al. 2019, "ImageNet-trained CNNs are biased towards texture", with photographs;
    Lecture course, section on texture and shape.
    """
    n, size = integer("n", n), integer("size", size, least=MIN_IMAGE_SIZE)
    rng, k = np.random.default_rng(random_state), len(SHAPES)
    shapes = rng.integers(0, k, n)
    textures = (shapes + rng.integers(1, k, n)) % k if conflict else shapes.copy()
    images = np.full((n, 1, size, size), BACKGROUND)
    for image, shape, texture in zip(images[:, 0], shapes, textures, strict=True):
        inside = _outline(int(shape), size, rng)
        image[inside] = _texture(int(texture), size, rng)[inside]
    return CueImages(images, shapes, textures)


def shape_bias(
    decisions: ArrayLike | Callable[[Array], ArrayLike],
    stimuli: CueImages,
    *,
    class_map: Mapping[Any, int] | None = None,
) -> ShapeBias:
    """Measure how often a classifier follows the shape where shape and texture disagree.

    Args:
        decisions: The class of each image, (n,), a function from images to classes or to scores
            (n, classes), or a torch module, which sees as many channels as its first convolution takes.
        stimuli: The images and what their cues say; images without conflict are left out.
        class_map: Map from the classifier's classes to those of the cues, such as a thousand to four;
            classes that are not in it count as neither.

    Raises:
        ValueError: If no image conflicts, or there is not one decision per image.

    Example:
        >>> drawn = make_cue_images(40, conflict=True, size=16)
        >>> shape_bias(drawn.shapes, drawn).value, shape_bias(drawn.textures, drawn).value
        (1.0, 0.0)

    Geirhos et al. 2019; Lecture course, section on texture and shape.
    """
    if is_module(decisions):
        given: Any = _scores(decisions, stimuli.images)
    else:
        given = decisions(stimuli.images) if callable(decisions) else decisions
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    answers = np.asarray(given)
    if answers.ndim == 2 and answers.dtype.kind == "f":
        answers = answers.argmax(axis=1)
    if answers.shape != stimuli.shapes.shape:
        raise ValueError(f"decisions must hold one class per image, {stimuli.shapes.shape}; got "
                         f"{answers.shape}.")  # fmt: skip
    conflict = stimuli.conflict
    if not conflict.any():
        raise ValueError("no image has conflicting cues; draw them with conflict=True.")
    if class_map is not None:
        answers = np.array([class_map.get(answer, -1) for answer in answers.tolist()])
    by_shape = int(np.count_nonzero((answers == stimuli.shapes) & conflict))
    by_texture = int(np.count_nonzero((answers == stimuli.textures) & conflict))
    either = by_shape + by_texture
    value = by_shape / either if either else math.nan
    return ShapeBias(value, by_shape, by_texture, int(conflict.sum()) - either)


def _scores(module: Any, images: Array) -> Any:
    """Return what a module makes of grey images, in as many channels as it takes."""
    from pindown.extras import torch

    first = next((part for part in module.modules() if isinstance(part, torch.nn.Conv2d)), None)
    channels = 1 if first is None else first.in_channels
    seen = np.repeat(images, channels, axis=1)
    return layer_outputs(module, seen, [""], together=DIFFERENTIATED_ROWS)[""]


def _outline(shape: int, size: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return the pixels inside an outline of random place and scale."""
    scale = rng.uniform(*OUTLINE_SCALES)
    shift = rng.uniform(-(1.0 - scale), 1.0 - scale, 2)
    grid = (2.0 * np.arange(size) + 1.0) / size - 1.0
    v, u = np.meshgrid((grid - shift[0]) / scale, (grid - shift[1]) / scale, indexing="ij")
    if SHAPES[shape] == "disc":
        return np.asarray(u * u + v * v <= 1.0)
    if SHAPES[shape] == "square":
        return np.asarray(np.maximum(np.abs(u), np.abs(v)) <= 0.85)
    if SHAPES[shape] == "triangle":
        return np.asarray((v <= 0.85) & (v >= -0.95 + 2.0 * np.abs(u)))
    bars = (np.abs(u) <= 0.3) | (np.abs(v) <= 0.3)
    return np.asarray(bars & (np.maximum(np.abs(u), np.abs(v)) <= 1.0))


def _texture(texture: int, size: int, rng: np.random.Generator) -> Array:
    """Return a patch of zeros and ones with stripes of two pixels, from a random phase."""
    if TEXTURES[texture] == "noise":
        return rng.integers(0, 2, (size, size)).astype(np.float64)
    rows, columns = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    down, across = (rows + rng.integers(4)) // 2 % 2, (columns + rng.integers(4)) // 2 % 2
    if TEXTURES[texture] == "horizontal stripes":
        return down.astype(np.float64)
    if TEXTURES[texture] == "vertical stripes":
        return across.astype(np.float64)
    return (down ^ across).astype(np.float64)

r"""How rows become the inputs of the networks: shapes, scales and limits, learned from training data.

Vectors are standardised feature by feature, :math:`z = (x - m) / s`; a feature that never changes is
measured in its own size, so a change of it stays visible. For the networks they may then be bent to look
normal: a few quantiles of each feature are sent to those of the standard normal distribution, straight
lines in between and beyond; then mean and variance are brought to 0 and 1. Networks see a long tail
stretched over many units where most rows lie, instead of all rows in one spot. Being piecewise linear,
the map is a ReLU network too:

.. math:: v(x) = v_0 + s_0 (x - k_0) + \sum_{i \ge 1} (s_i - s_{i-1}) \, \rho(x - k_i) .

Images are brought to [0, 1] by one range for all pixels, and to at most 32 pixels a side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, pad

from pindown.affine import Array
from pindown.learn._inputs import MAX_CHANNELS, mean_and_deviation, n_axes
from pindown.learn.one_class.tuning import (
    MAX_PIXELS,
    MAX_SIDE,
    MIN_DISTINCT_VALUES,
    MIN_KNOT_DISTANCE,
    MIN_SIDE,
    PRINTED_SIDE,
    QUANTILE_LEVELS,
)
from pindown.validation import is_integer

# Standard deviations: squares of more do not fit into single precision sums.
MAX_INPUT = 1e30
_LEVELS = np.array(QUANTILE_LEVELS)


@dataclass(frozen=True)
class InputScaling:
    """What the networks see of a row.

    Attributes:
        centre: Means of the features, or the least pixel.
        scale: Their standard deviations, or the range of the pixels.
        image_shape: (height, width, channels) of one row, or () for vectors.
        channels_first: Whether a row holds its channels first.
        bending: What happens to standardised features on their way to the networks, or None.
    """

    centre: Array
    scale: Array
    image_shape: tuple[int, ...] = ()
    channels_first: bool = False
    bending: Bending | None = None

    @classmethod
    def of(
        cls, rows: Array, image_shape: tuple[int, ...], channels_first: bool, bent: bool = False
    ) -> InputScaling:
        """Learn shapes and scales from training rows, (n, d); vectors are bent if asked for."""
        if image_shape:
            low, high = float(rows.min()), float(rows.max())
            if not np.isfinite(high - low):
                raise ValueError(
                    f"pixels from {low:.3g} to {high:.3g} have no finite range; rescale them."
                )
            return cls(np.array([low]), np.array([(high - low) or 1.0]), image_shape, channels_first)
        centre, deviation = mean_and_deviation(rows)
        largest = np.abs(rows).max(axis=0)
        scale = np.where(deviation > 0, deviation, np.where(largest > 0, largest, 1.0))
        straight = cls(centre, scale)
        return replace(straight, bending=Bending.of(straight.scaled(rows))) if bent else straight

    @property
    def is_image(self) -> bool:
        """Whether rows are images."""
        return bool(self.image_shape)

    @property
    def shape(self) -> list[int]:
        """Shape of one input of the networks: [features], or [channels, height, width]."""
        if not self.is_image:
            return [len(self.centre)]
        height, width, channels = self.image_shape
        return [channels, min(height, MAX_SIDE), min(width, MAX_SIDE)]

    def scaled(self, rows: Array) -> Array:
        """Return standardised rows, (n, d), in float64."""
        with np.errstate(over="ignore"):
            moved = rows - self.centre
            if np.isfinite(moved).all():
                return np.clip(moved / self.scale, -MAX_INPUT, MAX_INPUT)
            # The largest numbers overflow in the difference, half of them does not.
            halves = (rows / 2 - self.centre / 2) / self.scale
            return np.clip(2 * halves, -MAX_INPUT, MAX_INPUT)

    def inputs(self, rows: Array, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return what the networks take: (n, d), or (n, channels, height, width) in [0, 1]."""
        scaled = self.scaled(rows)
        if self.bending is not None:
            scaled = np.clip(self.bending(scaled), -MAX_INPUT, MAX_INPUT)
        values = torch.as_tensor(scaled, dtype=dtype)
        if not self.is_image:
            return values
        height, width, channels = self.image_shape
        if self.channels_first:
            images = values.reshape(-1, channels, height, width)
        else:
            turned = values.reshape(-1, height, width, channels).permute(0, 3, 1, 2)
            # With one channel both layouts are "contiguous", but convolutions round them differently.
            images = turned.clone(memory_format=torch.contiguous_format)
        _, small_height, small_width = self.shape
        if (small_height, small_width) != (height, width):
            images = adaptive_avg_pool2d(images, (small_height, small_width))
        return images

    def rows(self, inputs: Tensor) -> Array:
        """Turn inputs of the networks back into rows; images must not have been made smaller.

        Raises:
            ValueError: If images are larger than the networks' inputs.
        """
        return self.straight(inputs) * self.scale + self.centre

    def straight(self, inputs: Tensor) -> Array:
        """Return the standardised rows that inputs come from, on the same condition."""
        values = inputs.detach()
        if self.is_image:
            if self.shape[1:] != list(self.image_shape[:2]):
                raise ValueError(
                    f"images of more than {MAX_SIDE} pixels a side are made smaller for the "
                    f"networks and cannot be turned back; got {self.image_shape}."
                )
            if not self.channels_first:
                values = values.permute(0, 2, 3, 1)
        scaled = values.reshape(len(values), -1).double().numpy()
        if self.bending is not None:
            scaled = self.bending.back(scaled)
        return scaled


def paper_inputs(images: Tensor) -> Tensor:
    """Return images in [-1, 1] on 32 x 32 pixels, padded with the darkest value, as in the source."""
    height, width = images.shape[2:]
    above, left = (PRINTED_SIDE - height) // 2, (PRINTED_SIDE - width) // 2
    margins = (left, PRINTED_SIDE - width - left, above, PRINTED_SIDE - height - above)
    return pad(images * 2 - 1, margins, value=-1.0)


def image_layout(X: Any, image_shape: Any) -> tuple[tuple[int, ...], bool]:
    """Return (height, width, channels) and whether channels come first; () for vectors.

    Args:
        X: The data, of 2, 3 or 4 axes.
        image_shape: What the user said one row is, (h, w), (h, w, c) or (c, h, w), or None.

    Raises:
        ValueError: If the shapes do not fit, or cannot be told apart.

    Example:
        >>> image_layout(np.zeros((5, 28, 28)), None), image_layout(np.zeros((5, 3, 32, 32)), None)
        (((28, 28, 1), False), ((32, 32, 3), True))
        >>> image_layout(np.zeros((5, 7)), None)
        ((), False)
    """
    shape = tuple(np.shape(X)[1:])
    if image_shape is not None:
        given = _given_shape(image_shape)
        if len(shape) == 1 and int(np.prod(given)) != shape[0]:
            raise ValueError(f"image_shape {given} holds {np.prod(given)} values; rows hold {shape[0]}.")
        if len(shape) > 1 and shape != given:
            raise ValueError(f"image_shape is {given} but the images in X have shape {shape}.")
        shape = given
    if len(shape) == 1:
        return (), False
    if len(shape) == 2:
        return _large_enough((*shape, 1)), False
    if len(shape) != 3:
        raise ValueError(
            f"X must have 2 axes (rows of features), 3 (images) or 4 (images with channels); "
            f"got {1 + len(shape)}. Found array with dim {1 + len(shape)}."
        )
    if all(MIN_SIDE <= side <= MAX_CHANNELS for side in (shape[0], shape[2])):
        raise ValueError(
            f"images of shape {shape} may have their channels first or last; pad the short side, or "
            "give one channel at a time."
        )
    wide = min(shape[1:]) >= MIN_SIDE  # enough for the sides of an image with channels first
    if shape[2] <= MAX_CHANNELS and not (shape[0] < MIN_SIDE and wide):
        return _large_enough(shape), False
    if shape[0] <= MAX_CHANNELS:
        return _large_enough((shape[1], shape[2], shape[0])), True
    raise ValueError(
        f"images of shape {shape} have no axis of at most {MAX_CHANNELS} channels, first or last."
    )


def _given_shape(image_shape: Any) -> tuple[int, ...]:
    """Return the image_shape that the user named, checked."""
    given = tuple(image_shape) if isinstance(image_shape, Sequence | np.ndarray) else ()
    if len(given) not in (2, 3) or not all(is_integer(n) for n in given):
        raise ValueError(
            f"image_shape must be (height, width), (height, width, channels) or "
            f"(channels, height, width) of positive integers; got {image_shape!r}."
        )
    return tuple(int(n) for n in given)


def layout_text(shape: tuple[int, ...], channels_first: bool) -> str:
    """Return a layout in words.

    >>> layout_text((32, 48, 3), True), layout_text((8, 8, 1), False)
    ('32 x 48 with 3 channels first', '8 x 8')
    """
    height, width, channels = shape
    if channels == 1:
        return f"{height} x {width}"
    return f"{height} x {width} with {channels} channels {'first' if channels_first else 'last'}"


def _large_enough(shape: tuple[int, ...]) -> tuple[int, ...]:
    if min(shape[:2]) < MIN_SIDE:
        raise ValueError(
            f"images need at least {MIN_SIDE} pixels a side; got {shape[0]} x {shape[1]}: "
            "preset 'tabular' takes smaller ones as rows of numbers."
        )
    if math.prod(shape) > MAX_PIXELS:
        raise ValueError(f"images of {math.prod(shape):,} numbers are too large; make them smaller.")
    return shape


@dataclass(frozen=True, eq=False)
class Bending:
    """Increasing piecewise-linear maps.

    Attributes:
        knots: Ascending places, (d, k).
        values: Their ascending images, (d, k).
    """

    knots: Array
    values: Array

    @classmethod
    def of(cls, rows: Array) -> Bending:
        """Learn the maps from standardised rows, (n, d); a feature with few values stays as it is."""
        shape = (rows.shape[1], len(_LEVELS))
        knots, values = np.empty(shape), np.empty(shape)
        for j, column in enumerate(rows.T):
            knots[j], values[j] = _straight() if _is_code(column) else _bent(column)
        return cls(knots, values)

    def __call__(self, rows: Array) -> Array:
        """Return bent rows, (n, d)."""
        return _through(rows, self.knots, self.values)

    def back(self, rows: Array) -> Array:
        """Return the rows that are bent to ``rows``.

        Example:
            >>> bending = Bending.of(np.exp(np.linspace(-2, 2, 50))[:, None])
            >>> bool(np.allclose(bending.back(bending(np.array([[0.1], [30.0]]))), [[0.1], [30.0]]))
            True
        """
        return _through(rows, self.values, self.knots)

    @property
    def slopes(self) -> Array:
        """Slopes between neighbouring knots, (d, k - 1); the outer ones go on beyond the ends."""
        return np.diff(self.values, axis=1) / np.diff(self.knots, axis=1)


def _is_code(column: Array) -> bool:
    return len(np.unique(column)) < MIN_DISTINCT_VALUES


def _straight() -> tuple[Array, Array]:
    places = ndtri(_LEVELS)
    return places, places


def _bent(column: Array) -> tuple[Array, Array]:
    quantiles = np.quantile(column, _LEVELS)
    knots, values = [quantiles[0]], [[ndtri(_LEVELS[0])]]
    for place, level in zip(quantiles[1:], ndtri(_LEVELS[1:]), strict=True):
        if place - knots[-1] > MIN_KNOT_DISTANCE:
            knots.append(place)
            values.append([])
        values[-1].append(level)
    if len(knots) < 2:
        return _straight()
    # Several levels at one place: their mean. Fewer places than levels: go on with the last slope.
    places, images = np.array(knots), np.array([np.mean(levels) for levels in values])
    missing = 1 + np.arange(len(_LEVELS) - len(places))
    step = (images[-1] - images[-2]) / (places[-1] - places[-2])
    places = np.concatenate([places, places[-1] + missing])
    images = np.concatenate([images, images[-1] + step * missing])
    seen = _through(column[:, None], places[None], images[None])
    return places, (images - seen.mean()) / seen.std()


def _through(rows: Array, places: Array, images: Array) -> Array:
    made = np.empty_like(rows, dtype=float)
    for j, (k, v) in enumerate(zip(places, images, strict=True)):
        x = rows[:, j]
        inside = np.interp(x, k, v)
        below = v[0] + (x - k[0]) * ((v[1] - v[0]) / (k[1] - k[0]))
        above = v[-1] + (x - k[-1]) * ((v[-1] - v[-2]) / (k[-1] - k[-2]))
        made[:, j] = np.where(x < k[0], below, np.where(x > k[-1], above, inside))
    return made


def flat(X: Any) -> Any:
    """Return images as rows and leave everything else as it is.

    Raises:
        ValueError: If values are masked: what lies under a mask would be taken for data.
    """
    if np.ma.is_masked(X):
        hidden = int(np.sum(X.mask))
        raise ValueError(f"X has {hidden:,} masked values; fill them, or leave their rows out.")
    if n_axes(X) in (3, 4):
        X = np.asarray(X)
        return X.reshape(len(X), math.prod(X.shape[1:]))
    return X

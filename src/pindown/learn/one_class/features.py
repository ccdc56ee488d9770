r"""Orientation histograms of images: in them, distances follow strokes and edges instead of pixels.

At each pixel the gradient :math:`g` votes for its two nearest of eight directions with weight
:math:`\lVert g \rVert`. Votes are pooled by a Gaussian window on a grid of four pixels; the square roots
of the pooled votes, divided by their norm, are the features. The nearest neighbours of an image in them
are images with the same strokes at about the same place.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

DIRECTIONS = 8
CELL = 4  # pixels between two cells
_WINDOW = CELL / 2  # standard deviation of the pooling window
# Gradients of less than this share of the range of the pixels are noise and grain, not edges.
FLOOR = 0.1
# Weight of how much gradient there is in all: directions alone take pure noise for an average image.
AMOUNT = 2.0


def orientation_features(images: Tensor) -> Tensor:
    """Return the features of images, (n, cells * 8 + 1): a row of norm one, then its size.

    Args:
        images: (n, channels, height, width), on the range 0 to 1.

    Example:
        A vertical edge has gradients in the horizontal direction only:

        >>> image = torch.zeros(1, 1, 8, 8)
        >>> image[..., 4:] = 1
        >>> votes = orientation_features(image)[:, :-1].reshape(-1, 8).sum(0)
        >>> (votes > 0).tolist()
        [True, False, False, False, False, False, False, False]

    Dalal and Triggs 2005 is the source of the features; they are no part of Wolf et al. 2019.
    """
    horizontal = pad(images[..., 2:] - images[..., :-2], (1, 1, 0, 0))
    vertical = pad(images[..., 2:, :] - images[..., :-2, :], (0, 0, 1, 1))
    length = (torch.hypot(horizontal, vertical) - FLOOR).clamp_min(0.0)
    angle = torch.atan2(vertical, horizontal) * (DIRECTIONS / (2 * math.pi))
    below = torch.floor(angle)
    upper_share = angle - below
    votes = []
    for direction in range(DIRECTIONS):
        first = (below - direction).remainder(DIRECTIONS) == 0
        second = (below + 1 - direction).remainder(DIRECTIONS) == 0
        votes.append((length * (first * (1 - upper_share) + second * upper_share)).sum(1))
    pooled = _pooled(torch.stack(votes, 1))
    features = pooled.clamp_min(0).sqrt().permute(0, 2, 3, 1).flatten(1)
    size = features.norm(dim=1, keepdim=True)
    return torch.cat([features / size.clamp_min(1e-12), AMOUNT * torch.log1p(size)], 1)


def _pooled(votes: Tensor) -> Tensor:
    """Pool by a separable Gaussian window, one value for every four pixels."""
    height, width = votes.shape[2:]
    return _window(height, votes) @ votes @ _window(width, votes).T


def _window(length: int, like: Tensor) -> Tensor:
    """Return the weights of all pixels of a side for each cell, (cells, pixels)."""
    centres = torch.arange(min(CELL // 2, length - 1), length, CELL, dtype=like.dtype)
    offsets = torch.arange(length, dtype=like.dtype) - centres[:, None]
    weights = torch.exp(-0.5 * (offsets / _WINDOW) ** 2) / (_WINDOW * math.sqrt(2 * math.pi))
    return torch.where(offsets.abs() <= 2 * CELL, weights, torch.zeros_like(weights))

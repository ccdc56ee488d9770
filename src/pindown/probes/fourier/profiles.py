r"""Where in the spectrum a mask, or the energy of images, lies: by radius and by direction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.probes.fourier.filters import checked_mask

_DIRECTIONS = 8  # sectors of the half plane: opposite frequencies are one


def frequency_radius(shape: tuple[int, ...]) -> Array:
    """Return for every frequency its length, in cycles per image.

    >>> frequency_radius((4,)).tolist()
    [0.0, 1.0, 2.0, 1.0]
    """
    steps = [np.fft.fftfreq(size, 1.0 / size) for size in shape]
    return np.asarray(np.sqrt(sum(step**2 for step in np.meshgrid(*steps, indexing="ij"))))


@dataclass(frozen=True, eq=False)
class FrequencyProfile:
    r"""A mask by radius and by direction, beside the energy of images.

    Attributes:
        radius: Rings, whole numbers of cycles per image (r,).
        mask: Mean weight of the mask in each ring (r,).
        energy: Share of the images' energy in each ring (r,), the constant frequency left out of the
            sum; NaN without images.
        passed: Share of it that passes the mask, :math:`\sum_k M_k^2 |Fx_k|^2`, in each ring (r,).
        direction: Middles of the sectors, degrees of the wave's normal against the second axis (s,).
        angular: Mean weight of the mask in each sector, the constant frequency left out (s,).
        centroid: Mean radius, weighted by the mask.
        energy_centroid: Mean radius, weighted by the energy that passes; NaN without images.
        entropy: Entropy of ``angular`` over its largest value: 1 if no direction is preferred.
    """

    radius: Array
    mask: Array
    energy: Array = field(repr=False)
    passed: Array = field(repr=False)
    direction: Array = field(repr=False)
    angular: Array = field(repr=False)
    centroid: float
    energy_centroid: float
    entropy: float
    kind: str = "exact"

    def __str__(self) -> str:
        return (
            f"mean frequency {self.centroid:.3g} cycles per image (by energy "
            f"{self.energy_centroid:.3g}), evenness over directions {self.entropy:.3g} of 1"
        )


def frequency_profile(mask: ArrayLike, X: ArrayLike | None = None, *, axes: int = 2) -> FrequencyProfile:
    """Describe a mask by rings and sectors of the frequency plane.

    Args:
        mask: Mask (H, W); several (n, H, W) are averaged.
        X: Images (..., H, W) whose energy stands beside.
        axes: 2 for images, 1 for signals (then there is one direction).

    Returns:
        A :class:`FrequencyProfile`.

    Example:
        >>> profile = frequency_profile([[0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
        >>> profile.centroid, profile.direction[profile.angular > 0].tolist(), profile.entropy
        (1.0, [0.0], 0.0)

    Lecture course, section on essential frequencies (energy distributions of masks).
    """
    weights = checked_mask(mask, axes)
    shape = weights.shape[-axes:]
    radius = frequency_radius(shape)
    ring = np.rint(radius).astype(np.int64).ravel()
    energy, passed = _energies(X, weights, shape)
    mean = weights.reshape(-1, *shape).mean(axis=0)
    counts = np.bincount(ring)
    total = float(energy.sum())
    unit = total if total > 0 else float("nan")
    middles, angular = _sectors(mean, radius)
    return FrequencyProfile(
        radius=np.arange(len(counts), dtype=np.float64),
        mask=np.bincount(ring, mean.ravel()) / counts,
        energy=np.asarray(np.bincount(ring, energy.ravel()) / unit, dtype=np.float64),
        passed=np.asarray(np.bincount(ring, passed.ravel()) / unit, dtype=np.float64),
        direction=middles, angular=angular,
        centroid=_mean(radius, mean), energy_centroid=_mean(radius, passed),
        entropy=_evenness(angular),
    )  # fmt: skip


def _energies(X: ArrayLike | None, weights: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the mean energy at each frequency and what passes; the constant one is not counted."""
    if X is None:
        return np.zeros(shape), np.zeros(shape)
    images = np.asarray(X, dtype=np.float64)
    if images.shape[-len(shape) :] != shape or images.size == 0:
        raise ValueError(f"X must hold images of shape {shape}, as the mask; got {images.shape}.")
    last = tuple(range(-len(shape), 0))
    power: Any = np.abs(np.fft.fftn(images, axes=last, norm="ortho")) ** 2
    power = np.where(frequency_radius(shape) > 0, power, 0.0)
    masks = weights
    if weights.ndim > len(shape) and images.ndim > weights.ndim:  # one mask for an image's channels
        masks = weights.reshape(len(weights), *(1,) * (images.ndim - weights.ndim), *shape)
    if weights.ndim > len(shape) and len(weights) != len(images):
        raise ValueError(f"X must hold one image for each of {len(weights)} masks; got {len(images)}.")
    through = masks**2 * power
    everything, passed = (part.reshape(-1, *shape).mean(axis=0) for part in (power, through))
    return everything.astype(np.float64), passed.astype(np.float64)


def _sectors(mask: Array, radius: Array) -> tuple[Array, Array]:
    if mask.ndim == 1:
        return np.zeros(1), np.array([mask[1:].mean() if len(mask) > 1 else 0.0])
    rows, columns = (np.fft.fftfreq(size, 1.0 / size) for size in mask.shape)
    angle = np.degrees(np.arctan2(rows[:, None], columns[None, :])) % 180.0
    width = 180.0 / _DIRECTIONS
    sector = (np.rint(angle / width).astype(np.int64) % _DIRECTIONS)[radius > 0]
    counts = np.maximum(np.bincount(sector, minlength=_DIRECTIONS), 1)
    sums = np.bincount(sector, mask[radius > 0], minlength=_DIRECTIONS)
    return np.linspace(0.0, 180.0, _DIRECTIONS, endpoint=False), sums / counts


def _mean(values: Array, weights: Array) -> float:
    total = float(weights.sum())
    return float((values * weights).sum() / total) if total > 0 else float("nan")


def _evenness(angular: Array) -> float:
    total = float(angular.sum())
    if total <= 0 or len(angular) < 2:
        return float("nan") if total <= 0 else 1.0
    shares = angular[angular > 0] / total
    return abs(float((shares * np.log(shares)).sum())) / float(np.log(len(angular)))

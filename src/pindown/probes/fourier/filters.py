r"""Masks over frequencies: what an image is behind one, where in the spectrum it lies, its picture.

A mask M gives every frequency k a weight in [0, 1]; behind it an image is

.. math:: \bar x = F^{-1}(M \odot F x), \qquad M(-k) = M(k),

and the symmetry is what keeps :math:`\bar x` real. Frequencies are laid out as NumPy's ``fft2`` does:
the constant one first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.extras import require
from pindown.probes.tuning import CLOSED_WEIGHT, DIRECTIONS, KEPT_SHARE, SHOWN_IMAGES
from pindown.validation import integer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pindown.probes.fourier.masks import FourierMask


_SAME = 1e-9  # weights of k and -k may differ by this: a mask in float32 and back


def mirrored(mask: ArrayLike, axes: int = 2) -> NDArray[np.float64]:
    """Return the mask at the opposite frequencies, :math:`M(-k)`, over the last ``axes`` axes.

    >>> mirrored([0.0, 1.0, 2.0, 3.0], axes=1).tolist()
    [0.0, 3.0, 2.0, 1.0]
    """
    values = np.asarray(mask, dtype=np.float64)
    last = tuple(range(-axes, 0))
    return np.asarray(np.roll(np.flip(values, last), 1, last))


def is_symmetric(mask: ArrayLike, axes: int = 2) -> bool:
    """Return whether opposite frequencies have equal weights, so that images stay real.

    >>> is_symmetric([1.0, 0.5, 0.0, 0.5], axes=1), is_symmetric([1.0, 0.5, 0.0, 0.0], axes=1)
    (True, False)
    """
    values = np.asarray(mask, dtype=np.float64)
    return bool(np.abs(values - mirrored(values, axes)).max(initial=0.0) <= _SAME)


def apply_mask(X: ArrayLike, mask: ArrayLike, axes: int = 2) -> Array:
    """Return images behind a mask: (..., H, W) -> (..., H, W).

    Args:
        X: Images, or signals with ``axes=1``.
        mask: One mask (H, W), or any number of them that broadcasts against X.
        axes: How many of the last axes are transformed.

    Raises:
        ValueError: If shapes do not fit, numbers are not finite, or the mask is not symmetric or not
            within [0, 1].

    Example:
        The constant frequency alone leaves the mean.

        >>> apply_mask([[1.0, 2.0], [3.0, 6.0]], [[1.0, 0.0], [0.0, 0.0]]).tolist()
        [[3.0, 3.0], [3.0, 3.0]]
    """
    images, weights = np.asarray(X, dtype=np.float64), checked_mask(mask, axes)
    if images.ndim < axes or images.shape[-axes:] != weights.shape[-axes:]:
        raise ValueError(f"the mask, {weights.shape}, must end as X does, {images.shape}.")
    if not np.isfinite(images).all():
        raise ValueError("X must be finite; it holds NaN or infinity.")
    last = tuple(range(-axes, 0))
    return np.asarray(np.fft.ifftn(np.fft.fftn(images, axes=last) * weights, axes=last).real)


def checked_mask(mask: ArrayLike, axes: int = 2) -> Array:
    """Return a mask as floats, or refuse one that is no real filter."""
    weights = np.asarray(mask, dtype=np.float64)
    if weights.ndim < axes or weights.size == 0:
        raise ValueError(f"a mask has at least {axes} axes and one frequency; got {weights.shape}.")
    if not (np.isfinite(weights).all() and weights.min() >= 0.0 and weights.max() <= 1.0):
        raise ValueError("a mask holds weights from 0 to 1; some are outside, or NaN.")
    if not is_symmetric(weights, axes):
        raise ValueError(
            "a mask must have equal weights at opposite frequencies, else images are complex; "
            "take (mask + mirrored(mask)) / 2."
        )
    return weights


def kept_frequencies(mask: ArrayLike, axes: int = 2) -> NDArray[np.bool_]:
    r"""Return which frequencies a mask keeps: those above half of its largest weight.

    The penalty draws all weights below 1, so :math:`1 - M` would let the kept ones pass as well. A mask
    without any weight of 0.05 has closed and keeps none.

    >>> kept_frequencies([0.6, 0.2, 0.1, 0.2], axes=1).tolist()
    [True, False, False, False]
    """
    weights = np.asarray(mask, dtype=np.float64)
    largest = weights.max(axis=tuple(range(-axes, 0)), keepdims=True)
    return np.asarray((weights > KEPT_SHARE * largest) & (largest >= CLOSED_WEIGHT))


def random_masks(
    like: ArrayLike, n: int, *, axes: int = 2, random_state: int | np.random.Generator = 0
) -> NDArray[np.bool_]:
    """Return random symmetric masks that keep as many frequencies as a given one, (n, ...).

    Frequencies that are their own opposites, such as the constant one, and pairs of opposites are drawn
    apart, so that the number is equal exactly.

    Args:
        like: A mask of zeros and ones; one grid of frequencies.
        n: How many.
        axes: 2 for images, 1 for signals.
        random_state: Seed or generator.

    Example:
        >>> masks = random_masks([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0], 3, axes=1)
        >>> masks.sum(axis=1).tolist(), all(is_symmetric(m, axes=1) for m in masks)
        ([4, 4, 4], True)
    """
    given = checked_mask(like, axes)
    if given.ndim != axes or not np.isin(given, (0.0, 1.0)).all():
        raise ValueError(f"like must be one mask of zeros and ones with {axes} axes.")
    n = integer("n", n)
    rng = np.random.default_rng(random_state)
    own = np.arange(given.size)
    opposite = mirrored(own.reshape(given.shape), axes).astype(np.int64).ravel()
    kept = given.ravel() > 0
    single, first = own == opposite, own < opposite
    masks = np.zeros((n, given.size), dtype=np.bool_)
    for group in (single, first):
        places = np.flatnonzero(group)
        for mask in masks:
            drawn = rng.choice(places, int(kept[group].sum()), replace=False)
            mask[drawn] = mask[opposite[drawn]] = True
    return masks.reshape(n, *given.shape)


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
    kind: Kind = "exact"

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
    width = 180.0 / DIRECTIONS
    sector = (np.rint(angle / width).astype(np.int64) % DIRECTIONS)[radius > 0]
    counts = np.maximum(np.bincount(sector, minlength=DIRECTIONS), 1)
    sums = np.bincount(sector, mask[radius > 0], minlength=DIRECTIONS)
    return np.linspace(0.0, 180.0, DIRECTIONS, endpoint=False), sums / counts


def _mean(values: Array, weights: Array) -> float:
    total = float(weights.sum())
    return float((values * weights).sum() / total) if total > 0 else float("nan")


def _evenness(angular: Array) -> float:
    total = float(angular.sum())
    if total <= 0 or len(angular) < 2:
        return float("nan") if total <= 0 else 1.0
    shares = angular[angular > 0] / total
    return abs(float((shares * np.log(shares)).sum())) / float(np.log(len(angular)))


def draw_mask(found: FourierMask, X: ArrayLike | None = None, *, rows: int = SHOWN_IMAGES) -> Figure:
    """Draw a mask, its weights by radius and direction, and images without and behind it.

    Args:
        found: What :func:`~pindown.probes.fourier.fourier_mask` returned, for images.
        X: The images it was trained on, (n, H, W) or (n, C, H, W); of colours the mean is shown.
        rows: How many of them to show.

    Returns:
        A matplotlib figure: ``draw_mask(found, X).savefig("mask.png")``.

    Raises:
        ValueError: If the mask is of signals, or X is not of its shape.
    """
    require("matplotlib")
    from matplotlib.figure import Figure

    if found.axes != 2:
        raise ValueError("a mask of signals has no picture; plot found.mask against the frequency.")
    grid = found.mask.shape[-2:]
    images = np.zeros((0, *grid)) if X is None else _grey(X, grid)[: max(rows, 0)]
    if found.mode == "image" and X is not None and len(np.asarray(X)) != len(found.mask):
        raise ValueError(f"X must hold the {len(found.mask)} images that the masks belong to.")
    figure = Figure(figsize=(7.2, 2.4 + 1.8 * len(images)), layout="constrained")
    axes = figure.subplots(1 + len(images), 4 if len(images) else 3, squeeze=False)
    _summary(axes[0], found, X)
    for i, image in enumerate(images):
        mask = found.mask[i] if found.mode == "image" else found.mask
        kept = found.kept[i] if found.mode == "image" else found.kept
        shown = (
            (
                np.fft.fftshift(mask),
                "mask" if found.mode == "image" else "mask of the data set",
                "viridis",
            ),
            (image, "image", "gray"),
            (apply_mask(image, mask), "behind the mask", "gray"),
            (apply_mask(image, ~kept), "behind the rest", "gray"),
        )
        for ax, (values, title, colours) in zip(axes[1 + i], shown, strict=True):
            ax.imshow(values, cmap=colours, **({"vmin": 0, "vmax": 1} if colours == "viridis" else {}))
            ax.set_axis_off()
            if i == 0:
                ax.set_title(title, fontsize=8)
    return figure


def _summary(axes: Any, found: FourierMask, X: ArrayLike | None) -> None:
    mean = found.mask.reshape(-1, *found.mask.shape[-2:]).mean(axis=0)
    half = mean.shape[0] / 2, mean.shape[1] / 2
    axes[0].imshow(np.fft.fftshift(mean), vmin=0, vmax=1, extent=(-half[1], half[1], half[0], -half[0]))
    axes[0].set_title("mean weight of the masks" if found.mode == "image" else "weights", fontsize=8)
    profile = found.profile(None if X is None else np.asarray(X, dtype=np.float64))
    axes[1].plot(profile.radius, profile.mask, label="weight")
    if X is not None:
        axes[1].plot(profile.radius, profile.energy, label="energy of images")
        axes[1].plot(profile.radius, profile.passed, label="energy that passes")
        axes[1].legend(fontsize=6, frameon=False)
    axes[1].set_xlabel("cycles per image", fontsize=8)
    axes[2].bar(profile.direction, profile.angular, width=0.8 * 180 / len(profile.direction))
    axes[2].set_xlabel("direction, degrees", fontsize=8)
    for ax in axes:
        ax.tick_params(labelsize=7)
    if len(axes) > 3:
        check = found.check
        names = ("clean", "masked", "kept", "complement", "random")
        axes[3].barh(names, [getattr(check, name) for name in names])
        axes[3].invert_yaxis()
        axes[3].set_xlim(0, 1)
        axes[3].set_title("share right", fontsize=8)


def _grey(X: ArrayLike, grid: tuple[int, ...]) -> Array:
    images = np.asarray(X, dtype=np.float64)
    if images.ndim not in (3, 4) or images.shape[-2:] != grid:
        raise ValueError(
            f"X must hold images of {grid[0]} x {grid[1]}, (n, [C,] H, W); got {images.shape}."
        )
    return np.asarray(images.mean(axis=1) if images.ndim == 4 else images)

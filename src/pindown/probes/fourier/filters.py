r"""Masks over frequencies, and what an image is behind one.

A mask M gives every frequency k a weight in [0, 1]; behind it an image is

.. math:: \bar x = F^{-1}(M \odot F x), \qquad M(-k) = M(k),

and the symmetry is what keeps :math:`\bar x` real. Frequencies are laid out as NumPy's ``fft2`` does:
the constant one first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array

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
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
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

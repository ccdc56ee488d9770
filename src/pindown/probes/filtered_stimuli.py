r"""Images behind the frequencies that a network needs, for tests with people or animals.

A network is brain-like in this respect if an observer who does the same task also needs the frequencies
that it needs: stays right behind the network's mask, and fails behind its complement and behind random
masks of as many frequencies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.probes.fourier.checks import kept_frequencies
from pindown.probes.fourier.filters import apply_mask, checked_mask, random_masks

CONDITIONS = ("unfiltered", "kept", "complement", "random")


@dataclass(frozen=True)
class ObserverReport:
    """How often an observer was right in each condition.

    Attributes:
        accuracy: Share of right answers by condition.
        standard_error: Of these shares, over images.
        n: Images in each condition.
        kind: ``"estimate"``.
    """

    accuracy: dict[str, float]
    standard_error: dict[str, float]
    n: int
    kind: str = "estimate"

    @property
    def needs_the_same(self) -> bool:
        """Whether the kept frequencies serve the observer better than the others, by two errors.

        One right and one wrong answer are added to each condition, so that a few images on which all
        answers are right do not count as certain.
        """
        n, share = self.n + 2, {k: (p * self.n + 1) / (self.n + 2) for k, p in self.accuracy.items()}
        spread = {name: p * (1 - p) / n for name, p in share.items()}
        return all(
            share["kept"] - share[other] > 2.0 * math.sqrt(spread["kept"] + spread[other])
            for other in ("complement", "random")
        )

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {self.accuracy[name]:.1%}" for name in CONDITIONS)
        return f"right answers on {self.n} images: {shares} (estimate)"


@dataclass(frozen=True, eq=False)
class FilteredStimuli:
    """Images in four conditions, in an order that tells nothing.

    Attributes:
        images: (4 n, ...), shuffled.
        condition: Index into :data:`CONDITIONS`, (4 n,).
        source: Which of the n images each comes from, (4 n,).
        labels: The right classes, (4 n,).
        kept: The frequencies that the mask keeps, (H, W).
    """

    images: Array = field(repr=False)
    condition: NDArray[np.int64] = field(repr=False)
    source: NDArray[np.int64] = field(repr=False)
    labels: NDArray[Any] = field(repr=False)
    kept: NDArray[np.bool_] = field(repr=False)

    def manifest(self) -> list[dict[str, Any]]:
        """Return one row per image, for a table beside the exported images."""
        columns = zip(self.condition, self.source, self.labels.tolist(), strict=True)
        return [
            {"stimulus": i, "condition": CONDITIONS[c], "source": int(s), "label": label}
            for i, (c, s, label) in enumerate(columns)
        ]

    def report(self, answers: ArrayLike) -> ObserverReport:
        """Return how often answers, one class per image, are right in each condition.

        Raises:
            ValueError: If there is not one answer per image.
        """
        given = np.asarray(answers)
        if given.shape != self.condition.shape:
            raise ValueError(f"answers must hold one class per image, {self.condition.shape}; "
                             f"got {given.shape}.")  # fmt: skip
        right, n = given == self.labels, len(given) // len(CONDITIONS)
        shares = {name: float(right[self.condition == i].mean()) for i, name in enumerate(CONDITIONS)}
        errors = {name: math.sqrt(p * (1 - p) / n) for name, p in shares.items()}
        return ObserverReport(shares, errors, n)

    def __str__(self) -> str:
        n, total = len(self.images) // len(CONDITIONS), self.kept.size
        kept = int(self.kept.sum())
        return f"{n} images in {len(CONDITIONS)} conditions; {kept} of {total} frequencies kept"


def make_filtered_stimuli(
    mask: ArrayLike, X: ArrayLike, y: ArrayLike, *, random_state: int = 0
) -> FilteredStimuli:
    """Filter images by a network's mask, its complement, and random masks of as many frequencies.

    Args:
        mask: Of :func:`~pindown.probes.fourier.fourier_mask` for the network: weights (H, W), of
            which those above half of the largest are kept, or zeros and ones.
        X: Images (n, H, W) or (n, C, H, W).
        y: Their classes, (n,).
        random_state: Seed of the random masks, one per image, and of the order.

    Raises:
        ValueError: If shapes do not fit, or the mask keeps nothing or everything.

    Example:
        >>> low = np.zeros((4, 4))
        >>> low[0, 0] = 1.0
        >>> stimuli = make_filtered_stimuli(low, np.random.default_rng(0).random((3, 4, 4)), [0, 1, 0])
        >>> print(stimuli)
        3 images in 4 conditions; 1 of 16 frequencies kept

    Lecture course, section on essential frequencies (brain-likeness); Karantzas et al. 2022.
    """
    images, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    weights = checked_mask(mask)
    if weights.ndim != 2:
        raise ValueError(f"mask must be one mask (H, W) for all images; got {weights.shape}.")
    if images.ndim not in (3, 4) or not len(images) or labels.shape != (len(images),):
        raise ValueError(
            f"X must be images (n, [C,] H, W) and y (n,); got {images.shape} and {labels.shape}."
        )
    kept = kept_frequencies(weights)
    if kept.all() or not kept.any():
        raise ValueError("the mask keeps all frequencies or none; there is nothing to compare.")
    rng = np.random.default_rng(random_state)
    drawn = random_masks(kept.astype(np.float64), len(images), random_state=rng).astype(np.float64)
    if images.ndim == 4:
        drawn = drawn[:, None]
    filtered = [
        images,
        apply_mask(images, kept.astype(np.float64)),
        apply_mask(images, (~kept).astype(np.float64)),
        apply_mask(images, drawn),
    ]
    order = rng.permutation(len(CONDITIONS) * len(images))
    source = np.tile(np.arange(len(images)), len(CONDITIONS))[order]
    condition = np.repeat(np.arange(len(CONDITIONS)), len(images))[order]
    return FilteredStimuli(np.concatenate(filtered)[order], condition, source, labels[source], kept)

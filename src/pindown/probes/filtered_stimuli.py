r"""Frequency filters for tests with people or animals: what a network needs, and what a unit likes.

A network is brain-like in this respect if an observer who does the same task also needs the frequencies
that it needs: stays right behind the network's mask, and fails behind its complement and behind random
masks of as many frequencies.

A filter can also be adapted in the loop, so that a recorded unit responds most. Frequencies are grouped
in bins by radius and direction, opposite ones together. Random filters that pass about half of the bins
come first; with :math:`m_b \in \{0, 1\}` for bin b, the response is fitted by

.. math:: R(m) \approx c + \sum_b e_b m_b,

and the bins with :math:`e_b > 0` make the first filter. What is left of the queries flips one bin at a
time and keeps what responds more. Which response is the largest is partly luck, so the responses that
chose a filter say too much about it: the last few queries ask for the response to the filter again, and
only these are its mean response. The source leaves the method open.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.probes.fourier.filters import apply_mask, checked_mask, kept_frequencies, random_masks
from pindown.probes.tuning import EXPLORING_SHARE, MIN_QUERIES_PER_BIN, RESPONSE_REPEATS
from pindown.validation import integer

CONDITIONS = ("unfiltered", "kept", "complement", "random")


@dataclass(frozen=True)
class ObserverReport:
    """How often an observer was right in each condition.

    Attributes:
        accuracy: Share of right answers by condition.
        standard_error: Standard errors of these shares, over images.
        n: Images in each condition.
        kind: ``"estimate"``.
    """

    accuracy: dict[str, float]
    standard_error: dict[str, float]
    n: int
    kind: Kind = "estimate"

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
        mask: That of :func:`~pindown.probes.fourier.fourier_mask` for the network: weights (H, W), of
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


@dataclass(frozen=True, eq=False)
class LoopFilter:
    """The filter that was found.

    Attributes:
        mask: Zeros and ones, (H, W), opposite frequencies alike.
        bins: The bin of each frequency, (H, W); -1 for the constant one, which always passes.
        effects: What passing each bin adds to the response, as fitted, (bins,).
        response: Mean of responses to the filter that had no part in choosing it: unbiased if the noise
            of one response does not depend on the others.
        n_queries: How many responses were asked for.
        kind: ``"estimate"``.
    """

    mask: Array = field(repr=False)
    bins: NDArray[np.int64] = field(repr=False)
    effects: Array = field(repr=False)
    response: float
    n_queries: int
    kind: Kind = "estimate"

    def __str__(self) -> str:
        passed = int(self.mask.sum())
        return (
            f"filter of {passed} of {self.mask.size} frequencies, response {self.response:.4g} after "
            f"{self.n_queries} queries (estimate)"
        )


def closed_loop_filter(
    query: Callable[[Array], float],
    shape: tuple[int, int],
    *,
    max_queries: int = 500,
    n_radial: int = 6,
    n_angular: int = 4,
    random_state: int = 0,
) -> LoopFilter:
    """Find the filter under which a unit responds most.

    Args:
        query: Gives the response to images behind a mask (H, W) of zeros and ones; may be noisy.
        shape: ``(H, W)`` of the images.
        max_queries: How often it may be asked, at least four times for each bin.
        n_radial: Bins by radius.
        n_angular: Bins by direction, over half a turn.
        random_state: Seed.

    Raises:
        ValueError: If there are fewer than four queries per bin, a number does not fit, or a response
            is no finite number.

    Example:
        A unit that likes what is coarse and dislikes what is fine:

        >>> rates = np.abs(np.fft.fftfreq(8))
        >>> like = np.where(np.maximum(rates[:, None], rates) < 0.3, 1.0, -1.0)
        >>> found = closed_loop_filter(lambda mask: float(np.sum(mask * like)), (8, 8))
        >>> bool(found.mask[0, 1]), bool(found.mask[4, 4])
        (True, False)

    Lecture course, section on essential frequencies, which poses the question.
    """
    bins, used = frequency_bins(shape, n_radial, n_angular)
    least = MIN_QUERIES_PER_BIN * used
    max_queries = integer("max_queries", max_queries, least=least)
    ask, rng = _Asker(query, bins, max_queries), np.random.default_rng(random_state)
    tried = rng.integers(0, 2, (max(least // 2, int(EXPLORING_SHARE * max_queries)), used))
    answers = np.array([ask(row) for row in tried])
    design = np.column_stack([np.ones(len(tried)), tried])
    effects = np.linalg.lstsq(design, answers, rcond=None)[0][1:]
    best = (effects > 0).astype(np.int64)
    for b in np.argsort(np.abs(effects)):  # the least certain first
        if ask.left < 3 * RESPONSE_REPEATS:  # two filters now, and the one chosen at the end
            break
        other = best.copy()
        other[b] = 1 - other[b]
        now, then = (ask.mean(m, RESPONSE_REPEATS) for m in (best, other))
        best = other if then > now else best
    response = ask.mean(best, min(RESPONSE_REPEATS, ask.left))
    return LoopFilter(ask.mask(best), bins, effects, response, ask.asked)


def frequency_bins(
    shape: tuple[int, int], n_radial: int, n_angular: int
) -> tuple[NDArray[np.int64], int]:
    """Return the bin of each frequency, -1 for the constant one, and how many bins there are.

    >>> bins, used = frequency_bins((2, 2), 1, 1)
    >>> bins.tolist(), used
    ([[-1, 0], [0, 0]], 1)
    """
    integer("height", shape[0])
    integer("width", shape[1])
    integer("n_radial", n_radial)
    integer("n_angular", n_angular)
    if shape[0] * shape[1] < 2:
        raise ValueError(f"an image of shape {shape} has only the constant frequency.")
    v, u = np.meshgrid(np.fft.fftfreq(shape[0]), np.fft.fftfreq(shape[1]), indexing="ij")
    # The frequency -1/2 is its own opposite; its sign must not decide the direction.
    v, u = (np.where(np.abs(w) == 0.5, 0.5, w) for w in (v, u))
    radius = np.hypot(v, u)
    ring = np.minimum((radius / radius.max() * n_radial).astype(int), n_radial - 1)
    turn = np.mod(np.arctan2(v, u) + 0.5 * np.pi / n_angular, np.pi) / np.pi
    sector = np.minimum((turn * n_angular).astype(int), n_angular - 1)
    raw = ring * n_angular + sector
    opposite = np.roll(np.flip(raw), 1, axis=(0, 1))
    raw = np.minimum(raw, opposite)  # where one end of a pair is at -1/2, directions differ
    raw[0, 0] = -1
    names, bins = np.unique(raw, return_inverse=True)
    return (bins.reshape(shape) - 1).astype(np.int64), len(names) - 1


class _Asker:
    """Asks for responses to filters, and counts how often."""

    def __init__(self, query: Callable[[Array], float], bins: NDArray[np.int64], most: int) -> None:
        self._query, self._bins, self._most = query, bins, most
        self.asked = 0

    @property
    def left(self) -> int:
        return self._most - self.asked

    def mask(self, passed: NDArray[np.int64]) -> Array:
        return np.asarray(np.append(passed, 1)[self._bins], dtype=np.float64)

    def mean(self, passed: NDArray[np.int64], n: int) -> float:
        return float(np.mean([self(passed) for _ in range(n)]))

    def __call__(self, passed: NDArray[np.int64]) -> float:
        self.asked += 1
        response = float(self._query(self.mask(passed)))
        if not np.isfinite(response):
            raise ValueError(f"query must give a finite response; it gave {response}.")
        return response

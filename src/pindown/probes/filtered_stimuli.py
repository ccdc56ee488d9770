r"""Frequency filters for tests with people or animals: what a network needs, and what a unit likes.

A network is brain-like in this respect if an observer who does the same task also needs the frequencies
that it needs: stays right behind the network's mask, and fails behind its complement and behind random
masks of as many frequencies.

A filter can also be adapted in the loop, so that a recorded unit responds most. Frequencies are grouped
in bins by radius and direction, opposite ones together. Random filters that pass about half of the bins
come first; with :math:`m_b \in \{0, 1\}` for bin b, the response is fitted by

.. math:: R(m) \approx c + \sum_b e_b m_b,

and the bins with :math:`e_b > 0` make the first filter. Then bins are refined where the answer changes:
those that touch one of the other kind are cut in up to four, and random filters over the parts, with all
other bins as they are best, are fitted in the same way, again and again. What is left of the queries
flips one bin at a time and keeps what responds more. Which response is the largest is partly luck, so
the responses that chose a filter say too much about it: the last few queries ask for the response to the
filter again, and only these are its mean response. The source leaves the method open.
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
from pindown.probes.tuning import CLEAR_ERRORS, MIN_QUERIES_PER_BIN, RESPONSE_REPEATS, ROUND_SHARE
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
    ask, rng = _Asker(query, max_queries), np.random.default_rng(random_state)
    state = _Bins(bins, np.ones(used, np.int64), np.zeros(used))
    varied = np.arange(used)
    each = max(least // 2, int(ROUND_SHARE * max_queries))
    while not ask.asked or (len(varied) and ask.left - each >= 3 * RESPONSE_REPEATS):
        clear = state.learn(ask, varied, each, rng)
        if clear:
            state, varied = state.refined(each // 2)
    for b in np.argsort(np.abs(state.effects)):  # the least certain first
        if ask.left < 3 * RESPONSE_REPEATS:  # two filters now, and the one chosen at the end
            break
        other = state.best.copy()
        other[b] = 1 - other[b]
        now, then = (ask.mean(state.mask(m), RESPONSE_REPEATS) for m in (state.best, other))
        state.best = other if then > now else state.best
    mask = state.mask(state.best)
    response = ask.mean(mask, min(RESPONSE_REPEATS, ask.left))
    return LoopFilter(mask, state.bins, state.effects, response, ask.asked)


@dataclass(eq=False)
class _Bins:
    """Bins of frequencies (H, W), whether each passes, and what passing adds to a response."""

    bins: NDArray[np.int64]
    best: NDArray[np.int64]
    effects: Array
    asked: list[tuple[NDArray[np.int64], Array]] = field(default_factory=list)

    def mask(self, passed: NDArray[np.int64]) -> Array:
        """Return the mask of the bins that pass; the constant frequency always does."""
        return np.asarray(np.append(passed, 1)[self.bins], dtype=np.float64)

    def learn(self, ask: _Asker, varied: NDArray[np.int64], n: int, rng: np.random.Generator) -> bool:
        """Ask for random filters over some bins, the others as they are best, and fit the effects.

        All answers about these bins count. Returns whether the effects are so much larger than their
        standard error that those of parts of the bins could be told apart, too.
        """
        tried = rng.integers(0, 2, (n, len(varied)))
        answers = np.empty(n)
        for i, row in enumerate(tried):
            passed = self.best.copy()
            passed[varied] = row
            answers[i] = ask(self.mask(passed))
        self.asked.append((tried, answers))
        tried, answers = (np.concatenate(part) for part in zip(*self.asked, strict=True))
        design = np.column_stack([np.ones(len(tried)), tried])
        fit = np.linalg.lstsq(design, answers, rcond=None)[0]
        found, spare = fit[1:], max(1, len(tried) - len(fit))
        self.effects[varied] = found
        self.best[varied] = found > 0
        error = 2.0 * math.sqrt(np.sum((answers - design @ fit) ** 2) / spare / len(tried))
        return bool(np.median(np.abs(found)) > CLEAR_ERRORS * error)

    def refined(self, most: int) -> tuple[_Bins, NDArray[np.int64]]:
        """Cut the bins that touch one of the other kind, those that say least for their size first.

        Returns:
            The new bins, and which of them are new, at most so many.
        """
        kind = np.append(self.best, -1)[self.bins]
        edge = np.zeros(self.bins.shape, bool)
        for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
            beside = np.roll(kind, step, axis)
            edge |= (beside != kind) & (beside >= 0)
        touching = np.unique(self.bins[edge & (self.bins >= 0)])
        size = np.bincount(self.bins[self.bins >= 0], minlength=len(self.best))
        order = touching[np.argsort(np.abs(self.effects[touching]) / size[touching], kind="stable")]
        made = _Bins(self.bins.copy(), self.best.copy(), self.effects.copy())
        new: list[int] = []
        for b in order.tolist():
            parts = _cut(self.bins == b)
            if len(parts) == 1 or len(new) + len(parts) > most:
                continue
            names = [b, *range(len(made.best), len(made.best) + len(parts) - 1)]
            made.best = np.append(made.best, np.repeat(self.best[b], len(parts) - 1))
            made.effects = np.append(made.effects, np.zeros(len(parts) - 1))
            for name, part in zip(names, parts, strict=True):
                made.bins[part] = name
                made.effects[name] = self.effects[b] * part.sum() / size[b]
            new += names
        return made, np.array(new, dtype=np.int64)


def _cut(members: NDArray[np.bool_]) -> list[NDArray[np.bool_]]:
    """Return the up to four parts of a bin: inner and outer half, each in two by direction."""
    radius, turn = _polar((members.shape[0], members.shape[1]))
    code = np.where(radius > np.median(radius[members]), 2, 0)
    code = code + (np.mod(turn, np.pi) > np.median(np.mod(turn, np.pi)[members]))
    code = np.minimum(code, np.roll(np.flip(code), 1, axis=(0, 1)))  # opposite frequencies stay together
    return [members & (code == value) for value in np.unique(code[members])]


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
    radius, angle = _polar(shape)
    ring = np.minimum((radius / radius.max() * n_radial).astype(int), n_radial - 1)
    turn = np.mod(angle + 0.5 * np.pi / n_angular, np.pi) / np.pi
    sector = np.minimum((turn * n_angular).astype(int), n_angular - 1)
    raw = ring * n_angular + sector
    opposite = np.roll(np.flip(raw), 1, axis=(0, 1))
    raw = np.minimum(raw, opposite)  # where one end of a pair is at -1/2, directions differ
    raw[0, 0] = -1
    names, bins = np.unique(raw, return_inverse=True)
    return (bins.reshape(shape) - 1).astype(np.int64), len(names) - 1


def _polar(shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return the radius of each frequency, and its direction, in (-pi, pi]."""
    v, u = np.meshgrid(np.fft.fftfreq(shape[0]), np.fft.fftfreq(shape[1]), indexing="ij")
    # The frequency -1/2 is its own opposite; its sign must not decide the direction.
    v, u = (np.where(np.abs(w) == 0.5, 0.5, w) for w in (v, u))
    return np.hypot(v, u), np.arctan2(v, u)


class _Asker:
    """Asks for responses to filters, and counts how often."""

    def __init__(self, query: Callable[[Array], float], most: int) -> None:
        self._query, self._most = query, most
        self.asked = 0

    @property
    def left(self) -> int:
        return self._most - self.asked

    def mean(self, mask: Array, n: int) -> float:
        return float(np.mean([self(mask) for _ in range(n)]))

    def __call__(self, mask: Array) -> float:
        self.asked += 1
        response = float(self._query(mask.copy()))
        if not np.isfinite(response):
            raise ValueError(f"query must give a finite response; it gave {response}.")
        return response

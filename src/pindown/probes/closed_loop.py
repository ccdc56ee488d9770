r"""A frequency filter adapted in the loop, so that a recorded unit responds most.

Frequencies are grouped in bins by radius and direction, opposite ones together. Random filters that pass
about half of the bins come first; with :math:`m_b \in \{0, 1\}` for bin b, the response is fitted by

.. math:: R(m) \approx c + \sum_b e_b m_b,

and the bins with :math:`e_b > 0` make the first filter. What is left of the budget flips one bin at a
time and keeps what responds more. Which response is the largest is partly luck, so the responses that
chose a filter say too much about it: the last few queries ask for the response to the filter again, and
only these are its mean response. The source leaves the method open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.validation import is_integer

_EXPLORING = 0.7  # share of the budget for random filters
_LEAST_PER_BIN = 4  # queries: fewer do not tell the bins apart
_REPEATS = 3  # of a comparison, and of the response at the end, since responses are noisy


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
    kind: str = "estimate"

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
    budget: int = 500,
    n_radial: int = 6,
    n_angular: int = 4,
    random_state: int = 0,
) -> LoopFilter:
    """Find the filter under which a unit responds most.

    Args:
        query: Gives the response to images behind a mask (H, W) of zeros and ones; may be noisy.
        shape: ``(H, W)`` of the images.
        budget: How often it may be asked.
        n_radial: Bins by radius.
        n_angular: Bins by direction, over half a turn.
        random_state: Seed.

    Raises:
        ValueError: If the budget is below four per bin, a number does not fit, or a response is no
            finite number.

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
    if not is_integer(budget, _LEAST_PER_BIN * used):
        raise ValueError(
            f"budget must be a whole number, at least {_LEAST_PER_BIN * used} for {used} bins; "
            f"got {budget!r}."
        )
    ask, rng = _Asker(query, bins, int(budget)), np.random.default_rng(random_state)
    tried = rng.integers(0, 2, (max(_LEAST_PER_BIN * used // 2, int(_EXPLORING * budget)), used))
    answers = np.array([ask(row) for row in tried])
    design = np.column_stack([np.ones(len(tried)), tried])
    effects = np.linalg.lstsq(design, answers, rcond=None)[0][1:]
    best = (effects > 0).astype(np.int64)
    for b in np.argsort(np.abs(effects)):  # the least certain first
        if ask.left < 3 * _REPEATS:  # two filters now, and the one chosen at the end
            break
        other = best.copy()
        other[b] = 1 - other[b]
        now, then = (ask.mean(m, _REPEATS) for m in (best, other))
        best = other if then > now else best
    response = ask.mean(best, min(_REPEATS, ask.left))
    return LoopFilter(ask.mask(best), bins, effects, response, ask.asked)


def frequency_bins(
    shape: tuple[int, int], n_radial: int, n_angular: int
) -> tuple[NDArray[np.int64], int]:
    """Return the bin of each frequency, -1 for the constant one, and how many bins there are.

    >>> bins, used = frequency_bins((2, 2), 1, 1)
    >>> bins.tolist(), used
    ([[-1, 0], [0, 0]], 1)
    """
    for name, number in (("height", shape[0]), ("width", shape[1]), ("n_radial", n_radial),
                         ("n_angular", n_angular)):  # fmt: skip
        if not is_integer(number):
            raise ValueError(f"{name} must be a whole number of at least 1; got {number!r}.")
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
    def __init__(self, query: Callable[[Array], float], bins: NDArray[np.int64], budget: int) -> None:
        self._query, self._bins, self._budget = query, bins, budget
        self.asked = 0

    @property
    def left(self) -> int:
        return self._budget - self.asked

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

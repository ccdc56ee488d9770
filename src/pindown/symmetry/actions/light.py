"""Changes of light: brightness, contrast and gamma; they act on the numbers, not on their places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pindown.symmetry.actions.families import Transformations


def illumination(factors: Sequence[float]) -> Transformations:
    """All numbers of a sample times a positive factor: a part of the multiplicative group.

    >>> illumination([2.0]).act(0, [[1.0, 3.0]]).tolist()
    [[2.0, 6.0]]

    Lecture course, slides on illumination.
    """
    values = _positive(factors, "factors")
    moves = tuple(lambda X, factor=factor: factor * X for factor in values)
    return Transformations("illumination", values, moves)


def contrast_changes(gains: Sequence[float], offsets: Sequence[float] = (0.0,)) -> Transformations:
    """Every gain with every offset, x to gain x + offset: a part of the affine group of the line.

    >>> contrast_changes([1.0, 2.0], [0.0, 0.5]).elements
    ((1.0, 0.0), (1.0, 0.5), (2.0, 0.0), (2.0, 0.5))
    """
    pairs = tuple((g, float(o)) for g in _positive(gains, "gains") for o in offsets)
    if not np.isfinite(pairs).all():
        raise ValueError(f"offsets are finite numbers; got {tuple(offsets)}.")
    moves = tuple(lambda X, g=g, o=o: g * X + o for g, o in pairs)
    return Transformations("contrast", pairs, moves)


def gamma_changes(exponents: Sequence[float]) -> Transformations:
    """All numbers of a sample, which must be from 0, raised to a power.

    >>> gamma_changes([2.0]).act(0, [[0.5, 1.0]]).tolist()
    [[0.25, 1.0]]
    """

    def power(X: np.ndarray, exponent: float) -> np.ndarray:
        if X.size and X.min() < 0.0:
            raise ValueError(f"gamma acts on numbers from 0; got {X.min():.3g}. Shift the data first.")
        return np.asarray(X**exponent)

    values = _positive(exponents, "exponents")
    moves = tuple(lambda X, exponent=exponent: power(X, exponent) for exponent in values)
    return Transformations("gamma", values, moves)


def _positive(values: Sequence[float], name: str) -> tuple[float, ...]:
    found = tuple(float(value) for value in values)
    if not found or not all(0.0 < value < np.inf for value in found):
        raise ValueError(f"{name} are positive numbers, at least one; got {found}.")
    return found

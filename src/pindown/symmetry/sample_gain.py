r"""How much data a symmetry is worth: kernel ridge regression with and without it, at several sizes.

For Lipschitz invariant targets a bound on the error with the group is that without it at :math:`|G|n`
samples. The elementary part holds for any invariant f with Lipschitz constant :math:`\beta` and
orthogonal action: :math:`|f(x) - f(x')| \le \beta \min_g \lVert x - gx'\rVert`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.groups import Group
from pindown.symmetry.kernels import Kernel, base_gram, invariant_gram


@dataclass(frozen=True)
class InvarianceGain:
    """Errors on held-out samples, with and without a symmetry.

    Attributes:
        ns: Sizes of the training sets, growing.
        plain: Mean squared error with the base kernel, for each size.
        invariant: The same with the invariant kernel.
        order: Elements of the group.
        n_test: Held-out samples.
        kind: ``"estimate"``.
    """

    ns: tuple[int, ...]
    plain: tuple[float, ...]
    invariant: tuple[float, ...]
    order: int
    n_test: int
    kind: Kind = "estimate"

    def worth(self, n: int) -> float:
        """Return how many times n samples the base kernel needs to reach the invariant one's error at n.

        Interpolated between the sizes tried; infinite if the largest is not enough.

        >>> InvarianceGain((10, 20, 40), (1.0, 0.5, 0.25), (0.25, 0.1, 0.05), 4, 100).worth(10)
        4.0
        """
        if n not in self.ns:
            raise ValueError(f"n must be one of the sizes tried, {self.ns}; got {n!r}.")
        goal = self.invariant[self.ns.index(n)]
        best = np.minimum.accumulate(self.plain)
        if goal < best[-1]:
            return np.inf
        # Falling errors, read backwards; logarithms, as errors fall by powers.
        sizes = np.log(np.array(self.ns[::-1], dtype=float))
        reached = np.exp(np.interp(np.log(goal), np.log(best[::-1]), sizes))
        return float(round(max(reached / n, self.ns[0] / n), 9))

    def __str__(self) -> str:
        rows = zip(self.ns, self.plain, self.invariant, strict=True)
        table = "; ".join(f"n = {n}: {plain:.3g} -> {inv:.3g}" for n, plain, inv in rows)
        return f"error with a symmetry of order {self.order}: {table} ({self.n_test} test samples)"


def invariance_gain(
    X: ArrayLike,
    y: ArrayLike,
    group: Group,
    ns: Sequence[int],
    *,
    base: Kernel = "rbf",
    alpha: float = 1e-4,
    truth: ArrayLike | None = None,
    random_state: int = 0,
    **parameters: Any,
) -> InvarianceGain:
    """Measure the error of kernel ridge regression with and without a symmetry, at several sizes.

    Training sets are nested, and what is left over after the largest is the test set.

    Args:
        X: Samples ``(N, d)``.
        y: Targets ``(N,)``.
        group: The group with its action on rows.
        ns: Sizes of training sets, all below N.
        base: The base kernel.
        alpha: The ridge penalty is ``alpha * n``.
        truth: Targets to test against, if those in y are noisy; None for y.
        random_state: Seed of the order of samples.
        parameters: Parameters of the base kernel, such as ``gamma``.

    Returns:
        Both curves.

    Raises:
        ValueError: If sizes or shapes do not fit.

    Example:
        >>> from pindown.symmetry import cyclic
        >>> X = np.random.default_rng(0).standard_normal((300, 4))
        >>> gain = invariance_gain(X, np.cos(X).sum(axis=1), cyclic(4), [20, 40])
        >>> gain.invariant[0] < gain.plain[1]
        True

    Lecture course, section on the sample complexity of learning under invariance (after Bietti,
    Venturi and Bruna 2021).
    """
    rows, targets = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    answers = targets if truth is None else np.asarray(truth, dtype=float)
    sizes = sorted({int(n) for n in ns})
    if rows.ndim != 2 or targets.shape != (len(rows),) or answers.shape != targets.shape:
        raise ValueError(
            f"X (N, d) needs as many targets, (N,); got shapes {rows.shape} and {targets.shape}."
        )
    if not all(np.isfinite(values).all() for values in (rows, targets, answers)):
        raise ValueError("X, y and truth must be finite; some hold NaN or infinity.")
    if not sizes or sizes[0] < 2 or sizes[-1] >= len(rows) or not alpha > 0:
        raise ValueError(
            f"ns must be from 2 to {len(rows) - 1} and alpha positive; got {list(ns)!r}, {alpha!r}."
        )
    order = np.random.default_rng(random_state).permutation(len(rows))
    train, test = order[: sizes[-1]], order[sizes[-1] :]
    plain = base_gram(base, rows[order], rows[train], parameters)
    moved = invariant_gram(base, group, rows[order], rows[train], **parameters)
    split = (targets[train], answers[test])
    curves = [[_error(K, *split, n, alpha) for n in sizes] for K in (plain, moved)]
    return InvarianceGain(tuple(sizes), tuple(curves[0]), tuple(curves[1]), group.order, len(test))


def _error(K: Array, y: Array, answers: Array, n: int, alpha: float) -> float:
    """Fit on the first n samples; the rows of K after the training set are tested."""
    mean = y[:n].mean()
    weights = np.linalg.solve(K[:n, :n] + alpha * n * np.eye(n), y[:n] - mean)
    return float(np.mean((K[len(y) :, :n] @ weights + mean - answers) ** 2))

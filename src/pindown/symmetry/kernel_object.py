"""The invariant kernel as an object that scikit-learn's kernel methods take, gradients included."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel as KernelObject

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.kernels import MODES, Kernel, invariant_gram, is_known_invariant

# Rows whose whole matrix is computed for its diagonal: few, and yet not a call for each.
_BLOCK = 64


class InvariantKernel(KernelObject):  # type: ignore[misc]
    r"""A base kernel averaged over a group: :math:`|G|^{-2}\sum_{g,g'}K'(gx, g'x')`.

    Args:
        base: A name, a kernel object of :mod:`sklearn.gaussian_process.kernels`, or a function of two
            sample matrices. Parameters of a kernel object are parameters of this one.
        group: The group with its action on rows.
        mode: ``"auto"``, ``"double"`` or ``"single"``.
        reduce: ``"mean"`` or ``"sum"``.
        gamma: Of a named kernel; None for its default.
        degree: Of a polynomial kernel; None for its default.
        coef0: Of a polynomial or sigmoid kernel; None for its default.

    A ``WhiteKernel`` is noise, not a function of the samples: add it to this kernel, not to its base.

    Example:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from pindown.symmetry import cyclic
        >>> kernel = InvariantKernel(RBF(2.0), cyclic(3))
        >>> bool(np.isclose(*kernel([[1.0, 2.0, 3.0]], [[0.0, 1.0, 5.0], [5.0, 0.0, 1.0]])[0]))
        True

    Lecture course, section on invariant kernels and convolutional representations.
    """

    def __init__(
        self,
        base: Kernel,
        group: Group,
        mode: str = "auto",
        reduce: str = "mean",
        gamma: float | None = None,
        degree: float | None = None,
        coef0: float | None = None,
    ) -> None:
        if not isinstance(group, Group):
            raise TypeError(f"group must be a Group; got {type(group).__name__}.")
        if _has_noise(base):
            raise ValueError("base holds a WhiteKernel; average the rest and add the noise outside.")
        self.base = base
        self.group = group
        self.mode = mode
        self.reduce = reduce
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of the base as ``base__...``."""
        names = ("base", "group", "mode", "reduce", "gamma", "degree", "coef0")
        params = {name: getattr(self, name) for name in names}
        if deep and isinstance(self.base, KernelObject):
            params.update({f"base__{name}": value for name, value in self.base.get_params().items()})
        return params

    @property
    def hyperparameters(self) -> list[Any]:
        """Those of the base kernel."""
        if not isinstance(self.base, KernelObject):
            return []
        return [
            type(each)(f"base__{each.name}", each.value_type, each.bounds, each.n_elements)
            for each in self.base.hyperparameters
        ]

    @property
    def theta(self) -> Array:
        """Logarithms of the base's free parameters."""
        return self.base.theta if isinstance(self.base, KernelObject) else np.array([])

    @theta.setter
    def theta(self, values: Array) -> None:
        if isinstance(self.base, KernelObject):
            self.base.theta = values

    @property
    def bounds(self) -> Array:
        """Bounds of ``theta``."""
        return self.base.bounds if isinstance(self.base, KernelObject) else np.empty((0, 2))

    def __call__(self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False) -> Any:
        """Return the matrix of all pairs, and its derivative by ``theta`` if wanted."""
        rows = np.atleast_2d(np.asarray(X, dtype=float))
        columns = None if Y is None else np.atleast_2d(np.asarray(Y, dtype=float))
        options = {"mode": self.mode, "reduce": self.reduce}
        K = invariant_gram(self.base, self.group, rows, columns, **options, **self._named())
        if not eval_gradient:
            return K
        if Y is not None:
            raise ValueError("the gradient is that of the matrix of X with itself; leave Y out.")
        return K, self._gradient(rows)

    def diag(self, X: ArrayLike) -> Array:
        """Return K(x, x) of each row."""
        rows = np.atleast_2d(np.asarray(X, dtype=float))
        blocks = (rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK))
        return np.concatenate([np.diag(self(block, block)) for block in blocks])

    def is_stationary(self) -> bool:
        """Say no: K(x, x) depends on how far x is from its own images."""
        return False

    def _named(self) -> dict[str, Any]:
        given = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return {name: value for name, value in given.items() if value is not None}

    def _gradient(self, X: Array) -> Array:
        """Average the base's gradient, which it only has for samples with themselves: stack both."""
        n, order = len(X), self.group.order
        if not isinstance(self.base, KernelObject) or not self.theta.size:
            return np.empty((n, n, 0))
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}; got {self.mode!r}.")
        single = self.mode == "single" or (
            self.mode == "auto" and is_known_invariant(self.base, self.group)
        )
        total = np.zeros((n, n, self.theta.size))
        for g in range(1 if single else order):
            first = self.group.act(g, X)
            for h in range(order):
                both = np.concatenate([first, self.group.act(h, X)])
                total += self.base(both, eval_gradient=True)[1][:n, n:]
        total /= order if single else order**2
        return total * order**2 if self.reduce == "sum" else total

    def __repr__(self) -> str:
        return f"InvariantKernel({self.base!r}, {self.group.name})"


def _has_noise(kernel: Any) -> bool:
    if type(kernel).__name__ == "WhiteKernel":
        return True
    return any(
        _has_noise(getattr(kernel, name)) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)
    )

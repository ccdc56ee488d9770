r"""Kernels that do not change when a group moves a sample, for any method that takes a kernel.

.. math:: K(x, x') = \frac1{|G|^2} \sum_g \sum_{g'} K'(gx, g'x').

If the base kernel satisfies :math:`K'(gx, gx') = K'(x, x')`, one sum is enough and |G| times cheaper:
:math:`K(x, x') = |G|^{-1} \sum_g K'(x, gx')`. The functions of K are those of K' that the group leaves
alone; a base kernel without such functions becomes 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel as KernelObject

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.layers.representations import is_orthogonal
from pindown.symmetry.tuning import DIAGONAL_ROWS
from pindown.validation import choice, table

Kernel: TypeAlias = str | Callable[..., Any]
MODES = ("auto", "double", "single")
# Functions of inner products and lengths: rotations and reflections leave them alone.
_OF_LENGTHS = {"linear", "rbf", "poly", "polynomial", "sigmoid", "cosine"}
# Sums over coordinates: permutations of coordinates leave them alone.
_OF_COORDINATES = {"laplacian", "chi2", "additive_chi2"}
# Two values of a base kernel that should be equal differ by rounding.
INVARIANCE_TOLERANCE = 1e-9
# An averaged kernel below this share of its base has no invariant function left.
VANISHING = 1e-12


def invariant_gram(
    base: Kernel,
    group: Group,
    X: ArrayLike,
    Z: ArrayLike | None = None,
    *,
    mode: str = "auto",
    reduce: str = "mean",
    **parameters: Any,
) -> Array:
    r"""Return the matrix :math:`K(x_i, z_j)` of a kernel made invariant.

    Args:
        base: A name that :func:`sklearn.metrics.pairwise.pairwise_kernels` knows, or a function of two
            sample matrices that returns the whole matrix.
        group: The group with its action on rows.
        X: Samples ``(n, d)``.
        Z: Samples ``(m, d)``; None for X.
        mode: ``"double"`` for both sums; ``"single"`` for one, which needs a base kernel that the group
            leaves alone (tried on some samples); ``"auto"``: one sum where this is known for sure.
        reduce: ``"mean"`` or ``"sum"``, which is the squared order times larger.
        parameters: Parameters of a named kernel, such as ``gamma``.

    Returns:
        Array ``(n, m)``.

    Raises:
        ValueError: If the kernel, the mode or the samples do not fit.

    Example:
        The linear kernel only sees what shifts leave alone, the mean:

        >>> from pindown.symmetry import cyclic
        >>> invariant_gram("linear", cyclic(2), [[1.0, 3.0]], [[4.0, 0.0], [1.0, 1.0]]).tolist()
        [[8.0, 4.0]]

    Lecture course, section on invariant kernels and convolutional representations.
    """
    rows = table(X)
    columns = rows if Z is None else table(Z, "Z")
    choice("mode", mode, MODES)
    choice("reduce", reduce, ("mean", "sum"))
    single = _one_sum_is_enough(base, group, mode)
    if mode == "single":
        _check_unmoved(base, group, rows, parameters)
    summed = _one_sum if single else _both_sums
    K = summed(base, group, rows, columns, parameters)
    if Z is None:
        K = (K + K.T) / 2
        _warn_if_vanishing(K, base, rows, parameters)
    return K * group.order**2 if reduce == "sum" else K


def invariant_kernel(base: Kernel, group: Group, **options: Any) -> Any:
    """Return the invariant kernel as an object for ``KernelRidge``, ``SVC``, Gaussian processes, ....

    Args:
        base: A name, a kernel object of :mod:`sklearn.gaussian_process.kernels`, whose parameters can
            then be tuned through this one, or a function of two sample matrices.
        group: The group with its action on rows.
        options: ``mode``, ``reduce`` and parameters of a named kernel, as in :func:`invariant_gram`.

    Returns:
        An :class:`~pindown.symmetry.kernels.InvariantKernel`.

    Example:
        >>> from sklearn.kernel_ridge import KernelRidge
        >>> from pindown.symmetry import cyclic
        >>> model = KernelRidge(alpha=1e-6, kernel=invariant_kernel("rbf", cyclic(3)))
        >>> model = model.fit([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], [1.0, 2.0])
        >>> model.predict([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]).round(3).tolist()  # moved samples
        [1.0, 2.0]

    Lecture course, section on invariant kernels and convolutional representations.
    """
    return InvariantKernel(base, group, **options)


class InvariantKernel(KernelObject):  # type: ignore[misc]
    r"""A base kernel averaged over a group: :math:`|G|^{-2}\sum_{g,g'}K'(gx, g'x')`.

    Args:
        base: A name, a kernel object of :mod:`sklearn.gaussian_process.kernels`, or a function of two
            sample matrices. Parameters of a kernel object are parameters of this one.
        group: The group with its action on rows.
        mode: ``"auto"``, ``"double"`` or ``"single"``.
        reduce: ``"mean"`` or ``"sum"``.
        gamma: Parameter of a named kernel; None for its default.
        degree: Degree of a polynomial kernel; None for its default.
        coef0: Constant of a polynomial or sigmoid kernel; None for its default.

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
        blocks = (rows[i : i + DIAGONAL_ROWS] for i in range(0, len(rows), DIAGONAL_ROWS))
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
        choice("mode", self.mode, MODES)
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


def pooled_features(
    X: ArrayLike,
    templates: ArrayLike,
    group: Group,
    activation: Callable[[Array], Array] = lambda u: np.maximum(u, 0.0),
) -> Array:
    r"""Return :math:`\Phi_t(x) = \sum_g s(\langle x, gt\rangle)` for each template t.

    Its kernel :math:`\sum_t \Phi_t(x)\Phi_t(x')` is the double sum over the base kernel
    :math:`K'(x, x') = \sum_t s(\langle x, t\rangle) s(\langle x', t\rangle)` at
    :math:`(g^{-1}x, g'^{-1}x')`, for orthogonal actions.

    >>> from pindown.symmetry import cyclic
    >>> pooled_features([[1.0, 2.0, 3.0]], [[1.0, 0.0, 0.0]], cyclic(3)).tolist()
    [[6.0]]

    Lecture course, section on invariant kernels and convolutional representations, corrected.
    """
    rows, t = table(X), table(templates, "templates")
    total = np.zeros((len(rows), len(t)))
    for g in range(group.order):
        total += activation(rows @ group.act(g, t).T)
    return total


def base_gram(base: Kernel, X: Array, Z: Array, parameters: dict[str, Any]) -> Array:
    """Return the matrix of a base kernel, or say why there is none."""
    if isinstance(base, str):
        from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

        if base not in PAIRWISE_KERNEL_FUNCTIONS:
            names = ", ".join(sorted(PAIRWISE_KERNEL_FUNCTIONS))
            raise ValueError(f"base must be a kernel function or one of {names}; got {base!r}.")
        return np.asarray(pairwise_kernels(X, Z, metric=base, **parameters), dtype=float)
    if not callable(base):
        raise TypeError(f"base must be a name or a function of two matrices; got {base!r}.")
    K = np.asarray(base(X, Z, **parameters), dtype=float)
    if K.shape != (len(X), len(Z)):
        raise ValueError(f"the base kernel must return a ({len(X)}, {len(Z)}) matrix; got {K.shape}.")
    return K


def is_known_invariant(base: Kernel, group: Group) -> bool:
    """Say whether a base kernel is one that this action is known to leave alone.

    >>> from pindown.symmetry import cyclic
    >>> is_known_invariant("rbf", cyclic(3)), is_known_invariant(lambda X, Z: X @ Z.T, cyclic(3))
    (True, False)
    """
    if group.action is not None and group.representation is None:
        return False
    permutes = orthogonal = True  # as the regular representation does
    if group.representation is not None:
        matrices = group.representation[list(group.generators)]
        orthogonal = is_orthogonal(matrices)
        permutes = orthogonal and bool(np.isin(matrices, (0.0, 1.0)).all())
    if isinstance(base, str):
        return permutes if base in _OF_COORDINATES else orthogonal and base in _OF_LENGTHS
    return orthogonal and _is_of_lengths(base)


def _is_of_lengths(kernel: Any) -> bool:
    """Say whether a kernel object of scikit-learn depends on inner products and lengths only."""
    parts = [getattr(kernel, name) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)]
    name = type(kernel).__name__
    if not type(kernel).__module__.startswith("sklearn.gaussian_process"):
        return False
    if name in ("Sum", "Product", "Exponentiation"):
        return all(_is_of_lengths(part) for part in parts)
    if name in ("RBF", "Matern"):
        return bool(np.ndim(kernel.length_scale) == 0 or np.size(kernel.length_scale) == 1)
    return name in ("RationalQuadratic", "DotProduct", "ConstantKernel")


def _one_sum_is_enough(base: Kernel, group: Group, mode: str) -> bool:
    return mode == "single" or (mode == "auto" and is_known_invariant(base, group))


def _one_sum(base: Kernel, group: Group, X: Array, Z: Array, parameters: dict[str, Any]) -> Array:
    total = np.zeros((len(X), len(Z)))
    for g in range(group.order):
        total += base_gram(base, X, group.act(g, Z), parameters)
    return total / group.order


def _both_sums(base: Kernel, group: Group, X: Array, Z: Array, parameters: dict[str, Any]) -> Array:
    total = np.zeros((len(X), len(Z)))
    for g in range(group.order):
        total += _one_sum(base, group, group.act(g, X), Z, parameters)
    return total / group.order


def _check_unmoved(base: Kernel, group: Group, X: Array, parameters: dict[str, Any]) -> None:
    some = X[:8]
    K = base_gram(base, some, some, parameters)
    for g in group.generators:
        moved = group.act(g, some)
        wrong = np.abs(base_gram(base, moved, moved, parameters) - K).max()
        if wrong > INVARIANCE_TOLERANCE * (1.0 + np.abs(K).max()):
            raise ValueError(
                f"mode 'single' needs K'(gx, gx') = K'(x, x'), but element {group.elements[g]!r} of "
                f"{group.name} changes the base kernel by {wrong:.2g}; use mode 'double'."
            )


def _warn_if_vanishing(K: Array, base: Kernel, X: Array, parameters: dict[str, Any]) -> None:
    some = X[:8]
    size = np.abs(np.diag(base_gram(base, some, some, parameters))).max()
    if size > 0 and np.abs(np.diag(K)).max() <= VANISHING * size:
        warnings.warn(
            "the averaged kernel is 0: no function of the base kernel is invariant; use a richer one, "
            "such as 'rbf'.",
            UserWarning,
            stacklevel=3,
        )


def _has_noise(kernel: Any) -> bool:
    if type(kernel).__name__ == "WhiteKernel":
        return True
    return any(
        _has_noise(getattr(kernel, name)) for name in ("k1", "k2", "kernel") if hasattr(kernel, name)
    )

"""What gate learners share: scaled inputs, the link through which a gate answers, its guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.evidence import Assumption, Kind, kind_of
from pindown.learn.gates.tuning import ABSURDLY_FAR
from pindown.network import ReluNetwork
from pindown.validation import positive

LinkFunction = Callable[[Array], Array]

_NOTICED = 1e-12  # of the squared size of labels: a risk below is rounding
_MAX_SIZE = 1e70  # its fourth power, which the constants need, is still a float64
# A slope measured between two float64 values is off by about this much of the values' size.
_SLOPE_ROUNDING = 1e-9
_LAST_PLACES = 4  # units in the last place that evaluating a link may be off by


@dataclass(frozen=True)
class Link:
    r"""A non-decreasing function :math:`\sigma` with :math:`|\sigma(u) - \sigma(v)| \le L |u - v|`.

    Attributes:
        name: Its name, or ``"callable"``.
        function: Maps an array to an array of the same shape.
        lipschitz: L.
        leak: Slope for negative arguments if the link is :math:`\max(u, 0) + \alpha \min(u, 0)`, else
            None.
    """

    name: str
    function: LinkFunction
    lipschitz: float
    leak: float | None = None

    def __call__(self, u: Array) -> Array:
        """Return the link's values."""
        values = np.asarray(self.function(u), dtype=np.float64)
        if values.shape != u.shape:
            raise ValueError(
                f"the link must keep shapes; given {u.shape} it returned {values.shape}: vectorise it."
            )
        return values

    def is_steeper_than_declared(self, u: Array) -> bool:
        """Whether the link, on these points, falls or rises faster than its constant allows."""
        points = np.unique(u)
        run = np.diff(points)
        values = self(points)
        rise = np.diff(values)
        # Points and values are themselves off by a rounding of their size (an answer near 0.7 for
        # points that are 1e-19 apart): a few units in the last place of the larger of the two.
        size = max(float(np.abs(points).max(initial=0)), float(np.abs(values).max(initial=0)))
        slack = _SLOPE_ROUNDING * (np.abs(rise) + run) + _LAST_PLACES * np.finfo(float).eps * size
        return bool(np.any(rise < -slack) or np.any(rise > self.lipschitz * run + slack))

    def network(self, weights: Array, intercept: float) -> ReluNetwork:
        """Return the gate as a network.

        Raises:
            AttributeError: If the link is not piecewise linear.
        """
        if self.leak is None:
            raise AttributeError(
                f"a gate with link {self.name!r} is not piecewise linear, so it is no ReLU network; "
                "relu, leaky_relu and identity are."
            )
        row = weights[None]
        if self.leak == 1:
            return ReluNetwork.from_layers([(row, [intercept])])
        if self.leak == 0:
            return ReluNetwork.from_layers([(row, [intercept]), ([[1.0]], [0.0])])
        both = [(np.vstack([row, -row]), [intercept, -intercept]), ([[1.0, -self.leak]], [0.0])]
        return ReluNetwork.from_layers(both)


def leaky_relu(leak: float) -> Link:
    r"""Return the link :math:`\max(u, 0) + \alpha \min(u, 0)`.

    Example:
        >>> leaky_relu(0.5)(np.array([-2.0, 3.0]))
        array([-1.,  3.])
    """
    a = positive("leak", leak, zero=True)
    return Link("leaky_relu", lambda u: np.where(u > 0, u, a * u), max(1.0, a), a)


_LINKS = {
    "identity": Link("identity", lambda u: u, 1.0, 1.0),
    "relu": Link("relu", lambda u: np.maximum(u, 0.0), 1.0, 0.0),
    "sigmoid": Link("sigmoid", expit, 0.25),
    "tanh": Link("tanh", np.tanh, 1.0),
    "softplus": Link("softplus", lambda u: np.logaddexp(u, 0.0), 1.0),
}


def as_link(link: str | LinkFunction, *, leak: float = 0.1, lipschitz: float | None = None) -> Link:
    """Return a link by name, or a callable with its constant.

    Args:
        link: ``"relu"``, ``"leaky_relu"``, ``"identity"``, ``"sigmoid"``, ``"tanh"``, ``"softplus"``, or
            a non-decreasing function of arrays.
        leak: Slope of ``"leaky_relu"`` for negative arguments.
        lipschitz: The Lipschitz constant; needed for a callable, 1 if not given.

    Returns:
        The link.

    Raises:
        ValueError: If the name is unknown or the constant is not positive.

    Example:
        >>> as_link("sigmoid").lipschitz
        0.25
    """
    if callable(link):
        return Link("callable", link, 1.0 if lipschitz is None else positive("lipschitz", lipschitz))
    if link == "leaky_relu":
        return leaky_relu(leak)
    if link not in _LINKS:
        known = ", ".join(sorted([*_LINKS, "leaky_relu"]))
        raise ValueError(f"link must be a callable or one of {known}; got {link!r}.")
    return _LINKS[link]


@dataclass(frozen=True)
class GateGuarantee:
    """A number that a theorem promises for a fitted gate; prints itself with what it rests on.

    Attributes:
        about: What the number bounds.
        value: The bound; infinite if nothing is promised.
        delta: Probability with which it may fail; zero if it cannot.
        assumptions: What it rests on.
        source: The theorem.
        estimated: Whether constants in it were estimated from a sample.
    """

    about: str
    value: float
    delta: float
    assumptions: tuple[Assumption, ...]
    source: str
    estimated: bool = False

    @property
    def kind(self) -> Kind:
        """How the number is known; a violated assumption makes it a heuristic."""
        return kind_of(self.assumptions, delta=self.delta, estimated=self.estimated)

    @property
    def vacuous(self) -> bool:
        """Whether nothing is promised."""
        return not self.value < float("inf")

    def __str__(self) -> str:
        chance = f" with probability {1 - self.delta:.6g}" if self.delta > 0 else ""
        bound = "no bound" if self.vacuous else f"at most {self.value:.6g}"
        rests = "; ".join(map(str, self.assumptions)) or "nothing"
        return f"{self.about}: {bound}{chance} ({self.kind}; {self.source})\nrests on: {rests}"


def scaled_features(X: Array, fit_intercept: bool, scale: float) -> Array:
    """Return the inputs divided by the scale, with a last column for the intercept if there is one."""
    Z = X / scale
    return np.column_stack([Z, np.full(len(Z), 1 / scale)]) if fit_intercept else np.ascontiguousarray(Z)


def check_range(X: Array, y: Array) -> None:
    """Refuse numbers whose powers leave the range of float64.

    Raises:
        ValueError: If inputs are not zero and the largest is not between 1e-70 and 1e70, or a label is
            larger.

    Example:
        >>> check_range(np.array([[1e99]]), np.array([1.0]))
        Traceback (most recent call last):
        ValueError: inputs must reach between 1e-70 and 1e70, labels not more; got 1e+99, 1: rescale.
    """
    inputs, labels = float(np.abs(X).max()), float(np.abs(y).max())
    if inputs > _MAX_SIZE or 0 < inputs < 1 / _MAX_SIZE or labels > _MAX_SIZE:
        raise ValueError(
            "inputs must reach between 1e-70 and 1e70, labels not more; "
            f"got {inputs:.3g}, {labels:.3g}: rescale."
        )


def is_unexplained(residual: Array, pull: Array, w: Array, y: Array, lipschitz: float) -> bool:
    r"""Whether a gate that gave these labels without noise would be absurdly far from the weights w.

    .. math:: \langle \text{pull}, w_* - w \rangle \ge \text{risk} / L,

    so that a large mean squared error under a tiny pull of GLM-Tron needs :math:`w_*` far away.

    Args:
        residual: Labels minus answers.
        pull: The mean of residuals times inputs, for inputs of norm at most one.
        w: The weights.
        y: The labels.
        lipschitz: L.

    Mukherjee 2020, proof of Lemma 3.5.1.
    """
    risk = float(np.mean(residual**2))
    reach = float(np.linalg.norm(w)) + float(np.sqrt(risk))
    noticed = risk > _NOTICED * float(np.mean(y**2))
    return noticed and risk > ABSURDLY_FAR * lipschitz * float(np.linalg.norm(pull)) * reach


class Gate:
    """A fitted gate: weights, intercept, answers, and the network they make."""

    fit_intercept: bool
    start: Any
    scale_: float
    n_features_in_: int
    coef_: Array
    intercept_: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.regressor_tags.poor_score = True  # a gate has one sign: it fits what a gate could have said
        return tags

    @property
    def network_(self) -> ReluNetwork:
        """The gate as a network."""
        if not hasattr(self, "coef_"):
            raise AttributeError("network_ exists after fit.")
        return self._link().network(self.coef_, self.intercept_)

    def _link(self) -> Link:
        return as_link("relu")

    def _largest_norm(self, X: Array) -> float:
        """Return the largest norm of an input, the intercept's one included; 1 if all are zero."""
        biggest = float(np.abs(X).max())
        if biggest == 0:
            return 1.0
        # Divided out first: the square of a huge number overflows.
        squares = ((X / biggest) ** 2).sum(axis=1) + (float(self.fit_intercept) / biggest) ** 2
        return biggest * float(np.sqrt(squares.max()))

    def _first_weights(self, n: int) -> Array:
        if self.start is None:
            return np.zeros(n)
        start = np.array(self.start, dtype=np.float64)
        if start.shape != (n,) or not np.isfinite(start).all():
            raise ValueError(
                f"start must be {n} finite numbers, the intercept last if fitted; "
                f"got shape {start.shape}."
            )
        return start

    def _set_weights(self, scaled: Array) -> None:
        """Publish weights that belong to scaled inputs."""
        w = scaled / self.scale_
        self.coef_ = w[:-1].copy() if self.fit_intercept else w
        self.intercept_ = float(w[-1]) if self.fit_intercept else 0.0

    def predict(self, X: Any) -> Array:
        """Return the gate's answers."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._link()(X @ self.coef_ + self.intercept_)

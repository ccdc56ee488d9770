"""Signatures of samples that do not change under a group: a scikit-learn transformer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.groups import Group, cyclic
from pindown.symmetry.signatures.projections import (
    Projector,
    as_samples,
    check_degree,
    enough_templates,
    span_of_orbits,
    unit_templates,
)
from pindown.symmetry.signatures.readouts import (
    NONLINEARITIES,
    POOLS,
    gap_quantiles,
    moment_rank,
    projection_error,
    readout,
)
from pindown.symmetry.tuning import (
    MAX_MOMENTS,
    MAX_TEMPLATES,
    PROJECTIONS_AT_ONCE,
    THRESHOLD_PROJECTIONS,
)
from pindown.validation import choice, integer

if TYPE_CHECKING:
    from pindown.symmetry.measure.orbit_distances import OrbitReport


@dataclass(frozen=True)
class Selectivity:
    """What a signature cannot see.

    Attributes:
        blind: Dimension of the vectors orthogonal to all template orbits; adding one changes nothing.
        confusions: Why samples of different orbits can share a signature, in words.
        kind: ``"exact"``: each confusion named here exists.
    """

    blind: int
    confusions: tuple[str, ...]
    kind: Kind = "exact"

    def __str__(self) -> str:
        if not self.confusions:
            return "no systematic confusion: samples of different orbits differ, but for special ones."
        return "different orbits can share a signature: " + "; ".join(self.confusions) + "."


class OrbitSignature(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Features that are the same for all samples of one orbit.

    .. math:: \mu_{kb}(x) = \mathrm{pool}_{g \in G} \; \sigma(\langle g x, t_k \rangle - b)

    Templates :math:`t_k` need not resemble the data. The features of x and of g x are equal for every
    element g, whatever the templates, up to rounding. That different orbits have different features is
    true for almost all samples given a few generic templates and all thresholds, and not in general: see
    :meth:`selectivity`. Counts (``"step"``) resolve samples as finely as thresholds are dense.

    Args:
        group: A :class:`pindown.symmetry.Group` that acts on the features; None is cyclic shifts.
        n_templates: How many random unit vectors; None is 20, or as many more as it takes to be blind
            to no direction: at least :math:`d/|G|` and the number of directions the group leaves alone.
        templates: The templates themselves, (K, d), in place of random ones.
        nonlinearity: ``"step"`` (counts above thresholds), ``"sigmoid"``, ``"relu"``, ``"abs"``,
            ``"moments"`` (powers of standardised projections) or ``"max"`` (one number per template).
        thresholds: How many, at quantiles of the projections of the training samples (for ``"moments"``
            the highest power, at most 6); or their values, (B,) or (K, B); or None for a single zero.
        pool: ``"mean"``, ``"sum"`` or ``"max"`` over the group.
        random_state: Seed or generator of the templates.

    Attributes:
        group_: The group.
        templates_: The templates, (K, d).
        thresholds_: The thresholds b of each template, (K, B).
        scale_: Spread of the projections on each template's orbit, (K,).

    >>> X = np.random.default_rng(0).standard_normal((5, 12))
    >>> signature = OrbitSignature(random_state=0).fit(X)
    >>> signature.transform(X).shape
    (5, 160)
    >>> bool(np.allclose(signature.transform(X), signature.transform(np.roll(X, 3, axis=1))))
    True

    Lecture course, sections on invariant and selective representations.
    """

    def __init__(
        self,
        group: Group | None = None,
        *,
        n_templates: int | None = None,
        templates: Any = None,
        nonlinearity: str = "step",
        thresholds: Any = 8,
        pool: str = "mean",
        random_state: Any = None,
    ) -> None:
        self.group = group
        self.n_templates = n_templates
        self.templates = templates
        self.nonlinearity = nonlinearity
        self.thresholds = thresholds
        self.pool = pool
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> OrbitSignature:
        """Draw the templates and place the thresholds.

        Args:
            X: Samples, (n, d).
            y: Ignored.
        """
        X = validate_data(self, X, dtype=np.float64)
        self._check_choices()
        self.group_ = cyclic(X.shape[1]) if self.group is None else self.group
        check_degree(self.group_, X.shape[1])
        self.templates_ = self._choose_templates(X.shape[1])
        self._projector = Projector(self.templates_, self.group_)
        self._place_thresholds(X)
        self._n_features_out = len(self.templates_) * self.thresholds_.shape[1]
        if self.nonlinearity in {"relu", "abs"} and not self.thresholds_.any():
            warnings.warn(
                f"{self.nonlinearity!r} without thresholds confuses x and -x when the mean over the "
                "group is zero; give thresholds=8.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def transform(self, X: Any) -> Array:
        """Return the signatures, (n, K * B): all thresholds of the first template first."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        out = np.empty((len(X), self._n_features_out))
        for rows, projections in self._projector.blocks(X):
            error = projection_error(X[rows], self.templates_)
            out[rows] = readout(
                projections, self.nonlinearity, self.thresholds_, self.pool, self.scale_, error
            ).reshape(len(projections), -1)
        return out

    def selectivity(self) -> Selectivity:
        """Say which samples of different orbits the fitted signature cannot tell apart."""
        check_is_fitted(self)
        d, order = self.n_features_in_, self.group_.order
        blind, words = 0, []
        if self.group_.action is None:
            blind = d - span_of_orbits(self.templates_, self.group_)
            if blind:
                words.append(f"{blind} of {d} directions are orthogonal to every template's orbit")
        if len(self.templates_) == 1 and 2 < order <= d and not blind:
            words.append("one template: permuted projections can belong to another sample")
        if self._n_features_out < d:
            words.append(f"{self._n_features_out} features of {d} numbers cannot be one-to-one")
        if self.nonlinearity == "moments" and self.group_.action is None:
            words += self._lost_by_moments(blind)
        if self.nonlinearity == "step":
            words.append("steps count: changes that carry no projection across a threshold are not seen")
        if self.nonlinearity in {"relu", "abs"} and not self.thresholds_.any():
            words.append("no thresholds: x and -x agree when the mean over the group is zero")
        if self.nonlinearity == "max" or self.pool == "max":
            words.append("maxima keep the largest projection only")
        return Selectivity(blind, tuple(words))

    def _lost_by_moments(self, blind: int) -> list[str]:
        d, (K, highest) = self.n_features_in_, self.thresholds_.shape
        if d * K * self.group_.order > PROJECTIONS_AT_ONCE:
            return []
        seen = moment_rank(self._projector(np.eye(d)), self.thresholds_[:, 0], highest)
        if seen >= d - blind:
            return []
        return [f"powers up to {highest} respond to {seen} of {d} directions only; give more"]

    def _check_choices(self) -> None:
        choice("nonlinearity", self.nonlinearity, NONLINEARITIES)
        choice("pool", self.pool, POOLS)
        if self.group is not None and not isinstance(self.group, Group):
            raise TypeError(
                f"group must be a pindown.symmetry Group such as cyclic(6), or None; got {self.group!r}."
            )

    def _choose_templates(self, d: int) -> Array:
        if self.templates is not None:
            templates = as_samples(self.templates, "templates")
            if templates.shape[1] != d:
                raise ValueError(
                    f"templates have {templates.shape[1]} features and the samples {d}; they must agree."
                )
            return templates.copy()
        rng = self.random_state
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(check_random_state(rng).randint(2**31 - 1))
        if self.n_templates is not None:
            return unit_templates(integer("n_templates", self.n_templates, most=MAX_TEMPLATES), d, rng)
        return enough_templates(self.group_, d, rng)

    def _place_thresholds(self, X: Array) -> None:
        K = len(self.templates_)
        per_sample = self.group_.order
        some = X[:: max(1, len(X) * per_sample // THRESHOLD_PROJECTIONS)]
        seen = np.concatenate([p for _, p in self._projector.blocks(some)]).transpose(1, 0, 2)
        flat = seen.reshape(K, -1)
        spread = flat.std(axis=1)
        self.scale_ = np.where(spread > 0, spread, 1.0)
        given = self.thresholds
        if self.nonlinearity == "max":
            self.thresholds_ = np.zeros((K, 1))
        elif self.nonlinearity == "moments":
            powers = integer("thresholds, the highest power,", given, most=MAX_MOMENTS)
            self.thresholds_ = np.repeat(flat.mean(axis=1, keepdims=True), powers, axis=1)
        elif given is None:
            self.thresholds_ = np.zeros((K, 1))
        elif np.ndim(given) == 0:
            count = integer("thresholds", given, most=MAX_TEMPLATES)
            self.thresholds_ = np.array([gap_quantiles(row, count) for row in flat])
        else:
            self.thresholds_ = _as_thresholds(given, K)
        if self.nonlinearity == "sigmoid":
            # as steep as thresholds are close
            self.scale_ = self.scale_ / self.thresholds_.shape[1]


def _as_thresholds(given: Any, K: int) -> Array:
    values = np.asarray(given, dtype=float)
    if values.ndim > 2 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(
            "thresholds must be a number of them, or finite values (B,) or (K, B); got shape "
            f"{values.shape}."
        )
    if values.ndim == 2 and len(values) != K:
        raise ValueError(f"thresholds have {len(values)} rows for {K} templates; give one row each.")
    return np.broadcast_to(values, (K, values.shape[-1])).copy()


def orbit_benchmark(
    X: ArrayLike,
    group: Group,
    n_thresholds: Sequence[int] = (1, 2, 4, 8, 16),
    *,
    n_templates: int = 1,
    nonlinearity: str = "step",
    random_state: int | None = 0,
) -> dict[int, OrbitReport]:
    """Measure separation as thresholds are added.

    Args:
        X: One sample per orbit, (Q, d).
        group: The group.
        n_thresholds: Numbers of thresholds to try.
        n_templates: K, the same templates for all.
        nonlinearity: The response, as for :class:`OrbitSignature`.
        random_state: Seed of the templates.

    Returns:
        Number of thresholds to a report of distances within and between orbits.

    >>> from pindown.symmetry.groups import cyclic
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((10, 16))
    >>> table = orbit_benchmark(X, cyclic(16), (1, 16), n_templates=2)
    >>> table[1].auc < table[16].auc == 1.0
    True

    Lecture course, section on simulations.
    """
    from pindown.symmetry import orbit_report

    out = {}
    for count in n_thresholds:
        signature = OrbitSignature(
            group,
            n_templates=n_templates,
            thresholds=count,
            nonlinearity=nonlinearity,
            random_state=random_state,
        ).fit(X)
        out[count] = orbit_report(signature.transform, group=group, X=X)
    return out

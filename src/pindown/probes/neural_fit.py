r"""How well a network's features predict recorded responses, and whether it errs where people do.

The parts of a Brain-Score: neural predictivity, behavioural consistency, and their mean.

For every recorded unit, responses are regressed on features of the same stimuli, and

.. math:: r = \mathrm{corr}(\text{response}, \text{prediction on stimuli that were left out}), \qquad
          r_{\text{corrected}} = r / \sqrt{\text{reliability}},

since noise in the responses of reliability :math:`\rho` lowers every correlation with them by
:math:`\sqrt\rho`. Arrays in, numbers out: which recordings to use is up to the reader.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.errors import ParameterError
from pindown.evidence import Kind
from pindown.probes.tuning import DIFFERENTIATED_ROWS, MIN_STIMULI, RIDGE_STRENGTHS
from pindown.torch_modules import layer_outputs
from pindown.validation import array, choice, integer


@dataclass(frozen=True, eq=False)
class NeuralFit:
    """Correlations of predictions with responses, one per unit.

    Attributes:
        value: Median over units of the corrected correlations, without those that are not defined.
        correlations: As measured, (units,); NaN where a response does not vary.
        corrected: Divided by the root of the reliability, at most 1, (units,).
        n_stimuli: How many there were.
        method: ``"pls"`` or ``"ridge"``.
        kind: ``"estimate"``.
    """

    value: float
    correlations: Array = field(repr=False)
    corrected: Array = field(repr=False)
    n_stimuli: int
    method: str
    kind: Kind = "estimate"

    def __str__(self) -> str:
        return (
            f"median correlation {self.value:.3f} over {len(self.correlations)} units, {self.n_stimuli} "
            f"stimuli, {self.method}, cross-validated (estimate)"
        )


def neural_predictivity(
    features: ArrayLike,
    responses: ArrayLike,
    *,
    method: Literal["pls", "ridge"] = "pls",
    n_components: int = 25,
    n_splits: int = 5,
    reliability: ArrayLike | None = None,
    random_state: int = 0,
) -> NeuralFit:
    """Predict responses from features by cross-validated regression, and correlate.

    Args:
        features: A network's features, (stimuli, features); of torch modules :func:`layer_features`.
        responses: Recorded responses to the same stimuli, (stimuli, units) or (stimuli,).
        method: Partial least squares, or ridge regression with its strength chosen inside.
        n_components: Components of partial least squares; fewer if there are fewer features or stimuli.
        n_splits: Parts, each of which is predicted from the others.
        reliability: How reliable the responses are, one number or one per unit, in (0, 1]; None corrects
            nothing. See :func:`response_reliability`; a unit for which that is 0 or NaN is left out of
            the median.
        random_state: Seed of the parts.

    Raises:
        ValueError: If shapes do not fit, numbers are not finite or there are too few stimuli.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 5))
        >>> round(neural_predictivity(X, X @ rng.standard_normal((5, 3))).value, 3)
        1.0

    Schrimpf et al. 2020, "Integrative benchmarking to advance neurally mechanistic models of human
    intelligence"; Lecture course, section on brain-likeness.
    """
    n_components, n_splits = (
        integer("n_components", n_components),
        integer("n_splits", n_splits, least=2),
    )
    choice("method", method, ("pls", "ridge"))
    X, Y = _rows("features", features), _rows("responses", responses)
    if len(X) != len(Y) or len(X) < max(MIN_STIMULI, n_splits):
        raise ValueError(
            f"features and responses need the same stimuli, at least {max(MIN_STIMULI, n_splits)}; got "
            f"{len(X)} and {len(Y)}."
        )
    ceiling = _reliability(reliability, Y.shape[1])
    found = columnwise_correlation(_predicted(X, Y, method, n_components, n_splits, random_state), Y)
    with np.errstate(divide="ignore", invalid="ignore"):
        corrected = np.where(ceiling > 0, np.clip(found / np.sqrt(ceiling), -1.0, 1.0), np.nan)
    known = corrected[~np.isnan(corrected)]
    value = float(np.median(known)) if len(known) else math.nan
    return NeuralFit(value, found, corrected, len(X), method)


def layer_features(module: Any, X: Any, layer: str, *, average: bool = False) -> Array:
    """Return what a layer of a torch module makes of images, for :func:`neural_predictivity`.

    Args:
        module: Any torch module; it runs in evaluation mode and is left as it was.
        X: Images, as the module takes them, (n, ...).
        layer: Name of the layer, as in ``module.named_modules()``.
        average: Whether to average over places, if the layer gives (n, channels, places...).

    Returns:
        The features, (n, features).

    Raises:
        ValueError: If there is no such layer, or it gives no tensor with a row for each image.

    Example:
        >>> from torch import nn
        >>> net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU())
        >>> images = np.zeros((5, 1, 40, 40))
        >>> layer_features(net, images, "1").shape, layer_features(net, images, "1", average=True).shape
        ((5, 5776), (5, 4))
    """
    made = layer_outputs(module, X, [layer], together=DIFFERENTIATED_ROWS)[layer]
    values = np.asarray(made.double().numpy()).reshape(len(made), *made.shape[1:2], -1)
    return np.asarray(values.mean(axis=2) if average else values.reshape(len(made), -1))


def response_reliability(repeats: ArrayLike, *, random_state: int = 0, n_halvings: int = 20) -> Array:
    r"""Return how reliable the mean over repeats is, per unit, by halves and Spearman and Brown.

    .. math:: \rho = 2 r / (1 + r), \quad r \text{ the correlation of the means of two halves}

    Args:
        repeats: Responses, (repeats, stimuli, units), at least two repeats.
        random_state: Seed of the halves.
        n_halvings: How many, to be averaged.

    Returns:
        One number per unit, at least 0; NaN where a unit does not vary.

    Example:
        >>> same = np.arange(6.0)[None, :, None] * np.ones((4, 1, 1))
        >>> response_reliability(same).tolist()
        [1.0]

    Spearman 1910; Brown 1910.
    """
    values = array("repeats", repeats)
    enough = values.ndim == 3 and len(values) >= 2 and values.shape[1] >= MIN_STIMULI
    if not enough or not np.isfinite(values).all():
        raise ParameterError(
            f"repeats must be finite numbers (repeats, stimuli, units), at least 2 and {MIN_STIMULI}; "
            f"got shape {values.shape}."
        )
    rng, found = np.random.default_rng(random_state), []
    for _ in range(n_halvings):
        order = rng.permutation(len(values))
        half = len(values) // 2
        first, second = values[order[:half]], values[order[half : 2 * half]]
        r = np.maximum(columnwise_correlation(first.mean(axis=0), second.mean(axis=0)), 0.0)
        found.append(2.0 * r / (1.0 + r))
    return np.asarray(np.mean(found, axis=0))


def behavioural_consistency(first: ArrayLike, second: ArrayLike) -> float:
    """Return the correlation over images of how often two observers are right.

    Args:
        first: Share of right answers per image, (n,), or right (True) and wrong answers.
        second: The same of the other observer.

    Returns:
        From -1 to 1; NaN if one of them is equally right on all images.

    Example:
        >>> behavioural_consistency([1, 0, 0, 0], [1, 0, 0, 0])
        1.0
        >>> behavioural_consistency([1, 0, 1, 0], [1, 1, 0, 0])
        0.0

    Schrimpf et al. 2020; Lecture course, section on brain-likeness.
    """
    a, b = (np.asarray(values, dtype=np.float64) for values in (first, second))
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise ValueError(f"both need one number per image, at least 2; got {a.shape} and {b.shape}.")
    for values in (a, b):
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError("shares of right answers must lie between 0 and 1.")
    return float(columnwise_correlation(a[:, None], b[:, None])[0])


def brain_likeness(neural: Sequence[float], behavioural: Sequence[float] = ()) -> float:
    """Return the mean over all benchmarks, as Brain-Score does; one that is not defined counts as 0.

    >>> brain_likeness([0.6, 0.4], [0.5])
    0.5
    """
    values = np.array([*neural, *behavioural], dtype=np.float64)
    if not len(values) or (np.abs(values) > 1.0).any():
        raise ValueError("give at least one score between -1 and 1.")
    return float(np.mean(np.nan_to_num(values, nan=0.0)))


def columnwise_correlation(a: Array, b: Array) -> Array:
    """Return Pearson's r of equal columns, NaN where one does not vary."""
    u, v = a - a.mean(axis=0), b - b.mean(axis=0)
    size = np.linalg.norm(u, axis=0) * np.linalg.norm(v, axis=0)
    # A constant column leaves rounding when its mean is taken off.
    rounding = len(a) * np.finfo(float).eps
    steady = (np.abs(u).max(axis=0) <= rounding * np.abs(a).max(axis=0)) | (
        np.abs(v).max(axis=0) <= rounding * np.abs(b).max(axis=0)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.clip(np.sum(u * v, axis=0) / size, -1.0, 1.0)
    return np.where(steady, np.nan, r)


def _predicted(X: Array, Y: Array, method: str, components: int, splits: int, seed: int) -> Array:
    """Return each response as predicted from the other parts."""
    from sklearn.model_selection import KFold

    result = np.empty_like(Y)
    for train, test in KFold(splits, shuffle=True, random_state=seed).split(X):
        varying = X[train].std(axis=0) > 0
        if not varying.any() or not (Y[train].std(axis=0) > 0).any():
            result[test] = Y[train].mean(axis=0)
            continue
        model = _regression(method, min(components, int(varying.sum()), len(train) - 1))
        model.fit(X[train][:, varying], Y[train])
        result[test] = np.reshape(model.predict(X[test][:, varying]), (len(test), Y.shape[1]))
    return result


def _regression(method: str, components: int) -> Any:
    if method == "pls":
        from sklearn.cross_decomposition import PLSRegression

        return PLSRegression(components, scale=False)
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), RidgeCV(RIDGE_STRENGTHS))


def _rows(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers (stimuli, ...); got shape {np.shape(values)}.")
    return array


def _reliability(values: ArrayLike | None, units: int) -> Array:
    if values is None:
        return np.ones(units)
    given = np.asarray(values, dtype=np.float64)
    # Zero and NaN are what response_reliability gives for units of pure noise and for silent ones.
    wrong = (given < 0) | (given > 1) if given.ndim else not 0 < given <= 1
    if given.shape not in ((), (units,)) or np.any(wrong):
        raise ValueError(
            f"reliability must be one number in (0, 1], or {units} of at most 1; got {values!r}."
        )
    return np.broadcast_to(given, (units,))

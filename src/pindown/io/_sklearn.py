"""Fitted scikit-learn estimators as models: linear models, perceptrons, and pipelines that end in one.

A classifier's outputs are what ``predict_proba`` returns, or ``decision_function`` where it has no
probabilities. With two classes there is one output, that of the second class.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.model.agreement import DisagreementError, require_model_agreement
from pindown.model.builder import Builder, Tensor
from pindown.model.graph import Model
from pindown.model.operations.dense import Dense, Reduce, Scale
from pindown.model.operations.moves import Concat, Gather
from pindown.model.operations.normalisation import LpNormalize, Softmax
from pindown.model.operations.operation import Operation
from pindown.model.operations.piecewise_linear import Abs, Clip, ReduceMax, Relu
from pindown.model.operations.products import Multiply
from pindown.model.operations.smooth import Exp, Reciprocal, Sigmoid, Tanh
from pindown.network import ReluNetwork

Rule: TypeAlias = Callable[[Builder, Tensor, Any], Tensor]

_ACCEPTED = (
    "MLPClassifier, MLPRegressor, linear models (LinearRegression, Ridge, LogisticRegression, "
    "LinearSVC, ...), and pipelines of scalers, PCA and selectors that end in one"
)
_SECOND_CLASS = "Of two classes the model returns one number, that of the second class ({})."
_NO_MISSING = "The inputs have no missing values: the imputer is left out."
_MIN_DIVISOR = 1e-300  # a row of zeros is divided by this instead of zero, and stays one


def model_from_estimator(estimator: Any) -> Model:
    """Read a fitted estimator or pipeline.

    Raises:
        TypeError: If it is no scikit-learn estimator.
        ValueError: If it is not fitted.
        UnsupportedModelError: If it is one that is not read, such as a tree.
    """
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        name = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(f"from_sklearn reads a fitted scikit-learn estimator; got {name}.")
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
        n_features = _n_features(estimator)
    except (NotFittedError, AttributeError):
        raise ValueError(f"this {_name(estimator)} is not fitted; call fit first.") from None
    graph = Builder((1, n_features))
    output = _read(graph, graph.input, estimator)
    model = graph.model(output, input_shape=(n_features,), dtype="float64")
    notes = dict.fromkeys((*_notes(estimator, model), *_require_agreement(model, estimator)))
    return replace(model, notes=tuple(notes))


def network_from_estimator(estimator: Any) -> ReluNetwork:
    """Read a fitted estimator and return its exact normal form; see :func:`model_from_estimator`."""
    return model_from_estimator(estimator).relu_network()


# ---------------------------------------------------------------------- one step after the other


def _n_features(estimator: Any) -> int:
    """Return how many columns an estimator was fitted to; a pipeline asks its first real step."""
    for _, step in getattr(estimator, "steps", ()):
        if step is not None and step != "passthrough":
            return _n_features(step)
    return int(estimator.n_features_in_)


def _name(estimator: Any) -> str:
    return type(estimator).__name__


@contextmanager
def _placed(graph: Builder, estimator: Any, name: str = "") -> Iterator[None]:
    """Name a step in messages and in the model."""
    before = graph.place
    graph.place = f"step '{name}' ({_name(estimator)})" if name else _name(estimator)
    try:
        yield
    finally:
        graph.place = before


def _read(graph: Builder, x: Tensor, estimator: Any, name: str = "") -> Tensor:
    """Add what an estimator does; subclasses of what is read are compared with it at the end."""
    for kind in type(estimator).__mro__:
        if kind.__name__ in _RULES and kind.__module__.partition(".")[0] == "sklearn":
            with _placed(graph, estimator, name):
                try:
                    return _RULES[kind.__name__](graph, x, estimator)
                except AttributeError as error:
                    raise ValueError(f"this {_name(estimator)} is not fitted: {error}.") from None
    place = f"step '{name}' of the pipeline" if name else "the estimator"
    raise UnsupportedModelError(
        f"{place} is a {_name(estimator)}, which pindown does not read; it reads {_ACCEPTED}."
    )


def _pipeline(graph: Builder, x: Tensor, pipeline: Any) -> Tensor:
    for name, step in pipeline.steps:
        if step is not None and step != "passthrough":
            x = _read(graph, x, step, name)
    return x


def _columns(graph: Builder, x: Tensor, positions: Any) -> Tensor:
    """Take some of the columns."""
    at = np.arange(x.shape[1])[positions]
    return x if np.array_equal(at, np.arange(x.shape[1])) else graph.add(Gather(at, 1), x)


def _column_transformer(graph: Builder, x: Tensor, transformer: Any) -> Tensor:
    parts = []
    for name, step, _ in transformer.transformers_:
        positions = transformer._transformer_to_input_indices[name]
        if not len(positions) or (isinstance(step, str) and step == "drop"):
            continue
        part = _columns(graph, x, positions)
        passed = isinstance(step, str) or (_name(step) == "FunctionTransformer" and step.func is None)
        parts.append(part if passed else _read(graph, part, step, name))
    return _joined(graph, parts)


def _feature_union(graph: Builder, x: Tensor, union: Any) -> Tensor:
    weights = union.transformer_weights or {}
    parts = []
    for name, step in union.transformer_list:
        if isinstance(step, str) and step == "drop":
            continue
        part = x if isinstance(step, str) else _read(graph, x, step, name)
        parts.append(graph.add(Scale(weights[name]), part) if name in weights else part)
    return _joined(graph, parts)


def _joined(graph: Builder, parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else graph.add(Concat(1), *parts)


# ---------------------------------------------------------------------- scalers, projections, selectors


def _affine(scaler: Any) -> tuple[Any, Any]:
    """Return factor and shift of a scaler, one number for each column."""
    match _name(scaler):
        case "MinMaxScaler":
            return scaler.scale_, scaler.min_
        case "MaxAbsScaler":
            return 1.0 / scaler.scale_, 0.0
        case "StandardScaler":
            centre, scale = scaler.mean_ if scaler.with_mean else None, scaler.scale_
        case _:
            centre = scaler.center_ if scaler.with_centering else None
            scale = scaler.scale_ if scaler.with_scaling else None
    factor = 1.0 if scale is None else 1.0 / scale
    return factor, 0.0 if centre is None else -centre * factor


def _scaler(graph: Builder, x: Tensor, scaler: Any) -> Tensor:
    factor, shift = (np.broadcast_to(v, (x.shape[1],)) for v in _affine(scaler))
    x = graph.add(Scale(factor, shift, _name(scaler)), x)
    if getattr(scaler, "clip", False):
        low, high = scaler.feature_range
        x = graph.add(Clip(float(low), float(high)), x)
    return x


def _normalizer(graph: Builder, x: Tensor, normalizer: Any) -> Tensor:
    if normalizer.norm in ("l1", "l2"):
        return graph.add(LpNormalize(1, int(normalizer.norm[1])), x)
    size = graph.add(Clip(_MIN_DIVISOR, math.inf), graph.add(ReduceMax((1,)), graph.add(Abs(), x)))
    return graph.add(Multiply(), x, graph.add(Reciprocal(), size))


def _projection(graph: Builder, x: Tensor, step: Any) -> Tensor:
    """Take off the mean, if there is one, and multiply by the components."""
    W = np.asarray(step.components_, dtype=np.float64)
    if getattr(step, "whiten", False) and hasattr(step, "explained_variance_"):
        # As PCA does it: a component without variance is left alone.
        deviations = np.sqrt(step.explained_variance_)
        smallest = np.finfo(deviations.dtype).eps
        W = W / np.where(deviations < smallest, smallest, deviations)[:, None]
    mean = getattr(step, "mean_", None)
    return graph.add(Dense(W, None if mean is None else -W @ mean), x)


def _selector(graph: Builder, x: Tensor, selector: Any) -> Tensor:
    return _columns(graph, x, selector.get_support(indices=True))


def _imputer(graph: Builder, x: Tensor, imputer: Any) -> Tensor:
    """Leave the columns alone that the imputer keeps: nothing is missing."""
    kept = ~np.isnan(np.asarray(imputer.statistics_, dtype=np.float64))
    if imputer.add_indicator or not (kept.all() or not imputer.keep_empty_features):
        raise UnsupportedModelError("of imputers pindown reads those that add no columns.")
    return _columns(graph, x, np.flatnonzero(kept))


# ---------------------------------------------------------------------- linear models


def _linear(graph: Builder, x: Tensor, estimator: Any) -> Tensor:
    """Return ``coef_ x + intercept_``, one output for each row of coefficients."""
    W = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
    b = np.broadcast_to(np.asarray(estimator.intercept_, dtype=np.float64).ravel(), len(W))
    return graph.add(Dense(W, b), x)


def _exponential(graph: Builder, x: Tensor, estimator: Any) -> Tensor:
    """Return the mean of a generalised linear model with a logarithmic link."""
    if _name(estimator) == "TweedieRegressor" and (
        estimator.link == "identity" or (estimator.link == "auto" and estimator.power <= 0)
    ):
        return _linear(graph, x, estimator)
    return graph.add(Exp(), _linear(graph, x, estimator))


def _logistic(graph: Builder, x: Tensor, estimator: Any) -> Tensor:
    """Return probabilities: a sigmoid of two classes, else a softmax or sigmoids over their sum."""
    if not hasattr(estimator, "predict_proba"):  # another loss of SGDClassifier
        return _linear(graph, x, estimator)
    scores = _linear(graph, x, estimator)
    if scores.shape[1] == 1:
        return graph.add(Sigmoid(), scores)
    separate = (
        _name(estimator) == "SGDClassifier"
        or getattr(estimator, "multi_class", None) == "ovr"
        or getattr(estimator, "solver", None) == "liblinear"
    )
    if not separate:
        return graph.add(Softmax(1), scores)
    if getattr(estimator, "loss", "log_loss") != "log_loss":
        raise UnsupportedModelError(
            "of SGDClassifier's probabilities pindown reads those of loss='log_loss'."
        )
    shares = graph.add(Sigmoid(), scores)
    return graph.add(Multiply(), shares, graph.add(Reciprocal(), graph.add(Reduce((1,)), shares)))


def _support_vectors(graph: Builder, x: Tensor, estimator: Any) -> Tensor:
    if estimator.kernel != "linear":
        raise UnsupportedModelError(
            f"a support vector machine with kernel={estimator.kernel!r} is not read; kernel='linear' is."
        )
    if len(getattr(estimator, "classes_", ())) > 2:
        raise UnsupportedModelError("an SVC votes among more than two classes; LinearSVC is read.")
    return _linear(graph, x, estimator)


def _target(graph: Builder, x: Tensor, estimator: Any) -> Tensor:
    """Return a regressor's output, with the target's transformation undone."""
    y = _read(graph, x, estimator.regressor_, "regressor")
    transformer = estimator.transformer_
    if _name(transformer) in _SCALERS:
        factor, shift = (np.broadcast_to(v, (y.shape[1],)) for v in _affine(transformer))
        return graph.add(Scale(1.0 / factor, -shift / factor, f"inverse {_name(transformer)}"), y)
    inverse = getattr(transformer, "inverse_func", transformer)
    if inverse is np.exp:
        return graph.add(Exp(), y)
    if inverse is np.expm1:
        return graph.add(Scale(shift=np.array(-1.0)), graph.add(Exp(), y))
    if inverse is None:
        return y
    raise UnsupportedModelError(
        "of targets' transformations pindown reads scalers, np.log with np.exp, np.log1p with np.expm1."
    )


# ---------------------------------------------------------------------- perceptrons

_HIDDEN: dict[str, Operation | None] = {
    "relu": Relu(),
    "identity": None,
    "tanh": Tanh(),
    "logistic": Sigmoid(),
}
_LAST: dict[str, Operation | None] = {
    "identity": None,
    "softmax": Softmax(1),
    "logistic": Sigmoid(),
    "exp": Exp(),
}


def _perceptron(graph: Builder, x: Tensor, estimator: Any) -> Tensor:
    place = graph.place
    for i, (W, b) in enumerate(zip(estimator.coefs_, estimator.intercepts_, strict=True), 1):
        last = i == len(estimator.coefs_)
        name = estimator.out_activation_ if last else estimator.activation
        table = _LAST if last else _HIDDEN
        if name not in table:
            raise UnsupportedModelError(
                f"the activation {name!r} is not read; pindown reads {', '.join(table)}."
            )
        graph.place = f"{place}, layer {i}"
        x = graph.add(Dense(W.T, b), x)
        activation = table[name]
        x = x if activation is None else graph.add(activation, x)
    return x


_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_PLAIN = (
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "LassoLars", "Lars", "ElasticNet"),
    *(
        "ElasticNetCV",
        "MultiTaskLasso",
        "MultiTaskElasticNet",
        "OrthogonalMatchingPursuit",
        "BayesianRidge",
    ),
    *("ARDRegression", "HuberRegressor", "TheilSenRegressor", "QuantileRegressor", "SGDRegressor"),
    *("PassiveAggressiveRegressor", "LinearSVR", "LinearSVC", "Perceptron", "RidgeClassifier"),
    *("RidgeClassifierCV", "PassiveAggressiveClassifier"),
)
_PROBABLE = ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis", "SGDClassifier")
_RULES: dict[str, Rule] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FeatureUnion": _feature_union,
    **dict.fromkeys(_SCALERS, _scaler),
    "Normalizer": _normalizer,
    **dict.fromkeys(("PCA", "IncrementalPCA", "TruncatedSVD"), _projection),
    **dict.fromkeys(("GaussianRandomProjection", "FastICA"), _projection),
    "SelectorMixin": _selector,
    "SimpleImputer": _imputer,
    **dict.fromkeys(_PLAIN, _linear),
    **dict.fromkeys(("PoissonRegressor", "GammaRegressor", "TweedieRegressor"), _exponential),
    **dict.fromkeys(_PROBABLE, _logistic),
    **dict.fromkeys(("SVC", "SVR", "NuSVC", "NuSVR"), _support_vectors),
    "TransformedTargetRegressor": _target,
    **dict.fromkeys(("MLPClassifier", "MLPRegressor"), _perceptron),
    "BaseSearchCV": lambda graph, x, search: _read(graph, x, search.best_estimator_),
}

# ---------------------------------------------------------------------- is it the same function?


def _steps(estimator: Any) -> Iterator[Any]:
    """Yield an estimator and what it is made of."""
    yield estimator
    inner = [step for _, step in getattr(estimator, "steps", ())]
    inner += [entry[1] for entry in getattr(estimator, "transformers_", ())]
    inner += [step for _, step in getattr(estimator, "transformer_list", ())]
    inner += [getattr(estimator, name, None) for name in ("best_estimator_", "regressor_")]
    for part in inner:
        if part is not None and not isinstance(part, str):
            yield from _steps(part)


def _notes(estimator: Any, model: Model) -> Iterator[str]:
    if any(_name(step) == "SimpleImputer" for step in _steps(estimator)):
        yield _NO_MISSING
    classes: Any = getattr(estimator, "classes_", ())
    if model.out_features == 1 and len(classes) == 2:
        yield _SECOND_CLASS.format(classes[1])


def _reference(estimator: Any) -> Callable[[Array, Any], Array]:
    """Return what the estimator itself returns, as a function of one row."""
    names = getattr(estimator, "feature_names_in_", None)
    kinds = ("predict_proba", "decision_function", "predict", "transform")
    ask = getattr(estimator, next(kind for kind in kinds if hasattr(estimator, kind)))

    def reference(row: Array, change: Any) -> Array:
        X: Any = (row if change is None else change(row))[None]
        if names is not None:
            import pandas  # type: ignore[import-untyped]

            X = pandas.DataFrame(X, columns=names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = ask(X)
        y = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64).ravel()
        if len(getattr(estimator, "classes_", ())) == 2 and y.size == 2:
            return y[1:]
        return y

    return reference


def _rows(estimator: Any, n_features: int) -> Array:
    """Return inputs about as large as those that the estimator was fitted to, as far as it remembers."""
    rng = np.random.default_rng(0)
    centre, spread = np.zeros(n_features), np.ones(n_features)
    for step in _steps(estimator):
        if _name(step) in _SCALERS and getattr(step, "n_features_in_", 0) == n_features:
            factor, shift = _affine(step)
            spread = np.broadcast_to(1.0 / np.asarray(factor), n_features)
            centre = -np.broadcast_to(shift, n_features) * spread
            break
    sizes = np.array([1.0, 2.0, 1e-3])[:, None]
    return np.asarray(centre + spread * sizes * rng.normal(size=(3, n_features)))


def _require_agreement(model: Model, estimator: Any) -> tuple[str, ...]:
    """Compare the model with what the estimator predicts."""
    try:
        rows = _rows(estimator, model.in_features)
        return require_model_agreement(
            model, _reference(estimator), rows=rows, single=_is_single(estimator)
        )
    except DisagreementError as error:
        raise UnsupportedModelError(f"the estimator was not read as what it is: {error}") from None


def _is_single(estimator: Any) -> bool:
    """Return whether a fitted array of an estimator or its parts is float32: then it computes so."""
    waiting, seen = [estimator], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, np.ndarray):
            if value.dtype in (np.float32, np.float16):
                return True
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif type(value).__module__.partition(".")[0] == "sklearn":
            waiting.extend(getattr(value, "__dict__", {}).values())
    return False

"""Operations of the domain ai.onnx.ml, as converters of scikit-learn estimators write them."""

from __future__ import annotations

import math

import numpy as np

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.data_movement import with_shape
from pindown.io._onnx.node import Node, Rule, Value
from pindown.io._onnx.picking import picked
from pindown.model.operations.dense import Dense, Scale
from pindown.model.operations.elementary import Reciprocal
from pindown.model.operations.maxima import ReduceMax
from pindown.model.operations.moves import Concat, Gather
from pindown.model.operations.normalisation import LpNormalize
from pindown.model.operations.operation import frozen
from pindown.model.operations.products import Multiply
from pindown.model.operations.smooth import Sigmoid
from pindown.model.operations.softmax import Softmax


def _numbers(
    node: Node, name: str, lengths: tuple[int, ...]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    found = node.reals(name)
    values = np.array(() if found is None else found, dtype=np.float64)
    if values.size not in lengths or not np.isfinite(values).all():
        raise ModelFileError(f"{node.op} cannot have {values.size} numbers as its '{name}'.")
    return values


def _rows(node: Node) -> Value:
    """Return the input as a matrix."""
    x = node.operand(0)
    if len(x.shape) == 1:
        return with_shape(node, x, (1, x.shape[0]))
    if len(x.shape) != 2:
        raise ModelFileError(f"{node.op} needs a matrix; got a tensor of shape {x.shape}.")
    return x


def _scaler(node: Node) -> Value:
    x = node.operand(0)
    n = x.shape[-1] if x.shape else 1
    offset, scale = _numbers(node, "offset", (0, 1, n)), _numbers(node, "scale", (0, 1, n))
    scale = scale if scale.size else np.ones(1)
    return node.apply(Scale(scale, -offset * scale if offset.size else None, "Scaler"), x)


def _normalizer(node: Node) -> Value:
    x, norm = _rows(node), node.text("norm", "MAX")
    if norm in ("L1", "L2"):
        return node.apply(LpNormalize(1, int(norm[1])), x)
    if norm != "MAX":
        raise ModelFileError(f"Normalizer divides by MAX, L1 or L2; got '{norm}'.")
    return node.apply(Multiply(), x, node.chain(x, ReduceMax((1,)), Reciprocal()))


def _transformed(node: Node, scores: Value) -> Value:
    """Apply what a linear model does to its scores at the end."""
    kind = node.text("post_transform", "NONE")
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return node.apply(Sigmoid(), scores)
    if kind == "SOFTMAX":
        return node.apply(Softmax(1), scores)
    raise UnsupportedModelError(f"{node.op} with the transform '{kind}' is not read.")


def _linear(node: Node, x: Value, count: int, intercepts: str) -> Value:
    weight = _numbers(node, "coefficients", (count * x.shape[1],)).reshape(count, x.shape[1])
    bias = _numbers(node, intercepts, (0, count))
    return node.apply(Dense(frozen(weight), frozen(bias) if bias.size else None), x)


def _linear_regressor(node: Node) -> Value:
    x = _rows(node)
    return _transformed(node, _linear(node, x, node.integer("targets", 1), "intercepts"))


def _linear_classifier(node: Node) -> list[Value | None]:
    """Return nothing for the labels, which jump, and the scores."""
    x = _rows(node)
    labels = node.integers("classlabels_ints") or node.texts("classlabels_strings") or ()
    size = len(node.reals("coefficients") or ())
    count = size // x.shape[1]
    if size == 0 or size % x.shape[1]:
        raise ModelFileError(f"LinearClassifier has {size} coefficients for {x.shape[1]} inputs.")
    if len(labels) < count or len(labels) not in (count, 2):
        raise ModelFileError(f"LinearClassifier names {len(labels)} labels of {count} classes.")
    scores = _linear(node, x, count, "intercepts")
    if count == 1 and len(labels) == 2:
        return [None, _two_scores(node, scores)]
    return [None, _transformed(node, scores)]


def _two_scores(node: Node, score: Value) -> Value:
    """Return the scores of two classes from one: a probability and the rest of it."""
    if node.text("post_transform", "NONE") != "LOGISTIC":
        raise UnsupportedModelError(
            f"{node.op} of one score is read with the transform LOGISTIC; runtimes disagree on others."
        )
    score = node.apply(Sigmoid(), score)
    other = node.apply(Scale(np.array(-1.0), np.array(1.0)), score)
    return node.apply(Concat(1), other, score)


def _imputer(node: Node) -> Value:
    """Replace NaN, of which inputs here have none."""
    x = node.operand(0)
    if not math.isnan(node.real("replaced_value_float", 0.0)):
        raise UnsupportedModelError(
            "Imputer is read where it replaces NaN; another value would be a jump."
        )
    node.notes.append("Missing values (NaN) are replaced in the file; inputs here have none.")
    return x


def _feature_vectorizer(node: Node) -> Value:
    values = node.operands()
    return values[0] if len(values) == 1 else node.apply(Concat(1), *values)


def _array_feature_extractor(node: Node) -> Value:
    x, index = node.value(0), node.constant(1).ravel()
    n = x.shape[-1] if x.shape else 0
    if ((index < 0) | (index >= n)).any() or not len(x.shape):
        raise ModelFileError(f"it picks entries beyond an axis of length {n}.")
    if len(x.shape) == 1:
        return with_shape(node, picked(node, x, index), (1, index.size))
    return node.apply(Gather(index.astype(np.int64), len(x.shape) - 1), x)


MACHINE_LEARNING: dict[str, Rule] = {
    "ArrayFeatureExtractor": _array_feature_extractor,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _imputer,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "Normalizer": _normalizer,
    "Scaler": _scaler,
}

"""Logits and features from whatever a person has: scikit-learn, torch, a function, or arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.learn.distillation.student import Labels, answers, as_logits, probabilities
from pindown.learn.distillation.tuning import MAX_LOGIT, MIN_SCORE_AGREEMENT
from pindown.torch_modules import in_evaluation, is_module

_SAME = 1e-6  # a decision function whose softmax is predict_proba within this holds the logits


@dataclass(frozen=True, eq=False)
class TeacherAnswers:
    """What a teacher says on inputs.

    Attributes:
        logits: (n,) for two classes, or centred (n, k).
        classes: Names of the classes, in the order of the logits.
        how: Where the logits come from, in words.
        cut: Share of samples whose probabilities had reached 0 or 1, so that their logits are not known.
    """

    logits: Array
    classes: NDArray[Any]
    how: str
    cut: float = 0.0


def teacher_answers(
    teacher: Any, X: Any, *, outputs: Labels = "logit", batch_size: int = 1024
) -> TeacherAnswers:
    """Ask a teacher for its logits.

    Args:
        teacher: A fitted scikit-learn classifier, a torch module, a function of X, or the answers
            themselves as an array.
        X: Inputs, first axis samples.
        outputs: Whether a module, a function or an array gives logits or probabilities.
        batch_size: Inputs that go through a torch module at once.

    Raises:
        TypeError: If the teacher cannot be asked.

    Example:
        >>> answers = teacher_answers(lambda X: 2 * X[:, 0], np.array([[1.0, 0.0]]))
        >>> answers.logits, answers.classes
        (array([2.]), array([0, 1]))
    """
    if is_module(teacher):
        return _raw(through_module(teacher, X, batch_size), outputs, f"outputs of {_name(teacher)}")
    if hasattr(teacher, "classes_") or hasattr(teacher, "predict_proba"):
        return _from_classifier(teacher, X)
    if isinstance(teacher, np.ndarray | list | tuple):
        return _raw(np.asarray(teacher, dtype=np.float64), outputs, "given answers")
    if callable(teacher):
        return _raw(np.asarray(teacher(X), dtype=np.float64), outputs, "answers of a function")
    raise TypeError(
        f"cannot ask a {_name(teacher)} for logits; give a fitted classifier with predict_proba or "
        "decision_function, a torch module, a function of X, or an array of logits."
    )


def _raw(found: Array, outputs: Labels, how: str) -> TeacherAnswers:
    if found.ndim > 2:
        raise ValueError(f"{how} must have shape (n,) or (n, k); got {found.shape}.")
    if outputs == "logit" and np.array_equal(np.unique(found), [0.0, 1.0]):
        raise ValueError(
            f"the {how} are only 0 and 1: hard labels, not logits; give logits, or probabilities with "
            "outputs='probability'."
        )
    flat = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
    if outputs == "logit" and _looks_like_probabilities(flat):
        warnings.warn(
            f"the {how} are between 0 and 1 and add up to one: they look like probabilities; pass "
            "outputs='probability' if they are.",
            stacklevel=4,
        )
    logits = as_logits(flat, outputs)
    classes = np.arange(2 if logits.ndim == 1 else logits.shape[1])
    cut = _saturated(flat) if outputs == "probability" else 0.0
    return TeacherAnswers(logits, classes, how, cut)


def _from_classifier(teacher: Any, X: Any) -> TeacherAnswers:
    known, name = getattr(teacher, "classes_", ()), _name(teacher)
    if isinstance(known, list) and any(np.ndim(part) for part in known):
        raise ValueError(f"{name} answers several questions at once; distil it for one of them.")
    classes = np.asarray(known)
    if classes.ndim != 1 or len(classes) < 2:
        raise ValueError(
            f"{name} knows {classes.size} classes; give a fitted classifier of two or more."
        )
    scores = None
    if hasattr(teacher, "decision_function"):
        scores = np.asarray(teacher.decision_function(X), dtype=np.float64)
        # Three classes have three pairs: the shape does not tell scores of classes from those of pairs.
        if scores.shape[1:] != (() if len(classes) == 2 else (len(classes),)) or (
            np.mean(classes[answers(scores)] == teacher.predict(X)) < MIN_SCORE_AGREEMENT
        ):
            scores = None
    if hasattr(teacher, "predict_proba"):
        chances = np.asarray(teacher.predict_proba(X), dtype=np.float64)
        if scores is not None and np.abs(probabilities(scores) - chances).max() <= _SAME:
            return TeacherAnswers(as_logits(scores), classes, f"decision function of {name}")
        logits = as_logits(chances[:, 1] if len(classes) == 2 else chances, "probability")
        how = f"logarithms of the probabilities of {name}"
        return TeacherAnswers(logits, classes, how, _saturated(chances))
    if scores is None:
        raise TypeError(
            f"{name} has neither predict_proba nor one score for each class whose largest is its "
            "answer; set decision_function_shape='ovr' on an SVC, or give a function of X that returns "
            "logits."
        )
    return TeacherAnswers(as_logits(scores), classes, f"scores of {name}, which are not log-odds")


def _saturated(chances: Array) -> float:
    """Return the share of samples with a probability too near 0 or 1 to tell its logit."""
    least = np.minimum(chances, 1.0 - chances) if chances.ndim == 1 else chances.min(axis=1)
    return float(np.mean(least <= np.exp(-MAX_LOGIT)))


def _looks_like_probabilities(found: Array) -> bool:
    if found.ndim != 2 or found.shape[1] < 2 or not found.size or (found < 0).any():
        return False
    return bool(np.abs(found.sum(axis=1) - 1.0).max() <= _SAME)


def features_of(features: Any, X: Any, batch_size: int = 1024) -> Array:
    """Return the features of inputs as (n, d) float64.

    Args:
        features: None for the inputs themselves, flattened; a torch module, a fitted scikit-learn
            transformer, or a function of X.
        X: Inputs, first axis samples.
        batch_size: Inputs that go through a torch module at once.

    >>> features_of(lambda X: X**2, np.array([[1.0, 3.0]]))
    array([[1., 9.]])
    """
    found: Any = X
    if is_module(features):
        found = through_module(features, X, batch_size)
    elif hasattr(features, "transform"):
        found = features.transform(X)
    elif callable(features):
        found = features(X)
    elif features is not None:
        raise TypeError(
            f"features must be None, a function, a transformer or a torch module; got {_name(features)}."
        )
    found = found.toarray() if hasattr(found, "toarray") else found
    found = found.detach().cpu() if hasattr(found, "detach") else found
    table = np.asarray(found, dtype=np.float64)
    if table.ndim < 1 or not len(table) or not np.isfinite(table).all():
        raise ValueError(f"features must be finite, one row for each input; got shape {table.shape}.")
    return table.reshape(len(table), -1)


def through_module(module: Any, X: Any, batch_size: int) -> Array:
    """Return a module's outputs in evaluation mode, as float64; its mode is put back."""
    from pindown.extras import torch

    one = next(iter([*module.parameters(), *module.buffers()]), torch.zeros(()))
    kind = one.dtype if one.is_floating_point() else torch.float32
    with in_evaluation(module), torch.no_grad():
        inputs = torch.as_tensor(X if isinstance(X, torch.Tensor) else np.asarray(X))
        parts: list[Any] = [
            module(part.to(device=one.device, dtype=kind)) for part in inputs.split(batch_size)
        ]
    if not all(isinstance(part, torch.Tensor) for part in parts):
        raise TypeError(
            f"{_name(module)} returns {_name(parts[0])}, not a tensor; wrap it in a module that does."
        )
    return np.asarray(torch.cat(parts).cpu().double().numpy())


def _name(thing: Any) -> str:
    last = thing.steps[-1][1] if hasattr(thing, "steps") and isinstance(thing.steps, list) else thing
    return type(last).__name__

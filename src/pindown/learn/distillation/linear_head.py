r"""Any classifier as a linear head on given features, with a report of what is lost.

The head is distilled on a part of the inputs and compared with the teacher on the rest, so the report
needs no labels; with labels it also says what accuracy was lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.guarantees.bounds import Bound, held_out_bound
from pindown.learn.distillation._teachers import TeacherAnswers, features_of, teacher_answers
from pindown.learn.distillation.certificate import TransferCertificate, transfer_certificate
from pindown.learn.distillation.estimator import LinearDistiller
from pindown.learn.distillation.student import (
    Labels,
    answers,
    minimum_norm,
    null_part,
    probabilities,
)
from pindown.learn.distillation.tuning import (
    CROWDED_RATIO,
    HEAD_TOLERANCE,
    LINEAR_TEACHER,
    MAX_LOGIT,
    NOTEWORTHY_SHARE,
)
from pindown.network import ReluNetwork
from pindown.text import rounded_up
from pindown.validation import probability

_NOTHING = 1e-24  # a share of squares of this size is rounding


@dataclass(frozen=True, eq=False)
class DistilledHead:
    """A linear classifier on features, with the teacher's classes.

    Attributes:
        coef_: Weights, (d,) for two classes, or (k, d).
        intercept_: One number, or k.
        classes_: Names of the classes.
        features: What turns inputs into features; None if they are the features.

    >>> head = DistilledHead(np.array([1.0, -1.0]), 0.0, np.array(["no", "yes"]))
    >>> head.predict([[3.0, 1.0], [0.0, 1.0]]).tolist()
    ['yes', 'no']
    """

    coef_: Array
    intercept_: Any
    classes_: NDArray[Any]
    features: Any = None

    def decision_function(self, X: Any) -> Array:
        """Return logits, (n,) for two classes, or (n, k)."""
        table = features_of(self.features, X)
        if table.shape[1] != self.coef_.shape[-1]:
            raise ValueError(f"the head takes {self.coef_.shape[-1]} features; got {table.shape[1]}.")
        return np.asarray(table @ self.coef_.T + self.intercept_)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (n, k)."""
        return probabilities(self.decision_function(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest class of each input."""
        return np.asarray(self.classes_[answers(self.decision_function(X))])

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy on labelled inputs."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def to_network(self) -> ReluNetwork:
        """Return the head as a network of one affine layer, from features to logits."""
        return ReluNetwork.from_layers([(np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_))])

    def to_torch(self) -> Any:
        """Return the head as a float64 ``torch.nn.Linear``, from features to logits."""
        from pindown.extras import torch

        weights, bias = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        layer = torch.nn.Linear(weights.shape[1], weights.shape[0], dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weights))
            layer.bias.copy_(torch.from_numpy(bias))
        return layer

    def __str__(self) -> str:
        return f"linear head on {self.coef_.shape[-1]} features for {len(self.classes_)} classes"


@dataclass(frozen=True, eq=False)
class Distillation:
    r"""A linear head, and what it lost of its teacher. Shares are of held-out inputs.

    Attributes:
        head: The classifier on features.
        distiller: The estimator that found it.
        teacher: Where the teacher's logits come from.
        n: Inputs it was distilled from.
        n_held_out: Inputs it was compared on.
        dimension: Features, with the constant one if there is an intercept.
        rank: Dimensions that the inputs showed.
        unseen_share: Share of the squared length of features outside the span of those it saw.
        agreement: Share of inputs where head and teacher agree.
        own_agreement: The same on the inputs it was distilled from.
        disagreement: Bound on the probability that they differ on a new input.
        logit_r2: Share of the variance of the teacher's logits that the head explains.
        teacher_accuracy: With labels, else None.
        student_accuracy: With labels, else None.
        accuracy_error: Standard error of the difference, else None.
        certificate: What theory said before, for two classes and a teacher that is linear in the
            features; else None.
        notes: What to know before trusting it.
    """

    head: DistilledHead
    distiller: LinearDistiller
    teacher: str
    n: int
    n_held_out: int
    dimension: int
    rank: int
    unseen_share: float
    agreement: float
    own_agreement: float
    disagreement: Bound
    logit_r2: float
    teacher_accuracy: float | None
    student_accuracy: float | None
    accuracy_error: float | None
    certificate: TransferCertificate | None
    notes: tuple[str, ...]
    kind: Kind = "probability"

    @property
    def accuracy_loss(self) -> float | None:
        """Accuracy of the teacher minus that of the head, if there were labels."""
        if self.teacher_accuracy is None or self.student_accuracy is None:
            return None
        return self.teacher_accuracy - self.student_accuracy

    def __str__(self) -> str:
        gap = self.disagreement
        lines = [
            f"{self.head}, distilled from {self.n:,} inputs: {self.teacher}",
            f"agreement {self.agreement:.4f} on {self.n_held_out:,} held-out inputs, "
            f"{self.own_agreement:.4f} on its own; on new ones they differ with probability at most "
            f"{rounded_up(gap.value)} (confidence {gap.confidence:g})",
            f"logits: R^2 {self.logit_r2:.4f} held out; features: rank {self.rank} of {self.dimension}, "
            f"{100 * self.unseen_share:.3g} % of their squared length unseen",
        ]
        if self.accuracy_loss is not None:
            lines.append(
                f"accuracy {self.student_accuracy:.4f}, teacher {self.teacher_accuracy:.4f}: "
                f"{self.accuracy_loss:.4f} +- {self.accuracy_error:.2g} lost"
            )
        if self.certificate is not None:
            known = self.certificate.bound
            lines.append(
                f"before training: the teacher is linear in these features; expected disagreement at "
                f"most {rounded_up(known.value)} ({known.kind}; {known.source})"
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def distil(
    teacher: Any,
    X: Any,
    features: Any = None,
    *,
    y: ArrayLike | None = None,
    held_out: float = 0.25,
    outputs: Labels = "logit",
    delta: float = 0.05,
    random_state: int | np.random.Generator | None = 0,
    batch_size: int = 1024,
    **distiller: Any,
) -> Distillation:
    """Turn any classifier into a linear head on features, and report what is lost.

    Args:
        teacher: A fitted scikit-learn classifier, a torch module, a function of X, or its answers.
        X: Inputs without labels, first axis samples; at least two.
        features: None for the inputs themselves, flattened; or a torch module (all but the last layers
            of the teacher, say), a fitted transformer, or a function of X.
        y: Labels, only to measure accuracy; named as the teacher's classes.
        held_out: Share of the inputs that is kept for the comparison.
        outputs: Whether a module, a function or an array gives logits or probabilities.
        delta: Probability with which a bound may fail.
        random_state: Seed or generator of the split.
        batch_size: Inputs that go through a torch module at once.
        distiller: Arguments of :class:`LinearDistiller`. Unless given, ``fit_intercept`` is True, and
            the solver is ``"gradient"`` where over 1 % of the teacher's probabilities are 0 or 1.

    Returns:
        A :class:`Distillation`; print it.

    Raises:
        ValueError: If there are too few inputs, or shapes do not fit.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> teacher = SVC().fit(X[:, :2], y)
        >>> report = distil(teacher.decision_function, X[:, :2], y=y)
        >>> report.agreement > 0.9, report.rank, report.dimension
        (True, 3, 3)
    """
    asked = teacher_answers(teacher, X, outputs=outputs, batch_size=batch_size)
    table = features_of(features, X, batch_size)
    labels = _labels(y, asked, len(table))
    if len(asked.logits) != len(table):
        raise ValueError(f"{len(asked.logits)} answers of the teacher for {len(table)} inputs.")
    own, rest = _split(len(table), probability("held_out", held_out), random_state)
    # Logits that were cut are not to be met; cross-entropy needs only the probabilities.
    chosen = {"solver": "gradient", "tol": HEAD_TOLERANCE} if asked.cut > NOTEWORTHY_SHARE else {}
    model = LinearDistiller(**{"fit_intercept": True, **chosen, **distiller, "labels": "logit"})
    model.fit(table[own], asked.logits[own])
    head = DistilledHead(model.coef_, model.intercept_, asked.classes, features)
    return _compared(head, model, table, asked, own, rest, labels, delta)


def _compared(
    head: DistilledHead,
    model: LinearDistiller,
    table: Array,
    asked: TeacherAnswers,
    own: NDArray[np.intp],
    rest: NDArray[np.intp],
    labels: NDArray[Any] | None,
    delta: float,
) -> Distillation:
    """Compare the head with its teacher on the inputs that it has not seen."""
    rows = np.column_stack([table, np.ones(len(table))]) if model.fit_intercept else table
    logits = model.decision_function(table)
    same = answers(logits) == answers(asked.logits)
    whole = float(np.sum(rows[rest] ** 2))
    unseen = float(np.sum(null_part(rows[own], rows[rest].T) ** 2)) / whole if whole else 0.0
    unseen = unseen if unseen > _NOTHING else 0.0
    right = None if labels is None else _accuracies(labels[rest], asked, logits, rest)
    return Distillation(
        head=head,
        distiller=model,
        teacher=asked.how,
        n=len(own),
        n_held_out=len(rest),
        dimension=rows.shape[1],
        rank=model.rank_,
        unseen_share=unseen,
        agreement=float(same[rest].mean()),
        own_agreement=float(same[own].mean()),
        disagreement=held_out_bound(int((~same[rest]).sum()), len(rest), delta),
        logit_r2=_explained(asked.logits[rest], logits[rest]),
        teacher_accuracy=None if right is None else right[0],
        student_accuracy=None if right is None else right[1],
        accuracy_error=None if right is None else right[2],
        certificate=_certificate(rows, asked, len(own), delta, model),
        notes=tuple(_notes(model, asked, len(own), unseen)),
    )


def _labels(y: ArrayLike | None, asked: TeacherAnswers, n: int) -> NDArray[Any] | None:
    if y is None:
        return None
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y must hold one label for each of {n} inputs; got shape {labels.shape}.")
    if not np.isin(labels, asked.classes).any():
        raise ValueError(
            f"no label in y is one of the teacher's classes {asked.classes[:5].tolist()}; give y in "
            "these names."
        )
    return labels


def _split(
    n: int, share: float, random_state: int | np.random.Generator | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if n < 2:
        raise ValueError(f"distil needs at least 2 inputs, one of them held out; got {n}.")
    order = np.random.default_rng(random_state).permutation(n)
    kept = min(max(1, round(share * n)), n - 1)
    return np.sort(order[kept:]), np.sort(order[:kept])


def _accuracies(
    labels: NDArray[Any], asked: TeacherAnswers, logits: Array, rest: NDArray[np.intp]
) -> tuple[float, float, float]:
    taught, learnt = (asked.classes[answers(z[rest])] == labels for z in (asked.logits, logits))
    gaps = taught.astype(float) - learnt
    return float(taught.mean()), float(learnt.mean()), float(gaps.std() / math.sqrt(len(gaps)))


def _explained(z: Array, found: Array) -> float:
    total = float(np.sum((z - z.mean(axis=0)) ** 2))
    return 1.0 - float(np.sum((z - found) ** 2)) / total if total else math.nan


def _certificate(
    rows: Array, asked: TeacherAnswers, n: int, delta: float, model: LinearDistiller
) -> TransferCertificate | None:
    """Return what theory says, if all answers together show that the teacher is linear."""
    z = asked.logits
    exact = model.rcond is None and model.solver == "closed" and model.limit_ is None
    if z.ndim != 1 or not z.any() or not exact:
        return None
    whole = minimum_norm(rows, z)
    # With as many dimensions as inputs every teacher looks linear.
    if whole.rank >= len(rows) or whole.residual > LINEAR_TEACHER:
        return None
    basis = np.linalg.svd(rows, full_matrices=False)[2][: whole.rank]
    inner = rows @ basis.T  # the space that inputs live in has the dimension of their rank
    seen = model.rank_ == whole.rank  # rare features make that fail, with however many inputs
    return transfer_certificate(inner, basis @ whole.weights, n, delta=delta, spanning=seen)


def _notes(model: LinearDistiller, asked: TeacherAnswers, n: int, unseen: float) -> list[str]:
    notes = []
    if asked.cut > NOTEWORTHY_SHARE:
        notes.append(
            f"{100 * asked.cut:.3g} % of inputs have a probability of 0 or 1 from the teacher; their "
            f"logits were cut at {MAX_LOGIT:g}, and the student has least "
            f"{'squared error of logits' if model.solver == 'closed' else 'cross-entropy'}"
        )
    if model.rank_ == n < model.n_features_in_ + 1 and unseen > NOTEWORTHY_SHARE:
        notes.append("fewer inputs than features: each new one shows a new direction")
    elif n <= CROWDED_RATIO * model.rank_ and not model.interpolates_:
        notes.append(
            "about as many inputs as dimensions: what is not linear in the teacher is amplified; give "
            "more inputs, or rcond=1e-2"
        )
    if "not log-odds" in asked.how:
        notes.append("the teacher gives no probabilities, so neither does the head")
    return notes

r"""Learners beside each other: distillation, hard targets, and students that ignore the bias of descent.

Every student :math:`w_\delta = \hat w + \delta \frac{\lVert \hat w \rVert}{\lVert q \rVert} q` with q
orthogonal to the inputs has the least distillation loss; only gradient descent from zero picks
:math:`\delta = 0`. The *monotonicity index* of a learner is the probability that one more input turns
its student towards the teacher; for :math:`\hat w` it is 1.

Phuong 2021, sections 5.4.2 and 5.4.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.guarantees.bounds.linear_distillation import SAME_ANGLE, angles_before_and_after
from pindown.learn.distillation.student import inputs_and_logits, minimum_norm, span_basis
from pindown.learn.distillation.tasks import LinearDistillationTask
from pindown.validation import integer, positive

# A learner sees inputs and the teacher's logits, and may draw random numbers.
Learner: TypeAlias = Callable[[Array, Array, np.random.Generator], Array]
_SEPARATED = 1e-9  # a dual residual below this: the origin is in the hull, nothing separates


def distilled(X: Array, logits: Array, rng: np.random.Generator | None = None) -> Array:
    """Return the closed-form student; it draws no random numbers.

    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> distilled(X, X @ [2.0, -1.0]).round(6).tolist()
    [2.0, -1.0]
    """
    return minimum_norm(X, logits).weights


def unbiased(bias: float) -> Learner:
    r"""Return the learner of :math:`w_\delta`, with a new random q for every call.

    Args:
        bias: :math:`\delta`; 0 is distillation, large values have no bias towards the closed form.

    >>> w = unbiased(2.0)(np.array([[1.0, 0.0]]), np.array([3.0]), np.random.default_rng(0))
    >>> abs(w).round(9).tolist()
    [3.0, 6.0]
    """
    delta = positive("bias", bias, zero=True)

    def learner(X: Array, logits: Array, rng: np.random.Generator) -> Array:
        student, basis = minimum_norm(X, logits), span_basis(X)
        drawn = np.asarray(rng.standard_normal(X.shape[1]))
        q = drawn - basis @ (basis.T @ drawn)
        if student.complete or not delta:
            return student.weights
        size = float(np.linalg.norm(student.weights)) / float(np.linalg.norm(q))
        return np.asarray(student.weights + delta * size * q)

    return learner


def hard_target(X: ArrayLike, logits: ArrayLike, rng: np.random.Generator | None = None) -> Array:
    r"""Return the direction to which training on the teacher's hard labels converges.

    .. math:: \min \lVert w \rVert \quad\text{with}\quad s_i\, w \cdot x_i \ge 1, \qquad
              s_i = \mathrm{sign}(z_i)

    the hard-margin separator through the origin, by the least distance program of Lawson and Hanson.

    Raises:
        ValueError: If no line through the origin separates the labels.

    >>> hard_target([[2.0, 0.0], [0.0, -1.0]], [5.0, -0.1]).round(9)
    array([0.5, 1. ])

    Phuong 2021, section 5.4.3.
    """
    rows, z = inputs_and_logits(X, logits)
    signed = np.where(z >= 0, 1.0, -1.0)[:, None] * rows
    basis = span_basis(signed)
    inner = signed @ basis
    scale = float(np.abs(inner).max()) if inner.size else 0.0
    if scale == 0.0:
        raise ValueError("all inputs are zero; nothing can be learnt from their labels.")
    program = np.vstack([inner.T / scale, np.ones(len(inner))])
    target = np.zeros(len(program))
    target[-1] = 1.0
    dual, _ = nnls(program, target)
    residual = program @ dual - target
    if abs(residual[-1]) <= _SEPARATED:
        raise ValueError("the labels are not separated by any line through the origin.")
    return np.asarray(basis @ (residual[:-1] / -residual[-1]) / scale)


@dataclass(frozen=True, eq=False)
class Monotonicity:
    """How one more input moved a learner's students.

    Attributes:
        closer: Share of samples where the angle to the teacher fell: the index, ties not counted.
        tied: Share where it stayed, up to 1e-12.
        before: Mean angle with n inputs.
        after: Mean angle with one more.
        n: Inputs before the last one.
        repetitions: Samples.
    """

    closer: float
    tied: float
    before: float
    after: float
    n: int
    repetitions: int
    kind: Kind = "estimate"

    @property
    def index(self) -> float:
        """The monotonicity index: an angle that stays the same counts as a failure."""
        return self.closer

    @property
    def standard_error(self) -> float:
        """Standard error of the index."""
        return math.sqrt(self.closer * (1.0 - self.closer) / self.repetitions)

    def __str__(self) -> str:
        return (
            f"monotonicity index {self.index:.3f} +- {self.standard_error:.2g}, ties {self.tied:.3f}; "
            f"mean angle {self.before:.4f} -> {self.after:.4f} "
            f"({self.kind} from {self.repetitions:,} samples of {self.n})"
        )


def monotonicity(
    learner: Learner,
    task: LinearDistillationTask,
    n: int,
    *,
    repetitions: int = 1000,
    random_state: int | np.random.Generator | None = None,
) -> Monotonicity:
    """Estimate the monotonicity index of a learner on a task.

    Args:
        learner: From inputs (n, d), the teacher's logits (n,) and a generator to weights (d,). A learner
            that draws random numbers draws new ones for the longer sample.
        task: Inputs and teacher.
        n: Inputs before the last one.
        repetitions: Fresh samples.
        random_state: Seed or generator.

    Example:
        >>> from pindown.learn.distillation import power_angle_task
        >>> monotonicity(distilled, power_angle_task(1.0, 30), 5, repetitions=50, random_state=0).index
        1.0

    Phuong 2021, Lemma 5.1 and (5.34).
    """
    angles = angles_before_and_after(
        lambda X, rng: learner(X, task.logits(X), rng),
        task.sampler,
        task.teacher,
        n,
        repetitions=integer("repetitions", repetitions),
        random_state=random_state,
    )
    turned = angles[:, 1] - angles[:, 0]
    return Monotonicity(
        float(np.mean(turned < -SAME_ANGLE)),
        float(np.mean(np.abs(turned) <= SAME_ANGLE)),
        float(angles[:, 0].mean()),
        float(angles[:, 1].mean()),
        integer("n", n),
        len(angles),
    )

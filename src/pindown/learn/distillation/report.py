"""What a linear head lost of its teacher, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pindown.bound_text import rounded_up
from pindown.guarantees.bounds import Bound
from pindown.learn.distillation.certificate import TransferCertificate
from pindown.learn.distillation.estimator import LinearDistiller
from pindown.learn.distillation.heads import DistilledHead


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
    kind: Literal["probability"] = "probability"

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

"""Linear separators and their margins: the perceptron, hard and soft margins, duals and losses."""

from pindown.learn.margins.duality import MarginReport, dual_report, stationarity_residual, svm_report
from pindown.learn.margins.hyperplane import hyperplane_distance, margin, project_to_hyperplane
from pindown.learn.margins.losses import HINGE, LOGISTIC, MarginLoss, probability, zero_one
from pindown.learn.margins.perceptron import MarginPerceptron, MistakeGuarantee
from pindown.learn.margins.separators import NotSeparableError, hard_margin, separable, soft_margin

__all__ = [
    "HINGE",
    "LOGISTIC",
    "MarginLoss",
    "MarginPerceptron",
    "MarginReport",
    "MistakeGuarantee",
    "NotSeparableError",
    "dual_report",
    "hard_margin",
    "hyperplane_distance",
    "margin",
    "probability",
    "project_to_hyperplane",
    "separable",
    "soft_margin",
    "stationarity_residual",
    "svm_report",
    "zero_one",
]

"""Linear distillation: what a student learns from a teacher's logits, and what it loses."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.learn.distillation.certificate import RiskCurve as RiskCurve
    from pindown.learn.distillation.certificate import TransferCertificate as TransferCertificate
    from pindown.learn.distillation.certificate import risk_curve as risk_curve
    from pindown.learn.distillation.certificate import transfer_certificate as transfer_certificate
    from pindown.learn.distillation.deep import DeepLimit as DeepLimit
    from pindown.learn.distillation.deep import deep_limit as deep_limit
    from pindown.learn.distillation.deep import error_bound as error_bound
    from pindown.learn.distillation.deep import start_norm_for as start_norm_for
    from pindown.learn.distillation.deep_flow import DeepRun as DeepRun
    from pindown.learn.distillation.deep_flow import balanced_factors as balanced_factors
    from pindown.learn.distillation.deep_flow import deep_linear_flow as deep_linear_flow
    from pindown.learn.distillation.deep_flow import deep_start as deep_start
    from pindown.learn.distillation.descent import Descent as Descent
    from pindown.learn.distillation.descent import distillation_descent as distillation_descent
    from pindown.learn.distillation.estimator import LinearDistiller as LinearDistiller
    from pindown.learn.distillation.generators import axial_task as axial_task
    from pindown.learn.distillation.generators import boundary_task as boundary_task
    from pindown.learn.distillation.generators import gaussian_task as gaussian_task
    from pindown.learn.distillation.generators import margin_task as margin_task
    from pindown.learn.distillation.generators import power_angle_task as power_angle_task
    from pindown.learn.distillation.heads import DistilledHead as DistilledHead
    from pindown.learn.distillation.labels import as_logits as as_logits
    from pindown.learn.distillation.learners import Monotonicity as Monotonicity
    from pindown.learn.distillation.learners import distilled as distilled
    from pindown.learn.distillation.learners import hard_target as hard_target
    from pindown.learn.distillation.learners import monotonicity as monotonicity
    from pindown.learn.distillation.learners import unbiased as unbiased
    from pindown.learn.distillation.loss import FlowRate as FlowRate
    from pindown.learn.distillation.loss import distillation_gradient as distillation_gradient
    from pindown.learn.distillation.loss import distillation_loss as distillation_loss
    from pindown.learn.distillation.loss import flow_rate as flow_rate
    from pindown.learn.distillation.report import Distillation as Distillation
    from pindown.learn.distillation.student import Student as Student
    from pindown.learn.distillation.student import minimum_norm as minimum_norm
    from pindown.learn.distillation.tasks import LinearDistillationTask as LinearDistillationTask
    from pindown.learn.distillation.tasks import TransferRisk as TransferRisk
    from pindown.learn.distillation.tool import distil as distil

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "certificate": "RiskCurve TransferCertificate risk_curve transfer_certificate",
        "deep": "DeepLimit deep_limit error_bound start_norm_for",
        "deep_flow": "DeepRun balanced_factors deep_linear_flow deep_start",
        "descent": "Descent distillation_descent",
        "estimator": "LinearDistiller",
        "generators": "axial_task boundary_task gaussian_task margin_task power_angle_task",
        "heads": "DistilledHead",
        "labels": "as_logits",
        "learners": "Monotonicity distilled hard_target monotonicity unbiased",
        "loss": "FlowRate distillation_gradient distillation_loss flow_rate",
        "report": "Distillation",
        "student": "Student minimum_norm",
        "tasks": "LinearDistillationTask TransferRisk",
        "tool": "distil",
    },
)

# What pindown.learn.distillation offers; lazy.py reads this list.

# Any classifier as a linear head
from pindown.learn.distillation.linear_head import distil as distil
from pindown.learn.distillation.linear_head import Distillation as Distillation
from pindown.learn.distillation.linear_head import DistilledHead as DistilledHead

# The student
from pindown.learn.distillation.estimator import LinearDistiller as LinearDistiller
from pindown.learn.distillation.student import minimum_norm as minimum_norm
from pindown.learn.distillation.student import Student as Student
from pindown.learn.distillation.student import as_logits as as_logits

# Its training
from pindown.learn.distillation.loss import distillation_loss as distillation_loss
from pindown.learn.distillation.loss import distillation_gradient as distillation_gradient
from pindown.learn.distillation.loss import distillation_descent as distillation_descent
from pindown.learn.distillation.loss import Descent as Descent
from pindown.learn.distillation.loss import flow_rate as flow_rate
from pindown.learn.distillation.loss import FlowRate as FlowRate

# Deep linear students
from pindown.learn.distillation.deep_linear import deep_limit as deep_limit
from pindown.learn.distillation.deep_linear import DeepLimit as DeepLimit
from pindown.learn.distillation.deep_linear import error_bound as error_bound
from pindown.learn.distillation.deep_linear import start_norm_for as start_norm_for
from pindown.learn.distillation.deep_linear import balanced_factors as balanced_factors
from pindown.learn.distillation.deep_linear import deep_start as deep_start
from pindown.learn.distillation.deep_linear import deep_linear_flow as deep_linear_flow
from pindown.learn.distillation.deep_linear import DeepRun as DeepRun

# What is lost
from pindown.learn.distillation.certificate import transfer_certificate as transfer_certificate
from pindown.learn.distillation.certificate import TransferCertificate as TransferCertificate
from pindown.learn.distillation.certificate import risk_curve as risk_curve
from pindown.learn.distillation.certificate import RiskCurve as RiskCurve

# Learners beside each other
from pindown.learn.distillation.learners import distilled as distilled
from pindown.learn.distillation.learners import unbiased as unbiased
from pindown.learn.distillation.learners import hard_target as hard_target
from pindown.learn.distillation.learners import monotonicity as monotonicity
from pindown.learn.distillation.learners import Monotonicity as Monotonicity

# Tasks
from pindown.learn.distillation.tasks import LinearDistillationTask as LinearDistillationTask
from pindown.learn.distillation.tasks import TransferRisk as TransferRisk
from pindown.learn.distillation.tasks import student_angle as student_angle
from pindown.learn.distillation.tasks import axial_task as axial_task
from pindown.learn.distillation.tasks import power_angle_task as power_angle_task
from pindown.learn.distillation.tasks import margin_task as margin_task
from pindown.learn.distillation.tasks import boundary_task as boundary_task
from pindown.learn.distillation.tasks import gaussian_task as gaussian_task

"""Kernel logistic regression."""

from pindown.learn.kernels.logistic.estimator import Convergence, KernelLogisticClassifier

__all__ = ["Convergence", "KernelLogisticClassifier"]

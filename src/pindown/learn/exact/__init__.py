"""Exact empirical risk minimisation: the best small network there is, and the proof."""

from pindown.learn.exact.dichotomies import Dichotomies, count_general, dichotomies
from pindown.learn.exact.estimators import ExactReluClassifier, ExactReluRegressor

__all__ = ["Dichotomies", "ExactReluClassifier", "ExactReluRegressor", "count_general", "dichotomies"]

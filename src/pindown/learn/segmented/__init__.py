"""Globally optimal continuous piecewise-linear regression in one variable."""

from pindown.learn.segmented.estimator import SegmentedRegressor

__all__ = ["SegmentedRegressor"]

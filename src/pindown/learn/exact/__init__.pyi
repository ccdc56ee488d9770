# What pindown.learn.exact offers; lazy.py reads this list.

# Estimators.
from pindown.learn.exact.estimators import ExactReluClassifier as ExactReluClassifier
from pindown.learn.exact.estimators import ExactReluRegressor as ExactReluRegressor

# The divisions of points by hyperplanes that they go through.
from pindown.learn.exact.hyperplane_arrangement import Dichotomies as Dichotomies
from pindown.learn.exact.hyperplane_arrangement import count_general as count_general
from pindown.learn.exact.hyperplane_arrangement import dichotomies as dichotomies

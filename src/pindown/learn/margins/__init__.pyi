# What pindown.learn.margins offers; lazy.py reads this list.

# The perceptron and its mistake bound.
from pindown.learn.margins.perceptron import MarginPerceptron as MarginPerceptron
from pindown.learn.margins.perceptron import MistakeGuarantee as MistakeGuarantee

# Maximum-margin separators.
from pindown.learn.margins.separators import NotSeparableError as NotSeparableError
from pindown.learn.margins.separators import hard_margin as hard_margin
from pindown.learn.margins.separators import separable as separable
from pindown.learn.margins.separators import soft_margin as soft_margin

# The dual of the support vector machine, and its KKT conditions.
from pindown.learn.margins.support_vector_duality import MarginReport as MarginReport
from pindown.learn.margins.support_vector_duality import dual_report as dual_report
from pindown.learn.margins.support_vector_duality import stationarity_residual as stationarity_residual
from pindown.learn.margins.support_vector_duality import svm_report as svm_report

# Margins and their losses.
from pindown.learn.margins.margin_losses import HINGE as HINGE
from pindown.learn.margins.margin_losses import LOGISTIC as LOGISTIC
from pindown.learn.margins.margin_losses import MarginLoss as MarginLoss
from pindown.learn.margins.margin_losses import hyperplane_distance as hyperplane_distance
from pindown.learn.margins.margin_losses import margin as margin
from pindown.learn.margins.margin_losses import probability as probability
from pindown.learn.margins.margin_losses import project_to_hyperplane as project_to_hyperplane
from pindown.learn.margins.margin_losses import zero_one as zero_one

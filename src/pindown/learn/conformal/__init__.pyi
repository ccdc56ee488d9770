# What pindown.learn.conformal offers; lazy.py reads this list.

# p-values around any detector
from pindown.learn.conformal.detector import ConformalDetector as ConformalDetector

# What they are made of
from pindown.learn.conformal.p_values import HeldOutScores as HeldOutScores
from pindown.learn.conformal.p_values import benjamini_hochberg as benjamini_hochberg
from pindown.learn.conformal.p_values import conformal_p_values as conformal_p_values

# Whether rows are exchangeable
from pindown.learn.conformal.drift import DriftWarning as DriftWarning
from pindown.learn.conformal.drift import batch_drift as batch_drift
from pindown.learn.conformal.drift import order_drift as order_drift

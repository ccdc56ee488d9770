# What pindown.learn.segmented offers; lazy.py reads this list.

# The estimator, one number of pieces it tried, and a breakpoint with its interval.
from pindown.learn.segmented.estimator import SegmentedRegressor as SegmentedRegressor
from pindown.learn.segmented.estimator import Trial as Trial
from pindown.learn.segmented.inference import Breakpoint as Breakpoint
from pindown.learn.segmented.losses import Loss as Loss

# The published convex programs, one by one: slow, for checks.
from pindown.learn.segmented.convex_programs import crossing_constraints as crossing_constraints
from pindown.learn.segmented.convex_programs import enumerate_programs as enumerate_programs

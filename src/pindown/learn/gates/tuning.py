"""Tuned numbers of the gate learners."""

# Steps of GLM-Tron without a norm bound, from which a horizon would follow.
GLMTRON_DEFAULT_STEPS = 10_000
# Steps of GLM-Tron without a lower loss, once steps are below ``tol``, before the run ends.
GLMTRON_PATIENCE = 1_000

# Draws of modified SGD at a time: between two chunks the run can be interrupted.
SGD_CHUNK = 2**16
# A horizon beyond this is not reached by anybody.
MAX_HORIZON = 10**15
# An eigenvalue within its standard error of zero is taken as this share of it.
MIN_CONFIDENT_SHARE = 0.5
# Steps that take the worst case closer to its floor than this share are not worth taking.
NEAR_FLOOR = 0.01

# Weights that are this many times the fitted norm away are no explanation of the labels.
ABSURDLY_FAR = 1e4

# The slack of a confinement is searched over this range, in units of the squared start distance, on a
# logarithmic grid of so many points and then by half as many halvings: past the precision of the radius.
SLACK_RANGE = (1e-8, 1e8)
SLACK_SEARCH_STEPS = 60
# Shares of the allowed probability that are tried for the noise's tail.
CUT_CHOICES = 10

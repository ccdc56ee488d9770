"""Tuned numbers of the searches: shares of the time, limits, steps."""

# Properties on a box.

# Points to try before anything is cut.
VERIFY_SAMPLES = 4096
# A coordinate whose slopes cancel here need not be harmless: its width counts, too.
CUT_WIDTH_SHARE = 0.05
# Parameters of networks at which a witness is evaluated in rational numbers.
VERIFY_MAX_RATIONAL_PARAMETERS = 20_000

# Certificates and certified accuracy.

# Balls whose margins are carried back in one product, also for wide networks.
MIN_BALLS_TOGETHER = 32
# Inputs between two looks at the clock.
ACCURACY_BLOCK_INPUTS = 64
# Of the time left, for attacks.
ACCURACY_ATTACK_SHARE = 0.25

# Counterexamples.

# Steps of projected gradient descent, in shares of the radius: long to travel, short to settle.
PGD_FIRST_STEP = 0.5
PGD_LAST_STEP = 0.02
# Numbers of gradients that DeepFool holds at once: 32 MB.
DEEPFOOL_BLOCK_NUMBERS = 2**22
# Of each step of DeepFool beyond the linear boundary, so that the last one crosses it.
DEEPFOOL_BEYOND = 1e-4

# The distance to another class: attacks.

# Of the time left.
DISTANCE_ATTACK_SHARE = 0.15
# How much nearer each further attack is asked to come.
ATTACK_SHRINK = 0.9
# Attacks at most, and how many in a row may fail.
MAX_ATTACK_ROUNDS = 30
MAX_ATTACK_MISSES = 2
# Doublings of the radius while no other class is found.
MAX_RADIUS_DOUBLINGS = 40
# Random points to try where gradients vanish.
DISTANCE_SAMPLES = 256

# The distance to another class: linear relaxation.

# Of the time left.
DISTANCE_RELAXATION_SHARE = 0.3
# Of the radius: to a share of 6e-5.
RADIUS_HALVINGS = 14
# Times the size of x: how far to look for a certificate if no other class is known.
RELAXATION_REACH = 1e3
# Parameters of networks whose class at x is decided in rational numbers.
DISTANCE_MAX_RATIONAL_PARAMETERS = 1_000_000

# The distance to another class: walking cells.

# Of the time left, where programs can take over.
DISTANCE_WALK_SHARE = 0.5
# Networks that cells are walked on.
WALK_MAX_INPUTS = 64
WALK_MAX_UNITS = 1024
# Parameters of networks whose cells are computed in rational numbers where it helps.
WALK_MAX_RATIONAL_PARAMETERS = 5_000
# Bounds beyond may stand for contradictions, which are looked for in rational numbers.
WALK_CONTRADICTION_BOUND = 1e6
# Rounds of refinement of a nearest point; the second mostly changes nothing.
NEAREST_REFINEMENTS = 3

# The distance to another class: mixed-integer programs.

# Units of networks that programs are tried on.
MILP_MAX_UNITS = 2000
# Of the time, for bounds that make the programs smaller.
MILP_BOUNDS_SHARE = 0.2
# Seconds that a program gets also when time is over.
MILP_MIN_SECONDS = 0.05

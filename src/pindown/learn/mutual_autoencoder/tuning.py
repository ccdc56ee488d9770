"""Numbers of the mutual autoencoder that were chosen, not derived, together and with their reasons."""

from __future__ import annotations

# Training.
# Default steps: rows squared over the first, at least the second, at most the third.
ROWS_SQUARED_PER_STEP, MIN_STEPS, MAX_STEPS = 100, 10, 1_200
# Share of the step size left at the end.
LAST_RATE = 0.01
# Norm beyond which a gradient is shortened: one bad draw must not throw.
MAX_GRADIENT_NORM = 10.0
# Weight of the divergence when a warm start begins: it holds the codes together.
FIRST_DIVERGENCE_WEIGHT = 0.05
# Steps between two exact looks at the information.
STEPS_PER_LOOK = 25
# Of the shortfall of r, kept at each look: it changes slowly, and the estimates are noisy.
SHORTFALL_MEMORY = 0.7

# The integral controller of the information.
# Of the running mean of the error.
ERROR_MEMORY = 0.9
# Multiplier per nat of error.
PROPORTIONAL_GAIN = 4.0
# Multiplier per nat of error and step.
INTEGRAL_GAIN = 0.05
# Nats of error that the sum sees at a time: on a long way it would wind up and overshoot.
MAX_SUMMED_ERROR = 0.05

# After training.
# Nats off the target that may be corrected; a larger miss says that training failed.
MAX_CORRECTION = 0.15
# Nats at which a correction ends: about what the quick grid is good to.
CORRECTED = 1e-3
MAX_CORRECTIONS = 12
# Nats off the target beyond which the user is told, and standard errors allowed on top.
TOLD_MISS, TOLD_STANDARD_ERRORS = 0.1, 3.0
# Nats of divergence above which a coordinate of the code is in use.
ACTIVE_DIVERGENCE = 0.01

# Measuring information.
# First and last grids of codes: nodes.
MIN_NODES, MAX_NODES = 501, 8_001
# Standard deviations of x between neighbouring nodes at most: then sums are integrals.
MAX_NODE_DISTANCE = 0.5
# Draws of x, about, where x is sampled.
SAMPLED_ROWS = 2_000
# Draws for the variational bound, cheap each.
BOUND_DRAWS = 20_000
# Times the training's steps that the fresh guess gets for the measurement.
GUESS_STEPS_FACTOR = 3
# Gauss-Hermite nodes, and shared draws where there is no quadrature.
HERMITE_NODES, SHARED_DRAWS = 48, 240
# Draws of the other proposals in the density of a resampling encoder.
PROPOSAL_SETS = 400
# Bins of a histogram, and draws for it at least.
BINS, MIN_HISTOGRAM_DRAWS = 16, 2_000
# Standard errors by which histograms must exceed the bound before the user is told.
BEYOND_CHANCE = 3.0

# Tables held at once, for the size of a cache: entries, or draws and rows.
QUADRATURE_BLOCK = 4_000_000
CODE_TABLE = 400_000
PAIR_TABLE = 20_000
DRAW_BLOCK = 2_000
ROW_BLOCK = 250

# The price of a code (posterior collapse): quadrature over its mixture.
# Standard deviations beyond the outermost mean.
MIXTURE_REACH = 12.0
# Nodes per smallest standard deviation: the trapezoid rule is then exact to rounding.
NODES_PER_DEVIATION = 16
MAX_MIXTURE_NODES = 400_001
MIXTURE_BLOCK = 20_000

# Sentences.
# Features of a word.
WORD_FEATURES = 16
# Sentences per code in the gradient of the information.
SENTENCES_PER_CODE = 4
# Sentences and codes of an estimate on the way, and of the last one.
QUICK_ESTIMATE, FINAL_ESTIMATE = (64, 512), (300, 1_000)
# Steps of the fresh guess of the measurement at most.
MAX_GUESS_STEPS = 300

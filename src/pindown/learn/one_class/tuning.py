"""Numbers of the detector that were chosen, not derived, together and with their reasons.

They were chosen on scikit-learn's breast cancer, wine, iris and digits data, on three artificial sets,
and on training images of MNIST; ``docs/local-maxima.md`` says how. ``benchmarks/local_maxima.py``
measures them on other data. What is called printed is the source's.
"""

from __future__ import annotations

# ---------------------------------------------------------------------- sizes and times of training
# Networks that are averaged, for the default presets and as printed.
MEMBERS, PRINTED_MEMBERS = 3, 1
# Rows in a step: of vectors, of images, as printed.
BATCH, IMAGE_BATCH, PRINTED_BATCH = 128, 64, 32
# Step sizes of Adam, alike.
RATE, IMAGE_RATE, PRINTED_RATE = 5e-3, 2e-3, 2e-4
# Gradient steps of one member, least and most: about one for each row in between.
VECTOR_STEPS, IMAGE_STEPS = (60, 300), (40, 300)
PRINTED_EPOCHS = 12
# Steps between two looks at held-out rows, at least.
STEPS_BETWEEN_LOOKS = 10
# Looks without progress before a member stops.
LOOK_PATIENCE = 4
# What counts as progress of a held-out loss.
MIN_PROGRESS = 1e-3
# Each member leaves out one of so many folds; with fewer rows nothing is left out.
FOLDS, MIN_ROWS_TO_HOLD_OUT = 5, 20
# Of the running mean of the weights.
WEIGHT_MEMORY = 0.99

# ---------------------------------------------------------------------- networks
# Standard deviations at which a feature is held: beyond it nothing was ever seen.
INPUT_BOUND = 8.0
# Reach of a generator: in standard deviations of each feature, in ranges of the pixels.
VECTOR_REACH, IMAGE_REACH = 1.0, 0.5
# The source's DCGAN has width 64; a quarter of it trains on a processor.
PRINTED_WIDTH = 16
# Slope of the source's leaky rectifier.
PRINTED_LEAK = 0.2
# Of Adam, as usual for these networks; the source does not say.
PRINTED_BETAS = (0.5, 0.999)
# Deviation of the first weights of the source's architecture for images, and of batch norm's around 1.
PRINTED_DEVIATION = 0.02
# Weight of a generator's distance, lambda of the source.
PULL = 1.0
# Side of the source's images, after padding.
PRINTED_SIDE = 32
# A product of two logs grows with the square of the log-odds: beyond this the weight is held.
MAX_LOG_ODDS = 30.0
# Largest layer and most layers that a description may ask for: far above any that fit() makes, far below
# a memory bomb. And most members of a file, and numbers of one image that it may claim.
MAX_UNITS, MAX_LAYERS, MAX_MEMBERS, MAX_PIXELS = 65_536, 64, 1000, 2**24

# ---------------------------------------------------------------------- what is learned against
# Weight of learned negatives beside the generic ones.
GENERATOR_WEIGHT = 0.5
# Steps of the networks for each of the generators.
STEPS_PER_GENERATOR_STEP = 4
# Noise of vectors in standard deviations of the features, from and to.
MIN_NOISE, MAX_NOISE = 0.1, 3.0
# How far beyond a pair of rows.
EXTRAPOLATION = 1.0
# Radians by which images are turned, from and to.
MIN_TURN, MAX_TURN = 0.5, 1.3
# Size of an elastic warp, in half image sides, and points of its grid.
WARP, WARP_GRID = 0.35, 4
# Of an image that is drowned in noise, in ranges of the pixels.
MIN_DROWNING_NOISE = 0.25
# Graded damage, from and to: standard deviations, or ranges of the pixels.
VECTOR_DAMAGE, IMAGE_DAMAGE = (0.03, 1.5), (0.01, 0.6)
# Share of images that are blurred or covered instead.
OTHER_DAMAGE = 0.25

# ---------------------------------------------------------------------- density
# Share of the training points beyond the edge of a calibration.
EDGE = 0.05
# Numbers of nearest neighbours.
N_NEIGHBOURS = (2, 5)
# Training points kept where some of them are expected to be outliers: neighbours are a share of all.
MAX_SHARED_POINTS = 1000
# lambda of the weights: distances that say nearly the same share their weight.
WEIGHT_SHRINKAGE = 0.3
# Distances below this share of the typical one are taken to be equal to it: logs of zero have no value.
MIN_DISTANCE_SHARE = 1e-6
# Log-distances of edge and typical point closer than this would turn rounding into evidence.
MIN_LOG_SPREAD = 0.05
# Features up to which a tree beats a matrix product.
MAX_FEATURES_OF_TREE = 12
# Training points kept for distances; rows of which the typical distance of neighbours is taken.
MAX_POINTS, SPACING_ROWS = 20_000, 1000
# Made-up points that distances are weighed by, at most, and at least half of it.
MADE_UP_ROWS, MADE_UP_IMAGES = 2000, 400
# Orientation histograms: directions, pixels between two cells.
DIRECTIONS, CELL = 8, 4
# Gradients of less than this share of the range of the pixels are noise and grain, not edges.
GRADIENT_FLOOR = 0.1
# Weight of how much gradient there is in all: directions alone take pure noise for an average image.
GRADIENT_AMOUNT = 2.0

# ---------------------------------------------------------------------- inputs
# Quantiles of a feature that are sent to those of the standard normal distribution.
QUANTILE_LEVELS = (0.005, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 0.995)
# A feature with fewer different values is a code, not a quantity.
MIN_DISTINCT_VALUES = 10
# Distance of two knots, in standard deviations: a map must not be too steep.
MIN_KNOT_DISTANCE = 1e-6
# Sides of images: larger ones are made smaller, in smaller ones there are no gradients to speak of.
MAX_SIDE, MIN_SIDE = 32, 4
# Ranges of the pixels: farther away is no noise but another unit, 255 for 1.
OTHER_SCALE = 10.0

# ---------------------------------------------------------------------- scores
# Weight of the networks beside the density, for vectors and for images.
VECTOR_WEIGHT, IMAGE_WEIGHT = 0.25, 0.25
# Beside such a weight the density is rounding already; sums of more overflow.
MAX_LEARNED_WEIGHT = 1e6
# Inputs evaluated at once, and images whose features are computed at once.
INPUT_CHUNK, FEATURE_CHUNK = 512, 1024

# ---------------------------------------------------------------------- p-values
# Share of the rows that is held out, and most rows: 5,000 tell 1 % to a seventh of it.
CALIBRATION_SHARE, MAX_CALIBRATION_ROWS = 0.5, 5000
# Rows that a companion learns from, at most: it is to cost little beside the detector itself.
MAX_COMPANION_ROWS = 5000
# Companions of cross-conformal p-values.
CALIBRATION_FOLDS = 5
# With fewer rows every p-value is 1: companions need two rows to learn from.
MIN_ROWS_TO_CALIBRATE = 4

# ---------------------------------------------------------------------- whether anything was learned
# Rows that are looked at, at most; fewer than the second say little about what networks know.
MAX_JUDGED_ROWS, MIN_JUDGED_ROWS = 500, 10
# After fewer steps nobody expects networks to know anything: those few were asked for.
STEPS_TO_LEARN = 40
# Share of the untrained loss: what loses more did not learn.
LEARNED_LOSS_SHARE = 0.99
# More pairs in the right order than untrained: something was learned.
BETTER_ORDER = 0.02

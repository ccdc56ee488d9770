"""Tuned numbers of the questions: limits, shares of the time left, and speeds of a slow core.

How long a question needs at least, and its weight in sharing the rest, stand with the question itself
(``cost=``); here is what it does with that time. Speeds are of one slow core, so that what is promised
to fit fits elsewhere too.
"""

from __future__ import annotations

# The clock. Seconds of work before the speed of the machine is judged, and the slowest it is taken for.
FIRST_WORK = 0.2
MAX_SLOWNESS = 20.0
FLOPS_PER_SECOND = 4e9
SECONDS_PER_PARAMETER = 1e-8  # of one pass of intervals, or of a comparison weight by weight

# With less than so many seconds left nothing is asked again, and with more than such a part of all
# nobody is told that time is short before it had all of it.
MIN_SHARE_TO_ASK_AGAIN = 0.5
SHORT_OF_TIME = 0.2

# The exact form of a model with convolutions holds about as many weights as one input costs products;
# five million take about two seconds and a quarter of a gigabyte (measured on a U-Net).
MAX_EXACT_PRODUCTS = 8_000_000
# A function is asked at so many rows whether its outputs are probabilities.
ROWS_TO_TELL_PROBABILITIES = 32

# The paragraph that opens a report; one sentence more says what could not be said.
MAX_SENTENCES = 6
MAX_REASONS = 3

# Passes over the data. Many questions live on one pass, whoever asks first: it may take this share of
# the time left for all of them. Between two looks at the clock lies about a tenth of a second.
PASS_SHARE = 0.9
SHARED_PASS_SHARE = 0.1
SECONDS_PER_LOOK = 1.0
FIRST_ROWS = 8  # sent first, to see what a row costs
ROWS_FOR_THE_PRICE = 64  # at most, and a chunk: enough that starting does not count
PASSES_PER_INTERVAL = 30  # of one box, rounded outwards (measured: 15 on a ResNet-18, 40 on a ResNet-50)
PASSES_PER_SLOPE = 4  # one forth, and back by every operation (measured: 2.5 to 4 of a convolution's)
MULTIPLY_ADDS_PER_CHUNK = 500_000_000
MODEL_PRODUCTS_PER_CHUNK = 400_000_000  # of a model's operations, whose other work is as much again
MAX_ROWS_PER_CHUNK = 1024
# Products of weights and data beyond ten to this power have squares that float64 can hardly hold.
MODERATE_POWER = 120

# The reference box: smaller arrays are rather lists of features, more sides do not fit in a sentence.
MIN_IMAGE_SIDE = 4
MAX_SIDES_IN_WORDS = 3

# Probability with which bounds may fail.
DELTA = 0.05

# Comparing two checkpoints: of the budget for the later network, and of what it leaves for the one
# before; standard errors of a difference that count as noise.
AFTER_SHARE = 0.45
BEFORE_SHARE = 0.7
NOISE_IN_STANDARD_ERRORS = 2.0
# What a search of another length may change of a number that names no error, as a part of it.
NOISE_OF_A_SEARCH = 0.1

# What is said to be so "surely" is so by this many standard errors.
SURE_IN_STANDARD_ERRORS = 3.0
ROWS_OF_A_LOOK = 50  # evaluated at most between two looks at the clock, where little is asked

# CAL-01, ACC-03: bins of as many rows each; an answer this sure is called confident.
CALIBRATION_BINS = 10
MIN_CALIBRATION_ROWS = 50
MAX_CHANCE = 0.001  # that a calibrated model makes as many mistakes
MANY_TIMES_WRONG = 5.0  # as often as its confidence says
CONFIDENT = 0.95

# OUT-03, SEN-01: a box so many times as wide; noise as a part of the inputs' range.
UNFAMILIAR_POINTS = 300
UNFAMILIAR_REACH = 10.0
UNFAMILIAR_SHARE = 0.8
MAX_NOISY_ROWS = 300
NOISE_LEVELS = (0.01, 0.03, 0.1)

# Inputs of a table are of unlike units if these quantiles of their ranges are so many times apart.
UNLIKE_QUANTILES = (0.1, 0.9)
UNLIKE_UNITS = 10.0

# ROB-03, SEN-02: the radius is a part of the inputs' range.
ATTACK_RADIUS = 0.01
ATTACKED_ROWS = 100
ATTACKED_ROWS_PER_LOOK = 20
MIN_ATTACKED_ROWS = 5
ATTACK_STEPS = 20
ATTACK_RESTARTS = 1
ATTACK_SHARE = 0.9
SECONDS_PER_ATTACK_LOOK = 2.0
MAX_SLOPED_ROWS = 200

# UNIT-01: on fewer rows that a unit is off says little.
MIN_ROWS_FOR_DEAD = 50

# DAT-02: neighbours that are asked, that must agree on another label, and that may share the row's own.
# With fewer agreeing, rows between two overlapping classes are suspected.
LABEL_ROWS = 3000
MIN_LABEL_ROWS = 50
METRIC_ROWS = 300  # by which it is decided how distances are measured
NEIGHBOURS = 10
NEIGHBOURS_AGREEING = 9
NEIGHBOURS_WITH_LABEL = 1
NEIGHBOUR_SHARE = 0.9
SUSPECTS_SHOWN = 12

# DAT-03: rows that are scaled in other ways; how far beyond the range of the data counts as outside.
# Overconfidence that a scaling may leave, and accuracy it may cost, to be the one of training. How far
# below its accuracy the confidence may then lie, as that of regularised networks does, if the scores
# say no more of the labels. How many times as small it must make the inputs: to be too sure by less is
# no matter of their scale.
SCALED_ROWS = 500
MENDED_LEFT = 0.02
MENDED_UNDER = 0.05
MENDED_SHRINKS = 10.0
MIN_SCALING_ROWS = 20
SCALING_SHARE = 0.9
RANGE_SLACK = 0.1

# FRQ-02
LOW_PASS_IMAGES = 200
LOW_PASS_STEPS = 8
LOW_PASS_KEPT = 0.95
LOW_PASS_SHARE = 0.9

# EQV-01, EQV-02: shares of the time left; the longest search in seconds; the Jacobian's decomposition
# takes P^3 numbers and more.
LOSSLESS_SHARE = 0.9
MAX_SHRINK_SECONDS = 10.0
SHRINK_SECONDS_PER_PARAMETER = 2e-8
MAX_SHRINK_STEPS_SHOWN = 20
JACOBIAN_SECONDS_PER_ENTRY = 2e-9

# ACC-01, ACC-02
MAX_CLASSES_SHOWN = 20
WORST_ROWS_SHOWN = 6

# LIP-01, NORM-01. With more inputs cells are only used if another question has listed them; steps are
# shares of the cell's size, of which short ones stay inside it and long ones round less.
LAYER_NORM_SHARE = 0.4
LIPSCHITZ_SHARE = 0.8
LIPSCHITZ_SECONDS_PER_PARAMETER = 5e-8
MAX_INPUTS_FOR_STEEPEST_CELL = 3
SLOPE_STEPS = (0.1, 1e-2, 1e-3)

# BIAS-01 to BIAS-05. Quadratic programs and tables of pairs are limited to some rows (a thousand make a
# million pairs), slopes to a quarter of a gigabyte.
MAX_TRAINING_ROWS = 2000
SEPARABILITY_SECONDS_PER_PRODUCT = 2e-9
MAX_SLOPES = 30_000_000
SECONDS_PER_SLOPE = 2e-7  # of the factorisation before least squares with signs, measured
MARGIN_SECONDS_PER_ENTRY = 1.2e-6  # of a quadratic program's rows, measured at 2,000 rows of 784
MAX_ROWS_FOR_PAIRS = 1000
PAIR_SECONDS_PER_PRODUCT = 1e-9
MAX_SIDE_FOR_RANK = 3000  # of a layer whose singular values are computed
RANK_SECONDS_PER_STEP = 5e-10  # of one multiply-add of products and eigenvalues
MAX_RANKS_LISTED = 16
MAX_TANGENT_ROWS = 256
FRESH_KERNELS = 3  # of untrained networks, for the scale
TANGENT_SECONDS_PER_STEP = 4e-10  # of one multiply-add of a product of matrices

# INP-01: products in all slopes take a second or two.
MAX_SLOPE_POINTS = 500
MIN_SLOPE_POINTS = 20
MAX_SLOPE_PRODUCTS = 1e9
SLOPE_SECONDS_PER_PRODUCT = 1e-9
SLOPE_POINTS_PER_LOOK = 4  # of a model, whose price is not known before
SLOPE_SHARE = 0.8
INPUTS_LISTED = 12
REACTION_SHARE = 0.9

# OUT-01, OUT-02: products at all points take some seconds; differences are bounded for as many outputs
# as fit on a page; the last linear forms are carried back to the inputs.
MAX_OUTPUT_POINTS = 10_000
MIN_OUTPUT_POINTS = 500
MAX_OUTPUT_PRODUCTS = 1e9
OUTPUT_POINTS_SHARE = 0.05  # of the time left for all
MAX_PRODUCTS_FOR_LINEAR_BOUNDS = 100_000_000  # of one input, times outputs
MAX_OUTPUTS_COMPARED = 20
MAX_OUTPUTS_LISTED = 200
RELAXATION_SHARE = 0.6
RELAXATION_SECONDS_PER_PRODUCT = 2e-9

# BND-02, BND-03: choices of margins and scales take the fixed seconds, whatever the size, and some for
# every weight (measured: 0.4 and 0.2 s on small networks, 3.3 and 0.7 s with 400,000 weights).
BOUND_SECONDS = 0.8
BOUND_SECONDS_PER_WEIGHT = 5e-6
BEST_COPY_SECONDS_PER_WEIGHT = 1e-6
BOUND_SECONDS_PER_OPERATION = 1e-10  # of the draws and of the spectral norms
NOISY_NETWORKS = 200
MAX_ROWS_PER_NOISY_NETWORK = 2000

# FRQ-01. Half of the images train the mask and half judge it; with fewer the same do both. A mask that
# was cut short before enough of its steps is still open.
MASK_STEPS = 150
MASK_BATCH = 64
MASK_RATE = 0.1
MAX_MASK_IMAGES = 256
MIN_MASK_IMAGES = 20
MASK_PASSES = 3 * MASK_BATCH * MASK_STEPS + 32 * MAX_MASK_IMAGES  # rows sent forth or back, in all
MASK_SHARE = 0.8
MIN_MASK_WORK = 0.3  # of all of it must fit
ENOUGH_MASK_STEPS = 0.6
MASK_ACCURACY_SHARE = 0.95  # of the right answers that the kept frequencies must give, on the first half
SECONDS_TO_LOAD_TORCH = 8.0
BATCH_SECONDS_PER_OPERATION = 6e-10  # a multiply-add of small batches in float64

# SYM-02, SYM-03: what the larger number of rows may take of the time left; below the kept share of the
# spread of outputs only rounding is left.
MAX_SYMMETRY_ROWS = 256
MIN_SYMMETRY_ROWS = 32
SYMMETRY_SHARE = 0.6
FRESH_NETWORKS = 3  # for the scale
SHUFFLES = 8
SECONDS_PER_WEIGHT_DRAWN = 6e-8
KEPT_SHARE = 1e-6

# ROB-01, ROB-02. Networks within the two limits are those on which exact searches end within seconds;
# with less than the least seconds a search for one row is not worth its start.
ROBUSTNESS_SHARE = 0.8
MAX_CERTIFIED_ROWS = 500
CERTIFIED_ROWS_PER_LOOK = 25
SECONDS_PER_CERTIFIED_LOOK = 2.0
RADIUS_HALVINGS = 7
# One row is certified from a small radius upwards, by quarters of the data's range; the others up to so
# many times what it has.
RADIUS_QUARTERINGS = 7
TIMES_THE_FIRST = 16.0
DISTANCE_ROWS = 5
DISTANCE_EVALUATIONS = 2000  # of a model that is no chain of layers, for one row
MAX_INPUTS_FOR_EXACT_DISTANCE = 3
MAX_UNITS_FOR_EXACT_DISTANCE = 32
EXACT_DISTANCE_SHARE = 0.5
MIN_DISTANCE_SECONDS = 0.2

# Cells (GEO-01 to GEO-05). Fixed ends, so that answers do not depend on the machine's speed; corners
# multiply with dimension. A walk holds the weights as dense matrices: a quarter of a gigabyte.
MAX_INPUTS_FOR_CELLS = 6
MAX_CELLS_COUNTED = 1_000_000
MAX_CELLS_IN_PLANE = {1: 1_000_000, 2: 200_000}
MAX_CELLS_IN_SPACE = {3: 50_000, 4: 20_000, 5: 8_000, 6: 3_000}
MAX_DENSE_WEIGHTS = 30_000_000
PLANE_CELLS_SHARE = 0.6
RECOUNT_SHARE = 0.8
SPACE_COUNT_SHARE = 0.7
SPACE_CELLS_SHARE = 0.8

# GEO-02: rows are measured in blocks between two looks at the clock.
MAX_FOLD_ROWS = 2000
MIN_FOLD_ROWS = 20
FOLD_ROWS_PER_LOOK = 50
FOLD_SHARE = 0.8
PAIRS_FOR_SPREAD = 1000

# GEO-03: a smaller share of the box is not worth a sentence.
DEAD_ZONE_SAMPLES = 20_000
DEAD_ZONE_SHARE = 0.4
DEAD_SHARE_WORTH_SAYING = 0.0005

# GEO-04, DEP-01: lines and segments are walked in blocks, and one by one where a piece of one is dear.
PAIRS_OF_ROWS = 100
MAX_PATTERN_ROWS = 20_000
SEGMENTS_PER_LOOK = 10
MIN_PIECE = 2.0**-8  # of a segment, walked first; four times as much until it crosses some cells
CELLS_FOR_THE_PRICE = 50
SEGMENT_SHARE = 0.6
PATTERN_SHARE = 0.9
LINES_THROUGH_BOX = 100
DEPTH_SHARE = 0.9
MAX_DEPTHS_LISTED = 8

# GEO-05: what a picture can show. The folds of more cells are drawn as pixels; a label needs room of so
# many steps of its grid around it.
MAX_CELLS_DRAWN = 200_000
MAX_CELLS_AS_LINES = 3000
FOLD_IMAGE_PIXELS = (640, 480, 360)  # tried until the image is small enough for the page
MAX_FOLD_IMAGE_BYTES = 100_000
MAX_DOTS = 300
MAX_KNOTS = 2000
MAX_CURVES = 4
PLANE_SHARE = 0.7
PLANE_TRIES = 20
PLANE_MARGIN = 0.15
MAX_INPUTS_FOR_AXES = 10
VALUE_BANDS = 6
LABEL_GRID = 64
LABEL_ROOM = 3.0

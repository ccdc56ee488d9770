"""The tuned numbers of this room: shares of time, limits of size, thresholds, counts.

None of them is part of a proof: another value makes something slower, or finds less. Numbers that bound
rounding, or that a theorem asks for, stand where they are used. Times were set on one core at about ten
billion operations a second.
"""

from __future__ import annotations

# Comparing two networks (comparison/methods.py); tried on the pairs of benchmarks/equivalence.py.
# Shares are of the time left when a method's turn comes.

# Weights of the exact normal form, beyond which the graphs are compared as they are: with forty millions
# it takes 30 seconds and 5 GB, and no bound so deep says anything.
MAX_LOWERED_PRODUCTS = 10_000_000
# The first look for a witness: most different pairs show it at once.
FIRST_SEARCH_SHARE = 0.1
FIRST_SEARCH_SECONDS = 0.3
# The search once nothing was found by looking at the weights.
SEARCH_SHARE = 0.15
SEARCH_SECONDS = 1.0
# For bounding the gap of paired networks, and if all that differs are a few biases of one layer.
PAIRED_SHARE = 0.35
FEW_BIASES_SHARE = 0.85
# Rows that differ by more are not the same unit any more: their bounds would say nothing.
MAX_PAIRED_RESIDUAL = 0.3
# For making each network smaller.
REDUCTION_SHARE = 0.25
# Of the tolerance, what reductions may cost: symmetries and exports round, so that what is redundant is
# so only up to rounding.
REDUCTION_LOSS = 0.15
# For one pass of linear bounds, for networks with one hidden layer, for norms, for cells, for branch and
# bound before programs, for counting open units, and for programs.
LINEAR_BOUNDS_SHARE = 0.7
SHALLOW_SHARE = 0.4
NORMS_SHARE = 0.4
CELLS_SHARE = 0.5
BRANCHING_FIRST_SHARE = 0.3
OPEN_UNITS_SHARE = 0.3
PROGRAMS_SHARE = 0.6
# Rounds of methods begin with so many seconds, or with so many passes of linear bounds, and become
# longer by this factor: what was done in vain before a round costs a third of it.
ROUND_SECONDS = 1.0
ROUND_PASSES = 256
ROUND_GROWTH = 4.0
# If nobody set a limit, no round is longer.
UNLIMITED_SECONDS = 300.0
# Once networks are proved different: the share of the upper end by which the ends may differ; at a half
# the upper end is at most twice the lower one.
CLOSING_PRECISION = 0.5
# In the first seconds they are brought nearer to each other: at a sixth the upper end is 1.2 times the
# lower one, which boxes of radius 0.05 around inputs of ACAS Xu networks need about two seconds for.
CLOSE = 1.0 / 6.0
CLOSING_SECONDS = 10.0
# Units of both networks, by inputs: cells grow like (units)^inputs, and more are not worth a try.
MAX_CELL_UNITS = {1: 100_000, 2: 5_000, 3: 200, 4: 60, 5: 40}
# Open units up to which a mixed-integer program is likely to be solved in about a minute.
MAX_OPEN_UNITS = 40
# More inputs are not worth the time of branching before other methods.
MAX_BRANCH_INPUTS = 10
# Of one pass of linear bounds through both networks.
PASS_SECONDS_PER_WEIGHT = 2e-7
# Steps of one method within this time are kept as one.
SAME_MOMENT_SECONDS = 0.1

# Searching for a witness (comparison/witness_search.py).

# Once networks are known to differ: how much larger gaps to ask for, turns of the search for violations
# before it is asked again, and the gain below which other methods go first.
CLIMB_FACTOR = 1.5
CLIMB_TURNS = 2
CLIMB_WORTH = 1.01

# Points from which the search ascends.
SEARCH_STARTS = 48
# Of the budget; the rest is for the proof at the best point.
SEARCH_ASCENT_SHARE = 0.85
# Steps of the ascent.
SEARCH_ROUNDS = 40
# Shares of the way to the best corner of the local affine map: from all of it to a hundredth.
CORNER_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
# Products between two looks at the clock: about a hundredth of a second.
SEARCH_WORK = 2**26
# Points that ascend between two looks at the clock.
SEARCH_PART = 8
# Samples, corners of the box and points on folds to begin with.
SEARCH_SAMPLES = 2048
SEARCH_CORNERS = 512
SEARCH_FOLD_POINTS = 256
# Activations evaluated at once: 32 MB.
MAX_ROW_ENTRIES = 2**22

# Labels (comparison/labels.py).

# Bounds that differ by less of their size are not worth more time.
LABEL_PRECISION = 1e-3
# Points from which the search ascends, and its steps.
LABEL_STARTS = 32
LABEL_ROUNDS = 30
# Points between two looks at the clock.
LABEL_PART = 256
# Lengths of a step, as shares of the current one.
LABEL_STEPS = (1.0, 0.3, 0.1, 0.03)

# Pairing units (comparison/matching.py, comparison/row_pairing.py).

# A scale this near to one is tried as one: quantised and re-exported copies keep their scales.
NEAR_ONE = 0.01
# Of each of the two passes over a layer.
MATCH_SECONDS_PER_WEIGHT = 1e-7
# Entries of a sparse layer that may be written out: 128 MB.
MAX_DENSE_ENTRIES = 2**24
# Random projections of a row.
ROW_KEYS = 8
# Pairs nearer than this are accepted without an assignment: float16 rounding moves rows by 1e-3, and
# unrelated rows are about 1.4 apart.
NEAR_ROWS = 0.05
# Of an assignment, times the cube of the number of units.
ASSIGNMENT_SECONDS = 2e-10
# Layers up to this width are paired by their functions, too, which takes all pairs of units.
MAX_FUNCTION_PAIRS = 1024
# Rows of one network nearer than this are parallel to rounding, whatever the other network says.
PARALLEL_ROWS = 1e-9

# Cells and mixed-integer programs (comparison/cells.py, comparison/integer_programs.py).

# Cells that are looked at.
MAX_CELLS = 300_000
# The walk over the cells takes about this share of the time; the rest goes to the dual bounds.
CELL_WALK_SHARE = 0.5
# Vertices whose gap is evaluated with rounding bounded.
CELL_CANDIDATES = 4
# HiGHS looks at its clock now and then only, and building the model takes time.
PROGRAM_SOLVER_SHARE = 0.9
# Of the time, what bounds that make programs smaller may take.
PROGRAM_BOUNDS_SHARE = 0.3

# One hidden layer (comparison/one_hidden_layer.py).

# Rational products that take about a second.
MAX_RATIONAL_PRODUCTS = 500_000
# A tolerance that pairs units with their copies in float16.
COARSE_PARALLEL = 1e-2
# Folds near which a witness is looked for, the strongest first.
MAX_WITNESS_FOLDS = 64
# Points on each of them.
POINTS_PER_FOLD = 4
# Across the fold, as shares of the scale.
FOLD_STEPS = (0.0, 1e-3, -1e-3, 0.03, -0.03, 0.3, -0.3)

# Branch and bound (comparison/branching.py, comparison/parallel_branching.py).

# Boxes bounded at once: from one, so that large networks keep time, to as many as fill the vectors.
MAX_BOXES_AT_ONCE = 256
# Seconds one round should take at most.
BRANCHING_TURN_SECONDS = 0.1
# Kept at once: 200 MB at ten inputs.
MAX_BOXES = 2**20
# Of a round at most: more workers than this have nothing to do.
MAX_PARTS = 32
# Even if there are few boxes, and turns of few are dearer.
MIN_PARTS = 8
# Weights times boxes, of which about ten million are bounded in a second: for one turn (a tenth of a
# second), for one part (half a second) and for what is done before the first round (a second).
TURN_WORK = 2**20
PART_WORK = 2**22
HEAD_WORK = 2**23
# Boxes of one part in one round: 400 kB there and back at ten inputs.
MAX_PART_BOXES = 2_048
# Boxes bounded before the first round.
MAX_HEAD_BOXES = 4_096
# Seconds for processes to start: with less time left none are asked for.
PROCESS_START_SECONDS = 3.0

# Bounding the effect of changed layers (sensitivity); tried on the split MNIST and CIFAR networks.

# Of the time left, what the norms of the weights may take before the multipliers begin.
NORM_SHARE = 0.4
# Of the budget, what balancing units before that may take.
BALANCING_SHARE = 0.1
# Evaluations of multipliers below which a bound is not begun.
MIN_EVALUATIONS = 6
# The maximum over outputs is smoothed by this power: within 20 % of the true one for twenty outputs,
# and all of them are pushed down together.
SMOOTHING_POWER = 16
# Pairs of vectors that L-BFGS keeps.
LBFGS_MEMORY = 20
# Variables; the factorisation of such a matrix takes about a second.
MAX_SYSTEM = 3000
# What is tried as a lower bound of the smallest eigenvalue, in shares of what it seems to be.
EIGENVALUE_SHARES = (0.2, 1e-2, 1e-4)
# Of the inverse power method: the estimate is then seldom more than twice too large.
POWER_ITERATIONS = 4
# How far multipliers are smoothed: for the first set, which must serve all corners, and for one corner.
WIDE_SMOOTHINGS = (0.3, 0.5, 0.2, 0.4, 0.7, 1.0)
NARROW_SMOOTHINGS = (0.05, 0.01)
# Where a corner's own are not concave: how far, in logarithms, to go from the first set to them.
MULTIPLIER_STEPS = (1.0, 0.5, 0.2)
# A million corners: 8 MB, and 10 ms for the form at all of them.
MAX_CORNER_BITS = 20
# Rounds of an ascent in the slopes.
CLIMB_ROUNDS = 60
# All open, as the source itself would have it, at random.
CLIMB_STARTS = 3
# Corners that are worth asking about their signs.
MAX_OPEN_CORNERS = 64
# Of the time, left for signs.
SIGNS_SHARE = 0.5
# One per corner and objective: 256 MB.
MAX_CORNER_BOUNDS = 2**25
# For the bounds of one corner.
CORNER_SECONDS = 6e-8
# Seconds of one linear program.
MAX_PROGRAM_SECONDS = 30.0
# With less time left a program is not begun.
MIN_PROGRAM_SECONDS = 0.2
# Its matrix has about as many rows, and is dense: 100 MB.
MAX_UNKNOWNS = 4_000
# Entries of a matrix handled at once, so that they stay in the cache.
BLOCK_ENTRIES = 2**18

# Making networks smaller (shrinking).

# Of the budget, and after it, for writing a network by its kinks.
SETTLING_SHARE = 0.5
# Inputs at which the size of the function is looked at, and at which results are checked.
SCALE_SAMPLES = 64
CHECKED_SAMPLES = 8
# Of the budget; the rest is for using what was proved.
PROOF_SHARE = 0.9
# An identity is refused if rounding its new weights may move the function by more than this share of
# its size: such weights are so large that float64 cannot hold the reduced network well.
ROUNDING_LIMIT = 1e-9
# A channel whose proved range is this narrow, relative to its size, is a constant but for rounding
# outwards.
NEARLY_CONSTANT = 2.0**-36
# The units of a ReLU network are looked at in copies of a layer: four at most, measured on dense ones,
# beside the network itself. What would take more is reduced by channels, which needs no copies.
LAYER_COPIES = 4.2
MAX_SHRINKING_BYTES = 150_000_000
# Channels are found at sight; if their proofs on a box take this share of the budget, they stop.
CHANNEL_SHARE = 0.5
# Above so many multiply-adds two inputs have to do where others are checked at many: seconds otherwise.
CHECKED_MULTIPLY_ADDS = 50_000_000
# What float64 evaluation of two models of one function may differ by, of its size: deep ones lose seven
# digits.
EVALUATION_ROUNDING = 1e-7
# For one sharper gap bound, when the crude one would refuse a step.
SHARPER_SECONDS = 1.0
# A sharper bound is below the crude one by less than this factor; where that is not enough, no time is
# spent on it.
MAX_SHARPENING = 1e6
# Inputs that choose candidates.
SIGN_SAMPLES = 4096
# Large networks get fewer samples.
SIGN_SAMPLE_FLOPS = 4e9
# Of the time left, what linear bounds may take.
SIGN_LINEAR_SHARE = 0.1
# Programs with more switches do not end in any time a person waits.
MAX_BINARIES = 600
# In a row, before programs are given up: deeper units are harder still.
MAX_FAILURES = 4
# Up to here smaller boxes come before programs.
FEW_INPUTS = 3
# Of the time left, what the first of boxes and programs may take.
FIRST_PROOF_SHARE = 0.5
# Of the search for inputs that switch a candidate.
HILL_ROUNDS = 12
HILL_POINTS = 16
# Every cut halves one coordinate; with more of them partitions grow too fast.
MAX_SPLIT_INPUTS = 6
# Boxes handled at once times the units of the network.
SPLIT_BATCH_ENTRIES = 2**21
# Waiting to be cut: what is open on so many will not be settled.
MAX_PIECES = 2**14
# Of the box: a unit still open then touches zero, or nearly so.
MIN_SIDE = 2.0**-9
# Units of one group that are tried as the one to keep.
MAX_KEPT_TRIED = 16
# Rows that differ more, at length one, are not looked at; the gap decides.
NEAR_COPIES = 1e-2
# Rows that differ more, at length one, are not taken for opposite; the gap decides.
NEAR_OPPOSITES = 1e-6
# Outgoing weights whose sum is below this share of them.
CANCELLING_SHARE = 1e-6
# Entries of a sparse layer that may be written out; larger ones are left alone.
MAX_WRITTEN_OUT = 2**22
# Singular values below this share of the sizes of the factors; the gap decides.
RANK_NOISE = 1e-9
# Entries of the linear map.
MAX_MAP_ENTRIES = 2**22
# Shifts are rounded up to this many bits: sums with them then seldom round, and the little that is
# added keeps the unit on when its bounds are computed again.
SHIFT_BITS = 8
# Larger matrices of always-on rows are not factorised (a second on one core).
MAX_FACTORED_ENTRIES = 2**21
# Only chooses candidates.
RANK_TOLERANCE = 1e-9
# Coefficients are looked for among its multiples.
COEFFICIENT_STEP = 2.0**-20
# Entries of the largest matrix: beyond, the form would be far larger than the network.
MAX_KINK_ENTRIES = 2**21
# Watching the rounding of each.
SECONDS_PER_PRODUCT = 5e-8
# Far more than rounding moves a row's key; what is near is compared.
NEAR_KEYS = 1e-8
# Multiplications followed one by one; beyond, the textbook bound must do (about half a second).
FOLLOWED_PRODUCTS = 2**24
# A product with more entries (1 GB), or more terms, would cost more than the layer it saves.
MAX_PRODUCT_ENTRIES = 2**27
MAX_PRODUCT_TERMS = 2**24

# Canonical forms, and how many parameters show in the function.

# Sweeps of balancing, and the change at which it is settled.
BALANCING_SWEEPS = 1000
BALANCING_SETTLED = 1e-12
# Random scales stay within e^-20 .. e^20: beyond, products of weights of several layers lose digits.
MAX_LOG_SCALE = 20.0
# Samples for each parameter, at least.
JACOBIAN_SAMPLES = 5
# Singular values below this share of the largest count as zero (float64).
RANK_DROP = 1e-9
# Whose Jacobian is decomposed as a whole.
MAX_WHOLE_PARAMETERS = 5_000
# Draws among which rare cells are looked for.
RARE_CELL_DRAWS = 50_000
# Parameters of a larger network that stand for all.
PARAMETER_BLOCK = 400
# Of the Jacobian that are made at once; or as many as columns, for QR's speed.
MIN_JACOBIAN_ROWS = 256
# Of the gap that keeps one of the first two rows positive; below 1 for transparency.
TILT = 0.9
# Draws until the programs of all layers have room.
DRAW_ATTEMPTS = 20
# Slack, in units of the box, below which a program counts as having none.
MIN_ROOM = 1e-9
# Of a layer: beyond, recovering it from values has no digits left.
MAX_CONDITION = 1e6

# Recovering a network from values (recovery); set on random identifiable networks of up to four layers.

# Points beside kinks that enter the final fit.
FIT_SIDES = 2_000
# Share of the spread that the final check forgives; more if the query is noisy.
EXACT_SHARE = 1e-7
# The same, in noises of the query.
EXACT_NOISES = 200.0
# Largest difference, in units of the values, that the proof allows at least.
SAME_SHARE = 1e-6
# Seconds for comparing what was found with a network that answered.
PROOF_SECONDS = 10.0
# Values for the final fit.
FIT_VALUES = 5
# How often the share that fresh points exclude may be too small.
DELTA = 0.05
# Fresh points of each kind.
FRESH_POINTS = 4_000
# Points beside every fold.
FRESH_BESIDE = 40
# How far beside, as shares of the cube.
FRESH_DISTANCES = (0.003, 0.03, 0.3)
# Points among which rare cells are looked for; they cost nothing.
FRESH_DRAWS = 60_000
# Two hundred values on short segments: enough for a median that a few kinks do not move.
NOISE_SEGMENTS = 96
# Rounding differs from cell to cell; few segments this short meet a kink.
NOISE_QUANTILE = 0.95
# Of the box: so short that even a smooth function looks straight in float64.
TINY_SEGMENT = 2.0**-17
# So short that few segments meet a kink, long enough to see curvature.
SHORT_SEGMENT = 2.0**-10
# So long that values rounded to a hundredth change.
LONG_SEGMENT = 2.0**-6
# Segments on which values must be stuck for a query to count as rounded.
MIN_STUCK = 8
# Times the noise: a typical second difference above this is curvature.
CURVED = 64.0
# Above, slopes left and right of a kink cannot be told apart well enough.
MAX_NOISE = 1e-5
# Points asked for at once, at most.
MAX_QUERY_ROWS = 65_536
# Of an interval: the base line on which a slope at its end is first measured.
SLOPE_STUB = 1.0 / 64.0
# Intervals a segment starts with.
SEGMENT_PARTS = 8
# Noises that a value may be off a line.
LINE_NOISES = 12.0
# Of a segment: narrower intervals hold kinks that cannot be told apart.
MIN_INTERVAL = 2.0**-30
# Rounds of halving intervals.
KINK_ROUNDS = 40
# Of the shorter piece: how close to a kink both lines must hold.
KINK_BESIDE = 2.0**-10
# Noises that a value may be off a piece.
GRADIENT_NOISES = 12.0
# Times a step is quartered until it stays inside the piece.
STEP_TRIES = 7
# Second singular value of a jump, relative to the first, if two folds do not meet.
RANK_ONE = 1e-4
# Coordinates of points asked for at once: memory stays small, and time is looked at.
MAX_COORDINATES = 2**22
# A normal less certain than this says nothing.
MAX_NORMAL_ERROR = 1e-3
# Random segments tried for each point wanted on a unit's zero set.
ZERO_SET_DRAWS = 64
# Halvings that place a zero.
BISECTIONS = 60
# Segments of a walk for each point wanted.
WALK_TRIES = 8
# Rounds of segments through points of a zero set that random segments rarely cross.
WALKS = 4
# Of the radius: what a walk adds to directions it has seen.
WALK_JITTER = 1e-3
# Radius of a ball in the cell, below which it is too thin for kinks to be told apart.
MIN_CELL_RADIUS = 1e-7
# Half length of a segment across a known fold.
ACROSS_HALF = 2.0**-5
# How far beyond the edge of a cell the next segment lies.
BEYOND_EDGE = 2.0**-6
# Half length of a segment that looks for the fold beyond an edge.
BEYOND_HALF = 2.0**-3
# Height of a point that is on the fold.
ON_FOLD_HEIGHT = 1e-9
# Segments shorter than this are left out.
MIN_SEGMENT = 1e-4
# Cells a walk along a fold crosses at most.
MAX_HOPS = 8
# Relative error up to which a row is used at all.
MAX_ROW_ERROR = 2e-3
# Parts that agree to this, or to their errors, belong to one unit.
ALIKE = 1e-9
# Errors by which parts of one unit may differ.
ALIKE_ERRORS = 30.0
# Parts that are further apart are not alike, however uncertain they are.
MAX_APART = 1e-2
# How far a kink may be off the first guess, in place and in angle.
NEAR_GUESS = (1e-5, 1e-4)
# Fits of one row to the kinks that it explains.
MAX_REFITS = 8
# Distance from a known fold, in units of the cube, that counts as on it.
ON_KNOWN_FOLD = 1e-7
# Noises above which a second difference is a kink.
FOLD_NOISES = 16.0
# Ratio of the two scales at which it is measured.
FINER_SCALE = 4.0
# How much closer the next look is.
CLOSER = 16.0
# Looks at one point, each closer.
MAX_LOOKS = 3
# Kinks that must be seen.
MIN_KINKS = 4
# Share of the points that must be on a fold, of those that are not in a constant place.
FOLD_SHARE = 0.9
# Sets of units tried where more folds are whole than there are units.
MAX_CHOICES = 24
# Errors above which a gradient, or a coefficient, is no rounding.
VOTE_ERRORS = 100.0
# Share of the votes that decides, and the fewest votes.
UNANIMOUS = 0.95
MIN_VOTES = 3
# Doubt, as a share of the largest coefficient, up to which a point votes.
FIRM = 1e-3
# Shares above and below which a unit is surely on or off; in between, errors of rows may be to blame.
SURELY_ON = 1e-5
SURELY_OFF = 1e-7
# Units without a clear vote: 256 sign vectors are tried.
MAX_UNDECIDED = 8
# Points at which sign vectors are compared.
SIGN_POINTS = 200
# Smallest singular value of gradients, of length one each, that can be told apart.
INDEPENDENT = 1e-6
# Share of a gradient outside the span of the units that are on.
UNEXPLAINED = 1e-6
# Share of the spread; rows found so far carry errors, which the final fit removes.
EXACT_FIT = 1e-6
# Singular value of rows of length one that are dependent.
DEPENDENT = 1e-9
# Units of a wide last layer whose signs are enumerated.
MAX_SIGNS = 14
# Starts of the descent for unknown weights, of how many units, and its steps.
MAX_STARTS = 96
MAX_PARTIAL_UNITS = 4
# Guesses of the unknown weights, in units of the row's length.
WEIGHT_GUESSES = (0.0, 1.0, -1.0)
DESCENT_STEPS = 40
# Singular values of a linear part, relative to the spread, that count as zero.
NO_BEND = 1e-8
# Gauss-Newton steps at the end.
POLISH_STEPS = 12
# Directions with smaller singular values are the free scales.
FREE_SCALE = 1e-11
# Segments asked for in the first round.
FIRST_SEGMENTS = 48
# Random points at which the last layers are fitted.
LAST_LAYER_POINTS = 1_500
# Rounds of asking for kinks; each later one asks for half as many again.
COLLECT_ROUNDS = 6
# Points of a zero set looked at.
ZERO_SET_PROBES = 32
# Candidates for units of one layer.
MAX_CANDIDATES = 60
# Rows this close are one.
DUPLICATE_ROWS = 1e-8
# Rows this close can be taken for one.
TWIN_ROWS = 1e-4
# Choices of a layer's units that are tried in all, and rounds of asking for more kinks.
MAX_BRANCHES = 40
MAX_COLLECTS = 24
# Segments across each fold found, and beyond each that is known in parts.
ACROSS_SEGMENTS = 24
# Folds known in parts that are followed in one round.
MAX_PARTIAL = 12
# Distance of segments from the faces of the cube.
CUBE_INSET = 1e-3

# Around rows of data (comparison/_around_rows.py); tried on mnist_256x4 and copies of it.

# Multiply-adds of both models on the rows that are bounded together, and rows at most.
ROWS_TOGETHER_WORK = 6_000_000
MAX_ROWS_TOGETHER = 64
# Of the time, for what is around rows; the rest is for the box or all inputs.
ROWS_SHARE = 0.75
# Steps uphill, in shares of the width of a ball.
ASCENT_STEPS = (1.0, 0.5, 0.25, 0.25, 0.1, 0.1, 0.05, 0.05)
# Corners of a ball to begin at: those where the largest linear bounds on the gap are attained.
ROW_CORNERS = 4
# A bound that is above what was found by this factor is worth more work.
ROW_LOOSE = 2.0
# Outputs up to which each is led uphill by itself.
ROW_OUTPUTS = 20
# How often planes at corners are mixed in: with 80 steps bounds are a twentieth lower.
ROW_CORNER_STEPS = 16
# Gradient steps on the planes around differences of units: of pruned copies bounds are a tenth lower.
ROW_DIFFERENCE_STEPS = 20
# Classes that a row is led to at most, and turns of the search after every one was tried.
ROW_TARGETS = 4
ROW_SEARCH_TURNS = 2
# Gradient steps on slopes.
ROW_SLOPE_STEPS = 6
# For the complete search at one row.
ROW_VERIFY_SECONDS = 2.0
# Rows in a row that it may fail at: where a border between classes lies in the ball it mostly does.
ROW_VERIFY_MISSES = 5
# Rows on which layers are exchanged one by one, those of the largest gap.
BLAME_ROWS = 256
# Points of the box at which outputs are looked at for their size, if there are no data.
SCALE_SAMPLES = 256
# And their multiply-adds at most.
SCALE_WORK = 1_000_000_000
# Points from which gaps of models without a normal form are looked for, of each kind.
GRAPH_STARTS = 32
# Confidence of statements about new rows, and the quantile of the gap that is told in a line.
ROWS_DELTA = 0.05
ROWS_QUANTILE = 0.95
ROWS_QUANTILES = (0.5, 0.9, 0.95, 0.99)

# Of the budget, what is kept for proving an answer once more for a certificate, if one is asked for.
CERTIFICATE_SHARE = 0.5

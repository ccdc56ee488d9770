"""Numbers of the geometry that were tuned: limits, block sizes, steps and patience.

None of them decides what is true, only how long an answer takes, how much memory it needs and when a
search gives up. Numbers that follow from rounding stand in ``nearness.py`` or beside the bound they
belong to; those of compiled loops stay with the loops, which any edit compiles anew.
``benchmarks/geometry.py``, ``segments.py`` and ``scaling.py`` there measure what they cost.
"""

# Listing cells. A box has 2^d corners, and cells many more.
MAX_COMPLEX_INPUTS = 12
MAX_CELLS = 2_000_000  # of a complex in memory, unless the caller says otherwise
UNLIMITED_CELLS = 2**40

# Walks through all cells.
WALK_FIRST_STEPS = 10  # a twentieth of a second where they are not compiled
WALK_SLICE_SECONDS = 0.05  # between looks at the clock
BATCH_WALK_STEPS = 100_000  # between looks at the keyboard, a fraction of a second
FIRST_CELL_ROOM = 4_096
MAX_FACET_WORDS = 64  # 4,096 facets of one cell
MAX_RESERVED_BYTES = 2**30  # of one array, most of which may stay untouched
COPIED_BYTES_PER_SECOND = 3e8  # to fresh memory, twice, on a slow machine
SUBTREES_PER_THREAD = 32  # they differ in size; many small ones keep all threads busy

# Vertices and maps with more coordinates are told apart by so many random combinations of these.
MAX_GROUPING_COORDINATES = 12

# Sub-boxes and cells on disk.
MAX_SUBBOXES = 1_000_000
CELLS_PER_BATCH = 16_384
MAX_CELLS_PER_BATCH = 2**20
CUT_PATTERNS_PER_TASK = 4_096
PATTERNS_PER_BUCKET = 16_384  # more buckets than memory asks for, so that many processes have work
MAX_BUCKETS = 64
LIBRARY_BYTES = 240 * 10**6  # of Python, NumPy, SciPy and compiled loops before any cell (measured)
MIN_CELL_BYTES = 8 * 10**6
CELL_COPIES = 4  # held at most: where cells are found, sorted out, and on their way to disk
KEY_TABLE_BYTES_PER_CELL = 48  # of a sorted table of keys while it is made

# One cell: corners, facets, points inside. A cube has 2^d corners, and Qhull's work grows faster.
MAX_CORNER_DIM = 10
MAX_TRIANGULATED_DIM = 5  # above, simplices are too many and a random walk is cheaper
HIT_AND_RUN_STEPS_PER_DIM = 20
CENTRING_STEPS = 15
PARALLEL_ROWS_PER_BLOCK = 1_024  # sides compared with all others at once
INWARD_DIRECTIONS = 100  # random ones to try; one is enough unless luck is against us

# Which sides are facets. Most facets need few steps of separation; many, at 784 inputs, cost as much as
# the linear program that they may save.
FEW_SEPARATION_STEPS, MANY_SEPARATION_STEPS = 50, 8_000
MAX_PROJECTION_DIM = 64  # up to here non-negative least squares are faster than both
MIN_BOXLESS_DIM = 32  # from here on it pays to look at the rows without the box first
ROWS_ADDED_AT_ONCE = 16  # violated ones that join a comparison
DIRECTION_NUMBERS_PER_BLOCK = 2**22  # 32 MB

# Distance to the nearest fold.
GRADIENT_NUMBERS_PER_BLOCK = 2**22  # 32 MB
MIN_GATHERED_WIDTH = 64  # from here on gathering the units that are on beats multiplying with zeros

# Segments.
SWEEP_NUMBERS_PER_BLOCK = 2**23  # 64 MB of values at points, over all layers together
MIN_SWEEP_ROWS = 256  # fewer would leave matrix products idle
FIRST_SEGMENT_GROUP = 64  # segments that are worked on together at first,
SEGMENT_GROUP_KNOTS = 2**16  # and then as many as have about so many knots
KINK_OVERSHOOT = 0.02  # of a step: how far beyond a bisected kink the next line starts

# Facts read from cells.
TRIAL_WALK_SHARE = 0.1  # of a budget, to learn what reading costs beside walking
FIRST_CELLS_READ = 16  # of which each may take a second where loops are not compiled
MAX_READING_GROWTH = 8  # from one reading to the next, since the price of many is guessed from few
READING_RESERVE = 1.5  # times the price that the last reading suggests
PROBED_CELLS = 64  # whose slopes give the scale of rounding
SLOPE_NUMBERS_PER_BLOCK = 2**21  # 16 MB
DUAL_BOUND_CELLS_PER_BLOCK = 4_096
MAX_RATIONAL_PARAMETERS = 5_000  # of networks that are evaluated in rational numbers where it helps
CELLS_TRIED_FOR_ATTAINMENT = 64  # the steepest, for one that is proved to be there
RATIONAL_NORMS_PATIENCE = 3.0  # seconds for norms in rational numbers, times what the cells took,
MIN_RATIONAL_NORMS_SECONDS = 1.0  # and at least

# Folds.
CHART_OVERLAP = 1.25  # above 1, so that a fold along the edge of one chart is inside another
FOLD_PAIRS_PER_BLOCK = 2**22  # of an end point and a piece, compared at once

# Margins of layers (transparency): subgradient descent, then cells or a mixed-integer program.
DESCENT_STARTS, DESCENT_STEPS = 32, 40
DESCENT_FIRST_STEP, DESCENT_SHRINK = 0.25, 0.88  # of the box: 40 steps end at a thousandth of it
VERTEX_NUMBERS_PER_BLOCK = 2**22  # held when units are evaluated at all vertices of a complex
MAX_MARGIN_INPUTS_BY_CELLS = 3  # above, the mixed-integer program sees fewer cases than there are cells

# Generality. Of so many ReLUs all patterns are tried: 2**16 products take a second, and 2**12 times the
# width local maps as long.
MAX_UNITS_ALL_RANKS = 16
MAX_UNITS_ALL_MAPS = 12
MAX_WEIGHT_ENTRIES = 2**25  # of one weight matrix: 256 MB as residues
MAX_OPTIMA_INPUTS = 3
MAX_OPTIMA_CELLS = 2_000  # the work is quadratic in them
RANK_VIOLATIONS_KEPT = 3  # for each pair of layers
RANK_TESTS_AFTER_FIRST = 200  # once a violation is known, more of them are for the reader only
SEEN_RANK_MULTIPLICATIONS = 1e8  # spent on seen patterns, for each pair of layers: about a second
RANK_STACK_RESIDUES = 2**20  # in one stack of matrices
MAX_INTEGER_MULTIPLICATIONS = 1e5  # of large integers, that one product may cost
PATTERNS_PER_CHUNK = 4_096  # keeps the stacks of products in memory
MAX_UNITS_INTEGER_MAPS = 64  # inputs and ReLUs up to which single maps are recomputed with integers
MAX_LOCAL_MAPS = 2**18  # compared at once: a second or two
# Random combinations of the entries of a local map that are compared for large networks: maps that are
# not parallel look so with a chance of about 1 / PRIME**3 for a pair.
SKETCH_ENTRIES = 4

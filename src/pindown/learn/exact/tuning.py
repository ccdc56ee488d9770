"""Tuned numbers of exact training; those of compiled loops stand beside the loops.

Times were measured for ten points in the plane; ``benchmarks/exact_training.py`` shows what the rest
does to time and proof.
"""

# Seconds per tuple and unit (for all but squared loss they grow with the number of samples): to choose
# what to attempt, and in what slices.
SECONDS_PER_TUPLE = {"absolute": 3e-5, "hinge": 4e-5, "logistic": 8e-5}
SLICE_SECONDS = 0.3
# A search that takes less without a compiler is over long before one would be done.
SMALL_SEARCH_SECONDS = 1.0
# Slices between two exchanges of the best network.
SLICES_PER_ROUND = 32

# More cells beside rays than this, counted with repetition, do not fit in the memory of a small machine.
MAX_CELLS_BESIDE_RAYS = 10_000_000
# Seconds to list one of these, with all that is stored about it; a listing this short always pays.
SECONDS_PER_CELL_BESIDE_RAY = 4e-6
SHORT_LISTING_SECONDS = 0.1

# Random starts of the walk over cells, and of descent where cells are too many to list.
CELL_STARTS = 60
WEIGHT_STARTS = 20
# Walks over cells with programs that take long.
MAX_CONVEX_WALKS = 8
# Steps of a walk; each must improve, so few come near.
MAX_WALK_STEPS = 200
# Iterations of L-BFGS from random weights and from networks of groups.
MAX_DESCENT_STEPS = 500

# An enumeration that is expected to take longer than this many times what is left is not begun.
HOPELESS_FACTOR = 2.0
# Programs a slice may leave open and remember.
MAX_OPEN_PROGRAMS = 512

# A group with fewer samples than this per weight of its network costs next to nothing.
GROUP_SAMPLES_PER_WEIGHT = 2
# The first division into groups takes about this share of the time; each merging multiplies the work
# many times over.
FIRST_GROUPS_SHARE = 0.2

# Samples times units that are bounded in a second, for squared loss; what a small search takes.
POINTS_PER_SECOND = 1.4e6
FEW_CONES = 1000
# Products of cones that are bounded in one go, and in one round: a share of those left, and no more than
# take about half a second.
CONES_PER_SLICE = 32
SLICE_SHARE_OF_TIME = 0.02  # of what is left, that one go of loops that are not compiled may take
SHARE_PER_ROUND = 1 / 8
MAX_CONES_PER_ROUND = 4096
ROUND_SECONDS = 0.5
# Bytes of generators from which the search goes deep instead of wide, so that no more are kept.
MAX_CONE_BYTES = 60_000_000

"""Tuned numbers of segmented regression; those of compiled loops stand beside the loops.

``benchmarks/segmented.py`` shows what they do to time and proof.
"""

from math import inf

# Seconds for a least-squares fit that one with another loss starts from.
CONVEX_START_SECONDS = 0.5
# A gap below this fraction of the loss is closed.
CLOSED_GAP = 1e-6

# Gaps of the coarse grid for the upper bound, and how many tuples to solve before a finer one is tried.
COARSE_GRIDS = ((40, 20_000), (160, inf))
# The first grid has one gap in this many, up to so many: still a small part of the cost.
COARSE_GRID_SPACING = 16
MAX_COARSE_GRID = 160
# Blocks of gaps that may hold a breakpoint are cut into so many.
BLOCK_REFINEMENT = 4

# How often the clock is read: rows of the dynamic program, nodes of the two searches.
ROWS_PER_CHECK = 64
SQUARED_NODES_PER_CHECK = 500
CONVEX_NODES_PER_CHECK = 2_000

# Ties in units of the weight of an average piece: stiff enough to act as continuity, and no stiffer.
TIE_STIFFNESS = 4.0
# A segment is steep if its slope explains more than this many times the mean squared residual.
STEEP_SEGMENT = 4.0
# Pieces with this fraction of the average weight show the trend; spikes do not.
BROAD_PIECE_SHARE = 0.1

# An improvement of this fraction of the loss is not looked for.
NO_IMPROVEMENT = 1e-7

# Places between the neighbours at which a breakpoint is looked for, for its p-value.
DAVIES_PLACES = 40
# Places within so many standard errors at which the loss is profiled, for an interval.
PROFILE_PLACES = 400
PROFILE_REACH = 8.0

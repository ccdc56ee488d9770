"""The numbers of this room that were chosen, not derived: how large a construction may become."""

from __future__ import annotations

# Piecewise linear functions.
# Maxima that the reduction to n + 1 maps each may take.
MAX_TERMS = 10_000
# Cells into which a network is cut exactly.
MAX_CELLS = 20_000
# Kinks for which the least number of ReLUs is searched: half of them give 2^16 sums to remember, a
# fraction of a second.
MAX_KINKS = 32
# Weights of a convex combination that the solver leaves below this are zero at the vertex it means.
ZERO_WEIGHT = 1e-9

# Approximation.
# Inputs, and intervals to begin with.
MAX_APPROXIMATION_INPUTS, FIRST_INTERVALS = 3, 16
# Points in each interval while refining (the result is measured with four times as many), and along
# each side of a grid cell.
INTERVAL_PROBES, GRID_PROBES = 32, 5
# Intervals with at least this share of the worst error are halved together.
REFINED_SHARE = 0.25
# Share of the tolerance that is aimed at, so that the finer measurement at the end confirms it.
AIMED_SHARE = 0.95

# Boolean circuits.
# Variables of a function: 2^20 vertices of 20 bytes; what is computed from them takes many times more.
MAX_CUBE_BITS = 20
# Weights whose gap is found exactly: two lists of 2^20 sums are sorted.
MAX_GAP_INPUTS = 40
# Variables whose vertices are ordered by many forms at once, and integer vectors to go through.
MAX_ORDER_BITS, MAX_CANDIDATES = 16, 2**22
# Different rows or columns in exact elimination: seconds.
MAX_RANK_ROWS = 128
# Weights of a network that is written out for a table.
MAX_WEIGHTS = 2**22
# Numbers drawn at once in a simulation (64 MB), and restrictions gone through in exact arithmetic: some
# seconds.
CHUNK_NUMBERS, MAX_RESTRICTIONS = 2**23, 200_000

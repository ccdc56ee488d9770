"""The tuned numbers of this room: shares of time, limits of size, thresholds, counts.

None of them is part of a proof: another value makes something slower, or finds less. Numbers that bound
rounding, or that a theorem asks for, stand where they are used. Times were set on one core at about ten
billion operations a second.
"""

from __future__ import annotations

# Comparing two networks (comparison/methods.py); tried on the pairs of benchmarks/equivalence.py.
# Shares are of the time left when a method's turn comes.

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
# If nobody set a limit: seconds for cells and for programs, and for branch and bound.
UNLIMITED_SECONDS = 60.0
UNLIMITED_BRANCHING_SECONDS = 600.0
# Once networks are proved different, how long to look for a finite upper end.
CLOSING_SECONDS = 0.5
# Units of both networks, by inputs: cells grow like (units)^inputs, and more are not worth a try.
MAX_CELL_UNITS = {1: 100_000, 2: 5_000, 3: 200, 4: 60, 5: 40}
# Open units up to which a mixed-integer program is likely to be solved in about a minute.
MAX_OPEN_UNITS = 40
# More inputs are not worth the time of branching before other methods.
MAX_BRANCH_INPUTS = 10
# Of one pass of linear bounds through both networks.
PASS_SECONDS_PER_WEIGHT = 2e-7
# What is left must be more for loading compiled code to be worth it.
LOADING_SECONDS = 6.0
# Steps of one method within this time are kept as one.
SAME_MOMENT_SECONDS = 0.1

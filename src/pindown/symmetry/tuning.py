"""Limits and tuned numbers of the room; those of the search for a group are in ``discovery/tuning.py``.

What counts as rounding of float64 stays with the code that rounds.
"""

from __future__ import annotations

# ---------------------------------------------------------------------- groups and orbits

# A table of this many elements takes 200 MB and its associativity check about a minute.
MAX_ORDER = 5040
# The regular representation holds the order to the third power numbers.
MAX_REGULAR_ORDER = 400
# Permutation matrices of so many numbers take one gigabyte.
MAX_MATRIX_ENTRIES = 2**27
# Distances of images and samples that are held in memory: 32 MB.
DISTANCES_AT_ONCE = 2**22

# ---------------------------------------------------------------------- measuring a symmetry

# Errors of untrained copies are averaged over elements; beyond this many a draw tells enough.
ELEMENTS_FOR_COPIES = 24
# Weights per different weight from which a layer counts as one that shares them, as a convolution does
# at every place of the image; single coincidences are no sharing.
MIN_SHARING = 4
# Distances of all pairs are held at once: 2,000 features make 2 million pairs.
MAX_FEATURES = 2_000

# ---------------------------------------------------------------------- kernels and layers

# Rows whose whole kernel matrix is computed for its diagonal: few, and yet not a call for each.
DIAGONAL_ROWS = 64
# A basis of so many numbers takes one gigabyte.
MAX_BASIS_ENTRIES = 2**27
# The equations of d_in * d_out unknowns take minutes to decompose beyond this many.
MAX_UNKNOWNS = 4096
# Random matrices beyond the dimension: they show that the range has no more directions.
EXTRA_PROBES = 8
# A convolution as a matrix of so many numbers takes two gigabytes in double precision.
MAX_CONVOLUTION_ENTRIES = 2**28
# Above this order a blueprint is tried on the generators and so many random elements.
MAX_TRIED_ELEMENTS = 64

# ---------------------------------------------------------------------- signatures

# A block of projections of 32 MB stays near the processor and leaves room for a copy or two.
PROJECTIONS_AT_ONCE = 4_000_000
# Templates by default, and templates or thresholds that may be asked for.
MIN_TEMPLATES = 20
MAX_TEMPLATES = 10**6
# Features up to which the span of template orbits is computed at fitting.
MAX_SPAN_FEATURES = 512
# Projections per template from which thresholds are read.
THRESHOLD_PROJECTIONS = 20_000
# Seventh powers of heavy tails lose the digits of the others.
MAX_MOMENTS = 6
# Roots of a polynomial from its power sums: beyond this degree rounding eats most digits.
MAX_POWER_SUMS = 12
# Templates drawn at a time for the limit of infinitely many.
TEMPLATES_AT_ONCE = 2000
# Permutations of projections to try for a sample that is confused with another.
PERMUTATIONS_TRIED = 200
# An orbit matrix with a worse condition number has projections that cannot be prescribed to 1e-8.
MAX_CONDITION = 1e8
# The bumps of a signature under light: each spans a few grid steps of the logarithm of a projection.
BUMP_WIDTH = 0.15
BUMPS = 12
# A bump counts as gone at the window's end when it is this many widths away.
GONE_WIDTHS = 9.0

# ---------------------------------------------------------------------- Hebbian learning

# Weights longer than this times the start have diverged: the step is too large for the data.
DIVERGED_RATIO = 1e6
# Points of the history.
RECORDS = 50

# Proved invariance: random points at which an element is compared with its affine map, and the error
# that counts as rounding.
AFFINE_CHECKS, AFFINE_CHECK_ERROR = 8, 1e-12

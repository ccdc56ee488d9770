"""Tuned numbers of the relaxations: sizes of blocks, shares of the time, limits."""

# How much is worked on at once.

# Entries of weights in one block of interval bounds: 2 MB stay in the cache.
INTERVAL_BLOCK_ENTRIES = 2**18
# Entries of one block of carried coefficients of linear bounds: 64 MB.
LINEAR_BLOCK_ENTRIES = 2**23
# Products in one such block: a tenth of a second.
LINEAR_BLOCK_PRODUCTS = 2**29
# Entries of weights worked on before they leave the cache: 1 MB.
CACHED_WEIGHT_ENTRIES = 2**17
# A product with a stored entry of a sparse matrix, in dense ones.
SPARSE_PRODUCT_COST = 16
# Entries of carried coefficients on balls at once: 4 MB stay near the processor.
BALL_BLOCK_ENTRIES = 2**19
# Balls bounded together, to look at the clock now and then.
MAX_BALLS_AT_ONCE = 1024

# Norms.

# A cautious guess for two cores; only decides what is worth starting.
FLOPS_PER_SECOND = 1e10
# Rows of the largest Gram matrix that is factorised.
MAX_GRAM_SIZE = 4096
# Power steps for the norm of absolute weights.
NORM_POWER_STEPS = 30
# Sweeps over the layers that balance units, and the relative change at which they stop.
BALANCING_SWEEPS = 200
BALANCING_SETTLED = 1e-9

# Lipschitz bounds.

# Entries of a merged weight matrix: 128 MB.
MAX_MERGED_ENTRIES = 2**24
# Of a product of small matrices and its norm, whatever their size.
SECONDS_PER_MERGED_PRODUCT = 1.5e-4
# Seconds for merged products, also without a budget.
MAX_MERGING_SECONDS = 20.0
# Distances at which the steepest direction is tried; the likeliest first: time may run out.
STEEP_PAIR_STEPS = (1e-3, 1e-2, 1e-1, 1e-4, 1e-5)
# A local matrix with more rows and columns is not formed; passes forth and back find its direction.
MAX_SIDE_FOR_EIGENVECTORS = 64
POWER_STEPS = 20
# Shares of the budget for absolute weights and for the norms of layers; of what is left then, for merged
# products; and of that, for balancing.
ABSOLUTE_NORM_SHARE = 0.1
LAYER_NORM_SHARE = 0.3
MERGING_SHARE = 0.5
BALANCING_SHARE = 0.2

# Numbers in one block of linear forms that go backwards through a model: 4 MB, near the processor. With
# 64 MB the way back through a convolutional network takes 1.8 times as long.
MODEL_BLOCK_ENTRIES = 2**19
# The same for forms of several boxes, which may as well go one after the other: 1 MB stay in the cache.
MODEL_CACHED_ENTRIES = 2**17
# Entries of a tensor inside a model up to which linear bounds tighten it: each costs a way back.
MODEL_TIGHTENED_ENTRIES = 4_096

# Gradient steps on linear bounds of models.

# First steps, in shares of the range of a slope, and of the largest coefficient of a layer's forms.
SLOPE_STEP = 0.25
MULTIPLIER_STEP = 0.1
# Of weights on forms that must hold at once.
WEIGHT_STEP = 0.5
# What each step is of the one before.
STEP_DECAY = 0.95
# Steps for the tensors inside a model, and for forms of its outputs.
INNER_SLOPE_STEPS = 8
OUTER_SLOPE_STEPS = 20

# Conclusions from assumptions.

# Ways back and forth at most, and what an interval keeps of its width if another one is worth it.
PROPAGATION_ROUNDS = 20
PROPAGATION_SHRUNK = 0.7

# Bounds carried forwards.

# Unknowns that tensors have in common: at least and at most as many beside those of the inputs, and by
# the numbers that the widest tensor of one box has then. Of networks of lattices, whose tensors have
# thousands of entries, 16 decide a property in the least time; of ACAS Xu 64.
FORWARD_MIN_UNKNOWNS = 16
FORWARD_MAX_UNKNOWNS = 64
FORWARD_NUMBERS = 2**17

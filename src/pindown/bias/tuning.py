"""The numbers of this room that were chosen, not derived: limits, tolerances of searches, grids."""

from __future__ import annotations

import numpy as np

# Linear systems.
# Singular values below this share of the largest are zero.
RANK_TOLERANCE = 1e-12
# Ridge penalties among which leave-one-out chooses, times the mean square of the features.
RIDGE_GRID = np.geomspace(1e-4, 1e4, 33)
# Parameters of which a Hessian is written out: 128 MB.
MAX_HESSIAN_PARAMETERS = 4_000
# A gradient below this share of Hessian times weights moves the predicted weights by as little.
STATIONARY_SHARE = 1e-3
# Inputs of a layer whose dropout masks are enumerated: two to this power of masks.
MAX_MASKED_INPUTS = 16
# Share of its error that descent is to be left with, where steps are counted.
ERROR_LEFT = 1e-6

# Gradient flow.
# Errors that solve_ivp may make in each step.
FLOW_RELATIVE_ERROR, FLOW_ABSOLUTE_ERROR = 1e-8, 1e-10
# Time for which one neuron is followed, in units of one over the largest curvature.
NEURON_TIME = 3_000.0
# Steps of plain descent, in the same units, and at most so many, where the flow of one neuron would
# slide along a fold and an integrator with error control would crawl.
SLIDING_STEP, MAX_SLIDING_STEPS = 0.1, 20_000
# A loss below this share of the loss of zero outputs, or of the first, counts as none.
NO_LOSS_SHARE = 1e-10
# Steps of the fifth-order reference inside one step of descent. Its error after one step is h^6 / 8^5,
# four orders below what is measured for h = 0.1; at a fixed time h^5 against h^2 needs no finer ones.
REFERENCE_SUBSTEPS = 8
# Minibatches of which all orders are run.
MAX_PERMUTED_BATCHES = 7
# Weights up to which all eigenvalues of a Hessian are found at once.
MAX_DENSE_WEIGHTS = 300

# Largest margins.
# Hulls nearer to the origin than this, relative to their longest point, are solved again, enlarged.
THIN_HULL = 1e-2
# Constraints in the first working set, and added while some are violated.
FIRST_CONSTRAINTS, ADDED_CONSTRAINTS = 400, 200
# How cheap an offset is against w in the first solve, tried in turn.
OFFSET_SCALES = (3.0, 30.0, 300.0, 3000.0)
# Optimality residual that ends the search over those scales.
OFFSET_RESIDUAL = 1e-10
# Relative gap that ends the refinement of moduli by more directions, and the most refinements.
MODULI_GAP, MAX_MODULI_REFINEMENTS = 1e-10, 60
# Relative change that ends the search for a stationary Fourier norm, and the most steps of it.
STATIONARY_CHANGE, MAX_MAJORISATIONS = 1e-10, 200
# Relative sizes below which a frequency counts as zero, tried in turn; the same for slack.
ZERO_FREQUENCIES = (1e-4, 1e-6, 1e-8)
TIGHT_SLACKS = (1e-4, 1e-6, 1e-8)
MAX_NEWTON_STEPS = 30
# A saddle nearby may lie this much higher: it is stationary, which the end of a search is not.
HIGHER_SADDLE = 1e-6
# A polished solution farther away than this, relative, solves another problem.
POLISHED_DISTANCE = 1e-3
# Training of linear networks: the step as a share of the longest for which the soft margin surely
# rises, and the longest turn relative to the weights (near zero the curvature allows any length).
LINEAR_PACE, MAX_TURN = 1.0, 0.1

# Two-layer networks.
# Step as a share of one over the curvature bound: neurons near zero must not jump over sectors.
TWO_LAYER_STEP = 0.2
# Cosine from which neighbours join one cluster.
SAME_DIRECTION = 0.99
# Neurons whose contribution is below this share of the largest did not take part.
FROZEN_SHARE = 1e-4
# What the source counts as close to a max-margin direction.
CLOSE_COSINE = 0.9
# How exactly Euler's identity must hold, relative: float32 modules lose digits.
HOMOGENEITY_ERROR = 1e-4
# A degree of homogeneity below this is none.
ZERO_DEGREE = 1e-3
# Search for extremal directions: most steps, the push that leads away from saddles, the turn per step
# that ends it, the cosine from which two ends are one, and random steps that must all go down.
MAX_ASCENT_STEPS = 20_000
SADDLE_PUSH = 0.02
STILL_TURN = 1e-9
MERGED_COSINE = 0.999
MAXIMUM_PROBES, PROBE_LENGTH = 200, 1e-4
# Inner products at a time (32 MB), values kept of each population for histograms, rows in one pass.
BLOCK_PRODUCTS = 2**22
MAX_SHOWN_PRODUCTS = 5000
LAYER_BATCH = 512

# Tangent kernels.
# Copies of a block held beside the Gram matrices of the layers, and the least rows of a block: each
# passes the other rows through the network again.
CLOSED_FORM_COPIES, MIN_CLOSED_FORM_ROWS = 3, 64
# What a Jacobian's block costs beyond itself: autograd holds about two more copies of it.
JACOBIAN_COPIES = 3
# Bytes of blocks, unless told otherwise: of Gram matrices, and of Jacobians, found anew per pair.
CLOSED_FORM_MEMORY, JACOBIAN_MEMORY = 2**24, 2**30
# Layer by layer: rows that pass through a module at once (larger batches of windows leave the cache),
# rows on which the sum over layers is compared with derivatives, and how near it has to be.
LAYERWISE_ROWS, LAYERWISE_TRIED_ROWS, LAYERWISE_AGREEMENT = 64, 2, 1e-9
# Rows of a block of pairs whose Jacobian products are taken at once.
PAIR_ROWS = 64
# Blocks of this many rows and columns stay in the cache, and are small enough for malloc to reuse:
# arrays past 128 kB are mapped afresh each time, which took five times as long.
INFINITE_KERNEL_BLOCK = 64
# A kernel that moved by less than a tenth predicts training to a tenth or so; one that moved by half of
# itself predicts nothing. In between both descriptions are poor.
LAZY, RICH = 0.1, 0.5
# Ridge penalties as shares of the kernel's mean diagonal; leave-one-out error chooses.
KERNEL_PENALTIES = np.logspace(-8, 1, 28)

# Intrinsic dimension.
# Below this many different points the interval is too wide to mean anything.
MIN_POINTS = 10
INTERVAL_LEVEL = 0.95
# Measured, in dimensions 1 to 12 on 200 to 2,000 points. Edges lower the estimate most on simplices
# (0.47; exponentials 0.44, cubes 0.33, balls 0.22, normal points 0.1); curvature raises it most on
# products of circles (0.85). Points share neighbours: the variance is 1.3 to 1.7 times that of
# independent ratios.
EDGE_BIAS, CURVATURE_BIAS, SHARED_NEIGHBOURS = 0.5, 0.85, 1.7

# Functions of one variable.
# Gauss-Legendre nodes in each of the equal parts between two breaks, and those parts.
LEGENDRE_NODES, LEGENDRE_PARTS = 24, 8
# Gauss-Hermite nodes: tanh at a mean square of 4 to eight digits.
HERMITE_NODES = 200
# Samples of one period: folding errors of a function with a kink are below one over this squared.
PERIOD_SAMPLES = 2**16
# Points of [0, 1] on which an approximation is measured.
APPROXIMATION_GRID = 1000

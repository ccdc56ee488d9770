"""Tuned numbers of the margin methods."""

import numpy as np

# Of libsvm's optimality conditions; its own 1e-3 shows in the fourth digit of the margin.
LIBSVM_TOLERANCE = 1e-9
# libsvm's steps are cheap; where it would cycle, other starts are tried.
MAX_LIBSVM_STEPS = 200_000
# Prices of slack tried for the hard margin, in units of the dual's scale: the first without slack ends
# it.
HARD_MARGIN_PRICES = (1e4, 1e7, 1e10)
# Gap, as a share of the objective, at which no better start is sought.
CLOSE_GAP = 1e-6
# Shares of a price, from the lowest up, whose solution is the start for the next.
PRICE_SHARES = tuple(float(share) for share in np.logspace(-8, 0, 17))

# Active set: rounds in which all samples that break a condition change sides, then one by one.
ALL_AT_ONCE_ROUNDS = 15
# Systems solved before the guess of the support is given up.
MAX_SUPPORT_CHANGES = 120
# Samples on the margin up to which a dense system is solved.
MAX_FREE_SAMPLES = 400

# Samples that the perceptron scores at once; after a mistake the rest of a block is scored anew.
PERCEPTRON_BLOCK = 256

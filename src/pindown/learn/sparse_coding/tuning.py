"""Tuned numbers of sparse coding."""

# A step of descent must lower the loss by this share of what the gradient promises (Armijo).
ARMIJO_SHARE = 1e-4
# Factors by which a step shrinks until the loss falls, and grows afterwards.
STEP_SHRINK, STEP_GROWTH = 0.5, 1.5
MAX_HALVINGS = 60
# The first step moves the weights by this share of their norm at most: a longer one can turn all units
# off, which lowers a large loss and ends the descent.
FIRST_MOVE_SHARE = 0.1

# Supports that are listed one by one.
MAX_LISTED_SUPPORTS = 100_000

# The search for atoms to begin at: rounds, the share of them in which atoms begin anew, how little used
# (beside the mean) and how much alike (cosine) those are. On 4,000 signals of three of 256 atoms in 128
# dimensions 10 rounds find 245 of them, 15 find 251, 30 find 254.
ATOM_ROUNDS = 15
RESTARTING_SHARE = 0.8
MIN_USED = 0.1
MAX_ALIKE = 0.8
# Atoms that explain a signal where nothing is known.
ATOMS_PER_SIGNAL = 2
# Thresholds that are tried, in shares of the largest value, and signals they are tried on.
THRESHOLD_SHARES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
THRESHOLD_SIGNALS = 500
# Numbers that a block of signals takes.
BLOCK_NUMBERS = 4_000_000

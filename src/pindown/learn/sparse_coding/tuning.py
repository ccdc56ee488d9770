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

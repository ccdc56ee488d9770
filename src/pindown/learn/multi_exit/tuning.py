"""Numbers of classifiers with exits that were chosen, not derived, together and with their reasons."""

from __future__ import annotations

# Training, where the user leaves it open.
# Steps in all, of which the number of epochs follows, between a least and a most.
TABLE_STEPS, IMAGE_STEPS = 150, 600
MIN_EPOCHS, MAX_TABLE_EPOCHS, MAX_IMAGE_EPOCHS = 10, 40, 100
# First step sizes.
TABLE_RATES = {"adam": 1e-2, "sgd": 0.05}
IMAGE_RATES = {"adam": 5e-3, "sgd": 0.1}
# Shares of the epochs after which the step size falls to a tenth, as in the source.
RATE_DROPS = (0.5, 0.75)
# Tempered probabilities are even to single precision long before.
MAX_TEMPERATURE = 1e6

# Policies.
# Held-out rows: from fewer, no policy can be chosen.
MIN_HELD_OUT = 10
# Ratio of the shares of neighbouring exits: beyond, one exit has everything.
MAX_SHARE_RATIO = 1e4

# Times.
# Runs before a measurement.
WARMUP_RUNS = 3
# How many times smaller the second batch is that tells fixed costs from those of each input.
SMALLER_BATCH = 8
# Calls of which medians are taken, to know what checks and scaling cost.
TIMED_CALLS = 21
# Inputs that are timed, or two batches if that is more: evenly spaced among all.
TIMED_INPUTS = 100
# Choices of a policy by the clock; each takes the excess of the one before out of the budget.
MAX_TIMED_CHOICES = 4

# Rows that go through a network at a time: the states of more do not fit into a cache.
ROWS_PER_CHUNK = 256
# A ReLU network is written out in full; convolutions as matrices would make files many times as large.
MAX_FILE_GROWTH = 2.0

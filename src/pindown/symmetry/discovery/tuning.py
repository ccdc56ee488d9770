"""Tuned numbers of the search for a group, set on groups of the lecture course, with and without noise.

What counts as rounding of float64 stays with the code that rounds.
"""

from __future__ import annotations

# ---------------------------------------------------------------------- orbits and their pairs

# More pairs than this sharpen nothing and cost memory: maps have at most a few hundred unknowns.
MAX_PAIRS = 3000
# Orbits of two members or more, to find a group on some and check it on others.
MIN_ORBITS = 6
# Share of the orbits that has no part in the search.
HELD_OUT_SHARE = 0.4

# ---------------------------------------------------------------------- levels of noise

# Levels tried for data scaled to one norm, whose norms say nothing about it, as shares of a coordinate's
# scale.
NOISE_LADDER = (1e-3, 1e-2, 3e-2, 1e-1)
# Where norms differ between orbits they measure the noise; few orbits measure it to about this factor.
NOISE_UNCERTAINTY = 1.5
# Norms that differ between orbits by no more than this many times what they do within were made equal.
ONE_NORM_RATIO = 3.0
# Above this share of a coordinate's scale norms within an orbit are no longer equal up to noise.
MAX_NOISE_SHARE = 0.3
# Directions whose variance is below this many noise variances say nothing about a map.
MIN_VARIANCE_PER_NOISE = 16.0

# ---------------------------------------------------------------------- finding maps by votes

# Two inner products count as equal within this many standard deviations of the noise.
COMPATIBLE_DEVIATIONS = 3.0
# Pairs that vote on one candidate, and that are asked; the cost grows with the square of the first.
MAX_VOTERS = 300
MAX_ASKED = 1600
# Steps of the power method that finds the largest set of voters that agree with each other.
POWER_STEPS = 20
# Residual limits shrink to the final one along this schedule while a candidate is refitted.
RESIDUAL_SCHEDULE = (4.0, 2.0, 1.3, 1.0, 1.0)
# A map found by fitting can bend to about as many pairs as there are dimensions; it must explain more.
SUPPORT_BEYOND_FREEDOM = 2
# A product of maps was not fitted: a pair that it explains is evidence at once, two are no accident.
PRODUCT_SUPPORT = 2
# Maps drawn at random to see what chance explains, and the chance at which a count is no accident.
RANDOM_MAPS = 20
ACCIDENT_CHANCE = 1e-5
# If maps that mean nothing explain this share of pairs, the noise is too coarse to tell any two apart.
TOO_COARSE_SHARE = 0.05
# Share of the pairs after which those left over are the tail of the noise, not another map.
ENOUGH_EXPLAINED = 0.99
# Share of explained pairs from which on a product is an element if it explains a single other pair.
NEARLY_ALL_EXPLAINED = 0.85
# Of the share of products that stay in the list for the usual map: a map with less is no element.
CONSISTENT_SHARE = 0.5
# Candidates in a row that come to nothing before the search ends.
MAP_PATIENCE = 12
# In a group no product is dead. Few pairs leave elements unseen, so this many and half of all may be.
SPARE_DEAD_PRODUCTS = 30
# Noise splits maps while they are collected; they are merged afterwards, so this factor more are let in.
SPARE_MAPS = 2

# ---------------------------------------------------------------------- from maps to a group

# Share of right pairs that a map may miss through noise alone.
MISSED_SHARE = 1e-3
# Rounds of refitting all maps together; one used by fewer than this share of what is usual is a remnant.
REFITTING_ROUNDS = 3
RARE_MAP_SHARE = 0.3
# Elements closer than this share of the least distance between maps count as one.
SAME_ELEMENT_SHARE = 0.5
# A product must be this much nearer to its element than to any other.
CLEAR_ELEMENT_RATIO = 0.5
# Averaging converges quadratically from maps that nearly multiply like the table: far fewer steps do.
MAX_AVERAGING_STEPS = 60

# ---------------------------------------------------------------------- the claim, on held-out orbits

# Share of held-out pairs that the elements must explain, and of hard negatives that they may.
MIN_COVERAGE = 0.9
MAX_FALSE_COVERAGE = 0.2
# Area under ROC, held-out pairs against hard negatives.
MIN_SEPARATION = 0.95
# Chance that negatives as easy as these would be explained as often.
MAX_CHANCE = 1e-4
# Chance below which the use of elements in pairs counts as uneven.
MIN_EVENNESS = 0.01
# Pairs for each element, on average, before evenness can be judged.
MIN_PAIRS_PER_ELEMENT = 3.0
# Held-out orbits with two different members.
MIN_HELD_OUT_ORBITS = 3
# Of one member per orbit: an orbit that lacks one has a closure of 1 - 1/order.
MISSING_MEMBER_SHARE = 0.5
# Wrong maps of each kind, shared by rows: one for every row takes minutes in high dimensions.
HARD_NEGATIVE_MAPS = 100
# Radians, about, by which the axes of an element are turned to make a hard negative.
HARD_NEGATIVE_TURN = 0.5

# ---------------------------------------------------------------------- atoms and their Gramian

# Ten equal columns have 3.6 million automorphisms: past this many a Gramian says nothing about a group.
MAX_AUTOMORPHISMS = 5040
# Keeps the log-determinant finite when there are more atoms than dimensions.
LOG_DET_RIDGE = 0.01
# Pairs in a batch of Adam, and its first rate.
ATOM_BATCH = 64
ATOM_RATE = 0.02
# Learned atoms form an orbit up to a per mille or so; their Gramians are compared within this.
LEARNED_TOLERANCE = 0.03
# Pair losses below this count as solved; among those the atoms least blind to shuffles are taken.
SOLVED_LOSS = 1e-4

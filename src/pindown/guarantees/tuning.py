"""Tuned numbers of the bounds and of certificates: what is tried, how often, and shares of delta."""

import numpy as np

# Bounds. What is tried after looking is paid for, or valid for every value.

# Probabilities of small noise that the spectral bound tries, and quantiles of the margins.
SPECTRAL_SUCCESSES = (0.5, 0.9, 0.99, 0.999)
MARGIN_QUANTILES = tuple(i / 16 for i in range(16))
# The same for the bound on local maxima, for both networks together.
LOCAL_MAXIMA_SUCCESSES = (0.5, 0.75, 0.9, 0.99, 0.999)
# Balls whose maxima are bounded at once.
BALLS_AT_ONCE = 256
# Temperatures of Catoni's bound, in steps of a tenth: between neighbours it changes by about a percent.
TEMPERATURES = tuple(float(c) for c in np.geomspace(0.02, 100.0, 90))
# A risk bound closer to 1 is called what it is.
WORTH_SAYING = 0.99
# Noise in units of the typical weight, from a hundredth to about itself.
RELATIVE_NOISE_SCALES = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
# Rows for each draw: more would cost time and hardly make the mean over draws more certain.
ROWS_PER_DRAW = 2000
# Of delta, for draws of weights; the rest is for the sample.
DRAWS_DELTA_SHARE = 0.2
# Scales of priors in an octave: rounding a scale down takes at most 8.3 % from its square.
SCALES_PER_OCTAVE = 16
# Rounds in which priors that depend on their confidence are counted.
MAX_SHARING_ROUNDS = 1000
# Angles at which the bound of a distilled model is evaluated, and at which exponents are fitted.
DISTILLATION_ANGLES = 20_000
EXPONENT_ANGLES = 4096

# Certificates: how examples, delta and the budget are shared.

# Of the examples, for the prior, by how it comes about.
PRIOR_SHARES = {"train": 0.5, "given": 0.1}
# Of the examples, held out for the exact bound: a fifth, and where that is little more, up to half.
# Means over five seeds: 569 rows 0.050, 0.071 with a fifth; 1,797 rows 0.049 with a fifth as with half.
HELD_OUT_SHARE, MIN_HELD_OUT, MAX_HELD_OUT_SHARE = 0.2, 300, 0.5
# Of delta; draws are cheap, so they get little of it.
MONTE_CARLO_DELTA_SHARE = 0.1
# Shares of the budget at which the prior's training and the posterior's end; counting gets the rest.
PRIOR_UNTIL = 0.5
# The same for the choice of the noise.
NOISE_UNTIL = 0.65
# The same where held-out errors are counted afterwards, in one pass.
HELD_OUT_UNTIL = 0.95
POSTERIOR_UNTIL = 0.8

# Certificates: the prior.

# Epochs, between these so that the steps are about enough.
MIN_PRIOR_EPOCHS = 20
MAX_PRIOR_EPOCHS = 100
ENOUGH_PRIOR_STEPS = 2000
# Examples in a batch, between these so that there are about so many batches.
MIN_PRIOR_BATCH = 16
MAX_PRIOR_BATCH = 128
PRIOR_BATCHES = 30
# Share of the steps in which the rate rises.
WARM_UP_SHARE = 0.05
# Noise relative to the size of a tensor's weights, from none to speak of to as large as they are.
NOISE_LEVELS = tuple(2.0 ** (-k / 2) for k in range(21))
# Noise may cost so much, over the root of the number of examples: little beside what chance does anyway.
NOISE_COST = 0.02
# Predictions from which the cost is read; passes and rows where a draw serves several rows.
MIN_NOISE_TRIALS = 20_000
MIN_NOISE_PASSES = 4
NOISE_ROWS = 200
# Of the size of weights, after an interrupt: most networks bear it.
LITTLE_NOISE = 0.03

# Certificates: the posterior.

# Rate of natural gradient steps at the start, examples in a batch, momentum.
NATURAL_RATE = 0.003
NATURAL_BATCH = 256
NATURAL_MOMENTUM = 0.9
# Of all of u in one step, in nats of sqrt(2 KL): keeps the first steps from jumping.
MAX_MOVE = 1.0
# Of the running mean of the loss that sets the price of KL.
LOSS_MEMORY = 0.98
# Looks at the bound while it falls; predictions per look; rows per draw where layers are not linear.
BOUND_LOOKS = 8
LOOK_TRIALS = 20_000
LOOK_ROWS = 200

# Certificates: counting errors.

# Draws of weights, by whether noise is drawn at outputs.
COUNTING_DRAWS = {True: 1_000_000, False: 20_000}
# Rows at once where every row has its own draw anyway; passes where a draw serves several rows.
COUNTING_ROWS = 4096
MIN_COUNTING_PASSES = 4
# A draw of all weights for so many rows at most, where layers are not linear.
MAX_ROWS_PER_DRAW = 4096
# So many times fewer draws after an interrupt.
INTERRUPTED_FEWER_DRAWS = 10

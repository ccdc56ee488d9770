"""The numbers of this room that were chosen, not derived."""

from __future__ import annotations

# Attacks.
# Attacks go beyond the boundary by this share of the way, so that float64 sees the other class.
OVERSHOOT = 1e-6
# Golden sections of an interval of scores: to a share of 1e-10.
GOLDEN_SECTIONS = 48
# Inputs in one pass of a module of which only values and gradients are known: its memory is unknown.
DIFFERENTIATED_ROWS = 64
# Noise: numbers drawn at once (8 MB), halvings of the scale (to a share of 1e-3), and doublings from the
# length of the shortest attack before it is said that no noise changes the class often enough.
NOISE_BLOCK_NUMBERS, NOISE_HALVINGS, NOISE_MAX_DOUBLINGS = 2**20, 10, 20
# foolbox wants bounds: without a box, the inputs' own with this share of their width added, and a least
# width so that equal inputs have some room, too.
FOOLBOX_WIDER, MIN_FOOLBOX_WIDTH = 1.0, 1.0
# All steps of a Fourier attack together go this many radii far: enough to turn round inside.
FOURIER_ATTACK_REACH = 2.0

# Attributions.
# Segments whose pieces are held at once.
ATTRIBUTED_SEGMENTS = 64
# Numbers in all tensors of a model up to which all pieces are tried: a LeNet has 16,000 and 2,600 pieces
# of a millisecond on a segment; a ResNet-20 has half a million, and its pieces would take hours.
MAX_EXACT_ENTRIES = 100_000
# Intervals of one segment at most: halving around a kink 40 times takes 40.
MAX_KRONROD_INTERVALS = 512
# Bars of a picture.
SHOWN_ATTRIBUTIONS = 16

# Fourier masks.
# Frequencies above this share of the largest weight are kept.
KEPT_SHARE = 0.5
# A mask whose largest weight is below this has closed: its price was too high.
CLOSED_WEIGHT = 0.05
# Price of a mask that keeps everything, beside a data term of 0.17 for a change of 0.4 in the loss.
OPEN_MASK_PRICE = 0.2
# Masks begin almost open, at 0.88, where the sigmoid still has a slope.
FIRST_LOGIT = 2.0
# The exponential of the squared change of a loss continues as its tangent above this square.
STRAIGHT_ABOVE = 4.0
# Random masks drawn for the control.
RANDOM_MASKS = 10
# Images in one pass without gradients.
EVALUATED_IMAGES = 512
# Grey, grey with alpha, colour, colour with alpha.
MAX_CHANNELS = 4
# Sectors of the half plane of frequencies: opposite ones are one.
DIRECTIONS = 8
# Images shown in the picture of a mask.
SHOWN_IMAGES = 4

# Filters in the loop.
# Share of the queries for the random filters of each round.
ROUND_SHARE = 0.3
# Bins are cut where their effects are this many standard errors: a quarter of them is still seen.
CLEAR_ERRORS = 4.0
# Queries for each bin: fewer do not tell the bins apart.
MIN_QUERIES_PER_BIN = 4
# Repeats of a comparison, and of the response at the end, since responses are noisy.
RESPONSE_REPEATS = 3

# Neural fit.
# Strengths of ridge regression, chosen inside.
RIDGE_STRENGTHS = tuple(10.0**power for power in range(-3, 6))
# Stimuli: fewer leave no correlation to speak of.
MIN_STIMULI = 4

# Texture and shape.
# Pixels of a side: below it outlines look alike.
MIN_IMAGE_SIZE = 12
# Sizes of outlines, of the half width.
OUTLINE_SCALES = (0.6, 0.9)

# How far the mean of a class activation map may be from the score, relative to the terms of the sum:
# float32 sums of some thousand terms.
ACTIVATION_IDENTITY_ERROR = 1e-3

# Generative adversarial networks.
# Of Adam; the usual 0.9 lets the two networks chase each other.
GAN_MOMENTA = (0.5, 0.999)
# Share of the steps whose mean is called the end.
GAN_END_SHARE = 0.1

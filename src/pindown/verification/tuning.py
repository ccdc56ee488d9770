"""Tuned numbers of the searches: shares of the time, limits, steps."""

# Properties on a box.

# A coordinate whose slopes cancel here need not be harmless: its width counts, too.
CUT_WIDTH_SHARE = 0.05

# Certificates and certified accuracy.

# Balls whose margins are carried back in one product, also for wide networks.
MIN_BALLS_TOGETHER = 32
# Inputs between two looks at the clock.
ACCURACY_BLOCK_INPUTS = 64
# Of the time left, for attacks.
ACCURACY_ATTACK_SHARE = 0.25
# Restarts and steps of attacks: on all inputs, and on those that linear bounds do not prove.
ACCURACY_QUICK_ATTACK = (1, 20)
ACCURACY_STRONG_ATTACK = (6, 60)
# Turns of the complete search: of all balls that are open after that, then again of those still open.
# Four turns are about 960 parts, 2 to 3 CPU seconds for a network of 4 x 256 units.
ACCURACY_TURNS = (1, 4)
# Balls of models that are bounded together: at most, and by the numbers of their largest tensor.
MAX_BALLS_TOGETHER = 256
MODEL_BALLS_NUMBERS = 2**15

# Counterexamples.

# The first step of projected gradient descent, in shares of the radius; the last is DESCENT_LAST_STEP.
PGD_FIRST_STEP = 0.5
# Descents with long steps in float32: the last step in radii (the first is one), and the first of those
# that lower a softmax. So many passes are for all inputs, later ones for this share of those that are
# left.
ANNEALED_LAST_STEP, ANNEALED_SOFT_STEP = 0.01, 0.5
ANNEALED_WHOLE_PASSES, ANNEALED_SHARE = 2, 0.5
# The ball on which wide passes begin, in radii, and the share of the steps in which it shrinks to the
# asked one. Chosen on 2,000 training digits of mnist_256x4; of 1,000 others passes of 30 steps break 332
# within 0.05 and 496 within 1.0 in l2, and plain passes, in a tenth less time, 325 and 481.
ANNEALED_REACH, ANNEALED_WIDE_SHARE = 2.0, 0.5
# Of those, passes for each start that is asked for.
ANNEALED_PASSES = 3
# Inputs of a block that slower ways are tried on, those of the smallest margin left: of 200 digits they
# break no more, and take eight times as long.
ATTACK_AGAIN_ROWS = 16
# Fast minimum norm: steps, and by what share radii follow, at first and in the end.
FMN_STEPS, FMN_FIRST_SHRINK, FMN_LAST_SHRINK = 60, 0.05, 0.001
# Classes that an input is led to at most: the nearest; and how many again at each restart.
ATTACK_MAX_CLASSES = 20
ATTACK_CLASSES_AGAIN = 3
# Numbers of changed inputs that are held at once: 128 MB.
ATTACK_BLOCK_NUMBERS = 2**24
# Numbers of gradients that DeepFool holds at once: 32 MB.
DEEPFOOL_BLOCK_NUMBERS = 2**22
# Of each step of DeepFool beyond the linear boundary, so that the last one crosses it.
DEEPFOOL_BEYOND = 1e-4

# The distance to another class: attacks.

# Of the time left.
DISTANCE_ATTACK_SHARE = 0.15
# How much nearer each further attack is asked to come.
ATTACK_SHRINK = 0.9
# Carlini and Wagner: prices for each input, slopes for each price. On targets of 42 small networks 35
# ended within 2 % of the exact distance. The price grows by a factor until it suffices.
CW_PRICES, CW_STEPS, CW_PRICE_GROWTH = 8, 20, 4.0
# The first price where slopes tell none, and the longest change that a price may buy.
CW_FIRST_PRICE, MAX_CHANGE = 1.0, 1e100
# Later starts of the regularised attack, where the first did not move: this far at price 1.
REGULARISED_START = 0.1
# Attacks at most, and how many in a row may fail.
MAX_ATTACK_ROUNDS = 30
MAX_ATTACK_MISSES = 2
# Halvings of the way to a changed input, back to where the class changes.
SEGMENT_HALVINGS = 40
# Steps along a boundary, the smallest share of one, how far beyond the tangent plane it aims, so that a
# boundary that bends away is still met, and halvings of the way back after each.
SLIDE_STEPS, MIN_SLIDE_SHARE, SLIDE_BEYOND, SLIDE_HALVINGS = 24, 0.01, 0.05, 12
# Random points around one of few inputs of which nothing is known: targets of small networks were found
# that fill one part in 5,000 of the box.
SAMPLES_AROUND = 16_384
# Steps to corners of a target, the shortest of them in halvings, and how far beside the best point
# boundaries are linearised, in shares of its distance; how far inside the corner they aim, in shares of
# the largest margin; numbers in all tensors of a model up to which the cells are known.
CORNER_ENTRIES = 2_000
CORNER_STEPS, CORNER_HALVINGS, CORNER_SHARE, CORNER_INSIDE = 160, 7, 0.1, 1e-6
# Starts of an attack on a little less than the distance so far, again while it succeeds, but no more
# often than this.
SCATTER_RADIUS, SCATTER_STARTS, SCATTER_TURNS = 0.96, 6, 6
# Doublings of the radius while no other class is found.
MAX_RADIUS_DOUBLINGS = 40
# Random points to try where gradients vanish.
DISTANCE_SAMPLES = 256
# Of so few units the walk over cells ends soon, whatever attacks found before it.
DISTANCE_BRIEF_UNITS = 32

# The distance to another class: linear relaxation.

# Of the time left.
DISTANCE_RELAXATION_SHARE = 0.3
# Of the radius: to a share of 6e-5.
RADIUS_HALVINGS = 14
# Times the size of x: how far to look for a certificate if no other class is known.
RELAXATION_REACH = 1e3
# Complete searches of balls: the first step, in shares of the interval, tries in a round, and rounds,
# each with a turn more.
DISTANCE_FIRST_STEP = 1 / 16
DISTANCE_TRIES = 5
DISTANCE_TURNS = 12
# Parameters of networks whose class at x is decided in rational numbers.
DISTANCE_MAX_RATIONAL_PARAMETERS = 1_000_000

# The distance to another class: walking cells.

# Of the time left, where programs can take over.
DISTANCE_WALK_SHARE = 0.5
# Networks that cells are walked on.
WALK_MAX_INPUTS = 64
WALK_MAX_UNITS = 1024
# Parameters of networks whose cells are computed in rational numbers where it helps.
WALK_MAX_RATIONAL_PARAMETERS = 5_000
# Bounds beyond may stand for contradictions, which are looked for in rational numbers.
WALK_CONTRADICTION_BOUND = 1e6
# Rounds of refinement of a nearest point; the second mostly changes nothing.
NEAREST_REFINEMENTS = 3

# The distance to another class: mixed-integer programs.

# Units of networks that programs are tried on.
MILP_MAX_UNITS = 2000
# The same where cells are not walked: with more, complete searches of balls prove more (on mnist_256x4
# programs raised no bound in 20 seconds).
MILP_ALONE_UNITS = 300
# Of the time, for bounds that make the programs smaller.
MILP_BOUNDS_SHARE = 0.2
# Seconds that a program gets also when time is over.
MILP_MIN_SECONDS = 0.05

# Splitting ReLUs.

# Gradient steps for every part: at least, and at most where few parts are proved.
SPLIT_STEPS = 4
SPLIT_MAX_STEPS = 32
# Parts after which the steps are judged by the share that was proved, and the shares between which they
# stay: trees of networks on images need few steps, those of dense networks many.
SPLIT_JUDGED_PARTS = 64
SPLIT_LOW_SHARE = 0.35
SPLIT_HIGH_SHARE = 0.65
# Units tried for each part, by each of two scores.
SPLIT_CANDIDATES = 2
# What bounds that go into a certificate must be below zero by, in shares of the sizes of what is summed:
# whoever checks them rounds otherwise, by some 1e-13.
LOGGED_SLACK = 1e-11
# By how much bounds inside a model are moved outwards for that, in shares of their size; and what slopes
# of its own must gain a bound, in shares of its width, to be written down.
LOGGED_WIDENING = 1e-9
LOGGED_GAIN = 1e-3
# Turns after which steps are taken, too, that certificates do not have: a verdict without one is better
# than none.
LOGGED_DEDUCTION_TURN = 4
# Entries of the linear programs of parts in which every unit has its sign: seconds.
LEAF_MAX_ENTRIES = 2_000_000
# Parts bounded together: at first, at most, and by the numbers they hold (256 MB).
SPLIT_FIRST_BATCH = 4
SPLIT_MAX_BATCH = 256
SPLIT_BATCH_NUMBERS = 2**25
# Bytes of slopes of parts that wait; beyond, parts nearest to a proof come first and keep no slopes.
SPLIT_WAITING_BYTES = 2**29

# Search for violations. Set on the 141 violated properties of the competition's files, all of which
# have to be found in seconds, and on mnist_256x2 at 0.05, where plain descent breaks 94 of 147 images
# and slopes on shrinking boxes 118.

# Multiplications for one batch of points, and for the samples of one box, and most of either.
SEARCH_BATCH_WORK = 5e7
SEARCH_SAMPLES_WORK = 2e8
SEARCH_MAX_BATCH = 64
SEARCH_MAX_SAMPLES = 4096
# With more free inputs than this, samples tell little: so many are enough.
SEARCH_FEW_INPUTS = 64
SEARCH_SAMPLES_OF_MANY = 16
# Samples of all boxes together.
SEARCH_ALL_SAMPLES = 2e5
# Multiplications to pick good starts among random points, and points that each is picked from.
SEARCH_PICKED_WORK = 1e8
SEARCH_MAX_PICKED = 64
# Points of a set that float64 sees in it and no proof does: after so many they have to be deeper.
SEARCH_MAX_REFUSALS = 8
# Turns if no time is given.
SEARCH_TURNS = 40
# Of the largest residual: how far behind rows still count in a soft maximum; and in units at least.
SOFT_TEMPERATURE = 0.1
MIN_SOFT_TEMPERATURE = 1e-3
# The last step of a descent, in half widths.
DESCENT_LAST_STEP = 0.01
# Decay of the two averages of Adam: short, for tens of steps.
DESCENT_MOMENTUM = 0.8
DESCENT_SQUARES = 0.9
# Half widths of boxes on which linear bounds show the way, from one step to the next.
WIDE_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
MIDDLE_SHARES = (0.7, 0.35, 0.15, 0.07, 0.03)
NARROW_SHARES = (0.3, 0.15, 0.07, 0.03, 0.01)
# Bytes of weights of models on which they do: a bound reads all weights several times, also of a point.
FOLLOW_MAX_BYTES = 1.5e8
# How far from the best point near starts lie, in half widths.
NEAR_SHARES = (0.05, 0.2, 0.5)
# Walks from corner to corner: at once, flips looked at in one step, how often one is taken blindly.
WALK_CHAINS = 8
WALK_FLIPS = 24
WALK_NOISE = 0.2
# Steps of the first walk, and how many more every further turn.
WALK_FIRST_STEPS = 10
WALK_MORE_STEPS = 5
WALK_MAX_FREE = 512
WALK_MAX_WORK = 1e9

# Cutting boxes.

# Bytes of boxes that wait, and of parts that wait for conclusions: near that, fewer are taken at a time.
# The last come first, so that one at a time leaves no more than one for every cut above it.
WAITING_BYTES = 2**29
# Boxes bounded together, at most and by the numbers of forms of the widest tensor (64 MB).
BOX_MAX_BATCH = 128
BOX_BATCH_NUMBERS = 2**22
# Inputs up to which bounds are carried forwards first, and entries of open sign up to which a tensor is
# then bounded by ways back: networks of lattices have thousands that hardly matter.
FORWARD_MAX_INPUTS = 32
BOX_TIGHTENED_ENTRIES = 64
# What of its width a box keeps, along some input, if it is bounded again before it is cut.
BOX_CONTRACTED_SHARE = 0.7
# Unsafe sets on one box that are looked at together: bounds inside the model serve all of them.
BOX_SETS_TOGETHER = 16
# Boxes for which a thread is worth its start.
BOX_MIN_CHUNK = 32

# Steps on the weights of rows that must hold at once: how many, the first, and what each is of the one
# before. For 2 to 5 random rows they leave 1 to 11 % of what the optimum gains over the best row alone.
ROW_WEIGHT_STEPS = 20
ROW_WEIGHT_STEP = 4.0
ROW_WEIGHT_DECAY = 0.9

# Choices of signs in boxes: gradient steps for every choice, choices one after the other, and parts of
# one box that may be open; beyond, it is cut. Of ACAS Xu's network 3_3 with property 2 this leaves some
# three thousand boxes of six million.
BOX_SIGN_STEPS = 8
BOX_SIGN_LEVELS = 6
BOX_SIGN_PARTS = 16
# ReLUs of open sign up to which a box is looked at so: at least and at most. The limit is moved after
# rounds that looked at so many, by the share that was proved; below the lower share it is halved.
BOX_SIGN_MIN_UNITS = 12
BOX_SIGN_MAX_UNITS = 48
BOX_SIGN_JUDGED = 8
BOX_SIGN_LOW_SHARE = 0.25
BOX_SIGN_HIGH_SHARE = 0.5

# Witnesses.

# Multiplications of models that are evaluated in rational numbers: 4 microseconds each.
WITNESS_MAX_RATIONAL_WORK = 300_000

# The portfolio of verify.

# Turns of the search for violations before anything is cut.
SEARCH_FIRST_TURNS = 4
# Entries that bend times multiplications of the model: up to here linear bounds come before that search;
# of dense networks on images they take a tenth of its time.
LINEAR_FIRST_WORK = 2_000_000_000
# Unsafe sets up to which that search comes before all bounds.
SEARCH_FIRST_MAX_SETS = 256
# Turns at most; each is twice as long as the one before.
PORTFOLIO_TURNS = 60
# Inputs up to which boxes are cut, and up to which that comes before anything else.
BOX_MAX_INPUTS = 128
FEW_INPUTS = 6
# Boxes and choices of signs bounded in the first turn; of boxes at most so many that their model's
# multiplications stay within a bound.
BOX_FIRST_PARTS = 512
# Inputs beyond which boxes get no more parts than choices of signs: on safenlp, with 30, these decide
# what boxes leave open.
BOX_PREFERRED_INPUTS = 16
BOX_FIRST_WORK = 200_000_000
SPLIT_FIRST_PARTS = 64
# Distinct boxes up to which ReLUs are split: each has its own bounds inside the model.
SPLIT_MAX_GROUPS = 64
# Gradient steps on the slopes for tensors inside the model.
ROOT_INNER_STEPS = 8
# With so few inputs that bounds go forwards, they are first taken for the units that have this share of
# what all cost the bound: half of them. What the steps for all units of a convolutional network with 16
# inputs prove in 37 CPU seconds, these prove in 22.
ROOT_INNER_SHARE = 0.9
# Multiplications up to which they are taken: about half a minute in float32. They decide networks with
# convolutions and 16 inputs, which splitting does not.
ROOT_MAX_WORK = 2_000_000_000_000

# Output ranges.

# Random inputs to begin with, turns of the portfolio that the last questions get, and questions about
# one end in a row: halvings until it is known to a share of 1e-3, and a few more.
RANGE_SAMPLES = 256
RANGE_TURNS = 12
RANGE_QUESTIONS = 14

# Cutting and concluding.

# Parts looked at together, at most and by the numbers they hold.
DEDUCTION_MAX_BATCH = 64
DEDUCTION_BATCH_NUMBERS = 2**20
# Of its width: an entry with less than this on one side of the cut is not cut there.
DEDUCTION_THIN = 1e-6
# What the sum of the pressures in both directions counts against their product: it decides where that
# is zero.
DEDUCTION_SUM_SHARE = 1e-3
# Parts after which the search is judged, and the share of them that must hold a contradiction: nearly
# half do in a tree that ends.
DEDUCTION_JUDGED_PARTS = 4096
DEDUCTION_MIN_PROVED = 0.25
# Parts in the first turn; in every turn, as long as no cut led to a contradiction; and unsafe sets up to
# which the search is begun.
DEDUCTION_FIRST_PARTS = 64
DEDUCTION_IDLE_PARTS = 16
DEDUCTION_MAX_SETS = 64

# Cutting inside.

# Parts cut together, at most and by the numbers they hold; gradient steps for the rows of a part;
# steps for a part in which nothing is left to cut; entries of a tensor whose cost is traced to earlier
# ones.
INNER_MAX_BATCH = 8
INNER_BATCH_NUMBERS = 2**17
INNER_STEPS = 10
INNER_LAST_STEPS = 200
INNER_TRACED = 48
# Parts after which the search is judged, and the share of them that must be proved.
INNER_JUDGED_PARTS = 512
INNER_MIN_PROVED = 0.2
# Multiplications and parts in the first turn, whichever is less; what of the first a turn takes as long
# as few parts are proved; and parts that a turn must be able to bound. A network of nine layers of 200
# units on images, of which optimised bounds and 7,000 choices of signs leave everything open in 25 CPU
# seconds, is proved with some 250 parts in 14.
INNER_FIRST_WORK = 8_000_000_000
INNER_FIRST_PARTS = 16
INNER_IDLE_SHARE = 0.25
INNER_FEWEST_PARTS = 4

# How long, in multiples of the time it took to know the answer by steps that certificates do not have,
# other ways may look for a proof that they do.
LOGGED_PATIENCE = 5.0
# Of the time that is left, times the number of questions that are, what one may take to be proved once
# more for a certificate: most are proved by one linear bound.
QUESTION_SHARE = 4.0

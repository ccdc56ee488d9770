"""Tuned numbers of the kernel methods; see ``benchmarks/kernels.py`` for those of the classifier."""

# Where kernel logistic regression with ``"auto"`` goes from the exact expansion over all samples to
# landmarks, and how many of them it takes: the exact fit costs n^3 operations and 8 n^2 bytes.
MAX_EXACT_SAMPLES = 4000
AUTO_LANDMARKS = 1000
# Features times classes up to which a Newton step, with its whole Hessian, beats quasi-Newton steps.
MAX_NEWTON_WEIGHTS = 2000

# Halvings of a Newton step, and steps of conjugate gradients in one.
MAX_HALVINGS = 30
MAX_INNER_STEPS = 200
# Largest relative residual of a Newton step; it shrinks with the gradient.
MAX_FORCING = 0.1
# Smallest one: beyond it rounding in the products is what would be solved for.
MIN_FORCING = 1e-4
# Share of the objective: a larger gap is no minimum, however small the gradient.
LOOSE_GAP = 1e-3
# Samples up to which a factor of the kernel goes on where rounding ended the descent.
MAX_FACTORED_AGAIN = 1000
# Samples above which a preconditioner in single precision saves time.
SINGLE_PRECISION_SAMPLES = 1000
# A preconditioner serves until the mean curvature has changed by this factor.
STALE_PRECONDITIONER = 3.0
# Samples whose rank decides whether a factor of low rank is worth computing; it pays if its rank is
# below this share of the samples.
RANK_PROBE_SAMPLES = 400
THIN_FACTOR_SHARE = 0.5

# Columns of an explicit feature map; beyond this memory runs out before patience.
MAX_FEATURES = 200_000

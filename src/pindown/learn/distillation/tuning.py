"""Numbers of linear distillation that were chosen, not derived, together and with their reasons."""

from __future__ import annotations

# A probability of 0 or 1 hides its logit; beyond this size float64 soft labels say little.
MAX_LOGIT = 30.0
# Logits that can be met are missed by more, as a share of the largest, only where descent ended early.
MAX_MISS_AFTER_DESCENT = 1e-6
# Of the integrator of deep flows: an even one takes some hundred steps, a stiff one some thousand.
MAX_INTEGRATOR_STEPS = 30_000
# Inputs drawn to estimate a transfer risk that is no integral.
RISK_SAMPLE = 10_000
# Sizes in a printed curve.
SIZES_SHOWN = 6

# Linear heads.
# Logits of a float32 teacher that is linear are linear within this share.
LINEAR_TEACHER = 1e-5
# With inputs and rank within this factor, noise in the logits is amplified most.
CROWDED_RATIO = 1.5
# Gradient, as a share of the first, below which the answers of a student do not change.
HEAD_TOLERANCE = 1e-6
# A share of features outside the span, or of cut logits, that is worth a note.
NOTEWORTHY_SHARE = 0.01
# Share of inputs on which a score's largest column must be the answer; votes may be tied.
MIN_SCORE_AGREEMENT = 0.9

"""What shrinks a linear model.

Penalties, early stopping, dropout, and the least norm that descent finds.
"""

from pindown.bias.shrinkage.dropout import (
    DropoutPrediction,
    dropout_predict,
    dropout_squared_error,
    mask_average,
)
from pindown.bias.shrinkage.early_stopping import (
    EquivalentPenalty,
    descent_shrinkage,
    equivalent_penalty,
    equivalent_steps,
    ridge_shrinkage,
)
from pindown.bias.shrinkage.initialisation import SignalReport, keep_variance, signal_report
from pindown.bias.shrinkage.least_norm import (
    LeastNorm,
    descent_iterate,
    descent_limit,
    largest_step,
    least_norm_solution,
    null_projector,
)
from pindown.bias.shrinkage.polynomial import PolynomialFit, fit_polynomial, loss_surface

__all__ = [
    "DropoutPrediction",
    "EquivalentPenalty",
    "LeastNorm",
    "PolynomialFit",
    "SignalReport",
    "descent_iterate",
    "descent_limit",
    "descent_shrinkage",
    "dropout_predict",
    "dropout_squared_error",
    "equivalent_penalty",
    "equivalent_steps",
    "fit_polynomial",
    "keep_variance",
    "largest_step",
    "least_norm_solution",
    "loss_surface",
    "mask_average",
    "null_projector",
    "ridge_shrinkage",
    "signal_report",
]

"""The shape of a loss: curvature, sharpness, conditioning, and the size of signals at the start."""

from pindown.bias.curvature.conditioning import Conditioning, conditioning
from pindown.bias.curvature.directions import (
    DirectionalExpansion,
    Eigenpairs,
    TraceEstimate,
    along,
    flat_loss,
    hessian,
    hessian_product,
    top_eigenvalues,
    trace_estimate,
)
from pindown.bias.curvature.initialisation import keep_variance, predicted_signal, signal_report
from pindown.bias.curvature.sharpness import Sharpness, sharpness

__all__ = [
    "Conditioning",
    "DirectionalExpansion",
    "Eigenpairs",
    "Sharpness",
    "TraceEstimate",
    "along",
    "conditioning",
    "flat_loss",
    "hessian",
    "hessian_product",
    "keep_variance",
    "predicted_signal",
    "sharpness",
    "signal_report",
    "top_eigenvalues",
    "trace_estimate",
]

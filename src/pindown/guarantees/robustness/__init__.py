"""How much the output can move when the input does."""

from pindown.geometry.norms.spectral import NormBound, absolute_product_norm, spectral_norm
from pindown.guarantees.robustness.lipschitz import (
    LipschitzBounds,
    layer_spectral_norms,
    lipschitz_bounds,
)

__all__ = [
    "LipschitzBounds",
    "NormBound",
    "absolute_product_norm",
    "layer_spectral_norms",
    "lipschitz_bounds",
    "spectral_norm",
]

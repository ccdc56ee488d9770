"""HOW FAR to trust the network: bounds that are proved, and what they rest on."""

from pindown.guarantees.robustness import LipschitzBounds, lipschitz_bounds, spectral_norm

__all__ = ["LipschitzBounds", "lipschitz_bounds", "spectral_norm"]

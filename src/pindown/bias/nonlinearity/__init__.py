"""What the choice of a nonlinearity makes cheap or dear, and which frequencies it creates."""

from pindown.bias.nonlinearity.harmonics import (
    DistortionReport,
    HarmonicSpectrum,
    distortion_report,
    harmonic_spectrum,
    power_series_spectrum,
    relu_harmonics,
)
from pindown.bias.nonlinearity.penalty import (
    ActivationPrice,
    activation_price,
    frequency_weight,
    n_terms,
    saturating_density,
    spectral_price,
    superpose,
)

__all__ = [
    "ActivationPrice",
    "DistortionReport",
    "HarmonicSpectrum",
    "activation_price",
    "distortion_report",
    "frequency_weight",
    "harmonic_spectrum",
    "n_terms",
    "power_series_spectrum",
    "relu_harmonics",
    "saturating_density",
    "spectral_price",
    "superpose",
]

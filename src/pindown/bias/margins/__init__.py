"""Separable data: the classifier of largest margin in each norm, and how training gets there."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.bias.margins.fourier import FourierMargin as FourierMargin
    from pindown.bias.margins.fourier import fourier_stationarity as fourier_stationarity
    from pindown.bias.margins.fourier import max_fourier_margin as max_fourier_margin
    from pindown.bias.margins.hard_margin import MaxMargin as MaxMargin
    from pindown.bias.margins.hard_margin import max_margin as max_margin
    from pindown.bias.margins.linear_networks import LinearLimit as LinearLimit
    from pindown.bias.margins.linear_networks import LinearRun as LinearRun
    from pindown.bias.margins.linear_networks import linear_network_limit as linear_network_limit
    from pindown.bias.margins.linear_networks import train_linear_network as train_linear_network
    from pindown.bias.margins.signed import NoMarginError as NoMarginError
    from pindown.bias.margins.signed import signed_labels as signed_labels
    from pindown.bias.margins.spectral import fourier_norm as fourier_norm
    from pindown.bias.margins.spectral import fourier_radius as fourier_radius
    from pindown.bias.margins.spectral import spectrum as spectrum
    from pindown.bias.margins.spectral import worst_fourier_perturbation as worst_fourier_perturbation
    from pindown.bias.margins.steepest import SteepestDescent as SteepestDescent
    from pindown.bias.margins.steepest import steepest_descent as steepest_descent

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "fourier": "FourierMargin fourier_stationarity max_fourier_margin",
        "hard_margin": "MaxMargin max_margin",
        "linear_networks": "LinearLimit LinearRun linear_network_limit train_linear_network",
        "signed": "NoMarginError signed_labels",
        "spectral": "fourier_norm fourier_radius spectrum worst_fourier_perturbation",
        "steepest": "SteepestDescent steepest_descent",
    },
)

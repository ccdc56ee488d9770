"""Kernels and their function spaces: kernel objects, spectra, norms, ridge and logistic regression."""

from pindown.learn.kernels.components import KernelComponents, kernel_components
from pindown.learn.kernels.distance import (
    center_cross,
    center_gram,
    distance_to_mean,
    kernel_distance,
    mean_distance_squared,
)
from pindown.learn.kernels.gram import diagonal, gram
from pindown.learn.kernels.logistic import Convergence, KernelLogisticClassifier
from pindown.learn.kernels.mercer import MercerSpectrum, mercer_spectrum
from pindown.learn.kernels.positive import Definiteness, finite_feature_map, refute_definiteness
from pindown.learn.kernels.representer import KernelFit, fit_kernel_problem, squared_loss
from pindown.learn.kernels.ridge import (
    LeaveOneOutKernelRidge,
    effective_dimension,
    leave_one_out_residuals,
    norm_squared_from_values,
    spectral_filter,
)
from pindown.learn.kernels.rkhs import KernelExpansion, LipschitzReport, lipschitz_report
from pindown.learn.kernels.series import (
    GeometricSeries,
    gaussian_power_features,
    geometric_features,
    monomials,
)
from pindown.learn.kernels.shift_invariant import Laplace, Sinc
from pindown.learn.kernels.spectra import (
    Smoothness,
    plot_filters,
    ridge_filter,
    smoothness,
    spectral_norm_squared,
    spectrum,
)

__all__ = [
    "Convergence",
    "Definiteness",
    "GeometricSeries",
    "KernelComponents",
    "KernelExpansion",
    "KernelFit",
    "KernelLogisticClassifier",
    "Laplace",
    "LeaveOneOutKernelRidge",
    "LipschitzReport",
    "MercerSpectrum",
    "Sinc",
    "Smoothness",
    "center_cross",
    "center_gram",
    "diagonal",
    "distance_to_mean",
    "effective_dimension",
    "finite_feature_map",
    "fit_kernel_problem",
    "gaussian_power_features",
    "geometric_features",
    "gram",
    "kernel_components",
    "kernel_distance",
    "leave_one_out_residuals",
    "lipschitz_report",
    "mean_distance_squared",
    "mercer_spectrum",
    "monomials",
    "norm_squared_from_values",
    "plot_filters",
    "refute_definiteness",
    "ridge_filter",
    "smoothness",
    "spectral_filter",
    "spectral_norm_squared",
    "spectrum",
    "squared_loss",
]

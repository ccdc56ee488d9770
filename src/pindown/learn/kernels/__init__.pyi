# What pindown.learn.kernels offers; lazy.py reads this list.

# Estimators.
from pindown.learn.kernels.kernel_logistic import Convergence as Convergence
from pindown.learn.kernels.kernel_logistic import KernelLogisticClassifier as KernelLogisticClassifier
from pindown.learn.kernels.kernel_ridge import LeaveOneOutKernelRidge as LeaveOneOutKernelRidge

# Gram matrices and distances in feature space.
from pindown.learn.kernels.gram_matrix import diagonal as diagonal
from pindown.learn.kernels.gram_matrix import distance_to_mean as distance_to_mean
from pindown.learn.kernels.gram_matrix import gram as gram
from pindown.learn.kernels.gram_matrix import kernel_distance as kernel_distance
from pindown.learn.kernels.gram_matrix import mean_distance_squared as mean_distance_squared

# Kernel PCA.
from pindown.learn.kernels.kernel_pca import KernelComponents as KernelComponents
from pindown.learn.kernels.kernel_pca import center_cross as center_cross
from pindown.learn.kernels.kernel_pca import center_gram as center_gram
from pindown.learn.kernels.kernel_pca import kernel_components as kernel_components

# Kernel objects and their features.
from pindown.learn.kernels.kernel_objects import GeometricSeries as GeometricSeries
from pindown.learn.kernels.kernel_objects import Laplace as Laplace
from pindown.learn.kernels.kernel_objects import Sinc as Sinc
from pindown.learn.kernels.kernel_objects import gaussian_power_features as gaussian_power_features
from pindown.learn.kernels.kernel_objects import geometric_features as geometric_features
from pindown.learn.kernels.kernel_objects import monomials as monomials

# What a shift-invariant kernel does to each frequency.
from pindown.learn.kernels.fourier_spectra import Smoothness as Smoothness
from pindown.learn.kernels.fourier_spectra import plot_filters as plot_filters
from pindown.learn.kernels.fourier_spectra import ridge_filter as ridge_filter
from pindown.learn.kernels.fourier_spectra import smoothness as smoothness
from pindown.learn.kernels.fourier_spectra import spectral_norm_squared as spectral_norm_squared
from pindown.learn.kernels.fourier_spectra import spectrum as spectrum

# Positive definiteness and Mercer's expansion.
from pindown.learn.kernels.mercer import Definiteness as Definiteness
from pindown.learn.kernels.mercer import MercerSpectrum as MercerSpectrum
from pindown.learn.kernels.mercer import finite_feature_map as finite_feature_map
from pindown.learn.kernels.mercer import mercer_spectrum as mercer_spectrum
from pindown.learn.kernels.mercer import refute_definiteness as refute_definiteness

# Functions of a reproducing kernel Hilbert space.
from pindown.learn.kernels.rkhs import KernelExpansion as KernelExpansion
from pindown.learn.kernels.rkhs import LipschitzReport as LipschitzReport
from pindown.learn.kernels.rkhs import lipschitz_report as lipschitz_report

# The representer theorem, and ridge regression as its simplest case.
from pindown.learn.kernels.representer_theorem import KernelFit as KernelFit
from pindown.learn.kernels.representer_theorem import fit_kernel_problem as fit_kernel_problem
from pindown.learn.kernels.representer_theorem import squared_loss as squared_loss
from pindown.learn.kernels.kernel_ridge import effective_dimension as effective_dimension
from pindown.learn.kernels.kernel_ridge import leave_one_out_residuals as leave_one_out_residuals
from pindown.learn.kernels.kernel_ridge import norm_squared_from_values as norm_squared_from_values
from pindown.learn.kernels.kernel_ridge import spectral_filter as spectral_filter

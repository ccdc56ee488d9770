# What pindown.bias offers; lazy.py reads this list. More stands in its subpackages' own lists.

# gradient flow
from pindown.bias.flow import Path as Path
from pindown.bias.flow import gradient_flow as gradient_flow
from pindown.bias.flow import module_flow as module_flow

# separable data: largest margins, and the two neurons of wide networks
from pindown.bias.margins import linear_network_limit as linear_network_limit
from pindown.bias.margins import max_fourier_margin as max_fourier_margin
from pindown.bias.margins import max_margin as max_margin
from pindown.bias.margins import steepest_descent as steepest_descent
from pindown.bias.two_layer import margin_certificate as margin_certificate
from pindown.bias.two_layer import orthogonal_separability as orthogonal_separability
from pindown.bias.two_layer import two_layer_limit as two_layer_limit

# least squares in closed form
from pindown.bias.least_squares import double_descent_curve as double_descent_curve
from pindown.bias.least_squares import dropout_least_squares as dropout_least_squares
from pindown.bias.least_squares import gaussian_risk as gaussian_risk
from pindown.bias.least_squares import noise_to_ridge as noise_to_ridge
from pindown.bias.least_squares import noisy_least_squares as noisy_least_squares
from pindown.bias.least_squares import predict_descent as predict_descent
from pindown.bias.least_squares import single_neuron_flow as single_neuron_flow
from pindown.bias.least_squares import stopping_as_ridge as stopping_as_ridge
from pindown.bias.least_squares import weight_decay as weight_decay
from pindown.bias.least_squares import weight_decay_of_module as weight_decay_of_module

# the tangent kernel
from pindown.bias.tangent_kernel import Linearised as Linearised
from pindown.bias.tangent_kernel import empirical_ntk as empirical_ntk
from pindown.bias.tangent_kernel import infinite_ntk as infinite_ntk
from pindown.bias.tangent_kernel import kernel_alignment as kernel_alignment
from pindown.bias.tangent_kernel import kernel_versus_network as kernel_versus_network
from pindown.bias.tangent_kernel import laziness as laziness
from pindown.bias.tangent_kernel import ntk_predict as ntk_predict
from pindown.bias.tangent_kernel import spectral_bias as spectral_bias
from pindown.bias.tangent_kernel import tangent_network as tangent_network

# what a finite step adds to the loss
from pindown.bias.implicit_regularisation import ImplicitRegularisation as ImplicitRegularisation
from pindown.bias.implicit_regularisation import emulating_multiple as emulating_multiple
from pindown.bias.implicit_regularisation import implicit_penalty as implicit_penalty
from pindown.bias.implicit_regularisation import modified_gradient as modified_gradient
from pindown.bias.implicit_regularisation import modified_loss as modified_loss
from pindown.bias.implicit_regularisation import sgd_modified_loss as sgd_modified_loss
from pindown.bias.discretisation import batch_descent as batch_descent
from pindown.bias.discretisation import discretisation_orders as discretisation_orders
from pindown.bias.discretisation import sgd_orders as sgd_orders

# the shape of a loss, and the start of training
from pindown.bias.curvature import along as along
from pindown.bias.curvature import flat_loss as flat_loss
from pindown.bias.curvature import hessian as hessian
from pindown.bias.curvature import sharpness as sharpness
from pindown.bias.curvature import top_eigenvalues as top_eigenvalues
from pindown.bias.curvature import trace_estimate as trace_estimate
from pindown.bias.initialisation import conditioning as conditioning
from pindown.bias.initialisation import keep_variance as keep_variance
from pindown.bias.initialisation import predicted_signal as predicted_signal
from pindown.bias.initialisation import signal_report as signal_report

# what a nonlinearity and a class of functions prefer
from pindown.bias.frequency_penalty import activation_price as activation_price
from pindown.bias.frequency_penalty import frequency_weight as frequency_weight
from pindown.bias.frequency_penalty import spectral_price as spectral_price
from pindown.bias.frequency_penalty import superpose as superpose
from pindown.bias.harmonic_distortion import distortion_report as distortion_report
from pindown.bias.harmonic_distortion import harmonic_spectrum as harmonic_spectrum
from pindown.bias.harmonic_distortion import power_series_spectrum as power_series_spectrum
from pindown.bias.function_classes import approximation_curve as approximation_curve
from pindown.bias.function_classes import frozen_network as frozen_network
from pindown.bias.function_classes import hypothesis_classes as hypothesis_classes

# how many directions a representation uses
from pindown.bias.dimension_estimate import intrinsic_dimension as intrinsic_dimension
from pindown.bias.dimension_estimate import layer_dimensions as layer_dimensions

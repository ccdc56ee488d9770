"""Why this function: what training is predicted to choose, and how close a network came to it."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.bias.flow import Path as Path
    from pindown.bias.flow import gradient_flow as gradient_flow
    from pindown.bias.flow import module_flow as module_flow
    from pindown.bias.kernel.empirical import empirical_ntk as empirical_ntk
    from pindown.bias.kernel.infinite import infinite_ntk as infinite_ntk
    from pindown.bias.margins import max_margin as max_margin
    from pindown.bias.separability import orthogonal_separability as orthogonal_separability
    from pindown.bias.two_layer import two_layer_limit as two_layer_limit

# Where each name lives: a module is loaded when something in it is used, not on import.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "curvature": "along conditioning flat_loss predicted_signal sharpness top_eigenvalues "
        "trace_estimate",
        "discretisation": "ImplicitRegularisation discretisation_orders implicit_penalty "
        "modified_gradient modified_loss sgd_modified_loss sgd_orders",
        "least_squares": "double_descent_curve dropout_least_squares gaussian_risk noise_to_ridge "
        "noisy_least_squares predict_descent single_neuron_flow "
        "stopping_as_ridge weight_decay weight_decay_of_module",
        "nonlinearity": "activation_price distortion_report frequency_weight harmonic_spectrum",
        "hypothesis_classes": "approximation_curve frozen_network",
        "flow": "Path gradient_flow module_flow",
        "kernel": "Linearised empirical_ntk infinite_ntk kernel_alignment kernel_versus_network "
        "laziness ntk_predict spectral_bias tangent_network",
        "margins": "max_margin",
        "separability": "orthogonal_separability",
        "two_layer": "two_layer_limit",
    },
)

"""The kernel view of training: what a network does while its tangent kernel stays what it was."""

from pindown.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "empirical": "empirical_ntk",
        "infinite": "infinite_ntk",
        "dynamics": "KernelPrediction ntk_predict",
        "spectrum": "SpectralBias residual_in_eigenbasis spectral_bias",
        "alignment": "kernel_alignment kernel_distance target_alignment",
        "modules": "Linearised tangent_network",
        "regime": "Laziness laziness",
        "comparison": "KernelComparison kernel_versus_network",
    },
)

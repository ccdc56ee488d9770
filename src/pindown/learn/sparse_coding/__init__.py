"""Sparse coding by tied ReLU autoencoders: support recovery with its certificate, gradients, descent."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.learn.sparse_coding.criticality import Criticality as Criticality
    from pindown.learn.sparse_coding.criticality import criticality_bounds as criticality_bounds
    from pindown.learn.sparse_coding.criticality import measure_criticality as measure_criticality
    from pindown.learn.sparse_coding.decomposition import (
        decomposition_of_gradient as decomposition_of_gradient,
    )
    from pindown.learn.sparse_coding.descent import DictionaryError as DictionaryError
    from pindown.learn.sparse_coding.descent import dictionary_error as dictionary_error
    from pindown.learn.sparse_coding.estimator import SparseCodingAutoencoder as SparseCodingAutoencoder
    from pindown.learn.sparse_coding.gradient import dead_fraction as dead_fraction
    from pindown.learn.sparse_coding.gradient import loss_and_gradient as loss_and_gradient
    from pindown.learn.sparse_coding.gradient import reconstruction_loss as reconstruction_loss
    from pindown.learn.sparse_coding.proxy import proxy_gradient as proxy_gradient
    from pindown.learn.sparse_coding.recovery import RecoveryCertificate as RecoveryCertificate
    from pindown.learn.sparse_coding.recovery import certify_weights as certify_weights
    from pindown.learn.sparse_coding.recovery import recover_support as recover_support
    from pindown.learn.sparse_coding.recovery import recovery_certificate as recovery_certificate
    from pindown.learn.sparse_coding.recovery import recovery_threshold as recovery_threshold
    from pindown.learn.sparse_coding.tied import TiedAutoencoder as TiedAutoencoder

# Where each name lives: a module is loaded when something in it is used, not on import.
_NAMES = {
    "criticality": "Criticality criticality_bounds measure_criticality",
    "decomposition": "decomposition_of_gradient",
    "descent": "DictionaryError dictionary_error",
    "estimator": "SparseCodingAutoencoder",
    "gradient": "dead_fraction loss_and_gradient reconstruction_loss",
    "proxy": "proxy_gradient",
    "recovery": (
        "RecoveryCertificate certify_weights recover_support recovery_certificate recovery_threshold"
    ),
    "tied": "TiedAutoencoder",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)

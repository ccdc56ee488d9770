"""HOW FAR to trust the network: bounds that are proved, and what they rest on.

Names are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.guarantees.bounds.bound import Bound as Bound
    from pindown.guarantees.bounds.coins import small_kl_inverse as small_kl_inverse
    from pindown.guarantees.bounds.spectral import spectral_margin_bound as spectral_margin_bound
    from pindown.guarantees.bounds.table import BoundTable as BoundTable
    from pindown.guarantees.bounds.table import bound_table as bound_table
    from pindown.guarantees.certificate import Certificate as Certificate
    from pindown.guarantees.certificate import certify as certify
    from pindown.guarantees.fourier import FourierMask as FourierMask
    from pindown.guarantees.fourier import fourier_attack as fourier_attack
    from pindown.guarantees.fourier import fourier_mask as fourier_mask
    from pindown.guarantees.fourier import mask_check as mask_check
    from pindown.guarantees.robust_linear import RobustLinear as RobustLinear
    from pindown.guarantees.robust_linear import linear_robustness as linear_robustness
    from pindown.guarantees.robust_linear import most_robust_classifier as most_robust_classifier
    from pindown.guarantees.robust_linear import robustness_table as robustness_table
    from pindown.guarantees.robustness import CertifiedAccuracy as CertifiedAccuracy
    from pindown.guarantees.robustness import LipschitzBounds as LipschitzBounds
    from pindown.guarantees.robustness import MinimumDistance as MinimumDistance
    from pindown.guarantees.robustness import certified_accuracy as certified_accuracy
    from pindown.guarantees.robustness import lipschitz_bounds as lipschitz_bounds
    from pindown.guarantees.robustness import minimum_distance as minimum_distance
    from pindown.guarantees.robustness import spectral_norm as spectral_norm
    from pindown.guarantees.robustness import verify as verify

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "bounds.bound": "Bound",
        "bounds.coins": "small_kl_inverse",
        "bounds.spectral": "spectral_margin_bound",
        "bounds.table": "BoundTable bound_table",
        "fourier": "FourierMask fourier_attack fourier_mask mask_check",
        "robust_linear": "RobustLinear linear_robustness most_robust_classifier robustness_table",
        "certificate": "Certificate certify",
        "robustness": "CertifiedAccuracy LipschitzBounds MinimumDistance certified_accuracy "
        "lipschitz_bounds minimum_distance spectral_norm verify",
    },
)

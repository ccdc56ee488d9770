"""How much the output can move when the input does: attacks, certificates, exact distances.

Names that are not needed for norms are imported when they are asked for.
"""

from typing import TYPE_CHECKING

from pindown.geometry.norms.spectral import NormBound as NormBound
from pindown.geometry.norms.spectral import absolute_product_norm as absolute_product_norm
from pindown.geometry.norms.spectral import spectral_norm as spectral_norm
from pindown.guarantees.robustness.lipschitz import LipschitzBounds as LipschitzBounds
from pindown.guarantees.robustness.lipschitz import layer_spectral_norms as layer_spectral_norms
from pindown.guarantees.robustness.lipschitz import lipschitz_bounds as lipschitz_bounds
from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.guarantees.robustness.acas_xu import acas_xu_property as acas_xu_property
    from pindown.guarantees.robustness.accuracy import CertifiedAccuracy as CertifiedAccuracy
    from pindown.guarantees.robustness.accuracy import certified_accuracy as certified_accuracy
    from pindown.guarantees.robustness.attack_result import AttackResult as AttackResult
    from pindown.guarantees.robustness.certificates import certified as certified
    from pindown.guarantees.robustness.distance import MinimumDistance as MinimumDistance
    from pindown.guarantees.robustness.distance import minimum_distance as minimum_distance
    from pindown.guarantees.robustness.foolbox import AttackComparison as AttackComparison
    from pindown.guarantees.robustness.foolbox import foolbox_attack as foolbox_attack
    from pindown.guarantees.robustness.linear_attacks import linear_distance as linear_distance
    from pindown.guarantees.robustness.linear_attacks import (
        linear_maximum_allowable_attack as linear_maximum_allowable_attack,
    )
    from pindown.guarantees.robustness.linear_attacks import (
        linear_minimum_norm_attack as linear_minimum_norm_attack,
    )
    from pindown.guarantees.robustness.linear_attacks import (
        linear_regularised_attack as linear_regularised_attack,
    )
    from pindown.guarantees.robustness.linearised_steps import deepfool as deepfool
    from pindown.guarantees.robustness.linearised_steps import deepfool_binary as deepfool_binary
    from pindown.guarantees.robustness.noise import mean_noise_probability as mean_noise_probability
    from pindown.guarantees.robustness.noise import noise_flip_probability as noise_flip_probability
    from pindown.guarantees.robustness.noise import noise_tail_bound as noise_tail_bound
    from pindown.guarantees.robustness.noise import noise_versus_adversarial as noise_versus_adversarial
    from pindown.guarantees.robustness.projected_gradient import gradient_attack as gradient_attack
    from pindown.guarantees.robustness.radii import certified_radii as certified_radii
    from pindown.guarantees.robustness.verification import Verification as Verification
    from pindown.guarantees.robustness.verification import verify as verify

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "acas_xu": "acas_xu_property",
        "accuracy": "CertifiedAccuracy certified_accuracy",
        "radii": "certified_radii",
        "attack_result": "AttackResult",
        "certificates": "certified",
        "linearised_steps": "deepfool deepfool_binary",
        "distance": "MinimumDistance minimum_distance",
        "foolbox": "AttackComparison foolbox_attack",
        "projected_gradient": "gradient_attack",
        "linear_attacks": "linear_distance linear_maximum_allowable_attack linear_minimum_norm_attack "
        "linear_regularised_attack",
        "noise": "mean_noise_probability noise_flip_probability noise_tail_bound "
        "noise_versus_adversarial",
        "verification": "Verification verify",
    },
    eager=(
        "LipschitzBounds",
        "NormBound",
        "absolute_product_norm",
        "layer_spectral_norms",
        "lipschitz_bounds",
        "spectral_norm",
    ),
)

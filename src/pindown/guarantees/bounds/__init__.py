"""Probability statements: how often a network is wrong on new examples, and how sure that is.

Every bound is a :class:`Bound` with its terms and assumptions. Names are imported when they are asked
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.guarantees.bounds.angular import AngularProfile as AngularProfile
    from pindown.guarantees.bounds.angular import fit_exponent as fit_exponent
    from pindown.guarantees.bounds.angular import fit_margin as fit_margin
    from pindown.guarantees.bounds.bound import Assumption as Assumption
    from pindown.guarantees.bounds.bound import Bound as Bound
    from pindown.guarantees.bounds.clusters import ClusterPriors as ClusterPriors
    from pindown.guarantees.bounds.coins import small_kl as small_kl
    from pindown.guarantees.bounds.coins import small_kl_inverse as small_kl_inverse
    from pindown.guarantees.bounds.gaussians import gaussian_kl as gaussian_kl
    from pindown.guarantees.bounds.gaussians import mixture_kl_bound as mixture_kl_bound
    from pindown.guarantees.bounds.grids import beta_grid as beta_grid
    from pindown.guarantees.bounds.information import information_lower_bound as information_lower_bound
    from pindown.guarantees.bounds.local_maxima import local_maxima_bound as local_maxima_bound
    from pindown.guarantees.bounds.margins import margin_bound as margin_bound
    from pindown.guarantees.bounds.margins import margin_risk as margin_risk
    from pindown.guarantees.bounds.margins import truncated_posterior as truncated_posterior
    from pindown.guarantees.bounds.martingales import supermartingale_bound as supermartingale_bound
    from pindown.guarantees.bounds.martingales import supermartingale_rise as supermartingale_rise
    from pindown.guarantees.bounds.mixture import mixture_bound as mixture_bound
    from pindown.guarantees.bounds.nice_samples import mixture_noise_scale as mixture_noise_scale
    from pindown.guarantees.bounds.nice_samples import niceness as niceness
    from pindown.guarantees.bounds.pac_bayes import catoni_bound as catoni_bound
    from pindown.guarantees.bounds.pac_bayes import held_out_bound as held_out_bound
    from pindown.guarantees.bounds.pac_bayes import maurer_bound as maurer_bound
    from pindown.guarantees.bounds.pac_bayes import mcallester_bound as mcallester_bound
    from pindown.guarantees.bounds.pac_bayes import occam_bound as occam_bound
    from pindown.guarantees.bounds.perturbation import noise_scale as noise_scale
    from pindown.guarantees.bounds.perturbation import perturbation_bound as perturbation_bound
    from pindown.guarantees.bounds.representatives import WeightList as WeightList
    from pindown.guarantees.bounds.separators import linear_margin_bound as linear_margin_bound
    from pindown.guarantees.bounds.separators import max_pooling_bound as max_pooling_bound
    from pindown.guarantees.bounds.spectral import spectral_margin_bound as spectral_margin_bound
    from pindown.guarantees.bounds.table import BoundTable as BoundTable
    from pindown.guarantees.bounds.table import bound_table as bound_table
    from pindown.guarantees.bounds.transfer import large_margin_bound as large_margin_bound
    from pindown.guarantees.bounds.transfer import monotonicity_index as monotonicity_index
    from pindown.guarantees.bounds.transfer import polynomial_angle_bound as polynomial_angle_bound
    from pindown.guarantees.bounds.transfer import transfer_risk_bound as transfer_risk_bound
    from pindown.guarantees.bounds.weight_noise import weight_noise_bound as weight_noise_bound

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "angular": "AngularProfile fit_exponent fit_margin",
        "bound": "Assumption Bound",
        "clusters": "ClusterPriors",
        "gaussians": "gaussian_kl mixture_kl_bound",
        "grids": "beta_grid",
        "information": "information_lower_bound",
        "local_maxima": "local_maxima_bound",
        "margins": "margin_bound margin_risk truncated_posterior",
        "martingales": "supermartingale_bound supermartingale_rise",
        "mixture": "mixture_bound",
        "nice_samples": "mixture_noise_scale niceness",
        "pac_bayes": "catoni_bound held_out_bound maurer_bound mcallester_bound occam_bound",
        "perturbation": "noise_scale perturbation_bound",
        "representatives": "WeightList",
        "separators": "linear_margin_bound max_pooling_bound",
        "coins": "small_kl small_kl_inverse",
        "spectral": "spectral_margin_bound",
        "table": "BoundTable bound_table",
        "transfer": "large_margin_bound monotonicity_index polynomial_angle_bound transfer_risk_bound",
        "weight_noise": "weight_noise_bound",
    },
)

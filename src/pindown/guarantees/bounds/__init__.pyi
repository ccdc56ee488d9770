# What pindown.guarantees.bounds offers; lazy.py reads this list.

# what every bound returns, and bounds side by side
from pindown.evidence import Assumption as Assumption
from pindown.guarantees.bounds.bound import Bound as Bound
from pindown.guarantees.bounds.table import BoundTable as BoundTable
from pindown.guarantees.bounds.table import bound_table as bound_table

# PAC-Bayes and counts
from pindown.guarantees.bounds.pac_bayes import catoni_bound as catoni_bound
from pindown.guarantees.bounds.pac_bayes import held_out_bound as held_out_bound
from pindown.guarantees.bounds.pac_bayes import maurer_bound as maurer_bound
from pindown.guarantees.bounds.pac_bayes import mcallester_bound as mcallester_bound
from pindown.guarantees.bounds.pac_bayes import occam_bound as occam_bound
from pindown.guarantees.bounds.relative_entropy import gaussian_kl as gaussian_kl
from pindown.guarantees.bounds.relative_entropy import mixture_kl_bound as mixture_kl_bound
from pindown.guarantees.bounds.relative_entropy import small_kl as small_kl
from pindown.guarantees.bounds.relative_entropy import small_kl_inverse as small_kl_inverse

# networks: margins, spectral norms, noise on the weights
from pindown.guarantees.bounds.pac_bayes_margins import conditioned_kl as conditioned_kl
from pindown.guarantees.bounds.pac_bayes_margins import margin_bound as margin_bound
from pindown.guarantees.bounds.pac_bayes_margins import margin_risk as margin_risk
from pindown.guarantees.bounds.pac_bayes_margins import truncated_posterior as truncated_posterior
from pindown.guarantees.bounds.rescaled_weights import WeightList as WeightList
from pindown.guarantees.bounds.spectral import spectral_margin_bound as spectral_margin_bound
from pindown.guarantees.bounds.weight_noise import noise_scale as noise_scale
from pindown.guarantees.bounds.weight_noise import norm_tail as norm_tail
from pindown.guarantees.bounds.weight_noise import perturbation_bound as perturbation_bound
from pindown.guarantees.bounds.weight_noise import weight_noise_bound as weight_noise_bound

# networks: priors around starts, and their mixture
from pindown.guarantees.bounds.corrected_mixture import clusters_bound as clusters_bound
from pindown.guarantees.bounds.corrected_mixture import mixture_bound as mixture_bound
from pindown.guarantees.bounds.corrected_mixture import mixture_order as mixture_order
from pindown.guarantees.bounds.priors import ClusterPriors as ClusterPriors
from pindown.guarantees.bounds.priors import beta_grid as beta_grid
from pindown.guarantees.bounds.priors import mixture_noise_scale as mixture_noise_scale
from pindown.guarantees.bounds.priors import niceness as niceness
from pindown.guarantees.bounds.priors import shared_delta as shared_delta

# other learners
from pindown.guarantees.bounds.linear_distillation import AngularProfile as AngularProfile
from pindown.guarantees.bounds.linear_distillation import angle_error as angle_error
from pindown.guarantees.bounds.linear_distillation import fit_exponent as fit_exponent
from pindown.guarantees.bounds.linear_distillation import fit_margin as fit_margin
from pindown.guarantees.bounds.linear_distillation import large_margin_bound as large_margin_bound
from pindown.guarantees.bounds.linear_distillation import monotonicity_index as monotonicity_index
from pindown.guarantees.bounds.linear_distillation import (
    polynomial_angle_bound as polynomial_angle_bound,
)
from pindown.guarantees.bounds.linear_distillation import transfer_risk_bound as transfer_risk_bound
from pindown.guarantees.bounds.linear_separators import linear_margin_bound as linear_margin_bound
from pindown.guarantees.bounds.linear_separators import max_pooling_bound as max_pooling_bound
from pindown.guarantees.bounds.local_maxima import local_maxima_bound as local_maxima_bound

# information and martingales
from pindown.guarantees.bounds.martingales import supermartingale_bound as supermartingale_bound
from pindown.guarantees.bounds.martingales import supermartingale_rise as supermartingale_rise
from pindown.guarantees.bounds.mutual_information import (
    information_lower_bound as information_lower_bound,
)

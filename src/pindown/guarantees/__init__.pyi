# What pindown.guarantees offers; lazy.py reads this list.

# generalisation bounds; all of them are in pindown.guarantees.bounds
from pindown.guarantees.bounds.bound import Bound as Bound
from pindown.guarantees.bounds.relative_entropy import small_kl_inverse as small_kl_inverse
from pindown.guarantees.bounds.spectral import spectral_margin_bound as spectral_margin_bound
from pindown.guarantees.bounds.table import BoundTable as BoundTable
from pindown.guarantees.bounds.table import bound_table as bound_table
from pindown.guarantees.certificate import Certificate as Certificate
from pindown.guarantees.certificate import certify as certify

# robustness, from pindown.verification and pindown.relaxation
from pindown.relaxation.lipschitz import LipschitzBounds as LipschitzBounds
from pindown.relaxation.lipschitz import lipschitz_bounds as lipschitz_bounds
from pindown.relaxation.operator_norms import spectral_norm as spectral_norm
from pindown.verification.accuracy_curves import CertifiedAccuracy as CertifiedAccuracy
from pindown.verification.accuracy_curves import certified_accuracy as certified_accuracy
from pindown.verification.distance import MinimumDistance as MinimumDistance
from pindown.verification.distance import minimum_distance as minimum_distance
from pindown.verification.portfolio import verify as verify

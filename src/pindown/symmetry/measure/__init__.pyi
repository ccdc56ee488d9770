# What pindown.symmetry.measure offers; lazy.py reads this list.

# Outputs
from pindown.symmetry.measure.errors import SymmetryChange as SymmetryChange
from pindown.symmetry.measure.errors import SymmetryError as SymmetryError
from pindown.symmetry.measure.errors import equivariance as equivariance
from pindown.symmetry.measure.errors import invariance as invariance
from pindown.symmetry.measure.errors import symmetry_change as symmetry_change
from pindown.symmetry.measure.models import as_function as as_function
from pindown.symmetry.measure.models import untrained_copy as untrained_copy

# Labels and features
from pindown.symmetry.measure.labels import LabelSymmetry as LabelSymmetry
from pindown.symmetry.measure.labels import is_label_symmetry as is_label_symmetry
from pindown.symmetry.measure.labels import label_symmetry as label_symmetry
from pindown.symmetry.measure.orbit_distances import OrbitReport as OrbitReport
from pindown.symmetry.measure.orbit_distances import orbit_report as orbit_report

# Parameters
from pindown.symmetry.measure.parameters import canonical_units as canonical_units
from pindown.symmetry.measure.parameters import flip_hidden as flip_hidden
from pindown.symmetry.measure.parameters import forward as forward
from pindown.symmetry.measure.parameters import match_units as match_units
from pindown.symmetry.measure.parameters import permute_hidden as permute_hidden
from pindown.symmetry.measure.parameters import rescale_hidden as rescale_hidden

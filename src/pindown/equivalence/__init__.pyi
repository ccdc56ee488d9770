# What pindown.equivalence offers; lazy.py reads this list.
# Are two networks one function?
from pindown.equivalence.comparison.compare import diff as diff
from pindown.equivalence.comparison.result import Diff as Diff
from pindown.equivalence.comparison.result import LabelDiff as LabelDiff
from pindown.equivalence.comparison.graphs import LayerBlame as LayerBlame
from pindown.equivalence.comparison.layer_pairs import LayerPair as LayerPair
from pindown.equivalence.comparison.layer_pairs import LayerPairs as LayerPairs
from pindown.equivalence.comparison.layer_pairs import pair_layers as pair_layers
from pindown.equivalence.comparison.rows import RowDiff as RowDiff
from pindown.equivalence.comparison.result import LayerDifference as LayerDifference
from pindown.equivalence.comparison.matching import Matching as Matching
from pindown.equivalence.comparison.matching import match as match
from pindown.equivalence.comparison.one_hidden_layer import ShallowDecision as ShallowDecision
from pindown.equivalence.comparison.one_hidden_layer import decide_shallow as decide_shallow
from pindown.equivalence.comparison.one_hidden_layer import shallow_normal_form as shallow_normal_form

# What a change of weights does
from pindown.equivalence.sensitivity.changes import GapBound as GapBound
from pindown.equivalence.sensitivity.changes import gap_of_changes as gap_of_changes
from pindown.equivalence.sensitivity.weight_changes import Change as Change

# How small can a network be?
from pindown.equivalence.shrinking.models import shrink as shrink
from pindown.equivalence.shrinking.result import Shrunk as Shrunk
from pindown.equivalence.shrinking.result import Step as Step
from pindown.equivalence.related_units import LayerRelations as LayerRelations
from pindown.equivalence.related_units import ParallelUnits as ParallelUnits
from pindown.equivalence.related_units import unit_relations as unit_relations

# What pins its weights down
from pindown.equivalence.gauge_fixing import CanonicalForm as CanonicalForm
from pindown.equivalence.gauge_fixing import canonical as canonical
from pindown.equivalence.gauge_fixing import canonical_form as canonical_form
from pindown.equivalence.flat_directions import FunctionalDimension as FunctionalDimension
from pindown.equivalence.flat_directions import functional_dimension as functional_dimension
from pindown.equivalence.identifiable import Identifiability as Identifiability
from pindown.equivalence.identifiable import check_identifiable as check_identifiable
from pindown.equivalence.identifiable import identifiable_network as identifiable_network
from pindown.equivalence.recovery.recovering import Recovered as Recovered
from pindown.equivalence.recovery.recovering import recover as recover

# Reordering and rescaling units
from pindown.equivalence.weight_symmetry import Symmetry as Symmetry
from pindown.equivalence.weight_symmetry import apply as apply
from pindown.equivalence.weight_symmetry import compose as compose
from pindown.equivalence.weight_symmetry import identity as identity
from pindown.equivalence.weight_symmetry import inverse as inverse
from pindown.equivalence.weight_symmetry import random_symmetry as random_symmetry

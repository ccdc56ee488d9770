# What pindown.equivalence.comparison offers; lazy.py reads this list.
# The answer
from pindown.equivalence.comparison.compare import diff as diff
from pindown.equivalence.comparison.result import Diff as Diff
from pindown.equivalence.comparison.result import LabelDiff as LabelDiff
from pindown.equivalence.comparison.result import LayerDifference as LayerDifference
from pindown.equivalence.comparison.graphs import LayerBlame as LayerBlame
from pindown.equivalence.comparison.layer_pairs import LayerPair as LayerPair
from pindown.equivalence.comparison.layer_pairs import LayerPairs as LayerPairs
from pindown.equivalence.comparison.layer_pairs import pair_layers as pair_layers
from pindown.equivalence.comparison.rows import RowDiff as RowDiff

# What is proved on the way
from pindown.equivalence.comparison.bracket import GapState as GapState
from pindown.equivalence.comparison.bracket import Progress as Progress
from pindown.equivalence.comparison.methods import narrow as narrow

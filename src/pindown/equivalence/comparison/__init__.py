"""Are two networks one function? A proof, a witness, or a proved interval for the largest gap."""

from pindown.equivalence.comparison.compare import diff
from pindown.equivalence.comparison.result import Diff, LabelDiff, LayerDifference

__all__ = ["Diff", "LabelDiff", "LayerDifference", "diff"]

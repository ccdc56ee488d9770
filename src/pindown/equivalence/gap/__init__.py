r"""How far two arbitrary networks are apart: proved bounds from both sides, better with time.

On a box the gap is :math:`\sup_x \max_k |a_k(x) - b_k(x)|`; without one it is taken relative to
:math:`1 + \|x\|_2`, over all inputs.
"""

from __future__ import annotations

from pindown.equivalence.gap.narrowing import narrow
from pindown.equivalence.gap.state import GapState, Progress

__all__ = ["GapState", "Progress", "narrow"]

r"""Ever larger gaps on a box, by the search for counterexamples.

That the gap stays below t is a property of both models side by side: the sets of inputs with
:math:`\pm (f_k - g_k) \ge t` are unsafe. The search of :mod:`pindown.verification.falsification` is
asked to violate it for a t above what is known. If it does, t goes up; if not, the points that came
nearest to a set may still be better than what is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.comparison._joint_bounds import Joint
from pindown.equivalence.tuning import CLIMB_FACTOR, CLIMB_TURNS
from pindown.evidence import Bracket
from pindown.verification.falsification import Falsifier
from pindown.verification.properties import UnsafeSet


@dataclass(eq=False)
class Climb:
    """A search for larger gaps of two models on a box, which can be gone on with.

    Attributes:
        joint: The two models.
        box: The inputs.
        seed: Seed of random points.
    """

    joint: Joint
    box: Box
    seed: int = 0
    _search: Falsifier | None = None
    _target: float = 0.0

    def go_on(self, known: Bracket, deadline: Deadline = NEVER) -> Bracket:
        """Take some turns, and return the best gap that they found, proved.

        Args:
            known: What is proved of the gap so far, with its witness.
            deadline: When to stop.
        """
        first = self._search is None or known.lower >= self._target
        if first:
            self._target = CLIMB_FACTOR * known.lower
            self._search = Falsifier(self.joint.both, self._sets(), seed=self.seed)
        assert self._search is not None
        given = known.witness[None] if first and known.witness is not None else None
        self._search.search(CLIMB_TURNS, deadline=deadline, proposals=given)
        points = self._search.nearest
        gaps, _ = self.joint.gaps_between(points)
        best = int(np.argmax(gaps))
        point = points[best].copy()
        point.flags.writeable = False
        return Bracket(float(gaps[best]), inf, point)

    def _sets(self) -> list[UnsafeSet]:
        rows: Array = np.concatenate([-self.joint.gap_rows, self.joint.gap_rows])
        limit = np.array([-self._target])
        return [UnsafeSet(self.box.lower, self.box.upper, row[None], limit) for row in rows]

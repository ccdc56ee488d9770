"""A network to ask about, and what is certainly true about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pindown.box import Box
from pindown.network import ReluNetwork
from tests.soundness.programs import hints
from tests.soundness.rational_line import ExactNetwork, Line, Vector, along, rationals
from tests.soundness.truth import class_of, difference, lines_in


@dataclass(frozen=True)
class Case:
    """One network with a box, a point of the box, and a second network to compare it with.

    Attributes:
        turn: How many cases of the family came before: choices among methods take turns by it.
    """

    family: str
    seed: int
    index: int
    turn: int
    net: ReluNetwork
    box: Box
    x: np.ndarray
    other: ReluNetwork

    @property
    def d(self) -> int:
        """Number of inputs."""
        return self.net.in_features

    @property
    def deepest(self) -> int:
        """Number of layers of the deeper network."""
        return max(self.net.depth, self.other.depth)

    @cached_property
    def exact(self) -> ExactNetwork:
        """The network in rational numbers."""
        return ExactNetwork(self.net)

    @cached_property
    def exact_other(self) -> ExactNetwork:
        """The second network in rational numbers."""
        return ExactNetwork(self.other)

    @cached_property
    def ways(self) -> list[Vector]:
        """Directions of lines through x: one input has one; else to corners, hints and by gradients."""
        if self.d == 1:
            return [rationals([1.0])]
        rng = self.rng(1)
        corners = [np.where(rng.random(self.d) < 0.5, self.box.lower, self.box.upper) for _ in range(2)]
        goals = [*corners, *hints(self.net, self.box, self.x, class_of(self.exact(self.x)))]
        free = [*self._gradients(), rng.normal(size=self.d), np.eye(self.d)[rng.integers(self.d)]]
        found = [difference(goal, self.x) for goal in goals] + [rationals(way) for way in free]
        return [way for way in found if any(way)]

    @cached_property
    def lines(self) -> list[Line]:
        """The network on lines through x within the box: with one input, on the whole box."""
        return lines_in(self.exact, self.x, self.box, self.ways)

    @cached_property
    def endless(self) -> list[Line]:
        """The network on lines through x without ends."""
        return [along(self.exact, self.x, way) for way in self.ways]

    def lines_to(self, point: np.ndarray, *, endless: bool) -> list[Line]:
        """Return the network on the line from x through a point, if that is another."""
        way = difference(point, self.x)
        if not any(way):
            return []
        if endless:
            return [along(self.exact, self.x, way)]
        return lines_in(self.exact, self.x, self.box, [way])

    def rng(self, purpose: int) -> np.random.Generator:
        """Return a generator for one purpose, whatever else was drawn."""
        return np.random.default_rng([self.seed, self.index, purpose])

    def _gradients(self) -> list[np.ndarray]:
        """Return directions in which a margin changes fastest near x, in l2 and linf."""
        try:
            with np.errstate(all="ignore"):
                A, _ = self.net.local_affine(self.x)
        except ValueError:
            return []
        form = A[0] if len(A) == 1 else A[0] - A[1]
        return [form, np.sign(form)] if np.isfinite(form).all() and form.any() else []

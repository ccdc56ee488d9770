r"""The training problem in the units and coordinates of the search, and the way back to a network.

.. math:: \min \sum_j m_j\, \ell\Big(c + \sum_{u=1}^w s_u\,
          \mathrm{relu}(\langle a_u, x_j\rangle + b_u),\; y_j\Big)
          + \alpha \sum_u \lVert a_u\rVert^2, \qquad s_u \in \{-1, 1\}.

Positive factors move freely through a ReLU, so output weights of size one are no restriction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.special import expit

from pindown.affine import Array, Integers
from pindown.learn.exact.hyperplane_arrangement import ON_THE_PLANE, dichotomies
from pindown.learn.exact.tuning import MAX_CONVEX_WALKS, MAX_OPEN_PROGRAMS, MAX_WALK_STEPS
from pindown.network import ReluNetwork
from pindown.rounding import UNIT_ROUNDOFF, gamma

if TYPE_CHECKING:
    from pindown.learn.exact._compiled.convex import Rows
    from pindown.learn.exact._compiled.squared import Cells, Found


LOSSES = ("squared", "absolute", "hinge", "logistic")  # in the order of the compiled code's numbers
# A bound this close to the best loss, relative to it, leaves nothing to find: float64 sums over many
# points, factorised twice, are no better. The absolute part is relative to the loss of the zero network.
CERTIFIED_TO = 1e-8
# Bounds this close, relative to the loss, have met: programs left open may end a little below those
# ruled out.
COMPLETE = 1e-5
_NEGLIGIBLE = {"squared": 1e-13, "absolute": 1e-10, "hinge": 1e-10, "logistic": 1e-10}
# Dependent columns are kept apart by this share of the total mass; it costs a bound the same share of
# ||phi||^2.
FLOOR = 1e-13
# Points closer than this, in units of the farthest point, are one.
_SAME = 10 * ON_THE_PLANE
# Telling points apart that are closer than this, in round coordinates, takes weights for which that
# share is not small.
_CROWDED = 1e-5
# A penalty of this size keeps a slope at zero; a larger one would overflow.
_FORBIDDING = 1e100
_LARGER = 10.0  # squared weights of the optimum, in units of those of the best network found


def merged(X: Array, y: Array, mass: Array) -> tuple[Array, Array, Array]:
    """Return distinct samples in one order: weights and repetitions are the same problem."""
    used = mass > 0
    samples, which = np.unique(np.column_stack([X, y])[used], axis=0, return_inverse=True)
    weights = np.bincount(which.ravel(), mass[used]).astype(np.float64)
    # Of one memory layout: the loops would be compiled again for another.
    return samples[:, :-1].copy(), samples[:, -1].copy(), weights


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples, loss and penalty, with the coordinates in which the samples are round.

    Attributes:
        X: Samples as given.
        y: Targets; -1 and 1 for hinge and logistic loss.
        mass: Sample weights, all positive.
        loss: One of ``squared``, ``absolute``, ``hinge``, ``logistic``.
        ridge: The factor of the squared norms of the slopes.
        biased: Whether the output has a bias.
        centre: Mean of the samples.
        axes: ``(n_features, rank)``: ``(X - centre) @ axes`` has unit second moments.
        scale: Standard deviation along each axis.
    """

    X: Array
    y: Array
    mass: Array
    loss: str
    ridge: float
    biased: bool
    centre: Array
    axes: Array
    scale: Array

    @classmethod
    def of(cls, X: Array, y: Array, mass: Array, loss: str, ridge: float, biased: bool) -> Problem:
        """Merge equal samples and find the coordinates, without directions in which nothing varies."""
        X, y, mass = merged(X, y, mass)
        centre = X[0] + (X - X[0]).mean(axis=0)  # a constant feature is its own mean, to the last digit
        _, singular, right = np.linalg.svd(X - centre, full_matrices=False)
        rounding = np.finfo(float).eps * np.sqrt(X.size) * float(np.abs(X).max(initial=0.0))
        varies = max(ON_THE_PLANE * float(singular.max(initial=0.0)), rounding, np.finfo(float).tiny)
        kept = singular > varies
        scale = singular[kept] / np.sqrt(len(X))
        return cls(X, y, mass, loss, ridge, biased, centre, right[kept].T, scale)

    def part(self, rows: Integers) -> Problem:
        """Return the problem of some samples, with their share of the penalty."""
        mass = self.mass[rows]
        share = float(mass.sum() / self.mass.sum())
        return Problem.of(self.X[rows], self.y[rows], mass, self.loss, self.ridge * share, self.biased)

    @property
    def coordinates(self) -> Array:
        """The samples in round coordinates."""
        return ((self.X - self.centre) @ self.axes) / self.scale

    @property
    def rank(self) -> int:
        """How many directions the samples vary in."""
        return len(self.scale)

    @property
    def penalty(self) -> Array:
        """The factor of each squared slope in round coordinates."""
        with np.errstate(over="ignore", divide="ignore"):
            return np.minimum(self.ridge / self.scale / self.scale, _FORBIDDING)

    def distinct(self) -> tuple[Array, Integers]:
        """Return the distinct points in round coordinates and each sample's point."""
        grid = np.round(self.coordinates / ON_THE_PLANE)
        _, first, cell = np.unique(grid, axis=0, return_index=True, return_inverse=True)
        points = self.coordinates[first]
        if self.rank == 0:
            return points, cell.ravel()
        # The plane through one of two distinct points must not count as passing through the other.
        radius = _SAME * np.sqrt(1 + (points**2).sum(axis=1).max())
        pairs = KDTree(points).query_pairs(radius, output_type="ndarray")
        ones, shape = np.ones(len(pairs)), (len(points), len(points))
        _, group = connected_components(csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=shape))
        _, first, group = np.unique(group, return_index=True, return_inverse=True)
        return points[first], group[cell.ravel()]

    @property
    def is_crowded(self) -> bool:
        """Whether points are so close that normal equations cannot say what parting them gains."""
        points = self.distinct()[0]
        if self.loss != "squared" or len(points) < 2 or self.rank == 0:
            return False
        return bool(KDTree(points).query(points, k=2)[0][:, 1].min() < _CROWDED)

    def network(self, signs: Integers, phi: Array, shift: float) -> ReluNetwork:
        """Return the network with signed weights ``phi_u = s_u (a_u, b_u)`` in round coordinates."""
        weights = signs[:, None] * phi.reshape(len(signs), -1)
        slopes = (weights[:, :-1] / self.scale) @ self.axes.T
        biases = weights[:, -1] - slopes @ self.centre
        return ReluNetwork.from_layers(
            [(slopes, biases), (signs[None, :].astype(float), np.array([shift]))]
        )

    def loss_and_slope(self, f: Array) -> tuple[float, Array]:
        """Return the loss of predictions, without the penalty, and its derivative in each of them."""
        y = self.y
        if self.loss == "squared":
            each, slope = (f - y) ** 2, 2 * (f - y)
        elif self.loss == "absolute":
            each, slope = np.abs(f - y), np.sign(f - y)
        elif self.loss == "hinge":
            each, slope = np.maximum(0, 1 - y * f), -y * (y * f < 1)
        else:
            each, slope = np.logaddexp(0, -y * f), -y * expit(-y * f)
        return float(self.mass @ each), self.mass * slope

    def loss_of(self, network: ReluNetwork) -> float:
        """Return the penalised loss of a network with output weights of size one."""
        slopes = np.asarray(network.layers[0].weight)
        # Slopes of samples that lie very close have squares beyond the largest float.
        penalty = self.ridge * float((slopes**2).sum()) if self.ridge > 0 else 0.0
        return self.loss_and_slope(network(self.X)[:, 0])[0] + penalty

    def zero_network(self, width: int) -> ReluNetwork:
        """Return a constant network: the mean of the targets with an output bias, else zero."""
        shift = float(np.average(self.y, weights=self.mass)) if self.biased else 0.0
        weights = np.zeros(width * (len(self.scale) + 1))
        return self.network(np.ones(width, np.int64), weights, shift)

    @property
    def negligible(self) -> float:
        """A loss as good as zero."""
        return _NEGLIGIBLE[self.loss] * self.loss_and_slope(np.zeros(len(self.X)))[0]

    def rounding(self, network: ReluNetwork) -> float:
        r"""Return how far rounding alone can take an output from what was solved for, at any sample.

        With output weights of size one, for d inputs and w units, rounded weights included,

        .. math:: \gamma_{d + w + 4} \Big(|c| + \sum_u \big(\langle |a_u|, \max_j |x_j|\rangle +
                  |b_u|\big)\Big).

        The largest samples count, because biases are differences of numbers of that size.
        """
        (slopes, biases), (_, shift) = network.layers
        largest = np.abs(self.X).max(axis=0)
        terms = float(largest @ np.abs(np.asarray(slopes)).sum(axis=0) + np.abs(biases).sum())
        return gamma(sum(slopes.shape) + 4) * (terms + abs(float(shift[0])))

    def is_fitted(self, network: ReluNetwork) -> bool:
        """Whether a network leaves nothing to gain: no sample, light or heavy, has more than rounding.

        A small sum is not enough, since one outlier or one heavy sample makes all others look small. A
        logistic loss counts as zero below the rounding of log 2, the loss of the zero network.
        """
        if self.loss_of(network) > self.negligible:
            return False
        f = network(self.X)[:, 0]
        if self.loss == "logistic":
            return bool((np.logaddexp(0, -self.y * f) <= UNIT_ROUNDOFF * np.log(2)).all())
        missing = np.maximum(1 - self.y * f, 0) if self.loss == "hinge" else np.abs(f - self.y)
        return bool((missing <= self.rounding(network)).all())

    def tables(self) -> tuple[Cells, Rows, bool]:
        """Build what the compiled search reads; the last says whether all tuples of cells are in it."""
        from pindown.learn.exact._compiled.convex import Rows
        from pindown.learn.exact._compiled.squared import Cells, own_sums

        points, point = self.distinct()
        graph = dichotomies(points)
        lifted = np.column_stack([points, np.ones(len(points))])
        mass = np.bincount(point, self.mass).astype(np.float64)
        total = float(mass.sum())
        target = np.bincount(point, self.mass * self.y) / mass
        shift = float(mass @ target) / total if self.biased else 0.0
        outer = mass[:, None, None] * lifted[:, :, None] * lifted[:, None, :]
        moment = (mass * (target - shift))[:, None] * lifted
        share = mass[:, None] * lifted / np.sqrt(total) * self.biased
        block, moments, shares = own_sums(graph.parent, graph.added, outer, moment, share)
        ridge = np.append(self.penalty, 0.0)
        block += np.diag(ridge)
        constant = float(self.mass @ (self.y - target[point]) ** 2)
        energy = float(mass @ (target - shift) ** 2)
        margins = np.array([CERTIFIED_TO, self.negligible])
        cells = Cells(
            lifted, mass, target, graph.sides, graph.parent, graph.added, graph.facet_start,
            graph.facets, graph.across, graph.inside, outer, block, moments, shares, ridge,
            np.full(len(ridge), FLOOR * total), shift, constant, energy, margins,
        )  # fmt: skip
        rows = Rows(LOSSES.index(self.loss), point, self.y, self.mass)
        return cells, rows, graph.whole and not self.is_crowded


@dataclass(frozen=True)
class Units:
    """What one unit of the search is in the user's numbers: its tolerances need numbers of order one.

    Units are powers of two, so that the way there and back rounds nothing.

    Attributes:
        target: Unit of targets and predictions; one for classes.
        mass: Unit of sample weights.
        loss: Unit of losses.
        ridge: Unit of the factor of the penalty.

    >>> units = Units.of(np.array([3.0, -700.0]), np.array([1.0, 5.0]), "squared")
    >>> units.target, units.mass, units.loss
    (512.0, 4.0, 1048576.0)
    """

    target: float
    mass: float
    loss: float
    ridge: float

    @classmethod
    def of(cls, y: Array, mass: Array, loss: str) -> Units:
        """Take the largest target and the largest weight, rounded down to a power of two."""
        heaviest = _power_of_two(float(mass.max()))
        if loss in ("hinge", "logistic"):
            return cls(1.0, heaviest, heaviest, heaviest)
        target = _power_of_two(float(np.abs(y).max()))
        with np.errstate(over="ignore"):  # the caller sees an infinite loss
            if loss == "absolute":
                return cls(target, heaviest, float(np.float64(heaviest) * target), heaviest / target)
            return cls(target, heaviest, float(np.float64(target) * target * heaviest), heaviest)

    def network(self, network: ReluNetwork) -> ReluNetwork:
        """Return a network of the search, which has output weights of size one, in the user's units."""
        hidden, output = network.layers
        return ReluNetwork.from_layers(
            [
                (self.target * np.asarray(hidden.weight), self.target * hidden.bias),
                (np.asarray(output.weight), self.target * output.bias),
            ]
        )


def _power_of_two(value: float) -> float:
    return float(2.0 ** np.floor(np.log2(value))) if value > 0 else 1.0


@dataclass(eq=False)
class Table:
    """Cells and rows of a problem, with the best network found in them."""

    problem: Problem
    cells: Cells
    rows: Rows
    best: Found
    whole: bool  # every network is in some tuple of cells, and float64 can tell what it gains
    tried: set[bytes] = field(default_factory=set)

    @classmethod
    def of(cls, problem: Problem, width: int, loss: float) -> Table:
        """Build the tables; only networks with less than a given loss count as found."""
        from pindown.learn.exact._compiled.squared import Found

        cells, rows, whole = problem.tables()
        best = Found(
            loss=np.array([loss]),
            phi=np.zeros(width * cells.points.shape[1]),
            shift=np.zeros(1),
            chosen=np.zeros(width, np.int64),
            signs=np.zeros(width, np.int64),
            counts=np.zeros(3, np.int64),
            open_bound=np.full(MAX_OPEN_PROGRAMS, np.inf),
            open_chosen=np.zeros((MAX_OPEN_PROGRAMS, width), np.int64),
            open_signs=np.zeros((MAX_OPEN_PROGRAMS, width), np.int64),
        )
        return cls(problem, cells, rows, best, whole)

    @property
    def n_cells(self) -> int:
        """How many cells there are, the one that is on nowhere included."""
        return len(self.cells.parent)

    @property
    def _squared(self) -> bool:
        return self.rows.kind == LOSSES.index("squared")

    def descend(self, start: Integers) -> None:
        """Improve the best network by walking over cells from a tuple."""
        from pindown.learn.exact._compiled.squared import blank, descend

        if self._squared:
            descend(self.cells, start, self.problem.biased, self.best, MAX_WALK_STEPS)
            return
        from pindown.learn.exact._compiled.convex import descend_convex

        guide = blank(self.best)  # where squared loss leads, in microseconds, is a good place to begin
        descend(self.cells, start, self.problem.biased, guide, MAX_WALK_STEPS)
        place = np.sort(guide.chosen)
        if place.tobytes() not in self.tried and len(self.tried) < MAX_CONVEX_WALKS:
            self.tried.add(place.tobytes())
            descend_convex(self.cells, self.rows, place, self.problem.biased, self.best, MAX_WALK_STEPS)

    def examine(self, part: tuple[int, int]) -> Found:
        """Examine all tuples whose first member is in a range, and leave the best network as it is.

        Not for squared loss, which is not searched cell by cell.
        """
        copies: Any = tuple(array.copy() for array in self.best)
        found = type(self.best)(*copies)
        found.counts[:] = 0
        found.open_bound[:] = np.inf
        from pindown.learn.exact._compiled.convex import search_convex_rows

        width = len(found.chosen)
        search_convex_rows(self.cells, self.rows, *part, width, self.problem.biased, found)
        return found

    def take(self, found: Found) -> None:
        """Make a network the best one if it is better."""
        if found.loss[0] < self.best.loss[0]:
            self.best = found

    def network(self) -> ReluNetwork | None:
        """Return the best network, or None if nothing better was found."""
        if not self.best.signs.any():
            return None
        return self.problem.network(self.best.signs, self.best.phi, float(self.best.shift[0]))

    def certified(self, loss: float) -> float:
        """Return what is proved when every program was ruled out or solved: no loss is below this."""
        room = CERTIFIED_TO * loss + float(self.cells.margins[1])
        if self._squared:  # networks with weights of about this size were bounded with the floor added
            room += _LARGER * float(self.cells.floor[0]) * float(self.best.phi @ self.best.phi)
        return max(0.0, loss - room)

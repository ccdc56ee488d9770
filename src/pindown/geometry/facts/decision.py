r"""Decision regions of a classifier: where each class wins, how large that is, and the borders between.

Outputs i and j are compared by one more ReLU, :math:`\rho(f_i - f_j)`. On the cells of the network with
a last layer of all comparisons the order of the outputs is fixed, so each cell belongs to one class,
a decision region is a union of cells, and a decision boundary a union of facets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pindown.affine import Affine, Array, dense
from pindown.geometry.complex._reading import BoxLike
from pindown.geometry.complex.polyhedral import PolyhedralComplex, polyhedral_complex
from pindown.geometry.facts._values_and_slopes import Ids
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.geometry.folds.fold_set import FoldSet


@dataclass(frozen=True, eq=False, repr=False)
class DecisionRegions:
    """The classes of a network on a box.

    A network with several outputs decides for the largest, the first of them if several are equal. One
    with a single output decides for class 1 where it is at least 0, for class 0 elsewhere.

    Attributes:
        complex: The cells of the network with all comparisons: on each, the order of outputs is fixed.
        classes: The class of each cell, (n,).
        n_classes: Number of classes.
    """

    complex: PolyhedralComplex
    classes: Ids
    n_classes: int

    @property
    def exact(self) -> bool:
        """Whether all cells were searched; their signs are proved only if the complex is certified."""
        return self.complex.complete

    @cached_property
    def volumes(self) -> Array:
        """Volume of the decision region of each class, (c,)."""
        totals = np.zeros(self.n_classes)
        np.add.at(totals, self.classes, self.complex.volumes)
        return totals

    @property
    def shares(self) -> Array:
        """Share of the box that each class takes, (c,); they sum to 1 if the search is complete."""
        box = self.complex.box
        return self.volumes / float(np.prod(box.upper - box.lower))

    @cached_property
    def islands(self) -> Ids:
        """For each cell its island: a maximal set of cells of one class joined through facets, (n,)."""
        n = self.complex.n_regions
        i, j = self.complex.neighbours.T
        same = self.classes[i] == self.classes[j]
        graph = coo_array((np.ones(int(same.sum()), bool), (i[same], j[same])), shape=(n, n))
        return (
            connected_components(graph, directed=False)[1].astype(np.int64)
            if n
            else np.zeros(0, np.int64)
        )

    @property
    def n_islands(self) -> Ids:
        """Number of connected parts of each class's region, (c,)."""
        _, first = np.unique(self.islands, return_index=True)
        return np.bincount(self.classes[first], minlength=self.n_classes)

    @cached_property
    def boundary(self) -> FoldSet:
        """The decision boundary: points, segments or polygons for one, two or three inputs."""
        from pindown.geometry.folds.fold_set import fold_set

        folds = fold_set(self.complex)
        return folds.only(self.classes[folds.cells[:, 0]] != self.classes[folds.cells[:, 1]])

    @cached_property
    def borders(self) -> dict[tuple[int, int], float]:
        """For each pair of classes that meet, the size of their border: points, length or area."""
        pairs = np.sort(self.classes[self.boundary.cells], axis=1)
        sizes: dict[tuple[int, int], float] = {}
        for (i, j), size in zip(pairs.tolist(), self.boundary.sizes.tolist(), strict=True):
            sizes[i, j] = sizes.get((i, j), 0.0) + size
        return dict(sorted(sizes.items()))

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{k}: {share:.3g} in {count}"
            for k, (share, count) in enumerate(zip(self.shares[:6], self.n_islands[:6], strict=True))
        )
        more = f", {self.n_classes - 6} more" if self.n_classes > 6 else ""
        state = "" if self.exact else "; search not complete"
        return f"DecisionRegions(class: share in islands, {shown}{more}{state})"


@on_network
def decision_regions(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    budget: float | None = None,
    certified: bool = False,
) -> DecisionRegions:
    """Find where each class wins on a box.

    Args:
        net: The network, or its complex, of which only network, box and certification are used: the
            comparisons cut its cells further.
        box: The domain; not given with a complex.
        budget: Seconds; when they are over, statements are about the cells found.
        certified: Prove every sign. The comparisons subtract weights in float64, so this is about
            the network with comparisons rounded so.

    Returns:
        The regions, with volumes, islands, and the boundary for up to three inputs.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.
        ValueError: If the box does not fit the network.

    Example:
        The larger of x and y: two halves of a square, along its diagonal.

        >>> net = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0])])
        >>> found = decision_regions(net, (0, 1))
        >>> found
        DecisionRegions(class: share in islands, 0: 0.5 in 1, 1: 0.5 in 1)
        >>> found.borders
        {(0, 1): 1.4142135623730951}
    """
    if isinstance(net, PolyhedralComplex):
        if box is not None:
            raise TypeError("a complex has its own box; give it alone.")
        given = net
        net, box, certified = given.net, given.box, given.certified or certified
    if not isinstance(net, ReluNetwork):
        raise TypeError(f"net must be a ReluNetwork or a PolyhedralComplex; got {type(net).__name__}.")
    if box is None:
        raise TypeError("a network needs a box beside it, such as box=(-1, 1).")
    cx = polyhedral_complex(with_comparisons(net), box, budget=budget, certified=certified)
    k = net.out_features
    classes = _winners(cx, k)
    classes.flags.writeable = False
    return DecisionRegions(cx, classes, max(k, 2))


def with_comparisons(net: ReluNetwork) -> ReluNetwork:
    r"""Return the network with a last hidden layer :math:`\rho(f_i - f_j)`, i < j.

    With one output the layer is :math:`\rho(f)`. The new output is the sum of all comparisons.

    >>> with_comparisons(ReluNetwork.from_layers([([[1.0], [2.0], [3.0]], [0, 0, 0])])).layers[0].weight
    array([[-1.],
           [-2.],
           [-1.]])
    """
    weight, bias = dense(net.layers[-1].weight), net.layers[-1].bias
    if net.out_features > 1:
        i, j = np.array(list(combinations(range(net.out_features), 2))).T
        weight, bias = weight[i] - weight[j], bias[i] - bias[j]
    last = Affine.of(np.ones((1, len(bias))), np.zeros(1))
    return ReluNetwork((*net.layers[:-1], Affine.of(weight, bias), last))


def _winners(cx: PolyhedralComplex, k: int) -> Ids:
    """Return the class of each cell from the states of the comparisons."""
    if k == 1:
        return cx.patterns[:, -1].astype(np.int64)
    pairs = np.array(list(combinations(range(k), 2)))
    ahead = cx.patterns[:, -len(pairs) :]  # on: f_i >= f_j
    wins = np.zeros((len(ahead), k), np.int64)
    for column, (i, j) in enumerate(pairs):
        wins[:, i] += ahead[:, column]
        wins[:, j] += ~ahead[:, column]
    return wins.argmax(axis=1).astype(np.int64)

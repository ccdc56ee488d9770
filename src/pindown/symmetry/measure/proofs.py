r"""Proved invariance: does a model answer the same on gx as on x, for every x of a box or around rows?

For each element g the model f is compared with :math:`f \circ g` by the engine of ``diff``: the answer
is a proved interval for

.. math::
    \mathrm{gap}(g) = \sup_x \max_k |f_k(g x) - f_k(x)| .

Trained weights are never exactly symmetric, so a gap of at most ``tol + rtol * scale`` counts as none.
With a box, x and gx both have to lie in it: where g permutes or scales the inputs, x ranges over the
common part :math:`B \cap g^{-1} B`, which is B itself if the group keeps it. Of other linear g only x is
kept in the box.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.deadline import Deadline
from pindown.equivalence import diff
from pindown.evidence import Kind
from pindown.io.any_model import AnyModel, as_model
from pindown.model.graph import Model, Node
from pindown.model.operations.dense import Dense
from pindown.model.operations.moves import Gather, Reshape
from pindown.rounding import add_down, add_up
from pindown.symmetry.families import Family, require_family, without_identity
from pindown.symmetry.tuning import AFFINE_CHECK_ERROR, AFFINE_CHECKS

Verdict = Literal["proved", "refuted", "open"]


@dataclass(frozen=True)
class ElementProof:
    """What is proved about one element.

    Attributes:
        element: Its label.
        verdict: ``"proved"``, ``"refuted"`` or ``"open"``.
        gap_lower: A gap that is attained at ``witness``.
        gap_upper: No gap is larger; infinite if nothing is known.
        witness: The input of the largest gap found, or None.
        allowed: The gap that counts as none.
    """

    element: Hashable
    verdict: Verdict
    gap_lower: float
    gap_upper: float
    witness: Array | None = field(repr=False, default=None)
    allowed: float = 0.0


@dataclass(frozen=True)
class InvarianceProof:
    """Whether a model is invariant under a family, on a box or around rows.

    Attributes:
        verdict: ``"proved"`` for every element, ``"refuted"`` for one, else ``"open"``.
        gap_lower: The largest gap that is attained: :math:`|f(gx) - f(x)|` at ``witness``.
        gap_upper: The largest upper end over all elements; infinite if one was refuted before others
            were looked at.
        witness: An input x at which ``element`` changes the answer by ``gap_lower``; None if none was
            found.
        element: That element.
        elements: What is proved about each element that was looked at.
        family: What the family is called.
        where: On which inputs.
        kind: ``"exact"``: both ends are proved for the real-number model and the affine maps that were
            read from the elements' values at unit vectors; that elements are affine was checked at
            random points.
    """

    verdict: Verdict
    gap_lower: float
    gap_upper: float
    witness: Array | None = field(repr=False)
    element: Hashable | None
    elements: tuple[ElementProof, ...] = field(repr=False)
    family: str
    where: str
    kind: Kind = "exact"

    def __str__(self) -> str:
        words = {
            "proved": f"invariant under {self.family}",
            "refuted": f"not invariant under {self.family}: {self.element} changes the answer",
            "open": f"not decided whether invariant under {self.family}",
        }[self.verdict]
        return f"{words}; largest change in [{self.gap_lower:.3g}, {self.gap_upper:.3g}] {self.where}"


def prove_invariance(
    model: AnyModel,
    group: Family,
    *,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    data: ArrayLike | None = None,
    radius: float = 0.0,
    tol: float = 1e-5,
    rtol: float = 1e-5,
    budget: float = 60.0,
    seed: int = 0,
) -> InvarianceProof:
    r"""Prove that :math:`f(gx) = f(x)` up to a tolerance, or find an input where it is not.

    Args:
        model: What ``pn.diff`` takes.
        group: A group or :class:`~pindown.symmetry.families.Transformations` whose elements act on rows,
            or on inputs of the model's shape, as affine maps: shifts, mirrors, permutations, turns,
            brightness and contrast.
        box: Where x and gx lie. Without box and data: all inputs, gaps divided by :math:`1 + \|x\|`.
        data: Rows, around which to look instead.
        radius: Radius of the balls around rows, in the largest change of any input.
        tol: What counts as no change, ``tol + rtol * scale``.
        rtol: The part of that which grows with the largest output met.
        budget: Seconds, shared evenly by the elements that are left.
        seed: Seed of the searches.

    Returns:
        ``.verdict``, ``.witness``, ``.gap_upper`` and what is known of each element.

    Raises:
        TypeError: If ``group`` has no elements that act.
        ValueError: If they do not fit the model's inputs, or are not affine.

    Example:
        ``|x1| + |x2|`` does not see which input is which; ``|x1| + 2 |x2|`` does:

        >>> from pindown import ReluNetwork
        >>> from pindown.symmetry import symmetric
        >>> W = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
        >>> even = ReluNetwork.from_layers([(W, [0, 0, 0, 0]), ([[1.0, 1.0, 1.0, 1.0]], [0])])
        >>> odd = ReluNetwork.from_layers([(W, [0, 0, 0, 0]), ([[1.0, 1.0, 2.0, 2.0]], [0])])
        >>> swaps = symmetric(2).permuting()
        >>> prove_invariance(even, swaps, box=(-1, 1)).verdict
        'proved'
        >>> found = prove_invariance(odd, swaps, box=(-1, 1))
        >>> found.verdict, found.gap_lower <= 1.0 <= found.gap_upper
        ('refuted', True)
    """
    require_family(group)
    deadline, read = Deadline.of(budget), as_model(model, "prove_invariance")
    limits = None if box is None else as_box(box, read.in_features)
    chosen = [int(index) for index in without_identity(group)]
    found: list[ElementProof] = []
    for place, index in enumerate(chosen):
        share = deadline.left / (len(chosen) - place)
        linear = _affine_map(group, index, read)
        options = {"tol": tol, "rtol": rtol, "precision": 1.0, "budget": share, "seed": seed}
        found.append(_element(read, linear, limits, data, radius, group.elements[index], options))
        if found[-1].verdict == "refuted":
            break
    return _summed_up(found, len(chosen), group.name, _where(limits, data, radius))


def _summed_up(found: list[ElementProof], asked: int, family: str, where: str) -> InvarianceProof:
    worst = max(found, key=lambda proof: proof.gap_lower)
    verdicts = {proof.verdict for proof in found}
    verdict: Verdict = "open"
    if "refuted" in verdicts:
        verdict, worst = "refuted", next(p for p in found if p.verdict == "refuted")
    elif verdicts == {"proved"}:
        verdict = "proved"
    upper = max(proof.gap_upper for proof in found) if len(found) == asked else inf
    return InvarianceProof(
        verdict, worst.gap_lower, upper, worst.witness, worst.element, tuple(found), family, where
    )


def _where(box: Box | None, data: ArrayLike | None, radius: float) -> str:
    if data is not None:
        inside = " that stay in the box" if box is not None else ""
        around = f"within {radius:g} of" if radius else "on"
        return f"{around} the {len(np.asarray(data)):,} rows{inside}"
    return "on the box" if box is not None else "over all inputs, for their size"


def _element(
    model: Model,
    linear: _Affine,
    box: Box | None,
    data: ArrayLike | None,
    radius: float,
    label: Hashable,
    options: dict[str, Any],
) -> ElementProof:
    """Compare the model with itself behind one element."""
    moved = linear.before(model)
    where = box if box is None else linear.common_part(box)
    if box is not None and where is None:  # no input stays in the box
        return ElementProof(label, "proved", 0.0, 0.0)
    if data is None:
        answer = diff(model, moved, box=where, **options)
        verdicts: dict[str, Verdict] = {"same": "proved", "different": "refuted"}
        verdict, lower, witness = verdicts.get(answer.verdict, "open"), answer.gap_lower, answer.witness
        if box is not None and witness is not None and not linear.stays(box, witness):
            verdict, lower, witness = "proved" if verdict == "proved" else "open", 0.0, None
        return ElementProof(label, verdict, lower, answer.gap_upper, witness, answer.allowed)
    rows = np.asarray(data, dtype=np.float64).reshape(len(np.asarray(data)), -1)
    if where is not None:
        rows = rows[where.contains(rows)]
        if not len(rows):
            return ElementProof(label, "proved", 0.0, 0.0)
    answer = diff(model, moved, data=rows, radius=radius, box=where, **options)
    return _of_rows(label, answer, rows)


def _of_rows(label: Hashable, answer: Any, rows: Array) -> ElementProof:
    """Return what the balls around rows say."""
    worst, allowed = int(np.argmax(answer.rows.gap_lower)), float(answer.allowed)
    lower, upper = float(answer.rows.gap_lower[worst]), float(answer.rows.gap_upper.max())
    places = rows if answer.rows.farthest is None else answer.rows.farthest
    witness = np.asarray(places[worst])
    verdict: Verdict = "refuted" if lower > allowed else "proved" if upper <= allowed else "open"
    return ElementProof(label, verdict, lower, upper, witness, allowed)


# ---------------------------------------------------------------------- elements as affine maps


@dataclass(frozen=True, eq=False)
class _Affine:
    """The map x -> M x + c of rows, or x -> x[source] where it is a permutation."""

    matrix: Array
    offset: Array
    source: NDArray[np.int64] | None

    def before(self, model: Model) -> Model:
        """Return the model behind the map."""
        d, literal = model.in_features, model.literal_shape
        if self.source is not None:
            move: Any = Gather(self.source, 1)
        else:
            move = Dense(self.matrix, self.offset)
        first = (
            Node(Reshape((1, d)), (0,), (1, d), "the input as a row"),
            Node(move, (1,), (1, d), "the element"),
            Node(Reshape(literal), (2,), literal, "the moved input"),
        )
        shifted = tuple(
            node._replace(inputs=tuple(i + 3 for i in node.inputs), origin=None, slot=-1)
            for node in model.nodes
        )
        return replace(model, nodes=(*first, *shifted))

    def stays(self, box: Box, x: Array) -> bool:
        """Return whether the image of an input lies in the box, where that was asked for."""
        if self.source is None and not self._is_scaling:
            return True
        image = x[self.source] if self.source is not None else np.diag(self.matrix) * x + self.offset
        return bool(box.contains(image[None])[0])

    @property
    def _is_scaling(self) -> bool:
        scale = np.diag(self.matrix)
        return bool(scale.all()) and not np.count_nonzero(self.matrix - np.diag(scale))

    def common_part(self, box: Box) -> Box | None:
        """Return a box of all x in the box whose image lies in it, too; None if there is none."""
        if self.source is not None:
            lower, upper = box.lower.copy(), box.upper.copy()
            lower[self.source] = np.maximum(lower[self.source], box.lower)
            upper[self.source] = np.minimum(upper[self.source], box.upper)
        else:
            if not self._is_scaling:
                return box
            scale = np.diag(self.matrix)
            ends = (box.lower - self.offset) / scale, (box.upper - self.offset) / scale
            low, high = np.minimum(*ends), np.maximum(*ends)
            slack = 1e-12 * (np.abs(low) + np.abs(high))
            lower = np.maximum(box.lower, add_down(low, -slack))
            upper = np.minimum(box.upper, add_up(high, slack))
        return None if (lower > upper).any() else Box(lower, upper)


def _affine_map(family: Family, index: int, model: Model) -> _Affine:
    """Read an element's affine map from what it does to the unit vectors, and check it elsewhere."""
    d, shape = model.in_features, model.input_shape

    def act(rows: Array) -> Array:
        for given in (rows, rows.reshape(len(rows), *shape)):
            try:
                made = np.asarray(family.act(index, given), dtype=np.float64)
            except ValueError as error:
                problem = str(error)
                continue
            if made.size == rows.size:
                return made.reshape(rows.shape)
            problem = f"it made {made.shape} of {given.shape}"
        raise ValueError(f"{family.name} does not act on inputs of shape {shape}: {problem}")

    offset = act(np.zeros((1, d)))[0]
    matrix = (act(np.eye(d)) - offset).T
    points = np.random.default_rng(0).standard_normal((AFFINE_CHECKS, d))
    error = np.abs(act(points) - (points @ matrix.T + offset)).max()
    if not error <= AFFINE_CHECK_ERROR * (1.0 + np.abs(matrix).sum(axis=1).max() * 5.0):
        raise ValueError(
            f"element {family.elements[index]} of {family.name} is not affine: it differs from the "
            f"affine map of its values at unit vectors by {error:.2g}. Only affine ones can be proved."
        )
    is_source = (matrix == 1.0).sum(axis=1) == 1
    plain = not offset.any() and is_source.all() and np.count_nonzero(matrix) == d
    plain = plain and np.array_equal(np.sort(matrix.argmax(axis=1)), np.arange(d))
    return _Affine(matrix, offset, matrix.argmax(axis=1).astype(np.int64) if plain else None)

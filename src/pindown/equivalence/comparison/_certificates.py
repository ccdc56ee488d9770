"""Certificates of comparisons: what was found, proved once more by steps that a stranger can check.

What decided a comparison (canonical forms, cells, integer programs, ...) is no step of a certificate.
What it says is: no output differs by more than is allowed, on the box or around a row, or one class is
ahead in both models around a row. That is proved again, with the second model written as the first one
and what it has more (:mod:`pindown.relaxation.tied_models`), or with both side by side. An input that
shows a difference needs no proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, prod
from os import PathLike
from typing import Any

import numpy as np

from pindown.affine import Array, dense
from pindown.deadline import Deadline, OutOfTime
from pindown.equivalence.comparison._joint_bounds import Joint
from pindown.equivalence.comparison.matching import match
from pindown.equivalence.comparison.result import Diff
from pindown.equivalence.comparison.rows import RowDiff
from pindown.model.from_network import model_of_network
from pindown.model.graph import Model
from pindown.model.operations.dense import Dense
from pindown.model.operations.moves import Reshape
from pindown.model.operations.operation import Shape
from pindown.model.operations.relu import Relu
from pindown.network import ReluNetwork
from pindown.relaxation.lp_balls import Balls
from pindown.relaxation.tied_models import Pairs, growth, summed_columns, tied
from pindown.rounding import add_down, add_up, norm_up, product_up
from pindown.verification.certificate_files import Certificate
from pindown.verification.proof_files import Arrays
from pindown.verification.properties import Property, UnsafeSet
from pindown.verification.questions import Question, Written, write_questions


def certified(
    answer: Diff,
    path: str | PathLike[str],
    given: Sequence[Any],
    graphs: tuple[Model, Model],
    joint: Joint,
    networks: tuple[ReluNetwork, ReluNetwork] | None,
    deadline: Deadline,
) -> Diff:
    """Write the certificate of a comparison; return the answer with its name, or with why there is none.

    Args:
        answer: What was found.
        path: Where the certificate shall go.
        given: The models, as paths.
        graphs: The same, read.
        joint: Both side by side.
        networks: Their layers, if they are nothing else.
        deadline: When to stop.
    """
    d, k = joint.first.in_features, joint.k
    every = np.arange(d)
    questions = _questions(answer, joint)
    words = f"the gap of {' and '.join(answer.names)}"
    prop = Property((), (d, d), (k, k), (every, every), (0, 1), words)
    turned = networks is not None and sum(networks[0].widths) > sum(networks[1].widths)
    forms = _forms(joint, graphs, networks, turned, deadline)
    if not questions:
        reason = "nothing was decided"
        if answer.box is None and answer.verdict == "same":
            reason = "weights alone do not show it for all inputs; give a box"
            graph, ties = forms[0]
            most = float(_allowed(answer, k).min())
            if ties is not None and growth(graph) * (1.0 + 1e-9) <= most:
                about = replace(prop, models=(1, 0)) if turned else prop
                made = Certificate.at(path, about, given, graphs, anew=True)
                reason = made.log.refused
                if not reason:
                    file, note = made.stored("holds", ties, growth=most)
                    return replace(answer, certificate=file, certificate_note=note)
        return replace(answer, certificate_note=f"no certificate was written: {reason}")
    written = Written()
    for graph, ties in forms:
        until = deadline if ties is None else deadline.share(0.7)
        asked, about = questions, prop
        if turned and ties is not None:  # the second network is the one with fewer units
            asked, about = [_turned(each, k) for each in questions], replace(prop, models=(1, 0))
        written = write_questions(
            path, given, graphs, about, asked, graph=graph, deadline=until, ties=ties
        )
        if written.file:
            break
    return replace(answer, certificate=written.file, certificate_note=written.note)


# ---------------------------------------------------------------------- the two models as one


def _forms(
    joint: Joint,
    graphs: tuple[Model, Model],
    networks: tuple[ReluNetwork, ReluNetwork] | None,
    turned: bool,
    deadline: Deadline,
) -> list[tuple[Model, Arrays | None]]:
    """Return how a certificate may have both: tied if they are of one structure, and apart."""
    apart: tuple[Model, Arrays | None] = joint.both, None
    structures = [_structure(each) for each in graphs]
    if networks is not None and networks[0].widths != networks[1].widths:
        structures = [[(name, 0) for name, _ in each] for each in structures]
    if structures[0] != structures[1]:
        return [apart]
    pairs, f, g = None, joint.first, joint.second
    if networks is not None:
        first, second = networks
        if turned:
            f, g, first, second = g, f, second, first
        pairs = _pairs(first, second, deadline)
        if _is_layers(f, first) and _is_layers(g, second):
            f, g = _layers_alone(first), _layers_alone(second)
        elif pairs is not None and not _fit(pairs, g):
            return [apart]
    made = tied(f, g, pairs)
    return [apart] if made is None else [(made, _tie_arrays(pairs, g)), apart]


def _is_layers(model: Model, net: ReluNetwork) -> bool:
    """Whether a reader of the file makes the network's layers of it, each by one product.

    Files may hold several products in a row: bounds of their product as one layer are sharper than those
    that a reader finds.
    """
    found = [node.operation for node in model.nodes if not isinstance(node.operation, Reshape)]
    sizes = [W.shape[0] * W.shape[1] for W, _ in net.layers]
    return (
        len(found) == 2 * len(sizes) - 1
        and all(isinstance(each, Relu) for each in found[1::2])
        and all(
            isinstance(each, Dense) and each.weight.size == size
            for each, size in zip(found[::2], sizes, strict=True)
        )
    )


def _layers_alone(net: ReluNetwork) -> Model:
    """Return a network's layers as a model with a row of inputs."""
    return model_of_network(ReluNetwork.from_layers([(dense(W), b) for W, b in net.layers]))


def _entered(model: Model) -> list[Shape]:
    """Return the shapes of the tensors that enter ReLUs, in order, without the input."""
    entered = {node.inputs[0] for node in model.nodes if isinstance(node.operation, Relu)}
    return [model.nodes[i - 1].shape for i in sorted(entered) if i > 0]


def _fit(pairs: Sequence[Pairs], model: Model) -> bool:
    """Whether pairs are those of what enters a model's ReLUs, and rows where they move units."""
    shapes = _entered(model)
    return len(pairs) == len(shapes) and all(
        len(pair.places) == prod(shape) and (pair.plain or shape[-1] == prod(shape))
        for pair, shape in zip(pairs, shapes, strict=True)
    )


def _structure(model: Model) -> list[tuple[str, int]]:
    """Return what a reader of the file makes of it, but for its numbers: shapes alone change nothing."""
    nodes = [node for node in model.nodes if not isinstance(node.operation, Reshape)]
    return [(type(node.operation).__name__, int(np.prod(node.shape))) for node in nodes]


def _pairs(first: ReluNetwork, second: ReluNetwork, deadline: Deadline) -> list[Pairs] | None:
    """Return which units of the first network those of the second stand for."""
    if first.widths != second.widths:
        return _nearest(first, second)
    try:
        symmetry = match(second, first, deadline=deadline.share(0.3)).symmetry
    except OutOfTime:
        return None
    if symmetry is None:
        return None
    scales = [np.asarray(s, float) for s in symmetry.scales]
    if not all(np.isfinite(s).all() and (s > 1e-20).all() and (s < 1e20).all() for s in scales):
        return None
    return [Pairs(np.asarray(p), s) for p, s in zip(symmetry.permutations, scales, strict=True)]


def _nearest(first: ReluNetwork, second: ReluNetwork) -> list[Pairs]:
    """Return for every unit of the second network that of the first whose direction is nearest.

    A unit that was split stands for several then; what the second network has more is next to nothing.
    """
    found: list[Pairs] = []
    for (V, c), (W, b) in zip(first.layers[:-1], second.layers[:-1], strict=True):
        mine, own = dense(V), dense(W)
        if found:
            own = summed_columns(own * found[-1].scales, found[-1].places, mine.shape[1])
        rows = [np.column_stack(each) for each in ((mine, c), (own, b))]
        sizes = [np.maximum(np.linalg.norm(each, axis=1), 1e-20) for each in rows]
        first_units, second_units = (
            each / size[:, None] for each, size in zip(rows, sizes, strict=True)
        )
        places = np.argmax(second_units @ first_units.T, axis=1)
        found.append(Pairs(places, np.clip(sizes[1] / sizes[0][places], 1e-19, 1e19)))
    return found


def _turned(question: Question, k: int) -> Question:
    """Return the same question with the outputs of the other network first."""
    sets = tuple(
        replace(each, rows=np.concatenate([each.rows[:, k:], each.rows[:, :k]], axis=1))
        for each in question.unsafe
    )
    return question._replace(unsafe=sets)


def _tie_arrays(pairs: list[Pairs] | None, model: Model) -> Arrays:
    if pairs is None:
        pairs = [Pairs.same(prod(shape)) for shape in _entered(model)]
    return {
        "tie_places": np.concatenate([np.zeros(0, np.int32), *(p.places for p in pairs)]).astype(
            np.int32
        ),
        "tie_scales": np.concatenate([np.zeros(0), *(p.scales for p in pairs)]),
    }


# ---------------------------------------------------------------------- what is claimed


def _questions(answer: Diff, joint: Joint) -> list[Question]:
    """Return what a comparison answers, row by row if there are rows, and on the box."""
    found = [] if answer.rows is None else _around_rows(answer, answer.rows, joint)
    if answer.verdict == "different" and answer.witness is not None:
        found += _different(answer, joint)
    elif answer.verdict == "same" and answer.box is not None:
        corners = answer.box.lower, answer.box.upper
        found.append(Question(_gap_sets(corners, _allowed(answer, joint.k))))
    elif answer.box is not None and isfinite(answer.gap_upper):  # what is proved of it
        corners = answer.box.lower, answer.box.upper
        found.append(Question(_gap_sets(corners, np.full(joint.k, answer.gap_upper))))
    return found


def _allowed(answer: Diff, k: int) -> Array:
    """Return the largest gap that counts as the same, of every output."""
    return np.array(answer.tolerances or (answer.allowed,) * k, dtype=np.float64)


def _gap_sets(corners: tuple[Array, Array], allowed: Array) -> tuple[UnsafeSet, ...]:
    """Return the sets ``f_i - g_i > allowed_i`` and ``g_i - f_i > allowed_i`` for all outputs."""
    eye, strict = np.eye(len(allowed)), np.ones(1, bool)
    forms = np.concatenate([eye, -eye], axis=1)
    return tuple(
        UnsafeSet(*corners, 0.0 - sign * form[None], np.array([-limit]), None, strict)
        for form, limit in zip(forms, allowed, strict=True)
        for sign in (1.0, -1.0)
    )


def _shown(
    joint: Joint, x: Array, corners: tuple[Array, Array], rows: Array, limits: Array
) -> list[Question]:
    """Return the question that an input answers, if intervals see that rows are below limits there."""
    f, g = joint.enclosed(x[None])
    low, high = (np.concatenate([f[side][0], g[side][0]]) for side in (0, 1))
    most = np.maximum(rows, 0.0) @ high + np.minimum(rows, 0.0) @ low
    size = np.abs(rows) @ np.maximum(np.abs(low), np.abs(high)) + np.abs(limits)
    inside = ((x >= corners[0]) & (x <= corners[1])).all()
    if not (inside and (most + 1e-12 * size < limits).all()):
        return []
    strict = np.ones(len(limits), bool)
    return [Question((UnsafeSet(*corners, rows, limits, None, strict),), x)]


def _gap_shown(joint: Joint, x: Array, corners: tuple[Array, Array], allowed: Array) -> list[Question]:
    """Return the question whether outputs differ by more than is allowed, if an input shows that."""
    f, g = joint.values(x[None])
    apart = (f - g)[0]
    i = int(np.argmax(np.abs(apart) - allowed))
    row = np.zeros((1, 2 * joint.k))
    row[0, i], row[0, joint.k + i] = -np.sign(apart[i]), np.sign(apart[i])
    return _shown(joint, x, corners, row, np.array([-allowed[i]]))


def _different(answer: Diff, joint: Joint) -> list[Question]:
    x = answer.witness
    assert x is not None
    if answer.box is not None:
        return _gap_shown(joint, x, (answer.box.lower, answer.box.upper), _allowed(answer, joint.k))
    size = float(add_up(1.0, norm_up(x)))
    limits = [float(product_up([limit, size])) for limit in _allowed(answer, joint.k)]
    return _gap_shown(joint, x, (x, x), np.array(limits))


def _around_rows(answer: Diff, rows: RowDiff, joint: Joint) -> list[Question]:
    """Return questions about classes around rows, and about gaps."""
    found: list[Question] = []
    radius = np.full(len(rows), rows.radius)
    balls = Balls.around(rows.X, radius, "linf", answer.box)
    inner = add_up(rows.X, -rows.radius), add_down(rows.X, rows.radius)
    inside = [np.clip(end, balls.lower, balls.upper) for end in inner]
    for i, known in enumerate(rows.same_label if rows.margin is not None else ()):
        corners, own = (balls.lower[i], balls.upper[i]), (inside[0][i], inside[1][i])
        if known == "proved":
            found.append(Question(_ahead(corners, joint.k, int(rows.labels[0][i]))))
        elif known == "refuted":
            found += _classes_shown(joint, rows.witnesses[i], own, rows.margin or 0.0)
        else:
            found.append(Question(_ahead(corners, joint.k, int(rows.labels[0][i])), known=False))
    allowed = _allowed(answer, joint.k)
    for i in range(len(rows)):
        corners, own = (balls.lower[i], balls.upper[i]), (inside[0][i], inside[1][i])
        if rows.gap_upper[i] <= allowed.min():
            found.append(Question(_gap_sets(corners, allowed)))
        elif rows.gap_lower[i] > allowed.min() and rows.farthest is not None:
            found += _gap_shown(joint, rows.farthest[i], own, allowed)
    return found


def _ahead(corners: tuple[Array, Array], k: int, label: int) -> tuple[UnsafeSet, ...]:
    """Return the sets in which another class is not behind, in one of the models."""
    sets = []
    for start in (0, k):
        for j in range(k):
            if j != label:
                row = np.zeros((1, 2 * k))
                row[0, start + label], row[0, start + j] = 1.0, -1.0
                sets.append(UnsafeSet(*corners, row, np.zeros(1)))
    return tuple(sets)


def _classes_shown(
    joint: Joint, x: Array, corners: tuple[Array, Array], margin: float
) -> list[Question]:
    """Return the question whether the models choose different classes, if an input shows that."""
    k = joint.k
    p, r = (int(np.argmax(made[0])) for made in joint.values(x[None]))
    rows, limits = [], []
    for start, best, other in ((0, p, r), (k, r, p)):
        for j in range(k):
            if j != best:
                row = np.zeros(2 * k)
                row[start + j], row[start + best] = 1.0, -1.0
                rows.append(row)
                limits.append(-margin if j == other else 0.0)
    return _shown(joint, x, corners, np.array(rows), np.array(limits))

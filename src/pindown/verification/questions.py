r"""Certificates of several questions at once: around every row of data, or whether two networks differ.

A question is a list of unsafe sets: it *holds* if none is reached, and is *violated* if an input lies in
one. What other ways have decided is proved here once more by steps that certificates have, and only what
these prove is written: boxes that are cut and signs that are chosen (:mod:`~.portfolio` with a log).
Questions of which that is not known stay open in the file, which says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.model.graph import Model
from pindown.parallel.limits import one_thread
from pindown.progress import Report, silent
from pindown.verification.certificate_files import Certificate
from pindown.verification.portfolio import Run
from pindown.verification.proof_files import Arrays, Frontier, proof_arrays
from pindown.verification.proof_log import ProofLog
from pindown.verification.properties import Property, UnsafeSet
from pindown.verification.tuning import QUESTION_SHARE


class Question(NamedTuple):
    """Are these sets out of reach?

    Attributes:
        unsafe: The sets.
        witness: An input that lies in the only one, if it is known that they are not.
        known: Whether they are known to be out of reach: only then that is proved for the file.
    """

    unsafe: tuple[UnsafeSet, ...]
    witness: Array | None = None
    known: bool = True


class Written(NamedTuple):
    """What became of a certificate.

    Attributes:
        file: Where it is; empty if none was written.
        note: Why none was written, or what it does not prove.
    """

    file: str = ""
    note: str = ""


class _Proof(Run):
    """A run that looks for proofs only, by steps that certificates have."""

    def _search(self, turns: int) -> None:
        return

    def _try(self, corners: tuple[Array, Any] | None) -> None:
        return

    def _deduce(self, turn: int) -> None:
        return


def write_questions(
    path: str | PathLike[str],
    given: Sequence[Any],
    models: Sequence[Model],
    prop: Property,
    questions: Sequence[Question],
    *,
    graph: Model,
    deadline: Deadline,
    ties: Arrays | None = None,
    progress: Report = silent,
) -> Written:
    """Prove questions by steps that certificates have, and write what was proved.

    Args:
        path: Where the certificate shall go.
        given: The models, as paths.
        models: The same, read.
        prop: What all questions have in common; its own sets do not count.
        questions: Which.
        graph: The model with the outputs of all networks.
        deadline: When to stop.
        ties: Arrays that say how the graph has the second network as the first one and what it has more.
        progress: Told how far the work is.

    Raises:
        ValueError: If a model is no ONNX file.
        CertificateError: If the path holds something else than a certificate.
    """
    sets = tuple(each for question in questions for each in question.unsafe)
    whole = replace(prop, unsafe=sets)
    certificate = Certificate.at(path, whole, given, models, anew=True)
    if certificate.log.refused:
        return Written("", f"no certificate was written: {certificate.log.refused}")
    parts: dict[int, Arrays] = {}
    wanted = [i for i, q in enumerate(questions) if q.witness is None and q.known]
    with one_thread(), suppress(KeyboardInterrupt):  # what was proved until then is written
        for count, i in enumerate(wanted):
            if deadline.passed:
                break
            progress("proving for the certificate", count, len(wanted))
            soon = deadline.share(min(1.0, QUESTION_SHARE / (len(wanted) - count)))
            found = _proved(replace(prop, unsafe=questions[i].unsafe), graph, soon)
            if found is not None:
                parts[i] = found
    return _written(certificate, questions, parts, ties)


def _proved(prop: Property, graph: Model, deadline: Deadline) -> Arrays | None:
    """Return the arrays of a proof that all sets of a property are out of reach, if one is found."""
    log = ProofLog()
    run = _Proof(graph, prop, deadline, 0, 1, silent, None, log=log)
    found = run.decided()
    if found.interrupted:
        raise KeyboardInterrupt
    if found.verdict != "holds":
        return None
    arrays = proof_arrays(log, prop, Frontier())
    return None if log.refused else arrays


def _written(
    certificate: Certificate,
    questions: Sequence[Question],
    parts: dict[int, Arrays],
    ties: Arrays | None,
) -> Written:
    """Write what is proved and shown; nothing if there is none of it."""
    shown = [i for i, question in enumerate(questions) if question.witness is not None]
    n_known = sum(question.known or question.witness is not None for question in questions)
    if not parts and not shown:
        return Written(
            "", "no certificate was written: no step that certificates have proved it in time"
        )
    starts = np.cumsum([0, *(len(question.unsafe) for question in questions)])
    arrays = _combined(parts, starts) if parts else {}
    if shown:
        arrays["witness"] = np.array([questions[i].witness for i in shown])
        arrays["witness_sets"] = starts[shown].astype(np.int32)
    if ties is not None and parts:
        arrays |= ties
    if len(parts) == len(questions):
        verdict = "holds"
    elif len(shown) == len(questions):
        verdict = "violated"
    else:
        verdict = "counted"
        arrays.setdefault("proof", np.zeros(int(starts[-1]), np.uint8))
        arrays.setdefault("witness", np.zeros((0, certificate.prop.n_free)))
        arrays.setdefault("witness_sets", np.zeros(0, np.int32))
        arrays |= {name: values for name, values in _combined({}, starts).items() if name not in arrays}
    groups = np.repeat(np.arange(len(questions)), [len(question.unsafe) for question in questions])
    if verdict == "counted":
        arrays["set_group"] = groups.astype(np.int32)
    left = n_known - len(parts) - len(shown)
    note = (
        f"it proves {len(parts)} of {len(parts) + left} answers that say nothing is there"
        if left
        else ""
    )
    return Written(*certificate.stored(verdict, arrays, note if left else ""))


# Arrays of proofs that follow one another, with the types of empty ones.
_JOINED: dict[str, Any] = {
    **dict.fromkeys(("box_kinds", "sign_kinds", "sign_slopes", "root_slopes"), np.uint8),
    **dict.fromkeys(("sign_places", "root_counts", "root_entries"), np.int32),
    **dict.fromkeys(("sign_multipliers", "root_lower", "root_upper"), np.float32),
    "box_places": np.uint16,
    "sign_weights": np.float64,
}


def _combined(parts: dict[int, Arrays], starts: NDArray[np.int64]) -> Arrays:
    """Return proofs of several questions as one; ``starts``: their first sets."""
    made: Arrays = {"proof": np.zeros(int(starts[-1]), np.uint8)}
    roots: list[NDArray[Any]] = []
    n_roots = 0
    for i, arrays in parts.items():
        made["proof"][starts[i] : starts[i + 1]] = arrays["proof"]
        roots.append(arrays["sign_root"] + n_roots)
        n_roots += int(arrays["sign_root"].max(initial=-1)) + 1
    made["sign_root"] = np.concatenate([np.zeros(0, np.int32), *roots]).astype(np.int32)
    for name, kind in _JOINED.items():
        made[name] = np.concatenate([np.zeros(0, kind), *(arrays[name] for arrays in parts.values())])
    return made

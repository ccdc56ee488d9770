"""The certificate of one question: what it may be about, going on from an unfinished one, writing it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown.atomic_files import reason_of
from pindown.errors import CertificateError
from pindown.io.onnx_operations import operations_of
from pindown.model.graph import Model
from pindown.model.operations.relu import Relu
from pindown.text import printable
from pindown.verification.proof_files import (
    Arrays,
    Frontier,
    ModelFile,
    claim_of,
    packed,
    proof_arrays,
    restored,
    unpacked,
    write_certificate,
)
from pindown.verification.proof_log import ProofLog
from pindown.verification.proof_roots import relu_tensors
from pindown.verification.properties import Property

if TYPE_CHECKING:
    from pindown.verification.verdicts import Verification

# What the checker knows.
CHECKED_OPERATIONS = frozenset(
    (
        *(
            "Add",
            "Concat",
            "Constant",
            "Conv",
            "Div",
            "Dropout",
            "Flatten",
            "Gather",
            "Gemm",
            "Identity",
        ),
        *(
            "MatMul",
            "Mul",
            "Neg",
            "Relu",
            "Reshape",
            "Slice",
            "Squeeze",
            "Sub",
            "Transpose",
            "Unsqueeze",
        ),
    )
)


def require_files(given: Sequence[Any], path: str | PathLike[str] | None = None) -> None:
    """Refuse models that no certificate can name, and a path that holds something else than one.

    Raises:
        ValueError: If a model is no ONNX file.
        CertificateError: If the path holds something else than a certificate.
    """
    for one in given:
        name = fspath(one).lower() if isinstance(one, (str, PathLike)) else ""
        if not name.endswith((".onnx", ".onnx.gz")):
            raise ValueError(
                "a certificate names the models' files: give paths of .onnx or .onnx.gz files."
            )
    if path is not None and Path(path).exists():
        _unpacked_file(Path(path))


def _unpacked_file(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return what a certificate holds.

    Raises:
        CertificateError: If it is none, or cannot be read.
    """
    try:
        return unpacked(path.read_bytes())
    except (CertificateError, OSError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise CertificateError(f"{printable(str(path))}: {reason}.") from None


@dataclass(eq=False)
class Certificate:
    """A certificate on its way.

    Attributes:
        path: Where it shall go.
        prop: The property.
        files: The models' files.
        log: What was proved.
        unread: Why the checker does not read the models; empty if it does.
    """

    path: Path
    prop: Property
    files: tuple[ModelFile, ...]
    log: ProofLog = field(default_factory=ProofLog)
    unread: str = ""
    _before: dict[str, Any] | None = None

    @classmethod
    def at(
        cls,
        path: str | PathLike[str],
        prop: Property,
        given: Sequence[Any],
        models: Sequence[Model],
        *,
        anew: bool = False,
    ) -> Certificate:
        """Begin a certificate.

        Args:
            path: Where it shall go.
            prop: The property.
            given: The models, as they were handed in.
            models: The same, read.
            anew: Whether a certificate of another claim may be replaced.

        Raises:
            ValueError: If a model is no ONNX file.
            CertificateError: If the path holds something else than a certificate of this claim, or if
                it may be replaced, than a certificate.
        """
        require_files(given, path)
        made = cls(Path(path), prop, tuple(ModelFile.of(one) for one in given))
        if not anew:
            made._read()
        for one, model in zip(given, models, strict=True):
            made._look_at(one, model)
        return made

    def _read(self) -> None:
        """Read what is at the path, if anything is; keep an unfinished proof of this claim.

        Raises:
            CertificateError: If it is something else.
        """
        if not self.path.exists():
            return
        found, arrays = _unpacked_file(self.path)
        own, claimed = claim_of(self.prop, self.files, inner=found.get("verdict") == "violated")
        for claim in (own, found):  # names and words are no part of what is claimed
            claim.update(models=[each.get("sha256") for each in claim["models"]], words="")
        same = all(found.get(key) == value for key, value in own.items()) and all(
            name in arrays and np.array_equal(arrays[name], values) for name, values in claimed.items()
        )
        if not same:
            raise CertificateError(
                f"{printable(str(self.path))}: this certificate is of another claim; give another."
            )
        if found.get("verdict") == "undecided":
            self._before = arrays

    def earlier(self, model: Model) -> tuple[ProofLog, Frontier] | None:
        """Return what an earlier run proved and what it left open; None if there was none.

        Args:
            model: The models, joined.
        """
        if self._before is None:
            return None
        sizes = [math.prod(model.nodes[j - 1].shape) for j in relu_tensors(model)]
        try:
            self.log, frontier = restored(self._before, self.prop, sizes)
        except CertificateError as error:
            raise CertificateError(f"{printable(str(self.path))}: {error}.") from None
        return self.log, frontier

    def _look_at(self, path: str | PathLike[str], model: Model) -> None:
        """Refuse operations that the checker does not know."""
        found = operations_of(path)
        others = sorted(set(found.counts) - CHECKED_OPERATIONS)
        if others:
            self.log.refuse(f"the checker does not know the operation {printable(others[0])}")
        if found.unusual:
            self.log.refuse(f"the checker does not know this use of the operation {found.unusual[0]}")
        if not found.plain:
            self.log.refuse(
                "the file is older than opset 7, keeps weights elsewhere, has operations of its own or "
                "weights of sizes that the checker does not take"
            )
        self.unread = self.log.refused
        relus = sum(isinstance(node.operation, Relu) for node in model.nodes)
        readers = {node.inputs[0] for node in model.nodes if isinstance(node.operation, Relu)}
        if relus != found.counts["Relu"] or len(readers) != relus:
            self.log.refuse("the model's ReLUs are not those of the file")

    def written(self, answer: Verification, frontier: Frontier) -> Verification:
        """Write the certificate, and return the answer with its name, or with why there is none."""
        if self._before is not None and answer.verdict == "holds":
            # Those parts were not bounded again: the verdict says so also where nothing is written.
            answer = replace(answer, method=f"{answer.method}, if what the earlier file calls proved is")
        try:
            refused = self.unread if answer.verdict == "violated" else self.log.refused
            if refused:
                raise CertificateError(refused)
            data = self._bytes(answer, frontier)
            write_certificate(self.path, data)
        except CertificateError as error:
            return replace(answer, certificate_note=f"no certificate was written: {error}")
        note = "" if self._before is None else "went on from what it held; the checker checks all of it"
        return replace(answer, certificate=str(self.path), certificate_note=note)

    def stored(self, verdict: str, arrays: Arrays, note: str = "", **more: float) -> tuple[str, str]:
        """Write a certificate with these arrays; return its name and the note, or why there is none.

        Args:
            verdict: What it says.
            arrays: The proof.
            note: Returned if it is written.
            **more: Further entries of the claim.
        """
        claim, claimed = claim_of(self.prop, self.files, inner=False)
        try:
            whole = {**claim, **more, "verdict": verdict}
            write_certificate(self.path, packed(whole, claimed | arrays))
        except CertificateError as error:
            return "", f"no certificate was written: {error}"
        return str(self.path), note

    def _bytes(self, answer: Verification, frontier: Frontier) -> bytes:
        violated = answer.verdict == "violated"
        claim, arrays = claim_of(self.prop, self.files, inner=violated)
        claim["verdict"] = answer.verdict
        if violated:
            assert answer.example is not None
            arrays["witness_sets"] = np.array([answer.example.index], np.int32)
            arrays["witness"] = answer.example.x[None]
            return packed(claim, arrays)
        arrays |= proof_arrays(self.log, self.prop, frontier)
        if self.log.refused:
            raise CertificateError(self.log.refused)
        return packed(claim, arrays)

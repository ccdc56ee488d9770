"""Certificates in reports: their file, the command that checks it, and what is to say about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pindown.text import printable


class Certified(Protocol):
    """An answer that may have a certificate."""

    @property
    def certificate(self) -> str:
        """The file; empty if none was written."""

    @property
    def certificate_note(self) -> str:
        """Why none was written, or what it does not prove."""


def check_command(file: str, names: Sequence[str]) -> str:
    """Return the command that checks a certificate of models.

    >>> check_command("proof", ["net.onnx"])
    'python pindown_check.py proof net.onnx'
    """
    return f"python pindown_check.py {printable(file)} {' '.join(map(printable, names)) or 'MODEL'}"


def certificate_as_dict(answer: Certified, names: Sequence[str]) -> dict[str, str] | None:
    """Return what JSON says about an answer's certificate; None if none was asked for."""
    if not (answer.certificate or answer.certificate_note):
        return None
    check = check_command(answer.certificate, names) if answer.certificate else ""
    return {"file": answer.certificate, "check": check, "note": answer.certificate_note}


def certificate_words(answer: Certified, names: Sequence[str]) -> list[str]:
    """Return what there is to say about an answer's certificate, line by line."""
    words = [check_command(answer.certificate, names)] if answer.certificate else []
    return [*words, *([printable(answer.certificate_note)] if answer.certificate_note else [])]

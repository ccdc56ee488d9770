"""What was found about an installation: single checks, and all of them as words or JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from pindown.json_files import document

Status = Literal["fine", "note", "broken"]
SCHEMA = 1


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        group: What it belongs to, such as ``"required"``.
        name: What was looked at.
        status: ``"fine"``; ``"note"`` (works, but could do more); ``"broken"``.
        found: What is there, in words.
        remedy: What to do about it; empty if there is nothing to do.
    """

    group: str
    name: str
    status: Status
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What :func:`pindown.doctor.diagnose` found.

    Attributes:
        checks: Everything that was looked at, in the order of a report.
    """

    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing that pindown needs is missing or broken."""
        return all(check.status != "broken" for check in self.checks)

    def __str__(self) -> str:
        broken = [check.name for check in self.checks if check.status == "broken"]
        notes = sum(check.status == "note" for check in self.checks)
        if broken:
            return f"something is wrong: {', '.join(broken)}"
        return "everything that pindown needs is there" + (f"; notes: {notes}" if notes else "")

    def to_json(self) -> str:
        """Return the checks as JSON: ``{"schema": 1, "healthy": bool, "checks": [...]}``."""
        content = {"schema": SCHEMA, "healthy": self.healthy, "checks": list(map(asdict, self.checks))}
        return document(content)

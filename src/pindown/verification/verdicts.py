"""What is known about a property of a model: it holds, it is violated, or it is not decided."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from os import PathLike

from pindown.affine import Array
from pindown.atomic_files import written
from pindown.evidence import Kind
from pindown.io.any_model import AnyModel, as_model
from pindown.text import card
from pindown.verification.properties import Property
from pindown.verification.witnesses import Witness

# The competition's words.
WORDS = {"holds": "unsat", "violated": "sat", "undecided": "unknown"}


@dataclass(frozen=True, eq=False, repr=False)
class Verification:
    """A verdict on a property, and what it rests on.

    Attributes:
        verdict: ``"holds"`` or ``"violated"``, both proved for the real-number model, or
            ``"undecided"``.
        prop: The property.
        example: The input that violates it, with its outputs in float64 and float32; also one that only
            float64 sees, which leaves the property undecided. None if none was found.
        method: What decided it, in words; what was tried if nothing did.
        n_parts: How many boxes and choices of signs were bounded.
        open_sets: How many of the unsafe sets are not proved to be out of reach.
        bound: A proved lower bound on how far the open parts stay away from their unsafe sets; the
            property holds if it is above 0. Infinite if nothing is open.
        seconds: How long it took.
        history: How the search went: (seconds, parts bounded, unsafe sets open) as it went on.
        interrupted: Whether Ctrl-C ended it.
        certificate: The file that a proof was written to; empty if none was.
        certificate_note: Why none was written although it was asked for, or what it does not prove yet.
        kind: ``"exact"``.
    """

    verdict: str
    prop: Property
    example: Witness | None = None
    method: str = ""
    n_parts: int = 0
    open_sets: int = 0
    bound: float = inf
    seconds: float = 0.0
    history: tuple[tuple[float, int, int], ...] = ()
    interrupted: bool = False
    certificate: str = ""
    certificate_note: str = ""
    kind: Kind = "exact"

    @property
    def witness(self) -> Array | None:
        """An input that violates the property, (d,), or None."""
        return self.example.x if self.example is not None and self.verdict == "violated" else None

    @property
    def margin(self) -> float:
        """The worst row minus its limit at the witness, in float64: at most 0 but for rounding."""
        return self.example.margin if self.example is not None else inf

    @property
    def float32_margin(self) -> float:
        """The same in float32: the witness is none there if this is above 0."""
        return self.example.float32_margin if self.example is not None else inf

    @property
    def word(self) -> str:
        """The competition's word: ``unsat``, ``sat`` or ``unknown``."""
        return WORDS[self.verdict]

    def to_html(self, path: str | PathLike[str] | None = None, *models: AnyModel) -> str:
        """Return the answer as one self-contained page, and write it if a path is given.

        Args:
            path: Where to write it.
            *models: The models it is about: the page then shows their outputs at the middle of the box,
                too, and inputs that are images as images.
        """
        from pindown.report.verification import Asked
        from pindown.report.verification_page import render_verification

        asked = Asked(tuple(as_model(model, "to_html") for model in models))
        return written(render_verification(self, asked), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the answer as JSON, and write it if a path is given."""
        from pindown.report.verification import render_verification_json

        return written(render_verification_json(self), path)

    _repr_html_ = card

    def __repr__(self) -> str:
        parts = "1 part" if self.n_parts == 1 else f"{self.n_parts:,} parts"
        facts = f"{self.verdict}: {self.method}, {parts}, {self.seconds:.1f} s"
        if self.verdict == "undecided":
            facts += f"; {self.open_sets:,} of {len(self.prop.unsafe):,} unsafe sets open"
        elif self.example is not None:
            facts += f"; margin {self.margin:.3g}, {self.float32_margin:.3g} in float32"
        return f"Verification({facts})"

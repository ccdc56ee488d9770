"""What an audit returns: the findings about one network, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from pindown.findings import Finding
from pindown.findings.comparison import Comparison
from pindown.findings.paragraph import paragraph
from pindown.geometry import Box
from pindown.network import ReluNetwork
from pindown.report.writing import written


@dataclass(frozen=True, eq=False)
class Audit:
    """The findings about one network.

    Attributes:
        network: The network that was asked about.
        findings: One per question, in the order of the catalogue; also those without an answer.
        name: What to call the network in reports.
        given: What the audit had to go on, in words.
        budget: Seconds it was allowed to take.
        seed: Root of its randomness.
        interrupted: Whether it was stopped by hand before the end.
        box: Where statements about all inputs were made; a reference box if nothing was given.
        box_name: That box in words.
        comparison: What changed since another checkpoint, if one was given.
    """

    network: ReluNetwork
    findings: tuple[Finding, ...]
    name: str
    given: str
    budget: float
    seed: int
    interrupted: bool = False
    box: Box | None = None
    box_name: str = ""
    comparison: Comparison | None = None

    def __getitem__(self, code: str) -> Finding:
        """Return the finding with this code."""
        for finding in self.findings:
            if finding.code == code:
                return finding
        raise KeyError(
            f"no finding {code!r} here; there are {', '.join(f.code for f in self.findings)}."
        )

    @property
    def verdict(self) -> str:
        """What the findings say together, as one paragraph: the most important first."""
        changed = "" if self.comparison is None else self.comparison.sentence
        return paragraph(
            self.findings, interrupted=self.interrupted, first=changed, box_name=self.box_name
        )

    @property
    def failed(self) -> tuple[str, ...]:
        """What failed by an error of pindown: codes of findings, and what failed in the comparison."""
        own = tuple(finding.code for finding in self.findings if finding.status == "error")
        return own + (() if self.comparison is None else self.comparison.failed)

    def summary(self) -> str:
        """Return the verdict and the findings as plain text."""
        from pindown.report.text import plain_text

        return plain_text(self)

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return one self-contained HTML page, and write it if a path is given."""
        from pindown.report.html import render_page

        return written(render_page(self), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """Return the findings as JSON (schema 1), and write them if a path is given."""
        from pindown.report.json import render_json

        return written(render_json(self), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str:
        """Return the findings as Markdown, and write them if a path is given."""
        from pindown.report.markdown import render_markdown

        return written(render_markdown(self), path)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        answered = sum(finding.answered for finding in self.findings)
        return f"Audit of {self.name}: {answered} of {len(self.findings)} questions answered"

    def _repr_html_(self) -> str:
        from pindown.report.html import render_fragment

        return render_fragment(self)

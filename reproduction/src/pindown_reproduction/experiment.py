"""What an experiment is: settings, cells that can run apart, and a rule that was fixed beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell: TypeAlias = dict[str, Any]  # of plain numbers, strings and lists: it names a file
Results: TypeAlias = Sequence[tuple[Cell, Mapping[str, Any]]]
Verdict: TypeAlias = Literal["reproduced", "not reproduced", "no published number"]


@dataclass(frozen=True)
class Outcome:
    """Published numbers beside measured ones.

    Attributes:
        verdict: What the rule says.
        words: The same in a sentence.
        columns: Header of the table.
        rows: Its rows.
    """

    verdict: Verdict
    words: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class SourceData:
    """The data a source used, where a run may have to do with others.

    Attributes:
        name: What the source used.
        genuine: How the names of such data begin in results, in lower case; none if there is no way to
            have them.
        otherwise: What is used where results name no data.
    """

    name: str
    genuine: tuple[str, ...] = ()
    otherwise: str = ""

    def stand_in(self, results: Results) -> str:
        """Return what stood in for the source's data, or nothing if nothing did.

        >>> SourceData("MNIST", ("mnist",)).stand_in([({}, {"data": "8 x 8 digits"})])
        '8 x 8 digits in place of MNIST'
        >>> SourceData("MNIST", ("mnist",)).stand_in([({}, {"data": "MNIST, 22 x 22"})])
        ''
        """
        used = (
            str(
                found.get("data")
                or found.get("name")
                or cell.get("data")
                or self.otherwise
                or "other data"
            )
            for cell, found in results
        )
        foreign = [
            name for name in dict.fromkeys(used) if not name.lower().startswith(self.genuine or ("\0",))
        ]
        return f"{', '.join(foreign)} in place of {self.name}" if foreign else ""


@dataclass(frozen=True)
class Declared:
    """A published result that is not run here, and what it would take.

    Attributes:
        id: Short name for the command line.
        title: What is shown.
        source: Where it comes from: author, year, figure or table.
        published: What the source says, in a sentence.
        why: Why there is no run of it.
        needs: What one needs to make one.
        instead: The experiment that comes nearest, if there is one.
    """

    id: str
    title: str
    source: str
    published: str
    why: str
    needs: str
    instead: str = ""

    def __str__(self) -> str:
        nearest = f" Nearest: {self.instead}." if self.instead else ""
        return f"{self.id} is declared, not run: {self.why} Needed: {self.needs}{nearest}"


@dataclass(frozen=True)
class Experiment:
    """A declared experiment.

    Attributes:
        id: Short name for the command line.
        title: What is shown.
        source: Where it comes from: author, year, figure or table.
        published: What the source says, in a sentence.
        rule: When it counts as reproduced; written before the run.
        settings: Settings by scale: ``"quick"`` takes minutes on two cores, ``"paper"`` is as published.
        cells: Settings to the cells (seed and setting) that run independently.
        run: Runs one cell; returns plain numbers.
        compare: All cells with their results, to the outcome.
        draw: All cells with their results, to a figure.
        data: The source's data, where a run may use others; the ledger then marks the outcome.
        seconds: CPU seconds of one core by scale, as measured, for lists and estimates.
        remark: For the ledger, what no run can write: what was changed after a first look, what to make
            of it.
    """

    id: str
    title: str
    source: str
    published: str
    rule: str
    settings: Mapping[str, Mapping[str, Any]]
    cells: Callable[[Mapping[str, Any]], list[Cell]]
    run: Callable[[Cell], Mapping[str, Any]]
    compare: Callable[[Results], Outcome]
    draw: Callable[[Results], Figure] | None = None
    data: SourceData | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""

    def stand_in(self, results: Results) -> str:
        """Return what stood in for the source's data in these results, or nothing."""
        return self.data.stand_in(results) if self.data is not None else ""

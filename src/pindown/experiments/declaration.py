"""What an experiment is: settings, cells that can run apart, and a rule that was fixed beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

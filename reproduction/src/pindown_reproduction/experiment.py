"""What an experiment is: settings, cells that can run apart, and a rule that was fixed beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell: TypeAlias = dict[str, Any]  # of plain numbers, strings and lists: it names a file
Results: TypeAlias = Sequence[tuple[Cell, Mapping[str, Any]]]
Verdict: TypeAlias = Literal["reproduced", "not reproduced", "underpowered", "no published number"]
# Smaller first: a page shows each experiment at the largest of the scales that were run.
SCALES = ("quick", "decisive", "paper")
SEED_STRIDE = 1_000  # between the seeds of two runs, so that they share none


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
        akin: How the names of data begin that are so like the source's that an effect which is not there
            is refuted; they are stand-ins all the same.
    """

    name: str
    genuine: tuple[str, ...] = ()
    otherwise: str = ""
    akin: tuple[str, ...] = ()

    def foreign(self, results: Results) -> str:
        """Return what cannot refute the source: stand-ins that are not even of the kind of its data."""
        return replace(self, genuine=self.genuine + self.akin).stand_in(results)

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
class Power:
    """What a run needs before its rule may speak.

    A run with fewer draws than it takes decides nothing. One that is smaller than ``least`` may still
    see the published effect, but if it does not it has not looked.

    Attributes:
        seeds: How many draws it takes; 0 where nothing is drawn, or one case decides.
        repeats: The setting that says how many draws are in one cell; empty if each seed is one.
        least: By setting of cells, the smallest value at which the published effect should show.
        why: The argument for these.
        unfit: What else keeps these results from saying no, in words; nothing if nothing does.
    """

    seeds: int = 3
    repeats: str = ""
    least: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    unfit: Callable[[Results], list[str]] | None = None

    def draws(self, cells: Sequence[Cell]) -> int:
        """Return how many draws there are.

        >>> Power().draws([{"seed": 0, "n": 1}, {"seed": 0, "n": 2}, {"seed": 4, "n": 1}])
        2
        >>> Power(repeats="runs").draws([{"runs": 20}])
        20
        """
        own = len({cell["seed"] for cell in cells if "seed" in cell}) or 1
        inside = [int(cell[self.repeats]) for cell in cells if self.repeats in cell]
        return own * min(inside, default=1)

    def too_few(self, cells: Sequence[Cell]) -> list[str]:
        """Return, in words, what is missing for either answer.

        >>> Power().too_few([{"seed": 0}])
        ['1 seed where 3 are needed']
        """
        n, what = self.draws(cells), "draw" if self.repeats else "seed"
        return [f"{n} {what}{'s'[: n != 1]} where {self.seeds} are needed"] if n < self.seeds else []

    def too_small(self, cells: Sequence[Cell]) -> list[str]:
        """Return, in words, what is missing for a no.

        >>> Power(least={"iterations": 5_000}).too_small([{"iterations": 400}])
        ['iterations 400 where 5,000 are needed']
        """
        there = {key: [c[key] for c in cells if c.get(key) is not None] for key in self.least}
        return [
            f"{key} {min(there[key]):,} where {least:,} are needed"
            for key, least in self.least.items()
            if there[key] and min(there[key]) < least
        ]


@dataclass(frozen=True)
class Cause:
    """Why a published result does not come out, found by an experiment.

    Attributes:
        whose: Where it lies.
        words: What was found, in a sentence or two.
        shown_by: What shows it: a test, a column of the table, an erratum.
    """

    whose: Literal["the source", "the scale", "the data", "the machine", "us"]
    words: str
    shown_by: str


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
        settings: Settings by scale: ``"quick"`` takes minutes on two cores, ``"decisive"`` is the
            smallest at which the rule can say no, ``"paper"`` is as published.
        cells: Settings to the cells (seed and setting) that run independently.
        run: Runs one cell; returns plain numbers.
        compare: All cells with their results, to the outcome as the rule alone has it.
        draw: All cells with their results, to a figure.
        data: The source's data, where a run may use others; the ledger then marks the outcome.
        seconds: CPU seconds of one core by scale, as measured, for lists and estimates.
        remark: For the ledger, what no run can write: what was changed after a first look, what to make
            of it.
        power: What a run needs before the rule may speak.
        cause: Why it does not come out, where that is known.
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
    power: Power = Power(seeds=0)
    cause: Cause | None = None

    def cells_of(self, scale: str, seed: int = 0) -> list[Cell]:
        """Return the cells of a scale; another ``seed`` draws everything anew that is drawn.

        Raises:
            ValueError: If there is no such scale.
        """
        if scale not in self.settings:
            known = ", ".join(self.settings)
            raise ValueError(f"{self.id} has the scales {known}; got {scale!r}.")
        cells = self.cells(self.settings[scale])
        if not seed:
            return cells
        return [{**cell, "seed": cell.get("seed", 0) + SEED_STRIDE * seed} for cell in cells]

    def decides_at(self) -> str:
        """Return the smallest scale that can say no, as far as its settings tell; empty if none can."""
        if self.rule.startswith("None"):
            return ""
        for scale in SCALES:
            if scale in self.settings:
                cells = self.cells_of(scale)
                missing = self.power.too_few(cells) + self.power.too_small(cells)
                named = [cell for cell in cells if "data" in cell]
                if self.data is not None and (named or not self.data.genuine):
                    missing.append(self.data.foreign([(cell, {}) for cell in named or cells]))
                if not any(missing):
                    return scale
        return ""

    def stand_in(self, results: Results) -> str:
        """Return what stood in for the source's data in these results, or nothing."""
        return self.data.stand_in(results) if self.data is not None else ""


def stream(cell: Mapping[str, Any], *parts: int) -> list[int]:
    """Return a seed for NumPy: these numbers, and the run's own where it is not the first.

    >>> stream({}, 3, 4), stream({"seed": 1000}, 3, 4)
    ([3, 4], [3, 4, 1000])
    """
    own = int(cell.get("seed", 0))
    return [*parts, own] if own else list(parts)

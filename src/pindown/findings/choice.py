"""Which questions were asked for: codes, families of codes, and what to leave out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from pindown.findings.registry import Question


def chosen_questions(
    catalogue: Sequence[Question], only: Iterable[str] | None, ignore: Iterable[str] | None
) -> list[Question]:
    """Return the questions named by ``only`` but not by ``ignore``, in the order of the catalogue.

    Args:
        catalogue: All questions.
        only: Codes such as "GEO-01", or families such as "GEO"; None for all.
        ignore: Likewise, of questions to leave out.

    Raises:
        ValueError: If a name is unknown or no question is left.
    """
    known = [question.code for question in catalogue]
    wanted = set(known) if only is None else _codes(only, "only", known)
    muted = set() if ignore is None else _codes(ignore, "ignore", known)
    chosen = [q for q in catalogue if q.code in wanted - muted]
    if not chosen:
        raise ValueError(f"only and ignore leave no question to ask; known are {_listed(known)}.")
    return chosen


def _codes(names: Iterable[str], option: str, known: list[str]) -> set[str]:
    """Return the codes that names stand for, in upper or lower case."""
    given = [names] if isinstance(names, str) else list(names)
    wrong = [name for name in given if not isinstance(name, str)]
    if wrong:
        raise ValueError(f"{option} takes codes of findings, as text; got {wrong[0]!r}.")
    codes: set[str] = set()
    unknown = []
    for name in given:
        word = name.strip().upper()
        matching = {code for code in known if word in (code, _family(code))}
        codes |= matching
        unknown += [] if matching else [name]
    if unknown:
        raise ValueError(
            f"{option} names unknown findings {', '.join(unknown)}; known are {_listed(known)}, "
            "or a family such as GEO."
        )
    return codes


def _family(code: str) -> str:
    return code.rpartition("-")[0]


def _listed(known: list[str]) -> str:
    """Return the codes by family.

    >>> _listed(["ARC-01", "GEO-01", "GEO-02", "GEO-03"])
    'ARC-01, GEO-01 to 03'
    """
    words = []
    for family, members in groupby(sorted(known), key=_family):
        numbers = [code.removeprefix(f"{family}-") for code in members]
        words.append(f"{family}-{numbers[0]}" + (f" to {numbers[-1]}" if len(numbers) > 1 else ""))
    return ", ".join(words)

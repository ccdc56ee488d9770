"""The command that finds theorems, by number or by plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pindown.cli.options import Json, check_outputs, say

if TYPE_CHECKING:
    from pindown.theorems import Result

Words = Annotated[
    list[str] | None,
    typer.Argument(help='A subject, a question, or a number: margin, "Mukherjee 3.3.1", K14.'),
]
ShowList = Annotated[bool, typer.Option("--list", help="List all results, a line each.")]
SourceName = Annotated[
    str | None, typer.Option("--source", help="Only of this source: an author, or course.")
]
Count = Annotated[int, typer.Option("--count", "-n", min=1, help="How many to name, the first in full.")]

_WIDTH = 100  # columns of text


def theorem(
    words: Words = None,
    show_list: ShowList = False,
    source: SourceName = None,
    count: Count = 5,
    json: Json = None,
) -> int:
    """Find a theorem: what it says, what computes and tests it, and an example that runs."""
    from pindown.theorems import find, results

    check_outputs(json=json)
    question = " ".join(words or [])
    if not question and not show_list:
        raise ValueError("say what to look for, as in pindown theorem margin; --list shows everything.")
    name = _source(source) if source is not None else None
    wanted = find(question, n=len(results())) if question else list(results().values())
    found = [one for one in wanted if name in (None, one.source)]
    if not found:
        raise ValueError(f"no result speaks of {question!r}; pindown theorem --list names them all.")
    found = found if show_list else found[:count]
    if json is not None:
        _deliver([_entry(one, example=not show_list) for one in found], json)
    elif show_list:
        say("\n".join(str(one) for one in found))
        say(f"{len(found)} results; pindown theorem ID shows one.", err=True)
    else:
        say(_shown(found))
    return 0


def _source(asked: str) -> str:
    """Return how a source is cited, by its author, key or title."""
    from pindown.theorems import sources

    for one in sources():
        if asked.lower() in (one.key, *one.aliases, *one.name.lower().split()):
            return one.name
    known = ", ".join(one.aliases[0] for one in sources())
    raise ValueError(f"--source takes one of {known}; got {asked!r}.")


def _shown(found: list[Result]) -> str:
    """Return the best result in full, and the others in a line each."""
    lines = [_in_full(found[0])]
    if len(found) > 1:
        lines += ["", "See also:", *(f"  {one}" for one in found[1:])]
    return "\n".join(lines)


def _in_full(one: Result) -> str:
    from pindown.theorems.formulas import plain
    from pindown.theorems.tables import FIELDS

    rows = [("says", plain(one.statement)), ("by", ", ".join(one.functions))]
    if one.variants:
        rows.append(("variants", ", ".join(one.variants)))
    if one.also:
        rows.append(("also", one.also))
    for error in one.errata:
        told = f"{error.where}: {error.printed} -> {error.corrected}"
        rows.append(("erratum", plain(told)))
    rows.append(("test", one.test))
    if one.experiment:
        rows.append(("again", f"pindown reproduce {one.experiment}"))
    body = [line for name, text in rows for line in _row(name, text)]
    example = [f"    {line}" for line in one.example.split("\n")]
    head = [f"{one.id}  {one.title}", f"    {one.reference}. {FIELDS[one.field]}."]
    return "\n".join([*head, *body, "    example", *example])


def _row(name: str, text: str) -> list[str]:
    from textwrap import wrap

    first, *rest = wrap(text, _WIDTH - 13, break_long_words=False, break_on_hyphens=False)
    return [f"    {name:<9}{first}", *(f"{'':13}{line}" for line in rest)]


def _entry(one: Result, *, example: bool) -> dict[str, Any]:
    entry = {
        "id": one.id,
        "title": one.title,
        "source": one.source,
        "number": one.number,
        "also": one.also or None,
        "subject": one.field,
        "words": list(one.words),
        "statement": one.statement,
        "function": one.functions[0],
        "functions": list(one.functions),
        "variants": list(one.variants),
        "errata": [
            {"where": each.where, "printed": each.printed, "corrected": each.corrected,
             "tests": list(each.tests)}
            for each in one.errata
        ],
        "test": one.test,
        "experiment": one.experiment or None,
    }  # fmt: skip
    return {**entry, "example": one.example} if example else entry


def _deliver(content: list[dict[str, Any]], target: str) -> None:
    from pindown.atomic_files import written
    from pindown.json_files import document

    if target == "-":
        say(document(content), nl=False)
    else:
        written(document(content), target)
        say(f"wrote {target}", err=True)

"""Write the pages that are made from the tables of results: ``python docs/generate.py``.

``docs/theorems.md`` by source and by subject, a reading guide for each source in ``docs/sources``, the table of
``docs/errata.md``, the list of results at the end of each guide, and the course companion in ``docs/course``, as pages and as
notebooks. A test compares them with what stands here.
"""

import doctest
import importlib
import inspect
import json
import re
import tomllib
from pathlib import Path

from pindown.theorems import Chapter, Result, Source, errata, results, sources
from pindown.theorems.tables import FIELDS

HERE = Path(__file__).parent
MARK = "<!-- written by docs/generate.py -->"
TABLE = re.compile(r"(?<=\|---\|---\|---\|---\|\n)(?:\|.*\n)+")
BEGIN, END = "<!-- results: written by docs/generate.py -->", "<!-- end of results -->"
BLOCK = re.compile(rf"\n*{re.escape(BEGIN)}.*?{re.escape(END)}\n*", re.DOTALL)
# Which subjects a guide is about, and where to read on.
GUIDES = {
    "kernels": ("margins kernels", "neural-tangent"),
    "neural-tangent": ("ntk", "least-squares-bias"),
    "least-squares-bias": ("regularisation approximation", "implicit-bias"),
    "implicit-bias": ("bias", "neural-tangent"),
    "optimisers": ("optimisers", "gate-learners"),
    "gate-learners": ("gates", "exact-training"),
    "exact-training": ("exact", "segmented-regression"),
    "segmented-regression": ("exact", "exact-training"),
    "circuits": ("depth", "boolean-circuits"),
    "boolean-circuits": ("boolean", "circuits"),
    "equivalence": ("identity", "geometry"),
    "generalisation-bounds": ("bounds", "certify"),
    "robustness": ("robustness", "verification"),
    "fourier-masks": ("fourier", "probes"),
    "probes": ("probes", "fourier-masks"),
    "gan": ("gan", "mutual-autoencoder"),
    "symmetry": ("symmetry", "equivariant-layers"),
    "equivariant-layers": ("graphs", "signatures"),
    "signatures": ("signatures plasticity", "learning-symmetry"),
    "learning-symmetry": ("discovery", "symmetry"),
    "sparse-coding": ("sparse", "max-pooling"),
    "mutual-autoencoder": ("information", "distillation"),
    "distillation": ("distillation", "multi-exit"),
    "multi-exit": ("exits", "distillation"),
    "max-pooling": ("maxpool", "local-maxima"),
    "local-maxima": ("oneclass", "max-pooling"),
}
# Which guide names what a package offers; names that its text does not mention are listed at its end.
PACKAGES = {
    "which-tool": "pindown io theorems",
    "audit": "findings report",
    "models": "model",
    "geometry": "geometry geometry.counts geometry.exact geometry.plots",
    "verification": "relaxation verification",
    "scaling": "datasets parallel",
    "equivalence": "equivalence equivalence.comparison equivalence.recovery equivalence.shrinking",
    "circuits": "circuits",
    "boolean-circuits": "circuits.boolean",
    "robustness": "guarantees",
    "generalisation-bounds": "guarantees.bounds",
    "certify": "guarantees.certificate",
    "implicit-bias": "bias bias.margins bias.two_layer",
    "least-squares-bias": "bias.least_squares",
    "neural-tangent": "bias.tangent_kernel",
    "optimisers": "optim",
    "probes": "probes",
    "fourier-masks": "probes.fourier",
    "symmetry": "symmetry symmetry.actions symmetry.measure",
    "learning-symmetry": "symmetry.discovery",
    "equivariant-layers": "symmetry.graphs symmetry.layers",
    "signatures": "symmetry.plasticity symmetry.signatures",
    "learners": "learn",
    "distillation": "learn.distillation",
    "exact-training": "learn.exact",
    "gate-learners": "learn.gates",
    "kernels": "learn.kernels learn.margins",
    "max-pooling": "learn.max_pooling",
    "multi-exit": "learn.multi_exit",
    "mutual-autoencoder": "learn.mutual_autoencoder",
    "local-maxima": "learn.conformal learn.one_class",
    "segmented-regression": "learn.segmented",
    "sparse-coding": "learn.sparse_coding",
}


def pages() -> dict[str, str]:
    """Return the generated pages, by their path in the documentation."""
    made = {
        "theorems.md": theorems_page(),
        "errata.md": errata_page(),
        "sources/index.md": sources_index(),
    }
    made |= {f"sources/{slug(source.key)}.md": source_page(source) for source in sources()}
    made |= {f"{name}.md": guide_page(name) for name in {**GUIDES, **PACKAGES}}
    course = sources()[0]
    made["course/index.md"] = course_index(course)
    for number, chapter in enumerate(course.chapters, 1):
        name = lecture(number, chapter)
        made |= {
            f"course/{name}.md": lecture_page(course, number),
            f"course/{name}.ipynb": notebook(chapter),
        }
    return made


EXERCISES = tomllib.loads((HERE / "course" / "exercises.toml").read_text(encoding="utf-8"))


def lecture(number: int, chapter: Chapter) -> str:
    """Return the file name of a part of the course."""
    words = re.findall("[a-z]+", chapter.title.lower())
    return f"{number:02d}-{'-'.join(words[:3])}"


def course_index(course: Source) -> str:
    """Return the page that leads through the course."""
    lines = [
        MARK,
        "# Course companion",
        "",
        "The lectures in their order, K1 to K109: each topic under its usual name with what it says, a cell that runs, the correction if "
        "the slides need one, a picture, and an exercise whose answer is a check. Every part is a page and a "
        "notebook of the same cells. The course as a table: [reading guide](../sources/course.md).",
        "",
    ]
    names = [lecture(i, chapter) for i, chapter in enumerate(course.chapters, 1)]
    for name, chapter in zip(names, course.chapters, strict=True):
        lines.append(
            f"- [{chapter.title}]({name}.md) ({chapter.first} to {chapter.last}; {{download}}`notebook <{name}.ipynb>`): {chapter.about}"
        )
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *names, "```", ""])


def lecture_page(course: Source, number: int) -> str:
    """Return a part of the course as a page."""
    chapter = course.chapters[number - 1]
    name = lecture(number, chapter)
    lines = [
        MARK,
        f"# {chapter.title}",
        "",
        chapter.about,
        "",
        f"The same cells as a {{download}}`notebook <{name}.ipynb>`.",
        "",
    ]
    for one in chapter.results:
        lines += [f"## {one.id}. {one.title}", "", one.statement, ""]
        for each in one.errata:
            lines += [
                f"*Correction* ({each.where}). Printed: {each.printed}. Holds: {each.corrected}.",
                "",
            ]
        lines += ["```pycon", one.example, "```", ""]
        lines += shown(one, chapter)
        exercise = EXERCISES[one.id]
        lines += [f"**Exercise.** {exercise['ask']}", "", f"*Answer.* {exercise['answer']}", ""]
        lines += ["```python", exercise["check"].strip("\n"), "```", ""]
    if number < len(course.chapters):
        following = course.chapters[number]
        lines.append(f"Read on: [{following.title}]({lecture(number + 1, following)}.md).")
    else:
        lines.append(
            "Read on: [all results by subject](../theorems.md), [the other sources](../sources/index.md)."
        )
    return "\n".join([*lines, ""])


def shown(one: Result, chapter: Chapter) -> list[str]:
    """Return the picture of a topic: the gallery's, else that of its experiment; a page has each once."""
    if one.picture:
        first = next(each for each in chapter.results if each.picture == one.picture)
        if first.id != one.id:
            return [f"The picture of {first.id} shows this too.", ""]
        return [f"![{one.title}](../gallery/{one.picture}.png)", ""]
    ledger = (HERE / "reproduction.md").read_text(encoding="utf-8")
    for drawn in re.findall(rf"\]\((images/reproduction/{one.experiment or '-'}\.\w+)\)", ledger):
        told = f"What `pindown reproduce {one.experiment}` draws, from the [ledger](../reproduction.md#{one.experiment}):"
        return [told, "", f"![{one.title}](../{drawn})", ""]
    return []


def notebook(chapter: Chapter) -> str:
    """Return a part of the course as a notebook, format 4.5, without outputs."""
    cells: list[dict[str, object]] = []

    def add(kind: str, text: str) -> None:
        lines = text.strip("\n").splitlines(keepends=True)
        cell: dict[str, object] = {
            "cell_type": kind,
            "id": f"cell-{len(cells)}",
            "metadata": {},
            "source": lines,
        }
        cells.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))

    add("markdown", f"# {chapter.title}\n\n{chapter.about}")
    for one in chapter.results:
        wrong = "".join(
            f"\n\n*Correction* ({e.where}). Printed: {e.printed}. Holds: {e.corrected}."
            for e in one.errata
        )
        add("markdown", f"## {one.id}. {one.title}\n\n{one.statement}{wrong}")
        add("code", "".join(each.source for each in doctest.DocTestParser().get_examples(one.example)))
        exercise = EXERCISES[one.id]
        add("markdown", f"**Exercise.** {exercise['ask']}\n\n*Answer.* {exercise['answer']}")
        add("code", exercise["check"])
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    book = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def guide_page(name: str) -> str:
    """Return a guide with what is made anew at its end: its results, and names that it does not mention."""
    page = BLOCK.sub("", (HERE / f"{name}.md").read_text(encoding="utf-8")).rstrip("\n")
    lines = [BEGIN]
    if name in GUIDES:
        fields, following = GUIDES[name]
        here = [one for one in results().values() if one.field in fields.split()]
        lines += ["## Results behind this page", ""]
        lines += [
            "Each with its statement, test and source on [the page of all results](theorems.md).",
            "",
        ]
        for one in here:
            functions = ", ".join(f"`{path.rpartition('.')[2]}`" for path in one.functions)
            lines.append(
                f"- {linked(one, 'theorems.md')} {one.title} ({', '.join(one.words)}): {functions}"
            )
        lines.append("")
    lines += more_names(PACKAGES.get(name, "").split(), page + "\n".join(lines))
    if name in GUIDES:
        lines.append(f"Read on: [{heading(following)}]({following}.md).")
    return page + "\n\n" + "\n".join([*lines, END, ""])


def more_names(packages: list[str], said: str) -> list[str]:
    """Return a list of the packages' public names that are not said yet, each with what it is."""
    mentioned, lines = set(re.findall(r"\w+", said)), []
    for path in packages:
        full = "pindown" if path == "pindown" else f"pindown.{path}"
        package = importlib.import_module(full)
        for name in sorted(package.__all__, key=str.lower):
            value = getattr(package, name)
            if name in mentioned or inspect.ismodule(value):
                continue
            mentioned.add(name)
            lines.append(f"- `{full}.{name}`{summary(value)}")
    if not lines:
        return []
    return [
        "## More names",
        "",
        "What else these packages offer; the [reference](api.md) has all of it.",
        "",
        *lines,
        "",
    ]


def summary(value: object) -> str:
    """Return the first sentence of a docstring, for a page; nothing for a constant."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return ""
    first = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    first = re.sub(r":math:`([^`]*)`", r"$\1$", first)
    first = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", first).replace("``", "`")
    sentence = re.split(r"(?<=[.:?;]) ", first)[0].rstrip(".:;")
    return f": {sentence[:1].lower()}{sentence[1:]}." if sentence else ""


def heading(name: str) -> str:
    """Return the title of a page."""
    found = re.search(r"^# (.+)$", (HERE / f"{name}.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def slug(key: str) -> str:
    """Return a name as addresses have it."""
    return key.replace("_", "-")


def linked(one: Result, to: str = "") -> str:
    """Return the link to a result."""
    return f"[{one.id}]({to}#{one.id.lower()})"


def theorems_page() -> str:
    """Return the list of all results, by subject and by source."""
    lines = [
        MARK,
        "# Every theorem, by subject and by source",
        "",
        f"The {len(results())} results of the five sources that pindown implements: what each says, which function computes it, "
        "which test checks it. The command line finds them by number or in plain words, with an example that runs:",
        "",
        "```sh",
        'pindown theorem "is my kernel positive definite"',
        'pindown theorem "Mukherjee 3.3.1"',
        "pindown theorem --list --source course",
        "```",
        "",
        "The same in Python: `pindown.theorems.find(words)` and `pindown.theorems.results()`. Where a source is wrong, the "
        "statement here is the corrected one; what was printed is on the page of [errata](errata.md). To read chapter by "
        "chapter, see the [reading guides](sources/index.md).",
        "",
        "## By subject",
        "",
    ]
    for field, title in FIELDS.items():
        here = [one for one in results().values() if one.field == field]
        lines += [f"### {title}", ""]
        lines += [f"- {linked(one)} {one.title}: {', '.join(one.words)}" for one in here]
        lines.append("")
    lines += ["## By source", ""]
    for source in sources():
        lines += [f"### {source.name}: {source.title}", ""]
        lines += [f"Chapter by chapter: [reading guide](sources/{slug(source.key)}.md).", ""]
        lines += ["| | result | says | computed by | see |", "|---|---|---|---|---|"]
        lines += [row(one) for chapter in source.chapters for one in chapter.results]
        lines.append("")
    return "\n".join(lines)


def row(one: Result) -> str:
    """Return a result as a row of its source's table."""
    functions = ", ".join(f"`{path.removeprefix('pindown.')}`" for path in one.functions)
    notes = [f"`{one.test}`"]
    if one.variants:
        notes.append("variants " + ", ".join(f"`{name}`" for name in one.variants))
    if one.errata:
        notes.append(
            "[erratum](errata.md)" if len(one.errata) == 1 else f"[{len(one.errata)} errata](errata.md)"
        )
    if one.experiment:
        notes.append(f"`pindown reproduce {one.experiment}`")
    if one.picture:
        notes.append(f"[picture](gallery/{one.picture}.md)")
    name = f"**{one.title}**, {one.number}" + (f"; also {one.also}" if one.also else "")
    return f"| [{one.id}]{{#{one.id.lower()}}} | {name} | {cell(one.statement)} | {functions} | {'; '.join(notes)} |"


def cell(text: str) -> str:
    """Return text that may stand in a table: a bar within a formula would end its cell."""
    text = re.sub(
        r"\$([^$]*)\$",
        lambda f: "$" + re.sub(r"(?<!\\)\|", r"\\vert ", f[1]).replace(r"\|", r"\Vert ") + "$",
        text,
    )
    return text.replace("|", r"\|")


def errata_page() -> str:
    """Return the page of errata with its table made anew; what stands around it is kept."""
    rows = [
        f"| {one.source}, {one.where} | {one.printed} | {one.corrected} | "
        + ", ".join(f"`{test}`" for test in one.tests)
        + " |\n"
        for one in errata()
    ]
    page = (HERE / "errata.md").read_text(encoding="utf-8")
    return TABLE.sub(lambda _: "".join(rows), page, count=1)


def sources_index() -> str:
    """Return the page that leads to the reading guides."""
    lines = [
        MARK,
        "# Reading guides",
        "",
        "For people who have one of the sources open: chapter by chapter, what is implemented where, what did not hold, and what "
        "to run. All results by subject are on [one page](../theorems.md); every correction is on [another](../errata.md); "
        "what came out of the experiments is in the [ledger](../reproduction.md).",
        "",
    ]
    for source in sources():
        n, wrong = (
            sum(len(c.results) for c in source.chapters),
            len([e for e in errata() if e.source == source.name]),
        )
        lines.append(
            f"- [{source.name}]({slug(source.key)}.md): {source.title}. {n} results, {wrong} corrections."
        )
    names = "\n".join(slug(source.key) for source in sources())
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", names, "```", ""])


def source_page(source: Source) -> str:
    """Return the reading guide of a source."""
    lines = [MARK, f"# {source.name}", "", f"{source.title}.", ""]
    lines += [
        "A line of every table is a result: its usual name and its number, the function that computes it, and where its claim is "
        "tested. With an example that runs:",
        "",
        "```sh",
        f"pindown theorem {source.chapters[0].first}",
        "```",
        "",
    ]
    for chapter in source.chapters:
        lines += chapter_section(chapter)
    lines += [
        "## Go on",
        "",
        "- [All results by subject](../theorems.md)",
        "- [What was wrong in the sources](../errata.md)",
    ]
    lines += ["- [The other guides](index.md)", ""]
    return "\n".join(lines)


def chapter_section(chapter: Chapter) -> list[str]:
    """Return a chapter: what it is about, its results, what did not hold, and what to run."""
    here = chapter.results
    lines = [
        f"## {chapter.title}",
        "",
        f"{chapter.about} The guide to this subject: [{chapter.guide}](../{chapter.guide}.md).",
        "",
    ]
    lines += ["| | result | where in the source | computed by |", "|---|---|---|---|"]
    for one in here:
        functions = ", ".join(f"`{path.removeprefix('pindown.')}`" for path in one.functions[:3])
        lines.append(f"| {linked(one, '../theorems.md')} | {one.title} | {one.number} | {functions} |")
    wrong = [each for each in errata() if any(one.id in each.results for one in here)]
    if wrong:
        lines += ["", "**What did not hold as printed**", ""]
        told = [f"- {each.where}: {each.printed}. Holds: {each.corrected}." for each in wrong]
        lines += [line.replace("](reproduction.md", "](../reproduction.md") for line in told]
    runs = list(dict.fromkeys(one.experiment for one in here if one.experiment))
    lines.append("")
    if runs:
        told = ", ".join(f"`{name}`" for name in runs)
        lines += [
            f"**To run again** with `pindown reproduce`: {told} ([what came out](../reproduction.md)).",
            "",
        ]
    shown = list(dict.fromkeys(one.picture for one in here if one.picture))
    if shown:
        told = ", ".join(f"[{name.replace('_', ' ')}](../gallery/{name}.md)" for name in shown)
        lines += [f"**Pictures**: {told}.", ""]
    return lines


if __name__ == "__main__":
    for name, text in pages().items():
        path = HERE / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

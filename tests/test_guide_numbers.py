"""Measured numbers in guides have a run behind them: a stale one, or a new one without a run, fails.

``guide_numbers.toml`` says where each comes from. A *claim* is compared: with rows of
``benchmarks/RESULTS.md``, with an experiment in ``docs/reproduction.md``, with the guide that it sums
up, or with a function below. A *kept* section holds what a long run printed; the page says which, and
the section may not grow unnoticed. A *plain* number was not measured: a definition, a default, a
promise. Code blocks run in ``test_docs.py``.
"""

import re
import tomllib
from bisect import bisect
from pathlib import Path

import pytest

from pindown.io._onnx.ops import OPERATIONS

ROOT = Path(__file__).parents[1]
RECORD = tomllib.loads(Path(__file__).with_name("guide_numbers.toml").read_text("utf-8"))
# Runs and tests themselves.
RESULTS = {
    ROOT / f"docs/{page}.md" for page in ("reproduction", "errata", "verification-results", "theorems")
}
# Made from the tables of results and of errata.
RESULTS |= {*ROOT.glob("docs/sources/*.md"), *ROOT.glob("docs/course/*.md")}
PAGES = sorted({ROOT / "README.md", *ROOT.glob("docs/**/*.md")} - RESULTS - {*ROOT.glob("docs/api/*")})
BENCHMARKS = (ROOT / "benchmarks/RESULTS.md").read_text("utf-8")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
UNITS = "s|ms|µs|us|seconds?|microseconds|minutes|hours|MB|GB|times|%|nats"
NAMES = re.compile(r"`[^`\n]*`|\$[^$]*\$|Python 3\.11", re.DOTALL)  # code, formulas
MEASURED = re.compile(
    rf"(?<![\w.^-]){NUMBER}(?: (?:to|and) {NUMBER})? ?(?:CPU |processor )?(?:{UNITS})(?![\w^-])"
    rf"|(?<![\w.-]){NUMBER} of {NUMBER}(?![\w-])"
    r"|(?<![\w.^-])\d[\d,]*\.\d+(?:e[-+]?\d+)?(?![\w.])"
)


def prose(page: Path) -> str:
    """Return a page with its code blocks blank, every character in its place."""
    return FENCE.sub(lambda block: re.sub(r"\S", " ", block.group()), page.read_text("utf-8"))


def page_of(entry: dict) -> Path:
    return ROOT / "README.md" if entry["page"] == "README.md" else ROOT / "docs" / entry["page"]


def numbers(text: str) -> list[tuple[float, float]]:
    """Return the numbers in a text, each with half a unit of its last digit."""
    found = []
    for token in re.findall(rf"(?<![\w.]){NUMBER}", text):
        digits, _, power = token.replace(",", "").partition("e")
        decimals = len(digits.partition(".")[2])
        found.append((float(token.replace(",", "")), 0.5 * 10.0 ** (int(power or 0) - decimals)))
    return found


def benchmark_row(label: str) -> str:
    rows = re.findall(
        r"^\| (.*?) \| (.*) \|$", (ROOT / "benchmarks/RESULTS.md").read_text("utf-8"), re.M
    )
    results = [result for what, result in rows if what == label]
    assert len(results) == 1, f"benchmarks/RESULTS.md has {len(results)} rows {label!r}"
    return f"{label}: {results[0]}"


def experiment_section(name: str) -> str:
    page = (ROOT / "docs/reproduction.md").read_text("utf-8")
    found = re.search(rf"^### {re.escape(name)}\n(.*?)(?=^##)", page, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reproduction.md has no section {name!r}"
    return found.group(1)


# ---------------------------------------------------------------------- numbers that are computed here


def verdicts() -> str:
    """Count the rows of all tables of experiments."""
    page = (ROOT / "docs/reproduction.md").read_text("utf-8")
    rows = re.findall(r"^\| \[[\w-]+\]\(#[\w-]+\) \| .*? \| (.*?)(?: ◇)? \|", page, re.MULTILINE)
    run = [verdict for verdict in rows if verdict != "declared"]
    counts = [run.count(verdict) for verdict in ("not reproduced", "underpowered")]
    return f"{len(rows)} {len(run)} {len(rows) - len(run)} {counts[0]} {counts[1]}"


def sharp_against_corrected() -> str:
    """Return the least and the largest ratio of the corrected and the sharp spectral bound."""
    table = [
        line.strip("| ").split(" | ")
        for line in experiment_section("pac-bayes-clusters").splitlines()
        if line.startswith("| ")
    ]
    header, rows = table[0], table[2:]
    at = [header.index(f"spectral, {form}") for form in ("corrected", "sharp")]
    ratios = [float(row[at[0]]) / float(row[at[1]]) for row in rows]
    return f"{min(ratios):.3g} {max(ratios):.3g}"


def microseconds_per_cell() -> str:
    each = [float(v) for v in re.findall(r"([\d.]+) us per cell", BENCHMARKS)]
    return f"{min(each)} {max(each)}"


def seconds_to_shrink() -> str:
    rows = re.findall(r"^\| shrink .*? ([\d.]+) s \|$", BENCHMARKS, re.MULTILINE)
    return f"{min(map(float, rows))} {max(map(float, rows))}"


def zero_matrix() -> str:
    from pindown_reproduction.relu_thesis.sparse_coding_recovery import PRINTED, zero_baseline

    found = [zero_baseline(*cell) for cell in PRINTED]
    return f"{min(found)} {max(found)}"


def coherences() -> str:
    from pindown_reproduction.relu_thesis.sparse_coding_gradient import EXPERIMENT, model_of

    found = [model_of(h, 0.01).coherence for h in EXPERIMENT.settings["quick"]["sizes"]]
    return f"{min(found)} {max(found)}"


def low_for_a_cube() -> str:
    """Return by how many percent the dimension of a cube of dimension ten is estimated too low."""
    found = re.search(
        r"cube of dimension 10 \| 10 \| ([\d.]+)", experiment_section("intrinsic-dimension")
    )
    return f"{100 * (1 - float(found.group(1)) / 10)}"


def share_excluded() -> str:
    """Return the percent of a box that 4,000 good points exclude with confidence 0.95."""
    return f"95 4000 {100 * (1 - 0.05 ** (1 / 4000)):.3f}"


def entropy_of_the_grammar() -> str:
    from pindown.learn.mutual_autoencoder.sentences import grammar_entropy

    return str(grammar_entropy())


def bands_found_through_noise() -> str:
    from tests.probes.test_filtered_stimuli_closed_loop import random_bands_found

    return f"{random_bands_found(1000) + random_bands_found(5000)} 40"


COMPUTED = {
    f.__name__: f
    for f in (
        verdicts,
        sharp_against_corrected,
        microseconds_per_cell,
        seconds_to_shrink,
        zero_matrix,
        coherences,
        low_for_a_cube,
        share_excluded,
        entropy_of_the_grammar,
        bands_found_through_noise,
    )
}


# ---------------------------------------------------------------------- the tests


def named(entry: dict) -> str:
    return f"{entry['page']}: {entry.get('text', entry.get('heading'))[:50]}"


def sources(claim: dict) -> str:
    parts = [benchmark_row(label) for label in claim.get("rows", [])]
    parts += [experiment_section(claim["experiment"])] if "experiment" in claim else []
    parts += [prose(ROOT / "docs" / claim["guide"])] if "guide" in claim else []
    parts += [COMPUTED[claim["computed"]]()] if "computed" in claim else []
    assert parts, f"{claim} names no run"
    return "\n".join(parts)


@pytest.mark.parametrize(
    "claim", RECORD["claim"], ids=lambda claim: f"{claim['page']}: {claim['text'][:50]}"
)
def test_a_number_is_what_its_run_produced(claim):
    assert claim["text"] in prose(page_of(claim)), "the page no longer says this"
    produced = [value for value, _ in numbers(sources(claim))]
    for value, half in numbers(claim["text"]):
        assert any(abs(value - other) <= half * (1 + 1e-9) for other in produced), (
            f"{value:g} is not what the run gave"
        )


def sections(page: Path) -> list[tuple[int, str]]:
    """Return where each section of a page begins, with its heading."""
    text = prose(page)
    return [(0, ""), *((m.start(), m.group(1)) for m in re.finditer(r"^#+ (.*)$", text, re.MULTILINE))]


def measured_in(page: Path) -> list[tuple[int, int, str]]:
    """Return start, end and heading of every measured number on a page."""
    parts = sections(page)
    starts = [start for start, _ in parts]
    return [
        (m.start(), m.end(), parts[bisect(starts, m.start()) - 1][1])
        for m in MEASURED.finditer(NAMES.sub(lambda name: " " * len(name.group()), prose(page)))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_measured_number_is_without_a_run(page):
    text = prose(page)
    entries = [entry for entry in RECORD["claim"] + RECORD["plain"] if page_of(entry) == page]
    spans = [(m.start(), m.end()) for e in entries for m in re.finditer(re.escape(e["text"]), text)]
    kept = {entry["heading"] for entry in RECORD["kept"] if page_of(entry) == page}
    for start, end, heading in measured_in(page):
        covered = heading in kept or any(a <= start and end <= b for a, b in spans)
        line = text[text.rfind("\n", 0, start) + 1 : text.find("\n", end)]
        assert covered, (
            f"{text[start:end]!r} has no entry in tests/guide_numbers.toml: {line.strip()[:150]}"
        )


@pytest.mark.parametrize(
    "entry", RECORD["kept"], ids=lambda entry: f"{entry['page']}: {entry['heading']}"
)
def test_kept_sections_say_what_made_them_and_do_not_grow(entry):
    page = page_of(entry)
    assert entry["by"] in page.read_text("utf-8"), "the page does not say how these numbers came about"
    if entry["by"].startswith("benchmarks/"):
        assert (ROOT / entry["by"]).is_file()
    found = sum(heading == entry["heading"] for _, _, heading in measured_in(page))
    assert found == entry["numbers"], "say in tests/guide_numbers.toml where the new numbers come from"


@pytest.mark.parametrize(
    "entry", RECORD["plain"], ids=lambda entry: f"{entry['page']}: {entry['text'][:50]}"
)
def test_plain_numbers_are_still_there(entry):
    assert entry["text"] in prose(page_of(entry)), "the page no longer says this: take the entry out"


def test_the_list_of_operations_is_that_of_the_reader():
    listed = set(
        re.findall(r"\b[A-Z]\w+", prose(ROOT / "docs/models.md").split("By their ONNX names")[1])
    )
    assert set(OPERATIONS) <= listed, f"docs/models.md leaves out {sorted(set(OPERATIONS) - listed)}"

"""Generated pages are those of the tables, and no page of the documentation is a dead end."""

import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest

from tests.test_api_reference import public_packages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SPECIFICATION = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
generate = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(generate)

PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
SECTIONS = ["start", "your-model", "learners", "theory", "reference"]
TREE = re.compile(r"```\{toctree\}\n:hidden:\n\n(.*?)```", re.DOTALL)


def children(name):
    found = TREE.search((DOCS / f"{name}.md").read_text(encoding="utf-8"))
    return found[1].split() if found else []


def test_generated_pages_are_those_of_the_tables():
    for name, text in generate.pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"{name}: run python docs/generate.py"


def test_five_sections_hold_every_page_once():
    assert children("index") == SECTIONS
    held = [name for section in SECTIONS for name in children(section)]
    assert len(set(held)) == len(held)
    nested = {
        f"{Path(name).parent.as_posix()}/{child}".removeprefix("./")
        for name in held
        for child in children(name)
    }
    everything = {name.removesuffix(".md") for name in PAGES}
    assert everything - {"index", *SECTIONS, *held, *nested} == set()


def test_every_page_leads_on():
    for name in PAGES:
        text = (DOCS / name).read_text(encoding="utf-8")
        assert re.search(r"\]\([\w./-]+\.md", text), f"{name} is a page without a way on"


def test_words_that_people_look_for_are_in_guides():
    guides = " ".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in generate.GUIDES)
    wanted = "kernel PCA;representer;RKHS;KKT;support vector;Haar;spectral bias;Xavier;DeepSets;GNN;FGSM"
    assert [word for word in wanted.split(";") if word not in guides] == []


def test_every_public_name_is_in_the_guide_of_its_package():
    guide_of = {
        "pindown" if package == "pindown" else f"pindown.{package}": guide
        for guide, packages in generate.PACKAGES.items()
        for package in packages.split()
    }
    missing = []
    for package in public_packages():
        text = (DOCS / f"{guide_of[package.__name__]}.md").read_text(encoding="utf-8")
        said = set(re.findall(r"\w+", text))
        names = [name for name in package.__all__ if not inspect.ismodule(getattr(package, name))]
        missing += [f"{package.__name__}.{name}" for name in names if name not in said]
    assert missing == [], "run python docs/generate.py"


BOOKS = sorted((DOCS / "course").glob("*.ipynb"))


def test_the_course_is_whole():
    assert len(BOOKS) == len(generate.sources()[0].chapters) == 10
    assert list(generate.EXERCISES) == [f"K{i}" for i in range(1, 110)]
    for exercise in generate.EXERCISES.values():
        assert exercise["ask"].endswith("?") and exercise["answer"] and "assert " in exercise["check"]


def test_every_topic_of_the_course_has_its_picture():
    chapters = generate.sources()[0].chapters
    bare = [one.id for each in chapters for one in each.results if not generate.shown(one, each)]
    assert bare == []


@pytest.mark.slow
@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_cells_of_a_notebook_run_from_top_to_bottom(book):
    cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
    namespace = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{book.name} {cell['id']}", "exec"), namespace)
    assert sum(cell["cell_type"] == "code" for cell in cells) >= 6

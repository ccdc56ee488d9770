"""Generated pages are those of the tables, and no page of the documentation is a dead end."""

import importlib.util
import re
from pathlib import Path

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

"""Every script of the gallery runs, asserts its claim and draws; the pages are those of the scripts."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "gallery"))
import render  # noqa: E402

sys.path.pop(0)

SCRIPTS = render.scripts()
# More than a second and a half of one core each: `make slow` runs them.
LONG = {
    "activation_maps",
    "implicit_gradient",
    "mirror_symmetry",
    "texture_and_shape",
    "certified_accuracy",
    "certified_squares",
    "curvature",
    "detector",
    "distillation",
    "early_exits",
    "fourier_bias",
    "information_dial",
    "kernel_probabilities",
    "nearest_adversarial_example",
    "recover",
    "smoothing",
    "tangent_kernel",
}
PICTURES = ROOT / "docs" / "gallery"
LARGEST_PICTURE, ALL_PICTURES = 150_000, 3_000_000  # bytes


def cases():
    return [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in SCRIPTS]


@pytest.mark.parametrize("name", cases())
def test_the_claim_holds_and_is_drawn(name):
    with render.figure_of(name) as figure:
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]
    assert len(figure.axes) >= 1
    assert (pixels < 200).any(axis=2).mean() > 0.003, "the figure is nearly empty"


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_and_ends_with_its_claim(name):
    tree = ast.parse(render.source(name))
    *_, asserted, last = tree.body
    assert any(isinstance(part, ast.Assert) for part in ast.walk(asserted)), "the claim comes last"
    assert ast.unparse(last).startswith("if __name__ == '__main__':\n    figure.savefig(")
    assert 25 <= len(render.source(name).splitlines()) <= 69
    claim, why = render.words(name)
    assert claim.endswith(".") and len(claim) <= 105 and len(why) > 80
    private = [
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and any(part.startswith("_") for part in node.module.split("."))
    ]
    assert not private, "a reader can paste it: public names only"


def test_the_pages_are_those_of_the_scripts():
    assert sorted(SCRIPTS) == sorted(
        path.stem for path in (ROOT / "gallery").glob("*.py") if path.stem != "render"
    )
    for name in SCRIPTS:
        written = (PICTURES / f"{name}.md").read_text(encoding="utf-8")
        assert written == render.page(name), "run: python gallery/render.py --pages"
    assert (PICTURES / "index.md").read_text(encoding="utf-8") == render.index()


def test_the_pictures_are_there_and_small():
    sizes = [(PICTURES / f"{name}.png").stat().st_size for name in SCRIPTS]
    assert max(sizes) < LARGEST_PICTURE and sum(sizes) < ALL_PICTURES
    assert {path.stem for path in PICTURES.glob("*.png")} == set(SCRIPTS)


def test_a_program_saves_its_figure_and_prints_its_claim(tmp_path):
    run = subprocess.run(
        [sys.executable, str(ROOT / "gallery" / "gan_game.py")],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert run.stdout.strip() == render.words("gan_game")[0]
    assert (tmp_path / "gan_game.png").stat().st_size > 10_000

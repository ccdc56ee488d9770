"""Run the scripts of the gallery and write their pages and figures into the documentation.

``python gallery/render.py`` runs all, ``python gallery/render.py cells shrink`` runs two,
``--pages`` runs none and writes the pages only.
"""

import argparse
import ast
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from pindown.geometry.plots.style import settings

HERE = Path(__file__).parent
OUT = HERE.parent / "docs" / "gallery"
# Palettes to try, the smallest first, and the share of pixels that may be off by 16 of 255 levels.
PALETTES, SPOILT = (64, 128, 255), 1e-3

SECTIONS = {
    "Which function is it?": "cells decision_boundary discs_without_a_fold line_through_a_deep_network "
    "plane_through_three_digits",
    "Two networks, one function?": "same_function witness rounded_weights shrink canonical recover",
    "From functions to networks": "from_function_to_network depth_of_a_maximum depth_separation "
    "sums_of_steps",
    "Why did training choose it?": "two_neurons fourier_bias optimiser_gap double_descent "
    "early_stopping nearest_solution noise_as_ridge penalties first_signals "
    "implicit_gradient tangent_kernel low_frequencies_first dropout_as_ridge curvature one_neuron",
    "How far can it be trusted?": "audit certified_squares nearest_adversarial_example "
    "certified_accuracy noise_is_harmless bounds_and_data three_attacks",
    "What does it look at?": "activation_maps fourier_mask texture_and_shape neural_predictivity",
    "Learners that know what they found": "detector kernel_probabilities perceptron_mistakes "
    "support_vectors three_margins margin_losses constrained_minimum feature_space "
    "kernel_refuted sums_of_kernels kernels_as_filters mercer kernel_speed kernel_components "
    "model_classes "
    "segmented_regression gate_from_bad_labels max_pooling "
    "sparse_codes distillation early_exits information_dial gan_game promised_steps",
    "Is it symmetric?": "invariant_kernel equivariant_maps equivariant_layers group_from_data "
    "necklaces moved_images circulant_layer augmented_training broken_layer smoothing soft_sort "
    "local_generators graphs_told_apart orbit_signature selective_signatures how_many_templates "
    "averaging_window gabor_waves illumination mirror_symmetry learned_pools",
}


def scripts() -> list[str]:
    """Return the names of all scripts, in the order of the pages."""
    return [name for names in SECTIONS.values() for name in names.split()]


def words(name: str) -> tuple[str, str]:
    """Return the claim of a script and the paragraphs on why it matters, from its docstring."""
    text = ast.get_docstring(ast.parse(source(name))) or ""
    claim, _, why = text.partition("\n\n")
    return " ".join(claim.split()), "\n\n".join(" ".join(p.split()) for p in why.split("\n\n"))


def source(name: str) -> str:
    """Return the text of a script."""
    return (HERE / f"{name}.py").read_text(encoding="utf-8")


@contextmanager
def figure_of(name: str) -> Iterator[Any]:
    """Run a script; inside the block its figure can be drawn, in the gallery's style."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    namespace: dict[str, Any] = {"__name__": f"gallery.{name}"}
    with (
        mpl.rc_context({**mpl.rcParamsDefault, "backend": "Agg", **settings()}),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # training that ends early says so; here it is meant
        try:
            exec(compile(source(name), str(HERE / f"{name}.py"), "exec"), namespace)
            yield namespace["figure"]
        finally:
            plt.close("all")
            torch.set_num_threads(threads)


def picture(name: str) -> bytes:
    """Run a script and return its figure as a small PNG file."""
    from PIL import Image

    raw = BytesIO()
    with figure_of(name) as figure:
        figure.savefig(raw, format="png", dpi=150, facecolor="white")
    return with_palette(Image.open(raw).convert("RGB"))


def with_palette(image: Any) -> bytes:
    """Return an image as a PNG file with the fewest colours that nobody sees are few."""
    import numpy as np
    from PIL import Image

    true, small = np.asarray(image, dtype=int), BytesIO()
    for colours in PALETTES:
        few = image.quantize(colours, dither=Image.Dither.NONE, kmeans=3)
        if (abs(np.asarray(few.convert("RGB")) - true).max(axis=2) > 16).mean() <= SPOILT:
            image = few
            break
    image.save(small, format="png", optimize=True)
    return small.getvalue()


def title(name: str) -> str:
    """Return the heading of a script's page: its name in words."""
    return name.replace("_", " ").capitalize()


def assertions(name: str) -> str:
    """Return the assertions of a script, as they are written."""
    text = source(name)
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]
    return "\n".join(ast.get_source_segment(text, node) or "" for node in found)


def page(name: str) -> str:
    """Return the page of a script."""
    claim, why = words(name)
    return f"""<!-- written by gallery/render.py -->
# {title(name)}

**{claim}**

![{claim}]({name}.png)

{why}

What holds whenever the program runs through:

```text
{assertions(name)}
```

The program ([gallery/{name}.py](../../gallery/{name}.py)):

```{{literalinclude}} ../../gallery/{name}.py
:language: python
```

[All figures](index.md)
"""


def index() -> str:
    """Return the page that shows all figures."""
    lines = ["<!-- written by gallery/render.py -->", "# Gallery", ""]
    lines.append(
        f"{len(scripts())} short programs, one claim each. Every one ends with an `assert` of its"
    )
    lines.append(
        "claim, and the tests run them all. Run as a program, each saves its figure beside you and"
    )
    lines.append("prints its claim.")
    for heading, names in SECTIONS.items():
        lines += ["", f"## {heading}", ""]
        for name in names.split():
            claim = words(name)[0]
            alt = claim.replace('"', "'")
            lines.append(f'- [<img src="{name}.png" alt="{alt}" width="300">]({name}.md)')
            lines.append(f"  [{claim}]({name}.md)")
    lines += ["", "```{toctree}", ":hidden:", "", *scripts(), "```", ""]
    return "\n".join(lines)


def write_pages() -> None:
    """Write all pages, without running anything."""
    OUT.mkdir(exist_ok=True)
    (OUT / "index.md").write_text(index(), encoding="utf-8")
    for name in scripts():
        (OUT / f"{name}.md").write_text(page(name), encoding="utf-8")


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="scripts; all if none is named")
    parser.add_argument("--pages", action="store_true", help="write the pages and run nothing")
    options = parser.parse_args()
    write_pages()
    for name in [] if options.pages else options.names or scripts():
        began = time.process_time()
        small = picture(name)
        (OUT / f"{name}.png").write_bytes(small)
        print(f"{name}: {time.process_time() - began:.1f} s, {len(small) / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()

"""Results show themselves in a notebook: escaped, short, with the kind of their proof."""

import numpy as np
import pytest

import pindown as pn
from pindown.findings import Finding, Quantity
from pindown.geometry import polyhedral_complex, region_count
from pindown.guarantees.bounds.bound import Bound
from pindown.text import card


@pytest.fixture(scope="module")
def absolute():
    return pn.ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])


def test_library_objects_have_a_card(absolute):
    box = pn.Box.cube(1, -1.0, 1.0)
    shown = {
        "ReluNetwork": absolute,
        "Diff": pn.diff(absolute, absolute),
        "Shrunk": pn.shrink(absolute),
        "PolyhedralComplex": polyhedral_complex(absolute, box),
        "RegionCount": region_count(absolute, box),
        "Bound": Bound("a", 0.5, 0.05),
    }
    for name, result in shown.items():
        page = result._repr_html_()
        assert page.startswith("<div") and f"<b>{name}</b>" in page and page.endswith("</div>")
    assert "◐ probability" in shown["Bound"]._repr_html_()
    assert "SAME at tolerance" in shown["Diff"]._repr_html_()


def test_text_is_escaped_and_cut():
    finding = Finding("X-01", "<i>", "a & b", Quantity(np.pi, "estimate"))
    assert "&lt;i&gt;" in finding._repr_html_() and "○ estimate" in finding._repr_html_()

    class Long:
        def __str__(self):
            return "x" * 100_000

    assert len(card(Long())) < 5000

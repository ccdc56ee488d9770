"""The figures of the source: what was printed holds for zigzags, not for zonotopes."""

import pytest

from pindown.geometry.counts.piece_families import zonotope_pieces
from pindown_reproduction import EXPERIMENTS, reproduce


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return reproduce(EXPERIMENTS["depth-separation"], out=tmp_path_factory.mktemp("figures"))


def test_printed_numbers_beside_exact_ones(run):
    rows = {row[0]: row for row in run.outcome.rows}
    assert rows["2.1"][1:3] == ("6", 6) and rows["2.1"][-1] == "yes"
    for panel, m, k, printed in (
        ("left", 2, 2, "4 or 8"),
        ("middle", 4, 2, "12 or 16"),
        ("right", 4, 3, "24 or 32"),
    ):
        row = rows[f"2.2 {panel}"]
        assert row[1] == printed and row[2] == zonotope_pieces(2, k, 2, m) and row[-1] == "no"
        assert row[3] == row[4]  # sizes and depths are right
    assert [rows[f"2.2 {panel}"][2] for panel in ("left", "middle", "right")] == [17, 33, 65]
    family = [row for name, row in rows.items() if name.startswith("family")]
    assert len(family) == 3 and all(row[-1] == "yes" for row in family)
    assert run.outcome.verdict == "not reproduced" and "twice the vertices" in run.outcome.words


def test_the_figure_has_six_panels(run):
    text = (run.folder / "figure.svg").read_text()
    assert len(text) > 10_000 and text.count('id="axes_') == 6

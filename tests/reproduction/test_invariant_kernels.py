"""Samples that a symmetry saves: three times as many do not make up for a group of eight elements."""

import numpy as np
import pytest

from pindown_reproduction.course.invariant_kernels import EXPERIMENT, cells, compare, draw, run


@pytest.fixture(scope="module")
def results():
    return [(cell, run(cell)) for cell in cells({"ns": [20, 40, 80], "seeds": 6})]


def test_invariant_kernel_at_n_is_as_good_as_the_plain_one_at_three_times_n(results):
    for name in ("C8 on 8 points", "D4 on itself"):
        mine = [found for cell, found in results if cell["group"] == name]
        assert len(mine) == 6 and mine[0]["order"] == 8
        plain, invariant = (
            np.mean([found[kind] for found in mine], axis=0) for kind in ("plain", "invariant")
        )
        sizes = mine[0]["ns"]
        for n in (20, 40, 80):
            assert invariant[sizes.index(n)] <= plain[sizes.index(3 * n)]


def test_the_rule_decides_by_the_means(results):
    outcome = compare(results)
    assert outcome.verdict == "reproduced" and len(outcome.rows) == 9
    swapped = [(c, {**f, "plain": f["invariant"], "invariant": f["plain"]}) for c, f in results]
    assert compare(swapped).verdict == "not reproduced"
    assert len(draw(results).axes) == 3 and EXPERIMENT.id == "invariant-kernels"

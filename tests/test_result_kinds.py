"""Every result says how it is known."""

import numpy as np
import pytest

from pindown import Recovered, ReluNetwork, diff, shrink
from pindown.evidence import KINDS
from pindown.geometry import along_segment, fold_set, on_plane, polyhedral_complex


@pytest.fixture(scope="module")
def net():
    rng = np.random.default_rng(0)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((5, 2)), rng.standard_normal(5)), (rng.standard_normal((1, 5)), [0.0])]
    )


def test_what_is_proved_or_searched_completely_is_exact(net):
    cells = polyhedral_complex(net, (-1, 1))
    plane = on_plane(net, [0, 0], [1, 0], [0, 1])
    line = along_segment(net, [-1.0, 0.0], [1.0, 0.0])
    results = (diff(net, net), shrink(net), cells, fold_set(net, (-1, 1)), plane, line)
    assert [result.kind for result in results] == ["exact"] * 6
    assert polyhedral_complex(net, (-1, 1), certified=True).kind == "exact"


def test_a_search_that_was_stopped_is_not(net):
    cells = polyhedral_complex(net, (-1, 1), max_cells=1)
    assert not cells.complete and cells.kind == "estimate" and cells.kind in KINDS


def test_what_samples_checked_is_an_estimate_unless_it_is_proved(net):
    twice = ReluNetwork.from_layers([net.layers[0], (2 * net.layers[1].weight, [0.0])])
    assert Recovered(net, 10).kind == Recovered(None, 10).kind == "estimate"
    assert Recovered(net, 10, 0.0, excluded_share=0.1).kind == "probability"
    assert Recovered(net, 10, comparison=diff(net, twice, budget=1)).kind == "estimate"
    assert Recovered(net, 10, comparison=diff(net, net)).kind == "exact"

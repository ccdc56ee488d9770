"""Exploration run to the end finds the exact complex; cut short it says so."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.regions.neighbours import explore
from tests.geometry.oracles import (
    KINDS,
    brute_force_cells,
    cube,
    degenerate_network,
    random_network,
    reference_network,
)

CROSS = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])


@pytest.mark.parametrize("kind", [*KINDS, "general"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_all_cells_and_all_shared_facets(kind, d):
    rng = np.random.default_rng(11)
    net = (
        random_network(rng, d, (5, 4)) if kind == "general" else degenerate_network(kind, d, rng, (5, 4))
    )
    exact = exact_complex(net, cube(d))
    found = explore(net, rng.uniform(-1, 1, (2, d)), box=cube(d))
    number = {tuple(pattern): i for i, pattern in enumerate(exact.patterns)}
    assert found.complete and len(found.patterns) == len({tuple(p) for p in found.patterns})
    names = [number[tuple(pattern)] for pattern in found.patterns]
    assert sorted(names) == list(range(exact.n_regions))
    pairs = {tuple(sorted((names[i], names[j]))) for i, j in found.neighbours}
    assert pairs == {tuple(sorted(pair)) for pair in exact.neighbours}
    for (i, j), unit in zip(found.neighbours, found.neighbour_units, strict=True):
        assert found.regions[i].pattern[unit] != found.regions[j].pattern[unit]
    assert sum(region.volume for region in found.regions) == pytest.approx(2.0**d, rel=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_four_inputs_against_sampling_and_linear_programs(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, 4, (4, 3))
    found = explore(net, np.zeros((1, 4)), box=cube(4))
    assert {tuple(bool(on) for on in p) for p in found.patterns} == brute_force_cells(net, cube(4), rng)


def test_all_of_the_plane():
    # Published count of three other tools for this network without a box.
    found = explore(reference_network((2, 16, 16, 1), 0), [[0.1, 0.2]])
    assert found.complete and found.n_regions == 556


def test_budget_and_max_cells_end_the_search():
    net = reference_network((2, 16, 16, 1), 0)
    nothing = explore(net, [[0.1, 0.2]], box=(-1, 1), budget=0)
    assert (nothing.n_regions, nothing.complete, nothing.stopped) == (0, False, "budget")
    assert nothing.start.tolist() == [-1] and nothing.patterns.shape == (0, 32)
    some = explore(net, [[0.1, 0.2], [-0.5, 0.3]], box=(-1, 1), max_cells=5)
    assert (some.n_regions, some.complete, some.stopped) == (5, False, "max_cells")
    assert some.n_waiting > 0 and some.neighbours.max() < 5 and some.start.tolist() == [0, 1]
    assert "stopped by max_cells" in repr(some)


def test_inputs_of_one_cell_share_it():
    found = explore(CROSS, [[1.0, 1.0], [2.0, 3.0], [-1.0, 1.0]], box=(-5, 5))
    assert found.start.tolist() == [0, 0, 1] and found.n_regions == 4


def test_an_interrupt_returns_what_was_found():
    calls = []

    def stop_after_three(what, visited, seen):
        calls.append((visited, seen))
        if visited == 3:
            raise KeyboardInterrupt

    found = explore(CROSS, [[1.0, 1.0]], box=(-5, 5), progress=stop_after_three)
    assert [visited for visited, _ in calls] == [1, 2, 3]
    assert (found.n_regions, found.complete, found.stopped) == (3, False, "interrupted")


def test_networks_without_folds():
    found = explore(ReluNetwork.from_layers([([[1.0, 2.0]], [0])]), [[0.0, 0.0]])
    assert found.complete and found.n_regions == 1 and found.neighbours.shape == (0, 2)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="1 of 1 inputs lie outside"):
        explore(CROSS, [[9.0, 0.0]], box=(-5, 5))
    with pytest.raises(ValueError, match="budget"):
        explore(CROSS, [[1.0, 0.0]], budget=-1)
    with pytest.raises(ValueError, match="budget"):
        explore(CROSS, [[1.0, 0.0]], budget=float("nan"))
    with pytest.raises(ValueError, match="max_cells"):
        explore(CROSS, [[1.0, 0.0]], max_cells=0)

"""Areas of classes and bands: they tile the box, and say what the network says."""

import itertools

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.facts.plane_areas import class_areas, level_areas


def random_cells(widths, seed=0, box=(-1, 1)):
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(widths)
    layers = [(rng.standard_normal((m, n)), 0.5 * rng.standard_normal(m)) for n, m in pairs]
    return polyhedral_complex(ReluNetwork.from_layers(layers), box)


def interior_points(areas):
    return np.array([areas.polygon(i).mean(axis=0) for i in range(len(areas))])


@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_class_areas_tile_the_box_and_have_the_largest_output(outputs):
    cells = random_cells((2, 9, 7, outputs), seed={1: 3, 2: 9, 5: 5}[outputs])
    areas = class_areas(cells)
    assert areas.sizes.min() >= 0 and areas.sizes.sum() == pytest.approx(4.0)
    by_cell = np.bincount(areas.cells, weights=areas.sizes)
    assert by_cell == pytest.approx(cells.volumes)
    solid = areas.sizes > 1e-9
    values = cells.net(interior_points(areas)[solid])
    won = (values[:, 0] > 0).astype(int) if outputs == 1 else values.argmax(axis=1)
    assert (won == areas.labels[solid]).all() and len(np.unique(won)) > 1


def test_a_class_that_wins_only_inside_a_cell_is_found():
    # max(-x, x, 0.5) on one cell: the constant wins in the middle, at no corner.
    net = ReluNetwork.from_layers([([[-1.0, 0], [1.0, 0], [0, 0]], [0, 0, 0.5])])
    areas = class_areas(polyhedral_complex(net, (-1, 1)))
    assert dict(zip(areas.labels.tolist(), areas.sizes.tolist(), strict=True)) == {
        0: 1.0,
        1: 1.0,
        2: 2.0,
    }


def test_of_equal_outputs_the_first_wins():
    net = ReluNetwork.from_layers([([[1.0, 0], [1.0, 0], [-1.0, 0]], [0, 0, 0])])
    areas = class_areas(polyhedral_complex(net, (-1, 1)))
    assert sorted(areas.labels.tolist()) == [0, 2] and areas.sizes.sum() == pytest.approx(4.0)
    same = ReluNetwork.from_layers([(np.zeros((2, 2)), [3, 3])])
    assert class_areas(polyhedral_complex(same, (0, 1))).labels.tolist() == [0]


def test_bands_lie_between_their_levels():
    cells = random_cells((2, 8, 8, 2), seed=1)
    levels = [-1.0, -0.25, 0.0, 0.5, 2.0]
    areas = level_areas(cells, levels, output=1)
    assert areas.sizes.sum() == pytest.approx(4.0)
    values = cells.net(interior_points(areas))[:, 1]
    solid = areas.sizes > 1e-9
    assert (np.searchsorted(levels, values)[solid] == areas.labels[solid]).all()
    assert np.allclose(level_areas(cells, [], output=0).sizes, cells.volumes)


def test_what_is_no_area_is_refused():
    cells = random_cells((2, 3, 1))
    with pytest.raises(ValueError, match="ascending order; got \\[1, 0\\]"):
        level_areas(cells, [1, 0])
    with pytest.raises(ValueError, match="finite"):
        level_areas(cells, [np.nan])
    with pytest.raises(ValueError, match="output must be an integer of at least 0 and at most 0; got 1"):
        level_areas(cells, [0.0], output=1)
    with pytest.raises(ValueError, match="takes 3 inputs"):
        class_areas(random_cells((3, 2, 1)))


def test_no_cells_no_areas():
    net = random_cells((2, 3, 2)).net
    empty = polyhedral_complex(net, (-1, 1), budget=0)
    assert len(class_areas(empty)) == 0 and len(class_areas(empty).sizes) == 0
    assert len(level_areas(empty, [0.0])) == 0

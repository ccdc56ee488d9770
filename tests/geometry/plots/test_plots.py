"""Pictures: they draw what is there, on the axes given, without global state."""

import itertools

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.folds.fold_set import fold_set
from pindown.geometry.plots import (
    animate_training,
    plot_cells,
    plot_folds,
    plot_segment,
    plot_surface,
    plot_training,
)
from pindown.geometry.plots.cells import colour_pieces, fans, layer_of_last_fold
from pindown.geometry.slices.plane import plane_through
from pindown.geometry.slices.segment import along_segment


def random_net(widths, seed=0):
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(widths)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), 0.5 * rng.standard_normal(m)) for n, m in pairs]
    )


@pytest.fixture(scope="module")
def cells():
    return polyhedral_complex(random_net((2, 9, 7, 3), seed=1), (-1, 1))


@pytest.fixture(scope="module")
def plane():
    net = random_net((8, 10, 6, 3), seed=2)
    return plane_through(net, *np.random.default_rng(2).standard_normal((3, 8)))


def pixels(ax):
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())[..., :3].astype(int)


@pytest.mark.parametrize("color", ["piece", "layer", "output", "class", "none"])
def test_cells_are_drawn_in_every_colouring(cells, color):
    points = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    ax = plot_cells(cells, color=color, points=points, labels=np.arange(20) % 2)
    assert ax.get_xlim() == (-1, 1) and ax.get_ylim() == (-1, 1) and ax.get_aspect() == 1.0
    assert len(np.unique(pixels(ax).reshape(-1, 3), axis=0)) > 50
    assert sum(len(line.get_xdata()) for line in ax.lines) == 20


def test_class_colours_are_those_of_the_largest_output(cells):
    ax = plot_cells(cells, color="class", sides=False, legend=False)
    image = pixels(ax)
    points = np.random.default_rng(0).uniform(-0.98, 0.98, (400, 2))
    x, y = ax.transData.transform(points).T
    seen = [tuple(image[image.shape[0] - 1 - int(b), int(a)]) for a, b in zip(x, y, strict=True)]
    won = cells.net(points).argmax(axis=1)
    common = {
        k: max(set(own), key=own.count)
        for k in set(won.tolist())
        for own in [list(itertools.compress(seen, won == k))]
    }
    assert len(set(common.values())) == len(common) >= 2
    assert np.mean([pixel == common[k] for pixel, k in zip(seen, won.tolist(), strict=True)]) > 0.97


def test_shading_is_exact_at_corners_of_cells(cells):
    ax = plot_cells(cells, color="output", output=2)
    (shading,) = [c for c in ax.collections if c.get_array() is not None]
    assert np.allclose(shading.get_array(), cells.net(cells.cell_vertices)[:, 2])
    a, b, c = (cells.cell_vertices[corner] for corner in fans(cells).T)
    doubled = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    assert doubled.min() >= -1e-12 and doubled.sum() / 2 == pytest.approx(4.0)


def test_pieces_that_touch_have_different_colours(cells):
    colours, pieces = colour_pieces(cells), cells.pieces
    i, j = cells.neighbours.T
    assert (colours[i] != colours[j])[pieces[i] != pieces[j]].all()
    assert all(len(np.unique(colours[pieces == piece])) == 1 for piece in range(cells.n_pieces))


def test_the_layer_of_a_cell_is_that_of_its_deepest_fold(cells):
    layers = layer_of_last_fold(cells)
    for i, region in enumerate(cells.regions):
        units = region.facets[region.facets < cells.net.size]
        assert layers[i] == max((1 if unit < 9 else 2 for unit in units), default=0)


def test_folds_are_drawn_by_layer_and_invisible_ones_apart(cells):
    folds = fold_set(cells)
    drawn = [len(c.get_segments()) for c in plot_folds(folds).collections]
    assert sum(drawn) == len(folds)
    hidden = ReluNetwork.from_layers([([[1.0, 0], [0, 1.0]], [0, 0]), ([[1.0, 0.0]], [0])])
    ax = plot_folds(polyhedral_complex(hidden, (-1, 1)))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["layer 1", "not visible"]


def _faces_before_3_11(surface):
    return [surface._vec[:3, part].T for part in surface._segslices]


def test_the_surface_is_the_graph(cells):
    ax = plot_surface(cells, output=1)
    (surface,) = ax.collections
    faces = surface._faces if hasattr(surface, "_faces") else _faces_before_3_11(surface)
    corners = np.concatenate([np.array(path)[:, :3] for path in faces])
    assert np.allclose(cells.net(corners[:, :2])[:, 1], corners[:, 2])
    assert len(faces) == cells.n_regions and len(np.unique(pixels(ax))) > 50


def test_a_segment_shows_outputs_and_switches():
    net = random_net((6, 12, 9, 2), seed=3)
    a, b = np.random.default_rng(3).standard_normal((2, 6))
    folds = along_segment(net, a, b)
    ax = plot_segment(folds)
    assert len(ax.lines) == 2 and ax.get_xlim() == (0, 1)
    for k, line in enumerate(ax.lines):
        t, values = line.get_data()
        assert np.allclose(net(folds.at(t))[:, k], values)
    assert sum(len(c.get_segments()) for c in ax.collections) == len(folds.t)
    assert len(plot_segment(folds, outputs=[1]).lines) == 1


def test_slices_are_drawn_with_inputs_projected(plane):
    ax = plot_cells(plane, color="class", points=plane.lift(plane.marks), labels=["a", "b", "c"])
    dots = np.array([line.get_xydata()[0] for line in ax.lines])
    assert np.allclose(dots, plane.marks) and ax.get_xlabel() == "s"
    assert plot_folds(plane).get_ylabel() == "t" and plot_surface(plane).get_zlabel() == "output 0"


def test_given_axes_are_used_and_no_window_is_opened(cells):
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    before = plt.get_fignums()
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot_cells(cells, ax=left) is left and plot_folds(cells, ax=right) is right
    assert plot_surface(cells, ax=figure.add_subplot(projection="3d")).figure is figure
    plot_cells(cells)
    assert plt.get_fignums() == before


def test_cells_that_are_not_there_leave_the_picture_empty(cells):
    empty = polyhedral_complex(cells.net, (-1, 1), budget=0)
    for color in ("piece", "layer", "output", "class", "none"):
        assert len(pixels(plot_cells(empty, color=color)))
    assert len(pixels(plot_surface(empty))) and len(pixels(plot_folds(empty)))


def test_checkpoints_side_by_side_and_as_an_animation(tmp_path):
    from PIL import Image

    nets = [random_net((2, 6, 4, 2), seed=i) for i in range(3)]
    points, labels = np.random.default_rng(0).uniform(-1, 1, (10, 2)), np.arange(10) % 2
    for kind in ("class", "output", "folds"):
        figure = plot_training(nets, (-1, 1), kind=kind, points=points, labels=labels, columns=2)
        shown = [ax for ax in figure.axes if ax.get_visible()]
        assert len(shown) == 3 and all("cells" in ax.get_title() for ax in shown)
    path = animate_training(nets, (-1, 1), tmp_path / "a.gif", titles=["a", "b", "c"], points=points)
    with Image.open(path) as movie:
        assert movie.n_frames == 3 and movie.is_animated


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: plot_cells(c, color="red"), ValueError, "color must be one of 'piece', 'layer'"),
        (lambda c: plot_cells(c, color="output", output=3), ValueError, "and at most 2; got 3"),
        (lambda c: plot_cells(c, points=[[0.0] * 3]), ValueError, r"shape \(n, 2\); got \(1, 3\)"),
        (lambda c: plot_cells(c, points=[0.0, 0.0]), ValueError, r"shape \(n, d\)"),
        (lambda c: plot_cells(c, labels=[1]), ValueError, "labels were given without the points"),
        (lambda c: plot_cells(c, points=[[0.0, 0]], labels=[1, 2]), ValueError, "one entry per point"),
        (
            lambda c: plot_cells(c.net),
            TypeError,
            "needs a PolyhedralComplex or a PlaneSlice; got ReluNetwork",
        ),
        (lambda c: plot_surface(c, ax=plot_cells(c)), ValueError, 'projection="3d"'),
        (plot_segment, TypeError, "must be one SegmentFolds"),
        (lambda c: plot_training([], (-1, 1)), ValueError, "at least one network"),
        (
            lambda c: plot_training([random_net((3, 2, 1))], (-1, 1)),
            ValueError,
            "network 0 takes 3 inputs",
        ),
        (lambda c: plot_training([c.net], (-1, 1), titles=["a", "b"]), ValueError, "2 titles for 1"),
        (lambda c: animate_training([c.net], (-1, 1), "a.mp4"), ValueError, "a file that ends in .gif"),
        (
            lambda c: animate_training([c.net], (-1, 1), "a.gif", fps=0),
            ValueError,
            "fps must be a finite number above 0",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(cells, call, error, message):
    with pytest.raises(error, match=message):
        call(cells)


def test_segments_refuse_outputs_that_are_not_there():
    folds = along_segment(random_net((2, 3, 2)), [0.0, 0.0], [1.0, 1.0])
    for outputs in ([2], [-1], []):
        with pytest.raises(ValueError, match="numbers from 0 to 1"):
            plot_segment(folds, outputs=outputs)


def test_more_inputs_than_two_are_told_what_to_do():
    with pytest.raises(ValueError, match="on_plane"):
        plot_cells(polyhedral_complex(random_net((3, 2, 1)), (-1, 1)))

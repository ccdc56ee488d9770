"""What an audit says about cells, against networks whose cells are known and against brute force."""

import itertools
import re
import time

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.compiling import by
from pindown.findings.pictures import Curves, PlaneMap
from pindown.findings.samples import median_error
from pindown.findings.which_function import _cells as shared
from pindown.geometry.complex.counting import count_regions
from pindown.geometry.plots import folds as raster

PATIENT = 300.0  # seconds: a compiler may have to run first


def random_net(widths, seed=0):
    rng = np.random.default_rng(seed)
    pairs = itertools.pairwise(widths)
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), 0.5 * rng.standard_normal(m)) for n, m in pairs]
    )


def ask(net, code, X=None, y=None, **options):
    finding = audit(net, X, y, only=[code], budget=PATIENT, **options)[code]
    assert finding.status != "error", finding.verdict
    return finding


@pytest.fixture(scope="module")
def cross():
    """relu(x) + relu(y): four cells on the square."""
    return ReluNetwork.from_layers([(np.eye(2), [0, 0]), ([[1.0, 1.0]], [0])])


# ------------------------------------------------------------------ GEO-01


@pytest.mark.parametrize("widths", [(1, 6, 5, 2), (2, 8, 6, 1), (3, 6, 5, 2)])
def test_the_number_of_cells_is_that_of_the_patterns_on_a_fine_grid(widths):
    net = random_net(widths, seed=4)
    finding = ask(net, "GEO-01", box=(-1, 1))
    steps = {1: 100_001, 2: 701, 3: 81}[widths[0]]
    points = np.stack(np.meshgrid(*[np.linspace(-1, 1, steps)] * widths[0]), axis=-1)
    seen = len({row.tobytes() for row in net.pattern(points.reshape(-1, widths[0]))})
    assert 0.85 * finding.number.value <= seen <= finding.number.value
    assert finding.number.value == count_regions(net, (-1, 1)) and finding.number.kind == "exact"
    assert finding.hypotheses[0].status == "checked"
    cells = [row[2] for row in finding.table.rows]
    assert cells == sorted(cells) and cells[-1] == finding.number.value


def test_cells_and_pieces_of_a_network_that_folds_without_effect(cross):
    assert ask(cross, "GEO-01", box=(-1, 1)).verdict.startswith("4 cells, 4 affine pieces; ")
    lines = ReluNetwork.from_layers([([[1.0, 0], [-1.0, 0], [0, 1]], [0] * 3), ([[1.0, -1, 0]], [0])])
    finding = ask(lines, "GEO-01", box=(-1, 1))  # relu(x) - relu(-x) = x, and y is not used
    assert finding.verdict.startswith("4 cells, 1 affine piece;")
    assert "larger than its function needs" in finding.reading
    assert finding.table.rows == ((1, 3, 4, "7"),)


def test_inputs_that_do_not_vary_are_left_out():
    net = random_net((9, 8, 6, 2), seed=1)
    lower, upper = np.full(9, 0.25), np.full(9, 0.25)
    lower[[2, 5]], upper[[2, 5]] = -1.0, 1.0
    finding = ask(net, "GEO-01", box=(lower, upper))
    points = np.full((301**2, 9), 0.25)
    points[:, [2, 5]] = list(itertools.product(np.linspace(-1, 1, 301), repeat=2))
    seen = len({row.tobytes() for row in net.pattern(points)})
    assert 0.8 * finding.number.value <= seen <= finding.number.value
    assert "7 inputs of it fixed" in finding.hypotheses[0].text


def test_what_cannot_be_counted_says_why():
    many = ask(random_net((7, 4, 1)), "GEO-01", box=(-1, 1))
    assert many.status == "not applicable" and "up to 6 inputs and here 7 vary" in many.verdict
    point = ask(random_net((3, 4, 1)), "GEO-01", np.ones((5, 3)))
    assert point.verdict.endswith("because the bounding box of the data is a single point")
    far = ask(random_net((3, 4, 1)), "GEO-01", box=(-1e150, 1e150))
    assert "too large or too small" in far.verdict
    assert ask(random_net((3, 1)), "GEO-01", box=(-1, 1)).verdict.endswith("it has no ReLU")


def test_an_unfinished_count_is_a_lower_bound(monkeypatch):
    monkeypatch.setattr(shared, "MAX_CELLS_COUNTED", 50)
    monkeypatch.setattr("pindown.findings.which_function.linear_regions.MAX_CELLS_COUNTED", 50)
    net = random_net((3, 30, 30, 1))
    finding = ask(net, "GEO-01", box=(-1, 1))
    assert finding.verdict.startswith("at least 50 cells;") and finding.number.bound == "lower"
    assert "stopped at 50 cells" in finding.hypotheses[0].text
    assert finding.hypotheses[0].status == "violated" and count_regions(net, (-1, 1)) >= 50


def test_bounds_of_very_deep_networks_are_written_as_powers_of_ten():
    net = ReluNetwork.from_layers(
        [([[1.0]] * 9, [0] * 9), *[(np.eye(9), [0] * 9)] * 500, ([[1.0] * 9], [0])]
    )
    finding = ask(net, "GEO-01", box=(-1, 1))
    assert finding.verdict.startswith("2 cells,") and re.search(r"at most about 1e501$", finding.verdict)


# ------------------------------------------------------------------ GEO-02


def test_no_unit_switches_within_the_distance_and_one_does_beyond():
    net = random_net((4, 12, 8, 2), seed=2)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    finding = ask(net, "GEO-02", X)
    assert finding.number.kind == "exact"
    distances = np.array([by_hand(net, x) for x in X])
    rows = {name: distance for name, distance, _ in finding.table.rows}
    assert rows["nearest"] == pytest.approx(distances.min())
    assert rows["median"] == pytest.approx(np.median(distances))
    for x, distance in zip(X, distances, strict=True):
        steps = rng.standard_normal((200, 4))
        steps *= distance / np.linalg.norm(steps, axis=1, keepdims=True)
        assert (net.pattern(x + 0.999 * steps) == net.pattern(x)).all()


def by_hand(net, x):
    """min |z| / |gradient| over all units, the gradients from networks cut after each layer."""
    gaps = []
    for layer in range(1, net.depth):
        A, _ = net[:layer].local_affine(x)
        gaps.append(np.abs(net[:layer](x)) / np.linalg.norm(A, axis=1))
    return np.concatenate(gaps).min()


def test_distances_stand_beside_the_distance_between_rows():
    # One fold at 0, rows at -3, -1, 1, 3: distances 3, 1, 1, 3.
    net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    finding = ask(net, "GEO-02", [[-3.0], [-1.0], [1.0], [3.0]])
    rows = {name: distance for name, distance, _ in finding.table.rows}
    assert (rows["nearest"], rows["median"], rows["farthest"]) == (1.0, 2.0, 3.0)
    assert finding.number.value in (2 / 2, 2 / 4)  # the median distance of two rows is 2 or 4
    assert "layer 1 for 100% of the rows" in finding.reading


def test_a_sample_of_the_rows_is_an_estimate_with_its_error(monkeypatch):
    monkeypatch.setattr("pindown.findings.which_function.linear_regions.MAX_FOLD_ROWS", 400)
    net, rng = random_net((3, 10, 1)), np.random.default_rng(1)
    X = rng.standard_normal((4000, 3))
    finding = ask(net, "GEO-02", X)
    assert finding.number.kind == "estimate" and finding.number.n == 400
    truth = np.median([by_hand(net, x) for x in X])
    measured = next(distance for name, distance, _ in finding.table.rows if name == "median")
    relative = finding.number.standard_error / finding.number.value
    assert abs(measured - truth) <= 4 * relative * truth
    # The median of n normal numbers has the deviation sqrt(pi / 2n).
    error = median_error(rng.standard_normal(100_000))
    assert error == pytest.approx(np.sqrt(np.pi / 2 / 100_000), rel=0.3)


# ------------------------------------------------------------------ GEO-03


def test_a_dead_half_of_the_box_is_measured_exactly():
    net = ReluNetwork.from_layers([([[1.0, 0.0]], [-0.5]), ([[2.0]], [7.0])])
    finding = ask(net, "GEO-03", [[0.0, 0.0], [0.2, 1.0], [1.0, 0.3], [0.9, 0.9]], box=(0, 1))
    assert finding.number.value == pytest.approx(0.5) and finding.number.kind == "exact"
    assert finding.verdict == "a whole layer is off on 50.0% of the box, 50.0% of 4 rows of the data"
    assert finding.sentence.startswith("On 50.0% of the given box [0, 1]^2 and on 50.0% of 4 rows")


def test_units_that_are_zero_everywhere_do_not_keep_a_layer_alive():
    net = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 0.0]], [0, 0]), ([[2.0, 1.0]], [7.0])])
    assert ask(net, "GEO-03", box=(-1, 3)).number.value == pytest.approx(0.25)


def test_the_share_of_a_box_with_many_inputs_is_estimated():
    W = np.zeros((1, 12))
    W[0, 3] = 1.0
    net = ReluNetwork.from_layers([(W, [-0.25]), ([[1.0]], [0])])
    finding = ask(net, "GEO-03", box=(0, 1))
    assert finding.number.kind == "estimate"
    assert abs(finding.number.value - 0.25) <= 4 * finding.number.standard_error


def test_no_dead_point_among_many_is_a_bound_with_a_probability():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((20, 10))
    net = ReluNetwork.from_layers([(np.vstack([W, -W]), np.zeros(40)), (np.ones((1, 40)), [0])])
    finding = ask(net, "GEO-03", box=(-1, 1))  # of z and -z one is positive, but intervals cannot know
    assert finding.number.kind == "probability" and finding.number.delta == 0.05
    assert 1 - 0.05 ** (1 / finding.number.n) <= finding.number.value < 0.001
    assert finding.sentence == ""


def test_bounds_can_prove_that_there_is_no_dead_zone():
    net = ReluNetwork.from_layers([(np.eye(9), np.ones(9)), (np.ones((1, 9)), [0])])
    finding = ask(net, "GEO-03", box=(0, 1))
    assert finding.number.value == 0.0 and finding.number.kind == "exact"
    assert "interval bounds prove" in finding.hypotheses[0].text


# ------------------------------------------------------------------ GEO-04


def test_cells_between_two_rows_are_the_folds_in_between():
    # Folds at 0.5, 1.5, ..., 8.5: between rows 0 and 9 there are ten cells.
    net = ReluNetwork.from_layers([(np.ones((9, 1)), -0.5 - np.arange(9.0)), (np.ones((1, 9)), [0])])
    finding = ask(net, "GEO-04", [[0.0], [9.0]], [0, 1])
    assert finding.number.value == 10.0 and finding.number.standard_error == 0.0
    assert finding.verdict.startswith("2 rows lie in 2 cells, at most 1 in one;")
    rows = ask(net, "GEO-04", np.arange(10.0)[:, None], [0] * 5 + [1] * 5).table.rows
    kinds = {row[0]: row for row in rows}
    assert set(kinds) == {"all pairs", "same class", "different classes"}
    drawn = ask(net, "GEO-04", np.arange(10.0)[:, None], [0] * 5 + [1] * 5).number
    assert 1.0 < drawn.standard_error * np.sqrt(drawn.n) < 4.5  # of cells from 2 to 10
    for _, pairs, cells, _, pieces, distance, density in rows:
        assert pairs in (50, 100) and cells == pytest.approx(distance + 1) == pytest.approx(pieces)
        assert density == pytest.approx(cells / distance)
    assert kinds["same class"][2] < kinds["different classes"][2]


def test_cells_that_hold_data_are_counted_by_pattern():
    net, rng = random_net((20, 8, 5, 3), seed=3), np.random.default_rng(0)
    X = rng.standard_normal((500, 20))
    finding = ask(net, "GEO-04", X)
    held = len(np.unique(net.pattern(X), axis=0))
    assert finding.verdict.startswith(f"500 rows lie in {held} cells,")
    assert ask(net, "GEO-04", np.ones((4, 20))).verdict.endswith("because all rows are equal")


# ------------------------------------------------------------------ GEO-05


def inside(path, x, y):
    """Even-odd rule on relative path data: how often a ray from (x, y) meets the outline."""
    crossings = 0
    for loop in filter(None, path.split("M")):
        start, steps = loop.rstrip("z").split("l")
        numbers = [int(n) for n in re.findall(r"-?\d+", steps)]
        moves = np.array(numbers).reshape(-1, 2)
        first = np.array([int(n) for n in re.findall(r"-?\d+", start)])
        corners = np.vstack([first, first + np.cumsum(moves, axis=0)])
        for (a, b), (c, d) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            crossings += (b > y) != (d > y) and x < a + (y - b) * (c - a) / (d - b)
    return crossings % 2 == 1


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_map_shows_the_class_or_the_value_at_every_point(outputs):
    net = random_net((2, 10, 8, outputs), seed=5)
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    finding = ask(net, "GEO-05", X, box=(-1, 1))
    figure = finding.figure
    assert isinstance(figure, PlaneMap) and figure.extent == (-1, 1, -1, 1) and len(figure.dots) == 50
    assert {(dot.x, dot.y) for dot in figure.dots} == {tuple(x) for x in X.tolist()}
    agree = 0
    for point in np.random.default_rng(1).uniform(-1, 1, (300, 2)):
        x, y = (point + 1) / 2 * figure.grid
        shown = [area for area in figure.areas if inside(area.path, x, y)]
        value = net(point)
        if outputs == 3:
            agree += [area.group for area in shown] == [int(value.argmax())]
        else:
            ends = [tuple(float(end) for end in area.label.split(" to ")) for area in shown]
            agree += len(ends) == 1 and ends[0][0] - 0.01 <= value[0] <= ends[0][1] + 0.01
    assert agree >= 297  # the grid rounds outlines by a thousandth of the picture


def test_the_shares_of_classes_are_areas():
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0]), ([[1.0, 0], [0, 1.0]], [0, 0.5])])
    # Where x > y + 0.5 on the unit square: a triangle of area 1/8.
    assert ask(net, "GEO-05", box=(0, 1)).verdict.endswith("class 1 on 87.5%, 0 on 12.5%")


def test_one_input_gives_the_graph():
    net = random_net((1, 12, 6, 2), seed=6)
    figure = ask(net, "GEO-05", box=(-2, 2)).figure
    assert isinstance(figure, Curves) and figure.x[0] == -2 and figure.x[-1] == 2
    assert np.allclose(np.array(figure.values).T, net(np.array(figure.x)[:, None]))


def test_many_inputs_give_a_plane_through_three_rows_of_different_classes():
    net, rng = random_net((15, 12, 8, 4), seed=7), np.random.default_rng(7)
    X = rng.standard_normal((60, 15))
    y = net(X).argmax(axis=1)
    finding = ask(net, "GEO-05", X, y)
    dots = finding.figure.dots
    rows = [int(dot.label.removeprefix("row ")) for dot in dots]
    assert len({int(y[row]) for row in rows}) == min(3, len(np.unique(y)))
    assert [dot.group for dot in dots] == [int(y[row]) for row in rows]
    for (a, i), (b, j) in itertools.combinations(zip(dots, rows, strict=True), 2):
        assert np.hypot(a.x - b.x, a.y - b.y) == pytest.approx(np.linalg.norm(X[i] - X[j]))
    for dot, row in zip(
        dots, rows, strict=True
    ):  # the colour under a dot is what the network says there
        left, right, low, high = finding.figure.extent
        place = (dot.x - left) / (right - left), (dot.y - low) / (high - low)
        x, y_ = np.array(place) * finding.figure.grid
        shown = [area.group for area in finding.figure.areas if inside(area.path, x, y_)]
        assert shown == [int(net(X[row]).argmax())]


def test_without_data_the_two_strongest_inputs_are_shown():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((10, 6)) * [0.01, 3, 0.01, 0.01, 2, 0.01]
    net = ReluNetwork.from_layers([(W, rng.standard_normal(10)), (rng.standard_normal((2, 10)), [0, 0])])
    figure = ask(net, "GEO-05", box=(-1, 2)).figure
    assert (figure.x_label, figure.y_label) == ("input 2", "input 5")
    assert figure.extent == (-1, 2, -1, 2)


def test_without_data_many_inputs_give_a_plane_through_random_points_of_the_box():
    finding = ask(random_net((20, 12, 8, 2), seed=3), "GEO-05", box=(0, 1))
    assert "the plane through three random points of the given box [0, 1]^20" in finding.verdict
    assert len(finding.figure.dots) == 3 and "points are data" not in finding.figure.caption


def test_rows_on_a_line_fall_back_to_the_box():
    net = random_net((4, 6, 2))
    figure = ask(net, "GEO-05", np.outer(np.arange(5.0), [1, 2, 3, 4])).figure
    assert figure.x_label.startswith("input")
    two = ask(net, "GEO-05", [[0.0, 0, 0, 0], [1.0, 1, 1, 1]])
    assert two.answered and two.figure.x_label.startswith("input")


def test_regression_is_shown_by_value():
    net, rng = random_net((5, 8, 2), seed=8), np.random.default_rng(8)
    X = rng.standard_normal((30, 5))
    finding = ask(net, "GEO-05", X, net(X) + 1.0)
    assert finding.figure.legend == "output 0" and "values" in finding.verdict


def test_many_cells_become_an_image_and_the_page_stays_small(monkeypatch):
    monkeypatch.setattr("pindown.findings.which_function.plane_maps.MAX_CELLS_AS_LINES", 100)
    net = random_net((2, 60, 60, 3), seed=9)
    result = audit(net, box=(-1, 1), only=["GEO-05"], budget=PATIENT)
    figure = result["GEO-05"].figure
    assert result["GEO-05"].number.value > 1000 and figure.image and not figure.lines
    page = result.to_html()
    assert "data:image/png;base64," in page and len(page.encode()) < 500_000
    assert 'role="img" aria-label="Cells on the given box [-1, 1]^2, coloured by the class' in page


def test_an_image_of_lines_is_transparent_between_them():
    from io import BytesIO

    from PIL import Image

    from pindown.box import Box

    data = raster.lines_image(
        np.array([[[0.0, 0.5], [1.0, 0.5]]]), Box([0, 0], [1, 1]), pixels=100, width=9
    )
    alpha = np.asarray(Image.open(BytesIO(data)).convert("RGBA"))[..., 3]
    assert alpha.shape == (100, 100) and (alpha[49:51, 5:95] > 150).all() and not alpha[:40].any()


# ------------------------------------------------------------------ time


def test_the_first_audit_answers_what_the_second_does():
    """Before anything is compiled, and without the time for it; to the last digit."""
    net, X = random_net((2, 5, 2)), np.random.default_rng(0).standard_normal((20, 2))
    codes = ["GEO-01", "GEO-03", "GEO-04", "GEO-05"]
    with by("plain"):
        first = audit(net, X, only=codes, budget=PATIENT)
    with by("compiled"):
        second = audit(net, X, only=codes, budget=PATIENT)
    for code in codes:
        assert first[code].answered and first[code].verdict == second[code].verdict
        assert first[code].number == second[code].number


def test_no_more_than_its_share_of_the_time(monkeypatch):
    monkeypatch.setattr(shared, "MAX_CELLS_COUNTED", 10**12)
    ask(random_net((4, 3, 1)), "GEO-01", box=(-1, 1))  # compiled from here on
    start = time.monotonic()
    finding = audit(random_net((4, 60, 60, 60, 1)), box=(-1, 1), only=["GEO-01"], budget=8)["GEO-01"]
    assert finding.number.bound == "lower" and time.monotonic() - start < 8

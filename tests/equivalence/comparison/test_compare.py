"""diff: the interval holds the truth, and the verdict is what the interval says."""

import time
from fractions import Fraction

import numpy as np
import pytest

from pindown import Box, ReluNetwork, load, shrink
from pindown.equivalence.comparison import GapState, diff
from pindown.equivalence.comparison._cells import gap_by_cells
from pindown.equivalence.comparison._climbing import Climb
from pindown.equivalence.comparison._integer_programs import gap_by_milp
from pindown.equivalence.comparison._joint_bounds import Joint
from pindown.equivalence.comparison._witness_search import search
from pindown.equivalence.comparison.gates import failing_rows
from pindown.equivalence.comparison.matching import align_exactly, match
from pindown.equivalence.comparison.tolerances import factors_of
from pindown.equivalence.weight_symmetry import apply, random_symmetry
from pindown.model.from_network import model_of_network
from tests.equivalence.shrinking.redundancy import KINDS, pairs, random_net, redundant
from tests.io.onnx_models import SHARED

needs_models = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared models are not here")


def drawn_widths(rng):
    hidden = [int(rng.integers(2, 7)) for _ in range(rng.integers(1, 4))]
    return [int(rng.integers(1, 5)), *hidden, int(rng.integers(1, 4))]


def near_miss(net, rng):
    """Change one weight by 1e-3 to 1e-6 of itself."""
    layers = pairs(net)
    W, _ = layers[rng.integers(len(layers))]
    i, j = (int(rng.integers(n)) for n in W.shape)
    W[i, j] = W[i, j] * (1 + 10.0 ** -rng.uniform(3, 6)) if W[i, j] else 1e-4
    return ReluNetwork.from_layers(layers)


def sampled_gap(a, b, box, rng, n=20_000):
    X = box.sample(n, rng)
    return float(np.abs(a(X) - b(X)).max())


def redundant_copy(rng, net):
    kinds = list(rng.choice(list(KINDS), size=rng.integers(0, 4)))
    other = redundant(net, rng, kinds)
    return apply(random_symmetry(other, seed=rng), other), kinds


@pytest.mark.parametrize("seed", range(2))
def test_redundant_symmetric_copies_are_proved_the_same(seed):
    check_copies(seed, 15)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_thousand_redundant_symmetric_copies_are_proved_the_same():
    check_copies(99, 1_000)


def check_copies(seed, n):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        net = random_net(rng, drawn_widths(rng), integers=rng.random() < 0.3)
        other, kinds = redundant_copy(rng, net)
        box = Box.cube(net.in_features, -1, 1)
        answer = diff(net, other, box=box, tol=1e-6, budget=20)
        assert answer.verdict == "same", (kinds, answer)
        assert sampled_gap(net, other, box, rng, 500) <= answer.gap_upper + 1e-9


@pytest.mark.parametrize("seed", range(2))
def test_near_misses_are_never_the_same(seed):
    check_near_misses(seed, 25)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_thousand_near_misses_are_never_the_same():
    check_near_misses(99, 1_000)


def check_near_misses(seed, n):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        net = random_net(rng, drawn_widths(rng))
        other = near_miss(net, rng)
        moved = apply(random_symmetry(other, seed=rng), other)
        box = Box.cube(net.in_features, -1, 1)
        gap = sampled_gap(net, other, box, rng)
        tol = 0.5 * gap if gap > 1e-11 else 1e-13
        answer = diff(net, moved, box=box, tol=tol, rtol=0.0, precision=1.0, budget=3)
        assert answer.gap_upper >= gap * (1 - 1e-9) - 1e-12
        assert gap <= 1e-11 or answer.verdict != "same"
        assert answer.gap_lower <= answer.gap_upper


def test_the_exact_gap_agrees_with_a_mixed_integer_program():
    rng = np.random.default_rng(0)
    for _ in range(12):
        d = int(rng.integers(1, 4))
        a = random_net(rng, [d, 4, 3, 2])
        b = random_net(rng, [d, 5, 2])
        box = Box.cube(d, -1, 1)
        cells, program = gap_by_cells(a, b, box), gap_by_milp(a, b, box, budget=20.0)
        assert cells.upper - cells.lower < 1e-8 * (1 + cells.upper)
        assert program.lower <= cells.upper * (1 + 1e-9) and cells.lower <= program.upper
        assert abs(program.lower - cells.upper) < 1e-6 * (1 + cells.upper)


def test_different_networks_come_with_a_witness_that_shows_it():
    rng = np.random.default_rng(3)
    a, b = random_net(rng, [3, 8, 2]), random_net(rng, [3, 5, 4, 2])
    box = Box.cube(3, -1, 1)
    answer = diff(a, b, box=box, budget=5)
    assert answer.verdict == "different" and box.contains(answer.witness[None])[0]
    there = np.abs(a(answer.witness) - b(answer.witness)).max()
    assert answer.gap_lower <= there <= answer.gap_lower * (1 + 1e-9)
    assert answer.gap_lower <= answer.gap_upper < np.inf


def test_without_a_box_the_gap_is_relative_to_the_size_of_the_input():
    a = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    b = ReluNetwork.from_layers([([[1.5]], [0]), ([[1.0]], [0])])
    answer = diff(a, b, tol=1e-3, budget=5)  # the gap is x / 2 for x > 0: 0.5 x / (1 + x) -> 0.5
    assert answer.verdict == "different"
    assert 1e-3 < answer.gap_lower <= 0.5 <= answer.gap_upper < 0.51


def test_labels_are_decided_beside_values():
    a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), (np.eye(2), [0, 0])])
    b = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), (3 * np.eye(2), [0, 0])])
    box = Box([-1], [1])
    same = diff(a, b, box=box, labels=1e-3, budget=10)  # the values differ, the classes never
    assert same.verdict == "different" and same.labels.verdict == "same"
    flipped = ReluNetwork.from_layers([([[-1.0], [1.0]], [0, 0]), (np.eye(2), [0, 0])])
    other = diff(a, flipped, box=box, labels=0.1, budget=10)
    assert other.labels.verdict == "different" and sorted(other.labels.labels) == [0, 1]
    x = other.labels.witness
    assert np.argmax(a(x)) == other.labels.labels[0] and np.argmax(flipped(x)) == other.labels.labels[1]


def test_pairing_is_reported_exactly():
    rng = np.random.default_rng(5)
    net = random_net(rng, [4, 9, 7, 2])
    symmetry = random_symmetry(net, seed=rng)
    answer = diff(net, apply(symmetry, net), tol=1e-8)
    moved = [int(np.sum(p != np.arange(len(p)))) for p in symmetry.permutations]
    assert [layer.moved for layer in answer.layers[:-1]] == moved
    assert all(layer.changed == 0 for layer in answer.layers)
    assert [layer.rescaled for layer in answer.layers] == [9, 7, 0]


def test_putting_units_in_order_changes_no_digit_of_the_function():
    rng = np.random.default_rng(6)
    net = random_net(rng, [3, 6, 5, 2])
    other = apply(random_symmetry(net, seed=rng), net)
    aligned = align_exactly(other, match(net, other))
    x = np.array([0.25, -0.5, 0.75])
    assert aligned.as_fractions()(x.tolist()) == other.as_fractions()(x.tolist())


def test_a_short_budget_gives_an_honest_interval():
    rng = np.random.default_rng(7)
    a = random_net(rng, [30, 200, 200, 200, 3])
    b = random_net(rng, [30, 180, 220, 3])
    began = time.monotonic()
    answer = diff(a, b, box=Box.cube(30, -1, 1), tol=1e9, budget=1.0)
    assert time.monotonic() - began < 4
    assert answer.verdict in ("undecided", "same") and answer.gap_lower > 0


def test_ctrl_c_returns_what_was_proved():
    rng = np.random.default_rng(8)
    a, b = random_net(rng, [4, 20, 20, 1]), random_net(rng, [4, 20, 20, 1])
    calls = []

    def interrupt(*_):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    answer = diff(a, b, box=Box.cube(4, -1, 1), tol=100.0, budget=20, progress=interrupt)
    assert answer.interrupted and answer.gap_lower > 0


BAD = [
    ({"box": Box.cube(3, 0, 1)}, "3 dimensions|3"),
    ({"tol": -1.0}, "tol"),
    ({"tol": float("nan")}, "tol"),
    ({"budget": -1.0}, "budget"),
    ({"budget": float("nan")}, "budget"),
    ({"labels": 0.1}, "two or more outputs"),
]


@pytest.mark.parametrize(("options", "words"), BAD)
def test_bad_options_are_refused_in_one_line(options, words):
    net = random_net(np.random.default_rng(0), [2, 3, 1])
    with pytest.raises(ValueError, match=words) as error:
        diff(net, net, **options)
    assert "\n" not in str(error.value)


def test_networks_that_do_not_fit_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="takes 2 and gives 1, the second takes 3 and gives 1"):
        diff(random_net(rng, [2, 3, 1]), random_net(rng, [3, 3, 1]))
    with pytest.raises(TypeError, match=r"path of a model file.*got int"):
        diff(1, 2)


@needs_models
@pytest.mark.parametrize("pruned", [5, 10, 30])
@pytest.mark.parametrize("which", [1, 2])
def test_pruned_networks_are_different(which, pruned):
    a, b = f"acasxu_1_{which}.onnx", f"acasxu_1_{which}_pruned{pruned}.onnx"
    answer = diff(SHARED / a, SHARED / b, box=Box.cube(5, -0.5, 0.5), tol=1e-4, precision=1.0, budget=10)
    assert answer.verdict == "different" and answer.names == (a, b)
    there = np.abs(answer.first(answer.witness) - answer.second(answer.witness)).max()
    assert there >= answer.gap_lower > 1e-4


@needs_models
@pytest.mark.parametrize("box", [(0.0, 1.0), None])
@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("mnist_256x4", "mnist_256x4_split_a"),
        ("mnist_256x4", "mnist_256x4_split_b"),
        ("cifar_conv_base", "cifar_conv_base_split"),
    ],
)
def test_split_networks_are_proved_the_same(name, copy, box):
    files = [SHARED / f"{n}.onnx.gz" for n in (name, copy)]
    domain = None if box is None else Box.cube(784 if "mnist" in name else 3072, *box)
    answer = diff(*files, box=domain, tol=1e-4, rtol=0.0, budget=60)
    assert answer.verdict == "same" and answer.gap_lower <= answer.gap_upper <= 1e-4


def test_reductions_that_cost_more_than_the_tolerance_do_not_end_the_comparison():
    # With a large tolerance networks are reduced a lot; what that may cost must leave room to decide.
    rng = np.random.default_rng(0)
    first, second = (
        ReluNetwork.from_layers(
            [
                (rng.standard_normal((10, 5)) / np.sqrt(5), 0.1 * rng.standard_normal(10)),
                (rng.standard_normal((10, 10)) / np.sqrt(10), 0.1 * rng.standard_normal(10)),
                (rng.standard_normal((1, 10)) / np.sqrt(10), 0.1 * rng.standard_normal(1)),
            ]
        )
        for _ in range(2)
    )
    box = Box([-1.0] * 5, [1.0] * 5)
    answer = diff(first, second, box=box, tol=8.0, budget=10.0)
    assert answer.verdict == "same"
    points = box.sample(1000, rng)
    assert np.abs(first(points) - second(points)).max() <= answer.gap_upper <= 8.0


def test_a_short_budget_is_kept_on_large_networks():
    rng = np.random.default_rng(0)
    layers = [
        (rng.standard_normal((m, n)) / np.sqrt(n), 0.1 * rng.standard_normal(m))
        for n, m in ((784, 1024), (1024, 1024), (1024, 10))
    ]
    first = ReluNetwork.from_layers(layers)
    second = ReluNetwork.from_layers([(W + 1e-4 * rng.standard_normal(W.shape), b) for W, b in layers])
    for tol in (1e-5, 10.0):
        answer = diff(first, second, box=Box([0.0] * 784, [1.0] * 784), tol=tol, budget=0.5)
        assert answer.seconds < 3.0
        assert answer.gap_lower <= answer.gap_upper


@needs_models
@pytest.mark.slow
def test_folds_that_nearly_coincide_do_not_stall_the_comparison():
    model, box = load(SHARED / "tll_2d_n16_0.onnx.gz"), ([-2, -2], [2, 2])
    answer = diff(model, shrink(model, box=box).model, box=box, budget=120)
    assert answer.verdict == "same" and answer.gap_upper < 1e-7


def rounded(net, bits):
    """The network with weights on a grid of so many bits for each layer, as in quantised files."""
    layers = []
    for W, b in pairs(net):
        scale = np.abs(W).max() / 2 ** (bits - 1) or 1.0
        layers.append((np.rint(W / scale) * scale, b))
    return ReluNetwork.from_layers(layers)


@pytest.mark.parametrize("seed", range(2))
def test_intervals_of_quantised_copies_hold_what_longer_searches_find(seed):
    check_quantised(seed, 6)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_intervals_of_many_quantised_copies_hold_what_longer_searches_find():
    check_quantised(99, 300)


def check_quantised(seed, n):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        net = random_net(rng, drawn_widths(rng))
        other = rounded(net, int(rng.integers(3, 16)))
        box = Box.cube(net.in_features, -1, 1)
        tol = 10.0 ** rng.uniform(-6, -1)
        answer = diff(net, other, box=box, tol=tol, rtol=0.0, precision=1.0, budget=2, seed=seed)
        found = max(
            sampled_gap(net, other, box, rng),
            search(net, other, box, budget=0.3, seed=seed + 1).gap,
        )
        assert answer.gap_lower <= answer.gap_upper and found <= answer.gap_upper * (1 + 1e-9) + 1e-12
        assert answer.verdict != "same" or found <= tol * (1 + 1e-9) + 1e-12
        assert answer.verdict != "different" or answer.gap_lower > tol


@pytest.mark.parametrize("precision", [None, 0.02, 1.0])
def test_after_a_witness_the_interval_is_closed(precision):
    rng = np.random.default_rng(7)
    a = random_net(rng, [3, 12, 8, 2])
    b = ReluNetwork.from_layers(
        [(W * (1 + 0.01 * rng.standard_normal(W.shape)), c) for W, c in a.layers]
    )
    box = Box.cube(3, -1, 1)
    answer = diff(a, b, box=box, precision=precision, budget=20)
    assert answer.verdict == "different"
    share = {None: 0.5, 0.02: 0.02, 1.0: 1.0}[precision]
    assert answer.gap_upper - answer.gap_lower <= share * answer.gap_upper
    exact = gap_by_cells(a, b, box)
    assert answer.gap_lower <= exact.upper and exact.lower <= answer.gap_upper
    if precision == 1.0:  # a longer run finds more than the first witness
        assert answer.gap_lower < diff(a, b, box=box, precision=0.02, budget=20).gap_lower


@pytest.mark.parametrize("precision", [-0.1, 1.5, np.nan])
def test_bad_precisions_are_refused(precision):
    net = ReluNetwork.from_layers([([[1.0]], [0.0])])
    with pytest.raises(ValueError, match="precision must be"):
        diff(net, net, precision=precision)


def test_the_search_for_violations_climbs_to_the_largest_gap():
    rng = np.random.default_rng(3)
    a, b = random_net(rng, [2, 6, 6, 2]), random_net(rng, [2, 6, 6, 2])
    box = Box.cube(2, -1, 1)
    climb = Climb(Joint(model_of_network(a), model_of_network(b)), box)
    state = GapState(1e-3, np.inf, box.center)
    for _ in range(12):
        state &= climb.go_on(state)
    exact = gap_by_cells(a, b, box)
    assert 0.99 * exact.lower <= state.lower <= exact.upper
    there = np.abs(a(state.witness) - b(state.witness)).max()
    assert state.lower <= there and box.contains(state.witness[None])[0]


def two_outputs(shift):
    """|x| and x, the second moved."""
    out = [[1.0, 1.0], [1.0, -1.0]]
    return ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), (out, [0, shift])])


@pytest.mark.parametrize("box", [Box([-1.0], [1.0]), None])
def test_tolerances_of_each_output_decide(box):
    a, b = two_outputs(0.0), two_outputs(0.01)
    how = {"box": box, "rtol": 0.0, "budget": 10}
    same = diff(a, b, tol=[1e-6, 0.0101], **how)  # only the second output may differ that much
    assert same.verdict == "same" and same.tolerances == (1e-6, 0.0101) and same.allowed == 0.0101
    assert same.gap_lower <= 0.01 <= same.gap_upper * (1 + 1e-9)
    other = diff(a, b, tol=[0.0101, 1e-6], **how)
    assert other.verdict == "different" and 0.009 <= other.gap_lower <= 0.01 <= other.gap_upper
    assert diff(a, b, tol=[0.02, 0.02], **how).tolerances == ()
    tight = diff(a, b, tol=[0.02, 0.0099], **how)
    assert tight.verdict == "different"


def test_tolerances_of_outputs_never_refute_what_they_allow():
    # Numbers of 53 digits are scaled by powers of two: what the scaled gap exceeds, no output does.
    a, b = (ReluNetwork.from_layers([([[1 / 3], [1 / 7]], [0, c])]) for c in (0.0, 0.01))
    answer = diff(a, b, box=Box([-1.0], [1.0]), tol=[1.0, 0.013], rtol=0.0, budget=5)
    assert answer.verdict != "different" and answer.gap_lower <= 0.01 <= answer.gap_upper * (1 + 1e-9)


def test_tolerances_of_outputs_leave_rows_and_classes_alone():
    a, b = two_outputs(0.0), two_outputs(0.01)
    X = np.array([[0.5], [-0.5], [0.0]])
    how = {"box": Box([-1.0], [1.0]), "data": X, "radius": 0.01, "labels": True, "rtol": [0.0, 0.0]}
    plain, each = (diff(a, b, tol=tol, **how) for tol in (0.02, [1e-3, 0.02]))
    np.testing.assert_array_equal(plain.rows.outputs[1], each.rows.outputs[1])
    np.testing.assert_array_equal(plain.rows.flipped, each.rows.flipped)
    assert plain.rows.same_label == each.rows.same_label
    assert plain.labels.verdict == each.labels.verdict
    assert failing_rows(each, "gap").tolist() == []
    assert failing_rows(diff(a, b, tol=[1e-3, 1e-4], **how), "gap").tolist() == [0, 1, 2]


def test_factors_serve_all_tolerances():
    rng = np.random.default_rng(0)
    for bits in (1, 12):
        allowed = 10.0 ** rng.uniform(-9, 3, (50, 4))
        for own in allowed:
            factors = factors_of(own, bits)
            exact = [Fraction(s) * Fraction(t) for s, t in zip(factors, own, strict=True)]
            assert min(exact) >= Fraction(own.max()) and factors.min() == 1.0
            assert max(exact) <= Fraction(own.max()) * (2 if bits == 1 else Fraction(1025, 1024))


@pytest.mark.parametrize("tol", [[1e-3], [1e-3, -1.0], [[1e-3, 1e-3]], [0.0, 1e-3], ["a", "b"]])
def test_bad_tolerances_are_refused_in_one_line(tol):
    with pytest.raises((ValueError, TypeError)) as told:
        diff(two_outputs(0.0), two_outputs(0.01), tol=tol, rtol=0.0)
    assert "\n" not in str(told.value)


def test_negative_seeds_are_refused():
    net = ReluNetwork.from_layers([([[1.0]], [0.0])])
    with pytest.raises(ValueError, match="seed must be an integer of at least 0; got -1"):
        diff(net, net, seed=-1)

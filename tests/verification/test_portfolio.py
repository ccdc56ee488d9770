"""Properties of models: proved, refuted, or honestly not decided, at every budget."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import pindown as pn
from pindown import ReluNetwork
from pindown.deadline import NEVER, Deadline
from pindown.model import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.piecewise_linear import Clip
from pindown.model.operations.relu import Relu
from pindown.model.operations.smooth import Sigmoid, Tanh
from pindown.progress import silent
from pindown.verification import Property, UnsafeSet, portfolio, verify
from pindown.verification.portfolio import Run, _Units
from tests.verification.brute_force import reaches
from tests.verification.nets import SHARED, random_network
from tests.verification.small_problems import known, unsafe_set, whole_network

# As the verification literature has it: only the second network violates property 2.
KNOWN = {
    ("1_1", 1): "holds", ("1_1", 2): "holds", ("1_1", 3): "holds", ("1_1", 4): "holds",
    ("1_2", 1): "holds", ("1_2", 2): "violated", ("1_2", 3): "holds", ("1_2", 4): "holds",
}  # fmt: skip

ABSOLUTE = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])


class Looks(Deadline):
    """A deadline that passes when it has been looked at so many times."""

    def __init__(self, most):
        super().__init__()
        object.__setattr__(self, "left_over", [most])

    @property
    def passed(self):
        self.left_over[0] -= 1
        return self.left_over[0] < 0


def decided(model, prop, looks, seed=0):
    """Run the portfolio until the clock was looked at so many times."""
    graph = model if hasattr(model, "nodes") else model_of_network(model)
    return Run(graph, prop, Looks(looks), seed, 1, silent, None).decided()


def unsafe(low, high, rows, limits, **more):
    numbers = (np.asarray(part, dtype=float) for part in (low, high, rows, limits))
    return UnsafeSet(*numbers, **more)


def of(*sets, k=1):
    return Property(tuple(sets), (len(sets[0].lower),), (k,))


# ---------------------------------------------------------------------- answers


def test_answers_agree_with_a_fine_grid():
    rng = np.random.default_rng(0)
    seen = set()
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 201)] * 2), axis=-1).reshape(-1, 2)
    for _ in range(8):
        net = random_network(rng, [2, 8, 8, 3])
        rows = rng.standard_normal((2, 3))
        worst = (net(grid) @ rows.T).max(axis=1).min()
        for limit, expected in ((worst + 0.01, "violated"), (worst - 0.15, "holds")):
            found = verify(net, of(unsafe([-1, -1], [1, 1], rows, [limit, limit]), k=3))
            seen.add(found.verdict)
            assert found.verdict == expected
            if found.witness is not None:
                assert (rows @ net(found.witness) <= limit).all()
                assert (np.abs(found.witness) <= 1).all()
    assert seen == {"holds", "violated"}


def random_property(rng, net, n):
    """Return a union of sets of a network, some with strict rows and forms of the input."""
    sets = [unsafe_set(rng, net, inputs=rng.random() < 0.4, strict=rng.random() < 0.4) for _ in range(n)]
    return of(*sets, k=net.out_features)


def check_against_brute_force(net, prop, model=None):
    """Check a verdict against all cells in rational numbers; return what is true."""
    truths = [known(net, one) for one in prop.unsafe]
    clear = "reached" in truths or set(truths) == {"safe"}
    found = decided(net if model is None else model, prop, 3000 if clear else 60)
    reached = any(reaches(net, one) for one in prop.unsafe)
    if found.verdict == "holds":
        assert not reached
    elif found.verdict == "violated":
        x, one = found.witness, prop.unsafe[found.example.index]
        exact = net.as_fractions()(np.array([Fraction(v) for v in x.tolist()]))
        assert reached and (one.lower <= x).all() and (x <= one.upper).all()
        for i, limit in enumerate(one.limits.tolist()):
            value = sum(Fraction(a) * y for a, y in zip(one.rows[i].tolist(), exact, strict=True))
            if one.input_rows is not None:
                terms = zip(one.input_rows[i].tolist(), x.tolist(), strict=True)
                value += sum(Fraction(a) * Fraction(v) for a, v in terms)
            strict = one.strict is not None and one.strict[i]
            assert value < Fraction(limit) or (value == Fraction(limit) and not strict)
    else:
        assert not clear
    return "reached" if reached else "safe"


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_brute_force(seed):
    """Unions of sets with several rows, on networks of whole numbers, where ties are exact."""
    rng = np.random.default_rng([7, seed])
    seen = set()
    for _ in range(12):
        net = whole_network(rng, int(rng.choice([1, 2])))
        seen.add(
            check_against_brute_force(net, random_property(rng, net, int(rng.choice([1, 1, 2, 3]))))
        )
    assert seen == {"safe", "reached"}


def side_by_side(f, g):
    """Return two networks of the same depth as one."""
    (W, b), (V, c) = f.layers[0], g.layers[0]
    layers = [(np.vstack([W, V]), np.concatenate([b, c]))]
    for (W, b), (V, c) in zip(f.layers[1:], g.layers[1:], strict=True):
        zero = np.zeros((len(b), V.shape[1])), np.zeros((len(c), W.shape[1]))
        layers.append((np.block([[W, zero[0]], [zero[1], V]]), np.concatenate([b, c])))
    return ReluNetwork.from_layers(layers)


def test_two_networks_are_compared():
    """Whether f - g can be that small, f and g of whole numbers on the same inputs."""
    rng = np.random.default_rng(11)
    seen = set()
    for _ in range(8):
        widths = [int(rng.choice([1, 2])), 3, 2]
        f, g = (
            ReluNetwork.from_layers(
                [
                    (rng.integers(-2, 3, (m, n)).astype(float), rng.integers(-2, 3, m).astype(float))
                    for n, m in pairwise(widths)
                ]
            )
            for _ in range(2)
        )
        both = side_by_side(f, g)
        one = unsafe_set(rng, both)
        own = np.arange(widths[0])
        prop = Property((one,), (widths[0],) * 2, (2, 2), (own, own), (0, 1))
        truth = known(both, one)
        found = verify((f, g), prop, budget=10.0 if truth != "tie" else 0.2)
        seen.add(found.verdict)
        if truth != "tie":
            assert found.verdict == {"safe": "holds", "reached": "violated"}[truth]
        if found.witness is not None:
            y = np.concatenate([f(found.witness), g(found.witness)])
            assert prop.violated_by(found.witness, [y]) and reaches(both, one)
    assert {"holds", "violated"} <= seen


@pytest.mark.parametrize("place", [-0.912, -0.3, 0.2501, 0.907])
def test_a_spike_that_samples_miss_is_found_wherever_it_is(place):
    """A tent of height one and width 2e-6: 4,096 points miss it, halving the box does not."""
    width = 1e-6
    tent = ReluNetwork.from_layers(
        [
            (np.ones((3, 1)), [width - place, -place, -width - place]),
            (np.array([[1.0, -2.0, 1.0]]) / width, [0.0]),
        ]
    )
    sets = [Property.box([-1], [1], [[1.0]], [limit]).unsafe[0] for limit in (1.1, 0.5)]
    found = verify(tent, of(*sets), budget=120.0)
    assert found.verdict == "violated" and abs(found.witness[0] - place) < width
    assert found.example.index == 1
    assert verify(tent, Property.box([-1], [1], [[1.0]], [1.1]), budget=120.0).verdict == "holds"


def test_the_set_of_a_witness_is_named():
    """Of four sets two are out of reach, and one without a float64 in it is never violated."""
    none = unsafe([0], [1], [[1.0]], [0.5], inner=unsafe([1], [0], [[1.0]], [0.5]))
    sets = [
        unsafe([-1], [1], [[1.0]], [-0.5]),
        none,
        unsafe([0.5], [1], [[1.0]], [0.25]),
        unsafe([-1], [1], [[1.0], [-1.0]], [0.7000001, -0.7]),
    ]
    found = verify(ABSOLUTE, of(*sets))
    assert found.verdict == "violated" and found.example.index == 3
    assert 0.7 <= abs(found.witness[0]) <= 0.7000001 and found.margin <= 0.0


# ---------------------------------------------------------------------- limits that are attained


def test_a_limit_that_is_attained_is_a_violation():
    """|x| <= 0 at 0 alone."""
    found = verify(ABSOLUTE, of(unsafe([-1], [1], [[1.0]], [0.0])))
    assert found.verdict == "violated" and found.witness[0] == 0.0


@pytest.mark.parametrize(
    ("row", "limit", "strict", "violated"),
    [
        (1.0, 0.0, True, False),  # |x| < 0
        (1.0, 5e-324, True, True),  # at 0
        (1.0, -5e-324, False, False),
        (-1.0, -1.0, False, True),  # |x| >= 1, at the ends
        (-1.0, -1.0, True, False),
        (-1.0, -np.nextafter(1.0, 2.0), False, False),
        (-1.0, -np.nextafter(1.0, 0.0), True, True),
    ],
)
def test_strict_rows_and_limits_at_the_optimum(row, limit, strict, violated):
    """|x| on [-1, 1] has the range [0, 1], both ends attained."""
    one = unsafe([-1], [1], [[row]], [limit], strict=np.array([strict]))
    found = verify(ABSOLUTE, of(one), budget=0.5)
    assert (found.verdict == "violated") == violated
    if violated:
        assert of(one).violated_by(found.witness, [np.abs(found.witness)])


def test_ranges_that_are_attained_hold():
    """y >= 0 behind a ReLU, y <= 1 behind a clip and a sigmoid: they are never crossed."""
    for operation, low, high in (
        (Relu(), 0.0, np.inf),
        (Clip(-1.0, 1.0), -1.0, 1.0),
        (Sigmoid(), 0.0, 1.0),
    ):
        graph = Builder((1, 2))
        made = graph.add(operation, graph.add(Dense([[1.0, 1.0], [3.0, -1.0]]), graph.input))
        model = graph.model(made, input_shape=(2,))
        prop = Property.output_range([-9, -9], [9, 9], [low] * 2, [high] * 2)
        found = verify(model, prop, budget=5.0)
        assert found.verdict == "holds", operation.name
        # The same limits, but to be at them is a violation as well.
        closed = [replace(one, strict=None) for one in prop.unsafe]
        found = verify(model, Property(tuple(closed), (2,), (2,)), budget=0.5)
        assert (found.verdict == "violated") == (operation.name != "Sigmoid")
    both = unsafe([-1], [1], [[1.0], [0.0]], [0.0, 0.5], strict=np.array([True, False]))
    assert verify(ABSOLUTE, of(both), budget=5.0).verdict == "holds"  # |x| < 0, whatever else
    mixed = replace(both, input_rows=np.array([[1.0], [0.0]]), limits=np.array([-1.0, 0.5]))
    assert verify(ABSOLUTE, of(mixed), budget=0.5).verdict == "holds"  # |x| + x < -1
    left = replace(both, input_rows=np.array([[2.0], [0.0]]))
    assert verify(ABSOLUTE, of(left), budget=5.0).verdict == "violated"  # |x| + 2 x < 0


def test_limits_of_rows_that_are_not_strict_stay():
    """|x| <= 0 and x + 2 > 0: the second row is strict, the first is attained at 0 and counts."""
    rows, input_rows = [[1.0], [0.0]], np.array([[0.0], [-1.0]])
    one = unsafe([-1], [1], rows, [0.0, 2.0], input_rows=input_rows, strict=np.array([False, True]))
    assert verify(ABSOLUTE, of(one), budget=5.0).verdict == "violated"


def test_a_witness_violates_in_rational_numbers():
    """f = 0.1 x at x = 3: the float64 product is 0.30000000000000004, the limit 0.3 lies below both."""
    net = ReluNetwork.from_layers([([[0.1]], [0.0])])
    exact = 3 * Fraction(0.1)
    assert Fraction(0.3) < exact < Fraction(0.1 * 3)

    def asked(rows, limits):
        return verify(net, of(unsafe([3.0], [3.0], rows, limits)), budget=0.2)

    assert asked([[1.0]], [0.3]).verdict != "violated"
    found = asked([[1.0]], [0.1 * 3])
    assert found.verdict == "violated" and found.margin == 0.0
    assert found.float32_margin == float(np.float32(0.1) * np.float32(3)) - 0.1 * 3
    below = asked([[1.0], [-1.0]], [0.1 * 3, -0.1 * 3])  # f = 0.30...04
    assert below.verdict != "violated" and below.witness is None


# ---------------------------------------------------------------------- odd models and sets


@pytest.mark.parametrize(("limit", "verdict"), [(0.4, "holds"), (0.5, "violated"), (0.6, "violated")])
def test_boxes_without_width(limit, verdict):
    assert verify(ABSOLUTE, of(unsafe([0.5], [0.5], [[1.0]], [limit]))).verdict == verdict


def test_models_without_relus():
    """x + y is never above 1 and below 0.9 at once; each alone is reached."""
    net = ReluNetwork.from_layers([([[1.0, 1.0]], [0.0])])
    rows = [[-1.0], [1.0]]
    assert verify(net, of(unsafe([-1, -1], [1, 1], rows, [-1.0, 0.9]))).verdict == "holds"
    assert verify(net, of(unsafe([-1, -1], [1, 1], rows, [-1.0, 1.1]))).verdict == "violated"


@pytest.mark.parametrize("d", [2, 40])
@pytest.mark.parametrize("activation", [Sigmoid(), Tanh()], ids=["sigmoid", "tanh"])
def test_smooth_models(d, activation):
    """The mean of activations of the inputs is at most that of one, attained at a corner."""
    graph = Builder((1, d))
    out = graph.add(Dense(np.full((1, d), 1.0 / d)), graph.add(activation, graph.input))
    model = graph.model(out, input_shape=(d,))
    most = float(activation.function(np.array([1.0]))[0])
    for limit, verdict in ((most + 1e-3, "holds"), (most - 1e-3, "violated")):
        found = verify(model, Property.box(-np.ones(d), np.ones(d), [[1.0]], [limit]), budget=20.0)
        assert found.verdict == verdict
        if verdict == "violated":
            assert model(found.witness)[0] > limit


def test_many_inputs_are_left_to_units():
    """y = relu(x_1) + ... + relu(x_40) is at least x_1: with x_1 >= 0.9 it can be 1 and not 0.85."""
    net = ReluNetwork.from_layers([(np.eye(40), np.zeros(40)), (np.ones((1, 40)), [0.0])])
    input_rows = np.zeros((2, 40))
    input_rows[1, 0] = -1.0
    for limit, verdict in ((0.85, "holds"), (1.0, "violated")):
        one = unsafe(-np.ones(40), np.ones(40), [[1.0], [0.0]], [limit, -0.9], input_rows=input_rows)
        assert verify(net, of(one), budget=10.0, n_jobs=1).verdict == verdict


def test_units_of_several_sets_say_what_brute_force_says():
    """Sets that share a box share their bounds; those out of reach are proved, all others are left."""
    rng = np.random.default_rng(17)
    for _ in range(7):
        net = whole_network(rng, int(rng.choice([1, 2])))
        sets = dict(enumerate(random_property(rng, net, 3).unsafe))
        sets[2] = replace(sets[2], lower=sets[2].lower / 2)
        truths = {s: known(net, one) for s, one in sets.items()}
        units = _Units.of(model_of_network(net), sets)
        assert len(units.groups) == 2
        for _ in range(200):
            if not units.exhausted:
                units.round({s: one for s, one in sets.items() if s not in units.proved}, NEVER, 1)
        for s, truth in truths.items():
            assert (s in units.proved) == (truth == "safe") or truth == "tie"
            assert s not in units.proved or not reaches(net, sets[s])


def test_the_dearest_units_come_first(monkeypatch):
    """Few inputs: slopes are optimised for some units, then for all where that proves nothing."""
    asked, real = [], portfolio.tighten

    def tighten(relaxed, **given):
        asked.append(given.get("only"))
        real(relaxed, **given)

    monkeypatch.setattr(portfolio, "tighten", tighten)
    net = random_network(np.random.default_rng(3), [8, 24, 24, 1])
    attained = float(net(np.zeros((1, 8)))[0, 0])
    sets = dict(enumerate(Property.box(-np.ones(8), np.ones(8), [[1.0]], [attained]).unsafe))
    units = _Units.of(model_of_network(net), sets)
    for _ in range(2):
        units.round(sets, NEVER, 1)
    first, some, rest = asked
    assert first is None and rest is None and not units.proved
    assert some and all(0 < only.sum() < 24 for only in some.values())


def test_relus_of_the_input_itself():
    graph = Builder((1, 3))
    model = graph.model(graph.add(Dense([[1.0, 1.0, -1.0]]), graph.add(Relu(), graph.input)))
    for limit, verdict in ((2.001, "holds"), (1.999, "violated")):
        prop = Property.box([-1] * 3, [1] * 3, [[1.0]], [limit])
        assert verify(model, prop, budget=20.0).verdict == verdict


@pytest.mark.parametrize("d", [2, 40])
def test_bounds_beyond_float64_leave_it_undecided(d):
    """Inside, 1e400: nothing is known there, and nothing is said; no NaN anywhere."""
    huge = ReluNetwork.from_layers(
        [
            (np.full((3, d), 1e200), np.zeros(3)),
            (np.full((3, 3), 1e200), np.zeros(3)),
            (np.ones((1, 3)), [0.0]),
        ]
    )
    for sign in (1.0, -1.0):
        found = verify(huge, Property.box(-np.ones(d), np.ones(d), [[sign]], [5.0]), budget=0.5)
        assert found.verdict == "undecided" and not np.isnan(found.bound)
    small = Property.box(-np.full(d, 1e-300), np.full(d, 1e-300), [[1.0]], [1e-5])
    assert verify(huge, small, budget=2.0).verdict in ("holds", "violated", "undecided")


def test_sets_without_rows_are_the_whole_box():
    whole = unsafe([0], [1], np.zeros((0, 1)), [])
    assert verify(ABSOLUTE, of(whole)).verdict == "violated"
    nobody = replace(whole, inner=unsafe([1], [0], np.zeros((0, 1)), []))  # no float64 lies in it
    assert decided(ABSOLUTE, of(nobody), 60).verdict == "undecided"
    assert verify(ABSOLUTE, Property((), (1,), (1,)), budget=0.0).verdict == "holds"


@pytest.mark.parametrize(("limit", "verdict"), [(np.inf, "violated"), (-np.inf, "holds")])
def test_limits_that_are_infinite(limit, verdict):
    rows = [[1.0], [-1.0]]
    assert verify(ABSOLUTE, of(unsafe([-1], [1], rows, [limit, 0.0])), budget=5.0).verdict == verdict


@pytest.mark.parametrize(
    ("rows", "limits", "message"),
    [
        ([[1.0]], [0.0, 1.0], "limits must"),
        ([[np.nan]], [0.0], "finite"),
        ([[1.0]], [np.nan], "finite"),
        (np.zeros((0, 1)), [], "at least one"),
    ],
)
def test_bad_properties_are_refused(rows, limits, message):
    with pytest.raises(ValueError, match=message):
        Property.box([-1], [1], rows, limits)


def test_properties_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="1 input and 2 outputs; the model has 1 input and 1 output"):
        verify(ABSOLUTE, Property.box([-1], [1], [[1.0, 2.0]], [0.0]))
    with pytest.raises(ValueError, match="about 1 model; got 2"):
        verify((ABSOLUTE, ABSOLUTE), Property.box([-1], [1], [[1.0]], [0.0]))


# ---------------------------------------------------------------------- budgets


@pytest.mark.parametrize("budget", [0, 0.0, 0.01])
def test_no_time_is_undecided(budget):
    rng = np.random.default_rng(1)
    net = random_network(rng, [4, 30, 30, 1])
    (high,) = pn.relaxation.bounds(net, -np.ones(4), np.ones(4))[1]
    found = verify(net, Property.box([-1] * 4, [1] * 4, [[1.0]], [0.5 * high]), budget=budget)
    assert found.verdict == "undecided" and found.witness is None and found.kind == "exact"
    assert "undecided" in repr(found) and found.open_sets == 1 and found.word == "unknown"
    assert found.seconds < 1.0


def hard_problems():
    """Yield networks with properties that take a while; the last one is a tie that nothing decides."""
    rng = np.random.default_rng(21)
    for d in (2, 8):
        net = random_network(rng, [d, 12, 12, 2])
        X = rng.uniform(-1, 1, (4000, d))
        most = float((net(X) @ [1.0, -1.0]).max())
        box = -np.ones(d), np.ones(d)
        for limit in (most + 0.35, most + 0.02):
            yield net, Property.box(*box, [[1.0, -1.0]], [limit])
        first, second = (
            Property.box(*box, [[1.0, -1.0]], [t]).unsafe[0] for t in (most + 2, most + 0.3)
        )
        yield net, of(first, second, first, k=2)
    yield ABSOLUTE, Property.box([-1], [1], [[1.0]], [1.0])


def test_more_steps_never_undo_an_answer():
    """By looks at the clock: what was decided stays decided, and sets once proved stay proved."""
    seen = set()
    for net, prop in list(hard_problems())[::2]:
        verdict, left = "undecided", len(prop.unsafe)
        for looks in (0, 2, 5, 60, 130, 140, 145, 150, 155, 160, 170, 180, 200, 230):
            found = decided(net, prop, looks)
            if verdict != "undecided":
                assert found.verdict == verdict, looks
            elif found.verdict == "undecided":
                assert found.open_sets <= left, looks
                left = found.open_sets
            verdict = found.verdict
        seen.add(verdict)
    assert {"holds", "undecided"} <= seen


def test_the_bound_holds_where_sets_are_open():
    """Of what is undecided no point comes nearer to its unsafe set than the bound says."""
    rng = np.random.default_rng(4)
    checked = 0
    for net, prop in list(hard_problems())[3::2]:
        for looks in (160, 180, 250, 350):
            found = decided(net, prop, looks)
            if found.verdict != "undecided" or not np.isfinite(found.bound):
                continue
            checked += 1
            lower, upper = prop.unsafe[0].lower, prop.unsafe[0].upper
            X = rng.uniform(lower, upper, (500, len(lower)))
            nearest = min((net(X) @ one.rows.T - one.limits).max(axis=1).min() for one in prop.unsafe)
            assert found.bound <= nearest + 1e-9
    assert checked


def test_the_clock_is_kept():
    net = random_network(np.random.default_rng(2), [8, 40, 40, 2])
    high = pn.relaxation.bounds(net, -np.ones(8), np.ones(8), [[1.0, -1.0]])[1][0]
    prop = Property.box(-np.ones(8), np.ones(8), [[1.0, -1.0]], [0.35 * high])
    found = verify(net, prop, budget=1.0, n_jobs=1)
    assert found.verdict != "undecided" or 1.0 <= found.seconds < 3.0


def test_an_interruption_leaves_what_was_finished():
    """Ctrl-C after some rounds: undecided, with the sets that were proved until then."""
    *_, (net, prop), _ = hard_problems()
    told = []

    def progress(what, done, total):
        told.append((what, done, total))
        if len(told) == 5:
            raise KeyboardInterrupt

    found = verify(net, prop, progress=progress, budget=60.0, n_jobs=1)
    assert found.interrupted and found.verdict == "undecided" and len(told) == 5
    assert found.open_sets == 3 - told[-1][1] and told[-1][2] == 3


def test_what_is_told_goes_forwards():
    net, prop = next(hard_problems())
    found = verify(net, prop, n_jobs=1)
    assert found.verdict == "holds" and found.n_parts > 1 and found.open_sets == 0
    seconds, parts, left = zip(*found.history, strict=True)
    for column in (seconds, parts, [-n for n in left]):
        assert list(column) == sorted(column)
    again = verify(net, prop, n_jobs=1)
    assert again.n_parts == found.n_parts and again.method == found.method
    assert verify(net, prop, n_jobs=2).verdict == "holds"


def test_files_are_read(tmp_path):
    """A model and a property by their paths; the file itself is run in float32."""
    ABSOLUTE.save(tmp_path / "model.onnx")
    text = "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (>= X_0 -1))(assert (<= X_0 3))"
    (tmp_path / "high.vnnlib").write_text(text + "(assert (>= Y_0 2.5))")
    (tmp_path / "never.vnnlib").write_text(text + "(assert (>= Y_0 3.5))")
    found = verify(tmp_path / "model.onnx", tmp_path / "high.vnnlib")
    assert found.verdict == "violated" and found.word == "sat" and 2.5 <= found.witness[0] <= 3
    found = verify(str(tmp_path / "model.onnx"), str(tmp_path / "never.vnnlib"))
    assert found.verdict == "holds" and found.word == "unsat" and found.witness is None


# ---------------------------------------------------------------------- ACAS Xu


def acas(name):
    path = SHARED / f"models/acasxu_{name}.onnx"
    if not path.exists():
        pytest.skip("the shared models are not here")
    return pn.load(path)


@pytest.mark.parametrize(
    ("name", "number"), [("1_1", 1), ("1_2", 1), ("1_2", 2), ("1_2", 3), ("1_2", 4)]
)
def test_acas_properties_that_are_decided_quickly(name, number):
    found = verify(acas(name), Property.acas_xu(number), budget=300.0)
    assert found.verdict == KNOWN[name, number]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), list(KNOWN))
def test_acas_properties_come_out_as_the_literature_says(name, number):
    network, goal = acas(name), Property.acas_xu(number)
    found = verify(network, goal, budget=900.0)
    assert found.verdict == KNOWN[name, number]
    if found.witness is not None:
        assert goal.violated_by(found.witness, [network(found.witness)])


def test_bounds_that_cost_little_come_before_any_search(monkeypatch):
    """What they prove is neither searched nor cut; where they cost much the search is first."""
    net = random_network(np.random.default_rng(3), [8, 12, 2])
    box, row = (-np.ones(8), np.ones(8)), [[1.0, 0.0]]
    ends = [pn.relaxation.bounds(net, *box, row, method)[1][0] for method in ("interval", "linear")]
    prop = Property.box(*box, row, [np.mean(ends)])
    calls = []
    monkeypatch.setattr(portfolio.Run, "_search", lambda run, turns: calls.append("search"))
    monkeypatch.setattr(portfolio.Run, "_deduce", lambda run, turn: calls.append("conclusions"))
    found = verify(net, prop, budget=None)
    assert (found.verdict, found.method, calls) == ("holds", "linear bounds", [])
    monkeypatch.setattr(portfolio, "LINEAR_FIRST_WORK", 0)
    found = verify(net, prop, budget=None)
    assert (found.verdict, found.method, calls) == ("holds", "linear bounds", ["search"])

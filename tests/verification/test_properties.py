"""Properties as values: what their constructors mean, what violates them, and how they read."""

from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.verification import Property, UnsafeSet
from pindown.verification.vnnlib import property_of


def test_a_box_is_the_safe_set():
    """rows @ y <= limits everywhere, limits included: independent of how it is stored."""
    rng = np.random.default_rng(0)
    rows, limits = rng.integers(-2, 3, (3, 2)).astype(float), np.array([1.0, 0.0, 2.0])
    found = Property.box([0, 0, 0], [1, 1, 1], rows, limits)
    assert (len(found.unsafe), found.n_inputs, found.n_outputs) == (3, (3,), (2,))
    counts = [0, 0]
    for _ in range(300):
        x, y = rng.integers(-1, 6, 3) / 4, rng.integers(-4, 5, 2) / 2
        violated = bool(((x >= 0) & (x <= 1)).all() and (rows @ y > limits).any())
        counts[violated] += 1
        assert found.violated_by(x, y) == violated
    assert min(counts) > 30


def test_robust_means_strictly_the_largest_on_the_ball():
    rng = np.random.default_rng(1)
    center = np.array([[0.25, 0.5], [1.0, 0.0]])
    found = Property.robust(center, 1, 0.25, n_outputs=3, box=(0, 1))
    assert len(found.unsafe) == 2 and found.n_inputs == (4,)
    for _ in range(300):
        x, y = rng.integers(-1, 10, 4) / 8, rng.integers(0, 3, 3).astype(float)
        in_ball = (np.abs(x - center.ravel()) <= 0.25).all() and (x >= 0).all() and (x <= 1).all()
        assert found.violated_by(x, y) == (in_ball and max(y[0], y[2]) >= y[1])
    assert found.violated_by(center.ravel(), [1, 1, 0])  # a tie
    one = Property.robust(center, 1, 0.25, n_outputs=3, target=2)
    assert one.violated_by(center.ravel(), [5, 1, 2]) and not one.violated_by(center.ravel(), [5, 1, 0])
    assert "y_2 is above y_3" in str(one)


def test_the_ball_is_rounded_outwards_and_witnesses_inwards():
    rng = np.random.default_rng(2)
    center, radius = rng.standard_normal(50), 0.1
    (part,) = Property.robust(center, 0, radius, n_outputs=2).unsafe
    assert part.inner is not None
    for x, *ends in zip(center, part.lower, part.inner.lower, part.inner.upper, part.upper, strict=True):
        low, high = Fraction(x) - Fraction(radius), Fraction(x) + Fraction(radius)
        assert (
            Fraction(ends[0])
            <= low
            <= Fraction(ends[1])
            <= Fraction(ends[2])
            <= high
            <= Fraction(ends[3])
        )
    assert Property.robust([0.5], 0, 0.25, n_outputs=2).unsafe[0].inner is None


def test_output_range():
    rng = np.random.default_rng(3)
    low, high = np.array([-1.0, -np.inf, 0.0]), np.array([1.0, 2.0, np.inf])
    found = Property.output_range([0], [1], low, high)
    assert len(found.unsafe) == 4
    for _ in range(200):
        y = rng.integers(-4, 5, 3) / 2
        assert found.violated_by([0.5], y) == bool((y < low).any() or (y > high).any())


@pytest.mark.parametrize("increasing", [True, False])
def test_monotone_is_about_two_copies(increasing):
    """Of f(x) = a x_1 + x_0 it says the sign of a."""
    for slope in (-1.0, 0.0, 1.0):
        found = Property.monotone([0, 0], [1, 2], input=1, output=0, n_outputs=2, increasing=increasing)
        assert found.models == (0, 0) and found.n_models == 1 and found.n_free == 3
        first, second = found.reads
        violated = False
        for x in np.stack(np.meshgrid([0, 0.5, 1], [0, 1, 2], [0, 1, 2]), -1).reshape(-1, 3):
            outputs = [[slope * x[read][1] + x[read][0], 7.0] for read in (first, second)]
            violated |= found.violated_by(x, outputs)
        assert violated == (slope < 0 if increasing else slope > 0)


def test_it_is_the_property_that_a_file_states():
    names = "".join(f"(declare-const {v}_{i} Real)" for v in "XY" for i in range(2))
    text = (
        names + "(assert (<= 0 X_0 1)) (assert (<= 0 X_1 1)) (assert (or (> Y_0 2) (> (- Y_0 Y_1) 3)))"
    )
    read, made = property_of(text), Property.box([0, 0], [1, 1], [[1, 0], [1, -1]], [2, 3])
    assert str(read) == str(made)
    for one, other in zip(read.unsafe, made.unsafe, strict=True):
        for name in ("lower", "upper", "rows", "limits", "strict"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_violations_are_exact():
    """0.1 + 0.2 is above 0.3 in float64 and in rational arithmetic; 0.1 * 3 in the rationals is not."""
    above = Property.box([0], [1], [[1.0, 1.0]], [0.30000000000000004])
    exact = Fraction(0.1) + Fraction(0.2)
    assert exact < Fraction(0.30000000000000004) and not above.violated_by([0], [0.1, 0.2])
    tiny = Property.box([0], [1], [[1.0, 1.0]], [1.0])
    assert 1.0 + 1e-30 == 1.0 and tiny.violated_by([0], [1.0, 1e-30])
    assert Property.box([0], [1], [[1e-200]], [0.0]).violated_by([0], [1e-200])


def test_many_sets_are_looked_up_by_their_boxes():
    boxes = [(np.array([i / 100]), np.array([(i + 1) / 100])) for i in range(100)]
    unsafe = tuple(
        UnsafeSet(low, high, np.eye(1), np.array([float(i)])) for i, (low, high) in enumerate(boxes)
    )
    found = Property(unsafe, (1,), (1,))
    assert found.violated_by([0.555], [55.0]) and not found.violated_by([0.555], [55.5])
    assert found.violated_by([0.56], [56.0])  # on the border of two
    assert not Property((), (1,), (1,)).violated_by([0.5], [0.0])


def test_models_of_other_sizes_are_refused():
    net = ReluNetwork.from_layers([(np.ones((3, 2)), np.zeros(3))])
    Property.box([0, 0], [1, 1], np.eye(3), np.ones(3)).check_model(net)
    with pytest.raises(
        ValueError, match="about 1 input and 3 outputs; the model has 2 inputs and 3 outputs"
    ):
        Property.box([0], [1], np.eye(3), np.ones(3)).check_model(net)
    pair = Property.monotone([0, 0], [1, 1], input=0, output=0, n_outputs=3)
    pair.check_model(net)
    with pytest.raises(ValueError, match="about 1 model; got 2"):
        pair.check_model(net, net)
    two = Property((), (2, 2), (3, 4), (np.arange(2), np.arange(2)), (0, 1))
    with pytest.raises(ValueError, match="2 inputs and 4 outputs; model 2 has 2 inputs and 3 outputs"):
        two.check_model(net, net)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Property.box([1], [0], [[1]], [1]), "lower <= upper"),
        (lambda: Property.box([0], [np.inf], [[1]], [1]), "finite"),
        (lambda: Property.box([0], [1], [1], [1]), "rows must be"),
        (lambda: Property.box([0], [1], [[np.nan]], [1]), "rows must be finite"),
        (lambda: Property.box([0], [1], [[1]], [1, 2]), "limits must be 1 finite"),
        (lambda: Property.robust([0], 2, 0.1, n_outputs=2), "label must be"),
        (lambda: Property.robust([0], 0, -1, n_outputs=2), "radius must be"),
        (lambda: Property.robust([0], 0, 1, n_outputs=1), "n_outputs must be"),
        (lambda: Property.robust([0], 0, 1, n_outputs=2, target=0), "target must be another"),
        (lambda: Property.robust([2], 0, 1, n_outputs=2, box=(0, 1)), "lie in the box"),
        (lambda: Property.robust([np.nan], 0, 1, n_outputs=2), "finite"),
        (lambda: Property.output_range([0], [1], [1], [0]), "lower <= upper"),
        (lambda: Property.output_range([0], [1], [np.nan], [0]), "lower <= upper"),
        (lambda: Property.monotone([0], [1], input=1, output=0, n_outputs=1), "input must be"),
        (lambda: Property.monotone([0], [1], input=0, output=1, n_outputs=1), "output must be"),
        (lambda: Property.acas_xu(11), "number must be"),
        (lambda: Property.box([0], [1], [[1]], [1]).violated_by([0, 0], [1]), "x must be 1"),
        (lambda: Property.box([0], [1], [[1]], [1]).violated_by([0], [np.nan]), "outputs must be 1"),
        (
            lambda: UnsafeSet(np.zeros(1), np.zeros(2), np.eye(1), np.zeros(1)),
            "an unsafe set of 1 inputs",
        ),
        (
            lambda: Property((UnsafeSet(np.zeros(1), np.ones(1), np.eye(1), np.zeros(1)),), (2,), (1,)),
            "needs 2 inputs and 1 outputs",
        ),
    ],
)
def test_what_makes_no_property(make, message):
    with pytest.raises(ValueError, match=message):
        make()


NAMES = "".join(f"(declare-const {v}_{i} Real)" for v in "XY" for i in range(2))


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("(>= Y_0 3.5)", "y_1 < 3.5"),
        ("(> Y_0 3.5)", "y_1 <= 3.5"),
        ("(<= Y_0 Y_1)", "y_1 > y_2"),
        ("(<= Y_1 Y_0)", "y_1 < y_2"),
        ("(<= (+ (* 2 Y_0) Y_1) 3)", "2 y_1 + y_2 > 3"),
        ("(>= (- (* 2 Y_0) Y_1) 3)", "2 y_1 - y_2 < 3"),
        ("(>= Y_0 (+ Y_1 X_1))", "y_1 - y_2 - x_2 < 0"),
        ("(and (<= Y_0 1) (>= Y_1 2))", "never (y_1 <= 1 and y_2 >= 2)"),
        ("(or (<= Y_0 1) (>= Y_1 2))", "y_1 > 1, y_2 < 2"),
        ("(and (<= X_0 0) (> X_0 0))", "it holds: no input can violate it, whatever the outputs are"),
    ],
)
def test_words_say_what_is_demanded(condition, words):
    found = property_of(NAMES + f"(assert (<= 0 X_0 1)) (assert (= X_1 3)) (assert {condition})")
    where = "for all 2 inputs in a box (0 <= x_1 <= 1, x_2 = 3): "
    assert str(found) == (where + words if found.unsafe else words)


def test_words_stay_short():
    wide = Property.box(np.zeros(500), np.ones(500), np.ones((40, 300)), np.ones(40))
    assert "and 497 more" in str(wide) and "40 ways to violate it" in str(wide) and len(str(wide)) < 400
    assert repr(wide) == f"Property({wide})" and "Property" in wide._repr_html_()
    pair = Property.monotone([0, 0], [1, 1], input=0, output=0, n_outputs=1)
    assert "3 inputs of 2 networks" in str(pair) and "x'_1" in str(pair)
    assert "(x_1 >= x'_1 and y_1 < y'_1)" in str(
        Property(pair.unsafe, *[(2, 2), (1, 1)], pair.reads, (0, 0))
    )


def test_a_box_may_be_given_as_one():
    found = Property.robust([0.5], 0, 1.0, n_outputs=2, box=Box([0], [1]))
    assert found.unsafe[0].lower == 0 and found.unsafe[0].upper == 1

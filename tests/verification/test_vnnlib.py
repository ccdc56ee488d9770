"""VNN-LIB: what is read is what is written, and a stranger's file cannot hurt."""

import gc
import gzip
import os
import re
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pindown.errors import PropertyFileError
from pindown.verification import Property, read_vnnlib
from pindown.verification._vnnlib import syntax
from pindown.verification.vnnlib import property_of

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[3] / "shared"))
VARIABLES = ["X_0", "X_1", "Y_0", "Y_1"]
DECLARED = "".join(f"(declare-const {name} Real)\n" for name in VARIABLES)
BOXED = DECLARED + "".join(f"(assert (<= -2 {x} 2))\n" for x in VARIABLES[:2])
TWO = """(vnnlib-version <2.0>)
(declare-network f (declare-input X_f real [2]) (declare-output Y_f real [1,2]))
(declare-network g ({} f) (declare-input X_g real [2]) (declare-output Y_g real [1, 2]))
"""


def inside(part, point):
    """Whether a rational point lies in a set, in rational arithmetic of its own."""
    x = point[:2]
    numbers = [Fraction(v) for v in (*part.lower, *part.upper)]
    if not all(low <= v <= high for low, v, high in zip(numbers[:2], x, numbers[2:], strict=True)):
        return False
    for i, limit in enumerate(part.limits):
        row = [*(part.input_rows[i] if part.input_rows is not None else (0, 0)), *part.rows[i]]
        value = sum(Fraction(c) * v for c, v in zip(row, point, strict=True))
        if value > limit or (value == limit and part.strict is not None and part.strict[i]):
            return False
    return True


# ---------------------------------------------------------------------- random formulas


def random_number(rng):
    return str(
        rng.choice(["0", "1", "-1", "0.5", "0.1", "-0.7", "1.3", "2e-1", "-.25", "(- 0.3)", "1.75"])
    )


def value_of(text):
    return -Fraction(text[3:-1]) if text.startswith("(-") else Fraction(text)


def random_term(rng, depth):
    """A term as text, and the function that it is."""
    kind = rng.integers(6) if depth else rng.integers(2)
    if kind == 0:
        text = random_number(rng)
        value = value_of(text)
        return text, lambda point: value
    if kind == 1:
        i = int(rng.integers(4))
        return VARIABLES[i], lambda point: point[i]
    parts = [random_term(rng, depth - 1) for _ in range(rng.integers(1, 4))]
    texts, functions = zip(*parts, strict=True)
    if kind == 2:
        return f"(+ {' '.join(texts)})", lambda point: sum(f(point) for f in functions)
    if kind == 3:
        if len(parts) == 1:
            return f"(- {texts[0]})", lambda point: -functions[0](point)
        return (
            f"(- {' '.join(texts)})",
            lambda point: functions[0](point) - sum(f(point) for f in functions[1:]),
        )
    number = random_number(rng)
    factor = value_of(number)
    if kind == 4:
        return f"(* {number} {texts[0]})", lambda point: factor * functions[0](point)
    return f"(* {texts[0]} {number} 2)", lambda point: 2 * factor * functions[0](point)


RELATIONS = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def random_condition(rng, depth):
    """A condition as text, and the function that it is."""
    if depth == 0 or rng.random() < 0.35:
        relation = str(rng.choice(list(RELATIONS), p=[0.3, 0.3, 0.1, 0.1, 0.05, 0.05, 0.1]))
        (a, f), (b, g) = random_term(rng, 2), random_term(rng, int(rng.integers(2)))
        text = f"({a} {relation} {b})" if rng.random() < 0.1 else f"({relation} {a} {b})"
        return text, lambda point: RELATIONS[relation](f(point), g(point))
    parts = [random_condition(rng, depth - 1) for _ in range(rng.integers(1, 4))]
    texts, functions = zip(*parts, strict=True)
    kind = rng.integers(5)
    if kind == 0:
        return f"(not {texts[0]})", lambda point: not functions[0](point)
    if kind in (1, 2):
        return f"(and {' '.join(texts)})", lambda point: all(f(point) for f in functions)
    return f"(or {' '.join(texts)})", lambda point: any(f(point) for f in functions)


@pytest.mark.parametrize("seed", range(80))
def test_the_union_of_unsafe_sets_is_the_formula_as_written(seed):
    """Inside of a set exactly where the formula holds; rounded outwards where decimals are met."""
    rng = np.random.default_rng(seed)
    conditions = [random_condition(rng, int(rng.integers(4))) for _ in range(rng.integers(1, 4))]
    found = property_of(BOXED + "\n".join(f"(assert {text})" for text, _ in conditions))
    eighths = [[Fraction(int(i), 8) for i in rng.integers(-17, 18, 4)] for _ in range(60)]
    tenths = [[Fraction(int(i), 10) for i in rng.integers(-21, 22, 4)] for _ in range(60)]
    for point in (*eighths, *tenths):
        boxed = all(-2 <= v <= 2 for v in point[:2])
        truth = boxed and all(holds(point) for _, holds in conditions)
        if point in eighths:
            assert found.violated_by(*np.split(np.array(point, dtype=float), 2)) == truth
            assert any(inside(part.inside, point) for part in found.unsafe) == truth
        if truth:
            assert any(inside(part, point) for part in found.unsafe)
        if any(inside(part.inside, point) for part in found.unsafe):
            assert truth


def test_both_truths_are_met():
    """The test above is not about empty sets alone."""
    rng = np.random.default_rng(0)
    counts = [0, 0]
    for _ in range(100):
        _, holds = random_condition(rng, 3)
        counts[holds([Fraction(int(i), 8) for i in rng.integers(-17, 18, 4)])] += 1
    assert min(counts) > 20


# ---------------------------------------------------------------------- numbers


def test_ends_are_rounded_outwards_for_proofs_and_inwards_for_witnesses():
    (part,) = property_of(
        BOXED + "(assert (<= 0.1 X_0 0.3)) (assert (> X_1 1)) (assert (>= Y_0 0.7))"
    ).unsafe
    assert Fraction(part.lower[0]) < Fraction("0.1") < Fraction(part.inner.lower[0])
    assert Fraction(part.inner.upper[0]) < Fraction("0.3") < Fraction(part.upper[0])
    assert part.inner.lower[0] == np.nextafter(part.lower[0], 1) == 0.1
    assert part.lower[1] == 1 and part.inner.lower[1] == np.nextafter(1, 2)
    assert -Fraction(part.limits[0]) < Fraction("0.7") < -Fraction(part.inner.limits[0])
    below = np.nextafter(0.7, 0)
    assert part.contains([0.2, 1.5], [below + 2e-16, 0]) and not part.contains([0.2, 1.5], [below, 0])
    assert not part.contains([0.2, 1.0], [1, 0]) and not part.contains([part.lower[0], 1.5], [1, 0])


def test_numbers_that_float64_holds_are_left_alone():
    (part,) = property_of(BOXED + "(assert (<= Y_0 0.5))").unsafe
    assert part.inner is None and part.inside is part
    assert (part.lower == -2).all() and part.limits == 0.5 and part.input_rows is None


def test_a_fixed_input_between_two_float64_is_met_by_the_nearest():
    (part,) = property_of(BOXED + "(assert (== X_0 0.1)) (assert (<= Y_0 0))").unsafe
    assert part.lower[0] < part.upper[0] and part.inner.lower[0] == part.inner.upper[0] == 0.1
    assert part.contains([0.1, 0], [0, 0])


def test_an_interval_that_is_empty_by_less_than_rounding_is_empty():
    """0.1 < x < 0.1 + 1e-30 holds no float64, x <= 0.1 - 1e-30 and x >= 0.1 nothing at all."""
    tail = "(assert (<= Y_0 0))"
    (part,) = property_of(BOXED + "(assert (< 0.1 X_0 0.1000000000000000000000000000001))" + tail).unsafe
    assert not part.contains([0.1, 0], [0, 0])
    assert not property_of(
        BOXED + "(assert (<= 0.1 X_0 0.0999999999999999999999999999999))" + tail
    ).unsafe


@pytest.mark.parametrize(
    ("names", "limit", "n_sets"),
    [(("X_0", "X_1"), "0", 1), (("X_0", "Y_1"), "0.3", 2), (("Y_0", "Y_1"), "0.3", 4)],
    ids=str,
)
def test_coefficients_that_float64_does_not_hold(names, limit, n_sets):
    """A set of decimals of 20 digits is in the union of its sets, and the inner ones are in it."""
    a, b, t = Fraction("0.12345678901234567891"), Fraction("-1.98765432109876543211"), Fraction(limit)
    terms = f"(* 0.12345678901234567891 {names[0]}) (* -1.98765432109876543211 {names[1]})"
    found = property_of(BOXED + f"(assert (<= (+ {terms}) {limit}))")
    assert len(found.unsafe) == n_sets
    places = [VARIABLES.index(name) for name in names]
    rng = np.random.default_rng(0)
    counts = [0, 0]
    for i in range(400):
        u = Fraction(rng.uniform(-2, 2))
        # Next to the boundary, on either side, and anywhere.
        near = (t - a * u) / b
        v = near + Fraction(int(rng.integers(-9, 10)), 10**19) if i % 2 else Fraction(rng.uniform(-2, 2))
        truth = a * u + b * v <= t
        counts[truth] += 1
        point = [Fraction(0)] * 4
        point[places[0]], point[places[1]] = u, v
        if truth:
            assert any(inside(part, point) for part in found.unsafe)
        if any(inside(part.inside, point) for part in found.unsafe):
            assert truth
        if i % 2 == 0:
            assert any(inside(part, point) for part in found.unsafe) == truth
    assert min(counts) > 50


def test_rows_are_scaled_to_integers():
    (part,) = property_of(BOXED + "(assert (<= (- (* 0.1 Y_0) (* 0.25 Y_1)) 0.3))").unsafe
    assert part.rows.tolist() == [[2, -5]] and part.limits == 6 and part.inner is None
    (part,) = property_of(BOXED + "(assert (>= (+ (* 2 Y_0) (* 4 Y_1)) 3))").unsafe
    assert part.rows.tolist() == [[-1, -2]] and part.limits == -1.5


@pytest.mark.parametrize(
    "number", ["nan", "inf", "-inf", "1e999", "1e-999", "0x10", "1_000", "١", "9" * 500]
)
def test_what_is_no_number(number):
    with pytest.raises(PropertyFileError, match=r"line 7, column 17: .*(no number|400 digits)"):
        property_of(BOXED + f"(assert (<= Y_0 {number}))")
    with pytest.raises(PropertyFileError, match="beyond float64"):
        property_of(BOXED + "(assert (<= Y_0 1e309))")


# ---------------------------------------------------------------------- boxes


def test_an_input_without_a_bound_is_named():
    for missing, word in (
        ("(<= X_1 1)", "lower"),
        ("(>= X_1 1)", "upper"),
        ("(<= (+ X_1 Y_0) 1)", "upper"),
    ):
        with pytest.raises(PropertyFileError, match=f"input X_1 has no {word} bound"):
            property_of(DECLARED + f"(assert (<= 0 X_0 1)) (assert (or {missing} (= X_1 0)))")
    with pytest.raises(PropertyFileError, match=r"input X_g\[1\] has no"):
        property_of(
            TWO.format("equal-to") + "(assert (and (<= 0 X_f[0] 1) (<= 0 X_f[1] 1) (= X_g[0] X_f[0])))"
        )


def test_bounds_follow_from_other_inputs():
    """2 x_1 <= x_0, x_1 >= x_0 - 3 and 0 <= x_0 <= 1, in a chain of ten."""
    names = [f"X_{i}" for i in range(10)]
    text = "".join(f"(declare-const {name} Real)" for name in names) + "(declare-const Y_0 Real)"
    text += "(assert (<= Y_0 0)) (assert (<= 0 X_9 1))"
    for i in range(9):
        text += f"(assert (<= (* 2 X_{i}) X_{i + 1})) (assert (>= X_{i} (- X_{i + 1} 3)))"
    (part,) = property_of(text).unsafe
    np.testing.assert_array_equal(part.upper, 0.5 ** np.arange(9, -1, -1.0))
    np.testing.assert_array_equal(part.lower, -3.0 * np.arange(9, -1, -1))
    assert part.input_rows.shape == (19, 10)
    assert not property_of(text + "(assert (<= 5 X_0 6))").unsafe


def test_contradictions_are_dropped():
    for nothing in (
        "(and (> Y_0 (+ Y_1 0.05)) (< Y_0 (- Y_1 0.05)))",
        "(and (< (* 2 Y_0) (* 2 Y_1)) (<= Y_1 Y_0))",
        "(< 1 1)",
        "(= 0 1)",
        "(not (= X_0 X_0))",
        "false",
        "(and (< X_0 1) (or (> X_0 1) (= X_0 1)))",
        "(>= (+ X_0 X_1) 4.1)",
        "(> (+ X_0 X_1) 4)",
    ):
        assert not property_of(BOXED + f"(assert (<= Y_0 1)) (assert {nothing})").unsafe
    assert (
        len(property_of(BOXED + "(assert (<= Y_0 1)) (assert (or false (= 1 1) (< 2 1)))").unsafe) == 1
    )


def test_a_property_of_inputs_alone_is_violated_everywhere():
    found = property_of(BOXED)
    assert found.violated_by([0, 0], [5, 5]) and not found.violated_by([3, 0], [5, 5])
    assert "no input may lie there" in str(found)


def test_boxes_are_combined_and_shared():
    ands = [f"(and (<= {i} X_0 {i + 0.5}) (>= Y_{i % 2} {i}))" for i in range(-2, 2)]
    found = property_of(
        BOXED + f"(assert (or {' '.join(ands)})) (assert (or (<= X_0 -0.75) (>= X_0 0.25)))"
    )
    assert [(part.lower[0], part.upper[0]) for part in found.unsafe] == [
        (-2.0, -1.5), (-1.0, -0.75), (0.25, 0.5), (1.0, 1.5)
    ]  # fmt: skip
    same = property_of(BOXED + "(assert (or (<= Y_0 1) (>= Y_1 1)))").unsafe
    assert same[0].lower is same[1].lower


# ---------------------------------------------------------------------- two networks


def test_two_networks_share_inputs_that_are_equal():
    text = TWO.format("isomorphic-to") + "(assert (and (<= 0 X_f[0] 1) (<= 0 X_f[1] 2)))"
    text += "(assert (== X_f[0] X_g[0])) (assert (= X_g[1] X_f[1])) (assert (Y_f[0,1] < Y_g[0][1]))"
    found = property_of(text)
    assert found.n_inputs == (2, 2) and found.n_outputs == (2, 2) and found.models == (0, 1)
    assert [read.tolist() for read in found.reads] == [[0, 1], [0, 1]] and found.n_free == 2
    (part,) = found.unsafe
    assert part.rows.tolist() == [[0, 1, 0, -1]] and part.strict.tolist() == [True]
    assert found.violated_by([0, 2], ([0, 1], [0, 2])) and not found.violated_by(
        [0, 2], ([0, 1], [5, 1])
    )


def test_an_equality_of_one_alternative_is_no_shared_input():
    text = TWO.format("equal-to") + "(assert (and (<= 0 X_f[0] 1) (<= 0 X_f[1] 2) (<= 0 X_g[1] 1)))"
    text += "(assert (or (= X_g[0] X_f[0]) (and (= X_g[0] 7) (<= Y_g[0,0] 1))))"
    found = property_of(text)
    assert found.models == (0, 0) and [read.tolist() for read in found.reads] == [[0, 1], [2, 3]]
    first, second = found.unsafe
    assert first.upper[2] == 1 and second.lower[2] == second.upper[2] == 7
    assert found.violated_by([0.5, 0, 0.5, 0], np.full((2, 2), 9.0))
    assert not found.violated_by([0.5, 0, 0.25, 0], np.full((2, 2), 9.0))


def test_only_what_is_equal_is_shared():
    """x_f = -x_g, x_f = 2 x_g and y = x say something else; x_f - x_g is zero where they are shared."""
    boxed = "(assert (and (<= 0 X_f[0] 1) (<= 0 X_f[1] 2) (<= -9 X_g[0] 9) (<= -9 X_g[1] 9)))"
    text = (
        TWO.format("equal-to")
        + boxed
        + "(assert (= X_f[0] (- X_g[0]))) (assert (= X_f[1] (* 2 X_g[1])))"
    )
    found = property_of(text + "(assert (= Y_f[0,0] X_g[0]))")
    assert [read.tolist() for read in found.reads] == [[0, 1], [2, 3]]
    assert found.violated_by([0.5, 1, -0.5, 0.5], [[-0.5, 0], [0, 0]])
    assert not found.violated_by([0.5, 1, 0.5, 0.5], [[0.5, 0], [0, 0]])
    text = TWO.format("equal-to") + boxed + "(assert (= X_f[0] X_g[0])) (assert (= X_g[0] X_f[1]))"
    found = property_of(text + "(assert (<= Y_f[0,0] (+ X_g[1] (- X_f[0] X_f[1]))))")
    assert [read.tolist() for read in found.reads] == [[0, 0], [0, 1]]
    (part,) = found.unsafe
    assert part.upper.tolist() == [1, 9] and part.input_rows.tolist() == [[0, -1]]


def test_tensors_are_read_in_the_order_of_their_entries():
    text = "(vnnlib-version <2.0>) (declare-network f (declare-input A float32 [1,2,3])"
    text += "(declare-output B Real []))"
    names = [f"A[0,{i},{j}]" for i in range(2) for j in range(3)]
    text += "".join(f"(assert (<= {i} {name} {i + 0.5}))" for i, name in enumerate(names))
    (part,) = property_of(text + "(assert (>= B A[0, 1, 2]))").unsafe
    np.testing.assert_array_equal(part.lower, np.arange(6))
    assert part.rows.tolist() == [[-1]] and part.input_rows.tolist() == [[0, 0, 0, 0, 0, 1]]


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(assert (<= Y_0 1)", "line 7, column 1: this parenthesis is never closed"),
        ("(assert\n  (<= Y_0 1)))", "line 8, column 14: this parenthesis closes nothing"),
        ("(assert (<= Y_7 1))", "line 7, column 13: 'Y_7' is no number and no variable"),
        ("(assert\n\t(<= (+ X_0\n   Q) 1))", "line 9, column 4: 'Q' is no number"),
        ("(assert (=> (<= Y_0 1) (<= Y_1 1)))", "line 7, column 9: '=>' is no operation"),
        ("(assert (<= (* Y_0 Y_1) 1))", "line 7, column 13: a product of two variables is not linear"),
        ("(assert (<= (/ 1 Y_0) 1))", "divisors that are numbers"),
        ("(assert (<= (/ Y_0 0) 1))", "divisors that are numbers other than 0"),
        ("(assert Y_0)", "line 7, column 9: a condition is needed"),
        ("(assert (and (<= Y_0 1) X_0))", "line 7, column 25: a condition is needed"),
        ("(assert (<= (and (<= Y_0 1)) 1))", "a number or a variable is needed"),
        ("(assert (<= Y_0))", "compares two terms"),
        ("(assert ())", "line 7, column 1: a condition is needed"),
        ("(assert (and))", "takes conditions"),
        ("(assert (not (<= Y_0 1) (<= Y_1 1)))", "takes one condition"),
        ("(assert (<= Y_0 1) (<= Y_1 1))", "assert takes one condition; here are 2"),
        ("(assert ((<= Y_0 1)))", "an operator is missing"),
        ("(assert (!= Y_0 1 2))", "compares two terms"),
        ("assert", "line 7, column 1: 'assert' stands outside"),
        ("(<= Y_0 1)", "stands outside|no command"),
        ("(define-fun f () Real 1)", "'define-fun' is no command"),
        ("(declare-const X_0 Real)", "declared twice"),
        ("(declare-const X_7 Real)", "X_2 is not declared"),
        ("(declare-const Z_0 Real)", "a variable is called X_0"),
        ("(declare-const X_2 Int)", "must be Real; got 'Int'"),
        ("(declare-fun X_2 (Real) Real)", "line 7"),
        ("(declare-network f (declare-input X real [1]) (declare-output Y real [1]))", "in one file"),
        ("(vnnlib-version <3.0>)", "must be 1.x or 2.x"),
        ("(assert (<= \x1b[2J 1))", r"\?"),
        ('(assert (<= Y_0 "1"))', "no number"),
    ],
)
def test_messages_say_where_and_what(text, message):
    with pytest.raises(PropertyFileError, match=message) as caught:
        property_of(BOXED + text)
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(declare-network f (declare-input X real [2]))", "one input and one output"),
        (
            "(declare-network f (declare-input X real [2]) (declare-input Z real [2]))",
            "declare-input twice",
        ),
        ('(declare-network f (declare-hidden H real [2] "h"))', "hidden tensor"),
        ("(declare-network f (declare-input X int32 [2]) (declare-output Y real [2]))", "real numbers"),
        ("(declare-network f (declare-input X real) (declare-output Y real [2]))", "and a shape"),
        (
            "(declare-network f (declare-input X real [-1]) (declare-output Y real [2]))",
            "must be numbers",
        ),
        ("(declare-network f (declare-input X real [0]) (declare-output Y real [2]))", "0 entries"),
        (
            "(declare-network f (declare-input X real [9999999,9999999]) (declare-output Y real [2]))",
            "limits",
        ),
        (
            "(declare-network f (declare-input X real [1] initialized) (declare-output Y real [2]))",
            "takes a name",
        ),
        ("(declare-network f (declare-input X real [1]) (declare-output X real [2]))", "'X' is taken"),
        (
            "(declare-network f (equal-to g) (declare-input X real [1]) (declare-output Y real [2]))",
            "earlier",
        ),
        ("(declare-network (declare-input X real [1]))", "name of the network"),
        ("(declare-network f X)", "takes declare-input"),
        ("", "declares no network"),
        ("(declare-const X_0 Real)", "Y_0 is not declared"),
        (TWO.format("equal-to") + "(assert (<= X_f[2] 1))", "'X_f\\[2\\]' is outside"),
        (TWO.format("equal-to") + "(assert (<= X_f 1))", "0 indices; X_f has 1"),
        (TWO.format("equal-to") + "(assert (<= Y_f[1] 1))", "1 indices; Y_f has 2"),
        (TWO.format("equal-to") + "(assert (<= Y_f[a,b] 1))", "must be numbers"),
        (TWO.format("equal-to").replace("X_g real [2]", "X_g real [3]"), "same shapes"),
    ],
)
def test_networks_that_are_refused(text, message):
    with pytest.raises(PropertyFileError, match=message):
        property_of(text)


def test_bad_files(tmp_path):
    def refused(name, data, message):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(PropertyFileError, match=message) as caught:
            read_vnnlib(path)
        assert str(caught.value).startswith(str(path))

    refused("a.vnnlib", b"", "is empty")
    refused("b.vnnlib", b"\x08\xff\x00", "no text: byte 1")
    refused("c.vnnlib.gz", b"(assert)", "gzip file is damaged")
    refused("d.vnnlib.gz", gzip.compress(BOXED.encode())[:-20], "damaged or cut short")
    for path, message in ((tmp_path, "a directory"), (tmp_path / "x.vnnlib", "no such file")):
        with pytest.raises(PropertyFileError, match=message):
            Property.from_vnnlib(path)


def test_a_bomb_stops_before_it_takes_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("pindown.verification.vnnlib.MAX_BYTES", 2**20)
    path = tmp_path / "bomb.vnnlib.gz"
    path.write_bytes(gzip.compress(b" " * 2**24))
    with pytest.raises(PropertyFileError, match="unpacks to more than 1 MB"):
        read_vnnlib(path)
    path = tmp_path / "large.vnnlib"
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(PropertyFileError, match="more than 1 MB"):
        read_vnnlib(path)


def timed(text, seconds):
    """What is read or said, and that it does not take long."""
    start = time.process_time()
    try:
        return property_of(text)
    except PropertyFileError as error:
        return str(error)
    finally:
        assert time.process_time() - start < seconds


N = 20_000


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("(assert " + "(and " * N + "(<= Y_0 1)" + ")" * N + ")", "y_1 > 1"),
        ("(assert " + "(not " * N + "(<= Y_0 1)" + ")" * N + ")", "y_1 > 1"),
        ("(assert " + "(and (<= Y_0 1) " * N + "(<= Y_0 1)" + ")" * N + ")", "y_1 > 1"),
        ("(assert (or (<= Y_1 2)" + "(and (<= Y_0 1) " * N + "(<= Y_0 1)" + ")" * N + "))", "y_2 > 2"),
        ("(assert (<= " + "(+ 1 Y_0 " * N + "Y_0" + ")" * N + " 1))", "y_1 > "),
        ("(assert (<= " + "(- 1 " * N + "Y_0" + ")" * N + " 1))", "y_1 > 1"),
        (
            "(assert " + "(or (<= Y_0 1) (and (<= Y_1 1) " * N + "(<= Y_0 1)" + "))" * N + ")",
            "out of all proportion",
        ),
        ("(assert (and " + "(or (<= Y_0 1) (<= Y_1 1))" * 60 + "))", "more than|combinations|union"),
        (
            "(assert (or false (and " + "(or (<= Y_0 1) (<= Y_1 1))" * 60 + ")))",
            "more than 100,000 sets",
        ),
        ("(" * 10**6, "parentheses are open"),
        ("(assert (<= (* " + "1e300 " * N + ") 1))", "too many digits"),
        (
            "(assert (<= (+ " + "".join(f"(/ 1 {i})" for i in range(1, 9999, 2)) + ") Y_0))",
            "too many digits",
        ),
        (
            "(assert (<= (+ " + "".join(f"(* (/ 1 {i}) Y_{i % 2})" for i in range(1, 9999, 2)) + ") 1))",
            "too many digits",
        ),
        (" " * 10**6, "for all 2 inputs"),
        ("(<= " * 10**5, "parentheses are open|never closed"),
        ("[" * 10**5, "stands outside"),
        ('"' * 99_999, "stands outside"),
    ],
    ids=lambda value: re.sub(r"\W+", " ", value)[:20],
)
def test_hostile_texts_end_soon(text, answer):
    found = timed(BOXED + text, 20.0)
    assert re.search(answer, str(found)), found


def test_a_megabyte_is_read_in_seconds():
    """Under a second where nothing else runs; the limit here is for busy machines."""
    rng = np.random.default_rng(0)
    lines = [f"(assert (<= {i} X_0 {i + 1}))" for i in (0,)]
    ends = np.sort(rng.random((9000, 2)), axis=1)
    sets = [f"(and (>= X_0 {a:.16f}) (<= X_0 {b:.16f}) (<= Y_0 {a + b:.16f}))" for a, b in ends]
    sides = [f"(and (>= X_0 {a:.16f}) (<= X_0 {b:.16f}) (>= Y_0 {a - b:.16f}))" for a, b in ends[:3000]]
    text = "(declare-const X_0 Real)(declare-const Y_0 Real)" + "".join(lines)
    text += "(assert (or\n" + "\n".join(sets + sides) + "))"
    assert len(text) > 0.95e6
    found = timed(text, 6.0)
    assert len(found.unsafe) == 12_000
    lower = np.array([part.lower[0] for part in found.unsafe[:9000]])
    np.testing.assert_allclose(lower, ends[:, 0], rtol=0, atol=1e-15)
    x, y = ends[77].mean(), ends[77].sum()
    assert found.violated_by([x], [y - 1e-9])


def test_changed_files_are_read_or_refused():
    """One kind of error, never another one, and never for long."""
    rng = np.random.default_rng(0)
    texts = [
        BOXED + "(assert (or (and (<= Y_0 (* 2 X_0)) (not (= Y_1 0.5))) (> (- Y_0 Y_1 1e-3) -2)))",
        TWO.format("equal-to")
        + "(assert (and (<= 0 X_f[0] 1) (<= 0 X_f[1] 2))) (assert (== X_f[0] X_g[0]))"
        "(assert (= X_g[1] X_f[1])) (assert (Y_f[0,1] < (+ Y_g[0,0] 0.1)))",
    ]
    pieces = [
        "(",
        ")",
        " ",
        "and",
        "or",
        "not",
        "<=",
        "=",
        "-",
        "*",
        "X_0",
        "Y_9",
        "1e5",
        "[",
        "]",
        "0",
        '"',
        ";",
        "\n",
    ]
    outcomes = {"read": 0, "refused": 0}
    start = time.process_time()
    for _ in range(1500):
        text = texts[rng.integers(2)]
        for _ in range(rng.integers(1, 4)):
            i, j = sorted(rng.integers(0, len(text) + 1, 2))
            j = min(int(j), int(i) + int(rng.integers(0, 12)))
            text = text[:i] + str(rng.choice(pieces)) * bool(rng.integers(2)) + text[j:]
        try:
            str(property_of(text))
            outcomes["read"] += 1
        except PropertyFileError:
            outcomes["refused"] += 1
    assert time.process_time() - start < 30 and min(outcomes.values()) > 20


def test_the_collector_is_on_again():
    with pytest.raises(PropertyFileError):
        property_of("(")
    assert gc.isenabled() and syntax.MAX_DEPTH > 1000


# ---------------------------------------------------------------------- published files

VNNCOMP = SHARED / "vnncomp"
shared = pytest.mark.skipif(not VNNCOMP.is_dir(), reason="the shared problems are not here")


def check_published(paths):
    for path in paths:
        found = read_vnnlib(path)
        assert found.n_free and str(found).startswith(("for all", "it holds")), path
        for part in found.unsafe[:20]:
            assert (part.lower <= part.inside.lower).all() and (part.inside.upper <= part.upper).all()


@shared
def test_published_properties_of_every_family_are_read():
    families = [sorted(folder.glob("*.vnnlib*")) for folder in VNNCOMP.iterdir() if folder.is_dir()]
    assert len(families) > 20
    check_published(files[len(files) // 2] for files in families)


@shared
@pytest.mark.slow
def test_every_published_property_is_read():
    files = sorted(VNNCOMP.glob("*/*.vnnlib*"))
    assert len(files) > 270
    check_published(files)


@shared
def test_pairs_of_networks_are_read_as_written():
    assert read_vnnlib(VNNCOMP / "isomorphic_acasxu_2026/instance_0.vnnlib.gz").unsafe == ()
    found = read_vnnlib(VNNCOMP / "monotonic_acasxu_2026/instance_0.vnnlib.gz")
    assert found.models == (0, 0)
    assert [read.tolist() for read in found.reads] == [[0, 1, 2, 3, 4], [5, 1, 2, 3, 4]]
    (part,) = found.unsafe
    assert part.upper[5] == part.upper[0] and part.lower[5] == part.lower[0]
    assert part.input_rows.tolist()[0] == [-1, 0, 0, 0, 0, 1] and part.limits[0] == 0


@shared
def test_the_largest_published_property():
    found = timed(
        (gzip.decompress((VNNCOMP / "nn4sys/lindex_9000.vnnlib.gz").read_bytes())).decode(), 8.0
    )
    assert len(found.unsafe) == 18_000 and "9,000 boxes" in str(found)

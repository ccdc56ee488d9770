"""Planted faults: for each the first concern says what is wrong, and without any there is none.

Every number of a concern is compared with a count of our own.
"""

import warnings

import numpy as np
import pytest

from pindown import ReluNetwork, audit, shrink
from pindown.findings.concerns import unchecked
from pindown.findings.how_far.calibration import _no_chance
from pindown.geometry import Box

CODES = ["ARC-01", "UNIT-01", "EQV-01", "ACC-01", "CAL-01", "ACC-03", "DAT", "OUT-03", "ROB-03"]
CENTERS = np.array([[2.0, 0, 0, 0], [-2.0, 0, 0, 0], [0, 2.0, 0, 0]])


def three_classes(n, seed, spread=0.55):
    """Return rows of three Gaussian classes, somewhat overlapping, with their labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return CENTERS[y] + spread * rng.standard_normal((n, 4)), y


def bayes_network(spread=0.55, extra=0, scale=1.0):
    """Return a ReLU network that computes the true log posterior, and so is calibrated.

    The scores of Gaussian classes are affine, 2 c.x / (2 s^2) - |c|^2 / (2 s^2); an affine map passes
    through ReLUs as x = relu(x) - relu(-x). Extra units are far below zero on every row.
    """
    first = np.vstack([np.eye(4), -np.eye(4), 0.01 * np.ones((extra, 4))])
    bias = np.r_[np.zeros(8), np.full(extra, -9.0)]
    scores = scale * CENTERS / spread**2
    offset = -scale * (CENTERS**2).sum(axis=1) / (2 * spread**2)
    last = np.hstack([scores, -scores, np.ones((3, extra))])
    return ReluNetwork.from_layers([(first, bias), (last, offset)])


@pytest.fixture(scope="module")
def rows():
    return three_classes(800, 0), three_classes(600, 1)


def asked(net, data, test, **options):
    return audit(net, *data, test=test, only=CODES, budget=60, **options)


def test_nothing_wrong(rows):
    result = asked(bayes_network(), *rows)
    assert result.concerns == () and result.verdict.startswith("No concern in ")
    assert len(result.judgement.fine) >= 7
    right = np.mean(bayes_network()(rows[1][0]).argmax(axis=1) == rows[1][1])
    assert f"{100 * right:.1f}% right on 600 rows of the test data" in result.verdict


def test_many_dead_units(rows):
    net = bayes_network(extra=12)
    (first, *others) = asked(net, *rows).concerns
    dead = np.mean((net.preactivations(rows[0][0]) <= 0).all(axis=0))
    assert first.name == "dead-units" and not others
    assert first.number.value == pytest.approx(dead) == pytest.approx(0.6)
    assert "60.0% of the units (12 of 20) are dead" in first.title
    # The function is affine on the box, so that more can go than what is dead.
    small = shrink(net, box=Box.around(rows[0][0])).network
    assert f"removes {net.size - small.size} units" in first.todo and small.size == 0


def test_leaked_test_rows(rows):
    (X, y), (V, w) = rows
    leaked = (np.r_[V[:450], X[:150]], np.r_[w[:450], y[:150]])
    result = asked(bayes_network(), (X, y), leaked)
    (first, *others) = result.concerns
    assert first.name == "leak" and not others and first.number.value == 0.25
    assert "150 rows" in first.todo and first.title in result.verdict


def test_overconfident_outputs(rows):
    spread = 1.4  # the classes overlap, so that confidence matters
    data, test = three_classes(800, 2, spread), three_classes(600, 3, spread)
    honest = asked(bayes_network(spread), data, test)
    assert honest.concerns == ()
    result = asked(bayes_network(spread, scale=8.0), data, test)
    first = result.concerns[0]
    p = np.exp(bayes_network(spread, scale=8.0)(test[0]))
    p /= p.sum(axis=1, keepdims=True)
    gap = np.mean(p.max(axis=1)) - np.mean(p.argmax(axis=1) == test[1])
    assert first.name == "overconfidence" and first.number.value == pytest.approx(gap)
    assert result["CAL-01"].facts["temperature"] == pytest.approx(8.0, rel=0.25)


def test_few_mistakes_that_no_confidence_shows(rows):
    result = asked(bayes_network(scale=12.0), *rows)
    first = result.concerns[0]
    p = np.exp(bayes_network(scale=12.0)(rows[1][0]))
    sure = (p / p.sum(axis=1, keepdims=True)).max(axis=1).mean()
    wrong = np.mean(p.argmax(axis=1) != rows[1][1])
    assert sure - (1 - wrong) < 0.03  # no concern of its own
    assert first.name == "understated-errors" and first.title in result.verdict
    assert first.number.value == pytest.approx(wrong / (1 - sure))
    assert "its confidence is not above its accuracy" not in dict(result.judgement.fine)
    limits = {"overconfidence": 0.001}  # then the gap says it, and the other is silent
    names = [c.name for c in asked(bayes_network(scale=12.0), *rows, limits=limits).concerns]
    assert names[0] == "overconfidence" and "understated-errors" not in names


def test_wrong_scaling(rows):
    (X, y), (V, w) = rows
    low, high = X.min(), X.max()

    def grey(Z):  # as bytes of an image; the network was made for the same in [0, 1]
        return np.round(255 * (np.clip(Z, low, high) - low) / (high - low))

    unit, inner = ReluNetwork.from_layers([((high - low) * np.eye(4), np.full(4, low))]), bayes_network()
    net = inner @ unit
    assert asked(net, (grey(X) / 255, y), (grey(V) / 255, w)).concerns == ()
    result = asked(net, (grey(X), y), (grey(V), w))
    first = result.concerns[0]
    assert first.name == "input-scaling" and first.todo.endswith("divide by 255.")
    assert "not scaled as the model expects" in result.verdict


def test_wrong_scaling_that_only_makes_it_too_sure():
    # Without biases a network decides alike at every scale.
    rng = np.random.default_rng(5)
    X = rng.random((1200, 2))
    labels = (rng.random(1200) < 1 / (1 + np.exp(-6 * (X[:, 0] - X[:, 1])))).astype(int)
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0]), ([[-3.0, 3.0], [3.0, -3.0]], [0, 0])])
    half = slice(600), slice(600, None)

    def found(Z):
        (X, y), test = ((Z[part], labels[part]) for part in half)
        return audit(net, X, y, test=test, only=["ACC-01", "CAL-01", "DAT-03"]).concerns

    assert found(X) == ()
    first = found(np.round(255 * X))[0]
    assert first.name == "input-scaling" and first.todo.endswith("divide by 255.")
    sure = 1 / (1 + np.exp(-6 * 255 * np.abs(X[half[1]] @ [1, -1])))
    right = np.mean((X[half[1]] @ [1, -1] > 0) == labels[half[1]])
    assert first.number.value == pytest.approx(sure.mean() - right, abs=0.03)  # of 500 of the rows


@pytest.mark.parametrize("seed", [0, 1])
def test_images_as_bytes_before_a_trained_network(seed):
    # Its biases are small, so that it stays right; it was trained briefly and is not sure enough.
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    parts = order[:1200], order[1200:]

    def found(net, scale):
        data, test = ((scale * X[part], y[part]) for part in parts)
        return audit(net, *data, test=test, only=["ACC-01", "CAL-01", "DAT-03"]).concerns

    def trained(scale):
        net = MLPClassifier((48,), max_iter=40, alpha=1e-2, random_state=seed)
        return net.fit(scale * X[parts[0]], y[parts[0]])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has not converged: it shall not
        small, large = trained(1 / 16), trained(255 / 16)
    assert found(small, 1 / 16) == ()
    for scale, remedy in ((1.0, "divide by the largest input of all."), (255 / 16, "divide by 255.")):
        first = found(small, scale)[0]
        assert first.name == "input-scaling" and first.todo.endswith(remedy)
        assert 0.03 < first.number.value < 0.2
    names = [concern.name for concern in found(large, 255 / 16)]  # trained on bytes it is only too sure
    assert names[0] == "overconfidence" and "input-scaling" not in names


def test_a_scaling_that_only_damps_confidence_is_no_matter_of_scale(rows):
    # Somewhat too sure, on inputs of deviation 1.3: dividing by it helps as any temperature would.
    result = asked(bayes_network(1.4, scale=1.6), three_classes(800, 2, 1.4), three_classes(600, 3, 1.4))
    assert result["DAT-03"].facts["gain_surely"] <= 0
    assert [concern.name for concern in result.concerns] == ["overconfidence"]


def test_scaling_before_a_model_that_scales_itself():
    sklearn = pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    (X, y), (V, w) = three_classes(500, 6), three_classes(300, 7)
    units = np.array([1.0, 100.0, 0.01, 5.0])
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(units * X + 40, y)
    assert sklearn and asked(pipeline, (units * X + 40, y), (units * V + 40, w)).concerns == ()
    before = pipeline[0].transform
    result = asked(pipeline, (before(units * X + 40), y), (before(units * V + 40), w))
    assert result.concerns[0].name == "input-scaling"
    assert "it begins with StandardScaler" in result.concerns[0].todo
    assert result["DAT-03"].facts["scaled"] == pytest.approx(pipeline.score(units * V + 40, w))


def test_overconfidence_is_told_from_chance():
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(400):
        sure = rng.beta(9, 1, 200)
        alarms += _no_chance(sure, rng.random(200) < sure)
    assert alarms <= 2  # of a thousand calibrated models at most about one
    nine_wrong = np.arange(228) >= 9
    assert _no_chance(np.full(228, 0.9987), nine_wrong)
    assert not _no_chance(np.full(228, 0.96), nine_wrong)


def test_a_tenth_of_the_labels_wrong(rows):
    (X, y), (V, w) = rows
    rng = np.random.default_rng(4)
    flipped = rng.random(len(w)) < 0.1
    noisy = np.where(flipped, (w + rng.integers(1, 3, len(w))) % 3, w)
    result = asked(bayes_network(), (X, y), (V, noisy))
    first = result.concerns[0]
    assert first.name == "label-noise" and 0.06 < first.number.value < 0.12
    listed = [row for row, *_ in result["DAT-02"].table.rows]
    assert np.mean(flipped[listed]) > 0.9  # those that are listed are those that were flipped


def test_wrong_labels_of_a_table_in_many_units():
    (X, y), (V, w) = three_classes(150, 8), three_classes(200, 9)
    units = np.array([1.0, 300.0, 0.01, 1000.0])  # what says nothing has the largest numbers
    inner, scale = bayes_network(), ReluNetwork.from_layers([(np.diag(1 / units), np.zeros(4))])
    rng = np.random.default_rng(3)
    flipped = np.isin(np.arange(200), rng.permutation(200)[:20])
    noisy = np.where(flipped, (w + rng.integers(1, 3, 200)) % 3, w)
    assert asked(inner @ scale, (units * X, y), (units * V, w)).concerns == ()
    result = asked(inner @ scale, (units * X, y), (units * V, noisy))
    assert result.concerns[0].name == "label-noise"
    assert "every input in units of its deviation" in result["DAT-02"].hypotheses[0].text


def test_labels_that_the_network_foretells_are_not_doubted():
    # A class scattered thinly among another: its neighbours mislead, its labels are right.
    rng = np.random.default_rng(0)

    def stripes(X):
        return 10.0 * ((20 * X[:, 0]) % 2 < 0.15)[:, None] * [-1.0, 1.0] + [5.0, -5.0]

    def drawn(n):
        X = rng.uniform(0, 1, (n, 6))
        return X, stripes(X).argmax(axis=1)

    data, test = drawn(900), drawn(600)
    result = audit(stripes, *data, test=test, only=["ACC-01", "DAT-02"])
    assert result["ACC-01"].facts["accuracy"] == 1.0 and result.concerns == ()
    assert "mislead here" in result["DAT-02"].reading
    (alone,) = audit(stripes, *data, only=["DAT-02"]).concerns  # training rows may be known by heart
    assert alone.name == "label-noise"


def test_of_one_row_nothing_is_concluded():
    X, y = three_classes(1, 0)
    result = audit(bayes_network(extra=12), X, y, only=["ACC-01", "UNIT-01", "DAT"])
    assert result["UNIT-01"].facts["dead"] >= 0.5 and result.concerns == ()


def test_what_could_not_be_checked_says_why(rows):
    result = audit(bayes_network(), *rows[0], only=["ACC-01", "CAL-01", "ROB-03"], budget=1e-9)
    words = unchecked(result.judgement, result.findings)
    assert "leak, input-scaling, input-range, label-noise, dead-units (not asked)" in words
    assert "(the budget of 1e-09 s was used up)" in words


def test_limits_are_data():
    X, y = three_classes(200, 0)
    net = bayes_network(extra=4)  # a third of the units
    (concern,) = audit(net, X, y, only=["UNIT-01"]).concerns
    assert concern.name == "dead-units" and "None is proved" not in concern.todo  # nobody looked
    assert audit(net, X, y, only=["UNIT-01"], limits={"dead-units": 0.5}).concerns == ()
    off = audit(net, X, y, only=["UNIT-01"], limits={"dead-units": False})
    assert off.concerns == () and off.verdict.startswith("Nothing could be checked")
    with pytest.raises(ValueError, match="unknown concern 'dead'; known are leak"):
        audit(net, X, y, limits={"dead": 0.5})
    with pytest.raises(ValueError, match="dead-units"):
        audit(net, X, y, limits={"dead-units": "many"})

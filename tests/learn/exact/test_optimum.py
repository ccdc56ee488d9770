"""The certified optimum against independent routes: enumeration, a MILP, optimisers, planted data."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, milp, minimize

from pindown.learn import ExactReluClassifier, ExactReluRegressor
from tests.learn.exact.naive import least_loss

LOSSES = ("squared", "absolute", "hinge", "logistic")
_MILP_TOLERANCE = 2e-5  # switches are whole to 1e-6 only, which the big-M multiplies
PEERS = {  # sums of squares, known to six digits from three independent solvers
    (10, 2, 1): 1.210596,
    (10, 2, 2): 0.756928,
    (10, 2, 3): 0.007647,
    (15, 2, 2): 0.591422,
    (20, 2, 2): 1.260111,
    (30, 2, 2): 3.417447,
    (20, 3, 2): 1.137142,
    (50, 2, 1): 9.404326,
}


def _model(loss, **parameters):
    kind = ExactReluRegressor if loss in ("squared", "absolute") else ExactReluClassifier
    return kind(loss=loss, **{"output_bias": False, "verbose": 0, **parameters})


def _problem(rng, loss, n_samples, n_features):
    X = rng.normal(size=(n_samples, n_features))
    if loss in ("squared", "absolute"):
        return X, rng.normal(size=n_samples)
    y = np.where(rng.random(n_samples) < 0.5, -1.0, 1.0)
    y[:2] = (-1, 1)
    return X, y


def _peers_data(n, d):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + 0.5 * np.abs(X[:, 1]) + 0.1 * rng.normal(size=n)


def _check_against_naive(seed, loss, most_samples, most_features):
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, most_features + 1))
    n_samples = int(rng.integers(n_features + 1, most_samples + 1))
    width, bias = int(rng.integers(1, 3)), bool(rng.integers(2))
    ridge = float(rng.choice([0.0, 0.1])) if loss in ("squared", "logistic") else 0.0
    if n_features == 1 and loss == "logistic":
        ridge = 0.1  # an infimum that is not attained is what SLSQP does worst
    X, y = _problem(rng, loss, n_samples, n_features)
    model = _model(loss, width=width, ridge=ridge, output_bias=bias).fit(X, y)
    expected = least_loss(X, y, width, loss, ridge=ridge, bias=bias)
    assert model.optimal_
    assert model.best_loss_ == pytest.approx(expected, abs=1e-7, rel=1e-7)
    assert model.lower_bound_ <= expected + 1e-9
    assert model.gap_ <= 1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_naive_enumeration(seed, loss):
    _check_against_naive(seed, loss, most_samples=5, most_features=2 if loss == "squared" else 1)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(100, 150))
def test_agrees_with_naive_enumeration_on_two_hundred_problems(seed, loss):
    _check_against_naive(seed, loss, most_samples=7 if loss == "squared" else 6, most_features=2)


def _by_milp(X, y, width, loss):
    """Mixed-integer linear program with big-M for weights up to 20 in size (absolute and hinge loss)."""
    n, d = X.shape
    size, big = 20.0, 20.0 * (np.abs(X).sum(axis=1).max() + 1)
    best = np.inf
    for positive in range(width + 1):
        signs = np.array([1.0] * positive + [-1.0] * (width - positive))
        # variables: weights (w * (d + 1)), outputs u (w * n), switches z (w * n), errors t (n)
        weights, units = width * (d + 1), width * n
        total = weights + 2 * units + n
        rows, low, high = [], [], []

        def add(coefficients, lower, upper, rows=rows, low=low, high=high, total=total):
            row = np.zeros(total)
            for index, value in coefficients:
                row[index] += value
            rows.append(row)
            low.append(lower)
            high.append(upper)

        for u in range(width):
            for j in range(n):
                z, o = weights + units + u * n + j, weights + u * n + j
                line = [(u * (d + 1) + i, v) for i, v in enumerate([*X[j], 1.0])]
                minus = [(i, -v) for i, v in line]
                add([(o, 1.0), *minus], 0, np.inf)  # o >= line
                add([(o, 1.0), *minus, (z, big)], -np.inf, big)  # o <= line + big (1 - z)
                add([(o, 1.0), (z, -big)], -np.inf, 0)  # o <= big z
        for j in range(n):
            out = [(weights + u * n + j, signs[u]) for u in range(width)]
            t = weights + 2 * units + j
            if loss == "absolute":
                add([*out, (t, -1.0)], -np.inf, y[j])
                add([*out, (t, 1.0)], y[j], np.inf)
            else:
                add([(i, y[j] * v) for i, v in out] + [(t, 1.0)], 1.0, np.inf)
        lower = np.concatenate([np.full(weights, -size), np.zeros(2 * units + n)])
        upper = np.concatenate(
            [np.full(weights, size), np.full(units, big), np.ones(units), np.full(n, np.inf)]
        )
        whole = np.concatenate([np.zeros(weights + units), np.ones(units), np.zeros(n)])
        for presolve in (True, False):  # with presolve, some of these end in an error of the solver
            found = milp(
                np.concatenate([np.zeros(total - n), np.ones(n)]),
                constraints=LinearConstraint(np.array(rows), low, high),
                bounds=(lower, upper),
                integrality=whole,
                options={"mip_rel_gap": 0.0, "presolve": presolve},
            )
            if found.fun is not None:
                break
        best = min(best, found.fun)
    return best


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_a_mixed_integer_program(seed):
    rng = np.random.default_rng(1000 + seed)
    loss = ("absolute", "hinge")[seed % 2]
    X, y = _problem(rng, loss, int(rng.integers(4, 7)), int(rng.integers(1, 3)))
    width = 1 + seed % 4 // 2
    model = _model(loss, width=width).fit(X, y)
    by_milp = _by_milp(X, y, width, loss)
    slopes = np.abs(np.asarray(model.network_.layers[0].weight)).max(initial=0)
    assert (
        model.best_loss_ <= by_milp + _MILP_TOLERANCE
    )  # the program limits weights, the search does not
    if max(slopes, np.abs(model.network_.layers[0].bias).max()) < 20:
        assert model.best_loss_ == pytest.approx(by_milp, abs=_MILP_TOLERANCE)


@pytest.mark.parametrize(("case", "optimum"), PEERS.items(), ids=str)
def test_known_optima(case, optimum):
    n, d, width = case
    X, y = _peers_data(n, d)
    model = ExactReluRegressor(width=width, verbose=0).fit(X, y)
    assert model.optimal_
    assert model.best_loss_ == pytest.approx(optimum, abs=6e-7)
    assert ((model.predict(X) - y) ** 2).sum() == pytest.approx(model.best_loss_, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("width", [1, 2])
def test_planted_networks_are_fitted_exactly(loss, width):
    rng = np.random.default_rng(width)
    X = rng.normal(size=(12, 2))
    y = np.maximum(X @ rng.normal(size=(2, width)) + 0.2, 0) @ rng.choice([-1, 1], size=width)
    if loss in ("hinge", "logistic"):
        y = np.where(y > np.median(y), 1, -1)
        if width == 1:
            y = np.where(X[:, 0] + X[:, 1] > 0.1, 1, -1)  # a half-space, with an output bias
    model = _model(loss, width=width + (loss in ("hinge", "logistic")), output_bias=True).fit(X, y)
    assert model.optimal_
    assert model.best_loss_ <= 1e-8


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", [7000, 7004, 7008, 7010])  # two end inside their cells, two on a fold
def test_interpolation_is_optimal(loss, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(7, 3)), rng.normal(size=7)
    if loss in ("hinge", "logistic"):
        y = np.where(X[:, 0] > 0, 1.0, -1.0)
    model = _model(loss, width=2, output_bias=loss in ("hinge", "logistic")).fit(X, y)
    assert model.optimal_
    assert "fitted up to rounding" in model.summary()
    f = model.network_(X)[:, 0]
    if loss == "logistic":
        assert np.logaddexp(0, -y * f).max() < 1e-16
    else:
        (A, b), _ = model.network_.layers
        size = (np.abs(X) @ np.abs(A).T + np.abs(b)).sum(axis=1)
        missing = np.maximum(0, 1 - y * f) if loss == "hinge" else np.abs(f - y)
        assert (missing <= 2e-15 * size + 1e-15).all()


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_sample_on_a_fold_is_fitted(loss):
    t = np.arange(-2.0, 3.0)
    model = _model(loss, width=2).fit(t[:, None], np.abs(t))
    assert model.optimal_ and model.best_loss_ < 1e-15


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_small_loss_is_not_an_interpolation(loss):
    t = np.linspace(-1, 1, 9)
    y = np.abs(t) + 1e-9 * np.cos(9 * t)
    model = _model(loss, width=2).fit(t[:, None], y)
    fitted = "fitted up to rounding" in model.summary()
    assert not fitted
    assert model.lower_bound_ <= model.best_loss_
    assert model.optimal_ or "nor can more budget" in model.summary()


def test_summary_names_its_arithmetic():
    X, y = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]]), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    model = _model("squared", width=1).fit(X, y)
    assert model.optimal_
    assert "no directed rounding" in model.summary()


@pytest.mark.parametrize("loss", LOSSES)
def test_more_units_or_a_bias_never_hurt(loss):
    rng = np.random.default_rng(3)
    X, y = _problem(rng, loss, 8, 1)
    best = [_model(loss, width=w).fit(X, y).best_loss_ for w in (1, 2, 3)]
    assert best[0] >= best[1] - 1e-9 >= best[2] - 2e-9
    assert _model(loss, width=1, output_bias=True).fit(X, y).best_loss_ <= best[0] + 1e-9


def _descend(X, y, width, loss, rng):
    """A local minimum by L-BFGS from random weights, with free output weights."""
    d = X.shape[1]

    def value(theta):
        W, b, v = theta[: width * d].reshape(width, d), theta[width * d : -width], theta[-width:]
        f = np.maximum(X @ W.T + b, 0) @ v
        if loss == "squared":
            return ((f - y) ** 2).sum()
        return np.abs(f - y).sum() if loss == "absolute" else np.maximum(0, 1 - y * f).sum()

    return minimize(value, rng.normal(size=width * (d + 2)), method="L-BFGS-B").fun


@pytest.mark.parametrize("loss", LOSSES[:3])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))])
def test_no_optimiser_goes_below_the_bound(seed, loss):
    rng = np.random.default_rng(seed)
    X, y = _problem(rng, loss, 9, 2)
    model = _model(loss, width=2).fit(X, y)
    reached = min(_descend(X, y, 2, loss, rng) for _ in range(12))
    assert model.lower_bound_ <= model.best_loss_ <= reached + 1e-6


def test_invariant_to_the_order_of_samples_and_to_affine_coordinates():
    X, y = _peers_data(12, 2)
    rng = np.random.default_rng(0)
    best = ExactReluRegressor(width=2, verbose=0).fit(X, y).best_loss_
    order = rng.permutation(len(X))
    turned = X @ np.array([[2.0, 1.0], [-0.5, 1e3]]) + np.array([10.0, -3.0])
    assert ExactReluRegressor(width=2, verbose=0).fit(X[order], y[order]).best_loss_ == pytest.approx(
        best
    )
    assert ExactReluRegressor(width=2, verbose=0).fit(turned, y).best_loss_ == pytest.approx(
        best, rel=1e-6
    )
    assert ExactReluRegressor(width=2, verbose=0).fit(X, 1e6 * y).best_loss_ == pytest.approx(
        1e12 * best
    )


def test_printed_objective_is_not_the_empirical_risk():
    """The printed sum over active units asks each of two units to give y = 2, so that f = 4."""
    X, y = np.array([[1.0]]), np.array([2.0])
    by_unit = np.array([2.0, 2.0])  # minimises (u_1 - 2)^2 + (u_2 - 2)^2
    assert ((by_unit - y) ** 2).sum() == 0
    assert (by_unit.sum() - y[0]) ** 2 == 4
    model = ExactReluRegressor(width=2, verbose=0).fit(X, y)
    assert model.best_loss_ == pytest.approx(0, abs=1e-12)
    assert model.predict(X)[0] == pytest.approx(2)
    # Samples at which no unit is on drop out of the printed sum, so that switching all units off costs
    # nothing.
    zero = ExactReluRegressor(width=1, verbose=0).fit(np.array([[0.0], [0.0]]), np.array([-1.0, 1.0]))
    assert zero.best_loss_ == pytest.approx(2)

"""Invariance and equivariance of functions whose answer is known, on every kind of model."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.symmetry import cyclic, dihedral, equivariance, invariance, symmetric
from pindown.symmetry.actions import image_dihedral, image_translations, set_permutations
from pindown.symmetry.families import Window
from pindown.symmetry.measure.errors import symmetry_change
from pindown.symmetry.measure.models import as_function, untrained_copy

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 6))


def power_spectrum(X):
    return np.abs(np.fft.fft(X)) ** 2


def bispectrum(X):
    F = np.fft.fft(X)
    k = np.arange(X.shape[1])
    return F[:, :, None] * F[:, None, :] * F[:, (k[:, None] + k) % len(k)].conj()


@pytest.mark.parametrize(
    ("function", "group", "invariant"),
    [
        (lambda X: np.ones(len(X)), cyclic(6), True),
        (lambda X: X, cyclic(6), False),
        (np.sort, cyclic(6), True),
        (np.sort, symmetric(6).permuting(), True),
        (power_spectrum, cyclic(6), True),
        (power_spectrum, dihedral(6).permuting(), True),
        (bispectrum, cyclic(6), True),
        (bispectrum, dihedral(6).permuting(), False),
        (power_spectrum, symmetric(6).permuting(), False),
    ],
)
def test_known_functions(function, group, invariant):
    found = invariance(function, group, X)
    assert (found.error < 1e-10) == invariant and (found.worst < 1e-10) == invariant
    if not invariant:
        assert found.error > 0.1 and found.relative > 0.05 and found.standard_error > 0


def test_the_error_is_that_of_the_definition():
    W = RNG.standard_normal((2, 6))
    found = invariance(lambda X: X @ W.T, cyclic(6), X)
    gaps = np.array([np.linalg.norm(np.roll(X, k, axis=1) @ W.T - X @ W.T, axis=1) for k in range(6)])
    assert found.error == pytest.approx(np.sqrt((gaps[1:] ** 2).mean()))
    assert np.allclose(found.per_element, np.sqrt((gaps**2).mean(axis=1)))
    assert found.worst == pytest.approx(gaps.max())
    assert found.worst_element == np.argmax(found.per_element)
    pairs = (X @ W.T)[:, None] - X @ W.T
    assert found.spread == pytest.approx(np.sqrt((pairs**2).sum() / (30 * 29)))
    assert found.scale == found.spread and found.relative == pytest.approx(found.error / found.spread)


def test_standard_error_is_the_spread_over_samples():
    rng = np.random.default_rng(4)
    runs = [invariance(lambda Z: Z[:, 0], cyclic(6), rng.standard_normal((60, 6))) for _ in range(200)]
    spread = np.std([run.error for run in runs], ddof=1)
    assert np.mean([run.standard_error for run in runs]) == pytest.approx(spread, rel=0.2)


def test_untrained_weights_keep_the_size_of_rectified_signals():
    """Variance 2 over the number of inputs, however many units there are."""
    net = ReluNetwork.from_layers([(np.ones((300, 20)), np.ones(300)), (np.ones((2, 300)), np.ones(2))])
    copy = untrained_copy(net, np.random.default_rng(0))
    for layer, inputs in zip(copy.layers, (20, 300), strict=True):
        assert layer.weight.std() == pytest.approx((2 / inputs) ** 0.5, rel=0.1)
        assert not layer.bias.any()


def test_identity_is_equivariant_and_sorting_is_not():
    for group in (cyclic(6), dihedral(6).permuting()):
        assert equivariance(lambda X: X, group, X).error == 0.0
        assert equivariance(np.tanh, group, group, X).error == 0.0
        assert equivariance(np.sort, group, X).error > 0.5
    sign = cyclic(2).acting_by([[[1.0]], [[-1.0]]])
    flip = cyclic(2).acting_by(np.array([np.eye(6), np.eye(6)[::-1]]))
    odd = lambda X: X[:, :1] - X[:, 5:]  # noqa: E731
    assert equivariance(odd, flip, sign, X).error < 1e-12 and invariance(odd, flip, X).error > 0.5


def test_circular_convolution_is_equivariant_and_padding_breaks_it():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images = RNG.standard_normal((4, 2, 6, 6))
    shifts = image_translations(6, 6)
    errors = {}
    for mode in ("circular", "zeros"):
        layer = torch.nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode).double()
        errors[mode] = equivariance(layer, shifts, images, copies=1).error
        pooled = torch.nn.Sequential(layer, torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1))
        errors[mode, "pooled"] = invariance(pooled, shifts, images, copies=1).error
    assert errors["circular"] < 1e-10 and errors["circular", "pooled"] < 1e-10
    assert errors["zeros"] > 1e-2 and errors["zeros", "pooled"] > 1e-3


def test_untrained_copies_are_the_scale_of_networks():
    net = ReluNetwork.from_layers(
        [(RNG.standard_normal((20, 6)), np.zeros(20)), (RNG.standard_normal((3, 20)), np.zeros(3))]
    )
    drawn = invariance(net, cyclic(6), X, copies=20, seed=3)
    assert len(drawn.untrained) == 20 and "20 untrained copies" in str(drawn)
    assert 0.6 < drawn.relative < 1.6  # this network is itself a random one
    # Multiplying the outputs changes error and scale alike.
    louder = invariance(1000.0 * net, cyclic(6), X, copies=20, seed=3)
    assert louder.relative == pytest.approx(drawn.relative) and louder.error > 900 * drawn.error
    averaged = ReluNetwork.from_layers([(np.ones((1, 6)), [0.0])])
    assert invariance(averaged, cyclic(6), X).relative < 1e-12


def test_models_of_your_own_can_be_the_scale():
    found = invariance(lambda X: X[:, 0], cyclic(6), X, copies=[lambda X: X, lambda X: 5 * X])
    assert found.untrained[0] == pytest.approx(found.untrained[1])
    assert found.scale == pytest.approx(found.spread * found.untrained[0])


def test_a_module_is_left_as_it_was_and_copies_differ():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)

    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.5))
            self.gain = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

        def forward(self, x):
            return self.inner(x)[:, :2] * self.gain

    module = Scaled()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.get_rng_state()
    found = invariance(module, cyclic(6), X)
    assert found.relative > 0.2 and module.training and module.inner[1].training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())
    fresh = untrained_copy(module, np.random.default_rng(0))
    assert not torch.equal(fresh.gain, module.gain)
    assert not torch.equal(fresh.inner[0].weight, module.inner[0].weight)


def test_estimators_are_measured_by_their_probabilities():
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LogisticRegression

    y = (X.sum(axis=1) > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    found = invariance(model, cyclic(6), X)
    expected = [
        np.linalg.norm(model.predict_proba(np.roll(X, k, axis=1)) - model.predict_proba(X), axis=1)
        for k in range(1, 6)
    ]
    assert found.error == pytest.approx(np.sqrt(np.mean(np.square(expected)))) and not found.untrained
    clusters = KMeans(2, n_init=1, random_state=0).fit(X)
    assert invariance(clusters, cyclic(6), X).error > 0.1
    images = RNG.standard_normal((12, 1, 2, 2))
    flat = LogisticRegression().fit(images.reshape(12, 4), np.arange(12) % 2)
    assert invariance(flat, image_dihedral(), images).error > 0


def test_sparse_networks_keep_their_connections():
    import scipy.sparse as sp

    W = sp.csr_array(np.diag([1.0, 2.0, 0.0]))
    fresh = untrained_copy(ReluNetwork.from_layers([(W, np.ones(3))]), np.random.default_rng(0))
    assert sp.issparse(fresh.layers[0].weight) and fresh.layers[0].weight.nnz == 2


def test_one_sample_a_constant_and_the_trivial_group_have_defined_answers():
    one = invariance(lambda X: X[:, 0], cyclic(6), X[:1])
    assert np.isnan(one.standard_error) and one.scale == pytest.approx(abs(X[0, 0]))
    assert "±" not in str(one) and "length of the only output" in str(one)
    constant = invariance(lambda X: np.zeros(len(X)), cyclic(6), X)
    assert (constant.error, constant.scale, constant.relative) == (0.0, 0.0, 0.0)
    trivial = cyclic(1).acting_by([np.eye(6)])
    assert invariance(np.sin, trivial, X).error == 0.0
    growing = invariance(lambda X: np.where(X[:, 0] > X[:, 1], 1.0, 1.0) * np.arange(len(X)), trivial, X)
    assert growing.error == 0.0


def test_training_with_symmetry_shows_in_the_change():
    change = symmetry_change(lambda X: X[:, 0], lambda X: X[:, 0] + 9 * X.mean(axis=1), cyclic(6), X)
    assert 0.0 < change.ratio < 0.6 and "more symmetric" in str(change)
    back = symmetry_change(lambda X: X.mean(axis=1), lambda X: X[:, 0], cyclic(6), X)
    assert back.ratio > 1e6 and "less symmetric" in str(back)
    both = symmetry_change(np.sort, np.tanh, cyclic(6), X, group_out=cyclic(6))
    assert both.ratio == 0.0


def test_set_functions():
    sets = RNG.standard_normal((5, 4, 2))
    group = set_permutations(4)
    assert invariance(lambda S: S.max(axis=1), group, sets).error == 0.0
    centred = lambda S: S - S.mean(axis=1, keepdims=True)  # noqa: E731
    assert equivariance(centred, group, sets).error < 1e-12


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: invariance(np.sort, cyclic(6), np.zeros((0, 6))), ValueError, "n at least 1"),
        (lambda: invariance(np.sort, cyclic(6), np.zeros(6)), ValueError, "samples"),
        (lambda: invariance(np.sort, cyclic(6), np.full((2, 6), np.nan)), ValueError, "finite"),
        (lambda: invariance(np.sort, cyclic(6), [["a"] * 6]), TypeError, "real numbers"),
        (lambda: invariance(np.sort, cyclic(5), X), ValueError, "vectors of 5 numbers"),
        (lambda: invariance(np.sort, "C6", X), TypeError, "cyclic"),
        (lambda: invariance(7, cyclic(6), X), TypeError, "a model is a function"),
        (lambda: invariance(lambda X: X[:3], cyclic(6), X), ValueError, "one output per sample"),
        (lambda: invariance(lambda X: X / 0, cyclic(6), X), ValueError, "finite numbers"),
        (lambda: invariance(lambda X: X @ X, cyclic(6), X), ValueError, "failed on inputs of shape"),
        (lambda: invariance(lambda X: ["a"] * 30, cyclic(6), X), ValueError, "must give numbers"),
        (lambda: invariance(np.sort, cyclic(6), X, copies=-1), ValueError, "copies"),
        (lambda: equivariance(np.sort, cyclic(6), cyclic(3), X), ValueError, "one group"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_outputs_are_plain_numbers():
    out = as_function(lambda X: X[:, 0] > 0)(X)
    assert out.dtype == float and as_function(np.fft.fft)(X).shape == (30, 6, 2)


def test_both_sides_must_be_one_group():
    """C6 and D3 have six elements each, and are not the same."""
    with pytest.raises(ValueError, match="one group"):
        equivariance(np.tanh, cyclic(6), dihedral(3).regular(), X)


def test_the_identity_of_a_window_is_not_counted():
    some, rest = Window.of(cyclic(6), [0, 2, 3]), Window.of(cyclic(6), [2, 3])
    first = lambda X: X[:, 0]  # noqa: E731
    assert invariance(first, some, X).error == invariance(first, rest, X).error > 0.0
    assert invariance(first, Window.of(cyclic(6), [0]), X).error == 0.0


def test_models_that_work_in_place_are_measured_on_the_samples_themselves():
    in_place = lambda X: np.subtract(X, 1.0, out=X)[:, :2] ** 2  # noqa: E731
    fresh = lambda X: (X - 1.0)[:, :2] ** 2  # noqa: E731
    assert invariance(in_place, cyclic(6), X).error == invariance(fresh, cyclic(6), X).error
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.LeakyReLU(0.1, inplace=True), torch.nn.Linear(6, 2)).double()
    W, b = (p.detach().numpy() for p in net[1].parameters())
    leaky = lambda X: np.where(X > 0, X, 0.1 * X) @ W.T + b  # noqa: E731
    wanted = invariance(leaky, cyclic(6), X).error
    assert invariance(net, cyclic(6), X, copies=0).error == pytest.approx(wanted, rel=1e-12)


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_untrained_copies_of_normalised_weights_are_drawn_afresh():
    """Their layers cannot reset weights that are computed: a copy must not be the trained model."""
    torch = pytest.importorskip("torch")
    trained = torch.nn.utils.weight_norm(torch.nn.Linear(6, 2))
    rng = np.random.default_rng(0)
    with torch.no_grad():
        trained(torch.zeros(1, 6))
    copies = [as_function(untrained_copy(trained, rng))(X) for _ in range(2)]
    assert not np.allclose(copies[0], copies[1])
    assert not np.allclose(copies[0], as_function(trained)(X))


def test_tensors_with_gradients_are_taken_as_they_come():
    """A function that wraps a module returns such tensors."""
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(6, 2).double()
    wrapped = invariance(lambda X: net(torch.as_tensor(X)), cyclic(6), torch.tensor(X).requires_grad_())
    assert wrapped.error == invariance(net, cyclic(6), X).error


def test_modules_without_weights_have_no_untrained_copies():
    torch = pytest.importorskip("torch")
    found = invariance(torch.nn.ReLU(), cyclic(6), X)
    assert found.untrained == () and found.scale == found.spread


@pytest.mark.parametrize("copies", [-1, 2.5, True, "two"])
def test_copies_are_a_number_or_models(copies):
    with pytest.raises(ValueError, match="an integer of at least 0, or models"):
        invariance(np.sort, cyclic(6), X, copies=copies)


def test_two_exact_symmetries_are_as_symmetric_as_each_other():
    total = lambda X: X.max(axis=1)  # noqa: E731
    change = symmetry_change(total, lambda X: 2 * total(X), cyclic(6), X)
    assert change.ratio == 1.0 and "as symmetric as before" in str(change)


@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_untrained_copies_of_convolutions_are_convolutions(stored):
    """Shared weights stay shared: a circular convolution with a pool keeps shifts by design."""
    import scipy.sparse as sp

    rows = np.zeros(8)
    rows[:3] = [0.5, -1.0, 2.0]
    W = np.concatenate([np.array([np.roll(rows * s, k) for k in range(8)]) for s in (1.0, -0.7)])
    pool = np.repeat([[1.0, 2.0]], 8, axis=1)
    net = ReluNetwork.from_layers(
        [(W if stored == "dense" else sp.csr_array(W), np.zeros(16)), (pool, [0.0])]
    )
    first = untrained_copy(net, np.random.default_rng(0)).layers[0].weight
    first = first.toarray() if sp.issparse(first) else first
    assert np.array_equal(first != 0, W != 0) and not np.allclose(first, W)
    for half in (first[:8], first[8:]):
        assert np.array_equal(half, np.array([np.roll(half[0], k) for k in range(8)]))


def test_regressors_are_measured_by_their_predictions():
    """Some transform as well: an ensemble gives the answers of its members."""
    from sklearn.ensemble import VotingRegressor
    from sklearn.linear_model import Ridge

    model = VotingRegressor([("a", Ridge(1.0)), ("b", Ridge(5.0))]).fit(X, X[:, 0])
    assert np.array_equal(as_function(model)(X), model.predict(X))


def test_outputs_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match="finite numbers up to"):
        invariance(lambda X: 1e200 * X, cyclic(6), X)

"""Signatures are equal on an orbit to rounding, and different orbits differ where the theory says so."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.symmetry import OrbitSignature, cyclic, dihedral, from_permutations, symmetric
from pindown.symmetry.signatures import orbit_distance, orbit_projections
from pindown.symmetry.signatures import projections as projections_module
from pindown.symmetry.signatures.readouts import NONLINEARITIES, POOLS, gap_quantiles


@parametrize_with_checks([OrbitSignature(), OrbitSignature(nonlinearity="moments", thresholds=3)])
def test_follows_scikit_learn(estimator, check):
    check(estimator)


def skewed_group():
    """C4 by matrices that are not orthogonal."""
    change = np.random.default_rng(5).standard_normal((4, 4)) + 2 * np.eye(4)
    return cyclic(4).acting_by(change @ cyclic(4).matrices @ np.linalg.inv(change))


def reversing_group():
    """C2 by a function: reverse the features and change their sign."""
    return cyclic(2).acting_by(lambda index, X: -X[..., ::-1] if index else X)


GROUPS = {
    "shifts": (cyclic(12), 12),
    "shifts by matrices": (cyclic(7).permuting(), 7),
    "dihedral": (dihedral(5).permuting(), 5),
    "regular": (dihedral(3), 6),
    "permutations": (symmetric(4).permuting(), 4),
    "not orthogonal": (skewed_group(), 4),
    "a function": (reversing_group(), 9),
}


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize(("nonlinearity", "pool"), list(itertools.product(NONLINEARITIES, POOLS)))
def test_features_are_equal_on_every_orbit(name, nonlinearity, pool):
    group, d = GROUPS[name]
    rng = np.random.default_rng(0)
    X, fresh = rng.standard_normal((30, d)), rng.standard_normal((10, d))
    thresholds = 4 if nonlinearity == "moments" else 7
    signature = OrbitSignature(
        group, n_templates=3, nonlinearity=nonlinearity, pool=pool, thresholds=thresholds, random_state=1
    ).fit(X)
    for samples in (X, fresh):
        expected = signature.transform(samples)
        for index in range(group.order):
            moved = signature.transform(group.act(index, samples))
            assert np.abs(moved - expected).max() < 1e-10


def test_structured_samples_do_not_sit_on_a_threshold():
    """Whole numbers and repeated values make many equal projections; quantiles would fall on them."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (40, 9)).astype(float)
    templates = rng.integers(-1, 2, (6, 9)).astype(float)
    signature = OrbitSignature(cyclic(9), templates=templates, thresholds=9).fit(X)
    for k in range(9):
        assert np.abs(signature.transform(np.roll(X, k, axis=1)) - signature.transform(X)).max() < 1e-10
    values = orbit_projections(X, templates, cyclic(9))
    gaps = np.abs(values[:, :, :, None] - signature.thresholds_[None, :, None, :])
    assert gaps.min() > 0.1


@pytest.mark.parametrize("thresholds", [[0.0, 1.0, 2.0], None])
def test_counts_at_a_threshold_are_not_left_to_rounding(thresholds):
    """Whole numbers at given thresholds; Fourier transforms return some of them a little larger."""
    X = np.random.default_rng(2).integers(-1, 4, (50, 7)).astype(float)
    signature = OrbitSignature(templates=np.eye(7)[:2], thresholds=thresholds).fit(X)
    levels = [0.0] if thresholds is None else thresholds
    counted = np.tile([[np.mean(row > z) for z in levels] for row in X], 2)
    for k in range(7):
        np.testing.assert_array_equal(signature.transform(np.roll(X, k, axis=1)), counted)
    # a scalar product whose terms cancel, with what was fitted on other samples
    difference = OrbitSignature(templates=[[1.0, -1.0, 0, 0, 0, 0, 0]], thresholds=[0.0]).fit(X)
    fresh = np.full((1, 7), 0.3)
    assert difference.transform(fresh).item() == 0.0


def test_templates_come_from_a_seed_or_a_generator():
    X = np.ones((2, 5))
    drawn = OrbitSignature(random_state=np.random.default_rng(3)).fit(X).templates_
    again = OrbitSignature(random_state=np.random.default_rng(3)).fit(X).templates_
    np.testing.assert_array_equal(drawn, again)


def test_one_example_of_each_orbit_is_enough():
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((10, 16))
    moved = np.concatenate([np.roll(centres, k, axis=1) for k in range(16)])
    labels = np.tile(np.arange(10), 16)
    signature = OrbitSignature(cyclic(16), n_templates=20, thresholds=8, random_state=0)
    model = make_pipeline(signature, KNeighborsClassifier(1)).fit(centres, np.arange(10))
    assert model.score(moved, labels) == 1.0
    raw = KNeighborsClassifier(1).fit(centres, np.arange(10)).score(moved, labels)
    assert raw < 0.5


@pytest.mark.parametrize("nonlinearity", ["step", "sigmoid", "relu", "abs"])
def test_random_orbits_are_told_apart(nonlinearity):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((150, 8))
    signature = OrbitSignature(cyclic(8), nonlinearity=nonlinearity, random_state=0).fit(X)
    features = signature.transform(X)
    gaps = np.abs(features[:, None] - features[None]).max(axis=2)[~np.eye(150, dtype=bool)]
    assert gaps.min() > 1e-3
    words = str(signature.selectivity())
    assert ("no systematic" in words) == (nonlinearity != "step")
    nearby = signature.transform(X[:1] + 1e-9 * X[1:2])
    assert (np.abs(nearby - features[:1]).max() == 0) == (nonlinearity == "step") == ("steps" in words)


@pytest.mark.parametrize("nonlinearity", ["step", "sigmoid", "relu", "abs", "moments"])
@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_features_equal_a_plain_loop(nonlinearity, pool):
    rng = np.random.default_rng(2)
    group, X = dihedral(3), rng.standard_normal((4, 6))
    signature = OrbitSignature(
        group, n_templates=2, nonlinearity=nonlinearity, pool=pool, thresholds=3, random_state=0
    ).fit(X)
    found = signature.transform(X).reshape(4, 2, 3)
    bend = {
        "step": lambda u, b, s: float(u > b),
        "sigmoid": lambda u, b, s: 1 / (1 + np.exp(-(u - b) / s)),
        "relu": lambda u, b, s: max(u - b, 0.0),
        "abs": lambda u, b, s: abs(u - b),
    }
    together = {"sum": sum, "mean": np.mean, "max": max}[pool]
    for n, k, b in itertools.product(range(4), range(2), range(3)):
        u = [float(g @ X[n] @ signature.templates_[k]) for g in group.matrices]
        level, size = signature.thresholds_[k, b], signature.scale_[k]
        if nonlinearity == "moments":
            values = [((v - level) / size) ** (b + 1) for v in u]
        else:
            values = [bend[nonlinearity](v, level, size) for v in u]
        assert found[n, k, b] == pytest.approx(together(values), abs=1e-12)


def test_blocks_and_fourier_transforms_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    X, templates = rng.standard_normal((25, 10)), rng.standard_normal((3, 10))
    by_matrices = np.einsum("gij,nj,ki->nkg", cyclic(10).matrices, X, templates)
    assert np.abs(orbit_projections(X, templates, cyclic(10)) - by_matrices).max() < 1e-12
    whole = OrbitSignature(random_state=0).fit(X)
    expected = whole.transform(X)
    monkeypatch.setattr(projections_module, "PROJECTIONS_AT_ONCE", 450)
    assert np.array_equal(OrbitSignature(random_state=0).fit(X).transform(X), expected)


def test_long_signals_need_no_matrices():
    X = np.random.default_rng(0).standard_normal((5, 1500))
    signature = OrbitSignature(n_templates=2, random_state=0).fit(X)
    assert np.abs(signature.transform(np.roll(X, 700, axis=1)) - signature.transform(X)).max() < 1e-10


def test_blindness_is_counted_alike_by_frequencies_and_by_matrices():
    """A template with two frequencies spans three dimensions, whatever order the features are in."""
    n = 12
    template = np.cos(2 * np.pi * 2 * np.arange(n) / n) + 1.0
    X = np.random.default_rng(0).standard_normal((4, n))
    place = np.random.default_rng(1).permutation(n)
    shuffled = from_permutations([tuple(np.argsort(place)[(place + k) % n].tolist()) for k in range(n)])
    for group, t in ((cyclic(n), template), (shuffled.permuting(), template[place])):
        assert OrbitSignature(group, templates=[t]).fit(X).selectivity().blind == n - 3


def test_long_signals_can_be_asked_what_they_miss():
    fitted = OrbitSignature(n_templates=2, random_state=0).fit(np.arange(3000.0).reshape(2, 1500))
    assert fitted.selectivity().blind == 0


def test_other_actions_are_blind_to_what_has_no_projection():
    """For an action that is not orthogonal that is the complement of the transposed orbit."""
    group = skewed_group()
    X = np.random.default_rng(2).standard_normal((5, 4))
    kept = np.linalg.svd(group.matrices[1].T - np.eye(4))[2][-1]  # g^T t = t for all g
    fitted = OrbitSignature(group, templates=[kept]).fit(X)
    hidden = np.linalg.svd(kept[None])[2][1:]
    assert fitted.selectivity().blind == 3
    assert np.abs(fitted.transform(X + hidden.sum(axis=0)) - fitted.transform(X)).max() < 1e-10


def test_printed_dimension_counts_elements_not_thresholds():
    """The output has one number per template and threshold; the order of the group does not enter."""
    X = np.random.default_rng(0).standard_normal((6, 12))
    for group in (cyclic(12), dihedral(6)):
        K, B = 5, 3
        features = OrbitSignature(group, n_templates=K, thresholds=B).fit_transform(X)
        assert features.shape == (6, B * K) != (6, group.order * K)


def test_too_few_templates_are_blind_and_say_so():
    group = cyclic(2).acting_by([np.eye(6), np.eye(6)[[1, 0, 2, 3, 4, 5]]])
    X = np.random.default_rng(0).standard_normal((10, 6))
    few = OrbitSignature(group, n_templates=2, random_state=0).fit(X)
    report = few.selectivity()
    assert report.blind == 3 and "orthogonal" in str(report)
    orbits = np.concatenate([group.orbit(t) for t in few.templates_])
    hidden = np.linalg.svd(orbits)[2][-1]
    assert np.abs(few.transform(X[:1] + 5 * hidden) - few.transform(X[:1])).max() < 1e-10
    assert orbit_distance(X[0], X[0] + 5 * hidden, group) > 1
    # d / |G| + 1 templates are too few where the group leaves most directions alone
    assert OrbitSignature(group, n_templates=4, random_state=0).fit(X).selectivity().blind == 1
    enough = OrbitSignature(group, random_state=0).fit(X)
    assert enough.selectivity().blind == 0
    assert np.abs(enough.transform(X[:1] + 5 * hidden) - enough.transform(X[:1])).max() > 0.1


def test_default_number_of_templates_leaves_nothing_unseen():
    rest = np.eye(60)
    swap = rest.copy()
    swap[[0, 1]] = swap[[1, 0]]
    signs = np.diag(np.r_[-np.ones(40), np.ones(20)])
    for moved in (swap, signs):
        group = cyclic(2).acting_by([rest, moved])
        signature = OrbitSignature(group, random_state=0).fit(np.random.default_rng(0).random((3, 60)))
        assert signature.selectivity().blind == 0


def test_rectified_units_without_thresholds_warn():
    X = np.random.default_rng(0).standard_normal((4, 6))
    X -= X.mean(axis=1, keepdims=True)
    with pytest.warns(UserWarning, match="confuses x and -x"):
        plain = OrbitSignature(nonlinearity="relu", thresholds=None, random_state=0).fit(X)
    assert np.abs(plain.transform(X) - plain.transform(-X)).max() < 1e-12
    assert "x and -x" in str(plain.selectivity())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        better = OrbitSignature(nonlinearity="relu", random_state=0).fit(X)
    assert np.abs(better.transform(X) - better.transform(-X)).max() > 0.01


def test_too_few_moments_are_named():
    """Two powers see a power spectrum: a signal and the one with turned phases agree."""
    x = np.random.default_rng(4).standard_normal(5)
    spectrum = np.fft.rfft(x) * [1.0, np.exp(0.7j), np.exp(-1.9j)]
    X = np.stack([x, np.fft.irfft(spectrum, 5)])
    assert orbit_distance(X[0], X[1], cyclic(5)) > 0.1
    for highest, same in ((1, True), (2, True), (3, False)):
        signature = OrbitSignature(nonlinearity="moments", thresholds=highest, random_state=0).fit(X)
        first, second = signature.transform(X)
        assert np.allclose(first, second, rtol=0, atol=1e-10) is same
        assert ("directions only" in str(signature.selectivity())) is same


def test_one_template_and_maxima_are_named():
    X = np.random.default_rng(0).standard_normal((4, 6))
    assert "one template" in str(OrbitSignature(n_templates=1).fit(X).selectivity())
    assert "maxima" in str(OrbitSignature(nonlinearity="max").fit(X).selectivity())
    small = OrbitSignature(n_templates=2, thresholds=2, nonlinearity="sigmoid").fit(X)
    assert "4 features of 6" in str(small.selectivity())


def test_pipelines_names_and_seeds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = (np.abs(np.fft.rfft(X)[:, 1]) > 2).astype(int)
    model = make_pipeline(OrbitSignature(random_state=0), LogisticRegression(max_iter=2000)).fit(X, y)
    assert np.array_equal(model.predict(X), model.predict(np.roll(X, 5, axis=1)))
    first, second = (OrbitSignature(random_state=7).fit(X) for _ in range(2))
    assert np.array_equal(first.templates_, second.templates_)
    assert not np.array_equal(first.templates_, OrbitSignature(random_state=8).fit(X).templates_)
    names = first.get_feature_names_out()
    assert len(names) == first.transform(X).shape[1] and names[0] == "orbitsignature0"
    assert clone(OrbitSignature(cyclic(8))).fit(X).group_.order == 8


def test_degenerate_data_have_an_answer():
    zeros = np.zeros((3, 4))
    for nonlinearity in NONLINEARITIES:
        features = OrbitSignature(nonlinearity=nonlinearity, thresholds=4).fit_transform(zeros)
        assert np.isfinite(features).all() and np.ptp(features, axis=0).max() == 0
    one = OrbitSignature(random_state=0).fit([[1.0, 2.0, 4.0]])
    assert np.abs(one.transform([[4.0, 1.0, 2.0]]) - one.transform([[1.0, 2.0, 4.0]])).max() < 1e-12
    assert OrbitSignature().fit_transform([[1.0], [2.0]]).shape == (2, 160)


def test_thresholds_lie_between_values():
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 4, 50).astype(float)
    for values in (rng.standard_normal(50), whole, np.array([0.0, 1.0]), np.ones(9)):
        for count in (1, 2, 5, 12):
            found = gap_quantiles(values, count)
            assert found.shape == (count,) and (np.diff(found) >= 0).all()
            assert np.abs(found[:, None] - values).min() > 1e-4
    many = rng.standard_normal(999)
    for count in (1, 4, 9):  # they cut the values into shares of one over the count, halves at the ends
        below = (many[:, None] < gap_quantiles(many, count)).mean(axis=0)
        np.testing.assert_allclose(below, (np.arange(count) + 0.5) / count, atol=2e-3)
    wiggle = 5 + 1e-15 * rng.standard_normal(30)
    assert np.abs(gap_quantiles(wiggle, 6)[:, None] - 5).min() > 0.1


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"group": "C6"}, TypeError, "cyclic"),
        ({"group": cyclic(5)}, ValueError, "vectors of 5 numbers"),
        ({"nonlinearity": "softmax"}, ValueError, "'step', 'sigmoid'"),
        ({"pool": "median"}, ValueError, "'sum', 'mean'"),
        ({"n_templates": 0}, ValueError, "n_templates"),
        ({"n_templates": 2.5}, ValueError, "n_templates"),
        ({"templates": np.ones((2, 5))}, ValueError, "templates have 5"),
        ({"templates": [[np.nan] * 6]}, ValueError, "finite"),
        ({"thresholds": 0}, ValueError, "thresholds"),
        ({"thresholds": []}, ValueError, "thresholds"),
        ({"thresholds": [np.inf]}, ValueError, "finite"),
        ({"thresholds": np.zeros((3, 2)), "n_templates": 2}, ValueError, "3 rows for 2"),
        ({"thresholds": 7, "nonlinearity": "moments"}, ValueError, "at least 1 and at most 6"),
        ({"thresholds": None, "nonlinearity": "moments"}, ValueError, "at least 1 and at most 6"),
    ],
)
def test_bad_parameters_are_refused(parameters, error, words):
    with pytest.raises(error, match=words):
        OrbitSignature(**parameters).fit(np.ones((3, 6)))

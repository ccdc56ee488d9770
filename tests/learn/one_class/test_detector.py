import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.learn.one_class import LocalMaximaDetector

QUICK = {"max_epochs": 3, "n_estimators": 2, "random_state": 0}


@parametrize_with_checks([LocalMaximaDetector(max_epochs=2, n_estimators=1)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([LocalMaximaDetector()])
def test_scikit_learn_conventions_with_the_defaults(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 8, 8), y


@pytest.fixture(scope="module")
def blob():
    return np.random.default_rng(0).normal(size=(150, 3))


@pytest.fixture(scope="module")
def fitted(blob):
    return LocalMaximaDetector(random_state=0).fit(blob)


def test_same_seed_same_scores_and_the_global_state_is_left_alone(blob):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    threads = torch.get_num_threads()
    first = LocalMaximaDetector(**QUICK).fit(blob).score_samples(blob)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    torch.manual_seed(6)
    np.random.seed(6)
    second = LocalMaximaDetector(**QUICK).fit(blob).score_samples(blob)
    assert np.array_equal(first, second)
    other = LocalMaximaDetector(**{**QUICK, "random_state": 1}).fit(blob).score_samples(blob)
    assert not np.allclose(first, other)


def test_scores_are_calibrated_log_odds(fitted, blob):
    scores = fitted.score_samples(blob)
    assert 2 < np.median(scores) < 5  # about 95 %
    assert np.mean(scores < 0) < 0.15
    assert (fitted.predict(blob + 30) == -1).all()


def test_contamination_sets_the_share_of_outliers(blob):
    model = LocalMaximaDetector(contamination=0.2, **QUICK)
    assert np.mean(model.fit_predict(blob) == -1) == pytest.approx(0.2, abs=0.01)


def test_training_lowers_the_losses():
    X, y = load_breast_cancer(return_X_y=True)
    model = LocalMaximaDetector(n_estimators=1, random_state=0).fit(X[y == 1][:100])
    first, last = model.history_[0], model.history_[-1]
    assert last["membership"] < first["membership"]
    assert last["comparator"] < first["comparator"]


def test_quality_falls_with_noise_on_vectors(fitted, blob):
    noise = np.random.default_rng(1).normal(size=blob.shape)
    means = [fitted.quality(blob + level * noise).mean() for level in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert all(np.diff(means) < 0)


def test_compare_prefers_the_original(fitted, blob):
    worse = blob + 2 * np.random.default_rng(1).normal(size=blob.shape)
    assert fitted.compare(blob, worse).mean() > 0 > fitted.compare(worse, blob).mean()
    assert np.allclose(fitted.compare(blob, blob), fitted.quality(blob))


def test_images_quality_beats_membership_at_noise_and_membership_at_classes(digits):
    X, y = digits
    members = X[y == 3]
    model = LocalMaximaDetector(n_estimators=1, random_state=0).fit(members[:120])
    assert model.scaling_.is_image
    test = np.concatenate([members[120:], X[y != 3][:300]])
    truth = np.r_[np.ones(len(members) - 120), np.zeros(300)]
    assert roc_auc_score(truth, model.score_samples(test)) > 0.95
    clean = members[120:]
    rng = np.random.default_rng(0)
    for sigma in (0.1, 0.3):
        noisy = clean + 16 * sigma * rng.normal(size=clean.shape)
        both, is_clean = np.concatenate([clean, noisy]), np.repeat([1, 0], len(clean))
        by_quality = roc_auc_score(is_clean, model.quality(both))
        assert by_quality >= roc_auc_score(is_clean, model.score_samples(both))


def test_image_layouts_give_the_same_scores(digits):
    X = digits[0][:60]
    flat = LocalMaximaDetector(image_shape=(8, 8), **QUICK).fit(X.reshape(60, -1))
    shaped = LocalMaximaDetector(**QUICK).fit(X)
    last = LocalMaximaDetector(**QUICK).fit(X[..., None])
    first = LocalMaximaDetector(**QUICK).fit(X[:, None])
    scores = shaped.score_samples(X)
    assert np.array_equal(scores, flat.score_samples(X.reshape(60, -1)))
    assert np.array_equal(scores, last.score_samples(X[..., None]))
    assert np.array_equal(scores, first.score_samples(X[:, None]))


def test_tabular_preset_takes_images_as_rows(digits):
    X = digits[0][:60]
    model = LocalMaximaDetector("tabular", **QUICK).fit(X)
    assert not model.scaling_.is_image
    assert model.score_samples(X).shape == (60,)


@pytest.mark.parametrize("ablation", ["c", "h", "only_g_c", "only_g_h", None])
@pytest.mark.parametrize("preset", ["auto", "paper"])
def test_ablations_run_and_train_what_they_say(ablation, preset, blob):
    model = LocalMaximaDetector(preset, ablation=ablation, max_epochs=2, n_estimators=1, random_state=0)
    model.fit(blob)
    untrained = LocalMaximaDetector(
        preset, ablation=ablation, max_epochs=0, n_estimators=1, random_state=0
    ).fit(blob)
    moved = {
        name: not np.array_equal(*(_first_weight(m.networks_[name][0]) for m in (model, untrained)))
        for name in ("c", "h")
    }
    assert moved == {"c": ablation != "h", "h": ablation != "c"}
    assert np.isfinite(model.score_samples(blob)).all()
    if ablation == "c":
        with pytest.raises(ValueError, match="without the comparator"):
            model.quality(blob)


def _first_weight(net):
    return next(net.parameters()).numpy()


def test_paper_preset_scores_are_the_bare_log_odds_of_c(blob, digits):
    model = LocalMaximaDetector("paper", max_epochs=1, random_state=0).fit(blob)
    (c,) = model.networks_["c"]
    inputs = model.scaling_.inputs(blob, torch.float64)
    assert np.allclose(model.score_samples(blob), c(inputs)[:, 0].numpy())
    (h,) = model.networks_["h"]
    assert np.allclose(model.quality(blob), h(torch.cat([inputs, inputs], 1))[:, 0].numpy())
    pairs = torch.cat([inputs, inputs.flip(0)], 1)
    assert np.allclose(model.compare(blob, blob[::-1]), h(pairs)[:, 0].numpy())
    images = LocalMaximaDetector("paper", max_epochs=1, hidden=4, random_state=0).fit(digits[0][:40])
    assert np.isfinite(images.score_samples(digits[0][:40])).all()


def test_paper_turns_are_in_the_printed_order(blob):
    model = LocalMaximaDetector("paper", max_epochs=1, random_state=0).fit(blob[:40])
    turns = [name for name in model.history_[0] if name not in ("member", "epoch")]
    assert turns == ["membership_generator", "membership", "comparator_generator", "comparator"]


@pytest.mark.parametrize("missing", ["density", "negatives", "generators", "comparator", "averaging"])
def test_every_ingredient_can_be_left_out(missing, blob):
    names = [
        n for n in ("density", "negatives", "generators", "comparator", "averaging") if n != missing
    ]
    model = LocalMaximaDetector(ingredients=names, **QUICK).fit(blob)
    assert np.mean(model.score_samples(blob)) > np.mean(model.score_samples(blob + 20))


def test_improve_walks_uphill_and_stays_inside(fitted, blob):
    start = blob[np.argmin(fitted.quality(blob))]
    path = fitted.improve(start, steps=15)
    assert path.points.shape[1:] == start.shape
    assert np.array_equal(path.points[0], start)
    assert len(path.points) > 1
    assert (np.diff(path.quality) > 0).all()
    assert (path.membership >= min(fitted.offset_, path.membership[0])).all()
    assert "uphill" in str(path)
    assert len(fitted.improve(start, steps=0).points) == 1


def test_warm_start_and_partial_fit_go_on(blob):
    model = LocalMaximaDetector(warm_start=True, **QUICK).fit(blob)
    before, epochs = _first_weight(model.networks_["c"][0]), len(model.history_)
    model.fit(blob)
    assert not np.array_equal(before, _first_weight(model.networks_["c"][0]))
    assert len(model.history_) > epochs
    grown = LocalMaximaDetector(**QUICK).fit(blob)
    far = blob + 12
    low = grown.score_samples(far).mean()
    grown.partial_fit(far)
    assert grown.score_samples(far).mean() > low


def test_odd_data_is_taken(blob):
    constant = np.column_stack([blob, np.full(150, 7.0)])
    model = LocalMaximaDetector(**QUICK).fit(constant)
    shifted = constant.copy()
    shifted[:, 3] += 30
    assert model.score_samples(shifted).mean() < model.score_samples(constant).mean()
    huge = LocalMaximaDetector(**QUICK).fit(blob * 1e200)
    assert np.allclose(
        huge.score_samples(blob * 1e200),
        LocalMaximaDetector(**QUICK).fit(blob).score_samples(blob),
        atol=1e-3,
    )
    assert np.isfinite(
        LocalMaximaDetector(**QUICK).fit(np.ones((30, 2))).score_samples([[1, 1], [2, 2]])
    ).all()
    integers = (blob * 10).astype(np.int32)
    assert np.isfinite(LocalMaximaDetector(**QUICK).fit(integers).score_samples(integers)).all()
    assert np.isfinite(LocalMaximaDetector(**QUICK).fit(blob[:2]).score_samples(blob)).all()
    doubled = np.repeat(blob[:20], 5, axis=0)
    assert np.isfinite(LocalMaximaDetector(**QUICK).fit(doubled).score_samples(doubled)).all()
    with pytest.raises(ValueError, match="NaN"):
        LocalMaximaDetector().fit(np.where(blob > 2, np.nan, blob))


def test_units_do_not_matter(blob):
    model, other = (LocalMaximaDetector(**QUICK).fit(X) for X in (blob, blob * [1e-3, 1, 1e4] + 100))
    assert np.allclose(
        model.score_samples(blob), other.score_samples(blob * [1e-3, 1, 1e4] + 100), atol=0.05
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"preset": "best"}, "preset must be one of"),
        ({"ablation": "x"}, "ablation must be one of"),
        ({"n_estimators": 0}, "n_estimators must be"),
        ({"max_epochs": -1}, "max_epochs must be"),
        ({"batch_size": 1}, "batch_size must be"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"learned_weight": -1}, "learned_weight must be"),
        ({"contamination": 0.6}, "contamination must be"),
        ({"contamination": "some"}, "contamination must be"),
        ({"ingredients": "density"}, "collection of names"),
        ({"ingredients": ["magic"]}, "ingredients must be among"),
        ({"ingredients": ["comparator"]}, "nothing tells members"),
        ({"hidden": [0]}, "hidden must be"),
        ({"image_shape": (5, 5)}, "holds 25 values"),
        ({"preset": "image"}, "needs images"),
    ],
)
def test_bad_parameters_are_named(wrong, message, blob):
    with pytest.raises(ValueError, match=message):
        LocalMaximaDetector(**wrong).fit(blob)


def test_pipelines_and_clones_work(blob):
    pipe = make_pipeline(StandardScaler(), LocalMaximaDetector(**QUICK)).fit(blob)
    assert set(pipe.predict(blob)) <= {-1, 1}
    copy = clone(pipe[-1])
    assert not hasattr(copy, "offset_")


def test_interruption_keeps_what_was_trained(blob, monkeypatch):
    from pindown.learn.one_class._training import Member

    original, calls = Member.epoch, []

    def epoch(self, inputs):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, inputs)

    monkeypatch.setattr(Member, "epoch", epoch)
    with pytest.warns(UserWarning, match="interrupted"):
        model = LocalMaximaDetector(n_estimators=2, max_epochs=5, random_state=0).fit(blob)
    assert len(model.history_) == 2
    assert np.isfinite(model.score_samples(blob)).all()


def test_learned_network_equals_the_mean_of_the_members(blob):
    model = LocalMaximaDetector(**QUICK).fit(blob * [1.0, 100.0, 0.01])
    rows = np.random.default_rng(3).normal(size=(40, 3)) * [3.0, 2000.0, 0.03]
    inputs = model.scaling_.inputs(rows, torch.float64)
    direct = np.mean([c(inputs)[:, 0].numpy() for c in model.networks_["c"]], axis=0)
    assert np.allclose(model.learned_network_(rows)[:, 0], direct, atol=1e-9)
    with pytest.raises(ValueError, match="nearest-neighbour"):
        model.membership_network_  # noqa: B018
    alone = LocalMaximaDetector(ingredients=["negatives", "comparator"], **QUICK).fit(blob)
    order = np.argsort(alone.membership_network_(blob)[:, 0])
    assert (np.diff(alone.score_samples(blob)[order]) >= -1e-9).all()


def test_report_counts_theorem_1_for_the_mean_of_the_members(blob):
    model = LocalMaximaDetector(hidden=9, **QUICK).fit(blob[:, :1])
    report = model.report()
    assert (report.n_hidden_units, report.most_maxima, report.indicator_units) == (18, 9, 27)
    assert "at most 9 local maxima" in str(report)
    line = np.linspace(-7, 7, 20_001)[:, None] * blob[:, 0].std() + blob[:, 0].mean()
    rises = np.sign(np.diff(model.quality(line)))
    turns = rises[rises != 0]
    assert np.sum((turns[:-1] > 0) & (turns[1:] < 0)) <= report.most_maxima
    assert LocalMaximaDetector(**QUICK).fit(blob).report().most_maxima is None  # two hidden layers


def test_the_two_network_bound_is_reported_for_what_was_learned(blob):
    model = LocalMaximaDetector(hidden=4, **QUICK).fit(blob)
    bound = model.two_network_bound(blob, radius=0.01)
    assert 0 <= bound.terms["empirical risk"] <= bound.value <= 1
    wrong = model.learned_network_(blob)[:, 0] <= 1.0
    assert bound.terms["empirical risk"] >= wrong.mean()


def test_no_warnings_by_default(blob):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LocalMaximaDetector(**QUICK).fit(blob).predict(blob)
    assert not [str(warning.message) for warning in caught]


def test_what_is_certainly_no_member_is_no_good_example():
    X = np.random.default_rng(0).normal(size=(120, 2))
    model = LocalMaximaDetector(n_estimators=1, max_epochs=20, random_state=0).fit(X)
    ray = np.linspace(0, 40, 81)[:, None] * np.array([[0.6, 0.8]])
    potential = model.ensemble_.quality(model.scorer_.inputs(model._rows(ray)))
    odds = model.score_samples(ray)
    certain = odds < -np.log(19)
    assert certain.any() and (~certain).any()
    assert np.array_equal(model.quality(ray)[~certain], potential[~certain])
    assert np.allclose((potential - model.quality(ray))[certain], -np.log(19) - odds[certain])
    # The comparator follows: which of two is better is still three times the difference.
    difference = model.compare(ray[:40], ray[40:80]) - model.compare(ray[40:80], ray[:40])
    assert np.allclose(difference, 3 * (model.quality(ray[:40]) - model.quality(ray[40:80])))

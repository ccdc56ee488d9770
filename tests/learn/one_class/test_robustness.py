"""What a stranger does to a detector: other programs' torch, odd numbers, failures, going on, Ctrl-C."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV

from pindown.learn.one_class import LocalMaximaDetector, ensemble
from pindown.learn.one_class import _training as training
from pindown.learn.one_class._inputs import image_layout
from pindown.learn.one_class._plan import networks_for
from pindown.learn.one_class._training import Member
from pindown.torch_modules import usable_device

QUICK = {"max_epochs": 2, "n_estimators": 2, "random_state": 0}
X = np.random.default_rng(0).normal(size=(50, 3))
IMAGES = np.random.default_rng(1).random((12, 8, 9))


@pytest.fixture
def fitted():
    return LocalMaximaDetector(**QUICK).fit(X)


def torch_in_double_precision():
    torch.set_default_dtype(torch.float64)
    return torch.enable_grad()


@pytest.mark.parametrize(
    "around",
    [torch_in_double_precision, torch.no_grad, torch.inference_mode, lambda: torch.device("meta")],
)
@pytest.mark.parametrize("data", [X, IMAGES])
def test_what_torch_is_told_elsewhere_changes_nothing(around, data):
    plain = LocalMaximaDetector(**QUICK).fit(data)
    try:
        with around():
            other = LocalMaximaDetector(**QUICK).fit(data)
            scores, quality = other.score_samples(data), other.quality(data)
            path = other.improve(data[0], steps=2)
            precision = torch.get_default_dtype()
    finally:
        torch.set_default_dtype(torch.float32)
    assert np.array_equal(scores, plain.score_samples(data))
    assert np.array_equal(quality, plain.quality(data))
    assert np.array_equal(path.points, plain.improve(data[0], steps=2).points)
    assert precision == (torch.float64 if around is torch_in_double_precision else torch.float32)


def test_the_largest_and_the_smallest_numbers(recwarn):
    reference = LocalMaximaDetector(**QUICK).fit(X).score_samples(X)
    for scale in (4e307, 1e-300):
        model = LocalMaximaDetector(**QUICK).fit(X * scale)
        assert np.allclose(model.score_samples(X * scale), reference, atol=1e-3)
    one = np.append(np.zeros(49), 5e-324)[:, None]  # its standard deviation is no number above zero
    assert np.isfinite(LocalMaximaDetector(**QUICK).fit(one).score_samples([[0.0], [1.0]])).all()
    ends = np.where(X > 0, 1.7e308, -1.7e308)  # differences overflow
    model = LocalMaximaDetector(**QUICK).fit(ends)
    assert np.abs(model.scaling_.scaled(ends)).max() < 3
    with pytest.raises(ValueError, match="finite range"):
        LocalMaximaDetector(**QUICK).fit(np.where(IMAGES > 0.5, 1.7e308, -1.7e308))
    assert not recwarn.list


def test_one_channel_has_no_order_and_three_have():
    grey = LocalMaximaDetector(**QUICK).fit(IMAGES)
    assert np.array_equal(grey.score_samples(IMAGES[:, None]), grey.score_samples(IMAGES))
    with pytest.raises(ValueError, match="images of 8 x 9; got 9 x 8"):
        grey.score_samples(IMAGES.transpose(0, 2, 1))
    colour = np.random.default_rng(0).random((6, 3, 8, 8))
    model = LocalMaximaDetector(max_epochs=0, n_estimators=1).fit(colour)
    with pytest.raises(ValueError, match="3 channels first; got 8 x 8 with 3 channels last"):
        model.score_samples(colour.transpose(0, 2, 3, 1))
    with pytest.raises(ValueError, match="first or last"):
        image_layout(np.zeros((5, 4, 9, 4)), None)


def test_the_short_axis_is_the_channels_even_if_the_image_is_narrow():
    assert image_layout(np.zeros((5, 3, 9, 4)), None) == ((9, 4, 3), True)
    assert image_layout(np.zeros((5, 3, 4, 4)), None) == ((4, 4, 3), True)
    assert image_layout(np.zeros((5, 4, 9, 3)), None) == ((4, 9, 3), False)
    with pytest.raises(ValueError, match="4 pixels a side"):
        image_layout(np.zeros((5, 3, 9, 3)), None)


@pytest.mark.parametrize("data", [X, IMAGES])
def test_masked_values_are_refused_and_masks_without_any_are_not(data):
    masked = np.ma.masked_array(data, data > np.quantile(data, 0.9))
    model = LocalMaximaDetector(**QUICK)
    with pytest.raises(ValueError, match="masked values"):
        model.fit(masked)
    scores = model.fit(data).score_samples(np.ma.masked_array(data))
    assert np.array_equal(scores, model.score_samples(data))
    with pytest.raises(ValueError, match="masked values"):
        model.predict(masked)


def test_no_images_are_as_few_as_no_rows():
    model = LocalMaximaDetector(**QUICK)
    for none in (IMAGES[:0], X[:0]):
        with pytest.raises(ValueError, match="0 sample"):
            model.fit(none)
    with pytest.raises(ValueError, match="0 sample"):
        model.fit(IMAGES).score_samples(IMAGES[:0])


def test_images_on_another_scale_are_told():
    model = LocalMaximaDetector(**QUICK).fit(IMAGES)
    with pytest.warns(UserWarning, match=r"to 25\d.*same scale"):
        model.score_samples(255 * IMAGES)
    noisy = IMAGES + np.random.default_rng(0).normal(size=IMAGES.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.quality(noisy)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"image_shape": 5}, "positive integers"),
        ({"image_shape": "8x8"}, "positive integers"),
        ({"image_shape": (1.5, 2)}, "positive integers"),
        ({"ingredients": 3}, "collection of names"),
        ({"ingredients": [["density"]]}, "must be among"),
        ({"symmetric": "no"}, "symmetric must be"),
        ({"device": "meta"}, "device must be one that is here"),
        ({"device": "abacus"}, "torch knows"),
        ({"learning_rate": 1e30}, "diverged"),
        ({"learned_weight": 1e308}, "learned_weight must be"),  # sums would overflow
        ({"preset": np.array(["auto", "paper"])}, "preset must be one of"),
        ({"warm_start": "no"}, "warm_start must be"),
        ({"verbose": "no"}, "verbose must be"),
        ({"verbose": -1}, "verbose must be"),
    ],
)
def test_more_bad_parameters_are_named(wrong, message):
    with pytest.raises(ValueError, match=message) as caught:
        LocalMaximaDetector(**{**QUICK, **wrong}).fit(X)
    assert "\n" not in str(caught.value)


def test_too_many_features_are_refused_by_their_number():
    with pytest.raises(ValueError, match="70,000 features"):
        LocalMaximaDetector(**QUICK).fit(np.eye(2, 70_000))


def test_widths_may_be_an_array():
    assert LocalMaximaDetector(hidden=np.array([4, 5]), **QUICK).fit(X).plan_.membership["hidden"] == [
        4,
        5,
    ]


# ---------------------------------------------------------------------- devices


def test_the_processor_is_a_device_like_any_other():
    named = LocalMaximaDetector(device="cpu", **QUICK).fit(X)
    other = LocalMaximaDetector(device=torch.device("cpu", 0), **QUICK).fit(X)
    assert np.array_equal(named.score_samples(X), other.score_samples(X))
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device must be one that is here"):
            usable_device("cuda")


@pytest.mark.parametrize("data", [X, IMAGES])
def test_everything_a_network_sees_is_moved_to_its_device(data, fitted):
    """On the device "meta" any tensor that was left behind on the processor is an error."""
    model = LocalMaximaDetector(max_epochs=0, n_estimators=1).fit(data)
    member = Member(model.plan_, torch.Generator().manual_seed(0), 0.3, device=torch.device("meta"))
    inputs = model.scaling_.inputs(data.reshape(len(data), -1))
    for_c, for_h = member._fakes(inputs)
    losses = [
        member.membership_loss(inputs, for_c),
        member.comparator_loss(inputs, for_h),
        *(member.generator_loss(inputs, of_h) for of_h in (False, True)),
    ]
    assert [loss.device.type for loss in losses] == ["meta"] * 4
    assert {p.device.type for own in member.weights for p in own} == {"meta"}


# ---------------------------------------------------------------------- failures and going on


@pytest.mark.parametrize("wrong", [{"hidden": [0]}, {"learning_rate": 1e30}, {"preset": "image"}])
def test_a_failed_fit_leaves_what_was_learned_before(fitted, wrong):
    before = fitted.score_samples(X)
    with pytest.raises(ValueError, match=r"\w"):
        fitted.set_params(**wrong).fit(X[:, :2])
    assert np.array_equal(fitted.score_samples(X), before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 7}, "same sizes"),
        ({"preset": "paper"}, "same sizes"),
        ({"n_estimators": 1}, "cannot take networks away"),
        ({"learning_rate": 1e30}, "diverged"),
    ],
)
@pytest.mark.parametrize("loaded", [False, True])
def test_going_on_with_other_networks_is_refused_and_changes_nothing(change, message, loaded, tmp_path):
    model = LocalMaximaDetector(warm_start=True, **QUICK).fit(X)
    if loaded:
        model.save(tmp_path / "m.safetensors")
        model = LocalMaximaDetector.load(tmp_path / "m.safetensors")
    before, given = model.score_samples(X), model.get_params()
    for go_on in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            model.set_params(**change) and go_on(X)
        assert np.array_equal(model.score_samples(X), before)
    assert np.isfinite(model.set_params(**given).fit(X).score_samples(X)).all()


def test_a_new_learning_rate_counts_when_going_on():
    unaveraged = ["density", "negatives", "generators"]  # means would still move towards the weights
    model = LocalMaximaDetector(warm_start=True, ingredients=unaveraged, **QUICK).fit(X)
    before = next(model.networks_["c"][0].parameters()).clone()
    model.set_params(learning_rate=1e-12).fit(X)
    assert torch.allclose(next(model.networks_["c"][0].parameters()), before, atol=1e-9)


def test_going_on_checks_the_shapes():
    model = LocalMaximaDetector(warm_start=True, **QUICK).fit(IMAGES)
    with pytest.raises(ValueError, match="8 x 9; got 9 x 8"):
        model.fit(IMAGES.transpose(0, 2, 1))
    with pytest.raises(ValueError, match="features"):
        LocalMaximaDetector(**QUICK).fit(X).partial_fit(X[:, :2])
    with pytest.raises(ValueError, match="at least 2 rows"):
        model.fit(IMAGES[:1])


@pytest.mark.parametrize("preset", ["auto", "paper"])
@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_copies_go_on_as_the_original_does(preset, copied):
    model = LocalMaximaDetector(preset, **QUICK).fit(X)
    other = copied(model)
    assert np.array_equal(other.partial_fit(X).score_samples(X), model.partial_fit(X).score_samples(X))


def test_grid_search_works():
    search = GridSearchCV(
        LocalMaximaDetector(**QUICK),
        {"learned_weight": [0.0, 0.5]},
        scoring=lambda model, rows, y=None: float(np.mean(model.predict(rows) == 1)),
        cv=2,
    )
    assert search.fit(X).best_estimator_.plan_.learned_weight in (0.0, 0.5)


# ---------------------------------------------------------------------- Ctrl-C


def interrupt(monkeypatch, owner, name, at):
    original, calls = getattr(owner, name), []

    def stopped(*arguments, **named):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, stopped)


@pytest.mark.parametrize(
    ("owner", "name"), [(ensemble, "_new_member"), (Member, "epoch"), (training, "graded_pair")]
)
def test_stopped_before_the_first_epoch_nothing_is_fitted_or_lost(owner, name, monkeypatch, fitted):
    before, new = fitted.score_samples(X), LocalMaximaDetector(**QUICK)
    with monkeypatch.context() as patch:
        interrupt(patch, owner, name, 1)
        with pytest.raises(KeyboardInterrupt):
            new.fit(X)
    assert not [key for key in vars(new) if key.endswith("_")]
    with monkeypatch.context() as patch:
        interrupt(patch, owner, name, 1)
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(X)
    assert np.array_equal(fitted.score_samples(X), before)


def test_a_member_that_was_stopped_in_its_first_epoch_does_not_count(monkeypatch):
    interrupt(monkeypatch, Member, "epoch", 3)  # the first of the second member
    with pytest.warns(UserWarning, match="interrupted"):
        model = LocalMaximaDetector(**QUICK).fit(X)
    assert len(model.networks_["c"]) == 1
    assert np.isfinite(model.score_samples(X)).all()


# ---------------------------------------------------------------------- improving and comparing


def test_compare_is_two_questions_and_its_difference_is_antisymmetric(fitted):
    a, b = X[:25], X[25:]
    difference = fitted.compare(a, b) - fitted.compare(b, a)
    assert np.allclose(difference, 3 * (fitted.quality(a) - fitted.quality(b)))
    assert np.allclose(fitted.compare(a, a), fitted.quality(a))


def test_improved_images_stay_within_the_range_of_the_pixels():
    model = LocalMaximaDetector(**QUICK).fit(np.round(IMAGES))
    path = model.improve(np.round(IMAGES[0]), steps=6, step_size=0.5)
    assert path.points.shape[1:] == (8, 9) and len(path.points) > 1
    assert path.points.min() >= 0 and path.points.max() <= 1


def test_improve_refuses_what_is_no_point_and_needs_no_names(fitted, recwarn):
    for wrong in (X, 3.0, X[0, :2]):
        with pytest.raises(ValueError, match="one point of 3 features"):
            fitted.improve(wrong)
    with pytest.raises(ValueError, match="floor"):
        fitted.improve(X[0], floor=np.nan)
    fitted.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
    assert len(fitted.improve(X[0], steps=1).points) <= 2
    assert not recwarn.list
    far = fitted.improve(np.full(3, 99.0))
    assert len(far.points) == 1 and "flat" in far.reason  # beyond the box h is constant


def test_networks_of_images_and_of_the_printed_algorithm_are_no_relu_networks():
    for model in (
        LocalMaximaDetector(max_epochs=0).fit(IMAGES),
        LocalMaximaDetector("paper", max_epochs=0).fit(X),
    ):
        with pytest.raises(ValueError, match="not written as one ReLU"):
            model.learned_network_  # noqa: B018


def test_plans_name_the_networks_of_the_frame(fitted):
    assert networks_for(fitted.scaling_, None, False)[0] == fitted.plan_.membership

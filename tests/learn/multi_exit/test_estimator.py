"""The classifier: scikit-learn's rules, budgets, unlabelled rows, interruption, files, bad input."""

import pickle
import time

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

import pindown
from pindown.errors import UnsupportedModelError
from pindown.learn import MultiExitClassifier
from pindown.learn.multi_exit import MultiExitModel, early_exit, training
from pindown.learn.multi_exit import model as export
from pindown.learn.multi_exit.networks import multi_exit_cnn, multi_exit_mlp

DIGITS = load_digits()
X, Y = DIGITS.data, DIGITS.target
TRAIN, TEST = slice(0, 900), slice(900, None)


@parametrize_with_checks([MultiExitClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    return MultiExitClassifier(random_state=0).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def images():
    shape = (slice(None), None)
    small = {"module": lambda s, k: multi_exit_cnn(s[0], k, channels=(6, 8, 8), halve=(1,))}
    model = MultiExitClassifier(**small, max_epochs=5, random_state=0)
    return model.fit(DIGITS.images[TRAIN][shape], Y[TRAIN])


def test_it_learns_as_well_as_a_linear_model(table):
    scaled = MinMaxScaler().fit(X[TRAIN])
    linear = LogisticRegression().fit(scaled.transform(X[TRAIN]), Y[TRAIN])
    assert table.score(X[TEST], Y[TEST]) > linear.score(scaled.transform(X[TEST]), Y[TEST]) - 0.03
    assert table.history_.classification[-1] < 0.1 * table.history_.classification[0]
    assert (table.exit_scores(X[TEST], Y[TEST]) > 0.85).all()
    assert table.exit_scores(X[TEST], Y[TEST])[-1] == pytest.approx(table.score(X[TEST], Y[TEST]))


def test_answers_are_softmaxes_of_the_networks_logits(table):
    for m in (1, 2, 3):
        logits = table.exit_network(m)(X[TEST][:50])  # scaling included, by another route
        P = np.exp(logits - logits.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        assert np.allclose(table.predict_proba(X[TEST][:50], exit=m), P, atol=1e-9)
    assert np.array_equal(table.predict_proba(X[TEST]), table.predict_proba(X[TEST], exit=3))


@pytest.mark.parametrize("mode", ["confidence", "fixed"])
def test_budgets_are_kept_and_cost_accuracy_only_gradually(table, mode):
    full = table.score(X[TEST], Y[TEST])
    for budget in (0.7, 0.85, 1.0):
        answers = table.early_answers(X[TEST], budget, mode=mode)
        each = np.array(table.policy(budget, mode=mode).exit_costs)
        spent = each[answers.exits.numpy() - 1].mean()
        assert spent <= budget + 0.08  # thresholds are from other rows
        right = (table.predict(X[TEST], budget=budget, mode=mode) == Y[TEST]).mean()
        assert right > full - 0.05
    assert table.policy(1.0, mode=mode).accuracy >= table.policy(0.7, mode=mode).accuracy


def test_anytime_answers_come_one_by_one(table):
    found = list(table.anytime(X[TEST]))
    assert [m for m, _ in found] == [1, 2, 3]
    mean = np.mean([table.predict_proba(X[TEST], exit=m) for m in (1, 2, 3)], axis=0)
    assert np.allclose(found[-1][1], mean)
    first = table.classes_[found[0][1].argmax(1)]
    assert np.array_equal(table.predict_within(X[TEST], 0.0), first)
    patient = table.predict_within(X[TEST], 1e6)
    assert np.array_equal(patient, table.classes_[mean.argmax(1)])


def test_time_that_is_over_stops_the_network(table, monkeypatch):
    now = iter([0.0, 0.5, 2.0])  # begun, after exit 1, after exit 2
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    found = table.predict_within(X[TEST], 1.0)
    monkeypatch.undo()
    two = np.mean([table.predict_proba(X[TEST], exit=m) for m in (1, 2)], axis=0)
    assert np.array_equal(found, table.classes_[two.argmax(1)])


def test_ensembles_answer_with_means(table):
    both = clone(table).set_params(ensemble=True).fit(X[TRAIN], Y[TRAIN])
    P = [table.predict_proba(X[TEST], exit=m) for m in (1, 2, 3)]  # the network is the same
    assert np.allclose(both.predict_proba(X[TEST]), np.mean(P, axis=0))
    assert np.allclose(both.predict_proba(X[TEST], exit=2), np.mean(P[:2], axis=0))
    answers = both.early_answers(X[TEST], 1.0)
    rows, exits = np.arange(len(X[TEST])), answers.exits.numpy()
    running = np.cumsum(P, axis=0) / np.array([1, 2, 3])[:, None, None]
    assert np.allclose(answers.probabilities.numpy(), running[exits - 1, rows])


def test_calibration_moves_thresholds_to_other_rows(table):
    other = pickle.loads(pickle.dumps(table))
    assert other.validated_on_ == "held-out rows"
    other.calibrate(X[TEST])
    policy = other.policy(0.8)
    assert policy.n == len(X[TEST]) and np.isnan(policy.accuracy)
    answers = other.early_answers(X[TEST], 0.8)
    each = np.array(policy.exit_costs)
    assert each[answers.exits.numpy() - 1].mean() <= 0.8 + 1e-6  # chosen on these very rows
    assert other.policy(0.8, mode="fixed").cost <= 0.8
    assert other.calibrate(X[TEST], Y[TEST]).policy(0.8).accuracy > 0.8
    few = MultiExitClassifier(max_epochs=2, random_state=0).fit(X[:40], Y[:40])
    assert few.validated_on_ == "training rows"


def test_a_budget_of_time_is_followed_until_costs_change(table):
    model = pickle.loads(pickle.dumps(table))
    rows = X[TEST][:60]
    kept = model.keep_time(rows, Y[TEST][:60], budget=0.9, batch_size=20, runs=1)
    assert model.policy(0.9) is kept and kept.budget == 0.9
    direct = early_exit(model.model_, model._inputs(rows), kept.thresholds)
    assert torch.equal(model.early_answers(rows, 0.9).exits, direct.exits)
    with pytest.raises(ValueError, match="batch_size"):
        model.keep_time(rows, budget=0.9, batch_size=0)
    assert model.calibrate(X[TEST], Y[TEST]).policy(0.9) is not kept


def test_latency_curve_of_the_classifier(table):
    curve = table.latency_curve(X[TEST][:60], Y[TEST][:60], (0.01, 0.8, 1.0), batch_size=60, runs=1)
    assert [point.budget for point in curve.points] == [0.8, 1.0]  # 0.01 is below the first exit
    assert curve.points[1].full_accuracy == pytest.approx(table.score(X[TEST][:60], Y[TEST][:60]))


# ---------------------------------------------------------------------- learning


def test_the_same_seed_gives_the_same_network_whatever_torch_was_told():
    settings = {"max_epochs": 3, "random_state": 3}
    first = MultiExitClassifier(**settings).fit(X[:200], Y[:200])
    torch.manual_seed(99)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    second = MultiExitClassifier(**settings).fit(X[:200], Y[:200])
    assert torch.equal(torch.get_rng_state(), state) and torch.get_num_threads() == threads
    assert np.array_equal(first.predict_proba(X[TEST]), second.predict_proba(X[TEST]))
    third = MultiExitClassifier(max_epochs=3, random_state=4).fit(X[:200], Y[:200])
    assert not np.allclose(first.predict_proba(X[TEST]), third.predict_proba(X[TEST]))


def test_no_teachers_is_exit_wise_training_step_for_step():
    settings = {"max_epochs": 3, "random_state": 0}
    plain = MultiExitClassifier(loss="exit-wise", **settings).fit(X[:200], Y[:200])
    none = MultiExitClassifier(teachers=[[], [], []], **settings).fit(X[:200], Y[:200])
    assert np.array_equal(plain.predict_proba(X[TEST]), none.predict_proba(X[TEST]))
    taught = MultiExitClassifier(**settings).fit(X[:200], Y[:200])
    assert not np.allclose(plain.predict_proba(X[TEST]), taught.predict_proba(X[TEST]), atol=1e-3)


def test_labels_of_unlabelled_rows_are_never_read():
    settings = {"max_epochs": 4, "random_state": 0, "validation_fraction": 0.0}
    free = MultiExitClassifier(**settings).fit(X[:100], Y[:100], X_unlabelled=X[100:300])
    marked = np.where(np.arange(300) < 100, Y[:300], -1)
    same = MultiExitClassifier(unlabelled_label=-1, **settings).fit(X[:300], marked)
    assert np.array_equal(free.predict_proba(X[TEST]), same.predict_proba(X[TEST]))
    assert same.classes_.tolist() == list(range(10))
    alone = MultiExitClassifier(**settings).fit(X[:100], Y[:100])
    assert not np.allclose(alone.predict_proba(X[TEST]), free.predict_proba(X[TEST]), atol=1e-3)
    with pytest.raises(ValueError, match="no row has a label"):
        MultiExitClassifier(unlabelled_label=-1).fit(X[:20], np.full(20, -1))
    with pytest.raises(ValueError, match="inputs of shape rows, X_unlabelled"):
        MultiExitClassifier().fit(X[:20], Y[:20], X_unlabelled=DIGITS.images)


def test_interruption_keeps_the_weights(monkeypatch):
    steps = []
    whole = training._step

    def stopping(*args):
        steps.append(1)
        if len(steps) == 8:
            raise KeyboardInterrupt
        return whole(*args)

    monkeypatch.setattr(training, "_step", stopping)
    with pytest.warns(UserWarning, match="interrupted: the weights so far are kept"):
        model = MultiExitClassifier(random_state=0).fit(X[:200], Y[:200])
    assert model.n_iter_ == 2 and model.history_.interrupted  # three steps an epoch
    assert model.predict_proba(X[TEST]).shape == (len(X[TEST]), 10)
    steps[:] = [1] * 7
    with pytest.raises(KeyboardInterrupt):
        MultiExitClassifier(random_state=0).fit(X[:200], Y[:200])


def test_divergence_is_told():
    with pytest.raises(ValueError, match="training diverged"):
        MultiExitClassifier(optimiser="sgd", learning_rate=1e30, random_state=0).fit(X[:200], Y[:200])


def test_it_works_in_pipelines_and_grids_and_survives_pickling(table):
    model = make_pipeline(MinMaxScaler(), MultiExitClassifier(max_epochs=2, random_state=0))
    grid = GridSearchCV(model, {"multiexitclassifier__loss": ["distil", "exit-wise"]}, cv=2)
    assert grid.fit(X[:100], Y[:100].astype(str)).predict(X[:3]).dtype.kind == "U"
    again = pickle.loads(pickle.dumps(table))
    assert np.array_equal(again.predict(X[TEST]), table.predict(X[TEST]))


# ---------------------------------------------------------------------- images and own networks


def test_images_go_to_convolutions(images):
    flat = DIGITS.images[TEST][:, None]
    assert images.score(flat, Y[TEST]) > 0.7 and images.scaling_.shape == (1, 8, 8)
    grey = images.predict_proba(DIGITS.images[TEST])
    assert np.array_equal(images.predict_proba(flat), grey)
    again = images.predict_proba(DIGITS.images[TEST].reshape(-1, 64))  # as rows of pixels
    assert np.array_equal(again, grey)
    with pytest.raises(ValueError, match=r"images of shape \(1, 8, 8\) were learned; got \(1, 4, 16\)"):
        images.predict(DIGITS.images.reshape(-1, 1, 4, 16))
    with pytest.raises(ValueError, match=r"channels first.*transpose\(0, 3, 1, 2\)"):
        MultiExitClassifier().fit(np.zeros((4, 8, 8, 3)), [0, 1, 0, 1])


def test_networks_of_ones_own_are_copied_and_trained():
    own = multi_exit_mlp(64, 10, hidden=(12, 12))
    before = [p.clone() for p in own.parameters()]
    model = MultiExitClassifier(module=own, max_epochs=2, random_state=0).fit(X[:100], Y[:100])
    assert model.model_.n_exits == 2 and all(map(torch.equal, before, own.parameters()))
    with pytest.raises(
        ValueError, match=r"exit 1 of the module returns shape \(2, 10\) for 2 rows of 3"
    ):
        MultiExitClassifier(module=own).fit(X[:100], Y[:100] % 3)
    with pytest.raises(TypeError, match="Linear has no stages"):
        MultiExitClassifier(module=nn.Linear(64, 10)).fit(X[:100], Y[:100])
    with pytest.raises(TypeError, match="it made int"):
        MultiExitClassifier(module=lambda shape, classes: 3).fit(X[:100], Y[:100])


def test_the_dense_network_learns():
    model = MultiExitClassifier("msdnet", max_epochs=1, random_state=0)
    model.fit(DIGITS.images[:64, None], Y[:64])
    assert model.model_.n_exits == 4 and model.predict(DIGITS.images[:3], budget=0.9).shape == (3,)


# ---------------------------------------------------------------------- files


def test_every_exit_of_a_table_is_a_relu_network_in_a_file(table, tmp_path):
    files = table.export(tmp_path / "new")
    assert [file.name for file in files] == ["exit_1.onnx", "exit_2.onnx", "exit_3.onnx"]
    for m, file in enumerate(files, 1):
        net = pindown.load(file)
        assert np.allclose(net(X[:20]), table.exit_network(m)(X[:20]), atol=1e-5)
    assert pindown.load(files[0]).n_parameters < pindown.load(files[2]).n_parameters


def test_every_exit_of_a_convolutional_network_runs_elsewhere(images, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    rows = DIGITS.images[TEST][:7, None].astype(np.float32)
    for m, file in enumerate(images.export(tmp_path), 1):
        session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        (logits,) = session.run(["output"], {"input": rows})
        expected = images.predict_proba(rows, exit=m)
        found = torch.from_numpy(logits).softmax(dim=1).numpy()
        assert np.allclose(found, expected, atol=1e-4)
        assert np.allclose(pindown.load(file)(rows.reshape(7, -1)), logits, atol=1e-3)


@pytest.mark.parametrize(("dtype", "kind"), [("auto", "float32"), ("float64", "float64")])
def test_files_take_the_numbers_of_the_training_or_those_asked_for(table, dtype, kind, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    rows = X[TEST][:7]
    for m, file in enumerate(table.export(tmp_path, dtype=dtype), 1):
        session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        (logits,) = session.run(["output"], {"input": rows.astype(kind)})
        assert logits.dtype == kind
        found = torch.from_numpy(logits).softmax(dim=1).numpy()
        assert np.allclose(found, table.predict_proba(rows, exit=m), atol=1e-5)
        saved = pindown.load(file).relu_network()
        same = [
            np.array_equal(a.weight, b.weight) and np.array_equal(a.bias, b.bias)
            for a, b in zip(saved.layers, table.exit_network(m).layers, strict=True)
        ]  # float64 files hold what was computed, to the last digit
        assert all(same) == (kind == "float64")


def test_convolutions_in_double_precision_on_request(images, tmp_path):
    onnx = pytest.importorskip("onnx")
    file = images.export(tmp_path, dtype="float64")[0]
    told = onnx.load(str(file)).graph
    assert told.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    rows = DIGITS.images[TEST][:7]
    P = torch.from_numpy(pindown.load(file)(rows.reshape(7, -1))).softmax(dim=1).numpy()
    assert np.allclose(P, images.predict_proba(rows, exit=1), atol=1e-5)
    assert next(images.model_.parameters()).dtype == torch.float32  # the classifier is as it was


def test_weights_that_need_double_precision_are_written_so(tmp_path):
    model = MultiExitModel([nn.Linear(3, 4)], [nn.Linear(4, 2)]).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.1)
    file = export.export_prefixes(model, tmp_path, (3,))[0]
    assert pindown.load(file).relu_network().layers[0].weight[0, 0] != np.float32(0.1)
    with pytest.raises(
        ValueError, match="dtype must be one of 'auto', 'float32', 'float64'; got 'half'"
    ):
        export.export_prefixes(model, tmp_path, (3,), dtype="half")


def test_modules_that_cannot_be_exported_say_so(tmp_path):
    class Odd(nn.Module):
        def forward(self, x):
            return torch.linalg.svdvals(x[:, None] * torch.ones(2, 1))

    model = MultiExitModel([nn.Linear(3, 2)], [Odd()])
    with pytest.raises(UnsupportedModelError, match="torch cannot write this module as ONNX"):
        export.export_prefixes(model, tmp_path, (3,))


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"network": "rnn"}, "network must be one of 'auto', 'mlp', 'cnn', 'msdnet'; got 'rnn'"),
        ({"network": "cnn"}, "needs images"),
        ({"loss": "mse"}, "loss must be one of 'distil', 'exit-wise'"),
        ({"optimiser": 3}, "optimiser must be one of 'adam', 'sgd'"),
        ({"teachers": "first"}, "teachers must be one of"),
        ({"teachers": [[2]]}, "a list for each of 3 exits"),
        ({"max_epochs": 0}, "max_epochs must be an integer of at least 1, or None"),
        ({"batch_size": 1}, "batch_size must be an integer of at least 2"),
        ({"learning_rate": -1.0}, "learning_rate must be a finite number above 0, or None"),
        ({"weight_decay": -1.0}, "weight_decay must be a finite number of at least 0"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a number of at least 0 and below 1"),
        ({"mu": 2.0}, "mu must be a number above 0 and below 1"),
        ({"device": "abacus"}, "device must be one that torch knows"),
    ],
)
def test_bad_parameters_are_refused(settings, words):
    rows, labels = make_blobs(30, random_state=0)
    with pytest.raises(ValueError, match=words):
        MultiExitClassifier(**settings).fit(rows, labels)


def test_bad_requests_are_refused(table):
    with pytest.raises(ValueError, match="a budget or an exit, not both"):
        table.predict(X, budget=0.5, exit=1)
    with pytest.raises(ValueError, match="exit must be an integer of at least 1 and at most 3"):
        table.predict(X, exit=4)
    with pytest.raises(ValueError, match="mode must be one of 'confidence', 'fixed'"):
        table.predict(X, budget=0.5, mode="fast")
    with pytest.raises(ValueError, match="budget must be"):
        table.predict(X, budget=2.0, mode="fixed")
    with pytest.raises(ValueError, match="seconds must be a finite number of at least 0"):
        table.predict_within(X, -1.0)
    with pytest.raises(ValueError, match="y must hold 3 labels"):
        table.exit_scores(X[:3], Y[:2])
    with pytest.raises(ValueError, match="y holds one class, 0"):
        MultiExitClassifier().fit(X[:5], np.zeros(5, dtype=int))
    with pytest.raises(ValueError, match="network 'mlp' needs rows"):
        MultiExitClassifier("mlp").fit(DIGITS.images[:20], Y[:20])
    assert table.exit_scores(X[:3], [77, 77, 77]).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="mode must be one of"):
        table.predict(X, mode="fast")
    with pytest.raises(ValueError, match="batch_size must be"):
        table.measure_costs(X, batch_size=0)
    with pytest.raises(ValueError, match="no budget is enough for the first exit"):
        table.latency_curve(X[:3], budgets=(0.01,))
    with pytest.raises(ValueError, match="got 'half'"):
        table.latency_curve(X[:3], budgets=("half",))
    with pytest.raises(ValueError, match="labels are text, so unlabelled_label must be; got -1"):
        MultiExitClassifier(unlabelled_label=-1).fit(X[:20], Y[:20].astype(str))
    with pytest.raises(ValueError, match="labels are numbers, so unlabelled_label must be one"):
        MultiExitClassifier(unlabelled_label="?").fit(X[:20], Y[:20])


def test_accuracy_without_labels_is_not_a_number(table):
    unlabelled = pickle.loads(pickle.dumps(table)).calibrate(X[TEST])
    assert np.isnan(unlabelled.exit_accuracy_).all() and np.isnan(unlabelled.policy(0.8).accuracy)
    assert unlabelled.policy(1.0, mode="fixed").shares[-1] == 1.0  # the latest is taken for the best

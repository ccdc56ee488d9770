"""Any classifier as a linear head: every kind of teacher, and a report whose numbers can be checked."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pindown.guarantees.bounds import held_out_bound
from pindown.learn import distil
from pindown.learn.distillation import DistilledHead
from pindown.learn.distillation._teachers import features_of, teacher_answers


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


@pytest.fixture(scope="module")
def two(digits):
    X, y = digits
    kept = y < 2
    return X[kept], np.where(y[kept] == 1, "one", "zero")


def test_a_linear_teacher_is_found_exactly(digits):
    X, y = digits
    teacher = LogisticRegression(max_iter=200).fit(X[:900], y[:900])
    report = distil(teacher, X[900:], y=y[900:])
    assert report.teacher == "decision function of LogisticRegression"
    assert report.agreement == 1.0 and report.logit_r2 == pytest.approx(1.0)
    assert report.accuracy_loss == 0.0 and report.notes == ()
    np.testing.assert_array_equal(report.head.predict(X), teacher.predict(X))
    np.testing.assert_allclose(
        report.head.predict_proba(X[900:]), teacher.predict_proba(X[900:]), atol=1e-9
    )


def test_errors_of_held_out_inputs_are_told_and_not_those_of_its_own():
    """Labels of noise, a teacher that knows them by heart: a head agrees on its own inputs only."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 40)), rng.integers(0, 2, 80)
    teacher = RandomForestClassifier(20, random_state=0).fit(X, y)
    report = distil(teacher, X, y=y, held_out=0.5, random_state=1)
    held = np.sort(np.random.default_rng(1).permutation(80)[:40])
    wrong = report.head.predict(X[held]) != teacher.predict(X[held])
    assert report.own_agreement > 0.9 and wrong.mean() > 0.2
    assert report.agreement == pytest.approx(1 - wrong.mean())
    assert report.disagreement.value == held_out_bound(int(wrong.sum()), 40, 0.05).value
    gaps = (teacher.predict(X[held]) == y[held]) - (report.head.predict(X[held]) == y[held]).astype(
        float
    )
    assert report.accuracy_error == pytest.approx(gaps.std() / np.sqrt(40)) != 0


def test_numbers_of_the_report_are_what_they_say(two):
    X, y = two
    teacher = make_pipeline(StandardScaler(), SVC()).fit(X[:100], y[:100])
    report = distil(teacher, X[100:], y=y[100:], held_out=0.5, random_state=3)
    order = np.random.default_rng(3).permutation(len(X) - 100)
    held = X[100:][np.sort(order[: report.n_held_out])]
    labels = y[100:][np.sort(order[: report.n_held_out])]
    assert report.n + report.n_held_out == len(X) - 100
    same = report.head.predict(held) == teacher.predict(held)
    assert report.agreement == pytest.approx(same.mean())
    assert report.student_accuracy == pytest.approx(report.head.score(held, labels))
    assert report.teacher_accuracy == pytest.approx(np.mean(teacher.predict(held) == labels))
    assert 1 - report.agreement < report.disagreement.value < 0.2
    bound = held_out_bound(int((~same).sum()), len(held), 0.05)
    assert report.disagreement.value == bound.value
    gaps = (teacher.predict(held) == labels).astype(float) - (report.head.predict(held) == labels)
    assert report.accuracy_error == pytest.approx(gaps.std() / np.sqrt(len(held)))
    z = teacher.decision_function(held)
    residual = np.sum((z - report.head.decision_function(held)) ** 2)
    assert report.logit_r2 == pytest.approx(1 - residual / np.sum((z - z.mean()) ** 2))
    assert "not log-odds" in report.teacher and any("no probabilities" in n for n in report.notes)
    assert "note: the teacher gives no probabilities" in str(report) and "lost" in str(report)


def test_unseen_share_is_that_of_the_null_space(two):
    X, y = two
    teacher = LogisticRegression().fit(X[:100], y[:100])
    report = distil(teacher, X[100:], held_out=0.9, fit_intercept=False)
    order = np.random.default_rng(0).permutation(len(X) - 100)
    cut = report.n_held_out
    own, held = X[100:][order[cut:]], X[100:][order[:cut]]
    Q = np.linalg.qr(own.T)[0]
    unseen = np.sum((held - held @ Q @ Q.T) ** 2) / np.sum(held**2)
    assert report.unseen_share == pytest.approx(unseen) and report.unseen_share > 0.01
    assert report.rank == report.n and any("new direction" in note for note in report.notes)


def test_theory_speaks_for_a_linear_teacher_of_two_classes(two):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8)) * [5, 1, 1, 1, 1, 1, 1, 1]
    teacher = LogisticRegression(fit_intercept=False).fit(X, X[:, 0] > 0)
    report = distil(teacher, X, held_out=2994 / 3000, fit_intercept=False)
    assert report.n == 6 and report.certificate is not None
    assert 1 - report.agreement <= report.certificate.value < 1
    assert "before training" in str(report)
    curved = distil(lambda X: X[:, 0] ** 3, X, fit_intercept=False)
    assert curved.certificate is None
    crowded = distil(lambda X: X[:, 0] ** 3, X[:8], fit_intercept=False)
    assert crowded.certificate is None  # eight inputs in eight dimensions: any teacher looks linear
    exact = distil(teacher, X, fit_intercept=False)
    assert exact.certificate.value == 0.0 and exact.agreement == 1.0
    assert distil(teacher, X, fit_intercept=False, depth=2, random_state=1).certificate is None


def test_a_rare_feature_keeps_theory_from_promising_everything():
    """Many inputs that do not span the space: the student may be wrong where the feature is on."""
    X = np.random.default_rng(0).standard_normal((400, 3))
    X = np.column_stack([X, np.zeros(400)])
    held = np.random.default_rng(0).permutation(400)[0]  # in the half that is held out
    X[held, 3] = 100.0
    report = distil(X @ [1.0, 0.0, 0.0, 1.0], X, held_out=0.5, fit_intercept=False)
    assert report.rank == 3 < report.dimension and report.certificate.value > 0.0


def test_probabilities_of_zero_and_one_are_learnt_by_cross_entropy(digits):
    X, y = digits
    forest = RandomForestClassifier(30, random_state=0).fit(X[:900], y[:900])
    report = distil(forest, X[900:], y=y[900:])
    squares = distil(forest, X[900:], y=y[900:], solver="closed")
    assert report.distiller.solver == "gradient"
    assert report.agreement > squares.agreement + 0.05 and report.agreement > 0.9
    assert any("cross-entropy" in note for note in report.notes)
    assert any("squared error" in note for note in squares.notes)


def test_features_of_every_kind(digits):
    X, y = digits
    teacher = LogisticRegression(max_iter=200).fit(X[:600], y[:600])
    pca = PCA(20, random_state=0).fit(X[:600])
    report = distil(teacher, X[600:], pca)
    assert report.dimension == 21 and 0.8 < report.agreement < 1.0
    assert report.head.predict(X[:5]).shape == (5,)
    squared = distil(teacher, X[600:], lambda X: np.hstack([X, X**2]))
    assert squared.dimension == 129
    images = features_of(None, X[:4].reshape(4, 8, 8))
    assert images.shape == (4, 64)


def test_a_torch_network_loses_nothing_on_its_own_last_features():
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5))
    network = torch.nn.Sequential(body, torch.nn.Linear(8, 3))
    network.train()
    X, y = load_iris(return_X_y=True)
    report = distil(network, X, body, y=y)
    assert network.training and body[2].training  # the mode is put back
    assert report.agreement == 1.0 and report.logit_r2 > 1 - 1e-8
    assert "outputs of Sequential" in report.teacher
    layer = report.head.to_torch()
    features = torch.from_numpy(features_of(body, X))
    np.testing.assert_allclose(
        layer(features).detach().numpy(), report.head.decision_function(X), atol=1e-9
    )
    np.testing.assert_allclose(
        report.head.to_network()(features.numpy()), report.head.decision_function(X), atol=1e-9
    )
    raw = distil(network, torch.from_numpy(X), features=lambda X: X.numpy())
    assert raw.dimension == 5 and raw.logit_r2 < 1
    one = torch.nn.Linear(4, 1)
    assert distil(one, X).head.classes_.tolist() == [0, 1]


def test_answers_as_arrays_and_functions(two):
    X, _ = two
    z = X @ np.arange(64.0)
    assert distil(z, X).agreement == distil(lambda X: X @ np.arange(64.0), X).agreement == 1.0
    chances = 1 / (1 + np.exp(-z / 100))
    report = distil(chances, X, outputs="probability")
    # One picture holds a pixel that no other has; it is unseen when held out.
    assert np.median(np.abs(report.head.decision_function(X) - z / 100)) < 1e-9
    with pytest.warns(UserWarning, match="look like probabilities"):
        distil(np.column_stack([1 - chances, chances]), X)


def test_scores_for_pairs_of_classes_are_not_logits():
    X, y = load_iris(return_X_y=True)
    pairs = SVC(decision_function_shape="ovo").fit(np.vstack([X, X[:9] + 9]), np.append(y, [3] * 9))
    with pytest.raises(TypeError, match="neither predict_proba"):
        teacher_answers(pairs, X)
    # Three classes have three pairs, so that the shape does not give them away.
    with pytest.raises(TypeError, match="neither predict_proba"):
        teacher_answers(SVC(decision_function_shape="ovo").fit(X, y), X)
    ridge = teacher_answers(RidgeClassifier().fit(X, y), X)
    assert ridge.logits.shape == (150, 3)


def several_questions(X):
    return RandomForestClassifier(2).fit(X, np.column_stack([X[:, 20] > 0.3, np.arange(len(X)) % 3]))


def recurrent():
    import torch

    return torch.nn.LSTM(64, 2)


def test_tensors_that_want_gradients_are_inputs_too():
    import torch

    X = torch.linspace(-1.0, 1.0, 40).reshape(20, 2).requires_grad_()
    assert distil(lambda Z: Z.detach()[:, 0] - 0.1, X).agreement == 1.0


def test_a_head_checks_its_features():
    head = DistilledHead(np.ones((3, 2)), np.zeros(3), np.array(list("abc")))
    assert str(head) == "linear head on 2 features for 3 classes"
    with pytest.raises(ValueError, match="takes 2 features"):
        head.predict([[1.0]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda X: distil(7, X), TypeError, "cannot ask a int"),
        (lambda X: distil(X[:, 0], X[:1]), ValueError, "answers"),
        (lambda X: distil(X[:1, 0], X[:1]), ValueError, "at least 2"),
        (lambda X: distil(X[:, 0], X, 3), TypeError, "features must be"),
        (lambda X: distil(X[:, 0], X, held_out=1.0), ValueError, "held_out"),
        (lambda X: distil(X[:, 0], X, y=[1, 0]), ValueError, "one label for each"),
        (lambda X: distil(X[:, 0], X, y=["a"] * len(X)), ValueError, "teacher's classes"),
        (lambda X: distil(np.ones((len(X), 2, 2)), X), ValueError, "shape"),
        (lambda X: distil(X[:, 0] * np.nan, X), ValueError, "finite"),
        (lambda X: distil(X[:, 0], X, lambda X: X * np.inf), ValueError, "finite"),
        (lambda X: distil(LogisticRegression(), X), ValueError, "knows 0 classes"),
        (lambda X: distil(X[:, 20] > 0.3, X), ValueError, "hard labels"),
        (lambda X: distil(several_questions(X), X), ValueError, "several questions"),
        (lambda X: distil(recurrent(), X), TypeError, "not a tensor"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_refusals(call, error, message, two):
    with pytest.raises(error, match=message):
        call(two[0][:30] + 0.01)


def test_a_teacher_that_always_says_the_same():
    X = np.random.default_rng(0).standard_normal((20, 3))
    report = distil(np.ones(20), X)
    assert report.agreement == 1.0 and np.isnan(report.logit_r2)
    assert distil(np.zeros(20), X).agreement == 1.0

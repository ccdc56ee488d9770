"""Reading scikit-learn estimators: what the model returns must be what they predict."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier

from pindown import Model, ReluNetwork
from pindown.errors import UnsupportedModelError

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
IRIS = load_iris(return_X_y=True)
CANCER = [part[::4] for part in load_breast_cancer(return_X_y=True)]
CANCER[0] = CANCER[0][:, :8] / CANCER[0][:, :8].std(axis=0)
DIABETES = [part[::4] for part in load_diabetes(return_X_y=True)]
DIABETES[0] = 3 + 10 * DIABETES[0]


def check(estimator, data, wanted=None):
    """Fit, read, and compare with the estimator on its own data; return the model."""
    X, y = data
    estimator.fit(X, y)
    model = Model.from_sklearn(estimator)
    kinds = ("predict_proba", "decision_function", "predict", "transform")
    kind = next(kind for kind in kinds if hasattr(estimator, kind))
    theirs = np.asarray(getattr(estimator, kind)(X), dtype=float).reshape(len(X), -1)
    if kind == "predict_proba" and theirs.shape[1] == 2:
        theirs = theirs[:, 1:]
    ours = model(np.asarray(X))
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11 * np.abs(theirs).max())
    return model


# ---------------------------------------------------------------------- perceptrons


@pytest.mark.parametrize("activation", ["relu", "identity", "tanh", "logistic"])
def test_perceptrons(activation):
    options = {"hidden_layer_sizes": (5, 3), "activation": activation, "max_iter": 20, "random_state": 0}
    assert check(MLPClassifier(**options), IRIS).n_parameters == 25 + 18 + 12
    check(MLPRegressor(**options), DIABETES)


def test_classifier_probabilities():
    X, y = IRIS
    mlp = MLPClassifier(hidden_layer_sizes=(8, 6), max_iter=50, random_state=0).fit(X, y)
    net = ReluNetwork.from_sklearn(mlp)
    logits = net(X)
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert net.output_activation == "softmax"
    np.testing.assert_allclose(
        shifted / shifted.sum(axis=1, keepdims=True), mlp.predict_proba(X), atol=1e-12
    )


def test_binary_classifier_has_one_output_that_of_the_second_class():
    X, y = IRIS
    mlp = MLPClassifier(hidden_layer_sizes=(5,), max_iter=50, random_state=0)
    model = check(mlp, (X, np.where(y == 1, "yes", "no")))
    assert model.notes == (
        "Of two classes the model returns one number, that of the second class (yes).",
    )
    net = model.relu_network()
    assert net.output_activation == "sigmoid"
    np.testing.assert_allclose(1 / (1 + np.exp(-net(X)[:, 0])), mlp.predict_proba(X)[:, 1], atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_regressor(activation):
    mlp = MLPRegressor(hidden_layer_sizes=(7, 3), activation=activation, max_iter=50, random_state=0)
    model = check(mlp, DIABETES)
    net = ReluNetwork.from_sklearn(mlp)
    assert net.depth == (3 if activation == "relu" else 1)
    np.testing.assert_allclose(net(DIABETES[0]), model(DIABETES[0]), atol=1e-9)


def test_other_perceptrons():
    check(
        MLPClassifier((4,), max_iter=5, random_state=0), (IRIS[0], np.eye(3)[IRIS[1]])
    )  # several labels
    check(MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0), (IRIS[0], IRIS[0][:, :2]))
    check(MLPRegressor("poisson", (4,), max_iter=5, random_state=0), DIABETES)


# ---------------------------------------------------------------------- linear models


@pytest.mark.parametrize(
    "estimator",
    [
        *(LinearRegression(), Ridge(), Lasso(), ElasticNet(), SGDRegressor(max_iter=5), LinearSVR()),
        *(HuberRegressor(), PoissonRegressor(), TweedieRegressor(power=0), TweedieRegressor(power=1.5)),
        *(SVR(kernel="linear"), LinearRegression(fit_intercept=False)),
    ],
    ids=repr,
)
def test_linear_regressors(estimator):
    check(estimator, DIABETES)


@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three classes", "two classes"])
@pytest.mark.parametrize(
    "estimator",
    [
        *(
            LogisticRegression(),
            LogisticRegressionCV(cv=2, Cs=2),
            LinearSVC(),
            Perceptron(),
            RidgeClassifier(),
        ),
        *(SGDClassifier(loss="log_loss"), SGDClassifier(), LinearDiscriminantAnalysis()),
    ],
    ids=repr,
)
def test_linear_classifiers(estimator, data):
    check(estimator, data)


def test_a_linear_model_has_an_exact_form():
    net = check(make_pipeline(StandardScaler(), LogisticRegression()), IRIS).relu_network()
    assert (net.depth, net.output_activation) == (1, "softmax")


# ---------------------------------------------------------------------- pipelines


@pytest.mark.parametrize(
    "step",
    [
        *(StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False)),
        *(MinMaxScaler((-1, 2)), MinMaxScaler(clip=True), MaxAbsScaler(), RobustScaler()),
        *(RobustScaler(with_scaling=False), Normalizer(), Normalizer("l1"), Normalizer("max")),
        *(PCA(2), PCA(3, whiten=True), IncrementalPCA(2), TruncatedSVD(2), FastICA(2, random_state=0)),
        *(SelectKBest(k=2), VarianceThreshold(0.3), SimpleImputer(), "passthrough"),
        FeatureUnion(
            [("a", PCA(2)), ("b", StandardScaler()), ("c", "drop")], transformer_weights={"a": 2.0}
        ),
        ColumnTransformer(
            [("a", StandardScaler(), [0, 2]), ("b", "drop", [3])], remainder="passthrough"
        ),
    ],
    ids=repr,
)
def test_steps_of_pipelines(step):
    model = check(make_pipeline(step, LogisticRegression()), IRIS)
    assert ("missing" in str(model.notes)) == isinstance(step, SimpleImputer)


def test_nodes_are_named_after_their_step():
    model = check(make_pipeline(StandardScaler(), PCA(2), LogisticRegression()), IRIS)
    assert [node.name for node in model.nodes][:3] == [
        "step 'standardscaler' (StandardScaler)",
        "step 'pca' (PCA)",
        "step 'logisticregression' (LogisticRegression)",
    ]


def test_deeper_pipelines():
    mlp = MLPClassifier((8,), max_iter=10, random_state=0)
    check(make_pipeline(StandardScaler(), PCA(3), mlp), IRIS)
    check(
        GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1, 2]}, cv=2), DIABETES
    )
    check(StandardScaler(), IRIS)
    scaled = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), Ridge()), transformer=StandardScaler()
    )
    check(scaled, DIABETES)
    check(TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp), DIABETES)
    check(TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1), DIABETES)


def test_columns_with_names():
    X = pd.DataFrame(IRIS[0], columns=list("abcd"))
    by_name = ColumnTransformer([("scaled", StandardScaler(), ["c", "a"])], remainder="passthrough")
    check(make_pipeline(by_name, LogisticRegression()), (X, IRIS[1]))


def test_a_row_of_zeros_stays_one():
    for norm in ("l1", "l2", "max"):
        assert (check(Normalizer(norm), IRIS)(np.zeros((1, 4))) == 0).all()


# ---------------------------------------------------------------------- what is not read


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (
            DecisionTreeClassifier(),
            "the estimator is a DecisionTreeClassifier, which pindown does not read",
        ),
        (RandomForestRegressor(2), "RandomForestRegressor"),
        (KNeighborsClassifier(), "KNeighborsClassifier"),
        (SVC(), "kernel='rbf' is not read"),
        (SVC(kernel="linear"), "more than two classes"),
        (
            make_pipeline(StandardScaler(), DecisionTreeClassifier()),
            "step 'decisiontreeclassifier' of the pipeline",
        ),
        (make_pipeline(PolynomialFeatures(), Ridge()), "PolynomialFeatures"),
        (make_pipeline(FunctionTransformer(np.sin), Ridge()), "FunctionTransformer"),
        (
            TransformedTargetRegressor(Ridge(), func=np.sqrt, inverse_func=np.square),
            "np.log with np.exp",
        ),
    ],
)
def test_what_is_not_read_is_named(estimator, words):
    with pytest.raises(UnsupportedModelError, match=words) as caught:
        Model.from_sklearn(estimator.fit(*IRIS))
    assert "\n" not in str(caught.value)


def test_what_has_no_numbers_yet():
    with pytest.raises(UnsupportedModelError, match=r"layer 1: Tanh is not piecewise linear"):
        ReluNetwork.from_sklearn(MLPRegressor(activation="tanh", max_iter=5).fit(*DIABETES))
    for estimator in (MLPRegressor(), LinearRegression(), make_pipeline(StandardScaler(), Ridge())):
        with pytest.raises(ValueError, match="not fitted; call fit first"):
            Model.from_sklearn(estimator)
    for other in (MLPRegressor, "model.pkl", object()):
        with pytest.raises(TypeError, match="scikit-learn estimator; got"):
            Model.from_sklearn(other)


def test_an_estimator_that_predicts_something_else_is_refused():
    class Doubled(MLPRegressor):
        def predict(self, X):
            return 2.0 * super().predict(X)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    estimator = Doubled(hidden_layer_sizes=(4,), max_iter=20, random_state=0).fit(X, X[:, 0])
    with pytest.raises(UnsupportedModelError, match="not read as what it is"):
        Model.from_sklearn(estimator)

"""Whatever a user calls a model is taken as one: by audit, diff, shrink and canonical alike."""

import numpy as np
import pytest
import torch
from sklearn.neural_network import MLPRegressor
from torch import nn

import pindown as pn
from pindown.io.any_model import as_network


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    return nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 1))


def forms(module, folder):
    """Return one network as a module, as two files and as itself."""
    torch.save(module.state_dict(), folder / "model.pt")
    net = pn.ReluNetwork.from_torch(module)
    net.save(folder / "model.onnx")
    return [module, str(folder / "model.pt"), folder / "model.onnx", net]


def test_every_form_of_a_model_is_the_same_network(module, tmp_path):
    first, *others = [as_network(form, "audit", "relu") for form in forms(module, tmp_path)]
    assert all(other == first for other in others)


def test_the_four_questions_take_a_torch_module(module, tmp_path):
    for form in forms(module, tmp_path):
        assert pn.diff(module, form, activation="relu").verdict == "same"
        assert pn.shrink(form, activation="relu").network.in_features == 2
        assert pn.canonical(form, activation="relu") == pn.canonical(pn.ReluNetwork.from_torch(module))
        assert "5 ReLUs" in pn.audit(form, activation="relu", only=["ARC-01"]).description


def test_a_fitted_mlp_is_a_model():
    X = np.linspace(-1, 1, 20)[:, None]
    mlp = MLPRegressor(hidden_layer_sizes=(3,), max_iter=500, random_state=0, solver="lbfgs").fit(
        X, X[:, 0]
    )
    np.testing.assert_allclose(as_network(mlp, "audit")(X)[:, 0], mlp.predict(X), atol=1e-12)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (3, "audit takes a Model, a ReluNetwork, the path of a model file, .* got int"),
        (None, "got NoneType"),
        (nn.ReLU, r"the class ReLU itself: make one, such as ReLU\(\)"),
        ({"0.weight": np.eye(2)}, "a dict; save a state dict with torch.save"),
    ],
)
def test_what_is_no_model_is_refused_in_words(thing, words):
    with pytest.raises(TypeError, match=words):
        as_network(thing, "audit")


def test_images_need_their_shape_and_the_complaint_says_so():
    with pytest.raises(ValueError, match="input_shape"):
        as_network(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), "audit")

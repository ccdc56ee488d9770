"""Several models side by side are one model that gives what each gives alone."""

from fractions import Fraction

import numpy as np
import pytest

import pindown as pn
from pindown import ReluNetwork
from pindown.model.builder import Builder
from pindown.model.from_network import model_of_network
from pindown.model.graph import interval_walk
from pindown.model.joining import joined
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.moves import Transpose
from pindown.model.operations.operation import Interval
from pindown.model.operations.smooth import Sigmoid
from pindown.model.operations.windows import Window


def dense(rng, d, k):
    return model_of_network(
        ReluNetwork.from_layers(
            [
                (rng.standard_normal((6, d)), rng.standard_normal(6)),
                (rng.standard_normal((k, 6)), rng.standard_normal(k)),
            ]
        )
    )


def convolutional(rng):
    """Images of 2 x 3 x 4 entries to 3 x 2 x 3, the axes moved."""
    graph = Builder((1, 2, 3, 4))
    window = Window((2, 2), (1, 1), (0, 0), (0, 0), (1, 1))
    image = graph.add(Convolution(rng.standard_normal((3, 2, 2, 2)), None, window=window), graph.input)
    image = graph.add(Sigmoid(), graph.add(Transpose((0, 2, 3, 1)), image))
    return graph.model(image, input_shape=(2, 3, 4), dtype="float64")


def check(models, reads, n, rng):
    both = joined(models, reads, n)
    X = rng.standard_normal((7, n))
    alone = [model(X[:, read]) for model, read in zip(models, reads, strict=True)]
    np.testing.assert_array_equal(both(X), np.hstack(alone))
    assert both.input_shape == (n,) and both.out_features == sum(model.out_features for model in models)
    return both


def test_each_gets_its_inputs_and_gives_its_outputs():
    rng = np.random.default_rng(0)
    f, g = dense(rng, 3, 2), dense(rng, 4, 3)
    check([f, g], [[0, 1, 2], [3, 2, 1, 0]], 4, rng)
    check([f, g], [[4, 4, 0], [0, 1, 2, 3]], 5, rng)
    check([f, f, g], [[0, 1, 2], [2, 1, 0], [0, 0, 0, 0]], 3, rng)
    check([f], [[0, 1, 2]], 3, rng)


def test_convolutions_stay_convolutions():
    rng = np.random.default_rng(1)
    f, g = convolutional(rng), dense(rng, 24, 2)
    both = check([f, g, f], [np.arange(24), rng.permutation(25)[:24], np.arange(1, 25)], 25, rng)
    assert sum(isinstance(operation, Convolution) for operation in both.operations) == 2


def test_copies_share_their_weights():
    rng = np.random.default_rng(2)
    f = dense(rng, 3, 2)
    both = joined([f, f], [[0, 1, 2], [3, 1, 2]], 4)
    extra = 8 * 2 * 3  # the indices that are read
    assert both.n_parameters == f.n_parameters and both.nbytes <= f.nbytes + extra
    assert all(any(operation is own for operation in both.operations) for own in f.operations)


def test_bounds_fractions_and_files_go_through(tmp_path):
    rng = np.random.default_rng(3)
    f, g = dense(rng, 2, 2), dense(rng, 2, 1)
    both = joined([f, g], [[0, 1], [2, 1]], 3)
    *_, box = interval_walk(both, Interval(np.zeros((1, 3)), np.ones((1, 3))))
    Y = both(rng.random((50, 3)))
    assert (box.lower.reshape(3) <= Y).all() and (box.upper.reshape(3) >= Y).all()
    rational = both.evaluate(np.array([[Fraction(1, 4), Fraction(1, 2), Fraction(1)]], dtype=object))
    np.testing.assert_allclose(rational.astype(float).ravel(), both([0.25, 0.5, 1.0]))
    both.save(tmp_path / "both.onnx", dtype="float64")
    X = rng.standard_normal((5, 3))
    np.testing.assert_allclose(pn.load(tmp_path / "both.onnx")(X), both(X), atol=1e-12)
    np.testing.assert_allclose(both.relu_network()(X), both(X), atol=1e-12)


def test_messages_name_the_model():
    f = dense(np.random.default_rng(4), 2, 1)
    names = [node.name for node in joined([f, f], [[0, 1], [1, 0]], 2).nodes]
    assert any(name.startswith("model 1, ") for name in names) and "input of model 2" in names
    with pytest.raises(ValueError, match="model 2 has 2 inputs; it is to read 3"):
        joined([f, f], [[0, 1], [0, 1, 2]], 3)
    for read in ([0, 2], [-1, 0]):
        with pytest.raises(ValueError, match="model 1 reads inputs that are not among 0 to 1"):
            joined([f], [read], 2)
    with pytest.raises(ValueError, match="got 1 and 2"):
        joined([f], [[0, 1], [0, 1]], 2)

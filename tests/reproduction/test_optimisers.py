"""The comparisons of optimisers: networks, data, search for step sizes, and tiny runs."""

import gzip
import math
import struct

import numpy as np
import pytest
import torch

from pindown.errors import DataFileError
from pindown_reproduction.relu_thesis import optimisers_full_batch as optimiser_full_batch
from pindown_reproduction.relu_thesis import optimisers_hessian as hessian_tracking
from pindown_reproduction.relu_thesis import optimisers_image_size as optimiser_image_size
from pindown_reproduction.relu_thesis import optimisers_mini_batch as optimiser_mini_batch
from pindown_reproduction.relu_thesis import optimisers_shift as optimiser_shift
from pindown_reproduction.relu_thesis import optimisers_vgg as optimiser_vgg
from pindown_reproduction.relu_thesis import training_path as optimiser_path
from pindown_reproduction.relu_thesis._optimisers import (
    CONTENDERS,
    STEP_SIZES,
    VGG_CHANNELS,
    TiedAutoencoder,
    at_the_end,
    autoencoder_run,
    best_runs,
    colour_images,
    digit_images,
    make_optimiser,
    missing,
    read_idx,
    settle,
    step_sizes,
    vgg9,
)
from pindown_reproduction.relu_thesis.training_path import two_clusters
from pindown_reproduction.runner import reproduce

AUTOENCODER = {
    "step_sizes": {"NAG": (1e-3, 1e-4), "adaptive": (1e-2, 1e-3)},
    "seeds": 1,
    "train": 40,
    "test": 20,
    "iterations": 4,
}
TINY = {
    optimiser_full_batch: {"nets": [(1, 4), (3, 4)], "sides": [22], "batch": None, **AUTOENCODER},
    optimiser_image_size: {"nets": [(3, 5)], "sides": [12], "batch": None, **AUTOENCODER},
    optimiser_mini_batch: {"nets": [(1, 4), (5, 6)], "sides": [22], "batch": 10, **AUTOENCODER},
    optimiser_shift: {"shifts": [1e-8, 1e-2], "width": 5, **AUTOENCODER},
    hessian_tracking: {"width": 4, "every": 2, **AUTOENCODER},
    optimiser_vgg: {
        **{
            "divisor": 32,
            "train": 30,
            "test": 20,
            "epochs": 1,
            "batch": 10,
            "grid_points": 1,
            "seeds": 1,
        }
    },
    optimiser_path: {
        **{"depths": [2, 3], "separations": [2.0], "seeds": 2, "inputs": 5, "points": 60, "width": 10},
        "nearby": 1,
    },
}


@pytest.fixture(autouse=True)
def without_data(monkeypatch):
    monkeypatch.delenv("PINDOWN_DATA", raising=False)


@pytest.mark.parametrize("module", TINY, ids=lambda module: module.__name__.rsplit(".", 1)[-1])
def test_a_tiny_run_ends_with_a_verdict_and_says_what_data_it_saw(module, tmp_path):
    from dataclasses import replace

    experiment = replace(module.EXPERIMENT, settings={"quick": TINY[module]})
    run = reproduce(experiment, out=tmp_path)
    claims = [row[-1] for row in run.outcome.rows]
    assert set(claims) <= {"yes", "no"} and len(claims) >= 2
    assert (run.outcome.verdict == "reproduced") is (claims.count("no") == 0)
    assert f"{claims.count('yes')} of {len(claims)} published orderings hold" in run.outcome.words
    assert "digits" in run.outcome.words or "two clusters" in run.outcome.words


@pytest.mark.parametrize("module", TINY, ids=lambda module: module.__name__.rsplit(".", 1)[-1])
def test_all_scales_are_declared(module):
    experiment = module.EXPERIMENT
    assert list(experiment.settings) == ["quick", "decisive", "paper"]
    assert all(len(experiment.cells(experiment.settings[scale])) >= 2 for scale in experiment.settings)


@pytest.mark.parametrize("hidden", [1, 3, 5])
def test_tied_autoencoder_against_its_formula_and_finite_differences(hidden):
    torch.manual_seed(0)
    model = TiedAutoencoder(4, 3, hidden, seed=1).double()
    for b in model.biases:
        torch.nn.init.normal_(b)
    ell = (hidden + 1) // 2
    assert len(model.matrices) == ell and len(model.biases) == 2 * ell
    W = [w.detach().numpy() for w in model.matrices]
    b = [v.detach().numpy() for v in model.biases]
    y = np.random.default_rng(0).normal(size=4)
    a = y
    for i in range(ell):
        a = np.maximum(W[i] @ a + b[i], 0)
    for i in range(ell):
        a = W[ell - 1 - i].T @ a + b[ell + i]
        a = np.maximum(a, 0) if i < ell - 1 else a
    assert np.allclose(model(torch.tensor(y)[None])[0].detach().numpy(), a)
    assert torch.autograd.gradcheck(
        lambda *params: torch.func.functional_call(
            model, dict(zip(dict(model.named_parameters()), params, strict=True)), torch.tensor(y)[None]
        ),
        tuple(model.parameters()),
    )


def test_weights_start_within_the_limits_of_glorot():
    model = TiedAutoencoder(100, 50, 3)
    for W, limit in zip(model.matrices, ((6 / 150) ** 0.5, (6 / 100) ** 0.5), strict=True):
        assert 0.98 * limit < float(W.detach().abs().max()) <= limit
    assert all(not v.detach().any() for v in model.biases)
    with pytest.raises(ValueError, match="1, 3, 5"):
        TiedAutoencoder(4, 3, 2)


def test_vgg_has_the_printed_shapes():
    model = vgg9()
    convolutions = [m for m in model if isinstance(m, torch.nn.Conv2d)]
    linear = [m for m in model if isinstance(m, torch.nn.Linear)]
    assert [m.out_channels for m in convolutions] == [n for n in VGG_CHANNELS if n]
    assert [(m.in_features, m.out_features) for m in linear] == [(4096, 256), (256, 10)]
    assert len(convolutions) + len(linear) == 9
    small, sides = vgg9(divisor=32).eval(), []
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        for layer in small:
            x = layer(x)
            if isinstance(layer, torch.nn.MaxPool2d):
                sides.append(x.shape[-1])
    assert sides == [16, 8, 4] and x.shape == (2, 10)


def test_grids_hold_the_source_and_two_more_at_each_end():
    for name, (method, _) in CONTENDERS.items():
        grid = step_sizes(name, {})
        assert grid == sorted(grid) and len(grid) == 9 and sorted(STEP_SIZES[method]) == grid[2:-2]
    assert step_sizes("ADAM 0.9", {}) == [3e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3]
    assert step_sizes("NAG 0.9", {"step_sizes": {"NAG": (0.5,)}}) == [0.5]


def test_the_best_step_is_that_of_the_lowest_training_loss_and_an_end_is_told():
    losses = {0.1: math.nan, 0.01: 2.0, 0.001: 1.0}
    results = [
        ({"contender": "ADAM 0.9", "lr": lr}, {"train": v, "test": -v}) for lr, v in losses.items()
    ]
    best = best_runs(results)
    assert best["ADAM 0.9"]["lr"] == 0.001 and best_runs(results, lr=0.1) == {}
    assert at_the_end(results, best) == ["ADAM 0.9"]
    assert "NAG 0.9" in missing(best)[0].measured and missing(best, ["ADAM 0.9"]) == []
    assert "at an end" in settle([], "data", ["ADAM 0.9"]).words


def test_training_lowers_the_loss_and_an_explosion_is_told():
    cell = {
        "hidden_layers": 1,
        "width": 20,
        "train": 100,
        "test": 50,
        "side": 22,
        "batch": 20,
        "seed": 0,
    }
    for name in CONTENDERS:
        run = autoencoder_run(name, 1e-3, {**cell, "iterations": 60})
        assert run["train"] < 0.9 * run["curve"][0][1] and run["gradient"] > 0
        assert run == autoencoder_run(name, 1e-3, {**cell, "iterations": 60})
    assert math.isnan(autoencoder_run("NAG 0.99", 1e3, {**cell, "iterations": 60})["train"])


def test_optimisers_have_the_settings_of_the_source():
    w = [torch.nn.Parameter(torch.ones(1))]
    adam = make_optimiser("ADAM 0.99", w, 0.1).param_groups[0]
    assert (adam["betas"], adam["shift"], adam["schedule"]) == ((0.99, 0.999), 1e-8, "bias_corrected")
    rmsprop = make_optimiser("RMSProp 0.9", w, 0.1, shift=0.5).param_groups[0]
    assert (rmsprop["decay"], rmsprop["shift"], rmsprop["style"]) == (0.9, 0.5, "thesis")


def write_idx(path, array):
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()))


def test_mnist_files_are_read_cropped_and_resized(tmp_path, monkeypatch):
    folder = tmp_path / "mnist"
    folder.mkdir()
    train = np.random.default_rng(0).integers(0, 256, (5003, 28, 28), dtype=np.uint8)
    write_idx(folder / "train-images-idx3-ubyte.gz", train)
    write_idx(folder / "t10k-images-idx3-ubyte.gz", train[:4])
    monkeypatch.setenv("PINDOWN_DATA", str(tmp_path))
    images = digit_images(2, 3)
    assert images.name.startswith("MNIST") and images.train.shape == (2, 22, 22)
    # the first 5,000 were kept for validation
    assert np.array_equal(
        images.train[0], (train[5000, 3:25, 3:25] / np.float32(255)).astype(np.float32)
    )
    assert digit_images(2, 3, 12).test.shape == (3, 12, 12)


def test_damaged_image_files_are_refused_in_words(tmp_path):
    path = tmp_path / "images.gz"
    with pytest.raises(DataFileError, match="cannot be read"):
        read_idx(path)
    path.write_bytes(b"not compressed")
    with pytest.raises(DataFileError, match="cannot be read"):
        read_idx(path)
    path.write_bytes(gzip.compress(b"\x00\x00\x0dxxxxx"))
    with pytest.raises(DataFileError, match="not an IDX file"):
        read_idx(path)
    path.write_bytes(gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, 2**31) + b"abc"))
    with pytest.raises(DataFileError, match="claims"):
        read_idx(path)


def test_without_data_the_digits_of_scikit_learn_take_over():
    images = digit_images(10**6, 100)
    assert images.name.startswith("scikit-learn") and images.train.shape[1:] == (8, 8)
    assert (
        len(images.train) + len(images.test) == 1797
        and 0 <= images.train.min() <= images.train.max() <= 1
    )
    colour = colour_images(20, 10)
    assert colour.train.shape == (20, 3, 32, 32) and len(colour.labels[1]) == 10


def test_colour_images_from_a_file(tmp_path, monkeypatch):
    (tmp_path / "cifar10").mkdir()
    x = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    y = np.arange(6, dtype=np.uint8)
    np.savez(tmp_path / "cifar10" / "part.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    monkeypatch.setenv("PINDOWN_DATA", str(tmp_path))
    images = colour_images(4, 2)
    first = images.labels[0][0]
    assert images.name == "CIFAR-10" and images.train.shape == (4, 3, 32, 32)
    assert np.allclose(images.train[0], x[first].transpose(2, 0, 1) / 255)


def test_clusters_stay_near_their_centres_and_are_separable():
    X, y = two_clusters(20, 4.0, 1000, seed=3)
    centre = np.where(y == 1, 4.0, 1.0)[:, None]
    assert np.all(np.abs(X - centre) <= 1) and np.all((X.mean(axis=1) > 2.5) == (y == 1))
    assert X.shape == (1000, 20) and np.linalg.norm(X, axis=1).max() <= 50
    # a normal variable cut off at one has variance 0.291
    assert np.var(X - centre) == pytest.approx(0.291, abs=0.01)

"""Images, tables and survival data from a folder; the Gaussian grid."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from pindown.datasets.public_data import (
    ADBENCH,
    find_folder,
    has_data,
    load_adbench,
    load_cifar10,
    load_gtsrb,
    load_mnist,
    load_survival,
    one_class_split,
    read_idx,
    small_digits,
)
from pindown.datasets.synthetic import gaussian_grid, grid_modes
from pindown.errors import DataFileError

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[3] / "shared")) / "data"


def shared(name):
    if not (SHARED / name).is_dir():
        pytest.skip(f"the folder {name} is not in the shared data")
    return SHARED


def write_idx(path, values):
    values = np.asarray(values, dtype=np.uint8)
    head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes()
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wb") as stream:
        stream.write(head + values.tobytes())


@pytest.fixture
def mnist(tmp_path):
    (tmp_path / "mnist").mkdir()
    rng = np.random.default_rng(0)
    for part, n, ending in (("train", 6, ".gz"), ("t10k", 4, "")):
        images, labels = rng.integers(0, 256, (n, 28, 28)), np.arange(n)
        write_idx(tmp_path / "mnist" / f"{part}-images-idx3-ubyte{ending}", images)
        write_idx(tmp_path / "mnist" / f"{part}-labels-idx1-ubyte{ending}", labels)
    return tmp_path


def test_idx_files_are_read_compressed_or_not(mnist, monkeypatch):
    data = load_mnist(mnist)
    assert data.train.shape == (6, 28, 28) and data.test_labels.tolist() == [0, 1, 2, 3]
    assert data.train.reshape(-1)[:3].tolist() == np.random.default_rng(0).integers(0, 256, 3).tolist()
    rng = np.random.default_rng(0)
    for images, n in ((data.train, 6), (data.test, 4)):
        np.testing.assert_array_equal(images, rng.integers(0, 256, (n, 28, 28)))
    assert data.train_labels.tolist() == list(range(6))
    monkeypatch.setenv("PINDOWN_DATA", str(mnist))
    assert str(load_mnist()) == str(data) == "MNIST: 6 + 4 images, 28 x 28"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not an IDX file"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x01\x00", "not an IDX file"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x05abc", "claims 5 bytes and has 3"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02abc", "claims 2 bytes and has 3"),
        (b"\x00\x00\x08\x03" + b"\xff" * 12, "claims"),
        (b"\x00\x00\x08\x03\x00\x00", "cannot be read|claims"),
    ],
)
def test_damaged_idx_files_are_refused_before_memory_is_taken(tmp_path, content, words):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataFileError, match=words):
        read_idx(tmp_path / "x")


def test_labels_must_fit_the_images(mnist):
    write_idx(mnist / "mnist" / "train-labels-idx1-ubyte.gz", np.arange(5))
    with pytest.raises(DataFileError, match="6 train images"):
        load_mnist(mnist)


def test_an_absent_folder_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("PINDOWN_DATA", raising=False)
    with pytest.raises(DataFileError, match="set PINDOWN_DATA"):
        load_mnist()
    with pytest.raises(DataFileError, match="no folder 'mnist'"):
        find_folder(tmp_path, "mnist")
    assert not has_data("mnist") and not has_data("mnist", tmp_path)
    (tmp_path / "cifar10").mkdir()
    with pytest.raises(DataFileError, match=r"no \.npz file"):
        load_cifar10(tmp_path)


def test_the_small_digits_need_no_file():
    data = small_digits(0.5)
    assert data.train.max() == 255 and set(data.test_labels.tolist()) == set(range(10))
    digits = load_digits()
    pixels = np.concatenate([data.train, data.test]) / 255
    np.testing.assert_allclose(pixels, digits.images / 16, atol=0.5 / 255 + 1e-9)
    assert (np.concatenate([data.train_labels, data.test_labels]) == digits.target).all()
    assert len(data.test) == len(digits.target) // 2


def test_real_images():
    data = load_mnist(shared("mnist"))
    assert data.train.shape == (60000, 28, 28) and np.bincount(data.test_labels)[1] == 1135
    signs = load_gtsrb(shared("gtsrb"))
    assert signs.image_shape == (32, 32, 3) and len(set(signs.test_labels.tolist())) == 43
    assert signs.train_groups.shape == signs.train_labels.shape


@pytest.mark.parametrize("name", ADBENCH)
def test_real_tables(name):
    X, y = load_adbench(name, shared("adbench"))
    split = one_class_split(X, y, 0)
    assert len(split.train) == (y == 0).sum() // 2 and split.anomaly.sum() == y.sum()
    assert len(split.test) == len(split.anomaly) == len(X) - len(split.train)


def test_the_split_is_that_of_the_protocol():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(21, 2)), (np.arange(21) % 5 == 0).astype(int)
    order = np.random.RandomState(3).permutation((y == 0).sum())
    half = X[y == 0][order][:8]
    split = one_class_split(X, y, 3)
    np.testing.assert_allclose(split.train, (half - half.mean(0)) / half.std(0))
    rest = np.vstack([X[y == 0][order][8:], X[y == 1]])
    np.testing.assert_allclose(split.test, (rest - half.mean(0)) / half.std(0))
    assert split.anomaly.tolist() == [0] * 8 + [1] * 5


@pytest.mark.parametrize(("X", "y"), [([[1.0]], [0]), ([[1.0], [2.0]], [0, 0]), ([1.0, 2.0], [0, 1])])
def test_splits_that_cannot_be(X, y):
    with pytest.raises(ValueError, match=r"needs two normal rows|must be \(n, d\)"):
        one_class_split(X, y)


def test_bad_tables_are_refused(tmp_path):
    (tmp_path / "adbench").mkdir()
    np.savez(tmp_path / "adbench" / "t.npz", X=np.ones((3, 2)), y=np.array([0, 2, 1]))
    np.savez(tmp_path / "adbench" / "u.npz", X=np.ones((3, 2)), y=np.array([0, 1]))
    np.savez(tmp_path / "adbench" / "v.npz", X=np.full((2, 2), np.nan), y=np.array([0, 1]))
    for name, words in (("t", "0 .normal. and 1"), ("u", "rows must match"), ("v", "not finite")):
        with pytest.raises(DataFileError, match=words):
            load_adbench(name, tmp_path)


def test_survival_rows_with_a_negative_time_are_left_out(tmp_path):
    (tmp_path / "survival").mkdir()
    np.savez(
        tmp_path / "survival" / "gse7390.npz",
        X=np.ones((3, 2)),
        time=np.array([1.0, -1.0, 3.0]),
        event=np.array([1, 0, 0]),
    )
    data = load_survival("gse7390", tmp_path)
    assert data.time.tolist() == [1, 3] and data.event.tolist() == [True, False]
    with pytest.raises(DataFileError, match="survival tables are"):
        load_survival("other", tmp_path)
    assert len(load_survival("tcga_glioma", shared("survival")).X) == 559


def test_the_grid_has_sixteen_modes_and_the_printed_coordinates_have_nine():
    assert len(np.unique(grid_modes(), axis=0)) == 16
    printed = (-1.5, 0.5, 0.5, 1.5)  # as the source prints them
    assert len({(x, y) for x in printed for y in printed}) == 9
    X, mode = gaussian_grid(20_000, random_state=1)
    away = X - grid_modes()[mode]
    assert abs(away.std() - 0.01) < 3e-4 and abs(away.mean()) < 3e-4
    assert np.bincount(mode).min() > 1_000
    with pytest.raises(ValueError, match="sd must be"):
        gaussian_grid(5, sd=-1)

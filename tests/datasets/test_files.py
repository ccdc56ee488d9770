"""Data files: what is read, and that damaged or hostile ones are refused in one sentence."""

import gzip
import io
import zipfile

import numpy as np
import pytest

from pindown.datasets import Table, load_table, numbered_alike
from pindown.errors import DataFileError

X = np.arange(12.0).reshape(4, 3)
y = np.array([0, 1, 1, 0])


def test_npz_finds_inputs_and_labels(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=y, other=X)
    table = load_table(tmp_path / "a.npz")
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, y)
    assert load_table(tmp_path / "a.npz", target="other").y.shape == (4, 3)
    np.savez_compressed(tmp_path / "b.npz", something=X.reshape(4, 3, 1).astype(np.uint8))
    assert load_table(tmp_path / "b.npz").X.shape == (4, 3, 1)
    assert load_table(tmp_path / "b.npz").y is None


def test_npy(tmp_path):
    np.save(tmp_path / "a.npy", X)
    np.testing.assert_array_equal(load_table(tmp_path / "a.npy").X, X)


def test_csv_with_words_for_classes(tmp_path):
    text = "a,b,label\n1,2.5,dog\n3,-4e1,cat\n\n5,6,dog\n"
    (tmp_path / "a.csv").write_text(text)
    with gzip.open(tmp_path / "a.csv.gz", "wt") as stream:
        stream.write(text)
    for name in ("a.csv", "a.csv.gz"):
        table = load_table(tmp_path / name)
        assert table.X.tolist() == [[1, 2.5], [3, -40], [5, 6]]
        assert table.y.tolist() == [1, 0, 1]
        assert table.classes == ("cat", "dog")
    assert load_table(tmp_path / "a.csv", target="label").y.tolist() == [1, 0, 1]


def test_csv_without_header(tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    assert load_table(tmp_path / "a.csv").X.tolist() == [[1, 2], [3, 4]]
    assert load_table(tmp_path / "a.csv").y is None


class Trap:
    """Would leave a file behind if anything unpickled it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickles_in_arrays_are_not_opened(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([Trap(tmp_path / "executed")], dtype=object))
    with pytest.raises(DataFileError, match=r"Object arrays|claims"):
        load_table(tmp_path / "a.npz")
    assert not (tmp_path / "executed").exists()


def test_a_header_that_claims_terabytes(tmp_path):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
    )
    (tmp_path / "a.npy").write_bytes(buffer.getvalue())
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", buffer.getvalue())
    for name in ("a.npy", "a.npz"):
        with pytest.raises(DataFileError, match=r"claims 8,000,000,000,000,000,000 bytes"):
            load_table(tmp_path / name)


def test_a_header_that_claims_a_little_more_than_there_is(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(1000))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole.replace(b"(1000,)", b"(2000,)"))
    with pytest.raises(DataFileError, match=r"claims 16,000 bytes; there are 8,128"):
        load_table(tmp_path / "a.npy")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.npz", b"", "cannot be read"),
        ("a.npz", b"PK\x03\x04 not a zip", "cannot be read"),
        ("a.npy", b"\x93NUMPY", "cannot be read"),
        ("a.csv", b"", "no inputs"),
        ("a.csv", b"a,b\n", "no inputs"),
        ("a.csv", b"1,2\n3\n", "line 2 has 1 cells"),
        ("a.csv", b"a,b\n1,x\n", "line 2: 'x' is not a number"),
        ("a.csv", b"\xff\xfe\x00\x01", "cannot be read"),
        ("a.csv.gz", b"\x1f\x8b\x08broken", "cannot be read"),
        ("a.parquet", b"PAR1", "data files end in"),
    ],
)
def test_damaged_files(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataFileError, match=words):
        load_table(tmp_path / name)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(DataFileError, match="no data file"):
        load_table(tmp_path / "none.npz")
    np.savez(tmp_path / "a.npz", p=X, q=X)
    with pytest.raises(DataFileError, match=r"named X.*\['p', 'q'\]"):
        load_table(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", X=X, y=y[:2])
    with pytest.raises(DataFileError, match="4 inputs but 2 labels"):
        load_table(tmp_path / "b.npz")
    with pytest.raises(DataFileError, match="no array 'z'"):
        load_table(tmp_path / "b.npz", target="z")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataFileError, match="no column 'z'"):
        load_table(tmp_path / "a.csv", target="z")
    np.savez(tmp_path / "c.npz", X=np.array(["a"]))
    with pytest.raises(DataFileError, match="real numbers"):
        load_table(tmp_path / "c.npz")


def test_a_long_csv_is_refused_before_memory_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr("pindown.datasets.files.MAX_CSV_CHARACTERS", 1000)
    with gzip.open(tmp_path / "bomb.csv.gz", "wt") as stream:
        stream.write("1,1\n" * 100_000)
    with pytest.raises(DataFileError, match="too long"):
        load_table(tmp_path / "bomb.csv.gz")


def test_every_truncation_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=X, y=y)
    whole = (tmp_path / "a.npz").read_bytes()
    for n in range(len(whole)):
        (tmp_path / "b.npz").unlink(missing_ok=True)  # overwriting waits for the disk
        (tmp_path / "b.npz").write_bytes(whole[:n])
        with pytest.raises(DataFileError):
            load_table(tmp_path / "b.npz")


def test_words_are_numbered_alike_or_refused():
    whole = Table(X[:3], np.array([0, 1, 2]), ("ant", "cat", "dog"))
    part = Table(X[:2], np.array([0, 1]), ("cat", "dog"))
    first, second, none = numbered_alike(whole, part, None, n_classes=3)
    assert first.y.tolist() == [0, 1, 2] and second.y.tolist() == [1, 2] and none is None
    plain = Table(X, y)
    assert numbered_alike(plain, n_classes=3) == [plain]
    for tables in ([part], [whole, plain]):
        with pytest.raises(DataFileError, match="as numbers 0 to 2"):
            numbered_alike(*tables, n_classes=3)

"""Tables of features: what is read, what is refused and in which words, how columns are matched."""

import gzip

import numpy as np
import pandas as pd
import pytest

from pindown.datasets import feature_files
from pindown.datasets.feature_files import load_features, matched
from pindown.errors import DataFileError


def table(tmp_path, text, name="t.csv", **settings):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return load_features(tmp_path / name, **settings)


def test_a_header_gives_names_and_lines_count_from_the_files_first(tmp_path):
    found = table(tmp_path, "\ufeffa,b\n1,2\n\n3,4\n")
    assert found.names == ("a", "b") and found.X.tolist() == [[1, 2], [3, 4]]
    assert found.lines.tolist() == [2, 4] and found.labels is None


def test_without_a_header_columns_have_no_names(tmp_path):
    found = table(tmp_path, "1,2e3\n-3,.5\n")
    assert found.names == () and found.X.tolist() == [[1, 2000], [-3, 0.5]]
    kept = table(tmp_path, "1,2,3\n4,5,6\n", ignore=["#2"])
    assert kept.X.tolist() == [[1, 3], [4, 6]]


def test_semicolons_and_tabs_part_cells_where_there_is_no_comma(tmp_path):
    for mark in ";\t":
        found = table(tmp_path, f"a{mark}b\n1{mark}2\n")
        assert found.names == ("a", "b") and found.X.tolist() == [[1, 2]] and found.lines.tolist() == [2]
    both = table(tmp_path, "a;x,b\n1,2\n")
    assert both.names == ("a;x", "b") and both.X.tolist() == [[1, 2]]


def test_a_comma_in_quotes_parts_nothing(tmp_path):
    found = table(tmp_path, 'a;"b, c"\n1;2\n')
    assert found.names == ("a", "b, c") and found.X.tolist() == [[1, 2]]


def test_a_last_column_without_name_and_values_is_left_out(tmp_path):
    found = table(tmp_path, "a,b,\n1,2,\n3,4,\n")
    assert found.names == ("a", "b") and found.X.tolist() == [[1, 2], [3, 4]]
    assert found.notes == ("the last column has no name and no values: left out",)
    with pytest.raises(DataFileError, match="missing or infinite values in line 2"):
        table(tmp_path, "a,b,\n1,2,\n3,4,5\n")


def test_a_first_line_of_words_and_numbers_is_taken_as_names_and_this_is_told(tmp_path):
    found = table(tmp_path, "5.1,3.5,setosa\n4.9,3,setosa\n", ignore=["setosa"])
    assert len(found.X) == 1 and "line 1" in found.notes[0]
    assert not table(tmp_path, "a,b\n1,2\n").notes and not table(tmp_path, "1,2\n3,4\n").notes


def test_label_and_ignored_columns_are_no_features(tmp_path):
    found = table(tmp_path, "id,a,y\nx,1,0\nz,2,1\n", label="y", ignore=["id"])
    assert found.X.tolist() == [[1], [2]] and found.labels.tolist() == ["0", "1"]
    assert found.names == ("a",) and found.left_out == ("id", "y")


def test_a_column_without_a_name_that_counts_rows_is_left_out_and_said(tmp_path):
    found = table(tmp_path, ",a\n0,5\n1,6\n2,7\n")
    assert found.names == ("a",) and "counts the rows" in found.notes[0]
    kept = table(tmp_path, ",a\n0.5,5\n1,6\n2,7\n")  # it does not count: it stays
    assert kept.names == ("", "a")
    gaps = table(tmp_path, ",a\n0,5\n1,6\n3,7\n")
    assert gaps.names == ("", "a") and gaps.X[:, 0].tolist() == [0, 1, 3]


def test_chunks_make_no_difference(tmp_path, monkeypatch):
    text = "a,b\n" + "\n".join(f"{i},{i * i}" for i in range(23)) + "\n"
    whole = table(tmp_path, text)
    monkeypatch.setattr(feature_files, "ROWS_AT_ONCE", 5)
    parts = table(tmp_path, text)
    np.testing.assert_array_equal(whole.X, parts.X)
    np.testing.assert_array_equal(whole.lines, parts.lines)


def test_compressed_files_and_arrays(tmp_path):
    with gzip.open(tmp_path / "t.csv.gz", "wt") as stream:
        stream.write("a\n1\n2\n")
    assert load_features(tmp_path / "t.csv.gz").X.tolist() == [[1], [2]]
    images = np.arange(24.0).reshape(2, 3, 4)
    np.savez(tmp_path / "t.npz", X=images, y=np.array([0, 1]))
    found = load_features(tmp_path / "t.npz")
    assert found.X.shape == (2, 3, 4) and found.n_features == 12 and found.labels.tolist() == [0, 1]
    np.save(tmp_path / "t.npy", np.arange(3.0))
    assert load_features(tmp_path / "t.npy").X.shape == (3, 1)


BAD = [
    ("", {}, "is empty"),
    ("a,b\n", {}, "no rows"),
    ("a,b\n1,2\n3\n", {}, "line 3 has 1 cells"),
    ("a,b\n1,x\n", {}, "not numbers: 'b' (line 2, 'b': 'x')"),
    ("a,b,c\n1,x,2\n1,x,y\n", {}, "'b', 'c'"),
    ("a,b\n1,\n2,3\nnan,4\n", {}, "lines 2, 4"),
    ("a,b\n1,\n2,3\n", {}, "in 'b'"),
    ("a\n1\ninf\n", {}, "line 3 "),
    ("a,a\n1,2\n", {}, "names 'a' more than once"),
    ("a,b\n1,2\n", {"label": "z"}, "no column 'z'"),
    ("1,2\n", {"ignore": ["a"]}, "no header; its columns are #1 to #2"),
    ("a\n1\n", {"label": "a"}, "no column is left"),
]


@pytest.mark.parametrize(("text", "settings", "words"), BAD)
def test_bad_tables_are_refused_with_the_place(tmp_path, text, settings, words):
    with pytest.raises(DataFileError) as refusal:
        table(tmp_path, text, **settings)
    assert words in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_long_list_of_bad_lines_is_cut(tmp_path):
    with pytest.raises(DataFileError, match=r"lines 2, 3, 4, 5, 6 and 15 more"):
        table(tmp_path, "a\n" + "nan\n" * 20)


def test_files_that_are_none(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_bytes(b"\xff\xfe\x00bin\x00ary")
    (tmp_path / "t.txt").write_text("1")
    for name, words in (("t.csv", "t.csv"), ("t.txt", "end in"), ("none.csv", "no data file")):
        with pytest.raises(DataFileError, match=words):
            load_features(tmp_path / name)
    monkeypatch.setattr(feature_files, "MAX_NUMBERS", 10)
    with pytest.raises(DataFileError, match="more than 10 numbers"):
        table(tmp_path, "1,2\n" * 6)


def test_columns_are_matched_by_name(tmp_path):
    new = table(tmp_path, "b,extra,a\n1,2,3\n")
    found = matched(new, ("a", "b"), 2, "m")
    assert found.X.tolist() == [[3, 1]] and found.names == ("a", "b")
    assert "extra" in found.left_out and "extra" in found.notes[-1]
    with pytest.raises(DataFileError, match="lacks 'c' that m was fitted on"):
        matched(new, ("a", "c"), 2, "m")
    assert "order of m" in matched(table(tmp_path, "b,a\n1,2\n"), ("a", "b"), 2, "m").notes[0]


def test_columns_without_names_are_matched_by_their_number(tmp_path):
    new = table(tmp_path, "1,2\n")
    assert matched(new, (), 2, "m") is new
    assert "only m names its columns" in matched(new, ("a", "b"), 2, "m").notes[0]
    with pytest.raises(DataFileError, match=r"2 features in a row, m was fitted on 3\.$"):
        matched(new, (), 3, "m")
    with pytest.raises(DataFileError, match="--ignore-column"):
        matched(new, (), 1, "m")


def test_parquet(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4], "w": ["x", "y"]})
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataFileError, match="not numbers: 'w'"):
        load_features(tmp_path / "t.parquet")
    assert load_features(tmp_path / "t.parquet", ignore=["w"]).X.tolist() == [[1, 3], [2, 4]]


def test_a_hundred_thousand_columns_take_seconds(tmp_path):
    names = [f"c{j}" for j in range(100_000)]
    found = table(tmp_path, ",".join(names) + "\n" + ",".join(["1"] * 100_000) + "\n", ignore=["c7"])
    assert found.n_features == 99_999 and found.left_out == ("c7",)
    again = matched(found, [name for name in reversed(names) if name != "c7"], 99_999, "model")
    assert again.names[0] == "c99999"

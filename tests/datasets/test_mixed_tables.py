"""Tables as people have them: each is read with the right kinds, or refused with line and column."""

import gzip
import json

import numpy as np
import pytest

from pindown.datasets.mixed_tables import TableEncoding, load_mixed
from pindown.errors import DataFileError

RNG = np.random.default_rng(0)


def lines(header, row, n=40, sep=","):
    return (
        "\n".join([*([sep.join(header)] if header else []), *(sep.join(row(i)) for i in range(n))])
        + "\n"
    )


CITIES = ["Wien", "Graz", "Linz"]
# name -> (content, kinds of its columns, words of some note)
GOOD = {
    "customers.csv": (
        lines(
            ["customer_id", "age", "city", "member", "since", "spent"],
            lambda i: [
                str(1000 + 7 * i), "" if i % 9 == 4 else str(20 + i % 30), CITIES[i % 3],
                ["yes", "no"][i % 2], f"2023-{1 + i % 12:02}-{1 + i % 28:02}", f"{i * 1.5:.2f}",
            ],
        ),
        "ignore number category boolean date number",
        "'customer_id' is left out: an identifier by its name",
    ),
    "german.csv": (
        lines(
            ["Datum", "Menge", "Preis"],
            lambda i: [f"{1 + i % 28:02}.03.2024", str(i % 7), f"1.{100 + i},{i % 90:02}"], sep=";",
        ),
        "date number number",
        "'Preis' is a number with decimal commas",
    ),
    "gaps.csv": (
        lines(["a", "b"], lambda i: [["NA", "?", "null", "1.5"][i % 4], str(i * i % 11)]),
        "number number",
        "'a' is a number, 30 missing",
    ),
    "lab.tsv": (
        lines(
            ["sample", "ph", "ok"],
            lambda i: [f"S-{i:04}", f"{7 + i % 5 / 10}", ["TRUE", "FALSE"][i % 2]], sep="\t",
        ),
        "ignore number boolean",
        "40 different values in 40 rows, an identifier or free text",
    ),
    "shop.csv": (
        lines(
            ["item", "price", "discount"],
            lambda i: [CITIES[i % 2], f'"$1,{200 + i}.50"', f"{i % 30}%"],
        ),
        "category number number",
        "'price' is a number with commas between thousands",
    ),
    "american.csv": (
        lines(["day", "x"], lambda i: [f"{1 + i % 12}/{14 + i % 14}/2023", str(i % 6)]),
        "date number",
        "'day' is a date, month first",
    ),
    "sensors.csv": (
        lines(["time", "t"], lambda i: [f"2024-01-01T{i % 24:02}:30:00Z", f"{20 + i % 4}.5"]),
        "date number",
        "'time' is a date, iso",
    ),
    "quoted.csv": (
        'name;value\n' + "".join(f'"a; {["b", "c"][i % 2]}";{i % 5}\n' for i in range(30)),
        "category number",
        "'name' is a category of 2 values",
    ),
    "latin.csv": (
        lines(["größe", "art"], lambda i: [str(i % 9), ["süß", "sauer"][i % 2]]).encode("cp1252"),
        "number category",
        "not in UTF-8: read as Windows-1252",
    ),
    "excel.csv": (
        lines(["a", "b"], lambda i: [str(i % 5), CITIES[i % 3]], sep="\t").encode("utf-16"),
        "number category",
        "'b' is a category of 3 values",
    ),
    "bare.csv": (
        lines([], lambda i: [str(20 + i % 13), CITIES[i % 3], str(i % 4)]),
        "number category number",
        "columns are called #1, #2, ...",
    ),
    "constant.csv": (
        lines(["a", "b", "c"], lambda i: [str(i % 6), "kg", ""]),
        "number category ignore",
        "'b' is the same in all rows that have it: 'kg'",
    ),
    "trailing.csv.gz": (
        gzip.compress(lines(["a", "b"], lambda i: [str(i % 6), ["y", "n"][i % 2], ""]).encode()),
        "number boolean",
        "'b' is a boolean",
    ),
    "many.csv": (
        lines(["code", "x"], lambda i: [f"c{i % 30}", str(i % 5)], n=90),
        "category number",
        "'code' is a category of 20 values, 10 rarer ones together",
    ),
    "pipe.txt": (
        lines(["a", "b"], lambda i: [f" {i % 8} ", ["low", "high"][i % 2]], sep="|") + "\n\n",
        "number category",
        "'b' is a category of 2 values",
    ),
    "european.csv": (
        lines(["d", "v"], lambda i: [f"{1 + i % 12:02}/{1 + i % 12:02}/2024", f"{i % 10},5"], sep=";"),
        "date number",
        "'d': days and months cannot be told apart; read as day first",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_tables_are_read_with_the_right_kinds(name, tmp_path):
    content, kinds, note = GOOD[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    table, encoding = load_mixed(tmp_path / name)
    assert [column.kind for column in encoding.columns] == kinds.split()
    assert any(note in said for said in table.notes), table.notes
    assert np.isfinite(table.X).all() and table.X.shape[1] == len(table.names) == len(set(table.names))
    again = TableEncoding.from_dict(json.loads(json.dumps(encoding.as_dict())))
    assert again == encoding
    np.testing.assert_array_equal(load_mixed(tmp_path / name, encoding=again)[0].X, table.X)


def test_values_are_what_the_cells_say(tmp_path):
    (tmp_path / "t.csv").write_text(
        "x;when;kind;flag\n1,5;02.01.1970;a;yes\n-;03.01.1970;b;no\n2.000,25;;a;yes\n"
    )
    table, _ = load_mixed(tmp_path / "t.csv")
    kind = ("kind=a", "kind=b", "kind=other")
    assert table.names == ("x", "x missing", "when", "when missing", *kind, "flag")
    assert table.X.tolist() == [
        [1.5, 0, 1, 0, 1, 0, 0, 1],
        [(1.5 + 2000.25) / 2, 1, 2, 0, 0, 1, 0, 0],
        [2000.25, 0, 1.5, 1, 1, 0, 0, 1],
    ]
    assert table.lines.tolist() == [2, 3, 4]


def many(cells):
    return "a,b\n" + "".join(f"{i % 7},{cell}\n" for i, cell in enumerate(cells))


REFUSED = {
    "typo": (many([*["1.5"] * 24, "1.5x", "2"]), "t.csv line 26, column 'b': '1.5x' is no number"),
    "date": (many([*["2024-01-02"] * 24, "2024-13-01"]), "line 26, column 'b': '2024-13-01' is no date"),
    "infinite": (many(["1", "inf", "2"]), "line 3, column 'b': infinite values"),
    "ragged": ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cells, line 1 has 2"),
    "twice": ("a,a\n1,x\n", "names 'a' more than once"),
    "empty": ("", "t.csv is empty"),
    "header": ("a,b\n", "has a header line and no rows"),
    "nothing": ("a,b\n,\n?,NA\n", "no column is left as a feature"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_tables_are_refused_with_the_place(name, tmp_path):
    content, words = REFUSED[name]
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(DataFileError) as error:
        load_mixed(tmp_path / "t.csv")
    assert words in str(error.value)


def test_kinds_can_be_said(tmp_path):
    (tmp_path / "t.csv").write_text(REFUSED["typo"][0])
    _, encoding = load_mixed(tmp_path / "t.csv", kinds={"a": "category", "b": "category"})
    assert [column.kind for column in encoding.columns] == ["category", "category"]
    assert load_mixed(tmp_path / "t.csv", kinds={"b": "ignore"})[0].names == ("a",)
    with pytest.raises(DataFileError, match="line 26, column 'b'"):
        load_mixed(tmp_path / "t.csv", kinds={"b": "number"})
    with pytest.raises(DataFileError, match="no kind 'word'"):
        load_mixed(tmp_path / "t.csv", kinds={"b": "word"})
    with pytest.raises(DataFileError, match="no column 'z'"):
        load_mixed(tmp_path / "t.csv", kinds={"z": "number"})


def test_new_files_are_read_as_the_first_and_say_what_is_new(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,x,2\n2,y,4\n,x,6\n")
    _, encoding = load_mixed(tmp_path / "t.csv")
    (tmp_path / "new.csv").write_text("c,extra,b,a\n,9,z,\n8,9,,3\n")
    table, _ = load_mixed(tmp_path / "new.csv", encoding=encoding)
    assert table.names == ("a", "a missing", "b=x", "b=y", "b=other", "c")
    assert table.X.tolist() == [[1.5, 1, 0, 0, 1, 4], [3, 0, 0, 0, 1, 8]]
    notes = " / ".join(table.notes)
    assert "'b' has 1 cells with values that training rows had not" in notes
    assert "'c' has 1 missing cells, training rows had none: they take the median" in notes
    assert table.left_out == ("extra",)
    (tmp_path / "less.csv").write_text("a,c\n1,2\n")
    with pytest.raises(DataFileError, match="lacks 'b'"):
        load_mixed(tmp_path / "less.csv", encoding=encoding)


def test_parquet_keeps_its_kinds(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {
            "x": [1.5, None, 3.0],
            "b": [True, False, True],
            "d": pandas.to_datetime(["1970-01-02", "1970-01-03", None]),
            "c": pandas.Categorical(["u", "v", "u"]),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table, encoding = load_mixed(tmp_path / "t.parquet")
    assert [column.kind for column in encoding.columns] == ["number", "boolean", "date", "category"]
    assert table.X[0].tolist() == [1.5, 0, 1, 1, 0, 1, 0, 0]


def test_damaged_encodings_are_refused():
    good = [{"name": "a", "kind": "number", "form": "point", "fill": 1.0, "gaps": False, "levels": []}]
    assert TableEncoding.from_dict(good).names == ("a",)
    for change in (
        {"kind": "word"},
        {"form": "roman"},
        {"gaps": 1},
        {"fill": float("inf")},
        {"name": 3},
    ):
        with pytest.raises(ValueError, match=r"column|form"):
            TableEncoding.from_dict([good[0] | change])
    for wrong in (good * 2, []):
        with pytest.raises(ValueError, match="not all different"):
            TableEncoding.from_dict(wrong)

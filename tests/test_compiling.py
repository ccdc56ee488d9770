"""Machine code on disk: what is damaged is compiled again, and nothing of it is ever run."""

import importlib.util
import pickle
import re
from pathlib import Path

import numba
import pytest

import pindown
from pindown import compiling
from pindown.cli import doctor_checks as doctor

SOURCE = """
def triple(x):
    return 3 * x
"""


@pytest.fixture(scope="module")
def function(tmp_path_factory):
    """A function of a file of its own, and the files of its machine code."""
    folder = tmp_path_factory.mktemp("compiled")
    path = folder / "tripling.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("tripling", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.triple


def compiled(function):
    """Compile it as a new process would: from disk if it can."""
    return compiling.compiler(Path(function.__code__.co_filename).parent)(function)


def files_of(dispatcher, ending):
    return sorted(Path(dispatcher._cache.cache_path).glob(f"tripling*.{ending}"))


def from_disk(dispatcher):
    return sum(dispatcher.stats.cache_hits.values())


@pytest.fixture
def kept(function):
    """Its files as they should be, for whole numbers and for floats, before and after a test."""
    first = compiled(function)
    assert first(5) == 15 and first(0.5) == 1.5
    whole = {path: path.read_bytes() for path in files_of(first, "nb[ic]")}
    assert len(whole) == 3
    yield whole
    for path, content in whole.items():
        path.write_bytes(content)


DAMAGE = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "half": lambda data: data[: len(data) // 2],
    "last byte gone": lambda data: data[:-1],
    "a byte more": lambda data: data + b"\0",
    "checksum gone": lambda data: data[:-32],
    "one bit": lambda data: data[:70] + bytes([data[70] ^ 4]) + data[71:],
    "text": lambda data: b"[" * 200_000,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_written_again(function, kept, ending, damage):
    for path in kept:
        if path.suffix == f".{ending}":
            path.write_bytes(DAMAGE[damage](kept[path]))
    again = compiled(function)
    assert not again._cache._cache_file.signatures()  # nobody counts on it
    assert again(5) == 15 and again(0.5) == 1.5 and from_disk(again) == 0
    healed = compiled(function)
    assert healed(5) == 15 and healed(0.5) == 1.5 and from_disk(healed) == 2
    assert all(map(compiling.is_sealed, kept))


def test_code_for_other_types_under_the_same_number_is_not_run(function, kept):
    """As two processes leave it that compile at the same time."""
    first, second = (path for path in kept if path.suffix == ".nbc")
    first.write_bytes(kept[second])
    second.write_bytes(kept[first])
    again = compiled(function)
    assert again(5) == 15 and again(0.5) == 1.5 and from_disk(again) == 0


def test_a_disk_that_is_full_costs_the_cache_and_not_the_answer(function, kept, monkeypatch):
    for path in kept:
        path.unlink()
    monkeypatch.setattr(compiling.SealedFiles, "_data_name", lambda *_: "no/such/folder")
    again = compiled(function)
    assert again(5) == 15


def test_doctor_reads_what_is_kept_and_removes_what_is_damaged(function, kept, monkeypatch):
    folder = next(iter(kept)).parent
    monkeypatch.setattr(compiling, "_FOLDERS", {folder})
    monkeypatch.setattr(doctor, "COMPILED", ())
    assert not compiling.damaged_files()
    broken = files_of(compiled(function), "nbc")[0]
    broken.write_bytes(kept[broken][:100])
    check = next(check for check in doctor.diagnose("kernels").checks if check.name == "cache")
    assert check.status == "note" and str(broken) in check.found and "--compile" in check.remedy
    monkeypatch.setattr("pindown.geometry.compile_times.compile_now", lambda work: None)
    doctor.compile_loops()
    assert not broken.exists() and not compiling.damaged_files()


def test_doctor_knows_every_folder_with_compiled_loops():
    source = Path(pindown.__file__).parent
    calls = re.compile(r"^from pindown.compiling import", re.MULTILINE)
    users = [path for path in source.rglob("*.py") if calls.search(path.read_text(encoding="utf-8"))]
    folders = {".".join(["pindown", *path.parent.relative_to(source).parts]) for path in users}
    for folder in folders - {"pindown"}:
        assert any(f"{name}.".startswith(f"{folder}.") for name in doctor.COMPILED), folder


def test_an_index_that_names_what_has_moved_is_made_anew(function, kept):
    index = next(path for path in kept if path.suffix == ".nbi")
    content = pickle.dumps(numba.__version__) + b"cno_such_module\nThing\n."
    index.write_bytes(content + compiling._seal(content))
    dispatcher = compiled(function)
    assert dispatcher(5) == 15 and from_disk(dispatcher) == 0
    assert dispatcher._cache._cache_file.signatures()
    assert from_disk_again(function)


def from_disk_again(function):
    again = compiled(function)
    assert again(5) == 15
    return from_disk(again) == 1

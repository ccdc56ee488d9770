"""Loops by two routes: the same answers; machine code on disk that is never misread."""

import importlib.util
import os
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pytest

from pindown import compiling, machine_code
from pindown.cli import compiled_loops
from pindown.cli import doctor_checks as doctor
from pindown.compiling import BEFORE_COMPILING, BEFORE_LOADING, Family, by, time_limit
from pindown.deadline import Deadline
from pindown.geometry import along_segment, polyhedral_complex, region_count
from pindown.learn import ExactReluRegressor, SegmentedRegressor
from pindown.network import ReluNetwork

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
    return machine_code.dispatcher(function, {})


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
    assert all(map(machine_code.is_sealed, kept))


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
    monkeypatch.setattr(machine_code.sealed_files(), "_data_name", lambda *_: "no/such/folder")
    again = compiled(function)
    assert again(5) == 15


def test_doctor_reads_what_is_kept_and_removes_what_is_damaged(function, kept, monkeypatch):
    base = next(iter(kept)).parents[1]
    monkeypatch.setattr(machine_code, "base_folder", lambda: base)
    broken = files_of(compiled(function), "nbc")[0]
    assert broken not in machine_code.damaged_files()
    broken.write_bytes(kept[broken][:100])
    assert broken in machine_code.damaged_files()
    monkeypatch.setattr(compiled_loops, "works", dict)
    compiled_loops.compile_all()
    assert not broken.exists() and not machine_code.damaged_files()


def test_doctor_says_that_files_are_damaged(monkeypatch):
    monkeypatch.setattr(machine_code, "damaged_files", lambda: [Path("walk.1.nbc")])
    check = next(check for check in doctor.diagnose("kernels").checks if check.name == "cache")
    assert check.status == "note" and "walk.1.nbc" in check.found and "--compile" in check.remedy


def test_an_index_that_names_what_has_moved_is_made_anew(function, kept):
    index = next(path for path in kept if path.suffix == ".nbi")
    content = pickle.dumps(numba.__version__) + b"cno_such_module\nThing\n."
    index.write_bytes(content + machine_code.seal(content))
    dispatcher = compiled(function)
    assert dispatcher(5) == 15 and from_disk(dispatcher) == 0
    assert dispatcher._cache._cache_file.signatures()
    assert from_disk_again(function)


def from_disk_again(function):
    again = compiled(function)
    assert again(5) == 15
    return from_disk(again) == 1


# ------------------------------------------------------------------ where it is kept


def test_an_upgrade_that_leaves_the_sources_alone_finds_the_code_again(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    hits = []
    for version in ("old", "new"):  # two places, as two environments, with a file beside that differs
        folder = tmp_path / version / "pindown" / "loops"
        folder.mkdir(parents=True)
        (folder / "tripling.py").write_text(SOURCE)
        (folder.parent / "other.py").write_text(f"VERSION = {version!r}")
        spec = importlib.util.spec_from_file_location("tripling", folder / "tripling.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = compiled(module.triple)
        assert made(5) == 15
        hits.append(from_disk(made))
    assert hits == [0, 1]
    machine_code.stamp_of.cache_clear()
    (folder / "tripling.py").write_text(SOURCE.replace("3", "4"))
    spec.loader.exec_module(module)
    changed = compiled(module.triple)
    assert changed(5) == 20 and from_disk(changed) == 0


def test_a_home_that_cannot_be_written_to_is_replaced(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nobody/writes/here")
    monkeypatch.setattr(machine_code.tempfile, "gettempdir", lambda: str(tmp_path))
    place = machine_code.base_folder()
    assert place.parent == tmp_path and place.stat().st_mode & 0o077 == 0
    place.chmod(0o777)  # anybody could put code there
    assert machine_code.base_folder() is None
    place.rmdir()
    elsewhere = tmp_path / "of somebody else"
    elsewhere.mkdir(mode=0o777)
    place.symlink_to(elsewhere)
    assert machine_code.base_folder() is None


def test_doctor_knows_every_loop():
    source = Path(compiling.__file__).parent
    users = {
        path.parent
        for path in source.rglob("*.py")
        if "from pindown.compiling import compiler" in path.read_text("utf-8")
    }
    counts = compiled_loops.counts()
    assert (
        {machine_code.package_of(folder) for folder in users}
        == set(counts)
        == set(compiling.COMPILE_SECONDS)
    )
    for folder in users:
        written = sum(
            line.startswith(("@inner", "@entry", "@allocating", "@compiled", "@compiler"))
            for path in folder.glob("*.py")
            for line in path.read_text("utf-8").splitlines()
        )
        assert counts[machine_code.package_of(folder)][1] == written


@pytest.mark.slow
def test_doctor_compiles_every_loop(tmp_path):
    """In an empty folder: minutes."""
    code = (
        "from pindown.cli.compiled_loops import compile_all, counts\n"
        "from pindown.compiling import Family\n"
        "compile_all()\n"
        "assert all(there == of for there, of in counts().values()), counts()\n"
        "assert all(loop.signatures() for family in Family.known.values() for loop in family.loops)\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


# ------------------------------------------------------------------ two routes


def by_both(work):
    """Return what both routes answer."""
    answers = []
    for route in ("plain", "compiled"):
        with by(route):
            answers.append(work())
    return answers


def random_network(rng, *widths, whole):
    def draw(*shape):
        return rng.integers(-3, 4, shape).astype(float) if whole else rng.normal(size=shape)

    return ReluNetwork.from_layers([(draw(b, a), draw(b)) for a, b in pairwise(widths)])


def parts_of(cells):
    return cells.n_regions, cells.vertices, cells.volumes, cells.neighbours, cells.edges


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("certified", [False, True])
def test_cells_are_the_same_to_the_last_bit(seed, dim, certified):
    """Also where many units vanish at one point, as with whole numbers."""
    net = random_network(np.random.default_rng(seed), dim, 5, 4, 2, whole=seed % 2 == 0)
    plain, machine = by_both(lambda: parts_of(polyhedral_complex(net, (-1, 1), certified=certified)))
    assert all(map(np.array_equal, plain, machine))
    counted = by_both(lambda: region_count(net, (-1, 1), certified=certified).n_regions)
    assert counted == [plain[0], plain[0]]


@pytest.mark.parametrize("seed", range(4))
def test_segments_are_the_same_to_the_last_bit(seed):
    net = random_network(np.random.default_rng(seed), 4, 9, 9, 1, whole=seed % 2 == 0)
    plain, machine = by_both(lambda: along_segment(net, -np.ones(4), np.ones(4)))
    assert np.array_equal(plain.knots, machine.knots) and np.array_equal(plain.values, machine.values)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_learners_find_the_same(loss):
    rng = np.random.default_rng(3)
    X, y = np.sort(rng.normal(size=(12, 1)), axis=0), rng.normal(size=12)
    for learner in (SegmentedRegressor(n_pieces=3, loss=loss), ExactReluRegressor(width=1, loss=loss)):
        plain, machine = by_both(lambda learner=learner: learner.fit(X, y).predict(X))
        # NumPy's logarithm, power and inverse may round otherwise than those of machine code.
        assert np.allclose(plain, machine, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------ which route


LONG = """
import numpy as np
from pindown.compiling import compiler
from pathlib import Path

@compiler(Path(__file__).parent)
def add(total, many):
    for i in range(many):
        total[0] += 1
    return total[0]
"""


@pytest.fixture
def add(tmp_path, monkeypatch):
    """A loop of a family of its own, which writes to its argument."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv(compiling.VARIABLE, raising=False)
    folder = tmp_path / "pindown" / "long"
    folder.mkdir(parents=True)
    (folder / "loops.py").write_text(LONG)
    spec = importlib.util.spec_from_file_location(f"loops_{tmp_path.name}", folder / "loops.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module.add
    Family.known.pop("pindown.long")


def is_machine_code(loop):
    return bool(loop._direct)


def test_small_work_never_meets_the_compiler(add):
    total = np.zeros(1)
    for _ in range(10):
        add(total, 1000)
    assert total[0] == 10_000 and not is_machine_code(add)
    assert 10_000 <= add.family.used < BEFORE_LOADING


def test_a_call_that_takes_long_is_begun_again_as_machine_code(add):
    total = np.ones(1)
    assert add(total, BEFORE_COMPILING + 1) == BEFORE_COMPILING + 2 == total[0]  # nothing counted twice
    assert is_machine_code(add) and isinstance(add(np.zeros(1), 3), float)


def test_many_small_calls_are_worth_a_compiler_in_the_end(add):
    total = np.zeros(1)
    while not is_machine_code(add):
        add(total, BEFORE_LOADING // 4)
        assert total[0] < 2 * BEFORE_COMPILING
    assert total[0] >= BEFORE_COMPILING / 2


def test_code_on_disk_is_taken_early(add):
    with by("compiled"):
        add(np.zeros(1), 1)
    add._direct.clear()
    assert add(np.zeros(1), BEFORE_LOADING + 1) == BEFORE_LOADING + 1
    assert is_machine_code(add) and add.family.used <= BEFORE_LOADING + 2


def test_no_compiler_is_started_that_would_not_be_done_in_time(add):
    add.family.seconds = 100.0
    with time_limit(Deadline.after(50.0)):
        assert add(np.zeros(1), BEFORE_COMPILING + 1) == BEFORE_COMPILING + 1
    assert not is_machine_code(add)


def test_without_numba_large_work_runs_and_says_how_to_make_it_fast(add, monkeypatch):
    monkeypatch.setattr(compiling, "has_compiler", lambda: False)
    with pytest.warns(RuntimeWarning, match=r"pip install .*\[fast\]"):
        add(np.zeros(1), BEFORE_COMPILING)
        assert add(np.zeros(1), 5) == 5.0
    assert not is_machine_code(add)

"""The doctor finds what is missing and says how to get it; what is well it leaves alone."""

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from pindown.cli import compiled_loops as compiled
from pindown.cli import doctor_checks as doctor
from pindown.cli import doctor_checks as installed
from pindown.cli.doctor_checks import (
    ENABLES,
    Check,
    Diagnosis,
    Requirement,
    diagnose,
    install_command,
    release,
    requirements,
)
from tests.cli.test_main import run  # noqa: F401


def found(answer: Diagnosis) -> dict[tuple[str, str], Check]:
    return {(check.group, check.name): check for check in answer.checks}


@pytest.fixture
def versions(monkeypatch):
    """Pretend that packages have other versions, or none."""
    real = metadata.version

    def pretend(**other):
        def version(name):
            if name in other:
                if other[name] is None:
                    raise metadata.PackageNotFoundError(name)
                return other[name]
            return real(name)

        monkeypatch.setattr(metadata, "version", version)

    return pretend


def test_this_installation_is_well(run):  # noqa: F811
    code, out, _ = run("doctor")
    assert code == 0 and "Everything that pindown needs is there" in out
    assert f"numpy          {metadata.version('numpy')}" in out
    assert "reordered copy, through ONNX files: same" in out


def test_every_requirement_of_the_project_is_looked_at():
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    checks = found(diagnose("required", "optional"))
    for line in project["dependencies"]:
        assert ("required", Requirement.parse(line).name) in checks
    for extra in project["optional-dependencies"]:
        assert ("optional", extra) in checks and extra in ENABLES


def test_json_holds_every_check(run):  # noqa: F811
    code, out, _ = run("doctor", "--json")
    content = json.loads(out)
    assert code == 0 and content["schema"] == 1 and content["healthy"] is True
    assert {"required", "optional", "machine", "data", "kernels", "self-test"} == {
        check["group"] for check in content["checks"]
    }
    assert all(set(c) == {"group", "name", "status", "found", "remedy"} for c in content["checks"])


def test_json_to_a_file_leaves_the_terminal_its_text(run, tmp_path):  # noqa: F811
    code, out, err = run("doctor", "--json", tmp_path / "d.json")
    assert code == 0 and "What pindown needs" in out and "wrote" in err
    assert json.loads((tmp_path / "d.json").read_text())["healthy"]
    code, _, err = run("doctor", "--json", tmp_path / "d.txt")
    assert code == 3 and ".json" in err and err.count("\n") == 1


def test_a_missing_package_is_broken_with_the_command_that_mends_it(run, versions):  # noqa: F811
    versions(joblib=None)
    code, out, _ = run("doctor")
    assert code == 1 and "Something is wrong: joblib." in out
    check = found(diagnose("required"))["required", "joblib"]
    assert check.status == "broken" and check.found == "not installed"
    assert check.remedy == f'{sys.executable} -m pip install --upgrade "joblib>=1.4"'


def test_a_package_that_is_too_old_is_broken(versions):
    versions(scipy="1.9.3")
    check = found(diagnose("required"))["required", "scipy"]
    assert (check.status, check.found) == ("broken", "1.9.3 is too old")


def test_optional_parts_that_are_missing_break_nothing(versions):
    versions(dask=None, sphinx="1.0")
    answer = diagnose("optional")
    cluster, docs = found(answer)["optional", "cluster"], found(answer)["optional", "docs"]
    assert answer.healthy and cluster.status == docs.status == "note"
    assert "dask" in cluster.found and "many machines" in cluster.found
    assert cluster.remedy == install_command("cluster") and "[cluster]" in cluster.remedy
    assert "missing or too old" in docs.found and docs.found.endswith("sphinx")


@pytest.mark.parametrize(
    ("origin", "ending"),
    [
        ('{"dir_info": {"editable": true}, "url": "file:///a/b"}', '-m pip install -e "/a/b[docs]"'),
        (None, '-m pip install "pindown[docs]"'),
        *((damaged, '-m pip install "pindown[docs]"') for damaged in ("{", "[]", "[" * 200_000)),
        ('{"dir_info": {"editable": true}}', '-m pip install "pindown[docs]"'),
    ],
)
def test_the_command_fits_how_pindown_was_installed(monkeypatch, origin, ending):
    class Distribution:
        def read_text(self, name):
            return origin if name == "direct_url.json" else None

    monkeypatch.setattr(metadata, "distribution", lambda name: Distribution())
    assert install_command("docs").endswith(ending)


def test_source_code_that_is_not_installed(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    for name in ("version", "metadata", "requires"):
        monkeypatch.setattr(metadata, name, missing)
    answer = diagnose("required", "optional")
    assert not answer.healthy and requirements() == []
    assert 'pip install -e "."' in found(answer)["required", "pindown"].remedy


def test_the_data_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("PINDOWN_DATA", raising=False)
    unset = found(diagnose("data"))["data", "PINDOWN_DATA"]
    assert unset.status == "note" and "not set" in unset.found and "mnist" in unset.remedy
    monkeypatch.setenv("PINDOWN_DATA", str(tmp_path / "none"))
    assert "is not a folder" in found(diagnose("data"))["data", "PINDOWN_DATA"].found
    (tmp_path / "mnist").mkdir()
    monkeypatch.setenv("PINDOWN_DATA", str(tmp_path))
    there = found(diagnose("data"))["data", "PINDOWN_DATA"]
    assert there.status == "fine" and there.found.startswith(f"{tmp_path}: mnist; not there: fashion")


def test_loops_that_are_not_compiled_break_nothing(monkeypatch, run):  # noqa: F811
    monkeypatch.setattr(compiled, "counts", lambda: {"pindown.geometry._compiled": (3, 9)})
    check = found(diagnose("kernels"))["kernels", "compiled"]
    assert check.status == "note" and check.found.startswith("geometry 3 of 9; ")
    assert "pindown doctor --compile" in check.remedy
    monkeypatch.setattr(compiled, "counts", lambda: {"pindown.geometry._compiled": (9, 9)})
    assert found(diagnose("kernels"))["kernels", "compiled"].status == "fine"
    done = []
    monkeypatch.setattr(compiled, "works", lambda: {"segments": lambda: done.append("segments")})
    assert run("doctor", "--compile")[0] == 0
    assert done == ["segments"]


def test_no_place_for_machine_code_is_a_note(monkeypatch):
    monkeypatch.setattr("pindown.machine_code.base_folder", lambda: None)
    check = found(diagnose("kernels"))["kernels", "cache"]
    assert check.status == "note" and "NUMBA_CACHE_DIR" in check.remedy


def test_without_numba_doctor_says_what_to_do(monkeypatch):
    monkeypatch.setattr("pindown.compiling.has_compiler", lambda: False)
    (check,) = diagnose("kernels").checks
    assert check.status == "note" and check.remedy.endswith('[fast]"')


def test_a_library_that_does_not_load_is_broken_and_no_traceback(monkeypatch, run):  # noqa: F811
    monkeypatch.setitem(sys.modules, "torch", None)
    code, out, err = run("doctor")
    assert code == 1 and "Traceback" not in out + err
    assert found(diagnose("machine"))["machine", "torch device"].found.startswith("ModuleNotFoundError:")


@pytest.mark.parametrize("fault", [RuntimeError("no solver"), None])
def test_a_self_test_that_fails_is_broken(monkeypatch, fault):
    def wrong():
        if fault is not None:
            raise fault
        return "different"

    monkeypatch.setattr(doctor, "_compare_a_network_with_its_copy", wrong)
    answer = diagnose("self-test")
    assert not answer.healthy and str(answer) == "something is wrong: diff"
    text = found(answer)["self-test", "diff"].found
    assert text == "RuntimeError: no solver" if fault else "different" in text


def test_looking_at_versions_imports_nothing_heavy():
    code = (
        "import sys; from pindown.cli import doctor_checks as installed\n"
        "assert all(need.is_met for need in installed.requirements() if not need.extra)\n"
        "print(*[name for name in ('torch', 'numba', 'matplotlib', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("line", "requirement"),
    [
        ("numpy", Requirement("numpy")),
        ("numpy >= 1.26", Requirement("numpy", "1.26")),
        ("scikit-learn<2,>=1.6", Requirement("scikit-learn", "1.6")),
        ("a.b_c>=2; python_version > '3'", Requirement("a.b_c", "2")),
        ('pytest>=8; extra == "test"', Requirement("pytest", "8", "test")),
    ],
)
def test_requirements_are_read_as_they_are_written(line, requirement):
    assert Requirement.parse(line) == requirement


def test_an_unknown_group_is_refused():
    with pytest.raises(ValueError, match="no group 'brain'; there are required, optional"):
        diagnose("brain")


def test_requirements_without_a_name_are_refused():
    with pytest.raises(ValueError, match="name of a package"):
        Requirement.parse(">=3")


def test_versions_compare_as_versions():
    assert release("1.10") > release("1.9") and release("2.0.0") == release("2")
    assert release("2.13.0+cpu") >= release("2.4") and release("") == ()
    assert installed.Requirement("no-such-package-at-all").is_met is False

"""Is this installation complete? What is there, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Literal

from pindown.extras import USES, install, install_command
from pindown.json_files import document

__all__ = ["DATA_SETS", "ENABLES", "Check", "Diagnosis", "diagnose"]
# What each optional part is for; the parts themselves are read from the installed package.
ENABLES = {
    **USES,
    "bench": "benchmarks beside other packages, and foolbox's attacks",
    "test": "the tests, the linter and the type checker",
    "test-core": "the same without torch",
    "docs": "building the documentation",
}
DATA_SETS = ("mnist", "fashion-mnist", "cifar10", "gtsrb", "adbench", "survival")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
Status = Literal["fine", "note", "broken"]
SCHEMA = 1
_NAME = re.compile(r"[\w.-]+")
_PARTS = re.compile(r"pindown\[([^\]]*)\]")  # a part that is made of others
_LEAST = re.compile(r">=\s*([\d.]+)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)""")


def diagnose(*groups: str) -> Diagnosis:
    """Look at the installation and the machine, and try pindown on two tiny networks.

    Nothing is fetched, compiled or written outside a temporary folder.

    Args:
        groups: What to look at, such as ``"required"`` or ``"data"``; everything by default.

    Returns:
        What was found; :attr:`Diagnosis.healthy` says whether all that is needed is there.

    Raises:
        ValueError: If there is no such group.
    """
    parts: dict[str, Callable[[], Iterator[Check]]] = {
        "required": _packages,
        "optional": _extras,
        "machine": _machine,
        "data": _data,
        "kernels": _compiled_loops,
        "self-test": _self_test,
    }
    unknown = [group for group in groups if group not in parts]
    if unknown:
        raise ValueError(f"there is no group {unknown[0]!r}; there are {', '.join(parts)}.")
    return Diagnosis(tuple(check for group in groups or parts for check in parts[group]()))


def _packages() -> Iterator[Check]:
    try:
        least = str(metadata.metadata("pindown")["Requires-Python"]).removeprefix(">=")
        version = metadata.version("pindown")
    except metadata.PackageNotFoundError:
        yield Check(
            *("required", "pindown", "broken", "not installed, only found as source code"),
            f"{install('.', '-e')} in its folder",
        )
        return
    old = sys.version_info < release(least)
    yield Check(
        *("required", "Python", "broken" if old else "fine", platform.python_version()),
        f"pindown needs Python {least} or newer" if old else "",
    )
    yield Check("required", "pindown", "fine", version)
    for need in requirements():
        if not need.extra:
            yield _package(need)


def _package(need: Requirement) -> Check:
    if need.is_met:
        return Check("required", need.name, "fine", need.version)
    found = f"{need.version} is too old" if need.version else "not installed"
    return Check("required", need.name, "broken", found, install(str(need), "--upgrade"))


def _extras() -> Iterator[Check]:
    needs = [need for need in requirements() if need.extra]
    for extra in dict.fromkeys(need.extra for need in needs):
        missing = [need.name for need in needs if need.extra == extra and not need.is_met]
        use = ENABLES.get(extra, "see the documentation")
        if missing:
            found = f"{use}; missing or too old: {', '.join(missing)}"
            yield Check("optional", extra, "note", found, install_command(extra))
        else:
            yield Check("optional", extra, "fine", use)
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or "not found"
    yield Check("optional", "chromium", "fine", f"{browser}; only the tests of the page use it")


def _machine() -> Iterator[Check]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Check("machine", "system", "fine", f"{platform.system()} {platform.machine()}")
    yield Check("machine", "cores", "fine", f"{cores} of {os.cpu_count()} for this process")
    limits = [f"{name}={os.environ[name]}" for name in _THREADS if name in os.environ]
    yield Check("machine", "threads", "fine", ", ".join(limits) or "not limited by the environment")
    if not Requirement("torch").version:
        return  # said above
    try:
        yield Check("machine", "torch device", "fine", _torch_devices())
    except Exception as error:  # whatever a broken build of torch raises, it is what we report
        yield _failed("machine", "torch device", error, install("torch", "--force-reinstall"))


def _torch_devices() -> str:
    import torch

    devices = ["cpu"]
    devices += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    devices += ["mps"] if torch.backends.mps.is_available() else []
    return f"{', '.join(devices)}; {torch.get_num_threads()} threads"


def _data() -> Iterator[Check]:
    from pindown.datasets.public_data import VARIABLE, has_data

    use = "experiments then use small data that come with scikit-learn, and say so"
    advice = f"set {VARIABLE} to a folder with a sub-folder for each of {', '.join(DATA_SETS)}"
    named = os.environ.get(VARIABLE)
    if not named:
        yield Check("data", VARIABLE, "note", f"not set; {use}", advice)
    elif not Path(named).is_dir():
        yield Check("data", VARIABLE, "note", f"{named} is not a folder; {use}", advice)
    else:
        found = [name for name in DATA_SETS if has_data(name)]
        missing = [name for name in DATA_SETS if name not in found]
        words = f"{named}: {', '.join(found) or 'no data set'}"
        words += f"; not there: {', '.join(missing)}" if missing else ""
        yield Check("data", VARIABLE, "fine" if found else "note", words, "" if found else advice)


def _compiled_loops() -> Iterator[Check]:
    from pindown.cli.compiled_loops import counts
    from pindown.compiling import has_compiler
    from pindown.machine_code import base_folder, damaged_files

    if not has_compiler():
        found = "numba is not installed: loops run as Python, some fifty times slower"
        yield Check("kernels", "numba", "note", found, install_command("fast"))
        return
    try:
        __import__("numba")
    except Exception as error:  # numba and NumPy that do not fit together fail in many ways
        yield _failed("kernels", "numba", error, install("numba", "--upgrade"))
        return
    cache, damaged = base_folder(), damaged_files()
    if damaged:
        found = f"{len(damaged)} damaged files, such as {damaged[0]}; compiled anew when needed"
        yield Check("kernels", "cache", "note", found, "pindown doctor --compile")
    elif cache:
        yield Check("kernels", "cache", "fine", f"machine code is kept in {cache}")
    else:
        yield Check(
            *("kernels", "cache", "note", "no folder can be written, so each process compiles anew"),
            "set NUMBA_CACHE_DIR to a folder that you may write to",
        )
    kept = counts()
    words = ", ".join(
        f"{name.removeprefix('pindown.').removesuffix('._compiled')} {there} of {all_of_them}"
        for name, (there, all_of_them) in kept.items()
    )
    if all(there >= all_of_them for there, all_of_them in kept.values()):
        yield Check("kernels", "compiled", "fine", words)
    else:
        found = f"{words}; the first large work waits for the others, small work does not"
        yield Check("kernels", "compiled", "note", found, "pindown doctor --compile (minutes, once)")


def _self_test() -> Iterator[Check]:
    try:
        from pindown.deadline import Stopwatch

        watch = Stopwatch()
        verdict = _compare_a_network_with_its_copy()
    except Exception as error:  # the point of the test is to say what any failure was
        yield _failed("self-test", "diff", error, "see what is broken above")
        return
    found = f"a network and its reordered copy, through ONNX files: {verdict} ({watch.seconds:.1f} s)"
    fine = verdict == "same"
    yield Check(
        *("self-test", "diff", "fine" if fine else "broken", found),
        "" if fine else "report this, with the output of pindown doctor --json",
    )


def _compare_a_network_with_its_copy() -> str:
    from tempfile import TemporaryDirectory

    from pindown import ReluNetwork, diff

    first = ReluNetwork.from_layers([([[1, 2], [3, -1]], [0, 1]), ([[1, -1]], [2])])
    second = ReluNetwork.from_layers([([[6, -2], [1, 2]], [2, 0]), ([[-0.5, 1]], [2])])
    with TemporaryDirectory() as folder:
        files = Path(folder) / "first.onnx", Path(folder) / "second.onnx"
        first.save(files[0])
        second.save(files[1])
        return diff(*files, box=(-1, 1), budget=5.0).verdict


def _failed(group: str, name: str, error: Exception, remedy: str) -> Check:
    words = " ".join(str(error).split()) or "no message"
    return Check(group, name, "broken", f"{type(error).__name__}: {words}", remedy)


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        group: What it belongs to, such as ``"required"``.
        name: What was looked at.
        status: ``"fine"``; ``"note"`` (works, but could do more); ``"broken"``.
        found: What is there, in words.
        remedy: What to do about it; empty if there is nothing to do.
    """

    group: str
    name: str
    status: Status
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What :func:`pindown.cli.doctor_checks.diagnose` found.

    Attributes:
        checks: Everything that was looked at, in the order of a report.
    """

    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing that pindown needs is missing or broken."""
        return all(check.status != "broken" for check in self.checks)

    def __str__(self) -> str:
        broken = [check.name for check in self.checks if check.status == "broken"]
        notes = sum(check.status == "note" for check in self.checks)
        if broken:
            return f"something is wrong: {', '.join(broken)}"
        return "everything that pindown needs is there" + (f"; notes: {notes}" if notes else "")

    def to_json(self) -> str:
        """Return the checks as JSON: ``{"schema": 1, "healthy": bool, "checks": [...]}``."""
        content = {"schema": SCHEMA, "healthy": self.healthy, "checks": list(map(asdict, self.checks))}
        return document(content)


@dataclass(frozen=True)
class Requirement:
    """One requirement: a name, the least version, and the optional part it belongs to.

    Attributes:
        name: The package.
        least: The least version that will do; empty if any will.
        extra: The optional part that asks for it; empty if pindown cannot do without.

    >>> Requirement.parse("dask[distributed]>=2024.8; extra == 'cluster'")
    Requirement(name='dask', least='2024.8', extra='cluster')
    """

    name: str
    least: str = ""
    extra: str = ""

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Read one entry of ``importlib.metadata.requires``.

        Raises:
            ValueError: If it does not begin with a name.
        """
        name = _NAME.match(text.strip())
        if name is None:
            raise ValueError(f"a requirement begins with the name of a package; got {text!r}.")
        wanted, _, marker = text.partition(";")
        least, extra = _LEAST.search(wanted), _EXTRA.search(marker)
        return cls(name[0], least[1] if least else "", extra[1] if extra else "")

    @property
    def version(self) -> str:
        """The version that is installed; empty if none is."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return ""

    @property
    def is_met(self) -> bool:
        """Whether a version that will do is installed."""
        return bool(self.version) and release(self.version) >= release(self.least)

    def __str__(self) -> str:
        return f"{self.name}>={self.least}" if self.least else self.name


def requirements() -> list[Requirement]:
    """Return what pindown asks for, optional parts included; empty if it is not installed."""
    try:
        return expanded(metadata.requires("pindown") or [])
    except metadata.PackageNotFoundError:
        return []


def expanded(lines: list[str]) -> list[Requirement]:
    """Return requirements, parts that are made of other parts of pindown written out.

    >>> [str(need) for need in expanded(["a>=1; extra == 'x'", "pindown[x]; extra == 'all'"])]
    ['a>=1', 'a>=1']
    """
    needs: list[Requirement] = []
    for line in lines:
        need, parts = Requirement.parse(line), _PARTS.match(line)
        if parts is None:
            needs.append(need)
            continue
        wanted = {part.strip() for part in parts[1].split(",")}
        others = [other for other in lines if Requirement.parse(other).extra in wanted]
        needs += [replace(other, extra=need.extra) for other in expanded(others)]
    return needs


def release(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with, without zeros at the end.

    >>> release("2.13.0+cpu"), release("1.6.dev0"), release("8.0") == release("8")
    ((2, 13), (1, 6), True)
    """
    begin = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(n) for n in begin[0].split(".")] if begin else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)

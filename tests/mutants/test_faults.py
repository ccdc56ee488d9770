"""The list of faults fits the source, and a run tells what was noticed from what was not."""

import ast
import subprocess
import sys
from dataclasses import replace
from textwrap import dedent

import pytest

from tests.mutants.faults import ROOT, Fault, FaultError, all_faults


def test_every_fault_can_be_put_in():
    """Its function, snippet and tests exist, and what comes out is another program."""
    seen = set()
    for fault in all_faults():
        before, after = (ast.dump(ast.parse(dedent(text))) for text in fault.definition)
        assert before != after, f"no other program: {fault}"
        assert fault.noticed_by and fault.tests
        key = fault.module[0], before, after
        assert key not in seen, f"listed twice: {fault}"
        seen.add(key)


def test_a_fault_that_is_nowhere_is_refused():
    here = Fault("small_kl_inverse", "no such text", "x", ("test_pac_bayes",), "here")
    with pytest.raises(FaultError, match="0 times"):
        _ = here.source
    with pytest.raises(FaultError, match="nothing is called so"):
        _ = replace(here, of="no_such_function").source
    with pytest.raises(FaultError, match="0 test files"):
        _ = replace(here, noticed_by=("test_pac_bayes::test_of_nothing",)).tests


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("error.errno, error.strerror, str(path)", "error.errno, error.strerror, ''", "noticed"),
        ("OSError(error.errno, error.strerror", "OSError(*(error.errno, error.strerror)", "SURVIVED"),
        ("str(path)", "str(paths)", "BROKEN"),
    ],
)
def test_a_run_tells_them_apart(old, new, outcome):
    """A wrong name is noticed, the same program is not, and a misspelt fault proves nothing."""
    tests = ("test_atomic_files::test_the_message_is_about_the_file_that_was_asked_for",)
    fault = Fault("_about", old, new, tests, "here", within="atomic_files")
    code = f"from tests.mutants.run import tested, Fault; f = {fault!r}; print(tested(f.tests, f)[0])"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=100
    )
    assert run.stdout.split()[-1] == outcome

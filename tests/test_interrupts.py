"""Ctrl-C before the command line could catch anything."""

import os
import signal
import subprocess
import sys

import pytest

# Stands in for a library that loads slowly: Ctrl-C comes while it does, and it swallows exceptions.
SLOW_LIBRARY = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)
except BaseException:
    print("swallowed", flush=True)
    raise
"""


def interrupted_while_loading(tmp_path, *arguments, library="typer"):
    (tmp_path / library).mkdir()
    (tmp_path / library / "__init__.py").write_text(SLOW_LIBRARY)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return run(arguments, environment)


def run(arguments, environment=None):
    how = {"env": environment, "capture_output": True, "text": True, "timeout": 120}
    # A shell that runs the tests in the background ignores Ctrl-C, and children would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.run([sys.executable, *arguments], check=False, **how)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("module", ["pindown", "pindown.cli.main"])
def test_ctrl_c_while_loading_is_one_line(tmp_path, module):
    ended = interrupted_while_loading(tmp_path, "-m", module, "doctor")
    assert (ended.returncode, ended.stderr) == (130, "pindown: interrupted.\n")
    assert not ended.stdout


def test_ctrl_c_in_the_installed_command_is_one_line(tmp_path):
    script = tmp_path / "pindown"  # as installers write it
    script.write_text("import sys\nfrom pindown.cli.main import main\nsys.exit(main())\n")
    ended = interrupted_while_loading(tmp_path, str(script), "doctor")
    assert (ended.returncode, ended.stderr) == (130, "pindown: interrupted.\n")


def test_the_library_leaves_signals_alone(tmp_path):
    ended = interrupted_while_loading(tmp_path, "-c", "import pindown.network", library="scipy")
    assert "KeyboardInterrupt" in ended.stderr and ended.stdout == "swallowed\n"
    told = run(["-c", "import pindown, signal; print(signal.getsignal(signal.SIGINT).__name__)"])
    assert told.stdout == "default_int_handler\n"

"""No test fails because a machine is busy; without torch, those that need it are left out and say so."""

import os
from importlib.util import find_spec

import pytest
from hypothesis import settings

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # workers are as many as cores: threads would wait for each other

settings.register_profile("busy machines", deadline=None)  # of 0.2 s for each example
settings.load_profile("busy machines")

WITHOUT_TORCH = find_spec("torch") is None
NEED_TORCH = ("torch", "pindown_reproduction")  # the experiments train


def needs_torch(error: BaseException | None) -> bool:
    """Return whether an error, or one behind it, says that torch is missing."""
    while error is not None:
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] in NEED_TORCH:
            return True
        example = getattr(error, "exc_info", None)  # of a docstring
        error = example[1] if example else error.__cause__ or error.__context__
    return False


def left_out(report, call, path):
    """Return the report of a test or a file, skipped if it failed for want of torch."""
    if WITHOUT_TORCH and report.failed and call.excinfo and needs_torch(call.excinfo.value):
        report.outcome, report.longrepr = "skipped", (str(path), 0, "Skipped: needs torch")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Leave out files that cannot be imported."""
    report = yield
    return left_out(report, report.call, collector.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Leave out tests that cannot run."""
    report = yield
    return left_out(report, call, item.path)

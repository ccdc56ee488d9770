"""`diff` with several workers: the same answers, and whatever happens a true interval."""

import numpy as np
import pytest

from pindown import Box
from pindown.cli.main import main
from pindown.equivalence.comparison import _parallel_branching as parallel_branching
from pindown.equivalence.comparison import diff, methods
from pindown.equivalence.comparison._cells import gap_by_cells
from pindown.parallel import workers
from tests.equivalence.comparison.nets import exact_gap, perturbed, random_net

BOX = Box.cube(3, -1.0, 1.0)
TWO = {"n_jobs": 2, "backend": "threads"}


@pytest.fixture
def only_branching(monkeypatch):
    """Leave small pairs to branch and bound, in short rounds; count these."""
    others = ("one hidden layer", "cells", "mixed-integer programs")
    for table in ("ON_WEIGHTS", "ON_ANY_PAIR"):
        left = tuple(method for method in getattr(methods, table) if method.name not in others)
        monkeypatch.setattr(methods, table, left)
    monkeypatch.setattr(parallel_branching, "HEAD_WORK", 1)
    monkeypatch.setattr(parallel_branching, "MAX_PART_BOXES", 32)
    monkeypatch.setattr(methods, "ROUND_SECONDS", 60.0)  # short rounds are not shared out
    many = []
    each = parallel_branching.each

    def counted(function, items, **how):
        many.append(len(items))
        return each(function, items, **how)

    monkeypatch.setattr(parallel_branching, "each", counted)
    return many


def drawn(n):
    rng = np.random.default_rng(11)
    for _ in range(n):
        a = random_net((3, 5, 5, 1), rng)
        yield a, perturbed(a, 0.2, rng)


def test_one_worker_and_two_answer_alike(only_branching):
    for a, b in drawn(1):
        exact = gap_by_cells(a, b, BOX)
        for share in (0.95, 1.3):
            tol = share * exact.lower
            one = diff(a, b, box=BOX, tol=tol, n_jobs=1)
            with workers(**TWO):
                two = diff(a, b, box=BOX, tol=tol)
            assert one.verdict == two.verdict == ("different" if share < 1 else "same")
            for answer in (one, two):
                assert answer.gap_lower <= exact.upper
                assert answer.gap_upper >= exact.lower
            assert exact_gap(a, b, two.witness) >= two.gap_lower
    assert max(only_branching) > 2


def test_ctrl_c_during_a_round_returns_what_was_proved(only_branching, monkeypatch):
    ((a, b),) = drawn(1)
    each = parallel_branching.each

    def interrupted(function, items, **how):
        for pair in each(function, items, **how):
            if len(items) > 1:
                raise KeyboardInterrupt
            yield pair

    monkeypatch.setattr(parallel_branching, "each", interrupted)
    exact = gap_by_cells(a, b, BOX)
    with workers(**TWO):
        answer = diff(a, b, box=BOX, tol=1.01 * exact.lower)
    assert answer.interrupted
    assert only_branching[-1] > 1
    assert answer.gap_lower <= exact.upper
    assert exact.lower <= answer.gap_upper


@pytest.mark.parametrize("n_jobs", [0, 0.5, "all"])
def test_bad_numbers_of_workers_are_refused_in_one_line(n_jobs):
    ((a, _),) = drawn(1)
    with pytest.raises(ValueError, match="n_jobs must be a number of workers") as refusal:
        diff(a, a, box=BOX, n_jobs=n_jobs)
    assert "\n" not in str(refusal.value)


def test_the_command_takes_jobs(tmp_path, capsys):
    ((a, _),) = drawn(1)
    files = [str(tmp_path / name) for name in ("a.onnx", "b.onnx")]
    for name in files:
        a.save(name)
    with pytest.raises(SystemExit) as ended:
        main(["diff", *files, "--jobs", "2"])
    assert ended.value.code == 0
    with pytest.raises(SystemExit) as ended:
        main(["diff", *files, "--jobs", "0"])
    assert ended.value.code == 3
    assert "--jobs takes a number of processes" in capsys.readouterr().err

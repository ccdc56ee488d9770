"""The door to parallel work: the same results wherever tasks run, and whatever happens to workers."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import sklearn.utils._openmp_helpers  # noqa: F401  (a library with threads of its own)

# Workers import this module, again and again: heavy imports wait inside the tests.
from pindown.parallel import each, n_workers, task_seeds, workers
from pindown.parallel import limits as memory
from pindown.parallel.limits import at_once

PLACES = {
    "one": {"n_jobs": 1},
    "threads": {"n_jobs": 2, "backend": "threads"},
    "processes": {"n_jobs": 2, "backend": "processes"},
}


def drawn(seed):
    return np.random.default_rng(seed).standard_normal(4).tolist()


def surroundings(_):
    """What a task sees: workers for loops inside, threads of linear algebra, and of torch if there."""
    from threadpoolctl import threadpool_info

    torch = sys.modules.get("torch")
    pools = {pool["num_threads"] for pool in threadpool_info()}
    return n_workers(None), pools | ({1} if torch is None else {torch.get_num_threads()})


def process_of(_):
    return os.getpid()


def dies_once(task):
    number, folder = task
    mark = Path(folder) / str(number)
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def deadly(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def reciprocal(number):
    return 1 / number


@pytest.mark.parametrize("place", PLACES)
def test_results_do_not_depend_on_where_tasks_run(place):
    seeds, told = task_seeds(5, 6), []
    with workers(**PLACES[place]):
        found = dict(each(drawn, seeds, progress=lambda what, done, total: told.append((done, total))))
        assert found == {i: drawn(seed) for i, seed in enumerate(seeds)}
        assert told == [(i, 6) for i in range(1, 7)]
        assert dict(each(int, ["3", "4"])) == {0: 3, 1: 4}  # a class will do, and a lambda
        assert dict(each(lambda x: x + len(seeds), [1, 2])) == {0: 7, 1: 8}
        assert all(seen[1] == {1} for _, seen in each(surroundings, range(4)))


@pytest.mark.parametrize("backend", ["threads", "processes"])
def test_a_task_has_one_thread_and_starts_no_workers(backend):
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with workers(2, backend=backend):
            assert n_workers(None) == 2
            assert all(seen == (1, {1}) for _, seen in each(surroundings, range(4)))
        assert n_workers(None) == 1 and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_call_has_the_last_word_and_joblib_is_heard():
    from joblib import parallel_config

    with workers(3):
        assert n_workers(1) == 1 and n_workers(2) == 2 and n_workers(None) == 3
    with parallel_config(backend="threading", n_jobs=4):
        assert n_workers(None) == 4
        assert {pid for _, pid in each(process_of, range(3))} == {os.getpid()}
    assert dict(each(drawn, [])) == {}


def test_a_worker_that_dies_is_replaced(tmp_path):
    with workers(2, backend="processes"):
        found = dict(each(dies_once, [(i, str(tmp_path)) for i in range(6)], batch=1))
    assert found == {i: i**2 for i in range(6)} and (tmp_path / "3").exists()


@pytest.mark.slow
def test_a_deadly_task_takes_no_other_with_it():
    found = []
    with workers(2, backend="processes"), pytest.raises(ChildProcessError, match="1 tasks are left"):
        for index, _ in each(deadly, range(6)):
            found.append(index)
    assert sorted(found) == [0, 2, 3, 4, 5]


SLOWER = ["threads", pytest.param("processes", marks=pytest.mark.slow)]  # new processes each time


@pytest.mark.parametrize("backend", SLOWER)
def test_an_error_comes_through_and_the_next_loop_works(backend):
    with workers(2, backend=backend):
        with pytest.raises(ZeroDivisionError):
            list(each(reciprocal, [1, 0, 2]))
        assert dict(each(reciprocal, [1, 2])) == {0: 1.0, 1: 0.5}


@pytest.mark.parametrize("backend", SLOWER)
def test_stopping_early_is_quiet_and_leaves_no_work_behind(backend, recwarn):
    with workers(2, backend=backend):
        for _, value in each(drawn, range(200), batch=1):
            assert len(value) == 4
            break
        assert dict(each(drawn, [1, 2])) == {0: drawn(1), 1: drawn(2)}
    assert not [w for w in recwarn if "cancelled" in str(w.message)]


def test_fewer_tasks_run_at_once_when_memory_is_short(monkeypatch):
    running, most, lock = [0], [0], threading.Lock()

    def task(_):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.01)
        with lock:
            running[0] -= 1

    monkeypatch.setattr(memory, "available_bytes", lambda: 3e9)
    with workers(8, backend="threads"):
        list(each(task, range(30), bytes_per_task=1e9))
    assert 1 <= most[0] <= 2  # 80 % of what is there
    assert [at_once(8, size, 10e9) for size in (1e9, 3e9, 8e9, None)] == [8, 2, 1, 8]
    with pytest.warns(UserWarning, match="one at a time"):
        assert at_once(8, 20e9, 10e9) == 1
    with pytest.raises(ValueError, match="bytes_per_task must be"):
        at_once(8, -1.0)


def test_seeds_are_a_tasks_own():
    assert task_seeds(3, 5) == task_seeds(3, 9)[:5] != task_seeds(4, 5)
    assert len(set(task_seeds(0, 5_000))) == 5_000 and max(task_seeds(0, 5_000)) < 2**63
    assert task_seeds(None, 2) != task_seeds(None, 2) and task_seeds(1, 0) == []
    # Streams of neighbours have nothing to do with each other: correlations like those of chance.
    draws = np.stack([np.random.default_rng(seed).standard_normal(400) for seed in task_seeds(0, 40)])
    correlations = np.corrcoef(draws)[np.triu_indices(40, 1)]
    assert abs(correlations).max() < 6 / np.sqrt(400)
    with pytest.raises(ValueError, match="at least 0; got -1"):
        task_seeds(-1, 3)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"n_jobs": 0}, ValueError, "n_jobs must be a number of workers"),
        ({"n_jobs": 1.5}, ValueError, "n_jobs must be a number of workers"),
        ({"n_jobs": 2, "backend": "fibres"}, ValueError, "backend must be 'threads'"),
        ({"cluster": "local", "backend": "threads"}, ValueError, "not both"),
        ({"cluster": "node7"}, ValueError, "cluster must be 'local'"),
        ({"cluster": "tcp://"}, ValueError, "cluster must be 'local'.*such as 'tcp://node7:8786'"),
        ({"cluster": "tcp://:8786"}, ValueError, "cluster must be 'local'"),
        ({"cluster": "tcp://node7:port"}, ValueError, "cluster must be 'local'"),
        ({"cluster": "tcp://node7:99999"}, ValueError, "cluster must be 'local'"),
        ({"cluster": "tcp://[::1"}, ValueError, "cluster must be 'local'"),
        ({"cluster": "ray"}, ImportError, "needs Ray: pip install ray"),
    ],
)
def test_what_means_nothing_is_refused(settings, error, words):
    if settings.get("cluster") == "ray":
        settings = dict(settings)
        try:
            import ray  # noqa: F401
        except ImportError:
            pass
        else:
            pytest.skip("Ray is installed")
    with pytest.raises(error, match=words), workers(**settings):
        pass


def test_exact_training_finds_the_same_network_with_two_threads():
    from pindown.learn.exact.estimators import ExactReluRegressor

    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    alone = ExactReluRegressor(2, budget=600.0, verbose=0).fit(X, y)
    with workers(2):
        model = ExactReluRegressor(2, budget=600.0, verbose=0).fit(X, y)
    assert model.optimal_ and model.n_tuples_ == alone.n_tuples_
    assert (model.best_loss_, model.lower_bound_) == (alone.best_loss_, alone.lower_bound_)
    assert np.array_equal(model.predict(X), alone.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["auto", "paper"])
def test_networks_of_a_detector_are_trained_side_by_side(preset):
    from pindown.learn.one_class.detector import LocalMaximaDetector

    X = np.random.default_rng(0).standard_normal((60, 2))
    model = LocalMaximaDetector(preset, n_estimators=2, max_epochs=2, random_state=0)
    alone = model.fit(X).score_samples(X)
    more = model.partial_fit(X[:30]).score_samples(X)
    with workers(2, backend="processes"):
        assert np.array_equal(model.fit(X).score_samples(X), alone)
        assert np.array_equal(model.partial_fit(X[:30]).score_samples(X), more)
    assert len(model.history_) == 8

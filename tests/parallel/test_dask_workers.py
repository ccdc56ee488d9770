"""Dask workers in processes of their own: same results as here, also when one of them is killed."""

import os
import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

# Workers import this module: heavy imports wait inside the tests.
import pindown as pn
from pindown.parallel import each, n_workers, workers

pytest.importorskip("distributed")
from pindown.parallel import _dask_workers as dask_workers

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[3] / "shared"))
FILES = ("results.json", "table.md", "figure.svg")
CELLS = 10


@pytest.fixture(scope="module")
def client():
    with ExitStack() as stack:
        opened, cores = dask_workers.opened_client("local", 2, stack)
        assert cores == 2
        yield opened


def process(_):
    time.sleep(0.05)
    return os.getpid(), n_workers(None)


def slow_square(number):
    time.sleep(0.1)
    return number**2, os.getpid()


def curve(net, X, y):
    from pindown.guarantees import certified_accuracy

    found = certified_accuracy(net, X, y, [0.01, 0.03], box=(0, 1), optimise=False, verbose=0)
    return found.certified_radius.tolist(), found.attacked_radius.tolist()


def test_workers_are_processes_of_their_own(client):
    with workers(cluster=client) as place:
        assert place.n_jobs == n_workers(None) == 2
        seen = [pair for _, pair in each(process, range(12), batch=1)]
    assert len({pid for pid, _ in seen}) == 2 and os.getpid() not in {pid for pid, _ in seen}
    assert {inside for _, inside in seen} == {1}


def test_cells_at_the_papers_scale_come_out_byte_by_byte(client, tmp_path):
    from pindown_reproduction import EXPERIMENTS, reproduce

    whole = EXPERIMENTS["inverse-stability"]
    some = replace(whole, cells=lambda settings: whole.cells(settings)[:CELLS])
    alone = reproduce(some, scale="paper", out=tmp_path / "alone")
    shared = reproduce(some, scale="paper", out=tmp_path / "dask", cluster=client)
    assert len(list((shared.folder / "cells").glob("*.json"))) == CELLS
    for name in FILES:
        written = (alone.folder / name).exists()
        assert written == (shared.folder / name).exists() and (written or name == "figure.svg")
        if written:
            assert (alone.folder / name).read_bytes() == (shared.folder / name).read_bytes()


def test_certified_accuracy_of_a_thousand_images(client):
    from pindown.datasets.public_data import small_digits

    data, rng = small_digits(), np.random.default_rng(0)
    layers = [
        (rng.standard_normal((m, n)) * np.sqrt(2 / n), np.zeros(m))
        for n, m in pairwise((64, 40, 40, 10))
    ]
    net, X = pn.ReluNetwork.from_layers(layers), data.train[:1_000].reshape(1_000, -1) / 255
    y = np.argmax(net(X), axis=1)
    y[::10] = (y[::10] + 1) % 10  # some that are wrong from the start
    alone = curve(net, X, y)
    with workers(cluster=client):
        assert curve(net, X, y) == alone
    assert len(set(alone[0])) > 1 and len(set(alone[1])) > 1


@pytest.mark.slow
def test_exact_training_finds_the_same_network(client):
    from pindown.learn.exact.estimators import ExactReluRegressor

    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    alone = ExactReluRegressor(2, verbose=0).fit(X, y)
    with workers(cluster=client):
        model = ExactReluRegressor(2, verbose=0).fit(X, y)
    assert np.array_equal(model.predict(X), alone.predict(X)) and model.optimal_
    assert model.lower_bound_ == alone.lower_bound_


def test_errors_and_early_stops_come_through(client):
    with workers(cluster=client):
        with pytest.raises(ZeroDivisionError):
            list(each(lambda x: 1 / x, [1, 0]))
        for _ in each(slow_square, range(50), batch=1):
            break
        assert dict(each(abs, [-1, 2])) == {0: 1, 1: 2}
        assert dict(each(abs, [-3], bytes_per_task=1e6)) == {0: 3}


def test_memory_of_the_workers_limits_what_is_in_flight(client):
    limits = [w["memory_limit"] for w in client.scheduler_info(n_workers=-1)["workers"].values()]
    assert dask_workers.free_slots(client, 1e6) == 2
    assert dask_workers.free_slots(client, 10 * max(limits)) == 1


def test_a_worker_killed_from_outside_changes_nothing(client):
    """Last, because the cluster has one worker less until it has started another."""
    alone = {i: i**2 for i in range(30)}
    found, killed = {}, None
    with workers(cluster=client):
        for index, (square, pid) in each(slow_square, range(30), batch=1):
            found[index] = square
            if len(found) == 4:
                killed = pid
                os.kill(pid, signal.SIGKILL)
    assert found == alone and killed is not None


def test_no_scheduler_is_said_in_a_line(monkeypatch):
    monkeypatch.setattr(dask_workers, "SCHEDULER_WITHIN", 1)
    with (
        pytest.raises(OSError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 within 1 s"),
        workers(cluster="tcp://127.0.0.1:9"),
    ):
        pass
    with pytest.raises(ValueError, match="cluster must be an address or of Dask"), workers(cluster=7):
        pass
    # Dask's own reason, in one line that names the address.
    with pytest.raises(ValueError, match=r"cannot use the address 'tls://node7:1': .*ssl"), workers(
        cluster="tls://node7:1"
    ):  # fmt: skip
        pass


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "data/mnist").exists(), reason="the shared files are not there")
def test_certified_accuracy_of_a_thousand_digits_and_a_large_network(client):
    from pindown.datasets.public_data import load_mnist

    data = load_mnist(SHARED / "data")
    net = pn.load(SHARED / "models/mnist_256x4.onnx.gz").relu_network()
    X, y = data.test[:1_000].reshape(1_000, -1) / 255.0, data.test_labels[:1_000]
    alone = curve(net, X, y)
    with workers(cluster=client):
        assert curve(net, X, y) == alone

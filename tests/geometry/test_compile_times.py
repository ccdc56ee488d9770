"""How long compilers take is known beforehand, and nothing once they ran."""

import pytest

from pindown.geometry.compile_times import _SECONDS, compile_now, compile_seconds


@pytest.mark.parametrize("work", ["segments", "plane"])
def test_what_was_compiled_costs_nothing(work):
    compile_now(work)
    assert compile_seconds(work) == 0.0


def test_what_was_not_compiled_costs_seconds(monkeypatch):
    monkeypatch.setattr("pindown.geometry.compile_times._signatures", lambda dispatcher: [])
    assert all(compile_seconds(work) == seconds > 1 for work, seconds in _SECONDS.items())


def test_other_kinds_of_work_do_not_count(monkeypatch):
    from numba import types

    full_plane = [types.int64] * 13
    full_plane[4] = full_plane[5] = full_plane[11] = types.none
    monkeypatch.setattr(
        "pindown.geometry.compile_times._signatures", lambda dispatcher: [tuple(full_plane)]
    )
    assert compile_seconds("plane") == 0.0
    assert min(map(compile_seconds, ("plane count", "space", "space count"))) > 1

"""Files that cannot be written: the user's own name, the plain reason, and nothing left behind."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown import atomic_files as whole_files
from pindown.atomic_files import FolderInUseError, only_writer, together, whole_file
from pindown.cli.options import check_writable
from pindown.errors import ModelFileError
from pindown.io import save


@pytest.fixture
def net():
    return ReluNetwork.from_layers([(np.eye(2), [0, 0])])


def refuse(number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number), "/somewhere/.a.onnx.4bcc0102.tmp")

    return fail


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
@pytest.mark.parametrize("step", ["open", "replace"])
def test_the_message_is_about_the_file_that_was_asked_for(net, tmp_path, monkeypatch, step, number):
    path = tmp_path / "a.onnx"
    monkeypatch.setattr(Path, step, refuse(number))
    with pytest.raises(ModelFileError) as caught:
        save(net, path)
    assert str(caught.value) == f"{path} cannot be written: {os.strerror(number)}."
    with pytest.raises(OSError, match=r"a\.onnx") as raw, whole_file(path):
        pass
    assert raw.value.errno == number and raw.value.filename == str(path)
    assert raw.value.__class__ is OSError(number, "").__class__
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_real_places_that_cannot_be_written(net, tmp_path):
    (tmp_path / "file").write_text("a file")
    (tmp_path / "folder.onnx").mkdir()
    places = ["none/a.onnx", "file/a.onnx", "folder.onnx", f"{300 * 'a'}.onnx"]
    reasons = [errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG]
    for place, number in zip(places, reasons, strict=True):
        with pytest.raises(ModelFileError) as caught:
            save(net, tmp_path / place)
        assert str(caught.value) == f"{tmp_path / place} cannot be written: {os.strerror(number)}."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.onnx"]


@pytest.mark.parametrize("letter", ["a", "é", "网"])
def test_names_as_long_as_the_system_allows(net, tmp_path, letter):
    name = letter * ((255 - len(".onnx")) // len(letter.encode())) + ".onnx"
    save(net, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_goes_wrong_inside_is_not_renamed(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "a"):
        Path(tmp_path, "another").read_bytes()
    assert caught.value.filename == str(tmp_path / "another")
    assert list(tmp_path.iterdir()) == []


def test_commands_say_before_the_work_why_they_cannot_write(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("a file")
    (tmp_path / "folder").mkdir()

    def complaint(place):
        with pytest.raises(ValueError, match=r"^-o cannot write") as caught:
            check_writable("-o", tmp_path / place)
        return str(caught.value)

    assert (
        complaint("none/a.onnx") == f"-o cannot write '{tmp_path}/none/a.onnx': there is no such folder."
    )
    assert complaint("file/a.onnx").endswith("its folder is a file.")
    assert complaint("folder").endswith("it is a folder.")
    monkeypatch.setattr("pindown.cli.options.os.access", lambda *_: False)  # root may write anywhere
    assert complaint("a.onnx").endswith("no permission to write in its folder.")


def write(path, content=b"new"):
    with whole_file(path) as file:
        file.write(content)


def dead_process():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def left_by(process, path, place=None):
    """Make what a writer leaves that was killed."""
    left = path.with_name(f".{path.name}.0123abcd.{place or whole_files._here()}.{process}.tmp")
    left.write_bytes(b"hal")
    return left


def test_what_a_dead_writer_left_of_a_file_is_removed_and_nothing_else(tmp_path):
    dead, path = dead_process(), tmp_path / "a[1].json"
    gone = left_by(dead, path)
    kept = [
        left_by(os.getpid(), path),
        left_by(dead, path, place="elsewhere"),
        left_by(dead, tmp_path / "another.json"),
        tmp_path / ".a[1].json.of.the.users.own.tmp",
    ]
    kept[-1].write_text("not ours")
    write(path)
    assert not gone.exists() and path.read_bytes() == b"new" and all(map(Path.exists, kept))


def test_the_only_writer_of_a_folder_begins_with_a_clean_one(tmp_path):
    (tmp_path / "cells").mkdir()
    left = [left_by(1, tmp_path / "a"), left_by(os.getpid(), tmp_path / "cells" / "b", "elsewhere")]
    with only_writer(tmp_path):
        assert not any(map(Path.exists, left))
        busy = left_by(os.getpid(), tmp_path / "c")
        with pytest.raises(FolderInUseError), only_writer(tmp_path):
            pass
        assert busy.exists()


def test_files_appear_together_or_not_at_all(tmp_path):
    a, b, c = (tmp_path / name for name in "abc")
    a.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), together():
        write(a)
        write(b)
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and a.read_bytes() == b"old"
    with together():
        write(a)
        with pytest.raises(ZeroDivisionError), together():
            write(c)
            raise ZeroDivisionError
        with together():
            write(b)
        assert a.read_bytes() == b"old" and not b.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"] and a.read_bytes() == b"new"


def test_the_first_ctrl_c_waits_for_the_files_and_the_second_does_not(tmp_path, capfd):
    a, b = tmp_path / "a", tmp_path / "b"
    with pytest.raises(KeyboardInterrupt), together():
        write(a)
        signal.raise_signal(signal.SIGINT)
        write(b)
    assert a.exists() and b.exists() and "Ctrl-C again" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    a.unlink()
    with pytest.raises(KeyboardInterrupt), together():
        write(a)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_between_two_renames_waits_for_both(tmp_path, monkeypatch):
    replace, paths = Path.replace, [tmp_path / "a", tmp_path / "b"]

    def interrupted(path, target):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), together():
        for path in paths:
            write(path)
    assert all(map(Path.exists, paths))

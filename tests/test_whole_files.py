"""Files that cannot be written: the user's own name, the plain reason, and nothing left behind."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.cli_options import check_writable
from pindown.errors import ModelFileError
from pindown.io import save
from pindown.whole_files import whole_file


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
    monkeypatch.setattr("pindown.cli_options.os.access", lambda *_: False)  # root may write anywhere
    assert complaint("a.onnx").endswith("no permission to write in its folder.")

import os

import pytest

from pindown.atomic_files import written


@pytest.fixture
def full_disk(monkeypatch):
    """A disk that takes the beginning of a file and then no more."""

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)


def test_a_text_is_returned_and_written(tmp_path):
    assert written("ä → b", None) == "ä → b"
    assert written("ä → b", tmp_path / "page.html") == "ä → b"
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "ä → b"


def test_a_full_disk_leaves_the_old_page_and_is_named(tmp_path, full_disk):
    page = tmp_path / "page.html"
    page.write_text("old")
    with pytest.raises(OSError, match="No space left") as caught:
        written("new", page)
    assert caught.value.filename == str(page)
    assert page.read_text() == "old" and list(tmp_path.iterdir()) == [page]


def test_a_link_is_followed_and_a_device_stays_one(tmp_path):
    (tmp_path / "there.html").write_text("old")
    (tmp_path / "link.html").symlink_to("there.html")
    written("new", tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink() and (tmp_path / "there.html").read_text() == "new"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    written("through", pipe)
    assert os.read(reader, 100) == b"through"
    os.close(reader)


def test_the_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        written("text", tmp_path / "nowhere" / "page.html")
    assert caught.value.filename == str(tmp_path / "nowhere" / "page.html")


def test_the_answer_is_shown_although_its_page_cannot_be_written(tmp_path, full_disk, capsys):
    from pindown import ReluNetwork
    from pindown.cli.equivalence import diff

    model = tmp_path / "model.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        ReluNetwork.from_layers([([[1.0]], [0.0]), ([[1.0]], [0.0])]).save(model)
    with pytest.raises(OSError, match="No space left"):
        diff(model, model, html=str(tmp_path / "page.html"))
    assert "SAME" in capsys.readouterr().out and not (tmp_path / "page.html").exists()

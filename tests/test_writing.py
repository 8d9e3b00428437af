"""Files are written whole, with the right mode, and leave nothing behind."""

from __future__ import annotations

import os

import pytest

from armdyn.files import text
from armdyn.files.text import write_text, written_whole


@pytest.mark.skipif(os.name == "nt", reason="modes say nothing there")
def test_modes(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the mask belongs to the whole process"))
    plain = tmp_path / "plain"
    plain.touch()
    new = tmp_path / "new.toml"
    write_text(new, "x")
    assert new.stat().st_mode == plain.stat().st_mode
    for mode in (0o600, 0o640, 0o444):
        new.chmod(mode)
        write_text(new, "y")
        assert new.stat().st_mode & 0o777 == mode
        assert new.read_text() == "y"


def test_after_an_error_the_old_content_is_there(tmp_path):
    path = tmp_path / "arm.toml"
    write_text(path, "old")

    def half() -> None:
        with written_whole(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_is_removed(tmp_path):
    path = tmp_path / "arm.toml"
    old, new, other = (tmp_path / name for name in (".arm.toml.1.tmp", ".arm.toml.2.tmp", ".leg.toml.1.tmp"))
    for left in (old, new, other):
        left.write_text("half")
    for left in (old, other):
        os.utime(left, (1e9, 1e9))
    write_text(path, "whole")
    assert sorted(tmp_path.iterdir()) == sorted([path, new, other])
    assert text.STRAY >= 60


def test_an_identification_writes_all_its_files_or_none(tmp_path, monkeypatch):
    """The files of one estimate belong together: when the last cannot be made, the old ones stay."""
    from armdyn.cli import identify_

    class Found:
        def save(self, path):
            path.write_text("new arm")

        def to_urdf(self, path, force):
            path.write_text("new urdf")

        def report(self, path):
            raise OSError("no page")

    monkeypatch.setattr(identify_, "_data", lambda found: {})
    (tmp_path / "arm.toml").write_text("old arm")
    with pytest.raises(OSError, match="no page"):
        identify_._write(Found(), tmp_path, True)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("arm.toml", "old arm")]
    monkeypatch.setattr(Found, "report", lambda self, path: path.write_text("page"))
    written = identify_._write(Found(), tmp_path, True)
    assert [p.read_text() for p in written] == ["new arm", "new urdf", "{}\n", "page"]

"""Deployed folders: they build as they are, agree with the kernels, and are written whole or not at all."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.errors import FileError, InputError
from armdyn.files.text import write_folder

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="no C compiler or no make on this machine"
)


def run(*command, where):
    done = subprocess.run(list(map(str, command)), cwd=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_gcc
def test_the_folder_builds_as_it_is(tmp_path):
    files = armdyn.deploy(armdyn.load("planar3"), tmp_path / "c")
    names = {path.name for path in files}
    assert names == {"planar3.h", "planar3.c", "test_planar3.c", "Makefile", "README.md"}
    out = run("make", "test", "CFLAGS=-std=c99 -O0 -Wall -Wextra -Wpedantic -Wconversion -Werror", where=tmp_path / "c")
    assert "0 failed" in out


def test_the_command(tmp_path):
    args = ["deploy", "planar3", "-o", str(tmp_path / "c"), "--quantity", "bias", "--dtype", "float32", "--json"]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    assert all(path.startswith(str(tmp_path)) for path in json.loads(done.stdout))
    assert "const float *q" in (tmp_path / "c" / "planar3.h").read_text()
    assert "`bias`" in (tmp_path / "c" / "README.md").read_text()


def test_bad_requests_say_what_is_available(tmp_path):
    arm = armdyn.load("planar3")
    with pytest.raises(InputError, match="unknown target 'ada'; available: c"):
        armdyn.deploy(arm, tmp_path / "x", "ada")
    with pytest.raises(InputError, match="unknown dtype 'half'; available: double, float, float64, float32"):
        armdyn.deploy(arm, tmp_path / "x", dtype="half")
    assert not (tmp_path / "x").exists()


def test_a_new_folder_appears_whole_or_not_at_all(tmp_path):
    where = tmp_path / "new" / "folder"
    written = write_folder(where, {"a.txt": b"1", "lib/b.txt": b"2"})
    assert [path.read_bytes() for path in written] == [b"1", b"2"]
    write_folder(where, {"lib/b.txt": b"3", "more/c.txt": b"4"})
    assert (where / "lib" / "b.txt").read_bytes() == b"3"
    assert (where / "a.txt").read_bytes() == b"1"
    with pytest.raises(FileError, match="cannot be written"):
        write_folder(tmp_path / "other", {"a": b"1", "a/b": b"2"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new"]

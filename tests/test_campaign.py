"""The standing campaign: its attacks run, a planted defect is found and shrunk, and the run tells by its exit code."""

from __future__ import annotations

import io
import os
import signal
import threading
import time

import pytest
from rich.console import Console

pytest.importorskip("pinocchio", reason="Pinocchio, which the campaign compares with, is not installed")

import attacks
import attacks_on_files
import campaign
from armdyn.errors import FileError
from armdyn.values import cached_property

LINES = [f"line {k}" for k in range(100)]


@pytest.mark.parametrize("name", ["layouts", "files", "cache", "writers", "forks", "trees"])
def test_an_attack_finds_nothing(name: str, tmp_path):
    assert attacks.ATTACKS[name](3, tmp_path) is None


def test_a_planted_defect_is_found_and_shrunk(tmp_path, monkeypatch):
    def load(path):
        if "link" in path.read_text(errors="replace"):
            raise KeyError("planted")
        raise FileError("nothing in it")

    monkeypatch.setattr(attacks_on_files.armdyn, "load", load)
    monkeypatch.setattr(attacks_on_files, "_examples", lambda suffix: ["\n".join([*LINES, "<link/>", *LINES])])
    out = io.StringIO()
    failed = campaign.run(0.01, 5, ["files"], tmp_path / "out", Console(file=out, width=200))
    assert failed > 0
    assert "files, seed 5: KeyError: 'planted'" in out.getvalue()
    shown = sorted((tmp_path / "out").iterdir())[0].read_text()
    assert "link" in shown
    assert len(shown.splitlines()) == 1


def test_what_is_needed_for_a_failure_is_kept():
    parts = attacks_on_files.shrunk(list(range(50)), lambda kept: {7, 33} <= set(kept))
    assert list(parts) == [7, 33]


def test_a_fork_while_a_thread_computes_an_attribute():
    """The lock of `functools.cached_property` would stay held in the child, up to Python 3.11."""

    class Slow:
        @cached_property
        def value(self) -> int:
            time.sleep(0.3)
            return 1

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        os._exit(Slow().value)
    thread.join()
    assert os.waitpid(child, 0)[1] == 1 << 8
    slow = Slow()
    assert slow.value is slow.value

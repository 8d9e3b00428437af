"""Every example runs, warns of nothing and says something; its own assertions are the test of what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
WRITES = {"05_simulate_and_animate": ("fall.html", "animation.html"), "08_emit_c_and_call_it": ("ur5.c", "ur5.h")}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    written = WRITES.get(path.stem, ())
    command = [sys.executable, "-W", "error", str(path), *([str(tmp_path)] if written else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.strip()
    for name in written:
        assert (tmp_path / name).stat().st_size > 0


def test_examples_are_numbered_documented_and_shown():
    assert [path.stem[:2] for path in EXAMPLES] == [f"{k:02}" for k in range(1, len(EXAMPLES) + 1)]
    page = (ROOT / "docs" / "examples.md").read_text()
    for path in EXAMPLES:
        text = path.read_text()
        assert text.startswith('"""'), path
        assert len(text.splitlines()) <= 60, f"{path.name} is too long for an example"
        assert re.search(rf"literalinclude\}} \.\./examples/{path.name}\b", page), f"{path.name} is not in the docs"

"""Every guarantee that is printed names a test, and the test exists."""

from __future__ import annotations

import re

import pytest

from pages import ROOT

PAGE = ROOT / "docs" / "concepts" / "guarantees.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| guarantee", "|---"))
]


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:60] for row in ROWS])
def test_a_guarantee_names_its_tests(row):
    assert len(row) == 2
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", row[1])
    assert named
    for file, test in named:
        assert re.search(rf"^ *def {test}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"), re.MULTILINE), test

"""Everything the README and CONTRIBUTING show is run, or is there."""

from __future__ import annotations

import contextlib
import io

import pytest
from typer.testing import CliRunner

import armdyn
from pages import ROOT, blocks, commands, links, make_targets

README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def test_the_code_runs_and_prints_what_is_shown():
    (code,) = blocks(README, "python")
    (shown,) = blocks(README, "text")
    said = io.StringIO()
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(said):
        exec(compile(code, "README.md", "exec"), names)
    assert said.getvalue() == shown
    assert names["H"].shape == (6, 6)
    assert names["tau"].shape == (100_000, 6)


@pytest.mark.parametrize("words", [c for c in commands(README) if c[0] == "armdyn"], ids=" ".join)
def test_the_commands_run(words):
    from armdyn.cli import app

    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, done.output
    assert done.output.strip()


@pytest.mark.parametrize("page", [README, CONTRIBUTING], ids=lambda page: page.name)
def test_make_targets_and_links_exist(page):
    for words in commands(page):
        if words[0] == "make":
            assert words[1] in make_targets()
    for link in links(page):
        assert (page.parent / link).exists(), f"{page.name} links to {link}, which is not there"


def test_numbers_it_claims():
    text = README.read_text()
    puma = armdyn.load("puma560")
    cost = armdyn.cost(puma, "inertia_matrix", "meeting_frame").compiled
    claim = " ".join(text.split())
    assert f"takes {cost.mul} multiplications and {cost.add} additions" in claim
    published = armdyn.cost(puma, "inertia_matrix", "lin_fang_1")
    first, second = published.published, published.compiled
    assert f"Formulation 1 of Lin & Fang takes {first.mul} and {first.add} as published" in claim
    assert f"and {second.mul} and {second.add} when compiled the same way" in claim
    assert (ROOT / "docs/images/report.png").stat().st_size < 250_000

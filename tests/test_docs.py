"""The documentation says what is true: its code runs, its commands, names and links exist, nothing is left out.

`make docs` builds the pages with warnings as errors; that takes too long for the tests.
"""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from typer.main import get_command

import armdyn
from armdyn.cli import app
from pages import ROOT, blocks, commands, links, make_targets

DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
IDS = [str(path.relative_to(DOCS)) for path in PAGES]


def every_command():
    for name, command in get_command(app).commands.items():
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {k}", c) for k, c in inner.items()) if inner else [(name, command)]


COMMANDS = dict(every_command())


def parse(words: list[str]) -> None:
    """Parse a command line as the program would, without running it."""
    assert words[0] == "armdyn"
    name = " ".join(words[1:3]) if " ".join(words[1:3]) in COMMANDS else words[1]
    assert name in COMMANDS, f"no command {name!r}"
    COMMANDS[name].make_context(name, words[1 + len(name.split()) :])


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_a_page(page):
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
    for link in links(page):
        assert (page.parent / link).exists(), f"links to {link}, which is not there"
    for words in commands(page):
        if words[0] == "armdyn" and not words[1].startswith("-"):
            parse(words)
        if words[0] == "make" and words[1] != "-C":
            assert words[1] in make_targets()


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_names_in_code_exist(page):
    text = page.read_text(encoding="utf-8")
    for block in blocks(page, "python"):
        if ">>>" not in block:
            compile(block, page.name, "exec")
    for name in set(re.findall(r"\barmdyn\.([a-z_]\w*)\(", text)):
        assert hasattr(armdyn, name), f"armdyn.{name}"
    for name in set(re.findall(r"(?<![\w.])arm\.([a-z_]\w*)", text)) - {"urdf", "toml", "py"}:
        assert hasattr(armdyn.Arm, name), f"arm.{name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_documented(name):
    command = COMMANDS[name]
    assert command.help, "no docstring"
    assert command.epilog, "no example"
    assert command.epilog.startswith("Example: armdyn ")
    parse(shlex.split(command.epilog.removeprefix("Example: ")))
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{parameter.name} has no help"


def test_public_names_are_in_the_api():
    text = (DOCS / "reference" / "api.rst").read_text()
    listed = [*re.findall(r"^ +armdyn\.(\w+)$", text, re.MULTILINE), "ArmdynError"]  # a module has all errors
    assert armdyn.__all__ == listed, "one order, one grouping"
    source = (DOCS.parent / "src/armdyn/__init__.py").read_text().partition("__all__ = [")[2].partition("\n]")[0]
    for title in re.findall(r"^    # (.+)$", source, re.MULTILINE):
        assert re.search(rf"^{title}\n-+$", text, re.MULTILINE), f"no group {title}"
    from armdyn import simulation

    missing = [name for name in simulation.__all__ if not re.search(rf"\b{name}\b", text)]
    assert not missing


def test_every_quantity_with_a_choice_is_on_the_formulations_page():
    from armdyn.formulations import QUANTITIES

    text = (DOCS / "formulations" / "index.rst").read_text()
    shown = set(re.findall(r"formulations:: (\w+)", text))
    assert shown <= set(QUANTITIES)
    chosen = {name for name, quantity in QUANTITIES.items() if any(m.source for m in quantity.methods)}
    assert chosen - {"natural_regressor"} <= shown


def test_claims_on_the_formulations_page(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.setattr(sys, "path", [str(DOCS / "_extensions"), *sys.path])
    import armdyn_pages as extension

    assert set(extension.CLAIMS) <= set(armdyn.methods("inertia_matrix"))
    assert extension.claimed("lin_fang_1") == "407M\xa0301A"
    assert extension.claimed("lin_fang_3") == "440M\xa0331A"
    said = re.search(r"has (\d+) instructions", extension.SmallProcessor.text(None))
    assert said is not None
    assert 125 + 90 < int(said[1]) < 2 * 480  # no less than its operations


def test_a_search_finds_quantities_by_the_words_of_others(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.setattr(sys, "path", [str(DOCS / "_extensions"), *sys.path])
    import armdyn_pages as extension

    pages = {name: extension.quantity_page(name) for name in extension.described()}
    for words, name in (("gravity torque", "gravity_load"), ("mass matrix", "inertia_matrix")):
        assert words in pages[name]
        assert f"armdyn.Arm.{name}" in pages[name]
    assert "lin_1991" in pages["bias"]


def test_the_arm_file_of_the_tutorial_is_an_arm(tmp_path):
    text = blocks(DOCS / "tutorials" / "dh.md", "toml")
    path = tmp_path / "two_link.toml"
    path.write_text("\n".join(text), encoding="utf-8")
    arm = armdyn.load(path)
    assert arm.check() == []
    q = np.array([0.3, 0.4])
    mass, length, com = (1.0, 0.8), 0.5, (0.25, 0.2)
    lever = mass[0] * com[0] * np.cos(q[0]) + mass[1] * (length * np.cos(q[0]) + com[1] * np.cos(q.sum()))
    assert arm.gravity_load(q)[0] == pytest.approx(9.81 * lever)
    assert arm.jacobian(q, frame="camera").shape == (6, 2)


def test_the_controller_of_the_tutorial_compiles(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    loop, call = blocks(DOCS / "tutorials" / "control.md", "c")
    arm = armdyn.load("ur5")
    arm.emit_c(tmp_path, ("inverse_dynamics",))
    (tmp_path / "loop.c").write_text(loop)
    flags = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-c"]
    subprocess.run([*flags, "loop.c"], cwd=tmp_path, check=True)
    arm.emit_c(tmp_path, ("inverse_dynamics",), parameters="runtime")
    body = f'#include "ur5.h"\nvoid f(double *q, double *qd, double *qdd, double *tau)\n{{\n{call}}}\n'
    (tmp_path / "call.c").write_text(body)
    subprocess.run([*flags, "-Wno-uninitialized", "-Wno-maybe-uninitialized", "call.c"], cwd=tmp_path, check=True)


def test_the_start_page_lists_every_extra():
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    rows = re.findall(r"^\| (`.*?) \|", (DOCS / "start.md").read_text().split("## An arm")[0], re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(project["optional-dependencies"])


def test_the_contents_have_seven_entries_and_every_page_stands_in_one():
    text = (ROOT / "docs" / "index.md").read_text()
    parts = re.findall(r"```\{toctree\}\n:hidden:\n:caption: (.*)\n\n([^`]*)```", text)
    captions = [caption for caption, _ in parts]
    assert captions == ["Start", "Tutorials", "How-to", "Concepts", "Reference", "Papers", "Benchmarks"]
    listed = [page for _, pages in parts for page in pages.split()]
    assert len(set(listed)) == len(listed)
    there = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*") if path.suffix in (".md", ".rst")]
    own = ("adr", "formulations", "_build", "_templates")  # with an index of their own, or no pages
    pages = {
        str(path.with_suffix(""))
        for path in there
        if path.parts[0] not in own and path.parts[:2] != ("reference", "api")
    }
    assert pages - {"index"} == {page for page in listed if not page.endswith("/index")}


@pytest.mark.parametrize("path", sorted((ROOT / "docs/tutorials").glob("*.md")), ids=lambda path: path.stem)
def test_a_tutorial_says_what_you_will_have(path):
    first = path.read_text().split("\n## ")[0]
    assert re.search(r"At the end of this page you\s+have", first)

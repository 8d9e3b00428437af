"""What is said of the package in several files is the same in all of them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib

import pytest

import armdyn
from pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_one_version_and_licence():
    citation = (ROOT / "CITATION.cff").read_text()
    recipe = (ROOT / "packaging/conda/meta.yaml").read_text()
    assert "version" in PROJECT["dynamic"]  # from armdyn.__version__
    assert f"\nversion: {armdyn.__version__}\n" in citation
    assert f'set version = "{armdyn.__version__}"' in recipe
    assert re.search(
        rf"^## {re.escape(armdyn.__version__)} - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )
    assert PROJECT["license"] == "Apache-2.0"
    assert f"license: {PROJECT['license']}" in citation
    assert f"license: {PROJECT['license']}" in recipe


def test_the_recipe_requires_what_the_project_does():
    recipe = (ROOT / "packaging/conda/meta.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    listed = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    assert listed == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}


def test_pythons_that_are_claimed_are_in_the_matrix_and_in_the_trials():
    claimed = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    assert re.search(r"python: \[(.*)\]", workflow)[1] == ", ".join(f'"{version}"' for version in claimed)
    assert list(script("versions").PYTHONS) == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"


def test_lowest_versions_are_those_of_the_project():
    lowest = script("versions").lowest()
    assert len(lowest) == len(PROJECT["dependencies"])
    assert "numpy==2.0" in lowest
    assert "typer==0.16" in lowest
    assert not [line for line in lowest if not re.fullmatch(r"[a-z]+==[\d.]+", line)]


def test_a_command_that_fails_ends_the_build_with_its_words(capsys):
    dist = script("dist")
    with pytest.raises(SystemExit, match="no such thing"):
        dist.run("python3", "-c", "raise SystemExit('no such thing')")
    assert dist.run("python3", "-c", "print(1)") == "1\n"


def test_no_address_of_a_registry_or_project_page_stands_in_the_repository():
    words = ["pypi" + ".org", "files.python" + "hosted", "registry.npm" + "js", "conda.ana" + "conda"]
    found = subprocess.run(
        ["git", "grep", "-lIF", *[part for word in words for part in ("-e", word)]],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if found.returncode not in (0, 1):
        pytest.skip("not a git checkout")
    assert found.stdout == ""

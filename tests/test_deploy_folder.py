"""What `deploy` does to a folder: its manifest, what it removes, what it refuses, and the trial of the code."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.codegen.text import c
from armdyn.codegen.text.c import Function
from armdyn.deployment import TARGETS, manifest, trial
from armdyn.deployment.controllers import chosen
from armdyn.deployment.request import CodeTarget, Request
from armdyn.errors import ComputationError, InputError
from armdyn.graph.node import OPERATIONS
from armdyn.graph.program import evaluate, trace

needs_compilers = pytest.mark.skipif(
    not all(map(shutil.which, ("cc", "g++", "make"))), reason="no cc, g++ or make on this machine"
)
QUICK = {"quantities": ("gravity_load",), "parameters": "baked", "measure_stack": False, "build": False}


def files(where):
    return sorted(path.relative_to(where).as_posix() for path in where.rglob("*") if path.is_file())


def test_the_manifest_lists_every_file(tmp_path):
    written = armdyn.deploy(armdyn.load("planar3"), tmp_path / "x", **QUICK)
    about = json.loads((tmp_path / "x" / "manifest.json").read_text())
    assert sorted(about["outputs"]) == sorted(path.name for path in written if path.name != "manifest.json")
    for name, digest in about["outputs"].items():
        assert hashlib.sha256((tmp_path / "x" / name).read_bytes()).hexdigest() == digest
    assert about["products"] == ["test_planar3"]
    assert about["test"] == "not run, as requested"


def test_what_the_last_run_wrote_is_removed(tmp_path):
    """Two robots and two targets into one folder; what make left there is no reason to refuse."""
    armdyn.deploy(armdyn.load("planar3"), tmp_path, **QUICK)
    (tmp_path / "test_planar3").write_bytes(b"built by make")
    (tmp_path / ".gitignore").write_text("test_*")
    armdyn.deploy(armdyn.load("scara"), tmp_path, "cpp", **QUICK)
    names = ["Makefile", "README.md", "manifest.json", "scara.hpp", "test_scara.cpp"]
    assert files(tmp_path) == sorted([".gitignore", *names, "test_planar3"])
    written = armdyn.deploy(armdyn.load("scara"), tmp_path, "cpp", **QUICK)
    assert sorted(path.name for path in written) == sorted(names)


def test_files_of_others_and_changed_files_are_refused(tmp_path):
    arm = armdyn.load("planar3")
    (tmp_path / "loop.c").write_text("int loop;")
    with pytest.raises(InputError, match=r"contains files of others, or generated files that were changed: loop\.c\."):
        armdyn.deploy(arm, tmp_path, **QUICK)
    assert files(tmp_path) == ["loop.c"]
    armdyn.deploy(arm, tmp_path, overwrite=True, **QUICK)
    (tmp_path / "loop.c").unlink()
    (tmp_path / "planar3.c").write_text("/* mine now */")
    with pytest.raises(InputError, match=r"were changed: planar3\.c\."):
        armdyn.deploy(armdyn.load("scara"), tmp_path, **QUICK)
    assert not (tmp_path / "scara.c").exists()
    armdyn.deploy(armdyn.load("scara"), tmp_path, overwrite=True, **QUICK)
    assert (tmp_path / "planar3.c").read_text() == "/* mine now */", "a changed file is never removed"
    assert not (tmp_path / "planar3.h").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; expected a folder"):
        armdyn.deploy(arm, tmp_path / "file", **QUICK)


def test_a_manifest_cannot_reach_outside_its_folder(tmp_path):
    """A manifest may come with a downloaded folder."""
    (tmp_path / "outside.txt").write_text("kept")
    digest = hashlib.sha256(b"kept").hexdigest()
    folder = tmp_path / "x"
    folder.mkdir()
    names = ["../outside.txt", str(tmp_path / "outside.txt"), "a/../../outside.txt"]
    (folder / "manifest.json").write_text(json.dumps({"outputs": dict.fromkeys(names, digest), "products": ["."]}))
    with pytest.raises(InputError, match=r"manifest\.json"):
        armdyn.deploy(armdyn.load("planar3"), folder, **QUICK)
    armdyn.deploy(armdyn.load("planar3"), folder, overwrite=True, **QUICK)
    assert (tmp_path / "outside.txt").read_text() == "kept"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"outputs": 3}', '{"outputs": {"a": 1}, "products": 3}', "\x00"])
def test_a_manifest_that_is_none_counts_as_a_file_of_others(text, tmp_path):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(InputError, match=r"files of others.*manifest\.json"):
        armdyn.deploy(armdyn.load("planar3"), tmp_path, **QUICK)


def test_names_that_differ_in_case_only(tmp_path, monkeypatch):
    """On a file system without case, the file of the last run is the one that was just written."""
    manifest.write(tmp_path, manifest.with_manifest({"Arm.h": b"1", "old/x.h": b"1"}, {}), False)
    (tmp_path / "Arm.h").rename(tmp_path / "arm.h")
    (tmp_path / "Arm.h").hardlink_to(tmp_path / "arm.h")
    monkeypatch.setattr(manifest, "write_folder", lambda where, contents: [where / name for name in ("arm.h",)])
    manifest.write(tmp_path, manifest.with_manifest({"arm.h": b"2"}, {}), True)
    assert files(tmp_path) == ["Arm.h", "arm.h", "manifest.json"], "old/x.h and its folder are gone"
    assert not (tmp_path / "old").exists()


@needs_compilers
@pytest.mark.parametrize("target", ["c", "cpp"])
def test_code_that_does_not_compile_is_not_written(target, tmp_path, monkeypatch):
    genuine = c.statements
    monkeypatch.setattr(f"armdyn.codegen.text.{target}.statements", lambda *a: [*genuine(*a), "    wrong wrong;"])
    options = {**QUICK, "build": True}
    with pytest.raises(ComputationError, match=r"not pass its own test.*error: .*wrong"):
        armdyn.deploy(armdyn.load("planar3"), tmp_path / "x", target, **options)
    assert not (tmp_path / "x").exists()
    done = CliRunner().invoke(app, ["deploy", "planar3", "--target", target, "-o", str(tmp_path / "x")])
    assert done.exit_code == 1
    assert isinstance(done.exception, ComputationError)
    assert not (tmp_path / "x").exists()


@needs_compilers
def test_code_that_computes_something_else_is_not_written(tmp_path, monkeypatch):
    genuine = c.statements
    monkeypatch.setattr(c, "statements", lambda *a: [*genuine(*a), "    g[0] += 1.0;"])
    with pytest.raises(ComputationError, match="gravity_load: vector 0 differs"):
        armdyn.deploy(armdyn.load("planar3"), tmp_path / "x", **{**QUICK, "build": True})


@needs_compilers
def test_the_result_of_the_test_is_told(tmp_path):
    done = CliRunner().invoke(app, ["deploy", "planar3", "--quantity", "bias", "--no-stack", "-o", str(tmp_path / "x")])
    assert done.exit_code == 0, done.output
    assert "its test: 10 passed, 0 failed" in done.output
    assert not (tmp_path / "x" / "test_planar3").exists()


def test_without_tools_the_test_is_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(trial.shutil, "which", lambda name: None)
    armdyn.deploy(armdyn.load("planar3"), tmp_path, **{**QUICK, "build": True})
    about = json.loads((tmp_path / "manifest.json").read_text())
    assert about["test"] == "not run, because this machine has no make and no cc"


def test_only_the_chosen_target_is_loaded():
    script = (
        "import sys, tempfile, armdyn\n"
        "folder = tempfile.mkdtemp()\n"
        "armdyn.deploy(armdyn.load('planar3'), folder, 'c', ('gravity_load',), measure_stack=False, build=False)\n"
        "print(*(name for name in sys.modules if 'fmu' in name or 'embedded' in name or name.endswith('cpp')))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_keeps_the_contract(name, tmp_path):
    """Its files have a README and a Makefile with a test, no two names differ in case only, options are checked."""
    target, arm = TARGETS[name], armdyn.load("planar3")
    assert isinstance(target, CodeTarget)
    assert target.name == name
    assert target.tools
    quantities = None if target.binary else ("gravity_load",)
    options = {"cpus": ("rv64",)} if target.cpus else {}
    request = Request(arm, quantities, measure_stack=False, binary=not target.binary, **options)
    contents = target.files(request)
    assert dict(target.files(request)) == dict(contents), "the same request gives the same bytes"
    assert "README.md" in contents
    assert "\ntest:" in f"\n{contents['Makefile'].decode()}"
    assert len({path.casefold() for path in contents}) == len(contents)
    readme = contents["README.md"].decode()
    for path in contents.keys() - {"README.md"}:
        assert path in readme or path.split("/")[0] in readme, path
    laws = chosen(arm, ("adaptive",), True)
    claims = {"controllers": laws, "cpus": ("rv32",), "error_bound": True}
    for capability, given in claims.items():
        if getattr(target, capability):
            asked = Request(arm, quantities, measure_stack=False, parameters="baked", **{**options, capability: given})
            without = Request(arm, quantities, measure_stack=False, parameters="baked", **options)
            written = target.files(asked)
            assert written != target.files(without), f"{capability} changes nothing"
            if capability == "controllers":
                summary = laws[0].law.summary.encode()
                assert any(summary in text for path, text in written.items() if path != "README.md"), "no law's code"
    options = {"controllers": ["adaptive"], "cpus": ["rv64"], "binary": False, "error_bound": True}
    for capability, given in options.items():
        if not getattr(target, capability):
            with pytest.raises(InputError, match=rf"for the targets? .*; got .* for the target {name}"):
                armdyn.deploy(arm, tmp_path / "x", name, parameters="baked", **{capability: given})
    assert not (tmp_path / "x").exists()
    listed = (Path(__file__).parents[1] / "docs" / "tutorials" / "deploy.md").read_text(encoding="utf-8")
    for command in ("deploy", "pipeline"):
        assert re.search(rf"\b{name}\b", CliRunner().invoke(app, [command, "--help-all"]).output), command
    assert f'"{name}": ' in armdyn.deploy.__doc__
    assert f"`{name}`" in listed


def made(target, contents, folder):
    """Run the test of a folder: the process, and the files that it leaves beside its contents."""
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    hidden = (*trial._NOT_PASSED_ON, "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    run = subprocess.run(
        ["make", "-s", "test", *target.quick], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return run, set(files(folder)) - contents.keys()


def every_operation() -> Function:
    """A function with all operations that programs have, on numbers of either sign."""
    names = [name for name in OPERATIONS if name != "fma"]  # decided on by the machine code alone

    def function(x):
        low = x[0] - x[1]
        apart = {"sign": (low,), "sin": (7 * low,), "cos": (5 * low,), "sub": (x[2], low)}
        return [x[0].graph.raw(name, (apart.get(name) or tuple(x))[: OPERATIONS[name].arity]) for name in names]

    program = trace("operations", function, {"x": (3,)}, [("y", (len(names),))])
    rows = np.random.default_rng(0).uniform(0.2, 2.0, (8, 3))
    values = np.array([evaluate(program, row.tolist())[0] for row in rows])
    assert np.isfinite(values).all()
    return Function(program, "every operation", (rows,), (values,))


@pytest.mark.parametrize("name", TARGETS)
def test_the_test_in_every_folder_passes_and_can_fail(name, tmp_path, monkeypatch):
    """It passes, leaves nothing but what it lists, and fails where a test vector or the code is wrong."""
    target = TARGETS[name]
    if target.binary or target.missing is not CodeTarget.missing:
        pytest.skip("test_fmu.py and tests/bridges/test_gpu_text.py run these")
    if any(shutil.which(tool) is None for tool in target.tools):
        pytest.skip(f"no {' or no '.join(target.tools)} on this machine")
    options = {"cpus": ("rv64",)} if target.cpus else {}
    options |= {"functions": {"operations": every_operation()}}
    request = Request(armdyn.load("planar3"), ("gravity_load", "inertia_matrix"), measure_stack=False, **options)
    contents = target.files(request)
    run, left = made(target, contents, tmp_path / "good")
    assert run.returncode == 0, run.stdout + run.stderr
    products = manifest.products(contents)
    beyond = {file for file in left if not any(file == one or file.startswith(f"{one}/") for one in products)}
    assert not beyond, f"`make clean` leaves {beyond}"
    genuine = Request.package

    def wrong(self, *given, **more):
        package = genuine(self, *given, **more)
        functions = {}
        for key, one in package.functions.items():
            *others, last = one.outputs
            last = np.array(last)
            last[(-1,) * last.ndim] += 0.1  # the last entry of the last vector
            functions[key] = replace(one, outputs=(*others, last))
        return replace(package, functions=functions)

    monkeypatch.setattr(Request, "package", wrong)
    run, _ = made(target, target.files(request), tmp_path / "wrong")
    assert run.returncode != 0, "its test passes with a wrong test vector"
    for key in ("gravity_load", "inertia_matrix", "operations"):
        assert key in run.stdout + run.stderr, f"its test does not say that {key} differs"


def test_webassembly_is_tested_by_node(tmp_path):
    if shutil.which("node") is None or shutil.which("make") is None:
        pytest.skip("no Node.js or no make on this machine")
    armdyn.deploy("planar3", tmp_path, "wasm", ("bias", "inertia_matrix"), dtype="float64")
    assert json.loads((tmp_path / "manifest.json").read_text())["test"].endswith("15 passed, 0 failed")
    text = (tmp_path / "test_planar3.mjs").read_text()
    (tmp_path / "test_planar3.mjs").write_text(text.replace('"outputs": [[', '"outputs": [[9', 1))
    done = subprocess.run(["make", "test"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "14 passed, 1 failed" in done.stdout
    with pytest.raises(InputError, match="written in double precision; got dtype float32"):
        armdyn.deploy("planar3", tmp_path / "x", "wasm", dtype="float32")


@pytest.mark.parametrize("target", ["c", "cpp"])
def test_error_bounds_are_those_of_emit(target, tmp_path):
    words = ["deploy", "planar3", "--target", target, "--quantity", "gravity_load", "--parameters", "baked"]
    words += ["--no-build", "--no-stack", "--no-friction", "-o", str(tmp_path / target)]
    done = CliRunner().invoke(app, [*words, "--error-bound", *(f"--range=q:{k}=-1,1" for k in (1, 2, 3))])
    assert done.exit_code == 0, done.output
    deployed = next((tmp_path / target).glob("planar3.h*")).read_text()
    boxes = [[-1, 1]] * 3
    armdyn.load("planar3").emit_c(tmp_path / "emitted", ("gravity_load",), error_bound={"q": boxes})
    emitted = (tmp_path / "emitted" / "planar3.h").read_text()
    lines = emitted[emitted.index("Rounding error of g at most") : emitted.index("multiplications")].splitlines()[:-1]
    assert len(lines) >= 4
    assert "\n".join(lines) in deployed
    refused = CliRunner().invoke(app, [*words, "--range", "q:1=-1,1"])
    assert "--range is for --error-bound" in str(refused.exception)
    with pytest.raises(InputError, match="need parameters='baked'"):
        armdyn.deploy("planar3", tmp_path / "x", target, error_bound=True)

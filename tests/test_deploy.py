"""Deployed folders: they build as they are, agree with the kernels, and are written whole or not at all."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.algebra import exact
from armdyn.chain.joint import JointForces, Ripple
from armdyn.cli import app
from armdyn.codegen.text.cpp import namespace
from armdyn.deployment import TARGETS
from armdyn.deployment.stack import parsed
from armdyn.errors import FileError, InputError
from armdyn.files.arrays import placement
from armdyn.files.description import Frame
from armdyn.files.text import write_folder
from pages import ROOT, blocks
from random_trees import TreeKind, random_tree

GOLDEN = Path(__file__).parent / "golden"
EIGEN = Path("/usr/include/eigen3")
STRICT = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
SANE = "-fsanitize=address,undefined -fno-sanitize-recover"
FLAGS = {
    "c": f"CFLAGS=-std=c99 -O0 {STRICT}",
    "cpp": f"CXXFLAGS=-std=c++17 -O0 {STRICT}",
}
HELD = 1.3, np.array([0.1, -0.2, 0.3]), np.array([0.03, 0.04, 0.05, 0.001, 0.002, -0.003])
QUANTITIES = {
    "panda": ("inverse_dynamics",),
    "stanford": ("inverse_dynamics", "forward_dynamics"),
    "hand": ("inverse_dynamics", "forward_dynamics"),
    "learned": ("inverse_dynamics", "forward_dynamics"),
}

needs_compilers = pytest.mark.skipif(
    not all(map(shutil.which, ("gcc", "g++", "make"))), reason="no gcc, g++ or make on this machine"
)


def run(*command, where):
    done = subprocess.run(list(map(str, command)), cwd=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def mimicking():
    """A tree with mimic joints, a prismatic joint, friction and a named frame at one of its tips."""
    chain = random_tree(TreeKind(joints=6, mimic=0.5, rotors=True), 1)
    assert chain.has_mimics
    assert len(chain.tips) > 1
    return armdyn.Arm(
        "hand", chain, snap=0.0, frames=(Frame("palm", chain.bodies, placement((0, 0, 0.1), (0, 0.3, 0))),)
    )


def learned():
    """An arm that knows all that `identify` finds: static friction, offsets, springs, ripples, lossy gears, a tilt."""
    arm = armdyn.load("planar3").with_gravity((0.3, -9.7, 0.2))
    forces = JointForces(*map(exact, (0.4, 0.3)), (Ripple(2, exact(0.1), exact(0.2)),), exact(0.05), exact(0.1), 4)
    drives = {"viscous": exact(0.5), "coulomb": exact(0.6), "static": exact(0.9), "stribeck": exact(0.1)}
    joints = tuple(replace(joint, forces=forces, **drives) for joint in arm.given.joints)
    return replace(arm, name="learned", given=replace(arm.given, joints=joints))


ARMS = {
    "panda": (lambda: armdyn.load("panda"), {}),
    "stanford": (lambda: armdyn.load("stanford"), {}),
    "hand": (mimicking, {"frame": "palm"}),
    "learned": (learned, {}),
}


def library(target, where, name):
    """The deployed functions as a shared library of C functions."""
    if target == "c":
        run("gcc", "-std=c99", "-O1", "-shared", "-fPIC", "-o", "lib.so", f"{name}.c", "-lm", where=where)
    else:
        found = re.findall(r"^inline void (\w+)\((.*)\) noexcept$", (where / f"{name}.hpp").read_text(), re.MULTILINE)
        lines = [f'#include "{name}.hpp"', f"using namespace {name};"]
        for function, arguments in found:
            ports = re.findall(r"(input|output)(<\d+>) (\w+)", arguments)
            takes = ", ".join(f"{'const ' if way == 'input' else ''}scalar* {label}" for way, _, label in ports)
            given = ", ".join(f"{way}{size}({label})" for way, size, label in ports)
            lines.append(f'extern "C" void {name}_{function}({takes}) {{ {name}::{function}({given}); }}')
        (where / "lib.cpp").write_text("\n".join(lines))
        run("g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", "lib.so", "lib.cpp", where=where)
    return ctypes.CDLL(str(where / "lib.so"))


def call(function, kind, shape, *arrays):
    given = [np.ascontiguousarray(a, kind) for a in arrays]
    out = np.empty(shape, kind)
    function(*(a.ctypes.data_as(ctypes.c_void_p) for a in (*given, out)))
    return out.astype(float)


@needs_compilers
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("target", ["c", "cpp"])
@pytest.mark.parametrize("name", ARMS)
def test_agrees_with_the_kernels(name, target, dtype, tmp_path, rng):
    """The compiled folder against the arm's own kernels: another formulation, links in place of parameters."""
    make, options = ARMS[name]
    arm = make()
    armdyn.deploy(
        arm, tmp_path / "x", target, QUANTITIES[name], dtype=dtype, measure_stack=False, build=False, **options
    )
    functions = library(target, tmp_path / "x", name)
    kind, tolerance = np.dtype(dtype), 1e-12 if dtype == "float64" else 1e-4
    loaded = arm.with_payload(*HELD, **options)
    q, qd, third = rng.uniform(-1, 1, (3, arm.n)).astype(kind).astype(float)
    present = np.array(arm.minimal_parameters.values)
    held = call(functions[f"{name}_payload_parameters"], kind, len(present), *HELD, present)

    def close(got, truth):
        assert np.abs(got - truth).max() < tolerance * (1 + np.abs(truth).max())

    close(held, np.array(loaded.minimal_parameters.values))
    for parameters, truth in ((present, arm), (held, loaded)):
        kernel = truth.kernel("inverse_dynamics", "newton_euler", "python", friction=True)
        tau = call(functions[f"{name}_inverse_dynamics"], kind, arm.n, q, qd, third, parameters)
        close(tau, kernel(q, qd, third))
        if "forward_dynamics" in QUANTITIES[name]:
            qdd = call(functions[f"{name}_forward_dynamics"], kind, arm.n, q, qd, third, parameters)
            close(kernel(q, qd, qdd), third)


@needs_compilers
@pytest.mark.parametrize("target", ["c", "cpp"])
def test_the_folder_builds_as_it_is(target, tmp_path):
    """Without a warning, clean under sanitizers; with Eigen where it is."""
    files = armdyn.deploy(armdyn.load("scara"), tmp_path / "x", target, build=False)
    assert {"README.md", "Makefile"} < {path.name for path in files}
    out = run("make", "test", f"{FLAGS[target]} {SANE}", where=tmp_path / "x")
    assert "0 failed" in out
    vectors = 8 * 5 * (2 if target == "cpp" and EIGEN.is_dir() else 1)
    assert f"{vectors} passed" in out
    text = (tmp_path / "x" / "README.md").read_text()
    assert re.search(r"with `-std=\S+ -O2 -fstack-usage` when this folder was generated", text)
    assert len(re.findall(r"^\| `\w+` \| \d+ \|$", text, re.MULTILINE)) == 8


@needs_compilers
@pytest.mark.parametrize("target", ["c", "cpp"])
def test_the_read_me_file_is_true(target, tmp_path):
    """What it says to call compiles."""
    armdyn.deploy(
        armdyn.load("planar3"), tmp_path / "x", target, ("inverse_dynamics",), measure_stack=False, build=False
    )
    found = re.findall(rf"```{target}\n(.*?)```", (tmp_path / "x" / "README.md").read_text(), re.DOTALL)
    examples = [block for block in found if "#include" in block]
    assert len(examples) == (2 if target == "c" else 3)
    for block in examples:
        if "EIGEN" in block and not EIGEN.is_dir():
            continue
        head = [line for line in block.splitlines() if line.startswith("#")]
        body = [line for line in block.splitlines() if not line.startswith("#")]
        text = "\n".join([*head, "int main(void)", "{", *body, "return 0;", "}", ""])
        (tmp_path / "x" / f"example.{target}").write_text(text)
        compiler = ["gcc", "-std=c99"] if target == "c" else ["g++", "-std=c++17", f"-isystem{EIGEN}"]
        run(
            *compiler,
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-but-set-variable",
            "-c",
            f"example.{target}",
            where=tmp_path / "x",
        )


@needs_compilers
@pytest.mark.parametrize(("target", "compiler"), [("c", "gcc -std=c99"), ("cpp", f"g++ -std=c++17 -isystem{EIGEN}")])
def test_the_controllers_of_the_tutorial_compile(target, compiler, tmp_path):
    if target == "cpp" and not EIGEN.is_dir():
        pytest.skip("no Eigen on this machine")
    (code,) = blocks(ROOT / "docs" / "tutorials" / "deploy.md", target)
    wanted = ("inverse_dynamics", "gravity_load")
    armdyn.deploy(armdyn.load("panda"), tmp_path, target, wanted, measure_stack=False, build=False)
    (tmp_path / f"loop.{target}").write_text(code)
    run(*compiler.split(), "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"loop.{target}", where=tmp_path)


@needs_compilers
def test_an_array_of_the_wrong_size_does_not_compile(tmp_path):
    armdyn.deploy(
        armdyn.load("planar3"), tmp_path, "cpp", ("gravity_load",), parameters="baked", measure_stack=False, build=False
    )
    for size, wanted in ((3, 0), (2, 1)):
        body = f"std::array<double, {size}> q{{}}; double g[3]; planar3::gravity_load(q, g); return g[0] > 0;"
        (tmp_path / "x.cpp").write_text(f'#include "planar3.hpp"\nint main() {{ {body} }}\n')
        command = ["g++", "-std=c++17", "-fsyntax-only", "x.cpp"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == wanted, done.stderr


@pytest.mark.parametrize("target", ["c", "cpp"])
def test_golden_folder(target, tmp_path):
    """The text for one small arm, to the letter; ARMDYN_UPDATE_GOLDEN=1 writes it anew."""
    arm = armdyn.load("planar3")
    armdyn.deploy(
        arm, tmp_path, target, ("inertia_matrix", "gravity_load"), dtype="float", measure_stack=False, build=False
    )
    where = GOLDEN / "deploy" / target
    for path in sorted(set(tmp_path.iterdir()) - {tmp_path / "manifest.json"}):
        golden = where / path.name
        if os.environ.get("ARMDYN_UPDATE_GOLDEN"):
            where.mkdir(exist_ok=True, parents=True)
            golden.write_text(path.read_text())
        assert path.read_text() == golden.read_text(), f"{path.name} changed; ARMDYN_UPDATE_GOLDEN=1 accepts it"


def test_the_command(tmp_path):
    args = ["deploy", "planar3", "-o", str(tmp_path / "c"), "--quantity", "bias", "--dtype", "float32", "--json"]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    assert all(path.startswith(str(tmp_path)) for path in json.loads(done.stdout))
    assert "const float *q" in (tmp_path / "c" / "planar3.h").read_text()
    assert "`bias`" in (tmp_path / "c" / "README.md").read_text()


def test_bad_requests_say_what_is_available(tmp_path):
    arm = armdyn.load("planar3")
    with pytest.raises(InputError, match="unknown target 'ada'; available: c, cpp"):
        armdyn.deploy(arm, tmp_path / "x", "ada")
    with pytest.raises(InputError, match="unknown dtype 'half'; available: double, float, float64, float32"):
        armdyn.deploy(arm, tmp_path / "x", dtype="half")
    with pytest.raises(InputError, match="unknown frame 'hook'"):
        armdyn.deploy(arm, tmp_path / "x", frame="hook")
    assert not (tmp_path / "x").exists()


def test_hostile_names_do_no_harm(tmp_path):
    """A name from a robot's file cannot leave its folder, end a comment or act in the read-me file."""
    arm = armdyn.Arm("../new */ <b>|`x`", armdyn.load("planar3").given, source="*/ int evil; /* \x1b[31m")
    for target in TARGETS.keys() & {"c", "cpp"}:
        for path in armdyn.deploy(arm, tmp_path / target, target, ("gravity_load",), measure_stack=False, build=False):
            assert path.parent == tmp_path / target
            text = path.read_text()
            assert "*/ int evil" not in text
            assert "\x1b" not in text
            assert "<b>" not in re.sub(r"\\<b\\>", "", text) or path.name != "README.md"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "cpp"]


@pytest.mark.parametrize("target", ["c", "cpp"])
def test_a_floating_base_says_its_sizes(target, tmp_path):
    chain = random_tree(TreeKind(joints=3, floating=True), 1)
    arm = armdyn.Arm("boat", chain, snap=0.0)
    armdyn.deploy(arm, tmp_path, target, ("kinetic_energy",), measure_stack=False, build=False)
    text = "".join(path.read_text() for path in tmp_path.glob("boat.h*"))
    for name, size in (("N", chain.n), ("NQ", chain.n + 7), ("NV", chain.n + 6)):
        assert f"#define BOAT_{name} {size}\n" in text or f"constexpr std::size_t {name} = {size};" in text
    assert "m, quaternion (x, y, z, w)" in text
    if shutil.which("make") and shutil.which("g++"):
        assert "0 failed" in run("make", "test", f"{FLAGS[target]}", "EIGEN=", where=tmp_path)


def test_names_that_cpp_has_taken():
    assert namespace("new") == "new_arm"
    assert namespace("gamma") == "gamma_arm"
    assert namespace("my arm") == "my_arm"


def test_frames_as_gcc_tells_them():
    usage = (
        "arm.c:56:6:arm_bias\t384\tstatic\narm.c:56:6:arm_bias.part.0\t16\tstatic\n"
        "arm.hpp:9:13:void arm::pose(input<7>, output<16>)\t224\tstatic\narm.c:7:1:other_arm_bias\t8\tstatic\n"
    )
    assert parsed(usage, {"bias": "arm_bias", "pose": "arm::pose", "none": "arm_none"}) == {"bias": 400, "pose": 224}


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

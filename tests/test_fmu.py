"""FMUs: the sources agree with the kernels and are clean under sanitizers; FMPy runs them in tests/bridges."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.arm import Arm
from armdyn.chain import JointForces, Ripple
from armdyn.cli import app
from armdyn.codegen.text.c import Package
from armdyn.deployment import fmu
from armdyn.deployment.fmu_model import FmuModel
from armdyn.deployment.fmu_readme import fmu_readme
from armdyn.errors import ComputationError, InputError
from random_trees import TreeKind, random_tree

GOLDEN = Path(__file__).parent / "golden" / "fmu"
STRICT = "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror -fsanitize=address,undefined"
needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("make") is None, reason="no C compiler or no make on this machine"
)


@pytest.fixture(autouse=True)
def _no_library(monkeypatch):
    """A library in the archive takes time to compile; the one test that is about it undoes this."""
    monkeypatch.setattr(fmu, "compiler", lambda: None)


def tree() -> Arm:
    return Arm("tree", random_tree(TreeKind(joints=5, fork=0.6, mimic=0.5), seed=3))


def curved() -> Arm:
    """Dry friction with a Stribeck curve."""
    arm = armdyn.load("scara")
    given = [replace(j, viscous=0.5, coulomb=1, static=1.5, stribeck=0.1) for j in arm.given.joints]
    return Arm("curved", replace(arm.given, joints=tuple(given)))


def everything() -> Arm:
    """All that an identified arm may know of its joints."""
    arm, ripple = armdyn.load("scara"), Ripple(3, Fraction(1, 5), Fraction(-1, 8))
    forces = JointForces(Fraction(1, 3), Fraction(2), (ripple,), Fraction(1, 32), Fraction(1, 9), stribeck_exponent=4)
    given = [
        replace(j, viscous=0.5, coulomb=1, static=Fraction(1, 2), stribeck=0.1, forces=forces) for j in arm.given.joints
    ]
    return Arm("everything", replace(arm.given, joints=tuple(given)))


def cramped() -> Arm:
    """Limits that the motion of the test program meets, several of them at a time."""
    arm = armdyn.load("puma560")
    given = [replace(j, limit=replace(j.limit, lower=-0.05, upper=0.05)) for j in arm.given.joints]
    return Arm("cramped", replace(arm.given, joints=tuple(given)))


@needs_gcc
@pytest.mark.parametrize("parameters", ["runtime", "baked"])
@pytest.mark.parametrize("make", [lambda: armdyn.load("stanford"), tree, curved, everything, cramped])
def test_the_sources_agree_with_the_kernels(make, parameters, tmp_path):
    armdyn.deploy(make(), tmp_path, "fmu", parameters=parameters, friction=parameters == "runtime", build=False)
    done = subprocess.run(["make", "test", "CC=gcc", f"CFLAGS={STRICT}"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failed" in done.stdout


@pytest.mark.parametrize("make", [tree, lambda: armdyn.load("planar3")])
def test_clang_has_nothing_to_say_about_the_sources(make, tmp_path):
    """Without a payload or stops some kinds of variables are empty: comparisons with their ends are always false."""
    if shutil.which("clang") is None:
        pytest.skip("no clang on this machine")
    armdyn.deploy(make(), tmp_path, "fmu", build=False)
    flags = ["-std=c99", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    files = sorted(map(str, (tmp_path / "sources").glob("*.c")))
    done = subprocess.run(["clang", *flags, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_wrong_acceleration_fails(tmp_path):
    if shutil.which("cc") is None or shutil.which("make") is None:
        pytest.skip("no C compiler or no make on this machine")
    armdyn.deploy(armdyn.load("planar3"), tmp_path, "fmu", build=False)
    text = (tmp_path / "armdyn_vectors.h").read_text()
    (tmp_path / "armdyn_vectors.h").write_text(text.replace("VECTOR_QDD[] = {\n    ", "VECTOR_QDD[] = {\n    9"))
    done = subprocess.run(["make", "test"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "accelerations: not as expected" in done.stdout


def described(model, where) -> ElementTree.Element:
    name = model.arm.name
    with zipfile.ZipFile(where / f"{name}.fmu") as archive:
        assert archive.testzip() is None
        return ElementTree.parse(io.BytesIO(archive.read("modelDescription.xml"))).getroot()


def test_variables_have_names_units_and_starts(tmp_path):
    arm = armdyn.load("stanford")
    armdyn.deploy(arm, tmp_path, "fmu", build=False)
    model = FmuModel(arm, payload=True, friction=True)
    variables = {v.get("name"): v.attrib for v in described(model, tmp_path).findall("ModelVariables/Float64")}
    slides = [joint.name for joint in arm.joints if joint.prismatic]
    turns = [joint.name for joint in arm.joints if joint.revolute]
    assert slides
    assert {variables[f"{name}.tau"]["unit"] for name in slides} == {"N"}
    assert {variables[f"{name}.tau"]["unit"] for name in turns} == {"N.m"}
    assert {variables[f"{name}.viscous"]["unit"] for name in slides} == {"N.s/m"}
    assert variables["payload.inertia.xy"]["unit"] == "kg.m2"
    assert [float(variables[f"{name}.q"]["start"]) for name in model.names] == arm.rest.tolist()


def test_names_of_any_kind_become_identifiers():
    arm = armdyn.load("planar3")
    names = ("Gelenk/1 <\"&'>", "Gelenk/1 <\"&'>", "")
    given = [replace(joint, name=name) for joint, name in zip(arm.given.joints, names, strict=True)]
    odd = Arm("odd <arm> & \u202e more", replace(arm.given, joints=tuple(given)))
    model = FmuModel(odd, payload=True, friction=True)
    assert model.names == ("Gelenk_1______", "Gelenk_1_______2", "joint3")
    text = fmu.model_description(model, odd.name, "odd", "1")
    root = ElementTree.fromstring(text.encode())
    assert root.get("modelName") == "odd <arm> & \\u202e more"


def test_the_step_is_short_enough_for_viscous_friction():
    """RK4 decays with steps below 2.78 / rate; a tenfold friction asks for more than the longest step."""
    arm = armdyn.load("puma560")
    joints = [replace(joint, viscous=5000 * joint.viscous + 50) for joint in arm.given.joints]
    for one in (arm, Arm("slow", replace(arm.given, joints=tuple(joints)))):
        model = FmuModel(one, payload=True, friction=True)
        assert model.step * model.fastest < 2.78 / 2
    assert model.step < 1e-3
    assert FmuModel(arm, payload=True, friction=True).step == 1e-3


def test_the_same_arm_gives_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.undo()  # with a library, where there is a compiler
    for folder in ("a", "b"):
        armdyn.deploy(armdyn.load("planar3"), tmp_path / folder, "fmu", build=False)
    with zipfile.ZipFile(tmp_path / "a" / "planar3.fmu") as archive:
        libraries = [name for name in archive.namelist() if name.startswith("binaries")]
    assert len(libraries) == (fmu.compiler() is not None)
    assert (tmp_path / "a" / "planar3.fmu").read_bytes() == (tmp_path / "b" / "planar3.fmu").read_bytes()


@pytest.mark.parametrize("binary", [True, False])
def test_without_a_compiler_or_a_binary_it_is_a_source_fmu(binary, tmp_path, monkeypatch):
    monkeypatch.setattr(fmu, "compiler", lambda: None if binary else "cc")
    armdyn.deploy(armdyn.load("planar3"), tmp_path, "fmu", build=False, binary=binary)
    with zipfile.ZipFile(tmp_path / "planar3.fmu") as archive:
        names = set(archive.namelist())
    assert not [name for name in names if name.startswith("binaries")]
    assert {
        "modelDescription.xml",
        "sources/buildDescription.xml",
        "sources/planar3.c",
        "sources/armdyn_fmu.c",
    } <= names
    text = (tmp_path / "README.md").read_text()
    assert "It is a source-code FMU without a binary, because no C compiler" in text
    assert "contains a binary" not in text


def test_the_readme_says_for_which_platform_the_binary_is():
    package = Package("planar3", "first line\nsecond *line*\nthird line", {}, {})
    built = fmu_readme(
        FmuModel(armdyn.load("planar3"), payload=False, friction=False), package, ["binaries/x86_64-linux/planar3.so"]
    )
    assert "a binary for the platform on which it was generated, `binaries/x86_64-linux/planar3.so`" in built
    assert "without a binary" not in built
    assert "\nfirst line\nsecond \\*line\\*\n\n" in built
    assert "third line" not in built


def test_a_compiler_that_fails_is_an_error(tmp_path, monkeypatch):
    broken = tmp_path / "cc"
    broken.write_text(
        "#!/bin/sh\necho 'In file included from x:' >&2\necho 'x.c:1: fatal error: no such thing' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    monkeypatch.setattr(fmu, "compiler", lambda: str(broken))
    with pytest.raises(ComputationError, match=r"x\.c:1: fatal error: no such thing"):
        armdyn.deploy(armdyn.load("planar3"), tmp_path / "x", "fmu", build=False)
    assert not (tmp_path / "x").exists()


def test_what_is_refused(tmp_path):
    arm = armdyn.load("planar3")
    cases = {
        "an FMU contains the forward dynamics only": {"quantities": ["bias"]},
        "an FMU computes in double precision; got dtype float32": {"dtype": "float32"},
        "the frame is where the FMU's payload is attached": {"frame": "tool", "parameters": "baked"},
    }
    for message, options in cases.items():
        with pytest.raises(InputError, match=message):
            armdyn.deploy(arm, tmp_path / "x", "fmu", **options, build=False)
    floating = Arm("free", random_tree(TreeKind(joints=3, fork=0.5, floating=True), seed=1))
    with pytest.raises(InputError, match="free has a floating base"):
        armdyn.deploy(floating, tmp_path / "x", "fmu", build=False)
    assert not (tmp_path / "x").exists()


def test_the_command(tmp_path):
    done = CliRunner().invoke(app, ["deploy", "planar3", "--target", "fmu", "-o", str(tmp_path / "my f")])
    assert done.exit_code == 0, done.output
    assert "my f' test" in done.output.replace("\n", ""), "the command can be pasted"
    text = (tmp_path / "my f" / "README.md").read_text()
    assert "dry friction with sticking" in text
    assert "(q̇/`stribeck`)²" in text


def test_the_exponents_of_stribeck_curves_are_told():
    arm = everything()
    assert "(q̇/`stribeck`)⁴" in fmu.fmu_readme(FmuModel(arm, True, True), Package("x", "", {}, {}), [])
    one = replace(arm.given.joints[0], forces=replace(arm.given.joints[0].forces, stribeck_exponent=2))
    mixed = Arm("mixed", replace(arm.given, joints=(one, *arm.given.joints[1:])))
    assert "ⁿ, n = 2, 4, 4, 4 joint by joint" in fmu.fmu_readme(
        FmuModel(mixed, True, True), Package("x", "", {}, {}), []
    )


@pytest.mark.parametrize("file", ["modelDescription.xml", "armdyn_model.h"])
def test_golden_files(file, tmp_path):
    """One small arm, to the letter; ARMDYN_UPDATE_GOLDEN=1 writes it anew."""
    armdyn.deploy(armdyn.load("planar3"), tmp_path, "fmu", build=False)
    found = next(tmp_path.rglob(file)).read_text()
    if os.environ.get("ARMDYN_UPDATE_GOLDEN"):
        GOLDEN.mkdir(parents=True, exist_ok=True)
        (GOLDEN / file).write_text(found)
    assert found == (GOLDEN / file).read_text(), f"{file} changed; ARMDYN_UPDATE_GOLDEN=1 accepts it"


def test_vectors_are_finite():
    from armdyn.deployment import fmu_vectors

    text = fmu_vectors.vectors(FmuModel(curved(), payload=True, friction=True))
    assert "nan" not in text
    assert np.isfinite(float(text.split("VECTOR_QDD[] = {")[1].split(",")[0]))

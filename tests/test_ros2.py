"""The controller package in examples/ros2, compiled against a stub of ros2_control, commands what armdyn computes."""

from __future__ import annotations

import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest

import armdyn
from pages import ROOT

PACKAGE, STUB = ROOT / "examples/ros2", ROOT / "tests/ros2_stub"


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_the_controller_commands_the_gravity_load(tmp_path, rng):
    arm = armdyn.load("ur5")
    armdyn.deploy(arm, tmp_path / "generated", "cpp", controllers=("gravity_compensation",), build=False)
    program = tmp_path / "controller"
    includes = [PACKAGE / "include", tmp_path / "generated", STUB]
    sources = [PACKAGE / "src/gravity_compensation.cpp", STUB / "main.cpp"]
    words = [
        "g++",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        *(f"-I{folder}" for folder in includes),
        *sources,
        "-o",
        program,
    ]
    built = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    q, qd = rng.uniform(-2, 2, (2, 6))
    numbers = " ".join(repr(float(x)) for x in (*q, *qd))
    for mass, damping in ((0.0, 0.0), (3.0, 0.5)):
        ran = subprocess.run([str(program), str(mass), str(damping)], input=numbers, capture_output=True, text=True)
        assert ran.returncode == 0
        held = arm.with_payload(mass, (0.01, -0.02, 0.05)) if mass else arm
        expected = held.gravity_load(q) - damping * qd
        np.testing.assert_allclose(np.array(ran.stdout.split(), float), expected, atol=1e-12)


def test_the_package_names_the_same_things_everywhere():
    version = ElementTree.parse(PACKAGE / "package.xml").findtext("version")
    assert version == armdyn.__version__
    plugin = ElementTree.parse(PACKAGE / "armdyn_controller.xml").getroot().find("class").attrib["name"]
    assert plugin in (PACKAGE / "controllers.yaml").read_text()
    assert plugin.split("/")[0] == re.search(r"project\((\w+)", (PACKAGE / "CMakeLists.txt").read_text())[1]
    depends = {e.text for e in ElementTree.parse(PACKAGE / "package.xml").findall("depend")}
    assert depends <= set(re.findall(r"find_package\((\w+)", (PACKAGE / "CMakeLists.txt").read_text()))

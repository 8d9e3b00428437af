"""Robots as vendors ship them: xacro with arguments and packages, without ROS.

`tests/vendors` holds small packages written for these tests, with the constructs that vendors' packages use.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.errors import ArmdynError, FileError, InputError
from armdyn.files.packages import Packages
from armdyn.pages.meshes import shapes

pytest.importorskip("xacro")

VENDORS = Path(__file__).parent / "vendors"
ACME = VENDORS / "acme_ros2/Acme_ROS2_Description/urdf/acme.urdf.xacro"
CORTEX = VENDORS / "cortex_ros2/cortex_description/robots/cortex.urdf.xacro"
CUCA = VENDORS / "cuca_experimental/cuca_kr5_support/urdf/kr5.xacro"
FRANCA = VENDORS / "franca/franca_description/robots/f3/f3.urdf.xacro"
ZARM = VENDORS / "zarm_ros2/zarm_description/urdf/zarm_device.urdf.xacro"
CASES = [
    (ACME, {"acme_type": "acme5", "name": "acme", "safety_limits": "true"}),
    (ACME, {"acme_type": "acme10", "name": "big", "tf_prefix": "left_", "force_abs_paths": "true"}),
    (CORTEX, {"arm": "gen3", "dof": "6"}),
    (CORTEX, {"arm": "gen3", "dof": "6", "gripper": "clamp"}),
    (CUCA, {}),
    (FRANCA, {}),
    (FRANCA, {"hand": "false"}),
    (ZARM, {"limited": "true", "prefix": "l_", "dof": "7"}),
]
_LOOK_UP = """
import os
from xml.etree import ElementTree
def get_package_share_directory(name):
    for here, _, files in os.walk(os.environ["PACKAGES"]):
        if "package.xml" in files and ElementTree.parse(here + "/package.xml").findtext("name") == name:
            return here
    raise LookupError(name)
"""


def expanded_by_ros(tmp_path: Path, file: Path, arguments: dict[str, str]) -> str:
    """The text that the xacro command gives where ROS's package look-up is installed."""
    (tmp_path / "ament_index_python").mkdir(exist_ok=True)
    (tmp_path / "ament_index_python" / "__init__.py").write_text("")
    (tmp_path / "ament_index_python" / "packages.py").write_text(_LOOK_UP)
    packages = VENDORS / file.relative_to(VENDORS).parts[0]
    done = subprocess.run(
        [sys.executable, "-c", "import xacro; xacro.main()", str(file), *(f"{k}:={v}" for k, v in arguments.items())],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "PACKAGES": str(packages)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(("file", "arguments"), CASES)
def test_the_robot_is_that_of_the_command_and_of_pinocchio(file, arguments, tmp_path):
    text = expanded_by_ros(tmp_path, file, arguments)
    arm = armdyn.load(file, xacro=arguments, snap=0)
    reference = armdyn.load(text, snap=0)
    assert arm == reference
    assert arm.name in text
    model = pin.buildModelFromXML(text, mimic=True)
    data = model.createData()
    q = np.linspace(0.3, 0.02, arm.n)
    full = [pair for x, kind in zip(q, arm.kinds, strict=True) for pair in ([x] if kind else [])]
    positions = pin.neutral(model)
    for name, value in zip((joint.name for joint in arm.joints), full, strict=True):
        joint = model.joints[model.getJointId(name)]
        positions[joint.idx_q : joint.idx_q + joint.nq] = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
    H = pin.crba(model, data, positions)
    H = np.triu(H) + np.triu(H, 1).T
    np.testing.assert_allclose(arm.inertia_matrix(q), H, rtol=0, atol=1e-12 * np.abs(H).max())
    np.testing.assert_allclose(arm.gravity_load(q), pin.computeGeneralizedGravity(model, data, positions), atol=1e-10)


def test_arguments_select_the_robot():
    small, large = (armdyn.load(ACME, xacro={"acme_type": kind}) for kind in ("acme5", "acme10"))
    assert (small.mass, large.mass) == (5.53, 11.03)
    assert small.name == "acme"  # the default of an argument that is declared after its first use
    assert small.joints[0].limit.upper == pytest.approx(np.pi)
    safe = armdyn.load(ACME, xacro={"acme_type": "acme5", "safety_limits": True, "safety_pos_margin": 0.25})
    assert safe.joints[0].limit.upper == pytest.approx(np.pi - 0.25)


MESSAGES = [
    (
        ACME,
        {"acme_typ": "acme5"},
        r"has no xacro argument 'acme_typ'; did you mean 'acme_type'\? Its arguments are name=",
    ),
    (ACME, {}, r"config/acme_x/joint_limits.yaml.*acme_type='acme_x'.*--xacro name=value"),
    (CORTEX, {}, "the xacro argument 'arm' has no value and no default; give it with .*xacro={'arm': ...}"),
    (
        CORTEX,
        {"arm": "gen3"},
        r"argument 'dof' .*--xacro dof=\.\.\..*Its arguments are gripper='', vision='False', arm",
    ),
    (CORTEX, {"arm": "gen3", "dof": 6, "gripper": "glue"}, r"package 'glue_description' is not found.*package_dirs"),
    (CORTEX, {"arm": "gen3", "dof": [6]}, "argument 'dof' must be text, a number or a bool"),
    (CUCA.with_name("kr5_macro.xacro"), {}, r"only defines macros \(cuca_kr5\) and calls none of them"),
]


@pytest.mark.parametrize(("file", "arguments", "message"), MESSAGES)
def test_what_is_missing_is_named(file, arguments, message):
    with pytest.raises(ArmdynError, match=message):
        armdyn.load(file, xacro=arguments)


def test_arguments_are_for_xacro_files():
    with pytest.raises(InputError, match=r"are the arguments of a .xacro file, and 'puma560' is none"):
        armdyn.load("puma560", xacro={"a": 1})


def test_warnings_of_macros_are_notes(tmp_path):
    package = copied(FRANCA.parents[2], tmp_path)
    inertials = package / "robots/f3/inertials.yaml"
    lines = inertials.read_text().splitlines()
    inertials.write_text("\n".join(line for line in lines if not line.startswith("link1")))
    notes = armdyn.load(package / "robots/f3/f3.urdf.xacro").notes
    assert "f3.urdf.xacro: xacro: No inertia properties defined for: link1" in notes


def copied(package: Path, where: Path) -> Path:
    import shutil

    return Path(shutil.copytree(package, where / package.name))


def test_two_threads_expand_two_files():
    alone = [armdyn.load(file, xacro=arguments) for file, arguments in CASES]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda case: armdyn.load(case[0], xacro=case[1]), CASES * 6))
    assert together == alone * 6


def test_an_expansion_leaves_no_trace():
    import xacro

    xacro.substitution_args_context["arg"] = {"mine": "1"}
    before = dict(sys.modules)
    armdyn.load(ACME, xacro={"acme_type": "acme5"})
    assert xacro.substitution_args_context["arg"] == {"mine": "1"}
    assert "ament_index_python" not in sys.modules
    assert all(sys.modules[name] is module for name, module in before.items())


# --- packages


def test_packages_by_folders_and_by_the_environment(tmp_path, monkeypatch):
    """A gripper in another workspace: given as a workspace, a repository, the package itself, or by ROS's variables."""
    cortex = copied(CORTEX.parents[1], tmp_path / "here")
    clamp = copied(VENDORS / "cortex_ros2/clamp_description", tmp_path / "there/src/grippers")
    file = cortex / "robots/cortex.urdf.xacro"
    arguments = {"arm": "gen3", "dof": 6, "gripper": "clamp"}
    expected = armdyn.load(CORTEX, xacro=arguments)
    with pytest.raises(FileError, match="'clamp_description' is not found"):
        armdyn.load(file, xacro=arguments)
    for folder in (clamp, clamp.parent, tmp_path / "there"):
        assert armdyn.load(file, xacro=arguments, package_dirs=[folder]) == expected
    monkeypatch.setenv("ROS_PACKAGE_PATH", f"{tmp_path / 'nowhere'}{os.pathsep}{tmp_path / 'there'}")
    assert armdyn.load(file, xacro=arguments) == expected
    monkeypatch.delenv("ROS_PACKAGE_PATH")
    share = tmp_path / "install/share/clamp_description"
    share.mkdir(parents=True)
    for inside in ("package.xml", "urdf"):  # as a workspace that is built with links
        (share / inside).symlink_to(clamp / inside)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install"))
    assert armdyn.load(file, xacro=arguments) == expected
    with pytest.raises(FileError, match="nowhere' is no folder"):
        armdyn.load(file, xacro=arguments, package_dirs=[tmp_path / "nowhere"])
    with pytest.raises(InputError, match="package_dirs must be a list of folders"):
        armdyn.load(file, xacro=arguments, package_dirs=str(tmp_path))


def including(tmp_path: Path, filename: str) -> Path:
    path = tmp_path / "robot" / "urdf" / "r.urdf.xacro"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<robot name="r" xmlns:xacro="http://wiki.ros.org/xacro"><xacro:include filename="{filename}"/></robot>'
    )
    return path


PART = (
    '<robot><link name="a"/><link name="b"><inertial><mass value="1"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>'
)


def test_nothing_outside_the_packages_is_read(tmp_path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "part.xacro").write_text(PART)
    for filename in ("../../elsewhere/part.xacro", str(outside / "part.xacro"), "link.xacro", "/etc/passwd"):
        path = including(tmp_path, filename)
        if filename == "link.xacro":
            (path.parent / "link.xacro").symlink_to(outside / "part.xacro")
        with pytest.raises(FileError, match=r"r.urdf.xacro would read .* outside its package"):
            armdyn.load(path)
        if filename != "/etc/passwd":
            assert armdyn.load(path, package_dirs=[outside]).n == 1
    above = tmp_path.parent.name  # a folder above is a package only if it holds the urdf/ of the file
    with pytest.raises(FileError, match=f"the package '{above}' is not found"):
        armdyn.load(including(tmp_path, f"$(find {above})/{tmp_path.name}/elsewhere/part.xacro"))
    yaml = including(tmp_path, "${xacro.load_yaml('/etc/hosts')}")
    with pytest.raises(FileError, match="would read '/etc/hosts'"):
        armdyn.load(yaml)
    (tmp_path / "robot" / "package.xml").write_text("<package><name>r</name></package>")
    path = including(tmp_path, "../../elsewhere/part.xacro")
    with pytest.raises(FileError, match="outside its package"):
        armdyn.load(path)
    (outside / "package.xml").write_text("<package><name>elsewhere</name></package>")
    assert armdyn.load(path).n == 1


def test_entities_and_endless_inclusion_are_refused(tmp_path):
    path = including(tmp_path, "bomb.xacro")
    bomb = path.parent / "bomb.xacro"
    bomb.write_text('<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">]>' + PART)
    with pytest.raises(FileError, match=r"bomb.xacro: a document type .* is not allowed"):
        armdyn.load(path)
    with pytest.raises(FileError, match="xacro cannot expand it"):
        armdyn.load(including(tmp_path, "r.urdf.xacro"))


def test_meshes_of_packages(tmp_path):
    arguments = {"acme_type": "acme5"}
    arm = armdyn.load(ACME, xacro=arguments)
    for absolute in (False, True):
        drawn, notes = shapes(ACME, arm, arguments | {"force_abs_paths": absolute})
        assert (len(drawn), notes) == (2, [])
    packages = Packages.of(ACME)
    mesh = ACME.parents[1] / "meshes/forearm.stl"
    assert packages.resolve("package://acme_description/meshes/forearm.stl") == mesh
    with pytest.raises(FileError, match="outside its package"):
        packages.resolve("package://acme_description/../../../test_vendors.py")


def test_the_command_line():
    def show(*words: object) -> str:
        result = CliRunner().invoke(app, ["show", str(ACME), *map(str, words)])
        return result.output + str(result.exception)

    assert "did you mean 'acme_type'?" in show("--xacro", "acme_typ=acme5")
    assert "--xacro 'acme5': expected NAME=VALUE" in show("--xacro", "acme5")
    for separator in ("=", ":="):
        assert "5.530 kg" in show("--xacro", f"acme_type{separator}acme5", "--package-dirs", VENDORS)


def test_the_table_of_vendors_runs_on_folders_that_it_is_given(tmp_path):
    script = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "vendor_files.py"))
    found = list(script["rows"]([VENDORS, tmp_path]))
    assert len(found) == 5
    assert all(float(result) < 1e-12 for _, result, _ in found)


def test_a_path_that_a_package_of_robots_gives(tmp_path, monkeypatch):
    """`armdyn.load(panda_description.URDF_PATH)`: such packages give a path, as a string, and folders of meshes."""
    from types import ModuleType

    path = tmp_path / "franka_description" / "robots" / "ur5.urdf"
    path.parent.mkdir(parents=True)
    armdyn.load("ur5").to_urdf(path)
    module = ModuleType("robot_descriptions.ur5_description")
    module.URDF_PATH, module.PACKAGE_PATH = str(path), str(tmp_path / "franka_description")
    monkeypatch.setitem(sys.modules, "robot_descriptions.ur5_description", module)
    from robot_descriptions.ur5_description import URDF_PATH

    q = np.full(6, 0.3)
    np.testing.assert_allclose(armdyn.load(URDF_PATH).gravity_load(q), armdyn.load("ur5").gravity_load(q), rtol=1e-12)

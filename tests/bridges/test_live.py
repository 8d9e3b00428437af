"""The programs of the pages in Node against the kernels: serial arms, trees, mimic joints, a floating base."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.arm import Arm
from armdyn.chain import Joint
from armdyn.chain.joint import Mimic
from armdyn.files.description import Frame
from armdyn.formulations import QUANTITIES
from armdyn.kernels.wasm_emission import wasm_module
from armdyn.pages.live import ranges, robot
from armdyn.pages.programs import STATE, programs, tool_link, under_any_gravity
from node import needs_node, run_modules

BRANCHES = (-1, 0, 1, 0, 3, 4)
STATES = 200
CHAIN = armdyn.generic_arm("RRRPRR", seed=3).given


def tree():
    return Arm("tree", replace(CHAIN, parents=BRANCHES))


def mimic():
    *joints, last = CHAIN.joints
    return Arm("mimic", replace(CHAIN, joints=(*joints, replace(last, mimic=Mimic(4, -0.5, 0))), parents=BRANCHES))


def floating():
    free = Joint("free", 0, ZERO_ANGLE, 0, ZERO_ANGLE, name="base")
    return Arm("floating", replace(CHAIN, joints=(free, *CHAIN.joints[1:]), parents=BRANCHES))


def satellite():
    """A floating body without joints."""
    whole = floating().given
    given = replace(whole, joints=whole.joints[:1], links=whole.links[:1], parents=(-1,))
    return Arm("satellite", given)


ROBOTS = {
    "serial": lambda: armdyn.load("scara"),
    "tree": tree,
    "mimic": mimic,
    "floating": floating,
    "satellite": satellite,
}


def test_a_body_without_joints_has_a_page():
    data = robot(satellite())
    assert (data["n"], data["nv"], len(data["lower"]), len(data["coordinates"])) == (0, 6, 0, 6)


def test_the_camera_stands_as_far_as_the_arm_reaches():
    """A tip never leaves the arm's reach, and comes more than halfway there; a slide counts as far as it goes."""
    for name in ("ur5", "scara", "stanford", "puma560"):
        arm = armdyn.load(name)
        low, high = ranges(arm).T
        q = np.random.default_rng(2).uniform(low, high, (4000, arm.n))
        furthest = np.linalg.norm(arm.pose(q)[:, :3, 3] - np.array([float(x) for x in arm.chain.base.p]), axis=1).max()
        assert 0.6 * furthest < robot(arm)["reach"] < 2.5 * furthest, name


@needs_node
@pytest.mark.parametrize("kind", ROBOTS)
def test_the_page_computes_what_the_kernels_do(kind, tmp_path):
    arm, rng = ROBOTS[kind](), np.random.default_rng(1)
    chain = arm.chain
    q, qd = rng.normal(size=(STATES, chain.nq)), rng.normal(size=(STATES, chain.nv))
    if chain.floating:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    body, frame = (1.3, np.array([0.1, -0.2, 0.3])), (tool_link(chain) + 1, chain.tool)
    made, module = programs(chain), wasm_module(programs(chain))
    given = [np.array([[1.3]]), body[1][None], np.zeros((1, 6))]
    (parameters,) = run_modules(module, {"payload_parameters": (given, [made["state"].inputs[3].shape])}, tmp_path)[
        "payload_parameters"
    ]
    gravity = np.tile([1.0, -2.0, -9.0], (STATES, 1))
    shapes = [QUANTITIES[quantity].output_shapes(chain)[0][1] for quantity in STATE.values()]
    inputs = [q, qd, gravity, *(np.tile(x, (STATES, 1)) for x in (parameters, *given[:2]))]
    got = run_modules(module, {"state": (inputs, shapes)}, tmp_path)["state"]
    holding = replace(arm, frames=(Frame("tool", *frame),)).with_payload(*body, frame="tool")
    turned = holding.with_gravity((1, -2, -9))
    given = {"q": q, "qd": qd}
    for (key, quantity), value in zip(STATE.items(), got, strict=True):
        options = {"frame": frame} if key in ("tool", "J") and len(chain.tips) > 1 else {}
        truth = turned.kernel(quantity, **options)(*(given[name] for name, _ in QUANTITIES[quantity].inputs))
        assert np.abs(value - truth).max() < 1e-13 * max(np.abs(truth).max(), 1), key
    nv = chain.nv
    inputs = [q, qd, qd, gravity, np.tile(parameters, (STATES, 1))]
    H, b, g, f = run_modules(module, {"dynamics": (inputs, [(nv, nv), (nv,), (nv,), (nv,)])}, tmp_path)["dynamics"]
    rubbing = turned.kernel("joint_forces")(q, qd, np.zeros_like(qd))
    for value, truth in ((H, turned.inertia_matrix(q)), (b, turned.bias(q, qd)), (f, rubbing)):
        assert np.abs(value - truth).max() <= 1e-13 * max(np.abs(truth).max(), 1)
    assert np.abs(g - turned.gravity_load(q)).max() < 1e-13 * np.abs(g).max()


SLIDES = """<robot name="slides"><link name="base"/>{links}</robot>"""
SLIDE = """<link name="{name}"><inertial><mass value="{mass}"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="to_{name}" type="prismatic"><parent link="base"/><child link="{name}"/>
<axis xyz="{axis}"/><limit lower="-1" upper="1" effort="1" velocity="1"/>{mimic}</joint>"""


def slides():
    """Three masses that one joint moves in three directions: each gravity feels another combination of them."""
    mimic = '<mimic joint="to_a" multiplier="{}"/>'
    rows = [("a", 1, "1 0 0", ""), ("b", 2, "0 1 0", mimic.format(2)), ("c", 3, "0 0 1", mimic.format(-1))]
    links = [SLIDE.format(name=name, mass=mass, axis=axis, mimic=follows) for name, mass, axis, follows in rows]
    return armdyn.load(SLIDES.format(links="".join(links)))


@needs_node
def test_where_parameters_depend_on_gravitys_direction_it_is_not_turned(tmp_path):
    arm = slides()
    assert under_any_gravity(arm.chain) is None
    assert under_any_gravity(mimic().chain) is not None
    assert not robot(arm)["tilts"]
    made = programs(arm.chain)
    shapes = [QUANTITIES[quantity].output_shapes(arm.chain)[0][1] for quantity in STATE.values()]
    parameters = np.array(arm.minimal_parameters.values)
    inputs = [np.array([x]) for x in ([0.3], [0.5], 2 * np.array(arm.gravity), parameters, [0.0], np.zeros(3))]
    got = run_modules(wasm_module(made), {"state": (inputs, shapes)}, tmp_path)["state"]
    load = arm.with_gravity(2 * np.array(arm.gravity)).gravity_load(np.array([0.3]))
    assert got[list(STATE).index("g")][0] == pytest.approx(load, rel=1e-14)


@pytest.mark.parametrize("kind", ROBOTS)
def test_the_drawings_data_are_whole(kind):
    arm = ROBOTS[kind]()
    data = robot(arm)
    assert len(data["bodies"]) == len(data["masses"]) == arm.chain.bodies
    assert [body["parent"] for body in data["bodies"]] == list(arm.chain.parents)
    assert len(data["names"]) == data["n"] == arm.n
    assert len(data["coordinates"]) == len(data["effort"]) == len(data["coordinateKinds"]) == data["nv"]
    assert len(data["home"]) == arm.chain.nq
    assert len(data["stops"]) == len(data["breakaway"]) == arm.n
    moved = {body["joint"] for body in data["bodies"]} - {-1}
    assert moved == set(range(arm.n))

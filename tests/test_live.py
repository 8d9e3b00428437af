"""The programs of the pages in Node against the kernels: serial arms, trees, mimic joints, a floating base."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn.algebra.angle import ZERO_ANGLE
from armdyn.arm import Arm
from armdyn.chain import Joint
from armdyn.chain.joint import Mimic
from armdyn.formulations import QUANTITIES
from armdyn.kernels.wasm_emission import wasm_module
from armdyn.pages.live import STATE, programs, robot, tool_link
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


ROBOTS = {"serial": lambda: armdyn.load("scara"), "tree": tree, "mimic": mimic, "floating": floating}


@needs_node
@pytest.mark.parametrize("kind", ROBOTS)
def test_the_page_computes_what_the_kernels_do(kind, tmp_path):
    arm, rng = ROBOTS[kind](), np.random.default_rng(1)
    chain = arm.chain
    q, qd = rng.normal(size=(STATES, chain.nq)), rng.normal(size=(STATES, chain.nv))
    if chain.floating:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    gravity, payload = np.tile([1.0, -2.0, -9.0], (STATES, 1)), np.zeros((STATES, 4))
    shapes = [QUANTITIES[quantity].output_shapes(chain)[0][1] for quantity in STATE.values()]
    made = programs(chain)
    got = run_modules(wasm_module(made), {"state": ([q, qd, gravity, payload], shapes)}, tmp_path)["state"]
    turned = arm.with_gravity((1, -2, -9))
    given = {"q": q, "qd": qd}
    frame = (tool_link(chain) + 1, chain.tool) if len(chain.tips) > 1 else None
    for (key, quantity), value in zip(STATE.items(), got, strict=True):
        options = {"frame": frame} if key in ("tool", "J") and frame else {}
        truth = turned.kernel(quantity, **options)(*(given[name] for name, _ in QUANTITIES[quantity].inputs))
        assert np.abs(value - truth).max() < 1e-13 * max(np.abs(truth).max(), 1), key
    assert ("acceleration" in made) == (kind != "floating")


@pytest.mark.parametrize("kind", ROBOTS)
def test_the_drawings_data_are_whole(kind):
    arm = ROBOTS[kind]()
    data = robot(arm)
    assert len(data["bodies"]) == len(data["masses"]) == arm.chain.bodies
    assert [body["parent"] for body in data["bodies"]] == list(arm.chain.parents)
    assert len(data["names"]) == data["n"] == arm.n
    assert len(data["coordinates"]) == len(data["effort"]) == len(data["coordinateKinds"]) == data["nv"]
    assert len(data["home"]) == arm.chain.nq
    moved = {body["joint"] for body in data["bodies"]} - {-1}
    assert moved == set(range(arm.n))

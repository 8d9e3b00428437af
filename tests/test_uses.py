"""What a robot can be used for: every cell of the table is done, or refused with the remedy it names."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn.chain import Tendon
from armdyn.errors import InputError
from armdyn.files.description import Frame
from armdyn.motion import MotionLimits
from armdyn.uses import NEEDS, TASKS, must_suit, refusal, table
from random_trees import TreeKind, random_tree


def coupled(chain):
    """The chain with a tendon of its first and last joint, and half the weight of its links compensated."""
    tendon = Tendon(
        ((0, 1), (2, -2)), stiffness=3, rest=Fraction(1, 10), damping=Fraction(1, 5), armature=Fraction(1, 8)
    )
    half = tuple(replace(link, mass=link.mass / 2, moment=link.moment * Fraction(1, 2)) for link in chain.links)
    return replace(chain, tendons=(tendon,), compensated=half)


ROBOTS = {
    "has a floating base": random_tree(TreeKind(joints=3, fork=0, prismatic=0, floating=True), 2),
    "has no tool": random_tree(TreeKind(joints=3, fork=1, prismatic=0), 3),
    "has mimic joints": random_tree(TreeKind(joints=3, fork=0, prismatic=0, mimic=0.7), 1),
    "has tendons or gravity compensation": coupled(random_tree(TreeKind(joints=3, fork=0, prismatic=0), 1)),
}
BOX = np.array([[-0.1, 0.1]])


def framed(arm):
    """The robot with a frame on its last link, which is not named like a tool."""
    last = Frame("hand", arm.chain.bodies, arm.chain.tool)
    return armdyn.Arm(arm.name, arm.given, arm.snap, frames=(last,))


DO = {
    "inverse kinematics": lambda arm, at: arm.inverse_kinematics(np.eye(4), **at),
    "a payload": lambda arm, at: arm.with_payload(1.0, **at),
    "another tool": lambda arm, at: arm.with_tool((0, 0, 0.1), **at),
    "identification": lambda arm, at: armdyn.identify(
        arm, armdyn.Log.of(*motion(arm)), friction="none", offset=False, rotor=False
    ),
    "excitation": lambda arm, at: armdyn.excite(arm, 2.0, starts=1, harmonics=2, rate=20.0),
    "servo identification": lambda arm, at: armdyn.identify_servo(
        arm, armdyn.Log.of(*motion(arm)[:2], command=motion(arm)[1]), friction="coulomb", prior=0
    ),
    "calibration": lambda arm, at: armdyn.calibration_poses(arm, 40, candidates=60, **at),
    "time-optimal motion": lambda arm, at: armdyn.time_optimal(
        arm, [np.zeros(arm.n), np.full(arm.n, 0.1)], limits=MotionLimits(torque=1e4), grid=5
    ),
    "bounding a quantity over all configurations": lambda arm, at: armdyn.bound(
        arm, "gravity_load", q=np.repeat(BOX, arm.n, axis=0), seconds=0.2
    ),
    "a bound of rounding errors": lambda arm, at: armdyn.rounding_error(
        arm, "gravity_load", q=np.repeat(BOX, arm.n, axis=0)
    ),
    "uncertain friction, joint offsets and covariance": lambda arm, at: armdyn.Uncertain(
        arm, viscous=armdyn.Uniform(0.0, 1.0)
    ).sample(2),
    "an uncertain payload": lambda arm, at: armdyn.Uncertain(arm, payload_mass=armdyn.Uniform(0.0, 1.0)).sample(2),
    "an FMU": lambda arm, at: armdyn.deploy(arm, ".", "fmu"),
}


def motion(arm):
    t = np.linspace(0, 1, 101)
    q = np.sin(np.outer(t, 1 + np.arange(arm.n))) if not arm.floating else np.zeros((101, arm.n))
    return t, q, np.cos(np.outer(t, 2 + np.arange(arm.n)))


def test_every_task_of_the_table_is_tried():
    assert set(DO) == set(TASKS)


@pytest.mark.parametrize("lacking", ROBOTS)
@pytest.mark.parametrize("task", TASKS)
def test_what_the_table_says_is_what_happens(task, lacking, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arm = framed(armdyn.Arm("robot", ROBOTS[lacking], snap=0.0))
    properties = [need.lacking for need in NEEDS.values() if need.missing(arm.chain)]
    assert lacking in properties
    refused = [key for key in TASKS[task] if NEEDS[key].lacking in properties]
    if not refused:
        DO[task](arm, {})
        return
    with pytest.raises(InputError) as raised:
        DO[task](arm, {})
    if refused == ["tool"]:
        assert "needs a frame: this robot has several tips and no default tool" in str(raised.value)
        if task not in ("an uncertain payload",):
            DO[task](arm, {"frame": "hand"})
    else:
        assert str(raised.value) == f"{task} {refusal(refused[0], arm.chain, 'robot')}"


def test_the_reason_names_the_need_the_property_and_the_remedy():
    floating = ROBOTS["has a floating base"]
    said = "an FMU needs a fixed base: robot has a floating base; load it with floating=False"
    with pytest.raises(InputError, match=f"^{said}$"):
        must_suit("an FMU", floating, "robot")
    must_suit("a payload", floating, "robot")
    assert not refusal("fixed base", ROBOTS["has no tool"])


def test_the_documentation_has_the_table():
    head, *rows = table()
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    page = (Path(__file__).parents[1] / "docs" / "concepts" / "trees.md").read_text(encoding="utf-8")
    assert "\n".join(lines) in page

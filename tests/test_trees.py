"""Trees, mimic joints and floating bases: every quantity by every formulation against Pinocchio.

Pinocchio's models are built joint by joint; mimic joints are judged by projection of the robot without them. The whole
campaign is benchmarks/campaign_trees.py.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armdyn
from armdyn.algebra import Angle
from armdyn.arm import Arm
from armdyn.chain import Chain, Placement
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Options
from armdyn.programs.assemble import assemble
from random_trees import TreeKind, random_tree

pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")

from tree_judge import differences, frame_of_last_link, pinocchio_says, random_motion

KINDS = {
    "branches": TreeKind(joints=8, fork=0.5),
    "general branches": TreeKind(joints=6, fork=0.5, special=0.0),
    "rotors": TreeKind(joints=7, fork=0.4, rotors=True),
    "mimic": TreeKind(joints=8, fork=0.4, mimic=0.4, rotors=True),
    "floating": TreeKind(joints=7, fork=0.5, floating=True),
    "floating chain": TreeKind(joints=5, fork=0.0, floating=True, special=0.9),
    "floating, mimic, rotors": TreeKind(joints=8, fork=0.5, floating=True, mimic=0.3, rotors=True),
}


def a_tree(kind: str, seed: int) -> tuple[Chain, Any]:
    """A tree of this kind that has a coordinate, and a random motion of it."""
    while not (chain := random_tree(KINDS[kind], seed)).n:
        seed += 100
    return chain, random_motion(chain, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_every_formulation_of_every_quantity_equals_pinocchio(kind: str, seed: int) -> None:
    chain, motion = a_tree(kind, seed)
    found = differences(chain, motion)
    assert len(found) > 30
    assert max(found.values()) < 1e-10, {name: x for name, x in found.items() if x >= 1e-10}


@pytest.mark.parametrize("floating", [False, True])
def test_compiled_kernels_equal_pinocchio(floating: bool) -> None:
    chain = random_tree(TreeKind(joints=6, fork=0.4, floating=floating, mimic=0.25, rotors=True), 7)
    motion = random_motion(chain, np.random.default_rng(7))
    assert chain.has_mimics and not chain.serial  # noqa: PT018
    arm = Arm("tree", chain, snap=0.0)
    q, qd, qdd = motion
    said = pinocchio_says(chain, q, qd, qdd)
    tau = said["inverse_dynamics"]
    given = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
    for name in ("inertia_matrix", "bias", "inverse_dynamics", "gravity_load", "link_poses", "centre_of_mass"):
        inputs = [given[port] for port, _ in QUANTITIES[name].inputs]
        np.testing.assert_allclose(getattr(arm, name)(*inputs), said[name], atol=1e-10 * (1 + np.abs(said[name]).max()))
    np.testing.assert_allclose(arm.forward_dynamics(q, qd, tau), qdd, atol=1e-9)
    derivatives = arm.inverse_dynamics_derivatives(q, qd, qdd)
    for got, key in zip(derivatives, ("dtau_dq", "dtau_dqd", "inertia_matrix"), strict=True):
        np.testing.assert_allclose(got, said[key], atol=1e-9 * (1 + np.abs(said[key]).max()))
    dq, dqd, W = arm.forward_dynamics_derivatives(q, qd, tau)
    scale = 1e-8 * (1 + np.abs(said["inertia_inverse"]).max())
    np.testing.assert_allclose(dq, -W @ said["dtau_dq"], atol=scale * 100)
    np.testing.assert_allclose(dqd, -W @ said["dtau_dqd"], atol=scale * 100)
    np.testing.assert_allclose(W, said["inertia_inverse"], atol=scale)


def test_a_batch_gives_what_single_configurations_give() -> None:
    chain, _ = a_tree("floating, mimic, rotors", 1)
    arm, rng = Arm("tree", chain, snap=0.0), np.random.default_rng(0)
    motions = [random_motion(chain, rng) for _ in range(9)]
    q, qd, qdd = (np.array(x) for x in zip(*motions, strict=True))
    batch = arm.inverse_dynamics(q, qd, qdd)
    np.testing.assert_array_equal(batch, [arm.inverse_dynamics(*motion) for motion in motions])


@pytest.mark.parametrize("quantity", ["inertia_matrix", "forward_dynamics", "coriolis_matrix"])
def test_plain_python_takes_batches_of_a_floating_robot(quantity: str) -> None:
    chain, _ = a_tree("floating, mimic, rotors", 1)
    arm, rng = Arm("tree", chain, snap=0.0), np.random.default_rng(0)
    q, qd, qdd = (np.array(x) for x in zip(*(random_motion(chain, rng) for _ in range(3)), strict=True))
    kernel = arm.kernel(quantity, backend="python")
    inputs = [{"q": q, "qd": qd, "tau": qdd}[port] for port, _ in QUANTITIES[quantity].inputs]
    np.testing.assert_allclose(kernel(*inputs)[2], kernel(*(x[2] for x in inputs)), rtol=1e-12, atol=1e-12)


def test_the_inertia_matrix_does_not_depend_on_the_pose_of_a_floating_base() -> None:
    chain, (q, *_) = a_tree("floating", 2)
    arm = Arm("tree", chain, snap=0.0)
    elsewhere = np.concatenate([[1.0, -2.0, 3.0, 0.5, -0.5, 0.5, 0.5], q[7:]])
    np.testing.assert_array_equal(arm.inertia_matrix(q), arm.inertia_matrix(elsewhere))
    np.testing.assert_array_equal(arm.gravity_load(q), arm.gravity_load(np.concatenate([[9.0, 9.0, 9.0], q[3:]])))


def test_joints_of_different_branches_have_no_entry() -> None:
    chain = replace(random_tree(TreeKind(joints=5, fork=0.0, special=0.0), 3), parents=(-1, 0, 1, 0, 3))
    H = np.array(assemble(chain.floats, "inertia_matrix", "meeting_frame").function([0.3, 0.5, -0.2, 0.7, 0.1]), float)
    assert not H[1:3, 3:].any()
    assert H[0].all()


def test_friction_of_mimic_joints_adds_up() -> None:
    chain = random_tree(KINDS["mimic"], 4)
    chain = replace(
        chain, joints=tuple(replace(j, viscous=Fraction(1, 2), coulomb=Fraction(1, 3)) for j in chain.joints)
    )
    qd = [0.4 - 0.3 * k for k in range(chain.nv)]
    expected = np.zeros(chain.nv)
    place = {i: c for c, i in enumerate(chain.independent)}
    for i, joint in enumerate(chain.joints):
        leader, multiplier, _ = chain.leader(joint) if joint.mimic else (i, 1, 0)
        rate = float(multiplier) * qd[place[leader]]
        expected[place[leader]] += float(multiplier) * (rate / 2 + np.sign(rate) / 3)
    found = assemble(chain.floats, "friction", "definition").function(qd)
    np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-14)


def test_a_wrench_at_a_frame_does_the_work_of_its_jacobian() -> None:
    chain, (q, qd, qdd) = a_tree("floating, mimic, rotors", 5)
    options = Options(tool_wrench=True, frame=(chain.bodies, Placement()))
    wrench = [1.0, -2.0, 3.0, 0.4, 0.5, -0.6]
    given = [list(map(float, x)) for x in (q, qd, qdd)]
    loaded = assemble(chain.floats, "inverse_dynamics", "second_moments", options).function(*given, wrench)
    free = assemble(chain.floats, "inverse_dynamics", "second_moments").function(*given)
    J = assemble(chain.floats, "jacobian", "definition", frame_of_last_link(chain)).function(given[0])
    np.testing.assert_allclose(np.array(loaded) - np.array(free), -np.array(J, float).T @ wrench, atol=1e-11)


def test_formulations_that_cannot_say_so_by_name() -> None:
    branching, mimic = a_tree("branches", 0)[0], a_tree("mimic", 0)[0]
    with pytest.raises(
        InputError, match=r"lin_fang_1 needs a serial chain: this robot branches; .*; available: denoc, meeting"
    ):
        assemble(branching, "inertia_matrix", "lin_fang_1")
    with pytest.raises(InputError, match=r"articulated_body needs a coordinate for every joint.*available: composite"):
        assemble(mimic, "forward_dynamics", "articulated_body")
    with pytest.raises(InputError, match="tips and no tool; name a frame with frame="):
        assemble(branching.floats, "pose", "definition").function([0.0] * branching.n)


@pytest.mark.parametrize("quantity", ["inertia_matrix", "inverse_dynamics", "forward_dynamics", "bias"])
def test_auto_passes_over_formulations_for_chains(quantity: str) -> None:
    from armdyn.programs.search import auto

    chain = a_tree("branches", 1)[0]
    key = auto(chain, quantity)
    assert QUANTITIES[quantity].formulation(key).serves(chain)


def test_planted_errors_are_caught() -> None:
    """The judge sees a wrong constant of a fork and a wrong multiplier."""
    chain = random_tree(TreeKind(joints=8, fork=0.5, mimic=0.4, special=0.0), 2)
    motion = random_motion(chain, np.random.default_rng(2))
    forked = next(i for i, joint in enumerate(chain.joints) if joint.forked and chain.parents[i] >= 0)
    mimic = next(i for i, joint in enumerate(chain.joints) if joint.mimic)
    rng = random.Random(0)
    wrong = [
        _changed(chain, forked, turn=Angle.of(chain.joints[forked].turn.radians + 0.01)),
        _changed(chain, mimic, mimic=replace(chain.joints[mimic].mimic, multiplier=Fraction(rng.randint(3, 9)))),
    ]
    for other in wrong:
        found = differences(other, motion, judge=pinocchio_says(chain, *motion))
        assert found["inverse_dynamics second_moments"] > 1e-6


def _changed(chain: Chain, i: int, **changes: Any) -> Chain:
    joints = list(chain.joints)
    joints[i] = replace(joints[i], **changes)
    return replace(chain, joints=tuple(joints))


def test_operational_space_inertia_is_the_inverse_of_what_a_wrench_accelerates() -> None:
    arm = armdyn.load("puma560")
    q = np.array([0.3, -0.7, 1.1, 0.4, 0.6, -0.2])
    J, H = arm.jacobian(q), arm.inertia_matrix(q)
    L = arm.operational_space_inertia(np.stack([q, q]))
    np.testing.assert_allclose(L[1], np.linalg.inv(J @ np.linalg.inv(H) @ J.T), rtol=1e-8, atol=1e-10)
    assert np.isnan(arm.operational_space_inertia(np.zeros(6))).all()
    with pytest.raises(InputError, match="needs 6 degrees of freedom, this arm has 3"):
        armdyn.load("planar3").operational_space_inertia(np.zeros(3))


@pytest.mark.skipif(shutil.which("cc") is None or shutil.which("make") is None, reason="no C compiler")
def test_c_output_of_a_floating_tree_passes_its_own_test(tmp_path: Path) -> None:
    chain = random_tree(TreeKind(joints=5, fork=0.4, floating=True, mimic=0.3, rotors=True), 7)
    Arm("tree", chain, snap=0.0).emit_c(tmp_path, quantities=["inertia_matrix", "inverse_dynamics"])
    ran = subprocess.run(["make", "-C", str(tmp_path), "test"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert "passed, 0 failed" in ran.stdout

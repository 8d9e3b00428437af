"""The minimal parameters of an arm with a payload, as a program: those of the arm that holds the body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn.algebra import Vec3
from armdyn.errors import InputError
from armdyn.files import Frame
from armdyn.files.arrays import placement
from random_trees import TreeKind, random_tree

BODY = 1.3, np.array([0.1, -0.2, 0.3]), np.array([0.03, 0.04, 0.05, 0.001, 0.002, -0.003])
TREES = {
    "tree": TreeKind(joints=6),
    "mimic": TreeKind(joints=6, mimic=0.5),
    "floating": TreeKind(joints=5, floating=True, rotors=True),
    "floating mimic": TreeKind(joints=6, mimic=0.4, floating=True),
}


def agrees(arm, **at):
    """Both kinds of the program against the parameters of the arm that holds the body, worked out in rationals."""
    truth = np.array(arm.with_payload(*BODY, **at).minimal_parameters.values)
    present = np.array(arm.minimal_parameters.values)
    assert np.abs(truth - present).max() > 0.1, "a body that no parameter feels proves nothing"
    size = 1e-14 * np.abs(truth).max()
    baked = arm.kernel("payload_parameters", backend="python", **at)
    np.testing.assert_allclose(baked(*BODY), truth, rtol=0, atol=size)
    runtime = arm.kernel("payload_parameters", backend="numpy", parameters="runtime", **at)
    np.testing.assert_allclose(runtime(*BODY, present), truth, rtol=0, atol=size)
    np.testing.assert_allclose(runtime(*BODY, present + 1.0), truth + 1.0, rtol=0, atol=4 * size)


@pytest.mark.parametrize("name", ["panda", "scara", "stanford", "puma560"])
def test_chains(name):
    agrees(armdyn.load(name))
    agrees(armdyn.load(name).with_gravity((0, 0, 0)))


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("gravity", [True, False])
def test_trees_at_a_frame(kind, gravity):
    chain = random_tree(TREES[kind], 1)
    chain = chain if gravity else replace(chain, gravity=Vec3(0, 0, 0))
    at = placement((0.1, -0.2, 0.3), (0.4, 0.5, -0.6))
    frames = tuple(Frame(f"on{k}", k, at) for k in (2, chain.bodies))
    arm = armdyn.Arm(kind, chain, snap=0.0, frames=frames)
    for frame in frames:
        agrees(arm, frame=frame.name)


def test_broadcasting_and_dynamics(rng):
    """One call for many payloads; the run-time kernels then move the arm that holds each."""
    arm = armdyn.load("ur5")
    masses, (_, com, inertia) = np.array([0.0, 0.5, 2.0]), BODY
    values = arm.payload_parameters(masses, com, inertia)
    assert values.shape == (3, len(arm.minimal_parameters))
    np.testing.assert_allclose(arm.payload_parameters(0.0, com, np.zeros(6)), arm.minimal_parameters.values, rtol=1e-15)
    q, qd, qdd = rng.normal(size=(3, 6))
    forces = arm.kernel("inverse_dynamics", parameters="runtime")(q, qd, qdd, values)
    for mass, tau in zip(masses[1:], forces[1:], strict=True):
        truth = arm.with_payload(mass, com, inertia).inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(tau, truth, rtol=1e-12, atol=1e-12)


def test_what_hangs_on_the_base_changes_nothing():
    panda = armdyn.load("panda")
    on_base = replace(panda, frames=(Frame("foot", 0, placement((0, 0, 0), (0, 0, 0))),))
    values = on_base.payload_parameters(*BODY, frame="foot")
    np.testing.assert_allclose(values, panda.minimal_parameters.values, rtol=1e-15, atol=1e-300)


def test_a_robot_with_several_tips_needs_a_frame():
    arm = armdyn.Arm("tree", random_tree(TREES["tree"], 1), snap=0.0)
    with pytest.raises(InputError, match="payload_parameters needs a frame: this robot has several tips"):
        arm.payload_parameters(*BODY)

"""The minimal parameters of an arm with a payload, as a program: those of the arm that holds the body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn.algebra import Vec3
from armdyn.errors import InputError
from armdyn.files.arrays import placement
from armdyn.files.description import Frame
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
    inertias = masses[:, None] * inertia
    values = arm.payload_parameters(masses, com, inertias)
    assert values.shape == (3, len(arm.minimal_parameters))
    np.testing.assert_allclose(arm.payload_parameters(0.0, com, np.zeros(6)), arm.minimal_parameters.values, rtol=1e-15)
    q, qd, qdd = rng.normal(size=(3, 6))
    forces = arm.kernel("inverse_dynamics", parameters="runtime")(q, qd, qdd, values)
    for mass, J, tau in zip(masses, inertias, forces, strict=True):
        truth = arm.with_payload(mass, com, J).inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(tau, truth, rtol=1e-12, atol=1e-12)


def test_what_hangs_on_the_base_changes_nothing():
    panda = armdyn.load("panda")
    on_base = replace(panda, frames=(Frame("foot", 0, placement((0, 0, 0), (0, 0, 0))),))
    values = on_base.payload_parameters(*BODY, frame="foot")
    np.testing.assert_allclose(values, panda.minimal_parameters.values, rtol=1e-15, atol=1e-300)


@pytest.mark.parametrize("backend", ["llvm", "numpy", "python"])
@pytest.mark.parametrize("parameters", ["baked", "runtime"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ((-1.0, np.zeros(3), np.zeros(6)), "negative mass -1 kg"),
        ((np.nan, np.zeros(3), np.zeros(6)), "mass nan, com .* must be finite"),
        ((1.0, [0, np.inf, 0], np.zeros(6)), "must be finite"),
        ((1.0, np.zeros(3), [1, 1, 3, 0, 0, 0]), "principal moments 1, 1, 3 violate the triangle inequality"),
        ((1.0, np.zeros(3), [1, 1, 1, 0, 2, 0]), "inertia about the centre of mass is not positive semidefinite"),
        ((0.0, np.zeros(3), np.ones(6)), "zero mass, but an inertia"),
    ],
)
def test_impossible_bodies_are_refused(backend, parameters, body, reason):
    arm = armdyn.load("planar3")
    kernel = arm.kernel("payload_parameters", backend=backend, parameters=parameters)
    present = [arm.minimal_parameters.values] if parameters == "runtime" else []
    with pytest.raises(InputError, match=f"this payload is not possible: .*{reason}[^()]*$"):
        kernel(*body, *present)
    before = np.full((3, len(arm.minimal_parameters)), 7.0)
    rows = [np.array([good, good, bad]) for good, bad in zip((1.0, [0, 0, 0.1], [1, 1, 1, 0, 0, 0]), body, strict=True)]
    with pytest.raises(InputError, match=rf"{reason}.* \(row 2 of the batch\)"):
        kernel(*rows, *present, out=before)
    assert (before == 7.0).all(), "nothing is written"


def test_bodies_at_the_edge_are_possible():
    """A rod, a point, nothing at all; and every random body, turned as it may be."""
    arm, rng = armdyn.load("planar3"), np.random.default_rng(3)
    for body in ((1.0, [0, 0, 1], [0, 1, 1, 0, 0, 0]), (2.0, [1, 0, 0], np.zeros(6)), (0.0, [1, 0, 0], np.zeros(6))):
        arm.payload_parameters(*body)
    points = rng.normal(size=(1000, 2, 3))  # of two points each: the triangle inequality is an equality
    centred = points - points.mean(axis=1, keepdims=True)
    S = np.einsum("kpi,kpj->kij", centred, centred)
    J = np.trace(S, axis1=1, axis2=2)[:, None, None] * np.eye(3) - S
    inertia = J[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    assert np.isfinite(arm.payload_parameters(np.full(1000, 2.0), points.mean(axis=1), inertia)).all()


def test_shapes_that_do_not_fit_are_still_told():
    arm = armdyn.load("planar3")
    with pytest.raises(InputError, match=r"expects com of shape \(\.\.\., 3\), got \(2,\)"):
        arm.payload_parameters(1.0, [0, 0], np.zeros(6))
    with pytest.raises(InputError, match="the batches do not broadcast together"):
        arm.payload_parameters(np.ones(2), np.zeros((3, 3)), np.zeros(6))


def test_a_robot_with_several_tips_needs_a_frame():
    arm = armdyn.Arm("tree", random_tree(TREES["tree"], 1), snap=0.0)
    with pytest.raises(InputError, match="payload_parameters needs a frame: this robot has several tips"):
        arm.payload_parameters(*BODY)

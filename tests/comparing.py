"""How tests compare arrays, and Pinocchio as an oracle for an arm written as URDF."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import armdyn

# The catalogue's arms with one tip.
SERIAL = tuple(name for name in armdyn.catalogue() if armdyn.load(name).chain.serial)


def close(got, expected, relative, scale=None):
    """The largest difference is below `relative` times the largest entry (or `scale`)."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    size = max(np.abs(expected).max(), 1e-6) if scale is None else scale
    assert np.abs(got - expected).max() <= relative * size, (got - expected, size)


def pinocchio_of(arm, text):
    """What Pinocchio computes from the URDF `text`, at the arm's own q."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")

    model = pin.buildModelFromXML(text)
    model.gravity.linear = np.array(arm.gravity)
    model.armature = arm.rotor_inertias
    data = model.createData()

    def configuration(q):  # a continuous joint is a cosine and a sine there
        pairs = zip(model.joints[1:], q, strict=True)
        return np.concatenate([[np.cos(x), np.sin(x)] if joint.nq == 2 else [x] for joint, x in pairs])

    def inertia_matrix(q):
        upper = np.triu(pin.crba(model, data, configuration(q)))
        return upper + np.triu(upper, 1).T

    def pose(q, frame):
        pin.framesForwardKinematics(model, data, configuration(q))
        return data.oMf[model.getFrameId(frame)].homogeneous

    return SimpleNamespace(
        model=model,
        inertia_matrix=inertia_matrix,
        pose=pose,
        bias=lambda q, qd: pin.nonLinearEffects(model, data, configuration(q), np.asarray(qd)),
        gravity_load=lambda q: pin.computeGeneralizedGravity(model, data, configuration(q)),
        inverse_dynamics=lambda q, qd, qdd: pin.rnea(model, data, configuration(q), np.asarray(qd), np.asarray(qdd)),
    )

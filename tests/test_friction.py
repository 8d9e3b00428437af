"""The friction law of a joint: one law in the kernel, the file, C and the plain Python path."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import armdyn
from armdyn.chain.checks import check


@pytest.fixture(scope="module")
def arm():
    puma = armdyn.load("puma560")
    joints = [replace(joint, static=2 * joint.coulomb, stribeck=Fraction(1, 20)) for joint in puma.chain.joints]
    return armdyn.Arm("stribeck", replace(puma.chain, joints=tuple(joints)))


def stribeck(arm, qd):
    """The law written again with arrays."""
    viscous, coulomb, static, speed = (
        np.array([float(getattr(j, name)) for j in arm.joints]) for name in ("viscous", "coulomb", "static", "stribeck")
    )
    return viscous * qd + np.sign(qd) * (coulomb + (static - coulomb) / (1 + (qd / speed) ** 2))


@pytest.mark.parametrize("backend", ["llvm", "numpy", "python"])
def test_the_kernel_is_the_stribeck_curve(arm, backend, rng):
    qd = np.concatenate([rng.normal(size=(20, 6)), rng.normal(size=(20, 6)) * 0.02, np.zeros((1, 6))])
    friction = arm.kernel("friction", backend=backend)(qd)
    assert np.abs(friction - stribeck(arm, qd)).max() < 1e-12
    assert np.all(friction[-1] == 0)


def test_static_friction_is_met_at_vanishing_speed_and_left_at_high_speed(arm):
    coulomb = np.array([float(j.coulomb) for j in arm.joints])
    assert np.allclose(arm.friction(np.full(6, 1e-12)), 2 * coulomb)
    assert np.allclose(
        arm.friction(np.full(6, 1e6)) - arm.friction(np.full(6, 1e6 - 1)), [float(j.viscous) for j in arm.joints]
    )


def test_the_other_quantities_take_the_same_law(arm, rng):
    q, qd, qdd = rng.normal(size=(3, 7, 6))
    tau = arm.kernel("inverse_dynamics", friction=True)(q, qd, qdd)
    assert np.abs(tau - arm.inverse_dynamics(q, qd, qdd) - stribeck(arm, qd)).max() < 1e-11
    back = arm.kernel("forward_dynamics", friction=True)(q, qd, tau)
    assert np.abs(back - qdd).max() < 1e-9


def test_the_file_keeps_the_law(arm, tmp_path):
    arm.save(tmp_path / "arm.toml")
    again = armdyn.load(tmp_path / "arm.toml")
    assert [(j.static, j.stribeck) for j in again.joints] == [(j.static, j.stribeck) for j in arm.joints]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler on this machine")
def test_c_has_the_same_law(arm, tmp_path, rng):
    arm.emit_c(tmp_path, ["friction"])
    source = tmp_path / "stribeck.c"
    subprocess.run(
        ["gcc", "-std=c99", "-shared", "-fPIC", "-o", "lib.so", source.name, "-lm"], cwd=tmp_path, check=True
    )
    function = getattr(ctypes.CDLL(str(tmp_path / "lib.so")), f"{source.stem}_friction")
    qd, out = rng.normal(size=6) * 0.1, np.empty(6)
    function(*(a.ctypes.data_as(ctypes.c_void_p) for a in (qd, out)))
    assert np.abs(out - stribeck(arm, qd)).max() < 1e-12


def test_static_friction_below_coulomb_is_found(arm):
    joints = tuple(replace(joint, static=joint.coulomb / 2) for joint in arm.chain.joints)
    assert any("static friction" in str(found) for found in check(replace(arm.chain, joints=joints)))

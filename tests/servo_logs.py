"""Logs of arms under simulated position servos, by `armdyn.simulate`: another integrator, and exact sticking."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

import armdyn
from armdyn.chain import Servo
from armdyn.simulation.digital import Actuators

COUNT = 2 * np.pi / 4096  # 12 bits per turn


def exact(x):
    return Fraction(repr(float(x)))


def with_servos(arm, kp, kd, delay, armature, viscous, coulomb, limit=None):
    """The arm with such servos: one number per joint each."""
    joints = []
    for i, joint in enumerate(arm.given.joints):
        law = Servo(exact(kp[i]), exact(kd[i]), delay=exact(delay), resolution=exact(COUNT))
        ends = replace(joint.limit, effort=None if limit is None else float(limit[i]))
        drive = {"rotor_inertia": armature, "viscous": viscous, "coulomb": coulomb}
        numbers = {name: exact(x[i]) for name, x in drive.items()}
        joints.append(replace(joint, servo=law, limit=ends, **numbers))
    return replace(arm, given=replace(arm.given, joints=tuple(joints)))


def commands(n, seconds, rate, rng, size=0.5, fastest=1.2, centre=0.0):
    """Sums of sines (samples, n) from standstill, with some steps."""
    t = np.arange(round(seconds * rate) + 1) / rate
    found = np.zeros((len(t), n))
    for i in range(n):
        for f in rng.uniform(0.15, fastest, 4):
            found[:, i] += size / 4 * np.sin(2 * np.pi * f * t + rng.uniform(0, 2 * np.pi))
    found *= np.minimum(t / 0.5, 1)[:, None]
    return t, found + centre


def record(arm, t, command, firmware=1e-3, resolution=None, noise=0.0, seed=0):
    """A `Log` of the arm under its servos: the firmware computes torques every `firmware` s and holds them."""
    kp, kd, delay = (np.array([float(getattr(j.servo, name)) for j in arm.joints]) for name in ("kp", "kd", "delay"))
    count = np.array([float(j.servo.resolution) if resolution is None else resolution for j in arm.joints])
    period = t[1] - t[0]

    def torque(now, q, qd):
        k = np.clip(np.floor((now - delay) / period + 1e-6).astype(int), 0, len(t) - 1)
        wanted = command[k, np.arange(arm.n)]
        return kp * (wanted - q) - kd * qd

    saturate = any(joint.limit.effort is not None for joint in arm.joints)
    run = armdyn.simulate(
        arm, command[0], torque=torque, times=t, limits=False, saturate=saturate, step=firmware / 2,
        actuators=Actuators(period=firmware),
    )  # fmt: skip
    assert run.status == "finished", run.message
    rng = np.random.default_rng(seed)
    q = run.q + noise * rng.standard_normal(run.q.shape)
    return armdyn.Log.of(t, np.round(q / count) * count, command=command, clock="stamps")

"""Simulated logs with friction and noise, for the tests of what is detected in logs."""

from __future__ import annotations

import numpy as np

RATE = 200.0


def recorded(arm, seconds=10.0, seed=0, drive=None):
    """t, q, qd, tau of a noisy motion with friction and without a pause; `drive(qd, qdd)` gives further torques."""
    rng = np.random.default_rng(seed)
    t = np.arange(0, seconds, 1 / RATE)
    q, qd, qdd = np.zeros((3, len(t), arm.n))
    for k in range(1, 6):
        w, a, b = 2 * np.pi * 0.13 * k, *rng.normal(size=(2, arm.n)) / k
        s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        q, qd, qdd = q + a * s + b * c, qd + w * (a * c - b * s), qdd - w**2 * (a * s + b * c)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd)) + 0.4 * qd + 0.8 * np.sign(qd)
    tau = tau if drive is None else tau + drive(qd, qdd)
    return t, q + 1e-5 * rng.normal(size=q.shape), qd, tau + 0.02 * rng.normal(size=q.shape)

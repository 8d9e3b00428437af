"""IDIM-IV: instrumental variables from simulating the current estimate.

Source: A. Janot, P.-O. Vandanjon, M. Gautier, "A generic instrumental variable approach for industrial robot
identification", IEEE T-CST 22(1), 2014.

Idea: noise on the positions makes the regressor Y noisy and least squares biased. Instruments Z, the same regressor
along a simulated motion of the estimated arm under feedback, are correlated with Y but not with its noise:
π = (Zᵀ W² Y)⁻¹ Zᵀ W² τ. A few iterations of simulating and solving converge.

The robot's controller is not in the log: the simulation follows the smoothed positions by PD control with ten times the
bandwidth of the motion, and with compensation of gravity and friction. The simulated arm is the physically consistent
one closest to the estimate. Its steps are those of `armdyn.programs.stepping`. `simulate` is not called, because its
control laws know the arm that was loaded: here inertias and gravity in the feedback are those of the estimate, which
changes in every round. The columns of the regressor, compiled once, give the torques of every estimate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import ComputationError
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.fit import Fit, Setting, nearest
from armdyn.identification.model import Rows, rows
from armdyn.identification.processing import Motion, derivative, lowpass
from armdyn.programs.stepping import RK4, step

Array = NDArray[np.float64]
ROUNDS = 4
SMOOTH, FEEDBACK = 3.0, 10.0  # cut-off of the motion followed and the feedback's bandwidth, in the motion's own


def instrumental(found: Rows, setting: Setting) -> Fit:
    """Instruments from simulations of the estimate, from weighted least squares on."""
    solution = linear.weighted(found.Y, found.tau, found.kept)
    values, weights = solution.values, solution.weights
    if setting.instruments is not None:  # a fold: the simulated motion is that of the whole log
        values = _solved(setting.instruments, found, weights)
        return Fit(values, nearest(setting, values), weights, instruments=setting.instruments)
    assert setting.parts is not None
    assert setting.how is not None
    consistent = PhysicallyConsistent(found, setting, weights)
    Z = found.Y
    for _ in range(ROUNDS):
        natural = consistent(values)
        moved = [_simulated(setting, natural, part) for part in setting.parts]
        Z = rows(setting.model, moved, setting.how).Y
        before, values = values, _solved(Z, found, weights)
        if np.linalg.norm(found.Y @ (values - before)) < 1e-3 * np.linalg.norm(found.tau - found.Y @ values):
            break
    return Fit(values, nearest(setting, values), weights, instruments=Z)


class PhysicallyConsistent:
    """Physically consistent bodies nearest to identifiable parameters in what they do: an arm that can be simulated."""

    def __init__(self, found: Rows, setting: Setting, weights: Array) -> None:
        model = setting.model
        self.problem = Problem.of(model, setting.prior)
        self.K = model.natural
        self.R, _ = linear.compress(found.Y, found.tau, weights)

    def __call__(self, values: Array) -> Array:
        """The natural parameters of links and drives."""
        return self.problem.solve(self.R @ self.K, self.R @ values, 1.0)


def _solved(Z: Array, found: Rows, weights: Array) -> Array:
    p = Z.shape[-1]
    A, Y = (Z * weights[..., None]).reshape(-1, p), (found.Y * weights[..., None]).reshape(-1, p)
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    normal = (A / scale).T @ (Y / scale)
    return np.asarray(np.linalg.lstsq(normal, (A / scale).T @ (found.tau * weights).ravel(), rcond=1e-12)[0] / scale)


def _simulated(setting: Setting, natural: Array, part: Motion) -> Motion:
    """The estimated arm following the smoothed motion."""
    rate = 1 / part.period
    assert setting.how is not None
    motion = setting.how.bandwidth
    q = lowpass(part.q, rate, min(SMOOTH * motion, 0.4 * rate))
    qd = derivative(q, part.period)
    follow = _Follower(setting, natural, 2 * np.pi * FEEDBACK * motion)
    states = follow.run(q, qd, part.period)
    return replace(part, q=states[0], qd=states[1], qdd=states[2])


class _Follower:
    """Feedback simulation of an arm with given natural parameters: τ = H (ω² e + 2 ω ė) + gravity."""

    def __init__(self, setting: Setting, natural: Array, omega: float) -> None:
        self.arm, self.omega = setting.model.arm, omega
        n = self.arm.n
        self.links = natural[: setting.model.links]
        self.still = np.zeros((n + 2, n))
        self.units = np.vstack([np.zeros((2, n)), np.eye(n)])
        self.rotors = setting.model.of_joints("rotor", natural)

    def acceleration(self, q: Array, qd: Array, q_ref: Array, qd_ref: Array) -> Array:
        """q̈ from torque balances at q: bias, then one unit acceleration after the other."""
        n = self.arm.n
        speeds = self.still.copy()
        speeds[0] = qd
        tau = np.asarray(self.arm.natural_regressor(np.broadcast_to(q, (n + 2, n)), speeds, self.units)) @ self.links
        bias, gravity = tau[0], tau[1]
        H = tau[2:] - gravity + np.diag(self.rotors)
        wanted = self.omega**2 * (q_ref - q) + 2 * self.omega * (qd_ref - qd)
        return np.asarray(wanted + np.linalg.solve(H, gravity - bias))

    def run(self, q_ref: Array, qd_ref: Array, period: float) -> tuple[Array, Array, Array]:
        """q, q̇, q̈ at every sample, in steps that are short enough for the feedback."""
        steps = max(1, int(np.ceil(self.omega * period / 0.5)))
        h = period / steps
        q, v = q_ref[0].copy(), qd_ref[0].copy()
        out = np.empty((3, *q_ref.shape))
        for k in range(len(q_ref)):
            out[0, k], out[1, k] = q, v
            out[2, k] = self.acceleration(q, v, q_ref[k], qd_ref[k])
            for s in range(steps):

                def accelerations(stage: int, x: list[float], w: list[float], k: int = k, s: int = s) -> list[float]:
                    u = (s + float(RK4.nodes[stage])) / steps  # the reference is linear from sample to sample
                    at = ((1 - u) * ref[k] + u * ref[min(k + 1, len(ref) - 1)] for ref in (q_ref, qd_ref))
                    return list(self.acceleration(np.array(x), np.array(w), *at))

                q, v = (np.array(x) for x in step(RK4, list(q), list(v), h, accelerations))
            if not np.isfinite(q).all():
                raise ComputationError("the simulated estimate runs away: use estimator='consistent' for this log")
        return out[0], out[1], out[2]

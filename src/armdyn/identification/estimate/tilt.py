"""Base tilt: the direction of gravity by separable nonlinear least squares.

A base tilted by a degree or two causes torques that no physically consistent bodies explain. The regressor is linear in
gravity, so three regressors and one QR factorization suffice for any direction; for each, the consistent fit gives all
other parameters. (Without the consistency constraint, the bodies would absorb a part of the tilt.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification.estimate import linear
from armdyn.identification.estimate.consistent import Problem
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.model import Model
from armdyn.identification.model.rows import filtered

Array = NDArray[np.float64]
MOST_TILT = 0.1  # rad: a larger angle is a different mounting, not a base tilt
REGULARIZATION = 10.0


def tilted(arm: Arm, x: float, y: float) -> Arm:
    """The arm with gravity tilted by small angles towards two directions orthogonal to it."""
    g = np.array(arm.gravity)
    first, second = _square(g)
    size = np.linalg.norm(g)
    turned = g * np.cos(np.hypot(x, y)) + size * (np.sin(x) * first + np.sin(y) * second)
    return arm.with_gravity(turned * size / np.linalg.norm(turned))


def _square(g: Array) -> tuple[Array, Array]:
    down = g / np.linalg.norm(g)
    first = np.eye(3)[np.argmin(np.abs(down))]
    first = first - (first @ down) * down
    first /= np.linalg.norm(first)
    return first, np.cross(down, first)


def find_tilt(model: Model, prior: Arm, parts: list[Motion], how: Processing, weights: Array) -> tuple[float, float]:
    """The two tilt angles (rad) that fit the log best."""
    from scipy.optimize import minimize

    arm = model.arm
    if not np.linalg.norm(arm.gravity) > 0:
        return 0.0, 0.0
    links = model.links
    upright, *sides = sideways(arm, parts, how)
    extra = np.concatenate([filtered(model.extras(p.q, p.qd, p.qdd, p.log), p, how) for p in parts])
    tau = np.concatenate([filtered(p.tau, p, how) for p in parts])
    every = np.concatenate([upright, *sides, extra, tau[..., None]], axis=2) * weights[..., None]
    R = linear.triangle(every.reshape(-1, every.shape[-1]))
    problem = Problem.of(model, prior)
    z = R[:, -1]

    nearby: list[Array] = []  # the parameters at the last angles

    def cost(angles: Array) -> float:
        x, y = np.sin(angles)
        A = R[:, :links] + x * R[:, links : 2 * links] + y * R[:, 2 * links : 3 * links]
        A = np.hstack([A, R[:, 3 * links : -1]])
        nearby[:] = [problem.solve(A, z, REGULARIZATION, *nearby)]
        return problem.cost(A, z, REGULARIZATION, nearby[0])

    start = [[0.0, 0.0], [0.02, 0.0], [0.0, 0.02]]
    options: Any = {"xatol": 5e-4, "fatol": 0.1, "maxfev": 50, "initial_simplex": start}
    x, y = np.clip(minimize(cost, np.zeros(2), method="Nelder-Mead", options=options).x, -MOST_TILT, MOST_TILT)
    return float(x), float(y)


def sideways(arm: Arm, parts: list[Motion], how: Processing) -> tuple[Array, Array, Array]:
    """The natural regressor, and its change with horizontal gravity in two directions: (N, n, 10 n) each."""
    g = np.array(arm.gravity)
    upright = _natural(arm, parts, how)
    size = float(np.linalg.norm(g))
    first, second = (_natural(arm.with_gravity(g + size * d), parts, how) - upright for d in _square(g))
    return upright, first, second


def _natural(arm: Arm, parts: list[Motion], how: Processing) -> Array:
    return np.concatenate([filtered(np.asarray(arm.natural_regressor(p.q, p.qd, p.qdd)), p, how) for p in parts])

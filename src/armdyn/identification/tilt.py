"""How the base leans: gravity's direction by separable non-linear least squares.

A base that is off level by a degree or two turns into torques that no possible body explains. The regressor is linear
in gravity, so three kernels and one triangle are enough to try any direction: for each, everything else is linear, is
pulled to the prior, and is projected out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification import linear
from armdyn.identification.bodies import reference_bodies
from armdyn.identification.consistent import Problem
from armdyn.identification.model import Model
from armdyn.identification.samples import Motion, Processing, thinned

Array = NDArray[np.float64]
MOST = 0.1  # rad: more than this is another mounting, not a base off level
PULL = 10.0


def level(arm: Arm, x: float, y: float) -> Arm:
    """The arm with gravity leaning by small angles towards two directions square to it."""
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


def lean(model: Model, prior: Arm, parts: list[Motion], how: Processing, weights: Array) -> tuple[float, float]:
    """The two angles (rad) that explain the log best."""
    from scipy.optimize import minimize

    arm = model.arm
    if not np.linalg.norm(arm.gravity) > 0:
        return 0.0, 0.0
    size, links = float(np.linalg.norm(arm.gravity)), 10 * model.n
    upright = _natural(arm, parts, how)
    g = np.array(arm.gravity)
    sides = [(_natural(arm.with_gravity(g + size * d), parts, how) - upright) for d in _square(g)]
    extra = np.concatenate([thinned(model.extras(p.q, p.qd, p.qdd), p, how) for p in parts])
    tau = np.concatenate([thinned(p.tau, p, how) for p in parts])
    every = np.concatenate([upright, *sides, extra, tau[..., None]], axis=2) * weights[..., None]
    R = linear.triangle(every.reshape(-1, every.shape[-1]))
    bodies, _ = reference_bodies(model.prior(prior)[:links])
    T = Problem(bodies, model.extra_positive).coordinates
    ones = np.tile([1.0 if r == c else 0.0 for c in range(4) for r in range(c + 1)], model.n)
    extras = R[:, 3 * links : -1]
    norms = np.linalg.norm(extras, axis=0)
    extras = extras / np.where(norms > 0, norms, 1.0)
    z = R[:, -1]
    held = np.sqrt(PULL) * np.diag(np.r_[np.ones(links), np.full(extras.shape[1], 1 / np.linalg.norm(z))])

    def left(angles: Array) -> Array:
        x, y = np.sin(angles)
        A = (R[:, :links] + x * R[:, links : 2 * links] + y * R[:, 2 * links : 3 * links]) @ T
        rows = np.vstack([np.hstack([A, extras]), held])
        target = np.concatenate([z - A @ ones, np.zeros(len(held))])
        step = np.linalg.solve(rows.T @ rows, rows.T @ target)
        return np.asarray(target - rows @ step)

    def cost(angles: Array) -> float:
        off = left(angles)
        return float(off @ off)

    found = minimize(
        cost,
        np.zeros(2),
        method="Nelder-Mead",
        options={"xatol": 1e-4, "fatol": 1e-3, "maxfev": 80, "initial_simplex": [[0, 0], [0.02, 0], [0, 0.02]]},
    ).x
    x, y = np.clip(found, -MOST, MOST)
    return float(x), float(y)


def _natural(arm: Arm, parts: list[Motion], how: Processing) -> Array:
    return np.concatenate([thinned(np.asarray(arm.natural_regressor(p.q, p.qd, p.qdd)), p, how) for p in parts])

"""The width of the smooth sign of Coulomb friction, fitted to the log per joint.

A width that is too large leaves a residual near zero velocity, which any low-speed term then explains: with friction
that was a plain sign, the selection added Stribeck friction at 60 % of the joints. So narrower widths are tried first,
joint by joint, by separable least squares: all other columns are projected out.

Stribeck friction by separable nonlinear least squares: the search is over the Stribeck velocities only.

For given velocities all other parameters are linear and are projected out (Golub & Pereyra 1973). The velocity of one
joint changes one column, so the gain of a trial is (cᵀ r)² / (cᵀ c), with all other columns projected out of c and r.

Base tilt: the direction of gravity by separable nonlinear least squares.

A base tilted by a degree or two causes torques that no physically consistent bodies explain. The regressor is linear in
gravity, so three regressors and one QR factorization suffice for any direction; for each, the consistent fit gives all
other parameters. (Without the consistency constraint, the bodies would absorb a part of the tilt.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import required
from armdyn.identification import linear
from armdyn.identification.consistent import Problem
from armdyn.identification.left_out import better, ridge, segments
from armdyn.identification.linear import weighted
from armdyn.identification.model import TERMS, Model, Parameter, Rows, filtered, rows
from armdyn.identification.processing import Motion, Processing, smooth_sign

Array = NDArray[np.float64]
WORTH = 0.02  # narrower signs must lower the left-out error by 2 %
WIDTHS = (1.0, 0.5, 0.25, 0.0)  # relative to the joint's default; wider shapes are left to the selection of terms


def with_widths(
    model: Model, prior: Arm, parts: list[Motion], how: Processing, found: Rows, folds: int
) -> tuple[Model, Rows]:
    """The model with narrower signs, and its rows, if left-out segments in time and in posture bear them out.

    It is unchanged if motors drive several joints. Narrow signs that were taken without being judged made measured
    logs worse by up to 23 %; with 1 % in place of WORTH, one by 30 %.
    """
    narrow = _narrowed(model, parts, how, found)
    if narrow is model or np.array_equal(narrow.width, model.width):
        return model, found
    weights = weighted(found.Y, found.tau, found.kept).weights
    trial = rows(narrow, parts, how)
    solvers = [ridge(m, Problem.of(m, prior, own)) for m, own in ((model, found), (narrow, trial))]
    pairs = zip(*(segments(own, weights, parts, how, folds) for own in (found, trial)), strict=True)
    if all(better(wide.errors(solvers[0]), sharp.errors(solvers[1]), WORTH) for wide, sharp in pairs):
        return narrow, trial
    return model, found


def _narrowed(model: Model, parts: list[Motion], how: Processing, found: Rows) -> Model:
    """The model with the width that fits best for each joint."""
    if "coulomb" not in model.terms or model.coupling is not None:
        return model
    weights = weighted(found.Y, found.tau, found.kept).weights
    A = (found.Y * weights[..., None]).reshape(-1, found.Y.shape[-1])
    flat, width = (found.tau * weights).ravel(), model.width.copy()
    for j in model.terms["coulomb"]:
        others = np.delete(A, model.rigid + model.standing_alone.index(Parameter("coulomb", j)), axis=1)
        Q = np.linalg.qr(others)[0]
        residual = flat - Q @ (Q.T @ flat)

        def explained(part: float, j: int = j, Q: Array = Q, residual: Array = residual) -> float:
            column = np.zeros_like(weights)
            column[:, j] = _sign(parts, how, j, part * float(model.width[j])) * weights[:, j]
            free = column.ravel() - Q @ (Q.T @ column.ravel())
            return float(free @ residual) ** 2 / max(float(free @ free), 1e-300)

        width[j] *= max(WIDTHS, key=explained)
    return replace(model, width=width)


def _sign(parts: list[Motion], how: Processing, j: int, width: float) -> Array:
    """The filtered smooth sign of joint j."""
    return np.concatenate([filtered(smooth_sign(p.qd[:, j], width), p, how) for p in parts])


SWEEPS = 2
SLOWEST, FASTEST = 0.02, 1.0  # range of the Stribeck velocity, as fractions of the joint's largest velocity


def with_bumps(model: Model, parts: list[Motion], how: Processing) -> Model:
    """The model with the Stribeck velocity of each joint that fits the log best."""
    required("scipy")
    from scipy.optimize import minimize_scalar

    top = np.abs(np.concatenate([p.qd for p in parts])).max(axis=0)
    joints = model.terms["stribeck"]
    plain = replace(model, terms={t: own for t, own in model.terms.items() if t != "stribeck"})
    base = rows(plain, parts, how)
    weights = weighted(base.Y, base.tau, base.kept).weights
    A = (base.Y * weights[..., None]).reshape(-1, base.Y.shape[-1])
    Q = np.linalg.qr(A)[0]
    flat = (base.tau * weights).ravel()
    residual = flat - Q @ (Q.T @ flat)

    def freed(j: int, velocity: float) -> Array:
        """Joint j's column for a velocity, freed of the linear columns."""
        trial = replace(model, stribeck=np.where(np.arange(model.n) == j, velocity, 1.0))
        column = np.zeros_like(weights)
        column[:, j] = _column(trial, parts, how, j) * weights[:, j]
        return np.asarray(column.ravel() - Q @ (Q.T @ column.ravel()))

    found = np.where(top > 0, np.clip(model.stribeck, SLOWEST * top, FASTEST * top), model.stribeck)
    columns = {j: freed(j, found[j]) for j in joints}
    for j in joints * SWEEPS:
        others = np.linalg.qr(np.reshape([c for k, c in columns.items() if k != j], (-1, len(flat))).T)[0]
        target = residual - others @ (others.T @ residual)

        def left(logarithm: float, j: int = j, others: Array = others, target: Array = target) -> float:
            column = freed(j, float(np.exp(logarithm)))
            free = column - others @ (others.T @ column)
            size = float(free @ free)
            return -(float(free @ target) ** 2) / size if size > 1e-12 else 0.0

        ends = np.log(SLOWEST * top[j]), np.log(FASTEST * top[j])
        found[j] = np.exp(minimize_scalar(left, bounds=ends, method="bounded", options={"xatol": 0.02}).x)
        columns[j] = freed(j, found[j])
    return replace(model, stribeck=found)


def _column(trial: Model, parts: list[Motion], how: Processing, j: int) -> Array:
    """The filtered column of joint j's bump."""
    pieces = [np.asarray(TERMS["stribeck"].column(trial, p.q, p.qd, p.qdd))[:, j] for p in parts]
    return np.concatenate([filtered(column, part, how) for column, part in zip(pieces, parts, strict=True)])


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
    required("scipy")
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

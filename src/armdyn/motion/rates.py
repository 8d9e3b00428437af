"""Limits of jerk and of the torques' rate: the fastest motion by a sequence of linear programs.

A limit on how fast an acceleration changes ties neighbouring points together, so that no sweep over (s, ṡ) can hold it.
With u and z = ṡ² at the points, z_k+1 - z_k = Δ (u_k + u_k+1) and a step's time T = 2Δ / (√z_k + √z_k+1), joint
accelerations and torques are linear in (u, z), apart from friction, and their change within a step may be at most the
limit times T. T is convex in z: its tangent lies below it, so what a linear program finds within the tangents' limits
holds the true ones (Verscheure et al. 2009 and Debrouwere et al. 2013 have these variables and this argument). Each
program minimises the tangent of the whole time in a trust region of z around the motion before.

At rest the change has a limit too, so the motion begins and ends with u = 0. There z is not smooth in s (z ~ s^4/3 with
constant jerk): the first and the last step are those of constant jerk, T = 3Δ / √z and z = 3/2 Δ u, and the grid is
dense at the ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from armdyn.errors import ComputationError, required
from armdyn.motion.constraints import Constraints, RateLimits

ROUNDS = 60  # linear programs
WIDEST, NARROWEST = 1.0, 1e-3  # the trust region of z, as a part of z
DONE = 2e-6  # of the time: what a round has to gain
ELASTIC = 1e3  # what it costs, in times of the motion, to exceed rates by as much as their limits
FEWEST = 8  # steps
FAR = 1e9  # a limit so large is none: power at standstill
SLOWEST = 1e-9  # of the largest z


@dataclass(frozen=True)
class Steps:
    """The steps of a grid, and which ends of it are at rest."""

    step: np.ndarray
    rests: tuple[bool, bool]

    @property
    def weight(self) -> np.ndarray:
        """T = 2 weight Δ / (√z + √z′)."""
        weight = np.ones(len(self.step))
        weight[[0, -1]] = [1.5 if rest else 1.0 for rest in self.rests]
        return weight

    def times(self, z: np.ndarray) -> np.ndarray:
        """The time of every step."""
        x = np.sqrt(z)
        return np.asarray(2 * self.weight * self.step / (x[:-1] + x[1:]))

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """(2, steps) the derivatives of the times in z at the steps' beginning and end; 0 at an end at rest."""
        x = np.sqrt(z)
        common = -self.weight * self.step / (x[:-1] + x[1:]) ** 2
        with np.errstate(divide="ignore"):
            slopes = np.stack([common / x[:-1], common / x[1:]])
        if self.rests[0]:
            slopes[0, 0] = 0
        if self.rests[1]:
            slopes[1, -1] = 0
        return slopes


def places(start: float, end: float, grid: int, rests: tuple[bool, bool]) -> np.ndarray:
    """The points of a grid that is dense where the motion begins or ends at rest."""
    w = np.linspace(0, 1, grid + 1)
    share = {
        (True, True): w**2 * (3 - 2 * w), (True, False): w**1.5, (False, True): 1 - (1 - w) ** 1.5, (False, False): w,
    }[rests]  # fmt: skip
    return np.asarray(start + (end - start) * share)


def smoothest(
    at: Constraints, s: np.ndarray, guess: np.ndarray, limits: RateLimits, rests: tuple[bool, bool]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Z and u at the points s, and the times of the steps; `guess` is the motion without limits of rates."""
    grid = Steps(np.diff(s), rests)
    z = _slower_at_rest(guess, s, rests)
    trust, e = WIDEST, np.inf
    for _ in range(ROUNDS):
        program = _program(at, grid, z, limits)
        found = program.solve(trust)
        if found is None:
            z[1:-1] /= 2
            continue
        u_new, z_new, e_new = found
        gain = 1 - grid.times(z_new).sum() / grid.times(z).sum()
        if e_new > 1e-9 or e > 1e-9:
            worse = e_new > 1e-9 and e_new > 0.99 * e and trust > 10 * NARROWEST
            trust = trust / 2 if worse else trust
            z, u, e = z_new, u_new, e_new
            continue
        if gain > 0:
            z, u = z_new, u_new
        if gain < DONE:
            if trust <= NARROWEST:
                break
            trust /= 4
    if e > 1e-9:
        raise ComputationError(
            "no motion within the limits of jerk and torque rate was found; a finer grid or larger limits would do"
        )
    return z, u, grid.times(z)


def within(
    z: np.ndarray, u: np.ndarray, step: np.ndarray, rests: tuple[bool, bool], share: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """U and z (1, places) at these shares of every step and at the end."""
    begin, end = u[:-1, None], u[1:, None]
    inner_u = begin + (end - begin) * share
    inner_z = z[:-1, None] + step[:, None] * (2 * begin * share + (end - begin) * share**2)
    if rests[0]:  # constant jerk: s ~ t³, u ~ t, z ~ t⁴
        inner_u[0], inner_z[0] = u[1] * share ** (1 / 3), z[1] * share ** (4 / 3)
    if rests[1]:
        inner_u[-1], inner_z[-1] = u[-2] * (1 - share) ** (1 / 3), z[-2] * (1 - share) ** (4 / 3)
    return np.r_[inner_u.ravel(), u[-1]][None], np.r_[np.maximum(inner_z, 0).ravel(), z[-1]][None]


def _slower_at_rest(z: np.ndarray, s: np.ndarray, rests: tuple[bool, bool]) -> np.ndarray:
    """A motion with u = 0 at the ends at rest: at most about s^4/3 there, and slower everywhere."""
    way = s[-1] - s[0]
    slow: np.ndarray = 0.5 * z
    for rest, distance in zip(rests, (s - s[0], s[-1] - s), strict=True):
        if rest:
            slow = np.minimum(slow, slow.max() * (4 * distance / way) ** (4 / 3))
    slow = np.maximum(slow, SLOWEST * z.max())
    slow[0], slow[-1] = (0.0 if rest else value for rest, value in zip(rests, (z[0], z[-1]), strict=True))
    return slow


@dataclass(frozen=True)
class _LinearProgram:
    """A linear program in (u, z, e), e being by how much the rates' limits are stretched."""

    cost: np.ndarray
    equal: tuple[Any, np.ndarray]
    below: tuple[Any, np.ndarray]
    z: np.ndarray
    fastest: np.ndarray
    rests: tuple[bool, bool]

    def solve(self, trust: float) -> tuple[np.ndarray, np.ndarray, float] | None:
        """U, z and e, or None if there are none in the trust region."""
        required("scipy")
        from scipy.optimize import linprog

        points = len(self.z)
        low, high = self.z / (1 + trust), np.minimum(self.z * (1 + trust), self.fastest)
        low = np.minimum(low, high)
        low[0], high[0], low[-1], high[-1] = self.z[0], self.z[0], self.z[-1], self.z[-1]
        still = [(0.0, 0.0) if rest else (None, None) for rest in self.rests]
        bounds = [still[0], *[(None, None)] * (points - 2), still[1], *zip(low, high, strict=True), (0, None)]
        (A, b), (C, d) = self.below, self.equal
        found = linprog(self.cost, A, b, C, d, bounds, method="highs")
        if not found.success:
            return None
        x = np.asarray(found.x)
        return x[:points], np.maximum(x[points:-1], 0), float(x[-1])


def _program(at: Constraints, grid: Steps, z: np.ndarray, limits: RateLimits) -> _LinearProgram:
    """The program around z."""
    required("scipy")
    from scipy import sparse

    points, k = len(z), np.arange(len(z))
    times, slopes = grid.times(z), grid.slopes(z)
    gradient = np.zeros(points)
    gradient[:-1] += slopes[0]
    gradient[1:] += slopes[1]
    cost = np.concatenate([np.zeros(points), gradient, [ELASTIC * times.sum()]])
    steps = np.arange(points - 1)
    rate = grid.weight * grid.step
    one = np.ones(points - 1)
    equal = sparse.csr_array(
        (np.concatenate([rate, rate, one, -one]),
         (np.tile(steps, 4), np.concatenate([steps, steps + 1, points + steps, points + steps + 1]))),
        shape=(points - 1, 2 * points + 1),
    )  # fmt: skip
    blocks, sides = [], []

    def add(u: np.ndarray, v: np.ndarray, side: np.ndarray) -> None:
        """Rows u_k u + v_k z ≤ side, (points,) each."""
        fine = (np.abs(side) < FAR) & (np.abs(u) + np.abs(v) > 0)
        rows = np.arange(int(fine.sum()))
        blocks.append(sparse.csr_array(
            (np.concatenate([u[fine], v[fine]]), (np.tile(rows, 2), np.concatenate([k[fine], points + k[fine]]))),
            shape=(len(rows), 2 * points + 1),
        ))  # fmt: skip
        sides.append(side[fine])

    low, high, low_slope, high_slope = _ends(at, z)
    alpha, beta = at.alpha[0], at.beta[0]
    for r in range(alpha.shape[1]):
        add(alpha[:, r], beta[:, r] - high_slope[:, r], high[:, r] - high_slope[:, r] * z)
        add(-alpha[:, r], low_slope[:, r] - beta[:, r], low_slope[:, r] * z - low[:, r])
    u = np.gradient(z, np.concatenate([[0.0], np.cumsum(grid.step)])) / 2
    for A, B, C, radius in at.norms:
        value = A[0] * u[:, None] + B[0] * z[:, None] + C[0]
        normal = value / np.maximum(np.linalg.norm(value, axis=1), 1e-12)[:, None]
        add((normal * A[0]).sum(1), (normal * B[0]).sum(1), radius - (normal * C[0]).sum(1))
    for rows in _rate_rows(at, z, limits):
        _add_rates(blocks, sides, rows, (times, slopes, z))
    below = sparse.vstack(blocks, format="csr"), np.concatenate(sides)
    return _LinearProgram(cost, (equal, np.zeros(points - 1)), below, z, at.fastest[0], grid.rests)


def shares(at: Constraints, z: np.ndarray, u: np.ndarray, times: np.ndarray, limits: RateLimits) -> np.ndarray:
    """(steps, rows) the part of its limit by which every row changes: jerks, then torques."""
    n = at.q.shape[-1]
    values = [(at.dq[0] * u[:, None] + at.ddq[0] * z[:, None], limits.jerk)]
    for i, arm in enumerate(at.arms):
        rows = slice(i * n, i * n + n)
        tau = at.alpha[0, :, rows] * u[:, None] + at.beta[0, :, rows] * z[:, None] + at.gravity[i][0]
        if at.friction:
            x = np.maximum(np.sqrt(z), at.slowest[0])[:, None]
            tau = tau + arm.joint_forces(at.q[0], at.dq[0] * x, np.zeros(n))
        values.append((tau, limits.torque))
    parts = [np.abs(np.diff(y, axis=0)) / (times[:, None] * most) for y, most in values]
    return np.asarray(np.concatenate(parts, axis=1))


RateRow = tuple[np.ndarray, np.ndarray, np.ndarray, float]  # u, z and constant parts at the points, the limit


def _rate_rows(at: Constraints, z: np.ndarray, limits: RateLimits) -> list[RateRow]:
    """What must not change too fast."""
    n, rows = at.q.shape[-1], []
    for j in np.flatnonzero(np.isfinite(limits.jerk)):
        rows.append((at.dq[0, :, j], at.ddq[0, :, j], np.zeros(len(z)), float(limits.jerk[j])))
    if not np.isfinite(limits.torque).any():
        return rows
    step = np.maximum(1e-6 * z, 1e-9 * z.max())
    for i, arm in enumerate(at.arms):
        weight, slope = at.gravity[i][0], np.zeros_like(at.q[0])
        if at.friction:
            x = np.maximum(np.sqrt(np.stack([z, z + step])), at.slowest[0])[..., None]
            force, more = arm.joint_forces(at.q[0], at.dq[0] * x, np.zeros(n))
            slope = (more - force) / step[:, None]
            weight = weight + force - slope * z[:, None]
        for j in np.flatnonzero(np.isfinite(limits.torque)):
            r = i * n + j
            rows.append((at.alpha[0, :, r], at.beta[0, :, r] + slope[:, j], weight[:, j], float(limits.torque[j])))
    return rows


def _add_rates(
    blocks: list[Any], sides: list[np.ndarray], row: RateRow, around: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    """The change of a row within every step, at most its limit times the step's time."""
    required("scipy")
    from scipy import sparse

    a, b, c, limit = row
    times, slopes, z = around
    points, k = len(z), np.arange(len(z) - 1)
    constant = limit * (times - slopes[0] * z[:-1] - slopes[1] * z[1:])
    for side in (1.0, -1.0):
        values = np.concatenate([
            side * a[1:], -side * a[:-1], side * b[1:] - limit * slopes[1], -side * b[:-1] - limit * slopes[0],
            -limit * times,
        ])  # fmt: skip
        columns = np.concatenate([k + 1, k, points + k + 1, points + k, np.full(len(k), 2 * points)])
        blocks.append(sparse.csr_array((values, (np.tile(k, 5), columns)), shape=(len(k), 2 * points + 1)))
        sides.append(constant - side * (c[1:] - c[:-1]))


def _ends(at: Constraints, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lower and upper ends of the rows (points, rows) at z, and their derivatives in z."""
    step = np.maximum(1e-6 * z, 1e-9 * z.max())
    lane = at.as_lanes()
    values = []
    for speeds in (z, z + step):
        low, high = lane.row_ends(0, np.sqrt(speeds)[:, None])
        shape = at.alpha.shape[1:]
        values.append((low.reshape(shape), high.reshape(shape)))
    (low, high), (low_more, high_more) = values
    moving = (z > 0)[:, None]  # z is fixed at an end at rest, where a limit of power is infinitely steep
    with np.errstate(invalid="ignore"):
        slopes = [
            np.where(moving, np.nan_to_num((b - a) / step[:, None]), 0.0)
            for a, b in ((low, low_more), (high, high_more))
        ]
    return low + at.tight[0, 0], high - at.tight[1, 0], slopes[0], slopes[1]

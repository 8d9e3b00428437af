"""Excitation: a trajectory that tells most about an arm's parameters within what the arm may do.

The criterion is the information of the whole model, drives and friction with it (`information.py`). Limits are
penalties on a grid while searching (L-BFGS with exact gradients: one backward sweep of Σ G·Y through the regressor's
graph); the result is then checked on a dense grid and made smaller about its centre until every limit holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import ComputationError, InputError, choose
from armdyn.identification.estimate.linear import condition
from armdyn.identification.estimate.threads import one_thread
from armdyn.identification.excitation.fourier import Basis
from armdyn.identification.excitation.information import CRITERIA, Information
from armdyn.identification.excitation.limits import Limits

Array = NDArray[np.float64]
GRID = 120  # samples per trajectory while searching
DENSE = 2000  # samples per trajectory for the last word on limits
ROUNDS = (10.0, 1000.0, 1e4)  # strength of the penalties, round by round
STEPS = 300  # of L-BFGS in one round
RANDOM, BEST = 200, 1  # random trajectories; how many of the best are the reference (with 10 the median gains less)
SHAKEN, HOPS = 0.1, 2  # part of its size by which the best trajectory is shaken and searched again, how often
NEAR = 0.1  # m: links whose axes come nearer probably touch
NOISE = 0.02  # of each joint's largest (or usual) torque: the noise that is assumed of it


@dataclass(frozen=True, eq=False)
class Excitation:
    """One or several trajectories: t (N,), q, qd, qdd (m, N, n).

    `deviations` are those of `names` predicted from these samples with the noise that was assumed; `condition` is the
    condition number of the rigid body's regressor with unit columns.
    """

    arm: Arm
    t: Array
    q: Array
    qd: Array
    qdd: Array
    condition: float
    joints: tuple[str, ...]
    names: tuple[str, ...] = ()
    deviations: Array = field(default_factory=lambda: np.zeros(0))
    warnings: tuple[str, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write CSV: t, q1 ... qd1 ... qdd1 ...; several trajectories get a first column `trajectory`."""
        from armdyn.files.text import write_text

        n, many = self.q.shape[2], len(self.q) > 1
        names = ["t", *(f"{s}{k + 1}" for s in ("q", "qd", "qdd") for k in range(n))]
        lines = [",".join(["trajectory", *names] if many else names)]
        for number, states in enumerate(zip(self.q, self.qd, self.qdd, strict=True), 1):
            for row in np.column_stack([self.t, *states]):
                numbers = ",".join(f"{x:.9g}" for x in row)
                lines.append(f"{number},{numbers}" if many else numbers)
        write_text(path, "\n".join(lines) + "\n")


def excite(
    arm: Arm,
    duration: float = 20.0,
    *,
    trajectories: int = 1,
    harmonics: int = 5,
    criterion: str = "information",
    noise: float | Sequence[float] | None = None,
    acceleration: float | Sequence[float] | None = None,
    plane: tuple[Sequence[float], float] | None = None,
    clearance: float | None = None,
    margin: float = 0.95,
    rate: float = 100.0,
    starts: int = 6,
    seed: int = 0,
    prior: Sequence[float] | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> Excitation:
    """Design a periodic trajectory (or several) to identify an arm with.

    Parameters
    ----------
    arm
        The arm; its limits on position, velocity and effort hold, its inertias give the torque.
    duration
        Seconds of one period.
    trajectories
        How many different ones, judged together.
    harmonics
        Harmonics of 1 / duration.
    criterion
        ``information`` (the mean logarithm of the parameters' deviations, with a penalty on parameters that the best
        of 200 random motions would know as well) or ``determinant`` (D-optimal alone).
    noise
        Standard deviation of the torques (N m, N), one or n; 2 % of the limits of effort unless given.
    acceleration
        Largest joint accelerations, one or n.
    plane
        (normal, distance) in the base frame: the tool and the joints from the third on stay where
        normal · position >= distance.
    clearance
        Metres that the axes of links which are not neighbours stay apart.
    margin
        The part of every limit that may be used.
    rate
        Samples per second of the result.
    starts, seed
        Searches from the best random trajectories.
    prior
        Standard deviations of the parameters (`Excitation.names`) as they are known already, inf where they are not:
        what is known need not be shown again.
    progress
        Called with (done, total).
    """
    choose("criterion", criterion, CRITERIA)
    if not (duration > 0 and harmonics >= 2 and trajectories >= 1 and starts >= 1 and 0 < margin <= 1 and rate > 0):
        raise InputError("duration, rate, trajectories and starts must be positive, harmonics >= 2, 0 < margin <= 1")
    limits = Limits.of(arm, acceleration, plane, margin, clearance)
    rng = np.random.default_rng(seed)
    with one_thread():
        design = designed(arm, Basis(duration, harmonics), limits, trajectories, criterion, noise, rng)
        if prior is not None:
            samples = round(duration * rate) * trajectories
            design = replace(design, information=design.information.knowing(prior, samples))
        found = _best_of(design, starts, rng, progress)
    t = np.linspace(0, duration, round(duration * rate) + 1)
    q, qd, qdd = design.states(found, t)
    flat = [x.reshape(-1, arm.n) for x in (q, qd, qdd)]
    Y = np.asarray(arm.regressor(*flat))
    number = condition(Y.reshape(-1, Y.shape[-1]))
    told = (design.information.names, design.information.deviations(*flat))
    return Excitation(arm, t, q, qd, qdd, number, tuple(j.name for j in arm.joints), *told, _warnings(limits, flat[0]))


def designed(
    arm: Arm,
    basis: Basis,
    limits: Limits,
    trajectories: int,
    criterion: str,
    noise: float | Sequence[float] | None,
    rng: np.random.Generator,
) -> Design:
    """The search, with the noise of the torques and the variances of random motions settled."""
    usual = Information.of(arm, np.ones(arm.n), limits.velocity, criterion)
    design = Design(arm, basis, limits, trajectories, usual)
    states = [design.flat(design.random(rng), 2 * GRID) for _ in range(RANDOM)]
    if noise is None:
        tau = [limits.torque(np.asarray(arm.regressor(*s)), s[1], s[2]) for s in states]
        size = np.sqrt(np.mean([(t**2).mean(axis=0) for t in tau], axis=0))
        level = NOISE * np.where(np.isfinite(arm.effort_limits), arm.effort_limits, np.maximum(size, 1e-3 * size.max()))
    else:
        level = np.broadcast_to(np.asarray(noise, dtype=float), (arm.n,))
        if not (level > 0).all():
            raise InputError(f"the noise of the torques must be positive, got {noise}")
    known = replace(usual, noise=np.array(level))
    variances = np.array([known.deviations(*s) ** 2 * len(s[0]) for s in states])
    order = np.argsort((variances / variances.min(axis=0)).sum(axis=1))
    return replace(design, information=replace(known, reference=variances[order[:BEST]].min(axis=0)))


def _warnings(limits: Limits, q: Array) -> tuple[str, ...]:
    """What the room about the arm should be able to bear."""
    said = []
    if limits.plane is None:
        lowest = float(limits.skeleton.points(q)[:, limits.skeleton.moving, 2].min())
        where = f"goes {-lowest:.2g} m below the base" if lowest < 0 else f"stays {lowest:.2g} m above the base"
        said.append(f"no floor was given, and the motion {where}: plane=... (--above) keeps it above one")
    if limits.clearance is None:
        near = replace(limits, clearance=NEAR, plane=None)
        if (near.intrusion(q) > 0).any():
            said.append(f"links come nearer than {NEAR:g} m to one another: give clearance=... (--clearance)")
    return tuple(said)


def _best_of(
    design: Design, starts: int, rng: np.random.Generator, progress: Callable[[float, float], None] | None
) -> Array:
    """The best of several searches from the best random trajectories, and of searches about it."""
    first = sorted((design.random(rng) for _ in range(RANDOM)), key=design.judged)[:starts]
    total = starts + (HOPS if starts > 1 else 0)
    best = first[0]
    for k in range(total):
        x = first[k] if k < starts else best * (1 + SHAKEN * rng.normal(size=best.shape))
        for done, better in design.searched(x):
            if progress:
                progress(k + done, total)
            best = best if better is None else min(best, better, key=design.judged)
    return best


@dataclass(frozen=True, eq=False)
class Design:
    """The search: unknowns are centre and coefficients of every joint, (trajectories, n, 1 + size), in one row."""

    arm: Arm
    basis: Basis
    limits: Limits
    trajectories: int
    information: Information

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the unknowns."""
        return self.trajectories, self.arm.n, 1 + self.basis.size

    def states(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """q, q̇, q̈: (trajectories, N, n) each."""
        c = x.reshape(self.shape)
        values, rates, seconds = (b @ np.swapaxes(c[..., 1:], 1, 2) for b in self.basis.at(t))
        return values + c[:, None, :, 0], rates, seconds

    def _grid(self, count: int) -> Array:
        return np.linspace(0, self.basis.period, count, endpoint=False)

    def random(self, rng: np.random.Generator) -> Array:
        """A random trajectory as large as the limits allow."""
        low, high = self.limits.lower, self.limits.upper
        size = np.minimum(1.0, (high - low) / 2)[:, None]  # radians or metres: a finger's range is short
        for _ in range(200):
            c = np.empty(self.shape)
            c[..., 1:] = size * rng.normal(size=(*self.shape[:2], self.basis.size))
            c[..., 0] = 0.0
            q, _, _ = self.states(c.ravel(), self._grid(GRID))
            c[..., 0] = rng.uniform(low, high, self.shape[:2]) - q.mean(axis=1)
            within = self.scaled_to_limits(c.ravel())
            if within is not None:
                return within
        raise ComputationError("no random trajectory keeps to the limits: is the plane or an effort limit too tight?")

    def scaled_to_limits(self, x: Array) -> Array | None:
        """The trajectory, smaller about its middle until every limit holds on a dense grid; None if it never does."""
        c = x.reshape(self.shape).copy()
        q, _, _ = self.states(x, self._grid(GRID))
        middle = (q.max(axis=1) + q.min(axis=1)) / 2
        inside = np.clip(middle, self.limits.lower, self.limits.upper)
        c[..., 0] += inside - middle
        shift = c[..., 0] - inside  # centre of the series seen from the middle of the motion
        still = inside[:, None]
        if not self.limits.hold(still, 0 * still, 0 * still):
            return None  # not even standing there is allowed
        q, qd, qdd = self.states(c.ravel(), self._grid(DENSE))
        size = min(1.0, self.limits.room(q, qd, qdd, inside))
        for _ in range(250):
            trial = c * 1.0
            trial[..., 1:] *= size
            trial[..., 0] = inside + size * shift
            if all(self.limits.hold(*self.states(trial.ravel(), self._grid(count))) for count in (GRID, DENSE)):
                return trial.ravel() if size > 1e-3 else None
            size *= 0.97
        return None

    def flat(self, x: Array, count: int) -> list[Array]:
        """q, q̇, q̈ of all trajectories on a grid, (N, n) each."""
        return [s.reshape(-1, self.arm.n) for s in self.states(x, self._grid(count))]

    def judged(self, x: Array) -> float:
        """The criterion, without penalties."""
        return self.information.value(*self.flat(x, 2 * GRID))

    def cost(self, x: Array, strength: float) -> tuple[float, Array]:
        """Criterion and penalties with their exact gradient."""
        t = self._grid(GRID)
        q, qd, qdd = self.flat(x, GRID)
        value, Y, G = self.information.sloped(q, qd, qdd)
        rigid = self.information.model.rigid
        over, dq, dqd, dqdd, dY = self.limits.penalty(q, qd, qdd, Y[..., :rigid])
        G[..., :rigid] += strength * dY
        slopes = self.information.along(q, qd, qdd, G)
        by_state = [s + strength * d for s, d in zip(slopes, (dq, dqd, dqdd), strict=True)]
        gradient = np.zeros(self.shape)
        by_q, by_qd, by_qdd = (s.reshape(self.trajectories, len(t), -1) for s in by_state)
        for b, s in zip(self.basis.at(t), (by_q, by_qd, by_qdd), strict=True):
            gradient[..., 1:] += np.swapaxes(s, 1, 2) @ b
        gradient[..., 0] = by_q.sum(axis=1)
        return value + strength * over, gradient.ravel()

    def searched(self, x: Array) -> Iterator[tuple[float, Array | None]]:
        """(part done, trajectory within the limits), round by round of ever harder limits; None before the last."""
        from scipy.optimize import minimize

        for k, strength in enumerate(ROUNDS, 1):
            x = minimize(self.cost, x, args=(strength,), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
            yield k / len(ROUNDS), self.scaled_to_limits(x) if k == len(ROUNDS) else None

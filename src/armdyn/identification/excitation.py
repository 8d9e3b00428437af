"""Optimal excitation: design of the trajectory that is most informative about an arm's parameters within its limits.

The criterion is the information on the whole model, including drives and friction (`information.py`). During the search
limits are penalties on a time grid. The search is L-BFGS with exact gradients, by reverse-mode differentiation of Σ G·Y
through the graph of the regressor. The result is checked on a dense grid and scaled down about its centre until every
limit holds.

Periodic trajectories: finite Fourier series that start and end at rest (Swevers et al. 1997).

Excitation: designed trajectories, their predicted parameter deviations, and a comparison with random ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm, as_arm
from armdyn.errors import ComputationError, InputError, choose, required
from armdyn.identification.information import CRITERIA, Information
from armdyn.identification.limits import Limits
from armdyn.identification.linear import condition
from armdyn.identification.threads import one_thread
from armdyn.options import ExciteKeywords, Optimisation, Workspace, flat_keywords
from armdyn.results import Result, ResultTable
from armdyn.values import cached_property

Array = NDArray[np.float64]
LEAST = 120  # samples per trajectory while searching, at least
PER_HARMONIC = 15  # samples per period of the fastest harmonic while searching
DENSE = 2000  # samples per trajectory for the final check of the limits
ROUNDS = (10.0, 1000.0, 1e4)  # weight of the penalties, round by round
STEPS = 300  # L-BFGS iterations per round
SPECTRA, STEEPEST = (0.3, 0.6), 3.0  # random motions: a share with all harmonics, with the lowest; others with k^-a
ONE_BY_ONE, SMALLER = 0.5, 0.5  # random motions whose joints are scaled one by one, and the smallest such factor
FEW = 8  # joints: of more, chance leaves one without room nearly always (Baxter's 17: 200 times out of 200)
SLOW, MANY, HIGHEST = 5, 20, 1.0  # harmonics: of slow trajectories, at most unless asked for; Hz of the fastest one
RANDOM = 300  # random trajectories: every parameter should be known at least as well as from the best of them for it
SHAKEN, HOPS = 0.1, 2  # relative perturbation of the best trajectory before another search, and how often
COARSE, CLOSER, SMALLEST = 0.8, 0.97, 1e-3  # factors by which a motion is scaled down, and the smallest scale
NEAR = 0.1  # m: links whose axes come nearer probably touch
NOISE = 0.02  # of each joint's torque limit, or of its rms torque without one: the default torque noise


@flat_keywords(workspace=Workspace, search=Optimisation)
def excite(
    arm: Arm | str | os.PathLike[str],
    duration: float = 20.0,
    *,
    trajectories: int = 1,
    noise: float | Sequence[float] | None = None,
    rate: float = 100.0,
    prior: Sequence[float] | None = None,
    progress: Callable[[float, float], None] | None = None,
    workspace: Workspace = Workspace(),
    search: Optimisation = Optimisation(),
    **keywords: Unpack[ExciteKeywords],
) -> Excitation:
    """Design one or several periodic trajectories for the identification of an arm.

    Parameters
    ----------
    arm
        The arm, or its catalogue name or path. The trajectory respects its limits of position, velocity and effort,
        with torques from its inertias.
    duration
        The period, s.
    trajectories
        The number of different trajectories, which are optimised together.
    harmonics
        The number of harmonics of 1 / duration; by default up to 1 Hz, between 5 and 20. Fewer harmonics give slower
        trajectories with less information.
    criterion
        ``information`` (the mean logarithm of the parameters' standard deviations, with a penalty on parameters that
        are not better known than from the best random motion) or ``determinant`` (D-optimality).
    noise
        Standard deviation of the torque noise (N m, N), one number or n; by default 2 % of the effort limits.
    acceleration
        Largest joint accelerations, one number or n; by default only the limits of effort and velocity apply.
    plane
        (normal, distance) in the base frame: the tool and the joints from the third on stay where
        normal · position >= distance.
    clearance
        The least distance, in metres, between the axes of links that are not neighbours.
    margin
        The fraction of every limit that may be used.
    rate
        The sampling rate of the result, Hz.
    starts, seed
        The number of searches, which start from the best random trajectories, and the seed of these.
    prior
        Standard deviations of the parameters (`Excitation.names`) known before the experiment, inf if unknown. Less
        information is then sought on the parameters that are already known.
    progress
        Called with (done, total).
    workspace, search
        The keywords above as records of `armdyn.options` (`Workspace`, `Optimisation`), to be used more than once.
    """
    choose("criterion", search.criterion, CRITERIA)
    arm = as_arm(arm, "excite")
    arm.must_suit("excitation")
    if not (duration > 0 and trajectories >= 1 and rate > 0):
        raise InputError(
            "duration, rate and trajectories must be positive, got "
            f"duration={duration!r}, rate={rate!r}, trajectories={trajectories!r}"
        )
    usual = int(np.clip(round(HIGHEST * duration), SLOW, MANY))
    harmonics = usual if search.harmonics is None else search.harmonics
    limits = Limits.of(arm, workspace.acceleration, workspace.plane, workspace.margin, workspace.clearance)
    rng = np.random.default_rng(search.seed)
    with one_thread():
        design = designed(arm, Basis(duration, harmonics), limits, trajectories, search.criterion, noise, rng)
        if prior is not None:
            samples = round(duration * rate) * trajectories
            design = replace(design, information=design.information.knowing(prior, samples))
        found = _best_of(design, search.starts, rng, progress)
        chance = best_of_chance(design, OTHERS, rng)[1]
    t = np.linspace(0, duration, round(duration * rate) + 1)
    q, qd, qdd = design.states(found, t)
    flat = [x.reshape(-1, arm.n) for x in (q, qd, qdd)]
    Y = np.asarray(arm.regressor(*flat))
    number = condition(Y.reshape(-1, Y.shape[-1]))
    joints, names = tuple(j.name for j in arm.joints), design.information.names
    own, chance = design.information.deviations(*flat), chance * np.sqrt(design.fine * trajectories / len(flat[0]))
    return Excitation(arm, t, q, qd, qdd, number, joints, names, own, chance, _warnings(limits, flat[0]))


def best_of_chance(design: ExcitationDesign, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """The best random motion, its predicted deviations, and for each parameter the smallest deviation of all motions.

    The best motion has the smallest sum of variances, each relative to the smallest of all motions.
    """
    motions = [design.random(rng) for _ in range(count)]
    deviations = np.array([design.information.deviations(*design.flat(x, design.fine)) for x in motions])
    least = deviations.min(axis=0)
    first = int(np.argmin(((deviations / least) ** 2).sum(axis=1)))
    return motions[first], deviations[first], least


def designed(
    arm: Arm,
    basis: Basis,
    limits: Limits,
    trajectories: int,
    criterion: str,
    noise: float | Sequence[float] | None,
    rng: np.random.Generator,
) -> ExcitationDesign:
    """The design problem, with the torque noise and the reference variances from random motions."""
    usual = Information.of(arm, np.ones(arm.n), limits.velocity, criterion)
    design = ExcitationDesign(arm, basis, limits, trajectories, usual)
    design = replace(design, chance=tuple(design.random(rng) for _ in range(RANDOM)))
    states = [design.flat(x, design.fine) for x in design.chance]
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
    return replace(design, information=known.ahead_of(variances))


def _warnings(limits: Limits, q: Array) -> tuple[str, ...]:
    """Warnings about the space around the arm and about self-collision."""
    said = []
    heights = limits.skeleton.points(q)[:, limits.skeleton.moving, 2]
    if limits.plane is None and heights.size:  # no joint from the third on and no tool: nothing is known to move
        lowest = float(heights.min())
        where = f"goes {-lowest:.2g} m below the base" if lowest < 0 else f"stays {lowest:.2g} m above the base"
        said.append(f"no floor was given, and the motion {where}: plane=... (--above) keeps it above a floor")
    if limits.clearance is None:
        near = replace(limits, clearance=NEAR, plane=None)
        if (near.intrusion(q) > 0).any():
            said.append(f"links come nearer than {NEAR:g} m to one another: give clearance=... (--clearance)")
    return tuple(said)


def _best_of(
    design: ExcitationDesign, starts: int, rng: np.random.Generator, progress: Callable[[float, float], None] | None
) -> Array:
    """The best of several searches from the best random trajectories, and of searches from perturbations of it."""
    first = sorted(design.chance, key=design.judged)[:starts]
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
class ExcitationDesign:
    """The design problem; the unknowns are the flat (trajectories, n, 1 + size) centres and coefficients per joint."""

    arm: Arm
    basis: Basis
    limits: Limits
    trajectories: int
    information: Information
    chance: tuple[Array, ...] = ()  # random trajectories for the reference and the starts

    @property
    def coarse(self) -> int:
        """Samples per trajectory while searching."""
        return max(LEAST, PER_HARMONIC * self.basis.harmonics)

    @property
    def fine(self) -> int:
        """Samples per trajectory for the evaluation of the criterion."""
        return 2 * self.coarse

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the unknowns."""
        return self.trajectories, self.arm.n, 1 + self.basis.size

    def states(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """q, q̇, q̈: (trajectories, N, n) each."""
        return self._of(x, self.basis.at(t))

    def on_grid(self, x: Array, count: int) -> tuple[Array, Array, Array]:
        """The same at `count` equidistant times of one period."""
        return self._of(x, self.basis.on_grid(count))

    def _of(self, x: Array, functions: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        c = x.reshape(self.shape)
        values, rates, seconds = (b @ np.swapaxes(c[..., 1:], 1, 2) for b in functions)
        return values + c[:, None, :, 0], rates, seconds

    def random(self, rng: np.random.Generator) -> Array:
        """A random trajectory as large as the limits allow, of one of several families of spectra."""
        low, high = self.limits.lower, self.limits.upper
        size = np.minimum(1.0, (high - low) / 2)[:, None]  # radians or metres: a finger's range is short
        lower, one_by_one = self._spectrum(rng), self.arm.n > FEW or rng.random() < ONE_BY_ONE
        for _ in range(200):
            c = np.empty(self.shape)
            c[..., 1:] = size * (rng.normal(size=(*self.shape[:2], lower.shape[1])) @ lower.T)
            c[..., 0] = 0.0
            q, _, _ = self.on_grid(c.ravel(), self.coarse)
            c[..., 0] = rng.uniform(low, high, self.shape[:2]) - q.mean(axis=1)
            c = self._within_ranges(c, rng) if one_by_one else c
            within = self.scaled_to_limits(c.ravel())
            if within is not None:
                return within
        raise ComputationError("no random trajectory is within the limits: is the plane or an effort limit too tight?")

    def _spectrum(self, rng: np.random.Generator) -> Array:
        """The coefficients (size, m) of m numbers drawn: all harmonics alike, the lowest ones, or a spectrum k^-a."""
        most = self.basis.harmonics
        kind = rng.random()
        if kind < SPECTRA[0]:
            return self.basis.lower(most)
        if kind < SPECTRA[1]:
            return self.basis.lower(int(rng.integers(min(SLOW, most), most + 1)))
        return self.basis.falling(rng.uniform(0, STEEPEST))

    def _within_ranges(self, c: Array, rng: np.random.Generator) -> Array:
        """Every joint's motion within its own range and speed, some smaller.

        One factor for all joints is that of the joint with the least room; of many joints some has none.
        """
        low, high = self.limits.lower, self.limits.upper
        q, qd, _ = self.on_grid(c.ravel(), self.coarse)
        ends = q.min(axis=1), q.max(axis=1)
        spread = (ends[1] - ends[0]) / (high - low)
        size = 1 / np.maximum(1.0, np.maximum(spread, (np.abs(qd) / self.limits.velocity).max(axis=1)))
        size = size * rng.uniform(SMALLER, 1.0, size.shape)
        middle = (ends[0] + ends[1]) / 2
        half = size * (ends[1] - ends[0]) / 2
        inside = np.clip(middle, low + half, high - half)
        out: Array = c * size[..., None]
        out[..., 0] = inside + size * (c[..., 0] - middle)
        return out

    def scaled_to_limits(self, x: Array) -> Array | None:
        """The trajectory scaled down about its middle until every limit holds on a dense grid; None if none does."""
        c = x.reshape(self.shape).copy()
        q, _, _ = self.on_grid(x, self.coarse)
        middle = (q.max(axis=1) + q.min(axis=1)) / 2
        inside = np.clip(middle, self.limits.lower, self.limits.upper)
        c[..., 0] += inside - middle
        shift = c[..., 0] - inside  # centre of the series seen from the middle of the motion
        still = inside[:, None]
        if not self.limits.hold(still, 0 * still, 0 * still):
            return None  # even the arm at rest violates a limit

        def of(size: float) -> Array:
            trial = c * size
            trial[..., 0] = inside + size * shift
            return np.asarray(trial.ravel())

        size = min(1.0, self.limits.room(*self.on_grid(c.ravel(), DENSE), inside))
        size = self._largest(of, size, self.coarse)
        for _ in range(100):
            if size < SMALLEST:
                return None
            if self._holds(of(size), DENSE):
                return of(size)
            size *= CLOSER
        return None

    def _holds(self, x: Array, count: int) -> bool:
        return self.limits.hold(*self.on_grid(x, count))

    def _largest(self, of: Callable[[float], Array], size: float, count: int) -> float:
        """The largest size up to this one at which the limits hold on a grid, within the factor CLOSER; or nearly 0."""
        if self._holds(of(size), count):
            return size
        step = COARSE
        while not self._holds(of(size * step), count):
            size *= step
            if size < SMALLEST:
                return size
        while step < CLOSER:  # size * step holds, size does not
            half = float(np.sqrt(step))
            size, step = (size, half) if self._holds(of(size * half), count) else (size * half, step / half)
        return size * step

    def flat(self, x: Array, count: int) -> list[Array]:
        """q, q̇, q̈ of all trajectories on a grid, (N, n) each."""
        return [s.reshape(-1, self.arm.n) for s in self.on_grid(x, count)]

    def judged(self, x: Array) -> float:
        """The criterion, without penalties."""
        return self.information.value(*self.flat(x, self.fine))

    def cost(self, x: Array, strength: float) -> tuple[float, Array]:
        """Criterion and penalties with their exact gradient."""
        q, qd, qdd = self.flat(x, self.coarse)
        value, Y, G = self.information.sloped(q, qd, qdd)
        rigid = self.information.model.rigid
        over, dq, dqd, dqdd, dY = self.limits.penalty(q, qd, qdd, Y[..., :rigid])
        G[..., :rigid] += strength * dY
        slopes = self.information.along(q, qd, qdd, G)
        by_state = [s + strength * d for s, d in zip(slopes, (dq, dqd, dqdd), strict=True)]
        gradient = np.zeros(self.shape)
        by_q, by_qd, by_qdd = (s.reshape(self.trajectories, self.coarse, -1) for s in by_state)
        for b, s in zip(self.basis.on_grid(self.coarse), (by_q, by_qd, by_qdd), strict=True):
            gradient[..., 1:] += np.swapaxes(s, 1, 2) @ b
        gradient[..., 0] = by_q.sum(axis=1)
        return value + strength * over, gradient.ravel()

    def searched(self, x: Array) -> Iterator[tuple[float, Array | None]]:
        """After each round, with increasing penalties: (fraction done, trajectory within the limits or None).

        Only the last round gives a trajectory.
        """
        required("scipy")
        from scipy.optimize import minimize

        for k, strength in enumerate(ROUNDS, 1):
            x = minimize(self.cost, x, args=(strength,), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
            yield k / len(ROUNDS), self.scaled_to_limits(x) if k == len(ROUNDS) else None


@dataclass(frozen=True)
class Basis:
    """Harmonics of a period: q = centre + coefficients · basis, with q̇ = q̈ = 0 at both ends for any coefficients.

    Sines and cosines of the harmonics are restricted to the combinations with Σ k a_k = 0 (velocity) and
    Σ k² b_k = 0 (acceleration), by an orthonormal basis of these; 2 h - 2 coefficients per joint remain.
    """

    period: float
    harmonics: int

    @property
    def size(self) -> int:
        """The number of coefficients per joint, without the centre."""
        return 2 * self.harmonics - 2

    @cached_property
    def _free(self) -> Array:
        k = np.arange(1, self.harmonics + 1)
        zero = np.zeros(self.harmonics)
        at_rest = np.array([np.r_[k, zero], np.r_[zero, k**2]])
        _, _, Vt = np.linalg.svd(at_rest)
        return Vt[2:].T

    def lower(self, harmonics: int) -> Array:
        """The matrix (size, 2 harmonics - 2) that maps coefficients of a basis with fewer harmonics to this basis."""
        own = Basis(self.period, harmonics)._free
        padded = np.zeros((2 * self.harmonics, own.shape[1]))
        padded[:harmonics], padded[self.harmonics : self.harmonics + harmonics] = own[:harmonics], own[harmonics:]
        return np.asarray(self._free.T @ padded)

    def falling(self, exponent: float) -> Array:
        """The matrix (size, 2 harmonics) from amplitudes that fall as k^-exponent to this basis."""
        size = np.arange(1.0, self.harmonics + 1) ** -exponent
        return np.asarray(self._free.T * np.concatenate([size, size]))

    def at(self, t: Array) -> tuple[Array, Array, Array]:
        """Basis functions and their two derivatives, (N, size) each; they vanish at t = 0."""
        w = 2 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        values = np.hstack([s, c - 1]) @ self._free
        rates = np.hstack([c * w, -s * w]) @ self._free
        return values, rates, np.hstack([-s * w**2, -c * w**2]) @ self._free

    def on_grid(self, count: int) -> tuple[Array, Array, Array]:
        """The same at `count` equidistant times of one period without its end; cached."""
        return _on_grid(self, count)


@lru_cache(maxsize=16)
def _on_grid(basis: Basis, count: int) -> tuple[Array, Array, Array]:
    return basis.at(np.linspace(0, basis.period, count, endpoint=False))


OTHERS = 200  # random trajectories, not used in the search, with which the result is compared


@dataclass(frozen=True, eq=False)
class Excitation(Result):
    """One or several trajectories: t (N,), q, qd, qdd (m, N, n).

    `deviations` are the predicted standard deviations of the parameters `names`, for these samples and the assumed
    noise. `random_deviations` are those of the best of 200 random motions within the same limits, which are not used
    in the search. `condition` is the condition number of the regressor of the rigid body with unit columns.
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
    random_deviations: Array = field(default_factory=lambda: np.zeros(0))
    warnings: tuple[str, ...] = ()

    @property
    def gain(self) -> Array:
        """The ratio of the deviations of the best of 200 random motions to those of this trajectory."""
        return self.random_deviations / self.deviations

    def __repr__(self) -> str:
        return (
            f"<Excitation of {self.arm.name}: {len(self.q)} × {self.t[-1]:g} s, {len(self.t)} samples,"
            f" {len(self.names)} parameters, condition number {self.condition:.3g}>"
        )

    def __str__(self) -> str:
        worst = int(np.argmin(self.gain))
        most = np.unravel_index(int(np.argmax(np.abs(self.qdd))), self.qdd.shape)
        return (
            f"{self.arm.name}: {self.t[-1]:g} s, {len(self.names)} parameters; predicted deviations against the best of"
            f" {OTHERS} random motions: median {np.median(self.gain):.2f} times smaller, worst {self.gain[worst]:.2f}"
            f" ({self.names[worst]})\n  condition number {self.condition:.1f} (unit columns), velocities up to"
            f" {np.abs(self.qd).max():.3g} rad/s (m/s), accelerations up to {np.abs(self.qdd[most]):.3g} rad/s² (m/s²,"
            f" joint {most[2] + 1})"
        )

    def table(self) -> ResultTable:
        """The parameters with the standard deviations to expect, and those of the best random motion."""
        columns = ["parameter", "standard deviation [SI]", "of the best random motion [SI]"]
        rows = [(name, float(a), float(b)) for name, a, b in zip(
            self.names, self.deviations, self.random_deviations, strict=True
        )]  # fmt: skip
        return ResultTable.of(f"{self.arm.name}: predicted standard deviations", columns, rows)

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

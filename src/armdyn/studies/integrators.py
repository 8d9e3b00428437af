"""Is Adams-Bashforth of fourth order the method for simulating arms, as Lin (1991) recommends? At equal evaluations.

An evaluation of the accelerations is what a step costs. For so many evaluations RK4 takes a quarter as many steps,
DOP853 (Dormand and Prince, eighth order, here with fixed steps too) a twelfth, and AB4 as many, less the nine that the
start by RK4 costs more. The error is the largest of the joints' at the end, against DOP853 with four times as many
evaluations as the dearest row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from armdyn.arm import Arm, load
from armdyn.errors import required
from armdyn.programs.stepping import AB4, RK4, Scheme, advanced, step

ARMS = ("puma560", "ur5", "panda")
MOTIONS = ("falling", "controlled")
EVALUATIONS = (240, 480, 960, 1920)  # per second of motion
STARTS = 30
SECONDS = 1.0
SPREAD = 0.6  # of the joints' ranges, from which starts and goals are drawn
FASTEST = 3.0  # rad/s or m/s: the largest initial velocity
BANDWIDTH = 10.0  # rad/s: of the controlled motion, for the inertia that a joint moves with all others free
Accelerations = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], list[np.ndarray]]


@dataclass(frozen=True)
class IntegratorRow:
    """Median errors of so many starts at equal evaluations, and how many times as large RK4's is as AB4's."""

    arm: str
    motion: str
    evaluations: int
    rk4: float
    ab4: float
    dop853: float
    gain: tuple[float, float, float]  # a tenth, half and nine tenths of the starts lie below
    lost: tuple[int, int, int]  # starts from which the motion grows without bound, by method


@lru_cache
def dop853() -> Scheme:
    """The eighth-order formula of Dormand and Prince (Hairer, Norsett and Wanner 1993); it checks its order itself."""
    required("scipy")
    from scipy.integrate import DOP853

    a, b = DOP853.A[: DOP853.n_stages], DOP853.B
    return Scheme("DOP853", 8, tuple(tuple(map(float, row[:i])) for i, row in enumerate(a)), tuple(map(float, b)))


def compare(
    arms: Sequence[str] = ARMS,
    motions: Sequence[str] = MOTIONS,
    starts: int = STARTS,
    every: Sequence[int] = EVALUATIONS,
) -> list[IntegratorRow]:
    """Integrate the motions of random starts by the three methods."""
    rows = []
    for name in arms:
        arm = load(name)
        for motion in motions:
            problem = _problem(arm, motion, starts)
            exact = integrated(dop853(), *problem, 4 * every[-1])
            for evaluations in every:
                ends = [integrated(scheme, *problem, evaluations) for scheme in (RK4, AB4, dop853())]
                errors = [_missed(end, exact) for end in ends]
                lost = [int(np.isinf(e).sum()) for e in errors]
                with np.errstate(invalid="ignore"):
                    ratio = np.nan_to_num(errors[0] / errors[1], nan=1.0, posinf=np.inf)  # 1: both without bound
                low, half, high = (float(x) for x in np.quantile(ratio, (0.1, 0.5, 0.9), method="inverted_cdf"))
                rk4, ab4, eighth = (float(np.median(e)) for e in errors)
                unbounded = (lost[0], lost[1], lost[2])
                rows.append(
                    IntegratorRow(arm.name, motion, evaluations, rk4, ab4, eighth, (low, half, high), unbounded)
                )
    return rows


def _missed(reached: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The largest error of each lane; infinite where the motion grew without bound."""
    missed: np.ndarray = np.abs(reached - exact).max(axis=0)
    missed[np.isnan(missed)] = np.inf
    return missed


def integrated(
    scheme: Scheme, q: list[np.ndarray], qd: list[np.ndarray], accelerations: Accelerations, evaluations: int
) -> np.ndarray:
    """The positions at the end after so many evaluations, (n, lanes)."""
    start, scheme = _in_floats(scheme.single_step), _in_floats(scheme)
    first = len(scheme.past)  # steps of the one-step method that starts a method with a past
    steps = first + (evaluations - first * start.stages) // scheme.stages
    h = SECONDS / steps
    slopes: list[tuple[list[np.ndarray], list[np.ndarray]]] = []  # at the steps' beginnings, newest first

    def evaluated(stage: int, x: list[np.ndarray], v: list[np.ndarray]) -> list[np.ndarray]:
        found = accelerations(x, v)
        if stage == 0:
            slopes.insert(0, (v, found))
        return found

    with np.errstate(all="ignore"):  # a motion may grow without bound
        for k in range(steps):
            if k < first or not scheme.past:
                q, qd = step(start, q, qd, h, evaluated)
            else:
                evaluated(0, q, qd)
                q, qd = advanced(scheme, q, qd, h, slopes)
            del slopes[first:]
    return np.array(q)


def _in_floats(scheme: Scheme) -> Scheme:
    """The scheme with coefficients that arrays can be multiplied by."""
    rows = tuple(tuple(map(float, row)) for row in scheme.a)
    return replace(scheme, a=rows, b=tuple(map(float, scheme.b)), past=tuple(map(float, scheme.past)))


def _problem(arm: Arm, motion: str, starts: int) -> tuple[list[np.ndarray], list[np.ndarray], Accelerations]:
    """Positions and velocities at the start, a lane each, and the accelerations of the motion."""
    rng = np.random.default_rng(0)
    middle, half = arm.limits.mean(axis=1), np.minimum(np.ptp(arm.limits, axis=1) / 2, np.pi)
    q, goal = middle + SPREAD * half * rng.uniform(-1, 1, (2, starts, arm.n))
    qd = FASTEST * rng.uniform(-1, 1, (starts, arm.n))
    stiffness = BANDWIDTH**2 / np.einsum("lii->li", arm.inertia_inverse(q))
    damping = 2 / BANDWIDTH * stiffness

    def accelerations(x: Sequence[np.ndarray], v: Sequence[np.ndarray]) -> list[np.ndarray]:
        at, speeds = np.stack(x, axis=-1), np.stack(v, axis=-1)
        if motion == "controlled":
            torques = arm.gravity_load(at) + stiffness * (goal - at) - damping * speeds
        else:
            torques = np.zeros_like(at)
        return list(arm.forward_dynamics(at, speeds, torques).T)

    return list(q.T), list(qd.T), accelerations


TITLE = f"Median errors after {SECONDS:g} s [rad] at equal evaluations, {STARTS} starts each"
HEADS = ("arm", "motion", "evaluations", "RK4", "AB4", "DOP853", "RK4/AB4", "for 80 %", "unbounded")
LEFT = 2  # columns that say what a row is about


def table(rows: Sequence[IntegratorRow]) -> list[list[str]]:
    """A line per row."""
    return [
        [
            row.arm, row.motion, str(row.evaluations), *(f"{x:.1e}" for x in (row.rk4, row.ab4, row.dop853)),
            f"{row.gain[1]:.2g}", f"{row.gain[0]:.2g} to {row.gain[2]:.2g}", ", ".join(map(str, row.lost)),
        ]
        for row in rows
    ]  # fmt: skip


def findings(rows: Sequence[IntegratorRow]) -> list[str]:
    """What the rows say, in sentences."""
    gains = sorted(r.gain[1] for r in rows)
    best = sum(r.dop853 < min(r.rk4, r.ab4) for r in rows)
    lost = [sum(counts) for counts in zip(*(r.lost for r in rows), strict=True)]
    return [
        f"AB4 is more accurate than RK4 from most starts in {sum(g > 1 for g in gains)} of {len(rows)} rows: RK4's "
        f"error is {gains[0]:.2g} to {gains[-1]:.2g} times AB4's, {gains[len(gains) // 2]:.2g} times in the middle.",
        f"DOP853 is the most accurate of the three in {best} of {len(rows)} rows.",
        f"Without bound grow {lost[0]} motions by RK4, {lost[1]} by AB4, {lost[2]} by DOP853.",
    ]

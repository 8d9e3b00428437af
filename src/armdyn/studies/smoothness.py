"""Does an O(n) method make accelerations smoother, so that a solver takes fewer steps? By adaptive steps, counted.

Saha (1999) quotes Cloutier, Pai and Ascher (1995): recursive forward dynamics calculate accelerations that are smooth
functions of time, so numerical integration is faster. Both methods compute the same function, so what may differ is
rounding. A method that forms the inertia matrix and solves with it multiplies rounding errors by the matrix's
condition number, and a solver takes them for a fast motion of small amplitude. Here chains of rods swing from a bent
rest under gravity, by RK45 with step control, on accelerations by either method in double and single precision. The
state and the solver's sums are always in double.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armdyn.arm import Arm, from_dh
from armdyn.errors import required

JOINTS = (3, 6, 12, 30)
HEAVIER = (1.0, 1e3, 1e6)  # the tip's rod, in masses of the first; those between in geometric progression
TOLERANCES = (("float64", 1e-6), ("float64", 1e-10), ("float32", 1e-4))
PRECISIONS = {"float64": "double", "float32": "single"}
METHODS = ("articulated_body", "composite")
SECONDS = 0.5
BEND = 0.1  # rad: every joint at the start
MOST = 1500  # steps; a run that needs more is stopped
LENGTH, THICK = 1.0, 0.05  # m
NEIGHBOURS = 64  # postures for the noise


@dataclass(frozen=True)
class StepsRow:
    """A chain, its condition number, and the steps of either method: None where the solver did not reach the end."""

    joints: int
    heavier: float
    condition: float
    precision: str
    tolerance: float
    recursive: int | None
    composite: int | None
    noise: tuple[float, float]  # of the accelerations at the start, relative to the largest, by method


def rods(joints: int, heavier: float = 1.0) -> Arm:
    """A chain of uniform rods in a vertical plane, the last one so many times as heavy as the first."""
    across = LENGTH**2 / 12 + THICK**2 / 16
    rows = [
        {
            "a": LENGTH, "mass": mass, "com": (-LENGTH / 2, 0, 0),
            "inertia": (mass * THICK**2 / 8, mass * across, mass * across, 0, 0, 0),
        }
        for mass in heavier ** (np.arange(joints) / max(joints - 1, 1))
    ]  # fmt: skip
    return from_dh(rows, gravity=(0, -9.81, 0), name=f"{joints} rods")


def steps(arm: Arm, method: str, precision: str, tolerance: float) -> int | None:
    """The accepted steps of a swing; None if the solver gives up or needs too many."""
    required("scipy")
    from scipy.integrate import RK45

    n, given = arm.n, np.dtype(precision)
    accelerations = arm.kernel("forward_dynamics", method=method, dtype=precision)
    none = np.zeros(n, given)

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        found = accelerations(y[:n].astype(given), y[n:].astype(given), none)
        if not np.isfinite(found).all():
            raise FloatingPointError
        return np.concatenate([y[n:], found])

    start = np.concatenate([np.full(n, BEND), np.zeros(n)])
    try:
        solver = RK45(slope, 0.0, start, SECONDS, rtol=tolerance, atol=tolerance)
        for count in range(MOST):
            if solver.status != "running":
                return count if solver.status == "finished" else None
            solver.step()
    except FloatingPointError:  # a pivot that rounding made 0: scipy would reduce the step for ever
        pass
    return None


def noise(arm: Arm, method: str, precision: str) -> float:
    """The spread of the accelerations over postures that are roundings of q apart, relative to the largest of them."""
    unit = np.spacing(np.dtype(precision).type(BEND))
    q = BEND + unit * np.arange(NEIGHBOURS, dtype=precision)[:, None] * np.ones(arm.n, precision)
    rest = np.zeros(arm.n, precision)
    found = arm.kernel("forward_dynamics", method=method, dtype=precision)(q, rest, rest).astype(float)
    return float(np.ptp(found, axis=0).max() / np.abs(found).max())


def compare(
    joints: Sequence[int] = JOINTS,
    heavier: Sequence[float] = HEAVIER,
    tolerances: Sequence[tuple[str, float]] = TOLERANCES,
) -> list[StepsRow]:
    """Count the steps of every chain, precision and tolerance by both methods."""
    rows = []
    for n in joints:
        for ratio in heavier:
            arm = rods(n, ratio)
            condition = float(np.linalg.cond(arm.inertia_matrix(np.full(n, BEND))))
            for precision, tolerance in tolerances:
                taken = [steps(arm, method, precision, tolerance) for method in METHODS]
                left = [noise(arm, method, precision) for method in METHODS]
                rows.append(StepsRow(n, ratio, condition, precision, tolerance, taken[0], taken[1], (left[0], left[1])))
    return rows


TITLE = "Accepted steps of RK45 for half a second: chains of rods, bent by 0.1 rad per joint, under gravity"
HEADS = ("joints", "tip/first", "cond H", "precision", "tolerance", "O(n)", "composite", "noise, O(n)", "composite")
LEFT = 3  # columns that say what a row is about


def table(rows: Sequence[StepsRow]) -> list[list[str]]:
    """A line per row."""
    return [
        [
            str(row.joints), f"{row.heavier:g}", f"{row.condition:.0e}", PRECISIONS[row.precision],
            f"{row.tolerance:.0e}", *("not reached" if x is None else str(x) for x in (row.recursive, row.composite)),
            *("no number" if np.isnan(x) else f"{x:.0e}" for x in row.noise),
        ]
        for row in rows
    ]  # fmt: skip


def findings(rows: Sequence[StepsRow]) -> list[str]:
    """What the rows say, in sentences."""
    out = []
    for precision, name in PRECISIONS.items():
        own = [row for row in rows if row.precision == precision]
        same = [row for row in own if row.recursive == row.composite]
        lost = [row for row in own if row.composite is None and row.recursive is not None]
        out.append(
            f"In {name} precision both take the same number of steps in {len(same)} of {len(own)} rows; in {len(lost)} "
            "only the O(n) method reaches the end."
        )
    return out

"""Stability of a sampled control loop, and gains that hold an arm at a given control period.

Between two control instants the torques are held, so a small deviation x = (δq, δq̇) of the arm, x' = A x + B τ, is
mapped by the exact exponential of the held system. With delay, the torques of one period act partly or wholly in later
ones, and with an encoder the velocity is a difference of two readings. Together with the linearised control law this is
a constant matrix per state of the run: the loop is unstable if the spectral radius of the matrix exceeds both 1 and the
growth of the same loop with continuous control (Franklin, Powell and Workman, Digital Control of Dynamic Systems, ch.
2 and 4). A torque at its effort or rate limit counts with its gain, since the loop must be able to leave the limit; a
rate limit that is met again and again in both directions is a limit cycle and is judged by that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.simulation.drives import ComputedTorque, Reference
from armdyn.simulation.judge import MARGIN
from armdyn.simulation.programs import frictions
from armdyn.simulation.request import efforts

BANDWIDTH = 20.0  # rad/s of `holding`, where the control period allows it
SLOWEST = 0.1  # rad/s: below, an arm is not held in any useful sense
FACTORS = (0.5, 1.0, 2.0)  # of the gains of `holding` that must all be stable: a gain margin of 2 both ways
OVERALL = 3.0  # growth over a whole run that counts, as a logarithm: 20 times
LATEST = 40  # periods of delay that shorter periods are tried with: a matrix grows with them
HALVINGS = 14  # of a period or a gain, until it would do
DIFFERENCE = 1e-6  # rad or m: for the gradient of the gravity load


@dataclass(frozen=True)
class Timing:
    """When torques act: control period and delay in seconds; `differences`: velocities are differences of readings."""

    period: float
    delay: float = 0.0
    differences: bool = False


@dataclass(frozen=True)
class SampledLoop:
    """An arm about a state, x' = A x + B τ with x = (δq, δq̇), under the sampled law τ = K x.

    `feedback` is the part of K that is proportional to the gains; the rest compensates the arm's own forces.
    """

    A: np.ndarray  # (2m, 2m), torques held
    B: np.ndarray  # (2m, k)
    K: np.ndarray  # (k, 2m)
    feedback: np.ndarray  # (k, 2m)

    def with_gains(self, factor: float) -> SampledLoop:
        """The same loop with all gains multiplied by a factor."""
        return replace(self, K=self.K + (factor - 1) * self.feedback, feedback=factor * self.feedback)

    def matrix(self, timing: Timing) -> np.ndarray:
        """The map of (x, last reading of q, earlier torques, newest first) over one control period."""
        T, m, k = timing.period, len(self.A) // 2, self.B.shape[1]
        whole = int(timing.delay / T * (1 + 1e-12))  # periods of delay, and the rest of it
        rest = max(timing.delay - whole * T, 0.0)
        before, late = _held(self.A, self.B, rest), _held(self.A, self.B, T - rest)
        stored = whole + 1
        size = 2 * m + m + stored * k
        law = np.zeros((k, size))
        law[:, :m] = self.K[:, :m]
        if timing.differences:
            law[:, :m] += self.K[:, m:] / T
            law[:, 2 * m : 3 * m] = -self.K[:, m:] / T
        else:
            law[:, m : 2 * m] = self.K[:, m:]
        earlier = np.zeros((stored, k, size))  # the torques of one period ago, of two, ...
        for j in range(stored):
            earlier[j, :, 3 * m + j * k : 3 * m + (j + 1) * k] = np.eye(k)
        torques = [law, *earlier]
        out = np.zeros((size, size))
        state = np.eye(size)[: 2 * m]
        out[: 2 * m] = late[0] @ (before[0] @ state + before[1] @ torques[whole + 1]) + late[1] @ torques[whole]
        out[2 * m : 3 * m, :m] = np.eye(m)
        for j in range(stored):
            out[3 * m + j * k : 3 * m + (j + 1) * k] = torques[j]
        return out

    def growth(self, timing: Timing) -> float:
        """The logarithm of the growth per period beyond that of continuous control; 0 where the loop is stable."""
        if not len(self.A):
            return 0.0
        matrix = self.matrix(timing)
        if not np.all(np.isfinite(matrix)):
            return math.inf
        radius = float(np.max(np.abs(np.linalg.eigvals(matrix))))
        continuous = timing.period * float(np.max(np.linalg.eigvals(self.A + self.B @ self.K).real))
        growth = math.log(max(radius, 1e-300)) - max(continuous, 0.0)
        return growth if growth > min(MARGIN, timing.period) else 0.0


def _held(A: np.ndarray, B: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """(Φ, Γ) with x(t) = Φ x(0) + Γ τ under held torques."""
    size, k = B.shape
    held = np.zeros((size + k, size + k))
    held[:size, :size], held[:size, size:] = A, B
    moved = _exponential(held * t)
    return moved[:size, :size], moved[:size, size:]


def _exponential(matrix: np.ndarray) -> np.ndarray:
    """The matrix exponential by scaling and squaring (Moler and Van Loan 2003), without SciPy."""
    norm = float(np.abs(matrix).sum(axis=0).max())
    if not math.isfinite(norm):
        return np.full_like(matrix, np.nan)
    halvings = max(0, math.frexp(norm)[1] + 1)  # to a norm below 1/2
    scaled = matrix / 2.0**halvings
    term = total = np.eye(len(matrix))
    for k in range(1, 17):  # (1/2)^17 / 17! = 2e-20
        term = term @ scaled / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total


@dataclass(frozen=True)
class UnstableLoop:
    """An unstable sampled loop: where it was first seen, its growth factor per period, and what would do, if known."""

    t: float
    factor: float
    period: float | None
    gain: float | None

    def words(self, timing: Timing) -> str:
        """The message of a run with this loop."""
        cures = []
        if self.period is not None:
            cures.append(f"a period of {self.period:.2g} s would do")
        if self.gain is not None:
            cures.append(f"gains multiplied by {self.gain:.2g} would do")
        late = f" and a delay of {timing.delay:.3g} s" if timing.delay else ""
        return (
            f"the sampled control loop is unstable from t = {self.t:.4g} s on: with a control period of "
            f"{timing.period:.3g} s{late} it multiplies deviations by {self.factor:.3g} per period; "
            + (", or ".join(cures) if cures else "neither a shorter period nor lower gains alone would do")
        )


def judged(times: np.ndarray, loops: list[SampledLoop], timing: Timing, until: float, early: bool) -> Any:
    """The verdict on loops that were linearised at `times` of a run that lasted `until`; None if it is stable."""
    rates = [loop.growth(timing) for loop in loops]
    if not any(rates):
        return None
    spans = np.diff([*times, max(until, times[-1])])
    total = sum(rate * max(span / timing.period, 1.0) for rate, span in zip(rates, spans, strict=True))
    if not (total > OVERALL or (early and 2 * np.count_nonzero(rates) >= len(rates))):
        return None
    # What follows the first unstable state may be far from any motion that the loop was meant for.
    first = next(k for k, rate in enumerate(rates) if rate)
    regular = loops[: first + 1]
    period = _first(
        lambda x: (
            timing.delay <= LATEST * x * timing.period
            and not any(loop.growth(replace(timing, period=x * timing.period)) for loop in regular)
        )
    )
    gain = _first(lambda x: not any(loop.with_gains(x).growth(timing) for loop in regular))
    factor = math.exp(min(rates[first], 700.0))
    return UnstableLoop(float(times[first]), factor, None if period is None else period * timing.period, gain)


def _first(does: Any) -> float | None:
    """The largest of 1/2, 1/4, ... that does."""
    return next((factor for k in range(1, HALVINGS + 1) if does(factor := 0.5**k)), None)


def holding(
    arm: Arm,
    target: Any = None,
    *,
    period: float = 0.0,
    delay: float = 0.0,
    encoder: bool = False,
    saturate: bool = True,
) -> ComputedTorque:
    """The controller that holds an arm at a posture, with gains that suit the control period.

    The torques are those of inverse dynamics for the acceleration -ω² δq - 2 ω δq̇: the gains of every joint are
    weighted by the coupled inertia matrix, so that all motions of the arm die away alike, however light its wrist.
    ω is 20 rad/s, or as much less as control period and delay require, with a gain margin of 2.

    Parameters
    ----------
    arm : Arm
        The arm; nothing holds a floating base.
    target : array_like, optional
        The posture (n,), or the full coordinates of a floating robot; by default the rest posture.
    period, delay : float
        Control period and delay of the torques, s; 0 is continuous control.
    encoder : bool
        Whether velocities are differences of two readings.
    saturate : bool
        Whether the motors keep to their effort limits, which must then suffice for the gravity load.
    """
    q = np.asarray(arm.rest if target is None else target, float)
    if q.shape not in ((arm.n,), (arm.chain.nq,)) or not np.all(np.isfinite(q)):
        raise InputError(f"holding takes one posture of {arm.n} finite numbers, got {target!r}")
    full = q if len(q) == arm.chain.nq else np.concatenate([arm.rest[: arm.chain.nq - arm.n], q])
    if saturate:
        _check_strength(arm, full)
    timing, bandwidth = Timing(period, delay, encoder), BANDWIDTH
    while period > 0 and any(_held_loop(arm, full, bandwidth, f).growth(timing) for f in FACTORS):
        bandwidth /= math.sqrt(2)
        if bandwidth < SLOWEST:
            late = f" and a delay of {delay:g} s" if delay else ""
            raise InputError(
                f"no gains hold {arm.name} with a control period of {period:g} s{late}: the arm moves away faster than "
                "the controller can answer; give a shorter control period or delay"
            )
    return ComputedTorque(_still(full[arm.chain.nq - arm.n :]), bandwidth**2, 2 * bandwidth)


def _still(posture: np.ndarray) -> Reference:
    """The reference that stays at a posture."""

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = np.broadcast_to(posture, (*np.shape(t), len(posture)))
        return q, np.zeros_like(q), np.zeros_like(q)

    return Reference("still", math.inf, motion, periodic=True)


def _check_strength(arm: Arm, q: np.ndarray) -> None:
    """Raise an error if a motor is too weak for the gravity load at a posture."""
    if arm.floating:
        return
    load = np.asarray(arm.gravity_load(q))
    for joint, needed, effort, friction in zip(arm.joints, load, efforts(arm), frictions(arm.chain), strict=True):
        if effort is not None and abs(needed) > effort + float(friction.breakaway):
            raise InputError(
                f"the motor of {joint.name} cannot hold {arm.name} there: gravity needs {abs(needed):.4g} N m or N, "
                f"its effort limit is {effort:.4g}"
            )


def _held_loop(arm: Arm, q: np.ndarray, bandwidth: float, factor: float) -> SampledLoop:
    """The sampled loop of `holding` at its posture, with its gains times a factor."""
    m, base = arm.chain.nv, arm.chain.nv - arm.n
    H = np.asarray(arm.inertia_matrix(q))
    inverse = np.linalg.inv(H)
    coupled = np.linalg.inv(inverse[base:, base:])  # the inertia of the joints, with the base free to move
    gravity = np.zeros((m, m))
    for i in range(base, m):
        shift = np.zeros(arm.chain.nq)
        shift[arm.chain.nq - m + i] = DIFFERENCE
        gravity[:, i] = (np.asarray(arm.gravity_load(q + shift)) - arm.gravity_load(q - shift)) / (2 * DIFFERENCE)
    viscous = np.diag([float(friction.viscous) for friction in frictions(arm.chain)])
    A, K, feedback = np.zeros((2 * m, 2 * m)), np.zeros((arm.n, 2 * m)), np.zeros((arm.n, 2 * m))
    A[:m, m:] = np.eye(m)
    A[m:, :m], A[m:, m:] = -inverse @ gravity, -inverse @ viscous
    feedback[:, base:m] = -factor * bandwidth**2 * coupled
    feedback[:, m + base :] = -factor * 2 * bandwidth * coupled
    K[:, :m] = gravity[base:] - H[base:, :base] @ np.linalg.solve(H[:base, :base], gravity[:base])
    return SampledLoop(A, np.vstack([np.zeros((m, arm.n)), inverse[:, base:]]), K + feedback, feedback)

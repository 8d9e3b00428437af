"""Numerical stability of a step: whether the method amplifies deviations that the arm itself damps.

At sampled states the equations of motion are linearised, by finite differences of the compiled right-hand side in the
modes of the state (joints that stick are left out). One step of the method maps a small deviation by G; the exact flow
would map it by exp(h J). If the spectral radius of G exceeds both 1 and that of the flow, the step is unstable,
whatever the states look like. Saturated motors count with their gains, because a step must be able to leave the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from armdyn.programs.stepping import Scheme
from armdyn.simulation.sticking import Lanes, Stiff

DEVIATION = 1e-6  # of q and q̇, for finite differences; second differences of rigid-body dynamics are moderate
MARGIN = 0.01  # growth per step that counts, beyond that of the motion itself
OVERALL = 20.0  # growth that counts over a whole run, as a logarithm: 5e8, from truncation errors to nonsense
SAMPLES = 12  # rows of a lane that are looked at
LANES = 4  # lanes of a batch that are looked at
HALVINGS = 20
NEAR = 0.25  # of step times eigenvalue: AB4 becomes unstable at 0.3, all others later


@dataclass(frozen=True)
class Linear:
    """The equations of motion about a state: y' = J y for the joints that move; `stiff` is the implicit part of J.

    `moving` are the velocities that the rows stand for, and `inverse` is the inverse of their inertia matrix.
    """

    J: np.ndarray
    stiff: np.ndarray
    moving: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    inverse: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def largest(self) -> float:
        """The magnitude of the largest eigenvalue, 1/s."""
        return float(np.max(np.abs(np.linalg.eigvals(self.J)), initial=0.0))


def linearised(stepper: Lanes, t: float, y: np.ndarray, released: bool = False) -> Linear | None:
    """The motion about a state (size,), or as if no joint stuck; None where it is not finite."""
    layout, n = stepper.layout, stepper.layout.nv
    q, qd = layout.split(y)
    shift = DEVIATION * np.maximum(1.0, np.abs(np.concatenate([layout.beside(q), qd])))
    around = np.concatenate([layout.moved(y, np.diag(shift)), layout.moved(y, -np.diag(shift))])
    qdd, free, tau = stepper.around(t, y, around, released)
    if not np.all(np.isfinite(qdd)):
        return None
    slopes = ((qdd[: 2 * n] - qdd[2 * n :]) / (2 * shift[:, None])).T  # (n, 2n)
    moving = np.flatnonzero(free)
    count = len(moving)
    inverse = np.linalg.inv(np.asarray(stepper.inertia(q))[np.ix_(moving, moving)])
    stiffness, damping, viscous, effort = (np.asarray(x)[moving] for x in stepper.gains())
    J, stiff = np.zeros((2, 2 * count, 2 * count))
    J[:count, count:] = stiff[:count, count:] = np.eye(count)
    J[:count, :count] = layout.kinematics(qd)[np.ix_(moving, moving)]
    J[count:, :count] = slopes[np.ix_(moving, moving)]
    J[count:, count:] = slopes[np.ix_(moving, moving + n)]
    cut = np.abs(tau[moving]) >= effort
    J[count:, :count] -= inverse * np.where(cut, stiffness, 0.0)
    J[count:, count:] -= inverse * np.where(cut, damping, 0.0)
    stiff[count:, :count] = -inverse * stiffness
    stiff[count:, count:] = -inverse * (damping + viscous)
    return Linear(J, stiff, moving, inverse)


def may_be_stiff(stepper: Stiff, q: np.ndarray, h: float) -> bool:
    """Whether gains and viscous friction at postures (rows, nq) come near the stability limit of any method.

    A bound that costs one evaluation of H per row: without it a short run would take ten times as long.
    """
    stiffness, damping, viscous, _ = stepper.gains()
    if not any(np.any(x) for x in (stiffness, damping, viscous)):
        return False
    inverse = np.linalg.inv(stepper.inertia(q))
    rates = [np.abs(inverse) @ np.abs(x) for x in (damping + viscous, stiffness)]  # no eigenvalue is larger
    return bool(h * rates[0].max() > NEAR or h * math.sqrt(rates[1].max()) > NEAR)


def step_matrix(scheme: Scheme, linear: Linear, h: float) -> np.ndarray:
    """The matrix by which one step maps a deviation."""
    J, size = linear.J, len(linear.J)
    one = np.eye(size)
    if scheme.past:
        return _multistep(scheme, J, h)
    if scheme.velocity_first:
        n = size // 2
        velocity = one[n:] + h * J[n:]
        return np.concatenate([one[:n] + h * velocity, velocity])
    stiff = linear.stiff if scheme.implicit else np.zeros_like(J)
    slopes: list[np.ndarray] = []
    for stage, row in enumerate(scheme.a):
        explicit = one + h * sum((float(a) * k for a, k in zip(row, slopes, strict=True)), np.zeros_like(J))
        own = scheme.implicit[stage] if scheme.implicit else ()
        if not own:
            slopes.append(J @ explicit)
            continue
        inner = one + h * sum((float(a) * k for a, k in zip(own[:-1], slopes, strict=True)), np.zeros_like(J))
        right = (J - stiff) @ explicit + stiff @ inner
        slopes.append(np.linalg.solve(one - h * float(own[-1]) * stiff, right))
    return one + h * sum((float(b) * k for b, k in zip(scheme.b, slopes, strict=True)), np.zeros_like(J))


def _multistep(scheme: Scheme, J: np.ndarray, h: float) -> np.ndarray:
    """The companion matrix of y⁺ = y + h Σ wₖ J yₖ."""
    weights, size = [float(w) for w in (*scheme.b, *scheme.past)], len(J)
    blocks = np.zeros((len(weights), len(weights), size, size))
    blocks[0] = [h * w * J for w in weights]
    blocks[0, 0] += np.eye(size)
    for k in range(1, len(weights)):
        blocks[k, k - 1] = np.eye(size)
    return blocks.transpose(0, 2, 1, 3).reshape(len(weights) * size, -1)


def growth(scheme: Scheme, linear: Linear, h: float) -> float:
    """The logarithm of the growth per step beyond that of the motion itself; 0 where the step is stable."""
    if not len(linear.J):
        return 0.0
    ours = _radius(step_matrix(scheme, linear, h))
    own = h * float(np.max(np.linalg.eigvals(linear.J).real))
    found = math.log(max(ours, 1e-300)) - max(own, 0.0)
    return found if found > MARGIN else 0.0


def _radius(matrix: np.ndarray) -> float:
    if not np.all(np.isfinite(matrix)):
        return math.inf
    return float(np.max(np.abs(np.linalg.eigvals(matrix))))


def stable_step(scheme: Scheme, linears: list[Linear], h: float) -> float:
    """h, or h halved as often as it takes for all of them."""
    for _ in range(HALVINGS):
        if not any(growth(scheme, linear, h) for linear in linears):
            break
        h /= 2
    return h


@dataclass(frozen=True)
class Verdict:
    """An unstable step: where it was first seen, the largest eigenvalue there, and a step that would do."""

    t: float
    largest: float
    step: float


def examined(count: int, early: bool) -> np.ndarray:
    """The rows of a lane that are looked at: the last ones where it ended early, else evenly spread ones."""
    last = count - 1
    if early:
        return np.unique(np.maximum(0, last - np.array([0, 1, 2, 4, 8, 16, 32, 64])))
    return np.unique(np.linspace(0, last, min(SAMPLES, count)).astype(int))


def judge(
    stepper: Lanes, scheme: Scheme, h: float, times: np.ndarray, states: np.ndarray, early: bool
) -> Verdict | None:
    """Whether the step was too long for the method, by some rows of a lane (times, states)."""
    last, rows = len(times) - 1, examined(len(times), early)
    if not early and not may_be_stiff(stepper, stepper.layout.split(states[rows])[0], h):
        return None
    found = [(row, linearised(stepper, float(times[row]), states[row])) for row in rows.tolist()]
    known = [(row, linear) for row, linear in found if linear is not None]
    rates = [growth(scheme, linear, h) for _, linear in known]
    spans = [float(times[min(last, row + (last // len(rows) or 1))] - times[row]) for row, _ in known]
    total = sum(rate * max(span / h, 1.0) for rate, span in zip(rates, spans, strict=True))
    if not any(rates) or not (early or total > OVERALL):
        return None
    first = next(k for k, rate in enumerate(rates) if rate)
    linears = [linear for _, linear in known]
    return Verdict(float(times[known[first][0]]), max(x.largest for x in linears), stable_step(scheme, linears, h))

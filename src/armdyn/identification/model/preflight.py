"""Pre-flight check: whether the log fits the arm at all.

The arm as it is given predicts the torques of the log, its friction unknown but never negative. Where another reading
of the log (torques with the other sign, in another order or unit, late; joints in another order or direction; degrees;
another gravity) is predicted far better, that reading is proposed in words, with its remedy. Nothing is changed without
being asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.identification.log.processing import Motion
from armdyn.identification.model.reading import Reading, View
from armdyn.identification.model.readings import delays, late_joint, readings

Array = NDArray[np.float64]
GOOD = 0.7  # error above which no reading explains the log
ROUNDS = 3  # readings that may be needed together
FITTED, CLEARLY = 300, 0.8  # samples of a fit that tells a delay; what it must leave at most, over that as logged
ONE_CLEARLY = 0.6  # the same of one joint's torque, which other things make late too


@dataclass(frozen=True, eq=False)
class Finding:
    """A reading that the arm predicts far better, with the errors as logged and as read so."""

    reading: Reading
    before: float
    after: float
    fitted: bool = False  # errors of a fit to the log, whatever the arm's inertias

    def __str__(self) -> str:
        if self.fitted:
            return (
                f"{self.reading.words}: a fit then leaves {100 * self.after:.1f} % of the torques, as logged "
                f"{100 * self.before:.1f} %. {self.reading.remedy}, or let fix=True (--fix) do it"
            )
        return (
            f"{self.reading.words}: the arm as given then predicts the torques to {100 * self.after:.0f} %, as logged"
            f" to {100 * self.before:.0f} %. {self.reading.remedy}, or let fix=True (--fix) do it"
        )


def preflight(arm: Arm, parts: list[Motion]) -> list[Finding]:
    """The readings, one after the other, that fit the arm far better than the log as it is."""
    found: list[Finding] = []
    view = View.of(arm, parts)
    now = view.total
    for _ in range(ROUNDS):
        tried = [(tried_view.total, r) for r in readings(view) if _better(view, tried_view := view.read(r), r)]
        if not tried:
            break
        after, reading = min(tried, key=lambda trial: trial[0] * trial[1].penalty)
        found.append(Finding(reading, now, after))
        view, now = view.read(reading), after
    if not any(finding.reading.late for finding in found):
        found += _delayed(view)
    return found


def _better(view: View, after: View, reading: Reading) -> bool:
    """Whether a reading is so much better that it is proposed: over all joints, or over those that it is about."""
    own = list(reading.joints) or list(range(len(view.errors)))
    before, now = (float(np.sqrt(np.mean(v.errors[own] ** 2))) for v in (view, after))
    return now <= GOOD and now * reading.penalty <= reading.needed * before and after.total < view.total


def _delayed(view: View) -> list[Finding]:
    """A delay that a fit of the whole model tells, where the arm as given is too far off to tell it."""
    n = view.tau.shape[1]
    every = list(delays(view, n))
    if not every:
        return []
    errors = [_fitted_error(view.read(reading)) for reading in every]
    before, best = _fitted_error(view), int(np.argmin(errors))
    if errors[best] <= CLEARLY * before:
        return [Finding(every[best], before, errors[best], fitted=True)]
    return _one_delayed(view, sorted({round(reading.late / view.period) for reading in every}))


def _one_delayed(view: View, steps: list[int]) -> list[Finding]:
    """The joint whose torque alone is late: the rows of the fit stay the same, only what they explain is shifted."""
    most, (rows, n) = max(abs(step) for step in steps), view.tau.shape
    inner = np.arange(most, rows - most, max(1, (rows - 2 * most) // FITTED))
    A, size = _columns(view, inner)
    Q = np.linalg.qr(A / np.maximum(np.linalg.norm(A, axis=0), 1e-300))[0]

    def left(joint: int, step: int) -> tuple[float, float]:
        """What is left of the joint's own torque, and of all."""
        tau = view.tau[inner].copy()
        tau[:, joint] = view.tau[inner + step, joint]
        z = (tau / size).ravel()
        rest = (z - Q @ (Q.T @ z)).reshape(-1, n)
        return float(np.linalg.norm(rest[:, joint])), float(np.linalg.norm(rest) / np.sqrt(n * len(inner) / rows))

    found = []
    for joint in range(n):
        (own, all_), best = left(joint, 0), min(steps, key=lambda step: left(joint, step)[0])
        after = left(joint, best)
        if after[0] < ONE_CLEARLY * own and after[1] < all_:
            found.append((after[0] / own, Finding(late_joint(view, n, joint, best), all_, after[1], fitted=True)))
    return [min(found, key=lambda pair: pair[0])[1]] if found else []


def _columns(view: View, chosen: Array | slice) -> tuple[Array, Array]:
    """Rigid body, rotors, friction, offsets along samples (rows n, p), over the size of each joint's torque (n,)."""
    q, qd, qdd, tau = (x[chosen] for x in (view.q, view.qd, view.qdd, view.tau))
    size = np.linalg.norm(tau, axis=0)
    size = np.maximum(size, max(1e-6 * float(size.max()), 1e-300))  # a dead channel stays as small as it is
    rows, n = tau.shape
    own = np.zeros((rows, n, 4 * n))
    for j in range(n):
        own[:, j, 4 * j : 4 * j + 4] = np.column_stack([qdd[:, j], qd[:, j], np.sign(qd[:, j]), np.ones(rows)])
    A = np.concatenate([np.asarray(view.arm.regressor(q, qd, qdd)), own], axis=2) / size[:, None]
    return A.reshape(rows * n, -1), size


def _fitted_error(view: View) -> float:
    """What least squares of rigid body, rotors, friction and offsets leave of the torques, each joint counted alike."""
    chosen = slice(None, None, max(1, len(view.q) // FITTED))
    A, size = _columns(view, chosen)
    z = (view.tau[chosen] / size).ravel()
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    normal, moment = (A / scale).T @ (A / scale), (A / scale).T @ z
    fit = np.linalg.solve(normal + 1e-9 * np.eye(len(normal)), moment)
    return float(np.linalg.norm(z - (A / scale) @ fit) / np.sqrt(len(size)))

"""Pre-flight check: whether the log is compatible with the arm.

The given arm, with unknown but non-negative friction, predicts the torques of the log. If they are predicted far better
under another interpretation of the log (torques of opposite sign, in another order or unit, or delayed; joints in
another order or direction; degrees; another gravity vector), that interpretation is proposed together with its remedy.
The log is changed only on request.
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
MAX_ERROR = 0.7  # relative error above which an interpretation does not explain the log
ROUNDS = 3  # largest number of interpretations combined
FIT_SAMPLES = 300  # samples of the fits that detect a delay
DELAY_GAIN = 0.8  # largest ratio of the residuals with and without a delay for it to be proposed
JOINT_DELAY_GAIN = 0.6  # the same for one joint, whose torque may appear delayed for other reasons


@dataclass(frozen=True, eq=False)
class Finding:
    """An interpretation under which the log is predicted far better, with the errors before and after."""

    reading: Reading
    before: float
    after: float
    fitted: bool = False  # whether the errors are those of a fit, independent of the arm's inertial parameters

    def __str__(self) -> str:
        if self.fitted:
            return (
                f"{self.reading.words}: corrected for this, a fit has a torque error of {100 * self.after:.1f} %,"
                f" as logged {100 * self.before:.1f} %. {self.reading.remedy}, or use fix=True (--fix)"
            )
        return (
            f"{self.reading.words}: corrected for this, the given arm predicts the torques with an error of"
            f" {100 * self.after:.0f} %, as logged {100 * self.before:.0f} %. {self.reading.remedy}, or use fix=True"
            " (--fix)"
        )


def preflight(arm: Arm, parts: list[Motion]) -> list[Finding]:
    """Successive interpretations under which the log fits the arm far better than as it is."""
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
    """Whether an interpretation is better by enough to be proposed, over all joints or those it concerns."""
    own = list(reading.joints) or list(range(len(view.errors)))
    before, now = (float(np.sqrt(np.mean(v.errors[own] ** 2))) for v in (view, after))
    return now <= MAX_ERROR and now * reading.penalty <= reading.needed * before and after.total < view.total


def _delayed(view: View) -> list[Finding]:
    """A delay detected by a fit of the whole model, where the given arm is too inaccurate to detect it."""
    n = view.tau.shape[1]
    every = list(delays(view, n))
    if not every:
        return []
    errors = [_fitted_error(view.read(reading)) for reading in every]
    before, best = _fitted_error(view), int(np.argmin(errors))
    if errors[best] <= DELAY_GAIN * before:
        return [Finding(every[best], before, errors[best], fitted=True)]
    return _one_delayed(view, sorted({round(reading.late / view.period) for reading in every}))


def _one_delayed(view: View, steps: list[int]) -> list[Finding]:
    """The single joint whose torque is delayed: the regressor stays the same, only that torque is shifted."""
    most, (rows, n) = max(abs(step) for step in steps), view.tau.shape
    inner = np.arange(most, rows - most, max(1, (rows - 2 * most) // FIT_SAMPLES))
    A, size = _columns(view, inner)
    Q = np.linalg.qr(A / np.maximum(np.linalg.norm(A, axis=0), 1e-300))[0]

    def left(joint: int, step: int) -> tuple[float, float]:
        """Residual norm of the torque of this joint, and of all joints."""
        tau = view.tau[inner].copy()
        tau[:, joint] = view.tau[inner + step, joint]
        z = (tau / size).ravel()
        rest = (z - Q @ (Q.T @ z)).reshape(-1, n)
        return float(np.linalg.norm(rest[:, joint])), float(np.linalg.norm(rest) / np.sqrt(n * len(inner) / rows))

    found = []
    for joint in range(n):
        (own, all_), best = left(joint, 0), min(steps, key=lambda step: left(joint, step)[0])
        after = left(joint, best)
        if after[0] < JOINT_DELAY_GAIN * own and after[1] < all_:
            found.append((after[0] / own, Finding(late_joint(view, n, joint, best), all_, after[1], fitted=True)))
    return [min(found, key=lambda pair: pair[0])[1]] if found else []


def _columns(view: View, chosen: Array | slice) -> tuple[Array, Array]:
    """Regressor of rigid body, rotors, friction and offsets (rows n, p), scaled by the torque norms (n,)."""
    q, qd, qdd, tau = (x[chosen] for x in (view.q, view.qd, view.qdd, view.tau))
    size = np.linalg.norm(tau, axis=0)
    size = np.maximum(size, max(1e-6 * float(size.max()), 1e-300))  # so that a channel without signal is not amplified
    rows, n = tau.shape
    own = np.zeros((rows, n, 4 * n))
    for j in range(n):
        own[:, j, 4 * j : 4 * j + 4] = np.column_stack([qdd[:, j], qd[:, j], np.sign(qd[:, j]), np.ones(rows)])
    A = np.concatenate([np.asarray(view.arm.regressor(q, qd, qdd)), own], axis=2) / size[:, None]
    return A.reshape(rows * n, -1), size


def _fitted_error(view: View) -> float:
    """Relative residual of a least-squares fit of rigid body, rotors, friction and offsets, joints weighted equally."""
    chosen = slice(None, None, max(1, len(view.q) // FIT_SAMPLES))
    A, size = _columns(view, chosen)
    z = (view.tau[chosen] / size).ravel()
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    normal, moment = (A / scale).T @ (A / scale), (A / scale).T @ z
    fit = np.linalg.solve(normal + 1e-9 * np.eye(len(normal)), moment)
    return float(np.linalg.norm(z - (A / scale) @ fit) / np.sqrt(len(size)))

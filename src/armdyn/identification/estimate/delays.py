"""The delay of a single joint's torque, from how well a fit explains that torque when it is shifted in time.

The delay of all torques together, and long ones of a joint, are found by the pre-flight check; one of 20 ms changes a
slow motion's torques by less than friction does, and is only seen beside a fit of rigid body, rotors and friction.
Measured with 20 ms put into logs of a UR10 and a TX40: 15 to 35 ms are found, and the joint's residual falls to between
0.32 and 0.81; without a delay it falls to 0.97 at most. On slow logs a joint may fit better and better however far it
is shifted, as elastic or sticking joints do: such a minimum at the end of the range is no delay.
"""

from __future__ import annotations

import numpy as np

from armdyn.identification.estimate import linear
from armdyn.identification.log.processing import Motion, Processing
from armdyn.identification.model.model import Model
from armdyn.identification.model.preflight import Finding
from armdyn.identification.model.reading import Reading
from armdyn.identification.model.rows import filtered, rows

STEPS = np.array([5, 10, 15, 20, 25, 30, 40, 50, 65]) * 1e-3  # s, either way
CLEAR = 0.85  # ratio of the joint's residuals, shifted and as logged, up to which a delay is reported


def delayed_joints(model: Model, parts: list[Motion], how: Processing) -> list[Finding]:
    """The joints whose torque is late or early by itself, each by what its own torque tells."""
    model = model.tuned(np.concatenate([p.qd for p in parts]), None)
    found = rows(model, parts, how)
    if not found.kept.any():
        return []
    weights = linear.weighted(found.Y, found.tau, found.kept).weights
    A = (found.Y * weights[..., None]).reshape(-1, found.Y.shape[-1])
    R = linear.triangle(A)
    _, s, Vt = np.linalg.svd(R / np.maximum(np.linalg.norm(R, axis=0), 1e-300), full_matrices=False)
    good = s > 1e-9 * s[0]
    Q = (A / np.maximum(np.linalg.norm(R, axis=0), 1e-300)) @ (Vt[good].T / s[good])
    z = found.tau * weights
    left = (z.ravel() - Q @ (Q.T @ z.ravel())).reshape(z.shape)
    Q = Q.reshape(*z.shape, -1)
    shifts = np.concatenate([-STEPS[::-1], [0.0], STEPS])
    ratios = np.ones((len(shifts), model.n))
    whole = np.ones_like(ratios)
    size = np.maximum(np.linalg.norm(left, axis=0), 1e-300)
    for k, shift in enumerate(shifts):
        moved = np.concatenate([filtered(_shifted(p, shift), p, how) for p in parts])
        change = (moved - found.tau) * weights
        for j in range(model.n):
            after = left - Q @ (Q[:, j].T @ change[:, j])
            after[:, j] += change[:, j]
            ratios[k, j] = np.linalg.norm(after[:, j]) / size[j]
            whole[k, j] = np.linalg.norm(after) / max(float(np.linalg.norm(left)), 1e-300)
    findings = []
    errors = np.linalg.norm(left, axis=0) / np.maximum(np.linalg.norm(z, axis=0), 1e-300)
    for j in range(model.n):
        best = int(np.argmin(ratios[:, j]))
        if ratios[best, j] > CLEAR or whole[best, j] >= 1 or best in (0, len(shifts) - 1):
            continue
        late = f"{1e3 * abs(shifts[best]):.0f} ms {'late' if shifts[best] > 0 else 'early'}"
        reading = Reading.of(
            model.n, f"the torque of joint {j + 1} is about {late} with respect to the positions",
            "Shift it in time first", late=float(shifts[best]), late_joint=j,
        )  # fmt: skip
        findings.append(Finding(reading, float(errors[j]), float(errors[j] * ratios[best, j]), fitted=True))
    return findings


def _shifted(part: Motion, shift: float) -> np.ndarray:
    return np.stack([np.interp(part.t + shift, part.t, tau) for tau in part.tau.T], axis=1)

"""Test vectors of an FMU, computed by other programs than it has: the kernels of the arm that holds the payload."""

from __future__ import annotations

from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.deployment.fmu_model import Model

VECTORS = 5
MOTION_STEP, MOTION_STEPS = 0.005, 40  # s, and how many: two tenths of a second
BODY = {"mass": 0.8, "com": (0.02, -0.01, 0.05), "inertia": (0.003, 0.004, 0.002, 0.0002, -0.0001, 0.0003)}


def vectors(model: Model) -> str:
    """The text of ``vectors.h``."""
    rng = np.random.default_rng(model.n)
    states = np.round(rng.uniform(-1, 1, (VECTORS, 2, model.n)), 3)
    tau = np.round(rng.uniform(-5, 5, (VECTORS, model.n)), 3)
    settings = np.array([v.start for v in model.variables if v.causality == "parameter"], dtype=float)
    arm = model.arm
    if model.payload:
        settings[:10] = [BODY["mass"], *BODY["com"], *BODY["inertia"]]  # type: ignore[misc]
        arm = arm.with_payload(**BODY, frame=model.frame)  # type: ignore[arg-type]
    qdd = np.stack([accelerations(model, arm, q, qd, t) for (q, qd), t in zip(states, tau, strict=True)])
    end = motion(model, arm, states[0, 0], states[0, 1], tau[0], MOTION_STEP, MOTION_STEPS)
    arrays = {
        "VECTOR_SETTINGS": settings, "VECTOR_TAU": tau, "VECTOR_STATES": states, "VECTOR_QDD": qdd, "MOTION_END": end
    }  # fmt: skip
    lines = [
        "/* What the model is checked against: accelerations, and where a motion under constant forces ends. */",
        f"#define VECTORS {VECTORS}",
        f"#define MOTION_STEP {MOTION_STEP!r}",
        f"#define MOTION_STEPS {MOTION_STEPS}",
    ]
    for name, values in arrays.items():
        numbers = [repr(float(x)) for x in np.ravel(values)]
        rows = [", ".join(numbers[k : k + 6]) for k in range(0, len(numbers), 6)]
        lines += [f"static const double {name}[] = {{", *(f"    {row}," for row in rows), "};"]
    return "\n".join([*lines, ""])


def moving(model: Model, q: Any, qd: Any, tau: Any) -> Any:
    """What friction and the other forces at the joints leave of the motors' forces.

    The simulator's laws, with a sign of dry friction that changes smoothly.
    """
    left = np.array(tau, dtype=float)
    for k, along in enumerate(model.along):
        left[k] -= float(along.forces(float(q[k]), float(qd[k])))
        for joint, ratio, _ in along.joints:
            rate = abs(float(ratio)) * float(qd[k])
            dry = float(joint.dry_friction(rate)) * np.tanh(rate / model.smoothing)
            left[k] -= abs(float(ratio)) * (float(joint.viscous) * rate + dry)
        left[k] *= float(along.own.efficiency(float(left[k]), float(np.tanh(qd[k] / model.smoothing))))
    return left


def accelerations(model: Model, arm: Arm, q: Any, qd: Any, tau: Any) -> Any:
    """By the kernel of the arm, its parameters baked in."""
    return arm.forward_dynamics(q, qd, moving(model, q, qd, tau))


def motion(model: Model, arm: Arm, q: Any, qd: Any, tau: Any, step: float, steps: int) -> Any:
    """(2, n): positions and velocities after some steps, each integrated as the FMU does: by RK4 in equal parts."""
    parts = max(1, int(np.ceil(step / model.step * (1 - 1e-12))))
    h = step / parts
    x = np.stack([q, qd])

    def rate(at: Any) -> Any:
        return np.stack([at[1], accelerations(model, arm, at[0], at[1], tau)])

    for _ in range(steps * parts):
        k1 = rate(x)
        k2 = rate(x + h / 2 * k1)
        k3 = rate(x + h / 2 * k2)
        k4 = rate(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x

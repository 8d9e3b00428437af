"""Test vectors of an FMU, computed by other programs than it has: kernels and simulator of the arm with the payload."""

from __future__ import annotations

from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.deployment.fmu_model import FmuModel
from armdyn.simulation import simulate

VECTORS = 5
MOTION_STEP, MOTION_STEPS = 0.005, 40  # s, and how many: two tenths of a second
BODY = {"mass": 0.8, "com": (0.02, -0.01, 0.05), "inertia": (0.003, 0.004, 0.002, 0.0002, -0.0001, 0.0003)}


def vectors(model: FmuModel) -> str:
    """The text of ``armdyn_vectors.h``."""
    rng = np.random.default_rng(model.n)
    states = np.round(rng.uniform(-1, 1, (VECTORS, 2, model.n)), 3)
    lower, upper = model.arm.limits.T
    off = np.minimum(0.1 * (upper - lower), 0.1)  # no vector is at a stop
    states[:, 0] = np.clip(states[:, 0], lower + off, upper - off)
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


def accelerations(model: FmuModel, arm: Arm, q: Any, qd: Any, tau: Any) -> Any:
    """By the kernel of the arm, its parameters baked in; no joint is at rest or at a stop."""
    return arm.kernel("forward_dynamics", friction=model.friction)(q, qd, tau)


def motion(model: FmuModel, arm: Arm, q: Any, qd: Any, tau: Any, step: float, steps: int) -> Any:
    """(2, n): positions and velocities after some steps, by the simulator with the FMU's method and step."""
    times = np.arange(steps + 1) * step
    out = simulate(
        arm, q, qd, torque=tau, times=times, friction=model.friction, limits="stop", method="RK4", step=model.step
    )
    return np.stack([out.q[-1], out.qd[-1]])

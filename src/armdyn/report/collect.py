"""Everything a report says about an arm, computed and measured now, as plain data."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import armdyn
from armdyn.arm import Arm
from armdyn.programs.cost import cost
from armdyn.report.card import card
from armdyn.studies.speed import BATCH, best, single_call

Progress = Callable[[float, float, str], None]
QUANTITIES = ("inertia_matrix", "bias", "inverse_dynamics", "forward_dynamics")
SECONDS = 0.05  # how long each is measured
_SLOW = {"reference"}  # exact derivatives of the energies: a judge, not a contender


def collect(arm: Arm, progress: Progress | None = None) -> dict[str, Any]:
    """The report's data; `progress(done, total, text)` is told what is being done."""
    steps: tuple[tuple[str, str, Callable[[Arm], Any]], ...] = (
        ("card", "reading the arm", card),
        ("view", "drawing the arm", view),
        ("parameters", "finding the minimal parameters", parameters),
        ("costs", "counting operations", costs),
        ("accuracy", "comparing with the reference", accuracy),
        ("speed", "compiling and measuring speed", speed),
        ("motion", "moving the arm", motion),
        ("fall", "letting the arm fall", fall),
    )
    data: dict[str, Any] = {"version": armdyn.__version__}
    for k, (key, text, step) in enumerate(steps):
        if progress is not None:
            progress(k, len(steps), text)
        data[key] = step(arm)
    if progress is not None:
        progress(len(steps), len(steps), "done")
    return data


def ranges(arm: Arm) -> np.ndarray:
    """(n, 2): the limits of each joint, ±180° or ±0.5 m where it has none."""
    rows = []
    for joint in arm.joints:
        default = np.pi if joint.revolute else 0.5
        lower, upper = joint.limit.lower, joint.limit.upper
        if lower is None or upper is None or not lower < upper:
            lower, upper = -default, default
        rows.append((max(lower, -2 * np.pi), min(upper, 2 * np.pi)))
    return np.array(rows)


def _home(arm: Arm) -> np.ndarray:
    """A bent posture inside the limits: near zero where zero is allowed."""
    low, high = ranges(arm).T
    rest = np.array([0.35 * (-1) ** k if joint.revolute else 0.2 for k, joint in enumerate(arm.joints)])
    inside: np.ndarray = np.clip(rest, low + 0.05 * (high - low), high - 0.05 * (high - low))
    return inside


def view(arm: Arm) -> dict[str, Any]:
    """What the 3-D picture needs: the joint table, base and tool, limits, a posture, the reach."""
    joints = card(arm)["joints"]
    for joint, (low, high) in zip(joints, ranges(arm), strict=True):
        joint["lower"], joint["upper"] = float(low), float(high)
    chain = arm.chain
    reach = sum(abs(j["b"]) + abs(j["d"]) + (abs(j["upper"]) if j["kind"] == "prismatic" else 0) for j in joints)
    return {
        "joints": joints,
        "base": _matrix(chain.base),
        "tool": _matrix(chain.tool),
        "home": _home(arm).tolist(),
        "reach": float(0.8 * reach + np.linalg.norm([float(x) for x in chain.base.p])),
    }


def _matrix(placement: Any) -> list[list[float]]:
    rows = [[*map(float, row), float(x)] for row, x in zip(placement.R.rows, placement.p, strict=True)]
    return [*rows, [0.0, 0.0, 0.0, 1.0]]


def parameters(arm: Arm) -> dict[str, Any]:
    """The minimal parameters: names, formulas, values."""
    minimal = arm.minimal_parameters
    return {
        "kind": minimal.kind,
        "names": list(minimal.names),
        "expressions": [str(e) for e in minimal.expressions],
        "values": [float(v) for v in minimal.values],
    }


def costs(arm: Arm) -> list[dict[str, Any]]:
    """Operations of every formulation, as published and as compiled; the winner of each quantity is marked."""
    rows: list[dict[str, Any]] = []
    for quantity in QUANTITIES:
        group: list[dict[str, Any]] = []
        for method in armdyn.methods(quantity):
            if method in _SLOW:
                continue
            found = cost(arm, quantity, method)
            group.append(
                {
                    "quantity": quantity,
                    "method": method,
                    "published": [found.published.mul, found.published.add, found.published.div],
                    "compiled": [found.compiled.mul, found.compiled.add, found.compiled.div],
                    "total": found.compiled.total,
                }
            )
        least = min(int(row["total"]) for row in group)
        for row in group:
            row["best"] = row["total"] == least
        rows += group
    return rows


def accuracy(arm: Arm, samples: int = 200) -> list[dict[str, Any]]:
    """The largest difference of every formulation from the reference, relative to the largest entry."""
    rng = np.random.default_rng(1)
    low, high = ranges(arm).T
    q = rng.uniform(low, high, (samples, arm.n))
    qd = rng.normal(size=(samples, arm.n))
    rows = []
    for quantity, inputs in (("inertia_matrix", (q,)), ("bias", (q, qd))):
        truth = arm.kernel(quantity, method="reference", backend="python")(*inputs)
        for method in armdyn.methods(quantity):
            if method in _SLOW:
                continue
            value = arm.kernel(quantity, method=method, backend="python")(*inputs)
            rows.append({"quantity": quantity, "method": method, "error": _relative(value, truth)})
        compiled = arm.kernel(quantity)
        rows.append(
            {
                "quantity": quantity,
                "method": f"compiled ({compiled.method})",
                "error": _relative(compiled(*inputs), truth),
            }
        )
    return rows


def _relative(value: Any, truth: Any) -> float:
    return float(np.max(np.abs(value - truth)) / max(float(np.max(np.abs(truth))), 1e-300))


def speed(arm: Arm) -> list[dict[str, Any]]:
    """Nanoseconds a configuration, in a batch and one at a time: best of several, one thread, measured now."""
    rng = np.random.default_rng(2)
    batch = [rng.uniform(-1, 1, (BATCH, arm.n)) for _ in range(3)]
    rows = []
    for quantity, inputs in (("inertia_matrix", 1), ("bias", 2), ("inverse_dynamics", 3), ("forward_dynamics", 3)):
        start = time.perf_counter()
        kernel = getattr(arm, quantity)
        out = kernel(*batch[:inputs])
        first = time.perf_counter() - start
        single = [x[0].copy() for x in batch[:inputs]]
        rows.append(
            {
                "quantity": quantity,
                "method": arm.kernel(quantity).method,
                "batch_ns": best(partial(kernel, *batch[:inputs], out=out), SECONDS) / BATCH * 1e9,
                "single_ns": single_call(kernel, tuple(single), SECONDS) * 1e9,
                "copy_ns": best(partial(np.copyto, np.empty_like(out), out), SECONDS) / BATCH * 1e9,
                "first_call_ms": first * 1e3,
            }
        )
    return rows


def motion(arm: Arm, duration: float = 4.0, frames: int = 161) -> dict[str, Any]:
    """The inertia matrix, gravity load and torques along a smooth motion inside the limits."""
    t = np.linspace(0.0, duration, frames)[:, None]
    low, high = ranges(arm).T
    home = _home(arm)
    amplitude = 0.6 * np.minimum(np.minimum(high - home, home - low), 1.2)
    w = 2 * np.pi / duration * (1 + np.arange(arm.n) % 3)
    phase = 0.7 * np.arange(arm.n)
    q = home + amplitude * np.sin(w * t + phase)
    qd = amplitude * w * np.cos(w * t + phase)
    qdd = -amplitude * w**2 * np.sin(w * t + phase)
    every = slice(None, None, 4)
    return {
        "t": t[:, 0].tolist(),
        "gravity_load": arm.gravity_load(q).T.tolist(),
        "torque": arm.inverse_dynamics(q, qd, qdd).T.tolist(),
        "map_t": t[every, 0].tolist(),
        "map": np.round(arm.inertia_matrix(q[every]), 6).tolist(),
    }


def fall(arm: Arm, duration: float = 2.0) -> dict[str, Any]:
    """The arm let go, without friction: joint positions and the energy that must stay."""
    result = armdyn.simulate(
        arm, _home(arm), np.zeros(arm.n), duration=duration, method="RK5", step=1e-3, friction=False, limits=False
    )
    every = max(1, len(result.t) // 250)
    energy = np.asarray(result.energy)
    return {
        "t": result.t[::every].tolist(),
        "q": result.q[::every].T.tolist(),
        "energy_error": (energy[::every] - energy[0]).tolist(),
        "status": result.status,
        "message": result.message,
    }

"""The straight-line study of a Puma: a replication of Provenzano et al., section 4 and Table 2.

The tool moves along a straight line at constant speed and orientation. Inverse dynamics gives the torques of that
motion; forward dynamics under these torques should reproduce it. What the paper leaves open, and the choices made here:

- the Puma's parameters: `puma560` of the catalogue (Armstrong et al. 1986) with its rotor inertias, without friction.
  Without the rotor inertias errors grow 170-fold per second instead of 10-fold, and no comparison is possible;
- the base frame: at the height of the shoulder, the only usual choice from which the whole line can be reached within
  the joint limits (from the floor, 0.672 m below, only by exceeding them; from above not at all);
- the tool: the origin of frame 6, the wrist centre ("the local system fixed on the link 6");
- the posture: the paper's figure is lost; three postures reach the line within the limits, all listed in `POSTURES`;
- the torques within an interval: exact in time, linearly interpolated, or held (`READINGS`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from armdyn.arm import Arm, load
from armdyn.codegen.compile import Compiled, compile_program
from armdyn.formulations.forward_dynamics.solvers import gauss_jordan
from armdyn.formulations.inertia_matrix import gibbs_appell, walker_orin
from armdyn.formulations.inverse_dynamics import gibbs_appell as gibbs_appell_bias
from armdyn.formulations.inverse_dynamics import newton_euler
from armdyn.graph.program import Program, trace
from armdyn.programs.assemble import assemble
from armdyn.simulation import Feedforward, Reference, Sampled, simulate, straight_line
from armdyn.simulation.adaptive import Solver

START, END = np.array([0.60, 0.175, 0.250]), np.array([0.244, 0.527, 0.250])
ZYZ = (45.0, 60.0, 90.0)  # degrees
SECONDS, INTERVAL, TOLERANCE = 5.0, 0.1, 1e-6
POSTURES = {
    "first": (0.04, -1.10, 3.04, -0.70, -1.14, 2.34),
    "second": (0.04, 0.32, 0.20, 1.09, 0.72, 1.04),
    "third": (-2.62, -2.04, 0.20, -0.30, 0.83, -1.23),
}
READINGS = ("exact", "linear", "held")
METHODS = ("CRBM", "ABM", "GAH", "ours")
QUANTITIES = ("position", "velocity", "acceleration")
# Table 2: (maximum, mean) of the errors, and seconds on a 400 MHz Pentium II.
PRINTED: dict[str, dict[str, tuple[float, float]]] = {
    "CRBM": {
        "position": (2.24416e-3, 1.98474e-4), "velocity": (1.48353e-3, 1.01924e-4),
        "acceleration": (1.96068e-2, 1.73333e-3),
    },
    "ABM": {
        "position": (2.24506e-3, 1.98552e-4), "velocity": (1.48402e-3, 1.01960e-4),
        "acceleration": (1.96293e-2, 1.73432e-3),
    },
    "GAH": {
        "position": (2.24446e-3, 1.98500e-4), "velocity": (1.48370e-3, 1.01937e-4),
        "acceleration": (1.96184e-2, 1.73377e-3),
    },
}  # fmt: skip
PRINTED_SECONDS = {"CRBM": 0.57, "ABM": 0.65, "GAH": 0.56}
_OWN = "ours"


def rotation() -> np.ndarray:
    """The constant orientation, from z-y-z Euler angles."""
    a, b, c = np.radians(ZYZ)

    def z(angle: float) -> np.ndarray:
        return np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])

    y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    return np.asarray(z(a) @ y @ z(c))


@lru_cache(maxsize=1)
def puma() -> Arm:
    """The arm of the study."""
    return load("puma560")


@lru_cache(maxsize=8)
def line(posture: str = "first") -> Reference:
    """The prescribed motion; 0.5006 m in 5 s, since the paper's end points are rounded."""
    speed = float(np.linalg.norm(END - START)) / SECONDS
    return straight_line(puma(), START, END, rotation(), speed, np.array(POSTURES[posture]))


def residual(posture: str = "first") -> float:
    """The largest deviation of the tool from the line, in metres, and of its rotation matrix, entry by entry."""
    t = np.linspace(0, SECONDS, 501)
    pose = puma().pose(line(posture)(t)[0])
    off = np.abs(pose[:, :3, 3] - (START + np.multiply.outer(t / SECONDS, END - START))).max()
    return float(max(off, np.abs(pose[:, :3, :3] - rotation()).max()))


@lru_cache(maxsize=8)
def program(method: str) -> Program:
    """Forward dynamics by a method: (q, qd, tau) -> qdd."""
    chain = puma().chain
    composite: dict[str, dict[str, Callable[..., Any]]] = {
        "CRBM": {"inertia_matrix": walker_orin.inertia_matrix, "bias": newton_euler.bias},
        "GAH": {"inertia_matrix": gibbs_appell.inertia_matrix, "bias": gibbs_appell_bias.bias},
    }
    parts = composite[method] | {"solver": gauss_jordan} if method in composite else {}
    key = {"ABM": "articulated_body", _OWN: puma().forward_dynamics.method}.get(method, "composite")
    made = assemble(chain, "forward_dynamics", key, parts=parts)
    return trace(method, made.function, dict(made.inputs), made.outputs)


@lru_cache(maxsize=8)
def accelerations(method: str) -> Compiled:
    """The same, compiled."""
    return compile_program(program(method))


@dataclass(frozen=True)
class LineRun:
    """A forward simulation, sampled at the ends of the intervals."""

    method: str
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    seconds: float
    evaluations: int
    status: str


def torques(reading: str, posture: str = "first") -> Callable[[float], np.ndarray]:
    """τ(t) of the prescribed motion: evaluated at t, or from samples at the ends of the intervals."""
    inverse, reference = puma().inverse_dynamics, line(posture)
    if reading == "exact":
        return lru_cache(maxsize=None)(lambda t: np.asarray(inverse(*reference(np.array(t)))))
    t = times()
    samples = Sampled(t, inverse(*reference(t)), "linear" if reading == "linear" else "held")
    return lambda t: samples.at(np.array(t))


def times() -> np.ndarray:
    """The ends of the intervals."""
    return np.linspace(0, SECONDS, round(SECONDS / INTERVAL) + 1)


def forward(method: str, reading: str = "exact", posture: str = "first") -> LineRun:
    """Simulate under the torques: fifth-order Runge-Kutta with step control, restarted every interval."""
    n, tau, act = puma().n, torques(reading, posture), accelerations(method)
    calls = [0]

    def right(t: float, y: np.ndarray) -> np.ndarray:
        calls[0] += 1
        return np.concatenate([y[n:], act(y[:n], y[n:], tau(t))])

    moments = times()
    q, qd, _ = line(posture)(np.array(0.0))
    solver = Solver("RK45", TOLERANCE, TOLERANCE, tuple(moments.tolist()), held=reading == "held")
    right(0.0, np.concatenate([q, qd]))  # compiles before the time is measured
    calls[0] = 0
    start = time.perf_counter()
    t, y, status, _ = solver.run(right, np.concatenate([q, qd]), moments, None, lambda t: None)
    seconds = time.perf_counter() - start
    rates = np.array([act(row[:n], row[n:], tau(float(moment))) for moment, row in zip(t, y, strict=True)])
    return LineRun(method, t, y[:, :n], y[:, n:], rates, seconds, calls[0], status)


def tool_motion(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> dict[str, np.ndarray]:
    """Position, velocity and acceleration of the tool, (..., 3) each."""
    J, rate = puma().jacobian(q)[..., :3, :], puma().jacobian_rate(q, qd)[..., :3, :]
    velocity = np.einsum("...ij,...j", J, qd)
    acceleration = np.einsum("...ij,...j", J, qdd) + np.einsum("...ij,...j", rate, qd)
    return dict(zip(QUANTITIES, (puma().pose(q)[..., :3, 3], velocity, acceleration), strict=True))


def deviations(run: LineRun, posture: str = "first") -> dict[str, np.ndarray]:
    """The norm of the difference from the prescribed motion at the end of every interval."""
    wanted, got = tool_motion(*line(posture)(run.t)), tool_motion(run.q, run.qd, run.qdd)
    return {name: np.linalg.norm(got[name] - wanted[name], axis=-1) for name in QUANTITIES}


def of_lengths(run: LineRun, posture: str = "first") -> dict[str, np.ndarray]:
    """The difference of the norms, the other possible reading of "errors in the modules of the vector"."""
    wanted, got = tool_motion(*line(posture)(run.t)), tool_motion(run.q, run.qd, run.qdd)
    lengths = ({k: np.linalg.norm(v, axis=-1) for k, v in motion.items()} for motion in (wanted, got))
    first, second = lengths
    return {name: np.abs(second[name] - first[name]) for name in QUANTITIES}


def growth(errors: np.ndarray, t: np.ndarray) -> float:
    """The growth factor of the error per second, by linear regression of its logarithm from 1 s on."""
    late = (t >= 1) & (errors > 0)
    return float(np.exp(np.polyfit(t[late], np.log(errors[late]), 1)[0]))


def printed_growth(method: str = "GAH", quantity: str = "position") -> float:
    """The growth factor per second implied by the printed ratio of mean to maximum, if errors grow exponentially.

    For errors e^(λt) at N equal intervals the ratio is 1/((N + 1)(1 - e^(-λΔt))) to a very good approximation.
    """
    largest, mean = PRINTED[method][quantity]
    return float((1 - largest / mean / len(times())) ** (-1 / INTERVAL))


def convergence(
    posture: str = "first", steps: tuple[float, ...] = (0.1, 0.05, 0.025, 0.0125)
) -> list[dict[str, float]]:
    """Joint error at the end of the motion, and measured order, of fixed fifth-order steps under exact torques."""
    arm, reference, moments = puma(), line(posture), times()
    q, qd, _ = reference(moments)
    rows: list[dict[str, float]] = []
    for step in steps:
        out = simulate(
            arm, q[0], qd[0], torque=Feedforward(reference), times=moments, step=step, method="RK5",
            friction=False, limits=False, saturate=False,
        )  # fmt: skip
        error = float(np.abs(out.q[-1] - q[-1]).max())
        order = float(np.log2(rows[-1]["error"] / error)) if rows else float("nan")
        rows.append({"step": step, "error": error, "order": order})
    return rows


def alternately(rounds: int = 20) -> dict[str, float]:
    """Nanoseconds per evaluation of the accelerations, in batches of 64 along the line: best of alternate rounds."""
    q, qd, qdd = line()(np.linspace(0, SECONDS, 64))
    tau = puma().inverse_dynamics(q, qd, qdd)
    best = dict.fromkeys(METHODS, np.inf)
    for _ in range(rounds):
        for method in METHODS:
            run = partial(accelerations(method), q, qd, tau)
            run()
            start = time.perf_counter()
            for _ in range(50):
                run()
            best[method] = min(best[method], time.perf_counter() - start)
    return {method: float(x / 50 / 64 * 1e9) for method, x in best.items()}


def data(posture: str = "first") -> dict[str, Any]:
    """Everything that the page and the terminal show."""
    runs = {reading: {method: forward(method, reading, posture) for method in METHODS} for reading in READINGS}
    exact = runs["exact"]
    again = {method: forward(method, "exact", posture) for method in reversed(METHODS)}  # none is always the first
    nanoseconds = alternately()
    q, qd, qdd = line(posture)(times())
    own = exact[_OWN]
    rows = []
    for method, run in exact.items():
        errors, lengths = deviations(run, posture), of_lengths(run, posture)
        rows.append({
            "method": method,
            **{k: [float(v.max()), float(v.mean())] for k, v in errors.items()},
            **{f"{k} (lengths)": [float(v.max()), float(v.mean())] for k, v in lengths.items()},
            "printed": PRINTED.get(method), "printed_seconds": PRINTED_SECONDS.get(method),
            "seconds": min(run.seconds, again[method].seconds), "evaluations": run.evaluations,
            "nanoseconds": nanoseconds[method], "operations": str(program(method).operations),
            "difference_from_ours": float(np.abs(run.q - own.q).max()),
        })  # fmt: skip
    sampled = {
        reading: {
            "status": runs[reading][_OWN].status,
            "reached": float(runs[reading][_OWN].t[-1]),
            "position": float(deviations(runs[reading][_OWN], posture)["position"].max()),
        }
        for reading in ("linear", "held")
    }
    return {
        "posture": posture, "q0": q[0], "residual": residual(posture), "table": rows, "sampled": sampled,
        "growth": growth(deviations(own, posture)["position"], own.t), "printed_growth": printed_growth(),
        "convergence": convergence(posture), "t": times(), "q": q, "tau": puma().inverse_dynamics(q, qd, qdd),
        "path": tool_motion(own.q, own.qd, own.qdd)["position"],
        "errors": {
            reading: {"t": run[_OWN].t, **deviations(run[_OWN], posture)} for reading, run in runs.items()
        },
    }  # fmt: skip

"""What would the Puma study's program of its time have had to do to print its Table 2? Hypotheses, run one by one.

The torques alone drive the arm, so whatever error there is grows with the motion's own instability. Its size says how
large the error was at the start; ratios need no scale and are the fingerprints of its kind: velocity and acceleration
to position, and mean to maximum of each. All are of the lengths of the vectors, as the paper has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.chain.chain import Chain
from armdyn.programs.stepping import SCHEMES, combined
from armdyn.simulation.adaptive import Solver
from armdyn.studies import puma_line as study

FAR = 0.25  # of a fingerprint: further off, it is another's
Rates = Callable[[float, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Hypothesis:
    """Something the program may have done otherwise than ours; what is left out is as in `puma_line`."""

    name: str
    start: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]] = lambda q, qd: (q, qd)
    torque: Callable[[np.ndarray], np.ndarray] = lambda tau: tau
    arm: Callable[[Arm], Arm] = lambda arm: arm  # that is simulated; the torques are those of the study's arm
    own_torques: bool = False  # the torques are those of the arm that is simulated
    step: float | None = None  # of fifth-order Runge-Kutta without step control, s
    tolerance: float = study.TOLERANCE


def _rounded(digits: int) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    return lambda q, qd: (np.round(q, digits), np.round(qd, digits))


def _in_single(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return q.astype(np.float32).astype(float), qd.astype(np.float32).astype(float)


def _significant(values: np.ndarray, digits: int) -> np.ndarray:
    return np.array([float(f"{x:.{digits - 1}e}") for x in values])


def _single(arm: Arm) -> Arm:
    """The arm with masses, first moments and inertias in single precision."""
    return replace(arm, given=_map_links(arm.given, lambda x: float(np.float32(x))))


def _map_links(chain: Chain, change: Callable[[float], float]) -> Chain:
    from armdyn.chain.joint import Link

    links = (Link.from_natural(tuple(change(float(x)) for x in link.natural)) for link in chain.links)
    return chain.with_links(tuple(links))


def _without_rotors(arm: Arm) -> Arm:
    joints = tuple(replace(joint, rotor_inertia=0) for joint in arm.given.joints)
    return replace(arm, given=replace(arm.given, joints=joints))


HYPOTHESES = (
    Hypothesis("as here: step control, tolerance 1e-6"),
    Hypothesis("step control, tolerance 1e-4", tolerance=1e-4),
    Hypothesis("RK5 in steps of 0.1 s, the sample times", step=0.1),
    Hypothesis("RK5 in steps of 0.05 s", step=0.05),
    Hypothesis("start rounded to 8 decimals", start=_rounded(8)),
    Hypothesis("start rounded to 6 decimals", start=_rounded(6)),
    Hypothesis("start in single precision", start=_in_single),
    Hypothesis("initial velocity 1e-6 rad/s off at joint 1", start=lambda q, qd: (q, qd + 1e-6 * np.eye(len(qd))[0])),
    Hypothesis("initial velocity 1e-6 rad/s off at joint 5", start=lambda q, qd: (q, qd + 1e-6 * np.eye(len(qd))[4])),
    Hypothesis("torques written with 7 digits", torque=lambda tau: _significant(tau, 7)),
    Hypothesis("torques written with 5 digits", torque=lambda tau: _significant(tau, 5)),
    Hypothesis("links' parameters in single precision in the simulation only", arm=_single),
    Hypothesis("gravity 9.80665 in the simulation only", arm=lambda arm: arm.with_gravity((0, 0, -9.80665))),
    Hypothesis("1 g more at the tool in the simulation", arm=lambda arm: arm.with_payload(1e-3)),
    Hypothesis("no motor inertias, start rounded to 8 decimals", start=_rounded(8), arm=_without_rotors,
               own_torques=True),
)  # fmt: skip


@dataclass(frozen=True)
class HypothesisResult:
    """The largest errors of the lengths and the fingerprints; NaN where the run did not last five seconds."""

    name: str
    size: float  # of the position's error, m
    fingerprints: tuple[float, ...]

    def survives(self) -> tuple[bool, ...]:
        """Which fingerprints are as printed, within `FAR`."""
        return tuple(bool(abs(x / y - 1) < FAR) for x, y in zip(self.fingerprints, printed(), strict=True))


FINGERPRINTS = (
    "velocity / position",
    "acceleration / position",
    "mean / max, position",
    "… velocity",
    "… acceleration",
)


def printed(method: str = "CRBM") -> tuple[float, ...]:
    """The fingerprints of Table 2."""
    rows = study.PRINTED[method]
    return _fingerprints([rows[name][0] for name in study.QUANTITIES], [rows[name][1] for name in study.QUANTITIES])


def _fingerprints(largest: list[float], mean: list[float]) -> tuple[float, ...]:
    ratios = [m / x for m, x in zip(mean, largest, strict=True)]
    return (largest[1] / largest[0], largest[2] / largest[0], *ratios)


def outcomes(posture: str = "first") -> list[HypothesisResult]:
    """Every hypothesis, run in one posture."""
    return [outcome(one, posture) for one in HYPOTHESES]


def outcome(hypothesis: Hypothesis, posture: str = "first") -> HypothesisResult:
    """One hypothesis, run."""
    nominal = study.puma()
    arm = hypothesis.arm(nominal)
    reference, moments = study.line(posture), study.times()
    source = (arm if hypothesis.own_torques else nominal).inverse_dynamics

    @cache
    def tau(t: float) -> np.ndarray:
        return hypothesis.torque(np.asarray(source(*reference(np.array(t)))))

    n, act = arm.n, arm.forward_dynamics

    def right(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[n:], act(y[:n], y[n:], tau(t))])

    q, qd, _ = reference(np.array(0.0))
    y0 = np.concatenate([np.asarray(x, float) for x in hypothesis.start(q, qd)])
    if hypothesis.step is not None:
        rows = _steps(right, y0, moments, hypothesis.step)
    else:
        solver = Solver("RK45", hypothesis.tolerance, hypothesis.tolerance, tuple(moments.tolist()))
        rows = solver.run(right, y0, moments, None, lambda t: None)[1]
    if len(rows) < len(moments) or not np.isfinite(rows).all():
        return HypothesisResult(hypothesis.name, float("nan"), (float("nan"),) * len(FINGERPRINTS))
    rates = np.array([act(row[:n], row[n:], tau(float(t))) for t, row in zip(moments, rows, strict=True)])
    run = study.LineRun("", moments, rows[:, :n], rows[:, n:], rates, 0.0, 0, "")
    errors = study.of_lengths(run, posture)
    largest = [float(errors[name].max()) for name in study.QUANTITIES]
    mean = [float(errors[name].mean()) for name in study.QUANTITIES]
    return HypothesisResult(hypothesis.name, largest[0], _fingerprints(largest, mean))


def _steps(right: Rates, y: np.ndarray, moments: np.ndarray, step: float) -> np.ndarray:
    """Fixed steps of fifth order, stored at the moments."""
    scheme = SCHEMES["RK5"]
    rows, every = [y], round((moments[1] - moments[0]) / step)
    for start in moments[:-1]:
        for k in range(every):
            t = float(start) + k * step
            slopes: list[Any] = []
            for c, weights in zip(scheme.nodes, scheme.a, strict=True):
                moved = combined(y, step, zip(map(float, weights), slopes, strict=False))
                slopes.append(right(t + float(c) * step, moved))
            y = np.asarray(combined(y, step, zip(map(float, scheme.b), slopes, strict=True)))
        rows.append(y)
    return np.array(rows)


HEADS = ("hypothesis", "size [m]", *FINGERPRINTS, "kept")


def table(found: list[HypothesisResult]) -> list[list[str]]:
    """The printed row, then one per hypothesis; fingerprints further off than `FAR` are in brackets."""
    rows = [["as printed", f"{study.PRINTED['CRBM']['position'][0]:.1e}", *(f"{x:.3g}" for x in printed()), ""]]
    for one in found:
        kept = one.survives()
        cells = [f"{x:.3g}" if ok else f"({x:.3g})" for x, ok in zip(one.fingerprints, kept, strict=True)]
        rows.append([one.name, f"{one.size:.1e}", *cells, f"{sum(kept)} of {len(kept)}"])
    return rows

"""Generalised-momentum observer: estimates external joint torques from positions, velocities and motor torques.

Source: De Luca & Mattone 2003; De Luca, Albu-Schäffer, Haddadin & Hirzinger 2006 (collision detection).

Idea: p = H q̇ obeys ṗ = τ - friction + Cᵀq̇ - g + τ_ext. With f the low-pass filtered τ - friction + Cᵀq̇ - g + K p, the
residual r = K p - f obeys ṙ = K (τ_ext - r): it is τ_ext through a first-order filter of bandwidth K per joint. Neither
accelerations nor the inverse of H are needed. The filter is integrated by backward Euler, so it is stable for any K dt.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from armdyn.algebra import Scalar, sign
from armdyn.chain import Chain
from armdyn.control.dynamics import Dynamics
from armdyn.control.feedback import less, low_pass, plus, scaled
from armdyn.control.law import QD, TAU, ControlLaw, Entry, Q

SHARE = 0.02  # of the effort limit of a joint: the default threshold


def momentum_filter(model: Dynamics, x: SimpleNamespace, filtered: Any) -> tuple[list[Scalar], list[Scalar]]:
    """The next filter state f and the residual K p - f; K is `x.bandwidth`, per joint."""
    momentum = scaled(x.bandwidth, model("momentum", x.q, x.qd))
    driven = plus(less(x.tau, model.joint_forces(x.q, x.qd, x.tau)), model("momentum_bias", x.q, x.qd))
    rows = zip(filtered, plus(driven, momentum), x.bandwidth, strict=True)
    after = [low_pass(before, now, x.dt * k) for before, now, k in rows]
    return after, less(momentum, after)


def step(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """The residual, and the joints whose residual exceeds the threshold."""
    filtered, residual = momentum_filter(model, x, x.filtered)
    contact = [(1 + sign(r * sign(r) - most)) / 2 for r, most in zip(residual, x.threshold, strict=True)]
    return {"residual": residual, "contact": contact, "filtered": filtered}


def start(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """The filter state for which the initial residual is zero."""
    return {"filtered": scaled(x.bandwidth, model("momentum", x.q, x.qd))}


def threshold(chain: Chain) -> list[float]:
    """A fraction of each joint's effort limit; 1 N m or 1 N for a joint without one."""
    limits = [chain.joints[i].limit.effort for i in chain.independent]
    return [1.0 if effort is None else SHARE * float(effort) for effort in limits]


LAW = ControlLaw(
    "momentum_observer",
    "external joint torques estimated from the generalised momentum, for collision detection",
    "de_luca_2003",
    measured=(Q, QD, TAU),
    gains=(
        Entry("bandwidth", ("nv",), "observer gain, 1/s", 50.0),
        Entry("threshold", ("nv",), "residual above which contact is reported, N m or N", threshold),
    ),
    outputs=(
        Entry("residual", ("nv",), "estimated external torques"),
        Entry("contact", ("nv",), "1 where the magnitude of the residual exceeds the threshold, otherwise 0"),
    ),
    memory=(Entry("filtered", ("nv",), "filter state"),),
    step=step,
    start=start,
)

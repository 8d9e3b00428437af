"""Computed torque: inverse dynamics of the reference acceleration plus PID feedback."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from armdyn.algebra import clamp
from armdyn.control.dynamics import Dynamics, carried
from armdyn.control.feedback import less, pd, plus, scaled
from armdyn.control.law import COMMAND, PAYLOAD, Q_REF, QD, QD_REF, QDD_REF, ControlLaw, Entry, Q


def step(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """τ = inverse dynamics of q̈_ref + kd ė + kp e + ki ∫e, plus friction at the reference velocity if it is known."""
    error = less(x.q_ref, x.q)
    grown = [i + x.dt * e for i, e in zip(x.integral, error, strict=True)]
    integral = [clamp(i, most) for i, most in zip(grown, x.integral_limit, strict=True)]
    feedback = plus(pd(x.kp, x.kd, (x.q_ref, x.q), (x.qd_ref, x.qd)), scaled(x.ki, integral))
    motion = (x.q, x.qd, plus(x.qdd_ref, feedback))
    tau = plus(model("inverse_dynamics", *motion), model.of_payload("inverse_dynamics", carried(x), *motion))
    return {"tau": plus(tau, model.joint_forces(x.q, x.qd_ref, tau)), "integral": integral}


LAW = ControlLaw(
    "computed_torque",
    "computed-torque control with PID feedback",
    "luh_1980",
    measured=(Q, QD),
    reference=(Q_REF, QD_REF, QDD_REF),
    gains=(
        Entry("kp", ("nv",), "proportional gain, 1/s²", 100.0),
        Entry("kd", ("nv",), "derivative gain, 1/s", 20.0),
        Entry("ki", ("nv",), "integral gain, 1/s³", 0.0),
        Entry("integral_limit", ("nv",), "limit of the integrated error (anti-windup), rad s or m s", 1.0),
        *PAYLOAD,
    ),
    outputs=(COMMAND,),
    memory=(Entry("integral", ("nv",), "integral of the position error"),),
    step=step,
    start=lambda model, x: {"integral": [0] * model.chain.nv},
)

"""Gravity compensation: cancels the weight of the arm and its payload, and adds damping."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from armdyn.algebra import Scalar
from armdyn.control.dynamics import Dynamics, carried
from armdyn.control.feedback import less, plus, scaled
from armdyn.control.law import COMMAND, PAYLOAD, QD, ControlLaw, Entry, Q


def step(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """τ = g(q) + g_payload(q) - damping q̇, plus the joint forces at rest (springs, offsets, ...) if they are known."""
    load = plus(model("gravity_load", x.q), model.of_payload("gravity_load", carried(x), x.q))
    still: list[Scalar] = [0] * len(load)
    return {"tau": less(plus(load, model.joint_forces(x.q, still, load)), scaled(x.damping, x.qd))}


LAW = ControlLaw(
    "gravity_compensation",
    "gravity compensation of the arm and a payload, with joint damping",
    "",
    measured=(Q, QD),
    gains=(
        *PAYLOAD,
        Entry("damping", ("nv",), "joint damping, N m s/rad or N s/m", 0.0),
    ),
    outputs=(COMMAND,),
    step=step,
)

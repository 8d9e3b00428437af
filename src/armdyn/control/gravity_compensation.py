"""Gravity compensation: the arm and what it holds weigh nothing, and move with the damping that is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from armdyn.control.dynamics import Dynamics
from armdyn.control.law import COMMAND, QD, ControlLaw, Entry, Q


def step(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """τ = g(q) + g_payload(q) - damping q̇."""
    held = model.of_payload("gravity_load", x.payload, x.q)
    rows = zip(model("gravity_load", x.q), held, x.damping, x.qd, strict=True)
    return {"tau": [g + p - d * v for g, p, d, v in rows]}


LAW = ControlLaw(
    "gravity_compensation",
    "gravity load of the arm and of a payload, with damping",
    "",
    measured=(Q, QD),
    gains=(
        Entry("payload", (4,), "mass and first moments (kg, kg m) of the payload, at the tool in its axes", 0.0),
        Entry("damping", ("nv",), "N m s/rad or N s/m", 0.0),
    ),
    outputs=(COMMAND,),
    step=step,
    at_tool=True,
)

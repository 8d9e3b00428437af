"""Feed-forward for arms whose joints take position commands and no torques: torques as offsets of the commands.

Idea: a position servo turns the error of the position into torque, kp (c - q) - kd q̇. So that it gives the torque that
the reference motion needs, the command leads the reference by (τ + kd q̇_ref) / kp: gravity compensation with the arm at
rest, inverse dynamics and friction in motion. The servo's own feedback is left as it is. Its delay is not made up for:
give references that are as much ahead.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from armdyn.chain import Chain
from armdyn.control.dynamics import Dynamics
from armdyn.control.feedback import plus, scaled
from armdyn.control.law import Q_REF, QD_REF, QDD_REF, ControlLaw, Entry

UNKNOWN = {"kp": 100.0, "kd": 0.0}  # of joints without a servo


def step(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """The commands for the reference."""
    rigid = model("inverse_dynamics", x.q_ref, x.qd_ref, x.qdd_ref)
    tau = plus(rigid, model.joint_forces(x.q_ref, x.qd_ref, rigid))
    needed = plus(tau, scaled(x.kd, x.qd_ref))
    return {"command": [q + t / kp for q, t, kp in zip(x.q_ref, needed, x.kp, strict=True)]}


def own(name: str) -> Any:
    """The gain of each joint's servo."""

    def gains(chain: Chain) -> list[float]:
        servos = [chain.joints[i].servo for i in chain.independent]
        return [UNKNOWN[name] if servo is None else float(getattr(servo, name)) for servo in servos]

    return gains


LAW = ControlLaw(
    "servo_feedforward",
    "position commands for servos: the reference plus what gives the torques it needs",
    "",
    measured=(),
    reference=(Q_REF, QD_REF, QDD_REF),
    gains=(
        Entry("kp", ("nv",), "gain of the servos, N m/rad or N/m; of the arm's servos, otherwise 100", own("kp")),
        Entry("kd", ("nv",), "damping of the servos, N m s/rad or N s/m; of the arm's servos, otherwise 0", own("kd")),
    ),
    outputs=(Entry("command", ("nv",), "commanded positions"),),
    step=step,
)

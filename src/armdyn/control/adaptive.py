"""Adaptive control of Slotine and Li: tracking with online estimation of the inertial parameters and friction.

Source: Slotine & Li 1987.

Idea: with v = q̇_ref + λ e and s = v - q̇, the law τ = Y π̂ + K s with Y π = H v̇ + C v + g and dπ̂/dt = Γ Yᵀs makes the
tracking error converge to zero for any true parameters, because dH/dt - 2C is skew-symmetric. Y is never formed: Y π̂ is
the reference dynamics with run-time parameters, and Yᵀs is the gradient of s·(Y π) with respect to π, computed by one
reverse-mode pass through the same program. Viscous and Coulomb friction coefficients are adapted as well, at the
velocity v. `leak` pulls the estimates back to the nominal parameters, so that noise does not make them drift.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from armdyn.chain import Chain
from armdyn.control.dynamics import Dynamics
from armdyn.control.feedback import less, plus, scaled, smooth_sign
from armdyn.control.law import COMMAND, Q_REF, QD, QD_REF, QDD_REF, ControlLaw, Entry, Q

GENTLE = 0.1  # of the largest parameter: smaller parameters get the gain of a parameter of this size
POWER = 1.0  # 1/(W s): relative rate of change of a parameter per watt of torque error times s


def step(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """The torques and the updated estimates."""
    v = plus(x.qd_ref, scaled(x.rate, less(x.q_ref, x.q)))
    motion = (x.q, x.qd, v, plus(x.qdd_ref, scaled(x.rate, less(x.qd_ref, x.qd))))
    s = less(v, x.qd)
    signs = [smooth_sign(v_i, x.sign_width) for v_i in v]
    rigid = model("reference_dynamics", *motion, parameters=x.parameters)
    friction = plus(scaled(x.viscous, v), scaled(x.coulomb, signs))
    gradient = model.by_parameters("reference_dynamics", *motion, along=s)

    def learned(estimates: Any, gains: Any, slopes: Any, own: Any) -> list[Any]:
        rows = zip(estimates, gains, slopes, own, strict=True)
        return [p + x.dt * (gain * slope - x.leak * (p - p0)) for p, gain, slope, p0 in rows]

    joints = model.chain.joints if not model.chain.has_mimics else ()
    viscous, coulomb = friction_of(joints, len(s), model.friction)
    return {
        "tau": plus(plus(rigid, friction), scaled(x.damping, s)),
        "parameters": learned(x.parameters, x.adaptation, gradient, model.parameters),
        "viscous": learned(x.viscous, x.friction_adaptation, scaled(v, s), viscous),
        "coulomb": learned(x.coulomb, x.friction_adaptation, scaled(signs, s), coulomb),
    }


def start(model: Dynamics, x: SimpleNamespace) -> dict[str, Any]:
    """Initial estimates: the arm's own parameters, and its friction coefficients if friction is known."""
    joints = model.chain.joints if not model.chain.has_mimics else ()
    viscous, coulomb = friction_of(joints, model.chain.nv, model.friction)
    return {"parameters": list(model.parameters), "viscous": viscous, "coulomb": coulomb}


def friction_of(joints: Any, n: int, known: bool) -> tuple[list[Any], list[Any]]:
    """Initial viscous and Coulomb coefficients; zero where they are not known."""
    if not known or not joints:
        return [0] * n, [0] * n
    return [joint.viscous for joint in joints], [joint.coulomb for joint in joints]


def adaptation(chain: Chain) -> list[float]:
    """Gains proportional to the square of each parameter, so that all parameters adapt at similar relative rates."""
    values = [abs(float(p)) for p in Dynamics(chain).parameters]
    least = GENTLE * max(values, default=0.0)
    return [POWER * max(value, least) ** 2 for value in values]


LAW = ControlLaw(
    "adaptive",
    "adaptive tracking control that estimates inertial parameters and friction online",
    "slotine_li_1987",
    measured=(Q, QD),
    reference=(Q_REF, QD_REF, QDD_REF),
    gains=(
        Entry("rate", ("nv",), "decay rate of the tracking error on the sliding surface, 1/s", 8.0),
        Entry("damping", ("nv",), "feedback gain on the sliding variable, N m s/rad or N s/m", 8.0),
        Entry("adaptation", ("p",), "adaptation gains of the minimal parameters, squared units per joule", adaptation),
        Entry("friction_adaptation", ("nv",), "adaptation gain of the friction coefficients; 0: not adapted", 0.0),
        Entry("sign_width", (), "velocity within which the Coulomb friction is smoothed, rad/s or m/s", 0.02),
        Entry("leak", (), "leakage rate towards the nominal parameters of the arm, 1/s", 0.0),
    ),
    outputs=(COMMAND,),
    memory=(
        Entry("parameters", ("p",), "estimated minimal parameters"),
        Entry("viscous", ("nv",), "estimated viscous friction coefficients"),
        Entry("coulomb", ("nv",), "estimated Coulomb friction"),
    ),
    step=step,
    start=start,
)

"""Simulation of arms under torques, controllers and gravity, and reference motions.

**A step.** The state is y = (q, q̇), the right-hand side one straight-line program (`programs`): the law of the
torques, and H q̈ = τ - b. A step with constant *modes* (which joints stick, in which direction the others slide,
which motors are saturated) has a smooth right-hand side, so a method keeps its order. Its arithmetic is
`armdyn.programs.stepping`, over any scalar; what is decided around it is in `step`, and `loop` frames it into a loop
over steps, one lane per state.

**Modes.** The dry friction of a joint at rest is any force up to its breakaway value. A joint sticks (q̈ = 0) if the
force needed to hold it is within that range; otherwise friction has its breakaway value and opposes the acceleration.
With r = H q̈ the forces left at the joints at rest, this is a boxed linear complementarity problem in H⁻¹. H is
positive definite, so it has one solution. Principal pivoting finds it: all violated joints at once for a few pivots,
then only the least index, which ends for every positive definite matrix (a P-matrix; Murty 1974, Judice and Pires
1994): it never returns to modes that it has left. A locked joint is one with an infinite inertia: in the elimination
H = U D Uᵀ its pivot's reciprocal is 0, so one program serves all modes, and a pivot costs one evaluation of it with
other locks.

**Events.** A sliding joint that comes to rest, or one that meets its stop, ends the modes within a step. The margin
of a lane is the smallest distance of its joints from such an event, positive before it. Where it is negative after a
trial step, its first zero is located by regula falsi on the length of the step, in the Illinois variant, which halves
the margin at an end that stays twice and so keeps superlinear convergence. The step is cut there, the velocity of the
joint that came to rest is set to exactly 0, and the rest of the step is taken with new modes.

**Implicit stages.** Stiff terms are linear: stiffness K and damping D of the controller, viscous friction B of the
joint. At the implicit stage value q̃ + γh v, v = ṽ + γh a they equal those at the explicit one, plus

    K (q - q̃ - γh ṽ) + (D + B) (q̇ - ṽ)   less   (γh (D + B) + γ²h² K) a,

so the last term is an inertia added to the diagonal of H, and the stage is one evaluation of the same program. A motor
at its effort limit has neither K nor D. The saturated motors are found by pivoting, like sticking joints: the torque at
the *end* of the stage decides, which avoids chattering between stiff gains and limits from step to step.

**Impacts.** A joint at rest at its stop is held like one that sticks, except that the stop can push without bound and
never pull. A joint that hits its stop has its velocity reversed and multiplied by the coefficient of restitution, and
the impulse p changes the velocities of the whole arm: Δq̇ = H⁻¹ eᵢ p. Column i of H⁻¹ is the difference of two
evaluations of the program, with and without a force on joint i. Simultaneous impacts are processed one after the
other.

**A floating base** has seven coordinates and six velocities. Its quaternion is integrated as four numbers and
normalised after every step. The exact motion preserves the length, so a method keeps its order under this projection
onto the unit quaternions (Hairer, Lubich and Wanner 2006, section IV.4; docs/adr/0025-floating-simulation.md).

The files, in the order of a run: `simulate`, `simulator` (what users call), `drives`, `digital` (torques), `request`
(what was asked), `programs`, `step`, `loop` (the compiled loop), `stepper`, `one_state`, `adaptive` (who steps),
`judge`, `sampled_loop` (was it stable), `trajectory` (the result).
"""

from armdyn.errors import former_names
from armdyn.simulation.digital import Actuators, Digital
from armdyn.simulation.drives import (
    PD,
    ComputedTorque,
    Drive,
    Feedforward,
    PDGravity,
    Reference,
    Sampled,
    TorqueLaw,
    fourier,
    quintic,
    straight_line,
    trapezoidal,
)
from armdyn.simulation.programs import Plants
from armdyn.simulation.sampled_loop import holding
from armdyn.simulation.simulate import simulate
from armdyn.simulation.simulator import Simulator
from armdyn.simulation.trajectory import Trajectory

__all__ = [
    "PD",
    "Actuators",
    "ComputedTorque",
    "Digital",
    "Drive",
    "Feedforward",
    "PDGravity",
    "Plants",
    "Reference",
    "Sampled",
    "Simulator",
    "TorqueLaw",
    "Trajectory",
    "fourier",
    "holding",
    "quintic",
    "simulate",
    "straight_line",
    "trapezoidal",
]

__getattr__ = former_names(__name__, {"Controller": "TorqueLaw"})

"""The variables of an arm's FMU: names, units, start values, in the order of their value references.

The order is that of the enumeration in ``fmi/armdyn_fmu.h``; a test holds both together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from armdyn.arm import Arm
from armdyn.chain import Joint
from armdyn.chain.joint import NO_FORCES
from armdyn.simulation.programs import Friction, frictions
from armdyn.values import cached_property

LONGEST_STEP = 1e-3  # s, of the integrator inside co-simulation
STEPS_PER_RATE = 2  # steps of that length per 1/λ, λ the fastest decay: RK4 is stable beyond 0.36
CONFIGURATIONS = 64  # where the fastest decay is looked for

# Base units of SI, as FMI writes them: unit -> exponents.
UNITS: dict[str, dict[str, int]] = {
    "s": {"s": 1},
    "kg": {"kg": 1},
    "m": {"m": 1},
    "rad": {"rad": 1},
    "m/s": {"m": 1, "s": -1},
    "rad/s": {"rad": 1, "s": -1},
    "m/s2": {"m": 1, "s": -2},
    "rad/s2": {"rad": 1, "s": -2},
    "N": {"kg": 1, "m": 1, "s": -2},
    "N.m": {"kg": 1, "m": 2, "s": -2},
    "N.s/m": {"kg": 1, "s": -1},
    "N.m.s/rad": {"kg": 1, "m": 2, "s": -1, "rad": -1},
    "kg.m2": {"kg": 1, "m": 2},
}


Row = tuple[str, str, str, str, float | None, int | None]  # the fields of a variable after its reference


@dataclass(frozen=True)
class FmuVariable:
    """A variable of the model description; `derivative_of` is the value reference of the state it is the rate of."""

    reference: int
    name: str
    causality: str
    description: str
    unit: str = ""
    start: float | None = None
    derivative_of: int | None = None
    discrete: bool = False  # an integer that changes at events only


@dataclass(frozen=True)
class FmuModel:
    """The model in the FMU of an arm."""

    arm: Arm
    payload: bool
    friction: bool
    frame: str | None = None  # the frame to which the payload is attached; None: the tool

    @property
    def n(self) -> int:
        """Degrees of freedom."""
        return self.arm.n

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One name per degree of freedom."""
        return _unique(joint.name or f"joint{k + 1}" for k, joint in enumerate(self.arm.joints))

    @cached_property
    def along(self) -> tuple[Friction, ...]:
        """What acts along every degree of freedom beside the motors: friction and the other forces at the joints."""
        return frictions(self.arm.chain) if self.friction else (Friction(()),) * self.n

    @property
    def pushed(self) -> bool:
        """Whether there are forces at the joints beside friction over the speed and with the load."""
        return (self.friction and self.arm.chain.coupled) or any(
            joint.forces != NO_FORCES for one in self.along for joint, _, _ in one.joints
        )

    @cached_property
    def rubbing(self) -> tuple[tuple[Joint, int, float], ...]:
        """Joints that may have friction, mimic joints too: with their coordinate and |joint rate / coordinate rate|."""
        return tuple((joint, k, abs(float(a))) for k, one in enumerate(self.along) for joint, a, _ in one.joints)

    @cached_property
    def fastest(self) -> float:
        """How fast velocities change by viscous friction and springs, 1/s.

        λ is the largest eigenvalue of H⁻¹ diag(b), over random configurations within the joints' limits; a spring of
        stiffness k swings with the square root of that of H⁻¹ diag(k).
        """
        rng = np.random.default_rng(0)
        inverse = np.asarray(self.arm.inertia_inverse(self.arm.postures(rng, CONFIGURATIONS)))

        def largest(damping: list[float]) -> float:
            found = np.linalg.eigvals(inverse * np.array(damping)) if any(damping) else np.zeros(1)
            return float(np.abs(found).max())

        viscous = largest([float(f.viscous + abs(f.own.asymmetry)) for f in self.along])
        return max(viscous, math.sqrt(largest([abs(float(f.own.stiffness)) for f in self.along])))

    @cached_property
    def step(self) -> float:
        """The longest step of the integrator inside, s."""
        rate = self.fastest
        return LONGEST_STEP if rate * LONGEST_STEP * STEPS_PER_RATE <= 1 else _down(1 / (STEPS_PER_RATE * rate))

    @property
    def stops(self) -> bool:
        """Whether a joint has limits, which may be stops."""
        return bool(np.isfinite(self.arm.limits).any())

    @cached_property
    def variables(self) -> tuple[FmuVariable, ...]:
        """Every variable, in the order of the value references."""
        n, joints, rest = self.n, list(zip(self.names, self.arm.joints, strict=True)), self.arm.rest
        of = [_units(joint) for joint in self.arm.joints]
        rows: list[Row] = [("time", "independent", "time", "s", None, None)]
        rows += [(f"{a}.tau", "input", "motor torque or force", of[k]["force"], 0, None)
                 for k, (a, _) in enumerate(joints)]  # fmt: skip
        rows += [(f"{a}.q", "output", "position", of[k]["q"], float(rest[k]), None) for k, (a, _) in enumerate(joints)]
        rows += [(f"{a}.qd", "output", "velocity", of[k]["qd"], 0, None) for k, (a, _) in enumerate(joints)]
        rows += [(f"der({a}.q)", "local", "time derivative of the position", of[k]["qd"], None, 1 + n + k)
                 for k, (a, _) in enumerate(joints)]  # fmt: skip
        rows += [(f"{a}.qdd", "output", "acceleration", of[k]["qdd"], None, 1 + 2 * n + k)
                 for k, (a, _) in enumerate(joints)]  # fmt: skip
        rows += [(f"{a}.event", "local", "event indicator for coming to rest, breakaway and stops", "", None, None)
                 for a, _ in joints]  # fmt: skip
        rows += [(name, "parameter", text, unit, 0, None) for name, text, unit in (PAYLOAD if self.payload else ())]
        rows += self._friction_rows()
        rows += [("solver.step", "parameter", "maximum step of the internal integrator", "s", self.step, None)]
        rows += [(name, "parameter", text, "", start, None) for name, text, start in (STOPS if self.stops else ())]
        continuous = [FmuVariable(k, *row) for k, row in enumerate(rows)]
        modes = [
            FmuVariable(len(rows) + k, f"{a}.mode", "output", MODE, discrete=True) for k, (a, _) in enumerate(joints)
        ]
        return (*continuous, *modes)

    def _friction_rows(self) -> list[Row]:
        names = _unique(joint.name or f"joint{k + 1}" for k, (joint, _, _) in enumerate(self.rubbing))
        return [
            (f"{name}.{word}", "parameter", text, _units(joint)[word], float(getattr(joint, word)), None)
            for word, text in FRICTION.items()
            for name, (joint, _, _) in zip(names, self.rubbing, strict=True)
        ]


def _units(joint: Joint) -> dict[str, str]:
    """The units of a joint's variables."""
    if joint.revolute:
        rates, force, viscous = ("rad", "rad/s", "rad/s2"), "N.m", "N.m.s/rad"
    else:
        rates, force, viscous = ("m", "m/s", "m/s2"), "N", "N.s/m"
    forces = dict.fromkeys(("force", "coulomb", "static"), force)
    return {**dict(zip(("q", "qd", "qdd"), rates, strict=True)), **forces, "viscous": viscous, "stribeck": rates[1]}


PAYLOAD = (
    ("payload.mass", "mass of the payload", "kg"),
    *((f"payload.com.{axis}", "centre of mass of the payload in the tool frame", "m") for axis in "xyz"),
    *((f"payload.inertia.{axes}", "inertia of the payload about its centre of mass", "kg.m2")
      for axes in ("xx", "yy", "zz", "xy", "xz", "yz")),
)  # fmt: skip
FRICTION = {
    "viscous": "viscous friction coefficient",
    "coulomb": "Coulomb (sliding) friction",
    "static": "static (breakaway) friction, if larger than the Coulomb friction",
    "stribeck": "Stribeck velocity; 0: friction drops to Coulomb friction as soon as the joint moves",
}
STOPS = (
    ("stops.active", "1: joints stop at their limits; 0: the limits are ignored", 1),
    ("stops.restitution", "coefficient of restitution at the stops, from 0 to 1", 0),
)
MODE = "0: held by dry friction or a stop; 1, -1: slides in this direction; 2: moves without dry friction"


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    """Names of variables that differ, made from names of joints: letters, digits and underscores."""
    found: list[str] = []
    for name in (variable_name(name) for name in names):
        made, k = name, 2
        while made in found:
            made, k = f"{name}_{k}", k + 1
        found.append(made)
    return tuple(found)


def variable_name(name: str) -> str:
    """A name for the variables of a joint: letters, digits and underscores; no other words are taken."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII) or "arm"
    return f"arm_{word}" if word[0].isdigit() else word


def _down(x: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(x)) - 1)
    return float(f"{math.floor(x / unit) * unit:.2g}")

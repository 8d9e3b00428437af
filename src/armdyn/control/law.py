"""The definition of a control law: a pure step function of scalars, with the names and shapes of inputs and outputs.

``step(model, x)`` gets the arm's dynamics (`Dynamics`) and its inputs by name: memory, measurements, references, gains
and dt. It returns its outputs and the memory for the next step, also by name. The scalar type decides the result:
numbers, or the graph from which NumPy, LLVM, C and C++ code is generated (docs/adr/0020-controllers.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from armdyn.chain import Chain
from armdyn.control.dynamics import Dynamics
from armdyn.formulations.registry import Shapes, Size, shapes
from armdyn.uses import refusal

Step = Callable[[Dynamics, SimpleNamespace], Mapping[str, Any]]
NEXT = "_next"  # suffix of the updated memory among the outputs of a step

FLOATS = (
    " to control its joints while the base is held. The base is not actuated, so the effect of the joint torques on it "
    "depends on contact forces, which the law does not model; otherwise write your own controller from these and the "
    "floating robot's inverse_dynamics, gravity_load or momentum"
)


@dataclass(frozen=True)
class Entry:
    """One array of a control law: its name, its shape in the registry's sizes, its description.

    Gains have a default: one number for all entries, or a function of the chain. `of_payload` marks mass, centre of
    mass and inertia of a body at the tool, which are one struct in generated code.
    """

    name: str
    shape: tuple[Size, ...]
    words: str
    default: float | Callable[[Chain], Any] | None = None
    of_payload: bool = False


Q = Entry("q", ("nq",), "measured positions")
QD = Entry("qd", ("nv",), "measured velocities")
TAU = Entry("tau", ("nv",), "motor torques, averaged over the last control period")
Q_REF = Entry("q_ref", ("nq",), "reference positions")
QD_REF = Entry("qd_ref", ("nv",), "reference velocities")
QDD_REF = Entry("qdd_ref", ("nv",), "reference accelerations")
DT = Entry("dt", (), "control period, s")
COMMAND = Entry("tau", ("nv",), "commanded joint torques")
PAYLOAD = (  # as in `Arm.with_payload` and `payload_parameters`; an estimate often has no inertia
    Entry("payload_mass", (), "mass of the payload, kg", 0.0, True),
    Entry("payload_com", (3,), "its centre of mass in the tool frame, m", 0.0, True),
    Entry(
        "payload_inertia", (6,), "its inertia about com, in the tool's axes: xx, yy, zz, xy, xz, yz, kg m²", 0.0, True
    ),
)


@dataclass(frozen=True)
class ControlLaw:
    """A controller or an observer: its memory, inputs, gains, outputs and step; `start` gives the initial memory."""

    name: str
    summary: str
    source: str  # a key of the bibliography, "" if there is none
    measured: tuple[Entry, ...]
    gains: tuple[Entry, ...]
    outputs: tuple[Entry, ...]
    step: Step
    reference: tuple[Entry, ...] = ()
    memory: tuple[Entry, ...] = ()
    start: Step = lambda model, x: {}
    at_tool: bool = False  # needs a tool: does not apply to a robot without one
    absent: tuple[Entry, ...] = ()  # gains that this robot cannot have; they are zero

    @property
    def observes(self) -> bool:
        """Whether it is an observer: it outputs no torques to apply."""
        return all(entry.name != COMMAND.name for entry in self.outputs)

    @property
    def reads(self) -> tuple[Entry, ...]:
        """All inputs of a step except the memory, in order."""
        return (*self.measured, *self.reference, *self.gains, DT)

    @property
    def starts_from(self) -> tuple[Entry, ...]:
        """The inputs of `start`: measurements and gains."""
        return (*self.measured, *self.gains)

    def on(self, chain: Chain) -> ControlLaw:
        """The law on this robot: without a tool there is no payload, and a law that does without has no gain for it."""
        if chain.tool_carrier or self.at_tool:
            return self
        bodies = tuple(entry for entry in self.gains if entry.of_payload)
        return replace(self, gains=tuple(e for e in self.gains if not e.of_payload), absent=(*self.absent, *bodies))

    def refusal(self, chain: Chain) -> str:
        """Why the law does not apply to this robot; "" if it does."""
        if chain.floating:
            return refusal("fixed base", chain) + FLOATS
        if self.at_tool and not chain.tool_carrier:
            return f"needs a tool, but this robot has {len(chain.tips)} tips; name a frame with frame="
        return ""


def sized(entries: tuple[Entry, ...], chain: Chain, suffix: str = "") -> Shapes:
    """The names of the entries, with a suffix, and their shapes for a chain."""
    return shapes(tuple((entry.name + suffix, entry.shape) for entry in entries), chain)

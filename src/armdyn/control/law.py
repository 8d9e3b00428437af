"""What a control law is: a pure step over scalars, with the names and shapes of everything that goes in and comes out.

``step(model, x)`` gets the arm's quantities (`Dynamics`) and everything it may read: memory, measurements, references,
gains and dt, each by its name. It gives its outputs and the memory for the next step, by name too. The type of the
scalars decides what running it gives: numbers, or the graph that NumPy, LLVM, C and C++ are made from
(docs/adr/0020-controllers.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from armdyn.chain import Chain
from armdyn.control.dynamics import Dynamics
from armdyn.formulations.registry import Shapes, Size, shapes

Step = Callable[[Dynamics, SimpleNamespace], Mapping[str, Any]]
NEXT = "_next"  # what the memory is called that a step gives

FLOATS = (
    "is for a base that stands still, this robot's floats: no motor moves the base, so what the joints' torques do to "
    "it depends on contacts, which the law does not know. Load the robot with floating=False to control its joints "
    "while something holds the base; otherwise put contact forces and the floating robot's inverse_dynamics, "
    "gravity_load or momentum together in a controller of your own"
)


@dataclass(frozen=True)
class Entry:
    """One array of a control law: its name, its shape in the sizes of the registry, what it says.

    Gains have a default: a number for all entries, or a function of the chain. `of_body`: natural parameters of a body
    whose mass must be possible; its inertia may be left out, for an estimate often knows no more.
    """

    name: str
    shape: tuple[Size, ...]
    words: str
    default: float | Callable[[Chain], Any] | None = None
    of_body: bool = False


Q = Entry("q", ("nq",), "measured positions")
QD = Entry("qd", ("nv",), "measured velocities")
TAU = Entry("tau", ("nv",), "motor torques, mean of the last period")
Q_REF = Entry("q_ref", ("nq",), "reference positions")
QD_REF = Entry("qd_ref", ("nv",), "reference velocities")
QDD_REF = Entry("qdd_ref", ("nv",), "reference accelerations")
DT = Entry("dt", (), "control period, s")
COMMAND = Entry("tau", ("nv",), "torques to apply")


@dataclass(frozen=True)
class ControlLaw:
    """A controller or an observer: what it remembers, reads and gives, and its step; `start` gives the first memory."""

    name: str
    summary: str
    source: str  # a key of the bibliography, "" for ours
    measured: tuple[Entry, ...]
    gains: tuple[Entry, ...]
    outputs: tuple[Entry, ...]
    step: Step
    reference: tuple[Entry, ...] = ()
    memory: tuple[Entry, ...] = ()
    start: Step = lambda model, x: {}
    at_tool: bool = False  # needs one tool: refused for a robot with several tips

    @property
    def observes(self) -> bool:
        """Whether it only watches: it has no torques to apply."""
        return all(entry.name != COMMAND.name for entry in self.outputs)

    @property
    def reads(self) -> tuple[Entry, ...]:
        """Everything that a step reads beside its memory, in order."""
        return (*self.measured, *self.reference, *self.gains, DT)

    @property
    def starts_from(self) -> tuple[Entry, ...]:
        """Everything that the first memory is made from."""
        return (*self.measured, *self.gains)

    def refusal(self, chain: Chain) -> str:
        """Why it is not for this robot, "" if it is."""
        if chain.floating:
            return FLOATS
        if self.at_tool and len(chain.tips) != 1:
            return f"needs one tool, this robot has {len(chain.tips)} tips"
        return ""


def sized(entries: tuple[Entry, ...], chain: Chain, suffix: str = "") -> Shapes:
    """Names and shapes for a chain."""
    return shapes(tuple((entry.name + suffix, entry.shape) for entry in entries), chain)

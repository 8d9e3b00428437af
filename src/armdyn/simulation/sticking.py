"""Which joints stick and which slide: dry friction at rest, solved for all joints of a state together.

At rest the friction of a joint can be any force up to its breakaway value. A joint sticks (q̈ = 0) if the force needed
to hold it is within that range; otherwise friction has its breakaway value and opposes the acceleration. This is a
boxed linear complementarity problem in H⁻¹, with a unique solution because H is positive definite. It is solved by
principal pivoting, by the same rules as in the compiled `lockable_loop`. This array version serves adaptive methods,
torque functions in Python, and the values that a trajectory reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from armdyn.chain import Chain
from armdyn.programs.assemble import Options
from armdyn.simulation.implicit_stage import Stops
from armdyn.simulation.lockable_loop import BLOCK_PIVOTS, PIVOTS
from armdyn.simulation.programs import frictions
from armdyn.simulation.request import Span
from armdyn.simulation.state import Layout

Stored = tuple[np.ndarray, np.ndarray]  # stored states, and whether they are good
Evaluate = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Modes:
    """Per state and joint: `free` is 1 if it moves, and `side` the sign of its sliding direction, 0 if it sticks."""

    free: np.ndarray
    side: np.ndarray


class Stiff(Protocol):
    """What bounds the fastest motion of an arm under its drive."""

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """H of postures (..., nq)."""
        ...

    def gains(self) -> tuple[np.ndarray, ...]:
        """Stiffness, damping, viscous friction and effort limit, per joint."""
        ...


class Lanes(Stiff, Protocol):
    """Some states of a run, which can be asked and stepped alone: by adaptive methods, and where a run ended."""

    @property
    def layout(self) -> Layout:
        """Where positions and velocities lie in a state."""
        ...

    @property
    def options(self) -> Options:
        """The forces that act besides the torques."""
        ...

    @property
    def sticks(self) -> bool:
        """Whether a joint has dry friction or a stop."""
        ...

    @property
    def single_step(self) -> str:
        """The method, or one of its order that needs no past."""
        ...

    def some(self, lanes: np.ndarray) -> Lanes:
        """Some of these states."""
        ...

    def rates(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) of states (count, times, size) at times (times,)."""
        ...

    def settled(self, t: float, y: np.ndarray, modes: Modes | None = None) -> Modes:
        """The modes of one state (size,)."""
        ...

    def forces(self, t: float, y: np.ndarray, modes: Modes) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, force left) of one state (size,) in given modes."""
        ...

    def around(
        self, t: float, y: np.ndarray, states: np.ndarray, released: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Accelerations of `states` (k, size) in the modes of y, or with no joint held; what moves; torques of y."""
        ...

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[Stored]:
        """Stored states (count, rows, size) and whether all was well until then (count, rows), chunk by chunk."""
        ...


class Steps(Stiff, Protocol):
    """An arm under its drive, stepped from the beginning of a run to its end: a run asks for nothing else."""

    @property
    def silent(self) -> bool:
        """Whether it must not be asked about states that did not occur."""
        ...

    @property
    def taken(self) -> str:
        """The method whose steps are taken."""
        ...

    def some(self, lanes: np.ndarray) -> Lanes:
        """Some states of the batch."""
        ...

    def reported(self, t: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(acceleration, torque) at the stored rows (count, times, size)."""
        ...

    def run(self, state: np.ndarray, span: Span, method: str | None = None) -> Iterator[Stored]:
        """Stored states and whether all was well, chunk by chunk."""
        ...


def breakaway(chain: Chain, options: Options) -> np.ndarray:
    """The breakaway friction per joint; 0 without dry friction, or with friction off."""
    values = [float(friction.breakaway) if options.friction else 0.0 for friction in frictions(chain)]
    return np.array(values)


@dataclass(frozen=True)
class Holding:
    """Per state and joint at rest: whether it can be held, and the range of holding forces."""

    able: np.ndarray
    low: np.ndarray
    high: np.ndarray


def holding(q: np.ndarray, most: np.ndarray, stops: Stops | None = None) -> Holding:
    """The holding forces of dry friction and stops at positions q (rows, n)."""
    low, high = np.broadcast_to(-most, q.shape), np.broadcast_to(most, q.shape)
    able = high > 0
    if stops is not None:
        at_lower = q <= np.array([-np.inf if x is None else x for x in stops.lower])
        at_upper = q >= np.array([np.inf if x is None else x for x in stops.upper])
        able = able | at_lower | at_upper
        low, high = np.where(at_lower, -np.inf, low), np.where(at_upper, np.inf, high)
    return Holding(able, low, high)


def settle(
    evaluate: Evaluate, qd: np.ndarray, holds: Holding, modes: Modes | None = None
) -> tuple[tuple[np.ndarray, ...], Modes]:
    """The results of `evaluate(rows, free, side)` for states `qd` (rows, n) in consistent modes, and these modes.

    Its first two results must be the accelerations and the holding forces (`programs.lockable_loop`). The search starts
    from `modes`, by default with every joint locked that is at rest and can be held.
    """
    may = (qd == 0) & holds.able
    free = np.where(may, 0.0, 1.0) if modes is None else modes.free.copy()
    side = np.sign(qd) if modes is None else modes.side.copy()
    results = tuple(np.array(x) for x in evaluate(np.arange(len(qd)), free, side))
    for pivot in range(PIVOTS):
        left = results[1]
        breaks = may & (free == 0) & ((left > holds.high) | (left < holds.low))
        returns = may & (free == 1) & (left * side < 0)
        wrong = breaks | returns
        rows = np.flatnonzero(wrong.any(axis=1))
        if not len(rows):
            break
        if pivot + 1 >= BLOCK_PIVOTS:  # only the least index
            wrong &= np.cumsum(wrong, axis=1) == 1
        side = np.where(wrong & breaks, np.where(left > 0, 1.0, -1.0), np.where(wrong & returns, 0.0, side))
        free = np.where(wrong & breaks, 1.0, np.where(wrong & returns, 0.0, free))
        for whole, part in zip(results, evaluate(rows, free[rows], side[rows]), strict=True):
            whole[rows] = part
    return results, Modes(free, side)

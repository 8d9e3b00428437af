"""Joint limits as stops, in the compiled loop.

A joint at rest at its stop is held like one that sticks, except that the stop can push without bound and never pull.
When a joint hits its stop, its velocity is reversed and multiplied by the coefficient of restitution, and the impulse p
changes the velocities of the whole arm: Δq̇ = H⁻¹ eᵢ p. Column i of H⁻¹ is the difference of two evaluations of the
program, with and without a force on joint i. Simultaneous impacts are processed one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from armdyn.simulation.implicit_stage import Stops
from armdyn.simulation.lanes import Number, Slots, Truth, branch

if TYPE_CHECKING:
    from armdyn.simulation.lockable_loop import LockableLoop

FORCE = 1024.0  # N m or N: much larger than the other forces, to avoid cancellation in the difference
PASSES = 2  # over the joints, for impacts that cause others
FAR = 1e300


class Stopping:
    """Writes the part of a loop that handles stops."""

    def __init__(self, loop: LockableLoop, stops: Stops) -> None:
        self.loop, self.w, self.stops = loop, loop.w, stops
        self.joints = [i for i in range(loop.n) if stops.has(i)]
        self._has_idle = False

    def _ends(self, i: int) -> tuple[float, float]:
        lower, upper = self.stops.lower[i], self.stops.upper[i]
        return -FAR if lower is None else lower, FAR if upper is None else upper

    def at(self, i: int) -> tuple[Truth, Truth]:
        """Whether the joint is at its lower stop, and at its upper one."""
        lower, upper = self._ends(i)
        q = self.loop.y[self.loop.position(i)]
        return q <= lower, q >= upper

    def least(self, i: int, y: Slots, least: Number) -> Number:
        """The smaller of `least` and the distance to the stops, except a stop at which the step started."""
        lower, upper = self._ends(i)
        at_lower, at_upper = self.at(i)
        q = y[self.loop.position(i)]
        least = at_lower.choose(least, least.least(q - lower))
        return at_upper.choose(least, least.least(-(q - upper)))

    def returns(self, i: int, y: Slots) -> Truth:
        """Whether a joint that started at a stop would end beyond it."""
        lower, upper = self._ends(i)
        at_lower, at_upper = self.at(i)
        moves, q = self.loop.free[i] > 0.0, y[self.loop.position(i)]
        return moves & ((at_lower & (q < lower)) | (at_upper & (q > upper)))

    def meet(self, i: int, hit: Truth, margin: Number) -> None:
        """Place a joint of y1 that met its stop exactly on it."""
        lower, upper = self._ends(i)
        at_lower, at_upper = self.at(i)
        q = self.loop.y1[self.loop.position(i)]
        low = hit & ~at_lower & ((q - lower) <= margin)
        high = hit & ~at_upper & (-(q - upper) <= margin)
        self.loop.y1[self.loop.position(i)] = low.choose(lower, high.choose(upper, q))

    def _into(self, i: int) -> Truth:
        """Whether a joint at its stop moves into it."""
        at_lower, at_upper = self.at(i)
        v = self.loop.y[self.loop.velocity(i)]
        return (at_lower & (v < 0.0)) | (at_upper & (v > 0.0))

    def impacts(self, active: Truth) -> None:
        """Apply the impacts of joints that move into their stops."""
        w, loop = self.w, self.loop
        found = self._into(self.joints[0])
        for i in self.joints[1:]:
            found = found | self._into(i)
        branch(w, (found & active).any(), "impact", "clear")
        w.label("impact")
        idle = self._idle()
        for restitution in (self.stops.restitution,) * PASSES + (0.0,) * PASSES:
            for i in self.joints:
                self._strike(i, self._into(i) & active, restitution, idle)
        for i in self.joints:  # what remains after the passes is small
            loop.y[loop.velocity(i)] = (self._into(i) & active).choose(0.0, loop.y[loop.velocity(i)])
        loop.explicit_inputs()
        w.do("br label %clear")
        w.label("clear")

    def bring_to_rest(self, joints: list[tuple[int, Truth]]) -> None:
        """Stop joints whose rebound would end within the step: an impact without restitution."""
        idle = self._idle()
        for i, truth in joints:
            if i in self.joints:
                self._strike(i, truth, 0.0, idle)
        for i, truth in joints:  # including what later impacts of other joints gave them
            v = self.loop.velocity(i)
            self.loop.y[v] = truth.choose(0.0, self.loop.y[v])
        self.loop.explicit_inputs()

    def _idle(self) -> Slots:
        """The accelerations without any force of the law, all joints free; the program's inputs are left like that."""
        w, loop, n = self.w, self.loop, self.loop.n
        for j in range(loop.size):
            loop.at[j] = loop.y[j]
        for j in range(n):
            loop.free[j], loop.side[j] = 1.0, 0.0
            for k in (2, 3, 4):  # no torque of the law, no force, no added inertia
                Slots(w, "in", loop.size + loop.m + k * n)[j] = 0.0
        if not self._has_idle:
            w.stack_array("idle", n)
            self._has_idle = True
        idle = Slots(w, "idle")
        w.do("call void @body(ptr %in, ptr %out, ptr %context)")
        for j in range(n):
            idle[j] = loop.out(0, j)
        return idle

    def _strike(self, i: int, where: Truth, restitution: float, idle: Slots) -> None:
        """The impulse on joint i that reverses its velocity, times the restitution."""
        w, loop, n = self.w, self.loop, self.loop.n
        force = Slots(w, "in", loop.size + loop.m + 3 * n)
        force[i] = FORCE
        w.do("call void @body(ptr %in, ptr %out, ptr %context)")
        force[i] = 0.0
        v = loop.y[loop.velocity(i)]
        impulse = v * -(1.0 + restitution) / (loop.out(0, i) - idle[i])
        for j in range(n):
            before = loop.y[loop.velocity(j)]
            loop.y[loop.velocity(j)] = where.choose(before + (loop.out(0, j) - idle[j]) * impulse, before)
        loop.y[loop.velocity(i)] = where.choose(v * -restitution, loop.y[loop.velocity(i)])

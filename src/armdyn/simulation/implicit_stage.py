"""One stage of an implicit method: stiff terms, including motor saturation, evaluated at the end of the stage.

The stiff terms are linear: stiffness K and damping D of the controller, viscous friction B of the joint. At the
implicit stage value q̃ + γh v, v = ṽ + γh a they equal those at the explicit one, plus

    K (q - q̃ - γh ṽ) + (D + B) (q̇ - ṽ)   less   (γh (D + B) + γ²h² K) a,

so the last term is an inertia added to the diagonal of H, and the stage is one evaluation of the program. A motor at
its effort limit has neither K nor D. The saturated motors are found by pivoting, like sticking joints: the torque at
the *end* of the stage decides, which avoids chattering between stiff gains and limits from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from armdyn.simulation.lanes import Counter, Number, Slots, Truth, branch, constant

if TYPE_CHECKING:
    from armdyn.simulation.lockable_loop import LockableLoop

BLOCK = 4  # changes of all motors at once; the least index alone afterwards
MOST = 40  # evaluations to find the saturated motors


@dataclass(frozen=True)
class Stops:
    """The joints' ends of travel, or None, and the coefficient of restitution."""

    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]
    restitution: float = 0.0

    def has(self, i: int) -> bool:
        """Whether a joint has a stop."""
        return self.lower[i] is not None or self.upper[i] is not None


@dataclass(frozen=True)
class Locks:
    """The joint data that the loop needs: dry friction, stiff terms, motor limits; one number per joint."""

    breakaway: tuple[float, ...]  # 0: no dry friction
    stiffness: tuple[float, ...]  # of the controller, for implicit schemes
    damping: tuple[float, ...]
    viscous: tuple[float, ...]
    effort: tuple[float | None, ...]  # None: no limit
    stops: Stops | None = None
    # Where friction differs from lane to lane (breakaway then only says which joints have dry friction): where viscous
    # friction, and Coulomb friction after it, begin among the constants; what static friction has above Coulomb's.
    friction_at: int | None = None
    excess: tuple[float, ...] = ()

    def can_lock(self, i: int) -> bool:
        """Whether a joint can be held at rest, by dry friction or a stop."""
        return self.breakaway[i] > 0 or (self.stops is not None and self.stops.has(i))


class ImplicitStage:
    """Writes one evaluation of the program at an implicit stage."""

    def __init__(self, loop: LockableLoop, stage: int, length: Number) -> None:
        self.loop, self.w, n = loop, loop.w, loop.n
        first = loop.size + loop.m + 2 * n
        self.share, self.extra, self.added = (Slots(self.w, "in", first + k * n) for k in range(3))
        # Per joint: the motor's mode (0, or the side it is saturated on), and its linear terms.
        self.mode, self.linear, self.inertia = (Slots(self.w, "stiff", k * n) for k in range(3))
        row = loop.scheme.implicit[stage]
        self.gamma = row[-1] if row else Fraction(0)
        self.part = length * float(self.gamma)
        self.velocities: list[Number] = []
        self.friction: list[tuple[Number, Number]] = []
        if self.gamma:
            self._terms(list(enumerate(row[:-1])))

    def _terms(self, weights: list[tuple[int, Fraction]]) -> None:
        loop, part = self.loop, self.part
        for i in range(loop.n):
            p, v = loop.position(i), loop.velocity(i)
            position, velocity = (Number(self.w, loop.combined(j, weights)) for j in (p, v))
            behind, slower = loop.at[p] - position - part * velocity, loop.at[v] - velocity
            stiffness, damping, viscous = loop.locks.stiffness[i], loop.locks.damping[i], loop.viscous(i)
            self.linear[i] = behind * stiffness + slower * damping
            self.inertia[i] = part * damping + part * part * stiffness
            self.friction.append((slower * viscous, part * viscous))
            self.velocities.append(velocity)

    def velocity(self, i: int, acceleration: Number) -> Number:
        """The velocity at the stage, which moves the position."""
        if not self.gamma:
            return self.loop.at[self.loop.velocity(i)]
        return self.velocities[i] + self.part * acceleration

    def call(self) -> None:
        """Evaluate the program; again while a motor is on the wrong side of its limit."""
        loop, w = self.loop, self.w
        limited = [i for i, most in enumerate(loop.locks.effort) if most is not None]
        if not self.gamma:
            for i in range(loop.n):
                self.linear[i] = self.inertia[i] = 0.0
        if not limited:
            self._inputs([])
            w.do("call void @body(ptr %in, ptr %out, ptr %context)")
            return
        name = w.let("add i64 0, 0")[1:]
        count = Counter(w, f"motor_count{name}")
        count.reset()
        w.do(f"br label %motors{name}")
        w.label(f"motors{name}")
        self._inputs(limited)
        w.do("call void @body(ptr %in, ptr %out, ptr %context)")
        wrong = [(i, *self._wrong(i)) for i in limited]
        found = wrong[0][1]
        for _, truth, _ in wrong[1:]:
            found = found | truth
        branch(w, found.any(), f"switch{name}", f"agreed{name}")
        w.label(f"switch{name}")
        block = count.next_is_below(BLOCK)
        earlier = constant(w, 0.0)
        for i, truth, to in wrong:
            alone = earlier.equals(0.0).or_bit(block)
            earlier = truth.choose(1.0, earlier)
            self.mode[i] = (truth & alone).choose(to, self.mode[i])
        branch(w, count.is_below(MOST), f"motors{name}", f"agreed{name}")
        w.label(f"agreed{name}")

    def _inputs(self, limited: list[int]) -> None:
        """share, extra and added of every joint, by its motor's mode."""
        zero = constant(self.w, 0.0)
        for i in range(self.loop.n):
            slower, damped = self.friction[i] if self.friction else (zero, zero)
            extra, added = self.linear[i], self.inertia[i]
            if i in limited:
                mode = self.mode[i]
                inside = mode.equals(0.0)
                self.share[i] = inside.choose(1.0, 0.0)
                extra = inside.choose(extra, mode * self._effort(i))
                added = inside.choose(added, 0.0)
            else:
                self.share[i] = 1.0
            self.extra[i], self.added[i] = extra + slower, added + damped

    def _effort(self, i: int) -> float:
        most = self.loop.locks.effort[i]
        assert most is not None
        return most

    def _wrong(self, i: int) -> tuple[Truth, Number]:
        """Whether a motor's mode disagrees with its torque at the end of the stage, and the mode to try."""
        mode, most = self.mode[i], self._effort(i)
        torque = self.loop.out(2, i) + self.linear[i] - self.inertia[i] * self.loop.out(0, i)
        inside = mode.equals(0.0)
        beyond = inside & ((torque > most) | (torque < -most))
        back = ~inside & (torque * mode < most)
        return beyond | back, inside.choose((torque > 0.0).choose(1.0, -1.0), 0.0)

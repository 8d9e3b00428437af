"""One step of the compiled loop where joints may stick, hit their stops, or have stiff controllers.

A step is cut, per lane, when a sliding joint comes to rest or one meets its stop; the theory is at the head of this
folder:

1. Modes. All joints at rest are solved together, by principal pivoting.
2. Trial step over the rest of the step. If a velocity changes its sign, or a joint passes its stop, the first such
   time is located by regula falsi on the length of the step.
3. The velocity of the joint that came to rest is set to exactly 0; continue at 1 with the rest of the step.

Lanes that are done wait with their state unchanged.
"""

from __future__ import annotations

import json
from fractions import Fraction

from armdyn.codegen import jit
from armdyn.codegen.llvm.ir import Writer
from armdyn.codegen.llvm.module import module, straight_line
from armdyn.codegen.llvm.straight_line import StraightLine
from armdyn.codegen.target import Target
from armdyn.graph.program import Program
from armdyn.programs.stepping import Scheme
from armdyn.simulation.loop import Counter, Loop, NamedSlots, Number, Slots, Truth, branch, constant, lagrange
from armdyn.simulation.request import Layout, Locks, Stops

BLOCK_PIVOTS = 3  # all violated joints at once; least index alone afterwards
PIVOTS = 60  # most evaluations to find the modes
SUBSTEPS = 24  # most parts of one step; the last part is not cut any more


class LockableLoop(Loop):
    """Writes the function `integrate` for a `lockable_loop` program."""

    def __init__(
        self, body: StraightLine, scheme: Scheme, layout: Layout, inputs: int, fma: bool, locks: Locks
    ) -> None:
        super().__init__(body, scheme, layout, inputs, fma)
        w, n = self.w, self.n
        self.locks = locks
        self.lockable = [i for i in range(n) if locks.can_lock(i)]
        self.stops = Stopping(self, locks.stops) if locks.stops else None
        self.free, self.side = self.port("free"), self.port("side")
        self.y, self.y1 = Slots(w, "y"), Slots(w, "y1")
        self.pinned, self.lane = Slots(w, "pinned"), NamedSlots(w, "lane", LANE)
        self.at = Slots(w, "in")  # the state that the program is evaluated at

    def _take(self) -> None:
        """One step, in as many parts as there are events in it."""
        w, n = self.w, self.n
        for name, slots in (("y1", self.size), ("pinned", n), ("lane", len(LANE)), ("stiff", 3 * n)):
            w.stack_array(name, slots)
        self.pivots, self.parts = Counter(w, "pivots"), Counter(w, "parts")
        self.search = EventSearch(w, self.lane)
        self.whole_step = self.h
        self.lane["rest"] = Number(w, self.h)
        self.lane["used"] = 0.0
        for i in self.lockable:
            self.pinned[i] = 0.0
        if self.scheme.implicit:
            for i in range(n):
                Slots(w, "stiff")[i] = 0.0  # no motor is taken to be saturated when a step begins
        if self.stops:
            self.explicit_inputs()
        self.parts.reset()
        w.do("br label %part")
        w.label("part")
        if self.stops:
            self.stops.impacts(self.lane["rest"] > 0.0)
        self._modes_of_state()
        self.lane["length"] = self.lane["rest"]
        w.do("br label %settle")
        w.label("settle")
        self.pivots.reset()
        w.do("br label %pivot")
        self._pivot()
        w.label("slide")
        self._begin_search()
        w.do("br label %trial")
        self._trial()
        self._accept()

    def explicit_inputs(self) -> None:
        """The law's torques as they are, nothing added: what explicit stages take."""
        for name, value in (("share", 1.0), ("extra", 0.0), ("added", 0.0)):
            for i in range(self.n):
                self.port(name)[i] = value

    def _modes_of_state(self) -> None:
        """Joints that move slide to their side; joints with dry friction at rest are locked, to begin with."""
        for i in self.lockable:
            v = self.y[self.velocity(i)]
            self.side[i] = (v > 0.0).choose(1.0, (v < 0.0).choose(-1.0, 0.0))
            self.free[i] = self._held(i).choose(0.0, 1.0)

    def _held(self, i: int) -> Truth:
        """Whether a joint is at rest and has dry friction or stands at a stop."""
        rest = self.y[self.velocity(i)].equals(0.0)
        if self.locks.breakaway[i] > 0 or not self.stops:
            return rest
        at_lower, at_upper = self.stops.at(i)
        return rest & (at_lower | at_upper)

    def _breakaway(self, i: int) -> Number | float:
        """The largest dry friction at rest: the same in every lane, or from a lane's constants."""
        at = self.locks.friction_at
        if at is None or not self.locks.breakaway[i] > 0:
            return self.locks.breakaway[i]
        return self.port("constants")[at + self.n + i] + self.locks.excess[i]

    def viscous(self, i: int) -> Number | float:
        """Viscous friction, likewise."""
        at = self.locks.friction_at
        return self.locks.viscous[i] if at is None else self.port("constants")[at + i]

    def _pivot(self) -> None:
        """Evaluate the first stage; lock and release joints at rest until every one of them agrees with its force."""
        w = self.w
        w.label("pivot")
        self._evaluate(0)
        any_wrong: Truth | None = None
        flips = []
        for i in self.lockable:
            free, side, left = self.free[i], self.side[i], self.out("left", i)
            may = self._held(i) & ~self.pinned.truth(i)
            f = self._breakaway(i)
            up, down = left > f, left < -f
            if self.stops:
                at_lower, at_upper = self.stops.at(i)
                up, down = up & ~at_upper, down & ~at_lower
            breaks = may & free.equals(0.0) & (up | down)
            returns = may & free.equals(1.0) & (left * side < 0.0)
            flips.append((i, breaks, returns, left))
            wrong = breaks | returns
            any_wrong = wrong if any_wrong is None else any_wrong | wrong
        if any_wrong is None:
            w.do("br label %slide")
            return
        branch(w, any_wrong.any(), "change", "slide")
        w.label("change")
        block = self.pivots.next_is_below(BLOCK_PIVOTS)
        again = self.pivots.is_below(PIVOTS)
        earlier = constant(w, 0.0)
        for i, breaks, returns, left in flips:
            wrong = breaks | returns
            allowed = earlier.equals(0.0).or_bit(block)
            earlier = wrong.choose(1.0, earlier)
            release, lock = breaks & allowed, returns & allowed
            to_side = (left > 0.0).choose(1.0, -1.0)
            self.side[i] = release.choose(to_side, lock.choose(0.0, self.side[i]))
            self.free[i] = release.choose(1.0, lock.choose(0.0, self.free[i]))
        branch(w, again, "pivot", "slide")

    def _evaluate(self, stage: int) -> None:
        """k_stage with the modes in force, at the lane's own time."""
        w, size = self.w, self.size
        length = self.lane["length"]
        self.h = length.name
        weights = list(enumerate(self.scheme.a[stage]))
        for j in range(size):
            w.store(self.combined(j, weights), "%in", j)
        self._inputs_at(stage)
        implicit = ImplicitStage(self, stage, length) if self.scheme.implicit else None
        if implicit:
            implicit.call()
        else:
            w.do("call void @body(ptr %in, ptr %out, ptr %context)")
        accelerations = [self.out("qdd", i) for i in range(self.n)]
        velocities = [
            implicit.velocity(i, a) if implicit else self.at[self.velocity(i)] for i, a in enumerate(accelerations)
        ]
        self._keep_slope(stage, velocities, accelerations)

    def _inputs_at(self, stage: int) -> None:
        """U at the stage; where a lane is inside a step that was cut, interpolated between the step's stages."""
        w = self.w
        name = w.let("add i64 0, 0")[1:]  # a fresh suffix for this stage's blocks
        rest = self.lane["used"] + Number(w, w.let(f"fsub {w.vector} {self.whole_step}, {self.h}"))
        self._gather("%in", self._input_rows(stage), self.m, self.first["u"])
        branch(w, (rest > 0.0).any(), f"between{name}", f"given{name}")
        w.label(f"between{name}")
        nodes = self._nodes()
        moment = self.lane["used"] + Number(w, self.h) * float(self.scheme.nodes[stage])
        fraction = moment / Number(w, self.whole_step)
        whole = ~(rest > 0.0)
        basis = {k: lagrange(fraction, k, nodes) for k in nodes}
        rows, u = {k: self._input_rows(k) for k in nodes}, self.port("u")
        for j in range(self.m):
            values = {k: self._loaded(rows[k], j) for k in nodes}
            value = values[0]
            for k in nodes:
                if k:
                    value = value + basis[k] * (values[k] - values[0])
            given = u[j]
            u[j] = whole.choose(given, value)
        w.do(f"br label %given{name}")
        w.label(f"given{name}")

    def _nodes(self) -> dict[int, Fraction]:
        """One stage for each distinct time of the stages."""
        first_stage: dict[Fraction, int] = {}
        for k, c in enumerate(self.scheme.nodes):
            first_stage.setdefault(c, k)
        return {k: c for c, k in first_stage.items()}

    def _loaded(self, rows: list[str], j: int) -> Number:
        w, value = self.w, "poison"
        for lane, row in enumerate(rows):
            x = w.let(f"load double, ptr {w.at(row, 8 * j)}, align 8")
            value = w.let(f"insertelement {w.vector} {value}, double {x}, i32 {lane}")
        return Number(w, value)

    def _begin_search(self) -> None:
        """The bracket of an event: nothing has happened at 0."""
        w = self.w
        least = constant(w, HUGE)
        for i in self.lockable:
            v = self.y[self.velocity(i)]
            if self.locks.breakaway[i] > 0:
                least = v.equals(0.0).choose(least, least.least(v * self.side[i]))
            if self.stops:
                least = self.stops.least(i, self.y, least)
        self.search.begin(least)

    def _trial(self) -> None:
        """Step to y1; narrow the bracket where something happens on the way, until the first moment is met."""
        w = self.w
        w.label("trial")
        for stage in range(1, len(self.scheme.a)):
            self._evaluate(stage)
        for j, new in enumerate(self.advanced()):
            self.y1[j] = new
        if not self.lockable:
            w.do("br label %accept")
            return
        least, early = constant(w, HUGE), []
        for i in self.lockable:
            began = self.y[self.velocity(i)].equals(0.0)
            toward = self.y1[self.velocity(i)] * self.side[i]
            returns = began & (toward < 0.0)
            if self.locks.breakaway[i] > 0:
                least = began.choose(least, least.least(toward))
            if self.stops:
                least = self.stops.least(i, self.y1, least)
                returns = returns | self.stops.returns(i, self.y1)
            early.append((i, returns))
        self.lane["now"] = least
        turned = early[0][1]
        for _, truth in early[1:]:
            turned = turned | truth
        first = self.search.is_first_trial()
        branch(w, w.let(f"and i1 {first}, {turned.any()}"), "pin", "narrow")
        w.label("pin")  # a joint that would leave its rest against its own friction stays for this step
        for i, truth in early:
            self.pinned[i] = truth.choose(1.0, self.pinned[i])
            self.free[i] = truth.choose(0.0, self.free[i])
            self.side[i] = truth.choose(0.0, self.side[i])
        if self.stops:
            self.stops.bring_to_rest(early)
        w.do(f"br label %{'part' if self.stops else 'settle'}")
        w.label("narrow")
        more = self.search.judge(first, self.parts.is_below(SUBSTEPS - 1))
        branch(w, more, "aim", "accept")
        w.label("aim")
        self.search.aim()
        w.do("br label %trial")

    def _accept(self) -> None:
        """Take y1 where the lane is not done; a joint that came to rest has velocity 0."""
        w = self.w
        w.label("accept")
        rest, length = self.lane["rest"], self.lane["length"]
        active = rest > 0.0
        if self.lockable:
            hit, level, now = self.lane["hit"] > 0.0, self.lane["level"], self.lane["now"]
            margin = (now > level).choose(now, level)
            for i in self.lockable:
                v, ends = self.y1[self.velocity(i)], self.free[i].equals(0.0)
                if self.locks.breakaway[i] > 0:
                    ends = ends | (hit & ~self.y[self.velocity(i)].equals(0.0) & (v * self.side[i] <= margin))
                self.y1[self.velocity(i)] = ends.choose(0.0, v)
                if self.stops:
                    self.stops.meet(i, hit, margin)
        for j in range(self.size):
            self.y[j] = active.choose(self.y1[j], self.y[j])
        self.lane["used"] = active.choose(self.lane["used"] + length, self.lane["used"])
        rest = rest - length
        self.lane["rest"] = rest
        self.h = self.whole_step
        further = self.parts.next_is_below(SUBSTEPS)
        branch(w, w.let(f"and i1 {further}, {(rest > 0.0).any()}"), "part", "whole")
        w.label("whole")
        self.normalise()


TRIALS = 30  # at most, to locate an event; 5 to 8 are usual
CLOSE = 1e-13  # relative to the larger margin at the ends of the step: smaller margins count as zero
HUGE = 1e300

LANE = (
    *("rest", "used", "length"),  # of the step: left, done, and in trial; seconds
    *("low", "high", "at_low", "at_high", "last"),  # the bracket of the event, and the side it last shrank from
    *("now", "hit", "level"),  # the margin after the trial; is there an event; what counts as 0
)


class EventSearch:
    """Writes the search of a lane's first event; `lane` holds the numbers named in `LANE`.

    The margin of a lane is the smallest distance of its joints from rest or from their stops.
    """

    def __init__(self, w: Writer, lane: NamedSlots) -> None:
        self.w, self.lane = w, lane
        self.trials = Counter(w, "trials")

    def begin(self, margin: Number) -> None:
        """The bracket at first: the whole step, with `margin` at its beginning."""
        lane = self.lane
        for name, value in (("low", 0.0), ("at_low", margin), ("high", lane["rest"]), ("at_high", 0.0)):
            lane[name] = value
        for name in ("last", "hit", "level"):
            lane[name] = 0.0
        self.trials.reset()

    def is_first_trial(self) -> str:
        """Whether the trial is over all that is left of the step: one bit."""
        return self.trials.is_below(1)

    def judge(self, first: str, may_cut: str) -> str:
        """Whether another trial is needed, in some lane: one bit. Sets what the lanes say about their event."""
        w, lane = self.w, self.lane
        now = lane["now"]
        happens = now < 0.0
        size = (-now).least(constant(w, HUGE))
        size = (size < lane["at_low"]).choose(lane["at_low"], size) * CLOSE
        beginning = happens.and_bit(first)
        lane["hit"] = beginning.choose(1.0, lane["hit"])
        lane["level"] = beginning.choose(size, lane["level"])
        self._happens, self._open = happens, self._is_open()
        return w.let(f"and i1 {self._open.any()}, {w.let(f'and i1 {may_cut}, {self.trials.next_is_below(TRIALS)}')}")

    def _is_open(self) -> Truth:
        """Whether there is an event whose moment is not met yet."""
        now, level, low, high = (self.lane[name] for name in ("now", "level", "low", "high"))
        near = (now <= level) & (now >= -level)
        narrow = (high - low) <= high * 1e-15
        return (self.lane["hit"] > 0.0) & ~(near | narrow)

    def aim(self) -> None:
        """Narrow the bracket, halving the margin at an end that stays twice; the next trial's length."""
        lane = self.lane
        now, length, last = lane["now"], lane["length"], lane["last"]
        up, down = self._open & self._happens, self._open & ~self._happens
        at_low = down.choose(now, (up & (last < 0.0)).choose(lane["at_low"] * 0.5, lane["at_low"]))
        at_high = up.choose(now, (down & (last > 0.0)).choose(lane["at_high"] * 0.5, lane["at_high"]))
        low, high = down.choose(length, lane["low"]), up.choose(length, lane["high"])
        for name, value in (("low", low), ("high", high), ("at_low", at_low), ("at_high", at_high)):
            lane[name] = value
        lane["last"] = up.choose(-1.0, down.choose(1.0, last))
        aimed = high - at_high * (high - low) / (at_high - at_low)
        lane["length"] = self._open.choose(aimed, length)


BLOCK = 4  # changes of all motors at once; the least index alone afterwards
MOST = 40  # evaluations to find the saturated motors


class ImplicitStage:
    """Writes one evaluation of the program at an implicit stage."""

    def __init__(self, loop: LockableLoop, stage: int, length: Number) -> None:
        self.loop, self.w, n = loop, loop.w, loop.n
        self.share, self.extra, self.added = (loop.port(name) for name in ("share", "extra", "added"))
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
        any_wrong = wrong[0][1]
        for _, truth, _ in wrong[1:]:
            any_wrong = any_wrong | truth
        branch(w, any_wrong.any(), f"switch{name}", f"agreed{name}")
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
        torque = self.loop.out("tau", i) + self.linear[i] - self.inertia[i] * self.loop.out("qdd", i)
        inside = mode.equals(0.0)
        beyond = inside & ((torque > most) | (torque < -most))
        back = ~inside & (torque * mode < most)
        return beyond | back, inside.choose((torque > 0.0).choose(1.0, -1.0), 0.0)


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
        any_into = self._into(self.joints[0])
        for i in self.joints[1:]:
            any_into = any_into | self._into(i)
        branch(w, (any_into & active).any(), "impact", "clear")
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
            for name in ("share", "extra", "added"):  # no torque of the law, no force, no added inertia
                loop.port(name)[j] = 0.0
        if not self._has_idle:
            w.stack_array("idle", n)
            self._has_idle = True
        idle = Slots(w, "idle")
        w.do("call void @body(ptr %in, ptr %out, ptr %context)")
        for j in range(n):
            idle[j] = loop.out("qdd", j)
        return idle

    def _strike(self, i: int, where: Truth, restitution: float, idle: Slots) -> None:
        """The impulse on joint i that reverses its velocity, times the restitution."""
        w, loop, n = self.w, self.loop, self.loop.n
        force = loop.port("extra")
        force[i] = FORCE
        w.do("call void @body(ptr %in, ptr %out, ptr %context)")
        force[i] = 0.0
        v = loop.y[loop.velocity(i)]
        impulse = v * -(1.0 + restitution) / (loop.out("qdd", i) - idle[i])
        for j in range(n):
            before = loop.y[loop.velocity(j)]
            loop.y[loop.velocity(j)] = where.choose(before + (loop.out("qdd", j) - idle[j]) * impulse, before)
        loop.y[loop.velocity(i)] = where.choose(v * -restitution, loop.y[loop.velocity(i)])


def object_code(program: Program, scheme: Scheme, target: Target, locks: Locks | None = None) -> bytes:
    """The loop as relocatable object code, behind a line with the numbers of coordinates, velocities and inputs."""
    nq, nv, width = (program.inputs[k].shape[0] for k in range(3))
    layout = Layout(nq, nv)
    body = straight_line(program, target)
    if locks is None:
        loop = Loop(body, scheme, layout, width, target.fma)
    else:
        loop = LockableLoop(body, scheme, layout, width, target.fma, locks)
    code = jit.object_code(module(target, [body.text(), loop.text()]), target)
    return json.dumps([nq, nv, width]).encode() + b"\n" + code

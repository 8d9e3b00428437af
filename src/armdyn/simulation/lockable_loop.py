"""The loop over steps of an arm whose joints may stick, hit their stops, or have stiff controllers.

A step with constant modes (which joints stick, and the direction in which the others slide) has a smooth right-hand
side, so a method keeps its order. A step is cut, per lane, when a sliding joint comes to rest or one meets its stop:

1. Modes. A joint at rest sticks if the force needed to hold it is within its friction. All joints at rest are solved
   together, as a boxed linear complementarity problem in H⁻¹, by principal pivoting: block pivots first, then only the
   least index, which terminates for every positive definite matrix (Judice and Pires 1994). One pivot is one evaluation
   of the program with other locks.
2. Trial step over the rest of the step. If a velocity changes its sign (or a joint passes its stop), the first such
   time is located by regula falsi (the Illinois variant) on the length of the step.
3. The velocity of the joint that came to rest is set to exactly 0; continue at 1 with the rest of the step.

Lanes that are done wait with their state unchanged.
"""

from __future__ import annotations

from fractions import Fraction

from armdyn.codegen.llvm.straight_line import StraightLine
from armdyn.programs.stepping import Scheme
from armdyn.simulation.event_search import HUGE, LANE, EventSearch
from armdyn.simulation.implicit_stage import ImplicitStage, Locks
from armdyn.simulation.lanes import Counter, NamedSlots, Number, Slots, Truth, branch, constant, lagrange
from armdyn.simulation.loop import Loop
from armdyn.simulation.state import Layout
from armdyn.simulation.stops import Stopping

BLOCK_PIVOTS = 3  # all violated joints at once; least index alone afterwards
PIVOTS = 60  # most evaluations to find the modes
SUBSTEPS = 24  # most parts of one step; the last part is not cut any more


class LockableLoop(Loop):
    """Writes the function `integrate` for a `lockable_loop` program."""

    def __init__(
        self, body: StraightLine, scheme: Scheme, layout: Layout, inputs: int, fma: bool, locks: Locks
    ) -> None:
        super().__init__(body, scheme, layout, inputs, fma)
        w, n, first = self.w, self.n, self.size + inputs
        self.locks = locks
        self.lockable = [i for i in range(n) if locks.can_lock(i)]
        self.stops = Stopping(self, locks.stops) if locks.stops else None
        self.free, self.side = Slots(w, "in", first), Slots(w, "in", first + n)
        self.y, self.y1 = Slots(w, "y"), Slots(w, "y1")
        self.pinned, self.lane = Slots(w, "pinned"), NamedSlots(w, "lane", LANE)
        self.at = Slots(w, "in")  # the state that the program is evaluated at

    def out(self, port: int, i: int) -> Number:
        """A result of the program."""
        return Slots(self.w, "out")[self.outputs[port][i]]

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
        for k, value in enumerate((1.0, 0.0, 0.0)):
            for i in range(self.n):
                Slots(self.w, "in", self.size + self.m + (2 + k) * self.n)[i] = value

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
        return Slots(self.w, "in", self.first_constant + at)[self.n + i] + self.locks.excess[i]

    def viscous(self, i: int) -> Number | float:
        """Viscous friction, likewise."""
        at = self.locks.friction_at
        return self.locks.viscous[i] if at is None else Slots(self.w, "in", self.first_constant + at)[i]

    def _pivot(self) -> None:
        """Evaluate the first stage; lock and release joints at rest until every one of them agrees with its force."""
        w = self.w
        w.label("pivot")
        self._evaluate(0)
        found: Truth | None = None
        flips = []
        for i in self.lockable:
            free, side, left = self.free[i], self.side[i], self.out(1, i)
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
            found = wrong if found is None else found | wrong
        if found is None:
            w.do("br label %slide")
            return
        branch(w, found.any(), "change", "slide")
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
        accelerations = [self.out(0, i) for i in range(self.n)]
        velocities = [
            implicit.velocity(i, a) if implicit else self.at[self.velocity(i)] for i, a in enumerate(accelerations)
        ]
        self._keep_slope(stage, velocities, accelerations)

    def _inputs_at(self, stage: int) -> None:
        """U at the stage; where a lane is inside a step that was cut, interpolated between the step's stages."""
        w, size = self.w, self.size
        name = w.let("add i64 0, 0")[1:]  # a fresh suffix for this stage's blocks
        rest = self.lane["used"] + Number(w, w.let(f"fsub {w.vector} {self.whole_step}, {self.h}"))
        self._gather("%in", self._input_rows(stage), self.m, first=size)
        branch(w, (rest > 0.0).any(), f"between{name}", f"given{name}")
        w.label(f"between{name}")
        nodes = self._nodes()
        moment = self.lane["used"] + Number(w, self.h) * float(self.scheme.nodes[stage])
        fraction = moment / Number(w, self.whole_step)
        whole = ~(rest > 0.0)
        basis = {k: lagrange(fraction, k, nodes) for k in nodes}
        rows = {k: self._input_rows(k) for k in nodes}
        for j in range(self.m):
            values = {k: self._loaded(rows[k], j) for k in nodes}
            value = values[0]
            for k in nodes:
                if k:
                    value = value + basis[k] * (values[k] - values[0])
            given = Number(w, w.load("%in", size + j))
            w.store(whole.choose(given, value).name, "%in", size + j)
        w.do(f"br label %given{name}")
        w.label(f"given{name}")

    def _nodes(self) -> dict[int, Fraction]:
        """One stage for each distinct time of the stages."""
        found: dict[Fraction, int] = {}
        for k, c in enumerate(self.scheme.nodes):
            found.setdefault(c, k)
        return {k: c for c, k in found.items()}

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

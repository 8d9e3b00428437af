"""Locate the first event within a step, per lane, in the compiled loop.

An event is a zero of a margin, the smallest distance of the joints from rest or from their stops, which is positive
before the event. It is found by regula falsi (the Illinois variant) on the length of the step.
"""

from __future__ import annotations

from armdyn.codegen.llvm.ir import Writer
from armdyn.simulation.lanes import Counter, NamedSlots, Number, Truth, constant

TRIALS = 30  # at most, to locate an event; 5 to 8 are usual
CLOSE = 1e-13  # relative to the larger margin at the ends of the step: smaller margins count as zero
HUGE = 1e300

LANE = (
    *("rest", "used", "length"),  # of the step: left, done, and in trial; seconds
    *("low", "high", "at_low", "at_high", "last"),  # the bracket of the event, and the side it last shrank from
    *("now", "hit", "level"),  # the margin after the trial; is there an event; what counts as 0
)


class EventSearch:
    """Writes the search of a lane's first event; `lane` holds the numbers named in `LANE`."""

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

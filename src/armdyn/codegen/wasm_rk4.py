"""The classical Runge-Kutta method as a WebAssembly function: one call advances a state by many steps.

The state is in the module's memory and is overwritten. The arithmetic of a stage is a program like any other, traced
for the number of joints, so that only the sequence of calls is written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from armdyn.codegen.wasm import F64, I32, SINE_COSINE, Function
from armdyn.graph.program import Program, trace

STAGE, FINISH = "_stage", "_finish"


@dataclass(frozen=True)
class Coordinates:
    """Programs for coordinates whose rates differ from the velocities, such as a quaternion."""

    rates: Program  # of q and qd
    normalised: Program  # of q alone; the result may overwrite q


def can_be_stepped(program: Program) -> bool:
    """Whether a program gives the accelerations of coordinates `q` and velocities `qd`."""
    names = [port.name for port in program.inputs]
    return names[:2] == ["q", "qd"] and [(p.name, p.shape) for p in program.outputs] == [
        ("qdd", program.inputs[1].shape)
    ]


@dataclass(frozen=True)
class Stepper:
    """What a module needs besides `program` to integrate it: two or four programs, one function, scratch memory.

    `advance(q, qd, ..., step, count)` takes the addresses of the program's inputs, the step in seconds and the number
    of steps. `index` is the program's index among the module's programs, `first` that of the first program added here.
    """

    program: Program
    index: int
    first: int
    coordinates: Coordinates | None = None  # None: their rates are the velocities

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of coordinates and of velocities."""
        q, qd, *_ = self.program.inputs
        return len(q.nodes), len(qd.nodes)

    @property
    def room(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Scratch addresses: coordinates and velocities of stages 2 to 4, four accelerations, four rates."""
        nq, nv = self.sizes
        at, places = 0, []
        for count, size in ((3, nq), (3, nv), (4, nv), (4 if self.coordinates else 0, nq)):
            places.append([at + 8 * size * k for k in range(count)])
            at += 8 * size * count
        positions, velocities, accelerations, rates = places
        return positions, velocities, accelerations, rates

    @property
    def scratch(self) -> int:
        """Bytes: the stages, and twice the step's length."""
        nq, nv = self.sizes
        return 8 * ((7 if self.coordinates else 3) * nq + 7 * nv + 2)

    @property
    def programs(self) -> dict[str, Program]:
        """The arithmetic of a stage, of the end of a step, and of the coordinates."""
        made = {STAGE: _stage(*self.sizes), FINISH: _finish(*self.sizes, own_rates=self.coordinates is not None)}
        if self.coordinates:
            made |= {"_rates": self.coordinates.rates, "_normalised": self.coordinates.normalised}
        return made

    @property
    def advance(self) -> Function:
        """The loop over steps."""
        count = len(self.program.inputs)
        f = Function((*(I32,) * count, F64, I32))
        step, left = count, count + 1
        half, whole = self.scratch - 16, self.scratch - 8
        for at, factor in ((half, 0.5), (whole, 1.0)):
            f.do("i32.const", at)
            f.do("local.get", step)
            f.do("f64.const", factor)
            f.do("f64.mul")
            f.do("f64.store", 3, 0)
        f.do("local.get", left)
        f.do("if", 0x40)
        f.do("loop", 0x40)
        self._step(f, half, whole)
        for name, *immediates in (
            *(("local.get", left), ("i32.const", 1), ("i32.sub",), ("local.tee", left)),
            *(("br_if", 0), ("end",), ("end",)),
        ):
            f.do(name, *immediates)
        return f

    def _step(self, f: Function, half: int, whole: int) -> None:
        """One step: four accelerations, three stages between them, the weighted sum."""
        positions, velocities, accelerations, rates = self.room
        here: list[tuple[str, int]] = [("local.get", 0), ("local.get", 1)]
        others = [("local.get", k) for k in range(2, len(self.program.inputs))]
        at = here
        for k in range(4):
            self._call(f, self.index, [*at, *others, ("i32.const", accelerations[k])])
            if self.coordinates:
                self._call(f, self.first + 2, [*at, ("i32.const", rates[k])])
            if k == 3:
                break
            stage = [("i32.const", positions[k]), ("i32.const", velocities[k])]
            rate = ("i32.const", rates[k]) if self.coordinates else at[1]
            length = ("i32.const", whole if k == 2 else half)
            self._call(f, self.first, [*here, rate, ("i32.const", accelerations[k]), length, *stage])
            at = stage
        sums = [("i32.const", x) for x in (*(rates or velocities), *accelerations, whole)]
        self._call(f, self.first + 1, [*here, *sums, *here])
        if self.coordinates:
            self._call(f, self.first + 3, [here[0], here[0]])

    @staticmethod
    def _call(f: Function, program: int, addresses: list[tuple[str, int]]) -> None:
        for name, address in addresses:
            f.do(name, address)
        f.do("call", SINE_COSINE + 1 + program)


def _stage(nq: int, nv: int) -> Program:
    """A stage: q + h r and qd + h a."""

    def function(q: Any, qd: Any, r: Any, a: Any, h: Any) -> Any:
        return [x + h[0] * v for x, v in zip(q, r, strict=True)], [x + h[0] * v for x, v in zip(qd, a, strict=True)]

    inputs = {"q": (nq,), "qd": (nv,), "r": (nq,), "a": (nv,), "h": (1,)}
    return trace(STAGE, function, inputs, [("q1", (nq,)), ("qd1", (nv,))])


def _finish(nq: int, nv: int, own_rates: bool) -> Program:
    """The end of the step; without `own_rates`, the rates of the first stage are qd itself.

    Entry k of the results depends on entry k of the inputs alone, so they may be the same arrays.
    """

    def function(q: Any, qd: Any, *slopes: Any) -> Any:
        rates, (*accelerations, h) = slopes[:-5], slopes[-5:]
        sixth = h[0] / 6
        ends = []
        for start, four in ((q, rates if own_rates else (qd, *rates)), (qd, accelerations)):
            sums = [r1 + 2 * (r2 + r3) + r4 for r1, r2, r3, r4 in zip(*four, strict=True)]
            ends.append([x + sixth * slope for x, slope in zip(start, sums, strict=True)])
        return tuple(ends)

    rates = [f"r{k}" for k in range(1 if own_rates else 2, 5)]
    inputs = {
        "q": (nq,),
        "qd": (nv,),
        **dict.fromkeys(rates, (nq,)),
        **{f"a{k}": (nv,) for k in range(1, 5)},
        "h": (1,),
    }
    return trace(FINISH, function, inputs, [("q1", (nq,)), ("qd1", (nv,))])


def with_steps(
    programs: dict[str, Program], key: str, coordinates: Coordinates | None = None
) -> tuple[dict[str, Program], dict[str, Function], int]:
    """The arguments of `wasm.module` for these programs and `advance`, which integrates the one called `key`."""
    stepper = Stepper(programs[key], list(programs).index(key), len(programs), coordinates)
    return {**programs, **stepper.programs}, {"advance": stepper.advance}, stepper.scratch


__all__ = ["Coordinates", "Stepper", "can_be_stepped", "with_steps"]

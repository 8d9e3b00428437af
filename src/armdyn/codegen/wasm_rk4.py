"""The classical Runge-Kutta method as a WebAssembly function: one call advances a state by many steps.

The state lies in the module's memory and is overwritten. The arithmetic of a stage is a program
like any other, traced once per number of joints, so that only the order of calls is written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from armdyn.codegen.wasm import F64, I32, SINE_COSINE, Function
from armdyn.graph.program import Program, trace

STAGE, FINISH = "_stage", "_finish"
# What lies in the scratch memory, in units of n numbers: positions and velocities of stages 2 to 4, four accelerations.
STAGES, ACCELERATIONS = 6, 4


def can_be_stepped(program: Program) -> bool:
    """Whether a program gives the accelerations of positions `q` and velocities `qd`, one per joint."""
    names = [port.name for port in program.inputs]
    shapes = {port.shape for port in (*program.inputs[:2], *program.outputs)}
    return names[:2] == ["q", "qd"] and [port.name for port in program.outputs] == ["qdd"] and len(shapes) == 1


@dataclass(frozen=True)
class Stepper:
    """What a module needs beside `program` to step it: two programs, one function, scratch memory.

    `advance(q, qd, ..., step, count)` takes the addresses of the program's inputs, the step in seconds and
    how many steps. `index` is the program's place among the module's programs, `first` that of the two here.
    """

    program: Program
    index: int
    first: int

    @property
    def n(self) -> int:
        """The number of joints."""
        return len(self.program.inputs[0].nodes)

    @property
    def scratch(self) -> int:
        """Bytes: the stages, and twice the step's length."""
        return 8 * ((STAGES + ACCELERATIONS) * self.n + 2)

    @property
    def programs(self) -> dict[str, Program]:
        """The arithmetic of a stage and of the end of a step."""
        return {STAGE: _stage(self.n), FINISH: _finish(self.n)}

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
        room = [8 * self.n * k for k in range(STAGES + ACCELERATIONS)]
        positions, velocities, accelerations = room[0:3], room[3:6], room[6:]
        here: list[tuple[str, int]] = [("local.get", 0), ("local.get", 1)]
        others = [("local.get", k) for k in range(2, len(self.program.inputs))]
        at = here
        for k, length in enumerate((half, half, whole)):
            self._call(f, self.index, [*at, *others, ("i32.const", accelerations[k])])
            stage = [("i32.const", positions[k]), ("i32.const", velocities[k])]
            rates = [at[1], ("i32.const", accelerations[k]), ("i32.const", length)]
            self._call(f, self.first, [*here, *rates, *stage])
            at = stage
        self._call(f, self.index, [*at, *others, ("i32.const", accelerations[3])])
        sums = [("i32.const", x) for x in (*velocities, *accelerations, whole)]
        self._call(f, self.first + 1, [*here, *sums, *here])

    @staticmethod
    def _call(f: Function, program: int, addresses: list[tuple[str, int]]) -> None:
        for name, address in addresses:
            f.do(name, address)
        f.do("call", SINE_COSINE + 1 + program)


def _stage(n: int) -> Program:
    """A stage: q + h v and qd + h a."""

    def function(q: Any, qd: Any, v: Any, a: Any, h: Any) -> Any:
        return [x + h[0] * r for x, r in zip(q, v, strict=True)], [x + h[0] * r for x, r in zip(qd, a, strict=True)]

    inputs = {**dict.fromkeys(("q", "qd", "v", "a"), (n,)), "h": (1,)}
    return trace(STAGE, function, inputs, [("q1", (n,)), ("qd1", (n,))])


def _finish(n: int) -> Program:
    """The end of the step. Entry k of the results needs entry k of the inputs alone: they may be the same arrays."""

    def function(q: Any, qd: Any, v2: Any, v3: Any, v4: Any, a1: Any, a2: Any, a3: Any, a4: Any, h: Any) -> Any:
        sixth = h[0] / 6
        ends = []
        for start, rates in ((q, (qd, v2, v3, v4)), (qd, (a1, a2, a3, a4))):
            slopes = [r1 + 2 * (r2 + r3) + r4 for r1, r2, r3, r4 in zip(*rates, strict=True)]
            ends.append([x + sixth * slope for x, slope in zip(start, slopes, strict=True)])
        return tuple(ends)

    names = ("q", "qd", "v2", "v3", "v4", "a1", "a2", "a3", "a4")
    inputs = {**dict.fromkeys(names, (n,)), "h": (1,)}
    return trace(FINISH, function, inputs, [("q1", (n,)), ("qd1", (n,))])


def with_steps(programs: dict[str, Program], key: str) -> tuple[dict[str, Program], dict[str, Function], int]:
    """The arguments of `wasm.module` for these programs and `advance`, which steps the one called `key`."""
    stepper = Stepper(programs[key], list(programs).index(key), len(programs))
    return {**programs, **stepper.programs}, {"advance": stepper.advance}, stepper.scratch


__all__ = ["Stepper", "can_be_stepped", "with_steps"]

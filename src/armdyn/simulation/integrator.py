"""A compiled loop over steps: LLVM assembly to machine code, cached on disk like every kernel.

If there are fewer states than SIMD lanes, they are repeated to fill a vector: a scalar loop was measured to be only 2
to 8 % faster for a single state, which is not worth a second compilation.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from armdyn.codegen import jit
from armdyn.codegen.fastcall import context
from armdyn.codegen.llvm.module import module, straight_line
from armdyn.codegen.target import Target, host
from armdyn.graph.program import Program
from armdyn.programs.stepping import Scheme
from armdyn.simulation.loop import ARGUMENTS, Loop
from armdyn.simulation.request import Layout, Locks
from armdyn.simulation.step import LockableLoop


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


class Integrator:
    """A compiled loop: `run` advances many states by many steps without Python in between.

    The representation of `asked` must contain everything besides armdyn's own source that determines the program that
    `make` returns.
    """

    def __init__(
        self,
        asked: object,
        make: Callable[[], Program],
        scheme: Scheme,
        locks: Locks | None = None,
        target: Target | None = None,
    ) -> None:
        self.scheme, self.target = scheme, target or host()
        name = jit.key(("integrate", asked, scheme, locks), self.target)
        stored = jit.stored(name, lambda: object_code(make(), scheme, self.target, locks))
        head, _, code = stored.partition(b"\n")
        nq, nv, self.inputs = json.loads(head)
        self.layout = Layout(nq, nv)
        self._code = jit.load(code, ("integrate",), self.target)  # owns the machine code
        self.call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address("integrate"))

    def run(
        self,
        state: np.ndarray,
        steps: int,
        h: float,
        inputs: np.ndarray,
        history: np.ndarray,
        every: int = 1,
        constants: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(stored states, last state, history) after `steps` steps.

        `state` is (count, size); `inputs` broadcasts to (count, steps, stages, m); `history` is (count, past, size);
        `constants` is (count, k) for a program whose plant varies.
        """
        constants = np.zeros((len(state), 0)) if constants is None else constants
        given, stages = len(state), len(self.scheme.b)
        u = np.broadcast_to(np.asarray(inputs, float), (given, steps, stages, self.inputs))
        if given < self.target.lanes:
            filled = np.resize(np.arange(given), self.target.lanes if given else 0)
            u = np.broadcast_to(u[:1], (len(filled), *u.shape[1:])) if u.strides[0] == 0 else u[filled]
            state, history, constants = state[filled], history[filled], constants[filled]
        if self.inputs > 1 and u.strides[3] != 8:
            u = np.ascontiguousarray(u)
        state, history, constants = (np.ascontiguousarray(x, float) for x in (state, history, constants))
        stored = np.empty((len(state), steps // every, self.layout.size))
        last, later = state.copy(), history.copy()
        if given and steps:
            self._fill(steps, every, h, u, constants, state, history, stored, last, later)
        return stored[:given], last[:given], later[:given]

    def _fill(self, steps: int, every: int, h: float, u: np.ndarray, *arrays: np.ndarray) -> None:
        """Hand everything over: `arrays` are constants, state and history, then what is written, all contiguous."""
        words = self.words(steps, every, h, u, *arrays)
        self.call(words.ctypes.data)

    def words(self, steps: int, every: int, h: float, u: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
        """The arguments of the compiled loop, in the order of `ARGUMENTS`; they hold no references to the arrays."""
        constants, state, history, stored, last, later = arrays
        values: dict[str, Any] = {
            "count": len(state), "steps": steps, "every": every,
            "state": state.ctypes.data, "history": history.ctypes.data,
            "inputs": u.ctypes.data, "input_lane": u.strides[0], "input_step": u.strides[1],
            "input_stage": u.strides[2], "stored": stored.ctypes.data, "stored_lane": stored.strides[0],
            "state_out": last.ctypes.data, "history_out": later.ctypes.data,
            "constants": constants.ctypes.data,
            "step_size": int(np.float64(h).view(np.int64)), "context": ctypes.addressof(context()),
        }  # fmt: skip
        return np.array([values[name] for name in ARGUMENTS], dtype=np.int64)


class InPlace:
    """A loop with its arrays in place: one call moves all states on, and makes no array.

    There are two arrays of states, and a call reads one and writes the other, so the states before it are still there.
    Rows that fill the last SIMD vector are copies of the states and do the same.
    """

    def __init__(self, loop: Integrator, states: np.ndarray, h: float, common_inputs: bool) -> None:
        lanes, count = loop.target.lanes, len(states)
        self.loop, self.h, self.count = loop, h, count
        rows = max(1, -(-count // lanes)) * lanes if count else 0
        self.rows = np.resize(np.arange(count), rows) if count else np.zeros(0, dtype=int)
        self.states = (np.array(states[self.rows], float), np.array(states[self.rows], float))
        self.inputs = np.zeros((1 if common_inputs else rows, loop.inputs))
        self._nothing = np.zeros((rows, 0, loop.layout.size)), np.zeros((rows, 0))
        self._stored = np.zeros((rows, 1, loop.layout.size))
        self._words = self._arguments(1, self._stored)  # kept, because the loop gets their addresses
        self._addresses = tuple(words.ctypes.data for words in self._words)
        self.current = 0

    def _arguments(self, steps: int, stored: np.ndarray) -> tuple[np.ndarray, ...]:
        """The loop's arguments from either array of states to the other."""
        u = np.broadcast_to(self.inputs[:, None, None], (len(self.rows), steps, 1, self.loop.inputs))
        history, constants = self._nothing
        ways = [(constants, self.states[a], history, stored, self.states[1 - a], history) for a in (0, 1)]
        return tuple(self.loop.words(steps, 1, self.h, u, *arrays) for arrays in ways)

    def advance(self) -> np.ndarray:
        """One step under `inputs`; the new states, in place."""
        if self.count:
            self.loop.call(self._addresses[self.current])
            self.current = 1 - self.current
        return self.states[self.current]

    def advance_by(self, steps: int) -> np.ndarray:
        """So many steps under the same inputs; all states on the way, (count, steps, size)."""
        stored = np.zeros((len(self.rows), steps, self.loop.layout.size))
        if self.count:
            words = self._arguments(steps, stored)[self.current]
            self.loop.call(words.ctypes.data)
            self.current = 1 - self.current
        return stored[: self.count]

    @property
    def state(self) -> np.ndarray:
        """The states (count, size), in place."""
        return self.states[self.current][: self.count]

    @property
    def before(self) -> np.ndarray:
        """The states before the last call, in place."""
        return self.states[1 - self.current][: self.count]

    def put(self, lanes: Any, states: np.ndarray) -> None:
        """Give some lanes other states."""
        self.state[lanes] = states
        self.states[self.current][:] = self.state[self.rows]

"""Compile a program to machine code in this process, as a function of NumPy arrays.

`compile_program` runs all stages: LLVM IR (`llvm`), object code, the JIT (`jit`), a NumPy gufunc.
`load_or_compile` first looks for the kernel in this process and in the cache on disk.
"""

from __future__ import annotations

import ctypes
import json
import logging
import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from armdyn.codegen import cache, jit, tuning
from armdyn.codegen.fastcall import context, gufunc
from armdyn.codegen.llvm.module import kernel_module, single_call_module
from armdyn.codegen.target import LLVM_LOCK, Target, host
from armdyn.graph.program import ColumnProgram, Program

LOG = logging.getLogger("armdyn")  # at level DEBUG: what was compiled, from where, how long it took
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True)
class BatchFunction:
    """A C function over a batch, at `address`; it does not call Python, and any thread may call it.

    ``void f(char **arrays, const intptr_t *count, const intptr_t *strides, void *context)``: data pointers of the
    inputs, then of the outputs, all of one type; the number of configurations; strides in bytes, first from one
    configuration to the next for every array, then along every axis of every array; the address `context`. An output
    may be the same array as an input. Keep this object for as long as the function may be called: it owns the code.
    """

    address: int
    context: int
    owner: Compiled

    @property
    def contiguous_strides(self) -> tuple[int, ...]:
        """The strides of arrays in C order."""
        batch, entries = [], []
        size = self.owner.dtype.itemsize
        for _, shape in (*self.owner.inputs, *self.owner.outputs):
            batch.append(size * math.prod(shape))
            entries += [size * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        return (*batch, *entries)


@dataclass(frozen=True)
class Compiled:
    """A program as machine code: a NumPy gufunc, and the code it runs, which lives as long as either."""

    name: str
    inputs: Shapes
    outputs: Shapes
    ufunc: Any
    code: jit.Code = field(repr=False)
    quiet: bool  # restores the floating-point status flags, so that NumPy does not warn
    dtype: np.dtype[Any] = np.dtype(np.float64)  # of the arrays

    @property
    def addresses(self) -> dict[str, int]:
        """Addresses of `loop` (NumPy's inner loop) and `entry` (CPython's vectorcall); they die with this object."""
        return self.code.addresses

    @property
    def batch_function(self) -> BatchFunction:
        """The function over a batch, for callers other than Python."""
        return BatchFunction(self.addresses["loop"], ctypes.addressof(context()), self)

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Call the gufunc, which would take a further positional array as `out`."""
        if len(arrays) != len(self.inputs):
            raise TypeError(f"{self.name} takes {len(self.inputs)} arrays, got {len(arrays)}")
        asked: dict[str, Any] = {} if out is None else {"out": out}
        if self.dtype.char == "f":  # a comparison of types takes as long as a short program
            asked["dtype"] = self.dtype  # inputs of another type are cast
        return self.ufunc(*arrays, **asked)


@dataclass(frozen=True)
class SingleCalls:
    """The part of a program's machine code that takes single calls."""

    name: str
    code: jit.Code = field(repr=False)


def object_code(
    program: Program | ColumnProgram, target: Target, uniform: Collection[str] = (), single_calls: bool = False
) -> bytes:
    """The program as relocatable object code, or its part for `single_calls`; very long ones are not optimised."""
    nodes = len((program.head if isinstance(program, ColumnProgram) else program).order)
    level = tuning.OPTIMISATION if nodes <= tuning.LARGEST_OPTIMISED else 0
    if single_calls and isinstance(program, Program):
        return jit.object_code(single_call_module(program, target), target, level)
    return jit.object_code(kernel_module(program, target, uniform), target, level)


def load(name: str, inputs: Shapes, outputs: Shapes, code: bytes, target: Target) -> Compiled:
    """Load object code into this process."""
    loaded = jit.load(code, ("loop", "entry"), target)
    ufunc = gufunc(name, inputs, outputs, loaded.address("loop"), loaded, target.number)
    dtype = np.dtype(np.float64 if target.number == "double" else np.float32)
    return Compiled(name, inputs, outputs, ufunc, loaded, target.x86, dtype)


def compile_program(
    program: Program | ColumnProgram, target: Target | None = None, uniform: Collection[str] = ()
) -> Compiled:
    """Compile a program for `target`, by default this machine."""
    target = target or host()
    return load(program.name, *shapes(program), object_code(program, target, uniform), target)


def shapes(program: Program | ColumnProgram) -> tuple[Shapes, Shapes]:
    """Names and shapes of a program's inputs and outputs."""
    inputs = tuple((port.name, port.shape) for port in program.inputs)
    return inputs, tuple((port.name, port.shape) for port in program.outputs)


def load_or_compile(
    identity: object,
    make: Callable[[], Program | ColumnProgram],
    uniform: Collection[str] = (),
    number: str = "double",
) -> Compiled | None:
    """The machine code requested by `asked`: from this process, from the disk, or compiled from `make()`.

    The `repr` of `asked` must contain everything that the program depends on besides armdyn's own source; `uniform`
    names inputs that are usually the same for a whole batch; `number` is "double" or "float". Returns None for a
    program with an empty array, since a gufunc has no core dimensions of length 0.
    """
    target = host().of(number)
    identity = (identity, tuple(uniform))
    with LLVM_LOCK:
        name = jit.key(identity, target)
        made = _LOADED.get(name) if name else None
        origin, start = "this process", time.perf_counter()
        if made is None:
            origin = "the cache on disk"

            def code() -> bytes:
                nonlocal origin
                origin = "the compiler"
                return _packed(make(), target, uniform)

            made = _unpacked(jit.stored(name, code), target)
            if name and made:
                _LOADED[name] = made
        if LOG.isEnabledFor(logging.DEBUG):
            milliseconds = 1e3 * (time.perf_counter() - start)
            LOG.debug("%s: from %s in %.2f ms", made.name if made else "an empty result", origin, milliseconds)
        return made


def load_or_compile_single(
    identity: object,
    make: Callable[[], Program | ColumnProgram],
    uniform: Collection[str] = (),
    number: str = "double",
) -> Compiled | SingleCalls | None:
    """Machine code for single calls: all that `load_or_compile` makes, if it has been made.

    Otherwise `entry` is compiled by itself, which takes a third of the time; a batch later needs the whole. Returns
    None for programs that this does not suit: those computed by columns, and those with an empty array.
    """
    target = host().of(number)
    with LLVM_LOCK:
        name, alone = (jit.key(asked, target) for asked in ((identity, tuple(uniform)), (identity, "single calls")))
        if name is not None and (name in _LOADED or cache.get(name) is not None):
            return load_or_compile(identity, make, uniform, number)
        made, start, origin = _LOADED.get(alone) if alone else None, time.perf_counter(), "this process"
        if made is None:
            kept = cache.get(alone)
            origin = "the cache on disk" if kept is not None else "the compiler"
            if kept is None:
                program = make()
                if isinstance(program, ColumnProgram) or _empty(program):
                    return None
                kept = program.name.encode() + b"\n" + object_code(program, target, single_calls=True)
                cache.put(alone, kept)
            called, _, machine = kept.partition(b"\n")
            made = SingleCalls(called.decode(), jit.load(machine, ("entry",), target))
            if alone:
                _LOADED[alone] = made
        LOG.debug("%s, single calls: from %s in %.2f ms", made.name, origin, 1e3 * (time.perf_counter() - start))
        return made


def _empty(program: Program | ColumnProgram) -> bool:
    """Whether some array has no numbers: a gufunc has no core dimensions of length 0."""
    return any(0 in shape for side in shapes(program) for _, shape in side)


def _packed(program: Program | ColumnProgram, target: Target, uniform: Collection[str]) -> bytes:
    """A header line with names and shapes, then the object code."""
    ins, outs = shapes(program)
    head = json.dumps([program.name, ins, outs]).encode()
    return head + b"\n" + (b"" if _empty(program) else object_code(program, target, uniform))


def _unpacked(stored: bytes, target: Target) -> Compiled | None:
    head, _, code = stored.partition(b"\n")
    name, *sides = json.loads(head)
    inputs, outputs = (tuple((port, tuple(shape)) for port, shape in side) for side in sides)
    return load(name, inputs, outputs, code, target) if code else None


_LOADED: WeakValueDictionary[str, Any] = WeakValueDictionary()  # `Compiled` or `SingleCalls`

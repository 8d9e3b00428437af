"""Calls of kernels with keywords, without Python: machine code recognises a call like one that Python has resolved.

`kernel(q, axes="local")` and `kernel(q=q, qd=qd)` are calls of a kernel for these options with the arrays as positional
arguments. Python works that out once (`Kernel.__call__`) and has it remembered: how many arguments are positional, the
names of the others, their values, and the kernel. A later call with the same names in the same order, the very same
objects as options and arrays elsewhere goes on to that kernel directly. Names are interned strings and options are
constants at most places of a program, so that comparing addresses finds them; any other call goes to Python as before.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from armdyn.codegen import fastcall, jit
from armdyn.codegen.fastcall import ARRAY, KERNEL, NOT_TAKEN, OFFSET_FLAG, TUPLE
from armdyn.codegen.llvm.ir import VectorType, Writer, function
from armdyn.codegen.target import host

MOST_NAMES, MOST_CALLS = 4, 8  # of a remembered call; of a kernel
# A record, in words: positional arguments (END after the last record), keywords, arguments to pass on, the kernel, the
# names, the values (0 where an array is passed on).
POSITIONAL, KEYWORDS, PASSED, TARGET, NAMES = range(5)
VALUES, WORDS = NAMES + MOST_NAMES, NAMES + 2 * MOST_NAMES
END = -1
CONSTANTS = (bool, str, type(None))


class Remembered:
    """The remembered calls of a kernel: a table for machine code, which keeps alive what it points to."""

    def __init__(self) -> None:
        self.table: Any = (ctypes.c_int64 * (WORDS * MOST_CALLS + 1))(END)
        self._kept: list[Any] = []
        self._keys: list[Any] = []
        self._next = 0

    @property
    def address(self) -> int:
        """Where the table is."""
        return ctypes.addressof(self.table)

    def add(self, positional: int, keywords: dict[str, Any], arrays: Sequence[str], target: Any) -> None:
        """Remember a call, if it can be: `arrays` are the names of the arguments that `target` takes after those.

        They come first among the keywords and in this order, so that the arguments lie as `target` expects them.
        """
        names = [sys.intern(name) for name in keywords]
        options = list(keywords.values())[len(arrays) :]
        if len(names) > MOST_NAMES or names[: len(arrays)] != list(arrays) or not all(map(_constant, options)):
            return
        if not all(type(keywords[name]) is np.ndarray for name in arrays):
            return
        key = positional, tuple(names), tuple(map(id, options))
        if key in self._keys:
            return
        place = self._next % MOST_CALLS
        self._next += 1
        record = [positional, len(names), positional + len(arrays), id(target)]
        record += [*map(id, names), *[0] * (MOST_NAMES - len(names))]
        record += [*[0] * len(arrays), *map(id, options)]
        first = WORDS * place
        kept = (names, options, target)
        if place < len(self._kept):
            replaced, self._kept[place], self._keys[place] = self._kept[place], kept, key
        else:
            replaced = None
            self._kept.append(kept)
            self._keys.append(key)
            self.table[first + WORDS] = END
        self.table[first : first + len(record)] = record
        del replaced  # only now, as the table pointed to it


def _constant(option: Any) -> bool:
    """Whether an option is an immutable constant, which its address stands for as long as it is kept."""
    return type(option) in CONSTANTS or (type(option) is tuple and all(type(x) is str for x in option))


def remember(kernel: Any, positional: int, keywords: dict[str, Any], arrays: Sequence[str], target: Any) -> None:
    """Let machine code take calls of `kernel` like this one; it may never have been called without keywords."""
    if not fastcall.supported(type(kernel)):
        return
    calls = kernel.__dict__.get("_remembered")
    if calls is None:
        calls = kernel.__dict__.setdefault("_remembered", Remembered())
        field = ctypes.c_void_p.from_address(id(kernel) + KERNEL["remembered"])
        code = _code()
        if not ctypes.c_void_p.from_address(id(kernel) + KERNEL["vectorcall"]).value:
            fastcall.attach(kernel, code.address("dispatch"), code)
        field.value = calls.address
    calls.add(positional, keywords, arrays, target)


@lru_cache(maxsize=1)
def _code() -> jit.Code:
    """The machine code of this module, which stays in the process."""
    target = host()
    text = "\n".join([f'target triple = "{target.triple}"\n', _remembered(), _dispatch()])
    stored = jit.stored(jit.key("calls with keywords", target), lambda: jit.object_code(text, target))
    code = jit.load(stored, ("remembered", "dispatch"), target)
    fastcall.context()[fastcall.CONTEXT.index("remembered")] = code.address("remembered")
    return code


def _dispatch() -> str:
    """`dispatch(self, args, nargsf, kwnames)`: the vectorcall function of a kernel that is not compiled yet."""
    w = Writer(VectorType(1))
    w.label("entry")
    w.do(f"%context = load ptr, ptr {w.at('%self', KERNEL['context'])}")
    w.do(f"%count = and i64 %nargsf, {OFFSET_FLAG - 1}")
    w.do(f"br i1 {w.let('icmp eq ptr %kwnames, null')}, label %general, label %keywords")
    w.label("keywords")
    w.do(f"%calls = load ptr, ptr {w.at('%self', KERNEL['remembered'])}")
    w.do(f"br i1 {w.let('icmp eq ptr %calls, null')}, label %general, label %search")
    w.label("search")
    w.do("%called = call ptr @remembered(ptr %calls, ptr %args, i64 %count, ptr %kwnames, ptr %context)")
    w.do(f"br i1 {w.let(f'icmp eq ptr %called, {NOT_TAKEN}')}, label %general, label %done")
    w.label("done")
    w.do("ret ptr %called")
    w.label("general")
    fastcall.general(w)
    return function("ptr @dispatch(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames)", w.lines)


def _remembered() -> str:
    """`remembered(table, args, count, kwnames, context)`: the result of a remembered call, else `NOT_TAKEN`."""
    w = Writer(VectorType(1))
    w.label("some")
    w.do(f"%PyArray_Type = load ptr, ptr {fastcall.context_entry(w, 'PyArray_Type')}")
    w.do(f"%number = load i64, ptr {w.at('%kwnames', TUPLE['size'])}")
    w.do(f"%names = getelementptr i8, ptr %kwnames, i64 {TUPLE['first']}")
    w.do(f"%given = getelementptr i8, ptr %args, i64 {w.let('mul i64 %count, 8')}")
    w.do("br label %record")
    w.label("record")
    w.do("%at = phi ptr [%table, %some], [%after, %other]")
    w.do("%positional = load i64, ptr %at")
    w.do(f"br i1 {w.let(f'icmp eq i64 %positional, {END}')}, label %none, label %compare")
    w.label("compare")
    keywords = w.let(f"load i64, ptr {w.at('%at', 8 * KEYWORDS)}")
    alike = [w.let(f"icmp eq i64 {a}, {b}") for a, b in (("%positional", "%count"), (keywords, "%number"))]
    w.do(f"br i1 {w.let(f'and i1 {alike[0]}, {alike[1]}')}, label %keyword, label %other")
    w.label("keyword")
    w.do("%k = phi i64 [0, %compare], [%more, %same]")
    w.do(f"br i1 {w.let('icmp eq i64 %k, %number')}, label %found, label %name")
    w.label("name")
    offset = w.let("mul i64 %k, 8")
    own = w.at("%at", offset)
    pairs = [(w.at("%names", offset), w.at(own, 8 * NAMES)), (w.at("%given", offset), w.at(own, 8 * VALUES))]
    name, value = ([w.let(f"load ptr, ptr {place}") for place in pair] for pair in pairs)
    w.do(f"br i1 {w.let(f'icmp eq ptr {name[0]}, {name[1]}')}, label %value, label %other")
    w.label("value")
    w.do(f"br i1 {w.let(f'icmp eq ptr {value[1]}, null')}, label %array, label %option")
    w.label("array")
    kind = w.let(f"load ptr, ptr {w.at(value[0], ARRAY['type'])}")
    w.do(f"br i1 {w.let(f'icmp eq ptr {kind}, %PyArray_Type')}, label %same, label %other")
    w.label("option")
    w.do(f"br i1 {w.let(f'icmp eq ptr {value[0]}, {value[1]}')}, label %same, label %other")
    w.label("same")
    w.do("%more = add i64 %k, 1")
    w.do("br label %keyword")
    w.label("other")
    w.do(f"%after = getelementptr i8, ptr %at, i64 {8 * WORDS}")
    w.do("br label %record")
    w.label("found")
    target = w.let(f"load ptr, ptr {w.at('%at', 8 * TARGET)}")
    passed = w.let(f"load i64, ptr {w.at('%at', 8 * PASSED)}")
    arguments = f"ptr {target}, ptr %args, i64 {passed}, ptr null"
    w.do(f"ret ptr {fastcall.call(w, 'ptr', 'PyObject_Vectorcall', arguments)}")
    w.label("none")
    w.do(f"ret ptr {NOT_TAKEN}")
    return function("ptr @remembered(ptr %table, ptr %args, i64 %count, ptr %kwnames, ptr %context)", w.lines)

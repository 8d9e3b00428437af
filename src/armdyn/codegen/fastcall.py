"""Machine code called from Python at little cost: NumPy's gufuncs and CPython's vectorcall, both sides of the ABI.

A generalised ufunc runs machine code through NumPy's C API and ctypes. NumPy publishes its C functions as tables of
pointers in two capsules; the indices in the tables are part of its ABI and do not change within a major version.

The vectorcall function of a kernel takes one configuration, or a small batch, per call. Its code is written here, too:
`entry` takes one configuration in plain NumPy arrays (float64 in native byte order, contiguous or a vector with any
stride, of exactly the right shape), broadcasts their numbers to all lanes, runs the program and returns new arrays.
What it does not take, the function `batch` may: contiguous arrays with the same batch axes, or none, and a contiguous
array as `out`, on which it runs NumPy's inner loop. All other calls go to the kernel's own `__call__`; so do large
batches, which release the interpreter's lock there. Fields of objects are read at the offsets of `ARRAY`, `DTYPE`,
`TUPLE` and `KERNEL`; functions of Python and NumPy are called through the context.

`base()` is the base class of kernels. If the structures of CPython and NumPy have these offsets (`supported` checks it
once, on live objects), `attach` gives an instance the address of its vectorcall function. Otherwise, and before
`attach`, calls go to the class's Python `__call__`. ARMDYN_FASTCALL=off disables the fast path.
"""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import sys
import sysconfig
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from armdyn.codegen import tuning
from armdyn.codegen.llvm.ir import CACHE_LINE, LIBRARY, VectorType, Writer, framed, function
from armdyn.codegen.llvm.loop import CORE_DIMENSIONS, Operand

# The functions and objects in the context, in the order of its table.
CONTEXT = (
    *LIBRARY,
    "PyArray_New",
    "PyArray_Scalar",
    "PyArray_Type",
    "double",  # NumPy's dtype
    "PyObject_GetAttr",
    "PyObject_Vectorcall",
    "Py_DecRef",
    "Py_IncRef",
    "PyTuple_New",
    "PyTuple_SetItem",
    "__call__",  # the names, as Python strings
    "out",
    "float",  # NumPy's dtype
    "remembered",  # see `codegen.keywords`; null until a call is remembered
)
# Offsets of the fields of an array (NumPy's PyArrayObject_fields), of its dtype, of a tuple and of ours in a kernel.
ARRAY = {"type": 8, "data": 16, "nd": 24, "dimensions": 32, "strides": 40, "descr": 56, "flags": 64}
DTYPE = {"byte_order": 26, "number": 28}
TUPLE = {"size": 16, "first": 24}
KERNEL = {"vectorcall": 16, "context": 24, "remembered": 32}
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
NATIVE = ord("=")  # a dtype's byte order
OFFSET_FLAG = 1 << 63  # PY_VECTORCALL_ARGUMENTS_OFFSET
TYPES = {"double": 12, "float": 11}  # NPY_DOUBLE, NPY_FLOAT
MOST_BATCH_AXES = 8  # of a batch that `batch` takes
NOT_TAKEN = "inttoptr (i64 1 to ptr)"  # what `batch` returns for arguments that are not its


def entry(
    kind: VectorType,
    body: str,
    arrays: Sequence[Operand],
    in_slots: int,
    out_slots: int,
    nodes: int | None,
    work: Operand | None = None,
) -> str:
    """`entry(self, args, nargsf, kwnames)`: CPython's vectorcall, through the function `body` of vectors of this type.

    `nodes` is the length of the program, which says up to which size a batch is small; with None it takes no batches.
    With `work` (see `columns`), the function `finish` computes the results from the work array.
    """
    inputs = [a for a in arrays if not a.written]
    w = Writer(kind)
    w.label("entry")
    w.stack_array("in", in_slots)
    w.stack_array("out", out_slots)
    w.do(f"%context = load ptr, ptr {w.at('%self', KERNEL['context'])}")
    for name in ("PyArray_Type", w.number):
        w.do(f"%{name} = load ptr, ptr {context_entry(w, name)}")
    w.do(f"%count = and i64 %nargsf, {OFFSET_FLAG - 1}")
    _unless(w, "icmp eq ptr %kwnames, null", "no_keywords", "keywords")
    _unless(w, f"icmp eq i64 %count, {len(inputs)}", "all_there")
    for a in inputs:
        _check(w, a)
    for a in inputs:
        _load(w, a)
    w.do(f"call void @{body}(ptr %in, ptr %out, ptr %context)")
    if work is not None:
        w.stack_array("work", -(-work.size // w.lanes), CACHE_LINE)
        w.do(f"call void @lane(ptr %work, ptr %out, ptr @slots{work.index}, i64 {work.size})")
    _results(w, [a for a in arrays if a.written], work is not None)
    w.label("keywords")
    calls = w.let(f"load ptr, ptr {w.at('%self', KERNEL['remembered'])}")
    _unless(w, f"icmp ne ptr {calls}, null", "some_remembered", "not_remembered")
    called = call(w, "ptr", "remembered", f"ptr {calls}, ptr %args, i64 %count, ptr %kwnames, ptr %context")
    w.do(f"br i1 {w.let(f'icmp eq ptr {called}, {NOT_TAKEN}')}, label %not_remembered, label %called")
    w.label("called")
    w.do(f"ret ptr {called}")
    w.label("not_remembered")
    _unless(w, f"icmp eq i64 %count, {len(inputs)}", "other")
    if nodes is not None:
        batched = w.let("call ptr @batch(ptr %args, ptr %kwnames, ptr %context)")
        w.do(f"br i1 {w.let(f'icmp eq ptr {batched}, {NOT_TAKEN}')}, label %general, label %batched")
        w.label("batched")
        w.do(f"ret ptr {batched}")
    else:
        w.do("br label %general")
    w.label("general")
    general(w)
    batch = _batch(kind, arrays, nodes) if nodes is not None else ""
    at = KERNEL["context"]
    loads = (f"%context_at = getelementptr i8, ptr %self, i64 {at}", "%context_here = load ptr, ptr %context_at")
    return batch + framed("ptr @entry(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames)", w, "%context_here", loads)


def context_entry(w: Writer, name: str) -> str:
    """The address in an entry of the context's table."""
    return w.at("%context", 8 * CONTEXT.index(name))


def call(w: Writer, result: str, name: str, arguments: str) -> str:
    """Call a function of Python or NumPy."""
    address = w.let(f"load ptr, ptr {context_entry(w, name)}")
    if result == "void":
        w.do(f"call void {address}({arguments})")
        return ""
    return w.let(f"call {result} {address}({arguments})")


def _unless(w: Writer, condition: str, label: str, otherwise: str = "general") -> None:
    """Branch to the label `otherwise` unless the condition holds."""
    w.do(f"br i1 {w.let(condition)}, label %{label}, label %{otherwise}")
    w.label(label)


def _field(w: Writer, array: str, name: str, kind: str) -> str:
    """A field of an array."""
    return w.let(f"load {kind}, ptr {w.at(array, ARRAY[name])}")


def _plain(w: Writer, array: str, label: str, flags: int, otherwise: str) -> None:
    """Branch to `otherwise` unless this is an `ndarray` of native numbers of the right type with these flags."""
    _unless(w, f"icmp eq ptr {_field(w, array, 'type', 'ptr')}, %PyArray_Type", f"is_array{label}", otherwise)
    dtype = _field(w, array, "descr", "ptr")
    number = w.let(f"load i32, ptr {w.at(dtype, DTYPE['number'])}")
    _unless(w, f"icmp eq i32 {number}, {TYPES[w.number]}", f"is_number{label}", otherwise)
    order = w.let(f"load i8, ptr {w.at(dtype, DTYPE['byte_order'])}")
    _unless(w, f"icmp eq i8 {order}, {NATIVE}", f"is_native{label}", otherwise)
    has = w.let(f"and i32 {_field(w, array, 'flags', 'i32')}, {flags}")
    _unless(w, f"icmp eq i32 {has}, {flags}", f"plain{label}", otherwise)


def _check(w: Writer, a: Operand) -> None:
    """Branch to `other` unless this argument is a plain array of one configuration; a vector may have any stride."""
    i = a.index
    w.do(f"%array{i} = load ptr, ptr {w.at('%args', 8 * i)}")
    _plain(w, f"%array{i}", str(i), ALIGNED if len(a.shape) == 1 else CONTIGUOUS | ALIGNED, "other")
    _unless(w, f"icmp eq i32 {_field(w, f'%array{i}', 'nd', 'i32')}, {len(a.shape)}", f"rank{i}", "other")
    dimensions = _field(w, f"%array{i}", "dimensions", "ptr") if a.shape else ""
    for axis, size in enumerate(a.shape):
        length = w.let(f"load i64, ptr {w.at(dimensions, 8 * axis)}")
        _unless(w, f"icmp eq i64 {length}, {size}", f"axis{i}_{axis}", "other")


def _load(w: Writer, a: Operand) -> None:
    """Broadcast every number to all lanes of its slot."""
    place = _field(w, f"%array{a.index}", "data", "ptr")
    stride = (
        w.let(f"load i64, ptr {_field(w, f'%array{a.index}', 'strides', 'ptr')}") if len(a.shape) == 1 else f"{w.size}"
    )
    for k, slot in enumerate(a.slots):
        if k:
            place = w.at(place, stride)
        x = w.let(f"load {w.number}, ptr {place}, align {w.size}")
        w.store(w.broadcast(x), "%in", slot)


def _results(w: Writer, outputs: Sequence[Operand], by_columns: bool) -> None:
    """New arrays with the numbers of the first lane, or filled by `finish`; a tuple if there are several."""
    data: list[str] = []
    if len(outputs) == 1:
        returned = _result(w, outputs[0], "ret ptr null", data if by_columns else None)
    else:
        returned = call(w, "ptr", "PyTuple_New", f"i64 {len(outputs)}")
        _or_else(w, returned, "tuple", "ret ptr null")
        for place, a in enumerate(outputs):
            give_up = f"call void %decref{a.index}(ptr {returned})\n  ret ptr null"
            w.lines.append(f"  %decref{a.index} = load ptr, ptr {context_entry(w, 'Py_DecRef')}")
            result = _result(w, a, give_up, data if by_columns else None)
            call(w, "i32", "PyTuple_SetItem", f"ptr {returned}, i64 {place}, ptr {result}")
    if by_columns:
        w.do(f"call void @finish(ptr %work, {', '.join(f'ptr {place}' for place in data)})")
    w.do(f"ret ptr {returned}")


def _or_else(w: Writer, value: str, label: str, give_up: str) -> None:
    """Branch to `give_up` if `value` is null: Python's error is set already."""
    w.do(f"br i1 {w.let(f'icmp eq ptr {value}, null')}, label %no_{label}, label %{label}")
    w.label(f"no_{label}")
    w.do(give_up)
    w.label(label)


def _result(w: Writer, a: Operand, give_up: str, later: list[str] | None) -> str:
    """A new array with the first lane's numbers; with `later`, it is not filled, and its data pointer is appended."""
    if not a.shape:
        value = w.at("%out", w.bytes * a.slots[0])
        return call(w, "ptr", "PyArray_Scalar", f"ptr {value}, ptr %{w.number}, ptr null")
    rank = len(a.shape)
    sizes = w.let(f"getelementptr i8, ptr @shape{a.index}, i64 0")
    array = _new_array(w, str(rank), sizes)
    _or_else(w, array, f"made{a.index}", give_up)
    data = w.let(f"load ptr, ptr {w.at(array, ARRAY['data'])}")
    if later is not None:
        later.append(data)
        return array
    if a.size > tuning.UNROLLED_COPY:
        w.do(f"call void @lane(ptr {data}, ptr %out, ptr @slots{a.index}, i64 {a.size})")
        return array
    for k, slot in enumerate(a.slots):
        x = w.let(f"load {w.number}, ptr {w.at('%out', w.bytes * slot)}, align {w.size}")
        w.do(f"store {w.number} {x}, ptr {w.at(data, w.size * k)}, align {w.size}")
    return array


def _new_array(w: Writer, rank: str, sizes: str) -> str:
    """A new contiguous array."""
    rest = f"i32 {TYPES[w.number]}, ptr null, ptr null, i32 0, i32 0, ptr null"
    return call(w, "ptr", "PyArray_New", f"ptr %PyArray_Type, i32 {rank}, ptr {sizes}, {rest}")


def general(w: Writer) -> None:
    """Forward the call to `self.__call__` with all its arguments."""
    name = w.let(f"load ptr, ptr {context_entry(w, '__call__')}")
    method = call(w, "ptr", "PyObject_GetAttr", f"ptr %self, ptr {name}")
    _or_else(w, method, "method", "ret ptr null")
    result = call(w, "ptr", "PyObject_Vectorcall", f"ptr {method}, ptr %args, i64 %nargsf, ptr %kwnames")
    call(w, "void", "Py_DecRef", f"ptr {method}")
    w.do(f"ret ptr {result}")


def shape_tables(arrays: Sequence[Operand]) -> str:
    """The shapes of the results."""
    lines = []
    for a in (a for a in arrays if a.written and a.shape):
        sizes = ", ".join(f"i64 {size}" for size in a.shape)
        lines.append(f"@shape{a.index} = internal constant [{len(a.shape)} x i64] [{sizes}]")
    return "\n".join(lines) + "\n"


def _batch(kind: VectorType, arrays: Sequence[Operand], nodes: int) -> str:
    """`batch(args, kwnames, context)`: the inner loop on a small batch; `NOT_TAKEN` for other arguments.

    Inputs have the same batch axes, or none (then they are the same for all configurations). The only keyword may be
    `out`, a contiguous array that shares no memory with an input.
    """
    inputs, outputs = ([a for a in arrays if a.written == written] for written in (False, True))
    w = Writer(kind)
    w.label("entry")
    w.do(f"%pointers = alloca [{len(arrays)} x ptr]")
    w.do(f"%sizes = alloca [{MOST_BATCH_AXES + CORE_DIMENSIONS} x i64]")
    w.do("%number = alloca i64")
    w.do(f"%steps = alloca [{len(arrays) + sum(len(a.shape) for a in arrays)} x i64]")
    for name in ("PyArray_Type", w.number):
        w.do(f"%{name} = load ptr, ptr {context_entry(w, name)}")
    axes, where = "0", "%sizes"
    for a in inputs:
        axes, where = _batch_axes(w, a, axes, where)
    _unless(w, f"icmp ule i64 {axes}, {MOST_BATCH_AXES}", "few_axes", "not_taken")
    count = _batch_count(w, axes, where)
    for a in inputs:
        _same_axes(w, a, axes, where)
    for place, a in enumerate(arrays):
        size = w.size * a.size
        step = f"{size}" if a.written else w.let(f"select i1 %fixed{a.index}, i64 0, i64 {size}")
        w.do(f"store i64 {step}, ptr {w.at('%steps', 8 * place)}")
        for axis in range(len(a.shape)):
            stride = w.size * math.prod(a.shape[axis + 1 :])
            w.do(f"store i64 {stride}, ptr {w.at('%steps', 8 * (a.first_stride + axis))}")
    w.do(f"store i64 {count}, ptr %number")
    most = max(1, tuning.SMALL_BATCH // max(nodes, 1))
    _unless(w, f"icmp ule i64 {count}, {most}", "small", "not_taken")
    w.do("%given = icmp ne ptr %kwnames, null")
    w.do("br i1 %given, label %keywords, label %new")
    w.label("new")
    w.do(f"br i1 {w.let(f'icmp eq i64 {axes}, 0')}, label %not_taken, label %allocate")
    w.label("allocate")
    _new_results(w, outputs, axes)
    w.label("keywords")
    _given_result(w, inputs, outputs, axes, where, count)
    w.label("not_taken")
    w.do(f"ret ptr {NOT_TAKEN}")
    return function("internal ptr @batch(ptr %args, ptr %kwnames, ptr %context) noinline", w.lines)


def _batch_axes(w: Writer, a: Operand, axes: str, where: str) -> tuple[str, str]:
    """Check a contiguous input; the most batch axes so far, and where their lengths stand."""
    i = a.index
    w.do(f"%array{i} = load ptr, ptr {w.at('%args', 8 * i)}")
    _plain(w, f"%array{i}", str(i), CONTIGUOUS | ALIGNED, "not_taken")
    rank = w.let(f"zext i32 {_field(w, f'%array{i}', 'nd', 'i32')} to i64")
    _unless(w, f"icmp uge i64 {rank}, {len(a.shape)}", f"rank{i}", "not_taken")
    w.do(f"%axes{i} = sub i64 {rank}, {len(a.shape)}")
    w.do(f"%fixed{i} = icmp eq i64 %axes{i}, 0")
    w.do(f"%dimensions{i} = load ptr, ptr {w.at(f'%array{i}', ARRAY['dimensions'])}")
    core = w.at(f"%dimensions{i}", w.let(f"mul i64 %axes{i}, 8"))
    for axis, size in enumerate(a.shape):
        length = w.let(f"load i64, ptr {w.at(core, 8 * axis)}")
        _unless(w, f"icmp eq i64 {length}, {size}", f"axis{i}_{axis}", "not_taken")
    w.do(f"store ptr {_field(w, f'%array{i}', 'data', 'ptr')}, ptr {w.at('%pointers', 8 * i)}")
    more = w.let(f"icmp ugt i64 %axes{i}, {axes}")
    most = w.let(f"select i1 {more}, i64 %axes{i}, i64 {axes}")
    return most, w.let(f"select i1 {more}, ptr %dimensions{i}, ptr {where}")


def _batch_count(w: Writer, axes: str, where: str) -> str:
    """The number of configurations, at least 1; the lengths of the batch axes are copied to %sizes."""
    w.do("br label %product")
    w.label("product")
    w.do("%k = phi i64 [0, %few_axes], [%after_k, %factor]")
    w.do("%count = phi i64 [1, %few_axes], [%times, %factor]")
    w.do(f"br i1 {w.let(f'icmp ult i64 %k, {axes}')}, label %factor, label %counted")
    w.label("factor")
    offset = w.let("mul i64 %k, 8")
    length = w.let(f"load i64, ptr {w.at(where, offset)}")
    w.do(f"store i64 {length}, ptr {w.at('%sizes', offset)}")
    w.do(f"%times = mul i64 %count, {length}")
    w.do("%after_k = add i64 %k, 1")
    w.do("br label %product")
    w.label("counted")
    _unless(w, "icmp sgt i64 %count, 0", "some", "not_taken")
    return "%count"


def _same_axes(w: Writer, a: Operand, axes: str, where: str) -> None:
    """Branch to `not_taken` unless the input has no batch axes or exactly these."""
    i = a.index
    w.do(f"br i1 %fixed{i}, label %compared{i}, label %several{i}")
    w.label(f"several{i}")
    _unless(w, f"icmp eq i64 %axes{i}, {axes}", f"as_many{i}", "not_taken")
    _compare(w, f"{i}", f"%dimensions{i}", where, axes, f"as_many{i}", f"compared{i}")


def _compare(w: Writer, name: str, first: str, second: str, count: str, origin: str, equal: str) -> None:
    """Branch to the label `equal` if two tables of lengths agree, and to `not_taken` if not."""
    w.do(f"br label %next{name}")
    w.label(f"next{name}")
    w.do(f"%k{name} = phi i64 [0, %{origin}], [%j{name}, %same{name}]")
    w.do(f"br i1 {w.let(f'icmp ult i64 %k{name}, {count}')}, label %both{name}, label %{equal}")
    w.label(f"both{name}")
    offset = w.let(f"mul i64 %k{name}, 8")
    lengths = [w.let(f"load i64, ptr {w.at(table, offset)}") for table in (first, second)]
    w.do(f"%j{name} = add i64 %k{name}, 1")
    _unless(w, f"icmp eq i64 {lengths[0]}, {lengths[1]}", f"same{name}", "not_taken")
    w.do(f"br label %next{name}")
    w.label(equal)


def _new_results(w: Writer, outputs: Sequence[Operand], axes: str) -> None:
    """Run the inner loop into new arrays and return them; a tuple if there are several."""
    several = len(outputs) > 1
    returned = call(w, "ptr", "PyTuple_New", f"i64 {len(outputs)}") if several else ""
    if several:
        _or_else(w, returned, "tuple", "ret ptr null")
    end = w.at("%sizes", w.let(f"mul i64 {axes}, 8"))
    for place, a in enumerate(outputs):
        for axis, size in enumerate(a.shape):
            w.do(f"store i64 {size}, ptr {w.at(end, 8 * axis)}")
        rank = w.let(f"trunc i64 {w.let(f'add i64 {axes}, {len(a.shape)}')} to i32")
        array = _new_array(w, rank, "%sizes")
        if several:
            w.do(f"%decref{a.index} = load ptr, ptr {context_entry(w, 'Py_DecRef')}")
        give_up = f"call void %decref{a.index}(ptr {returned})\n  ret ptr null" if several else "ret ptr null"
        _or_else(w, array, f"made{a.index}", give_up)
        w.do(f"store ptr {_field(w, array, 'data', 'ptr')}, ptr {w.at('%pointers', 8 * a.index)}")
        if several:
            call(w, "i32", "PyTuple_SetItem", f"ptr {returned}, i64 {place}, ptr {array}")
        else:
            returned = array
    w.do("call void @loop(ptr %pointers, ptr %number, ptr %steps, ptr %context)")
    w.do(f"ret ptr {returned}")


def _given_result(
    w: Writer, inputs: Sequence[Operand], outputs: Sequence[Operand], axes: str, where: str, count: str
) -> None:
    """Run the inner loop into the array given as `out`, the only keyword, and return it."""
    if len(outputs) > 1:
        w.do("br label %not_taken")
        return
    a = outputs[0]
    names = w.let(f"load i64, ptr {w.at('%kwnames', TUPLE['size'])}")
    _unless(w, f"icmp eq i64 {names}, 1", "one_keyword", "not_taken")
    keyword = w.let(f"load ptr, ptr {w.at('%kwnames', TUPLE['first'])}")
    out = w.let(f"load ptr, ptr {context_entry(w, 'out')}")
    _unless(w, f"icmp eq ptr {keyword}, {out}", "is_out", "not_taken")
    array = w.let(f"load ptr, ptr {w.at('%args', 8 * len(inputs))}")
    _plain(w, array, str(a.index), CONTIGUOUS | ALIGNED | WRITEABLE, "not_taken")
    rank = w.let(f"zext i32 {_field(w, array, 'nd', 'i32')} to i64")
    _unless(w, f"icmp eq i64 {rank}, {w.let(f'add i64 {axes}, {len(a.shape)}')}", "rank_out", "not_taken")
    dimensions = _field(w, array, "dimensions", "ptr")
    _compare(w, "_out", dimensions, where, axes, "rank_out", "compared_out")
    core = w.at(dimensions, w.let(f"mul i64 {axes}, 8"))
    for axis, size in enumerate(a.shape):
        length = w.let(f"load i64, ptr {w.at(core, 8 * axis)}")
        _unless(w, f"icmp eq i64 {length}, {size}", f"axis_out_{axis}", "not_taken")
    first = _field(w, array, "data", "ptr")
    stop = w.at(first, w.let(f"mul i64 {count}, {w.size * a.size}"))
    for b in inputs:
        begin = w.let(f"load ptr, ptr {w.at('%pointers', 8 * b.index)}")
        rows = w.let(f"select i1 %fixed{b.index}, i64 1, i64 {count}")
        end = w.at(begin, w.let(f"mul i64 {rows}, {w.size * b.size}"))
        before = w.let(f"icmp ule ptr {end}, {first}")
        _unless(w, f"or i1 {before}, {w.let(f'icmp ule ptr {stop}, {begin}')}", f"apart{b.index}", "not_taken")
    w.do(f"store ptr {first}, ptr {w.at('%pointers', 8 * a.index)}")
    w.do("call void @loop(ptr %pointers, ptr %number, ptr %steps, ptr %context)")
    call(w, "void", "Py_IncRef", f"ptr {array}")
    w.do(f"ret ptr {array}")


UFUNC_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31  # index in _UFUNC_API
NO_IDENTITY = -1
# Offsets of the fields of a ufunc (NumPy's PyUFuncObject).
UFUNC = {"nin": 16, "nout": 20, "nargs": 24, "functions": 32, "data": 40, "ntypes": 48}
UFUNC |= {"ptr": 80, "obj": 88, "userloops": 96}

_UFUNCS: list[Any] = []  # keeps alive what ufuncs point to but cannot own


@lru_cache(maxsize=2)
def api(capsule: str) -> Any:
    """One of NumPy's tables of C functions, as an array of addresses."""
    umath = import_module("numpy._core._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = get(getattr(umath, capsule), None)
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))


@lru_cache(maxsize=1)
def context() -> Any:
    """The context that machine code gets: addresses of functions and objects of this process, as in `CONTEXT`."""
    library = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    numpy_places = {"PyArray_Type": 2, "PyArray_Scalar": 60, "PyArray_New": 93}
    objects = {
        "double": np.dtype(np.float64),
        "float": np.dtype(np.float32),
        "__call__": sys.intern("__call__"),
        "out": sys.intern("out"),
    }

    def address(name: str) -> int | None:
        if name in numpy_places:
            place: int = api("_ARRAY_API")[numpy_places[name]]
            return place
        if name in objects:
            return id(objects[name])
        if name == "remembered":
            return None
        function = getattr(library if name in LIBRARY else ctypes.pythonapi, name)
        return ctypes.cast(function, ctypes.c_void_p).value

    table = (ctypes.c_void_p * len(CONTEXT))(*map(address, CONTEXT))
    _UFUNCS.append(objects)
    return table


def signature(inputs: Any, outputs: Any) -> str:
    """The gufunc signature for fixed shapes: `(6),(6)->(6,6)`."""
    sides = [",".join(f"({','.join(map(str, shape))})" for _, shape in side) for side in (inputs, outputs)]
    return "->".join(sides)


def gufunc(name: str, inputs: Any, outputs: Any, loop: int, owner: object, number: str = "double") -> Any:
    """A generalised ufunc of "double" or "float" with its inner loop at an address; it keeps `owner` alive."""
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.c_void_p,  # loops
        ctypes.c_void_p,  # data
        ctypes.c_char_p,  # types
        ctypes.c_int,  # number of loops
        ctypes.c_int,  # inputs
        ctypes.c_int,  # outputs
        ctypes.c_int,  # identity
        ctypes.c_char_p,  # name
        ctypes.c_char_p,  # doc
        ctypes.c_int,  # unused
        ctypes.c_char_p,  # signature
    )(api("_UFUNC_API")[UFUNC_FROM_FUNC_AND_DATA_AND_SIGNATURE])
    count = len(inputs) + len(outputs)
    loops = (ctypes.c_void_p * 1)(loop)
    data = (ctypes.c_void_p * 1)(ctypes.addressof(context()))
    types, label, doc = bytes([TYPES[number]] * count), name.encode(), b""
    text = signature(inputs, outputs).encode()
    ufunc = make(loops, data, types, 1, len(inputs), len(outputs), NO_IDENTITY, label, doc, 0, text)
    kept = (owner, loops, data, types, label, doc, text)
    if not _take_ownership(ufunc, kept, ctypes.addressof(loops), ctypes.addressof(data)):
        _UFUNCS.append(kept)
    return ufunc


def _take_ownership(ufunc: Any, kept: object, loops: int, data: int) -> bool:
    """Let a ufunc own what it points to, through its field `obj`, if its fields have the expected offsets."""

    def field(name: str, kind: Any = ctypes.c_void_p) -> Any:
        return kind.from_address(id(ufunc) + UFUNC[name])

    counts = [field(name, ctypes.c_int).value for name in ("nin", "nout", "nargs", "ntypes")]
    pointers = [field(name).value for name in ("functions", "data")]
    if counts != [ufunc.nin, ufunc.nout, ufunc.nargs, 1] or pointers != [loops, data]:
        return False
    if any(field(name).value is not None for name in ("ptr", "obj", "userloops")):
        return False
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    field("obj").value = id(kept)
    return True


BASIC_SIZE = 40  # the object's head, the addresses of the entry, the context and the remembered calls
TYPE = {"basic_size": 32, "vectorcall_offset": 56, "flags": 168}  # offsets in CPython's PyTypeObject
BASE_TYPE, HAVE_VECTORCALL = 1 << 10, 1 << 11
TP_MEMBERS, SSIZE, READ_ONLY = 72, 19, 1


class _Member(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basic_size", ctypes.c_int),
        ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    )


def _usual_cpython() -> bool:
    """Whether this is a usual build of CPython: 64 bits, with the global interpreter lock, not a debug build."""
    return (
        sys.implementation.name == "cpython"
        and sys.byteorder == "little"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not hasattr(sys, "gettotalrefcount")
        and os.environ.get("ARMDYN_FASTCALL", "") != "off"
    )


_SUPPORTED: dict[type, bool] = {}
_KEPT: list[Any] = []  # a type points to its specification without owning it


def _c_base() -> type:
    """A class made through CPython's C API, with room for two addresses in every instance."""
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", SSIZE, KERNEL["vectorcall"], READ_ONLY, None), _Member())
    slots = (_Slot * 2)(_Slot(TP_MEMBERS, ctypes.addressof(members)), _Slot())
    spec = _Spec(b"armdyn.codegen.fastcall.Fast", BASIC_SIZE, 0, BASE_TYPE, ctypes.addressof(slots))
    _KEPT.append((members, slots, spec))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Spec))(("PyType_FromSpec", ctypes.pythonapi))
    made: type = make(ctypes.byref(spec))
    return made


class _PythonBase:
    """The base class where the fast path is not available."""


def base() -> Any:
    """The base class of kernels."""
    return _c_base() if _usual_cpython() else _PythonBase


def _read(kind: Any, thing: object, offset: int) -> Any:
    return kind.from_address(id(thing) + offset).value


def _array_layout_holds() -> bool:
    """Whether arrays have their fields at the offsets in `ARRAY`, checked against NumPy on several arrays."""
    if api("_ARRAY_API")[2] != id(np.ndarray):  # PyArray_Type
        return False
    unaligned = np.frombuffer(b"\0" * 17, dtype=float, count=2, offset=1)
    unaligned.flags.writeable = False
    samples = [np.arange(6.0), np.ones((2, 3)), np.ones((4, 6))[:, ::2], np.ones(()), np.arange(5.0)[::-1], unaligned]
    for a in samples:
        strides, shape = (_read(ctypes.c_void_p, a, ARRAY[name]) for name in ("strides", "dimensions"))
        flags = (a.flags.c_contiguous, CONTIGUOUS), (a.flags.aligned, ALIGNED), (a.flags.writeable, WRITEABLE)
        if not (
            _read(ctypes.c_void_p, a, ARRAY["type"]) == id(np.ndarray)
            and _read(ctypes.c_void_p, a, ARRAY["data"]) == a.ctypes.data
            and _read(ctypes.c_int, a, ARRAY["nd"]) == a.ndim
            and _read(ctypes.c_void_p, a, ARRAY["descr"]) == id(a.dtype)
            and all((_read(ctypes.c_int, a, ARRAY["flags"]) & bit == bit) == has for has, bit in flags)
            and (a.ndim == 0 or tuple((ctypes.c_ssize_t * a.ndim).from_address(shape)) == a.shape)
            and (a.ndim == 0 or tuple((ctypes.c_ssize_t * a.ndim).from_address(strides)) == a.strides)
        ):
            return False
    return True


def _dtype_layout_holds() -> bool:
    """Whether dtypes say where `DTYPE` looks that they are floats or doubles in native byte order."""
    other = "<>"[sys.byteorder == "little"]
    kinds: list[Any] = [
        "f8",
        "d",
        f"{other}f8",
        "f4",
        f"{other}f4",
        "f2",
        "g",
        "i8",
        "c16",
        "O",
        "S8",
        "V8",
        [("x", "f8")],
    ]
    for dtype in (
        *[np.dtype(kind) for kind in kinds],
        pickle.loads(pickle.dumps(np.dtype("f8"))),
        np.dtype("f8", metadata={"a": 1}),
    ):
        number = _read(ctypes.c_int, dtype, DTYPE["number"])
        native = _read(ctypes.c_ubyte, dtype, DTYPE["byte_order"]) == NATIVE
        ours = dtype in (np.dtype(np.float64), np.dtype(np.float32)) and dtype.isnative
        if number != dtype.num or (number in TYPES.values() and native) != ours:
            return False
    return True


def _tuple_layout_holds() -> bool:
    """Whether the names of keywords, a tuple, have their number and the first of them where expected."""
    names = (sys.intern("out"), sys.intern("threads"))
    first = _read(ctypes.c_void_p, names, TUPLE["first"])
    return _read(ctypes.c_ssize_t, names, TUPLE["size"]) == len(names) and bool(first == id(names[0]))


def _type_layout_holds(cls: type) -> bool:
    """Whether types have their fields at the offsets written here, checked against Python itself."""
    return (
        _read(ctypes.c_ulong, cls, TYPE["flags"]) == cls.__flags__
        and _read(ctypes.c_ssize_t, cls, TYPE["basic_size"]) == cls.__basicsize__
        and cls.__basicsize__ >= BASIC_SIZE
        and _read(ctypes.c_ssize_t, cls, TYPE["vectorcall_offset"]) == KERNEL["vectorcall"]
    )


def supported(cls: type) -> bool:
    """Whether instances of `cls` can be called as machine code; checked once per class, which is then enabled."""
    if cls not in _SUPPORTED:
        layouts = (
            _array_layout_holds() and _dtype_layout_holds() and _tuple_layout_holds() if _usual_cpython() else False
        )
        _SUPPORTED[cls] = layouts and _type_layout_holds(cls)
        if _SUPPORTED[cls]:
            _enable_vectorcall(cls)
    return _SUPPORTED[cls]


def _enable_vectorcall(cls: type) -> None:
    """Set the flag that makes Python look for a vectorcall address in each instance."""
    flags = ctypes.c_ulong.from_address(id(cls) + TYPE["flags"])
    flags.value |= HAVE_VECTORCALL
    modified = ctypes.pythonapi.PyType_Modified
    modified.argtypes, modified.restype = [ctypes.py_object], None
    modified(cls)


def attach(kernel: Any, entry: int, owner: object) -> bool:
    """Make calls of `kernel` go to the machine code at `entry`; the kernel keeps the code's `owner` alive."""
    if not supported(type(kernel)):
        return False
    kernel.__dict__.setdefault("_owners", []).append(owner)  # several threads may attach
    ctypes.c_void_p.from_address(id(kernel) + KERNEL["context"]).value = ctypes.addressof(context())
    ctypes.c_void_p.from_address(id(kernel) + KERNEL["vectorcall"]).value = entry
    return True

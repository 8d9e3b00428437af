"""The vectorcall function of a `Kernel`: one configuration per call, directly from Python.

The fast path takes plain NumPy arrays (float64, native byte order, contiguous, of exactly the right shape), broadcasts
their numbers to all lanes, runs the program and returns new arrays. All other calls, and those with keywords, go to the
kernel's own `__call__`. Array fields are read at the offsets that `runtime.vectorcall` has checked; functions of Python
and NumPy are called through the context.
"""

from __future__ import annotations

from collections.abc import Sequence

from armdyn.codegen import tuning
from armdyn.codegen.llvm.blocks import Operand
from armdyn.codegen.llvm.ir import CACHE_LINE, Writer, function

# The functions and objects in the context, in the order of its table.
CONTEXT = (
    "sin",
    "cos",
    "PyArray_New",
    "PyArray_Scalar",
    "PyArray_Type",
    "double",  # NumPy's dtype
    "PyObject_GetAttr",
    "PyObject_Vectorcall",
    "Py_DecRef",
    "PyTuple_New",
    "PyTuple_SetItem",
    "__call__",  # the name, as a Python string
)
# Offsets of the fields of an array (NumPy's PyArrayObject_fields) and of ours in a kernel.
ARRAY = {"type": 8, "data": 16, "nd": 24, "dimensions": 32, "strides": 40, "descr": 56, "flags": 64}
KERNEL = {"vectorcall": 16, "context": 24}
PLAIN = 0x101  # C-contiguous and aligned
OFFSET_FLAG = 1 << 63  # PY_VECTORCALL_ARGUMENTS_OFFSET
DOUBLE = 12  # NPY_DOUBLE


def entry(
    lanes: int, body: str, arrays: Sequence[Operand], in_slots: int, out_slots: int, work: Operand | None = None
) -> str:
    """`entry(self, args, nargsf, kwnames)`: CPython's vectorcall, through the function `body` of `lanes` lanes.

    With `work` (see `columns`), the function `finish` computes the results from the work array.
    """
    inputs = [a for a in arrays if not a.written]
    w = Writer(lanes)
    w.label("entry")
    w.stack_array("in", in_slots)
    w.stack_array("out", out_slots)
    w.do(f"%context = load ptr, ptr {w.at('%self', KERNEL['context'])}")
    for name in ("PyArray_Type", "double"):
        w.do(f"%{name} = load ptr, ptr {_context(w, name)}")
    count = w.let(f"and i64 %nargsf, {OFFSET_FLAG - 1}")
    _unless(w, f"icmp eq i64 {count}, {len(inputs)}", "all_there")
    _unless(w, "icmp eq ptr %kwnames, null", "no_keywords")
    for a in inputs:
        _check(w, a)
    for a in inputs:
        _load(w, a)
    w.do(f"call void @{body}(ptr %in, ptr %out, ptr %context)")
    if work is not None:
        w.stack_array("work", -(-work.size // lanes), CACHE_LINE)
        w.do(f"call void @lane(ptr %work, ptr %out, ptr @slots{work.index}, i64 {work.size})")
    _results(w, [a for a in arrays if a.written], work is not None)
    w.label("general")
    _general(w)
    return function("ptr @entry(ptr %self, ptr %args, i64 %nargsf, ptr %kwnames)", w.lines)


def _context(w: Writer, name: str) -> str:
    """The address in an entry of the context's table."""
    return w.at("%context", 8 * CONTEXT.index(name))


def _call(w: Writer, result: str, name: str, arguments: str) -> str:
    """Call a function of Python or NumPy."""
    address = w.let(f"load ptr, ptr {_context(w, name)}")
    if result == "void":
        w.do(f"call void {address}({arguments})")
        return ""
    return w.let(f"call {result} {address}({arguments})")


def _unless(w: Writer, condition: str, label: str) -> None:
    """Branch to the general path unless the condition holds."""
    w.do(f"br i1 {w.let(condition)}, label %{label}, label %general")
    w.label(label)


def _check(w: Writer, a: Operand) -> None:
    """Branch to the general path unless this argument is a plain array of the right shape."""
    i = a.index
    w.do(f"%array{i} = load ptr, ptr {w.at('%args', 8 * i)}")

    def field(name: str, kind: str) -> str:
        return w.let(f"load {kind}, ptr {w.at(f'%array{i}', ARRAY[name])}")

    _unless(w, f"icmp eq ptr {field('type', 'ptr')}, %PyArray_Type", f"is_array{i}")
    _unless(w, f"icmp eq ptr {field('descr', 'ptr')}, %double", f"is_double{i}")
    _unless(w, f"icmp eq i32 {field('nd', 'i32')}, {len(a.shape)}", f"rank{i}")
    flags = w.let(f"and i32 {field('flags', 'i32')}, {PLAIN}")
    _unless(w, f"icmp eq i32 {flags}, {PLAIN}", f"plain{i}")
    dimensions = field("dimensions", "ptr") if a.shape else ""
    for axis, size in enumerate(a.shape):
        length = w.let(f"load i64, ptr {w.at(dimensions, 8 * axis)}")
        _unless(w, f"icmp eq i64 {length}, {size}", f"axis{i}_{axis}")


def _load(w: Writer, a: Operand) -> None:
    """Broadcast every number to all lanes of its slot."""
    data = w.let(f"load ptr, ptr {w.at(f'%array{a.index}', ARRAY['data'])}")
    for k, slot in enumerate(a.slots):
        x = w.let(f"load double, ptr {w.at(data, 8 * k)}, align 8")
        w.store(w.broadcast(x), "%in", slot)


def _results(w: Writer, outputs: Sequence[Operand], by_columns: bool) -> None:
    """New arrays with the numbers of the first lane, or filled by `finish`; a tuple if there are several."""
    data: list[str] = []
    if len(outputs) == 1:
        returned = _result(w, outputs[0], "ret ptr null", data if by_columns else None)
    else:
        returned = _call(w, "ptr", "PyTuple_New", f"i64 {len(outputs)}")
        _or_else(w, returned, "tuple", "ret ptr null")
        for place, a in enumerate(outputs):
            give_up = f"call void %decref{a.index}(ptr {returned})\n  ret ptr null"
            w.lines.append(f"  %decref{a.index} = load ptr, ptr {_context(w, 'Py_DecRef')}")
            result = _result(w, a, give_up, data if by_columns else None)
            _call(w, "i32", "PyTuple_SetItem", f"ptr {returned}, i64 {place}, ptr {result}")
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
        value = w.at("%out", 8 * w.lanes * a.slots[0])
        return _call(w, "ptr", "PyArray_Scalar", f"ptr {value}, ptr %double, ptr null")
    rank = len(a.shape)
    sizes = w.let(f"getelementptr i8, ptr @shape{a.index}, i64 0")
    arguments = f"ptr %PyArray_Type, i32 {rank}, ptr {sizes}, i32 {DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null"
    array = _call(w, "ptr", "PyArray_New", arguments)
    _or_else(w, array, f"made{a.index}", give_up)
    data = w.let(f"load ptr, ptr {w.at(array, ARRAY['data'])}")
    if later is not None:
        later.append(data)
        return array
    if a.size > tuning.UNROLLED_COPY:
        w.do(f"call void @lane(ptr {data}, ptr %out, ptr @slots{a.index}, i64 {a.size})")
        return array
    for k, slot in enumerate(a.slots):
        x = w.let(f"load double, ptr {w.at('%out', 8 * w.lanes * slot)}, align 8")
        w.do(f"store double {x}, ptr {w.at(data, 8 * k)}, align 8")
    return array


def _general(w: Writer) -> None:
    """Forward the call to `self.__call__` with all its arguments."""
    name = w.let(f"load ptr, ptr {_context(w, '__call__')}")
    method = _call(w, "ptr", "PyObject_GetAttr", f"ptr %self, ptr {name}")
    _or_else(w, method, "method", "ret ptr null")
    result = _call(w, "ptr", "PyObject_Vectorcall", f"ptr {method}, ptr %args, i64 %nargsf, ptr %kwnames")
    _call(w, "void", "Py_DecRef", f"ptr {method}")
    w.do(f"ret ptr {result}")


def shape_tables(arrays: Sequence[Operand]) -> str:
    """The shapes of the results."""
    lines = []
    for a in (a for a in arrays if a.written and a.shape):
        sizes = ", ".join(f"i64 {size}" for size in a.shape)
        lines.append(f"@shape{a.index} = internal constant [{len(a.shape)} x i64] [{sizes}]")
    return "\n".join(lines) + "\n"

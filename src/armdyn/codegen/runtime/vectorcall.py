"""A Python class whose instances are called directly as machine code, by CPython's vectorcall protocol.

`base()` is the base class of kernels. If the structures of CPython and NumPy have the layout that `llvm.vectorcall`
expects (`supported` checks it once, on live objects), `attach` gives an instance the address of its vectorcall
function. Otherwise, and before `attach`, calls go to the class's Python `__call__`. ARMDYN_FASTCALL=off disables the
fast path.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import sysconfig
from typing import Any

import numpy as np

from armdyn.codegen.llvm.vectorcall import (
    ALIGNED,
    ARRAY,
    CONTIGUOUS,
    DOUBLE,
    DTYPE,
    KERNEL,
    NATIVE,
    TUPLE,
    WRITEABLE,
)
from armdyn.codegen.runtime.gufunc import api, context

BASIC_SIZE = 32  # the object's head, the entry's address, the context's address
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
    spec = _Spec(b"armdyn.codegen.runtime.vectorcall.Fast", BASIC_SIZE, 0, BASE_TYPE, ctypes.addressof(slots))
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
    """Whether arrays have their fields at the offsets of `llvm.vectorcall`, checked against NumPy on several arrays."""
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
    """Whether dtypes say where `llvm.vectorcall` looks that they are doubles in native byte order."""
    other = "<>"[sys.byteorder == "little"]
    kinds: list[Any] = ["f8", "d", f"{other}f8", "f4", "f2", "g", "i8", "c16", "O", "S8", "V8", [("x", "f8")]]
    for dtype in (
        *[np.dtype(kind) for kind in kinds],
        pickle.loads(pickle.dumps(np.dtype("f8"))),
        np.dtype("f8", metadata={"a": 1}),
    ):
        number = _read(ctypes.c_int, dtype, DTYPE["number"])
        native = _read(ctypes.c_ubyte, dtype, DTYPE["byte_order"]) == NATIVE
        if number != dtype.num or (number == DOUBLE and native) != (dtype == np.dtype(float) and dtype.isnative):
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

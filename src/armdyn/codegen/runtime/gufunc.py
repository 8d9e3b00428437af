"""Generalised ufuncs over machine code, through NumPy's C API and ctypes.

NumPy publishes its C functions as tables of pointers in two capsules; the indices in the tables are part of its ABI and
do not change within a major version.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from armdyn.codegen.llvm.vectorcall import CONTEXT, DOUBLE

UFUNC_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31  # index in _UFUNC_API
NO_IDENTITY = -1
# Offsets of the fields of a ufunc (NumPy's PyUFuncObject).
UFUNC = {"nin": 16, "nout": 20, "nargs": 24, "functions": 32, "data": 40, "ntypes": 48}
UFUNC |= {"ptr": 80, "obj": 88, "userloops": 96}

_KEPT: list[Any] = []  # keeps alive what ufuncs point to but cannot own


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
    objects = {"double": np.dtype(float), "__call__": sys.intern("__call__"), "out": sys.intern("out")}

    def address(name: str) -> int | None:
        if name in numpy_places:
            place: int = api("_ARRAY_API")[numpy_places[name]]
            return place
        if name in objects:
            return id(objects[name])
        function = getattr(library if name in ("sin", "cos") else ctypes.pythonapi, name)
        return ctypes.cast(function, ctypes.c_void_p).value

    table = (ctypes.c_void_p * len(CONTEXT))(*map(address, CONTEXT))
    _KEPT.append(objects)
    return table


def signature(inputs: Any, outputs: Any) -> str:
    """The gufunc signature for fixed shapes: `(6),(6)->(6,6)`."""
    sides = [",".join(f"({','.join(map(str, shape))})" for _, shape in side) for side in (inputs, outputs)]
    return "->".join(sides)


def gufunc(name: str, inputs: Any, outputs: Any, loop: int, owner: object) -> Any:
    """A generalised ufunc of float64 arrays with its inner loop at an address; it keeps `owner` alive."""
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
    types, label, doc = bytes([DOUBLE] * count), name.encode(), b""
    text = signature(inputs, outputs).encode()
    ufunc = make(loops, data, types, 1, len(inputs), len(outputs), NO_IDENTITY, label, doc, 0, text)
    kept = (owner, loops, data, types, label, doc, text)
    if not _take_ownership(ufunc, kept, ctypes.addressof(loops), ctypes.addressof(data)):
        _KEPT.append(kept)
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

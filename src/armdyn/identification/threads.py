"""Single-threaded BLAS for many small problems, where synchronization costs more than parallelism gains.

On a busy machine the decompositions of 60 x 60 matrices in identification run up to fifty times slower on several
threads than on one. The number of threads is set for the OpenBLAS bundled with NumPy and SciPy; any other BLAS is left
unchanged.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_",
         "openblas_{}_num_threads")  # fmt: skip
MODULES = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")


@lru_cache(maxsize=1)
def _libraries() -> tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]:
    """The functions (get, set) for the number of threads of every OpenBLAS used by NumPy and SciPy."""
    found = []
    for module in MODULES:
        try:
            library = ctypes.CDLL(str(importlib.import_module(module).__file__))
        except (ImportError, OSError):
            continue
        for name in NAMES:
            if hasattr(library, name.format("set")) and hasattr(library, name.format("get")):
                found.append((getattr(library, name.format("get")), getattr(library, name.format("set"))))
                break
    return tuple(found)


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread."""
    before = [(put, get()) for get, put in _libraries()]
    for put, _ in before:
        put(1)
    try:
        yield
    finally:
        for put, count in before:
            put(count)

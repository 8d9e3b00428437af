"""One BLAS thread for many small problems: threads that wait for one another cost more than they bring.

On a busy machine the decompositions of 60 x 60 matrices that identification is made of run up to fifty times slower
on several threads than on one. NumPy's bundled OpenBLAS can be told; any other BLAS is left as it is.
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
    """(get, set) of every OpenBLAS behind NumPy and SciPy."""
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
    """BLAS on one thread inside, as before outside."""
    before = [(put, get()) for get, put in _libraries()]
    for put, _ in before:
        put(1)
    try:
        yield
    finally:
        for put, count in before:
            put(count)

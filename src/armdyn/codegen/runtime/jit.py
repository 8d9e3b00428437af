"""The JIT: LLVM IR -> object code -> machine code in this process. Kernels and integrators have the same one.

`stored` looks for object code on disk first, under a key that stands for everything that shaped it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from armdyn.codegen.runtime import cache
from armdyn.codegen.target import LLVM_LOCK, Target, binding

_ENGINES: list[Any] = []  # machine code lives as long as the process


def object_code(text: str, target: Target, level: int = 2) -> bytes:
    """A module of LLVM IR as relocatable object code."""
    with LLVM_LOCK, binding().parse_assembly(text) as module:
        return bytes(target.machine(level).emit_object(module))


def load(code: bytes, symbols: Iterable[str], target: Target) -> dict[str, int]:
    """Object code brought into this process: the addresses of its functions."""
    with LLVM_LOCK:
        llvm = binding()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target.machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _ENGINES.append(engine)
        return {symbol: engine.get_function_address(symbol) for symbol in symbols}


def key(asked: object, target: Target) -> str | None:
    """The name on disk of what is made from `asked`; None if it cannot be told (see `cache.key`).

    `asked` must print everything that shapes the result beyond armdyn's own source.
    """
    import llvmlite  # slow to import

    return cache.key(asked, target, binding().llvm_version_info, str(llvmlite.__version__))


def stored(asked: object, make: Callable[[], bytes], target: Target) -> bytes:
    """What `make` gives, from the disk if it was made before."""
    name = key(asked, target)
    found = cache.get(name)
    if found is None:
        found = make()
        cache.put(name, found)
    return found

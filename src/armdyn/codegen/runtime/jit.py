"""The JIT: LLVM IR -> object code -> machine code in this process, for kernels and integrators.

`stored` looks for object code on disk first, under a key of everything it depends on. `load` returns a `Code`, whose
machine code is freed when the `Code` is garbage-collected: whoever calls an address must keep the `Code`. Kernels share
memory mappings where possible (`elf`, `memory`); all other objects go to LLVM's own loader.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from armdyn.codegen.runtime import cache, memory
from armdyn.codegen.runtime.elf import UnsupportedObjectError, linked
from armdyn.codegen.target import LLVM_LOCK, Target, binding
from armdyn.errors import ComputationError

# LLVM's loader takes two or three memory maps per object, and Linux grants 65,530 by default; beyond them it crashes.
MOST_ENGINES = 16_000


class Code:
    """Machine code in this process, and the addresses of its functions; it is freed when this object is."""

    def __init__(self, addresses: dict[str, int], free: Callable[[], None]) -> None:
        self.addresses = addresses
        weakref.finalize(self, _JIT.release, free).atexit = False

    def address(self, function: str) -> int:
        """The address of a function."""
        return self.addresses[function]


class _Jit:
    """Loads and frees machine code, under `LLVM_LOCK`.

    Garbage collection may destroy a `Code` at any point, even while another is being loaded. So it is put into a queue,
    which is emptied at once if that is safe, otherwise when code is next loaded.
    """

    def __init__(self) -> None:
        self.pool = memory.Pool()
        self.engines: set[Any] = set()
        self._released: deque[Callable[[], None]] = deque()
        self._busy = False

    def load(self, code: bytes, symbols: Iterable[str], target: Target) -> Code:
        """Load object code into this process."""
        with LLVM_LOCK:
            self._empty_queue()
            self._busy = True
            try:
                return self._pooled(code, symbols)
            except UnsupportedObjectError:
                return self._by_llvm(code, symbols, target)
            finally:
                self._busy = False

    def release(self, free: Callable[[], None]) -> None:
        """Free the memory of a `Code`, now or later."""
        self._released.append(free)
        if LLVM_LOCK.acquire(blocking=False):
            try:
                if not self._busy:
                    self._empty_queue()
            finally:
                LLVM_LOCK.release()

    def _empty_queue(self) -> None:
        self._busy = True
        try:
            while self._released:
                self._released.popleft()()
        finally:
            self._busy = False

    def _pooled(self, code: bytes, symbols: Iterable[str]) -> Code:
        if not memory.supported():
            raise UnsupportedObjectError("no memory pool on this operating system")
        image = linked(code)
        mapping, start, size = self.pool.put(image.content)
        first = mapping.address + start
        return Code({name: first + image.functions[name] for name in symbols}, partial(mapping.give, start, size))

    def _by_llvm(self, code: bytes, symbols: Iterable[str], target: Target) -> Code:
        if len(self.engines) >= MOST_ENGINES:
            raise ComputationError(
                f"{len(self.engines)} kernels are alive, at most {MOST_ENGINES} fit into the process's memory maps; "
                "drop arms that are not needed any more"
            )
        llvm = binding()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target.machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self.engines.add(engine)
        return Code({name: engine.get_function_address(name) for name in symbols}, partial(self._close, engine))

    def _close(self, engine: Any) -> None:
        self.engines.remove(engine)
        engine.close()


_JIT = _Jit()
load = _JIT.load


def object_code(text: str, target: Target, level: int = 2) -> bytes:
    """A module of LLVM IR as relocatable object code."""
    with LLVM_LOCK, binding().parse_assembly(text) as module:
        return bytes(target.machine(level).emit_object(module))


def key(asked: object, target: Target) -> str | None:
    """The cache key of the code requested by `asked`; None if it is unknown (see `cache.key`).

    The `repr` of `asked` must contain everything that the code depends on besides armdyn's own source.
    """
    import llvmlite  # slow to import

    return cache.key(asked, target, binding().llvm_version_info, str(llvmlite.__version__))


def stored(name: str | None, make: Callable[[], bytes]) -> bytes:
    """The object code with the `key` `name`, from the disk or else from `make()`."""
    found = cache.get(name)
    if found is None:
        found = make()
        cache.put(name, found)
    return found

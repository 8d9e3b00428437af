"""The JIT: LLVM IR -> object code -> machine code in this process. Kernels and integrators have the same one.

`stored` looks for object code on disk first, under a key that stands for everything that shaped it. `load` gives a
`Code`, whose machine code is freed when nothing refers to it any more: whoever calls an address keeps the `Code`.
Kernels share mappings of memory where that can be done (`elf`, `memory`); LLVM's own loader does the rest.
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
        """Where a function begins."""
        return self.addresses[function]


class _Jit:
    """Loads and frees machine code, under `LLVM_LOCK`.

    A `Code` may die anywhere, even while another is loaded, when Python collects garbage. It is put into a queue, which
    is emptied at once if that is safe, otherwise when code is loaded next.
    """

    def __init__(self) -> None:
        self.pool = memory.Pool()
        self.engines: set[Any] = set()
        self._released: deque[Callable[[], None]] = deque()
        self._busy = False

    def load(self, code: bytes, symbols: Iterable[str], target: Target) -> Code:
        """Object code brought into this process."""
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
        """Free what a `Code` had, now or later."""
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
            raise UnsupportedObjectError("this operating system has no pool")
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
    """The name on disk of what is made from `asked`; None if it cannot be told (see `cache.key`).

    `asked` must print everything that shapes the result beyond armdyn's own source.
    """
    import llvmlite  # slow to import

    return cache.key(asked, target, binding().llvm_version_info, str(llvmlite.__version__))


def stored(name: str | None, make: Callable[[], bytes]) -> bytes:
    """What `make` gives, from the disk if it was made before under this `key`."""
    found = cache.get(name)
    if found is None:
        found = make()
        cache.put(name, found)
    return found

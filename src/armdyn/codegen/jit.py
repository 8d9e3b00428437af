"""The JIT: LLVM IR -> object code -> machine code in this process, for kernels and integrators.

`stored` looks for object code on disk first, under a key of everything it depends on. `load` returns a `Code`, whose
machine code is freed when the `Code` is garbage-collected: whoever calls an address must keep the `Code`. Kernels share
memory mappings where possible (`elf.linked`); all other objects go to LLVM's own loader.

Executable memory is allocated by pages in few mappings. A mapping holds many kernels. Its pages are writable while a
kernel is copied there and executable afterwards, never both. Free pages stay executable (and empty), so that the
operating system does not split the mapping: it limits the number of mappings (vm.max_map_count on Linux). After a fork,
parent and child have their own copies.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from armdyn.codegen import cache
from armdyn.codegen.elf import UnsupportedObjectError, linked
from armdyn.codegen.target import LLVM_LOCK, Target, binding
from armdyn.errors import ComputationError
from armdyn.graph.passes import compiler_pass

PAGE = mmap.PAGESIZE
MAPPING_SIZE = 16 * 2**20  # bytes per mapping: some thousand kernels
READ, WRITE, EXECUTE = 1, 2, 4
GIVE_BACK = 4  # MADV_DONTNEED
OUT_OF_MEMORY = (
    "no memory for further machine code ({error}); fewer kernels must be alive at a time, see vm.max_map_count"
)

FORBIDDEN = (
    "this process may not make memory executable that was writable ({error}), as with systemd's "
    "MemoryDenyWriteExecute=yes or SELinux's execmem, so it cannot load machine code; allow that for this service, or "
    'use arm.kernel(..., backend="numpy"), which takes about 35 times as long in batches and 170 times in single '
    "calls"
)


def can_share_mappings() -> bool:
    """Whether this operating system supports such mappings."""
    return sys.platform == "linux"


class Mapping:
    """One mapping, and its free runs of pages: {first byte: bytes}."""

    def __init__(self, size: int) -> None:
        try:
            self._memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise ComputationError(OUT_OF_MEMORY.format(error=error)) from error
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.size, self.free = size, {0: size}

    def take(self, size: int) -> int | None:
        """Allocate pages by first fit: the offset of the first byte, or None."""
        for start in sorted(self.free):
            if self.free[start] >= size:
                length = self.free.pop(start)
                if length > size:
                    self.free[start + size] = length - size
                return start
        return None

    def give(self, start: int, size: int) -> None:
        """Free pages, and return them to the operating system."""
        self._call("madvise", start, size, GIVE_BACK)
        after = self.free.pop(start + size, 0)
        before = next((s for s, length in self.free.items() if s + length == start), None)
        if before is None:
            self.free[start] = size + after
        else:
            self.free[before] += size + after

    def fill(self, start: int, size: int, content: bytes) -> None:
        """Copy machine code into pages."""
        self._call("mprotect", start, size, READ | WRITE)
        ctypes.memmove(self.address + start, content, len(content))
        self._call("mprotect", start, size, READ | EXECUTE)

    def _call(self, name: str, start: int, size: int, argument: int) -> None:
        function: Any = getattr(self._libc, name)
        if function(ctypes.c_void_p(self.address + start), ctypes.c_size_t(size), ctypes.c_int(argument)):
            number = ctypes.get_errno()
            refused = name == "mprotect" and number in (errno.EACCES, errno.EPERM)
            error = OSError(number, f"{name} failed: {os.strerror(number)}")
            raise ComputationError((FORBIDDEN if refused else OUT_OF_MEMORY).format(error=error))


class Pool:
    """A growing list of mappings; callers must hold `LLVM_LOCK`."""

    def __init__(self) -> None:
        self.mappings: list[Mapping] = []

    def put(self, content: bytes) -> tuple[Mapping, int, int]:
        """Load machine code: (mapping, offset of the first byte, bytes)."""
        size = -(-len(content) // PAGE) * PAGE
        for mapping in self.mappings:
            start = mapping.take(size)
            if start is not None:
                break
        else:
            mapping = Mapping(max(size, MAPPING_SIZE))
            self.mappings.append(mapping)
            start = mapping.take(size)
            assert start is not None
        try:
            mapping.fill(start, size, content)
        except ComputationError:
            mapping.free[start] = size
            raise
        return mapping, start, size

    @property
    def used(self) -> int:
        """Bytes that hold machine code."""
        return sum(mapping.size - sum(mapping.free.values()) for mapping in self.mappings)


# LLVM's loader takes two or three memory maps per object, and Linux grants 65,530 by default; beyond them it crashes.
MOST_OBJECTS = 16_000
# It keeps 9 kB of every object that was freed until it is closed itself, so it is replaced after so many objects.
OBJECTS_PER_LOADER = 256


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
        self.pool = Pool()
        self.objects: set[Any] = set()  # those that LLVM's loader holds
        self._loader: Any = None
        self._loaded = 0  # objects by this loader, freed ones included
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
        if not can_share_mappings():
            raise UnsupportedObjectError("no memory pool on this operating system")
        image = linked(code)
        mapping, start, size = self.pool.put(image.content)
        first = mapping.address + start
        return Code({name: first + image.functions[name] for name in symbols}, partial(mapping.give, start, size))

    def _by_llvm(self, code: bytes, symbols: Iterable[str], target: Target) -> Code:
        if len(self.objects) >= MOST_OBJECTS:
            raise ComputationError(
                f"{len(self.objects)} kernels are alive, at most {MOST_OBJECTS} fit into the process's memory maps; "
                "drop arms that are not needed any more"
            )
        llvm = binding()
        if self._loader is None or self._loaded % OBJECTS_PER_LOADER == 0:
            # JITLink loads several times as fast as the older linker; for Windows LLVM chooses.
            linker = {"use_jit_link": sys.platform != "win32"}
            self._loader = llvm.create_lljit_compiler(target.machine(), **linker)
        library = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        names = list(symbols)
        for name in names:
            library.export_symbol(name)
        try:
            held = library.link(self._loader, f"kernel {self._loaded}")
        except RuntimeError as error:
            raise ComputationError(OUT_OF_MEMORY.format(error=error)) from error
        self._loaded += 1
        self.objects.add(held)
        return Code({name: held[name] for name in names}, partial(self._close, held, self._loader))

    def _close(self, held: Any, loader: Any) -> None:
        """Free an object; its loader, which is referenced until then, goes with the last one."""
        self.objects.remove(held)
        held.close()


_JIT = _Jit()
load = _JIT.load


@compiler_pass("assemble", counts=lambda code: f"{len(code)} bytes")
def object_code(text: str, target: Target, level: int = 2) -> bytes:
    """A module of LLVM IR as relocatable object code."""
    with LLVM_LOCK, binding().parse_assembly(text) as module:
        return bytes(target.machine(level).emit_object(module))


def key(identity: object, target: Target) -> str | None:
    """The cache key of the code requested by `asked`; None if it is unknown (see `cache.key`).

    The `repr` of `asked` must contain everything that the code depends on besides armdyn's own source.
    """
    import llvmlite  # slow to import

    return cache.key(identity, target, binding().llvm_version_info, str(llvmlite.__version__))


def stored(name: str | None, make: Callable[[], bytes]) -> bytes:
    """The object code with the `key` `name`, from the disk or else from `make()`."""
    code = cache.get(name)
    if code is None:
        code = make()
        cache.put(name, code)
    return code

"""Executable memory: an allocator of pages for machine code in few mappings.

A mapping holds many kernels. Its pages are writable while a kernel is copied there and executable afterwards, never
both. Free pages stay executable (and empty), so that the operating system does not split the mapping: it limits the
number of mappings (vm.max_map_count on Linux). After a fork, parent and child have their own copies.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any

from armdyn.errors import ComputationError

PAGE = mmap.PAGESIZE
SIZE = 16 * 2**20  # bytes per mapping: some thousand kernels
READ, WRITE, EXECUTE = 1, 2, 4
GIVE_BACK = 4  # MADV_DONTNEED
OUT_OF_MEMORY = (
    "no memory for further machine code ({error}); fewer kernels must be alive at a time, see vm.max_map_count"
)


def supported() -> bool:
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
            error = OSError(ctypes.get_errno(), f"{name} failed")
            raise ComputationError(OUT_OF_MEMORY.format(error=error))


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
            mapping = Mapping(max(size, SIZE))
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

"""A cache of machine code on disk, so that a kernel is compiled once per machine and not once per process.

The key of an entry is a hash of everything it depends on: the request, armdyn's own source, the processor, the versions
of LLVM and llvmlite. An entry carries a checksum of its key and content; one that is damaged, truncated, renamed or
owned by another user is ignored and written again. Files are written to a temporary name and then renamed, so processes
may race. Only its user may write to the folder, and the least recently used entries are removed when it grows beyond
`LIMIT`.

ARMDYN_CACHE=off disables the cache; ARMDYN_CACHE=<folder> sets its folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from armdyn import errors
from armdyn.values import fingerprint

LIMIT = 256 * 2**20  # bytes
MAGIC = b"armdyn kernel 1\n"
SUFFIX, TEMPORARY = ".kernel", ".writing-"  # of entries, and the prefix of files being written
STRAY = 3600.0  # seconds after which a temporary file left by a killed process is removed
# Symbolic links are not followed, and a named pipe in place of an entry does not block.
OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
# The packages that kernels depend on; a change elsewhere does not invalidate the cache.
DEPENDENCIES = ("algebra", "chain", "parameters", "formulations", "graph", "programs", "codegen", "kernels", "control",
           "simulation", "uncertainty", "identification", "bridges", "gpu", "motion")  # fmt: skip
FEWEST = 50  # files: with fewer the package was not found, and kernels of another version would be loaded
SHARE = 1 / 16  # of `LIMIT`: what a process writes before it lists the folder again
_known: dict[Path, tuple[int, int]] = {}  # of each folder: its size as far as known, and what was written since listed
SETTLED = 10.0  # seconds: importing armdyn takes less, so that older source is what was imported
_IMPORTED = time.time() - SETTLED


@dataclass(frozen=True)
class Summary:
    """The folder, number of entries and size of the cache."""

    folder: Path | None
    entries: int
    size: int

    def __str__(self) -> str:
        if self.folder is None:
            return "no cache: ARMDYN_CACHE=off, or no folder that only you can write to"
        return f"{self.folder}: {self.entries} kernels, {self.size / 2**20:.1f} of {LIMIT // 2**20} MiB"


def folder() -> Path | None:
    """The cache folder, created if necessary; None if there is no cache."""
    asked = os.environ.get("ARMDYN_CACHE", "")
    if asked == "off":
        return None
    try:
        place = Path(asked).expanduser() if asked else _default()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place if _is_private(os.stat(place)) else None
    except (OSError, RuntimeError):  # a read-only or full disk, or no home directory
        return None


def _default() -> Path:
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "armdyn" / "kernels"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "armdyn" / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "armdyn" / "kernels"


def _is_private(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user and nobody else may write to it."""
    if os.name == "nt":  # the user's profile folder is private, and mode bits mean nothing
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@lru_cache(maxsize=1)
def source() -> str | None:
    """A hash of the source that kernels depend on; None if it was modified after this process imported it.

    None, too, in a program that was frozen without the source: it compiles each time.
    """
    package = os.path.dirname(os.path.abspath(errors.__file__))
    digest = hashlib.sha256()
    paths = sorted(path for part in DEPENDENCIES for path in _modules(os.path.join(package, part)))
    if not paths:
        return None
    assert len(paths) > FEWEST, f"only {len(paths)} files of armdyn's source in {package}"
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_mtime > _IMPORTED:
                return None
            digest.update(f"{path[len(package) :]}\0".encode())
            digest.update(file.read())
    return digest.hexdigest()


def _modules(folder: str) -> Iterator[str]:
    """The Python files below a folder. It delays every first call, and `pathlib` would take twice as long."""
    for place, _, files in os.walk(folder):
        yield from (os.path.join(place, file) for file in files if file.endswith(".py"))


def key(*parts: object) -> str | None:
    """The name of the entry for `parts` and this source; None if the source changed (see `source`)."""
    ours = source()
    return None if ours is None else fingerprint(ours, *parts)


def get(name: str | None) -> bytes | None:
    """The content of entry `name`; None if it is missing, damaged or not this user's."""
    place = folder()
    if name is None or place is None:
        return None
    path = place / (name + SUFFIX)
    try:
        descriptor = os.open(path, OPEN_FLAGS)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        usable = stat.S_ISREG(status.st_mode) and _is_private(status) and status.st_size <= LIMIT
        content = os.read(descriptor, status.st_size) if usable else b""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    head = len(MAGIC) + 64
    payload = content[head:]
    if content[:head] != _header(name, payload):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # the time of last use
    return payload


def put(name: str | None, payload: bytes) -> None:
    """Write an entry; a failure to write is ignored."""
    place = folder()
    if name is None or place is None:
        return
    with contextlib.suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(dir=place, prefix=TEMPORARY)  # mode 0600
        try:
            with open(descriptor, "wb") as file:
                file.write(_header(name, payload) + payload)
            _replace(temporary, place / (name + SUFFIX))
        except OSError:
            os.unlink(temporary)
            raise
        _bound(place, len(MAGIC) + 64 + len(payload))


def _replace(temporary: str, path: Path) -> None:
    """Rename a file to its name, also where an empty folder has taken that name."""
    try:
        os.replace(temporary, path)
    except OSError:
        path.rmdir()
        os.replace(temporary, path)


def _bound(place: Path, added: int) -> None:
    """Bound the folder's size after a write, without listing it each time.

    It is listed at this process's first write, when the size known from then exceeds `LIMIT`, and after every
    `SHARE` of it, because other processes write, too: they exceed it by at most this share each.
    """
    size, own = _known.get(place, (LIMIT, LIMIT))
    size, own = size + added, own + added
    if size > LIMIT or own > SHARE * LIMIT:
        size, own = _shrink(place), 0
    _known[place] = (size, own)


def _header(name: str, payload: bytes) -> bytes:
    return MAGIC + hashlib.sha256(name.encode() + payload).hexdigest().encode()


def get_or_compute(name: str | None, find: Callable[[], str]) -> str:
    """A cached short text, such as the name of the cheapest formulation for an arm."""
    kept = get(name)
    if kept is not None:
        return kept.decode()
    found = find()
    put(name, found.encode())
    return found


def _entries(place: Path) -> list[tuple[float, int, Path]]:
    """The time of last use, size and path of each file."""
    found = []
    for path in place.iterdir():
        if path.suffix == SUFFIX or path.name.startswith(TEMPORARY):
            with contextlib.suppress(OSError):  # removed by another process
                status = path.lstat()
                found.append((status.st_mtime, status.st_size, path))
    return found


def _shrink(place: Path) -> int:
    """Remove stray temporary files; beyond `LIMIT`, the least recently used entries until a fifth of it is free.

    Returns the size that is left.
    """
    entries = sorted(_entries(place))
    for used, _, path in entries:
        if path.name.startswith(TEMPORARY) and used < time.time() - STRAY:
            with contextlib.suppress(OSError):
                path.unlink()
    size = sum(entry[1] for entry in entries)
    if size <= LIMIT:
        return size
    for _, length, path in entries:
        with contextlib.suppress(OSError):
            path.unlink()
        size -= length
        if size <= 0.8 * LIMIT:
            break
    return size


def show() -> Summary:
    """A summary of the cache."""
    place = folder()
    entries = _entries(place) if place else []
    return Summary(place, len(entries), sum(size for _, size, _ in entries))


def clear() -> Summary:
    """Remove every entry; returns the summary from before."""
    before = show()
    for _, _, path in _entries(before.folder) if before.folder else []:
        with contextlib.suppress(OSError):
            path.unlink()
    return before

"""Machine code kept on disk, so that a kernel is compiled once per machine and not once per process.

A key stands for everything that shaped an entry: what was asked for, the text of armdyn's own
source, the processor, the versions of LLVM and llvmlite. An entry carries its key and a checksum;
one that is damaged, truncated, renamed or somebody else's is not used and is written again. Files appear
whole or not at all (written to a temporary name, then renamed), so processes may race. The folder is its user's
alone, and the entries used longest ago go when it grows beyond `LIMIT`.

ARMDYN_CACHE=off keeps nothing on disk; ARMDYN_CACHE=<folder> keeps it there.
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

from armdyn.algebra.fingerprint import fingerprint

LIMIT = 256 * 2**20  # bytes
MAGIC = b"armdyn kernel 1\n"
SUFFIX, TEMPORARY = ".kernel", ".writing-"  # ends of entries' names, beginnings of the names they are written under
STRAY = 3600.0  # seconds after which a file that a killed process left is removed; writing takes milliseconds
# No link is followed, and a pipe in place of an entry does not block.
OPENED = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
# Everything that decides what a kernel computes; the rest of the package may change freely.
SHAPING = ("algebra", "chain", "parameters", "formulations", "graph", "programs", "codegen", "kernels", "control",
           "simulation")  # fmt: skip
_MARGIN = 10.0  # seconds: importing armdyn takes less
_IMPORTED = time.time() - _MARGIN


@dataclass(frozen=True)
class Summary:
    """What the cache holds."""

    folder: Path | None
    entries: int
    size: int

    def __str__(self) -> str:
        if self.folder is None:
            return "no cache: ARMDYN_CACHE=off, or no folder of one's own"
        return f"{self.folder}: {self.entries} kernels, {self.size / 2**20:.1f} of {LIMIT // 2**20} MiB"


def folder() -> Path | None:
    """The folder in use, made if need be; None where nothing is kept."""
    asked = os.environ.get("ARMDYN_CACHE", "")
    if asked == "off":
        return None
    try:
        place = Path(asked).expanduser() if asked else _default()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place if _own(os.stat(place)) else None
    except (OSError, RuntimeError):  # a read-only or full disk, no home
        return None


def _default() -> Path:
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "armdyn" / "kernels"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "armdyn" / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "armdyn" / "kernels"


def _own(status: os.stat_result) -> bool:
    """Ours, and nobody else may write to it."""
    if os.name == "nt":  # the profile's folder is private there, and modes say nothing
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@lru_cache(maxsize=1)
def source() -> str | None:
    """A fingerprint of the source that shapes kernels; None if it changed since this process read it."""
    package = str(Path(__file__).parents[2])
    digest = hashlib.sha256()
    for path in sorted(path for part in SHAPING for path in _modules(os.path.join(package, part))):
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_mtime > _IMPORTED:
                return None
            digest.update(f"{path[len(package) :]}\0".encode())
            digest.update(file.read())
    return digest.hexdigest()


def _modules(folder: str) -> Iterator[str]:
    """The Python files in a folder and below it; every first call waits for this, and `pathlib` takes twice as long."""
    for place, _, files in os.walk(folder):
        yield from (os.path.join(place, file) for file in files if file.endswith(".py"))


def key(*parts: object) -> str | None:
    """The name of what is made from `parts` by this source; None if that cannot be told."""
    ours = source()
    return None if ours is None else fingerprint(ours, *parts)


def get(name: str | None) -> bytes | None:
    """The entry `name`, if it is there, whole, and ours."""
    place = folder()
    if name is None or place is None:
        return None
    path = place / (name + SUFFIX)
    try:
        with open(os.open(path, OPENED), "rb") as file:
            status = os.fstat(file.fileno())
            content = file.read() if stat.S_ISREG(status.st_mode) and _own(status) else b""
    except OSError:
        return None
    head = len(MAGIC) + 64
    payload = content[head:]
    if content[:head] != _head(name, payload):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used just now
    return payload


def put(name: str | None, payload: bytes) -> None:
    """Keep an entry; where that fails, nothing is kept and nothing is lost."""
    place = folder()
    if name is None or place is None:
        return
    with contextlib.suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(dir=place, prefix=TEMPORARY)  # mode 0600
        try:
            with open(descriptor, "wb") as file:
                file.write(_head(name, payload) + payload)
            os.replace(temporary, place / (name + SUFFIX))
        except OSError:
            os.unlink(temporary)
            raise
        _shrink(place)


def _head(name: str, payload: bytes) -> bytes:
    return MAGIC + hashlib.sha256(name.encode() + payload).hexdigest().encode()


def get_or_compute(name: str | None, find: Callable[[], str]) -> str:
    """A short text, such as which formulation is cheapest for an arm, from the disk if it was computed before."""
    kept = get(name)
    if kept is not None:
        return kept.decode()
    found = find()
    put(name, found.encode())
    return found


def _entries(place: Path) -> list[tuple[float, int, Path]]:
    """When each file was last used, its size and its path."""
    found = []
    for path in place.iterdir():
        if path.suffix == SUFFIX or path.name.startswith(TEMPORARY):
            with contextlib.suppress(OSError):  # another process was faster
                status = path.lstat()
                found.append((status.st_mtime, status.st_size, path))
    return found


def _shrink(place: Path) -> None:
    """Remove stray files, and the entries used longest ago until a fifth of the room is free again."""
    entries = sorted(_entries(place))
    for used, _, path in entries:
        if path.name.startswith(TEMPORARY) and used < time.time() - STRAY:
            with contextlib.suppress(OSError):
                path.unlink()
    size = sum(entry[1] for entry in entries)
    if size <= LIMIT:
        return
    for _, length, path in entries:
        with contextlib.suppress(OSError):
            path.unlink()
        size -= length
        if size <= 0.8 * LIMIT:
            return


def show() -> Summary:
    """What is kept."""
    place = folder()
    entries = _entries(place) if place else []
    return Summary(place, len(entries), sum(size for _, size, _ in entries))


def clear() -> Summary:
    """Remove every entry; what was there."""
    before = show()
    for _, _, path in _entries(before.folder) if before.folder else []:
        with contextlib.suppress(OSError):
            path.unlink()
    return before

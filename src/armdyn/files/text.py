"""Reading and writing text files: size limits, clear errors, and never a half-written file."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import IO

from armdyn.errors import FileError

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BLANKS = {ord(blank): f"&#{ord(blank)};" for blank in "\t\n\r"}  # a reader would make them spaces
STRAY = 3600.0  # seconds after which a file that a killed process left is removed; writing takes far less
LARGEST = 32 * 2**20  # bytes; a model of an arm is a few kilobytes


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file that exists, is a file, and is not absurdly large."""
    where = Path(path)
    try:
        size = where.stat().st_size
        if size > LARGEST:
            raise FileError(f"{where}: {size} bytes, expected a model of at most {LARGEST} bytes")
        return where.read_bytes()
    except OSError as error:
        raise FileError(f"{where}: cannot be read ({error.strerror})") from error


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary stream whose content appears under `path` at the end, whole; after an error nothing does."""
    where = Path(os.path.realpath(path))  # a link stays one: what it points to is written
    try:
        handle, temporary = _temporary(where)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())  # a crash of the machine must not leave the new name on old blocks
            os.replace(temporary, where)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise FileError(f"{where}: cannot be written ({error.strerror})") from error


def _temporary(where: Path) -> tuple[int, Path]:
    """A new file beside `where`, opened: with the mode of the file it will replace, or that of any new file.

    What a process that was killed left beside `where` is removed.
    """
    head, tail = f".{where.name}.", ".tmp"
    for left in list(where.parent.iterdir()):
        if left.name.startswith(head) and left.name.endswith(tail):
            with suppress(OSError):
                if left.stat().st_mtime < time.time() - STRAY:
                    left.unlink()
    mode = where.stat().st_mode & 0o777 if where.exists() else None
    path = where.with_name(f"{head}{os.urandom(8).hex()}{tail}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o666 if mode is None else 0o600)
    if mode is not None:
        os.chmod(path, mode)
    return handle, path


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write the whole text or nothing: to a temporary name beside the target, then renamed."""
    with written_whole(path) as stream:
        stream.write(text.encode())


def quoted(text: str) -> str:
    """The text as an XML attribute's value, quotes included; an error for what XML has no way to write."""
    if found := _NOT_IN_XML.search(text):
        raise FileError(f"{text!r} cannot be written as XML: it contains the character {found[0]!r}")
    return f'"{escape(text).translate(_BLANKS)}"'

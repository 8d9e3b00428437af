"""Reading and writing text files: size limits, clear errors, and never a half-written file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import IO

from armdyn.errors import FileError

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BLANKS = {ord(blank): f"&#{ord(blank)};" for blank in "\t\n\r"}  # a reader would make them spaces
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
    import tempfile  # slow to import, and only writers need it

    try:
        handle, temporary = tempfile.mkstemp(dir=where.parent, prefix=f".{where.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, where)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise FileError(f"{where}: cannot be written ({error.strerror})") from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write the whole text or nothing: to a temporary name beside the target, then renamed."""
    with written_whole(path) as stream:
        stream.write(text.encode())


def quoted(text: str) -> str:
    """The text as an XML attribute's value, quotes included; an error for what XML has no way to write."""
    if found := _NOT_IN_XML.search(text):
        raise FileError(f"{text!r} cannot be written as XML: it contains the character {found[0]!r}")
    return f'"{escape(text).translate(_BLANKS)}"'


def _umask() -> int:
    """The process's file mode mask (which can only be read by setting it)."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask

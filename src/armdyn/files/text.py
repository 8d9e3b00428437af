"""Reading and writing text files: size limits, clear errors, and never a half-written file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from armdyn.errors import FileError

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


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write the whole text or nothing: to a temporary name beside the target, then renamed."""
    where = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=where.parent, prefix=f".{where.name}.", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, where)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise FileError(f"{where}: cannot be written ({error.strerror})") from error


def _umask() -> int:
    """The process's file mode mask (which can only be read by setting it)."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask

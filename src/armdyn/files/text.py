"""Reading and writing files: size limits, clear errors, safe file names, atomic writes."""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from html import escape
from pathlib import Path
from typing import IO

from armdyn.errors import FileError

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BLANKS = {ord(blank): f"&#{ord(blank)};" for blank in "\t\n\r"}  # XML parsers turn them into spaces in attributes
STRAY = 3600.0  # seconds after which a temporary file of a killed process is removed; writing takes far less
LARGEST = 32 * 2**20  # bytes; a typical model of an arm has a few kilobytes
BLANK = "\ufeff \t\r\n"  # what may precede the first element of a text
_LONGEST_NAME = 200  # bytes of a file name made by `file_name`, without the suffix; file systems allow 255
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # names of devices on Windows


def is_text(source: object) -> bool:
    """Whether this is the text of a model and not a path: it starts with `<`."""
    return isinstance(source, str) and source.lstrip(BLANK).startswith("<")


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file; an error unless it is a regular file of at most `LARGEST` bytes."""
    try:
        # Without O_NONBLOCK, opening a FIFO would block until there is a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise FileError(f"{path}: cannot be read (not a regular file)")
            if about.st_size > LARGEST:
                raise FileError(f"{path}: {about.st_size} bytes; files of at most {LARGEST} bytes are read")
            return file.read(LARGEST + 1)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:  # a NUL in the name
        if isinstance(error, FileError):
            raise
        raise FileError(f"{str(path)!r}: cannot be read ({error})") from error


def file_name(name: str, suffix: str = "") -> str:
    """A safe file name from an untrusted name: a single path component that cannot leave its folder.

    Everything but letters, digits, blanks and ``. _ - + = , ( )`` becomes an underscore; so do leading dots.
    """
    safe = "".join(c if c.isalnum() or c in " ._-+=,()" else "_" for c in name).strip()
    safe = re.sub(r"^\.+", lambda dots: "_" * len(dots[0]), safe)
    safe = safe.encode()[:_LONGEST_NAME].decode(errors="ignore").rstrip(". ")
    if not safe or _RESERVED.fullmatch(safe):
        safe = f"arm_{safe}".rstrip("_")
    return safe + suffix


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file atomically: it appears under its name when it is complete, and not at all after an error.

    A file that is overwritten keeps its permissions.
    """
    where = Path(os.path.realpath(path))  # a symbolic link is kept, and its target is written
    try:
        handle, temporary = _temporary(where)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())  # otherwise a crash of the machine could leave an incomplete file
            os.replace(temporary, where)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise FileError(f"{where}: cannot be written ({error.strerror})") from error


def _temporary(where: Path) -> tuple[int, Path]:
    """Open a temporary file next to `where`, with the mode of the file it will replace or of a new file.

    Temporary files that killed processes left next to `where` are removed.
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
    """Write a text file atomically."""
    with written_whole(path) as stream:
        stream.write(text.encode())


def write_files(directory: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write several files into one folder, by name: all are complete before the first is renamed into place."""
    where = Path(directory)
    where.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for name, content in contents.items():
            stack.enter_context(written_whole(where / name)).write(content)
    return [where / name for name in contents]


def write_folder(directory: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write a folder of files by their relative paths (``lib/arm.o``): a new folder appears complete or not at all.

    In a folder that is not empty, or is the current one, the files are renamed into place once all are complete.
    """
    where = Path(os.path.realpath(directory))
    if where.is_dir() and (any(where.iterdir()) or where.samefile(os.curdir)):  # a process keeps the folder it is in
        for name in contents:
            (where / name).parent.mkdir(parents=True, exist_ok=True)
        write_files(where, contents)
        return [Path(directory) / name for name in contents]
    staging = where.with_name(f".{where.name}.{os.urandom(8).hex()}.tmp")
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (staging / name).parent.mkdir(parents=True, exist_ok=True)
            with written_whole(staging / name) as stream:
                stream.write(content)
        if where.is_dir():
            where.rmdir()  # it is empty
        os.replace(staging, where)
    except OSError as error:
        raise FileError(f"{where}: cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return [Path(directory) / name for name in contents]


def quoted(text: str) -> str:
    """The text as the value of an XML attribute, with quotes; an error for characters that XML cannot represent."""
    if found := _NOT_IN_XML.search(text):
        raise FileError(f"{text!r} cannot be written as XML: it contains the character {found[0]!r}")
    return f'"{escape(text).translate(_BLANKS)}"'

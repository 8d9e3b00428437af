"""Reading and writing text files: size limits, clear errors, safe names, and never a half-written file."""

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
_BLANKS = {ord(blank): f"&#{ord(blank)};" for blank in "\t\n\r"}  # a reader would make them spaces
STRAY = 3600.0  # seconds after which a file that a killed process left is removed; writing takes far less
LARGEST = 32 * 2**20  # bytes; a model of an arm is a few kilobytes
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LONGEST_NAME = 100  # characters of a file name that is made from a name in a file
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # Windows opens devices by these


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file that exists, is a regular file, and is not absurdly large."""
    try:
        # Without O_NONBLOCK a FIFO in place of a file would wait for a writer that never comes.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise FileError(f"{path}: cannot be read (not a regular file)")
            if about.st_size > LARGEST:
                raise FileError(f"{path}: {about.st_size} bytes; models of at most {LARGEST} bytes are read")
            return file.read(LARGEST + 1)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:  # a NUL in the name
        if isinstance(error, FileError):
            raise
        raise FileError(f"{str(path)!r}: cannot be read ({error})") from error


def file_name(name: str, suffix: str = "") -> str:
    """A name from inside a file as the name of a file: one component, no way out of its folder.

    Everything but letters, digits, blanks and ``. _ - + = , ( )`` becomes an underscore; so do dots in front.
    """
    safe = "".join(c if c.isalnum() or c in " ._-+=,()" else "_" for c in name).strip()
    safe = re.sub(r"^\.+", lambda dots: "_" * len(dots[0]), safe)[:_LONGEST_NAME].rstrip(". ")
    if not safe or _RESERVED.fullmatch(safe):
        safe = f"arm_{safe}".rstrip("_")
    return safe + suffix


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to that appears under its name at the end, whole; after an error nothing does.

    A file that is overwritten keeps its permissions.
    """
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


def write_files(directory: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write files of one folder, by name, that belong together: all are complete before the first takes its place."""
    where = Path(directory)
    where.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for name, content in contents.items():
            stack.enter_context(written_whole(where / name)).write(content)
    return [where / name for name in contents]


def write_folder(directory: str | os.PathLike[str], contents: Mapping[str, bytes]) -> list[Path]:
    """Write a folder of files, by their names in it (``lib/arm.o``): a new folder appears whole or not at all.

    In a folder that has files already, those that belong together take their places once all are complete.
    """
    where = Path(os.path.realpath(directory))
    if where.is_dir() and any(where.iterdir()):
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


def visible(text: str) -> str:
    """The text with every character that could drive a terminal, or turn its line around, written out."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def quoted(text: str) -> str:
    """The text as an XML attribute's value, quotes included; an error for what XML has no way to write."""
    if found := _NOT_IN_XML.search(text):
        raise FileError(f"{text!r} cannot be written as XML: it contains the character {found[0]!r}")
    return f'"{escape(text).translate(_BLANKS)}"'

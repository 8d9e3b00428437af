"""Xacro in: a macro file expanded to the text of a URDF by the `xacro` package, where it is installed."""

from __future__ import annotations

import os
from pathlib import Path

from armdyn.errors import FileError
from armdyn.files.text import read_bytes

_HOW = "pip install 'armdyn[xacro]', or expand it elsewhere (xacro {name} > {stem}.urdf) and load that"


def expanded(path: str | os.PathLike[str]) -> str:
    """The URDF text of a .xacro file.

    Expanding evaluates the file's expressions and reads the files it includes: it is for files that are trusted.
    """
    where = Path(path)
    read_bytes(where)  # the same complaints about files that are not there or absurdly large
    try:
        import xacro
    except ImportError as error:
        how = _HOW.format(name=where.name, stem=where.name.split(".")[0])
        raise FileError(f"{where}: a xacro file is expanded by the xacro package: {how}") from error
    try:
        document = xacro.process_file(os.fspath(where))
    except Exception as error:  # whatever the macros of a file raise
        raise FileError(f"{where}: xacro cannot expand it: {type(error).__name__}: {error}") from error
    return str(document.toxml())

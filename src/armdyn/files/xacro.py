"""Reading xacro: a macro file is expanded to the text of a URDF by the `xacro` package, if it is installed."""

from __future__ import annotations

import os
from pathlib import Path

from armdyn.errors import FileError
from armdyn.files.text import read_bytes

_HOW = "pip install 'armdyn[xacro]', or expand it elsewhere (xacro {name} > {stem}.urdf) and load that"


def expanded(path: str | os.PathLike[str]) -> str:
    """The URDF text of a .xacro file.

    Expansion evaluates the expressions in the file and reads the files it includes: use it only for trusted files.
    """
    where = Path(path)
    read_bytes(where)  # the same errors for missing and too large files as for other formats
    try:
        import xacro
    except ImportError as error:
        how = _HOW.format(name=where.name, stem=where.name.split(".")[0])
        raise FileError(f"{where}: reading xacro needs the xacro package: {how}") from error
    try:
        document = xacro.process_file(os.fspath(where))
    except Exception as error:  # macros can raise anything
        raise FileError(f"{where}: xacro cannot expand it: {type(error).__name__}: {error}") from error
    return str(document.toxml())

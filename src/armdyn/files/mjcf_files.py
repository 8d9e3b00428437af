"""A check that an MJCF model reads only files in its own folder, unless the caller allows others."""

from __future__ import annotations

import os
from pathlib import Path
from xml.parsers import expat

from armdyn.errors import FileError
from armdyn.files.text import read_bytes

_DIRECTORIES = ("meshdir", "texturedir", "assetdir")
_MOST_FILES = 1000  # of one model


def confined(model: Path) -> None:
    """Raise an error if a model would read a file outside its own folder."""
    folder = os.path.realpath(model.parent)
    waiting, seen, directories, files = [Path(os.path.realpath(model))], set[Path](), {""}, list[tuple[str, str]]()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        if len(seen) > _MOST_FILES:
            raise FileError(f"{model}: more than {_MOST_FILES} included files")
        for tag, key, value in _mentions(file):
            if key in _DIRECTORIES:
                directories.add(value)
            elif tag == "include":
                for base in (model.parent, file.parent):  # MuJoCo searches the folder of the model
                    inside = _inside(folder, base / value, model, value)
                    if inside.is_file():
                        waiting.append(inside)
            else:
                files.append((tag, value))
    for directory in directories:
        for _, value in files:
            _inside(folder, model.parent / directory / value, model, value)
            _inside(folder, model.parent / directory / os.path.basename(value), model, value)  # strippath


def _inside(folder: str, path: Path, model: Path, value: str) -> Path:
    real = os.path.realpath(path)
    if real != folder and not real.startswith(folder.rstrip(os.sep) + os.sep):
        raise FileError(
            f"{model}: the model would read {value!r} from outside its own folder ({real}); if you trust it, allow "
            "this with armdyn.load(..., allow_outside=True), or --allow-outside on the command line"
        )
    return Path(real)


def _mentions(file: Path) -> list[tuple[str, str, str]]:
    """All attributes of an MJCF file that name a file or a folder: (tag, attribute, value)."""
    found: list[tuple[str, str, str]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        found.extend((tag, key, value) for key, value in attributes.items() if key.startswith("file") and value)
        found.extend((tag, key, value) for key, value in attributes.items() if key in _DIRECTORIES)

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    try:
        parser.Parse(read_bytes(file), True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{file}: MuJoCo cannot compile the model: {error}") from error
    return found

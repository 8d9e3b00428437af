"""The manifest of a generated folder: hashes of inputs and outputs, versions of the libraries, what make produces.

The manifest of the last run tells which files of a folder armdyn has written, so that the next run can remove those it
does not write, and can refuse to write among files of others.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from armdyn.errors import FileError, InputError
from armdyn.files.text import read_bytes, write_folder

LIBRARIES = ("numpy", "scipy", "llvmlite", "cvxpy", "clarabel")
BLOCK = 2**20  # bytes read at a time
FILE = "manifest.json"
SHOWN = 3  # names of other files in an error message


def sha256(content: bytes) -> str:
    """The SHA-256 hash of a file's content."""
    return hashlib.sha256(content).hexdigest()


def of_path(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Name, size and hash of a file; for a folder (a rosbag), those of every file in it."""
    where = Path(path)
    if where.is_dir():
        files = sorted(p for p in where.rglob("*") if p.is_file())
        return {"name": where.name, "files": {str(p.relative_to(where)): of_path(p) for p in files}}
    digest, size = hashlib.sha256(), 0
    with open(where, "rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
            size += len(block)
    return {"name": where.name, "bytes": size, "sha256": digest.hexdigest()}


def versions() -> dict[str, str]:
    """The versions of armdyn, Python and the numerical libraries."""
    from armdyn import __version__

    found = {"armdyn": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def text(data: Mapping[str, Any]) -> str:
    """The manifest as JSON; the same inputs, settings and versions give the same text."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"


def _plain(x: Any) -> Any:
    return x.tolist() if hasattr(x, "tolist") else str(x)


def with_manifest(contents: Mapping[str, bytes], about: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a folder with their manifest: `about`, the hash of each file, and what make produces."""
    outputs = {name: sha256(content) for name, content in contents.items()}
    return {**contents, FILE: text({**about, "outputs": outputs, "products": products(contents)}).encode()}


def products(contents: Mapping[str, bytes]) -> list[str]:
    """The paths that the Makefiles of a folder produce or change: what ``make clean`` removes, and an FMU."""
    paths = [name for name in contents if name.endswith(".fmu")]
    for name, content in contents.items():
        place = PurePosixPath(name)
        if place.name == "Makefile":
            for removed in re.findall(r"^clean:\n\trm -r?f (.+)$", content.decode(), re.MULTILINE):
                paths += [str(place.parent / word) for word in removed.split()]
    return paths


@dataclass(frozen=True)
class Previous:
    """What armdyn wrote into a folder before: the hash of each file, and the paths that make produces there."""

    outputs: Mapping[str, str]
    products: tuple[str, ...]

    def is_product(self, name: str) -> bool:
        """Whether make produces this file, or a folder that contains it."""
        return any(name == product or name.startswith(f"{product}/") for product in self.products)


def previous(where: Path) -> Previous:
    """The contents of a folder according to its manifest; nothing if there is none that can be read."""
    try:
        data = json.loads(read_bytes(where / FILE))
        outputs = {str(name): str(digest) for name, digest in data["outputs"].items() if _inside(name)}
        return Previous(outputs, tuple(name for name in data.get("products", ()) if _inside(name)))
    except (FileError, ValueError, TypeError, KeyError, AttributeError):
        return Previous({}, ())


def _inside(name: object) -> bool:
    """Whether a path from a manifest, which anybody may have written, stays inside its folder."""
    return (
        isinstance(name, str) and not os.path.isabs(name) and ".." not in PurePosixPath(name).parts and "\\" not in name
    )


def check_folder(directory: str | os.PathLike[str], overwrite: bool) -> None:
    """An error if a folder contains files that armdyn has not written, or that have been changed since."""
    where = Path(directory)
    if where.exists() and not where.is_dir():
        raise InputError(f"{where} is a file; expected a folder, new or existing")
    others = [] if overwrite else list(islice(_others(where), SHOWN + 1))
    if others:
        names = ", ".join(others[:SHOWN]) + (", ..." if len(others) > SHOWN else "")
        raise InputError(
            f"{where} contains files of others, or generated files that were changed: {names}. Choose another folder, "
            "or write among them (overwrite=True): files of the same names are then replaced"
        )


def _others(where: Path) -> Iterator[str]:
    """The files in a folder that are not as armdyn wrote them; hidden files and folders are left out."""
    before = previous(where)
    for folder, folders, names in os.walk(where):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            relative = path.relative_to(where).as_posix()
            if name.startswith(".") or (relative == FILE and before.outputs) or before.is_product(relative):
                continue
            if relative not in before.outputs or before.outputs[relative] != of_path(path)["sha256"]:
                yield relative


def write(directory: str | os.PathLike[str], contents: Mapping[str, bytes], overwrite: bool) -> list[Path]:
    """Write a folder with its manifest, and remove what the last run wrote there and this one does not."""
    where = Path(directory)
    check_folder(where, overwrite)
    before = previous(where)
    left = [name for name in before.products if (where / name).exists()]  # by make, for the files of the last run
    if left:
        about = json.loads(contents[FILE])
        about["products"] = list(dict.fromkeys([*about["products"], *left]))
        contents = {**contents, FILE: text(about).encode()}
    paths = write_folder(where, contents)
    kept = {_identity(path) for path in paths}
    for name in before.outputs.keys() - contents.keys():
        path = where / name
        if path.is_file() and _identity(path) not in kept:  # names that differ in case may be one file
            if of_path(path)["sha256"] != before.outputs[name]:
                continue  # changed by others, and kept because of `overwrite`
            path.unlink()
            _remove_empty(path.parent, where)
    return paths


def _identity(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_dev, about.st_ino


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove a folder and those around it, up to the root, while they are empty."""
    while folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent

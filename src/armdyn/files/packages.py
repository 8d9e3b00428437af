"""ROS packages without ROS: what ``$(find name)`` and ``package://name`` point to, and which files a robot may read.

A package is a folder with a ``package.xml``. Searched are the folders given by the caller, the package of the robot's
own file, the packages beside it, and those of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH. Other files are refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from armdyn.errors import FileError, InputError
from armdyn.files.text import read_bytes
from armdyn.values import cached_property

_MANIFEST = "package.xml"
_NAME = re.compile(rb"<name>\s*([\w.-]+)\s*</name>")
_DEPTH, _MOST_FOLDERS = 4, 20_000  # of the search below a folder of packages: a workspace has src/repository/package
_INSIDE_A_PACKAGE = ("urdf", "robots", "robot", "xacro", "model", "models")  # folders beside which meshes lie


@dataclass(frozen=True)
class Packages:
    """The packages that a robot's file may refer to; `folders` are given by the caller, and hold packages or are some.

    Packages that come from the environment's variables may contain symbolic links to elsewhere, as built workspaces do.
    """

    file: Path
    folders: tuple[Path, ...] = ()
    _linked: list[Path] = field(default_factory=list, compare=False)  # packages found through the environment

    @classmethod
    def of(cls, file: str | os.PathLike[str], folders: Sequence[str | os.PathLike[str]] = ()) -> Packages:
        """The packages around a file; an error for a given folder that does not exist."""
        if isinstance(folders, str | os.PathLike):
            raise InputError(f"package_dirs must be a list of folders, got {os.fspath(folders)!r}")
        given = tuple(Path(os.path.abspath(folder)) for folder in folders)
        for folder in given:
            if not folder.is_dir():
                raise FileError(f"package_dirs: {str(folder)!r} is no folder")
        return cls(Path(os.path.abspath(file)), given)

    @cached_property
    def own(self) -> Path:
        """The package of the file; without a package.xml the folder of the file, or the folder that holds its urdf/."""
        return _own(self.file)

    @cached_property
    def beside(self) -> dict[str, Path]:
        """The packages in the folder that holds the file's package, by name."""
        return _listed(self.own.parent, 1) if (self.own / _MANIFEST).is_file() else {}

    @cached_property
    def given(self) -> dict[str, Path]:
        """The packages in the given folders, by name."""
        return {name: path for folder in reversed(self.folders) for name, path in _listed(folder, _DEPTH).items()}

    @cached_property
    def _ros(self) -> dict[str, Path]:
        return {name: path for folder in reversed(_paths("ROS_PACKAGE_PATH")) for name, path in _listed(folder).items()}

    def find(self, name: str) -> Path:
        """The folder of a package; an error says where it was searched and how to give it."""
        own = {_package_name(self.own): self.own}
        for table in (self.given, own, self.beside):
            if name in table:
                return table[name]
        unmarked = [folder / name for folder in self.folders] + [f for f in self.folders if f.name == name]
        unmarked += [
            folder
            for inner, folder in pairwise(self.file.parents)  # not any folder above: $(find home) would be all of /home
            if folder.name == name and inner.name in _INSIDE_A_PACKAGE
        ]
        for folder in unmarked:
            if re.fullmatch(r"[\w-][\w.-]*", name) and folder.is_dir():
                if folder in self.file.parents:
                    self._linked.append(folder)
                return folder
        installed = [prefix / "share" / name for prefix in _paths("AMENT_PREFIX_PATH")]
        for folder in (*([self._ros[name]] if name in self._ros else []), *installed):
            if (folder / _MANIFEST).is_file():
                self._linked.append(folder)
                return folder
        raise FileError(self._missing(name))

    def _missing(self, name: str) -> str:
        searched = [f"the package {_package_name(self.own)!r} of the file ({self.own})"]
        if self.beside:
            searched.append(f"beside it ({', '.join(sorted(self.beside)[:12])})")
        searched += [f"{folder} ({', '.join(sorted(self.given)[:12]) or 'no packages'})" for folder in self.folders]
        searched += [f"{key} ({'set' if os.environ.get(key) else 'not set'})" for key in _VARIABLES]
        return (
            f"{self.file.name}: the package {name!r} is not found; searched: {', '.join(searched)}. Give the folder "
            f"that holds it: armdyn.load(..., package_dirs=['folder']) (command line: --package-dirs folder)"
        )

    def confined(self, path: str | os.PathLike[str]) -> Path:
        """The path of a file that may be read; an error for one outside the packages."""
        where = Path(os.path.normpath(os.path.join(self.file.parent, path)))
        real = Path(os.path.realpath(where))
        linked = _own(Path(os.path.realpath(self.file)))  # of a built workspace: the links lead to the sources
        roots = [Path(os.path.realpath(root)) for root in (self.own, linked, *self.folders, *self.beside.values())]
        if not any(real.is_relative_to(root) for root in roots) and not any(map(where.is_relative_to, self._linked)):
            raise FileError(
                f"{self.file.name} would read {str(path)!r}, which is outside its package {self.own} and the packages "
                "beside it; if you trust it, allow its folder with armdyn.load(..., package_dirs=['folder']) "
                "(command line: --package-dirs folder)"
            )
        return where

    def resolve(self, uri: str) -> Path:
        """The path of ``package://name/path``, ``file://path`` or a path relative to the robot's file."""
        if uri.startswith("file://"):
            return self.confined(unquote(uri.removeprefix("file://")))
        for scheme in ("package://", "model://"):
            if uri.startswith(scheme):
                name, _, rest = uri.removeprefix(scheme).partition("/")
                return self.confined(self.find(name) / rest)
        return self.confined(uri)


_VARIABLES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")


def _own(file: Path) -> Path:
    here = file.parent
    for folder in (here, *here.parents):
        if (folder / _MANIFEST).is_file():
            return folder
    return here.parent if here.name in _INSIDE_A_PACKAGE else here


def _paths(variable: str) -> list[Path]:
    return [Path(os.path.abspath(word)) for word in os.environ.get(variable, "").split(os.pathsep) if word]


def _package_name(folder: Path) -> str:
    """The name in the folder's package.xml, which may differ from the folder's; the folder's name without one."""
    if not (folder / _MANIFEST).is_file():
        return folder.name
    found = _NAME.search(re.sub(rb"<!--.*?-->", b"", read_bytes(folder / _MANIFEST), flags=re.DOTALL))
    return found[1].decode() if found else folder.name


def _listed(folder: Path, depth: int = _DEPTH) -> dict[str, Path]:
    """The packages in a folder, by name; the folder may be one itself."""
    table: dict[str, Path] = {}
    for package in _below(folder, depth):
        table.setdefault(_package_name(package), package)
    return table


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """The packages at most `depth` folders below a folder; packages do not hold packages."""
    level = [folder]
    visited = 0
    for _ in range(depth + 1):
        further: list[Path] = []
        for here in level:
            if (here / _MANIFEST).is_file():
                yield here
                continue
            visited += 1
            if visited > _MOST_FOLDERS:
                return
            try:
                with os.scandir(here) as entries:
                    further += sorted(Path(e.path) for e in entries if e.is_dir() and not e.name.startswith("."))
            except OSError:  # a folder that may not be read
                continue
        level = further

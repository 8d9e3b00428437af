"""Where a chain comes from and goes to: arm files, URDF, MJCF, standard tables and the catalogue.

`read` takes a name or a path and gives a `Description`: the pieces of an arm, as the file has them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from armdyn.chain.snap import SNAP
from armdyn.errors import FileError, InputError
from armdyn.files import toml
from armdyn.files.description import Description, Frame
from armdyn.files.text import read_bytes

__all__ = ["Description", "Frame", "catalogue", "read"]

_CATALOGUE = Path(__file__).with_name("catalogue")
_READERS = (".toml", ".urdf", ".xml", ".mjcf")


def catalogue() -> tuple[str, ...]:
    """The names of the arms that come with armdyn."""
    return tuple(sorted(entry.stem for entry in _CATALOGUE.glob("*.toml")))


def read(
    arm: str | os.PathLike[str],
    *,
    base: str | None = None,
    tip: str | None = None,
    lock: Mapping[str, float] | None = None,
    snap: float = SNAP,
) -> Description:
    """The arm of a catalogue name, or in a .toml, .urdf, .xml or .mjcf file.

    `base`, `tip` and `lock` cut a chain out of a URDF or MJCF tree, and `snap` makes its angles right before
    frames are placed; arm files have frames and nothing to cut, and are given as written.
    """
    path = Path(arm)
    suffix = path.suffix.lower()
    name = os.fspath(arm)
    if name in catalogue():
        _nothing_to_cut(name, base, tip, lock)
        return toml.parse(read_bytes(_CATALOGUE / f"{name}.toml"), f"catalogue arm {name}", name)
    if not path.exists():
        raise FileError(f"no arm {name!r}: no such file, and the catalogue has {', '.join(catalogue())}")
    if suffix == ".toml":
        _nothing_to_cut(name, base, tip, lock)
        return toml.read(path)
    if suffix == ".urdf" or (suffix == ".xml" and b"<robot" in read_bytes(path)):
        from armdyn.files import urdf

        return urdf.read(path, base=base, tip=tip, lock=lock, snap=snap)
    if suffix in (".xml", ".mjcf"):
        from armdyn.files import mjcf

        return mjcf.read(path, base=base, tip=tip, lock=lock, snap=snap)
    hint = "; expand it to a .urdf first (xacro in > out.urdf)" if suffix == ".xacro" else ""
    raise FileError(f"{name}: unknown kind of file {suffix!r}; expected one of {', '.join(_READERS)}{hint}")


def _nothing_to_cut(name: str, base: str | None, tip: str | None, lock: Mapping[str, float] | None) -> None:
    if base is not None or tip is not None or lock:
        raise InputError(f"{name}: base, tip and lock cut a chain out of a URDF or MJCF tree; an arm file is one chain")

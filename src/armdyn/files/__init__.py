"""Readers and writers of robot files: arm files (TOML), URDF, MJCF, Denavit-Hartenberg tables, and the catalogue.

`read` takes a catalogue name, a path or the text of a URDF, and returns a `Description` of the arm.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armdyn.errors import FileError, InputError, did_you_mean
from armdyn.files.text import is_text, read_bytes
from armdyn.options import Cut, FileOptions

if TYPE_CHECKING:  # readers are imported when a file is read: `armdyn list` and the command line's help need none
    from armdyn.files.description import Description

__all__ = ["catalogue", "listed", "read"]

_CATALOGUE = Path(__file__).with_name("catalogue")
_READERS = (".toml", ".urdf", ".xacro", ".sdf", ".xml", ".mjcf")


def catalogue() -> tuple[str, ...]:
    """The names of the arms included with armdyn."""
    return tuple(sorted(entry.stem for entry in _CATALOGUE.glob("*.toml")))


def listed(name: str) -> dict[str, Any]:
    """What `armdyn list` says of an arm of the catalogue: its name, joints, mass and source, as its file has them."""
    import tomllib

    data = tomllib.loads(read_bytes(_CATALOGUE / f"{name}.toml").decode())
    kinds = "".join(joint["kind"][0].upper() for joint in data["joint"] if "mimic" not in joint)
    mass = sum(float(joint["link"]["mass"]) for joint in data["joint"])
    return {"name": name, "joints": kinds, "mass_kg": round(mass, 4), "source": data["source"]}


def read(
    arm: Any,
    cut: Cut,
    *,
    snap: float,
    reading: FileOptions = FileOptions(),
) -> Description:
    """Read an arm from the catalogue, the text of a URDF, or a .toml, .urdf, .xacro, .sdf, .xml or .mjcf file.

    `cut` selects a part of the tree. Angles within `snap` of a right angle are snapped before the frames are placed. A
    whole arm file is returned as written, because its frames are given. What `reading.strict` makes of impossible
    inertias is said in `armdyn.files.description`.
    """
    from armdyn.files import toml

    xacro, strict = reading.xacro, reading.strict
    in_memory = not isinstance(arm, str | bytes | os.PathLike)
    if xacro is not None and (in_memory or not os.fsdecode(arm).lower().endswith(".xacro")):
        raise InputError(f"xacro={dict(xacro)!r} are the arguments of a .xacro file, and {str(arm)[:80]!r} is none")
    if in_memory or (isinstance(arm, str) and is_text(arm) and "<mujoco" in arm):
        from armdyn.files import memory  # imported only if needed

        if in_memory:
            return memory.read(arm, cut, snap, strict)
        if memory.is_mjcf(str(arm)):
            return memory.read_mjcf(str(arm), cut, snap, strict)
    if isinstance(arm, str) and is_text(arm):
        return _read_urdf(arm, cut, snap, strict)
    name = os.fspath(arm)
    if not isinstance(name, str):
        raise InputError(f"an arm must be a catalogue name, a path or the text of a URDF, as str; got {type(name)}")
    path = Path(name)
    suffix = path.suffix.lower()
    if name in catalogue():
        found = toml.parse(read_bytes(_CATALOGUE / f"{name}.toml"), f"catalogue arm {name}", name)
        return _part(found, cut, name, snap, strict)
    if not _exists(path):
        shown = repr(name) if len(name) <= 200 else f"{name[:80]!r}… ({len(name)} characters)"
        near = did_you_mean(name, list(catalogue()))
        raise FileError(f"no arm {shown}: no such file, and the catalogue has {', '.join(catalogue())}{near}")
    if not name or path.is_dir():
        raise FileError(f"{name!r} is no file; expected a name of the catalogue or a file ({', '.join(_READERS)})")
    if suffix == ".toml":
        return _part(toml.read(path), cut, path.name, snap, strict)
    if suffix in (".urdf", ".xacro") or (suffix == ".xml" and b"<robot" in read_bytes(path)):
        return _read_urdf(path, cut, snap, strict, xacro, reading.package_dirs)
    if suffix == ".sdf":
        from armdyn.files import sdf, urdf

        return urdf.robot(sdf.read_tree(path), cut, snap, strict=strict)
    if suffix in (".xml", ".mjcf"):
        from armdyn.files import mjcf

        return mjcf.read(path, cut, snap, reading.allow_outside, strict)
    raise FileError(f"{name}: unknown kind of file {suffix!r}; expected one of {', '.join(_READERS)}")


def _read_urdf(
    source: str | Path,
    cut: Cut,
    snap: float,
    strict: bool | None,
    xacro: Mapping[str, Any] | None = None,
    package_dirs: Sequence[Any] = (),
) -> Description:
    from armdyn.files import urdf, urdf_tree  # imported only if needed

    return urdf.robot(urdf_tree.read_tree(source, xacro, package_dirs), cut, snap, strict=strict)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, or has a NUL in it
        return False


def _part(whole: Description, cut: Cut, label: str, snap: float, strict: bool | None) -> Description:
    from armdyn.files.description import of_arm_file

    if cut == Cut():
        return of_arm_file(whole, label, strict)
    from armdyn.files import arm_tree

    return arm_tree.cut(whole, cut, label, snap, strict)

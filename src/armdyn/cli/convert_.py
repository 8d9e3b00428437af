"""`armdyn convert ARM OUT`: convert an arm file to another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armdyn.cli.common import ArmName, Quiet, console, load, note
from armdyn.errors import InputError

EXAMPLE = "Example: armdyn convert my_robot.urdf my_robot.toml --tip tool0"


def command(
    arm: ArmName,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write: .toml, .urdf, or .xml for MJCF.")],
    snap: Annotated[float, typer.Option(help="Snap angles this close to right angles, rad; 0: never.")] = 1e-5,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Convert an arm to another file format, given by the suffix of OUT."""
    loaded = load(arm, snap=snap)
    if out.suffix == ".toml":
        loaded.save(out)
    elif out.suffix == ".urdf":
        loaded.to_urdf(out)
    elif out.suffix in (".xml", ".mjcf"):
        for line in loaded.to_mjcf(out):
            note(line)
    else:
        raise InputError(f"cannot write {out.name!r}: expected a name that ends in .toml, .urdf or .xml (MJCF)")
    if not quiet:
        console().print(f"wrote {out}: {loaded.name}, {loaded.n} joints", markup=False, highlight=False, soft_wrap=True)

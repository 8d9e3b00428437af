"""`armdyn convert IN OUT`: from one arm file to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armdyn.cli.common import ArmName, Quiet, console, load
from armdyn.errors import InputError

EXAMPLE = "Example: armdyn convert my_robot.urdf my_robot.toml --tip tool0"


def command(
    arm: ArmName,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write: .toml or .urdf.")],
    snap: Annotated[float, typer.Option(help="Angles this close to right are right, rad; 0: as written.")] = 1e-5,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Convert an arm between files; the suffix of OUT decides the format."""
    loaded = load(arm, snap=snap)
    if out.suffix == ".toml":
        loaded.save(out)
    elif out.suffix == ".urdf":
        loaded.to_urdf(out)
    else:
        raise InputError(f"cannot write {out.name!r}: expected a name that ends in .toml or .urdf")
    if not quiet:
        console().print(f"wrote {out}: {loaded.name}, {loaded.n} joints", markup=False)

"""`armdyn eval ARM QUANTITY`: numbers at one configuration."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Degrees, console, load, print_json, styled, vector
from armdyn.cli.values import described, joint_numbers
from armdyn.errors import InputError

EXAMPLE = "Example: armdyn eval puma560 inertia_matrix --q 0,-pi/4,0,0,0.5,0"

PANELS = {"The body of payload_parameters": ("mass", "com", "inertia")}


def command(
    arm: ArmName,
    quantity: Annotated[str, typer.Argument(metavar="QUANTITY", help="inertia_matrix, bias, pose, …")],
    q: Annotated[str, typer.Option(help="Joint positions, rad or m: 0,0.1,pi/2,-90deg")] = "",
    qd: Annotated[str, typer.Option(help="Joint velocities.")] = "",
    qdd: Annotated[str, typer.Option(help="Joint accelerations.")] = "",
    tau: Annotated[str, typer.Option(help="Joint forces, N m or N.")] = "",
    mass: Annotated[str, typer.Option(help="For payload_parameters: kg.")] = "",
    com: Annotated[str, typer.Option(help="For payload_parameters: the centre of mass in the tool frame, m.")] = "",
    inertia: Annotated[str, typer.Option(help="For payload_parameters: xx,yy,zz,xy,xz,yz about com, kg m².")] = "",
    frame: Annotated[str, typer.Option(help="The frame for poses, Jacobians, payloads; default: the tool.")] = "",
    degrees: Degrees = False,
    friction: Annotated[bool, typer.Option("--friction", help="Include joint friction in the dynamics.")] = False,
    method: Annotated[str, typer.Option(help="The formulation; see `armdyn cost ARM`.")] = "auto",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Evaluate a quantity at one configuration; inputs are zero by default, and a floating base is upright."""
    import numpy as np

    from armdyn.formulations import QUANTITIES

    loaded = load(arm, at_tool=not frame and quantity in QUANTITIES and QUANTITIES[quantity].at_tool)
    options: dict[str, Any] = ({"frame": frame} if frame else {}) | ({"friction": True} if friction else {})
    kernel = loaded.kernel(quantity, method=method, **options)
    takes, gives = kernel.ports
    ports = [name for name, _ in takes]
    given = {"q": q, "qd": qd, "qdd": qdd, "tau": tau, "mass": mass, "com": com, "inertia": inertia}
    unused = [f"--{name}" for name, text in given.items() if text and name not in ports]
    if unused:
        raise InputError(f"{quantity} takes {', '.join(ports)}, not {', '.join(unused)}")
    upright = {"q": np.eye(1, loaded.chain.nq, 6)[0]} if loaded.floating else {}  # a quaternion of length 1
    inputs = [
        _numbers(loaded, given[name], name, shape, degrees) if given.get(name) else upright.get(name, np.zeros(shape))
        for name, shape in takes
    ]
    result = kernel(*inputs)
    results = result if isinstance(result, tuple) else (result,)
    named = {name: np.asarray(value) for (name, _), value in zip(gives, results, strict=True)}
    if as_json:
        print_json({"arm": loaded.name, "quantity": quantity, "method": kernel.method, **named})
        return
    out = console()
    out.print(styled((quantity, "bold"), f" of {loaded.name} by {kernel.method}"))
    for name, value in named.items():
        for shown in described(loaded, quantity, name, value, out.width):
            out.print(shown, highlight=False)


def _numbers(arm: Any, text: str, name: str, shape: tuple[int, ...], degrees: bool) -> Any:
    """The numbers of an input; the kernel reports a wrong shape of those that are not of the joints."""
    if name in ("q", "qd", "qdd", "tau"):
        return joint_numbers(arm, text, name, degrees)
    values = vector(text, f"--{name}")
    return values[0] if not shape and len(values) == 1 else values

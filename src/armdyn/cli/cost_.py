"""`armdyn cost ARM`: operations of every formulation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from armdyn.cli.common import ArmName, AsJson, Quiet, console, load, print_json, progress, table
from armdyn.formulations import DERIVATIVES

EXAMPLE = "Example: armdyn cost panda --quantity inertia_matrix"
DEFAULT = ["inertia_matrix", "bias", "inverse_dynamics", "forward_dynamics", *DERIVATIVES]

Wanted = Annotated[list[str] | None, typer.Option("--quantity", help="A quantity (repeatable); six by default.")]
Laws = Annotated[list[str] | None, typer.Option("--controller", help="A control law (repeatable), or all.")]


def command(
    arm: ArmName, quantity: Wanted = None, controller: Laws = None, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Count the operations of every formulation, as published and as compiled; the cheapest is highlighted."""
    loaded = load(arm)
    rows = [_law(loaded, name) for name in _laws(controller)]
    wanted = quantity or ([] if controller else DEFAULT)
    with progress("counting operations", quiet or as_json) as update:
        for k, name in enumerate(wanted):
            update(k, len(wanted), f"counting {name}")
            rows += [_derivatives(loaded, name)] if name in DERIVATIVES else _quantity(loaded, name)
    if as_json:
        print_json({"arm": loaded.name, "costs": rows})
        return
    out = console()
    shown = table(
        f"{loaded.name}: M multiplications, A additions, D divisions; total: of the compiled; sines and cosines apart",
        ["formulation", "executed", "compiled", "total", "sin, cos"],
        [],
    )
    for k, row in enumerate(rows):
        if not k or row["quantity"] != rows[k - 1]["quantity"]:
            shown.add_row(row["quantity"], "", "", "", "", style="bold")
        executed = row["published"]["text"] if row["published"] else "–"
        cells = [f"  {row['method']}", executed, row["compiled"]["text"]]
        cells += [str(row["compiled"]["total"]), str(row["compiled"]["trig"])]
        shown.add_row(*cells, style="bold green" if row["best"] else "")
    out.print(shown)
    for name in wanted:
        for why, methods in _refused(loaded, name).items():
            out.print(f"{name} by {', '.join(methods)} {why}", highlight=False)


def _quantity(loaded: Any, quantity: str) -> list[dict[str, Any]]:
    import armdyn

    rows: list[dict[str, Any]] = []
    for method in armdyn.methods(quantity, loaded):
        if method == "reference" and quantity != "inertia_matrix":
            continue  # exact derivatives of the energies, a reference for tests
        found = armdyn.cost(loaded, quantity, method=method)
        rows.append(
            {
                "quantity": quantity,
                "method": method,
                "published": _operations(found.published)
                | {"stages": {name: _operations(o) for name, o in found.published.stages.items()}},
                "compiled": _operations(found.compiled),
            }
        )
    least = min(int(row["compiled"]["total"]) for row in rows)
    for row in rows:
        row["best"] = row["compiled"]["total"] == least
    return rows


def _refused(loaded: Any, quantity: str) -> dict[str, list[str]]:
    """The formulations that do not apply to this robot, by the reason."""
    from armdyn.formulations import QUANTITIES

    found: dict[str, list[str]] = {}
    for method in QUANTITIES[quantity].methods if quantity in QUANTITIES else ():
        if why := method.refusal(loaded.chain):
            found.setdefault(why, []).append(method.key)
    return found


def _laws(asked: list[str] | None) -> list[str]:
    from armdyn.control import CONTROLLERS

    return list(CONTROLLERS) if asked == ["all"] else asked or []


def _law(loaded: Any, name: str) -> dict[str, Any]:
    """One step of a control law."""
    from armdyn.control import controller

    compiled = _operations(controller(loaded, name).operations)
    return {"quantity": name, "method": "control law", "published": None, "compiled": compiled, "best": True}


def _derivatives(loaded: Any, quantity: str) -> dict[str, Any]:
    """The derivatives with respect to all three inputs; there is no published count."""
    kernel = getattr(loaded, quantity)
    compiled = _operations(kernel.program.operations)
    return {"quantity": quantity, "method": "recursive", "published": None, "compiled": compiled, "best": True}


def _operations(o: Any) -> dict[str, Any]:
    return {"mul": o.mul, "add": o.add, "div": o.div, "trig": o.trig, "total": o.total, "text": str(o)}

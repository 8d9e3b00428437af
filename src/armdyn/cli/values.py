"""Results as text: entries with the names of their joints and their units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from armdyn.cli.common import Fitted, note, table, with_units
from armdyn.errors import count
from armdyn.html import number

if TYPE_CHECKING:
    from armdyn.arm import Arm

BASE_POSITION = ("base x", "base y", "base z", *(f"base quaternion {axis}" for axis in "xyzw"))
BASE_VELOCITY = tuple(f"base {kind}{axis}" for kind in ("", "about ") for axis in "xyz")
TWIST = ("x", "y", "z", "about x", "about y", "about z")


def described(arm: Arm, quantity: str, port: str, value: Any, width: int) -> list[Any]:
    """A result as things to print: one entry per line with its joint and unit, or a matrix with the joints' names."""
    import numpy as np

    from armdyn.formulations.registry import entry_units, units

    value = _clean(np.asarray(value, dtype=float))
    unit = units(arm.chain, quantity, port)
    if value.ndim == 0:
        return [f"{port} = {number(float(value))} {unit}"]
    if value.ndim == 1 and port in ("q", "qd", "qdd", "tau", "b", "g") and len(value) in (arm.chain.nq, arm.chain.nv):
        entries = zip(coordinates(arm, port == "q"), value.tolist(), entry_units(arm.chain, port), strict=True)
        return [table("", ["joint", port, "unit"], entries)]
    names = _row_names(arm, value.shape[0], port)
    if value.ndim != 2 or names is None:
        with np.printoptions(precision=6, suppress=True, linewidth=width):
            return [f"{port} [{unit}] =", _literal(str(value))]
    columns = [str(k + 1) for k in range(value.shape[1])]
    if value.shape[1] == arm.chain.nv and names == coordinates(arm):  # columns are numbered as rows
        names = [f"{k} {name}" for k, name in enumerate(names, 1)]
    rows = [[name, *row] for name, row in zip(names, value.tolist(), strict=True)]
    return [table(f"{port} [{unit}]", ["", *columns], rows)]


def joint_numbers(arm: Arm, text: str, port: str, degrees: bool = False, option: str = "") -> list[float]:
    """Positions, velocities or accelerations as typed, in SI units; angles with `deg`, or all with `degrees`.

    A position that looks like degrees taken for radians gets a note.
    """
    import math

    from armdyn.errors import InputError
    from armdyn.formulations.registry import entry_units

    option = option or f"--{port}"
    typed = with_units(text, option)
    expected = entry_units(arm.chain, port)
    if len(typed) != len(expected):
        names = coordinates(arm, port == "q")
        order = ", ".join(names if len(names) <= 12 else [*names[:8], "…", names[-1]])
        raise InputError(f"{option} takes {count(len(expected), 'number')} ({order}), got {len(typed)}")
    values = []
    for name, (value, unit), si in zip(coordinates(arm, port == "q"), typed, expected, strict=True):
        angle = si.startswith("rad")
        if unit and not angle:
            raise InputError(f"{option}: {name} is in {si}, got {value:g} {unit}")
        values.append(math.radians(value) if unit == "deg" or (degrees and angle and not unit) else value)
    if port == "q":
        _note_degrees(arm, values)
    return values


def _note_degrees(arm: Arm, q: list[float]) -> None:
    """Say so where an angle is more than a turn and outside its limits: it may have been meant in degrees."""
    import math

    angles = q[len(q) - arm.n :]
    for joint, angle, (low, high) in zip(arm.joints, angles, arm.limits.tolist(), strict=True):
        unlimited = not math.isfinite(low) and not math.isfinite(high)
        if (
            joint.revolute
            and abs(angle) > (2 if unlimited else 1) * 2 * math.pi
            and (unlimited or not low <= angle <= high)
        ):
            limits = "a joint without limits" if unlimited else f"far outside its limits, {low:.4g} to {high:.4g} rad"
            note(
                f"{joint.name} at {angle:.6g} rad is {limits}; if degrees are meant, write {angle:.6g}deg, or --degrees"
            )


def coordinates(arm: Arm, positions: bool = False) -> list[str]:
    """The names of the entries of q, or of qd: those of a floating base, then the joints."""
    base = (BASE_POSITION if positions else BASE_VELOCITY) if arm.floating else ()
    return [*base, *arm.joint_names]


def state_table(arm: Arm, time: float, q: Any, qd: Any) -> Fitted:
    """The last state of a motion, joint by joint; a floating base's pose is in it by its own coordinates."""
    from armdyn.formulations.registry import entry_units

    title = f"at t = {number(float(time))} s"
    if arm.floating:  # q and qd have different entries
        rows: list[list[Any]] = []
        for name, values in (("q", q), ("qd", qd)):
            parts = coordinates(arm, name == "q"), _clean(values).tolist(), entry_units(arm.chain, name)
            rows += [[name, *cells] for cells in zip(*parts, strict=True)]
        return table(title, ["", "coordinate", "value", "unit"], rows, left=2, keys=2)
    unit = entry_units(arm.chain, "q")
    cells = zip(coordinates(arm), _clean(q).tolist(), _clean(qd).tolist(), unit, strict=True)
    if len(set(unit)) == 1:
        return table(title, ["joint", f"q [{unit[0]}]", f"qd [{unit[0]}/s]"], [row[:3] for row in cells])
    return table(title, ["joint", "q", "qd", "unit of q"], cells)


def _row_names(arm: Arm, rows: int, port: str) -> list[str] | None:
    if port in ("J", "dJ") and rows == len(TWIST):
        return list(TWIST)
    return coordinates(arm) if rows == arm.chain.nv and port != "T" else None


def _clean(values: Any) -> Any:
    """The numbers without what is lost in the others' last digits, and without a minus before zero."""
    import numpy as np

    values = np.asarray(values, dtype=float)
    largest = np.max(np.abs(values), initial=0.0, where=np.isfinite(values))
    return np.where(np.abs(values) < 1e-14 * largest, 0.0, values) + 0.0


def _literal(text: str) -> Any:
    from rich.text import Text

    return Text(text)

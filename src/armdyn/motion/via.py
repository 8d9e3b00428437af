"""Via points from a file: configurations or poses of the tool, one per line of a CSV file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from armdyn.errors import InputError, required
from armdyn.files.text import read_bytes

POSITION = ("x", "y", "z")
QUATERNION = ("qx", "qy", "qz", "qw")
ANGLES = ("roll", "pitch", "yaw")


def read_via(path: str | os.PathLike[str], arm: Any) -> np.ndarray:
    """Waypoints (k, n) or poses of the tool (k, 4, 4).

    The first line may name the columns: q1 … qn or the joints' names (rad, m) in any order, or x, y, z (m) with
    qx, qy, qz, qw or roll, pitch, yaw (rad; R = Rz(yaw) Ry(pitch) Rx(roll)). Without names there is one column per
    joint. Lines that begin with # are skipped.
    """
    text = read_bytes(path).decode("utf-8-sig", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    rows = [[cell.strip() for cell in line.replace(";", ",").split(",")] for line in lines]
    if not rows:
        raise InputError(f"{path} has no via points; expected one per line, a column per joint")
    names = None if _numbers(rows[0]) else rows.pop(0)
    values = []
    for k, row in enumerate(rows, 1):
        found = _numbers(row)
        if found is None or len(found) != len(rows[0]):
            raise InputError(f"via point {k} of {path} has to be {len(rows[0])} numbers, got {', '.join(row)}")
        values.append(found)
    table = np.array(values, float).reshape(len(rows), -1)
    return table if names is None else _by_names(table, names, arm, path)


def _numbers(row: list[str]) -> list[float] | None:
    try:
        return [float(cell) for cell in row]
    except ValueError:
        return None


def _by_names(table: np.ndarray, names: list[str], arm: Any, path: Any) -> np.ndarray:
    """The columns in the arm's order, or as poses."""
    if len(names) != table.shape[1]:
        raise InputError(f"{path} names {len(names)} columns, but its rows have {table.shape[1]}")
    if len(set(names)) < len(names):
        raise InputError(f"{path} has columns of the same name: {', '.join(names)}")
    column = {name: table[:, k] for k, name in enumerate(names)}
    for wanted in (arm.joint_names, [f"q{k + 1}" for k in range(arm.n)]):
        if set(wanted) <= set(names):
            return np.stack([column[name] for name in wanted], axis=1)
    if set(POSITION) <= set(names):
        turned = next((keys for keys in (QUATERNION, ANGLES) if set(keys) <= set(names)), None)
        if turned is not None:
            position, turns = (np.stack([column[name] for name in keys], axis=1) for keys in (POSITION, turned))
            return _poses(position, turns, path)
    raise InputError(
        f"{path} has the columns {', '.join(names)}; expected q1 … q{arm.n}, the joints {', '.join(arm.joint_names)}, "
        "or x, y, z with qx, qy, qz, qw or roll, pitch, yaw"
    )


def _poses(position: np.ndarray, turned: np.ndarray, path: Any) -> np.ndarray:
    required("scipy")
    from scipy.spatial.transform import Rotation

    if turned.shape[1] == len(QUATERNION):
        length = np.linalg.norm(turned, axis=1)
        if not (np.abs(length - 1) < 1e-3).all():
            raise InputError(
                f"the quaternions of {path} must have length 1, got {length[np.abs(length - 1).argmax()]:g}"
            )
        rotation = Rotation.from_quat(turned)
    else:
        rotation = Rotation.from_euler("xyz", turned)  # about fixed axes
    poses = np.tile(np.eye(4), (len(position), 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = rotation.as_matrix(), position
    return poses

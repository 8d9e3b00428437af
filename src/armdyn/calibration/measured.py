"""Calibration measurements of an arm's tool, one per configuration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError, required
from armdyn.identification.log_files import read_table
from armdyn.values import real_array

Array = NDArray[np.float64]
QUATERNION = ("qx", "qy", "qz", "qw")
LARGEST_TURN = 4 * np.pi  # radians; larger joint angles are taken to be in degrees
LARGEST_REACH = 30.0  # metres; larger lengths are taken to be in millimetres


@dataclass(frozen=True, eq=False, repr=False)
class Poses:
    """Configurations `q` (k, n) and the measurement taken at each.

    A measurement is either the tool's `position` (k, 3) in the measuring device's frame, optionally with its `rotation`
    (k, 3, 3); or `plane` (k,), the number of the plane that the tool's origin touched; or `distance` (k,), the distance
    of the tool's origin from an unknown fixed point (a ball bar).
    """

    q: Array
    position: Array | None = None
    rotation: Array | None = None
    plane: NDArray[np.int64] | None = None
    distance: Array | None = None
    source: str = ""

    def __post_init__(self) -> None:
        given = [x is not None for x in (self.position, self.plane, self.distance)]
        if sum(given) != 1 or (self.rotation is not None and self.position is None):
            raise InputError("poses need exactly one of position (with or without rotation), plane and distance")
        for name, shape in (("position", (3,)), ("rotation", (3, 3)), ("plane", ()), ("distance", ())):
            value = getattr(self, name)
            if value is not None and value.shape != (len(self.q), *shape):
                raise InputError(f"{name} must be {(len(self.q), *shape)} for {len(self.q)} q; got {value.shape}")
            if value is not None and not np.isfinite(value).all():
                row = int(np.argwhere(~np.isfinite(value))[0][0])
                raise InputError(f"{name} of pose {row + 1} is not finite; leave out poses that were not measured")
        if self.q.ndim != 2 or not np.isfinite(self.q).all():
            raise InputError(f"q must be finite numbers (k, n), one row per pose; got shape {self.q.shape}")

    def __repr__(self) -> str:
        return f"<Poses: {len(self)} {self.kind} measurements{f' from {self.source}' if self.source else ''}>"

    def __len__(self) -> int:
        return len(self.q)

    @property
    def kind(self) -> str:
        """What was measured: "pose", "point", "plane" or "ball bar"."""
        if self.position is not None:
            return "point" if self.rotation is None else "pose"
        return "plane" if self.plane is not None else "ball bar"

    @classmethod
    def of(cls, q: Any, measured: Any) -> Poses:
        """From (k, 4, 4) poses, (k, 7) positions and quaternions x y z w, or (k, 3) positions, in metres."""
        angles, values = np.atleast_2d(real_array(q, "q")), real_array(measured, "the measured poses")
        if values.ndim == 3 and values.shape[1:] == (4, 4):
            return cls(angles, values[:, :3, 3].copy(), _nearest_rotations(values[:, :3, :3]))
        if values.ndim == 2 and values.shape[1] == 7:
            return cls(angles, values[:, :3].copy(), quaternion_rotations(values[:, 3:]))
        if values.ndim == 2 and values.shape[1] == 3:
            return cls(angles, values.copy())
        raise InputError(
            f"measured poses are (k, 4, 4) matrices, (k, 7) x y z qx qy qz qw, or (k, 3) points; got {values.shape}"
        )

    @classmethod
    def on_plane(cls, q: Any, which: Any = None) -> Poses:
        """Configurations at which the tool's origin touched one plane, or the planes numbered `which` (k,)."""
        angles = np.atleast_2d(real_array(q, "q"))
        numbers = np.zeros(len(angles)) if which is None else real_array(which, "the planes")
        return cls(angles, plane=np.unique(numbers, return_inverse=True)[1].astype(np.int64))

    @classmethod
    def ball_bar(cls, q: Any, length: Any) -> Poses:
        """Configurations with the distance (one number, or (k,)) between the tool's origin and a fixed point."""
        angles = np.atleast_2d(real_array(q, "q"))
        return cls(angles, distance=np.broadcast_to(real_array(length, "the distances"), len(angles)).copy())

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        joints: Sequence[str] = (),
        n: int | None = None,
        degrees: bool = False,
        millimetres: bool = False,
    ) -> Poses:
        """Read a table with one row per pose: q1 … qn (or the joints' names), then the measurement.

        The measurement is x, y, z (with qx, qy, qz, qw for a whole pose), or `plane`, or `distance`. Units are metres
        and radians unless `millimetres` or `degrees` is given.
        """
        table = {name if name in joints else name.lower(): column for name, column in read_table(path)[0].items()}
        n = len(joints) if n is None else n
        angles = np.column_stack([_column(table, (f"q{k + 1}", *joints[k : k + 1]), str(path)) for k in range(n)])
        poses = cls._from_table(table, np.radians(angles) if degrees else angles, str(path))
        scale = 1e-3 if millimetres else 1.0
        scaled = {name: scale * x for name in ("position", "distance") if (x := getattr(poses, name)) is not None}
        poses = replace(poses, source=os.fspath(path), **scaled)
        _check_units(poses, str(path))
        return poses

    @classmethod
    def _from_table(cls, table: dict[str, Array], q: Array, where: str) -> Poses:
        if "distance" in table:
            return cls.ball_bar(q, table["distance"])
        if "plane" in table:
            return cls.on_plane(q, table["plane"])
        point = np.column_stack([_column(table, (name,), where) for name in "xyz"])
        if not any(name in table for name in QUATERNION):
            return cls.of(q, point)
        return cls.of(q, np.column_stack([point, *(_column(table, (name,), where) for name in QUATERNION)]))

    def chosen(self, rows: Any) -> Poses:
        """The poses selected by indices or a mask."""
        columns = {
            name: value[rows]
            for name in ("position", "rotation", "plane", "distance")
            if (value := getattr(self, name)) is not None
        }
        return replace(self, q=self.q[rows], **columns)


def _column(table: dict[str, Array], names: Sequence[str], where: str) -> Array:
    for name in names:
        if name in table:
            return table[name]
    raise InputError(
        f"{where}: no column {' or '.join(names)}; a table of poses has q1 … qn, then x y z (and qx qy qz qw), plane "
        f"or distance; this one has {', '.join(table)}"
    )


def _check_units(poses: Poses, where: str) -> None:
    """Raise an error if the numbers can only be in degrees or millimetres."""
    if np.abs(poses.q).max(initial=0.0) > LARGEST_TURN:
        raise InputError(
            f"{where}: q goes up to {np.abs(poses.q).max():.4g}, expected radians (or metres); for degrees give "
            "degrees=True (--degrees)"
        )
    lengths = poses.position if poses.position is not None else poses.distance
    if lengths is not None and np.abs(lengths).max(initial=0.0) > LARGEST_REACH:
        raise InputError(
            f"{where}: lengths go up to {np.abs(lengths).max():.4g}, expected metres; for millimetres give "
            "millimetres=True (--millimetres)"
        )


def quaternion_rotations(quaternions: Array) -> Array:
    """(k, 3, 3) rotations from (k, 4) quaternions x y z w, whose length must be 1 within a percent."""
    size = np.linalg.norm(quaternions, axis=1)
    if (off := np.abs(size - 1) > 0.01).any():
        row = int(np.argmax(off))
        raise InputError(f"pose {row + 1}: a quaternion qx qy qz qw has length 1, got {size[row]:.4g}")
    required("scipy")
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_quat(quaternions).as_matrix())


def _nearest_rotations(matrices: Array) -> Array:
    """The rotations nearest to matrices whose singular values are 1 within a percent."""
    U, s, Vt = np.linalg.svd(matrices)
    bad = (np.abs(s - 1) > 0.01).any(axis=1) | (np.linalg.det(U @ Vt) < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"pose {row + 1}: its 3 × 3 block is not a rotation (singular values {np.round(s[row], 4)})")
    return np.asarray(U @ Vt)

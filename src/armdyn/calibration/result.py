"""The result of a calibration: corrected constants with their standard deviations, the corrected arm and its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.calibration.fit import GeometryFit, on_closure
from armdyn.calibration.measured import Array, Poses
from armdyn.calibration.model import ToolModel
from armdyn.chain import Chain, Placement
from armdyn.chain.geometry import GeometryConstant, geometry_constants, with_geometry
from armdyn.files import arrays
from armdyn.files.description import Frame
from armdyn.results import Result, ResultTable
from armdyn.values import cached_property

if TYPE_CHECKING:
    from armdyn.arm import Arm
    from armdyn.options import Lock

AXES = ("x", "y", "z", "about x", "about y", "about z")


@dataclass(frozen=True, eq=False)
class Validation:
    """The held-out poses, and their (k, m) residuals (predicted minus measured) under a fit without them."""

    rows: tuple[int, ...]
    residual: Array


@dataclass(frozen=True, slots=True)
class Correction:
    """The correction of one constant, with its value before and the standard deviation of the correction."""

    name: str
    before: float
    correction: float
    deviation: float
    is_length: bool

    @property
    def unit(self) -> str:
        """The unit for display: mm or mrad."""
        return "mm" if self.is_length else "mrad"

    @property
    def significant(self) -> bool:
        """Whether the correction is larger than twice its deviation."""
        return abs(self.correction) > 2 * self.deviation


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Result):
    """The result of `calibrate`: `arm` is the corrected arm, `corrections` lists every constant that was fitted."""

    given: Arm
    start: Arm  # the serial chain that was fitted, with base and tool registered to the measurements
    path: tuple[int, ...]  # indices of its joints in the given arm
    frame: str | None
    poses: Poses
    constants: tuple[GeometryConstant, ...]
    wanted: tuple[GeometryConstant, ...]
    before: GeometryFit  # of base, tool and closure only
    fit: GeometryFit
    validation: Validation | None

    def __repr__(self) -> str:
        return f"<Calibration of {self.given.name}: {len(self.fit.free)} constants from {self.poses!r}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def table(self) -> ResultTable:
        """The constants that were fitted."""
        rows = [
            (c.name, 1e3 * c.before, 1e3 * c.correction, 1e3 * c.deviation, c.unit, "" if c.significant else "no")
            for c in self.corrections
        ]
        heads = ["constant", "before", "correction", "standard deviation", "unit", "significant"]
        return ResultTable.of(repr(self)[1:-1], heads, rows)

    def lines(self) -> Iterator[str]:
        """The result in a few lines."""
        yield f"{self.given.name}: {len(self.fit.free)} constants from {len(self.poses)} {self.poses.kind} measurements"
        for what, unit, scale, part in self.parts():
            inside = self.fit.inliers
            old, new = (_rms_max(one.residual[inside][:, part]) for one in (self.before, self.fit))
            line = f"{what}: {scale * old[0]:.3g} -> {scale * new[0]:.3g} {unit} rms, "
            line += f"{scale * old[1]:.3g} -> {scale * new[1]:.3g} {unit} at most"
            if self.validation is not None:
                line += f"; {scale * _rms_max(self.validation.residual[:, part])[0]:.3g} {unit} rms on held-out poses"
            yield line
        if self.outliers:
            yield f"set aside as outliers: poses {', '.join(str(k + 1) for k in self.outliers)}"
        yield from self.notes

    def parts(self) -> Iterator[tuple[str, str, float, slice]]:
        """The parts of a residual: name, unit, factor from SI to that unit, and columns."""
        named = {"plane": "distance from the plane", "ball bar": "distance"}
        yield named.get(self.poses.kind, "position"), "mm", 1e3, slice(0, 3)
        if self.poses.kind == "pose":
            yield "orientation", "mrad", 1e3, slice(3, 6)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constants that were fitted."""
        return tuple(self.constants[k].name for k in self.fit.free)

    @cached_property
    def corrections(self) -> tuple[Correction, ...]:
        """Every constant that was fitted, in metres and radians."""
        today, deviations = self.start.geometry, np.sqrt(np.diag(self.fit.covariance))
        return tuple(
            Correction(c.name, float(today[k]), float(self.fit.geometry[k] - today[k]), float(s), c.is_length)
            for k, s in zip(self.fit.free, deviations, strict=True)
            for c in (self.constants[k],)
        )

    @property
    def covariance(self) -> Array:
        """(p, p) covariance of the corrections, in the order of `names`."""
        return self.fit.covariance

    @property
    def noise(self) -> dict[str, float]:
        """The standard deviation of the measurement per axis: in metres, and in radians about the tool's axes."""
        axes = AXES if self.poses.kind in ("pose", "point") else (self.poses.kind,)
        return {axis: float(x) for axis, x in zip(axes, self.fit.noise, strict=False)}

    @property
    def outliers(self) -> tuple[int, ...]:
        """Indices (from 0) of the poses that were set aside."""
        return tuple(int(k) for k in np.flatnonzero(~self.fit.inliers))

    @cached_property
    def combinations(self) -> dict[str, str]:
        """The identifiable combination behind each fitted constant: it and the constants with the same effect.

        The correction of ``d_2 + d_3`` is assigned to d_2; d_3 stays unchanged.
        """
        others = [self.constants.index(c) for c in self.wanted if self.constants.index(c) not in self.fit.free]
        if not others:
            return {name: name for name in self.names}
        model = ToolModel(self.start)
        q = np.random.default_rng(0).uniform(-2, 2, (8 * len(self.constants), self.start.n))
        own, them = self._columns(model, q, list(self.fit.free)), self._columns(model, q, others)
        multiples = np.linalg.lstsq(own, them, rcond=None)[0]
        combined = {}
        for name, row in zip(self.names, multiples, strict=False):
            terms = [f" {'+' if x > 0 else '-'} {_factor(abs(x))}{self.constants[k].name}"
                     for x, k in zip(row, others, strict=True) if abs(x) > 1e-6]  # fmt: skip
            combined[name] = name + "".join(terms)
        return combined

    def _columns(self, model: ToolModel, q: Array, which: list[int]) -> Array:
        """Columns of the Jacobian for the constants `which`, at `q` or on the closure, its own unknowns last."""
        closure, geometry = self.fit.closure, model.today
        if closure is not None:
            rows = np.resize(np.arange(len(self.poses)), len(q))
            poses = self.poses.chosen(rows)
            closure = closure.of(poses)
            poses = replace(poses, q=on_closure(model, poses.q, geometry, closure))
            J = model.residual(poses, geometry, closure, which)[1]
            return np.asarray(J.reshape(-1, J.shape[2]))
        J = model.slopes(q, geometry, model.pose(q, geometry))[:, : 6 if self.poses.kind == "pose" else 3, which]
        return np.asarray(J.reshape(-1, J.shape[2]))

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings to read before using the corrections."""
        texts = []
        if self.fit.undetermined:
            names = ", ".join(self.constants[k].name for k in self.fit.undetermined)
            texts.append(f"not determined by these measurements, left unchanged: {names}")
        if self.fit.misfits:
            texts.append(
                f"{self.fit.misfits} of {len(self.poses)} poses do not fit the others: too many to be outliers, so all "
                "were kept; check for backlash, compliance or a target that slipped"
            )
        weak = [c.name for c in self.corrections if c.deviation > (5e-3 if c.is_length else 2e-2)]
        if weak:
            texts.append(
                f"weakly determined (standard deviation above 5 mm or 20 mrad): {', '.join(weak)}; "
                "measure more varied poses"
            )
        if self.start.chain.base != self._part.chain.base or self.start.chain.tool != self._part.chain.tool:
            texts.append(
                "base or tool was far from its measured placement: it was first registered to the measurements, and "
                "its corrections are relative to that"
            )
        return tuple(texts)

    @cached_property
    def _part(self) -> Arm:
        from armdyn.calibration.run import serial_part

        return serial_part(self.given, self.frame)[0]

    @cached_property
    def arm(self) -> Arm:
        """The arm with corrected joints, base and tool (or measured frame)."""
        corrected: Arm = self.start.with_geometry(self.fit.geometry)
        frames = tuple(self._frame(f, corrected.chain) for f in self.given.frames)
        chain = self.given.chain
        if self.frame is None and not chain.tool_link:
            return replace(corrected, frames=frames)
        values = dict(zip(geometry_constants(chain), self.given.geometry, strict=True))
        for constant, value in zip(self.constants, self.fit.geometry, strict=True):
            if constant.joint is not None:
                values[GeometryConstant(constant.kind, self.path[constant.joint])] = float(value)
        whole = replace(with_geometry(chain, list(values.values())), base=corrected.chain.base)
        if self.path[-1] + 1 == chain.tool_carrier and _alike(chain.tool, self._part.chain.tool):
            whole = replace(whole, tool=corrected.chain.tool)  # the measured frame is the tool
        return replace(self.given, given=whole, snap=0.0, frames=frames)

    def _frame(self, frame: Frame, corrected: Chain) -> Frame:
        """A named frame of the corrected arm: frames on the base move with it, the tool's own frame with the tool."""
        part = self._part.chain
        if frame.link == 0 and corrected.base != part.base:
            moved = corrected.base @ part.base.inverse @ frame.placement
            return replace(frame, placement=arrays.tidy(moved, frame.placement))
        own = frame.name == self.frame if self.frame is not None else frame.link == self.path[-1] + 1
        return replace(frame, placement=corrected.tool) if own and _alike(frame.placement, part.tool) else frame

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the corrected arm as an arm file (.toml)."""
        self.arm.save(path)

    def to_urdf(self, path: str | os.PathLike[str]) -> None:
        """Write the corrected arm as a new URDF; `update_urdf` edits the original file instead."""
        self.arm.to_urdf(path)

    def update_urdf(
        self,
        original: str | os.PathLike[str],
        out: str | os.PathLike[str],
        *,
        base: str | None = None,
        tip: str | None = None,
        lock: Lock = None,
        move_base: bool = False,
    ) -> list[str]:
        """Write a copy of the original URDF with corrected joint origins and every other byte unchanged.

        `base`, `tip` and `lock` are those it was loaded with. The base's placement is relative to the measuring device
        and is left unchanged unless `move_base` is given. The tool's correction goes into the fixed joint of its link,
        if it has one. Returns the names of the joints that were changed.
        """
        from armdyn.files.urdf_geometry import update_geometry
        from armdyn.options import Cut

        cut = Cut(base, tip, lock, None)
        return update_geometry(original, out, self.given.chain, self.arm.chain, cut, self.given.snap, move_base)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML page with corrections, residuals and plots."""
        from armdyn.calibration.report import write

        write(self, path)

    def as_dict(self) -> dict[str, Any]:
        """All results as plain data in SI units."""
        return {
            "arm": self.given.name,
            "kind": self.poses.kind,
            "poses": len(self.poses),
            "corrections": [
                {"name": c.name, "before": c.before, "correction": c.correction, "deviation": c.deviation,
                 "unit": "m" if c.is_length else "rad", "combination": self.combinations[c.name]}
                for c in self.corrections
            ],
            "covariance": self.covariance,
            "noise": self.noise,
            "outliers": self.outliers,
            "condition": self.fit.condition,
            "residual_before": self.before.residual,
            "residual_after": self.fit.residual,
            "held_out": self.validation and {"poses": self.validation.rows, "residual": self.validation.residual},
            "notes": self.notes,
        }  # fmt: skip


def _rms_max(residual: Array) -> tuple[float, float]:
    """The root mean square and the largest norm of the rows."""
    length = np.linalg.norm(residual, axis=1)
    return float(np.sqrt((length**2).mean())), float(length.max())


def _factor(x: float) -> str:
    return "" if abs(x - 1) < 1e-6 else f"{x:.4g} "


def _alike(a: Placement, b: Placement) -> bool:
    """Whether two placements are equal up to snapping."""
    off = [x - y for p, q in zip((*a.R.rows, a.p), (*b.R.rows, b.p), strict=True) for x, y in zip(p, q, strict=True)]
    return max(abs(float(x)) for x in off) < 1e-4

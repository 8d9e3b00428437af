"""Trajectory: the result of a simulation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armdyn.errors import InputError, choose
from armdyn.files.text import write_text, written_whole
from armdyn.formulations.coordinates import rotation
from armdyn.html import curves
from armdyn.results import Result, ResultTable
from armdyn.values import ComparedByValue

if TYPE_CHECKING:
    from armdyn.arm import Arm
    from armdyn.pages.motion import Animation, Charts

FORMATS = (".csv", ".npz", ".parquet", ".html")


@dataclass(frozen=True, eq=False)
class Trajectory(ComparedByValue, Result):
    """States over time; the last two axes of q, qd, qdd and tau are time and joint, those before are batch axes.

    For a robot with a floating base, q starts with its position and quaternion (x, y, z, w), and qd, qdd and tau with
    the entries of its six velocities; `base_pose` is its pose as matrices.

    `status` is "finished", "unstable step" (too long for the method, so the result is not the motion of the arm),
    "unstable loop" (the control period or delay is too long for the controller's gains), or the reason for an early
    end: "limit", "diverged", "stalled" (adaptive steps that keep shrinking) or "interrupted"; `message` explains it.
    In a batch, `statuses`, `ends` and `messages` have one entry per lane, and rows after a lane's end are NaN.
    `signals` are recorded by a `Digital` controller and its observers, by law and name.
    """

    arm: Arm
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    energy: np.ndarray
    status: str
    message: str
    method: str
    statuses: np.ndarray
    ends: np.ndarray  # when each lane ended, s
    messages: np.ndarray  # per lane; may be empty
    signals: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)

    def __repr__(self) -> str:
        batch = f", batch {self.q.shape[:-2]}" if self.q.ndim > 2 else ""
        last = f"{self.t[-1]:g} s" if len(self.t) else "nothing"
        return f"<Trajectory of {self.arm.name}: {len(self.t)} times to {last}{batch}, {self.status}>"

    def table(self) -> ResultTable:
        """The last state and the largest forces (of the first lane of a batch)."""
        first = (0,) * (self.q.ndim - 2)
        names, (positions, velocities) = self.arm.joint_names, (self.q[first], self.qd[first])
        if not len(self.t):
            return ResultTable.of(repr(self)[1:-1], ["joint"], [])
        q, qd, tau = (x[..., -len(names) :] for x in (positions, velocities, self.tau[first]))
        units = [("rad", "N m") if joint.revolute else ("m", "N") for joint in self.arm.joints]
        rows = [
            (name, float(q[-1, k]), unit, float(qd[-1, k]), f"{unit}/s", float(np.abs(tau[:, k]).max()), force)
            for k, (name, (unit, force)) in enumerate(zip(names, units, strict=True))
        ]
        heads = ["joint", "last q", "", "last qd", "", "largest force", ""]
        return ResultTable.of(repr(self)[1:-1], heads, rows)

    def _repr_html_(self) -> str:
        """The positions over time and the last state (of the first lane of a batch)."""
        from armdyn.pages.motion import units  # imported only when needed

        q = self.q[(0,) * (self.q.ndim - 2)][..., -len(self.arm.joint_names) :]
        label = f"position {units(self.arm, 'rad', 'm')}"
        picture = curves(label, self.arm.joint_names, self.t.tolist(), q.tolist())
        return picture + self.table()._repr_html_()

    def __len__(self) -> int:
        return len(self.t)

    @property
    def base_pose(self) -> np.ndarray:
        """(..., times, 4, 4) poses of the base, constant for a fixed base."""
        chain = self.arm.chain
        stands = np.eye(4)
        stands[:3, :3], stands[:3, 3] = (
            [[float(x) for x in row] for row in chain.base.R.rows],
            list(map(float, chain.base.p)),
        )
        poses = np.broadcast_to(np.eye(4), (*self.q.shape[:-1], 4, 4)).copy()
        if chain.floating:
            rows = rotation(list(np.moveaxis(self.q[..., 3:7], -1, 0))).rows
            poses[..., :3, :3] = np.stack([np.stack(list(row), axis=-1) for row in rows], axis=-2)
            poses[..., :3, 3] = self.q[..., :3]
        in_world: np.ndarray = stands @ poses
        return in_world

    @property
    def _base_names(self) -> tuple[list[str], list[str]]:
        """Names of a floating base's coordinates and velocities."""
        if not self.arm.floating:
            return [], []
        turns = [f"base rotation {axis}" for axis in "xyz"]
        places = [f"base {axis}" for axis in "xyz"]
        return [*places, *(f"base quaternion {axis}" for axis in "xyzw")], places + turns

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write CSV, NPZ, Parquet or an animated HTML page, by the suffix of the name; the write is atomic."""
        suffix = Path(path).suffix
        if suffix == ".csv":
            names, table = self._table()
            rows = "\n".join(",".join(map(repr, row)) for row in table.tolist())
            write_text(path, ",".join(names) + "\n" + rows + "\n")
        elif suffix == ".npz":
            arrays = {name: getattr(self, name) for name in ("t", "q", "qd", "qdd", "tau", "energy")}
            with written_whole(path) as stream:
                np.savez_compressed(stream, **arrays, status=self.status)
        elif suffix == ".parquet":
            self._parquet(path)
        elif suffix == ".html":
            self.animate().save(path)
        else:
            raise InputError(f"cannot save a trajectory as {Path(path).name!r}; available: {', '.join(FORMATS)}")

    def _parquet(self, path: str | os.PathLike[str]) -> None:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise InputError('Parquet needs an extra; install it with: pip install "armdyn[data]"') from error
        names, table = self._table()
        columns = pyarrow.table({name: table[:, k] for k, name in enumerate(names)})
        with written_whole(path) as stream:
            parquet.write_table(columns, stream)

    def _table(self) -> tuple[list[str], np.ndarray]:
        """Column names and rows; a batch gets a first column `lane`."""
        n, count = self.arm.n, len(self.t)
        quantities = ("q", "qd", "qdd", "tau")
        base: dict[str, list[str]] = {name: [] for name in quantities}
        if self.arm.floating:
            base = {"q": [f"base_{k}" for k in ("x", "y", "z", "qx", "qy", "qz", "qw")]}
            base |= {name: [f"base_{name}_{k}" for k in ("x", "y", "z", "rx", "ry", "rz")] for name in quantities[1:]}
        columns = [[*base[name], *(f"{name}{i + 1}" for i in range(n))] for name in quantities]
        names = ["t", *(name for names in columns for name in names), "energy"]
        lanes = int(np.prod(self.q.shape[:-2], dtype=int))
        columns_of = [np.tile(self.t, lanes)[:, None]]
        columns_of += [getattr(self, name).reshape(lanes * count, -1) for name in quantities]
        columns_of.append(self.energy.reshape(lanes * count, 1))
        if self.q.ndim > 2:
            names.insert(0, "lane")
            columns_of.insert(0, np.repeat(np.arange(lanes), count)[:, None])
        return names, np.hstack(columns_of)

    def animate(self) -> Animation:
        """An animated page of the arm (the first lane of a batch): play, scrub, torques with limits, energy.

        Notebooks show it inline; its `save` writes the file, as ``save("motion.html")`` of the trajectory does.
        """
        from armdyn.pages.motion import animation  # imported only when needed

        first = (0,) * (self.q.ndim - 2)
        charts = [*self._curves(), ("energy [J]", ["energy"], self.energy[first][:, None])]
        return animation(self.arm, self.t, self.q[first], self.tau[first], charts, self.arm.name, self.message)

    def _curves(self) -> Charts:
        """The curves over time: label, names, values (times, names) of the first lane."""
        from armdyn.pages.motion import positions, rates, units  # imported only when needed

        first = (0,) * (self.q.ndim - 2)
        places, velocities = ([*base, *self.arm.joint_names] for base in self._base_names)
        return (
            positions(self.arm, places, self.q[first]),
            rates(self.arm, velocities, self.qd[first]),
            (f"torque {units(self.arm, 'N m', 'N')}", velocities, self.tau[first]),
        )

    def plot(self, engine: Literal["page", "plotly"] = "page") -> Any:
        """Charts of positions, velocities, forces and energy over time (of the first lane of a batch).

        A notebook shows them, `save` writes them as a page; ``engine="plotly"`` gives a Plotly figure to edit (with the
        extra ``armdyn[plot]``).
        """
        if choose("engine", engine, ("page", "plotly")) == "plotly":
            return self._figure()
        from armdyn.pages.motion import plots

        energy = ("energy [J]", ["energy"], self.energy[(0,) * (self.q.ndim - 2)][:, None])
        return plots(self.arm.name, self.message, self.t, (*self._curves(), energy))

    def _figure(self) -> Any:
        """The Plotly figure."""
        from armdyn.drawing import import_plotly

        subplots = import_plotly("plotly.subplots")
        first = (0,) * (self.q.ndim - 2)
        figure = subplots.make_subplots(rows=4, cols=1, shared_xaxes=True, vertical_spacing=0.04)
        colors: dict[str, str] = {}
        for k, (label, names, values) in enumerate(self._curves(), 1):
            for i, name in enumerate(names):
                new = name not in colors
                color = colors.setdefault(name, COLORS[len(colors) % len(COLORS)])
                line = {"x": self.t, "y": values[:, i], "name": name, "legendgroup": name, "showlegend": new}
                figure.add_scatter(**line, mode="lines", line={"color": color}, row=k, col=1)
            figure.update_yaxes(title_text=label, row=k, col=1)
        figure.add_scatter(x=self.t, y=self.energy[first], name="energy", mode="lines", row=4, col=1)
        figure.update_yaxes(title_text="energy [J]", row=4, col=1)
        figure.update_xaxes(title_text="time [s]", row=4, col=1)
        figure.update_layout(height=900, title=f"{self.arm.name}: {self.message}", template="plotly_white")
        return figure


COLORS = ("#3b76d1", "#e07b39", "#3d9a6b", "#c4475a", "#7f63c4", "#b08a2e", "#4aa3b5", "#8a5a44")

"""Log: what a robot recorded, as evenly sampled pieces ready for identification."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.errors import InputError
from armdyn.identification.log.cleaning import SHORTEST, clean
from armdyn.identification.log.columns import Columns, expanded, guess, mapped
from armdyn.identification.log.files import Table, read_table
from armdyn.identification.log.units import unit_doubts

Array = NDArray[np.float64]
SIGNALS = ("q", "qd", "qdd", "tau")


@dataclass(frozen=True, eq=False)
class Piece:
    """An evenly sampled stretch: times (N,), signals (N, n); velocities and accelerations where they were logged."""

    t: Array
    q: Array
    tau: Array
    qd: Array | None = None
    qdd: Array | None = None
    log: int = 0  # which one of several logs it is of

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, rows: slice) -> Piece:
        qd = None if self.qd is None else self.qd[rows]
        qdd = None if self.qdd is None else self.qdd[rows]
        return Piece(self.t[rows], self.q[rows], self.tau[rows], qd, qdd, self.log)


@dataclass(frozen=True, eq=False)
class Log:
    """A robot's log. `drive` tells what `tau` holds: "torque" (N m, N) or "current"; `notes` what was found."""

    pieces: tuple[Piece, ...]
    period: float
    joints: tuple[str, ...]
    drive: str = "torque"
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    source: str = ""

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        columns: Mapping[str, str | Sequence[str]] | Sequence[str] | str | None = None,
        joints: Sequence[str] | None = None,
        rate: float | None = None,
        degrees: bool | None = None,
        effort: str | os.PathLike[str] | None = None,
        topic: str | None = None,
    ) -> Log:
        """A log from CSV or text, NPZ, MAT, Parquet, a rosbag2 folder or an MCAP file.

        Parameters
        ----------
        path
            The file.
        columns
            Which columns are what, where their names do not say: {"t": ..., "q": [...], "qd": [...], "tau": [...]};
            or, of a text file, the names of all columns in order: "t,q1:q6,-,tau1:tau6" (- is left out).
        joints
            The arm's joint names, to put the joints of the log in the arm's order.
        rate
            Sampling rate (Hz), where there are no stamps or they are useless.
        degrees
            True: positions and velocities are in degrees. False: they are in radians, do not doubt it.
        effort
            A second file of the same length with the efforts, one column per joint.
        topic
            The JointState topic of a bag that has several.
        """
        names = expanded(columns) if isinstance(columns, str) else columns
        mapping = names if isinstance(names, Mapping) else None
        table, said = read_table(path, topic, () if names is None or mapping is not None else list(names))
        named = _named(table, mapping, joints, effort is not None)
        signals = {
            k: np.stack([table[c] for c in v], axis=1) for k, v in named.signals.items() if k in (*SIGNALS, "current")
        }
        drive = "torque" if "tau" in signals or effort is not None else "current"
        signals["tau"] = _efforts(signals, effort, topic, path)
        signals.pop("current", None)
        if degrees:
            for k in {"q", "qd", "qdd"} & set(signals):
                signals[k] = np.deg2rad(signals[k])
        t = None if named.time is None else table[named.time] * named.time_unit
        log = cls.of(t, signals["q"], signals["tau"], signals.get("qd"), signals.get("qdd"), rate=rate)
        doubts = () if degrees is not None else log.doubts
        notes, source = (*said, *log.notes), Path(path).name
        return replace(log, joints=tuple(named.joints), drive=drive, doubts=doubts, notes=notes, source=source)

    @classmethod
    def of(cls, t: Any, q: Any, tau: Any, qd: Any = None, qdd: Any = None, *, rate: float | None = None) -> Log:
        """A log from arrays: t (N,) or None with a rate, the others (N, n)."""
        given = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
        signals = {k: np.atleast_2d(np.asarray(v, dtype=float)) for k, v in given.items() if v is not None}
        shape = signals["q"].shape
        for name, values in signals.items():
            if values.shape != shape:
                raise InputError(f"{name} has shape {values.shape}, q has {shape}: expected the same (samples, joints)")
        stamps = None if t is None else np.asarray(t, dtype=float).ravel()
        if stamps is not None and len(stamps) != shape[0]:
            raise InputError(f"{len(stamps)} stamps for {shape[0]} samples")
        cleaned = clean(stamps, signals, rate)
        return cls(
            pieces=tuple(Piece(p["t"], p["q"], p["tau"], p.get("qd"), p.get("qdd")) for p in cleaned.pieces),
            period=cleaned.period,
            joints=tuple(f"joint{k + 1}" for k in range(shape[1])),
            notes=tuple(cleaned.notes),
            doubts=tuple(unit_doubts(cleaned.period, cleaned.pieces)),
        )

    @property
    def n(self) -> int:
        """The number of joints."""
        return int(self.pieces[0].q.shape[1])

    @property
    def rate(self) -> float:
        """Samples per second."""
        return 1.0 / self.period

    @property
    def duration(self) -> float:
        """Seconds recorded, gaps not counted."""
        return sum(len(piece) for piece in self.pieces) * self.period

    def __len__(self) -> int:
        return sum(len(piece) for piece in self.pieces)

    def __repr__(self) -> str:
        signals = " ".join(s for s in SIGNALS if getattr(self.pieces[0], s) is not None)
        pieces = "" if len(self.pieces) == 1 else f", {len(self.pieces)} pieces"
        said = f", {len(self.notes)} notes" if self.notes else ""
        return (
            f"<Log {self.source or 'of arrays'}: {self.n} joints, {len(self)} samples at {self.rate:.4g} Hz,"
            f" {self.duration:.4g} s, {signals}{pieces}{said}>"
        )

    @classmethod
    def joined(cls, logs: Sequence[Log]) -> Log:
        """Several logs of one arm as one, each piece with the number of its log (from 0)."""
        if not logs:
            raise InputError("no log to identify from")
        first = logs[0]
        for other in logs[1:]:
            if other.n != first.n or other.drive != first.drive or abs(other.period / first.period - 1) > 0.01:
                raise InputError(f"logs that are used together must be alike: {first!r} and {other!r} are not")
        pieces = tuple(replace(piece, log=k) for k, log in enumerate(logs) for piece in log.pieces)
        said = [tuple(text for log in logs for text in getattr(log, name)) for name in ("notes", "doubts")]
        source = " and ".join(log.source for log in logs if log.source)
        return replace(first, pieces=pieces, notes=said[0], doubts=said[1], source=source)

    def part(self, start: float, stop: float) -> Log:
        """The stretch between two fractions of the log: `log.part(0, 0.7)` is the first 70 %."""
        if not 0 <= start < stop <= 1:
            raise InputError(f"expected fractions 0 <= start < stop <= 1, got {start}, {stop}")
        first, last, pieces = round(start * len(self)), round(stop * len(self)), []
        for piece in self.pieces:
            kept = piece[max(first, 0) : max(last, 0)]
            if len(kept) >= SHORTEST:
                pieces.append(kept)
            first, last = first - len(piece), last - len(piece)
        if not pieces:
            raise InputError(f"no piece of {SHORTEST} samples between {start:.3g} and {stop:.3g} of the log")
        return replace(self, pieces=tuple(pieces))

    def array(self, signal: str) -> Array:
        """A signal of all pieces, one after the other."""
        parts = [getattr(piece, signal) for piece in self.pieces]
        if any(part is None for part in parts):
            raise InputError(f"the log has no {signal}")
        return np.concatenate(parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the log as CSV: t, q1 ... tau1 ..."""
        from armdyn.files.text import write_text

        signals = [s for s in SIGNALS if getattr(self.pieces[0], s) is not None]
        names = ["t", *(f"{s}{k + 1}" for s in signals for k in range(self.n))]
        rows = np.column_stack([self.array("t"), *(self.array(s) for s in signals)])
        lines = [",".join(names), *(",".join(f"{x:.12g}" for x in row) for row in rows)]
        write_text(path, "\n".join(lines) + "\n")


def _named(
    table: Table, columns: Mapping[str, Any] | None, joints: Sequence[str] | None, positions_only: bool
) -> Columns:
    """The columns by map, by guess, or, in a file of positions alone, all of them."""
    names = list(table)
    if columns is not None:
        return mapped(names, columns)
    try:
        return guess(names, joints)
    except InputError:
        if not positions_only:
            raise
        return Columns(None, {"q": tuple(names)}, tuple(names))


def _efforts(signals: dict[str, Array], effort: Any, topic: str | None, path: Any) -> Array:
    if effort is None:
        found = signals.get("tau", signals.get("current"))
        if found is None:
            raise InputError(f"{path}: no torques, efforts or currents; expected tau1, effort_1, current[0] ...")
        return found
    table, _ = read_table(effort, topic)
    columns = list(table.values())
    rows, n = signals["q"].shape
    if len(columns) != n or len(columns[0]) != rows:
        raise InputError(f"{effort}: {len(columns)} columns of {len(columns[0])} rows, expected {n} of {rows}")
    return np.stack(columns, axis=1)

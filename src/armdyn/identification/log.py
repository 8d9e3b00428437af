"""Log: a robot's log as uniformly sampled pieces, ready for identification.

Assignment of a log's columns to signals, from names such as `q1`, `q[0]`, `pos_1`, `shoulder/velocity`.

Detection of wrong units in a log: degrees, and velocities that do not match the positions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armdyn.arm import Arm
from armdyn.errors import InputError
from armdyn.identification.cleaning import SHORTEST, Clean, clean
from armdyn.identification.log_files import Table, read_table

Array = NDArray[np.float64]
PathName = str | os.PathLike[str]
SIGNALS = ("q", "qd", "qdd", "tau", "command")


@dataclass(frozen=True, eq=False)
class Piece:
    """A uniformly sampled piece of a log: times (N,) and signals (N, n), of which only the positions are always there.

    `command` holds the commanded positions; `measured` (N,) is 0 where rows are missing and were interpolated.
    """

    t: Array
    q: Array
    tau: Array | None = None
    qd: Array | None = None
    qdd: Array | None = None
    log: int = 0  # the number of its log, if several are used together
    command: Array | None = None
    measured: Array | None = None

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, rows: slice) -> Piece:
        signals: dict[str, Any] = {name: values[rows] for name, values in self.signals.items()}
        measured = None if self.measured is None else self.measured[rows]
        return Piece(t=self.t[rows], log=self.log, measured=measured, **signals)

    @property
    def signals(self) -> dict[str, Array]:
        """The logged signals by name, each (N, n)."""
        every = {name: getattr(self, name) for name in SIGNALS}
        return {name: values for name, values in every.items() if values is not None}

    @property
    def efforts(self) -> Array:
        """The logged torques or currents (N, n); an error if there are none."""
        if self.tau is None:
            raise InputError("the log has no torques or currents (tau)")
        return self.tau


@dataclass(frozen=True, eq=False)
class Log:
    """A robot's log. `drive` is what `tau` holds, "torque" (N m, N), "current" or "" if it has none.

    `clock` says whether the rows were taken at the times of their stamps or evenly, `notes` what was corrected, and
    `doubts` what is doubtful. Where positions do not tell which clock is right, `rival` is the log over the other one.
    """

    pieces: tuple[Piece, ...]
    period: float
    joints: tuple[str, ...]
    drive: str = "torque"
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    source: str = ""
    clock: str = "stamps"
    rival: Log | None = None

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
        clock: str = "auto",
        start: float | None = None,
        until: float | None = None,
    ) -> Log:
        """Read a log from CSV or text, NPZ, MAT, Parquet, a rosbag2 folder or an MCAP file.

        Parameters
        ----------
        path
            The file.
        columns
            The columns of each signal, if their names do not say: {"t": ..., "q": [...], "qd": [...], "tau": [...]};
            or, for a text file, the names of all columns in order: "t,q1:q6,-,tau1:tau6" (- is skipped).
        joints
            The arm's joint names, to put the joints of the log in the arm's order.
        rate
            Sampling rate (Hz), if there are no time stamps or they are unusable.
        degrees
            True: positions, velocities and accelerations are in degrees. False: they are in radians; no warnings about
            the units are given.
        effort
            A second file with the efforts, one column per joint. If both files have time stamps, the efforts are
            interpolated to those of the log, and the log is limited to the times of the efforts; otherwise both files
            must have as many rows.
        topic
            The JointState topic of a bag that has several.
        clock
            When the rows were taken: "stamps", at the times of their stamps; "even", at equal intervals, the stamps
            being early or late; "auto", whichever makes the positions smoother. `clock` of the log and its notes say
            which was taken.
        start, until
            The part of the log to use, in seconds after its first sample.
        """
        names = expanded(columns) if isinstance(columns, str) else columns
        mapping = names if isinstance(names, Mapping) else None
        table, said = read_table(path, topic, () if names is None or mapping is not None else list(names))
        named = _named(table, mapping, joints, effort is not None)
        signals = {
            k: np.stack([table[c] for c in v], axis=1) for k, v in named.signals.items() if k in (*SIGNALS, "current")
        }
        said += named.incomplete
        in_degrees = {"q", "qd", "qdd", "command"} if degrees else named.in_degrees if degrees is None else set[str]()
        if in_degrees and degrees is None:
            said.append(f"by the names of their columns, {', '.join(sorted(in_degrees))} are in degrees")
        drive = "torque" if "tau" in signals or effort is not None else "current"
        t = None if named.time is None else table[named.time] * named.time_unit
        efforts = (
            _efforts(signals, path, named) if effort is None else _second_file(effort, topic, signals["q"].shape, t)
        )
        signals.pop("current", None)
        if efforts is not None:
            signals["tau"] = efforts
        for k in in_degrees & set(signals):
            signals[k] = np.deg2rad(signals[k])
        if not np.isfinite(signals.get("command", 0.0)).all():
            signals["command"], missing = _held_on(signals["command"])
            said.append(f"{missing} commands are missing: the ones before hold on")
        if effort is not None and efforts is not None and t is not None:
            kept = np.isfinite(efforts).any(axis=1)  # outside the times of the efforts, there are none
            if not kept.all():
                said.append(f"{np.count_nonzero(~kept)} rows outside the times of {Path(effort).name}: not used")
                t, signals = t[kept], {name: values[kept] for name, values in signals.items()}
        log = cls.of(t, rate=rate, clock=clock, **signals)
        units = () if degrees is None else unit_doubts(log.period, [piece.signals for piece in log.pieces])
        doubts = tuple(doubt for doubt in log.doubts if doubt not in units)
        notes, source = (*said, *log.notes), Path(path).name
        drive = drive if efforts is not None else ""
        rival = log.rival and replace(log.rival, joints=tuple(named.joints), drive=drive, source=source)
        log = replace(
            log, joints=tuple(named.joints), drive=drive, doubts=doubts, notes=notes, source=source, rival=rival
        )
        return log if start is None and until is None else log.between(start, until)

    @classmethod
    def of(
        cls,
        t: Any,
        q: Any,
        tau: Any = None,
        qd: Any = None,
        qdd: Any = None,
        *,
        command: Any = None,
        rate: float | None = None,
        clock: str = "auto",
    ) -> Log:
        """A log from arrays: t (N,) or None with a rate, the others (N, n); `command` holds the commanded positions.

        A log needs torques or commands besides the positions. `rate` and `clock` are as in `read`.
        """
        if tau is None and command is None:
            raise InputError("a log of positions alone tells nothing: give the torques (tau) or the commands (command)")
        given = {"q": q, "qd": qd, "qdd": qdd, "tau": tau, "command": command}
        signals = {k: np.atleast_2d(np.asarray(v, dtype=float)) for k, v in given.items() if v is not None}
        shape = signals["q"].shape
        for name, values in signals.items():
            if values.shape != shape:
                raise InputError(f"{name} has shape {values.shape}, q has {shape}: expected the same (samples, joints)")
        stamps = None if t is None else np.asarray(t, dtype=float).ravel()
        if stamps is not None and len(stamps) != shape[0]:
            raise InputError(f"got {len(stamps)} time stamps for {shape[0]} samples; expected as many")
        return cls._cleaned(clean(stamps, signals, rate, clock), shape[1], "" if tau is None else "torque")

    @classmethod
    def _cleaned(cls, cleaned: Clean, joints: int, drive: str) -> Log:
        return cls(
            pieces=tuple(Piece(log=0, **piece) for piece in cleaned.pieces),
            period=cleaned.period,
            joints=tuple(f"joint{k + 1}" for k in range(joints)),
            drive=drive,
            notes=tuple(cleaned.notes),
            doubts=(*cleaned.doubts, *unit_doubts(cleaned.period, cleaned.pieces)),
            clock=cleaned.clock,
            rival=None if cleaned.rival is None else cls._cleaned(cleaned.rival, joints, drive),
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
        """The recorded time in seconds, without gaps."""
        return sum(len(piece) for piece in self.pieces) * self.period

    def __len__(self) -> int:
        return sum(len(piece) for piece in self.pieces)

    def __repr__(self) -> str:
        signals = " ".join(self.pieces[0].signals)
        pieces = "" if len(self.pieces) == 1 else f", {len(self.pieces)} pieces"
        said = f", {len(self.notes)} notes" if self.notes else ""
        return (
            f"<Log {self.source or 'of arrays'}: {self.n} joints, {len(self)} samples at {self.rate:.4g} Hz,"
            f" {self.duration:.4g} s, {signals}{pieces}{said}>"
        )

    @classmethod
    def joined(cls, logs: Sequence[Log]) -> Log:
        """Several logs of one arm as one log; each piece has the number of its log, from 0."""
        if not logs:
            raise InputError("no log to identify from")
        first = logs[0]
        for other in logs[1:]:
            if other.n != first.n or other.drive != first.drive or abs(other.period / first.period - 1) > 0.01:
                raise InputError(
                    "logs that are used together must have the same joints, sampling rate and kind of effort: "
                    f"got {first!r} and {other!r}"
                )
        pieces = tuple(replace(piece, log=k) for k, log in enumerate(logs) for piece in log.pieces)
        said = [tuple(text for log in logs for text in getattr(log, name)) for name in ("notes", "doubts")]
        source = " and ".join(log.source for log in logs if log.source)
        return replace(first, pieces=pieces, notes=said[0], doubts=said[1], source=source, rival=None)

    def part(self, start: float, stop: float) -> Log:
        """The part between two fractions of the log: `log.part(0, 0.7)` is the first 70 %."""
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
        return replace(self, pieces=tuple(pieces), rival=self.rival and self.rival.part(start, stop))

    def between(self, start: float | None = None, until: float | None = None) -> Log:
        """The part between two times in seconds after the first sample; None: from its start, up to its end."""
        first, end = self.pieces[0].t[0], self.pieces[-1].t[-1]
        low, high = 0.0 if start is None else start, end - first if until is None else until
        if not 0 <= low < high or low >= end - first:
            raise InputError(
                f"the log has {end - first:.6g} s; expected times 0 <= from < until within it, got {low:g} and {high:g}"
            )
        margin = self.period / 1000  # rounding of time stamps
        inside = [(piece.t >= first + low - margin) & (piece.t <= first + high + margin) for piece in self.pieces]
        pieces = [piece[_range(rows)] for piece, rows in zip(self.pieces, inside, strict=True)]
        pieces = [piece for piece in pieces if len(piece) >= SHORTEST]
        if not pieces:
            raise InputError(f"no piece of {SHORTEST} samples between {low:g} and {high:g} s of the log")
        note = f"used from {low:.6g} s to {min(high, end - first):.6g} s of {end - first:.6g} s"
        rival = self.rival and self.rival.between(start, until)
        return replace(self, pieces=tuple(pieces), notes=(*self.notes, note), rival=rival)

    def array(self, signal: str) -> Array:
        """A signal, concatenated over all pieces."""
        parts = [getattr(piece, signal) for piece in self.pieces]
        if any(part is None for part in parts):
            raise InputError(f"the log has no {signal}")
        return np.concatenate(parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the log as CSV: t, q1 ... tau1 ..."""
        from armdyn.files.text import write_text

        signals = list(self.pieces[0].signals)
        names = ["t", *(f"{s}{k + 1}" for s in signals for k in range(self.n))]
        rows = np.column_stack([self.array("t"), *(self.array(s) for s in signals)])
        lines = [",".join(names), *(",".join(f"{x:.12g}" for x in row) for row in rows)]
        write_text(path, "\n".join(lines) + "\n")


def _named(
    table: Table, columns: Mapping[str, Any] | None, joints: Sequence[str] | None, positions_only: bool
) -> Columns:
    """The columns by mapping, by guess, or, in a file with positions only, all of them."""
    names = list(table)
    if columns is not None:
        return mapped(names, columns)
    try:
        return guess(names, joints)
    except InputError:
        if not positions_only:
            raise
        return Columns(None, {"q": tuple(names)}, tuple(names))


def _efforts(signals: dict[str, Array], path: Any, named: Columns) -> Array | None:
    """The torques or currents in the log itself."""
    efforts = signals.get("tau", signals.get("current"))
    if efforts is None and "command" not in signals:
        if named.incomplete:
            raise InputError(f"{path}: {'; '.join(named.incomplete)}: torques or currents of every joint are needed")
        raise InputError(
            f"{path}: no torques, efforts or currents (tau1, effort_1, current[0] ...), and no commanded positions"
            " (command1, cmd_1, goal_position_1, NAME/command ...); map the columns if they have other names"
        )
    return efforts


def _held_on(command: Array) -> tuple[Array, int]:
    """Commands with the last one before in place of each that is missing (at the start, the first); how many are."""
    known = np.isfinite(command)
    if not known.any(axis=0).all():
        raise InputError(f"no command at all for joint {int(np.argmin(known.any(axis=0))) + 1}")
    rows = np.maximum.accumulate(np.where(known, np.arange(len(command))[:, None], -1), axis=0)
    rows = np.where(rows < 0, np.argmax(known, axis=0), rows)
    return np.take_along_axis(command, rows, axis=0), int(np.count_nonzero(~known))


def _range(rows: Array) -> slice:
    """The rows of a mask without gaps."""
    numbers = np.flatnonzero(rows)
    return slice(numbers[0], numbers[-1] + 1) if len(numbers) else slice(0, 0)


def _second_file(path: Any, topic: str | None, shape: tuple[int, int], t: Array | None) -> Array:
    """The efforts in a file of their own, at the times `t` of the log; NaN outside the times of the file."""
    table, _ = read_table(path, topic)
    time, unit = time_column(list(table))
    efforts = np.stack([column for name, column in table.items() if name != time], axis=1)
    rows, n = shape
    if efforts.shape[1] != n:
        raise InputError(f"{path}: {efforts.shape[1]} columns of efforts, the log has {n} joints")
    if t is None or time is None:
        if len(efforts) != rows:
            raise InputError(
                f"{path}: {len(efforts)} rows, the log has {rows}; expected as many, or time stamps in both files"
            )
        return efforts
    stamps, order = np.unique(table[time] * unit, return_index=True)
    if not stamps[0] <= t[-1] or not stamps[-1] >= t[0]:
        raise InputError(
            f"{path}: its time stamps go from {stamps[0]:.6g} to {stamps[-1]:.6g} s, those of the log from {t[0]:.6g} "
            f"to {t[-1]:.6g} s: they have no time in common"
        )
    columns = [np.interp(t, stamps, column, left=np.nan, right=np.nan) for column in efforts[order].T]
    return np.stack(columns, axis=1)


def as_log(log: Log | PathName, arm: Arm) -> Log:
    """The log itself, or the one read from a path, its joints in the order of the arm's."""
    if isinstance(log, Log):
        return log
    if isinstance(log, str | os.PathLike):
        return Log.read(log, joints=[joint.name for joint in arm.joints])
    raise InputError(f"expected a Log or the path of a log, got {type(log).__name__}: Log.of(t, q, tau) takes arrays")


# Common names of the signals; a longer word comes before a shorter one that it contains.
WORDS: dict[str, tuple[str, ...]] = {
    "q": (
        "actual_q",
        "present_position",
        "actual_position",
        "measured_position",
        "joint_position",
        "positions",
        "position",
        "angles",
        "angle",
        "theta",
        "jpos",
        "pos",
        "q",
    ),
    "qd": ("actual_qd", "joint_velocity", "velocities", "velocity", "qdot", "speed", "vel", "qd", "dq"),
    "qdd": ("accelerations", "acceleration", "qddot", "accel", "acc", "qdd", "ddq"),
    "tau": (
        "joint_torque",
        "actual_torque",
        "measured_torque",
        "torques",
        "torque",
        "efforts",
        "effort",
        "forces",
        "force",
        "moment",
        "tau_j",
        "trq",
        "eff",
        "tau",
    ),
    "command": (
        "commanded_position",
        "position_command",
        "target_position",
        "position_target",
        "goal_position",
        "desired_position",
        "position_desired",
        "commanded",
        "command",
        "setpoint",
        "target_q",
        "q_target",
        "goal",
        "q_cmd",
        "q_des",
        "cmd_q",
        "cmd",
    ),
    "current": ("actual_current", "motor_current", "currents", "current", "curr", "cur", "i"),
}
# What LeRobot's recordings call them, in front of the joint.
RECORDED = {"action": "command", "observation.state": "q"}
TIME = dict.fromkeys(("t", "time", "times", "stamp", "timestamp", "clock", "secs", "seconds", "sec"), 1.0)
DEGREE = r"(?:deg|degs|degree|degrees|°)"
UNIT = rf"(?:{DEGREE}|rads?|radians?|m|mm|n[ *.·]?m|n|a|amps?|amperes?)(?:/s(?:\^?2|²|/s)?)?"
UNIT_WORDS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Columns:
    """The names of the columns of a log: one for time (or none), and n for each signal that was logged.

    `incomplete` has, in words, the signals of some joints only, which are not used.
    """

    time: str | None
    signals: dict[str, tuple[str, ...]]
    joints: tuple[str, ...]
    time_unit: float = 1.0
    incomplete: tuple[str, ...] = ()

    @property
    def in_degrees(self) -> set[str]:
        """The signals whose names say that they are in degrees."""
        unit = re.compile(rf"[\[(]{DEGREE}(/s.*)?[\])]$")
        return {k for k, names in self.signals.items() if all(unit.search(name.strip().lower()) for name in names)}


def guess(names: Sequence[str], joints: Sequence[str] | None = None) -> Columns:
    """The columns of a log from their names; `joints` are the arm's joint names in order, if known."""
    time, unit = time_column(names)
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = None if name == time else _signal(name)
        if match is not None:
            signal, joint = match
            found.setdefault(signal, {}).setdefault(joint, name)
    if "q" not in found:
        raise InputError(
            f"no joint positions among the columns {_shown(names)}; expected names such as q1, q[0], pos_1 or "
            "NAME/position, or map them: columns={'q': [...], 'tau': [...]}"
        )
    order = _order(list(found["q"]), joints)
    signals = {
        signal: tuple(columns[joint] for joint in order)
        for signal, columns in found.items()
        if all(joint in columns for joint in order)
    }
    return Columns(time, signals, tuple(order), unit, tuple(_incomplete(found, order)))


def _incomplete(found: dict[str, dict[str, str]], order: list[str]) -> Iterator[str]:
    """What is logged of some joints only."""
    for signal, columns in found.items():
        missing = [joint for joint in order if joint not in columns]
        if missing:
            yield (
                f"the columns of {signal} are {_shown(list(columns.values()))}: none is of joint {', '.join(missing)},"
                f" and {signal} is not used"
            )


def mapped(names: Sequence[str], wanted: Mapping[str, str | Sequence[str]]) -> Columns:
    """The columns as assigned by the caller: {"t": "time", "q": ["a", "b"], "tau": [...]}."""
    unknown = set(wanted) - set(WORDS) - {"t"}
    if unknown:
        raise InputError(f"unknown signals {sorted(unknown)} in columns; available: t, {', '.join(WORDS)}")
    if "q" not in wanted:
        raise InputError(f"columns must name the positions 'q'; got {sorted(wanted)}")
    signals = {k: (v,) if isinstance(v, str) else tuple(v) for k, v in wanted.items()}
    time = signals.pop("t", (None,))[0]
    for signal, columns in signals.items():
        missing = [c for c in columns if c not in names]
        if missing:
            raise InputError(f"columns {missing} of {signal!r} are not in the log; it has {_shown(names)}")
        if len(columns) != len(signals["q"]):
            raise InputError(f"{signal!r} names {len(columns)} columns, 'q' names {len(signals['q'])}")
    if time is not None and time not in names:
        raise InputError(f"the time column {time!r} is not in the log; it has {_shown(names)}")
    return Columns(time, signals, tuple(f"joint{k + 1}" for k in range(len(signals["q"]))))


def expanded(text: str) -> list[str]:
    """Column names from a short form: "t,q1:q3,-,tau1:tau3" is t, q1, q2, q3, one to skip, tau1, tau2, tau3."""
    out: list[str] = []
    for part in (p.strip() for p in text.split(",")):
        match = re.fullmatch(r"([A-Za-z_]+)(\d+):\1?(\d+)", part)
        out += [f"{match[1]}{k}" for k in range(int(match[2]), int(match[3]) + 1)] if match else [part]
    return out


def time_column(names: Sequence[str]) -> tuple[str | None, float]:
    """The name of the time column, and its unit in seconds."""
    for name in names:
        plain = name.strip().lower().strip("_/")
        if plain in TIME:
            return name, TIME[plain]
        match = re.fullmatch(r"(?:t|time|stamp|timestamp)[ _\[(]+(s|sec|ms|us|ns)[\])]?", plain)
        if match:
            return name, UNIT_WORDS[match.group(1)]
    return None, 1.0


def _signal(name: str) -> tuple[str, str] | None:
    """(signal, joint) of one column, or None. The joint is a number or a name."""
    plain = re.sub(rf"[ _]*[\[(]{UNIT}[\])]$", "", name.strip().lower())
    for prefix, signal in RECORDED.items():
        match = re.fullmatch(rf"{prefix}[ _./\[]*(.+?)\]?(?:[ _./]+(?:pos|position))?", plain)
        if match:
            return signal, match.group(1)
    best: tuple[int, str, str] | None = None
    for signal, words in WORDS.items():
        for word in words:
            number = re.fullmatch(rf"{word}[ _.\[(/]*(?:j|joint)?[ _]*(\d+)[\])]?", plain)
            after = re.fullmatch(rf"(.+?)[ _./]+{word}", plain)
            before = re.fullmatch(rf"{word}[ _./\[]+(.+?)\]?", plain)
            match = number or (after if len(word) > 1 else None) or (before if len(word) > 1 else None)
            if match and (best is None or len(word) > best[0]):
                joint = re.sub(r"^(?:joint|axis) (?=\d+$)", "", match.group(1).rsplit("/", 1)[-1])
                best = (len(word), signal, joint)
    return None if best is None else best[1:]


def _order(found: list[str], joints: Sequence[str] | None) -> list[str]:
    """The joints in the arm's order if the log has its joint names, otherwise by number, otherwise in file order."""
    if joints is not None:
        lower = [j.lower() for j in joints]
        if all(j in found for j in lower):
            return lower
    if all(re.fullmatch(r"(?:j|joint|axis)?[ _]?\d+", f) for f in found):
        return sorted(found, key=lambda f: int(re.sub(r"\D", "", f)))
    return found


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:30]) + (", ..." if len(names) > 30 else "")


DEGREES = 4 * np.pi  # rad; hardly any joint has a range of more than two turns
MATCHING = 0.9  # minimum correlation of a velocity with the derivative of its position
NOT_USED = "The velocities are not used"


INTEGRATED = 0.1  # s, over which logged velocities are integrated
ALIKE, AS_FAST = 0.995, 0.05  # correlation of the two, and by how much their ratio may differ from 1


def unit_doubts(period: float, pieces: list[dict[str, Array]]) -> list[str]:
    """Messages about positions in degrees, and about velocities of another joint or in another unit."""
    return _degrees(pieces) or (_velocities(period, pieces) if "qd" in pieces[0] else [])


def _degrees(pieces: list[dict[str, Array]]) -> list[str]:
    """Messages about positions in degrees or encoder counts."""
    reach = np.max([np.ptp(p["q"], axis=0) for p in pieces], axis=0)
    if reach.max() <= DEGREES:
        return []
    if all((p["q"] == np.round(p["q"])).all() for p in pieces):
        return [
            f"a position ranges over {reach.max():.4g} in whole numbers: are these encoder counts? Convert them to"
            " radians: (count - count at zero) * 2 pi / counts per turn."
        ]
    moving = reach > 1e-3 * reach.max()
    small = moving & (reach < np.pi)
    if small.any():
        who = ", ".join(str(j + 1) for j in np.flatnonzero(reach > DEGREES))
        return [
            f"the position of joint {who} ranges over {reach.max():.4g}, others over {reach[small].max():.3g} at most:"
            f" is it the only one in degrees? Convert that column"
        ]
    return [
        f"a position ranges over {reach.max():.4g}: are the positions in degrees, or on the motor side of a gearbox?"
    ]


def _velocities(period: float, pieces: list[dict[str, Array]]) -> list[str]:
    """Comparison of the logged velocities with the differentiated positions, per joint."""
    dq = np.concatenate([(p["q"][2:] - p["q"][:-2]) / (2 * period) for p in pieces])
    qd = np.concatenate([p["qd"][1:-1] for p in pieces])
    size, logged = np.linalg.norm(dq, axis=0), np.linalg.norm(qd, axis=0)
    moving = np.flatnonzero((size > 1e-3 * size.max()) & (logged > 0))
    if not len(moving) or not logged.any():
        return []
    slope = _times_as_fast(period, pieces)
    if slope is None:
        rough = float((dq * qd).sum() / (qd**2).sum())
        slope = 1.0 if 0.9 < rough < 1.1 else rough
    own = (dq * qd).sum(axis=0)[moving] / (logged[moving] ** 2)
    alike = (dq.T @ qd) / np.maximum(np.outer(size, logged), 1e-300)
    if np.ptp(own) < 0.2 * abs(slope):
        return _scaled(slope)
    said = []
    for j, factor in zip(moving, own, strict=True):
        best = int(np.argmax(alike[j]))
        if alike[j, j] < -MATCHING:
            said.append(f"the velocity of joint {j + 1} has the opposite sign to the derivative of its position")
        elif alike[j, j] < 0.5 and best != j and alike[j, best] > MATCHING:
            said.append(f"the derivative of the position of joint {j + 1} matches the velocity of joint {best + 1}")
        elif alike[j, j] > MATCHING and not 0.8 < factor < 1.25:
            said += [f"joint {j + 1}: {text}" for text in _scaled(float(factor))]
    return [f"{'; '.join(said)}: are the columns mixed up? {NOT_USED}"] if said else _scaled(slope)


def _times_as_fast(period: float, pieces: list[dict[str, Array]]) -> float | None:
    """How much faster the positions change than the logged velocities, if they agree but for that; integrated."""
    lag = max(1, round(INTEGRATED / period))
    every = [p for p in pieces if len(p["q"]) > 2 * lag]
    if not every:
        return None
    moved, said = [], []
    for p in every:
        path = np.cumsum((p["qd"][1:] + p["qd"][:-1]) / 2 * period, axis=0)
        moved.append((p["q"][1 + lag :] - p["q"][1:-lag]).ravel())
        said.append((path[lag:] - path[:-lag]).ravel())
    own, other = np.concatenate(moved), np.concatenate(said)
    along = float(own @ other)
    sizes = float(np.linalg.norm(own) * np.linalg.norm(other))
    return along / float(other @ other) if along > ALIKE * sizes > 0 else None


def _scaled(slope: float) -> list[str]:
    """Message about a common factor between the differentiated positions and the velocities."""
    for factor, said in (
        (180 / np.pi, "positions are in degrees and velocities in radians"),
        (np.pi / 180, "positions are in radians and velocities in degrees"),
    ):
        if abs(slope / factor - 1) < 0.1:
            return [f"the positions change {slope:.3g} times as fast as the logged velocities: {said}?"]
    if abs(slope - 1) < AS_FAST:
        return []
    return [
        f"the positions change {slope:.3g} times as fast as the logged velocities: check the units, or the time"
        f" stamps, whose clock would run {'fast' if slope > 1 else 'slow'} (rate=...)"
    ]

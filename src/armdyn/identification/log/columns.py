"""Assignment of a log's columns to signals, from names such as `q1`, `q[0]`, `pos_1`, `shoulder/velocity`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from armdyn.errors import InputError

# Common names of the signals; a longer word comes before a shorter one that it contains.
WORDS: dict[str, tuple[str, ...]] = {
    "q": ("actual_q", "joint_position", "positions", "position", "angles", "angle", "theta", "jpos", "pos", "q"),
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
TIME = dict.fromkeys(("t", "time", "times", "stamp", "timestamp", "clock", "secs", "seconds", "sec"), 1.0)
UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Columns:
    """The names of the columns of a log: one for time (or none), and n for each signal that was logged."""

    time: str | None
    signals: dict[str, tuple[str, ...]]
    joints: tuple[str, ...]
    time_unit: float = 1.0


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
    return Columns(time, signals, tuple(order), unit)


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
            return name, UNITS[match.group(1)]
    return None, 1.0


def _signal(name: str) -> tuple[str, str] | None:
    """(signal, joint) of one column, or None. The joint is a number or a name."""
    plain = name.strip().lower()
    best: tuple[int, str, str] | None = None
    for signal, words in WORDS.items():
        for word in words:
            number = re.fullmatch(rf"{word}[ _.\[(/]*(?:j|joint)?[ _]*(\d+)[\])]?", plain)
            after = re.fullmatch(rf"(.+?)[ _./]+{word}", plain)
            before = re.fullmatch(rf"{word}[ _./\[]+(.+?)\]?", plain)
            match = number or (after if len(word) > 1 else None) or (before if len(word) > 1 else None)
            if match and (best is None or len(word) > best[0]):
                best = (len(word), signal, match.group(1).rsplit("/", 1)[-1])
    return None if best is None else best[1:]


def _order(found: list[str], joints: Sequence[str] | None) -> list[str]:
    """The joints in the arm's order if the log has its joint names, otherwise by number, otherwise in file order."""
    if joints is not None:
        lower = [j.lower() for j in joints]
        if all(j in found for j in lower):
            return lower
    if all(re.fullmatch(r"(?:j|joint)?_?\d+", f) for f in found):
        return sorted(found, key=lambda f: int(re.sub(r"\D", "", f)))
    return found


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:30]) + (", ..." if len(names) > 30 else "")

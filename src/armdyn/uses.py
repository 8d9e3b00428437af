"""What a robot can be used for: which tasks cannot do with branches, mimic joints or a floating base, and what helps.

A task that is not listed works for every robot, and a listed one with every property but those named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from armdyn.errors import InputError


@dataclass(frozen=True)
class Need:
    """What a task needs, the property of a robot that lacks it (`missing` looks at its chain), and the remedy."""

    words: str
    lacking: str
    remedy: str
    missing: Callable[[Any], bool]


NEEDS: dict[str, Need] = {
    "fixed base": Need(
        "a fixed base", "has a floating base", "load it with floating=False", lambda chain: chain.floating
    ),
    "tool": Need("a tool", "has no tool", "give frame=, or load it with tool=", lambda chain: not chain.tool_carrier),
    "serial chain": Need("a serial chain", "branches", "load one chain of it with tip=", lambda c: not c.serial),
    "coordinates": Need(
        "a coordinate for every joint", "has mimic joints", "hold them with lock=", lambda chain: chain.has_mimics
    ),
    "inertia of links": Need(
        "an inertia matrix of links and rotors alone",
        "has inertias along tendons",
        "other methods have them",
        lambda chain: any(tendon.armature != 0 for tendon in chain.tendons),
    ),
    "uncoupled joints": Need(
        "joints whose forces do not depend on one another",
        "has tendons or gravity compensation",
        "arm.uncoupled leaves them out",
        lambda chain: chain.coupled,
    ),
}
# Quantities at the tool need one, too; formulations and control laws say what they need themselves.
TASKS: dict[str, tuple[str, ...]] = {
    "inverse kinematics": ("fixed base", "tool"),
    "a payload": ("tool",),
    "another tool": ("tool",),
    "identification": ("fixed base", "uncoupled joints"),
    "excitation": ("fixed base", "uncoupled joints"),
    "servo identification": ("fixed base", "coordinates", "uncoupled joints"),
    "calibration": ("fixed base", "tool"),
    "time-optimal motion": ("fixed base",),
    "bounding a quantity over all configurations": ("fixed base",),
    "a bound of rounding errors": ("fixed base",),
    "uncertain friction, joint offsets and covariance": ("fixed base", "coordinates"),
    "an uncertain payload": ("tool",),
    "an FMU": ("fixed base",),
}


def refusal(need: str, chain: Any, name: str = "this robot") -> str:
    """Why a task that has this need cannot be done with a chain, from "needs" on; "" if it can."""
    required = NEEDS[need]
    return f"needs {required.words}: {name} {required.lacking}; {required.remedy}" if required.missing(chain) else ""


def must_suit(task: str, chain: Any, name: str = "this robot") -> None:
    """Raise InputError if a task cannot be done with a chain.

    A missing tool is left to `Arm.require_tool`, which knows whether a frame was given and which frames there are.
    """
    for need in TASKS[task]:
        if need != "tool" and (reason := refusal(need, chain, name)):
            raise InputError(f"{task} {reason}")


def table() -> list[list[str]]:
    """A row per task: for every property of a robot, what the task needs of it."""
    properties = [need.lacking for key, need in NEEDS.items() if key != "inertia of links"]  # only formulations need it
    rows = [["task", *(f"a robot that {words}" for words in properties)]]
    for task, needs in TASKS.items():
        cells = dict.fromkeys(properties, "works")
        for need in needs:
            required = NEEDS[need]
            cells[required.lacking] = required.remedy if need == "tool" else f"refused: needs {required.words}"
        rows.append([task, *cells.values()])
    return rows

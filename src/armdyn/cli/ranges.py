"""The option --range: ranges instead of a joint's limits."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from armdyn.errors import InputError

Range = Annotated[
    list[str] | None,
    typer.Option("--range", help="A range instead of a joint's limits: INPUT:JOINT=LOW,HIGH, e.g. qd:2=-1,1."),
]


def pair(text: str, option: str) -> tuple[float, float]:
    """Two numbers of an option."""
    try:
        low, high = (float(x) for x in text.split(","))
    except ValueError:
        raise InputError(f"{option} takes two numbers LOW,HIGH; got {text!r}") from None
    return low, high


def range_options(loaded: Any, ranges: list[str], acceleration: float = 0.0) -> dict[str, Any]:
    """The inputs named in `ranges`, each with the joints' limits, in which the given ranges replace a joint's."""
    import numpy as np

    speeds = loaded.velocity_limits
    accelerations = np.tile([-acceleration, acceleration], (loaded.n, 1))
    boxes = {"q": loaded.limits, "qd": np.stack([-speeds, speeds], axis=1), "qdd": accelerations}
    changed = set()
    for text in ranges:
        name, colon, rest = text.partition(":")
        joint, equals, ends = rest.partition("=")
        if not colon or not equals or name not in boxes or not joint.isdigit() or not 1 <= int(joint) <= loaded.n:
            expected = f"INPUT:JOINT=LOW,HIGH with INPUT one of {', '.join(boxes)}, JOINT 1 to {loaded.n}"
            raise InputError(f"--range takes {expected}; got {text!r}")
        boxes[name][int(joint) - 1] = pair(ends, "--range")
        changed.add(name)
    return {name: boxes[name] for name in changed}

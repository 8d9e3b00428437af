"""Servo: the position controller of a joint, with what its firmware makes of commands and readings."""

from __future__ import annotations

from dataclasses import dataclass, fields

from armdyn.algebra import Scalar
from armdyn.errors import InputError


@dataclass(frozen=True, slots=True)
class Servo:
    """The law of a position servo: kp (c - q) - kd w, at most the joint's effort limit.

    `kp` and `kd` are per rad or m and per their rate, at the joint. The command c acts `delay` seconds after it was
    issued and is held until the next; an error within ± `dead_band` is none, and of a larger one that much is left out.
    `resolution` is one count of the encoder. w is the velocity as the firmware estimates it: the true one through a
    first-order low-pass filter with the time constant `lag` (s).
    """

    kp: Scalar
    kd: Scalar = 0
    delay: Scalar = 0
    dead_band: Scalar = 0
    resolution: Scalar = 0
    lag: Scalar = 0

    def __post_init__(self) -> None:
        if not self.kp > 0:
            raise InputError(f"kp of a servo must be above 0, got {float(self.kp):g}")
        for name in SERVO[1:]:
            if getattr(self, name) < 0:
                raise InputError(f"{name} of a servo must not be negative, got {float(getattr(self, name)):g}")

    def force(self, command: Scalar, q: Scalar, velocity: Scalar) -> Scalar:
        """The joint force for the command that acts now and the estimated velocity, before the effort limit."""
        error = command - q
        inside = max(-self.dead_band, min(self.dead_band, error))
        return self.kp * (error - inside) - self.kd * velocity


SERVO = tuple(f.name for f in fields(Servo))

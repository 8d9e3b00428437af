"""Joint forces besides speed-dependent friction: offset, spring, ripple, asymmetry, load-dependent friction."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from armdyn.algebra import Scalar, cos, sign, sin


@dataclass(frozen=True, slots=True)
class Ripple:
    """A periodic force over the joint's rotation: sine × sin(k q) + cosine × cos(k q), `per_turn` = k."""

    per_turn: int
    sine: Scalar = 0
    cosine: Scalar = 0

    def at(self, q: Scalar) -> Scalar:
        """The force at a position."""
        return self.sine * sin(self.per_turn * q) + self.cosine * cos(self.per_turn * q)


@dataclass(frozen=True, slots=True)
class JointForces:
    """The forces that the motor of a joint must provide in addition to velocity-dependent friction.

    `offset` is constant (N m or N), `stiffness` is that of a spring at rest at q = 0 (a cable), `ripples` are
    periodic in q; `asymmetry` is half the difference of viscous friction forwards and backwards, and
    `load_friction` (from 0, below 1) is the fraction of the load (the joint force without any of these forces) that a
    gear loses: friction of load_friction × |load|. `stribeck_exponent` (even) is that of the velocity in the Stribeck
    curve: 2 is Hess and Soom's; with 4 the change from static to Coulomb friction is more abrupt.

    A field that is one number is read, written, checked, listed and, with a `Term`, identified without being named
    again. Its metadata say whether it cannot be negative (`positive`) and which number it stays `below`.
    """

    offset: Scalar = 0
    stiffness: Scalar = 0
    ripples: tuple[Ripple, ...] = ()
    asymmetry: Scalar = 0
    load_friction: Scalar = field(default=0, metadata={"positive": True, "below": 1})
    stribeck_exponent: int = 2

    def at(self, q: Scalar) -> Scalar:
        """The forces that depend only on the position."""
        force = self.offset + self.stiffness * q
        for ripple in self.ripples:
            force = force + ripple.at(q)
        return force

    def over_speed(self, qd: Scalar, side: Scalar) -> Scalar:
        """The forces that depend only on the speed, beside viscous and dry friction; `side` is its sign."""
        return self.asymmetry * (qd * side) if self.asymmetry != 0 else 0

    def lost(self, load: Scalar, side: Scalar) -> Scalar:
        """The friction of a load; `side` is the sign of the speed."""
        return self.load_friction * (load * sign(load)) * side

    def efficiency(self, force: Scalar, side: Scalar) -> Scalar:
        """The load that a force moves over that force: `efficiency × force` is the inverse of load + lost(load)."""
        return 1 if self.load_friction == 0 else 1 / (1 + self.load_friction * side * sign(force))


NO_FORCES = JointForces()
NUMBERS = tuple(f.name for f in fields(JointForces) if f.default == 0)  # the forces given by one number
POSITIVE = tuple(f.name for f in fields(JointForces) if f.metadata.get("positive"))
BELOW = {f.name: f.metadata["below"] for f in fields(JointForces) if "below" in f.metadata}

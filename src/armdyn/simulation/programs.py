"""The arm under its drive as programs: accelerations of a state, with or without joints that may be locked.

A joint that sticks is a joint with an infinite inertia: in the elimination H = U D Uᵀ its pivot's reciprocal is 0.
So one straight-line program serves every combination of sticking and sliding joints: `free` is 1 for a joint that
may move and 0 for one that is locked, and multiplies the reciprocal of its pivot. What the elimination leaves at a
locked joint is the force that holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from armdyn.algebra import sign
from armdyn.chain import Chain, Joint, JointForces
from armdyn.chain.joint_forces import NO_FORCES
from armdyn.formulations.elimination import least_pivots, reciprocal
from armdyn.graph.program import Program, trace
from armdyn.programs.assemble import Options, assemble
from armdyn.simulation.state import forces_of
from armdyn.simulation.torque import Law, cheapest

NEARLY_NONE = Fraction(1, 10**12)  # N m or N: dry friction of a joint that has none without a load


@dataclass(frozen=True)
class Friction:
    """The friction along one coordinate: its joint's own, and that of mimic joints by their multipliers."""

    joints: tuple[tuple[Joint, Any, Any], ...]  # with α and β of its position, α q + β

    @property
    def viscous(self) -> Any:
        """Per unit of the coordinate's speed."""
        return sum(ratio * ratio * joint.viscous for joint, ratio, _ in self.joints)

    @property
    def breakaway(self) -> Any:
        """The largest dry friction at rest, that of a load left out; tiny where there is none but that."""
        dry = sum(abs(ratio) * joint.breakaway for joint, ratio, _ in self.joints)
        return NEARLY_NONE if dry == 0 and self.own.load_friction > 0 else dry

    @property
    def dries(self) -> bool:
        """Whether there is dry friction besides that of a load."""
        return any(joint.breakaway > 0 for joint, _, _ in self.joints)

    def dry(self, qd: Any) -> Any:
        """The magnitude of dry friction while sliding."""
        parts = ((joint, abs(ratio)) for joint, ratio, _ in self.joints if joint.breakaway > 0)
        return sum(ratio * joint.dry_friction(ratio * qd) for joint, ratio in parts)

    @property
    def own(self) -> JointForces:
        """What acts at the coordinate's own joint; a joint that leads others has no friction with the load."""
        return next((joint.forces for joint, _, _ in self.joints if joint.mimic is None), NO_FORCES)

    def forces(self, q: Any, qd: Any) -> Any:
        """Springs, offsets, ripples and the asymmetry of viscous friction."""
        total = 0
        for joint, ratio, shift in self.joints:
            more = joint.forces
            if more != NO_FORCES:
                total = total + ratio * (more.at(ratio * q + shift) + more.asymmetry * (abs(ratio) * (qd * sign(qd))))
        return total

    def bounded(self, left: Any, force: Any) -> Any:
        """`left`, what holds a joint, as it compares with `breakaway` where friction grows with the load."""
        if self.own.load_friction == 0:
            return left
        load = force - left
        return left / (1 + self.own.load_friction / self.breakaway * (load * sign(load)))


def frictions(chain: Chain) -> tuple[Friction, ...]:
    """The friction along every velocity, in their order; a floating base has none."""
    base = (Friction(()),) * (chain.nv - chain.n)
    along: dict[int, list[tuple[Joint, Any, Any]]] = {i: [] for i in chain.independent}
    for i, joint in enumerate(chain.joints):
        k, ratio, shift = (i, 1, 0) if joint.mimic is None else chain.leader(joint)
        if k in along:
            along[k].append((joint, ratio, shift))
    return (*base, *(Friction(tuple(joints)) for joints in along.values()))


def has_dry_friction(chain: Chain, options: Options) -> bool:
    """Whether a joint can stick."""
    return options.friction and any(friction.breakaway > 0 for friction in frictions(chain))


@lru_cache(maxsize=64)
def closed_loop(chain: Chain, law: Law, size: int, options: Options, with_torque: bool) -> Program:
    """(q, qd, u) -> acceleration, and the torque behind it where it is asked for.

    Not simplified: that takes longer than compiling and its 3 to 10 % fewer operations make no faster loop.
    """
    n, width = chain.nv, size + (6 if options.tool_wrench else 0)
    forward = assemble(chain, "forward_dynamics", cheapest(chain, "forward_dynamics"), options).function

    def function(q: list[Any], qd: list[Any], u: list[Any]) -> Any:
        tau = forces_of(chain, law(chain, q, qd, u[:size]))
        qdd = forward(q, qd, tau, *((u[size:width],) if options.tool_wrench else ()))
        return (qdd, tau) if with_torque else qdd

    outputs = [("qdd", (n,)), ("tau", (n,))] if with_torque else [("qdd", (n,))]
    return trace("closed_loop", function, {"q": (chain.nq,), "qd": (n,), "u": (max(width, 1),)}, outputs)


@lru_cache(maxsize=64)
def lockable_loop(
    chain: Chain, law: Law, size: int, options: Options, staged: bool, can_lock: tuple[bool, ...]
) -> Program:
    """(q, qd, u, free, side) -> (acceleration, what holds a locked joint or drives a free one, torque).

    `side` is the sign of the motion that dry friction acts against, 0 for a locked joint. With `staged` (implicit
    stages, impacts) there are three inputs more: the torques are `share` of the law's plus `extra`, and `added`
    inertias are on the diagonal.
    """
    n, width = chain.nv, max(size + (6 if options.tool_wrench else 0), 1)
    inertia = assemble(chain, "inertia_matrix", cheapest(chain, "inertia_matrix")).function
    bias = _bias(chain, options)

    def function(q: list[Any], qd: list[Any], u: list[Any], free: Any, side: Any, *stage: Any) -> Any:
        tau = forces_of(chain, law(chain, q, qd, u[:size]))
        share, extra, added = stage or ([1] * n, [0] * n, [0] * n)
        b = bias(q, qd, u[size:])
        pushed = [c * t + e for c, t, e in zip(share, tau, extra, strict=True)]
        locks = [f if able else 1 for f, able in zip(free, can_lock, strict=True)]
        if not options.friction:
            right = [t - x for t, x in zip(pushed, b, strict=True)]
            return *solve_lockable(chain, inertia(q), right, locks, added), tau
        along = frictions(chain)
        beside = q[chain.nq - chain.nv :]  # a joint's coordinate beside its velocity
        pushed = [t - f.forces(x, v) - f.viscous * v for t, f, x, v in zip(pushed, along, beside, qd, strict=True)]
        sliding = [t - f.dry(v) * s if f.dries else t for t, f, v, s in zip(pushed, along, qd, side, strict=True)]
        passed = [f.own.efficiency(t, s) for f, t, s in zip(along, sliding, side, strict=True)]
        right = [part * t - x for part, t, x in zip(passed, sliding, b, strict=True)]
        added = [part * x for part, x in zip(passed, added, strict=True)]
        qdd, left = solve_lockable(chain, inertia(q), right, locks, added)
        return qdd, [f.bounded(x, t) for f, x, t in zip(along, left, pushed, strict=True)], tau

    names = ("q", "qd", "u", "free", "side", *(("share", "extra", "added") if staged else ()))
    inputs = {name: ({"q": chain.nq, "u": width}.get(name, n),) for name in names}
    return trace("lockable_loop", function, inputs, [("qdd", (n,)), ("left", (n,)), ("tau", (n,))])


def _bias(chain: Chain, options: Options) -> Any:
    """(q, qd, wrench) -> what the motors must give without acceleration."""
    if not options.tool_wrench:
        plain = assemble(chain, "bias", cheapest(chain, "bias")).function
        return lambda q, qd, wrench: plain(q, qd)
    loaded = assemble(chain, "inverse_dynamics", cheapest(chain, "inverse_dynamics"), Options(tool_wrench=True))
    return lambda q, qd, wrench: loaded.function(q, qd, [0] * chain.nv, wrench[:6])


def solve_lockable(
    chain: Chain, H: list[list[Any]], right: list[Any], free: list[Any], added: list[Any]
) -> tuple[list[Any], list[Any]]:
    """(x, left) with (H + diag(added)) x = right where joints are free and x = 0 where they are locked.

    `left` is D x of a free joint, and of a locked one the force that holds it. The elimination is that of
    `formulations.elimination`, with the reciprocal of a locked joint's pivot 0.
    """
    n = chain.nv
    H = [[h + added[i] if i == j else h for j, h in enumerate(row)] for i, row in enumerate(H)]
    least = least_pivots(chain)
    y, inverse = list(right), [0] * n
    for k in reversed(range(n)):
        inverse[k] = free[k] * reciprocal(H[k][k], least[k], k - (n - chain.n))
        column = [H[i][k] * inverse[k] for i in range(k)]
        for i in range(k):
            y[i] = y[i] - column[i] * y[k]
            for j in range(i, k):
                H[i][j] = H[i][j] - column[i] * H[j][k]
    x: list[Any] = []
    left: list[Any] = []
    for k in range(n):
        rest = y[k]
        for i in range(k):
            rest = rest - H[i][k] * x[i]
        left.append(rest)
        x.append(rest * inverse[k])
    return x, left

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
from armdyn.chain.joint import NO_FORCES
from armdyn.formulations.elimination import least_pivots, reciprocal
from armdyn.graph.program import Program, trace
from armdyn.programs.assemble import Options, assemble
from armdyn.simulation.plants import Plant, Varying, of_plant
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
        """The forces besides dry and viscous friction and that of the load."""
        total = 0
        for joint, ratio, shift in self.joints:
            more = joint.forces
            if more != NO_FORCES:
                rate = ratio * qd
                total = total + ratio * (more.at(ratio * q + shift) + more.over_speed(rate, sign(rate)))
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


def has_dry_friction(chain: Chain, options: Options, varying: Varying | None = None) -> bool:
    """Whether a joint can stick."""
    if varying is not None and varying.friction:
        return options.friction and any(varying.dry)
    return options.friction and any(friction.breakaway > 0 for friction in frictions(chain))


@dataclass(frozen=True)
class PlantFriction(Friction):
    """The same of a plant whose viscous and Coulomb friction are inputs; what static friction has above stays."""

    b: Any = 0
    c: Any = 0
    dry_joint: bool = False

    @property
    def viscous(self) -> Any:
        """Per unit of the coordinate's speed."""
        return self.b

    @property
    def breakaway(self) -> Any:
        """The largest dry friction at rest."""
        return self.c + (Friction(self.joints).breakaway - self.joints[0][0].coulomb)

    @property
    def dries(self) -> bool:
        """Whether there may be dry friction besides that of a load."""
        return self.dry_joint

    def dry(self, qd: Any) -> Any:
        """The magnitude of dry friction while sliding."""
        joint = self.joints[0][0]
        return self.c + (joint.dry_friction(qd) - joint.coulomb)


def _frictions_of(chain: Chain, varying: Varying | None, plant: Plant | None) -> tuple[Friction, ...]:
    """The friction along every velocity, with a plant's own numbers where they vary."""
    if plant is None or varying is None or not varying.friction:
        return frictions(chain)
    numbers = zip(frictions(chain), plant.viscous, plant.coulomb, varying.dry, strict=True)
    return tuple(PlantFriction(f.joints, b, c, dry) for f, b, c, dry in numbers)


@lru_cache(maxsize=64)
def closed_loop(
    chain: Chain, law: Law, size: int, options: Options, with_torque: bool, varying: Varying | None = None
) -> Program:
    """(q, qd, u) -> acceleration, and the torque behind it where it is asked for.

    With `varying` the plant's constants are a last input; the law knows the chain alone.

    Not simplified: that takes longer than compiling and its 3 to 10 % fewer operations make no faster loop.
    """
    n, width = chain.nv, size + (6 if options.tool_wrench else 0)
    forward = _forward(chain, options, varying)

    def function(q: list[Any], qd: list[Any], u: list[Any], constants: Any = None) -> Any:
        plant = None if varying is None else Plant.of(chain, varying, constants)
        tau = forces_of(chain, law(chain, q if plant is None else plant.measured(q), qd, u[:size]))
        qdd = forward(plant, q, qd, tau, u[size:width])
        return (qdd, tau) if with_torque else qdd

    outputs = [("qdd", (n,)), ("tau", (n,))] if with_torque else [("qdd", (n,))]
    inputs = {"q": (chain.nq,), "qd": (n,), "u": (max(width, 1),)}
    return trace("closed_loop", function, inputs | constants_port(chain, varying), outputs)


def constants_port(chain: Chain, varying: Varying | None) -> dict[str, tuple[int, ...]]:
    """The last input of a program whose plant varies."""
    return {} if varying is None else {"constants": (sum(varying.sizes(chain).values()),)}


def _forward(chain: Chain, options: Options, varying: Varying | None) -> Any:
    """(plant, q, qd, tau, wrench) -> acceleration; the plant is None where it is the chain."""
    if varying is not None:
        forward = of_plant(chain, "forward_dynamics", options)
        with_wrench = options.tool_wrench
        return lambda plant, q, qd, tau, w: forward(plant.chain, [q, qd, tau], w if with_wrench else None)
    plain = assemble(chain, "forward_dynamics", cheapest(chain, "forward_dynamics"), options).function
    return lambda plant, q, qd, tau, wrench: plain(q, qd, tau, *((wrench,) if options.tool_wrench else ()))


@lru_cache(maxsize=64)
def lockable_loop(
    chain: Chain,
    law: Law,
    size: int,
    options: Options,
    staged: bool,
    can_lock: tuple[bool, ...],
    varying: Varying | None = None,
) -> Program:
    """(q, qd, u, free, side) -> (acceleration, what holds a locked joint or drives a free one, torque).

    `side` is the sign of the motion that dry friction acts against, 0 for a locked joint. With `staged` (implicit
    stages, impacts) there are three inputs more: the torques are `share` of the law's plus `extra`, and `added`
    inertias are on the diagonal. With `varying` the plant's constants are a last input.
    """
    n, width = chain.nv, max(size + (6 if options.tool_wrench else 0), 1)
    inertia, bias = _inertia(chain, varying), _bias(chain, options, varying)

    def function(q: list[Any], qd: list[Any], u: list[Any], free: Any, side: Any, *more: Any) -> Any:
        plant = None if varying is None else Plant.of(chain, varying, more[-1])
        stage = more if plant is None else more[:-1]
        real = chain if plant is None else plant.chain
        tau = forces_of(chain, law(chain, q if plant is None else plant.measured(q), qd, u[:size]))
        share, extra, added = stage or ([1] * n, [0] * n, [0] * n)
        b = bias(plant, q, qd, u[size:])
        pushed = [c * t + e for c, t, e in zip(share, tau, extra, strict=True)]
        locks = [f if able else 1 for f, able in zip(free, can_lock, strict=True)]
        if not options.friction:
            right = [t - x for t, x in zip(pushed, b, strict=True)]
            return *solve_lockable(real, inertia(plant, q), right, locks, added), tau
        along = _frictions_of(chain, varying, plant)
        beside = q[chain.nq - chain.nv :]  # a joint's coordinate beside its velocity
        pushed = [t - f.forces(x, v) - f.viscous * v for t, f, x, v in zip(pushed, along, beside, qd, strict=True)]
        sliding = [t - f.dry(v) * s if f.dries else t for t, f, v, s in zip(pushed, along, qd, side, strict=True)]
        passed = [f.own.efficiency(t, s) for f, t, s in zip(along, sliding, side, strict=True)]
        right = [part * t - x for part, t, x in zip(passed, sliding, b, strict=True)]
        added = [part * x for part, x in zip(passed, added, strict=True)]
        qdd, left = solve_lockable(real, inertia(plant, q), right, locks, added)
        return qdd, [f.bounded(x, t) for f, x, t in zip(along, left, pushed, strict=True)], tau

    names = ("q", "qd", "u", "free", "side", *(("share", "extra", "added") if staged else ()))
    inputs = {name: ({"q": chain.nq, "u": width}.get(name, n),) for name in names} | constants_port(chain, varying)
    return trace("lockable_loop", function, inputs, [("qdd", (n,)), ("left", (n,)), ("tau", (n,))])


def lockable_dynamics(chain: Chain, runtime: bool) -> Program:
    """(q, qd, tau, free) -> (acceleration, what holds a locked joint or drives a free one), without any friction.

    With `runtime` the minimal parameters are a last input. The FMU has it, with the friction in its own sources.
    """
    n, varying = chain.nv, Varying() if runtime else None
    inertia, bias = _inertia(chain, varying), _bias(chain, Options(), varying)

    def function(q: list[Any], qd: list[Any], tau: list[Any], free: list[Any], *parameters: Any) -> Any:
        plant = None if varying is None else Plant.of(chain, varying, parameters[0])
        right = [t - x for t, x in zip(tau, bias(plant, q, qd, []), strict=True)]
        return solve_lockable(chain if plant is None else plant.chain, inertia(plant, q), right, free, [0] * n)

    inputs: dict[str, tuple[int, ...]] = dict.fromkeys(("q", "qd", "tau", "free"), (n,))
    if varying is not None:
        inputs |= {"parameters": (sum(varying.sizes(chain).values()),)}
    return trace("lockable_dynamics", function, inputs, [("qdd", (n,)), ("left", (n,))])


def _inertia(chain: Chain, varying: Varying | None) -> Any:
    """(plant, q) -> H."""
    if varying is None:
        plain = assemble(chain, "inertia_matrix", cheapest(chain, "inertia_matrix")).function
        return lambda plant, q: plain(q)
    loaded = of_plant(chain, "inertia_matrix")
    return lambda plant, q: loaded(plant.chain, [q])


def _bias(chain: Chain, options: Options, varying: Varying | None) -> Any:
    """(plant, q, qd, wrench) -> what the motors must give without acceleration."""
    quantity, rest = ("inverse_dynamics", [[0] * chain.nv]) if options.tool_wrench else ("bias", [])
    asked = Options(tool_wrench=options.tool_wrench)
    if varying is not None:
        loaded = of_plant(chain, quantity, asked)
        return lambda plant, q, qd, w: loaded(plant.chain, [q, qd, *rest], w[:6] if asked.tool_wrench else None)
    plain = assemble(chain, quantity, cheapest(chain, quantity), asked).function
    return lambda plant, q, qd, w: plain(q, qd, *rest, *((w[:6],) if asked.tool_wrench else ()))


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

"""The arm under its drive as programs: accelerations of a state, with or without joints that may be locked.

A joint that sticks is a joint with an infinite inertia: in the elimination H = U D Uᵀ its pivot's reciprocal is 0.
So one straight-line program serves every combination of sticking and sliding joints: `free` is 1 for a joint that
may move and 0 for one that is locked, and multiplies the reciprocal of its pivot. What the elimination leaves at a
locked joint is the force that holds it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from armdyn.chain import Chain, Joint
from armdyn.formulations.elimination import least_pivots, reciprocal
from armdyn.graph.program import Program, trace
from armdyn.programs.assemble import Options, assemble
from armdyn.simulation.plants import Plant, Varying, of_plant
from armdyn.simulation.torque import Law, cheapest


@dataclass(frozen=True)
class Friction:
    """The friction along one coordinate: its joint's own, and that of mimic joints by their multipliers."""

    joints: tuple[tuple[Joint, Any], ...]  # with |dq of the joint / dq of the coordinate|

    @property
    def viscous(self) -> Any:
        """Per unit of the coordinate's speed."""
        return sum(ratio * ratio * joint.viscous for joint, ratio in self.joints)

    @property
    def breakaway(self) -> Any:
        """The largest dry friction at rest."""
        return sum(ratio * joint.breakaway for joint, ratio in self.joints)

    def dry(self, qd: Any) -> Any:
        """The magnitude of dry friction while sliding."""
        return sum(ratio * joint.dry_friction(ratio * qd) for joint, ratio in self.joints if joint.breakaway > 0)


def frictions(chain: Chain) -> tuple[Friction, ...]:
    """The friction along every coordinate, in q's order."""
    along: dict[int, list[tuple[Joint, Any]]] = {i: [] for i in chain.independent}
    for i, joint in enumerate(chain.joints):
        ratio, k = 1, i
        while (mimic := chain.joints[k].mimic) is not None:
            ratio, k = ratio * mimic.multiplier, mimic.joint
        if k in along:
            along[k].append((joint, abs(ratio)))
    return tuple(Friction(tuple(joints)) for joints in along.values())


def has_dry_friction(chain: Chain, options: Options, varying: Varying | None = None) -> bool:
    """Whether a joint can stick."""
    if varying is not None and varying.friction:
        return options.friction and any(varying.dry)
    return options.friction and any(friction.breakaway > 0 for friction in frictions(chain))


def _friction_forces(chain: Chain, plant: Plant | None, varying: Varying | None, qd: list[Any], side: Any) -> list[Any]:
    """Viscous and dry friction of joints that move; `side` is the sign that dry friction acts against."""
    if plant is None or varying is None or not varying.friction:
        return [
            friction.viscous * v + (friction.dry(v) * s if friction.breakaway > 0 else 0)
            for friction, v, s in zip(frictions(chain), qd, side, strict=True)
        ]
    out = []
    for joint, dry, b, c, v, s in zip(chain.joints, varying.dry, plant.viscous, plant.coulomb, qd, side, strict=True):
        more = joint.dry_friction(v) - joint.coulomb  # what Stribeck's curve has above Coulomb friction
        out.append(b * v + ((c + more) * s if dry else 0))
    return out


@lru_cache(maxsize=64)
def closed_loop(
    chain: Chain, law: Law, size: int, options: Options, with_torque: bool, varying: Varying | None = None
) -> Program:
    """(q, qd, u) -> acceleration, and the torque behind it where it is asked for.

    With `varying` the plant's constants are a last input; the law knows the chain alone.

    Not simplified: that takes longer than compiling and its 3 to 10 % fewer operations make no faster loop.
    """
    n, width = chain.n, size + (6 if options.tool_wrench else 0)
    forward = _forward(chain, options, varying)

    def function(q: list[Any], qd: list[Any], u: list[Any], constants: Any = None) -> Any:
        plant = None if varying is None else Plant.of(chain, varying, constants)
        tau = law(chain, q if plant is None else plant.measured(q), qd, u[:size])
        qdd = forward(plant, q, qd, tau, u[size:width])
        return (qdd, tau) if with_torque else qdd

    outputs = [("qdd", (n,)), ("tau", (n,))] if with_torque else [("qdd", (n,))]
    inputs = {"q": (n,), "qd": (n,), "u": (max(width, 1),)}
    return trace("closed_loop", function, inputs | constants_port(chain, varying), outputs)


def constants_port(chain: Chain, varying: Varying | None) -> dict[str, tuple[int, ...]]:
    """The last input of a program whose plant varies."""
    return {} if varying is None else {"constants": (sum(varying.sizes(chain).values()),)}


def _forward(chain: Chain, options: Options, varying: Varying | None) -> Any:
    """(plant, q, qd, tau, wrench) -> acceleration; the plant is None where it is the chain."""
    if varying is None:
        plain = assemble(chain, "forward_dynamics", cheapest(chain, "forward_dynamics"), options).function
        return lambda plant, q, qd, tau, wrench: plain(q, qd, tau, *((wrench,) if options.tool_wrench else ()))
    nominal = replace(options, friction=options.friction and not varying.friction)
    forward = of_plant(chain, "forward_dynamics", nominal)

    def function(plant: Plant, q: list[Any], qd: list[Any], tau: list[Any], wrench: list[Any]) -> Any:
        if options.friction and varying.friction:
            tau = [t - b * v for t, b, v in zip(tau, plant.viscous, qd, strict=True)]
        return forward(plant.chain, [q, qd, tau], wrench if options.tool_wrench else None)

    return function


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
    n, width = chain.n, max(size + (6 if options.tool_wrench else 0), 1)
    inertia, bias = _inertia(chain, varying), _bias(chain, options, varying)

    def function(q: list[Any], qd: list[Any], u: list[Any], free: Any, side: Any, *more: Any) -> Any:
        plant = None if varying is None else Plant.of(chain, varying, more[-1])
        stage = more if plant is None else more[:-1]
        tau = law(chain, q if plant is None else plant.measured(q), qd, u[:size])
        share, extra, added = stage or ([1] * n, [0] * n, [0] * n)
        b = bias(plant, q, qd, u[size:])
        right = [c * t + e - x for c, t, e, x in zip(share, tau, extra, b, strict=True)]
        if options.friction:
            lost = _friction_forces(chain, plant, varying, qd, side)
            right = [r - x for r, x in zip(right, lost, strict=True)]
        locks = [f if able else 1 for f, able in zip(free, can_lock, strict=True)]
        real = chain if plant is None else plant.chain
        qdd, left = solve_lockable(real, inertia(plant, q), right, locks, added)
        return qdd, left, tau

    names = ("q", "qd", "u", "free", "side", *(("share", "extra", "added") if staged else ()))
    inputs = {name: (width if name == "u" else n,) for name in names} | constants_port(chain, varying)
    return trace("lockable_loop", function, inputs, [("qdd", (n,)), ("left", (n,)), ("tau", (n,))])


def _inertia(chain: Chain, varying: Varying | None) -> Any:
    """(plant, q) -> H."""
    if varying is None:
        plain = assemble(chain, "inertia_matrix", cheapest(chain, "inertia_matrix")).function
        return lambda plant, q: plain(q)
    loaded = of_plant(chain, "inertia_matrix")
    return lambda plant, q: loaded(plant.chain, [q])


def _bias(chain: Chain, options: Options, varying: Varying | None) -> Any:
    """(plant, q, qd, wrench) -> what the motors must give without acceleration."""
    quantity, rest = ("inverse_dynamics", [[0] * chain.n]) if options.tool_wrench else ("bias", [])
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
    n = chain.n
    H = [[h + added[i] if i == j else h for j, h in enumerate(row)] for i, row in enumerate(H)]
    every = least_pivots(chain)
    least = every if len(every) == n else [every[i] for i in chain.independent]
    y, inverse = list(right), [0] * n
    for k in reversed(range(n)):
        inverse[k] = free[k] * reciprocal(H[k][k], least[k], k)
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

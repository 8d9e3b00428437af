"""The arm under its drive as programs: accelerations of a state, with or without joints that may be locked.

A locked joint has an infinite inertia: `free` is 1 for a joint that may move and 0 for one that is locked, and
multiplies the reciprocal of its pivot in the elimination H = U D Uᵀ. What the elimination leaves at a locked joint is
the force that holds it.

Plants are arms that differ from the controller's model, one per lane, by run-time parameters of the programs. A
compiled loop takes them as one more input, `constants`, fixed for each lane: the inertial parameters, gravity, friction
and joint offsets that vary. One program thus simulates any number of arms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from armdyn.algebra import Vec3, sign
from armdyn.arm import Arm
from armdyn.chain import Chain, Joint, JointForces, Link
from armdyn.chain.geometry import geometry_constants, with_geometry
from armdyn.chain.joint import NO_FORCES
from armdyn.codegen.compile import Compiled, load_or_compile
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES, energies
from armdyn.formulations.elimination import least_pivots, solve_with_locks
from armdyn.formulations.physics import complete
from armdyn.graph.program import Program, trace
from armdyn.kernels.kernel import Kernel
from armdyn.parameters import minimal_parameters, realise
from armdyn.programs.assemble import Options, assemble
from armdyn.simulation.drives import Law, cheapest
from armdyn.simulation.request import forces_of
from armdyn.values import cached_property

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
        ratios = ((joint, abs(ratio)) for joint, ratio, _ in self.joints if joint.breakaway > 0)
        return sum(ratio * joint.dry_friction(ratio * qd) for joint, ratio in ratios)

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


def couplings(chain: Chain) -> Callable[[Chain, list[Any], list[Any]], list[Any]] | None:
    """(chain of a plant, q, qd) -> what tendons and gravity compensation require along every velocity; None without."""
    if not chain.coupled:
        return None
    entry = QUANTITIES["joint_forces"]

    def along(real: Chain, q: list[Any], qd: list[Any]) -> list[Any]:
        joints = (replace(j, viscous=0, coulomb=0, static=0, stribeck=0, forces=NO_FORCES) for j in real.joints)
        bare = replace(real, joints=tuple(joints))
        found: list[Any] = complete(
            entry, entry.physics, energies.joint_forces, bare, [q, qd, [0] * real.nv], Options(), None
        )
        return found

    return along


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
    n, width = chain.nv, size + outside_size(options)
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
    """(plant, q, qd, tau, what acts besides) -> acceleration; the plant is None where it is the chain."""
    if varying is not None:
        forward = of_plant(chain, "forward_dynamics", options)
        return lambda plant, q, qd, tau, w: forward(_carried(plant, options, w), [q, qd, tau], _wrench(options, w))
    plain = assemble(chain, "forward_dynamics", cheapest(chain, "forward_dynamics"), options).function
    return lambda plant, q, qd, tau, w: plain(q, qd, tau, *_outside(options, w))


def outside_size(options: Options) -> int:
    """How many numbers of what acts besides the drive follow its inputs (`request.Outside`)."""
    return 6 * options.tool_wrench + 3 * options.base_acceleration


def _outside(options: Options, w: list[Any]) -> tuple[list[Any], ...]:
    """The last inputs of a quantity: the wrench, and the base's acceleration."""
    base = w[6 * options.tool_wrench :][:3]
    return (*((w[:6],) if options.tool_wrench else ()), *((base,) if options.base_acceleration else ()))


def _wrench(options: Options, w: list[Any]) -> Any:
    return w[:6] if options.tool_wrench else None


def _carried(plant: Plant, options: Options, w: list[Any]) -> Chain:
    """A plant's chain on its base."""
    return plant.chain.accelerated(_outside(options, w)[-1]) if options.base_acceleration else plant.chain


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
    n, width = chain.nv, max(size + outside_size(options), 1)
    inertia, bias, coupled = _inertia(chain, varying), _bias(chain, options, varying), couplings(chain)

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
        if coupled is not None:
            pushed = [t - f for t, f in zip(pushed, coupled(real, q, qd), strict=True)]
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
    """(plant, q, qd, what acts besides) -> what the motors must give without acceleration."""
    quantity, rest = ("inverse_dynamics", [[0] * chain.nv]) if options.tool_wrench else ("bias", [])
    wrench_only = Options(tool_wrench=options.tool_wrench, base_acceleration=options.base_acceleration)
    if varying is not None:
        loaded = of_plant(chain, quantity, wrench_only)
        return lambda plant, q, qd, w: loaded(_carried(plant, wrench_only, w), [q, qd, *rest], _wrench(wrench_only, w))
    plain = assemble(chain, quantity, cheapest(chain, quantity), wrench_only).function
    return lambda plant, q, qd, w: plain(q, qd, *rest, *_outside(wrench_only, w))


def solve_lockable(
    chain: Chain, H: list[list[Any]], right: list[Any], free: list[Any], added: list[Any]
) -> tuple[list[Any], list[Any]]:
    """(x, left) with (H + diag(added)) x = right where joints are free and x = 0 where they are locked.

    `left` is D x of a free joint, and of a locked one the force that holds it.
    """
    H = [[h + added[i] if i == j else h for j, h in enumerate(row)] for i, row in enumerate(H)]
    return solve_with_locks(H, right, free, least_pivots(chain), chain.nv - chain.n)


AT_RUN_TIME = Options(parameters="runtime")


@dataclass(frozen=True)
class Varying:
    """What varies between plants besides the inertial parameters; `dry` flags the joints with dry friction.

    If gravity or the geometry varies, the inertial parameters are the ten natural ones per link. Otherwise they are the
    minimal ones, which are fewer but depend on the geometry and the direction of gravity.
    """

    gravity: bool = False
    friction: bool = False
    offsets: bool = False
    rotors: bool = False
    dry: tuple[bool, ...] = ()
    geometry: bool = False

    @property
    def natural(self) -> bool:
        """Whether the inertial parameters are the natural ones."""
        return self.gravity or self.geometry

    def sizes(self, chain: Chain) -> dict[str, int]:
        """How many numbers there are of each kind, in their order."""
        n = chain.n
        inertial = 10 * chain.bodies if self.natural else len(minimal_parameters(chain))
        friction = n if self.friction else 0
        sizes = {"inertial": inertial, "gravity": 3 if self.gravity else 0, "viscous": friction, "coulomb": friction}
        sizes |= {"offsets": n if self.offsets else 0, "rotors": n if self.rotors else 0}
        return sizes | {"geometry": len(geometry_constants(chain)) if self.geometry else 0}


@dataclass(frozen=True)
class Plant:
    """One plant over any scalar: its chain, and per joint viscous and Coulomb friction and offsets, if they vary."""

    chain: Chain
    viscous: list[Any]
    coulomb: list[Any]
    offsets: list[Any]

    @classmethod
    def of(cls, chain: Chain, varying: Varying, constants: list[Any]) -> Plant:
        """The plant of these constants."""
        left = iter(constants)
        parts = {name: _take(left, size) for name, size in varying.sizes(chain).items()}
        inertial = parts["inertial"]
        if varying.natural:
            links = tuple(Link.from_natural(tuple(inertial[k : k + 10])) for k in range(0, len(inertial), 10))
            real = chain.with_links(links)
        else:
            real = realise(chain, inertial)
        if varying.gravity:
            real = replace(real, gravity=Vec3(*parts["gravity"]))
        if varying.geometry:
            real = with_geometry(real, parts["geometry"])
        if varying.rotors:
            pairs = zip(real.joints, parts["rotors"], strict=True)
            real = replace(real, joints=tuple(replace(joint, rotor_inertia=x) for joint, x in pairs))
        if varying.friction:  # the loop handles dry friction itself
            pairs = zip(real.joints, parts["viscous"], strict=True)
            real = replace(real, joints=tuple(replace(joint, viscous=b) for joint, b in pairs))
        return cls(real, parts["viscous"], parts["coulomb"], parts["offsets"])

    def measured(self, q: list[Any]) -> list[Any]:
        """The encoder readings, which the controller gets."""
        return [x - o for x, o in zip(q, self.offsets, strict=True)] if self.offsets else q


def _take(left: Iterator[Any], count: int) -> list[Any]:
    return [next(left) for _ in range(count)]


def of_plant(chain: Chain, quantity: str, options: Options = Options()) -> Callable[..., Any]:
    """A quantity as a function of (chain of a plant, inputs, wrench), by the formulation cheapest at run time."""
    entry = QUANTITIES[quantity]
    at_run_time = AT_RUN_TIME if "parameters" in entry.takes else Options()
    run = entry.formulation(Kernel(chain, quantity, options=at_run_time).method, chain).run
    return lambda real, inputs, wrench=None: complete(entry, entry.physics, run, real, inputs, options, wrench)


@lru_cache(maxsize=64)
def plant_program(chain: Chain, quantity: str, options: Options, varying: Varying) -> Compiled | None:
    """A quantity compiled with a plant's constants as its last input."""
    entry = QUANTITIES[quantity]
    run = of_plant(chain, quantity, options)
    inputs = dict(entry.input_shapes(chain))
    wrench = {"wrench": (6,)} if options.tool_wrench else {}
    sizes = {**inputs, **wrench, "constants": (sum(varying.sizes(chain).values()),)}

    def function(*given: Any) -> Any:
        *arrays, constants = given
        plant = Plant.of(chain, varying, constants)
        return run(plant.chain, list(arrays[: len(inputs)]), arrays[-1] if wrench else None)

    identity = ("plant", chain, quantity, options, varying)
    make = partial(trace, quantity, function, sizes, entry.output_shapes(chain))
    return load_or_compile(identity, make, uniform=("constants",))


@dataclass(frozen=True, eq=False)
class Plants:
    """k arms with the same geometry: natural parameters (k, N, 10), and what else varies; None keeps the arm's value.

    `parameters` (k, p) are the minimal parameters of `natural`. `gravity` is (k, 3); `viscous` and `coulomb` (k, n) are
    given together; true positions are encoder readings plus `offsets` (k, n); `rotors` are rotor inertias (k, n).
    """

    arm: Arm
    natural: np.ndarray
    parameters: np.ndarray
    gravity: np.ndarray | None = None
    viscous: np.ndarray | None = None
    coulomb: np.ndarray | None = None
    offsets: np.ndarray | None = None
    rotors: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.natural)

    @cached_property
    def varying(self) -> Varying:
        """Which parameters are inputs of the programs."""
        joints = [joint.breakaway > 0 or joint.forces.load_friction > 0 for joint in self.arm.joints]
        friction = self.viscous is not None and self.coulomb is not None
        dry = np.logical_or(joints, (self.coulomb > 0).any(axis=0)) if self.coulomb is not None else ()
        there = [x is not None for x in (self.gravity, self.offsets, self.rotors)]
        return Varying(there[0], friction, there[1], there[2], tuple(bool(x) for x in dry))

    @cached_property
    def constants(self) -> np.ndarray:
        """The numbers of every plant, (k, size)."""
        varying = self.varying
        inertial = self.natural.reshape(len(self), -1) if varying.gravity else self.parameters
        columns = [inertial, self.gravity, self.viscous, self.coulomb, self.offsets, self.rotors]
        return np.hstack([part for part in columns if part is not None])

    def lanes(self, batch: tuple[int, ...]) -> Plants:
        """One plant per lane of a batch whose last axis runs over the plants."""
        if batch[-1:] != (len(self),):
            raise InputError(f"{len(self)} plants need a batch (..., {len(self)}), got {batch}")
        return self.some(np.tile(np.arange(len(self)), int(np.prod(batch[:-1], dtype=int))))

    def some(self, chosen: Any) -> Plants:
        """Some of the plants, in this order."""
        names = ("natural", "parameters", "gravity", "viscous", "coulomb", "offsets", "rotors")
        picked: dict[str, Any] = {name: None if (x := getattr(self, name)) is None else x[chosen] for name in names}
        out = replace(self, **picked)
        out.__dict__["varying"] = self.varying  # the same program for every part of them
        return out

    @property
    def breakaway(self) -> np.ndarray | None:
        """The breakaway friction, (k, n); None if friction does not vary."""
        if self.coulomb is None:
            return None
        pairs = zip(frictions(self.arm.chain), self.arm.joints, strict=True)
        excess = [float(friction.breakaway - joint.coulomb) for friction, joint in pairs]
        return np.where(np.array(self.varying.dry), self.coulomb + np.array(excess), 0.0)

    def quantity(self, name: str, *arrays: Any, options: Options = Options()) -> Any:
        """A quantity of every plant at true positions; the arrays' first axis runs over the plants.

        Friction and offsets are left to the caller. The arm's kernel with run-time parameters is used if gravity and
        rotor inertias do not vary, otherwise one that takes natural parameters.
        """
        entry, extra = QUANTITIES[name], (np.ndim(arrays[0]) - 2) * (1,)
        if "parameters" in entry.takes and self.gravity is None and self.rotors is None:
            kernel = self.arm.kernel(name, parameters="runtime", **_chosen(options))
            return kernel(*arrays, self.parameters.reshape(len(self), *extra, -1))
        if name == "regressor":  # its columns depend on gravity, and its values not on the links
            if self.gravity is not None:
                raise InputError("the regressor's columns depend on gravity's direction; natural_regressor has all")
            return self.arm.kernel(name)(*arrays)
        full = Varying(gravity=True, rotors=self.rotors is not None)
        gravity = np.tile(self.arm.gravity, (len(self), 1)) if self.gravity is None else self.gravity
        columns = [self.natural.reshape(len(self), -1), gravity, *([] if self.rotors is None else [self.rotors])]
        program = plant_program(self.arm.chain, name, options, full)
        if program is None:
            raise InputError(f"{name} of {self.arm.name} has no numbers")
        return program(*arrays, np.hstack(columns).reshape(len(self), *extra, -1))

    def energy(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Kinetic and potential energy of states (k, times, n)."""
        return np.asarray(self.quantity("kinetic_energy", q, qd) + self.quantity("potential_energy", q))


def _chosen(options: Options) -> dict[str, Any]:
    """The options that differ from the usual ones, as `Arm.kernel` takes them."""
    return {f.name: value for f in fields(options) if (value := getattr(options, f.name)) != f.default}

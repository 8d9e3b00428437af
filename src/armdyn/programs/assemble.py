"""From a chain, a quantity and a formulation to one function over scalars, extra physics included.

Rotor inertia, friction and a wrench at the tool are added here, outside every recursion and the same
on every route (docs/adr/0003-extra-physics.md); forward dynamics and its kin take the rotors in at
the pivots, where they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from armdyn.chain import Chain, Placement
from armdyn.chain.slide import slid
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES, energies
from armdyn.formulations.elimination import with_rotors
from armdyn.formulations.kinematics.poses import homogeneous
from armdyn.formulations.registry import Formulation, Size
from armdyn.parameters import minimal_parameters, realise
from armdyn.programs.derivatives import by_duals, derivative_ports

Run = Callable[..., Any]
Physics = Callable[[Run, Chain, list[Any], "Extra"], Any]
NO_PARTS: Mapping[str, Run] = MappingProxyType({})

TAKES = {
    "friction": ("inverse_dynamics", "forward_dynamics"),
    "tool_wrench": ("inverse_dynamics", "forward_dynamics"),
    "frame": ("pose", "jacobian", "jacobian_rate", "inverse_dynamics", "forward_dynamics"),
}
# What the minimal parameters determine, so that they may be inputs.
RUNTIME = (
    *("inertia_matrix", "inertia_inverse", "inertia_factors", "inertia_rate", "momentum", "kinetic_energy"),
    *("bias", "gravity_load", "coriolis_matrix", "inverse_dynamics", "forward_dynamics"),
)
# What is read in the link frames as given; everything else may slide frames along their axes.
FRAMES_AS_GIVEN = ("link_poses", "regressor", "natural_regressor")


@dataclass(frozen=True)
class Options:
    """What can be asked of a kernel beyond quantity and formulation.

    `friction` adds the joints' friction; `tool_wrench` adds a last input, the wrench (force, torque)
    that the surroundings exert on the arm at the tool's origin, in base axes; `frame` is (k, placement
    on link k) and stands for the tool, k = 0 being the base; `parameters="runtime"` adds a last input,
    the minimal parameters; `derivatives` names inputs, and the outputs are the exact partial derivatives
    in them.
    """

    friction: bool = False
    tool_wrench: bool = False
    frame: tuple[int, Placement] | None = None
    parameters: str = "baked"
    derivatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assembly:
    """A function over scalars with the shapes of what goes in and comes out."""

    function: Callable[..., Any]
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]


def assemble(
    chain: Chain,
    quantity: str,
    method: str,
    options: Options = Options(),
    parts: Mapping[str, Run] = NO_PARTS,
    physics: Physics | None = None,
) -> Assembly:
    """The function `(q, ...) -> nested lists` of this arm, quantity and formulation.

    `parts` are formulations of other quantities that this one is to be made of (H for `composite`);
    `physics` says what is made of the formulation, the entry of `EXTRA` by default.
    """
    run = partial(formulation(quantity, method).run, **parts)
    entry = QUANTITIES[quantity]
    _check(quantity, options)
    n = chain.n
    inputs = [(name, entry.shape(shape, n)) for name, shape in entry.inputs]
    outputs = [(name, entry.shape(shape, n, _p(chain, shape))) for name, shape in entry.outputs]
    arm = reframed(chain, quantity, options)
    extra = physics or EXTRA.get(quantity, _nothing)
    runtime = options.parameters == "runtime"
    if options.tool_wrench:
        inputs.append(("wrench", (6,)))
    if runtime:
        inputs.append(("parameters", (len(minimal_parameters(chain)),)))

    def function(*arguments: Any) -> Any:
        given = list(arguments)
        real = realise(arm, given.pop()) if runtime else arm
        wrench = given.pop() if options.tool_wrench else None
        return extra(run, real, given, Extra(options, wrench))

    assembly = Assembly(function, tuple(inputs), tuple(outputs))
    return _differentiated(assembly, options.derivatives) if options.derivatives else assembly


def formulation(quantity: str, method: str) -> Formulation:
    """The formulation of a quantity by its key."""
    methods = {m.key: m for m in QUANTITIES[choose("quantity", quantity, QUANTITIES)].methods}
    return methods[choose(f"method of {quantity}", method, methods)]


def _differentiated(plain: Assembly, wrt: tuple[str, ...]) -> Assembly:
    function = by_duals(plain.function, plain.inputs, plain.outputs, wrt)
    return Assembly(function, plain.inputs, derivative_ports(plain.inputs, plain.outputs, wrt))


def _p(chain: Chain, shape: tuple[Size, ...]) -> int:
    """The number of minimal parameters, where a shape asks for it."""
    return len(minimal_parameters(chain)) if "p" in shape else 0


def reframed(chain: Chain, quantity: str, options: Options) -> Chain:
    """The arm with its frames where programs are shortest, unless they are asked for as given."""
    as_given = quantity in FRAMES_AS_GIVEN or options.frame or options.parameters != "baked"
    return chain if as_given else _first_rotor_in_link(slid(chain))


def _first_rotor_in_link(chain: Chain) -> Chain:
    """The rotor of a first joint that turns, as part of link 1, which turns about the same fixed axis."""
    if chain.n == 0 or not chain.joints[0].revolute or chain.joints[0].rotor_inertia == 0:
        return chain
    joint, link = chain.joints[0], chain.links[0]
    J = link.inertia
    link = replace(link, inertia=replace(J, zz=J.zz + joint.rotor_inertia))
    joint = replace(joint, rotor_inertia=0)
    return replace(chain, joints=(joint, *chain.joints[1:]), links=(link, *chain.links[1:]))


def _check(quantity: str, options: Options) -> None:
    for option, takers in TAKES.items():
        if getattr(options, option) and quantity not in takers:
            raise InputError(f"{quantity} takes no {option}; {option} goes with {', '.join(takers)}")
    if choose("parameters", options.parameters, ("baked", "runtime")) == "runtime" and quantity not in RUNTIME:
        raise InputError(f"{quantity} takes no run-time parameters; they go with {', '.join(RUNTIME)}")
    if options.frame and quantity in TAKES["tool_wrench"] and not options.tool_wrench:
        raise InputError(f"{quantity} takes a frame only with a tool_wrench, to say where it acts")


@dataclass(frozen=True)
class Extra:
    """The options with the wrench's six numbers, if any."""

    options: Options
    wrench: Any

    def forces(self, chain: Chain, q: list[Any], qd: list[Any]) -> list[Any]:
        """What friction and the wrench ask of the motors."""
        forces: list[Any] = [0] * chain.n
        if self.options.friction:
            forces = list(energies.friction(chain, qd))
        if self.wrench is not None:
            part = _part(chain, self.options)
            for i, pushed in enumerate(
                energies.tool_forces(part, q[: part.n], self.wrench) if part is not None else []
            ):
                forces[i] = forces[i] - pushed
        return forces


def _part(chain: Chain, options: Options) -> Chain | None:
    """The chain up to the frame that stands for the tool; None where that stands on the base."""
    if options.frame is None:
        return chain
    k, placement = options.frame
    return (
        replace(chain, joints=chain.joints[:k], links=chain.links[:k], parents=chain.parents[:k], tool=placement)
        if k
        else None
    )


def _inverse_dynamics(run: Run, chain: Chain, inputs: list[Any], extra: Extra) -> Any:
    q, qd, qdd = inputs
    forces = extra.forces(chain, q, qd)
    return [
        t + joint.rotor_inertia * a + f
        for t, joint, a, f in zip(run(chain, q, qd, qdd), chain.joints, qdd, forces, strict=True)
    ]


def _forward_dynamics(run: Run, chain: Chain, inputs: list[Any], extra: Extra) -> Any:
    q, qd, tau = inputs
    forces = extra.forces(chain, q, qd)
    return run(chain, q, qd, [t - f for t, f in zip(tau, forces, strict=True)])


def _nothing(run: Run, chain: Chain, inputs: list[Any], extra: Extra) -> Any:
    return run(chain, *inputs)


def _inertia_matrix(run: Run, chain: Chain, inputs: list[Any], extra: Extra) -> Any:
    return with_rotors(chain, run(chain, *inputs))


def _momentum(run: Run, chain: Chain, inputs: list[Any], extra: Extra) -> Any:
    _, qd = inputs
    return [p + joint.rotor_inertia * v for p, joint, v in zip(run(chain, *inputs), chain.joints, qd, strict=True)]


def _kinetic_energy(run: Run, chain: Chain, inputs: list[Any], extra: Extra) -> Any:
    energy = run(chain, *inputs)
    for joint, v in zip(chain.joints, inputs[1], strict=True):
        energy = energy + joint.rotor_inertia / 2 * (v * v)
    return energy


def _at_frame(run: Run, chain: Chain, inputs: list[Any], extra: Extra) -> Any:
    part = _part(chain, extra.options)
    if part is None:
        return [[0] * chain.n for _ in range(6)]
    rows = run(part, *(x[: part.n] for x in inputs))
    return [[*row, *([0] * (chain.n - part.n))] for row in rows]


def _pose(run: Run, chain: Chain, inputs: list[Any], extra: Extra) -> Any:
    part = _part(chain, extra.options)
    if part is None and extra.options.frame is not None:
        fixed = extra.options.frame[1]  # in the base already, where `chain.base` places frame 0
        return homogeneous((fixed.R, fixed.p))
    return run(part, inputs[0][: part.n if part else 0])


EXTRA: dict[str, Physics] = {
    "inertia_matrix": _inertia_matrix,
    "momentum": _momentum,
    "kinetic_energy": _kinetic_energy,
    "inverse_dynamics": _inverse_dynamics,
    "forward_dynamics": _forward_dynamics,
    "pose": _pose,
    "jacobian": _at_frame,
    "jacobian_rate": _at_frame,
}

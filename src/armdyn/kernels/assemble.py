"""From a chain, a quantity and a formulation to one function over scalars, extra physics included.

Rotor inertia, friction and a wrench at the tool are added here, outside every recursion and the same
on every route (docs/adr/0003-extra-physics.md); forward dynamics and its kin take the rotors in at
the pivots, where they belong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

from armdyn.chain import Chain, Placement
from armdyn.chain.slide import slid
from armdyn.errors import InputError, choose
from armdyn.formulations import QUANTITIES, energies
from armdyn.formulations.elimination import with_rotors
from armdyn.formulations.kinematics.poses import homogeneous
from armdyn.formulations.registry import Formulation, Size
from armdyn.graph.derive import inline, jacobian
from armdyn.graph.program import Program, flatten, trace
from armdyn.graph.simplify import once, simplify
from armdyn.kernels.derivatives import by_duals, derivative_ports, forward_dynamics
from armdyn.parameters import minimal_parameters, realise

Run = Callable[..., Any]
Physics = Callable[[Run, Chain, list[Any], "_Extra"], Any]
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
# What `composite` is made of.
MADE_OF = {
    "forward_dynamics": ("inertia_matrix", "bias"),
    "inertia_inverse": ("inertia_matrix",),
    "inertia_factors": ("inertia_matrix",),
}
# What is read in the link frames as given; everything else may slide frames along their axes.
FRAMES_AS_GIVEN = ("link_poses", "regressor", "natural_regressor")


FEW_JOINTS = 4  # up to here derivatives are sought both ways
FEW_SLOPES = 1500  # operations of derivatives up to which rewriting them is quick and gains
FEW, NEAR = 400, 1.15  # operations of programs, and their ratio, up to which all of them are rewritten to find the best
# Which ends of a formulation may become the shortest when they are rewritten: all of up to FEW operations, before or
# after a first round, and of the others those that lag behind by no more than rewriting has been seen to make good.
LATER = 35  # operations behind the best after a first round
MANY, LAG, FAR = 1000, 1.25, 1.5  # for programs of so many operations: ratios to the best, as traced and as tallied


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
    run = partial(_formulation(quantity, method).run, **parts)
    entry = QUANTITIES[quantity]
    _check(quantity, options)
    n = chain.n
    inputs = [(name, entry.shape(shape, n)) for name, shape in entry.inputs]
    outputs = [(name, entry.shape(shape, n, _p(chain, shape))) for name, shape in entry.outputs]
    arm = _reframed(chain, quantity, options)
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
        return extra(run, real, given, _Extra(options, wrench))

    assembly = Assembly(function, tuple(inputs), tuple(outputs))
    return _differentiated(assembly, options.derivatives) if options.derivatives else assembly


def _differentiated(plain: Assembly, wrt: tuple[str, ...]) -> Assembly:
    function = by_duals(plain.function, plain.inputs, plain.outputs, wrt)
    return Assembly(function, plain.inputs, derivative_ports(plain.inputs, plain.outputs, wrt))


def _p(chain: Chain, shape: tuple[Size, ...]) -> int:
    """The number of minimal parameters, where a shape asks for it."""
    return len(minimal_parameters(chain)) if "p" in shape else 0


def _reframed(chain: Chain, quantity: str, options: Options) -> Chain:
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
class _Extra:
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
    return replace(chain, joints=chain.joints[:k], links=chain.links[:k], tool=placement) if k else None


def _inverse_dynamics(run: Run, chain: Chain, inputs: list[Any], extra: _Extra) -> Any:
    q, qd, qdd = inputs
    forces = extra.forces(chain, q, qd)
    return [
        t + joint.rotor_inertia * a + f
        for t, joint, a, f in zip(run(chain, q, qd, qdd), chain.joints, qdd, forces, strict=True)
    ]


def _forward_dynamics(run: Run, chain: Chain, inputs: list[Any], extra: _Extra) -> Any:
    q, qd, tau = inputs
    forces = extra.forces(chain, q, qd)
    return run(chain, q, qd, [t - f for t, f in zip(tau, forces, strict=True)])


def _nothing(run: Run, chain: Chain, inputs: list[Any], extra: _Extra) -> Any:
    return run(chain, *inputs)


def _inertia_matrix(run: Run, chain: Chain, inputs: list[Any], extra: _Extra) -> Any:
    return with_rotors(chain, run(chain, *inputs))


def _momentum(run: Run, chain: Chain, inputs: list[Any], extra: _Extra) -> Any:
    _, qd = inputs
    return [p + joint.rotor_inertia * v for p, joint, v in zip(run(chain, *inputs), chain.joints, qd, strict=True)]


def _kinetic_energy(run: Run, chain: Chain, inputs: list[Any], extra: _Extra) -> Any:
    energy = run(chain, *inputs)
    for joint, v in zip(chain.joints, inputs[1], strict=True):
        energy = energy + joint.rotor_inertia / 2 * (v * v)
    return energy


def _at_frame(run: Run, chain: Chain, inputs: list[Any], extra: _Extra) -> Any:
    part = _part(chain, extra.options)
    if part is None:
        return [[0] * chain.n for _ in range(6)]
    rows = run(part, *(x[: part.n] for x in inputs))
    return [[*row, *([0] * (chain.n - part.n))] for row in rows]


def _pose(run: Run, chain: Chain, inputs: list[Any], extra: _Extra) -> Any:
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


@lru_cache(maxsize=256)
def program(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program:
    """The graph of this arm's quantity, by this formulation."""
    if options.derivatives:
        return _derivatives(chain, quantity, method, options)
    first, *others = _ways(chain, quantity, method, options)
    near = [one for one in others if _total(one) <= min(FEW, NEAR * _total(first))]
    best = min((simplify(one) for one in (first, *near)), key=_total)
    for end in _formulation(quantity, method).ends:
        if _may_be_shorter(chain, quantity, end, options, best):
            best = min(best, replace(program(chain, quantity, end, options), name=best.name), key=_total)
    return best


def _total(program: Program) -> int:
    return program.operations.total


def _formulation(quantity: str, method: str) -> Formulation:
    methods = {m.key: m for m in QUANTITIES[choose("quantity", quantity, QUANTITIES)].methods}
    return methods[choose(f"method of {quantity}", method, methods)]


def _may_be_shorter(chain: Chain, quantity: str, method: str, options: Options, best: Program) -> bool:
    """Whether another formulation's program may have fewer operations than the best, once it is rewritten."""
    from armdyn.kernels.cost import published  # which counts programs, and so stands above this module

    least = _total(best)
    if least > MANY and published(chain, quantity, method).total > FAR * least:
        return False
    plain = traced(chain, quantity, method, options)
    if _total(plain) <= max(FEW, least):
        return True
    if _total(plain) > max(MANY, LAG * least):
        return False
    return _total(once(plain)) <= max(FEW, least + LATER)


def _derivatives(chain: Chain, quantity: str, method: str, options: Options) -> Program:
    """The graph of the partial derivatives."""
    from armdyn.kernels.choose import auto  # which counts programs, and so stands above this module

    plain, wrt = replace(options, derivatives=()), options.derivatives
    derivative_ports(assemble(chain, quantity, method, plain).inputs, (), wrt)
    if quantity != "forward_dynamics":
        return _slopes(chain, quantity, method, plain, wrt)
    others = tuple(name for name in wrt if name != "tau")
    key = auto(chain, "inverse_dynamics", replace(plain, derivatives=(*others, "qdd")))
    rates = _slopes(chain, "inverse_dynamics", key, plain, (*others, "qdd"))
    inverse = program(chain, "inverse_dynamics", auto(chain, "inverse_dynamics", plain), plain)
    return forward_dynamics(chain, inverse, rates, wrt)


def _slopes(chain: Chain, quantity: str, method: str, options: Options, wrt: tuple[str, ...]) -> Program:
    """The derivatives by the formulation's own way, if it has one for these inputs, or by the chain rule."""
    found = []
    own = _formulation(quantity, method).derivatives
    if own is not None and set(wrt) <= {name for name, _ in QUANTITIES[quantity].inputs}:
        found.append(_own_slopes(chain, quantity, method, options, wrt, own))
    if not found or chain.n <= FEW_JOINTS:
        found.append(jacobian(program(chain, quantity, method, options), wrt))
    shorter = (simplify(one) if _total(one) <= FEW_SLOPES else one for one in found)
    return min(shorter, key=_total)


def _own_slopes(chain: Chain, quantity: str, method: str, options: Options, wrt: tuple[str, ...], own: Run) -> Program:
    """A formulation's own derivatives, and beside them those of rotors, friction and a wrench by the chain rule."""

    def only_extra(run: Run, arm: Chain, inputs: list[Any], extra: _Extra) -> Any:
        return EXTRA[quantity](lambda arm, *_: [0] * arm.n, arm, inputs, extra)

    whole = assemble(chain, quantity, method, options, physics=only_extra)
    shapes = dict(whole.inputs)
    others = jacobian(trace(quantity, whole.function, shapes, whole.outputs), wrt)
    bare = assemble(chain, quantity, method, options, physics=lambda run, arm, inputs, extra: own(arm, *inputs))

    def function(*arguments: Any) -> Any:
        slopes = dict(zip(shapes, bare.function(*arguments), strict=False))
        more = inline(others, *arguments)
        total = tuple(
            [a + b for a, b in zip(flatten(slopes[name]), flat, strict=True)]
            for name, flat in zip(wrt, more, strict=True)
        )
        return total[0] if len(wrt) == 1 else total

    outputs = [(port.name, port.shape) for port in others.outputs]
    return trace(f"{quantity}_derivatives", function, shapes, outputs)


def traced(chain: Chain, quantity: str, method: str, options: Options = Options()) -> Program:
    """The same graph as the formulation writes it, folded and shared but not rewritten."""
    return _ways(chain, quantity, method, options)[0]


@lru_cache(maxsize=16)
def _ways(chain: Chain, quantity: str, method: str, options: Options) -> tuple[Program, ...]:
    """The graphs of every way the formulation leaves open, the shortest first."""
    parts = _parts(chain, quantity, method, options)
    programs = []
    for way in _formulation(quantity, method).ways(_reframed(chain, quantity, options)):
        assembly = assemble(chain, quantity, method, options, {**parts, **way})
        programs.append(trace(f"{quantity}_{method}", assembly.function, dict(assembly.inputs), assembly.outputs))
    return tuple(sorted(programs, key=lambda one: one.operations.total))


def _parts(chain: Chain, quantity: str, method: str, options: Options) -> Mapping[str, Run]:
    """The inertia matrix and the bias of fewest operations for what is made of them."""
    from armdyn.kernels.choose import auto  # which counts programs, and so stands above this module

    if method != "composite" or quantity not in MADE_OF:
        return NO_PARTS
    found = {}
    for part in MADE_OF[quantity]:
        key = auto(chain, part, Options(parameters=options.parameters))
        found[part] = next(m.run for m in QUANTITIES[part].methods if m.key == key)
    return found

"""The programs of a page: an arm's dynamics with gravity and the parameters of arm and payload as inputs.

`payload_parameters`, as in the registry, gives the run-time parameters of the arm with a payload at its tool. `state`
(inertia matrix, gravity load, energies, momenta, poses, Jacobian) and `dynamics` (what the equation of motion consists
of, friction included) take these and gravity as inputs, so both can change while the arm moves. `dynamics.js` solves
the equation of motion, because which joints stick or stand at a stop changes from step to step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from random import Random
from typing import Any

from armdyn.algebra import Vec3, X, Y, Z
from armdyn.chain import Chain, Link
from armdyn.formulations import QUANTITIES
from armdyn.formulations.physics import complete
from armdyn.formulations.registry import Options
from armdyn.graph.program import Program, trace
from armdyn.kernels.kernel import auto
from armdyn.parameters import minimal_parameters, realise
from armdyn.programs.assemble import assemble
from armdyn.programs.program import program

# Outputs of `state` and the quantities they come from.
STATE = {
    "H": "inertia_matrix",
    "g": "gravity_load",
    "T": "kinetic_energy",
    "V": "potential_energy",
    "p": "momentum",
    "poses": "dh_poses",
    "tool": "pose",
    "J": "jacobian",
}
AT_RUN_TIME = Options(parameters="runtime")
OBLIQUE = Vec3(Fraction(31, 10), Fraction(-57, 10), Fraction(-73, 10))  # not parallel to any likely joint axis
Sizes = dict[str, tuple[int, ...]]


def tool_link(chain: Chain) -> int:
    """The link that carries the tool; without a tool, the tip that is the most joints away from the base."""
    return chain.tool_carrier - 1 if chain.tool_carrier else max(chain.tips, key=lambda i: (len(chain.path(i)), i))


@lru_cache(maxsize=16)
def under_any_gravity(chain: Chain) -> Chain | None:
    """The chain with a gravity whose minimal parameters determine its forces under any other gravity too.

    Any gravity oblique to all axes does, except if mimic joints move masses in several directions at once: then
    different gravities may depend on different combinations, and the result is None. This is tested numerically: random
    links minus links with the same minimal parameters must have no gravity load along x, y or z.
    """
    turned = replace(chain, gravity=OBLIQUE)
    if chain.floating:  # its motion depends on every mass and first moment
        return turned
    random, floats = Random(1), turned.floats
    full = tuple(Link.from_natural(tuple(random.uniform(-1, 1) for _ in range(10))) for _ in chain.links)
    same = realise(floats, minimal_parameters(floats.with_links(full)).exact_values).links
    pairs = (zip(a.natural, b.natural, strict=True) for a, b in zip(full, same, strict=True))
    unfelt = tuple(Link.from_natural(tuple(x - y for x, y in pair)) for pair in pairs)
    for axis in (X, Y, Z):
        q = [random.uniform(-1, 1) for _ in range(chain.n)]
        loads = [
            of_parameters(replace(floats, links=links, gravity=axis), chain, "gravity_load", [q])
            for links in (unfelt, full)
        ]
        left, most = (max(map(abs, load)) for load in loads)
        if left > 1e-9 * most:
            return None
    return turned


def known_chain(chain: Chain) -> Chain:
    """The chain whose minimal parameters the programs take; without any gravity, those of gravity along z."""
    return under_any_gravity(chain) or (chain if any(chain.gravity) else replace(chain, gravity=Z))


def programs(chain: Chain) -> dict[str, Program]:
    """`payload_parameters`, `state` and `dynamics`."""
    known = known_chain(chain)
    sizes: Sizes = {"gravity": (3,), "parameters": (len(minimal_parameters(known)),)}
    return {
        "payload_parameters": _payload_parameters(known),
        "state": _state(chain, known, sizes),
        "dynamics": _dynamics(chain, known, sizes),
    }


def _at_tool(chain: Chain) -> Options:
    return Options() if chain.tool_carrier else Options(frame=(tool_link(chain) + 1, chain.tool))


def tool_pose(chain: Chain) -> Callable[..., Any]:
    """The pose of the tool as a function of q."""
    at = _at_tool(chain)
    return assemble(chain, "pose", auto(chain, "pose", at), at).function


def _payload_parameters(known: Chain) -> Program:
    """The registry's program, with its output renamed to `parameters`, the input of the other programs."""
    made = program(known, "payload_parameters", auto(known, "payload_parameters"), _at_tool(known))
    (values,) = made.outputs
    return replace(made, outputs=(replace(values, name="parameters"),))


def of_parameters(real: Chain, chain: Chain, quantity: str, inputs: list[Any], method: str = "") -> Any:
    """A quantity of the chain `real`, whose links depend on run-time inputs, by the cheapest formulation for that."""
    entry = QUANTITIES[quantity]
    formulation = entry.formulation(method or auto(chain, quantity, AT_RUN_TIME), chain)
    parts: Mapping[str, Any] = {
        part: QUANTITIES[part].formulation(auto(chain, part, AT_RUN_TIME), chain).run for part in formulation.made_of
    }
    return complete(entry, entry.physics, partial(formulation.run, **parts), real, inputs, Options(), None)


def with_parameters(known: Chain, gravity: Any, parameters: Any) -> Chain:
    """The chain with gravity and minimal parameters given at run time."""
    return replace(realise(known, parameters), gravity=Vec3(*gravity))


def _state(chain: Chain, known: Chain, sizes: Sizes) -> Program:
    """Everything that the page shows about a state, in one program that shares sines and cosines.

    The payload's potential energy (a point mass at the tool) is added separately: minimal parameters determine the
    potential energy only up to a constant, so the arm's own comes from its constants.
    """

    def function(q: Any, qd: Any, gravity: Any, parameters: Any, mass: Any, com: Any) -> Any:
        real, given = with_parameters(known, gravity, parameters), {"q": q, "qd": qd}
        results = {}
        for key, quantity in STATE.items():
            entry = QUANTITIES[quantity]
            inputs = [given[name] for name, _ in entry.inputs]
            if "parameters" in entry.takes:
                results[key] = of_parameters(real, chain, quantity, inputs)
            else:
                own = replace(chain, gravity=real.gravity)
                at = _at_tool(chain) if entry.at_tool else Options()
                results[key] = assemble(own, quantity, auto(chain, quantity), at).function(*inputs)
        x, y, z = com
        held = [a * x + b * y + c * z + d for a, b, c, d in results["tool"][:3]]
        results["V"] = results["V"] - mass * Vec3(*gravity).dot(Vec3(*held))
        return tuple(results.values())

    shapes = [(key, QUANTITIES[quantity].output_shapes(chain)[0][1]) for key, quantity in STATE.items()]
    inputs: Sizes = {"q": (chain.nq,), "qd": (chain.nv,), **sizes, "mass": (), "com": (3,)}
    return trace("state", function, inputs, shapes)


def _dynamics(chain: Chain, known: Chain, sizes: Sizes) -> Program:
    """H, bias, gravity load, and the joint forces besides (friction, springs, offsets), for H q̈ + b + f = τ.

    `slide` are the speeds that friction acts against: q̇, but of a joint that is about to slide a tiny speed in its
    direction. Friction that grows with the load is left out.
    """

    def function(q: Any, qd: Any, slide: Any, gravity: Any, parameters: Any) -> Any:
        real, unloaded = with_parameters(known, gravity, parameters), [0] * chain.nv
        inputs = {
            "inertia_matrix": [q],
            "bias": [q, qd],
            "gravity_load": [q],
            "joint_forces": [q, slide, unloaded],
        }
        return tuple(of_parameters(real, chain, quantity, given) for quantity, given in inputs.items())

    nv = chain.nv
    outputs = [("H", (nv, nv)), ("b", (nv,)), ("g", (nv,)), ("f", (nv,))]
    return trace("dynamics", function, {"q": (chain.nq,), "qd": (nv,), "slide": (nv,), **sizes}, outputs)

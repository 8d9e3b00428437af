"""The programs of a page: what an arm does, with gravity and the parameters of the arm and its payload as inputs.

`payload_parameters`, the registry's own, gives the run-time parameters of the arm with a body at its tool. `state`
(inertia matrix, gravity load, energies, momenta, poses, Jacobian) and `acceleration`, forward dynamics under a
controller, take them and gravity, so that both can be changed while the arm moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from typing import Any

from armdyn.algebra import Vec3, X, Y, Z
from armdyn.chain import Chain
from armdyn.formulations import QUANTITIES
from armdyn.formulations.registry import Options
from armdyn.formulations.substitution import complete
from armdyn.graph.program import Program, trace
from armdyn.kernels.choice import auto
from armdyn.parameters import minimal_parameters, realise, union
from armdyn.programs.assemble import assemble
from armdyn.programs.program import program

# Output of `state` -> quantity; inputs are the quantity's own.
STATE = {
    "H": "inertia_matrix",
    "g": "gravity_load",
    "T": "kinetic_energy",
    "V": "potential_energy",
    "p": "momentum",
    "poses": "link_poses",
    "tool": "pose",
    "J": "jacobian",
}
AT_RUN_TIME = Options(parameters="runtime")
OBLIQUE = Vec3(Fraction(31, 10), Fraction(-57, 10), Fraction(-73, 10))  # along no axis that a robot is likely to have
Sizes = dict[str, tuple[int, ...]]


def tool_link(chain: Chain) -> int:
    """The link that carries the tool; of a tree with several tips the one furthest from the base in joints."""
    return max(chain.tips, key=lambda tip: (len(chain.path(tip)), tip))


def under_any_gravity(chain: Chain) -> Chain | None:
    """The chain under a gravity whose minimal parameters determine its forces under every other one too.

    Any gravity that is along no axis has them all, but where mimic joints carry masses in several directions at once
    different gravities may feel different combinations of them: None.
    """
    turned = replace(chain, gravity=OBLIQUE)
    if chain.has_mimics:
        needed = reduce(union, (minimal_parameters(replace(chain, gravity=axis)) for axis in (X, Y, Z)))
        if len(needed) > len(minimal_parameters(turned)):
            return None
    return turned


def programs(chain: Chain) -> dict[str, Program]:
    """`payload_parameters`, `state` and `acceleration`."""
    known = under_any_gravity(chain) or (chain if any(chain.gravity) else replace(chain, gravity=Z))
    sizes: Sizes = {"gravity": (3,), "parameters": (len(minimal_parameters(known)),)}
    methods = [m.key for m in QUANTITIES["forward_dynamics"].methods if m.serves(chain)]
    made = (_acceleration(chain, known, method, sizes) for method in methods)
    return {
        "payload_parameters": _payload_parameters(known),
        "state": _state(chain, known, sizes),
        "acceleration": min(made, key=lambda one: one.operations.total),
    }


def _at_tool(chain: Chain) -> Options:
    return Options(frame=(tool_link(chain) + 1, chain.tool)) if len(chain.tips) > 1 else Options()


def _payload_parameters(known: Chain) -> Program:
    """The registry's program; what it gives is called as what the others take."""
    made = program(known, "payload_parameters", auto(known, "payload_parameters"), _at_tool(known))
    (values,) = made.outputs
    return replace(made, outputs=(replace(values, name="parameters"),))


def _of_parameters(real: Chain, chain: Chain, quantity: str, inputs: list[Any], method: str = "") -> Any:
    """A quantity of the chain `real`, whose links are made of inputs; by the formulation that is cheapest so."""
    entry = QUANTITIES[quantity]
    formulation = entry.formulation(method or auto(chain, quantity, AT_RUN_TIME), chain)
    parts: Mapping[str, Any] = {
        part: QUANTITIES[part].formulation(auto(chain, part, AT_RUN_TIME), chain).run for part in formulation.made_of
    }
    return complete(entry, entry.physics, partial(formulation.run, **parts), real, inputs, Options(), None)


def _real(known: Chain, gravity: Any, parameters: Any) -> Chain:
    return replace(realise(known, parameters), gravity=Vec3(*gravity))


def _state(chain: Chain, known: Chain, sizes: Sizes) -> Program:
    """Everything that the page shows of a state, in one program that shares its sines.

    The potential energy is that of the arm and of a point mass at the tool: parameters leave out what is constant.
    """

    def function(q: Any, qd: Any, gravity: Any, parameters: Any, mass: Any, com: Any) -> Any:
        real, given = _real(known, gravity, parameters), {"q": q, "qd": qd}
        results = {}
        for key, quantity in STATE.items():
            entry = QUANTITIES[quantity]
            inputs = [given[name] for name, _ in entry.inputs]
            if "parameters" in entry.takes:
                results[key] = _of_parameters(real, chain, quantity, inputs)
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


def _acceleration(chain: Chain, known: Chain, method: str, sizes: Sizes) -> Program:
    """Forward dynamics under gravity compensation, a spring to the target, damping and viscous friction.

    All of these act at the joints; on a floating base acts what `tau` says alone.
    """
    n, nv, first, base = chain.n, chain.nv, chain.nq - chain.n, chain.nv - chain.n
    state: Sizes = {"q": (chain.nq,), "qd": (nv,), "tau": (nv,)}
    vector = dict.fromkeys(("target", "kp", "kd", "viscous"), (n,))

    def function(
        q: Any, qd: Any, tau: Any, target: Any, kp: Any, kd: Any, viscous: Any, hold: Any, gravity: Any, parameters: Any
    ) -> Any:
        real = _real(known, gravity, parameters)
        weight = _of_parameters(real, chain, "gravity_load", [q])
        at_joints = zip(tau[base:], weight[base:], kp, target, q[first:], kd, viscous, qd[base:], strict=True)
        force = [t + hold[0] * g + p * (goal - x) - (d + b) * v for t, g, p, goal, x, d, b, v in at_joints]
        return _of_parameters(real, chain, "forward_dynamics", [q, qd, [*tau[:base], *force]], method)

    return trace("acceleration", function, {**state, **vector, "hold": (1,), **sizes}, [("qdd", (nv,))])

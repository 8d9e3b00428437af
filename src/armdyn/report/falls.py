"""A thousand arms that fall: programs for a reader's graphics processor, or for WebAssembly where there is none.

Every arm has link masses of its own, a factor for each link that scales its inertia too, and its centre of mass stays.
Minimal parameters are linear in these factors, so the page draws them and computes parameters itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from armdyn.arm import Arm
from armdyn.chain import Chain
from armdyn.codegen import wasm
from armdyn.codegen.gpu import wgsl
from armdyn.gpu.rollouts import smoothed, step_program
from armdyn.graph.program import Program, inline, trace
from armdyn.pages.programs import known_chain, of_parameters, tool_pose, with_parameters
from armdyn.pages.writer import as_json, packed
from armdyn.parameters import minimal_parameters

METHOD = "semi_implicit_euler"
LARGEST = 12_000  # operations of a step: compilers of shaders take seconds for more


def falls(arm: Arm) -> dict[str, Any]:
    """The data for `falls.js`: a module, shaders unless they are too large, and each link's share of the parameters."""
    made = programs(arm)
    counts = made["falls"].operations
    small = counts.mul + counts.add + counts.div <= LARGEST
    names, text = wgsl.rollout(made["falls"])
    shaders = {"falls": text, "buffers": names, "tools": wgsl.source(made["tools"])}
    return {
        "module": packed(wasm.module(made)),
        "shaders": packed(as_json(shaders).encode()) if small else None,
        "shares": packed(as_json(shares(arm.chain)).encode()),
    }


def programs(arm: Arm) -> dict[str, Program]:
    """`falls`, a step from (q, qd, u, h) to (q1, qd1), and `tools`, from q to the point of the tool.

    `u` holds a factor of friction and other joint forces, gravity, and the minimal parameters. Dry friction is smooth
    at standstill, and joints stop at their limits without a rebound, as in `armdyn.gpu.rollout`.
    """
    chain = arm.chain
    known = known_chain(chain)
    size = 4 + len(minimal_parameters(known))

    def accelerations(q: Any, qd: Any, u: Any) -> Any:
        real = with_parameters(known, u[1:4], u[4:])
        forces = of_parameters(real, chain, "joint_forces", [q, qd, [0] * chain.nv])
        return of_parameters(real, chain, "forward_dynamics", [q, qd, [-u[0] * f for f in forces]])

    inputs = {"q": (chain.nq,), "qd": (chain.nv,), "u": (size,)}
    dynamics = smoothed(trace("falling", accelerations, inputs, [("qdd", (chain.nv,))]))

    def held(q: Any, qd: Any, u: Any) -> Any:
        return lambda stage, x, v: inline(dynamics, x, v, u)[0]

    tools = trace("tools", lambda q: [row[3] for row in tool_pose(chain)(q)[:3]], {"q": (chain.nq,)}, [("at", (3,))])
    return {"falls": step_program(arm, METHOD, size, held, stops=True), "tools": tools}


def shares(chain: Chain) -> np.ndarray:
    """(links, parameters): what each link contributes to the minimal parameters."""
    known = known_chain(chain)
    minimal = minimal_parameters(known)
    matrix = np.array(minimal.matrix, dtype=float).reshape(len(minimal), -1, 10)
    natural = np.array([[float(x) for x in link.natural] for link in known.links])
    contributions: np.ndarray = np.einsum("pli,li->lp", matrix, natural)
    return contributions

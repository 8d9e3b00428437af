"""The arm's dynamics for control laws: each quantity by the cheapest program known for the arm.

With graph nodes as inputs, the program is inlined into the caller's graph, so that common subexpressions of several
quantities are shared. With numbers as inputs, the program is evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

from armdyn.algebra import Scalar, Sym3, Vec3
from armdyn.chain import Chain, Link
from armdyn.chain.joint import MASSLESS
from armdyn.formulations import QUANTITIES
from armdyn.formulations.physics import complete
from armdyn.formulations.registry import Options, Run
from armdyn.graph import Node, Program
from armdyn.graph.derive import vector_jacobian
from armdyn.graph.program import evaluate, flatten, inline, nest
from armdyn.kernels.kernel import auto
from armdyn.parameters import minimal_parameters
from armdyn.programs.program import program


@dataclass(frozen=True)
class Dynamics:
    """The quantities of an arm; `friction` tells whether its joint forces (friction, springs, ...) are known."""

    chain: Chain
    friction: bool = False

    def __call__(self, quantity: str, *inputs: Any, parameters: Sequence[Scalar] | None = None) -> Any:
        """A quantity of the arm, with its own or the given minimal parameters, as nested lists, one per output."""
        runtime = parameters is not None
        made = _program(self.chain, quantity, runtime)
        return _apply(made, *inputs, *((parameters,) if runtime else ()))

    def by_parameters(self, quantity: str, *inputs: Any, along: Sequence[Scalar]) -> list[Scalar]:
        """Yᵀs: the gradient of s·τ with respect to the minimal parameters, in reverse mode, without the regressor Y."""
        made = _transposed(self.chain, quantity)
        zeros = [0] * len(self.parameters)  # the gradient does not depend on them: τ is linear in the parameters
        found: list[Scalar] = _apply(made, *inputs, zeros, along)
        return found

    def of_payload(self, quantity: str, payload: Sequence[Scalar], *inputs: Any) -> list[Scalar]:
        """The contribution of a body at the tool to a quantity that is linear in the inertial parameters.

        `payload` holds the ten inertial parameters about the tool's origin, in the tool's axes, or the first four.
        """
        if all(isinstance(p, int) and p == 0 for p in payload):  # written as a literal: there is none
            return [0] * self.chain.nv
        tool = self.chain.tool
        body = Link.from_natural((*payload, *([0] * (10 - len(payload))))).moved(tool.R, tool.p)
        bare = tuple(replace(joint, rotor_inertia=0, viscous=0, coulomb=0, static=0) for joint in self.chain.joints)
        links = tuple(body if k == self.chain.tool_carrier else MASSLESS for k in range(1, self.chain.bodies + 1))
        alone = replace(self.chain, joints=bare, links=links)
        entry, key = QUANTITIES[quantity], auto(self.chain, quantity, Options(parameters="runtime"))
        parts = {part: _formulation(self.chain, part) for part in entry.formulation(key).made_of}
        run = partial(entry.formulation(key).run, **parts)
        found: list[Scalar] = complete(entry, entry.physics, run, alone, list(inputs), Options(), None)
        return found

    def joint_forces(self, q: Sequence[Scalar], qd: Sequence[Scalar], load: Sequence[Scalar]) -> list[Scalar]:
        """Friction, springs, torque ripple and offsets of the joints under a load; zero if they are not known."""
        found: list[Scalar] = self("joint_forces", q, qd, load) if self.friction else [0] * self.chain.nv
        return found

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The values of the arm's minimal parameters."""
        return tuple(minimal_parameters(self.chain).values)


def carried(x: SimpleNamespace) -> tuple[Scalar, ...]:
    """The inertial parameters about the tool's origin of the payload among a law's inputs."""
    xx, yy, zz, xy, xz, yz = x.payload_inertia
    return Link.from_com(x.payload_mass, Vec3(*x.payload_com), Sym3(xx, xy, yy, xz, yz, zz)).natural


def about_com(natural: Sequence[Scalar], com: Sequence[Scalar]) -> list[Scalar]:
    """The inertia about `com` (xx, yy, zz, xy, xz, yz) of a body with these parameters about the tool's origin."""
    mass, (a, b, c), (xx, xy, yy, xz, yz, zz) = natural[0], com, natural[4:]
    square = [mass * a * a, mass * b * b, mass * c * c]
    return [xx - square[1] - square[2], yy - square[0] - square[2], zz - square[0] - square[1],
            xy + mass * a * b, xz + mass * a * c, yz + mass * b * c]  # fmt: skip


def _formulation(chain: Chain, quantity: str) -> Run:
    key = auto(chain, quantity, Options(parameters="runtime"))
    return QUANTITIES[quantity].formulation(key).run


@lru_cache(maxsize=256)
def _program(chain: Chain, quantity: str, runtime: bool) -> Program:
    options = Options(parameters="runtime") if runtime else Options()
    return program(chain, quantity, auto(chain, quantity, options), options)


@lru_cache(maxsize=64)
def _transposed(chain: Chain, quantity: str) -> Program:
    return vector_jacobian(_program(chain, quantity, True), ("parameters",))


def _apply(made: Program, *inputs: Any) -> Any:
    flat = [flatten(x) for x in inputs]
    on_nodes = any(isinstance(x, Node) for one in flat for x in one)
    results = inline(made, *flat) if on_nodes else evaluate(made, *([float(x) for x in one] for one in flat))
    shaped = tuple(nest(list(one), port.shape) for one, port in zip(results, made.outputs, strict=True))
    return shaped[0] if len(shaped) == 1 else shaped

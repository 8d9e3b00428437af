"""The minimal parameters of the arm with a payload at its tool, for controllers with run-time parameters.

Idea: minimal parameters are linear in the links' natural parameters, so those of the payload alone, on massless links,
are added to those of the arm. The ten natural parameters of the payload follow from its mass, centre of mass and
inertia by the parallel-axis theorem and the placement of the tool.
"""

from __future__ import annotations

from typing import Any

from armdyn.algebra import Sym3, Vec3
from armdyn.chain import Chain, Link, Placement
from armdyn.chain.joint import MASSLESS
from armdyn.formulations.registry import Formulation
from armdyn.parameters import minimal_parameters


def payload_parameters(
    chain: Chain, mass: Any, com: Any, inertia: Any, frame: tuple[int, Placement] | None = None
) -> list[Any]:
    """The parameters with a payload of this mass, centre of mass and inertia about it (xx, yy, zz, xy, xz, yz).

    All are in the axes of the tool, or of the frame (k, placement on link k) in its place; a payload on the base
    (k = 0) changes nothing.
    """
    k, at = frame or (chain.tool_carrier, chain.tool)
    present = minimal_parameters(chain).exact_values
    if k == 0:
        return list(present)
    body = held(at, mass, com, inertia)
    alone = tuple(body if i == k - 1 else MASSLESS for i in range(chain.bodies))
    added = minimal_parameters(chain.with_links(alone)).exact_values
    return [value + more for value, more in zip(present, added, strict=True)]


def held(at: Placement, mass: Any, com: Any, inertia: Any = (0, 0, 0, 0, 0, 0)) -> Link:
    """The payload as part of the link that the frame `at` is fixed to."""
    xx, yy, zz, xy, xz, yz = inertia
    return Link.from_com(mass, Vec3(*com), Sym3(xx, xy, yy, xz, yz, zz)).moved(at.R, at.p)


METHODS = (Formulation("superposition", payload_parameters, "", "the payload's parameters added to the arm's"),)

"""Natural parameters that have given minimal ones: links with many zeros, as input of any algorithm.

Idea: each element is assigned to the natural parameter of its own link, and every revolute link gets minus the
parameters that its outer neighbours regroup into it (mass, m c_z, I_yy), so that nothing is regrouped further inwards.
In an all-revolute arm the links are then (0, kx, ky, 0, U11-22, U12, 0, U13, U23, U33). The map is linear in the
values, which may be of any scalar type.
"""

from __future__ import annotations

from collections.abc import Mapping

from armdyn.algebra import Scalar, Sym3, Vec3
from armdyn.chain import Chain, Link
from armdyn.chain.link import MASSLESS
from armdyn.parameters.constants import Constants, regrouped
from armdyn.parameters.elements import Element
from armdyn.parameters.structure import Structure

NOTHING = Constants(MASSLESS.mass, MASSLESS.moment, MASSLESS.inertia)


def realised(chain: Chain, at: Structure, values: Mapping[Element, Scalar]) -> tuple[Link, ...]:
    """Links whose elements have these values; other elements are arbitrary."""
    links = [MASSLESS] * chain.bodies
    carried = [NOTHING] * chain.bodies
    for i in reversed(range(chain.bodies)):
        joint, parent = chain.joints[i], chain.parents[i]
        own = _free(carried[i], values) if joint.free else _OWN[joint.kind](i, carried[i], at.axis[i], values)
        links[i] = own
        if parent >= 0:
            total = Constants(own.mass, own.moment, own.inertia) + carried[i]
            carried[parent] = carried[parent] + regrouped(joint, total)
    return tuple(links)


def _free(carried: Constants, values: Mapping[Element, Scalar]) -> Link:
    """The link of a floating base: each of its ten elements, minus the contributions of its children."""

    def own(kind: str) -> Scalar:
        element = Element(kind, 0)
        return values[element] - element.of(carried, None) if element in values else 0

    moment = Vec3(own("kx"), own("ky"), own("kz"))
    return Link(own("m"), moment, Sym3(own("U11"), own("U12"), own("U22"), own("U13"), own("U23"), own("U33")))


def _revolute(i: int, carried: Constants, axis: Vec3 | None, values: Mapping[Element, Scalar]) -> Link:
    def own(kind: str, brought: Scalar) -> Scalar:
        element = Element(kind, i)
        return values[element] - brought if element in values else 0

    k, U = carried.k, carried.U
    moment = Vec3(own("kx", k.x), own("ky", k.y), -k.z)
    inertia = Sym3(own("U11-22", U.xx), own("U12", U.xy), -U.yy, own("U13", U.xz), own("U23", U.yz), own("U33", U.zz))
    return Link(-carried.mass, moment, inertia)


def _prismatic(i: int, carried: Constants, axis: Vec3 | None, values: Mapping[Element, Scalar]) -> Link:
    def own(kind: str) -> Scalar:
        element = Element(kind, i)
        return values[element] - element.of(carried, axis) if element in values else 0

    if axis is not None and Element("kappa1", i) in values:
        across = axis.x * axis.x + axis.y * axis.y
        first = own("kappa1") / across
        moment = Vec3(-axis.y * first, axis.x * first, own("kappa2") / across)
    else:
        moment = Vec3(own("kx"), own("ky"), own("kz"))
    return Link(own("m"), moment, MASSLESS.inertia)


_OWN = {"revolute": _revolute, "prismatic": _prismatic}

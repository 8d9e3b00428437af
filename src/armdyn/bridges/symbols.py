"""An arm with a named symbol for each of its nonzero constants; zeros stay zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from armdyn.algebra import Sym3, Vec3
from armdyn.bridges import Source
from armdyn.chain import Chain, Joint, Link
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import Program, trace

Name = Callable[[str, Any], Any]  # (name, number) -> the number or its symbol
# Formulations that need no precomputed constants; the first of these that a quantity has is used.
PLAIN = ("newton_euler", "reference", "christoffel", "recursive", "definition", "natural")


@dataclass(frozen=True)
class Constants:
    """Names and values of an arm's constants, in order."""

    values: dict[str, Any]

    @classmethod
    def of(cls, chain: Chain | None) -> Constants:
        """The nonzero constants of a chain; none without a chain."""
        values: dict[str, Any] = {}

        def note(name: str, number: Any) -> Any:
            values[name] = number
            return number

        if chain is not None:
            _named(chain, note)
        return cls(values)

    @property
    def masses(self) -> set[str]:
        """The names of masses."""
        return {name for name in self.values if name[0] == "m"}


def symbolic(kernel: Source, constants: Constants) -> Program:
    """The expression graph of a kernel, with the arm's constants as a last input."""
    chain, options, entry = kernel.chain, kernel.options, QUANTITIES[kernel.quantity]
    if not chain.plain or options.parameters != "baked" or options.derivatives or options.frame:
        raise InputError(
            "symbols are available for arms without mimic joints or floating base, at the tool; with run-time "
            'parameters, derivatives or frames ask for parameters="numbers"'
        )
    inputs = dict(entry.input_shapes(chain))
    if options.tool_wrench:
        inputs["wrench"] = (6,)
    inputs["symbols"] = (len(constants.values),)

    def function(*arguments: Any) -> Any:
        *given, symbols = arguments
        names = dict(zip(constants.values, symbols, strict=True))
        arm = _named(chain, lambda name, number: names[name])
        wrench = given.pop() if options.tool_wrench else None
        return entry.physics(_plain(kernel.quantity, chain), arm, given, options, wrench)

    return trace(kernel.quantity, function, inputs, entry.output_shapes(chain))


def _plain(quantity: str, chain: Chain) -> Callable[..., Any]:
    methods = {m.key: m for m in QUANTITIES[quantity].methods if m.serves(chain)}
    chosen = next((methods[key] for key in PLAIN if key in methods), None)
    if chosen is None:
        raise InputError(
            f"{quantity} divides by pivots of the inertia matrix, whose symbolic formulas are too long to read; solve "
            'with inertia_matrix and bias, or ask for parameters="numbers"'
        )
    return chosen.run


def _named(chain: Chain, name: Name) -> Chain:
    """The chain with `name(…)` in place of its nonzero lengths, masses, inertias, friction and gravity."""

    def unless_0(text: str, x: Any) -> Any:
        return x if x == 0 else name(text, x)

    joints = tuple(_joint(i, joint, unless_0) for i, joint in enumerate(chain.joints, 1))
    links = tuple(_link(i, link, unless_0) for i, link in enumerate(chain.links, 1))
    p, g = chain.tool.p, chain.gravity
    end = len(chain.joints)
    tool = replace(chain.tool, p=Vec3(*(unless_0(f"{t}{end}", x) for t, x in zip(("l", "ly", "lz"), p, strict=True))))
    alone = sum(x != 0 for x in g) == 1
    pulls = (-unless_0("g", -x) if alone and x != 0 else unless_0(f"g{t}", x) for t, x in zip("xyz", g, strict=True))
    return replace(chain, joints=joints, links=links, tool=tool, gravity=Vec3(*pulls))


def _joint(i: int, joint: Joint, name: Name) -> Joint:
    """Name b after the length of the previous link, and d after the offset along the joint's own axis."""
    return replace(
        joint,
        b=name(f"l{i - 1}", joint.b),
        d=name(f"d{i}", joint.d),
        shift=name(f"e{i}", joint.shift),
        rotor_inertia=name(f"J_{i}", joint.rotor_inertia),
        viscous=name(f"f_v{i}", joint.viscous),
        coulomb=name(f"f_c{i}", joint.coulomb),
    )


def _link(i: int, link: Link, name: Name) -> Link:
    """Name the mass, the centre of mass and the inertia about it."""
    if link.mass == 0:
        return link
    com, inertia = link.com, link.inertia_about_com
    along = com.y == 0 and com.z == 0
    centre = Vec3(*(name(f"l_c{i}{'' if along else axis}", x) for axis, x in zip("xyz", com, strict=True)))
    entries = (
        name(f"I_{i}{axes}", x) for axes, x in zip(("xx", "xy", "yy", "xz", "yz", "zz"), inertia.entries, strict=True)
    )
    return Link.from_com(name(f"m{i}", link.mass), centre, Sym3(*entries))

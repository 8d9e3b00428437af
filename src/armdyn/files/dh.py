"""Conversion between standard Denavit-Hartenberg tables and the modified (normal driving-axis) ones used by armdyn.

Standard: T_i = Rz(θ) Tz(d) Tx(a) Rx(α), frame i at the far end of link i, on the axis of joint i+1.
Modified: T_i = Tx(b) Rx(β) Tz(d) Rz(θ), frame i on the axis of joint i. Both are the same product of elementary
transforms, split at different places: b and β of joint i+1 are a and α of row i, standard frame i is at
Tx(a_i) Rx(α_i) in modified frame i, and a and α of the last row are part of the tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape

from armdyn.algebra import Angle, JointRotation, Scalar, Vec3
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain import Chain, Joint, Link, Placement
from armdyn.errors import ComputationError
from armdyn.files.description import to_rpy

_COLUMNS = ("theta [rad]", "d [m]", "a [m]", "alpha [rad]", "mass [kg]", "centre of mass [m]")


@dataclass(frozen=True)
class StandardRow:
    """One row of a standard table: a, α, d, θ of the joint, and its link in the standard frame."""

    kind: str
    a: Scalar
    alpha: Angle
    d: Scalar
    theta: Angle
    link: Link
    name: str = ""

    @property
    def numbers(self) -> tuple[str, ...]:
        """The row's cells as text: θ, d, a, α, the link's mass and centre of mass."""
        cells = (self.theta, self.d, self.a, self.alpha, self.link.mass)
        return (*(f"{float(x):.6g}" for x in cells), _words(self.link.com))

    @property
    def end(self) -> Placement:
        """The standard frame in the modified one: Tx(a) Rx(α)."""
        return along(self.a, self.alpha)


@dataclass(frozen=True)
class StandardTable:
    """A standard Denavit-Hartenberg table; base and tool as in a `Chain`."""

    rows: tuple[StandardRow, ...]
    base: Placement
    tool: Placement

    def __str__(self) -> str:
        head = ["joint", "kind", *_COLUMNS]
        rows = [[row.name, row.kind, *row.numbers] for row in self.rows]
        widths = [max(len(line[k]) for line in [head, *rows]) for k in range(len(head))]

        def line(cells: list[str]) -> str:
            padded = [cell.rjust(w) for cell, w in zip(cells, widths, strict=True)]
            return "  ".join([cells[0].ljust(widths[0]), cells[1].ljust(widths[1]), *padded[2:]]).rstrip()

        return "\n".join([*(line(cells) for cells in [head, *rows]), *self._ends()])

    def _ends(self) -> list[str]:
        """Base and tool, unless they are the identity."""
        return [
            f"{name}: xyz {_words(place.p)}, rpy {_words(to_rpy(place.R))}"
            for name, place in (("base", self.base), ("tool", self.tool))
            if place != Placement()
        ]

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("joint", "kind", *_COLUMNS))
        rows = ([row.name, row.kind, *row.numbers] for row in self.rows)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        ends = "".join(f"<p>{escape(line)}</p>" for line in self._ends())
        return f"<table><tr>{head}</tr>{body}</table>{ends}"


def _words(values: Iterable[Scalar]) -> str:
    return " ".join(f"{float(x):.6g}" for x in values)


def along(a: Scalar, alpha: Angle) -> Placement:
    """The placement Tx(a) Rx(α)."""
    return Placement(JointRotation(alpha, ZERO_ANGLE, 1, 0).matrix(), Vec3(a, 0, 0))


def to_modified(
    joints: tuple[Joint, ...], links: tuple[Link, ...], gravity: Vec3, base: Placement, tool: Placement
) -> Chain:
    """The chain of a standard table, whose a and α are given as b and β of `joints`."""
    b, beta = Fraction(0), ZERO_ANGLE
    moved_joints, moved_links, end = [], [], Placement()
    for joint, link in zip(joints, links, strict=True):
        end = along(joint.b, joint.beta)
        moved_joints.append(replace(joint, b=b, beta=beta))
        moved_links.append(link.moved(end.R, end.p))
        b, beta = joint.b, joint.beta
    return Chain(tuple(moved_joints), tuple(moved_links), gravity, base, end @ tool)


def to_standard(chain: Chain) -> StandardTable:
    """The standard table of a chain; the last row has a = α = 0, the first joint's b and β go into the base."""
    if not chain.serial or chain.floating:
        raise ComputationError(
            "a Denavit-Hartenberg table needs one chain on a fixed base; load one with tip=..., floating=False"
        )
    for joint in chain.joints:
        if joint.mimic is not None:
            raise ComputationError(f"joint {joint.name!r} mimics another one, which a table cannot represent")
        if joint.gamma.sin != 0:
            raise ComputationError(
                f"joint {joint.name!r} has gamma = {joint.gamma.radians:g} rad: its axis is nearly parallel to the "
                "previous one, and the common normal that a standard table needs is far away"
            )
    first = chain.joints[0]
    following = [(joint.b, joint.beta) for joint in chain.joints[1:]] + [(Fraction(0), ZERO_ANGLE)]
    rows = []
    for joint, link, (a, alpha) in zip(chain.joints, chain.links, following, strict=True):
        back = along(a, alpha).inverse
        rows.append(StandardRow(joint.kind, a, alpha, joint.d, joint.theta, link.moved(back.R, back.p), joint.name))
    return StandardTable(tuple(rows), chain.base @ along(first.b, first.beta), chain.tool)

"""Chain: a kinematic tree of joints and links with gravity, base and tool; frozen, with exact constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from armdyn.algebra import Scalar, Vec3
from armdyn.algebra.cached import cached_property
from armdyn.algebra.rational import Rational
from armdyn.algebra.scalar import is_number
from armdyn.chain.joint import Joint, named
from armdyn.chain.link import Link
from armdyn.chain.placement import Placement
from armdyn.chain.structure import must_be_computable


@dataclass(frozen=True)
class Chain:
    """A kinematic tree; `parents[i]` is the link that carries joint i (i - 1 in a serial arm), -1 for the base.

    Parents come before their children. `base` places frame 0, `gravity` is given in the base. `tool` is attached to the
    body `tool_link`, counted from 1, or to the only tip if that is 0; a tree with several tips has no tool unless
    `tool_link` says where. `joints` and `links` contain all N bodies. n counts the independent joints: neither mimic
    joints nor the free joint of a floating base.
    """

    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    gravity: Vec3 = Vec3(0, 0, Fraction(-981, 100))
    base: Placement = Placement()
    tool: Placement = Placement()
    parents: tuple[int, ...] = ()  # empty for a serial chain
    tool_link: int = 0

    def __post_init__(self) -> None:
        if not self.parents:
            object.__setattr__(self, "parents", tuple(range(-1, len(self.joints) - 1)))
        must_be_computable(self)
        if self.tool_link == len(self.joints) and len(self.tips) == 1:  # one way to say it: equal chains are equal
            object.__setattr__(self, "tool_link", 0)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Cached, because programs are looked up by their chain and rationals are slow to hash."""
        return hash(tuple(getattr(self, f.name) for f in fields(self)))

    def __getstate__(self) -> dict[str, Any]:
        """Only the fields: cached hashes of names differ between processes."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __repr__(self) -> str:
        kinds = "".join(joint.kind[0].upper() for joint in self.joints)
        forks = "" if self.serial else f", parents {self.parents}"
        return f"<Chain {kinds}{forks}>"

    @property
    def bodies(self) -> int:
        """N, the number of joints and links, including mimic joints and the link of a floating base."""
        return len(self.joints)

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """The independent joints in the order of q: all but mimic joints and a free joint."""
        return tuple(i for i, joint in enumerate(self.joints) if joint.mimic is None and not joint.free)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """The names of all N joints; "joint 3" for the third if it has none."""
        return named(self.joints)

    @cached_property
    def n(self) -> int:
        """The number of independent joints."""
        return sum(joint.mimic is None and not joint.free for joint in self.joints)

    @property
    def floating(self) -> bool:
        """Whether the base floats: the first joint is free."""
        return self.joints[0].free

    @property
    def nq(self) -> int:
        """The length of q: n, plus 7 leading entries (position, quaternion x y z w) for a floating base."""
        return self.n + 7 if self.floating else self.n

    @property
    def nv(self) -> int:
        """The length of q̇, q̈ and τ: n, plus 6 leading entries (linear, angular, in base axes) for a floating base."""
        return self.n + 6 if self.floating else self.n

    @cached_property
    def serial(self) -> bool:
        """Whether every joint is carried by the previous link, without the constants of a fork."""
        return all(parent == i - 1 for i, parent in enumerate(self.parents)) and not any(j.forked for j in self.joints)

    @cached_property
    def has_mimics(self) -> bool:
        """Whether there are mimic joints."""
        return any(joint.mimic is not None for joint in self.joints)

    @property
    def plain(self) -> bool:
        """Whether every joint is independent: no mimic joint, no floating base."""
        return self.n == len(self.joints)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The joints that each link carries."""
        found: list[list[int]] = [[] for _ in self.joints]
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(i)
        return tuple(map(tuple, found))

    @cached_property
    def tips(self) -> tuple[int, ...]:
        """The links that carry no joint."""
        return tuple(i for i, outer in enumerate(self.children) if not outer)

    @property
    def tool_carrier(self) -> int:
        """The body that carries the tool, counted from 1; 0 if there is no tool."""
        return self.tool_link or (self.bodies if len(self.tips) == 1 else 0)

    @cached_property
    def known_geometry(self) -> bool:
        """Whether all constants of the joints are numbers, and none an input of a program."""
        angles = (a for j in self.joints for a in (j.beta, j.gamma, j.theta, j.turn))
        lengths = (x for j in self.joints for x in (j.b, j.d, j.shift))
        return all(map(is_number, (*lengths, *(a.cos for a in angles))))

    def path(self, link: int) -> tuple[int, ...]:
        """The joints from the base to a link, ending with the link's own joint; empty for the base, -1."""
        found: list[int] = []
        while link >= 0:
            found.append(link)
            link = self.parents[link]
        return tuple(reversed(found))

    def leader(self, joint: Joint) -> tuple[int, Scalar, Scalar]:
        """(i, α, β) of a mimic joint: its position is α q_i + β, chains of mimic joints resolved."""
        i, multiplier, offset = -1, 1, 0
        while joint.mimic is not None:
            offset = offset + multiplier * joint.mimic.offset
            multiplier = multiplier * joint.mimic.multiplier
            i = joint.mimic.joint
            joint = self.joints[i]
        return i, multiplier, offset

    @property
    def gravity_in_frame_0(self) -> Vec3:
        """Gravity in the axes of frame 0."""
        return self.base.R.T @ self.gravity

    def with_links(self, links: tuple[Link, ...]) -> Chain:
        """The same geometry with other links."""
        return replace(self, links=links)

    @property
    def floats(self) -> Chain:
        """The same chain with floats in place of exact constants, for the plain Python backend."""
        return _floats(self)

    @property
    def rationals(self) -> Chain:
        """The same chain with fast exact rationals, for building programs."""
        return _rationals(self)


def _convert(x: Any, number: Callable[[Any], Any]) -> Any:
    if isinstance(x, Fraction):
        return number(x)
    if isinstance(x, tuple):
        return tuple(_convert(item, number) for item in x)
    if is_dataclass(x) and not isinstance(x, type):
        return type(x)(**{f.name: _convert(getattr(x, f.name), number) for f in fields(x)})
    return x


@lru_cache(maxsize=64)
def _floats(chain: Chain) -> Chain:
    converted: Chain = _convert(chain, float)
    return converted


@lru_cache(maxsize=64)
def _rationals(chain: Chain) -> Chain:
    converted: Chain = _convert(chain, Rational)
    return converted

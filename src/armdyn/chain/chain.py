"""Chain: a kinematic tree of joints and links with gravity, base and tool; frozen, with exact constants.

Here are the conditions that a chain must satisfy to be computable (mere implausibility is reported by
`armdyn.chain.checks`), the limits of its independent joints, narrowed by those of the joints that mimic them, random
arms to count and test with, and which frames are named like a tool.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from armdyn.algebra import Angle, Scalar, Sym3, Vec3
from armdyn.algebra.scalar import Rational, is_number
from armdyn.chain.joint import (
    BELOW,
    DRIVE,
    KINDS,
    NO_FORCES,
    NUMBERS,
    POSITIVE,
    Joint,
    JointForces,
    Kind,
    Limit,
    Link,
    Placement,
    Tendon,
    named,
)
from armdyn.errors import InputError, choose
from armdyn.values import cached_property


def must_be_computable(chain: Chain) -> None:
    """Raise an error for a chain that cannot be computed with."""
    if not chain.joints:
        raise InputError("a chain needs at least one joint, got none")
    if len(chain.links) != len(chain.joints):
        raise InputError(
            f"a chain has as many links as joints; got {len(chain.links)} links, {len(chain.joints)} joints"
        )
    for i, (joint, link) in enumerate(zip(chain.joints, chain.links, strict=True), 1):
        choose(f"kind of joint {joint.name or i}", joint.kind, KINDS)
        drive = (*(getattr(joint, name) for name in DRIVE), *_numbers(joint.forces))
        lengths = (joint.b, joint.d, joint.shift, *drive)
        angles = (joint.beta.radians, joint.gamma.radians, joint.theta.radians, joint.turn.radians)
        _must_be_finite(f"joint {joint.name or i}", (*lengths, *angles))
        _must_be_finite(f"link {i}", link.natural)
        if joint.forces != NO_FORCES:
            _forces_within_their_ranges(f"joint {joint.name or i}", joint.forces)
    _must_be_finite("gravity", tuple(chain.gravity))
    if not isinstance(chain.tool_link, int) or not 0 <= chain.tool_link <= len(chain.joints):
        raise InputError(
            f"tool_link must be a link from 1 to {len(chain.joints)}, or 0 for the only tip; got {chain.tool_link!r}"
        )
    _parents_come_first(chain)
    _free_joint_comes_first(chain)
    for i, joint in enumerate(chain.joints):
        if joint.mimic is not None:
            _follows_a_joint(chain.joints, i)
    if any(joint.forces.load_friction != 0 for joint in chain.joints):
        _load_friction_stands_alone(chain)
    for tendon in chain.tendons:
        _joins_joints(chain, tendon)
    if chain.compensated and len(chain.compensated) != len(chain.links):
        raise InputError(
            f"gravity compensation is given for every link or for none; got {len(chain.compensated)} of "
            f"{len(chain.links)}"
        )


def _joins_joints(chain: Chain, tendon: Tendon) -> None:
    where = f"tendon {tendon.name!r}"
    numbers = (tendon.stiffness, tendon.rest, tendon.damping, tendon.armature, *(c for _, c in tendon.joints))
    _must_be_finite(where, numbers)
    for key in ("stiffness", "damping", "armature"):
        if getattr(tendon, key) < 0:
            raise InputError(f"{where}: {key} must be at least 0, got {float(getattr(tendon, key)):g}")
    for i, _ in tendon.joints:
        if not 0 <= i < len(chain.joints) or chain.joints[i].free:
            raise InputError(f"{where}: {i} is not one of the joints that turn or slide")
    if not tendon.joints or len({i for i, _ in tendon.joints}) < len(tendon.joints):
        raise InputError(f"{where}: expected one or more different joints, got {[i for i, _ in tendon.joints]}")


def _must_be_finite(where: str, numbers: tuple[Any, ...]) -> None:
    for x in numbers:
        if isinstance(x, float) and not math.isfinite(x):
            raise InputError(f"{where}: every number must be finite, got {x!r}")


def _numbers(forces: JointForces) -> tuple[Any, ...]:
    ripples = (x for ripple in forces.ripples for x in (ripple.sine, ripple.cosine))
    return *(getattr(forces, name) for name in NUMBERS), *ripples


def _forces_within_their_ranges(where: str, forces: JointForces) -> None:
    exponent = forces.stribeck_exponent
    if not isinstance(exponent, int) or exponent < 2 or exponent % 2:
        raise InputError(f"{where}: stribeck_exponent must be an even whole number, got {exponent!r}")
    for name in POSITIVE:
        value = getattr(forces, name)
        if value < 0 or value >= BELOW.get(name, math.inf):
            below = f" and below {BELOW[name]}" if name in BELOW else ""
            raise InputError(f"{where}: {name} must be at least 0{below}, got {float(value):g}")


def _load_friction_stands_alone(chain: Chain) -> None:
    """A gear's losses need the load of its own joint: not known where joints follow one another."""
    led = {chain.leader(joint)[0] for joint in chain.joints if joint.mimic is not None}
    for i, joint in enumerate(chain.joints):
        share = joint.forces.load_friction
        if share != 0 and (joint.mimic is not None or i in led):
            raise InputError(
                f"joint {_name(chain.joints, i)} has load_friction {float(share):g} and moves together with another "
                "joint (mimic); expected 0 there, because the load of such a joint is not its own"
            )


def _name(joints: tuple[Joint, ...], i: int) -> str:
    return repr(joints[i].name) if joints[i].name else str(i)


def _parents_come_first(chain: Chain) -> None:
    if len(chain.parents) != len(chain.joints):
        raise InputError(f"a chain has one parent per joint; got {len(chain.parents)} for {len(chain.joints)} joints")
    for i, parent in enumerate(chain.parents):
        if not isinstance(parent, int) or not -1 <= parent < i:
            raise InputError(
                f"the parent of joint {_name(chain.joints, i)} must come before it: expected a link from -1 (the base) "
                f"to {i - 1}, got {parent!r}"
            )


def _free_joint_comes_first(chain: Chain) -> None:
    for i, joint in enumerate(chain.joints):
        if not joint.free:
            continue
        if i > 0:
            raise InputError(f"joint {_name(chain.joints, i)} is free, and only the first joint of a robot can be")
        angles = (joint.beta, joint.gamma, joint.theta, joint.turn)
        if any(x != 0 for x in (joint.b, joint.d, joint.shift)) or any(a.radians != 0 for a in angles):
            raise InputError("a free joint has no constants: its frame is the floating base's own")
        if joint.rotor_inertia != 0 or joint.viscous != 0 or joint.breakaway != 0 or joint.forces != NO_FORCES:
            raise InputError("a free joint has neither rotor inertia nor friction, nor other forces")
    if chain.joints[0].free and any(parent < 0 for parent in chain.parents[1:]):
        loose = next(i for i, parent in enumerate(chain.parents) if i > 0 and parent < 0)
        raise InputError(
            f"joint {_name(chain.joints, loose)} stands on the ground (parent -1) and the base floats: expected every "
            "joint but the free one on a link"
        )


def _follows_a_joint(joints: tuple[Joint, ...], i: int) -> None:
    """An error unless mimic joint i follows, perhaps through other mimic joints, one that has a coordinate."""
    if joints[i].free:
        raise InputError("a free joint cannot mimic another one")
    seen, k = [i], i
    while (mimic := joints[k].mimic) is not None:
        k = mimic.joint
        if not isinstance(k, int) or not 0 <= k < len(joints) or joints[k].free:
            raise InputError(
                f"joint {_name(joints, seen[-1])} mimics joint {k!r}: expected one of the {len(joints)} joints, "
                "counted from 0, that is not free"
            )
        if k in seen:
            names = " -> ".join(_name(joints, j) for j in (*seen, k))
            raise InputError(f"mimic joints follow one another in a circle: {names}")
        seen.append(k)
        _must_be_finite(f"mimic joint {_name(joints, i)}", (mimic.multiplier, mimic.offset))


@dataclass(frozen=True)
class Chain:
    """A kinematic tree; `parents[i]` is the link that carries joint i (i - 1 in a serial arm), -1 for the base.

    Parents come before their children. `base` places frame 0, `gravity` is given in the base. `tool` is attached to the
    body `tool_link`, counted from 1, or to the only tip if that is 0; a tree with several tips has no tool unless
    `tool_link` says where. `joints` and `links` contain all N bodies. n counts the independent joints: neither mimic
    joints nor the free joint of a floating base.

    `tendons` couple joints. `compensated` holds, for every link, the part of its mass and first moment whose weight
    something else carries (gravity compensation; no inertia), or is empty. Both are forces of the joints, as springs
    are: they act where friction is asked for.
    """

    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    gravity: Vec3 = Vec3(0, 0, Fraction(-981, 100))
    base: Placement = Placement()
    tool: Placement = Placement()
    parents: tuple[int, ...] = ()  # empty for a serial chain
    tool_link: int = 0
    tendons: tuple[Tendon, ...] = ()
    compensated: tuple[Link, ...] = ()

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

    @cached_property
    def floating(self) -> bool:
        """Whether the base floats: the first joint is free."""
        return self.joints[0].free

    @cached_property
    def nq(self) -> int:
        """The length of q: n, plus 7 leading entries (position, quaternion x y z w) for a floating base."""
        return self.n + 7 if self.floating else self.n

    @cached_property
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
    def coupled(self) -> bool:
        """Whether forces besides the links' own join several joints: tendons or gravity compensation."""
        return bool(self.tendons or self.compensated)

    @property
    def uncoupled(self) -> Chain:
        """The same chain without tendons and gravity compensation."""
        return replace(self, tendons=(), compensated=()) if self.coupled else self

    @property
    def plain(self) -> bool:
        """Whether every joint is independent: no mimic joint, no floating base."""
        return self.n == len(self.joints)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The joints that each link carries."""
        children_of: list[list[int]] = [[] for _ in self.joints]
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                children_of[parent].append(i)
        return tuple(map(tuple, children_of))

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
        way: list[int] = []
        while link >= 0:
            way.append(link)
            link = self.parents[link]
        return tuple(reversed(way))

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

    def accelerated(self, acceleration: Sequence[Scalar]) -> Chain:
        """The chain on a base with this acceleration (3,), in base axes: the links feel gravity less it."""
        return replace(self, gravity=self.gravity - Vec3(*acceleration))

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


Range = tuple[float | None, float | None]
SLIDE = 0.5  # metres in each direction for a prismatic joint without limits


def limits(chain: Chain) -> tuple[Limit, ...]:
    """The limits of the independent joints in q's order, restricted by those of the joints that mimic them.

    A follower at α q + β within its own range restricts q to ((lower - β)/α, (upper - β)/α), and its velocity limit
    restricts that of its leader. If the ranges do not overlap, the follower's range is an error of the file: it is
    ignored, and `check` reports it. Efforts are those of the leaders' motors.
    """
    limits_by_joint = {i: chain.joints[i].limit for i in chain.independent}
    for k, joint in enumerate(chain.joints):
        if joint.mimic is None:
            continue
        i, multiplier, _ = chain.leader(joint)
        narrowed = _both((limits_by_joint[i].lower, limits_by_joint[i].upper), follower_range(chain, k))
        if narrowed is not None:
            limits_by_joint[i] = replace(limits_by_joint[i], lower=narrowed[0], upper=narrowed[1])
        if joint.limit.velocity is not None and multiplier:
            speed = joint.limit.velocity / abs(float(multiplier))
            own = limits_by_joint[i].velocity
            limits_by_joint[i] = replace(limits_by_joint[i], velocity=speed if own is None else min(own, speed))
    return tuple(limits_by_joint.values())


def working_range(joint: Joint, limit: Limit) -> tuple[float, float]:
    """The finite range in which to try an independent joint out, given its limits.

    The limits of a revolute joint are narrowed to ±π, or where they exclude that to the nearest whole turn; a prismatic
    joint without limits moves by `SLIDE`. Limits in the wrong order count as none.
    """
    reach = math.pi if joint.revolute else SLIDE
    low = -math.inf if limit.lower is None else limit.lower
    high = math.inf if limit.upper is None else limit.upper
    if low > high:
        low, high = -math.inf, math.inf
    if not math.isfinite(low):
        low = min(-reach, high - reach)
    if not math.isfinite(high):
        high = max(reach, low + reach)
    if not joint.revolute:
        return low, high
    if max(low, -reach) < min(high, reach):
        return max(low, -reach), min(high, reach)
    return (low, min(high, low + 2 * reach)) if low > 0 else (max(low, high - 2 * reach), high)


def follower_range(chain: Chain, k: int) -> Range:
    """The range of the leader that the range of mimic joint k allows."""
    joint = chain.joints[k]
    _, multiplier, offset = chain.leader(joint)
    if not multiplier:
        return None, None
    alpha, beta = float(multiplier), float(offset)
    ends = [None if end is None else (end - beta) / alpha for end in (joint.limit.lower, joint.limit.upper)]
    return (ends[0], ends[1]) if alpha > 0 else (ends[1], ends[0])


def contradicted(chain: Chain) -> list[int]:
    """The mimic joints whose range does not overlap their leader's."""
    leaders = {k: chain.leader(joint)[0] for k, joint in enumerate(chain.joints) if joint.mimic is not None}
    own = {i: chain.joints[i].limit for i in leaders.values()}
    return [k for k, i in leaders.items() if _both((own[i].lower, own[i].upper), follower_range(chain, k)) is None]


def _both(a: Range, b: Range) -> Range | None:
    """The intersection of two ranges; None if it is empty."""
    low = max((x for x in (a[0], b[0]) if x is not None), default=None)
    high = min((x for x in (a[1], b[1]) if x is not None), default=None)
    narrows = b != (None, None)
    return None if narrows and low is not None and high is not None and not low < high else (low, high)


_KINDS: dict[str, Kind] = {"R": "revolute", "P": "prismatic"}


def generic_chain(kinds: str, seed: int = 0) -> Chain:
    """A chain with random, generic geometry, except that E₀ is E₁ at q₁ = 0, as in the papers' counts."""
    if not kinds or set(kinds) - set(_KINDS):
        raise InputError(f"kinds must be letters R (revolute) and P (prismatic), at least one; got {kinds!r}")
    rng = random.Random(f"armdyn {seed}")

    def number(low: float, high: float) -> Fraction:
        while (x := Fraction(round(rng.uniform(low, high), 3)).limit_denominator(1000)).denominator <= 2:
            pass  # twice a half is one, which costs nothing: something special
        return x

    joints, links = [], []
    for i, letter in enumerate(kinds):
        b, beta, d, theta = number(0.1, 0.5), rng.uniform(0.3, 1.2), number(0.1, 0.5), rng.uniform(0.3, 1.2)
        first = i == 0
        joints.append(
            Joint(
                kind=_KINDS[letter],
                b=Fraction(0) if first else b,
                beta=Angle.of(0.0 if first else round(beta, 3)),
                d=Fraction(0) if first or letter == "P" else d,
                theta=Angle.of(0.0 if first or letter == "R" else round(theta, 3)),
                name=f"joint{i + 1}",
            )
        )
        links.append(_random_link(number))
    return Chain(tuple(joints), tuple(links))


def _random_link(number: object) -> Link:
    """A physically possible link: four point masses at random places."""
    draw: Scalar = number
    link = None
    for _ in range(4):
        m = draw(0.5, 2.0)
        point = Link.from_com(m, Vec3(draw(-0.3, 0.3), draw(-0.3, 0.3), draw(-0.3, 0.3)), Sym3(0, 0, 0, 0, 0, 0))
        link = point if link is None else link + point
    assert link is not None
    return link


# Names of tool frames, in the order in which they are tried. A prefix, as of one robot among several, may precede them:
# arm_tool0. "ee" must be a word of the name, as in ee_link, link_eef and EndEffector_Link: "knee" and "wheel" are not.
TOOL_NAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(.*[^a-z])?tool0",
        r"(.*[^a-z])?tcp",
        r"(.*[^a-z])?(ee|eef|end_?effector)([^a-z].*)?",
        r"(.*[^a-z])?flange",
        r"(.*[^a-z])?attachment_site",  # of the arms in MuJoCo Menagerie
    )
)
_MOST_LISTED = 20


def named_like_a_tool(names: Sequence[str]) -> tuple[str, ...]:
    """The names that follow the first convention that any of them follows."""
    for pattern in TOOL_NAMES:
        if like := tuple(name for name in names if pattern.fullmatch(name)):
            return like
    return ()


def tool_candidates(chain: Chain, frames: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """The frames, given with their links, that may be meant by the tool: those named like one, those at the tips."""
    outermost = {tip + 1 for tip in chain.tips}
    named = named_like_a_tool([name for name, link in frames if link])
    return tuple(dict.fromkeys([*named, *(name for name, link in frames if link in outermost)]))


def listed(names: Sequence[str]) -> str:
    """The first names of a list as text, and how many more there are."""
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def no_tool(what: str, chain: Chain, frames: Iterable[tuple[str, int]], remedy: str = "") -> str:
    """The error message where a tool is needed and the robot has none: the candidates, and how to name one."""
    names = tool_candidates(chain, list(frames)) or tip_names(chain, {})
    remedies = f"{remedy}, or load it" if remedy else "load it"
    return (
        f"{what} needs a frame: this robot has several tips and no default tool; {remedies} with tool= (command line: "
        f"--tool), one of {listed(names)}"
    )


def tip_names(chain: Chain, frames: Mapping[str, int]) -> tuple[str, ...]:
    """The names of the frames on the outermost links, or of their joints if there are none."""
    tips = {tip + 1 for tip in chain.tips}
    named = tuple(name for name, k in frames.items() if k in tips)
    return named or tuple(chain.joint_names[tip] for tip in chain.tips)

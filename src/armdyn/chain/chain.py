"""Chain: an open chain of joints and links with gravity, base and tool. Frozen; exact constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from armdyn.algebra import Vec3
from armdyn.chain.joint import Joint
from armdyn.chain.link import Link
from armdyn.chain.placement import Placement
from armdyn.errors import InputError, choose


@dataclass(frozen=True)
class Chain:
    """n joints and links; `base` places frame 0, `gravity` is given in the base, `tool` stands on the last link."""

    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    gravity: Vec3 = Vec3(0, 0, Fraction(-981, 100))
    base: Placement = Placement()
    tool: Placement = Placement()

    def __post_init__(self) -> None:
        _must_be_computable(self)

    def __repr__(self) -> str:
        kinds = "".join("R" if joint.revolute else "P" for joint in self.joints)
        return f"<Chain {kinds}>"

    @property
    def n(self) -> int:
        """The number of joints."""
        return len(self.joints)

    @property
    def gravity_in_frame_0(self) -> Vec3:
        """Gravity as the first frame sees it."""
        return self.base.R.T @ self.gravity

    def with_links(self, links: tuple[Link, ...]) -> Chain:
        """The same geometry with other links."""
        return replace(self, links=links)

    @property
    def floats(self) -> Chain:
        """The same chain with floats for exact constants: what the plain Python path computes with."""
        return _floats(self)


def _must_be_computable(chain: Chain) -> None:
    """An error for what cannot be computed with; what is merely odd is for `armdyn.chain.checks`."""
    if not chain.joints:
        raise InputError("a chain needs at least one joint, got none")
    if len(chain.links) != len(chain.joints):
        raise InputError(f"a chain has as many links as joints; got {len(chain.links)} links, {chain.n} joints")
    for i, (joint, link) in enumerate(zip(chain.joints, chain.links, strict=True), 1):
        choose(f"kind of joint {joint.name or i}", joint.kind, ("revolute", "prismatic"))
        lengths = (joint.b, joint.d, joint.rotor_inertia, joint.viscous, joint.coulomb)
        angles = (joint.beta.radians, joint.gamma.radians, joint.theta.radians)
        _must_be_finite(f"joint {joint.name or i}", (*lengths, *angles))
        _must_be_finite(f"link {i}", link.natural)
    _must_be_finite("gravity", tuple(chain.gravity))


def _must_be_finite(where: str, numbers: tuple[Any, ...]) -> None:
    for x in numbers:
        if isinstance(x, float) and not math.isfinite(x):
            raise InputError(f"{where}: every number must be finite, got {x!r}")


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

"""Joint data of an arm as arrays: kinds, limits, rotor inertias, the rest configuration, geometry constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armdyn.chain import Joint
from armdyn.chain.chain import limits, working_range
from armdyn.chain.geometry import geometry_constants, geometry_values, with_geometry
from armdyn.chain.joint import named
from armdyn.errors import InputError, choose
from armdyn.files import arrays
from armdyn.uses import must_suit
from armdyn.values import ComparedByValue, real_array


@dataclass(frozen=True, eq=False)
class JointOrder(ComparedByValue):
    """Index arrays between an arm's joints and those of another order: ROS messages, Pinocchio's, a log's columns.

    ``theirs[..., order.q]`` is the arm's q, ``mine[..., order.back_q]`` theirs; likewise for q̇, q̈ and τ. On a floating
    base the first 7 entries of q and 6 of q̇ are the base's in both.
    """

    names: tuple[str, ...]
    q: Any
    qd: Any
    back_q: Any
    back_qd: Any


class JointArrays:
    """Numbers of the n independent joints; a base class of `Arm`."""

    @property
    def joints(self: Any) -> tuple[Joint, ...]:
        """The n independent joints in q's order: depth-first, base to tips."""
        return tuple(self.chain.joints[i] for i in self.chain.independent)

    @property
    def joint_names(self: Any) -> tuple[str, ...]:
        """The names of the n independent joints in q's order; "joint 3" for the third if it has none."""
        return named(self.joints)

    def q(self: Any, values: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """(..., nq) a configuration from joint positions by name; the joints that are not named are at `rest`.

        Positions may be arrays that broadcast: a batch of configurations. ``base`` is the pose (7,) of a floating base.
        """
        if values is not None and not isinstance(values, Mapping):
            raise InputError(
                f"q expects positions by joint, as in q({self.joint_names[0]}=0.3) or a mapping, got "
                f"{type(values).__name__}; by_name(q) gives the positions of an array by joint"
            )
        given = {**(values or {}), **named}
        names = (*(("base",) if self.floating else ()), *self.joint_names)
        for name in given:
            choose("joint", name, names)
        base = real_array(given.pop("base"), "base") if self.floating and "base" in given else None
        if base is not None and base.shape[-1:] != (7,):
            raise InputError(f"base must be a pose of the shape (..., 7), x y z and a quaternion; got {base.shape}")
        arrays_by_name = {name: real_array(x, name) for name, x in given.items()}
        bases = [] if base is None else [base.shape[:-1]]
        try:
            batch = np.broadcast_shapes(*(x.shape for x in arrays_by_name.values()), *bases)
        except ValueError:
            shapes = ", ".join(f"{name} {x.shape}" for name, x in arrays_by_name.items())
            raise InputError(f"expected positions that broadcast to one batch, got {shapes}") from None
        found = np.array(np.broadcast_to(self.rest, (*batch, self.chain.nq)))
        if base is not None:
            found[..., :7] = base
        for name, x in arrays_by_name.items():
            found[..., self.chain.nq - self.n + self.joint_names.index(name)] = x
        return found

    def by_name(self: Any, q: Any) -> dict[str, Any]:
        """The positions (..., nq), or velocities, torques (..., nv), of the joints by name; the inverse of `q`."""
        values = real_array(q, "q")
        if values.shape[-1:] not in ((self.chain.nq,), (self.chain.nv,)):
            raise InputError(f"expected an array of the shape (..., {self.chain.nq}), got {values.shape}")
        first = values.shape[-1] - self.n
        base = {"base": values[..., :first]} if first else {}
        return base | {name: values[..., first + i] for i, name in enumerate(self.joint_names)}

    def order(self: Any, names: Sequence[str]) -> JointOrder:
        """Index arrays between q, q̇ of this arm and of another order of its joints, given by their names.

        All joints of the arm must be among the names; other joints among them are skipped, and have no place back.
        """
        listed = [str(name) for name in names]
        mine = self.joint_names
        if len(set(listed)) < len(listed):
            raise InputError(f"the names of an order must differ, got {', '.join(listed)}")
        missing = [name for name in mine if name not in listed]
        if missing:
            raise InputError(f"the order lacks the joints {', '.join(missing)} of {self.name}; got {', '.join(listed)}")
        forth = np.array([listed.index(name) for name in mine], dtype=np.intp)
        back = np.array([mine.index(name) for name in listed if name in mine], dtype=np.intp)

        def after_base(size: int, index: Any) -> Any:
            return np.concatenate([np.arange(size - self.n), index + (size - self.n)])

        nq, nv = self.chain.nq, self.chain.nv
        there, here = ((after_base(nq, index), after_base(nv, index)) for index in (forth, back))
        return JointOrder(tuple(listed), *there, *here)

    @property
    def kinds(self: Any) -> str:
        """The kinds of the joints, base to tip: R for revolute, P for prismatic."""
        return "".join("R" if joint.revolute else "P" for joint in self.joints)

    @property
    def rest(self: Any) -> Any:
        """(n,) the rest configuration: every joint at zero, or mid-range where zero is outside its limits.

        With a floating base (7 + n,), the base at the origin.
        """
        finite = [[x for x in pair if np.isfinite(x)] for pair in self.limits]  # a half-open range has one end
        middle = [
            0.0 if low <= 0 <= high or not low < high else sum(ends) / len(ends)
            for (low, high), ends in zip(self.limits, finite, strict=True)
        ]
        return np.array([*([0.0] * 6 + [1.0] if self.floating else []), *middle])

    @property
    def working_range(self: Any) -> Any:
        """(n, 2) finite ranges of q: the limits, those of a revolute joint within ±π, ±0.5 m where a slide has none."""
        return np.array([working_range(*pair) for pair in zip(self.joints, limits(self.chain), strict=True)])

    def postures(self: Any, rng: np.random.Generator, count: int) -> Any:
        """(count, nq) random configurations within `working_range`; a floating base turns about the origin."""
        low, high = self.working_range.T
        q = rng.uniform(low, high, (count, self.n))
        if not self.floating:
            return q
        turns = rng.normal(size=(count, 4))
        return np.hstack([np.zeros((count, 3)), turns / np.linalg.norm(turns, axis=1, keepdims=True), q])

    def must_suit(self: Any, task: str) -> None:
        """Raise InputError if a task of `armdyn.uses` cannot be done with this robot."""
        must_suit(task, self.chain, self.name)

    @property
    def limits(self: Any) -> Any:
        """(n, 2) lower and upper joint limits, taking mimic joints into account; ±inf where there is none."""
        pairs = [(limit.lower, limit.upper) for limit in limits(self.chain)]
        ends = (-np.inf, np.inf)
        rows = [[end if x is None else x for x, end in zip(pair, ends, strict=True)] for pair in pairs]
        return np.array(rows).reshape(-1, 2)

    @property
    def velocity_limits(self: Any) -> Any:
        """(n,) velocity limits, taking mimic joints into account; inf where unknown."""
        return np.array([np.inf if limit.velocity is None else limit.velocity for limit in limits(self.chain)])

    @property
    def effort_limits(self: Any) -> Any:
        """(n,) largest joint torques or forces; inf where unknown."""
        return np.array([np.inf if j.limit.effort is None else j.limit.effort for j in self.joints])

    @property
    def rotor_inertias(self: Any) -> Any:
        """(n,) rotor inertias reflected to the joints."""
        return np.array([float(joint.rotor_inertia) for joint in self.joints])

    @property
    def geometry_names(self: Any) -> tuple[str, ...]:
        """The names of the geometry's entries: base_x … base_yaw, b_1, beta_1, (gamma_1,) d_1, theta_1, …, tool_yaw."""
        return tuple(constant.name for constant in geometry_constants(self.chain))

    @property
    def geometry(self: Any) -> Any:
        """The geometry constants in metres and radians: the last input of `parameters="geometry"` kernels.

        Joint i adds (shift_i, turn_i,) b_i, beta_i, (gamma_i,) d_i, theta_i: those in brackets at forks and where its
        axis is nearly parallel to the one before. The angles of base and tool are relative to their current
        orientation, so they are 0.
        """
        return np.array(geometry_values(self.chain))

    def with_geometry(self: Any, values: Any) -> Any:
        """The same arm with other geometry constants, in the order of `geometry_names`; none of them is snapped."""
        numbers = arrays.numbers(values, "geometry constants")
        chain = with_geometry(self.chain, numbers)
        base, tool = arrays.tidy(chain.base, self.chain.base), arrays.tidy(chain.tool, self.chain.tool)
        return replace(self, given=replace(chain, base=base, tool=tool), snap=0.0)

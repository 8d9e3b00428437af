"""Comparing two robots, or a robot with another library's model: joints, frames, inertia matrix, torques and poses.

The other library computes its own numbers (Pinocchio: crba, rnea; MuJoCo: its inertia matrix and bias), so that a
comparison shows whether a model was understood, and not only that a reader agrees with itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from armdyn.arm import Arm, load
from armdyn.chain.joint import NO_FORCES, NUMBERS, WORDS
from armdyn.errors import InputError
from armdyn.files.memory import library
from armdyn.results import Result, ResultTable

AGREE = 1e-9  # relative; rounding gives about 1e-14, a URDF written with few digits 1e-6
_QUANTITIES = {
    "inertia matrix": "kg m² (kg, kg m)",
    "torques": "N m (N)",
    "poses": "m, and entries of rotations",
}
_FREE = 7  # the numbers of a floating base's pose, 6 of its speed
_SHOWN = 8  # rows of a list before it is cut in the summary

Evaluation = Callable[[Any, Any, Any], tuple[Any, Any, dict[str, Any]]]


@dataclass(frozen=True)
class Difference:
    """The largest difference of a quantity over all samples: absolute, relative to its largest entry, and where."""

    quantity: str
    largest: float
    relative: float
    where: str


@dataclass(frozen=True)
class Comparison(Result):
    """What two robots have in common and where they differ; `armdyn.compare` makes it.

    `joints` are (name, place in the first robot's q, place in the second's), with None where a robot has no such joint
    of its own; `frames` the names that both have; `properties` (joint, what, first, second) where they differ;
    `ignored` the physics that is no part of the numbers compared.
    """

    labels: tuple[str, str]
    joints: tuple[tuple[str, int | None, int | None], ...]
    frames: tuple[str, ...]
    frames_apart: tuple[tuple[str, ...], tuple[str, ...]]
    differences: tuple[Difference, ...]
    properties: tuple[tuple[str, str, float | None, float | None], ...]
    ignored: tuple[str, ...]
    notes: tuple[str, ...]
    samples: int
    tolerance: float = AGREE

    @property
    def same_order(self) -> bool:
        """Whether the joints that both have are in the same order."""
        places = [there for _, here, there in self.joints if here is not None and there is not None]
        return places == sorted(places)

    @property
    def agrees(self) -> bool:
        """Whether inertia matrix, torques, poses, mass and gravity agree to the tolerance and no joint is left over."""
        alone = any(here is None and there is None for _, here, there in self.joints)
        left = any("has no partner" in note for note in self.notes)
        return not alone and not left and all(d.relative <= self.tolerance for d in self.differences)

    def difference(self, quantity: str) -> Difference:
        """The difference of one quantity: "inertia matrix", "torques", "poses", "mass" or "gravity"."""
        known = {d.quantity: d for d in self.differences}
        if quantity not in known:
            raise InputError(f"unknown quantity {quantity!r}; available: {', '.join(known)}")
        return known[quantity]

    def table(self) -> ResultTable:
        """The largest difference of each quantity."""
        rows = [(d.quantity, float(d.largest), float(d.relative), d.where) for d in self.differences]
        return ResultTable.of(self._headline(), ["quantity", "largest difference [SI]", "relative", "where"], rows)

    def summary(self) -> str:
        """The comparison as a text of a few lines."""
        lines = [self._headline(), ""]
        width = max(len(d.quantity) for d in self.differences)
        lines += [
            f"  {d.quantity:<{width}}  {d.largest:9.2e}  relative {d.relative:8.1e}  {d.where}".rstrip()
            for d in self.differences
        ]
        lines += ["", *self.details]
        return "\n".join(lines)

    __str__ = summary

    def __repr__(self) -> str:
        return f"<Comparison {self._headline()}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("quantity", "largest difference [SI]", "relative", "where"))
        rows = "".join(
            f"<tr><td>{escape(d.quantity)}</td><td>{d.largest:.2e}</td><td>{d.relative:.1e}</td>"
            f"<td>{escape(d.where)}</td></tr>"
            for d in self.differences
        )
        details = "".join(f"<li>{escape(line)}</li>" for line in self.details)
        return f"<p>{escape(self._headline())}</p><table><tr>{head}</tr>{rows}</table><ul>{details}</ul>"

    def _headline(self) -> str:
        verdict = "agree" if self.agrees else "differ"
        return f"{self.labels[0]} and {self.labels[1]} {verdict} ({self.samples} random configurations)"

    @property
    def details(self) -> list[str]:
        """What the table does not show, line by line: order, frames, joint data that differ, physics not compared."""
        both = [name for name, here, there in self.joints if here is not None and there is not None]
        order = "in the same order" if self.same_order else "in another order"
        lines = [f"joints: {len(both)} in both, {order}" + ("" if self.same_order else f" ({self._orders()})")]
        lines += [f"frames: {len(self.frames)} in both"]
        for label, names in zip(self.labels, self.frames_apart, strict=True):
            if names:
                lines.append(f"frames only in {label}: {_cut(names)}")
        shown = [f"{joint} {what}: {_or_none(a)} against {_or_none(b)}" for joint, what, a, b in self.properties]
        if shown:
            lines.append(f"joint data that differ: {_cut(shown, '; ')}")
        return [
            *lines,
            *(f"not compared: {line}" for line in self.ignored),
            *self.notes,
        ]

    def _orders(self) -> str:
        pairs = sorted((there, name) for name, here, there in self.joints if here is not None and there is not None)
        return f"in {self.labels[1]}: {_cut([name for _, name in pairs])}"


def compare(
    arm: Arm | str | os.PathLike[str],
    other: Any,
    *,
    samples: int = 20,
    seed: int = 0,
    tolerance: float = AGREE,
) -> Comparison:
    """Compare a robot with another one: an arm, a file, a ``pinocchio.Model`` or a ``mujoco.MjModel``.

    Joints and frames are matched by their names (joints by their order, if no name is common). A joint that mimics
    another one in one of the robots follows it in both; joints that only one robot has stay at zero. Inertia matrix
    and torques of inverse dynamics are those of rigid bodies with rotor inertias, without friction and other passive
    forces.

    Parameters
    ----------
    arm, other
        The two robots: an `Arm`, whatever `armdyn.load` takes, or a model of another library, which then computes its
        numbers itself.
    samples, seed
        The number of random configurations, within the limits of the first robot, and the seed.
    tolerance
        Up to which relative difference the robots agree.
    """
    if not isinstance(samples, int) or samples < 1:
        raise InputError(f"samples must be a whole number of at least 1, got {samples!r}")
    here, there = _side(arm), _side(other)
    notes: list[str] = []
    if not set(here.every) & set(there.every) and len(here.joints) == len(there.joints):
        there = there.renamed(dict(zip(there.joints, here.joints, strict=True)))
        notes.append("no joint name is common: the joints are matched by their order")
    shared = [name for name in here.joints if name in there.joints]
    for side, partner in ((here, there), (there, here)):
        alone = [name for name in side.joints if name not in partner.every]
        if alone:
            notes.append(f"has no partner and stays at zero, in {side.label}: {_cut(alone)}")
    if here.floating != there.floating:
        notes.append(f"only {(here if here.floating else there).label} has a floating base, which stays where it is")
    frames = [name for name in here.frames if name in there.frames]
    worst = _worst(here, there, shared, frames, np.random.default_rng(seed), samples)
    if not frames:
        notes.append("no frame name is common: poses are not compared")
    apart = tuple(tuple(n for n in a.frames if n not in b.frames) for a, b in ((here, there), (there, here)))
    names = [*here.joints, *(name for name in there.joints if name not in here.joints)]
    labels = (here.label, there.label)
    if here.label == there.label:  # as of an arm of the catalogue and the file that it was made from
        labels = (f"{here.label}, the first", f"{there.label}, the second")
    return Comparison(
        labels,
        tuple((name, _place(here.joints, name), _place(there.joints, name)) for name in names),
        tuple(frames),
        (apart[0], apart[1]),
        (*worst, *_constants(here, there)),
        tuple(_properties(here, there)),
        tuple(dict.fromkeys((*here.ignored, *there.ignored))),  # two files of one robot say the same
        tuple(notes),
        samples,
        tolerance,
    )


@dataclass(frozen=True)
class _Side:
    """One of the two robots: its own coordinates, joints that follow others, and what it computes."""

    label: str
    joints: list[str]  # in the order of its own coordinates, behind those of a floating base
    mimics: dict[str, tuple[str, float, float]]
    floating: bool
    frames: list[str]
    evaluate: Evaluation  # (q, qd, qdd) -> H, torques, poses by frame; a floating base laid out as Pinocchio's
    mass: float
    gravity: Any
    properties: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def every(self) -> list[str]:
        """All joints, with those that follow others."""
        return [*self.joints, *self.mimics]

    def renamed(self, names: Mapping[str, str]) -> _Side:
        """The same robot with other names of joints."""

        def new(name: str) -> str:
            return names.get(name, name)

        mimics = {new(name): (new(leader), *numbers) for name, (leader, *numbers) in self.mimics.items()}
        properties = {new(name): values for name, values in self.properties.items()}
        joints = [new(name) for name in self.joints]
        return replace(self, joints=joints, mimics=mimics, properties=properties)  # type: ignore[arg-type]

    def follows(self, shared: Sequence[str], partner: _Side, base: bool) -> tuple[Any, Any]:
        """(G, offset): this robot's own speeds are G times the shared ones, its positions likewise plus offset."""
        own, common = (6 if self.floating else 0), (6 if base else 0)
        G, offset = (
            np.zeros((own + len(self.joints), common + len(shared))),
            np.zeros(len(self.joints)),
        )
        if base:
            G[:6, :6] = np.eye(6)
        for row, name in enumerate(self.joints):
            leader, factor, shift = (name, 1.0, 0.0) if name in shared else partner.mimics.get(name, ("", 0.0, 0.0))
            if leader in shared:
                G[own + row, common + shared.index(leader)] = factor
                offset[row] = shift
        return G, offset


def _worst(
    here: _Side,
    there: _Side,
    shared: list[str],
    frames: list[str],
    rng: Any,
    samples: int,
) -> list[Difference]:
    """The largest differences of inertia matrix, torques and poses over random motions of the shared coordinates."""
    base = here.floating and there.floating
    relations = [here.follows(shared, there, base), there.follows(shared, here, base)]
    size = (6 if base else 0) + len(shared)
    worst = dict.fromkeys(_QUANTITIES, (0.0, 0.0, ""))  # difference, largest entry, where
    rows = [
        *("base " + axis for axis in ("x", "y", "z", "rx", "ry", "rz") if base),
        *shared,
    ]
    lower, upper = np.array([_range(here, name) for name in shared]).reshape(-1, 2).T
    for _ in range(samples):
        q, qd, qdd = (
            rng.uniform(lower, upper),
            rng.uniform(-1, 1, size),
            rng.uniform(-1, 1, size),
        )
        pose = rng.uniform(-1, 1, _FREE)
        pose[3:] /= np.linalg.norm(pose[3:])
        values = []
        for side, (G, offset) in zip((here, there), relations, strict=True):
            own = 6 if side.floating else 0
            position = G[own:, 6 if base else 0 :] @ q + offset
            if side.floating:
                position = np.concatenate([pose if base else [0, 0, 0, 0, 0, 0, 1.0], position])
            H, tau, poses = side.evaluate(position, G @ qd, G @ qdd)
            values.append((G.T @ H @ G, G.T @ tau, poses))
        for k, name in enumerate(("inertia matrix", "torques")):
            a: Any = values[0][k]
            b: Any = values[1][k]
            if a.size:
                place = np.unravel_index(np.argmax(np.abs(a - b)), a.shape)
                where = ", ".join(dict.fromkeys(rows[int(i)] for i in place))
                worst[name] = _larger(worst[name], np.abs(a - b).max(), np.abs(b).max(), where)
        for frame in frames:
            a, b = values[0][2][frame], values[1][2][frame]
            worst["poses"] = _larger(worst["poses"], np.abs(a - b).max(), max(1.0, np.abs(b).max()), frame)
    return [
        Difference(name, gap, gap / most if most else 0.0, where if gap else "")
        for name, (gap, most, where) in worst.items()
        if name != "poses" or frames
    ]


def _larger(known: tuple[float, float, str], gap: float, entry: float, where: str) -> tuple[float, float, str]:
    """The larger difference with its place, and the largest entry seen; NaN counts as infinitely different."""
    gap = float("inf") if np.isnan(gap) else float(gap)
    return (gap, max(known[1], entry), where) if gap > known[0] else (known[0], max(known[1], entry), known[2])


def _constants(here: _Side, there: _Side) -> list[Difference]:
    mass = abs(here.mass - there.mass)
    fall = float(np.abs(np.subtract(here.gravity, there.gravity)).max())
    size = float(np.abs(there.gravity).max())
    return [
        Difference(
            "mass",
            mass,
            mass / max(abs(there.mass), 1e-300),
            f"{here.mass:.6g} and {there.mass:.6g} kg",
        ),
        Difference("gravity", fall, fall / (size or 1.0), ""),
    ]


def _properties(here: _Side, there: _Side) -> list[tuple[str, str, float | None, float | None]]:
    """Limits, friction and rotor inertias that differ, of the joints that both have."""
    rows = []
    for name in here.properties:
        if name not in there.properties:
            continue
        first, second = here.properties[name], there.properties[name]
        expected = ("lower", "upper", "velocity", "effort", "rotor inertia", "viscous", "coulomb")
        for what in dict.fromkeys((*expected, *(key for key in first if key in second))):
            if what == "velocity" and not (what in first and what in second):
                continue  # MuJoCo has no limits of speed
            a, b = first.get(what), second.get(what)
            if a != b and not (a is not None and b is not None and np.isclose(a, b, rtol=AGREE, atol=1e-12)):
                rows.append((name, what, a, b))
    return rows


def _range(side: _Side, name: str) -> tuple[float, float]:
    known = side.properties.get(name, {})
    lower, upper = known.get("lower", -np.pi), known.get("upper", np.pi)
    return (lower, upper) if lower < upper and max(abs(lower), abs(upper)) < 100 else (-np.pi, np.pi)


def _place(names: list[str], name: str) -> int | None:
    return names.index(name) if name in names else None


def _cut(names: Sequence[str], between: str = ", ") -> str:
    more = f"{between}and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return between.join(names[:_SHOWN]) + more


def _or_none(x: float | None) -> str:
    return "none" if x is None else f"{x:.6g}"


def _side(robot: Any) -> _Side:
    kind = library(robot)
    if kind == "pinocchio.Model":
        return _pinocchio(robot)
    if kind == "mujoco.MjModel":
        return _mujoco(robot)
    return _of_arm(robot if isinstance(robot, Arm) else load(robot))


def _of_arm(arm: Arm) -> _Side:
    chain = arm.chain
    names = list(chain.joint_names)
    mimics = {}
    for joint, name in zip(chain.joints, names, strict=True):
        if joint.mimic is not None:
            leader, factor, offset = chain.leader(joint)
            mimics[name] = (names[leader], float(factor), float(offset))
    frames = [frame.name for frame in arm.frames]
    poses = {name: arm.kernel("pose", backend="python", frame=name) for name in frames if _moves(arm, name)}
    if arm.tool is not None and arm.tool.name not in frames:
        frames.append(arm.tool.name)
        poses[arm.tool.name] = arm.kernel("pose", backend="python")
    still = {frame.name: _fixed(frame.placement) for frame in arm.frames if frame.link == 0}
    inertia = arm.kernel("inertia_matrix", method="denoc", backend="python") if arm.mass else None
    torque = arm.kernel("inverse_dynamics", method="newton_euler", backend="python") if arm.mass else None

    def evaluate(q: Any, qd: Any, qdd: Any) -> tuple[Any, Any, dict[str, Any]]:
        H = np.zeros((len(qd), len(qd))) if inertia is None else inertia(q)
        tau = np.zeros(len(qd)) if torque is None else torque(q, qd, qdd)
        return H, tau, still | {name: pose(q) for name, pose in poses.items()}

    properties = {}
    for joint, name in zip(chain.joints, names, strict=True):
        limits = {key: getattr(joint.limit, key) for key in ("lower", "upper", "velocity", "effort")}
        drive = {
            "rotor inertia": joint.rotor_inertia,
            "viscous": joint.viscous,
            "coulomb": joint.coulomb,
            "static friction": joint.static,
            "Stribeck speed": joint.stribeck,
            **{WORDS[key]: getattr(joint.forces, key) for key in NUMBERS},
        }
        properties[name] = {key: float(x) for key, x in (limits | drive).items() if x is not None}
    passive = [name for joint, name in zip(chain.joints, names, strict=True) if _passive(joint)]
    ignored = (f"friction and joint forces of {arm.name}: {_cut(passive)}",) if passive else ()
    own = [names[i] for i in chain.independent]
    label = f"{arm.name} (armdyn)"
    return _Side(
        label,
        own,
        mimics,
        arm.floating,
        frames,
        evaluate,
        arm.mass,
        np.array(arm.gravity),
        properties,
        ignored,
    )


def _moves(arm: Arm, name: str) -> bool:
    return any(frame.name == name and frame.link for frame in arm.frames)


def _fixed(placement: Any) -> Any:
    T = np.eye(4)
    T[:3, :3] = [[float(x) for x in row] for row in placement.R.rows]
    T[:3, 3] = [float(x) for x in placement.p]
    return T


def _passive(joint: Any) -> bool:
    return bool(joint.viscous != 0 or joint.coulomb != 0 or joint.static != 0 or joint.forces != NO_FORCES)


def _pinocchio(model: Any) -> _Side:
    """A model of Pinocchio, which computes inertia matrix, torques and poses itself."""
    pin: Any = import_module("pinocchio")  # the caller has imported it

    data = model.createData()
    free = model.njoints > 1 and model.joints[1].shortname() == "JointModelFreeFlyer"
    pairs = dict(
        zip(
            map(int, model.mimicking_joints),
            map(int, model.mimicked_joints),
            strict=True,
        )
    )
    joints: list[str] = []
    places: list[tuple[int, int, bool]] = []  # of each own coordinate: its place in q, in v, and whether it is (c, s)
    mimics, properties = {}, {}
    for j in range(2 if free else 1, model.njoints):
        joint, name = model.joints[j], model.names[j]
        if j in pairs:
            made = joint.extract()
            mimics[name] = (
                model.names[pairs[j]],
                float(made.scaling),
                float(made.offset),
            )
            continue
        if joint.nq not in (joint.nv, 2 * joint.nv) or "Spherical" in joint.shortname() or joint.nq == 4:
            raise InputError(f"joint {name!r} of the pinocchio.Model is a {joint.shortname()}; it cannot be compared")
        turns = joint.nq == 2 and joint.nv == 1
        for k in range(joint.nv):
            joints.append(name if joint.nv == 1 else f"{name}_{k + 1}")
            places.append((joint.idx_q + k, joint.idx_v + k, turns))
            properties[joints[-1]] = _pinocchio_properties(model, *places[-1])
    frames = {f.name: i for i, f in enumerate(model.frames) if f.type.name in ("BODY", "OP_FRAME", "SENSOR")}
    first, six = (_FREE, 6) if free else (0, 0)
    depth_first = all(list(tree) == list(range(tree[0], tree[0] + len(tree))) for tree in list(model.subtrees)[1:])
    order = [*range(six), *(v for _, v, _ in places)]

    def evaluate(q: Any, qd: Any, qdd: Any) -> tuple[Any, Any, dict[str, Any]]:
        x, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        x[:first] = q[:first]
        for value, (at, _, turns) in zip(q[first:], places, strict=True):
            x[at : at + 1 + turns] = [np.cos(value), np.sin(value)] if turns else value
        v[order], a[order] = qd, qdd
        if depth_first:
            H = np.triu(pin.crba(model, data, x))
            H = H + np.triu(H, 1).T
        else:  # crba takes the joints of a subtree for neighbours in q
            still = np.zeros(model.nv)
            rest = pin.rnea(model, data, x, still, still).copy()
            H = np.array([pin.rnea(model, data, x, still, e) - rest for e in np.eye(model.nv)]).T
        tau = pin.rnea(model, data, x, v, a)
        pin.framesForwardKinematics(model, data, x)
        poses = {name: data.oMf[i].homogeneous.copy() for name, i in frames.items()}
        return H[np.ix_(order, order)], tau[order], poses

    mass = float(sum(body.mass for body in list(model.inertias)[1:]))
    ignored = [f"{what} of the pinocchio.Model" for what in ("damping", "friction") if np.any(getattr(model, what))]
    return _Side(
        f"{model.name} (Pinocchio)", joints, mimics, free, list(frames), evaluate, mass,
        np.array(model.gravity.linear), properties, tuple(ignored),
    )  # fmt: skip


def _pinocchio_properties(model: Any, q: int, v: int, turns: bool) -> dict[str, float]:
    known = {"velocity": model.velocityLimit[v], "effort": model.effortLimit[v]}
    if not turns:
        known |= {
            "lower": model.lowerPositionLimit[q],
            "upper": model.upperPositionLimit[q],
        }
    drive = {
        "rotor inertia": model.armature,
        "viscous": model.damping,
        "coulomb": model.friction,
    }
    known = {key: value for key, value in known.items() if abs(value) < 1e30}
    return {key: float(value) for key, value in (known | {k: x[v] for k, x in drive.items()}).items()}


def _mujoco(model: Any) -> _Side:
    """A model of MuJoCo, which computes inertia matrix, bias and poses itself."""
    import mujoco

    data = mujoco.MjData(model)
    kinds = [int(kind) for kind in model.jnt_type]
    free = bool(kinds) and kinds[0] == int(mujoco.mjtJoint.mjJNT_FREE)

    def name(kind: str, i: int) -> str:
        return mujoco.mj_id2name(model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), i) or f"{kind}{i}"

    odd = [name("joint", j) for j, kind in enumerate(kinds) if kind < 2 and not (free and j == 0)]
    if odd:
        raise InputError(
            f"joints {', '.join(odd)} of the mujoco.MjModel are free or ball joints; they cannot be compared"
        )
    singles = [j for j, kind in enumerate(kinds) if kind >= 2]
    joints = [name("joint", j) for j in singles]
    at_q = [int(model.jnt_qposadr[j]) for j in singles]
    order = [*range(6 if free else 0), *(int(model.jnt_dofadr[j]) for j in singles)]
    bodies = {name("body", b): ("xpos", "xmat", b) for b in range(model.nbody)}
    sites = {name("site", s): ("site_xpos", "site_xmat", s) for s in range(model.nsite)}
    frames = sites | bodies

    def evaluate(q: Any, qd: Any, qdd: Any) -> tuple[Any, Any, dict[str, Any]]:
        mujoco.mj_resetData(model, data)
        first = _FREE if free else 0
        T, rate = np.eye(model.nv), np.zeros(model.nv)
        data.qpos[at_q] = q[first:]
        v, a = np.zeros(model.nv), np.zeros(model.nv)
        v[order], a[order] = qd, qdd
        if free:  # MuJoCo: quaternion w first, linear speed in the world's axes
            data.qpos[:7] = [*q[:3], q[6], *q[3:6]]
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, data.qpos[3:7])
            T[:3, :3] = R.reshape(3, 3)
            rate[:3] = T[:3, :3] @ np.cross(v[3:6], v[:3])
        data.qvel[:] = T @ v
        mujoco.mj_forward(model, data)
        H = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, H)
        tau = T.T @ (H @ (T @ a + rate) + data.qfrc_bias)
        H = T.T @ H @ T
        poses = {}
        for frame, (position, rotation, i) in frames.items():
            poses[frame] = np.eye(4)
            poses[frame][:3, :3] = getattr(data, rotation)[i].reshape(3, 3)
            poses[frame][:3, 3] = getattr(data, position)[i]
        return H[np.ix_(order, order)], tau[order], poses

    properties = {}
    for j, joint in zip(singles, joints, strict=True):
        dof = int(model.jnt_dofadr[j])
        known = {
            "rotor inertia": model.dof_armature[dof],
            "viscous": model.dof_damping.reshape(model.nv, -1)[dof, 0],
        }
        known["coulomb"] = model.dof_frictionloss[dof]
        if model.jnt_limited[j]:
            known["lower"], known["upper"] = model.jnt_range[j]
        if model.jnt_actfrclimited[j]:
            known["effort"] = model.jnt_actfrcrange[j][1]
        properties[joint] = {key: float(value) for key, value in known.items()}
    counts = {
        "damping": model.dof_damping, "frictionloss": model.dof_frictionloss, "joint springs": model.jnt_stiffness,
        "gravity compensation": model.body_gravcomp, "tendon springs": model.tendon_stiffness,
    }  # fmt: skip
    ignored = [what for what, values in counts.items() if np.any(values)]
    ignored += [f"{number} {what}" for number, what in ((model.neq, "equality constraints"),) if number]
    said = (f"in the mujoco.MjModel: {', '.join(ignored)}",) if ignored else ()
    carried = [b for b in range(1, model.nbody) if model.body_weldid[b] != 0]
    mass = float(model.body_mass[carried].sum())
    title = str(model.names[: model.names.index(b"\0")], "utf-8", "replace")
    gravity = np.array(model.opt.gravity)
    return _Side(
        f"{title} (MuJoCo)",
        joints,
        {},
        free,
        list(frames),
        evaluate,
        mass,
        gravity,
        properties,
        said,
    )

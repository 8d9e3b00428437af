"""`calibrate`: correct an arm's geometry constants from measured poses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from armdyn.calibration.fit import GeometryFit, fit
from armdyn.calibration.measured import Array, Poses
from armdyn.calibration.model import ToolModel
from armdyn.calibration.result import Calibration, Validation
from armdyn.chain import Joint, Mimic
from armdyn.chain.geometry import GeometryConstant
from armdyn.errors import InputError, checked_keywords, choose, required
from armdyn.identification.threads import one_thread
from armdyn.parameters.geometry import identifiable

if TYPE_CHECKING:
    from armdyn.arm import Arm

# Of constants with the same effect on the tool, the one whose kind comes first is kept.
KINDS = ("base", "tool", "theta", "d", "b", "beta", "gamma", "turn", "shift")
FAR_AWAY = 0.3  # metres, radians: a measuring frame further away is registered before the fit
Progress = Callable[[float, float, str], None]


@checked_keywords
def calibrate(
    arm: Arm,
    poses: Any,
    *,
    frame: str | None = None,
    parameters: str | Sequence[str] = "all",
    robust: str = "huber",
    held_out: float = 0.2,
    seed: int = 0,
    progress: Progress | None = None,
) -> Calibration:
    """Calibrate the geometry of an arm from measured poses of its tool.

    Parameters
    ----------
    arm
        The nominal arm. For a robot with several tips, `frame` names the one that was measured.
    poses
        `Poses`, or a pair (q, measured) with measured (k, 4, 4), (k, 7) or (k, 3).
    frame
        The frame that was measured, if it is not the tool.
    parameters
        The constants to correct: "all", names of constants ("theta_2"), or kinds: base, tool, theta, d, b, beta,
        gamma, turn, shift. Of constants that cannot be told apart, the one whose kind comes first in this list is
        corrected. With a plane or a ball bar the base is not corrected.
    robust
        The treatment of poses that do not fit: "huber" sets them aside unless they are more than 15 %, "tukey" sets
        them aside however many they are, "none" keeps all poses.
    held_out
        The fraction of the poses used for validation, by a fit without them; 0 for none. The result itself is fitted to
        all poses.
    seed
        The seed that selects the held-out poses.
    progress
        Called with (done, total, text) during the work.

    Returns
    -------
    The corrected arm, with corrections, standard deviations, noise, outliers and remaining residuals.
    """
    say = progress or (lambda done, total, text: None)
    measured = poses if isinstance(poses, Poses) else Poses.of(*poses)
    say(0, 4, "identifiable constants")
    chain, path = serial_part(arm, frame)
    measured = _restricted(arm, chain, path, measured)
    wanted = chosen(chain, parameters, measured.kind)
    near = registered(chain, measured, wanted)
    model = ToolModel(near)
    kept = wanted
    if measured.position is not None:
        kept = identifiable(near.chain, wanted, measured.rotation is not None)
    free = tuple(model.constants.index(constant) for constant in kept)
    with one_thread():
        say(1, 4, "fitting")
        found = fit(model, measured, model.today, free, robust)
        say(2, 4, "fitting base and tool only, for comparison")
        before = fit(model, measured, model.today, tuple(k for k in free if model.constants[k].joint is None), robust)
        say(3, 4, "validating on held-out poses")
        validation = _validated(model, measured, free, robust, held_out, seed)
    say(4, 4, "done")
    return Calibration(arm, near, path, frame, measured, model.constants, wanted, before, found, validation)


def serial_part(arm: Arm, frame: str | None) -> tuple[Arm, tuple[int, ...]]:
    """The serial chain from the base to the tool or to a frame, as an arm, and the indices of its joints."""
    arm.must_suit("calibration")
    chain = arm.chain
    if frame is None:
        at = arm.require_tool("calibration", "give the measured one as frame=")
        if not chain.tool_link:
            return arm, tuple(range(chain.bodies))
    else:
        named = {f.name: f for f in arm.frames if f.link}
        at = named[choose("frame that moves", frame, named)]
    path = chain.path(at.link - 1)
    joints = tuple(_renumbered(chain.joints[i], path) for i in path)
    cut = replace(
        chain.uncoupled,
        joints=joints,
        links=tuple(chain.links[i] for i in path),
        parents=(),
        tool=at.placement,
        tool_link=0,
    )
    return replace(arm, given=cut, snap=0.0, frames=()), path


def _renumbered(joint: Joint, path: tuple[int, ...]) -> Joint:
    """The joint with the index of the joint it mimics counted along the path."""
    if joint.mimic is None:
        return joint
    if joint.mimic.joint not in path:
        raise InputError(f"joint {joint.name!r} mimics a joint outside the chain: lock it, or calibrate another chain")
    return replace(joint, mimic=Mimic(path.index(joint.mimic.joint), joint.mimic.multiplier, joint.mimic.offset))


def _restricted(arm: Arm, part: Arm, path: tuple[int, ...], poses: Poses) -> Poses:
    """The poses restricted to the joints of the path."""
    if poses.q.shape[1] != arm.n:
        raise InputError(f"q of the poses has {poses.q.shape[1]} joints, {arm.name} has {arm.n}")
    places = [k for k, i in enumerate(arm.chain.independent) if i in path]
    return replace(poses, q=np.ascontiguousarray(poses.q[:, places])) if part is not arm else poses


def chosen(arm: Arm, parameters: str | Sequence[str], kind: str) -> tuple[GeometryConstant, ...]:
    """The constants that may be corrected, in order of preference."""
    model = sorted(_constants(arm), key=lambda constant: KINDS.index(_kind(constant)))
    words = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    names = {constant.name for constant in model}
    for word in words:
        choose("parameters of a calibration", word, ("all", *KINDS, *sorted(names)))
    closed = kind in ("plane", "ball bar")
    wanted = [
        constant
        for constant in model
        if ("all" in words or constant.name in words or _kind(constant) in words)
        and not (closed and _kind(constant) == "base")
    ]
    return tuple(wanted)


def _constants(arm: Arm) -> tuple[GeometryConstant, ...]:
    from armdyn.chain.geometry import geometry_constants

    return geometry_constants(arm.chain)


def _kind(constant: GeometryConstant) -> str:
    return constant.kind.split("_")[0]


def registered(arm: Arm, poses: Poses, wanted: Sequence[GeometryConstant]) -> Arm:
    """The arm with base and tool registered to the measurements, because the device's frame may be anywhere."""
    if poses.position is None:
        return arm
    kinds = {_kind(constant) for constant in wanted}
    if "tool" in kinds and poses.rotation is not None:
        arm = _with_tool_turned(arm, poses, "base" in kinds)
    if "base" not in kinds:
        return arm
    R, t = _best_fit(arm.pose(poses.q)[:, :3, 3], poses.position)
    if np.linalg.norm(_vector(R)) < FAR_AWAY and np.linalg.norm(t) < FAR_AWAY:
        return arm
    return arm.with_base(t, _rpy(R))


def _with_tool_turned(arm: Arm, poses: Poses, base: bool) -> Arm:
    """The arm with the tool rotated to the measured target's axes, if those are far from the tool's."""
    required("scipy")
    from scipy.spatial.transform import Rotation

    assert poses.position is not None
    assert poses.rotation is not None
    T = arm.pose(poses.q)
    R = _best_fit(T[:, :3, 3], poses.position)[0] if base else np.eye(3)
    turns = np.einsum("kia,kib->kab", np.einsum("ij,kja->kia", R, T[:, :3, :3]), poses.rotation)
    mean = Rotation.from_matrix(turns).mean()
    return arm if mean.magnitude() < FAR_AWAY else arm.with_tool(rpy=_rpy(mean.as_matrix()))


def _best_fit(points: Array, measured: Array) -> tuple[Array, Array]:
    """The rotation and translation that best map the points to the measured ones (Kabsch 1976)."""
    a, b = points.mean(axis=0), measured.mean(axis=0)
    U, _, Vt = np.linalg.svd((points - a).T @ (measured - b))
    flip = np.diag([1.0, 1.0, np.sign(np.linalg.det(Vt.T @ U.T)) or 1.0])
    R = Vt.T @ flip @ U.T
    return R, b - R @ a


def _vector(R: Array) -> Array:
    required("scipy")
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(R).as_rotvec())


def _rpy(R: Array) -> Array:
    required("scipy")
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(R).as_euler("xyz"))


def _validated(
    model: ToolModel, poses: Poses, free: tuple[int, ...], robust: str, share: float, seed: int
) -> Validation | None:
    """Predict held-out poses by a fit to the others; None if there are too few poses."""
    if not 0 <= share < 1:
        raise InputError(f"held_out must be a fraction of the poses, at least 0 and below 1, got {share!r}")
    count = round(share * len(poses))
    if count == 0:
        return None
    order = np.random.default_rng(seed).permutation(len(poses))
    out, rest = np.sort(order[:count]), np.sort(order[count:])
    if poses.plane is not None and len(np.unique(poses.plane[rest])) < len(np.unique(poses.plane)):
        return None
    try:
        made: GeometryFit = fit(model, poses.chosen(rest), model.today, free, robust)
    except InputError:  # too few poses to hold some out
        return None
    others = poses.chosen(out)
    closure = None if made.closure is None else made.closure.of(others)
    residual = model.residual(others, made.geometry, closure, list(made.free))[0]
    return Validation(tuple(map(int, out)), residual)

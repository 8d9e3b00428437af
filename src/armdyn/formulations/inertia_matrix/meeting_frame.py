"""The inertia matrix where motions and wrenches meet. Ours.

Source: none; docs/formulations/meeting_frame.rst derives it. It stands on Lin & Fang 1999, eqs.
(7)-(11) and Tables I and III.

Idea: H_ji is the power of joint j's unit motion (w, v) on the wrench (f, t) that composite body i
asks for when joint i accelerates, and may be taken in any frame between j and i. Formulation 1
carries every wrench inwards to frame 1, Formulation 3 every motion outwards to frame i: about n²/2
transports each. Here both go only as far as a frame m in the middle, n²/4 transports in all:

- motions of joints j < m go outwards to m and give H_jk in every frame k they pass,
- wrenches of bodies i > m go inwards to m and give H_ki for nothing in every frame k they pass,
- the pairs j < m < i that are left meet in frame m.

m is where the transports cost least, counted on the arm's geometry (off-line); frames that come near are tried too,
and so are the ends, Formulations 1 (m = 1) and 3 (m = n), whose programs may stand for this one's (`ends` in the
table of formulations). Frames on parallel axes may slide; they stand so that lengths along the axes are met as far
out as possible.

Where that is cheaper, on long arms, all motions and wrenches go to the middle frame by composed placements.

Symbols: w, v: angular velocity and velocity at the origin of the frame; f, t: force and moment about
the origin of the frame; all in the axes of that frame.

Cost: a transport 20M 12A, an entry in passing 5M 4A (motions) or 0 (wrenches), a meeting 6M 5A; general
6R arm as compiled 271M 233A with the composite bodies (Formulation 1: 290M 250A).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from armdyn.algebra import IDENTITY, ZERO, Mat3, Scalar, Tally, Vec3, X, Z, counting
from armdyn.algebra.angle import ZERO_ANGLE
from armdyn.algebra.tally import stage
from armdyn.chain import Chain, Joint
from armdyn.chain.slide import slid_outwards
from armdyn.formulations.composite_bodies.second_moments import second_moments

Matrix = list[list[Scalar]]
Motion = tuple[Vec3, Vec3]  # w, v
Wrench = tuple[Vec3, Vec3]  # f, t

LONG = 14  # joints; from here on composed placements are considered
SLACK = 40  # operations by which sharing may change the order of meeting frames


def inertia_matrix(chain: Chain, q: list[Scalar], m: int | None = None) -> Matrix:
    """H by a meeting in frame m (1 ≤ m ≤ n), by default as costs least."""
    chain = slid_outwards(chain)
    stage("composite bodies")
    bodies = second_moments(chain, q)
    wrenches = [
        body.wrench_of_turn if joint.revolute else body.wrench_of_slide
        for joint, body in zip(chain.joints, bodies, strict=True)
    ]
    stage("formulation")
    if m is None and is_long(chain.joints):
        return gather(chain.joints, q, wrenches)
    return meet(chain.joints, q, wrenches, meeting_frame(chain.joints) if m is None else m)


def ways(chain: Chain) -> list[dict[str, int]]:
    """The meeting frames worth trying: those that look cheapest, the cheapest first."""
    joints = slid_outwards(chain).joints
    return [{}] if is_long(joints) else [{"m": m} for m in meeting_frames(joints)]


def meet(joints: tuple[Joint, ...], q: list[Scalar], wrenches: list[Wrench], m: int) -> Matrix:
    """H_ji = power of unit motion j on wrench i, all entries, the pairs j < m < i in frame m."""
    n = len(joints)
    H: Matrix = [[0] * n for _ in range(n)]
    for k, (joint, wrench) in enumerate(zip(joints, wrenches, strict=True)):
        H[k][k] = along(joint, wrench)
    motions: list[Motion] = []
    for k in range(m):  # base to frame m
        motions = [outwards(joints[k], q[k], motion) for motion in motions]
        for j, motion in enumerate(motions):
            H[j][k] = H[k][j] = power(motion, wrenches[k])
        motions.append((Z, ZERO) if joints[k].revolute else (ZERO, Z))
    carried: list[Wrench] = []
    for k in range(n - 1, m - 1, -1):  # tip to frame m
        for i, wrench in enumerate(carried, k + 1):
            H[k][i] = H[i][k] = along(joints[k], wrench)
        carried = [inwards(joints[k], q[k], wrench) for wrench in (wrenches[k], *carried)]
    for i, wrench in enumerate(carried, m):
        for j, motion in enumerate(motions):
            H[j][i] = H[i][j] = power(motion, wrench)
    return H


def gather(joints: tuple[Joint, ...], q: list[Scalar], wrenches: list[Wrench]) -> Matrix:
    """The same for long arms: all motions and all wrenches in the middle frame, by composed placements.

    A wrench then takes one transport instead of one a joint, and every pair a power.
    """
    n = len(joints)
    placed = _seen_from(joints, q, n // 2)
    motions: list[Motion] = []
    gathered: list[Wrench] = []
    for joint, (f, t), (R, p) in zip(joints, wrenches, placed, strict=True):
        u = R @ Z
        motions.append((u, p.cross(u)) if joint.revolute else (ZERO, u))
        f = R @ f
        gathered.append((f, R @ t + p.cross(f)))
    H: Matrix = [[0] * n for _ in range(n)]
    for i, wrench in enumerate(gathered):
        H[i][i] = along(joints[i], wrenches[i])
        for j, motion in enumerate(motions[:i]):
            H[j][i] = H[i][j] = power(motion, wrench)
    return H


def _seen_from(joints: tuple[Joint, ...], q: list[Scalar], m: int) -> list[tuple[Mat3, Vec3]]:
    """Rotation and origin of every frame in frame m."""
    placed = {m: (IDENTITY, ZERO)}
    for k in range(m + 1, len(joints)):
        A, p = placed[k - 1]
        step = joints[k].rotation(q[k])
        R = Mat3(step.T @ A.r1, step.T @ A.r2, step.T @ A.r3)
        placed[k] = R, p + joints[k].b * (A @ X) + joints[k].extension(q[k]) * (R @ Z)
    for k in range(m - 1, -1, -1):
        A, p = placed[k + 1]
        step = joints[k + 1].rotation(q[k + 1])
        R = Mat3(step @ A.r1, step @ A.r2, step @ A.r3)
        placed[k] = R, p - joints[k + 1].extension(q[k + 1]) * (A @ Z) - joints[k + 1].b * (R @ X)
    return [placed[k] for k in range(len(joints))]


def along(joint: Joint, wrench: Wrench) -> Scalar:
    """What of a wrench in the joint's own frame the joint has to bear."""
    f, t = wrench
    return t.z if joint.revolute else f.z


def power(motion: Motion, wrench: Wrench) -> Scalar:
    """w·t + v·f."""
    (w, v), (f, t) = motion, wrench
    return w.dot(t) + v.dot(f)


def outwards(joint: Joint, q: Scalar, motion: Motion) -> Motion:
    """A motion of the joint's inner frame seen in its outer frame: 20M 12A."""
    w, v = motion
    R, b, d = joint.rotation(q), joint.b, joint.extension(q)
    v = R.T @ Vec3(v.x, v.y + b * w.z, v.z - b * w.y)
    w = R.T @ w
    return w, Vec3(v.x + d * w.y, v.y - d * w.x, v.z)


def inwards(joint: Joint, q: Scalar, wrench: Wrench) -> Wrench:
    """A wrench in the joint's outer frame seen in its inner frame: 20M 12A."""
    f, t = wrench
    R, b, d = joint.rotation(q), joint.b, joint.extension(q)
    t = R @ Vec3(t.x - d * f.y, t.y + d * f.x, t.z)
    f = R @ f
    return f, Vec3(t.x, t.y - b * f.z, t.z + b * f.y)


@lru_cache(maxsize=256)
def meeting_frames(joints: tuple[Joint, ...]) -> tuple[int, ...]:
    """The frames m of least cost, the least first, found on a walk from the middle both ways, downhill."""
    n = len(joints)
    if n <= 3:
        return tuple(range(1, n + 1))  # nothing is carried far enough to gain by a meeting
    middle = (n + 1) // 2
    costs = {middle: _cost(joints, middle)}
    for step in (-1, 1):
        m = middle + step
        while 1 <= m <= n and costs[m - step] <= min(costs.values()) + SLACK:
            costs[m] = _cost(joints, m)
            m += step
    near = [m for m in costs if costs[m] <= min(costs.values()) + SLACK]
    return tuple(sorted(near, key=lambda m: costs[m]))


def meeting_frame(joints: tuple[Joint, ...]) -> int:
    """The m of least cost."""
    return meeting_frames(joints)[0]


@lru_cache(maxsize=256)
def is_long(joints: tuple[Joint, ...]) -> bool:
    """Whether composed placements cost less than meeting half way; below LONG joints they never do."""
    if len(joints) < LONG:
        return False
    m = meeting_frame(joints)
    return _executed(joints, lambda q, wrenches: gather(joints, q, wrenches)) < _cost(joints, m)


def _cost(joints: tuple[Joint, ...], m: int) -> int:
    """Operations of `meet`.

    A body's own wrench has been moved along z and turned about z with the composite body already.
    """

    def shared(q: list[Scalar], wrenches: list[Wrench]) -> None:
        for joint, wrench, q_i in zip(joints[m:], wrenches[m:], q[m:], strict=True):
            inwards(replace(joint, b=0, beta=ZERO_ANGLE, gamma=ZERO_ANGLE), q_i, wrench)

    return _executed(joints, lambda q, wrenches: meet(joints, q, wrenches, m)) - _executed(joints, shared)


def _executed(joints: tuple[Joint, ...], run: Callable[[list[Scalar], list[Wrench]], object]) -> int:
    """Operations at a configuration without zeros; what a wrench holds is taken as general."""
    number = Tally(0.7)
    turn = (Vec3(number, number, 0), Vec3(number, number, number))
    slide = (Vec3(0, 0, number), Vec3(number, number, 0))
    with counting() as counter:
        run([number] * len(joints), [turn if joint.revolute else slide for joint in joints])
    return counter.operations().total

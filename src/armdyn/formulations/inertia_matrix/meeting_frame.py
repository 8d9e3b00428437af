"""The inertia matrix from motions and wrenches that meet in a middle frame. Ours.

Source: none; docs/formulations/meeting_frame.rst derives it. It builds on Lin & Fang 1999, eqs.
(7)-(11) and Tables I and III.

Idea: H_ji is the power of joint j's unit motion (w, v) on the wrench (f, t) of composite body i at unit acceleration of
joint i, and may be computed in any frame between j and i. Formulation 1 propagates every wrench inwards to frame 1,
Formulation 3 every motion outwards to frame i: about n²/2 transports each. Here both go only as far as a frame m in the
middle, n²/4 transports in total:

- motions of joints j < m go outwards to m and give H_jk in every frame k on the way,
- wrenches of bodies i > m go inwards to m and give H_ki, at no cost, in every frame k on the way,
- the remaining pairs j < m < i meet in frame m.

m is where the transports take the fewest operations, counted on the arm's geometry (off-line); frames that come close
are tried too. Formulations 1 and 3 are the limits m = 1 and m = n on Lin & Fang's composite bodies. Frames on parallel
axes may be shifted along them; they are placed so that offsets along the axes are as far out as possible.

In a tree the motions go outwards over a part around the base, chosen in the same way (`formulations.steps`); entries
of joints on different branches are 0. On long arms, if it is cheaper, all motions and wrenches are transformed to the
middle frame directly, by composed placements.

Symbols: w, v: angular velocity and velocity at the origin of the frame; f, t: force and moment about
the origin of the frame; all in the axes of that frame.

Cost: a transport 20M 12A, an entry on the way 5M 4A (motions) or 0 (wrenches), a meeting 6M 5A; general
6R arm as compiled 271M 233A with the composite bodies (Formulation 1: 290M 250A).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from armdyn.algebra import IDENTITY, ZERO, Mat3, Scalar, Tally, Vec3, X, Z, counting
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.algebra.spatial import MotionVector, Wrench, power, unit_motion
from armdyn.algebra.tally import stage
from armdyn.chain import Chain, Joint
from armdyn.chain.canonical import slid_outwards
from armdyn.formulations.composite_bodies.second_moments import second_moments
from armdyn.formulations.steps import Step, all_move, countable, inner_joints, pairs, steps

Matrix = list[list[Scalar]]

PASSING, MEETING = 9, 11  # operations of an entry on the way of a motion, and at a meeting
LONG = 14  # joints; from here on composed placements are considered
SLACK = 40  # operations by which common subexpressions may change the ranking of meeting frames


def inertia_matrix(chain: Chain, q: list[Scalar], m: int | None = None) -> Matrix:
    """H by a meeting in frame m (1 ≤ m ≤ n), by default the cheapest."""
    chain = slid_outwards(chain)
    stage("composite bodies")
    bodies = second_moments(chain, q)
    wrenches = [
        body.wrench_of_turn if joint.revolute else body.wrench_of_slide
        for joint, body in zip(chain.joints, bodies, strict=True)
    ]
    stage("formulation")
    walk = steps(chain, q)
    if not (chain.serial and all_move(q)):
        return meet(walk, wrenches, inner_joints(walk, 1, 1, PASSING, MEETING))
    joints = chain.joints if chain.known_geometry else tuple(map(countable, chain.joints))
    if m is None and is_long(joints):
        return gather(walk, wrenches)
    return meet(walk, wrenches, frozenset(range(meeting_frame(joints) if m is None else m)))


def variants(chain: Chain) -> list[dict[str, int]]:
    """The meeting frames worth trying: those that look cheapest, the cheapest first."""
    joints = slid_outwards(chain).joints
    return [{}] if not (chain.serial and chain.plain) or is_long(joints) else [{"m": m} for m in meeting_frames(joints)]


def meet(walk: list[Step], wrenches: list[Wrench], inner: frozenset[int]) -> Matrix:
    """H_ji = power of unit motion j on wrench i, all entries; motions go outwards over the inner joints only."""
    n = len(walk)
    H: Matrix = [[0] * n for _ in range(n)]
    for k, (step, wrench) in enumerate(zip(walk, wrenches, strict=True)):
        H[k][k] = wrench.along(step.revolute)

    def put(j: int, i: int, motion: MotionVector, wrench: Wrench) -> None:
        H[j][i] = H[i][j] = power(motion, wrench)

    units = [unit_motion(step.revolute) for step in walk]
    pairs(walk, inner, units, wrenches, Step.motion_outward, Step.wrench_inward, put)
    return H


def gather(walk: list[Step], wrenches: list[Wrench]) -> Matrix:
    """The same for long chains: all motions and all wrenches in the middle frame, by composed placements.

    A wrench then takes one transport instead of one per joint, and every pair one scalar product.
    """
    n = len(walk)
    placed = _seen_from(walk, n // 2)
    motions: list[MotionVector] = []
    gathered: list[Wrench] = []
    for step, wrench, (R, p) in zip(walk, wrenches, placed, strict=True):
        u = R @ Z
        motions.append(MotionVector(u, p.cross(u)) if step.revolute else MotionVector(ZERO, u))
        f = R @ wrench.f
        gathered.append(Wrench(f, R @ wrench.n + p.cross(f)))
    H: Matrix = [[0] * n for _ in range(n)]
    for i, wrench in enumerate(gathered):
        H[i][i] = wrenches[i].along(walk[i].revolute)
        for j, motion in enumerate(motions[:i]):
            H[j][i] = H[i][j] = power(motion, wrench)
    return H


def _seen_from(walk: list[Step], m: int) -> list[tuple[Mat3, Vec3]]:
    """Rotation and origin of every frame of a chain in frame m."""
    placed = {m: (IDENTITY, ZERO)}
    for k in range(m + 1, len(walk)):
        A, p = placed[k - 1]
        step = walk[k]
        R = Mat3(step.R.T @ A.r1, step.R.T @ A.r2, step.R.T @ A.r3)
        placed[k] = R, p + step.b * (A @ X) + step.d * (R @ Z)
    for k in range(m - 1, -1, -1):
        A, p = placed[k + 1]
        step = walk[k + 1]
        R = Mat3(step.R @ A.r1, step.R @ A.r2, step.R @ A.r3)
        placed[k] = R, p - step.d * (A @ Z) - step.b * (R @ X)
    return [placed[k] for k in range(len(walk))]


@lru_cache(maxsize=256)
def meeting_frames(joints: tuple[Joint, ...]) -> tuple[int, ...]:
    """The frames m of lowest cost, the lowest first, found by descent from the middle in both directions."""
    n = len(joints)
    if n <= 3:
        return tuple(range(1, n + 1))  # too short to gain by a meeting
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
    """The m of lowest cost."""
    return meeting_frames(joints)[0]


@lru_cache(maxsize=256)
def is_long(joints: tuple[Joint, ...]) -> bool:
    """Whether composed placements cost less than a meeting frame; below LONG joints they never do."""
    if len(joints) < LONG:
        return False
    return _executed(joints, gather) < _cost(joints, meeting_frame(joints))


def _cost(joints: tuple[Joint, ...], m: int) -> int:
    """Operations of `meet`.

    A body's own wrench has already been shifted along z and rotated about z with the composite body.
    """

    def shared(walk: list[Step], wrenches: list[Wrench]) -> None:
        for step, wrench in zip(walk[m:], wrenches[m:], strict=True):
            R = replace(step.R, beta=ZERO_ANGLE, gamma=ZERO_ANGLE)
            replace(step, R=R, b=0).wrench_inward(wrench)

    inner = frozenset(range(m))
    return _executed(joints, lambda walk, wrenches: meet(walk, wrenches, inner)) - _executed(joints, shared)


def _executed(joints: tuple[Joint, ...], run: Callable[[list[Step], list[Wrench]], object]) -> int:
    """Operations on a chain at a generic configuration, with generic wrenches."""
    x = Tally(0.7)
    turn = Wrench(Vec3(x, x, 0), Vec3(x, x, x))
    slide = Wrench(Vec3(0, 0, x), Vec3(x, x, 0))
    with counting() as counter:
        walk = [Step.at(joint, x, i - 1) for i, joint in enumerate(joints)]
        run(walk, [turn if joint.revolute else slide for joint in joints])
    return counter.operations().total

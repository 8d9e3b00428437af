"""Frames: from arbitrary joint axes to normal driving-axis (modified Denavit-Hartenberg) frames.

Idea: z of frame i lies on axis i, x of frame i points along the common normal of axes i and i+1, the
origin is the foot of that normal. The remaining freedom is used to make parameters zero:

| where                         | what is free              | what is done with it                            |
|-------------------------------|---------------------------|-------------------------------------------------|
| first frame                   | frame 0                   | frame 0 is frame 1 at q = 0, the rest is `base` |
| last frame                    | its origin and x          | d = θ = 0                                       |
| parallel axes                 | the origin along the axis | d = 0                                           |
| coincident axes               | x as well                 | θ = 0                                           |
| intersecting or skew axes     | the sign of x             | θ = 0 rather than π, else b > 0                 |
| sliding axes                  | where the axis stands     | as many b and d as possible are zero            |
| fork                          | whose normal x follows    | as many turns and shifts as possible are zero   |

At a fork x of frame i points along the common normal to one of the axes that follow; the others have two more
constants each, a rotation about and a translation along z (Khalil & Kleinfinger 1986). If several joints are
attached to the base, frame 0 is the base itself and `base` is the identity. The frame of a floating base is its
link's own, because its coordinates are the pose of that frame.

Each link is processed in its own frame and with exact numbers, so that one oblique angle in the arm does not
affect the exact constants of the other links.

Nearly parallel axes are ill-conditioned: at an angle ε the common normal is 1/ε away. Such pairs keep the
origin and have a second small angle, γ about y (see `Joint`).

Of a prismatic axis only the direction matters, so it is moved to where parameters vanish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from armdyn.algebra import ZERO, Angle, Mat3, Scalar, Vec3, X, Z, exact
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain.chain import Chain
from armdyn.chain.exactly import NOISE, at, compose, dot, inverse, length, moved, root, rotate, short, unit
from armdyn.chain.joint import MASSLESS, NO_FORCES, Joint, JointForces, Kind, Limit, Link, Mimic, Placement, Tendon
from armdyn.chain.servo import Servo
from armdyn.errors import InputError

PARALLEL = 2e-12  # radians: axes closer than this are parallel; a larger bound would show in the tenth digit
NEARLY = 1e-2  # radians: axes closer than this keep the fifth parameter
_HALF_TURN = Angle.of(math.pi)


class Seat(NamedTuple):
    """A frame on an axis, by its origin and two of its directions."""

    p: Vec3
    x: Vec3
    z: Vec3

    @property
    def placement(self) -> Placement:
        """The same frame as a placement."""
        return Placement(Mat3(self.x, self.z.cross(self.x), self.z).T, self.p)


class FrameStep(NamedTuple):
    """Frame i, and the known part of the transform to frame i+1: b, β, γ and the seat from which d and θ start."""

    seat: Seat
    b: Scalar
    beta: Angle
    gamma: Angle
    onward: Seat


def normal(seat: Seat, u: Vec3, Q: Vec3, parallel: float) -> FrameStep:
    """Frame i, from where d and θ of joint i start and from the next axis: its direction u and a point Q of it."""
    c = seat.z.cross(u)
    apart = math.sqrt(float(c.dot(c)))  # the sine of the angle between the axes
    if apart <= parallel:
        return _parallel(seat, u, Q)
    if apart < NEARLY:
        return _nearly_parallel(seat, u, Q)
    return _skew(seat, u, Q, c)


def _skew(seat: Seat, u: Vec3, Q: Vec3, c: Vec3) -> FrameStep:
    """Axes with one common normal: skew or intersecting."""
    z, w, cc = seat.z, Q - seat.p, reciprocal(c.dot(c))
    foot = short(seat.p + (w.cross(u).dot(c) * cc) * z)
    other = short(Q + (w.cross(z).dot(c) * cc) * u)
    n = unit(c)
    x, b = _signed(n, length(w.dot(n)), seat.x)
    return FrameStep(Seat(foot, x, z), b, angle(z, u, x), ZERO_ANGLE, Seat(other, x, u))


def _parallel(seat: Seat, u: Vec3, Q: Vec3) -> FrameStep:
    """Parallel or antiparallel axes: the normal goes out where joint i's d is 0; coincident ones keep x."""
    z, w = seat.z, Q - seat.p
    w = w - w.dot(z) * z
    b = length(root(w.dot(w)))
    x, b = _signed(across_from(w, z), b, seat.x) if b != 0 else (seat.x, b)
    beta = ZERO_ANGLE if z.dot(u) > 0 else _HALF_TURN
    return FrameStep(Seat(seat.p, x, z), b, beta, ZERO_ANGLE, Seat(seat.p + w, x, u))


def _nearly_parallel(seat: Seat, u: Vec3, Q: Vec3) -> FrameStep:
    """Axes whose common normal is far away: b leads to where the next axis meets the plane normal to this one."""
    z = seat.z
    T = Q + ((seat.p - Q).dot(z) * reciprocal(u.dot(z))) * u
    w = T - seat.p
    w = w - w.dot(z) * z
    b = length(root(w.dot(w)))
    x, b = _signed(across_from(w, z), b, seat.x) if b != 0 else (seat.x, b)
    sine, up, y = float(x.dot(u)), float(z.dot(u)), float(z.cross(x).dot(u))
    # Rx(β) Ry(γ) z = (Sγ, -Sβ Cγ, Cβ Cγ) is the next axis.
    beta, gamma = Angle.of(math.atan2(-y, up), NOISE), Angle.of(math.asin(sine), NOISE)
    return FrameStep(Seat(seat.p, x, z), b, beta, gamma, Seat(T, unit(x - x.dot(u) * u), u))


def _signed(x: Vec3, b: Scalar, before: Vec3) -> tuple[Vec3, Scalar]:
    """The sign of x: the one with θ = 0 if there is one, else the one with b > 0, else the one along its own axes."""
    turn = float(before.dot(x))
    if abs(turn) > 1 - 1e-12:
        return (x, b) if turn > 0 else (-x, -b)
    if b == 0:
        return (x, b) if max(x, key=abs) > 0 else (-x, b)
    return (x, b) if b > 0 else (-x, -b)


def reciprocal(x: Scalar) -> Scalar:
    """1 / x, exact where x is."""
    return 1 / x if isinstance(x, float) else Fraction(1) / x


def angle(a: Vec3, b: Vec3, axis: Vec3) -> Angle:
    """The angle from a to b about the axis, all of length 1."""
    c, s = dot(a, b), dot(a.cross(b), axis)
    return Angle.of(math.atan2(float(s), float(c)), NOISE)


def across_from(v: Vec3, z: Vec3) -> Vec3:
    """The direction of v orthogonalised to z, for v nearly orthogonal to it."""
    x = unit(v)
    along = x.dot(z)
    return x if along == 0 else unit(x - along * z)


def across(z: Vec3) -> Vec3:
    """A direction orthogonal to z: x if possible, else y, orthogonalised to z."""
    zero = z.x * 0
    x = Vec3(1 + zero, zero, zero) if abs(z.x) < 0.9 else Vec3(zero, 1 + zero, zero)
    return across_from(x - x.dot(z) * z, z)


_BASE = Seat(ZERO, X, Z)
_ROUNDING = 1e-9  # metres: what floats leave of a zero


@dataclass(frozen=True)
class GivenBody:
    """A moving link as a file gives it: its frame in the parent's at q = 0, and its joint's axis in its own frame.

    `parent` is the place of its parent among the bodies, -1 for the base; None is the body before.
    """

    kind: Kind
    placement: Placement
    axis: Vec3  # of length 1
    point: Vec3 = ZERO  # a point of the axis
    link: Link = MASSLESS
    name: str = ""
    limit: Limit = Limit()
    rotor_inertia: Scalar = 0
    viscous: Scalar = 0
    coulomb: Scalar = 0
    static: Scalar = 0
    stribeck: Scalar = 0
    forces: JointForces = NO_FORCES
    servo: Servo | None = None
    compensated: Link = MASSLESS
    parent: int | None = None
    mimic: Mimic | None = None


class Placed(NamedTuple):
    """The parameters that lead to frame i and the frame itself, in the frame of its own body."""

    seat: Seat
    b: Scalar
    beta: Angle
    gamma: Angle
    d: Scalar
    theta: Angle
    turn: Angle = ZERO_ANGLE
    shift: Scalar = Fraction(0)
    main: int | None = None  # the child whose common normal x follows


class _Arrival(NamedTuple):
    """What of the way to a frame its parent knows: the constants, and the seat d and θ start from."""

    seat: Seat
    b: Scalar = Fraction(0)
    beta: Angle = ZERO_ANGLE
    gamma: Angle = ZERO_ANGLE
    turn: Angle = ZERO_ANGLE
    shift: Scalar = Fraction(0)


def place(bodies: Sequence[GivenBody], parents: Sequence[int], parallel: float = PARALLEL) -> list[Placed]:
    """Normal driving-axis frames for the axes of these bodies; every child of the base as if it were alone."""
    children: list[list[int]] = [[] for _ in bodies]
    for i, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(i)
    starts = {i: _start(bodies[i]) for i, parent in enumerate(parents) if parent < 0}
    placed = _walk(bodies, children, starts, parallel)
    better = {i: seat for i in starts if (seat := _slide_start(placed, i, parallel)) is not None}
    return _walk(bodies, children, starts | better, parallel) if better else placed


def _start(body: GivenBody) -> Seat:
    return _BASE if body.kind == "free" else Seat(_nearest(body, ZERO), across(body.axis), body.axis)


def _walk(
    bodies: Sequence[GivenBody], children: Sequence[Sequence[int]], starts: dict[int, Seat], parallel: float
) -> list[Placed]:
    placed: list[Placed] = []
    arrivals = {i: _Arrival(seat) for i, seat in starts.items()}
    for i, body in enumerate(bodies):
        to, fixed = arrivals.pop(i), body.kind == "free"
        main = None if fixed else _main(bodies, to.seat, children[i], parallel)
        step = None if main is None else _normal(to.seat, bodies[main], parallel)
        seat = to.seat if step is None else step.seat
        stands = i in starts
        d = Fraction(0) if stands else length((seat.p - to.seat.p).dot(to.seat.z))
        theta = ZERO_ANGLE if stands else angle(to.seat.x, seat.x, to.seat.z)
        placed.append(Placed(seat, to.b, to.beta, to.gamma, d, theta, to.turn, to.shift, main))
        for k in children[i]:
            if k == main and step is not None:
                arrivals[k] = _Arrival(_seen_from(bodies[k], step.onward), step.b, step.beta, step.gamma)
            else:
                arrivals[k] = _beside(seat, bodies[k], parallel)
    return placed


def _beside(seat: Seat, body: GivenBody, parallel: float) -> _Arrival:
    """The way from a frame that is placed already to the axis of a body, with the two constants of a fork."""
    step = _normal(seat, body, parallel)
    turn = angle(seat.x, step.seat.x, seat.z)
    shift = length((step.seat.p - seat.p).dot(seat.z))
    return _Arrival(_seen_from(body, step.onward), step.b, step.beta, step.gamma, turn, shift)


def mounted(to: Placed, body: GivenBody, parallel: float) -> Placed:
    """A frame on the base with the constants that lead to it from the base's own frame."""
    way = _beside(_BASE, body, parallel)
    d = length((to.seat.p - way.seat.p).dot(way.seat.z))
    theta = angle(way.seat.x, to.seat.x, way.seat.z)
    return to._replace(b=way.b, beta=way.beta, gamma=way.gamma, d=d, theta=theta, turn=way.turn, shift=way.shift)


def _main(bodies: Sequence[GivenBody], seat: Seat, children: Sequence[int], parallel: float) -> int | None:
    """The child whose common normal x follows: the one that leaves the fewest constants to the others."""
    if len(children) < 2:
        return children[0] if children else None
    here = Seat(*(Vec3(float(v.x), float(v.y), float(v.z)) for v in seat))  # floats are quick, and exact enough here
    bodies = [numbers(bodies[k], float) for k in children]

    def constants(k: int) -> int:
        frame = _normal(here, bodies[k], parallel).seat
        others = [_normal(frame, body, parallel) for body in bodies if body is not bodies[k]]
        count = (not angle(here.x, frame.x, here.z).is_right) + _apart(frame.p, here.p)
        for way in others:
            count += (not angle(frame.x, way.seat.x, frame.z).is_right) + _apart(way.seat.p, frame.p)
            count += abs(way.b) > _ROUNDING
        return count

    return children[min(range(len(children)), key=constants)]  # the first of equals


def _apart(p: Vec3, q: Vec3) -> bool:
    return any(abs(x) > _ROUNDING for x in p - q)


def _normal(seat: Seat, body: GivenBody, parallel: float) -> FrameStep:
    """The common normal of a seat's axis and a body's, which stands in the same frame."""
    u, Q = short(rotate(body.placement.R, body.axis)), at(body.placement, body.point)
    return normal(seat, u, Q, parallel)


def _seen_from(body: GivenBody, seat: Seat) -> Seat:
    """A seat on the body's axis, given in the parent's frame, in the body's own."""
    inward = inverse(body.placement)
    x = across_from(rotate(inward.R, seat.x), body.axis)
    return Seat(short(_nearest(body, at(inward, seat.p))), short(x), body.axis)


def _slide_start(placed: Sequence[Placed], first: int, parallel: float) -> Seat | None:
    """A better start when a limb begins with parallel axes: the first d and θ after them made zero."""
    start = placed[first].seat
    sign, p, x, coincident = 1, start.p, start.x, True
    main = placed[first].main
    while main is not None:
        to = placed[main]
        if abs(math.sin(to.beta.radians)) > max(parallel, NEARLY):
            return None
        sign = sign if math.cos(to.beta.radians) > 0 else -sign
        coincident = coincident and to.b == 0
        if to.d != 0:
            p = start.p + (sign * to.d) * start.z
        if coincident and to.theta.sin != 0:
            c, s = to.theta.cos, sign * to.theta.sin
            x = across_from(c * start.x + s * start.z.cross(start.x), start.z)
        if p != start.p or x != start.x:
            return Seat(short(p), x, start.z)
        main = to.main
    return None


def numbers(body: GivenBody, number: Callable[[Scalar], Scalar]) -> GivenBody:
    """The body with another kind of number in its geometry."""

    def vector(v: Vec3) -> Vec3:
        return Vec3(number(v.x), number(v.y), number(v.z))

    R, p = body.placement.R, body.placement.p
    placement = Placement(Mat3(*(vector(row) for row in R.rows)), vector(p))
    return replace(body, placement=placement, axis=vector(body.axis), point=vector(body.point))


def _nearest(body: GivenBody, p: Vec3) -> Vec3:
    """The point of the body's axis nearest to p."""
    along: Vec3 = dot(p - body.point, body.axis) * body.axis
    return body.point + along


_MOST = 24  # prismatic axes: with more, the search takes longer than a shorter program is worth


def settled(bodies: list[GivenBody], parents: Sequence[int], parallel: float) -> list[GivenBody]:
    """The bodies with every sliding axis moved to where most parameters vanish."""
    sliding = [i for i, body in enumerate(bodies) if body.kind == "prismatic"]
    if not sliding or len(sliding) > _MOST:
        return bodies
    best, placed = _score(bodies, parents, parallel), place(bodies, parents, parallel)
    for _ in range(3):
        before = best
        for i in sliding:
            here = bodies
            for point in _spots(bodies, parents, placed, i):
                for trial in _with_axis_at(bodies, parents, i, point):
                    score = _score(trial, parents, parallel)
                    if score < best:
                        best, bodies = score, trial
            if bodies is not here:
                placed = place(bodies, parents, parallel)
        if best == before:
            break
    return bodies


def _with_axis_at(bodies: list[GivenBody], parents: Sequence[int], i: int, point: Vec3) -> Iterator[list[GivenBody]]:
    """Sliding axis i through the point: alone, and together with the sliding axes next to it."""
    alone = [*bodies]
    alone[i] = replace(bodies[i], point=point)
    yield alone
    together, spot = [*alone], point
    inner, k = i, parents[i]
    while k >= 0 and bodies[k].kind == "prismatic":
        spot = at(bodies[inner].placement, spot)
        together[k] = replace(bodies[k], point=spot)
        inner, k = k, parents[k]
    spots = {i: point}
    for k in range(i + 1, len(bodies)):
        if parents[k] in spots and bodies[k].kind == "prismatic":
            spots[k] = at(inverse(bodies[k].placement), spots[parents[k]])
            together[k] = replace(bodies[k], point=spots[k])
    if together != alone:
        yield together


def _score(bodies: Sequence[GivenBody], parents: Sequence[int], parallel: float) -> tuple[int, int]:
    """How many parameters do not vanish; tried in floats, which is quick."""
    placed = place([numbers(body, float) for body in bodies], parents, parallel)
    lengths = sum((abs(to.b) > 1e-9) + (abs(to.d) > 1e-9) + (abs(to.shift) > 1e-9) for to in placed)
    odd = sum((not to.theta.is_right) + (not to.turn.is_right) for to in placed)
    return lengths + odd, sum(abs(to.b) > 1e-9 for to in placed)


def _spots(bodies: Sequence[GivenBody], parents: Sequence[int], placed: Sequence[Placed], i: int) -> list[Vec3]:
    """Points worth trying for sliding axis i, in the frame of body i.

    F is where d of the axis before starts, G the origin on an axis after. The axis may run through
    either, or through a point F + c₁v₁ that is one of c₁v₁ + t a + c₂v₂ = G - F, with v₁ along the axis
    before (then b = 0) or across it and a (then its d = 0), and v₂ likewise on the other side.
    """
    a, spots = bodies[i].axis, []
    before = None
    if parents[i] >= 0:
        inward, near = inverse(bodies[i].placement), placed[parents[i]]
        F, v = at(inward, near.seat.p - near.d * near.seat.z), rotate(inward.R, near.seat.z)
        before = (F, (v, v.cross(a)))
        spots.append(F)
    for k in (k for k, parent in enumerate(parents) if parent == i):
        outward, near = bodies[k].placement, placed[k]
        G, v = at(outward, near.seat.p), rotate(outward.R, near.seat.z)
        spots.append(G)
        for v1 in before[1] if before else ():
            for v2 in (v, v.cross(a)):
                side = a.cross(v2)
                volume = v1.dot(side)
                if before and abs(float(volume)) > 1e-6:
                    spots.append(before[0] + ((G - before[0]).dot(side) * reciprocal(volume)) * v1)
    return [short(spot) for spot in spots]


__all__ = ["NEARLY", "PARALLEL", "GivenBody", "build"]


def build(
    bodies: Sequence[GivenBody],
    tool: Placement = Placement(),
    gravity: Vec3 = Vec3(Fraction(0), Fraction(0), Fraction(-981, 100)),
    parallel: float = PARALLEL,
    tendons: tuple[Tendon, ...] = (),
) -> tuple[Chain, tuple[Placement, ...]]:
    """The tree of these bodies, and the placement of each body's own frame in its normal driving-axis frame.

    Parents come before their children. `tool` is given in the last body's own frame and means nothing where there
    are several tips. A joint's own zero is kept. Axes closer than `parallel` (radians) are taken as parallel.
    """
    if not bodies:
        raise InputError("an arm needs at least one moving joint, got none")
    parents = parents_of(bodies)
    bodies = settled([numbers(body, _exact) for body in bodies], parents, parallel)
    placed = place(bodies, parents, parallel)
    first = bodies[0]
    if first.kind == "free":
        base = first.placement
    elif parents.count(-1) == 1:
        base = compose(first.placement, placed[0].seat.placement)
    else:
        base = Placement()
        fixed = zip(placed, bodies, parents, strict=True)
        placed = [mounted(to, body, parallel) if parent < 0 else to for to, body, parent in fixed]
    own = [inverse(to.seat.placement) for to in placed]
    joints = tuple(_joint(body, to) for body, to in zip(bodies, placed, strict=True))
    links = tuple(moved(body.link, here) for body, here in zip(bodies, own, strict=True))
    lifted = tuple(moved(body.compensated, here) for body, here in zip(bodies, own, strict=True))
    one_tip = sum(i not in parents for i in range(len(bodies))) == 1
    end = compose(own[-1], tool) if one_tip else Placement()
    weights = (replace(link, inertia=MASSLESS.inertia) for link in lifted)  # an inertia is no weight
    compensated = tuple(weights) if any(link.mass != 0 for link in lifted) else ()
    tree = Chain(
        joints, links, gravity=gravity, base=base, tool=end, parents=parents, tendons=tendons, compensated=compensated
    )
    return tree, tuple(own)


def _joint(body: GivenBody, to: Placed) -> Joint:
    return Joint(
        kind=body.kind,
        b=to.b,
        beta=to.beta,
        d=to.d,
        theta=to.theta,
        gamma=to.gamma,
        name=body.name,
        limit=body.limit,
        rotor_inertia=body.rotor_inertia,
        viscous=body.viscous,
        coulomb=body.coulomb,
        static=body.static,
        stribeck=body.stribeck,
        forces=body.forces,
        servo=body.servo,
        turn=to.turn,
        shift=to.shift,
        mimic=body.mimic,
    )


def parents_of(bodies: Sequence[GivenBody]) -> tuple[int, ...]:
    """The parent of every body, -1 for the base."""
    return tuple(i - 1 if body.parent is None else body.parent for i, body in enumerate(bodies))


def _exact(x: Scalar) -> Scalar:
    return x if isinstance(x, int | Fraction) else exact(x)

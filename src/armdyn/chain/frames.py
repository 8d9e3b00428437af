"""Frames: from joint axes standing anywhere to normal driving-axis (modified Denavit-Hartenberg) frames.

Idea: z of frame i lies on axis i, x of frame i points along the common normal of axes i and i+1, the
origin is the foot of that normal. The freedom that is left makes parameters zero:

| where                         | what is free              | what is done with it                            |
|-------------------------------|---------------------------|-------------------------------------------------|
| first frame                   | frame 0                   | frame 0 is frame 1 at q = 0, the rest is `base` |
| last frame                    | its origin and x          | d = θ = 0                                       |
| parallel axes                 | the origin along the axis | d = 0                                           |
| coincident axes               | x as well                 | θ = 0                                           |
| intersecting or skew axes     | the sign of x             | θ = 0 rather than π, else b > 0                 |
| sliding axes                  | where the axis stands     | as many b and d as possible are zero            |

The trap is axes a little off parallel: at ε from parallel the common normal runs 1/ε away. Such pairs
keep the origin where it is and take a second small angle, γ about y (see `Joint`).

Work is done link by link in the links' own frames and with exact numbers, so that one odd angle in the
arm does not spoil the exact constants of the other links.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NamedTuple

from armdyn.algebra import ZERO, Angle, Mat3, Scalar, Vec3, exact
from armdyn.algebra.angle import ZERO_ANGLE
from armdyn.chain.chain import Chain
from armdyn.chain.exactly import NOISE, at, compose, dot, inverse, length, moved, root, rotate, short, unit
from armdyn.chain.joint import Joint, Limit
from armdyn.chain.link import MASSLESS, Link
from armdyn.chain.placement import Placement
from armdyn.errors import InputError

PARALLEL = 2e-12  # radians: axes closer than this are parallel; a larger bound would show in the tenth digit
NEARLY = 1e-2  # radians: axes closer than this keep the fifth parameter
_HALF_TURN = Angle.of(math.pi)


@dataclass(frozen=True)
class Body:
    """A moving link as a file gives it: its frame in the parent's at q = 0, and its joint's axis in its own frame."""

    kind: Literal["revolute", "prismatic"]
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


class Seat(NamedTuple):
    """A frame on an axis, by its origin and two of its directions."""

    p: Vec3
    x: Vec3
    z: Vec3

    @property
    def placement(self) -> Placement:
        """The same frame as a placement."""
        return Placement(Mat3(self.x, self.z.cross(self.x), self.z).T, self.p)


class Placed(NamedTuple):
    """The parameters that lead to frame i and the frame itself, in the frame of its own body."""

    seat: Seat
    b: Scalar
    beta: Angle
    gamma: Angle
    d: Scalar
    theta: Angle


class _Step(NamedTuple):
    """Frame i, and what of the way to frame i+1 is known there: b, β, γ and the seat d and θ start from."""

    seat: Seat
    b: Scalar
    beta: Angle
    gamma: Angle
    onward: Seat | None


def build(
    bodies: Sequence[Body],
    tool: Placement = Placement(),
    gravity: Vec3 = Vec3(Fraction(0), Fraction(0), Fraction(-981, 100)),
    parallel: float = PARALLEL,
) -> tuple[Chain, tuple[Placement, ...]]:
    """The chain of these bodies, and where each body's own frame stands in its normal driving-axis frame.

    `tool` is given in the last body's own frame. A joint's own zero is kept. Axes closer than
    `parallel` (radians) are taken as parallel.
    """
    if not bodies:
        raise InputError("an arm needs at least one moving joint, got none")
    bodies = _settle_sliding_axes([_numbers(body, _exact) for body in bodies], parallel)
    placed = place(bodies, parallel)
    joints, links, own = [], [], []
    for body, to in zip(bodies, placed, strict=True):
        joints.append(
            Joint(
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
            )
        )
        own.append(inverse(to.seat.placement))
        links.append(moved(body.link, own[-1]))
    base = compose(bodies[0].placement, placed[0].seat.placement)
    chain = Chain(tuple(joints), tuple(links), gravity=gravity, base=base, tool=compose(own[-1], tool))
    return chain, tuple(own)


def place(bodies: Sequence[Body], parallel: float = PARALLEL) -> list[Placed]:
    """Normal driving-axis frames for the axes of these bodies."""
    first = bodies[0]
    start = Seat(_nearest(first, ZERO), _across(first.axis), first.axis)
    placed = _walk(bodies, start, parallel)
    better = _slide_start(placed, parallel)
    return _walk(bodies, better, parallel) if better is not None else placed


def _walk(bodies: Sequence[Body], start: Seat, parallel: float) -> list[Placed]:
    seat, b, beta, gamma = start, Fraction(0), ZERO_ANGLE, ZERO_ANGLE
    placed: list[Placed] = []
    for i in range(len(bodies)):
        after = bodies[i + 1] if i + 1 < len(bodies) else None
        step = _frame(seat, after, parallel)
        d = length((step.seat.p - seat.p).dot(seat.z)) if i else Fraction(0)
        theta = _angle(seat.x, step.seat.x, seat.z) if i else ZERO_ANGLE
        placed.append(Placed(step.seat, b, beta, gamma, d, theta))
        if after is not None and step.onward is not None:
            b, beta, gamma = step.b, step.beta, step.gamma
            seat = _seen_from(after, step.onward)
    return placed


def _seen_from(body: Body, seat: Seat) -> Seat:
    """A seat on the body's axis, given in the parent's frame, in the body's own."""
    inward = inverse(body.placement)
    x = _across_from(rotate(inward.R, seat.x), body.axis)
    return Seat(short(_nearest(body, at(inward, seat.p))), short(x), body.axis)


def _frame(seat: Seat, after: Body | None, parallel: float) -> _Step:
    """Frame i, from where d and θ of joint i start and from the next body's axis."""
    if after is None:
        return _Step(seat, Fraction(0), ZERO_ANGLE, ZERO_ANGLE, None)
    u, Q = short(rotate(after.placement.R, after.axis)), at(after.placement, after.point)
    c = seat.z.cross(u)
    apart = math.sqrt(float(c.dot(c)))  # the sine of the angle between the axes
    if apart <= parallel:
        return _parallel(seat, u, Q)
    if apart < NEARLY:
        return _nearly_parallel(seat, u, Q)
    return _skew(seat, u, Q, c)


def _skew(seat: Seat, u: Vec3, Q: Vec3, c: Vec3) -> _Step:
    """Axes with one common normal: skew or intersecting."""
    z, w, cc = seat.z, Q - seat.p, _reciprocal(c.dot(c))
    foot = short(seat.p + (w.cross(u).dot(c) * cc) * z)
    other = short(Q + (w.cross(z).dot(c) * cc) * u)
    n = unit(c)
    x, b = _signed(n, length(w.dot(n)), seat.x)
    return _Step(Seat(foot, x, z), b, _angle(z, u, x), ZERO_ANGLE, Seat(other, x, u))


def _parallel(seat: Seat, u: Vec3, Q: Vec3) -> _Step:
    """Parallel or antiparallel axes: the normal goes out where joint i's d is 0; coincident ones keep x."""
    z, w = seat.z, Q - seat.p
    w = w - w.dot(z) * z
    b = length(root(w.dot(w)))
    x, b = _signed(_across_from(w, z), b, seat.x) if b != 0 else (seat.x, b)
    beta = ZERO_ANGLE if z.dot(u) > 0 else _HALF_TURN
    return _Step(Seat(seat.p, x, z), b, beta, ZERO_ANGLE, Seat(seat.p + w, x, u))


def _nearly_parallel(seat: Seat, u: Vec3, Q: Vec3) -> _Step:
    """Axes whose common normal runs away: b leads to where the next axis meets the plane across this one."""
    z = seat.z
    T = Q + ((seat.p - Q).dot(z) * _reciprocal(u.dot(z))) * u
    w = T - seat.p
    w = w - w.dot(z) * z
    b = length(root(w.dot(w)))
    x, b = _signed(_across_from(w, z), b, seat.x) if b != 0 else (seat.x, b)
    sine, up, y = float(x.dot(u)), float(z.dot(u)), float(z.cross(x).dot(u))
    # Rx(β) Ry(γ) z = (Sγ, -Sβ Cγ, Cβ Cγ) is the next axis.
    beta, gamma = Angle.of(math.atan2(-y, up), NOISE), Angle.of(math.asin(sine), NOISE)
    return _Step(Seat(seat.p, x, z), b, beta, gamma, Seat(T, unit(x - x.dot(u) * u), u))


def _slide_start(placed: Sequence[Placed], parallel: float) -> Seat | None:
    """A better start when the arm begins with parallel axes: the first d and θ after them made zero."""
    start = placed[0].seat
    sign, p, x, coincident = 1, start.p, start.x, True
    for to in placed[1:]:
        if abs(math.sin(to.beta.radians)) > max(parallel, NEARLY):
            return None
        sign = sign if math.cos(to.beta.radians) > 0 else -sign
        coincident = coincident and to.b == 0
        if to.d != 0:
            p = start.p + (sign * to.d) * start.z
        if coincident and to.theta.sin != 0:
            c, s = to.theta.cos, sign * to.theta.sin
            x = _across_from(c * start.x + s * start.z.cross(start.x), start.z)
        if p != start.p or x != start.x:
            return Seat(short(p), x, start.z)
    return None


def _signed(x: Vec3, b: Scalar, before: Vec3) -> tuple[Vec3, Scalar]:
    """The sign of x: the one with θ = 0 if there is one, else the one with b > 0, else the one along its own axes."""
    turn = float(before.dot(x))
    if abs(turn) > 1 - 1e-12:
        return (x, b) if turn > 0 else (-x, -b)
    if b == 0:
        return (x, b) if max(x, key=abs) > 0 else (-x, b)
    return (x, b) if b > 0 else (-x, -b)


def _settle_sliding_axes(bodies: list[Body], parallel: float) -> list[Body]:
    """The bodies with every sliding axis moved to where most parameters vanish (its direction is all that matters)."""
    sliding = [i for i, body in enumerate(bodies) if body.kind == "prismatic"]
    best = _score(bodies, parallel) if sliding else (0, 0)
    for _ in range(3):
        before = best
        for i in sliding:
            for point in _spots(bodies, place(bodies, parallel), i):
                for trial in _with_axis_at(bodies, i, point):
                    score = _score(trial, parallel)
                    if score < best:
                        best, bodies = score, trial
        if best == before:
            break
    return bodies


def _with_axis_at(bodies: list[Body], i: int, point: Vec3) -> Iterator[list[Body]]:
    """Sliding axis i through the point: alone, and together with the sliding axes next to it."""
    alone = [*bodies]
    alone[i] = replace(bodies[i], point=point)
    yield alone
    together, spot = [*alone], point
    for k in range(i - 1, -1, -1):
        if bodies[k].kind != "prismatic":
            break
        spot = at(bodies[k + 1].placement, spot)
        together[k] = replace(bodies[k], point=spot)
    spot = point
    for k in range(i + 1, len(bodies)):
        if bodies[k].kind != "prismatic":
            break
        spot = at(inverse(bodies[k].placement), spot)
        together[k] = replace(bodies[k], point=spot)
    if together != alone:
        yield together


def _score(bodies: Sequence[Body], parallel: float) -> tuple[int, int]:
    """How many parameters do not vanish; tried in floats, which is quick."""
    placed = place([_numbers(body, float) for body in bodies], parallel)
    lengths = sum((abs(to.b) > 1e-9) + (abs(to.d) > 1e-9) for to in placed)
    odd = sum(not to.theta.is_right for to in placed)
    return lengths + odd, sum(abs(to.b) > 1e-9 for to in placed)


def _spots(bodies: Sequence[Body], placed: Sequence[Placed], i: int) -> list[Vec3]:
    """Points worth trying for sliding axis i, in the frame of body i.

    F is where d of the axis before starts, G the origin on the axis after. The axis may run through
    either, or through a point F + c₁v₁ that is one of c₁v₁ + t a + c₂v₂ = G - F, with v₁ along the axis
    before (then b = 0) or across it and a (then its d = 0), and v₂ likewise on the other side.
    """
    a, spots = bodies[i].axis, []
    before = after = None
    if i > 0:
        inward, near = inverse(bodies[i].placement), placed[i - 1]
        F, v = at(inward, near.seat.p - near.d * near.seat.z), rotate(inward.R, near.seat.z)
        before = (F, (v, v.cross(a)))
        spots.append(F)
    if i + 1 < len(bodies):
        outward, near = bodies[i + 1].placement, placed[i + 1]
        G, v = at(outward, near.seat.p), rotate(outward.R, near.seat.z)
        after = (G, (v, v.cross(a)))
        spots.append(G)
    if before and after:
        for v1 in before[1]:
            for v2 in after[1]:
                side = a.cross(v2)
                volume = v1.dot(side)
                if abs(float(volume)) > 1e-6:
                    spots.append(before[0] + ((after[0] - before[0]).dot(side) * _reciprocal(volume)) * v1)
    return [short(spot) for spot in spots]


def _numbers(body: Body, number: Callable[[Scalar], Scalar]) -> Body:
    """The body with another kind of number in its geometry."""

    def vector(v: Vec3) -> Vec3:
        return Vec3(number(v.x), number(v.y), number(v.z))

    R, p = body.placement.R, body.placement.p
    placement = Placement(Mat3(*(vector(row) for row in R.rows)), vector(p))
    return replace(body, placement=placement, axis=vector(body.axis), point=vector(body.point))


def _exact(x: Scalar) -> Scalar:
    return x if isinstance(x, int | Fraction) else exact(x)


def _reciprocal(x: Scalar) -> Scalar:
    return 1 / x if isinstance(x, float) else Fraction(1) / x


def _angle(a: Vec3, b: Vec3, axis: Vec3) -> Angle:
    """The angle from a to b about the axis, all of length 1."""
    c, s = dot(a, b), dot(a.cross(b), axis)
    return Angle.of(math.atan2(float(s), float(c)), NOISE)


def _across_from(v: Vec3, z: Vec3) -> Vec3:
    """The direction of v across z, for v nearly across it."""
    x = unit(v)
    along = x.dot(z)
    return x if along == 0 else unit(x - along * z)


def _across(z: Vec3) -> Vec3:
    """A direction across z: x if it can be, else y, made square to z."""
    zero = z.x * 0
    x = Vec3(1 + zero, zero, zero) if abs(z.x) < 0.9 else Vec3(zero, 1 + zero, zero)
    return _across_from(x - x.dot(z) * z, z)


def _nearest(body: Body, p: Vec3) -> Vec3:
    """The point of the body's axis nearest to p."""
    along: Vec3 = dot(p - body.point, body.axis) * body.axis
    return body.point + along

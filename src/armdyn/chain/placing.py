"""Placing frames on the axes of a tree of bodies; see `armdyn.chain.frames` for what is placed where."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from armdyn.algebra import ZERO, Angle, Mat3, Scalar, Vec3, X, Z
from armdyn.algebra.angle import ZERO_ANGLE
from armdyn.chain.axes import NEARLY, PARALLEL, Seat, Step, across, across_from, angle, normal
from armdyn.chain.exactly import at, dot, inverse, length, rotate, short
from armdyn.chain.joint import Kind, Limit, Mimic
from armdyn.chain.joint_forces import NO_FORCES, JointForces
from armdyn.chain.link import MASSLESS, Link
from armdyn.chain.placement import Placement
from armdyn.chain.servo import Servo

_BASE = Seat(ZERO, X, Z)
_ROUNDING = 1e-9  # metres: what floats leave of a zero


@dataclass(frozen=True)
class Body:
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


def place(bodies: Sequence[Body], parents: Sequence[int], parallel: float = PARALLEL) -> list[Placed]:
    """Normal driving-axis frames for the axes of these bodies; every child of the base as if it were alone."""
    children: list[list[int]] = [[] for _ in bodies]
    for i, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(i)
    starts = {i: _start(bodies[i]) for i, parent in enumerate(parents) if parent < 0}
    placed = _walk(bodies, children, starts, parallel)
    better = {i: seat for i in starts if (seat := _slide_start(placed, i, parallel)) is not None}
    return _walk(bodies, children, starts | better, parallel) if better else placed


def _start(body: Body) -> Seat:
    return _BASE if body.kind == "free" else Seat(_nearest(body, ZERO), across(body.axis), body.axis)


def _walk(
    bodies: Sequence[Body], children: Sequence[Sequence[int]], starts: dict[int, Seat], parallel: float
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


def _beside(seat: Seat, body: Body, parallel: float) -> _Arrival:
    """The way from a frame that is placed already to the axis of a body, with the two constants of a fork."""
    step = _normal(seat, body, parallel)
    turn = angle(seat.x, step.seat.x, seat.z)
    shift = length((step.seat.p - seat.p).dot(seat.z))
    return _Arrival(_seen_from(body, step.onward), step.b, step.beta, step.gamma, turn, shift)


def mounted(to: Placed, body: Body, parallel: float) -> Placed:
    """A frame on the base with the constants that lead to it from the base's own frame."""
    way = _beside(_BASE, body, parallel)
    d = length((to.seat.p - way.seat.p).dot(way.seat.z))
    theta = angle(way.seat.x, to.seat.x, way.seat.z)
    return to._replace(b=way.b, beta=way.beta, gamma=way.gamma, d=d, theta=theta, turn=way.turn, shift=way.shift)


def _main(bodies: Sequence[Body], seat: Seat, children: Sequence[int], parallel: float) -> int | None:
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


def _normal(seat: Seat, body: Body, parallel: float) -> Step:
    """The common normal of a seat's axis and a body's, which stands in the same frame."""
    u, Q = short(rotate(body.placement.R, body.axis)), at(body.placement, body.point)
    return normal(seat, u, Q, parallel)


def _seen_from(body: Body, seat: Seat) -> Seat:
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


def numbers(body: Body, number: Callable[[Scalar], Scalar]) -> Body:
    """The body with another kind of number in its geometry."""

    def vector(v: Vec3) -> Vec3:
        return Vec3(number(v.x), number(v.y), number(v.z))

    R, p = body.placement.R, body.placement.p
    placement = Placement(Mat3(*(vector(row) for row in R.rows)), vector(p))
    return replace(body, placement=placement, axis=vector(body.axis), point=vector(body.point))


def _nearest(body: Body, p: Vec3) -> Vec3:
    """The point of the body's axis nearest to p."""
    along: Vec3 = dot(p - body.point, body.axis) * body.axis
    return body.point + along

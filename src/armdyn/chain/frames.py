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
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from armdyn.algebra import Scalar, Vec3, exact
from armdyn.chain.axes import NEARLY, PARALLEL
from armdyn.chain.chain import Chain
from armdyn.chain.exactly import compose, inverse, moved
from armdyn.chain.joint import Joint
from armdyn.chain.placement import Placement
from armdyn.chain.placing import Body, Placed, mounted, numbers, place
from armdyn.chain.sliding import settled
from armdyn.errors import InputError

__all__ = ["NEARLY", "PARALLEL", "Body", "build"]


def build(
    bodies: Sequence[Body],
    tool: Placement = Placement(),
    gravity: Vec3 = Vec3(Fraction(0), Fraction(0), Fraction(-981, 100)),
    parallel: float = PARALLEL,
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
    one_tip = sum(i not in parents for i in range(len(bodies))) == 1
    end = compose(own[-1], tool) if one_tip else Placement()
    return Chain(joints, links, gravity=gravity, base=base, tool=end, parents=parents), tuple(own)


def _joint(body: Body, to: Placed) -> Joint:
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


def parents_of(bodies: Sequence[Body]) -> tuple[int, ...]:
    """The parent of every body, -1 for the base."""
    return tuple(i - 1 if body.parent is None else body.parent for i, body in enumerate(bodies))


def _exact(x: Scalar) -> Scalar:
    return x if isinstance(x, int | Fraction) else exact(x)

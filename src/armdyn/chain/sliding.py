"""Positions of prismatic axes: only their direction matters, so they are moved to where parameters vanish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from armdyn.algebra import Vec3
from armdyn.chain.axes import reciprocal
from armdyn.chain.exactly import at, inverse, rotate, short
from armdyn.chain.placing import Body, Placed, numbers, place

_MOST = 24  # prismatic axes: with more, the search takes longer than a shorter program is worth


def settled(bodies: list[Body], parents: Sequence[int], parallel: float) -> list[Body]:
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


def _with_axis_at(bodies: list[Body], parents: Sequence[int], i: int, point: Vec3) -> Iterator[list[Body]]:
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


def _score(bodies: Sequence[Body], parents: Sequence[int], parallel: float) -> tuple[int, int]:
    """How many parameters do not vanish; tried in floats, which is quick."""
    placed = place([numbers(body, float) for body in bodies], parents, parallel)
    lengths = sum((abs(to.b) > 1e-9) + (abs(to.d) > 1e-9) + (abs(to.shift) > 1e-9) for to in placed)
    odd = sum((not to.theta.is_right) + (not to.turn.is_right) for to in placed)
    return lengths + odd, sum(abs(to.b) > 1e-9 for to in placed)


def _spots(bodies: Sequence[Body], parents: Sequence[int], placed: Sequence[Placed], i: int) -> list[Vec3]:
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

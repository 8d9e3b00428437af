"""Composite bodies from the links' natural parameters.

Source: Lin & Fang 1999, eqs. (3)-(5), as a recursion from the tip to the base.

Idea: composite body i is link i rigidly joined to composite body i+1; transforming a body to the next frame rotates its
first moment and inertia and adds the terms of the parallel-axis theorem.

Symbols (paper | code): m̂ᵢ | mass, ĉᵢ⟨i⟩ | moment, Ĵᵢ⟨i⟩ | inertia (about the origin of frame i), ⁱ⁺¹ᵢs⟨i⟩ | s.

Cost claimed: none printed; the minimal parameters (`minimal.py`) exist because this costs more.
"""

from __future__ import annotations

from armdyn.algebra import Vec3, Z
from armdyn.algebra.spatial import parallel_axis
from armdyn.chain import Chain, Link
from armdyn.formulations.steps import Step


def composite_bodies(chain: Chain, steps: list[Step]) -> list[Link]:
    """(m̂, ĉ, Ĵ) of every composite body, base to tip, each in its own frame."""
    bodies = [chain.links[-1]]
    for link, step in zip(chain.links[-2::-1], steps[:0:-1], strict=True):
        bodies.append(link + inwards(bodies[-1], step))
    return bodies[::-1]


def inwards(body: Link, step: Step) -> Link:
    """A body of frame i in frame i-1: shifted by d along z of frame i and by b along x of frame i-1."""
    lift = body.mass * step.d
    c, d = body.moment, step.d
    lifted = body.inertia + parallel_axis(d * Z, Vec3(c.x, c.y, c.z + lift / 2))
    c = step.R @ Vec3(c.x, c.y, c.z + lift)
    push = body.mass * step.b
    moved = step.R.similarity(lifted) + parallel_axis(Vec3(step.b, 0, 0), Vec3(c.x + push / 2, c.y, c.z))
    return Link(body.mass, Vec3(c.x + push, c.y, c.z), moved)

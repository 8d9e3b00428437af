"""Lin's earlier method: the partial derivatives of every link's velocities, summed link by link.

Source: described in the introduction of Lin 1991 (its ref. 13); its steps and equations are not printed there.

Idea: H_mj = Σ_k m_k ∂v_k/∂q̇_m · ∂v_k/∂q̇_j + ∂ω_k/∂q̇_m · I_k ∂ω_k/∂q̇_j, with v_k the velocity of link k's mass
centre and I_k the inertia about it. The derivatives are carried outwards from frame to frame, so a triple (m, j, k)
takes 7M 6A: this explains the paper's cubic terms exactly.

Symbols (paper | code): ∂ω_k/∂q̇_j | u, the lever from joint j to the origin of frame k | s, ∂v_k/∂q̇_j | v.

Cost claimed (Table I, n revolute joints): (7/6n³+33/2n²-107/3n+19)M (n³+13.5n²-28.5n+14)A.

Executed: (7/6n³+37/2n²-107/3n+16)M (n³+13.5n²-25.5n+11)A: the cubic terms, the n² additions and the linear
multiplications are as printed. A pair (joint, link) takes 4M more than the print, whose arrangement is not known.

A link without mass has no centre; its frame's origin is taken, about which it must have no first moment either.
"""

from __future__ import annotations

from dataclasses import dataclass

from armdyn.algebra import ZERO, Scalar, Vec3, Z
from armdyn.algebra.tally import stage
from armdyn.chain import Chain, Link
from armdyn.errors import InputError
from armdyn.formulations.steps import Matrix, Step, filled, steps


@dataclass(frozen=True, slots=True)
class Share:
    """What a unit rate of one joint does to the current link."""

    revolute: bool
    u: Vec3  # the joint's axis
    s: Vec3  # from the joint to the origin of the link's frame

    def outwards(self, step: Step, last: bool) -> Share:
        """The same in the next link's frame; `last` is the joint of the current frame, whose axis is a row of R."""
        u = step.parent_axis if last else step.R.T @ self.u
        if not self.revolute:
            return Share(False, u, ZERO)
        return Share(True, u, step.free_offset if last else step.R.T @ (self.s + step.origin))

    def velocity(self, c: Vec3) -> Vec3:
        """The velocity of a point c of the link."""
        return self.u.cross(self.s + c) if self.revolute else self.u


def must_have_centres(chain: Chain, method: str) -> None:
    """An error for a link with a first moment but no mass."""
    if any(link.mass == 0 and any(x != 0 for x in link.moment) for link in chain.links):
        raise InputError(
            f"{method} needs centres of mass, and a link of this arm has a first moment but no mass; methods that do "
            "not: lin_fang_1 … lin_fang_5, lin_1991, renaud, gibbs_appell, denoc, meeting_frame"
        )


def shares(path: list[Step]) -> list[list[Share]]:
    """For every link, the shares of the joints up to its own, base to tip."""
    rows: list[list[Share]] = []
    for step in path:
        before = rows[-1] if rows else []
        carried = [one.outwards(step, one is before[-1]) for one in before]
        rows.append([*carried, Share(step.revolute, Z, ZERO)])
    return rows


def inertia_matrix(chain: Chain, q: list[Scalar]) -> Matrix:
    """H(q), the sum over all links."""
    must_have_centres(chain, "lin_cubic")
    stage("velocities")
    per_link = shares(steps(chain, q))
    columns: list[list[Scalar]] = [[] for _ in chain.links]
    for k, (link, own) in reversed(list(enumerate(zip(chain.links, per_link, strict=True)))):
        stage("velocities")
        velocities = [one.velocity(link.com) for one in own]
        momenta = [_spin(link, one) for one in own]
        stage("entries")
        for j in range(k + 1):
            for m in range(j + 1):
                part = link.mass * velocities[m].dot(velocities[j])
                if own[m].revolute and own[j].revolute:
                    part = part + own[m].u.dot(momenta[j])
                if m < len(columns[j]):
                    columns[j][m] = columns[j][m] + part
                else:
                    columns[j].append(part)
    return filled(columns)


def _spin(link: Link, share: Share) -> Vec3:
    """The angular momentum of the link about its mass centre."""
    return link.inertia_about_com @ share.u if share.revolute else ZERO

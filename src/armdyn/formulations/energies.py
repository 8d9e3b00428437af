"""Gravity load, momentum and energies by recursion over the links.

Source: the definitions, with the regrouped second moments of `inverse_dynamics.second_moments`. `reference` has the
plain sums over links in base axes.
"""

from __future__ import annotations

from dataclasses import replace

from armdyn.algebra import ZERO, Scalar, Vec3, sign
from armdyn.algebra.spatial import NO_MOTION, MotionVector
from armdyn.algebra.tally import named
from armdyn.chain import Chain
from armdyn.formulations import reference
from armdyn.formulations.inverse_dynamics import second_moments
from armdyn.formulations.inverse_dynamics.newton_euler_mlc import accounts
from armdyn.formulations.registry import Formulation, definition, recursive
from armdyn.formulations.steps import Step, collect, steps


def gravity_load(chain: Chain, q: list[Scalar]) -> list[Scalar]:
    """g(q): the joint forces that hold the arm at rest."""
    still: list[Scalar] = [0] * chain.n
    return second_moments.inverse_dynamics(chain, q, still, still)


def gravity_load_of_moments(chain: Chain, q: list[Scalar]) -> list[Scalar]:
    """g(q) from gravity carried outwards and first moments carried inwards, which depend on disjoint sets of joints.

    The weight of the subtree beyond joint i acts on it through (g × k)_z, where g depends on the joints up to i alone
    and k on those beyond it. Enclosures over ranges of q are therefore tight; the load on a vertical first axis is
    exactly 0.
    """
    walk = steps(chain, q)
    weights: list[Vec3] = []
    for i, step in enumerate(walk):
        before = weights[step.parent] if step.parent >= 0 else chain.gravity_in_frame_0
        weights.append(named(f"g_{i + 1}", step.R.T @ before))
    return [
        g.x * k.y - g.y * k.x if step.revolute else -(mass * g.z)
        for step, g, (mass, k) in zip(walk, weights, _subtree_moments(chain, walk), strict=True)
    ]


def squared_gravity_limits(chain: Chain, q: list[Scalar]) -> list[Scalar]:
    """Upper bounds on the squared gravity load of each joint for any direction of gravity.

    |g|² (k_x² + k_y²) for a revolute joint, |g|² m² for a prismatic one.
    """
    walk = steps(chain, q)
    strength = chain.gravity.dot(chain.gravity)
    return [
        strength * (k.x * k.x + k.y * k.y) if step.revolute else strength * (mass * mass)
        for step, (mass, k) in zip(walk, _subtree_moments(chain, walk), strict=True)
    ]


def _subtree_moments(chain: Chain, walk: list[Step]) -> list[tuple[Scalar, Vec3]]:
    """Mass and first moment about frame i, with regrouped parameters, of every joint's subtree."""
    masses: dict[int, Scalar] = {}
    moments: dict[int, Vec3] = {}
    found: list[tuple[Scalar, Vec3]] = []
    for i, (step, link) in reversed(list(enumerate(zip(walk, accounts(chain), strict=True)))):
        mass, k = masses.get(i, 0) + link.mass, named(f"k_{i + 1}", moments.get(i, ZERO) + link.moment)
        found.append((mass, k))
        masses[step.parent] = masses.get(step.parent, 0) + mass
        collect(moments, step.parent, step.first_moment_inward(mass, k))
    return found[::-1]


def momentum(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[Scalar]:
    """H q̇: inverse dynamics of the acceleration q̇ at rest, without gravity."""
    return second_moments.inverse_dynamics(replace(chain, gravity=ZERO), q, [0] * chain.n, qd)


def kinetic_energy(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> Scalar:
    """½ q̇ᵀ H q̇, without rotors: Σ ½ m v·v + k·(v × w) + ½ w·J w over links with regrouped parameters."""
    motions: list[MotionVector] = []
    twice: Scalar = 0
    for step, link, rate in zip(steps(chain, q), accounts(chain), qd, strict=True):
        before = motions[step.parent] if step.parent >= 0 else NO_MOTION
        motions.append(step.motion_outward(before).along(step.revolute, rate))
        w, v = motions[-1].w, motions[-1].v
        twice = twice + (link.mass * v.dot(v) + w.dot(link.inertia @ w) + (2 * link.moment).dot(v.cross(w)))
    return twice / 2


def potential_energy(chain: Chain, q: list[Scalar]) -> Scalar:
    """-g·Σ m c, zero at the base origin: the first moment of the whole arm carried to the base."""
    mass, k = first_moment(chain, q)
    return -(chain.gravity_in_frame_0.dot(k) + mass * chain.gravity.dot(chain.base.p))


def first_moment(chain: Chain, q: list[Scalar]) -> tuple[Scalar, Vec3]:
    """Mass and first moment Σ m c of the whole robot, about and in frame 0, on which the first joints are mounted."""
    masses: dict[int, Scalar] = {}
    moments: dict[int, Vec3] = {}
    for i, (step, link) in reversed(list(enumerate(zip(steps(chain, q), chain.links, strict=True)))):
        mass, k = masses.get(i, 0) + link.mass, moments.get(i, ZERO) + link.moment
        masses[step.parent] = masses.get(step.parent, 0) + mass
        collect(moments, step.parent, step.first_moment_inward(mass, k))
    return masses[-1], moments[-1]


def tool_forces(chain: Chain, q: list[Scalar], wrench: list[Scalar]) -> list[Scalar]:
    """Jᵀ w: the joint forces of a wrench (force, torque) at the tool's origin in base axes, for a serial chain."""
    walk = steps(chain, q)
    tips = [chain.tool.p]
    for step in reversed(walk[1:]):
        tips.append(step.point_inward(tips[-1]))
    f, n = chain.base.R.T @ Vec3(*wrench[:3]), chain.base.R.T @ Vec3(*wrench[3:])
    tau = []
    for step, r in zip(walk, reversed(tips), strict=True):
        f, n = step.R.T @ f, step.R.T @ n
        tau.append(n.z + (r.x * f.y - r.y * f.x) if step.revolute else f.z)
    return tau


def friction(chain: Chain, qd: list[Scalar]) -> list[Scalar]:
    """Viscous and dry friction, viscous q̇ + dry(q̇) sign(q̇); 0 at rest, where dry friction is any value up to static."""
    return [joint.friction(v) for joint, v in zip(chain.joints, qd, strict=True)]


def joint_forces(chain: Chain, q: list[Scalar], qd: list[Scalar], load: list[Scalar]) -> list[Scalar]:
    """Joint forces beyond rigid-body dynamics: friction, also with load, offset, spring, ripple, and couplings."""
    found = [
        joint.forces.at(x) + joint.friction(v) + joint.forces.lost(carried, sign(v))
        for joint, x, v, carried in zip(chain.joints, q, qd, load, strict=True)
    ]
    if not chain.coupled:
        return found
    return [f + coupled for f, coupled in zip(found, couplings(chain, q, qd), strict=True)]


def couplings(chain: Chain, q: list[Scalar], qd: list[Scalar]) -> list[Scalar]:
    """What the motors must provide against the springs and dampers of tendons, less the weight that is compensated."""
    total: list[Scalar] = [0] * chain.bodies
    if chain.compensated:
        weight = gravity_load_of_moments(chain.with_links(chain.compensated).uncoupled, q)
        total = [-g for g in weight]
    for tendon in chain.tendons:
        force = tendon.stiffness * (tendon.along(q) - tendon.rest) + tendon.damping * tendon.along(qd)
        total = [f + c for f, c in zip(total, tendon.spread(force, chain.bodies), strict=True)]
    return total


GRAVITY = (
    *recursive(gravity_load, reference.gravity_load, "forces carried inwards"),
    Formulation("first_moments", gravity_load_of_moments, "", "gravity outwards, first moments inwards"),
)
KINETIC = recursive(kinetic_energy, reference.kinetic_energy, "velocities carried outwards")
POTENTIAL = recursive(potential_energy, reference.potential_energy, "first moments carried inwards")
MOMENTUM = definition(momentum, "recursive")
FRICTION = definition(friction, "per joint")
JOINT_FORCES = definition(joint_forces, "per joint")

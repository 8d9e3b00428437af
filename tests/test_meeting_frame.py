"""The meeting frame: right in every frame, for every joint, and cheaper than what it is made from."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import armdyn
from armdyn.algebra import Operations
from armdyn.algebra.scalar import ZERO_ANGLE
from armdyn.chain.canonical import slid_outwards
from armdyn.chain.chain import generic_chain
from armdyn.formulations import reference
from armdyn.formulations.composite_bodies import natural, second_moments
from armdyn.formulations.inertia_matrix import lin_fang_1, meeting_frame
from armdyn.formulations.steps import steps
from armdyn.graph.program import trace
from armdyn.programs.cost import compiled, without_rotors
from armdyn.programs.search import auto, traced
from random_chains import any_chain, configuration, special_chain
from random_trees import TreeKind, random_tree
from test_inertia_matrix import caught, judged, mutants  # noqa: F401  (a fixture and its helpers)

# As compiled, at most: (multiplications, additions) for general arms of n revolute joints. A first trial of this
# formulation took 294M 246A, 401M 332A, 517M 420A and 1134M 882A for 6, 7, 8 and 12 joints.
MOST = {
    2: (6, 6),
    3: (52, 45),
    4: (115, 100),
    5: (189, 164),
    6: (271, 233),
    7: (377, 318),
    8: (475, 404),
    9: (595, 502),
    10: (733, 613),
    11: (876, 728),
    12: (1038, 860),
}


def close(got, wanted):
    scale = max(abs(w) for row in wanted for w in row) + 1e-300
    return max(abs(g - w) for a, b in zip(got, wanted, strict=True) for g, w in zip(a, b, strict=True)) <= 1e-12 * scale


def test_every_frame_can_be_the_meeting_frame():
    rng = random.Random(1)
    for _ in range(60):
        chain = any_chain(rng, 8).floats
        q = configuration(rng, chain.n)
        wanted = reference.inertia_matrix(chain, q)
        for m in range(1, chain.n + 1):
            assert close(meeting_frame.inertia_matrix(chain, q, m), wanted)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_short_and_long_chains(n):
    rng = random.Random(n)
    chain = any_chain(rng, 1).floats if n == 1 else generic_chain("RP" * (n // 2), n).floats
    q = configuration(rng, chain.n)
    assert close(meeting_frame.inertia_matrix(chain, q), reference.inertia_matrix(chain, q))


def test_all_can_be_gathered_in_the_middle():
    rng = random.Random(2)
    for _ in range(60):
        chain = any_chain(rng, 9).floats
        q = configuration(rng, chain.n)
        bodies = second_moments.second_moments(chain, q)
        wrenches = [
            body.wrench_of_turn if joint.revolute else body.wrench_of_slide
            for joint, body in zip(chain.joints, bodies, strict=True)
        ]
        assert close(meeting_frame.gather(steps(chain, q), wrenches), reference.inertia_matrix(chain, q))


def test_long_arms_gather():
    """Meeting half way would take 6687M 4748A for 30 joints; Formulation 1 takes 8900M and more."""
    assert not meeting_frame.is_long(generic_chain("R" * 12).joints)
    chain = generic_chain("R" * 30)
    assert meeting_frame.is_long(chain.joints)
    count = traced(chain, "inertia_matrix", "meeting_frame").operations
    assert count.mul <= 4910
    assert count.add <= 3939


def test_parallel_axes_slide_without_changing_anything():
    rng = random.Random(3)
    slid = 0
    for _ in range(200):
        chain = special_chain(rng, "".join(rng.choice("RRRP") for _ in range(6)), parallel=0.8)
        moved = slid_outwards(chain)
        slid += moved != chain
        q = configuration(rng, chain.n)
        assert close(reference.inertia_matrix(moved.floats, q), reference.inertia_matrix(chain.floats, q))
    assert slid > 50


def test_it_stands_on_its_own(monkeypatch):
    def forbidden(*_):
        raise AssertionError("called another formulation")

    monkeypatch.setattr(reference, "inertia_matrix", forbidden)
    monkeypatch.setattr(lin_fang_1, "inertia_matrix", forbidden)
    for name in dir(natural):
        if callable(getattr(natural, name)) and getattr(getattr(natural, name), "__module__", "") == natural.__name__:
            monkeypatch.setattr(natural, name, forbidden)
    chain = generic_chain("RRPR").floats
    assert len(meeting_frame.inertia_matrix(chain, [0.1, 0.2, 0.3, 0.4])) == 4


@pytest.mark.parametrize("n", sorted(MOST))
def test_general_arms(n):
    mul, add = MOST[n]
    count = compiled(generic_chain("R" * n), "inertia_matrix", "meeting_frame")
    assert count.mul <= mul
    assert count.add <= add


@pytest.mark.parametrize(
    ("name", "most"), [("puma560", Operations(79, 61)), ("ur5", Operations(61, 50)), ("panda", Operations(161, 141))]
)
def test_arms_of_the_catalogue(name, most):
    """The first trial took 95M 82A for the Puma."""
    count = compiled(armdyn.load(name).chain, "inertia_matrix", "meeting_frame")
    assert count.mul <= most.mul
    assert count.add <= most.add


def chosen(chain):
    """The operations of the formulation that is chosen: this one, or one of its limits m = 1 and m = n."""
    return compiled(chain, "inertia_matrix", auto(without_rotors(chain), "inertia_matrix")).total


def test_never_above_formulations_1_and_3():
    chains = [generic_chain("R" * n) for n in (2, 5)] + [generic_chain("RRPRRR"), generic_chain("PRRRP", 2)]
    chains += [
        armdyn.load(name).chain for name in ("puma560", "ur5", "panda", "iiwa14", "stanford", "scara", "planar3")
    ]
    for chain in chains:
        ours = chosen(chain)
        assert ours <= compiled(chain, "inertia_matrix", "lin_fang_1").total
        assert ours <= compiled(chain, "inertia_matrix", "lin_fang_3").total


def odd_arms():
    """Parallel and intersecting axes, prismatic joints anywhere and in runs, links without mass."""
    rng = random.Random(5)
    for n in [*range(3, 7)] * 8 + [7, 8, 9] * 3:
        pool = rng.choice(["RRRRP", "RRP", "RP", "R"])
        yield special_chain(rng, "".join(rng.choice(pool) for _ in range(n)), rng.choice([0.2, 0.5, 0.8]))
    for _ in range(12):
        yield any_chain(rng, 6)
    yield special_chain(rng, "RPPRRRR", 0.2)
    yield special_chain(random.Random(12), "P" * 6 + "R" * 6, 1.0)
    yield special_chain(random.Random(30), "RRR" + "P" * 27, 0.9)


def test_never_above_formulations_1_and_3_on_odd_arms():
    ours, theirs = 0, 0
    for chain in odd_arms():
        count = chosen(chain)
        other = min(compiled(chain, "inertia_matrix", key).total for key in ("lin_fang_1", "lin_fang_3"))
        assert count <= other, chain
        ours, theirs = ours + count, theirs + other
    assert ours < 0.97 * theirs


def test_below_s_second_moments_take_no_more_than_lin_and_fang():
    """Where all axes are parallel a composite body is three numbers, and Lin & Fang's are as short as can be."""
    rng = random.Random(7)
    for kinds in ("RRRR", "RRPR", "PRRR", "RPPR"):
        chain = special_chain(rng, kinds, 1.0)
        ours = traced(chain, "inertia_matrix", "meeting_frame").operations.total
        assert ours <= traced(chain, "inertia_matrix", "lin_fang_1").operations.total


def test_second_moments_take_31M_32A_a_link():
    def bodies(n):
        chain = generic_chain("R" * n)

        def outputs(q):
            found = second_moments.second_moments(chain, q)[1:]
            return [x for body in found for v in (body.wrench_of_turn.f, body.wrench_of_turn.n) for x in v]

        return trace("bodies", outputs, {"q": (n,)}, [("wrenches", (6 * (n - 1),))]).operations

    step = bodies(8) - bodies(7)
    assert (step.mul, step.add) == (31, 32)


def judged_trees():
    """Random trees, some of them with parallel axes only, with the reference's inertia matrices."""
    rng = random.Random(5)
    chains = [random_tree(TreeKind(joints=7, fork=0.5, special=s), seed) for seed in range(8) for s in (0.0, 0.9)]
    flat = [replace(c, joints=tuple(replace(j, beta=ZERO_ANGLE, gamma=ZERO_ANGLE) for j in c.joints)) for c in chains]
    cases = [(c.floats, configuration(rng, c.n)) for c in (*chains, *flat)]
    return [(c, q, reference.inertia_matrix(c, q)) for c, q in cases]


def test_planted_sign_errors_in_the_second_moments_are_caught(judged, monkeypatch):  # noqa: F811
    missed = []
    cases = [*judged, *judged_trees()]
    for k, mutant in mutants(second_moments):
        monkeypatch.setattr(meeting_frame, "second_moments", mutant.second_moments)
        if not caught(meeting_frame.inertia_matrix, cases):
            missed.append(k)
    assert not missed

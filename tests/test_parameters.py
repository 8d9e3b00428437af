"""Minimal parameters: counts, corner cases and Lin 1994's theorems, against numerical ranks and the reference."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from math import pi

import numpy as np
import pytest

import armdyn
from armdyn.algebra import Angle
from armdyn.chain.chain import generic_chain
from armdyn.errors import InputError
from armdyn.formulations import reference
from armdyn.formulations.regressor import natural_regressor
from armdyn.parameters import (
    ParameterSet,
    equivalence,
    gravity_parameters,
    inertia_matrix_parameters,
    minimal_combinations,
    minimal_parameters,
    union,
)
from parameter_cases import (
    GRAVITIES,
    NO_GRAVITY,
    force_rank,
    gravity_rank,
    natural,
    structured_chain,
    table,
)

RIGHT = pi / 2


# ---- counts and names


def named(*kinds_by_link: tuple[str, int]) -> tuple[str, ...]:
    return tuple(f"{kind}_{link}" for kind, link in kinds_by_link)


FULL = ("U11-22", "U33", "U12", "U13", "U23", "kx", "ky")
TX40 = ((0, 0, 0, 0), (0, -RIGHT, 0, 0), ("0.225", 0, "0.035", 0), (0, RIGHT, "0.225", 0), (0, -RIGHT, 0, 0))
LWR = tuple((0, sign * RIGHT, d, 0) for sign, d in ((0, 0), (1, 0), (-1, "0.4"), (-1, 0), (1, "0.39"), (1, 0), (-1, 0)))


@pytest.mark.parametrize(
    ("arm", "count"),
    [
        (armdyn.load("puma560").chain, 36),
        (armdyn.load("ur10").chain, 36),
        (table(*TX40, (0, RIGHT, 0, 0)), 36),
        (armdyn.load("panda").chain, 43),
        (table(*LWR), 43),
    ],
    ids=["puma560", "ur10", "tx40", "panda", "lwr4+"],
)
def test_counts_of_well_known_arms(arm, count):
    parameters = minimal_parameters(arm)
    assert parameters.kind == "theorem 5"
    assert len(parameters) == count


def test_names_stand_in_the_order_of_the_theorem():
    puma = named(("U33", 1), *((kind, link) for link in range(2, 7) for kind in FULL))
    assert armdyn.load("puma560").minimal_parameters.names == puma
    chain = generic_chain("RPRPR", 0)
    expected = named(
        ("U33", 1),
        *((kind, 3) for kind in FULL),
        *((kind, 5) for kind in FULL),
        ("m", 2),
        ("m", 4),
        *((kind, 4) for kind in ("kx", "ky", "kz")),
        ("kappa1", 2),
        ("kappa2", 2),
    )
    assert minimal_parameters(chain).names == expected


@pytest.mark.parametrize("name", ["puma560", "ur10", "panda"])
def test_angles_written_with_five_digits_give_the_same_answer(name):
    arm = armdyn.load(name)

    def rounded(angle: Angle) -> Angle:
        return Angle.of(round(angle.radians, 4))

    joints = tuple(replace(j, beta=rounded(j.beta), theta=rounded(j.theta)) for j in arm.given.joints)
    sloppy = replace(arm, given=replace(arm.given, joints=joints))
    assert any(j.beta.radians == 1.5708 or j.beta.radians == -1.5708 for j in sloppy.given.joints)
    assert sloppy.minimal_parameters.names == arm.minimal_parameters.names
    assert sloppy.minimal_parameters.matrix == arm.minimal_parameters.matrix


@pytest.mark.parametrize(
    ("chain", "names"),
    [
        (table((0, 0, 0, 0)), ("U33_1",)),  # one joint, gravity along it
        (table((0, RIGHT, 0, 0)), ("U33_1", "kx_1", "ky_1")),
        (table((0, 0, 0, 0), (0, RIGHT, 0, 0), (0, RIGHT, 0, 0), kinds="PPP"), ("m_1", "m_2", "m_3")),
        (table((0, 0, 0, 0), ("0.3", 0, 0, 0)), ("U33_1", "U33_2", "kx_2", "ky_2")),  # parallel, gravity along
        (table((0, 0, 0, 0), (0, 0, "0.3", 0)), ("U33_1", "U33_2")),  # one axis twice, gravity along it
        (table((0, RIGHT, 0, 0), (0, 0, "0.3", 0)), ("U33_1", "kx_1", "ky_1", "U33_2", "kx_2", "ky_2")),
        (table((0, 0, 0, 0), (0, 0, 0, 0), kinds="RP"), ("U33_1", "m_2")),  # a slide along the axis and gravity
        (table((0, RIGHT, 0, 0), (0, -RIGHT, 0, 0), kinds="PR"), ("U33_2", "kx_2", "ky_2", "m_1")),
    ],
)
def test_corner_cases(chain, names):
    assert minimal_parameters(chain).names == names
    assert force_rank(chain) == len(names)


def test_an_accelerating_base_counts_as_gravity():
    arm = armdyn.Arm("one", table((0, 0, 0, 0)))
    assert arm.minimal_parameters.names == ("U33_1",)
    assert arm.with_gravity((2.0, 0.0, -9.81)).minimal_parameters.names == ("U33_1", "kx_1", "ky_1")


# ---- Theorem 5, numerically


@pytest.mark.parametrize("part", range(8))
def test_the_number_of_parameters_is_the_rank_of_the_regressor(part):
    for seed in range(25 * part, 25 * part + 25):
        chain = structured_chain(seed)
        assert len(minimal_parameters(chain)) == force_rank(chain), seed


def test_the_matrix_gives_the_values_and_the_realisation_inverts_it():
    for seed in range(40):
        chain = structured_chain(seed)
        parameters = minimal_parameters(chain)
        B = np.array(parameters.matrix, dtype=float).reshape(len(parameters), -1)
        assert B.tolist() == parameters.array.tolist()
        assert np.allclose(B @ natural(chain), parameters.values, rtol=0, atol=1e-12)
        N = np.array(parameters.realisation, dtype=float).reshape(-1, len(parameters))
        assert np.allclose(B @ N, np.eye(len(parameters)), rtol=0, atol=1e-12)


def test_the_floats_of_a_chain_have_the_same_parameters():
    for seed in range(20):
        chain = structured_chain(seed)
        assert minimal_parameters(chain.floats).names == minimal_parameters(chain).names


# ---- Theorems 4, 3, 2, 1


@pytest.mark.parametrize("part", range(4))
def test_theorem_4_gravity_load(part):
    for seed in range(20 * part, 20 * part + 20):
        chain = structured_chain(seed, GRAVITIES)
        parameters = gravity_parameters(chain)
        assert len(parameters) == gravity_rank(chain), seed
        q = [0.3 + i for i in range(chain.n)]
        other = chain.with_links(parameters.links(parameters.exact_values))
        expected = reference.gravity_load(chain.floats, q)
        assert np.allclose(reference.gravity_load(other.floats, q), expected, rtol=0, atol=1e-10), seed


def test_without_gravity_there_is_no_gravity_load():
    assert len(gravity_parameters(structured_chain(3, (NO_GRAVITY,)))) == 0


@pytest.mark.parametrize("part", range(4))
def test_theorem_3_inertia_matrix(part):
    for seed in range(20 * part, 20 * part + 20):
        chain = structured_chain(seed, GRAVITIES)
        parameters = inertia_matrix_parameters(chain)
        still = replace(chain, gravity=NO_GRAVITY)
        assert minimal_parameters(still).combinations == parameters.combinations
        assert len(parameters) == force_rank(still), seed
        q = [0.3 + i for i in range(chain.n)]
        other = chain.with_links(parameters.links(parameters.exact_values))
        H, expected = (reference.inertia_matrix(c.floats, q) for c in (other, chain))
        assert np.allclose(np.array(H, float), np.array(expected, float), rtol=0, atol=1e-10), seed


def test_without_gravity_elements_merge_and_kind_says_so():
    arm = armdyn.load("puma560").with_gravity((0, 0, 0))
    parameters = arm.minimal_parameters
    assert parameters.kind == "zero gravity: exact elimination"
    assert len(parameters) == 34
    merged = {c[0][0].name: [(e.name, f) for e, f in c[1:]] for c in parameters.combinations if len(c) > 1}
    d2 = arm.joints[1].d
    assert merged == {"U13_2": [("kx_2", -d2)], "U23_2": [("ky_2", -d2)]}


def test_theorem_2_the_union_is_a_set_for_the_forces():
    for seed in range(40):
        chain = structured_chain(seed, GRAVITIES)
        own = minimal_parameters(chain)
        both = union(inertia_matrix_parameters(chain), gravity_parameters(chain))
        assert len(both) == len(own), seed
        assert equivalence(own, both, tolerance=1e-12), seed


class Turn:
    """An angle with rational cosine and sine."""

    def __init__(self, t: Fraction) -> None:
        self.t = t

    def cos(self) -> Fraction:
        return (1 - self.t**2) / (1 + self.t**2)

    def sin(self) -> Fraction:
        return 2 * self.t / (1 + self.t**2)


def test_theorem_1_finds_the_set_of_an_arm_exactly():
    chain = table((0, 0, 0, 0), ("0.1", RIGHT, "0.2", 0), ("0.3", 0, 0, 0), (0, -RIGHT, 0, 0), kinds="RRRP")
    rng = random.Random(1)

    def number() -> Fraction:
        return Fraction(rng.randrange(-99, 99), 50)

    def sampler():
        q = [number() if joint.prismatic else Turn(number()) for joint in chain.joints]
        return natural_regressor(chain, q, *([number() for _ in q] for _ in range(2)))

    found = minimal_combinations(sampler, 10 * chain.n)
    own = minimal_parameters(chain)
    assert found.count == len(own)
    assert all(isinstance(x, Fraction) for row in found.matrix for x in row)
    assert equivalence(own, ParameterSet(own.names, found.matrix))


def test_theorem_1_with_a_tolerance():
    chain = generic_chain("RRR", 2)
    rng = np.random.default_rng(0)

    def sampler():
        return np.array(natural_regressor(chain.floats, *rng.uniform(-2, 2, (3, 3)).tolist()), dtype=float)

    found = minimal_combinations(sampler, 30, tolerance=1e-9)
    own = minimal_parameters(chain)
    assert found.count == len(own) == 15
    Y = sampler()
    assert np.allclose(Y[:, found.kept] @ np.array(found.matrix) @ natural(chain), Y @ natural(chain), atol=1e-10)
    assert equivalence(own, ParameterSet(own.names, found.matrix), tolerance=1e-9)


def test_theorem_1_as_stated():
    """A(θ) x = Ā(θ) w(x) with Ā the kept columns and w the combinations."""
    rng = random.Random(0)
    thetas: list[Fraction] = []

    def A(t: Fraction) -> list[list[Fraction]]:
        return [[t, t**2, 3 * t - t**2, Fraction(0), 1 + t], [Fraction(1), t, 3 - t, Fraction(0), 2 - t]]

    def sampler():
        thetas.append(Fraction(rng.randrange(-1000, 1000), 7))
        return A(thetas[-1])

    found = minimal_combinations(sampler, 5)
    assert found.kept == (0, 1, 4)
    assert found.matrix == ((1, 0, 3, 0, 0), (0, 1, -1, 0, 0), (0, 0, 0, 0, 1))


def test_minimal_combinations_refuses_what_it_cannot_decide():
    with pytest.raises(InputError, match="floats need a tolerance"):
        minimal_combinations(lambda: [[0.1, 0.2]], 2)
    with pytest.raises(InputError, match="expected p = 3"):
        minimal_combinations(lambda: [[1, 2]], 3)


def test_what_cannot_be_determined_is_said():
    """Of the Puma's 60 parameters; a column of the matrix that is 0 has no effect, checked by changing the link."""
    arm = armdyn.load("puma560")
    influence = np.array(arm.minimal_parameters.influence)
    assert [(influence == kind).sum() for kind in (1, 2, 0)] == [19, 32, 9]
    assert (
        "19 determine the motion alone, 32 only in combination, 9 not at all (link 1: m, "
        in arm.minimal_parameters.summary
    )
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 6))
    Y = np.asarray(arm.natural_regressor(q, qd, qdd))
    assert np.abs(Y[:, influence.ravel() == 0]).max() < 1e-12
    assert np.all(np.abs(Y[:, influence.ravel() == 1]).max(axis=0) > 1e-6)
    assert arm.minimal_parameters.summary in arm.minimal_parameters._repr_html_()

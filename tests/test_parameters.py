"""Inertia constants and minimal parameters, against direct sums, numerical ranks and the reference."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction
from math import pi

import numpy as np
import pytest

import armdyn
from armdyn.algebra import Angle, Mat3, Sym3, Vec3
from armdyn.chain import Chain, Link
from armdyn.chain.samples import generic_chain
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES, reference
from armdyn.formulations.regressor import natural_regressor
from armdyn.graph import Graph
from armdyn.parameters import (
    ParameterSet,
    equivalence,
    extended_parameters,
    gravity_parameters,
    inertia_constants,
    inertia_constants_1994,
    inertia_matrix_parameters,
    minimal_combinations,
    minimal_parameters,
    realise,
    regrouped_parameters,
    union,
    with_columns,
)
from armdyn.parameters.constants import coupling
from armdyn.parameters.elements import Element
from armdyn.parameters.polynomial import Polynomial, cosine_and_sine
from armdyn.parameters.realisation import realised
from armdyn.parameters.structure import structure
from armdyn.studies.identifiability import rank_report
from parameter_cases import (
    DOWN,
    GRAVITIES,
    NO_GRAVITY,
    force_rank,
    gravity_rank,
    natural,
    structured_chain,
    table,
)

KINDS = ("R", "P", "RR", "RP", "PR", "PP", "RRR", "RPR", "PRP", "RRPRRR", "PPRRPR", "RRRRRRR", "RPPRPR")
RIGHT = pi / 2


# ---- inertia constants


def tilted(chain: Chain, gamma: float) -> Chain:
    """The chain with γ in every joint but the first."""
    joints = (chain.joints[0], *(replace(j, gamma=Angle.of(gamma)) for j in chain.joints[1:]))
    return replace(chain, joints=joints)


def composite_bodies(chain: Chain, q: list[float]) -> list[Link]:
    """Links i to n as one body seen from frame i, summed directly."""
    found = [chain.links[-1]]
    for link, joint, value in zip(chain.links[-2::-1], chain.joints[:0:-1], q[:0:-1], strict=True):
        R, p = joint.placement(value)
        found.append(link + found[-1].moved(R.matrix(), p))
    return found[::-1]


def close(a, b) -> bool:
    return all(abs(x - y) < 1e-12 for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("gamma", [0.0, 0.4])
@pytest.mark.parametrize("version", [inertia_constants, inertia_constants_1994])
def test_constant_and_varying_parts_add_up_to_the_composite_bodies(kinds, gamma, version):
    """Lin & Fang 1999 eqs. (22)-(26), Lin 1994 eqs. (19)-(26)."""
    chain = tilted(generic_chain(kinds, 3), gamma)
    rng = random.Random(5)
    q = [rng.uniform(-3, 3) for _ in kinds]
    with_33 = 1 if version is inertia_constants else 0
    bodies, constants = composite_bodies(chain.floats, q), version(chain)
    vary_c, vary_J = Vec3(0, 0, 0), Sym3(0, 0, 0, 0, 0, 0)
    for i in reversed(range(chain.n)):
        body, constant = bodies[i], constants[i]
        assert abs(body.mass - constant.mass) < 1e-12
        assert close(body.moment, constant.k + vary_c)
        assert close(body.inertia.entries, (constant.U + vary_J).entries)
        joint = chain.floats.joints[i]
        R, p = joint.placement(q[i])
        R = Mat3(*R.matrix().rows)
        k, U = constant.k, constant.U
        if joint.revolute:
            vary_c = R @ (vary_c + Vec3(k.x, k.y, 0))
            rest = Sym3(U.xx - U.yy, U.xy, 0, U.xz, U.yz, with_33 * U.zz)
            vary_J = R.similarity(vary_J + rest) + coupling(p, vary_c)
        else:
            d, b = joint.extension(q[i]), Vec3(joint.b, 0, 0)
            slide = Vec3(0, 0, d)
            inner = constant.mass * Sym3.steiner(slide, slide) + coupling(slide, k + vary_c)
            vary_c = R @ (vary_c + constant.mass * slide)
            vary_J = R.similarity(vary_J + inner) + coupling(b, vary_c)


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


# ---- Corollary 6 and other sets


def version_1994(chain: Chain) -> ParameterSet:
    """Theorem 5 on the inertia constants of Lin 1994."""
    graph_free = [Polynomial.of(s) for s in _natural_symbols(chain)]
    links = tuple(Link.from_natural(tuple(graph_free[10 * i : 10 * i + 10])) for i in range(chain.n))
    constants = inertia_constants_1994(chain.with_links(links))
    axis = structure(chain).axis
    parameters = minimal_parameters(chain)
    rows = []
    for ((element, _),) in parameters.combinations:
        formula = element.of(constants[element.link], axis[element.link])
        rows.append(tuple(formula.terms.get((s,), Fraction(0)) for s in _natural_symbols(chain)))
    return ParameterSet(parameters.names, tuple(rows))


def _natural_symbols(chain: Chain):
    from armdyn.parameters.writing import natural_symbol

    return [natural_symbol(i, k) for i in range(chain.n) for k in range(10)]


def test_corollary_6_the_two_papers_sets_are_equivalent():
    for chain in (generic_chain("RRRR", 1), armdyn.load("puma560").chain, generic_chain("RPRPR", 2)):
        own, other = minimal_parameters(chain), version_1994(chain)
        assert own.matrix != other.matrix
        found = equivalence(own, other)
        assert found, found.reason
        M = np.array(found.matrix, dtype=float)
        assert np.allclose(M @ own.array, np.array(other.matrix, dtype=float), rtol=0, atol=1e-12)
        assert abs(np.linalg.det(M)) == pytest.approx(1.0)


def test_corollary_6_says_why_there_is_no_matrix():
    own = minimal_parameters(generic_chain("RR", 0))
    short = ParameterSet(own.names[1:], own.matrix[1:])
    assert "8 elements, the second 7" in equivalence(own, short).reason
    twice = ParameterSet(own.names, (own.matrix[1], *own.matrix[1:]))
    assert "second set are not linearly independent" in equivalence(own, twice).reason
    assert "first set are not linearly independent" in equivalence(twice, own).reason
    mass = (Fraction(1), *(Fraction(0) for _ in own.matrix[0][1:]))
    foreign = ParameterSet(("m_1", *own.names[1:]), (mass, *own.matrix[1:]))
    found = equivalence(own, foreign)
    assert not found
    assert "m_1 of the second set cannot be obtained" in found.reason


def test_regrouped_parameters_of_gautier_and_khalil():
    """Their rules for a revolute joint (YY, MZ, M go inwards), for the first two links of a Puma."""
    arm = armdyn.load("puma560")
    found = regrouped_parameters(arm.chain)
    assert found.names[:8] == ("IzzR_1", "mcxR_2", "mcyR_2", "IxxR_2", "IxyR_2", "IxzR_2", "IyzR_2", "IzzR_2")
    assert equivalence(arm.minimal_parameters, found)
    assert equivalence(found, arm.minimal_parameters)
    row = dict(zip(found.names, found.matrix, strict=True))["IxxR_5"]
    assert {k: x for k, x in enumerate(row) if x} == {44: 1, 46: -1, 56: 1}  # XX5 - YY5 + YY6
    for seed in range(40):
        chain = structured_chain(seed, GRAVITIES)
        assert equivalence(minimal_parameters(chain), regrouped_parameters(chain)), seed


def test_columns_that_do_not_determine_a_set_are_refused():
    own = minimal_parameters(generic_chain("RR", 0))
    with pytest.raises(InputError, match="m_1 follow"):
        with_columns(own, [0, 9, 11, 12, 14, 15, 17, 18])


# ---- natural parameters that realise minimal ones


@pytest.mark.parametrize("nearest", [False, True])
def test_equal_minimal_parameters_mean_equal_dynamics(nearest):
    rng = random.Random(2)
    for seed in range(24):
        chain = structured_chain(seed, most=4)
        parameters = minimal_parameters(chain)
        other = realise(generic_chain_with(chain, seed), parameters.exact_values, nearest)
        assert minimal_parameters(other).values == pytest.approx(parameters.values, abs=1e-12)
        assert other.links != chain.links
        q, qd = ([rng.uniform(-2, 2) for _ in range(chain.n)] for _ in range(2))
        for quantity, inputs in ((reference.inertia_matrix, (q,)), (reference.bias, (q, qd))):
            got, expected = (np.array(quantity(c.floats, *inputs), dtype=float) for c in (other, chain))
            assert np.allclose(got, expected, rtol=0, atol=1e-10), seed


def generic_chain_with(chain: Chain, seed: int) -> Chain:
    """The same geometry with other links."""
    kinds = "".join("R" if joint.revolute else "P" for joint in chain.joints)
    return chain.with_links(generic_chain(kinds, seed + 1000).links)


RUN_ON_LINKS = ("inertia_matrix", "bias", "inverse_dynamics", "gravity_load", "forward_dynamics", "kinetic_energy")
NEEDS_CENTRES = ("walker_orin",)  # works with centres of mass, which links without mass do not have


@pytest.mark.parametrize(
    ("quantity", "method"),
    [(q, m.key) for q in RUN_ON_LINKS for m in QUANTITIES[q].methods if m.key not in NEEDS_CENTRES],
)
@pytest.mark.parametrize("kinds", ["RRRR", "RPRP"])
def test_every_formulation_runs_on_minimal_parameters_alone(quantity, method, kinds):
    chain = generic_chain(kinds, 1)
    minimal = realise(chain, minimal_parameters(chain).exact_values)
    rng = random.Random(0)
    given = {name: [rng.uniform(-1, 1) for _ in kinds] for name in ("q", "qd", "qdd", "tau")}
    inputs = [given[name] for name, _ in QUANTITIES[quantity].inputs]
    run = {m.key: m.run for m in QUANTITIES[quantity].methods}[method]
    got, expected = (np.array(run(c.floats, *inputs), dtype=float) for c in (minimal, chain))
    assert np.allclose(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kinds", ["RRRR", "RPRP"])
def test_a_formulation_that_needs_centres_of_mass_refuses_them(kinds):
    arm = armdyn.generic_arm(kinds, 1)
    minimal = arm.with_minimal_parameters(arm.minimal_parameters.values)
    q = np.linspace(-1, 1, 4)
    with pytest.raises(InputError, match="needs centres of mass"):
        minimal.kernel("inertia_matrix", method="walker_orin", backend="python")(q)
    assert np.allclose(minimal.inertia_matrix(q), arm.inertia_matrix(q), rtol=0, atol=1e-10)


def test_nearest_is_nearest():
    chain = generic_chain("RPR", 4)
    parameters = minimal_parameters(chain)
    wanted = [x + Fraction(1, 10) for x in parameters.exact_values]
    moved = natural(realise(chain, wanted, nearest=True)) - natural(chain)
    B = parameters.array
    assert np.allclose(B @ moved, 0.1)
    kernel = np.linalg.svd(B)[2][len(parameters) :]
    assert np.allclose(kernel @ moved, 0, atol=1e-12)


def test_an_all_revolute_arm_is_realised_by_its_own_elements():
    chain = generic_chain("RRR", 0)
    parameters = minimal_parameters(chain)
    link = realise(chain, parameters.exact_values).links[2]
    value = dict(zip(parameters.names, parameters.exact_values, strict=True))
    expected = [0, *(value[f"{k}_3"] for k in ("kx", "ky")), 0, *(value[f"{k}_3"] for k in ("U11-22", "U12"))]
    assert list(link.natural) == [*expected, 0, *(value[f"{k}_3"] for k in ("U13", "U23", "U33"))]


def test_values_may_be_nodes_of_a_graph():
    chain = generic_chain("RPR", 1)
    graph = Graph()
    nodes = [graph.input(name) for name in minimal_parameters(chain).names]
    links = realise(chain, nodes).links
    assert any(x in nodes for link in links for x in link.natural)


def test_a_wrong_number_of_values_is_refused():
    with pytest.raises(InputError, match="has 8 minimal parameters, got 3 values"):
        realise(generic_chain("RR", 0), [1, 2, 3])


def test_an_arm_with_other_minimal_parameters():
    arm = armdyn.load("puma560")
    values = np.array(arm.minimal_parameters.values)
    other = arm.with_minimal_parameters(values + 0.01)
    assert np.allclose(other.minimal_parameters.values, values + 0.01, rtol=0, atol=1e-12)
    q = np.linspace(-1, 1, 6)
    same = arm.with_minimal_parameters(values)
    assert np.allclose(same.inertia_matrix(q), arm.inertia_matrix(q), rtol=0, atol=1e-12)
    assert np.allclose(same.bias(q, q), arm.bias(q, q), rtol=0, atol=1e-10)


# ---- formulas


@pytest.mark.parametrize("seed", range(20))
def test_symbolic_expressions_give_the_rows_of_other_geometries(seed):
    """Each of 20 structures, evaluated for a random geometry of the same structure."""
    chain = structured_chain(100 + seed, GRAVITIES, most=4)
    rng = random.Random(seed)

    def length(x: Fraction) -> Fraction:
        return Fraction(rng.randrange(100, 900), 1000) if x else x

    def angle(a: Angle) -> Angle:
        return a if a.is_right else Angle.of(rng.uniform(0.3, 1.2))

    joints = tuple(
        replace(j, b=length(j.b), d=length(j.d), beta=angle(j.beta), theta=angle(j.theta), gamma=angle(j.gamma))
        for j in chain.joints
    )
    other = replace(chain, joints=joints)
    parameters = minimal_parameters(other)
    if parameters.names != minimal_parameters(chain).names:  # a chance cancellation in the first geometry
        pytest.fail("the structure differs: choose another seed")
    for expression, row in zip(minimal_parameters(chain).expressions, parameters.matrix, strict=True):
        assert close(expression.row(other), row)


def test_twenty_geometries_of_one_structure():
    chain = generic_chain("RRPR", 0)
    expressions = minimal_parameters(chain).expressions
    for seed in range(1, 21):
        other = generic_chain("RRPR", seed)
        for expression, row in zip(expressions, minimal_parameters(other).matrix, strict=True):
            assert close(expression.row(other), row)


def test_formulas_read_well():
    e = {x.name: x for x in armdyn.load("puma560").minimal_parameters.expressions}
    assert str(e["U11-22_2"]) == "I₂xx - I₂yy - 0.18645124 (m₃ + m₄ + m₅ + m₆)"
    assert e["U11-22_2"].symbolic == "I₂xx - I₂yy - b₃² (m₃ + m₄ + m₅ + m₆)"
    assert e["kx_2"].latex == r"m_{2} c_{2x} + 0.4318\,\left(m_{3} + m_{4} + m_{5} + m_{6}\right)"
    assert e["kx_2"].symbolic_latex == r"m_{2} c_{2x} + b_{3}\,\left(m_{3} + m_{4} + m_{5} + m_{6}\right)"
    e = {x.name: x for x in minimal_parameters(generic_chain("RRR", 0)).expressions}
    assert e["U12_2"].symbolic == "I₂xy + b₃ sin(β₃) d₃ m₃ + b₃ sin(β₃) m₃c₃z"
    assert e["U33_2"].symbolic == "I₂zz + (b₃² + sin(β₃)² d₃²) m₃ + 2 sin(β₃)² d₃ m₃c₃z + sin(β₃)² I₃yy"
    assert r"\sin^{2} \beta_{3}\,I_{3yy}" in e["U33_2"].symbolic_latex
    assert "cos(β₃)² d₃²" in e["U33_1"].symbolic


def test_the_parameters_as_a_dictionary_are_plain():
    arm = armdyn.load("planar3")
    found = json.loads(json.dumps(arm.minimal_parameters.as_dict()))
    assert found["kind"] == "theorem 5"
    assert [row["name"] for row in found["parameters"]] == list(arm.minimal_parameters.names)
    assert np.allclose(found["matrix"], arm.minimal_parameters.array)
    assert found["parameters"][0]["symbolic"] == "I₁zz + b₂² (m₂ + m₃)"


def test_a_cosine_squared_is_one_less_a_sine_squared():
    c, s = (Polynomial.of(x) for x in cosine_and_sine((0, 0, 0), "φ", r"\phi"))
    assert c * c + s * s == 1 or (c * c + s * s).terms == {(): 1}
    assert c * c * c * c - (1 - s * s) * (1 - s * s) == 0
    assert (c * s).evaluate({cosine_and_sine((0, 0, 0), "φ", r"\phi")[1]: 0}) == 0


# ---- drives beside the links, and the report beside the answer


@pytest.mark.parametrize(("name", "count"), [("puma560", 58), ("ur10", 58), ("panda", 69)])
def test_parameters_of_links_and_drives(name, count):
    found = extended_parameters(armdyn.load(name).chain)
    assert len(found) == len(found.names) == count
    assert {term.name: parts for term, parts in found.merged.items()} == {
        "rotor_1": (("U33_1", 1),),
        "rotor_2": (("U33_2", 1),),
    }


def test_the_drives_that_stand_alone_are_those_the_rank_counts():
    for seed in range(18):
        chain = structured_chain(seed, most=4)
        found = extended_parameters(chain, ("rotor", "offset"))
        rng = np.random.default_rng(0)
        rows, every = [], []
        for _ in range(20 + 4 * chain.n):
            q, qd, qdd = rng.uniform(-2, 2, (3, chain.n)).tolist()
            Y = np.array(natural_regressor(chain.floats, q, qd, qdd), dtype=float)
            every.append(np.hstack([Y, np.diag(qdd), np.eye(chain.n)]))
            rows.append(np.hstack([Y @ np.array(found.rigid.realisation, float), found.columns(qd, qdd)]))
        assert np.linalg.matrix_rank(np.vstack(every), tol=1e-8) == len(found), seed
        assert np.linalg.matrix_rank(np.vstack(rows), tol=1e-8) == len(found), seed


def test_a_lift_shares_its_rotor_between_mass_and_offset():
    found = extended_parameters(table((0, 0, 0, 0), kinds="P"))
    (term,) = found.merged
    assert term.name == "rotor_1"
    assert found.merged[term] == (("m_1", 1), ("offset_1", Fraction(-981, 100)))
    assert found.columns([2.0], [3.0]) == [[2.0, 1, 1.0]]  # viscous, Coulomb, offset


def test_the_report_beside_the_answer():
    report = rank_report(armdyn.load("planar3"))
    assert report.agrees
    assert report.rank == report.count == 9
    assert report.gap > 1e10
    assert "numerical rank 9, as structure says" in str(report)
    nothing_dropped = rank_report(armdyn.Arm("slides", table((0, 0, 0, 0), kinds="P")))
    assert nothing_dropped.count == 1


def test_elements_left_out_stay_zero():
    chain = table((0, 0, 0, 0), ("0.3", RIGHT, 0, 0), gravity=DOWN)
    links = realised(chain, structure(chain), {Element("U33", 0): Fraction(2)})
    assert [x for link in links for x in link.natural if x] == [2]


def test_the_benchmark_runs(capsys):
    import runpy
    from pathlib import Path

    path = Path(__file__).parent.parent / "benchmarks" / "minimal_parameters.py"
    found = runpy.run_path(str(path))["main"](1)
    assert {name: row[0] for name, row in found.items()} == {"panda": 43, "general 7R": 43}
    assert "by structure" in capsys.readouterr().out

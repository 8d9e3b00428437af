"""Sets of minimal parameters: equivalence, realisation, formulas, drives, and the report beside the answer."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction
from math import pi

import numpy as np
import pytest

import armdyn
from armdyn.algebra import Angle
from armdyn.chain import Chain, Link
from armdyn.chain.chain import generic_chain
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES, reference
from armdyn.formulations.regressor import natural_regressor
from armdyn.graph import Graph
from armdyn.parameters import (
    ParameterSet,
    equivalence,
    extended_parameters,
    inertia_constants_1994,
    minimal_parameters,
    realise,
    regrouped_parameters,
    with_columns,
)
from armdyn.parameters.expression import Polynomial, cosine_and_sine
from armdyn.parameters.minimal import realised
from armdyn.parameters.structure import Element, structure
from armdyn.studies.identifiability import rank_report
from parameter_cases import (
    DOWN,
    GRAVITIES,
    natural,
    structured_chain,
    table,
)

RIGHT = pi / 2


def close(a, b) -> bool:
    return all(abs(x - y) < 1e-12 for x, y in zip(a, b, strict=True))


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
    from armdyn.parameters.expression import natural_symbol

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
NEEDS_CENTRES = (
    "walker_orin",
    "lin_cubic",
    "angeles_ma",
)  # work with centres of mass, which links without mass do not have


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


@pytest.mark.parametrize(("method", "kinds"), [("walker_orin", "RPRP"), *((m, "RRRR") for m in NEEDS_CENTRES)])
def test_a_formulation_that_needs_centres_of_mass_refuses_them(method, kinds):
    arm = armdyn.generic_arm(kinds, 1)
    minimal = arm.with_minimal_parameters(arm.minimal_parameters.values)
    q = np.linspace(-1, 1, 4)
    with pytest.raises(InputError, match="needs centres of mass"):
        minimal.kernel("inertia_matrix", method=method, backend="python")(q)
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
    assert report.singular_values.shape == (30,)  # ten parameters of each of three links
    assert (report.singular_values[9:] < 1e-10).all()
    assert "numerical rank 9, in agreement with the structure" in str(report)
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

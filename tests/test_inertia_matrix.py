"""Every formulation of the inertia matrix against the plain sum over links."""

from __future__ import annotations

import ast
import inspect
import random
import runpy
import types
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
from armdyn.algebra import ZERO, Angle, Dual, Sym3, Vec3, Z
from armdyn.chain import Link
from armdyn.chain.chain import generic_chain
from armdyn.formulations import QUANTITIES, reference, steps
from armdyn.formulations.composite_bodies import minimal, natural
from armdyn.formulations.inertia_matrix import lin_fang_1
from armdyn.graph.program import evaluate
from armdyn.kernels.kernel import Kernel
from armdyn.parameters import minimal_parameters, realise
from armdyn.programs.program import program
from comparing import SERIAL
from random_chains import any_chain, configuration, slides_below_s, special_chain

METHODS = {m.key: m.run for m in QUANTITIES["inertia_matrix"].methods if m.key != "reference"}
LIN_FANG = [key for key in METHODS if key.startswith("lin_fang")]
ORDER = (
    "lin_fang_1 lin_fang_2 lin_fang_3 lin_fang_4 lin_fang_5 lin_1991 renaud walker_orin gibbs_appell denoc "
    "meeting_frame reference"
)


def difference(run, chain, q, expected=None):
    """The largest difference from the reference, relative to its largest entry."""
    chain = chain.floats
    H = np.array(reference.inertia_matrix(chain, q) if expected is None else expected, dtype=float)
    return np.abs(np.array(run(chain, q), dtype=float) - H).max() / np.abs(H).max()


def agree(chain, q, methods=METHODS):
    H = reference.inertia_matrix(chain.floats, q)
    for key, run in methods.items():
        assert difference(run, chain, q, H) < 1e-12, key


def test_the_methods_that_others_rely_on_stand_in_their_order():
    named = ORDER.split()
    assert [key for key in armdyn.methods("inertia_matrix") if key in named] == named


@pytest.mark.parametrize("n", range(1, 13))
def test_general_chains(n):
    rng = random.Random(n)
    for _ in range(2):
        kinds = "".join(rng.choice("RP") for _ in range(n))
        agree(generic_chain(kinds, rng.randrange(1000)), configuration(rng, n))


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_any_chain(seed, most):
    rng = random.Random(seed)
    chain = any_chain(rng, most)
    agree(chain, configuration(rng, chain.n))


def test_a_thousand_chains_with_a_prismatic_joint_between_r_and_s():
    rng, found = random.Random(7), 0
    while found < 1000:
        middle = "P" + "".join(rng.choice("RPP") for _ in range(rng.choice([0, 0, 1, 2])))
        chain = special_chain(rng, rng.choice(["", "", "P"]) + "R" + middle + "R", parallel=0.7)
        if slides_below_s(chain):
            found += 1
            agree(chain, configuration(rng, chain.n))


@pytest.mark.parametrize("name", SERIAL)
def test_catalogue(name):
    chain = armdyn.load(name).chain
    agree(chain, configuration(random.Random(3), chain.n))


def test_thirty_joints():
    rng = random.Random(30)
    agree(generic_chain("RRPRR" * 6, 1), configuration(rng, 30))


@pytest.mark.parametrize("kinds", ["P", "PP", "PPP", "R", "RR", "PR", "RP", "PRP"])
def test_short_chains_with_parallel_axes(kinds):
    rng = random.Random(kinds)
    for _ in range(10):
        chain = special_chain(rng, kinds, parallel=1.0)
        agree(chain, configuration(rng, chain.n))


@pytest.mark.parametrize("key", METHODS)
def test_symmetric_and_positive_definite(key):
    for kinds in ("RRRRRR", "PRPRRP"):
        H = np.array(METHODS[key](generic_chain(kinds, 5).floats, configuration(random.Random(1), 6)))
        assert (H == H.T).all()
        assert np.linalg.eigvalsh(H).min() > 0


@pytest.mark.parametrize("key", METHODS)
def test_the_graph_and_duals_give_the_same(key):
    rng = random.Random(11)
    for kinds in ("RRPR", "PRPPR"):
        chain = special_chain(rng, kinds, parallel=0.7)
        q = configuration(rng, chain.n)
        H = np.array(reference.inertia_matrix(chain.floats, q), dtype=float)
        (flat,) = evaluate(program(chain, "inertia_matrix", key), q)
        assert np.abs(np.reshape(flat, H.shape) - H).max() < 1e-12 * np.abs(H).max()
        duals = METHODS[key](chain.floats, list(Dual.variables(q)))
        assert np.abs(np.array([[float(getattr(h, "value", h)) for h in r] for r in duals]) - H).max() < 1e-12 * H.max()


@pytest.mark.parametrize("key", METHODS)
def test_only_the_minimal_parameters_matter(key):
    """A body that a turn of joint i does not move is taken from link i-1 and given to link i."""
    rng = random.Random(key)
    chain = generic_chain("RRRPR", 8)
    q = configuration(rng, 5)
    links = list(chain.links)
    for i in (1, 2, 4):
        m, z, a = (Fraction(rng.randint(1, 9), 10) for _ in range(3))
        ring = Link(m, z * Z, Sym3(a, 0, a, 0, 0, 0))
        R, p = chain.joints[i].placement(0)
        seen = ring.moved(R.matrix(), p)
        minus = Link(-seen.mass, -seen.moment, -seen.inertia)
        links[i], links[i - 1] = links[i] + ring, links[i - 1] + minus
    H = reference.inertia_matrix(chain.floats, q)
    assert difference(METHODS[key], chain.with_links(tuple(links)), q, H) < 1e-12


@pytest.mark.parametrize("key", ["lin_fang_2", "lin_1991", "renaud", "gibbs_appell", "denoc"])
def test_moments_without_mass(key):
    """Minimal parameters may be realised by links without mass that have moments all the same."""
    chain = generic_chain("RRR", 2)
    odd = Link(0, Vec3(Fraction(1, 5), 0, Fraction(1, 7)), Sym3(1, 0, 2, 0, 0, 2))
    chain = chain.with_links((chain.links[0], odd, chain.links[2]))
    assert difference(METHODS[key], chain, configuration(random.Random(2), 3)) < 1e-12


@pytest.mark.parametrize("key", METHODS)
def test_links_made_from_minimal_parameters(key):
    """Links that no body has, negative and zero masses among them, with the arm's minimal parameters."""
    rng = random.Random(12)
    for _ in range(10):
        chain = any_chain(rng, 5)
        q = configuration(rng, chain.n)
        made = realise(chain, minimal_parameters(chain).values)
        try:
            assert difference(METHODS[key], made, q, reference.inertia_matrix(chain.floats, q)) < 1e-12
        except armdyn.ArmdynError:
            assert key in ("walker_orin", "lin_cubic", "angeles_ma")


@pytest.mark.parametrize("key", METHODS)
def test_a_batch_of_configurations(key):
    chain = generic_chain("RRPR", 1)
    rows = np.random.default_rng(1).uniform(-3, 3, (5, 4))
    batch = Kernel(chain, "inertia_matrix", key, "python")(rows)
    one = [reference.inertia_matrix(chain.floats, list(row)) for row in rows]
    assert np.abs(batch - np.array(one)).max() < 1e-12 * np.abs(batch).max()


def test_walker_and_orin_need_centres_of_mass():
    chain = generic_chain("RR", 2)
    odd = Link(0, Vec3(1, 0, 0), Sym3(1, 0, 1, 0, 0, 1))
    with pytest.raises(armdyn.ArmdynError, match="lin_fang_1"):
        METHODS["walker_orin"](chain.with_links((odd, chain.links[1])), [0.1, 0.2])


def test_both_composite_bodies_are_the_same_bodies():
    rng = random.Random(5)
    for _ in range(100):
        chain = any_chain(rng, 7).floats
        path = steps.steps(chain, configuration(rng, chain.n))
        pairs = list(zip(minimal.composite_bodies(chain, path), natural.composite_bodies(chain, path), strict=True))
        r, s, axes = minimal.first_axes(chain)
        for i, (body, whole) in enumerate(pairs):
            c, J = whole.moment, whole.inertia
            assert body.mass == pytest.approx(whole.mass)
            if i >= s:
                expected = (c.x, c.y, J.xz, J.yz, J.zz) if body.revolute else (*c, 0, 0)
                got = (*body.moment,)[: 2 if body.revolute else 3]
                got = (*got, *body.column) if body.revolute else (*got, 0, 0)
                assert got == pytest.approx(expected, abs=1e-12)
            elif i >= r:
                torque = axes[i].dot(J @ Z if body.revolute else c.cross(Z))  # Lin & Fang eq. (29)
                assert body.inner.torque == pytest.approx(torque, abs=1e-12)


def test_natural_composite_bodies_are_sums_over_links():
    rng = random.Random(6)
    chain = any_chain(rng, 6).floats
    path = steps.steps(chain, configuration(rng, chain.n))
    total = chain.links[-1]
    for link, step in zip(chain.links[-2::-1], path[:0:-1], strict=True):
        total = link + total.moved(step.R.matrix(), step.origin)
    assert natural.composite_bodies(chain, path)[0].natural == pytest.approx(total.natural, abs=1e-12)


def test_gibbs_function_plain_sum():
    """Provenzano et al. eq. (4), the O(n³) sum that the GAH steps start from."""
    rng = random.Random(4)
    chain = generic_chain("RPRRPR", 4).floats
    q = configuration(rng, 6)
    placed = reference.frames(chain, q)
    D = np.zeros((6, 6))
    for i, (link, (R, p)) in enumerate(zip(chain.links, placed, strict=True)):
        centre = R @ link.com + p
        spins, rates = [], []
        for joint, (R_k, p_k) in zip(chain.joints[: i + 1], placed, strict=False):
            u = R_k @ Z
            spins.append(R.T @ u if joint.revolute else ZERO)
            rates.append(u.cross(centre - p_k) if joint.revolute else u)
        for j in range(i + 1):
            for k in range(i + 1):
                D[j, k] += link.mass * rates[j].dot(rates[k]) + spins[j].dot(link.inertia_about_com @ spins[k])
    assert np.abs(np.array(METHODS["gibbs_appell"](chain, q)) - D).max() < 1e-12 * np.abs(D).max()


def test_the_tracing_benchmark_runs(capsys):
    runpy.run_path(str(Path(__file__).parent.parent / "benchmarks" / "tracing.py"))["main"](repeats=1, sizes=(2,))
    assert "lin_fang_1" in capsys.readouterr().out


# No formulation leans on another.


def _raise(chain, *arguments):
    raise AssertionError("this route must not be taken")


@pytest.mark.parametrize("key", METHODS)
def test_no_formulation_calls_another(key, monkeypatch):
    chain, q = generic_chain("RRPRR", 1).floats, configuration(random.Random(1), 5)
    expected = reference.inertia_matrix(chain, q)
    others = [run for other, run in METHODS.items() if other != key]
    for function in [*others, reference.inertia_matrix, reference.frames, natural.composite_bodies, natural.inwards]:
        monkeypatch.setattr(function, "__code__", _raise.__code__.replace(co_freevars=function.__code__.co_freevars))
    with pytest.raises(AssertionError):
        reference.inertia_matrix(chain, q)
    assert difference(METHODS[key], chain, q, expected) < 1e-12


# Tests of the tests: an error of one sign in a formulation does not go unnoticed.


UNJUDGED = (
    "_cost",
    "ways",
    "meeting_frames",
    "meeting_frame",
    "is_long",
)  # they choose m: a matter of cost, not of values


class Flip(ast.NodeTransformer):
    """Turn the k-th + or - (binary, not of an index) into its opposite."""

    def __init__(self, k):
        self.k, self.seen = k, -1

    def visit_FunctionDef(self, node):
        return node if node.name in UNJUDGED else self.generic_visit(node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        flips = {ast.Add: ast.Sub, ast.Sub: ast.Add}
        whole = any(isinstance(x, ast.Constant) and isinstance(x.value, int) for x in (node.left, node.right))
        if type(node.op) in flips and not whole:
            self.seen += 1
            if self.seen == self.k:
                node.op = flips[type(node.op)]()
        return node


def mutants(module):
    """The module with each sign flipped in turn."""
    k = 0
    while True:
        flip = Flip(k)
        tree = ast.fix_missing_locations(flip.visit(ast.parse(inspect.getsource(module))))
        if flip.seen < k:
            return
        mutant = types.ModuleType(module.__name__)
        exec(compile(tree, f"mutant {k}", "exec"), mutant.__dict__)
        yield k, mutant
        k += 1


@pytest.fixture(scope="module")
def judged():
    rng = random.Random(9)
    kinds = ["RPRRP", "PRPRR", "RPPRR", "RPR", "RPPR", "RRRR", "RRPR"] * 3
    tilted = generic_chain("RRPRR", 5)
    tilted = replace(tilted, joints=tuple(replace(j, gamma=Angle.of(0.3), d=Fraction(1, 5)) for j in tilted.joints))
    chains = [generic_chain("RRPRR", 3), generic_chain("PRRR", 2), generic_chain("RPPR", 6), tilted]
    chains += [special_chain(rng, k, 0.8) for k in kinds]
    odd = Link(0, Vec3(Fraction(1, 5), Fraction(1, 3), Fraction(1, 7)), Sym3(1, 0, 2, 0, 0, 2))
    first, _, *rest = generic_chain("RRPR", 2).links
    chains.append(generic_chain("RRPR", 2).with_links((first, odd, *rest)))
    chains.append(generic_chain("RRPRRRRRRRPRRRRRRR", 4))  # long enough for another route through `meeting_frame`
    cases = [(c.floats, configuration(rng, c.n)) for c in chains]
    return [(c, q, reference.inertia_matrix(c, q)) for c, q in cases]


def caught(run, judged):
    for chain, q, expected in judged:
        if chain.links[1].mass == 0 and chain.links[1].moment.x != 0 and "walker" in run.__module__:
            continue
        try:
            if difference(run, chain, q, expected) > 1e-9:
                return True
        except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
            return True
    return False


@pytest.mark.parametrize("key", METHODS)
def test_planted_sign_errors_are_caught(key, judged):
    module, name = inspect.getmodule(METHODS[key]), METHODS[key].__name__
    missed = [k for k, mutant in mutants(module) if not caught(getattr(mutant, name), judged)]
    assert not missed


def test_planted_sign_errors_in_the_composite_bodies_are_caught(judged, monkeypatch):
    missed = []
    for k, mutant in mutants(minimal):
        monkeypatch.setattr(lin_fang_1, "composite_bodies", mutant.composite_bodies)
        if not caught(lin_fang_1.inertia_matrix, judged):
            missed.append(k)
    assert not missed


def printed(module, right, wrong):
    """The module with a formula as the paper prints it."""
    source = inspect.getsource(module)
    assert source.count(right) == 1
    mutant = types.ModuleType(module.__name__)
    exec(source.replace(right, wrong), mutant.__dict__)
    return mutant


def wrong_share(run):
    rng, chains = random.Random(0), [generic_chain("RPPR", seed) for seed in range(30)]
    chains += [special_chain(rng, "RPRRPR", 0.5) for _ in range(100)]
    below = [chain for chain in chains if slides_below_s(chain)]
    return sum(difference(run, chain, configuration(rng, chain.n)) > 1e-9 for chain in below) / len(below)


def test_the_print_of_eq_40_is_wrong(monkeypatch):
    """The signs and the factor 2 of the terms with l."""
    right = "(2 * square) * ell.z - (2 * u.z * u.x) * ell.x - (2 * u.z * u.y) * ell.y"
    mutant = printed(minimal, right, "(2 * square) * ell.z - (u.z * u.x) * ell.x + (u.z * u.y) * ell.y")
    assert wrong_share(lin_fang_1.inertia_matrix) == 0
    monkeypatch.setattr(lin_fang_1, "composite_bodies", mutant.composite_bodies)
    assert wrong_share(lin_fang_1.inertia_matrix) > 0.25


def test_the_print_of_eq_31_is_wrong():
    """The factor is (u_r⟨j⟩)_z, not (u_r⟨i⟩)_z."""
    mutant = printed(lin_fang_1, "u.z * t_r if", "inners[i].u.z * t_r if")
    assert wrong_share(mutant.inertia_matrix) > 0.25

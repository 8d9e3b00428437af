"""The papers' own operation counts, by executing the very functions that give the values."""

from __future__ import annotations

import ast
import inspect
import types
from dataclasses import replace

import pytest

from armdyn.algebra import JointRotation, Sym3, Tally, counting, on_hand
from armdyn.chain.chain import generic_chain
from armdyn.formulations import QUANTITIES
from armdyn.programs.cost import cost, published
from armdyn.studies.lin_1991 import TILTED
from armdyn.studies.polynomial import CountPolynomial

BODIES, FORMULATION = "composite bodies", "formulation"
METHODS = {m.key: m.run for m in QUANTITIES["inertia_matrix"].methods}


def counted(kinds, method):
    return published(generic_chain(kinds), "inertia_matrix", method)


def type_1(n):
    return "R" * n


def type_2(n):
    return "RRP" + "R" * (n - 3)


def pair(found):
    return found.mul, found.add


def polynomial(n, a, b, c):
    value = a * n * n + b * n + c
    assert value == int(value)
    return int(value)


# (kinds, smallest n, method) -> coefficients of n², n, 1 for multiplications and additions.
PRINTED = {
    (type_1, 3, "lin_fang_1"): ((10, -18, 10), (6, -10, 4)),
    (type_2, 4, "lin_fang_1"): ((10, -18, 0), (6, -10, 0)),
    (type_1, 3, "lin_fang_2"): ((11.5, -27.5, 16), (8, -18, 10)),
    (type_1, 3, "lin_fang_3"): ((12.5, -28.5, 16), (8, -18, 10)),
    (type_1, 3, "lin_fang_5"): ((10, -18, 14), (6, -6, 2)),
}
# Where the print does not add up: what its rows take (docs/papers/errata.md).
EXECUTED = {
    (type_2, 4, "lin_fang_2"): ((11.5, -40.5, 57), (8, -29, 43)),
    (type_2, 4, "lin_fang_3"): ((12.5, -43.5, 64), (8, -29, 45)),
    (type_1, 3, "lin_fang_4"): ((4.5, 40.5, -88), (4, 20, -48)),
    (type_2, 4, "lin_fang_4"): ((4.5, 40.5, -94), (4, 20, -54)),
    (type_2, 4, "lin_fang_5"): ((10, -18, 0), (6, -6, -11)),
}
CASES = [
    (kinds, n, method, mul, add)
    for (kinds, least, method), (mul, add) in (PRINTED | EXECUTED).items()
    for n in range(least, 13)
]


@pytest.mark.parametrize(("kinds", "n", "method", "mul", "add"), CASES)
def test_table_vi(kinds, n, method, mul, add):
    found = counted(kinds(n), method).stages[FORMULATION]
    assert pair(found) == (polynomial(n, *mul), polynomial(n, *add))


@pytest.mark.parametrize("n", range(3, 13))
@pytest.mark.parametrize("method", ["lin_fang_1", "lin_fang_2", "lin_fang_3", "lin_fang_4", "lin_fang_5"])
def test_table_vii(n, method):
    assert pair(counted(type_1(n), method).stages[BODIES]) == (32 * n - 47, 33 * n - 57)
    if n > 3:
        assert pair(counted(type_2(n), method).stages[BODIES]) == (32 * n - 45, 33 * n - 59)


@pytest.mark.parametrize("n", range(3, 13))
def test_table_viii(n):
    assert pair(counted(type_1(n), "lin_fang_1")) == (10 * n * n + 14 * n - 37, 6 * n * n + 23 * n - 53)
    assert pair(counted(type_1(n), "lin_fang_2")) == (polynomial(n, 11.5, 4.5, -31), 8 * n * n + 15 * n - 47)
    if n > 3:
        assert pair(counted(type_2(n), "lin_fang_1")) == (10 * n * n + 14 * n - 45, 6 * n * n + 23 * n - 59)
        # printed 3M 3A more; these are its rows
        assert pair(counted(type_2(n), "lin_fang_2")) == (polynomial(n, 11.5, -8.5, 12), 8 * n * n + 4 * n - 16)


@pytest.mark.parametrize("n", range(3, 13))
def test_lin_1991(n):
    """Every multiplication as printed; a similarity takes one addition less than the print leaves for it."""
    assert pair(counted(type_1(n), "lin_1991")) == (polynomial(n, 10.5, 38.5, -85), 6 * n * n + 39 * n - 70 - (n - 2))


@pytest.mark.parametrize("n", range(3, 13))
def test_renaud(n):
    """1M 1A less for each of n-2 similarities."""
    mul, add = polynomial(n, 13.5, 22.5, -68), 9 * n * n + 26 * n - 64
    assert pair(counted(type_1(n), "renaud")) == (mul - (n - 2), add - (n - 2))


# What the rows of the comparisons take when executed: the inertia matrix, or the bias at zero acceleration.
COMPARED = {
    ("inertia_matrix", "kawasaki", True): ("11n² + 15n - 40", "7n² + 32n - 66"),  # printed: 1M less
    ("inertia_matrix", "kawasaki", False): ("11n² + 9n - 34", "7n² + 23n - 57"),  # printed: 1M less
    ("inertia_matrix", "fijany_bejczy", 2): ("4.5n² + 93.5n - 198", "4n² + 67n - 136"),
    ("inertia_matrix", "fijany_bejczy", 0): ("4.5n² + 96.5n - 171", "4n² + 69n - 122"),
    ("inertia_matrix", "lin_cubic", None): ("(7/6)n³ + 18.5n² - (107/3)n + 16", "n³ + 13.5n² - 25.5n + 11"),
    ("inertia_matrix", "angeles_ma", None): ("n³ + 18n² - 35n + 16", "n³ + 12n² - 24n + 11"),
    ("bias", "khalil_kleinfinger", None): ("105n - 113", "86n - 101"),
    ("bias", "balafoutis", None): ("93n - 102", "80n - 93"),
    ("inverse_dynamics", "balafoutis", None): ("93n - 88", "81n - 80"),  # printed: 93n-69, 81n-66
}
VARIANTS = {"kawasaki": "masses", "fijany_bejczy": "frame"}


@pytest.mark.parametrize(("quantity", "method", "variant"), COMPARED)
def test_rows_of_the_comparisons(quantity, method, variant):
    mul, add = {}, {}
    for n in range(3, 13):
        chain = replace(generic_chain(type_1(n)), gravity=TILTED)
        options = {} if variant is None else {VARIANTS[method]: variant}
        mul[n], add[n] = pair(published(chain, quantity, method, **options))
    assert (str(CountPolynomial.through(mul)), str(CountPolynomial.through(add))) == COMPARED[quantity, method, variant]


@pytest.mark.parametrize("n", range(3, 13))
def test_gibbs_appell(n):
    """Rows (17) and (18) take 1M 8A and 3A less than their printed totals; all others are exact."""
    mul, add = polynomial(n, 11.5, 19.5, -49), polynomial(n, 8.5, 31.5, -69)
    assert pair(counted(type_1(n), "gibbs_appell")) == (mul - (n - 2), add - 8 * (n - 2) - 3)


def free(function):
    """The same function, uncounted; its calls are."""
    calls = []

    def wrapper(*arguments):
        calls.append(1)
        return on_hand(lambda: function(*arguments))

    return wrapper, calls


@pytest.mark.parametrize("n", range(3, 13))
@pytest.mark.parametrize(
    ("method", "similarity", "mul", "add"),
    [("lin_1991", 36, (10.5, 38.5, -85), (6, 39, -70)), ("renaud", 37, (13.5, 22.5, -68), (9, 26, -64))],
)
def test_the_rows_but_the_similarity_are_exact(method, similarity, mul, add, n, monkeypatch):
    """Everything but R J Rᵀ adds up to the print less n-2 similarities of 36M 19A or 37M 19A."""
    wrapper, calls = free(JointRotation.similarity_by_products)
    monkeypatch.setattr(JointRotation, "similarity_by_products", wrapper)
    found = counted(type_1(n), method)
    assert len(calls) == n - 2
    assert pair(found) == (polynomial(n, *mul) - similarity * (n - 2), polynomial(n, *add) - 19 * (n - 2))


def test_similarities():
    J = Sym3(*(Tally(k + 0.5) for k in range(6)))
    R = generic_chain("RR").joints[1].rotation(Tally(0.3))
    for similarity, expected in ((R.similarity, (18, 14)), (R.similarity_by_products, (36, 18))):
        with counting() as counter:
            similarity(J)
        assert pair(counter.operations()) == expected


@pytest.mark.parametrize("n", range(3, 13))
def test_the_rows_of_gah_but_17_and_18_are_exact(n, monkeypatch):
    """Rows (10), (11), (14), (15), (16), (20): what is left without the tensors φ."""
    module = inspect.getmodule(METHODS["gibbs_appell"])
    for owner, name in ((JointRotation, "similarity"), (module, "parallel_axis"), (module, "_along")):
        monkeypatch.setattr(owner, name, free(getattr(owner, name))[0])
    mul, add = polynomial(n, 11.5, 19.5, -49), polynomial(n, 8.5, 31.5, -69)
    # of (17) the sum of three tensors is left, 12A; of (18) 3M 1A and 2A
    left = (mul - 31 * (n - 2) - 13 + 3, add - 40 * (n - 2) - 11 + 12 * (n - 2) + 3)
    assert pair(counted(type_1(n), "gibbs_appell")) == left


def test_sines_and_cosines_are_counted_apart():
    found = counted("RRPRR", "lin_fang_1")
    assert found.trig == 8
    assert found.total == found.mul + found.add


def test_the_count_does_not_depend_on_the_sample():
    for seed in range(5):
        found = published(generic_chain("RRPRRR", seed), "inertia_matrix", "lin_fang_2")
        assert pair(found) == (375, 296)


def test_stages_add_up():
    for method in METHODS:
        found = counted("RRPR", method)
        if found.stages:
            assert sum(s.total for s in found.stages.values()) == found.total


def test_the_compiled_program_is_never_longer():
    for kinds in ("RRRR", "RRPR"):
        for method in METHODS:
            both = cost(generic_chain(kinds), "inertia_matrix", method)
            assert both.compiled.total <= both.published.total, method


class ExtraProduct(ast.NodeTransformer):
    """Multiply the k-th product of the source by one, known only at run time."""

    def __init__(self, k):
        self.k, self.seen = k, -1

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult):
            self.seen += 1
            if self.seen == self.k:
                return ast.parse(f"({ast.unparse(node)}) * __import__('armdyn.algebra').algebra.Tally(1)").body[0].value
        return node


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("reference", "meeting_frame", "lin_fang_1")])
def test_an_extra_product_moves_the_published_count(method):
    module = inspect.getmodule(METHODS[method])
    chain, moved = generic_chain("RRPRR"), []
    expected = counted("RRPRR", method)
    tree = ast.parse(inspect.getsource(module))
    for k in range(sum(isinstance(x, ast.BinOp) and isinstance(x.op, ast.Mult) for x in ast.walk(tree))):
        planted = ast.fix_missing_locations(ExtraProduct(k).visit(ast.parse(inspect.getsource(module))))
        mutant = types.ModuleType(module.__name__)
        exec(compile(planted, "planted", "exec"), mutant.__dict__)
        with counting() as counter:
            try:
                getattr(mutant, METHODS[method].__name__)(chain, [Tally(0.3 + 0.1 * i) for i in range(5)])
            except TypeError:  # a list that is repeated is no product
                continue
        moved.append(counter.operations().mul - expected.mul)
    if not moved:
        pytest.skip("the file has no product of its own")
    assert max(moved) > 0
    assert min(moved) >= 0


def test_an_extra_product_in_a_wrench_moves_formulation_1():
    module = inspect.getmodule(METHODS["lin_fang_1"])
    source = inspect.getsource(module)
    place = "run_time(body.torque)"
    assert source.count(place) == 1
    mutant = types.ModuleType(module.__name__)
    exec(source.replace(place, f"{place} * run_time(body.torque).z"), mutant.__dict__)
    with counting() as counter:
        mutant.inertia_matrix(generic_chain("RRRRR"), [Tally(0.3 + 0.1 * i) for i in range(5)])
    assert counter.operations(FORMULATION).mul == counted("RRRRR", "lin_fang_1").stages[FORMULATION].mul + 3 * 4

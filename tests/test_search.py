"""The search for the shortest program, and the registry it goes by."""

from __future__ import annotations

import gc
import inspect
import random
import re
import threading
from dataclasses import replace

import pytest

import armdyn
from armdyn.arm import KernelAttributes
from armdyn.chain.chain import generic_chain
from armdyn.codegen import cache
from armdyn.errors import InputError
from armdyn.formulations import DERIVATIVES, QUANTITIES
from armdyn.formulations.registry import Options
from armdyn.graph.program import trace
from armdyn.kernels import kernel
from armdyn.programs import program as programs
from armdyn.programs import search
from armdyn.programs.assemble import assemble
from armdyn.programs.cost import compiled
from armdyn.programs.search import auto, paused_collector
from random_chains import special_chain


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setenv("ARMDYN_CACHE", "off")
    auto.cache_clear()


def fewest(chain, quantity):
    keys = [m.key for m in QUANTITIES[quantity].methods if not m.reference_only]
    return min(programs.program(chain, quantity, key).operations.total for key in keys)


@pytest.mark.parametrize("quantity", ["inertia_matrix", "inverse_dynamics", "forward_dynamics"])
def test_the_choice_has_the_fewest_compiled_operations(quantity):
    rng = random.Random(11)
    chains = [armdyn.load("puma560").chain, generic_chain("RPR"), special_chain(rng, "RRRPR"), generic_chain("PR")]
    for chain in chains:
        chosen = programs.program(chain, quantity, auto(chain, quantity)).operations.total
        assert chosen == fewest(chain, quantity)


def test_a_long_arm_is_not_traced_for_a_choice(monkeypatch):
    def forbidden(*_):
        raise AssertionError("traced")

    monkeypatch.setattr(search, "trace", forbidden)
    chain = generic_chain("R" * 30)
    assert auto(chain, "inverse_dynamics") in ("second_moments", "point_masses")  # O(n) too
    assert auto(chain, "forward_dynamics") in ("denoc", "articulated_body")  # O(n), where `composite` is O(n³)


def test_the_choice_is_remembered(monkeypatch, tmp_path):
    monkeypatch.setenv("ARMDYN_CACHE", str(tmp_path))
    if cache.source() is None:
        pytest.skip("the source has changed since it was imported, so nothing is kept")
    chain = generic_chain("RRR", 8)
    first = kernel.auto(chain, "inertia_matrix")
    kernel.auto.cache_clear()
    monkeypatch.setattr(search, "auto", lambda *_: pytest.fail("searched again"))
    assert kernel.auto(chain, "inertia_matrix") == first


def test_the_choice_is_never_above_another_formulation_that_was_seen_to_win():
    """Which ones may win differs from arm to arm: here every program is made."""
    for seed, kinds in enumerate(("RRPRR", "RRRRRP", "PRRPR")):
        chain = special_chain(random.Random(seed), kinds, 0.5)
        assert compiled(chain, "inertia_matrix", auto(chain, "inertia_matrix")).total == fewest(chain, "inertia_matrix")


def test_run_time_parameters_are_searched_anew():
    """The formulation with the fewest operations on constant links need not have them on general ones."""
    arm = armdyn.load("panda")
    kernel = arm.inertia_matrix.variant(parameters="runtime")
    assert (arm.inertia_matrix.method, kernel.method) == ("meeting_frame", "lin_fang_1")
    assert kernel.program.name == "inertia_matrix_lin_fang_1"  # the method names the program that runs


def test_kernels_take_the_choice():
    arm = armdyn.load("puma560")
    assert arm.inertia_matrix.method == auto(arm.chain, "inertia_matrix") == "meeting_frame"


def test_a_quantity_with_one_formulation():
    for quantity, entry in QUANTITIES.items():
        if len(entry.methods) == 1:
            assert auto(generic_chain("RR"), quantity) == entry.methods[0].key


def test_compiled_costs_exist_for_every_quantity_and_method():
    for quantity, entry in QUANTITIES.items():
        chain = generic_chain("RRPRRR" if entry.dof else "RP")
        for method in entry.methods:
            assert compiled(chain, quantity, method.key).total >= 0


def test_the_cost_of_the_choice():
    chain = generic_chain("RRP")
    assert armdyn.cost(chain, "inertia_matrix") == armdyn.cost(chain, "inertia_matrix", auto(chain, "inertia_matrix"))


def test_the_arm_has_a_kernel_for_every_quantity():
    written = set(re.findall(r"^ +(\w+): Kernel$", inspect.getsource(KernelAttributes), re.MULTILINE))
    assert written == {*QUANTITIES, *DERIVATIVES}
    arm = armdyn.load("scara")
    for name in written:
        kernel = getattr(arm, name)
        assert kernel.quantity == name.removesuffix("_derivatives")
        assert getattr(armdyn.Arm, name).__doc__.endswith(".")


def test_a_formulation_for_serial_chains_alone_is_refused_for_a_tree(monkeypatch):
    chain = generic_chain("RRR")
    entry = QUANTITIES["coriolis_matrix"]
    first, second = entry.methods
    monkeypatch.setattr(type(entry), "methods", (replace(first, serial_only=True), second))
    assert auto(chain, "coriolis_matrix") == first.key
    chain = replace(chain, parents=(-1, 0, 0))
    assert auto(chain, "coriolis_matrix") == second.key
    with pytest.raises(InputError, match=rf"{first.key} needs a serial chain.*available: {second.key}"):
        assemble(chain, "coriolis_matrix", first.key)


def test_the_collector_pauses_while_a_program_is_made():
    """Also when it fails, when several threads are inside, and in a forked child."""
    assert gc.isenabled()

    @paused_collector()
    def fails():
        assert not gc.isenabled()
        raise ZeroDivisionError

    with paused_collector():
        with pytest.raises(ZeroDivisionError):
            fails()
        assert not gc.isenabled()
        other = paused_collector()
        thread = threading.Thread(target=other.__enter__)
        thread.start()
        thread.join()
    assert not gc.isenabled()  # the thread is still inside
    search._after_fork()  # what a child does: that thread does not exist there
    assert gc.isenabled()
    other.__exit__(None, None, None)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_variants_with_the_same_steps_are_rewritten_once():
    chain = armdyn.load("panda").chain
    programs = search._traced(chain, "inertia_matrix", "meeting_frame", Options())
    distinct = search._distinct((*programs, *programs))
    assert len(distinct) <= len(programs)
    assert {p.structure for p in distinct} == {p.structure for p in programs}
    assert distinct[0] is programs[0]


def test_an_option_that_no_formulation_takes_is_a_clear_error():
    kernel = armdyn.load("planar3").forward_dynamics.variant(frame="link1")
    with pytest.raises(InputError, match="takes a frame only with a tool_wrench"):
        kernel.method  # noqa: B018


def test_programs_are_remembered_up_to_a_number_of_nodes(monkeypatch):
    made = []

    @search.remembered
    def squares(count):
        made.append(count)
        return trace("squares", lambda x: [a * a for a in x], {"x": (count,)}, [("y", (count,))])

    monkeypatch.setattr(search, "REMEMBERED", 100)  # 50 entries have 100 nodes
    for count in (10, 20, 10, 15, 20):  # 60, then 90 nodes
        assert len(squares(count).outputs[0].nodes) == count
    assert made == [10, 20, 15]
    squares(10)  # used last now; the oldest are 15, then 20
    squares(11)  # 112 nodes: 15 goes
    for count in (20, 10, 11):
        squares(count)
    assert made == [10, 20, 15, 11]
    first = squares(60)  # more than all: kept alone
    assert squares(60) is first
    for count in (10, 11, 20):
        squares(count)
    assert made == [10, 20, 15, 11, 60, 10, 11, 20]

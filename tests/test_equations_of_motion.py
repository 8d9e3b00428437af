"""H and b in one call: the values of both, on chains, trees, mimic joints and floating bases; what it costs."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn.chain.chain import generic_chain
from armdyn.formulations import QUANTITIES
from armdyn.programs.assemble import assemble
from armdyn.programs.cost import published
from armdyn.studies.lin_1991 import TILTED
from armdyn.studies.polynomial import CountPolynomial
from random_chains import any_chain
from random_trees import TreeKind, random_tree

TREES = {
    "branches": TreeKind(joints=6, fork=0.4, rotors=True),
    "mimic": TreeKind(joints=6, fork=0.3, mimic=0.4, rotors=True),
    "floating": TreeKind(joints=4, fork=0.4, floating=True, mimic=0.2, rotors=True),
}


def at(chain, quantity, method, *inputs):
    found = assemble(chain.floats, quantity, method).function(*(list(map(float, x)) for x in inputs))
    return [np.array(one, float) for one in found] if isinstance(found, tuple) else np.array(found, float)


def agrees(chain, seed):
    rng = np.random.default_rng(seed)
    q, qd = rng.uniform(-2, 2, chain.nq), rng.uniform(-2, 2, chain.nv)
    if chain.floating:
        q[3:7] /= np.linalg.norm(q[3:7])
    H, b = at(chain, "inertia_matrix", "meeting_frame", q), at(chain, "bias", "newton_euler", q, qd)
    for method in QUANTITIES["equations_of_motion"].methods:
        if method.serves(chain):
            together = at(chain, "equations_of_motion", method.key, q, qd)
            for found, expected in zip(together, (H, b), strict=True):
                assert np.abs(found - expected).max() < 1e-11 * max(1.0, np.abs(expected).max()), method.key


@pytest.mark.parametrize("seed", range(8))
def test_any_chain(seed):
    agrees(any_chain(random.Random(seed), 7), seed)


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("seed", range(3))
def test_trees(kind, seed):
    agrees(random_tree(TREES[kind], seed), seed)


def test_compiled_with_rotors_for_batches_and_at_run_time():
    arm = armdyn.load("puma560")
    assert any(joint.rotor_inertia != 0 for joint in arm.chain.joints)
    q, qd, qdd = np.random.default_rng(1).uniform(-2, 2, (3, 4, 6))
    H, b = arm.equations_of_motion(q, qd)
    assert H.shape == (4, 6, 6)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", H, qdd) + b, arm.inverse_dynamics(q, qd, qdd), atol=1e-12)
    H, b = arm.equations_of_motion(q, qd, parameters=2 * np.array(arm.minimal_parameters.values))
    np.testing.assert_allclose(b, 2 * arm.bias(q, qd), atol=1e-11)


@pytest.mark.parametrize("name", ["puma560", "ur5"])
def test_it_costs_less_than_both_alone(name):
    arm = armdyn.load(name)
    both = arm.kernel("equations_of_motion").program.operations
    H, b = (arm.kernel(quantity).program.operations for quantity in ("inertia_matrix", "bias"))
    assert both.trig == b.trig  # sines and cosines once
    assert both.total + both.trig < H.total + H.trig + b.total + b.trig


def test_lin_1991_shares_what_the_paper_shares():
    """The paper's count of both: the n² terms are its own, and here body 1 and the entries of R take less."""
    mul, add, apart = {}, {}, {}
    for n in range(3, 13):
        chain = replace(generic_chain("R" * n), gravity=TILTED)
        found = published(chain, "equations_of_motion", "lin_1991")
        mul[n], add[n] = found.mul, found.add
        parts = (("inertia_matrix", "lin_1991"), ("bias", "newton_euler"))
        apart[n] = sum(published(chain, *part).total for part in parts)
    assert (str(CountPolynomial.through(mul)), str(CountPolynomial.through(add))) == (
        "23n² + 22n - 52",
        "15n² + 33n - 56",
    )
    assert [n for n in apart if mul[n] + add[n] < apart[n]] == [3, 4, 5, 6, 7, 8, 9]

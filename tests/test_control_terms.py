"""The quantities of passivity-based control and of the momentum observer: their identities on arms and trees."""

from __future__ import annotations

import random

import numpy as np
import pytest

import armdyn
from armdyn.formulations import QUANTITIES, momentum_bias, reference, reference_dynamics
from armdyn.programs.assemble import assemble
from random_chains import any_chain, configuration, special_chain
from random_trees import TreeKind, random_tree
from test_inertia_matrix import mutants

NEW = ("reference_dynamics", "momentum_bias")
TREES = {
    "branches": TreeKind(joints=6, fork=0.4, rotors=True),
    "mimic": TreeKind(joints=6, fork=0.3, mimic=0.4, rotors=True),
    "floating": TreeKind(joints=4, fork=0.4, floating=True, mimic=0.2, rotors=True),
}


def at(chain, quantity, *inputs, method=None):
    key = method or QUANTITIES[quantity].methods[0].key
    return np.array(assemble(chain, quantity, key).function(*(list(map(float, x)) for x in inputs)), float)


def identities(chain, rng):
    """(found, expected) of each quantity by matrices that other formulations give."""
    q = rng.uniform(-2, 2, chain.nq)
    if chain.floating:
        q[3:7] /= np.linalg.norm(q[3:7])
    qd, v, a = rng.uniform(-2, 2, (3, chain.nv))
    H, C = at(chain, "inertia_matrix", q, method="meeting_frame"), at(chain, "coriolis_matrix", q, qd)
    g = at(chain, "gravity_load", q)
    for method in armdyn.methods("reference_dynamics"):
        yield at(chain, "reference_dynamics", q, qd, v, a, method=method), H @ a + C @ v + g
    for method in armdyn.methods("momentum_bias"):
        yield at(chain, "momentum_bias", q, qd, method=method), C.T @ qd - g


@pytest.mark.parametrize("seed", range(8))
def test_they_are_made_of_inertia_and_coriolis_matrices(seed):
    chain = any_chain(random.Random(seed), 6).floats
    for found, expected in identities(chain, np.random.default_rng(seed)):
        np.testing.assert_allclose(found, expected, atol=1e-11 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("kind", TREES)
def test_they_hold_for_trees_mimic_joints_and_floating_bases(kind):
    for seed in range(3):
        chain = random_tree(TREES[kind], seed).floats
        for found, expected in identities(chain, np.random.default_rng(seed)):
            np.testing.assert_allclose(found, expected, atol=1e-10 * (1 + np.abs(expected).max()))


def test_on_the_arms_own_motion_the_reference_dynamics_are_the_inverse_dynamics(rng):
    arm = armdyn.load("panda")
    q, qd, qdd = rng.uniform(-1, 1, (3, 20, arm.n))
    np.testing.assert_allclose(arm.reference_dynamics(q, qd, qd, qdd), arm.inverse_dynamics(q, qd, qdd), atol=1e-12)


def test_the_momentum_bias_is_the_slope_of_the_lagrangian(rng):
    arm = armdyn.load("kr6") if "kr6" in armdyn.catalogue() else armdyn.load("puma560")
    q, qd = rng.uniform(-1, 1, (2, 20, arm.n))
    kinetic = arm.kinetic_energy.variant(derivatives=("q",))(q, qd)
    potential = arm.potential_energy.variant(derivatives=("q",))(q)
    np.testing.assert_allclose(arm.momentum_bias(q, qd), kinetic - potential, atol=1e-12)


def test_it_is_the_rate_of_the_momenta_of_an_arm_that_nobody_drives(rng):
    arm = armdyn.load("ur5")
    q, qd = rng.uniform(-1, 1, (2, arm.n))
    qdd, h = arm.forward_dynamics(q, qd, np.zeros(arm.n)), 1e-6
    after, before = (arm.momentum(q + s * h * qd + h * h / 2 * qdd, qd + s * h * qdd) for s in (1, -1))
    np.testing.assert_allclose((after - before) / (2 * h), arm.momentum_bias(q, qd), atol=1e-6)


@pytest.mark.parametrize("quantity", NEW)
def test_they_take_parameters_at_run_time(quantity, rng):
    arm = armdyn.load("ur5")
    inputs = rng.uniform(-1, 1, (len(QUANTITIES[quantity].inputs), 5, arm.n))
    kernel = arm.kernel(quantity, parameters="runtime")
    values = np.array(arm.minimal_parameters.values, float)
    np.testing.assert_allclose(kernel(*inputs, values), arm.kernel(quantity)(*inputs), atol=1e-12)
    twice = arm.kernel(quantity)(*inputs) * 2
    rotors = np.array(arm.rotor_inertias, float)  # they are no minimal parameters
    assert not rotors.any()
    np.testing.assert_allclose(kernel(*inputs, 2 * values), twice, atol=1e-11)


@pytest.mark.parametrize(("module", "name"), [(reference_dynamics, NEW[0]), (momentum_bias, NEW[1])])
def test_a_flipped_sign_is_noticed(module, name):
    rng = random.Random(3)
    cases = []
    for kinds in ("RRPR", "PRRR", "RPRP", "RRRR"):
        chain = special_chain(rng, kinds, 0.2).floats
        inputs = [configuration(rng, chain.n) for _ in QUANTITIES[name].inputs]
        cases.append((chain, inputs, getattr(reference, name)(chain, *inputs)))
    tree = random_tree(TreeKind(joints=5, fork=0.6), 1).floats
    inputs = [configuration(rng, tree.n) for _ in QUANTITIES[name].inputs]
    cases.append((tree, inputs, getattr(reference, name)(tree, *inputs)))

    def wrong(run):
        pairs = ((run(chain, *inputs), expected) for chain, inputs, expected in cases)
        try:
            return max(np.abs(np.array(a, float) - np.array(b, float)).max() for a, b in pairs)
        except TypeError:  # wrenches can be added only
            return np.inf

    assert wrong(getattr(module, name)) < 1e-10
    for k, mutant in mutants(module):
        assert wrong(getattr(mutant, name)) > 1e-6, f"sign {k} does not matter"

"""Minimal parameters of trees, mimic joints and floating bases: count against the rank of Pinocchio's regressor."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from armdyn.algebra import Angle, Sym3, Vec3
from armdyn.chain import Chain, Joint, Link
from armdyn.chain.joint import Mimic
from armdyn.parameters import minimal_parameters
from armdyn.parameters.energy import kinetic_row, potential_row

pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")

RIGHT = (0.0, np.pi / 2, -np.pi / 2, np.pi)
FREE = Joint("free", 0, Angle.of(0.0), 0, Angle.of(0.0))


def random_tree(rng: random.Random, bodies: int, mimics: int = 0, floating: bool = False) -> Chain:
    joints: list[Joint] = [FREE] if floating else []
    parents: list[int] = [-1] if floating else []
    for i in range(len(joints), bodies):
        parent = rng.randint(-1, i - 1) if rng.random() < 0.5 and not floating else i - 1
        parent = rng.randint(0, i - 1) if floating and rng.random() < 0.5 else parent
        angle = lambda: Angle.of(rng.choice((*RIGHT, rng.uniform(-3, 3))))  # noqa: E731
        length = lambda: Fraction(rng.choice((0, rng.randint(-9, 9))), 10)  # noqa: E731
        kind = rng.choice(("revolute", "revolute", "prismatic"))
        fork = {"turn": angle(), "shift": length()} if parent in parents else {}
        joints.append(Joint(kind, length(), angle(), length(), angle(), **fork))
        parents.append(parent)
    own = [i for i in range(len(joints)) if not joints[i].free]
    for _ in range(mimics):
        leader, follower = sorted(rng.sample(own, 2), key=lambda i: joints[i].mimic is not None)
        if joints[leader].mimic is None and not any(j.mimic and j.mimic.joint == follower for j in joints):
            multiplier = Fraction(rng.choice((1, -1, 2, Fraction(1, 2), Fraction(-3, 4))))
            joints[follower] = replace(joints[follower], mimic=Mimic(leader, multiplier, Fraction(1, 5)))
    links = tuple(
        Link.from_com(
            Fraction(rng.randint(10, 40), 10),
            Vec3(*(Fraction(rng.randint(-30, 30), 100) for _ in range(3))),
            Sym3(*(Fraction(x, 100) for x in (rng.randint(8, 12), 1, rng.randint(8, 12), -2, 1, rng.randint(8, 12)))),
        )
        for _ in joints
    )
    return Chain(tuple(joints), links, parents=tuple(parents))


def model_of(chain: Chain):
    """The same tree for Pinocchio, mimic joints free, and for every body its joint there."""
    model, ids = pin.Model(), []
    for i, (joint, parent) in enumerate(zip(chain.floats.joints, chain.parents, strict=True)):
        if joint.free:
            kind, place = pin.JointModelFreeFlyer(), pin.SE3.Identity()
        else:
            kind = pin.JointModelRZ() if joint.revolute else pin.JointModelPZ()
            R, p = joint.placement(0.0)
            place = pin.SE3(np.array([[float(x) for x in row] for row in R.matrix().rows]), np.array([*p], dtype=float))
        ids.append(model.addJoint(ids[parent] if parent >= 0 else 0, kind, place, f"j{i}"))
        link = chain.floats.links[i]
        inertia = np.array([[float(x) for x in row] for row in link.inertia_about_com.full.rows])
        model.appendBodyToJoint(
            ids[-1], pin.Inertia(link.mass, np.array([*link.com], float), inertia), pin.SE3.Identity()
        )
    model.gravity.linear = np.array([float(x) for x in chain.gravity])
    return model, ids


def projection(chain: Chain, model, ids) -> tuple[np.ndarray, np.ndarray]:
    """(G, o): every joint's rates and positions from those with a coordinate of their own."""
    own = [*chain.independent]
    extra = 6 if chain.floating else 0
    G, offset = np.zeros((model.nv, len(own) + extra)), np.zeros(model.nv)
    G[:extra, :extra] = np.eye(extra)
    for i, joint in enumerate(chain.joints):
        if joint.free:
            continue
        leader, factor, shift = (i, 1, 0) if joint.mimic is None else chain.leader(joint)
        at = model.joints[ids[i]].idx_v
        G[at, extra + own.index(leader)] = float(factor)
        offset[at] = float(shift)
    return G, offset


def regressor_rows(chain: Chain, states: int) -> np.ndarray:
    """Pinocchio's regressor projected on the independent joints, columns by body."""
    model, ids = model_of(chain)
    data, rng = model.createData(), np.random.default_rng(0)
    G, offset = projection(chain, model, ids)
    order = [10 * (k - 1) + c for k in ids for c in range(10)]
    rows = []
    for _ in range(states):
        q, v, a = (rng.uniform(-2, 2, G.shape[1]) for _ in range(3))
        full = pin.integrate(model, pin.neutral(model), G @ q + offset)
        # Mimic joints turn at constant ratios, so G is constant and accelerations project as rates do.
        Y = pin.computeJointTorqueRegressor(model, data, full, G @ v, G @ a).reshape(model.nv, -1)
        rows.append(G.T @ Y[:, order])
    return np.concatenate(rows)


def rank(rows: np.ndarray) -> int:
    singular = np.linalg.svd(rows, compute_uv=False)
    return int((singular > 1e-9 * singular[0]).sum())


CASES = [(seed, bodies, mimics, floating) for seed, bodies, mimics, floating in (
    *((k, 1 + k % 8, 0, False) for k in range(24)),
    *((k, 3 + k % 5, 1 + k % 2, False) for k in range(24)),
    *((k, 2 + k % 6, 0, True) for k in range(8)),
    *((k, 4 + k % 4, 1, True) for k in range(6)),
)]  # fmt: skip


@pytest.mark.parametrize(("seed", "bodies", "mimics", "floating"), CASES)
def test_count_is_the_rank_and_the_matrix_tells_the_torques(seed, bodies, mimics, floating):
    rng = random.Random(f"{seed} {bodies} {mimics} {floating}")
    chain = random_tree(rng, bodies, mimics, floating)
    parameters = minimal_parameters(chain)
    rows = regressor_rows(chain, 40)
    assert len(parameters) == rank(rows), chain
    realisation = np.array([[float(x) for x in row] for row in parameters.realisation])
    matrix = parameters.array
    # What the minimal parameters do not tell must not be felt: Y = Y · realisation · matrix.
    assert np.abs(rows - rows @ realisation @ matrix).max() < 1e-9 * np.abs(rows).max()
    natural = np.array([float(x) for link in chain.links for x in link.natural])
    assert np.allclose(matrix @ natural, parameters.values)
    made = np.array([float(x) for link in parameters.links(parameters.exact_values) for x in link.natural])
    assert np.abs(rows @ (made - natural)).max() < 1e-9 * np.abs(rows @ natural).max()


def test_formulas_of_a_fork_have_its_constants():
    chain = random_tree(random.Random("fork"), 3)
    turn, shift = Angle.of(0.4), Fraction(3, 10)
    child = Joint("revolute", Fraction(1, 2), Angle.of(0.3), Fraction(1, 5), Angle.of(0.0))
    root = Joint("revolute", 0, Angle.of(0.0), 0, Angle.of(0.0))
    chain = Chain(
        (root, child, replace(child, turn=turn, shift=shift)),
        chain.links,
        Vec3(Fraction(3), 0, Fraction(-9)),
        parents=(-1, 0, 0),
    )
    parameters = minimal_parameters(chain)
    formulas = {name: formula.symbolic for name, formula in zip(parameters.names, parameters.expressions, strict=True)}
    assert "sin(ψ₃)" in formulas["kx_1"] or "sin(ψ₃)" in formulas["ky_1"]
    for row, expression in zip(parameters.matrix, parameters.expressions, strict=True):
        assert np.allclose([float(x) for x in row], [float(x) for x in expression.row(chain)])


def test_energies_of_a_tree_are_pinocchios():
    chain = random_tree(random.Random("energies"), 7)
    model, ids = model_of(chain)
    data = model.createData()
    natural = np.array([float(x) for link in chain.links for x in link.natural])
    rng = np.random.default_rng(1)
    at = [model.joints[k].idx_v for k in ids]
    zero = np.array(potential_row(chain.floats, [0.0] * 7), float) @ natural - pin.computePotentialEnergy(
        model, data, np.zeros(7)
    )
    for _ in range(5):
        q, v = rng.uniform(-2, 2, (2, 7))
        twice = np.array(kinetic_row(chain.floats, list(q[at]), list(v[at])), dtype=float) @ natural
        assert twice / 2 == pytest.approx(pin.computeKineticEnergy(model, data, q, v), rel=1e-12)
        height = np.array(potential_row(chain.floats, list(q[at])), dtype=float) @ natural
        assert height - zero == pytest.approx(pin.computePotentialEnergy(model, data, q), rel=1e-9, abs=1e-9)

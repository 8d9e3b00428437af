"""Enclosures never lose a point, bounds are never exceeded, and what is claimed about them holds."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.algebra import interval
from armdyn.algebra.interval import Interval
from armdyn.errors import InputError
from armdyn.kernels.enclosure import Enclosure
from armdyn.uncertainty.interval_search import Problem

TURN = np.tile([-np.pi, np.pi], (6, 1))


def chain_of_operations(x, y, steps, rng):
    """A few random operations on two numbers of any type; results stay near 1."""
    for _ in range(steps):
        kind = rng.randrange(4)
        c = Fraction(rng.randint(1, 99), 100)
        x, y = (x * y + c, x) if kind == 0 else (x - y * c, y) if kind == 1 else (x * x * c, y) if kind == 2 else (y, x)
    return x


def worst_escape(trials: int) -> float:
    """By how much exact results leave their enclosures, over many random chains of operations; 0 if they never do."""
    worst = Fraction(0)
    for k in range(trials):
        a, b = (Fraction(random.Random(f"{k} {i}").uniform(-1, 1)) for i in range(2))
        exactly = chain_of_operations(a, b, 12, random.Random(k))
        low, high = chain_of_operations(Interval(float(a)), Interval(float(b)), 12, random.Random(k)).ends
        worst = max(worst, Fraction(float(low)) - exactly, exactly - Fraction(float(high)))
    return float(worst)


def test_exact_results_lie_in_their_enclosures():
    assert worst_escape(400) == 0


def test_a_planted_rounding_error_is_caught(monkeypatch):
    monkeypatch.setattr(interval, "UNIT", Fraction(0))
    monkeypatch.setattr(interval, "ALL", Fraction(1))
    monkeypatch.setattr(interval, "LEAST", Fraction(0))
    assert worst_escape(400) > 0


@pytest.mark.parametrize(("name", "quantity"), [("puma560", "inverse_dynamics"), ("stanford", "inertia_matrix")])
def test_compiled_enclosures_hold_every_point_of_their_box(name, quantity, rng):
    kernel = armdyn.load(name).kernel(quantity)
    variables = sum(shape[0] for _, shape in kernel.assembly.inputs)
    outputs = int(np.prod(kernel.assembly.outputs[0][1]))
    enclosure = Enclosure(kernel.program, [(0, k) for k in range(outputs)])
    centre, radius = rng.uniform(-3, 3, (500, variables)), 10 ** rng.uniform(-12, 0, (500, 1))
    low, high = enclosure(centre - radius, centre + radius)
    for _ in range(20):
        points = rng.uniform(centre - radius, centre + radius)
        parts = np.split(points, np.cumsum([shape[0] for _, shape in kernel.assembly.inputs])[:-1], axis=1)
        values = kernel(*parts).reshape(500, outputs)
        # The kernel's own values are rounded; an enclosure of exact values may miss them by as much.
        slack = 1e-13 * np.abs(values).max()
        assert (values >= low - slack).all()
        assert (values <= high + slack).all()
    tight = radius[:, 0] < 1e-9
    assert (high - low)[tight].max() < 1e-6 * np.abs(values).max()


@pytest.fixture(scope="module")
def ur5_bound():
    return armdyn.bound(armdyn.load("ur5"), "gravity_load", q=TURN, gap=0.05, seconds=600)


def test_no_random_point_exceeds_the_bounds(ur5_bound, rng):
    arm, found = armdyn.load("ur5"), ur5_bound
    values = arm.gravity_load(rng.uniform(-np.pi, np.pi, (200_000, 6)))
    assert (values <= found.upper + 1e-12).all()
    assert (values >= found.lower - 1e-12).all()
    assert (found.gap <= 0.05).all()


def test_witnesses_have_the_values_that_were_found(ur5_bound):
    arm, found = armdyn.load("ur5"), ur5_bound
    for side in range(2):
        for joint in range(6):
            q = found.witness["q"][side, joint]
            assert (np.abs(q) <= np.pi).all()
            assert arm.gravity_load(q)[joint] == pytest.approx(found.found[side, joint], abs=1e-9)
    assert found.upper[0] == pytest.approx(0, abs=1e-12)  # the first axis is vertical


def test_a_payload_range_is_decided_by_its_ends():
    arm = armdyn.load("planar3")
    q = np.tile([-1.0, 1.0], (3, 1))
    both = armdyn.bound(arm, "gravity_load", q=q, payload=(0.5, 2), gap=0.05, seconds=600)
    heavy = armdyn.bound(arm.with_payload(2.0), "gravity_load", q=q, gap=0.05, seconds=600)
    assert np.allclose(both.upper, heavy.upper)
    values = [arm.with_payload(m).gravity_load(np.random.default_rng(0).uniform(-1, 1, (2000, 3))) for m in (0.5, 1, 2)]
    assert (np.max(values, axis=(0, 1)) <= both.upper).all()
    assert (np.min(values, axis=(0, 1)) >= both.lower).all()


def test_accelerations_enter_linearly(rng):
    arm = armdyn.load("planar3")
    q, qd, qdd = (np.tile([-r, r], (3, 1)) for r in (0.5, 0.5, 2.0))
    found = armdyn.bound(arm, "inverse_dynamics", q=q, qd=qd, qdd=qdd, gap=0.2, seconds=600)
    state = (rng.uniform(box[:, 0], box[:, 1], (100_000, 3)) for box in (q, qd, qdd))
    values = arm.inverse_dynamics(*state)
    assert (values <= found.upper).all()
    assert (values >= found.lower).all()
    assert found.gap.max() <= 0.2


def test_bounds_are_valid_whenever_time_ends(rng):
    arm = armdyn.load("puma560")
    found = armdyn.bound(arm, "gravity_load", q=TURN, seconds=0.1)
    assert found.gap.max() > 0.01
    values = arm.gravity_load(rng.uniform(-np.pi, np.pi, (20_000, 6)))
    assert (values <= found.upper).all()
    assert (values >= found.lower).all()


def test_a_wrong_box_is_refused():
    arm = armdyn.load("ur5")
    with pytest.raises(InputError, match=r"\(6, 2\)"):
        armdyn.bound(arm, "gravity_load", q=[[0, 1]])
    with pytest.raises(InputError, match="lower before upper"):
        armdyn.bound(arm, "gravity_load", q=TURN[:, ::-1])
    with pytest.raises(InputError, match="gravity_load"):
        armdyn.bound(arm, "gravity", q=TURN)
    with pytest.raises(InputError, match="bounds are for add, sub, mul"):
        armdyn.bound(armdyn.load("planar3"), "inertia_inverse", q=np.tile([-1.0, 1.0], (3, 1)), seconds=1)


def test_angles_are_cut_to_half_turns():
    problem = Problem(armdyn.load("planar3").kernel("gravity_load"), {"q": np.tile([-7.0, 7.0], (3, 1))})
    low, high = problem.boxes(np.array([True, True, False]))
    assert (high - low)[:, :2].max() <= np.pi
    assert len(low) == 25


def test_the_command():
    from armdyn.cli import app

    ranges = [word for k in range(1, 4) for word in ("--range", f"q:{k}=-1,1")]
    done = CliRunner().invoke(app, ["bound", "planar3", "gravity_load", *ranges, "--gap", "5", "--json"])
    assert done.exit_code == 0, done.output
    data = json.loads(done.output)
    assert max(data["gap"]) <= 0.05
    done = CliRunner().invoke(app, ["bound", "planar3", "--range", "w:1=2,3"])
    assert done.exit_code != 0
    assert "INPUT one of q, qd, qdd" in str(done.exception)

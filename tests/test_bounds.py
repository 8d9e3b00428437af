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
from armdyn.cli.ranges import range_options
from armdyn.errors import InputError
from armdyn.uncertainty import expansions
from armdyn.uncertainty.expansions import Expansion, MotionRegion, Remainders
from armdyn.uncertainty.search import BoundedQuantity, Enclosure
from random_trees import TreeKind, random_tree

TURN = np.tile([-np.pi, np.pi], (6, 1))


def chain_of_operations(x, y, steps, rng):
    """A few random operations on two numbers of any type; results stay near 1."""
    for _ in range(steps):
        kind = rng.randrange(4)
        c = Fraction(rng.randint(1, 99), 100)
        x, y = (x * y + c, x) if kind == 0 else (x - y * c, y) if kind == 1 else (x * x * c, y) if kind == 2 else (y, x)
    return x


def sums(x, y, steps, rng):
    """Sums alone."""
    for _ in range(steps):
        x, y = x + y, x + Fraction(rng.randint(1, 99), 100)
    return x


def products(x, y, steps, rng):
    """Products alone, of numbers near 1."""
    for _ in range(steps):
        x, y = x * y, x * Fraction(rng.randint(90, 110), 100)
    return x


def worst_escape(trials: int, chain=chain_of_operations) -> float:
    """By how much exact results leave their enclosures, over many random chains of operations; 0 if they never do."""
    worst = Fraction(0)
    for k in range(trials):
        a, b = (Fraction(random.Random(f"{k} {i}").uniform(-1, 1)) for i in range(2))
        exactly = chain(a, b, 12, random.Random(k))
        low, high = chain(Interval(float(a)), Interval(float(b)), 12, random.Random(k)).ends
        worst = max(worst, Fraction(float(low)) - exactly, exactly - Fraction(float(high)))
    return float(worst)


def test_exact_results_lie_in_their_enclosures():
    assert worst_escape(400) == 0


def test_a_planted_rounding_error_is_caught(monkeypatch):
    monkeypatch.setattr(interval, "UNIT", Fraction(0))
    monkeypatch.setattr(interval, "ALL", Fraction(1))
    monkeypatch.setattr(interval, "LEAST", Fraction(0))
    assert worst_escape(400) > 0


@pytest.mark.parametrize(("operation", "chain"), [("__add__", sums), ("__mul__", products)])
def test_a_planted_rounding_error_in_one_operation_is_caught(operation, chain, monkeypatch):
    """Sums, or products, that leave their own rounding out."""
    assert worst_escape(200, chain) == 0
    right = getattr(Interval, operation)

    def unrounded(self, other):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(interval, "rounded", lambda centre, radius, operations=1: Interval(centre, radius))
            patch.setattr(interval, "inexact", lambda x: 0)
            return right(self, other)

    monkeypatch.setattr(Interval, operation, unrounded)
    monkeypatch.setattr(Interval, operation.replace("__", "__r", 1), unrounded)
    assert worst_escape(200, chain) > 0


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
    both = armdyn.bound(arm, "gravity_load", q=0.2 * q, payload=(0.5, 0.51), gap=0.05, seconds=600)
    assert set(both.witness["payload"].ravel()) == {0.5, 0.51}  # stretched out, the lighter load is the lower bound
    for end in (0, 1):
        for joint in range(arm.n):
            at, mass = both.witness["q"][end, joint], float(both.witness["payload"][end, joint])
            there = arm.with_payload(mass).gravity_load(at)[joint]
            assert there == pytest.approx(both.found[end][joint], rel=1e-9, abs=1e-12)


def escaped(arm, quantity, found, ranges, rng, count=100_000):
    """By how much random points exceed the bounds; corners of the rates among them."""
    state = []
    for name, box in ranges.items():
        points = rng.uniform(box[:, 0], box[:, 1], (count, arm.n))
        if name != "q":
            ends = np.where(rng.random((count // 2, arm.n)) < 0.5, box[:, 0], box[:, 1])
            points[: count // 2] = ends
        state.append(points)
    values = arm.kernel(quantity)(*state)
    return max((values - found.upper).max(), (found.lower - values).max())


def test_inverse_dynamics_of_all_motions(rng):
    arm = armdyn.load("planar3")
    ranges = {name: np.tile([-r, r], (3, 1)) for name, r in (("q", 3.0), ("qd", 2.0), ("qdd", 4.0))}
    found = armdyn.bound(arm, "inverse_dynamics", **ranges, gap=0.1, seconds=600)
    assert escaped(arm, "inverse_dynamics", found, ranges, rng) <= 0
    assert found.gap.max() <= 0.1
    for side in range(2):
        for joint in range(3):
            motion = [found.witness[name][side, joint] for name in ranges]
            assert arm.inverse_dynamics(*motion)[joint] == pytest.approx(found.found[side, joint], abs=1e-9)


def test_one_sided_ranges_and_a_stopped_search(rng):
    arm = armdyn.load("planar3")
    ranges = {"q": np.tile([-1.0, 0.5], (3, 1)), "qd": np.tile([-0.5, 2.0], (3, 1)), "qdd": np.tile([1.0, 3.0], (3, 1))}
    found = armdyn.bound(arm, "inverse_dynamics", **ranges, gap=0.001, seconds=0.0)
    assert escaped(arm, "inverse_dynamics", found, ranges, rng) <= 0
    assert found.gap.max() > 0.001


def test_squares_with_a_minus_are_worst_inside_their_range():
    """At q = (0, -2, 0), moving joint 2 pushes joint 1 back: rest is worst for the largest torque, not full speed."""
    arm = armdyn.load("planar3").with_gravity((0, 0, 0))
    q = np.array([[0.0, 0.0], [-2.0, -1.9], [0.0, 0.01]])
    ranges = {"q": q, "qd": np.array([[0.0, 0.0], [-1.0, 2.0], [0.0, 0.0]]), "qdd": np.zeros((3, 2))}
    found = armdyn.bound(arm, "inverse_dynamics", **ranges, gap=0.05, seconds=600)
    assert found.gap.max() <= 0.05  # speeds are cut, too
    speeds = np.linspace(-1, 2, 301)
    qd = np.stack([0 * speeds, speeds, 0 * speeds], axis=1)
    values = arm.inverse_dynamics(np.array([0, -1.95, 0]), qd, np.zeros(3))
    assert (values <= found.upper + 1e-12).all()
    assert (values >= found.lower - 1e-12).all()
    inside = [j for j in range(3) if max(values[0, j], values[-1, j]) < values[:, j].max() - 1e-6]
    outside = [j for j in range(3) if min(values[0, j], values[-1, j]) > values[:, j].min() + 1e-6]
    assert inside or outside


@pytest.mark.parametrize(("name", "quantity"), [("ur5", "inverse_dynamics"), ("puma560", "inertia_matrix")])
def test_entries_are_their_fourier_series(name, quantity, rng):
    """Degree 2 in every angle: the series from five angles per joint is the entry at any configuration."""
    arm = armdyn.load(name)
    kernel = arm.kernel(quantity)
    boxes = {port: np.tile([-2.0, 2.0], (6, 1)) for port, _ in kernel.assembly.inputs}
    entry = 7 if quantity == "inertia_matrix" else 1
    expansion = Expansion(kernel, entry, boxes)
    q, qd, qdd = rng.uniform(-2, 2, (3, 6))
    weights = expansion.weights(qd[None], qdd[None])[0]
    given = {"q": q, "qd": qd, "qdd": qdd}
    value = kernel(*(given[port] for port in boxes)).ravel()[entry]
    assert weights @ expansion.series.at(q[expansion.angles]) == pytest.approx(value, abs=1e-10)
    assert expansion.series.error.max() < 1e-8


def test_remainders_hold(rng):
    """A Taylor expansion of random trigonometric polynomials is off by no more than the remainder says."""
    samples = rng.normal(size=(5**2, 3))
    series = expansions.Series.of(samples, 2, np.zeros(3))
    assert np.allclose([series.at(q) for q in expansions.grid(2)], samples)
    weights = rng.normal(size=(1, 3))
    centre, r = rng.uniform(-3, 3, 2), np.array([0.3, 0.5])

    def f(q):
        return weights[0] @ series.at(q)

    for order, expanded in ((1, lambda d: f(centre)), (2, lambda d: f(centre) + _slope(f, centre) @ d)):
        table = series.remainders(weights, order)[0]
        most = sum(c * np.prod(r[list(one)]) for c, one in zip(table, expansions.monomials(order, 2), strict=True))
        off = max(abs(f(centre + d) - expanded(d)) for d in rng.uniform(-r, r, (300, 2)))
        assert off <= most * (1 + 1e-6)
        assert most < 30 * off


def _slope(f, q, h=1e-6):
    return np.array([(f(q + h * e) - f(q - h * e)) / (2 * h) for e in np.eye(len(q))])


def excess(rng):
    """By how much forces of motions exceed the bounds of the boxes of angles they lie in, most of all boxes."""
    arm = armdyn.load("planar3")
    kernel = arm.kernel("inverse_dynamics")
    boxes = {name: np.tile([-r, r], (3, 1)) for name, r in (("q", 3.0), ("qd", 2.0), ("qdd", 4.0))}
    expansion = Expansion(kernel, 0, boxes)
    region = MotionRegion(expansion, 1.0, Remainders(expansion))
    pieces = region.start()
    for _ in range(6):
        pieces = region.cut(pieces, 0.0)
    level = pieces.level.astype(int)
    assert len(np.unique(level.sum(axis=1))) == 1
    worst = -np.inf
    some = rng.choice(len(pieces), 200)
    for k in some:
        same = (pieces.centre == pieces.centre[k]).all(axis=1) & (level == level[k]).all(axis=1)
        q = rng.uniform(-1, 1, (500, 3)) * region.radius * 0.5 ** level[k] + pieces.centre[k]
        qd, qdd = (np.where(rng.random((500, 3)) < 0.5, *boxes[name].T) for name in ("qd", "qdd"))
        if same.sum() == len(region.corners):  # every corner was cut alike
            worst = max(worst, float((kernel(q, qd, qdd)[:, 0]).max() - pieces.above[same].max()))
    return worst


def test_bounds_of_boxes_hold_every_motion(rng):
    assert -np.inf < excess(rng) <= 0


def test_a_planted_error_in_the_remainder_is_caught(monkeypatch):
    """The cosine of twice an angle, expanded to first order around 0, is off by nearly 2 r²."""
    series = expansions.Series.of(np.cos(2 * expansions.grid(1)), 1, np.zeros(1))

    def escapes(r=0.05):
        return 1 - np.cos(2 * r) > series.remainders(np.ones((1, 1)), 2)[0, 0] * r**2

    assert not escapes()
    right = expansions.factorials
    monkeypatch.setattr(expansions, "factorials", lambda one: 1.1 * right(one))
    assert escapes()


SEED = 5
TREES = {
    "forks": TreeKind(joints=3, fork=0.7, prismatic=0.0, rotors=True),
    "prismatic": TreeKind(joints=3, fork=0.7, prismatic=0.6),
    "mimic": TreeKind(joints=4, fork=0.5, prismatic=0.0, mimic=0.4, rotors=True),
}


@pytest.mark.parametrize("quantity", ["gravity_load", "inverse_dynamics"])
@pytest.mark.parametrize("kind", TREES)
def test_trees_and_mimic_joints(kind, quantity, rng):
    arm = armdyn.Arm("tree", random_tree(TREES[kind], SEED), snap=0.0)
    assert not arm.chain.serial
    assert arm.chain.has_mimics == (kind == "mimic")
    names = [name for name, _ in arm.kernel(quantity).assembly.inputs]
    ranges = {name: np.tile([-0.4, 0.3], (arm.n, 1)) for name in names}
    found = armdyn.bound(arm, quantity, **ranges, gap=0.1, seconds=0.5)
    assert escaped(arm, quantity, found, ranges, rng, 20_000) <= 1e-12
    assert np.isfinite(found.upper).all()


def test_a_floating_base_is_refused():
    robot = armdyn.Arm("floating", random_tree(TreeKind(joints=3, floating=True), 1), snap=0.0)
    for ask in (armdyn.bound, armdyn.rounding_error):
        with pytest.raises(InputError, match="floating has a floating base"):
            ask(robot, "gravity_load", q=np.tile([-1.0, 1.0], (robot.n, 1)))


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
    problem = BoundedQuantity(armdyn.load("planar3").kernel("gravity_load"), {"q": np.tile([-7.0, 7.0], (3, 1))})
    low, high = problem.boxes(np.array([True, True, False]))
    assert (high - low)[:, :2].max() <= np.pi
    assert len(low) == 25


def test_a_range_of_one_joint_leaves_the_others_where_they_were():
    """`--range qdd:1=…` alone: the other accelerations stay zero, as in `armdyn.bound` without them."""
    arm = armdyn.load("planar3")
    boxes = range_options(arm, ["qdd:1=-2,3", "qd:3=-1,0.5"])
    assert boxes.keys() == {"qd", "qdd"}
    assert boxes["qdd"].tolist() == [[-2, 3], [0, 0], [0, 0]]
    speeds = arm.velocity_limits
    assert boxes["qd"].tolist() == [[-speeds[0], speeds[0]], [-speeds[1], speeds[1]], [-1, 0.5]]
    assert range_options(arm, ["qdd:2=-2,3"], 5.0)["qdd"].tolist() == [[-5, 5], [-2, 3], [-5, 5]]


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

"""Time-optimal motion against toppra, where it is installed (extra `peers`): equal times without friction."""

import numpy as np
import pytest

import armdyn
import bench_motion

pytest.importorskip("toppra")


@pytest.mark.parametrize("name", bench_motion.ARMS)
def test_equal_times_without_friction(name):
    arm, rng = armdyn.load(name), np.random.default_rng(11)
    limits = bench_motion.limits_of(arm)
    for _ in range(3):
        way = bench_motion.random_path(arm, rng)
        _, s, speed = bench_motion.by_toppra(arm, way, limits, 1000)
        found = armdyn.time_optimal(arm, way, limits=limits, friction=False, grid=1000)
        assert found.duration == pytest.approx(bench_motion.duration(s, speed), rel=1e-3)


def test_friction_is_what_toppra_cannot_hold():
    demanded, longer = bench_motion.with_friction(paths=4)
    assert min(demanded) > 1.2
    assert min(longer) > 1.0

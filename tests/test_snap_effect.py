"""How much snapping can change torques is bounded, and said."""

from __future__ import annotations

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app

LINK = '<link name="l{k}"><inertial><origin xyz="0.02 {y} 0.3"/><mass value="{m}"/>{body}</inertial></link>'
BODY = '<inertia ixx="0.03" iyy="0.03" izz="0.02" ixy="0" ixz="0" iyz="0"/>'
JOINT = (
    '<joint name="j{k}" type="{kind}"><parent link="l{p}"/><child link="l{k}"/>'
    '<origin xyz="{x} 0.05 0.4" rpy="{rpy}"/><axis xyz="0 {z}"/>'
    '<limit lower="-0.5" upper="0.5" effort="9" velocity="9"/>{mimic}</joint>'
)


def robot(rng, angle, mimic=False):
    """Four joints whose frames are turned by nearly a right angle, in a random direction."""
    parts = [LINK.format(k=0, y=0, m=1, body=BODY)]
    for k in range(1, 5):
        rpy = [0, 0, 0]
        rpy[rng.integers(3)] = angle * rng.choice([-1, 1])
        kind = "prismatic" if rng.random() < 0.2 else "revolute"
        parts.append(LINK.format(k=k, y=rng.uniform(-0.2, 0.2), m=rng.uniform(0.5, 4), body=BODY))
        follows = '<mimic joint="j1" multiplier="-1.5"/>' if mimic and k == 3 else ""
        parts.append(
            JOINT.format(
                k=k,
                p=k - 1,
                kind=kind,
                x=f"{rng.uniform(-0.3, 0.3):.3f}",
                rpy=" ".join(map(repr, map(float, rpy))),
                z="0 1" if rng.random() < 0.5 else "1 0",
                mimic=follows,
            )
        )
    return f'<robot name="r">{"".join(parts)}</robot>'


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_holds_and_is_no_wild_guess(seed, tmp_path):
    rng = np.random.default_rng(seed)
    path = tmp_path / "r.urdf"
    path.write_text(robot(rng, (1.5708, 3.14159, 1.570799)[seed % 3], mimic=seed % 4 == 3))
    arm, exact = armdyn.load(path), armdyn.load(path, snap=0)
    assert len(arm.snapped) == 4
    assert not len(exact.snap_effect.nonzero()[0])
    snapped, written = (a.kernel("gravity_load", backend="python") for a in (arm, exact))
    q = rng.uniform(-3, 3, (60, arm.n))
    most = np.abs(snapped(q) - written(q)).max(axis=0)
    assert np.all(most <= arm.snap_effect)
    assert arm.snap_effect.max() < 60 * most.max()


def test_check_and_notes_say_it(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(robot(np.random.default_rng(1), 1.5708))
    printed = CliRunner().invoke(app, ["check", str(path)]).output
    found = re.search(r"at most ([\d.e-]+) N m \(j\d\); snap=0", " ".join(printed.split()))
    assert found
    assert float(found[1]) == pytest.approx(armdyn.load(path).snap_effect.max(), rel=0.06)
    assert not armdyn.load(path).notes  # 1.5708 is π/2 with four decimals
    path.write_text(robot(np.random.default_rng(1), 1.570799))
    (note,) = armdyn.load(path).notes
    assert "no rounding" in note
    assert "4 such angles" in note
    assert not armdyn.load(path, snap=0).notes

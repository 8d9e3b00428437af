"""Axes related across oblique joints: the relation holds up to rounding only, and still decides the parameters."""

from __future__ import annotations

import random
import sys

import pytest

from pages import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import oblique_axes


@pytest.mark.parametrize("block", range(4))
def test_count_is_the_numerical_rank_and_links_need_the_same_torques(block):
    for k in range(40):
        rng = random.Random(f"test {block} {k}")
        chain = oblique_axes.random_chain(rng)
        count, rank, error = oblique_axes.judged(chain, rng)
        assert count == rank, (block, k, chain.joints)
        assert error < 1e-10, (block, k, chain.joints)


URDF = """<robot name="oblique"><link name="l0"/>{}</robot>"""
PIECE = """
<link name="l{k}"><inertial><origin xyz="0.1 -0.2 0.15"/><mass value="{k}.5"/>
<inertia ixx="0.3" ixy="0.02" ixz="-0.01" iyy="0.25" iyz="0.03" izz="0.2"/></inertial></link>
<joint name="j{k}" type="{kind}"><parent link="l{before}"/><child link="l{k}"/><axis xyz="{axis}"/>
<origin xyz="0.1 0.2 0.3" rpy="{rpy}"/><limit effort="10" velocity="1" lower="-2" upper="2"/></joint>"""


@pytest.mark.parametrize(("kinds", "count"), [("RPP", 5), ("RPR", 7)])
def test_an_oblique_slide_between_parallel_axes(kinds, count, tmp_path):
    import numpy as np

    import armdyn

    axes, rpys = ("0 0 1", "1 2 3", "0 0 1"), ("0 0 0", "0 0 0.7", "0 0 0")
    names = {"R": "revolute", "P": "prismatic"}
    pieces = (
        PIECE.format(k=k, before=k - 1, kind=names[kind], axis=axis, rpy=rpy)
        for k, (kind, axis, rpy) in enumerate(zip(kinds, axes, rpys, strict=True), 1)
    )
    path = tmp_path / "oblique.urdf"
    path.write_text(URDF.format("".join(pieces)))
    arm = armdyn.load(path)
    assert len(arm.minimal_parameters) == count
    state = np.random.default_rng(0).uniform(-1, 1, (3, 20, 3))
    baked = arm.inverse_dynamics(*state)
    values = np.array(arm.minimal_parameters.values)
    given = arm.kernel("inverse_dynamics", parameters="runtime")(*state, values)
    assert np.abs(given - baked).max() < 1e-10 * np.abs(baked).max()

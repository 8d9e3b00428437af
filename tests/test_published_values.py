"""What others printed: Corke, Khalil and Dombre, Gautier and Khalil, Featherstone, a double pendulum in closed form."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn

PI = np.pi


def corkes_puma():
    """Puma 560 of P. Corke, Robotics, Vision and Control: standard DH, inertia about the centre of mass, rotors."""
    geometry = [
        (0, 0, PI / 2),
        (0, 0.4318, 0),
        (0.15005, 0.0203, -PI / 2),
        (0.4318, 0, PI / 2),
        (0, 0, -PI / 2),
        (0, 0, 0),
    ]
    masses = [0, 17.4, 4.8, 0.82, 0.34, 0.09]
    coms = [(0, 0, 0), (-0.3638, 0.006, 0.2275), (-0.0203, -0.0141, 0.070), (0, 0.019, 0), (0, 0, 0), (0, 0, 0.032)]
    moments = [
        (0, 0.35, 0), (0.13, 0.524, 0.539), (0.066, 0.086, 0.0125),
        (1.8e-3, 1.3e-3, 1.8e-3), (0.3e-3, 0.4e-3, 0.3e-3), (0.15e-3, 0.15e-3, 0.04e-3),
    ]  # fmt: skip
    rotors = [200e-6, 200e-6, 200e-6, 33e-6, 33e-6, 33e-6]
    gears = [-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686]
    rows = [
        {
            "theta": 0,
            "d": d,
            "a": a,
            "alpha": alpha,
            "mass": m,
            "com": c,
            "inertia": (*moment, 0, 0, 0),
            "rotor_inertia": J * G * G,
        }
        for (d, a, alpha), m, c, moment, J, G in zip(geometry, masses, coms, moments, rotors, gears, strict=True)
    ]
    return armdyn.from_dh(rows, convention="standard", name="corkes_puma")


def test_corkes_puma():
    """The values printed in the book for the nominal posture and the zero posture, to their four decimals."""
    puma = corkes_puma()
    nominal = np.array([0, PI / 4, PI, 0, PI / 4, 0])
    np.testing.assert_allclose(puma.gravity_load(nominal), [0, 31.6399, 6.0351, 0, 0.0283, 0], atol=6e-5)
    np.testing.assert_allclose(puma.gravity_load(np.zeros(6)), [0, 37.4837, 0.2489, 0, 0, 0], atol=6e-5)
    printed = [
        [3.6594, -0.4044, 0.1006, -0.0025, 0.0000, -0.0000],
        [-0.4044, 4.4137, 0.3509, 0.0000, 0.0024, 0.0000],
        [0.1006, 0.3509, 0.9378, 0.0000, 0.0015, 0.0000],
        [-0.0025, 0.0000, 0.0000, 0.1925, 0.0000, 0.0000],
        [0.0000, 0.0024, 0.0015, 0.0000, 0.1713, 0.0000],
        [-0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.1941],
    ]
    np.testing.assert_allclose(puma.inertia_matrix(nominal), printed, atol=6e-5)


def test_the_catalogues_puma_is_another_one():
    """What "Coming from another library" says of the two."""
    ours, theirs = (arm.gravity_load(np.zeros(6))[1] for arm in (armdyn.load("puma560"), corkes_puma()))
    assert (round(ours, 1), round(theirs, 1), round(theirs - ours)) == (-37.0, 37.5, 74)
    turned = np.array([1, -1, -1, 1, -1, 1])
    q = np.random.default_rng(1).uniform(-1, 1, (50, 6))
    apart = armdyn.load("puma560").gravity_load(turned * q) * turned - corkes_puma().gravity_load(q)
    assert np.abs(apart).max() < 3.0  # other numbers, of 50 N m


def test_a_double_pendulum_in_closed_form(rng):
    """The textbook's equations of a planar double pendulum under gravity, as RigidBodyDynamics.jl's tests have them."""
    l1, c1, c2, m1, m2, I1, I2, g = 1.0, 0.45, 0.6, 1.3, 0.7, 0.08, 0.05, 9.81
    arm = armdyn.from_dh(
        [
            {"theta": 0, "d": 0, "a": 0, "alpha": 0, "mass": m1, "com": (c1, 0, 0), "inertia": (0, 0, I1, 0, 0, 0)},
            {"theta": 0, "d": 0, "a": l1, "alpha": 0, "mass": m2, "com": (c2, 0, 0), "inertia": (0, 0, I2, 0, 0, 0)},
        ],
        convention="modified",
    ).with_gravity((0, -g, 0))
    for _ in range(5):
        (q1, q2), (v1, v2), a = rng.uniform(-3, 3, (3, 2))
        m12 = I2 + m2 * c2**2 + m2 * l1 * c2 * np.cos(q2)
        m11 = I1 + m1 * c1**2 + m2 * l1**2 + 2 * m12 - I2 - m2 * c2**2
        H = np.array([[m11, m12], [m12, I2 + m2 * c2**2]])
        h = m2 * l1 * c2 * np.sin(q2)
        coriolis = np.array([-h * (2 * v1 * v2 + v2**2), h * v1**2])
        end = m2 * c2 * g * np.cos(q1 + q2)
        gravity = np.array([(m1 * c1 + m2 * l1) * g * np.cos(q1) + end, end])
        q, qd = np.array([q1, q2]), np.array([v1, v2])
        np.testing.assert_allclose(arm.inertia_matrix(q), H, rtol=1e-13)
        np.testing.assert_allclose(arm.inverse_dynamics(q, qd, a), H @ a + coriolis + gravity, rtol=1e-12, atol=1e-12)


# W. Khalil and E. Dombre, Modeling, Identification and Control of Robots: Stäubli RX-90, modified DH with D3 and RL4.
# What each base parameter regroups: natural parameters (M mass, MX … first moments, XX … inertia) with their factors.
D3, RL4 = 0.45, 0.48
NAMES = ("M", "MX", "MY", "MZ", "XX", "XY", "YY", "XZ", "YZ", "ZZ")
FOREARM = {"MZ4": 2 * RL4, **{f"M{k}": RL4**2 for k in (4, 5, 6)}}
BEYOND = {f"M{k}": 1.0 for k in (3, 4, 5, 6)}
PRINTED = {
    "ZZR1": {"ZZ1": 1, "YY2": 1, "YY3": 1, **dict.fromkeys(BEYOND, D3**2)},
    "XXR2": {"XX2": 1, "YY2": -1, **dict.fromkeys(BEYOND, -(D3**2))},
    "XZR2": {"XZ2": 1, "MZ3": -D3},
    "ZZR2": {"ZZ2": 1, **dict.fromkeys(BEYOND, D3**2)},
    "MXR2": {"MX2": 1, **dict.fromkeys(BEYOND, D3)},
    "XXR3": {"XX3": 1, "YY3": -1, "YY4": 1, **FOREARM},
    "ZZR3": {"ZZ3": 1, "YY4": 1, **FOREARM},
    "MYR3": {"MY3": 1, "MZ4": 1, **{f"M{k}": RL4 for k in (4, 5, 6)}},
    "XXR4": {"XX4": 1, "YY4": -1, "YY5": 1},
    "ZZR4": {"ZZ4": 1, "YY5": 1},
    "MYR4": {"MY4": 1, "MZ5": -1},
    "XXR5": {"XX5": 1, "YY5": -1, "YY6": 1},
    "ZZR5": {"ZZ5": 1, "YY6": 1},
    "MYR5": {"MY5": 1, "MZ6": 1},
    "XXR6": {"XX6": 1, "YY6": -1},
}
ALONE = [
    "XY2", "YZ2", "MY2", "XY3", "XZ3", "YZ3", "MX3", "XY4", "XZ4", "YZ4", "MX4", "XY5", "XZ5", "YZ5", "MX5",
    "XY6", "XZ6", "YZ6", "ZZ6", "MX6", "MY6",
]  # fmt: skip


def rx90():
    rng = np.random.default_rng(1)
    table = [(0, 0, 0), (PI / 2, 0, 0), (0, D3, 0), (-PI / 2, 0, RL4), (PI / 2, 0, 0), (-PI / 2, 0, 0)]
    rows = [
        {"alpha": alpha, "a": d, "d": r, "theta": 0, "mass": 1 + k, "com": rng.uniform(-0.2, 0.2, 3),
         "inertia": (1, 1.1, 1.2, 0, 0, 0)}
        for k, (alpha, d, r) in enumerate(table)
    ]  # fmt: skip
    return armdyn.from_dh(rows, convention="modified", name="rx90")


def test_base_parameters_of_the_rx90():
    """36 rigid-body base parameters: the 15 regrouped ones as printed and 21 that stand alone span exactly ours."""
    arm = rx90()
    ours = np.asarray(arm.minimal_parameters.array)
    rows = []
    for combination in [*PRINTED.values(), *({name: 1.0} for name in ALONE)]:
        row = np.zeros(60)
        for name, factor in combination.items():
            row[10 * (int(name[-1]) - 1) + NAMES.index(name[:-1])] = factor
        rows.append(row)
    printed = np.array(rows)
    assert len(printed) == len(ours) == 36
    assert np.linalg.matrix_rank(printed) == 36
    assert np.linalg.matrix_rank(np.vstack([ours, printed])) == 36
    wrong = printed.copy()
    wrong[0, 10 + NAMES.index("YY")] = -1  # the sign of YY2 in ZZR1
    assert np.linalg.matrix_rank(np.vstack([ours, wrong])) == 37


@pytest.mark.parametrize("name", PRINTED)
def test_each_printed_combination_is_determined(name):
    """One by one, so that a failure names its row."""
    ours = np.asarray(rx90().minimal_parameters.array)
    row = np.zeros(60)
    for parameter, factor in PRINTED[name].items():
        row[10 * (int(parameter[-1]) - 1) + NAMES.index(parameter[:-1])] = factor
    left = row - np.linalg.lstsq(ours.T, row, rcond=None)[0] @ ours
    assert np.abs(left).max() < 1e-12


def gautiers_puma(table):
    """Base parameters by the direct rules of M. Gautier and W. Khalil (1990): (36, 60), from the tip to the base.

    For a revolute joint YY, MZ and M go to the link before it; the first link keeps ZZ, if gravity is along its axis.
    """
    rows = np.eye(60).reshape(6, 10, 60)
    link = [dict(zip(NAMES, rows[k], strict=True)) for k in range(6)]
    for k in range(5, 0, -1):
        alpha, d, r = table[k]
        c, s = np.cos(alpha), np.sin(alpha)
        own, before = link[k], link[k - 1]
        yy, mz, m = own["YY"], own["MZ"], own["M"]
        along, first = yy + 2 * r * mz + r**2 * m, mz + r * m
        before["XX"] = before["XX"] + along
        before["XY"] = before["XY"] + d * s * first
        before["XZ"] = before["XZ"] - d * c * first
        before["YY"] = before["YY"] + c * c * along + d**2 * m
        before["YZ"] = before["YZ"] + c * s * along
        before["ZZ"] = before["ZZ"] + s * s * along + d**2 * m
        before["MX"] = before["MX"] + d * m
        before["MY"] = before["MY"] - s * first
        before["MZ"] = before["MZ"] + c * first
        before["M"] = before["M"] + m
        own["XX"] = own["XX"] - yy
    kept = ("XX", "XY", "XZ", "YZ", "ZZ", "MX", "MY")
    return np.array([link[0]["ZZ"], *(link[k][name] for k in range(1, 6) for name in kept)])


def test_base_parameters_of_gautiers_puma():
    """The Puma of Gautier and Khalil has 36 base parameters, and their combinations span exactly ours."""
    table = [
        (0, 0, 0), (-PI / 2, 0, 0), (0, 0.4318, 0.1491), (-PI / 2, -0.0203, 0.4331), (PI / 2, 0, 0), (-PI / 2, 0, 0)
    ]  # fmt: skip
    rows = [
        {"alpha": alpha, "a": d, "d": r, "theta": 0, "mass": 1 + k, "com": (0.1, 0.02 * k, 0.03),
         "inertia": (1, 1.1, 1.2, 0.01, 0.02, 0.03)}
        for k, (alpha, d, r) in enumerate(table)
    ]  # fmt: skip
    ours = np.asarray(armdyn.from_dh(rows, convention="modified", name="puma").minimal_parameters.array)
    printed = gautiers_puma(table)
    assert len(printed) == len(ours) == 36
    assert np.linalg.matrix_rank(printed, tol=1e-9) == 36
    assert np.linalg.matrix_rank(np.vstack([ours, printed]), tol=1e-9) == 36
    wrong = gautiers_puma([*table[:3], (-PI / 2, -0.0203, -0.4331), *table[4:]])  # r4 with the other sign
    assert np.linalg.matrix_rank(np.vstack([ours, wrong]), tol=1e-9) > 36


# R. Featherstone, spatial vector software, version 1: test_FD.m on autoTree(12, 1.5, 1, 0.95) with joints 3 and 7
# helical (pitch 0.1 and -0.1 m/rad), 5 and 9 prismatic, the random state 0: the state, and the forces by his ID.m.
Q = [2.16406631697, 1.62077531448, -0.499063476296, -1.51477073237, 0.0708411636458, -0.597316430786, 1.78315912482,
     -1.23582258961, -0.147045673813, 0.523904805187, 2.56424888393, 0.0294483836087]  # fmt: skip
QD = [-0.436324311201, 0.511608408314, 0.236737993351, -0.498987317275, 0.819492511936, 0.965570952075, 0.620434471993,
      0.804331900879, -0.379704861361, 0.459663496520, 0.797676575936, 0.367967863831]  # fmt: skip
QDD = [-0.0557145690946, -0.798597583863, -0.131656329092, 0.221773946888, 0.826022106476, 0.933212735542,
       -0.0459804468946, 0.730619855543, -0.479015379216, 0.610055654026, 0.0973986076712, -0.971916599672]  # fmt: skip
TAU = [-10.7802735301, -2.49508384454, 12.6947454308, 19.1173545407, -2.15095801697, 4.51666158929, 0.474401858265,
       2.18443796607, -2.16077117905, 0.283314247697, -0.105175849728, -0.150102709018]  # fmt: skip


def featherstones_tree():
    """His tree as a URDF: a helical joint is a revolute one with a prismatic one along it that mimics it."""
    bodies, taper, pitch = 12, 0.95, {3: 0.1, 7: -0.1}
    parts = ['<robot name="tree"><link name="b0"/>']
    for i in range(1, bodies + 1):
        length, mass, parent = taper ** (i - 1), taper ** (3 * (i - 1)), int(i / 1.5)
        across = mass * length**2 * 1.015 / 12
        origin = "" if parent == 0 else f'<origin xyz="{taper ** (parent - 1)!r} 0 0" rpy="1 0 0"/>'
        kind = "prismatic" if i in (5, 9) else "revolute"
        limit = '<limit lower="-9" upper="9" effort="1" velocity="9"/><axis xyz="0 0 1"/>'
        child = f"s{i}" if i in pitch else f"b{i}"
        parts.append(
            f'<link name="b{i}"><inertial><origin xyz="{length / 2!r} 0 0"/><mass value="{mass!r}"/>'
            f'<inertia ixx="{mass * length**2 * 0.0025!r}" iyy="{across!r}" izz="{across!r}" ixy="0" ixz="0" iyz="0"/>'
            f'</inertial></link><joint name="j{i}" type="{kind}"><parent link="b{parent}"/><child link="{child}"/>'
            f"{origin}{limit}</joint>"
        )
        if i in pitch:
            parts.append(
                f'<link name="s{i}"/><joint name="h{i}" type="prismatic"><parent link="s{i}"/><child link="b{i}"/>'
                f'{limit}<mimic joint="j{i}" multiplier="{pitch[i]}"/></joint>'
            )
    return "".join([*parts, "</robot>"])


def test_featherstones_tree(tmp_path):
    """Inverse and forward dynamics of a tree with revolute, prismatic and helical joints."""
    path = tmp_path / "tree.urdf"
    path.write_text(featherstones_tree())
    robot = armdyn.load(path)
    places = [int(name[1:]) - 1 for name in robot.joint_names]
    q, qd, qdd, tau = (np.array(x)[places] for x in (Q, QD, QDD, TAU))
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, qdd), tau, rtol=0, atol=2e-9)
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=2e-9)


def test_featherstones_condition_number_of_a_straight_chain():
    """R. Featherstone, An empirical study of the joint-space inertia matrix (2004): up to O(n⁴), here straight rods."""
    conditions = []
    for n in (6, 12):
        rows = [
            {"a": 1.0, "mass": 1.0, "com": (-0.5, 0, 0), "inertia": (0.0025, 1.015 / 12, 1.015 / 12, 0, 0, 0)}
            for _ in range(n)
        ]
        conditions.append(np.linalg.cond(armdyn.from_dh(rows).inertia_matrix(np.zeros(n))))
    assert np.log2(conditions[1] / conditions[0]) == pytest.approx(4, abs=0.1)

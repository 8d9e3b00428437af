"""The bridge to SymPy: values, the textbook's two-link arm, sums of angles, printing."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

import armdyn
from armdyn.bridges.sympy_ import NAMES, fourier, parallel_joints, short
from armdyn.errors import InputError
from bridge_contract import CASES, arrays, close, kernel, results

TWO_LINKS = """
name = "two_links"
convention = "modified"
gravity = [0.0, -9.81, 0.0]
[[joint]]
kind = "revolute"
b = 0.0
beta = 0.0
d = 0.0
theta = 0.0
link = { mass = 1.0, com = [0.25, 0, 0], inertia = [0.01, 0.02, 0.02, 0, 0, 0] }
[[joint]]
kind = "revolute"
b = 0.5
beta = 0.0
d = 0.0
theta = 0.0
link = { mass = 0.8, com = [0.2, 0, 0], inertia = [0.01, 0.02, 0.02, 0, 0, 0] }
"""
# What stays short enough to be read and quick enough to be tested.
LONG = (
    "pose_error",
    "inertia_inverse",
    "inertia_factors",
    "articulated_inertias",
    "forward_dynamics",
    "regressor",
    "natural_regressor",
    "held_dynamics",
    "operational_space_inertia",
    "operational_space_inertia_inverse",
)
READ = [
    case
    for case in CASES
    if (case.values[0] == "scara" and case.values[1] != "pose_error")
    or (case.values[0] in ("stanford", "puma560") and case.values[1] not in LONG)
    or ("tree" in case.values[0] and case.values[1] in ("link_poses", "kinetic_energy"))
    or case.values[1] in ("pose", "jacobian", "gravity_load", "potential_energy")
]


@pytest.fixture(scope="module")
def two_links(tmp_path_factory):
    path = tmp_path_factory.mktemp("arm") / "two_links.toml"
    path.write_text(TWO_LINKS)
    return armdyn.load(path)


def values_of(expression, k, arrays, parameters=None):
    """The numbers of expressions at one configuration."""
    named = {symbol.name: value for symbol, value in (parameters or {}).items()}
    for (name, _), array in zip(k.assembly.inputs, arrays, strict=True):
        names = [f"{NAMES.get(name, name)}{i + 1}" for i in range(np.size(array))]
        if name == "parameters":
            from armdyn.parameters import minimal_parameters

            names = list(minimal_parameters(k.chain).names)
        named.update(zip(names, np.ravel(array), strict=True))
    symbols = sorted(expression.free_symbols, key=lambda s: s.name)
    shape = getattr(expression, "shape", ())
    flat = list(sp.flatten(expression)) if shape else [expression]
    found = sp.lambdify(symbols, flat, "math", cse=True)(*(float(named[s.name]) for s in symbols))
    return np.array(found, dtype=float).reshape(shape)


@pytest.mark.parametrize(("arm", "quantity", "options"), READ)
def test_values(arm, quantity, options):
    k = kernel(arm, quantity, options)
    values = arrays(k)
    for expression, expected in zip(results(k.sympy()), results(k(*values)), strict=True):
        close(values_of(expression, k, values).reshape(np.shape(expected)), expected)


@pytest.mark.parametrize(
    "quantity", ["inertia_matrix", "bias", "inverse_dynamics", "gravity_load", "coriolis_matrix", "jacobian"]
)
@pytest.mark.parametrize("arm", ["planar3", "scara", "stanford"])
def test_symbols_stand_for_the_numbers(arm, quantity):
    k = kernel(arm, quantity, {})
    expression, values = k.sympy(parameters="symbols"), arrays(k)
    close(values_of(expression, k, values, expression.parameters).reshape(k(*values).shape), k(*values), 1e-11)


def test_friction_and_a_wrench_have_symbols():
    k = kernel("iiwa14", "inverse_dynamics", {"friction": True, "tool_wrench": True})
    with pytest.raises(InputError, match="too many for a formula"):
        k.sympy(parameters="symbols")
    k = armdyn.load("planar3").kernel("inverse_dynamics", tool_wrench=True)
    expression, values = k.sympy(parameters="symbols"), arrays(k)
    close(values_of(expression, k, values, expression.parameters).ravel(), k(*values), 1e-11)


def test_the_two_link_arm_is_the_textbooks(two_links):
    m1, m2, l1, a1, a2, I1, I2, g = sp.symbols("m1 m2 l1 l_c1 l_c2 I_1zz I_2zz g", real=True)
    q1, q2, v1, v2 = sp.symbols("q1 q2 qdot1 qdot2", real=True)
    H = two_links.inertia_matrix.sympy(parameters="symbols")
    # Spong, Hutchinson & Vidyasagar, Robot Modeling and Control, two-link planar arm with revolute joints
    d12 = m2 * (a2**2 + l1 * a2 * sp.cos(q2)) + I2
    d11 = m1 * a1**2 + m2 * (l1**2 + a2**2 + 2 * l1 * a2 * sp.cos(q2)) + I1 + I2
    assert sp.Matrix([[d11, d12], [d12, m2 * a2**2 + I2]]) == H
    h = -m2 * l1 * a2 * sp.sin(q2)
    gravity = sp.Matrix(
        [(m1 * a1 + m2 * l1) * g * sp.cos(q1) + m2 * a2 * g * sp.cos(q1 + q2), m2 * a2 * g * sp.cos(q1 + q2)]
    )
    coriolis = sp.Matrix([[h * v2, h * (v1 + v2)], [-h * v1, 0]])
    assert sp.expand(two_links.coriolis_matrix.sympy(parameters="symbols") - coriolis) == sp.zeros(2, 2)
    assert sp.expand(two_links.gravity_load.sympy(parameters="symbols") - gravity) == sp.zeros(2, 1)
    assert str(H[1, 1]) == "I_2zz + l_c2**2*m2"
    assert str(two_links.gravity_load.sympy()) == "Matrix([[6.3765*c1 + 1.5696*c12], [1.5696*c12]])"
    assert H.parameters[m2] == sp.Rational(4, 5)


def test_printing(two_links):
    H = two_links.inertia_matrix.sympy(parameters="symbols")
    assert isinstance(H, sp.Matrix)
    assert "c_{2} l_{1} l_{c2}" in H._repr_latex_()
    assert "c2*l1*l_c2" in str(H)
    assert H.has(sp.cos), "the entries are expressions to compute with, only printing is short"
    assert repr(H.T) == str(H.T)
    T = two_links.kinetic_energy.sympy()
    assert isinstance(T, sp.Expr)
    assert sp.hessian(T, sp.symbols("qdot1 qdot2", real=True)).applyfunc(sp.nsimplify) == sp.Matrix(
        two_links.inertia_matrix.sympy()
    ).applyfunc(sp.nsimplify)
    assert str(short(sp.cos(sp.Symbol("q2") + sp.Symbol("q10")))) == "c2,10"


def test_sums_of_angles():
    assert parallel_joints(armdyn.load("ur5").chain) == ((1, 2, 3),)
    assert parallel_joints(armdyn.load("scara").chain) == ((0, 1, 3),)
    assert parallel_joints(armdyn.load("panda").chain) == ()
    q = np.array([0.3, -0.7, 1.1])
    product = ((0, True), (1, False), (1, True), (2, False), (2, False))
    expected = np.cos(q[0]) * np.sin(q[1]) * np.cos(q[1]) * np.sin(q[2]) ** 2
    total = 0.0
    for wave, coefficient in fourier(product):
        angle = sum(k * q[joint] for joint, k in wave[0]) if wave else 0.0
        total += float(coefficient) * (1.0 if wave is None else np.cos(angle) if wave[1] else np.sin(angle))
    assert total == pytest.approx(expected, abs=1e-15)


def test_what_cannot_be_read_says_so():
    panda = armdyn.load("panda")
    with pytest.raises(InputError, match=r"bias of this arm has more than 3000 terms.*kernel.program"):
        panda.bias.sympy()
    with pytest.raises(InputError, match="forward_dynamics divides by pivots"):
        armdyn.load("scara").forward_dynamics.sympy(parameters="symbols")
    with pytest.raises(InputError, match="available: numbers, symbols"):
        panda.bias.sympy(parameters="words")
    with pytest.raises(InputError, match="derivatives or frames ask"):
        panda.kernel("pose", frame="panda_link8").sympy(parameters="symbols")


def test_the_command(tmp_path):
    path = tmp_path / "two_links.toml"
    path.write_text(TWO_LINKS)
    command = [sys.executable, "-W", "error", "-m", "armdyn", "show", str(path), "--symbolic"]
    done = subprocess.run([*command, "inertia_matrix"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["H[1, 1] = 0.16*c2 + 0.3345", "H[1, 2] = 0.08*c2 + 0.052", "H[2, 2] = 0.052"]
    done = subprocess.run([*command, "potential_energy", "--symbols", "--latex"], capture_output=True, text=True)
    assert done.stdout.strip() == r"V = g l_{c1} m_{1} s_{1} + m_{2} \left(g l_{1} s_{1} + g l_{c2} s_{12}\right)"


def test_a_program_prints_as_code():
    program = armdyn.load("scara").inertia_matrix.program
    assert repr(program).startswith("<Program inertia_matrix_")
    assert "q[4] -> H[4, 4]" in repr(program)
    assert "t0 = cos(q1)" in str(program)

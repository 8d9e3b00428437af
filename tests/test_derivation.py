"""Derivations: the printed inverse of Saha's three-link arm, and the values of other arms' derivations."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pytest
import sympy as sp
from typer.testing import CliRunner

import armdyn
from armdyn.bridges.derivation import LETTERS, READABLE, TITLES, readable
from armdyn.cli import app
from armdyn.errors import InputError
from bridge_contract import arrays, close, kernel


def parsed(text):
    """An expression that was printed, in SymPy's symbols."""
    for ascii_, letter in (*LETTERS.items(), *TITLES.items()):
        text = text.replace(letter, ascii_)
    text = re.sub(r"⟨(\d+)⟩", r"__\1", text)
    assert text.isascii(), text
    names = {name: sp.Symbol(name, real=True) for name in re.findall(r"[A-Za-z]\w*", text)}
    for name in names:
        if re.fullmatch(r"[cs]\d+", name):  # c23 stands for cos(q2 + q3)
            angle = sum(sp.Symbol(f"q{k}", real=True) for k in name[1:])
            names[name] = (sp.cos if name[0] == "c" else sp.sin)(angle)
    return sp.sympify(text, locals=names)


@pytest.fixture(scope="module")
def printed():
    """What `armdyn show` prints: definitions, matrices by label, and the entries of the inverse."""
    done = CliRunner().invoke(app, ["show", "planar3", "--symbolic", "inertia_inverse", "--symbols"])
    assert done.exit_code == 0, done.output
    lines = unicodedata.normalize("NFC", done.output).splitlines()
    formulas, matrices, label = {}, {}, ""
    for line in lines:
        if "[" in line and " = " in line and re.match(r"\S+ = \[", line):
            label = line.split(" = ")[0]
        if re.search(r"\[\d", line) and " = " in line and not re.match(r"\S+ = \[", line):
            place, formula = line.split(" = ")
            formulas[place] = parsed(formula)
        elif line.rstrip().endswith("]"):
            row = re.split(r"\s{2,}", line[line.index("[") + 1 : line.rindex("]")].strip())
            matrices.setdefault(label, []).append([parsed(cell) for cell in row])
        else:
            name, formula = line.split(" = ")
            assert parsed(name) not in formulas, f"{name} is defined twice"
            formulas[parsed(name)] = parsed(formula)
    return formulas, matrices


def symbols(text):
    return sp.symbols(text, real=True)


def equal(one, other):
    return sp.expand((one - other).rewrite(sp.exp)) == 0


def test_saha_section_6_is_printed_term_by_term(printed):
    formulas, matrices = printed
    m1, m2, m3, l1, l2, r1, r2, r3, I1, I2, I3 = symbols("m1 m2 m3 l1 l2 l_c1 l_c2 l_c3 I_1zz I_2zz I_3zz")
    q1, q2, q3 = symbols("q1 q2 q3")

    def along(angle):
        return sp.Matrix([sp.cos(angle), sp.sin(angle)])

    # the paper's vectors, with rho_23 corrected (docs/papers/errata.md)
    first, second, third = along(q1), along(q1 + q2), along(q1 + q2 + q3)
    d1, d2, d3 = r1 * first, r2 * second, r3 * third
    rho12, rho13, rho23 = l1 * first + d2, l1 * first + l2 * second + d3, l2 * second + d3
    H = {  # eqs. (43a) to (43f)
        "H_11": I1 + m1 * d1.dot(d1) + I2 + m2 * rho12.dot(rho12) + I3 + m3 * rho13.dot(rho13),
        "H_12": I2 + m2 * d2.dot(rho12) + I3 + m3 * rho23.dot(rho13),
        "H_22": I2 + m2 * d2.dot(d2) + I3 + m3 * rho23.dot(rho23),
        "H_13": I3 + m3 * d3.dot(rho13),
        "H_23": I3 + m3 * d3.dot(rho23),
        "H_33": I3 + m3 * d3.dot(d3),
    }
    for name, expected in H.items():
        assert equal(formulas[symbols(name)], expected), name
    # eq. (45), the definitions of m̂ and α in the entries of H and each other
    h = {name: symbols(name) for name in H}
    mh1, mh2, mh3 = symbols("mhat_1 mhat_2 mhat_3")
    a12, a13, a23 = symbols("alpha_12 alpha_13 alpha_23")
    b12, b13, b23 = symbols("alphaprime_12 alphaprime_13 alphaprime_23")
    known = {a13: h["H_13"] / mh3, a23: h["H_23"] / mh3}
    known[a12] = (h["H_12"] - h["H_13"] * h["H_23"] / mh3) / mh2
    pivots = {
        mh3: h["H_33"],
        mh2: h["H_22"] - h["H_23"] ** 2 / mh3,
        mh1: h["H_11"] - h["H_13"] ** 2 / mh3 - mh2 * known[a12] ** 2,
    }
    for name, expected in {**known, **pivots}.items():
        found = formulas[name].subs(known).subs(known)
        assert sp.expand(found - expected) == 0, name
    assert matrices["D"] == [[mh1, 0, 0], [0, mh2, 0], [0, 0, mh3]]
    assert matrices["U"] == [[1, a12, a13], [0, 1, a23], [0, 0, 1]]
    # eq. (47), with the missing factor of α′₁₃, and eq. (48) with its squares
    assert [formulas[b12], formulas[b23], formulas[b13].subs(b12, a12)] == [a12, a23, a13 - a12 * a23]
    assert matrices[TITLES["U^-1"]] == [[1, -b12, -b13], [0, 1, -b23], [0, 0, 1]]
    inverse = {
        (1, 1): 1 / mh1, (1, 2): -b12 / mh1, (1, 3): -b13 / mh1, (2, 2): b12**2 / mh1 + 1 / mh2,
        (2, 3): b12 * b13 / mh1 - b23 / mh2, (3, 3): b13**2 / mh1 + b23**2 / mh2 + 1 / mh3,
    }  # fmt: skip
    for (i, j), expected in inverse.items():
        assert sp.expand(formulas[f"{TITLES['H^-1']}[{i}, {j}]"] - expected) == 0


CASES = [
    ("planar3", "inertia_inverse", "symbols", "denoc"),
    ("planar3", "inertia_inverse", "numbers", "auto"),
    ("planar3", "inertia_factors", "symbols", "auto"),
    ("scara", "forward_dynamics", "symbols", "auto"),
    ("stanford", "inertia_matrix", "symbols", "auto"),
    ("puma560", "gravity_load", "symbols", "auto"),
    ("puma560", "bias", "numbers", "auto"),
    ("baxter", "gravity_load", "numbers", "auto"),  # a tree with mimic joints
]


@pytest.mark.parametrize(("arm", "quantity", "parameters", "method"), CASES)
def test_definitions_put_in_give_the_values(arm, quantity, parameters, method):
    k = kernel(arm, quantity, {})
    made = armdyn.load(arm).kernel(quantity, method=method).derivation(parameters)
    values = arrays(k)
    known = {symbol: float(value) for symbol, value in made.parameters.items()}
    for (name, _), array in zip(k.assembly.inputs, values, strict=True):
        letter = {"qd": "qdot", "qdd": "qddot"}.get(name, name)
        known |= {symbols(f"{letter}{i + 1}"): x for i, x in enumerate(np.ravel(array))}
    for name, expression in made.definitions:
        assert name not in known, "defined before it is used, and once"
        free = sorted(expression.free_symbols, key=str)
        known[name] = sp.lambdify(free, expression, "math")(*(known[one] for one in free))
    expected = k(*values)
    for (_, result), wanted in zip(made.results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        free = sorted(result.free_symbols, key=str)
        found = np.array(sp.lambdify(free, result, "numpy")(*(known[one] for one in free)), float)
        close(found.reshape(np.shape(wanted)), wanted, 1e-9)


def test_short_quantities_stay_formulas_and_long_ones_are_readable():
    assert list(readable(armdyn.load("planar3").inertia_matrix, "symbols"))[-1] == "H[3, 3] = I_3zz + l_c3**2*m3"
    assert max(map(len, readable(armdyn.load("panda").gravity_load, "symbols"))) <= READABLE
    latex = armdyn.load("planar3").inertia_inverse.derivation("symbols")._repr_latex_()
    assert r"\hat{m}_{2} &= H_{22} - H_{23} \alpha_{23}" in latex
    assert r"U^{-1} &= \left[\begin{matrix}1 & - {\alpha}'_{12}" in latex


def test_symbols_leave_no_numbers():
    """A link without mass (the Puma's first) has an inertia: it is a symbol too."""
    text = "\n".join(readable(armdyn.load("puma560").inertia_matrix, "symbols"))
    assert "U_1zz = I_1zz + x_3" in text
    assert not re.search(r"\d\.\d", text)


def test_what_has_no_symbols_says_so():
    with pytest.raises(InputError, match='ask for parameters="numbers"'):
        armdyn.load("baxter").gravity_load.derivation("symbols")
    with pytest.raises(InputError, match="available: numbers, symbols"):
        armdyn.load("planar3").bias.derivation("words")


def test_expanded_results_have_no_names_left():
    made = armdyn.load("planar3").inertia_inverse.derivation("symbols")
    (inverse,) = made.expanded()
    assert not {name for name, _ in made.definitions} & inverse.free_symbols

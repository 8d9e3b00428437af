"""docs/papers/errata.md: what the papers print gives wrong matrices; every test that the documentation names exists."""

from __future__ import annotations

import ast
import importlib
import inspect
import random
import re
import types

import numpy as np
import pytest

from armdyn.chain.chain import generic_chain
from armdyn.formulations import reference
from armdyn.formulations.composite_bodies import minimal
from pages import ROOT
from random_chains import configuration, special_chain

FORMULATIONS = "armdyn.formulations.inertia_matrix."
# Where a print is wrong: the module, what stands there, and what is printed.
PRINTS = {
    "eq. (1)": ("lin_fang_5", "s, k = step.origin, body.column",
                "s, k = Vec3(step.b, -(step.d * step.R.s), step.d * step.R.c), body.column"),
    "eq. (31)": ("lin_fang_1", "inners[j].u\n", "inners[j].u; z_i = inners[i].u.z\n"),
    "eq. (40)": ("minimal", "- (2 * u.z * u.x) * ell.x - (2 * u.z * u.y) * ell.y",
                 "- (u.z * u.x) * ell.x + (u.z * u.y) * ell.y"),
    "Table III, K_j* K_i": ("lin_fang_3", "return m * v.z + (u.x * c.y - u.y * c.x)",
                            "return m * v.z - (u.x * c.y - u.y * c.x)"),
    "Table V, D_ji": ("lin_fang_5", "column.append(t.z if path[j].revolute else f.z)",
                      "column.append(t.z if path[i].revolute else f.z)"),
    "Table V, t_i-1,i": ("lin_fang_5", "return run_time(f), h.cross(axis)",
                         "return run_time(f), h.cross(axis) + step.origin.cross(f)"),
    "Table V, t_1,i": ("lin_fang_5", "t = step.R @ (t + lever.cross(f))", "t = (step.R @ (t + lever)).cross(f)"),
    "Provenzano eq. (14)": ("gibbs_appell", "*(step.R.T @ u for u in axes)", "*(step.R @ u for u in axes)"),
}  # fmt: skip


def printed(name: str, as_printed: bool = True):
    """The formulation with the print in place of what stands there, by the module's source."""
    module, ours, theirs = PRINTS[name]
    theirs = theirs if as_printed else ours
    of_bodies = module == "minimal"
    original = minimal if of_bodies else importlib.import_module(FORMULATIONS + module)
    source = inspect.getsource(original)
    assert source.count(ours) == 1, "the line has changed: bring the print to where it stands now"
    source = source.replace(ours, theirs)
    if name == "eq. (31)" and as_printed:
        source = source.replace("column.append(u.z * t_r", "column.append(z_i * t_r")
    made = types.ModuleType(original.__name__)
    exec(compile(ast.parse(source), name, "exec"), made.__dict__)
    if not of_bodies:
        return made.inertia_matrix
    bearer = importlib.import_module(FORMULATIONS + "lin_fang_1")
    copy = types.ModuleType(bearer.__name__)
    exec(compile(ast.parse(inspect.getsource(bearer)), name, "exec"), copy.__dict__)
    copy.composite_bodies = made.composite_bodies
    return copy.inertia_matrix


@pytest.fixture(scope="module")
def cases():
    rng = random.Random(4)
    kinds = ["RPRRP", "RPPRR", "RPPR", "RRPR", "PRPRR", "RRRR"]
    chains = [special_chain(rng, k, 0.8).floats for k in kinds * 4] + [generic_chain(k, 3).floats for k in kinds]
    return [(c, q := configuration(rng, c.n), np.array(reference.inertia_matrix(c, q), float)) for c in chains]


@pytest.mark.parametrize("name", PRINTS)
def test_a_print_gives_wrong_matrices(name, cases):
    def wrong(run):
        return max(abs(np.array(run(c, q), float) - H).max() / abs(H).max() for c, q, H in cases)

    assert wrong(printed(name)) > 1e-3, "the print is right on every chain"
    assert wrong(printed(name, as_printed=False)) < 1e-12


def cross(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def test_the_print_of_eq_a4_has_the_wrong_sign():
    """(A4): the inertia about the mass centre is J + [c×][c×]/m with c the first moment; it is printed with a minus."""
    rng = np.random.default_rng(0)
    points, masses = rng.normal(size=(20, 3)), rng.uniform(0.1, 1, 20)
    J = -sum(m * cross(x) @ cross(x) for m, x in zip(masses, points, strict=True))
    first, m = masses @ points, masses.sum()
    about = -sum(m_i * cross(x - first / m) @ cross(x - first / m) for m_i, x in zip(masses, points, strict=True))
    np.testing.assert_allclose(J + cross(first) @ cross(first) / m, about, atol=1e-12)
    assert abs(J - cross(first) @ cross(first) / m - about).max() > 0.1


def test_the_print_of_eq_5_mixes_frames():
    """(5): the tensor that ʲᵢR turns into frame i is that of frame j, I_j⟨j⟩; printed is I_j⟨i⟩, already in frame i."""
    chain, q = generic_chain("RR", 2).floats, [0.3, -0.8]
    step = chain.joints[1].rotation(q[1])
    link = chain.links[1]
    R = np.array([[float(x) for x in row] for row in step.matrix().rows])
    own = np.array([[float(x) for x in row] for row in link.inertia_about_com.full.rows])
    turned = np.array([[float(x) for x in row] for row in step.similarity(link.inertia_about_com).full.rows])
    np.testing.assert_allclose(R @ own @ R.T, turned, atol=1e-14)
    printed_as = R @ (R @ own @ R.T) @ R.T
    assert abs(printed_as - turned).max() > 0.01 * abs(turned).max()


def test_every_test_that_the_documentation_names_exists():
    files = list((ROOT / "tests").rglob("test_*.py"))
    known = {path.stem for path in files}
    for path in files:
        known.update(re.findall(r"^ *def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    known.add("test_panda")  # the program that a deployed folder of the Panda contains
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docs").rglob("*.rst"),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    ]
    pages = [page for page in pages if "_build" not in page.parts]
    named = {
        (page.name, one) for page in pages for one in re.findall(r"\b(test_\w+)", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 5
    assert not [one for one in named if one[1] not in known]


def test_every_erratum_with_values_as_evidence_names_its_print():
    text = (ROOT / "docs" / "papers" / "errata.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`test_errata\[([^…\]]+)\]`", text)) == set(PRINTS)

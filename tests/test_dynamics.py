"""Every route of every dynamic quantity against every other and against Pinocchio and MuJoCo; identities; costs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armdyn
from armdyn.algebra import Operations, Vec3
from armdyn.chain.canonical import canonical
from armdyn.chain.chain import generic_chain
from armdyn.formulations import QUANTITIES, reference
from armdyn.formulations.inverse_dynamics import point_masses
from armdyn.programs.assemble import Options
from armdyn.programs.cost import compiled, without_rotors
from armdyn.programs.search import auto, traced
from armdyn.studies import lin_1991 as table_2
from comparing import SERIAL
from dynamics_cases import CASES, TILTED, at, close, motion, mujoco_model, pinocchio, with_drives

pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")

DYNAMIC = ("inertia_matrix", "inertia_inverse", "inertia_rate", "bias", "gravity_load", "coriolis_matrix")
DYNAMIC += ("inverse_dynamics", "forward_dynamics", "momentum", "kinetic_energy", "potential_energy")
ROUTES = [(quantity, method) for quantity in DYNAMIC for method in armdyn.methods(quantity)]


@pytest.fixture(scope="module")
def judged() -> dict[str, dict[str, np.ndarray]]:
    """What Pinocchio says of every case, and the inputs."""
    return {name: oracle(chain) for name, chain in CASES.items()}


def oracle(chain: armdyn.chain.Chain) -> dict[str, np.ndarray]:
    q, qd, qdd = motion(chain.n, chain.n)
    model = pinocchio(chain)
    data = model.createData()
    H = np.triu(pin.crba(model, data, q))
    H = H + np.triu(H, 1).T
    tau = pin.rnea(model, data, q, qd, qdd).copy()
    bias = pin.nonLinearEffects(model, data, q, qd).copy()
    C = pin.computeCoriolisMatrix(model, data, q, qd).copy()
    rotors = 0.5 * float(model.armature @ qd**2)
    return {
        "motion": np.array([q, qd, qdd]),
        "inertia_matrix": H,
        "bias": bias,
        "gravity_load": pin.computeGeneralizedGravity(model, data, q).copy(),
        "inverse_dynamics": tau,
        "forward_dynamics": qdd,
        "inertia_inverse": np.linalg.inv(H),
        "kinetic_energy": np.array(pin.computeKineticEnergy(model, data, q, qd) + _missing(model, H, qd, rotors, data)),
        "potential_energy": np.array(pin.computePotentialEnergy(model, data, q)),
        "momentum": H @ qd,
        "coriolis_matrix": C @ qd,  # the matrix itself is not unique, its product is
        "inertia_rate": C + C.T,
    }


def _missing(model: pin.Model, H: np.ndarray, qd: np.ndarray, rotors: float, data: pin.Data) -> float:
    """Pinocchio's kinetic energy may leave the rotors out; ours never does."""
    return 0.0 if np.isclose(data.kinetic_energy, 0.5 * qd @ H @ qd, rtol=1e-12) else rotors


@pytest.mark.parametrize(("quantity", "method"), ROUTES)
def test_every_route_agrees_with_pinocchio(judged, quantity, method):
    for name, chain in CASES.items():
        if method in ("reference", "definition") and chain.n > 7 and quantity != "inertia_matrix":
            continue  # exact derivatives of the energies grow as n⁴ and more; shorter arms cover them
        truth = judged[name]
        q, qd, qdd = truth["motion"]
        third = truth["inverse_dynamics"] if quantity == "forward_dynamics" else qdd
        inputs = [q, qd, third][: len(QUANTITIES[quantity].inputs)]
        found = at(chain, quantity, method, *inputs)
        if quantity == "coriolis_matrix":
            found = found @ qd
        close(found, truth[quantity])


def test_thirty_joints():
    chain = generic_chain("RRRPR" * 6, 3)
    truth = oracle(chain)
    q, qd, qdd = truth["motion"]
    for method in armdyn.methods("inverse_dynamics"):
        close(at(chain, "inverse_dynamics", method, q, qd, qdd), truth["inverse_dynamics"])
    for method in armdyn.methods("forward_dynamics"):
        found = at(chain, "forward_dynamics", method, q, qd, truth["inverse_dynamics"])
        # The condition number of H is what separates forces from accelerations.
        close(found, qdd, 1e-15 * np.linalg.cond(truth["inertia_matrix"]))
    close(at(chain, "coriolis_matrix", "christoffel", q, qd) @ qd, truth["coriolis_matrix"])
    close(at(chain, "inertia_rate", "definition", q, qd), truth["inertia_rate"])


@pytest.mark.parametrize("name", ["RRRRRR", "RRPRRR", "PRRPRP"])
def test_mujoco_agrees(name):
    chain = with_drives(replace(generic_chain(name, 6), gravity=TILTED))
    chain = replace(chain, joints=tuple(replace(j, coulomb=0) for j in chain.joints))
    q, qd, qdd = motion(chain.n, 1)
    model = mujoco_model(chain)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
    mujoco.mj_inverse(model, data)
    options = Options(friction=True)
    tau = at(chain, "inverse_dynamics", "second_moments", q, qd, qdd, options=options)
    close(tau, data.qfrc_inverse, 1e-10)
    close(at(chain, "forward_dynamics", "denoc", q, qd, tau, options=options), qdd, 1e-10)


@pytest.mark.parametrize("name", SERIAL)
def test_catalogue_arms_as_compiled(name):
    """The machine code of the default formulations, in batches, against Pinocchio one configuration at a time."""
    arm = armdyn.load(name)
    model = pinocchio(arm.chain)
    data = model.createData()
    rng = np.random.default_rng(2)
    q, qd, qdd = rng.uniform(-1.0, 1.0, size=(3, 4, arm.n))
    tau = arm.inverse_dynamics(q, qd, qdd)
    bias, C, g = arm.bias(q, qd), arm.coriolis_matrix(q, qd), arm.gravity_load(q)
    back = arm.forward_dynamics(q, qd, tau)
    for k in range(len(q)):
        close(tau[k], pin.rnea(model, data, q[k], qd[k], qdd[k]))
        close(bias[k], pin.nonLinearEffects(model, data, q[k], qd[k]))
        close(g[k], pin.computeGeneralizedGravity(model, data, q[k]))
        close(back[k], pin.aba(model, data, q[k], qd[k], tau[k]))
    close((C @ qd[..., None])[..., 0] + g, bias)
    close(back, qdd, 1e-10)


@pytest.mark.parametrize("method", armdyn.methods("coriolis_matrix"))
@pytest.mark.parametrize("name", ["RRRRRR", "PRRPRP", "gamma", "special RRPRRR", "driven"])
def test_dh_minus_2c_is_skew(name, method):
    chain = CASES[name]
    q, qd, _ = motion(chain.n, 3)
    S = at(chain, "inertia_rate", "definition", q, qd) - 2 * at(chain, "coriolis_matrix", method, q, qd)
    close(S + S.T, np.zeros_like(S))


@pytest.mark.parametrize("name", ["RR", "RP", "PR", "RRR", "RPR", "RRRRRR", "PRRPRP", "gamma"])
def test_christoffel_is_the_derivative_of_the_inertia_matrix(name):
    chain = CASES[name].floats
    q, qd, _ = motion(chain.n, 4)
    close(at(chain, "coriolis_matrix", "christoffel", q, qd), reference.christoffel(chain, list(q), list(qd)))


def test_the_two_coriolis_matrices_differ():
    chain = CASES["RRRRRR"]
    q, qd, _ = motion(chain.n, 5)
    christoffel, denoc = (at(chain, "coriolis_matrix", m, q, qd) for m in ("christoffel", "denoc"))
    assert np.max(np.abs(christoffel - denoc)) > 1e-3
    close(christoffel @ qd, denoc @ qd)


@settings(max_examples=15)
@given(st.text("RP", min_size=1, max_size=7), st.integers(0, 10**6))
def test_identities(kinds, seed):
    chain = with_drives(replace(generic_chain(kinds, seed), gravity=TILTED))
    q, qd, qdd = motion(chain.n, seed)
    H = at(chain, "inertia_matrix", "lin_fang_1", q)
    U, D = at(chain, "inertia_factors", "denoc", q)  # type: ignore[misc]
    close(at(chain, "kinetic_energy", "recursive", q, qd), 0.5 * qd @ H @ qd)
    close(at(chain, "inertia_inverse", "denoc", q) @ H, np.eye(chain.n), 1e-10)
    close(U @ np.diag(D) @ U.T, H)
    assert np.array_equal(np.tril(U), np.eye(chain.n))
    assert np.all(D > 0)
    tau = at(chain, "inverse_dynamics", "second_moments", q, qd, qdd)
    for method in armdyn.methods("forward_dynamics"):
        close(at(chain, "forward_dynamics", method, q, qd, tau), qdd, 1e-10)
    # Energy rate = power: d(T + V)/dt = qd·tau, with dT/dt = qd·H qdd + ½ qd·dH/dt qd.
    rate = at(chain, "inertia_rate", "definition", q, qd)
    power = qd @ H @ qdd + 0.5 * qd @ rate @ qd + qd @ at(chain, "gravity_load", "definition", q)
    close(power, qd @ tau)


def test_gravity_load_is_the_slope_of_the_potential():
    chain = CASES["tilted, on a base, with a tool"]
    q = motion(chain.n, 6)[0]
    for i in range(chain.n):
        step = 1e-5 * np.eye(chain.n)[i]
        V = [float(at(chain, "potential_energy", "recursive", q + s)) for s in (step, -step)]
        assert (V[0] - V[1]) / 2e-5 == pytest.approx(at(chain, "gravity_load", "recursive", q)[i], rel=1e-8)


def test_sliding_frames_changes_no_answer():
    chain = without_rotors(armdyn.load("puma560").chain)
    moved = canonical(chain)
    assert sum(joint.d != 0 for joint in moved.joints) < sum(joint.d != 0 for joint in chain.joints)
    q, qd, qdd = motion(chain.n, 7)
    for quantity, inputs in (("inverse_dynamics", (q, qd, qdd)), ("pose", (q,)), ("jacobian", (q,))):
        run = QUANTITIES[quantity].methods[0].run
        inputs = [list(x) for x in inputs]
        close(run(moved.floats, *inputs), run(chain.floats, *inputs), 1e-12)
    parallel = replace(generic_chain("RPRR", 1), tool=CASES["tilted, on a base, with a tool"].tool)
    flat = tuple(replace(j, beta=armdyn.algebra.Angle.of(0.0)) for j in parallel.joints)
    parallel = replace(parallel, joints=flat)
    assert all(joint.d == 0 for joint in canonical(parallel).joints)
    for quantity in ("inertia_matrix", "pose", "potential_energy"):
        run = QUANTITIES[quantity].methods[0].run
        close(run(canonical(parallel).floats, list(q[:4])), run(parallel.floats, list(q[:4])), 1e-12)


BOUNDS = {  # as compiled, from a trial of the design: never more than this
    "general 6R": (Operations(398, 336), Operations(768, 638, 6)),
    "general 7R": (Operations(482, 408), Operations(999, 829, 7)),
    "puma560": (Operations(195, 169), Operations(343, 287, 6)),
}
REACHED = {
    "general 6R": (Operations(367, 303), Operations(732, 598, 5)),
    "general 7R": (Operations(445, 368), Operations(958, 783, 6)),
    "puma560": (Operations(179, 150), Operations(309, 250, 4)),
}


@pytest.mark.parametrize("bounds", [BOUNDS, REACHED], ids=["trial", "reached"])
@pytest.mark.parametrize("name", BOUNDS)
def test_compiled_operations(name, bounds):
    arms = {"general 6R": "R" * 6, "general 7R": "R" * 7}
    chain = generic_chain(arms[name]) if name in arms else armdyn.load(name).chain
    found = [compiled(chain, quantity, auto(chain, quantity)) for quantity in ("inverse_dynamics", "forward_dynamics")]
    for operations, bound in zip(found, bounds[name], strict=True):
        assert operations.mul <= bound.mul
        assert operations.add <= bound.add
        assert operations.div <= bound.div


def test_point_masses_take_the_fewest_operations():
    chain = generic_chain("R" * 6)
    costs = {m: traced(chain, "inverse_dynamics", m).operations.total for m in armdyn.methods("inverse_dynamics")}
    assert sorted(costs, key=costs.__getitem__)[:2] == ["point_masses", "second_moments"]


@pytest.mark.parametrize("n", [3, 4, 6, 9])
def test_claimed_costs(n):
    """What the reading cards of our own formulations claim, before common terms are sought."""
    chain = generic_chain("R" * n)
    claims = {"second_moments": (81 * n - 105, 69 * n - 95), "point_masses": (78 * n - 99, 65 * n - 87)}
    for method, (mul, add) in claims.items():
        found = traced(chain, "inverse_dynamics", method).operations
        assert (found.mul, found.add) == (mul, add)


def test_nothing_large_is_kept_back_on_an_axis():
    """A tiny distance between axes must not turn into a huge point mass."""
    chain = generic_chain("RRRR", 2)
    joints = (*chain.joints[:2], replace(chain.joints[2], b=Fraction(1, 10**7)), chain.joints[3])
    chain = replace(chain, joints=joints)
    total = sum(link.mass for link in chain.links)
    assert all(abs(body.mass) <= total for body in point_masses.bodies(chain))
    q, qd, qdd = motion(4, 8)
    found = at(chain, "inverse_dynamics", "point_masses", q, qd, qdd)
    close(found, at(chain, "inverse_dynamics", "newton_euler", q, qd, qdd), 1e-13)


@pytest.mark.parametrize("n", range(2, 13))
def test_lin_1991_table_2(n):
    """The n² terms as printed; 12M and (2n+2)A fewer."""
    assert table_2.printed(n) - table_2.total(n) == Operations(mul=12, add=2 * n + 2)


def test_lin_1991_table_2_as_printed():
    """The table's own numbers for n = 2 … 8."""
    rows = {n: table_2.printed(n) for n in range(2, 9)}
    assert [row.mul for row in rows.values()] == [64, 132, 225, 343, 486, 654, 847]
    assert [row.add for row in rows.values()] == [38, 84, 148, 230, 330, 448, 584]


def test_gravity_and_the_first_link_share_what_they_can():
    """A vertical first axis carries no gravity: the graph finds out by itself."""
    vertical = compiled(generic_chain("RRR"), "gravity_load", "recursive")
    tilted = compiled(replace(generic_chain("RRR"), gravity=Vec3(Fraction(1), 2, 3)), "gravity_load", "recursive")
    assert vertical.total < tilted.total

"""Springs, ripples, offsets, load friction at the joints: one law in kernels, files, C, simulation and estimates."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

import armdyn
from armdyn import Log
from armdyn.chain import JointForces, Mimic, Ripple
from armdyn.chain.joint import DRIVE, NUMBERS, POSITIVE, WORDS
from armdyn.errors import FileError, InputError
from armdyn.identification.model import TERMS, Model
from armdyn.identification.result import identified_arm
from armdyn.report.card import card


def everything(k):
    ripples = (Ripple(2, Fraction(1, 5), Fraction(-1, 8)), Ripple(3, Fraction(k, 16)))
    return JointForces(
        Fraction(k, 10),
        Fraction(3, 10),
        ripples,
        Fraction(1, 32),
        Fraction(k + 1, 40),
        stribeck_exponent=4 - 2 * (k % 2),
    )


@pytest.fixture(scope="module")
def arm():
    puma = armdyn.load("puma560")
    joints = [
        replace(
            joint,
            static=joint.coulomb * (2 if k % 2 else Fraction(1, 2)),
            stribeck=Fraction(1, 20),
            forces=everything(k),
        )
        for k, joint in enumerate(puma.given.joints)
    ]
    return armdyn.Arm("full", replace(puma.given, joints=tuple(joints)))


def written_again(arm, q, qd, load):
    """The law with arrays, joint by joint."""
    out = np.empty_like(qd)
    for k, joint in enumerate(arm.joints):
        f, v, x = joint.forces, qd[..., k], q[..., k]
        share = 1 / (1 + np.abs(v / float(joint.stribeck)) ** f.stribeck_exponent)
        dry = (1 - share) * float(joint.coulomb) + share * float(joint.static)
        out[..., k] = float(joint.viscous) * v + float(f.asymmetry) * np.abs(v)
        out[..., k] += np.sign(v) * (dry + float(f.load_friction) * np.abs(load[..., k]))
        out[..., k] += float(f.offset) + float(f.stiffness) * x
        for r in f.ripples:
            out[..., k] += float(r.sine) * np.sin(r.per_turn * x) + float(r.cosine) * np.cos(r.per_turn * x)
    return out


@pytest.mark.parametrize("backend", ["llvm", "numpy", "python"])
def test_the_kernel_is_the_law(arm, backend, rng):
    q, qd, load = rng.normal(size=(3, 5, 6))
    got = arm.kernel("joint_forces", backend=backend)(q, qd, load)
    np.testing.assert_allclose(got, written_again(arm, q, qd, load), atol=1e-12)
    speed_alone = arm.friction(qd)
    np.testing.assert_allclose(
        speed_alone, arm.joint_forces(q, qd, 0 * load) - arm.joint_forces(q, 0 * qd, 0 * load), atol=1e-12
    )


def test_inverse_and_forward_dynamics_have_it_and_undo_each_other(arm, rng):
    q, qd, qdd = rng.normal(size=(3, 7, 6))
    wrench = rng.normal(size=(7, 6))
    load = np.asarray(arm.inverse_dynamics(q, qd, qdd, tool_wrench=wrench))
    tau = arm.inverse_dynamics(q, qd, qdd, tool_wrench=wrench, friction=True)
    np.testing.assert_allclose(tau, load + written_again(arm, q, qd, load), atol=1e-11)
    back = arm.forward_dynamics(q, qd, tau, tool_wrench=wrench, friction=True)
    np.testing.assert_allclose(back, qdd, atol=1e-9)


@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_derivatives_have_it(arm, quantity, rng):
    q, qd, x = rng.uniform(0.5, 1.5, (3, 6)) * rng.choice([-1, 1], (3, 6))
    kernel = arm.kernel(quantity, friction=True)
    names = ("q", "qd", "qdd" if quantity == "inverse_dynamics" else "tau")
    exact = arm.kernel(quantity, friction=True, derivatives=names)(q, qd, x)
    h = 1e-6
    for k, got in enumerate(exact):
        columns = []
        for j in range(6):
            apart = [np.array([q, qd, x]), np.array([q, qd, x])]
            apart[0][k, j] += h
            apart[1][k, j] -= h
            columns.append((np.asarray(kernel(*apart[0])) - np.asarray(kernel(*apart[1]))) / (2 * h))
        np.testing.assert_allclose(got, np.stack(columns, axis=1), atol=2e-6 * max(1.0, np.abs(got).max()))


def test_files_keep_it(arm, tmp_path, rng):
    arm.save(tmp_path / "arm.toml")
    assert armdyn.load(tmp_path / "arm.toml").given.joints == arm.given.joints
    arm.to_urdf(tmp_path / "arm.urdf")
    again = armdyn.load(tmp_path / "arm.urdf")
    assert all("no body can have" in text for text in again.notes)  # the PUMA's measured inertias
    q, qd, load = rng.normal(size=(3, 5, 6))
    np.testing.assert_allclose(again.joint_forces(q, qd, load), arm.joint_forces(q, qd, load), atol=1e-12)
    assert [j.rotor_inertia for j in again.joints] == [j.rotor_inertia for j in arm.joints]


def test_other_readers_pass_our_element_by(tmp_path, rng):
    pin, mujoco = pytest.importorskip("pinocchio"), pytest.importorskip("mujoco")
    ur5 = armdyn.load("ur5")
    joints = [replace(joint, rotor_inertia=Fraction(1, 10), forces=everything(1)) for joint in ur5.given.joints]
    arm = armdyn.Arm("full", replace(ur5.given, joints=tuple(joints)))
    arm.to_urdf(tmp_path / "arm.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    q = rng.normal(size=6)
    np.testing.assert_allclose(
        pin.computeGeneralizedGravity(model, model.createData(), q), arm.gravity_load(q), atol=1e-9
    )
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "arm.urdf")).nq == 6


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ripple = 3", "array of tables"),
        ("ripple = [{ per_turn = 0.5 }]", "whole number from 1"),
        ("ripple = [{ turns = 2 }]", "per_turn, sine, cosine"),
        ("stribeck_exponent = 3", "even whole number"),
        ("load_friction = 1.5", "below 1"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, line, said):
    path = tmp_path / "arm.toml"
    armdyn.load("planar3").save(path)
    text = path.read_text().replace('kind = "revolute"', f'kind = "revolute"\n{line}', 1)
    path.write_text(text)
    with pytest.raises((FileError, InputError), match=said):
        armdyn.load(path)


def test_load_friction_of_joints_that_move_together_is_refused(arm):
    joints = list(arm.given.joints)
    joints[5] = replace(joints[5], mimic=Mimic(4))
    with pytest.raises(InputError, match="moves together with another joint"):
        replace(arm.given, joints=tuple(joints))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler on this machine")
def test_c_has_the_same_law(arm, tmp_path, rng):
    arm.emit_c(tmp_path, ["joint_forces", "inverse_dynamics"], friction=True)
    subprocess.run(["gcc", "-std=c99", "-shared", "-fPIC", "-o", "lib.so", "full.c", "-lm"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "lib.so"))
    q, qd, x = rng.normal(size=(3, 6))
    for name in ("joint_forces", "inverse_dynamics"):
        out = np.empty(6)
        getattr(library, f"full_{name}")(*(a.ctypes.data_as(ctypes.c_void_p) for a in (q, qd, x, out)))
        np.testing.assert_allclose(
            out, arm.kernel(name, **({"friction": True} if "inv" in name else {}))(q, qd, x), atol=1e-10
        )


def test_simulation_agrees_with_inverse_dynamics_and_between_methods(arm, rng):
    q, qd = rng.normal(size=(2, 6))
    runs = {m: armdyn.simulate(arm, q, qd, duration=0.3, method=m, limits=False) for m in ("RK4", "ARK4")}
    runs["DOP853"] = armdyn.simulate(arm, q, qd, duration=0.3, method="DOP853", limits=False)
    for run in runs.values():
        assert run.status == "finished"
        np.testing.assert_allclose(run.q[-1], runs["DOP853"].q[-1], atol=1e-5)
        moving = np.all(np.abs(run.qd) > 1e-9, axis=1)
        asked = arm.inverse_dynamics(run.q[moving], run.qd[moving], run.qdd[moving], friction=True)
        assert moving.sum() > 5
        np.testing.assert_allclose(asked, run.tau[moving], atol=1e-8)


def test_a_heavier_load_sticks_longer(tmp_path):
    """A slope on which a joint would just move: with friction that grows with the load it stays."""
    one = armdyn.load("planar3").with_gravity((0.0, -9.81, 0.0))
    for share, sticks in ((Fraction(0), False), (Fraction(3, 10), True)):
        joints = tuple(
            replace(joint, viscous=0, coulomb=Fraction(20 if k else 2), forces=JointForces(load_friction=share))
            for k, joint in enumerate(one.given.joints)
        )
        arm = armdyn.Arm("loaded", replace(one.given, joints=joints))
        q = np.array([0.3, 0.0, 0.0])
        held = np.asarray(arm.gravity_load(q))
        torque = held + np.array([-2.5, 0.0, 0.0])  # beyond Coulomb friction alone
        run = armdyn.simulate(arm, q, np.zeros(3), torque=torque, duration=0.05, step=1e-3)
        assert (np.abs(run.qd[-1, 0]) < 1e-12) == sticks


def test_an_identified_arm_does_what_the_estimate_predicts(rng):
    """Simulated with everything that was found, under the predicted torque, the arm follows the motion."""
    arm = armdyn.load("planar3").with_gravity((0.0, -9.81, 0.0))
    forces = JointForces(
        Fraction(1, 2), Fraction(2), (Ripple(3, Fraction(1), Fraction(1, 2)),), load_friction=Fraction(1, 20)
    )
    joints = tuple(replace(j, viscous=Fraction(1), coulomb=Fraction(1), forces=forces) for j in arm.given.joints)
    real = armdyn.Arm("real", replace(arm.given, joints=joints))
    rates, mixed = np.array([0.9, 1.3, 1.7]), 2.3

    def motion(t):
        w = np.multiply.outer(t, rates)
        q = 1.5 * np.sin(w) + 0.4 * np.cos(mixed * w)
        qd = rates * (1.5 * np.cos(w) - 0.4 * mixed * np.sin(mixed * w))
        return q, qd, -(rates**2) * (1.5 * np.sin(w) + 0.4 * mixed**2 * np.cos(mixed * w))

    t = np.arange(0, 20, 0.01)
    q, qd, qdd = motion(t)
    tau = np.asarray(real.inverse_dynamics(q, qd, qdd, friction=True))
    log = Log.of(t, q, tau + 0.02 * rng.normal(size=tau.shape), qd, qdd)
    found = armdyn.identify(arm, log, width=0, folds=3)
    assert {"spring", "load", "sin3"} <= set(found.model.terms)
    assert not found.left_behind
    predicted = found.predict(q, qd, qdd)
    own = np.asarray(found.arm.inverse_dynamics(q, qd, qdd, friction=True))
    assert np.linalg.norm(own - predicted) < 1e-4 * np.linalg.norm(predicted)
    run = armdyn.simulate(found.arm, q[0], qd[0], torque=lambda s, *_: found.predict(*motion(s))[0], duration=0.15)
    np.testing.assert_allclose(run.q[-1], motion(0.15)[0], atol=1e-4)
    plain = replace(found.arm, given=replace(found.arm.given, joints=arm.given.joints))
    off = armdyn.simulate(plain, q[0], qd[0], torque=lambda s, *_: found.predict(*motion(s))[0], duration=0.15)
    assert np.abs(off.q[-1] - motion(0.15)[0]).max() > 0.005  # without what was found it goes elsewhere


def with_forces(arm, **forces):
    """The arm with these forces at every joint and no drive."""
    none = dict.fromkeys(DRIVE, 0)
    joints = tuple(replace(joint, **none, forces=JointForces(**forces)) for joint in arm.given.joints)
    return replace(arm, given=replace(arm.given, joints=joints))


@pytest.mark.parametrize("name", [field.name for field in fields(JointForces)])
def test_every_field_is_a_law_that_files_and_the_data_sheet_have(name, tmp_path, rng):
    values = {"ripples": (Ripple(3, Fraction(1, 8), Fraction(-1, 4)),), "stribeck_exponent": 4}
    value = values.get(name, Fraction(1, 8))
    bare, some = with_forces(armdyn.load("planar3")), with_forces(armdyn.load("planar3"), **{name: value})
    if name == "stribeck_exponent":  # shapes friction
        bare, some = (rubbing(arm) for arm in (bare, some))
    q, qd, qdd = 1 + rng.random((3, 3))
    torques = [np.asarray(one.inverse_dynamics(q, qd, qdd, friction=True)) for one in (bare, some)]
    assert np.abs(torques[1] - torques[0]).min() > 1e-6, "every field changes the torque"
    backwards = [np.asarray(one.inverse_dynamics(q, -qd, qdd, friction=True)) for one in (bare, some)]
    brakes = [((b - a) * v > 0).all() for (a, b), v in ((torques, qd), (backwards, -qd))]
    assert name in POSITIVE or name not in NUMBERS or not all(brakes), "below zero it would drive in both directions"
    some.save(tmp_path / "arm.toml")
    some.to_urdf(tmp_path / "arm.urdf")
    for file in ("arm.toml", "arm.urdf"):
        assert [j.forces for j in armdyn.load(tmp_path / file).given.joints] == [j.forces for j in some.given.joints]
    rows = [{key: x for key, x in joint.items() if key != "name"} for joint in card(some)["joints"]]
    assert rows[0] != {key: x for key, x in card(bare)["joints"][0].items() if key != "name"}, "the data sheet shows it"
    if name in NUMBERS:
        differing = armdyn.compare(bare, some, samples=1).properties
        assert {(what, b) for _, what, _, b in differing} == {(WORDS[name], 0.125)}, "comparisons show it"
        some.to_mjcf(tmp_path / "arm.xml")
        again = armdyn.load(tmp_path / "arm.xml")
        kept = all(float(getattr(j.forces, name)) == 0.125 for j in again.joints)
        words = "a constant force" if name == "offset" else WORDS[name]
        assert kept or words in (tmp_path / "arm.xml").read_text(), "MJCF holds it or says so"
    assert name == "stribeck_exponent" or name in {term.field for term in TERMS.values()}, "a term identifies it"


def rubbing(arm):
    """The arm with static and Coulomb friction."""
    joints = (replace(j, coulomb=1, static=2, stribeck=Fraction(1, 2)) for j in arm.given.joints)
    return replace(arm, given=replace(arm.given, joints=tuple(joints)))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_forces_that_are_not_finite_are_refused(name, value):
    with pytest.raises(InputError, match="every number must be finite"):
        with_forces(armdyn.load("planar3"), **{name: value})


@pytest.mark.parametrize("name", POSITIVE)
def test_forces_that_cannot_be_negative_are_refused(name):
    with pytest.raises(InputError, match=f"{name} must be at least 0.*, got -0.1"):
        with_forces(armdyn.load("planar3"), **{name: Fraction(-1, 10)})


@pytest.fixture(scope="module")
def everything_fitted():
    """A model with every term at every joint, and natural parameters all different from 0."""
    arm = armdyn.load("planar3").with_gravity((0.0, -9.81, 0.0))
    terms = dict.fromkeys(TERMS, (0, 1, 2))
    model = replace(Model.of(arm), terms=terms, stribeck=np.array([0.3, 0.5, 0.7]))
    extras = 0.02 + 0.01 * np.arange(len(model.extra_names)) % 0.07
    natural = np.concatenate([model.prior(arm)[: model.links], extras])
    return model.loaded(natural), natural


def test_the_columns_of_all_terms_are_the_law_of_the_arm_they_give(everything_fitted, rng):
    model, natural = everything_fitted
    arm = identified_arm(model, natural)
    q, qd, qdd = rng.normal(size=(3, 50, 3))
    expected = model.regressor(q, qd, qdd) @ (model.natural @ natural)
    np.testing.assert_allclose(arm.inverse_dynamics(q, qd, qdd, friction=True), expected, atol=1e-12)
    np.testing.assert_allclose(model.prior(arm), natural, atol=1e-15)


@pytest.mark.parametrize("name", TERMS)
def test_a_negative_parameter_never_makes_an_impossible_arm(everything_fitted, name):
    model, natural = everything_fitted
    changed = natural.copy()
    changed[model.links + model.extra_names.index(f"{TERMS[name].symbol}2")] = -0.25
    arm = identified_arm(model, changed)
    assert TERMS[name].value(arm.joints[1]) == (0.0 if TERMS[name].positive else -0.25)
    assert not [finding for finding in arm.check() if "negative" in finding.text]


def test_a_strong_prior_is_the_whole_arm():
    given = with_forces(armdyn.load("planar3"), offset=Fraction(1, 2), stiffness=Fraction(2))
    arm = given.with_gravity((0.0, -9.81, 0.0))
    t = np.arange(0, 10, 0.01)
    q = np.stack([np.sin(1.3 * t), 0.8 * np.cos(1.9 * t), np.sin(2.3 * t + 1)], axis=1)
    qd, qdd = (np.gradient(x, 0.01, axis=0) for x in (q, np.gradient(q, 0.01, axis=0)))
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
    found = armdyn.identify(
        arm, Log.of(t, q, tau, qd, qdd), friction="viscous", rotor=False, spring=True, regularization=1e5
    )
    values = found.extras
    assert [values[f"k{j}"] for j in (1, 2, 3)] == pytest.approx([2.0] * 3, abs=1e-3)
    assert [values[f"off{j}"] for j in (1, 2, 3)] == pytest.approx([0.5] * 3, abs=1e-3)

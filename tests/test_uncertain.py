"""Samples are possible arms with the distributions that were asked for, the same bits however they are drawn, and what
is computed with them is what their own arms give."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

import armdyn
from armdyn import Normal, Uncertain, Uniform
from armdyn.algebra import exact
from armdyn.errors import InputError
from armdyn.identification.model import Parameter
from armdyn.simulation import PD, ComputedTorque, quintic
from armdyn.uncertainty import bodies, probability
from armdyn.uncertainty.distributions import InverseDistributions, exponential, logarithm, normal_quantile, unit_points
from dynamics_cases import mujoco_model


@lru_cache(maxsize=1)
def arm():
    """Three joints with friction, of the UR10's first three."""
    ur = armdyn.load("ur10")
    joints = tuple(
        replace(j, viscous=exact(0.5), coulomb=exact(0.3), static=exact(0.4), stribeck=exact(0.1))
        for j in ur.given.joints[:3]
    )
    given = replace(ur.given, joints=joints, links=ur.given.links[:3], parents=ur.given.parents[:3])
    return replace(ur, name="three", given=given, frames=())


def smooth():
    """The same without friction."""
    joints = tuple(replace(j, viscous=0, coulomb=0, static=0, stribeck=0) for j in arm().given.joints)
    return replace(arm(), given=replace(arm().given, joints=joints))


def everything(seed=5):
    return Uncertain(
        arm(),
        payload_mass=Uniform(0, 5),
        payload_com=Normal(0, 0.02),
        link_masses=Normal(1, 0.05),
        link_coms=Normal(0, 0.005),
        link_inertias=Normal(0, 0.2),
        friction=Uniform(0.5, 1.5),
        gravity=Normal(0, 0.2),
        joint_offsets=Normal(0, 0.01),
        seed=seed,
    )


def test_elementary_functions_agree_with_the_library():
    u = np.concatenate([np.linspace(0, 1, 10001)[1:-1], 10.0 ** -np.arange(1.0, 300.0)])
    np.testing.assert_allclose(normal_quantile(u), ndtri(u), rtol=4e-15, atol=1e-17)
    np.testing.assert_allclose(logarithm(u), np.log(u), rtol=1e-15)
    x = np.linspace(-50, 50, 9999)
    np.testing.assert_allclose(exponential(x), np.exp(x), rtol=1e-15)


def test_quantiles_of_a_normal_distribution_truncated_at_zero():
    u = np.linspace(0.001, 0.999, 999)[:, None]
    found = InverseDistributions([(Normal(1.0, 0.8), 0.0)])(u)[:, 0]
    np.testing.assert_allclose(found, stats.truncnorm.ppf(u[:, 0], -1 / 0.8, np.inf, 1.0, 0.8), rtol=1e-12)


@pytest.mark.parametrize("kind", ["random", "sobol"])
def test_points_are_found_by_their_number(kind):
    whole = unit_points(kind, 7, 0, 1000, 13)
    assert np.array_equal(unit_points(kind, 7, 431, 57, 13), whole[431:488])
    assert not np.array_equal(unit_points(kind, 8, 0, 1000, 13), whole)
    assert stats.kstest(whole[:, 4], "uniform").pvalue > 0.01
    assert np.abs(np.corrcoef(whole.T) - np.eye(13)).max() < 0.12


def test_a_sample_has_the_same_bits_in_any_order_and_process():
    drawn = everything().sample(101).plants
    again = pickle.loads(pickle.dumps(everything())).sample(1000)
    for a, b in ((90, 101), (0, 7), (7, 90)):
        for name in ("natural", "parameters", "gravity", "viscous", "coulomb", "offsets"):
            assert np.array_equal(getattr(again[a:b].plants, name), getattr(drawn, name)[a:b]), name
    assert not np.array_equal(everything(seed=6).sample(101).natural, drawn.natural)


def test_samples_are_possible_bodies_whatever_the_deviations():
    wild = Uncertain(arm(), link_masses=Normal(1, 2), link_coms=Normal(0, 1), link_inertias=Normal(0, 3))
    P = bodies.pseudo_inertia(wild.sample(500).natural)
    scale = np.sqrt(np.einsum("knii->kni", P))
    assert np.linalg.eigvalsh(P / (scale[..., None] * scale[..., None, :])).min() > -1e-12
    findings = [f for a in wild.sample(3).arms for f in a.check() if "triangle" in str(f) or "negative" in str(f)]
    assert not findings


def test_natural_parameters_are_those_of_the_bodies_asked_for():
    given = {"payload_mass": 2.0, "payload_com": [0.1, 0.0, -0.05], "link_masses": {arm().joints[1].name: 1.5}}
    found = Uncertain(arm(), link_coms=[0.0, 0.0, 0.01], **given).sample(1).arm(0)
    expected = arm().with_payload(2.0, [0.1, 0.0, -0.05])
    links = list(arm().links)
    assert float(found.links[1].mass) == pytest.approx(1.5 * float(links[1].mass))
    last = found.links[2]
    alone = armdyn.Arm("", replace(arm().given, links=(*links[:2], last))).without_payload(2.0, [0.1, 0.0, -0.05])
    assert [float(x) for x in alone.links[2].com] == pytest.approx([float(x) + 0.01 for x in links[2].com], abs=1e-12)
    about = [float(x) for x in alone.links[2].inertia_about_com.entries]
    assert about == pytest.approx([float(x) for x in links[2].inertia_about_com.entries], abs=1e-12)
    assert found.mass == pytest.approx(expected.mass + 0.5 * float(links[1].mass))


def test_numbers_that_are_impossible_are_refused_like_distributions():
    with pytest.raises(InputError, match="payload_mass is -1, which is impossible: at least 0"):
        Uncertain(arm(), payload_mass=-1.0)
    with pytest.raises(InputError, match=r"link_masses .* is -2, which is impossible: at least 0"):
        Uncertain(arm(), link_masses=[1.0, -2.0, 1.0])
    with pytest.raises(InputError, match=r"payload_mass: expected .* a number, got nan"):
        Uncertain(arm(), payload_mass=float("nan"))


def test_parameters_are_those_of_the_arm_that_holds_the_sample():
    """By the registry's program of a payload, and natural parameters beside it that belong to the same body."""
    load = Uncertain(arm(), payload_mass=Uniform(0, 3), payload_com=Normal(0, 0.1), link_masses=Normal(1, 0.1))
    samples = load.sample(5)
    of_natural = samples.natural.reshape(5, -1) @ np.asarray(arm().minimal_parameters.array).T
    np.testing.assert_allclose(samples.parameters, of_natural, rtol=0, atol=1e-14)
    alone = replace(load, link_masses=None).sample(5)
    for (mass, *com), found in zip(alone.values, alone.parameters, strict=True):
        np.testing.assert_allclose(found, arm().with_payload(mass, com).minimal_parameters.values, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "name", ["inverse_dynamics", "forward_dynamics", "inertia_matrix", "potential_energy", "pose", "friction"]
)
@pytest.mark.parametrize("gravity", [False, True])
def test_a_quantity_of_samples_is_that_of_their_arms(name, gravity, rng):
    uncertain = everything() if gravity else replace(everything(), gravity=None)
    samples = uncertain.sample(4)
    inputs = [port for port, _ in armdyn.formulations.QUANTITIES[name].inputs]
    arrays = [rng.uniform(-1, 1, (5, 3)) for _ in inputs]
    found = samples.evaluate(name, *arrays)
    for k in range(4):
        one = samples.arm(k)
        true = [x + samples.plants.offsets[k] if port == "q" else x for port, x in zip(inputs, arrays, strict=True)]
        kernel = one.kernel(name, armdyn.methods(name)[0], backend="python")
        np.testing.assert_allclose(found.values[k], kernel(*true), rtol=1e-10, atol=1e-12)
        if name.endswith("dynamics"):
            rough = samples.evaluate(name, *arrays, friction=True).values[k]
            np.testing.assert_allclose(rough, kernel(*true, friction=True), rtol=1e-10, atol=1e-12)


def test_uncertain_friction_is_in_a_data_set(rng):
    """Motors give what each sample's own arm needs, with the friction of its own joints."""
    uncertain = Uncertain(arm(), viscous=Uniform(0, 3), coulomb=Uniform(0, 2), seed=4)
    samples = uncertain.sample(4)
    qd = np.array([[1.0, -2.0, 0.5]] * 4) * rng.uniform(0.5, 1.5, (4, 3))
    more = samples.more_friction(qd)
    for k in range(4):
        expected = samples.arm(k).friction(qd[k]) - arm().friction(qd[k])
        np.testing.assert_allclose(more[k], expected, rtol=1e-12)
        assert np.abs(more[k]).max() > 0


def test_a_linear_gaussian_torque_has_the_closed_form(rng):
    """τ = Y π: masses that are normal make torques with covariance Y Σ Yᵀ."""
    uncertain = Uncertain(arm(), link_masses=Normal(1, 0.05), payload_mass=Normal(3, 0.2), seed=1)
    q, qd, qdd = rng.uniform(-1, 1, (3, 3))
    out = uncertain.sample(40_000).evaluate("inverse_dynamics", q, qd, qdd)
    nominal = [[float(x) for x in link.natural] for link in arm().links]
    Y = np.asarray(arm().natural_regressor(q, qd, qdd)).reshape(3, 3, 10)
    payload = np.asarray(arm().with_payload(1.0).inverse_dynamics(q, qd, qdd) - arm().inverse_dynamics(q, qd, qdd))
    by_mass = np.einsum("jlp,lp->jl", Y, nominal)
    columns = np.column_stack([0.05 * by_mass, 0.2 * payload])
    np.testing.assert_allclose(out.mean, by_mass.sum(axis=1) + 3 * payload, atol=4 * out.sd.max() / 200)
    expected = columns @ columns.T
    np.testing.assert_allclose(out.covariance, expected, rtol=0.03, atol=0.03 * np.abs(expected).max())
    bound = float(out.mean[1] + 2 * np.sqrt(expected[1, 1]))
    happens = out.exceeds(np.array([np.inf, abs(bound), np.inf]))
    if bound > 0:
        assert happens.lower[1] < stats.norm.sf(2.0) < happens.upper[1]
    quantile = out.quantiles(0.9)[1]
    assert quantile == pytest.approx(stats.norm.ppf(0.9, out.mean[1], np.sqrt(expected[1, 1])), rel=0.01)


def test_a_covariance_of_minimal_parameters_is_met():
    p = len(arm().minimal_parameters)
    values = np.asarray(arm().minimal_parameters.values)
    rng = np.random.default_rng(3)
    root = rng.normal(size=(p, p)) * 1e-5
    uncertain = Uncertain(arm(), covariance=root @ root.T, seed=2)
    drawn = uncertain.sample(20_000).parameters
    d = np.sqrt(np.diag(root @ root.T))
    np.testing.assert_allclose(np.cov(drawn.T) / np.outer(d, d), root @ root.T / np.outer(d, d), atol=0.04)
    np.testing.assert_allclose((drawn.mean(axis=0) - values) / d, 0.0, atol=0.04)


def test_mujoco_with_edited_masses_agrees(rng):
    """The nominal model with MuJoCo's own arrays of masses, centres and inertias set to a sample's."""
    plain = armdyn.Arm("plain", replace(smooth().chain, base=type(arm().chain.base)()), snap=0)
    uncertain = Uncertain(plain, link_masses=Normal(1, 0.1), payload_mass=Uniform(0, 3), gravity=Normal(0, 0.1), seed=4)
    samples = uncertain.sample(3)
    q, qd, qdd = rng.uniform(-1, 1, (3, 3))
    found = samples.evaluate("inverse_dynamics", q, qd, qdd).values
    for k in range(3):
        model = mujoco_model(plain.chain)
        edited = mujoco_model(samples.arm(k).chain)
        for name in ("body_mass", "body_inertia", "body_ipos", "body_iquat"):
            getattr(model, name)[:] = getattr(edited, name)
        model.opt.gravity[:] = samples.plants.gravity[k]
        mujoco.mj_setConst(model, mujoco.MjData(model))
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(found[k], data.qfrc_inverse, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["RK4", "ARK4"])
def test_a_simulated_sample_is_its_own_arm_simulated(method):
    samples = replace(everything(), joint_offsets=None).sample(3)
    start, d = np.array([0.1, -0.5, 0.4]), np.diag(arm().inertia_matrix(np.zeros(3)))
    controller = PD(quintic(start, start + 0.4, 0.3), 400 * d, 40 * d)
    batch = samples.simulate(start, torque=controller, duration=0.3, method=method)
    alone = armdyn.simulate(samples.arm(1), start, torque=controller, duration=0.3, method=method)
    np.testing.assert_allclose(batch.q[1], alone.q, atol=1e-10)
    np.testing.assert_allclose(batch.tau[1], alone.tau, atol=1e-7)
    np.testing.assert_allclose(batch.energy[1], alone.energy, rtol=1e-9)
    assert batch.status == "finished"


def test_a_controller_does_not_know_the_sample_nor_the_offset():
    """With no deviation computed torque tracks exactly; an offset alone is followed by the true positions."""
    start = np.array([0.1, -0.5, 0.4])
    motion = quintic(start, start + 0.4, 0.3)
    controller = ComputedTorque(motion, 400.0, 40.0)
    shifted = Uncertain(smooth(), joint_offsets=[0.01, 0.0, 0.0]).sample(
        1
    )  # about a vertical axis: gravity is the same
    run = shifted.simulate(start, torque=controller, duration=0.3)
    np.testing.assert_allclose(run.q[0] - motion(run.t)[0], np.tile([0.01, 0, 0], (len(run.t), 1)), atol=1e-9)
    heavy = Uncertain(smooth(), payload_mass=Uniform(2, 5)).sample(8)
    error = np.abs(heavy.simulate(start, torque=controller, duration=0.3).q - motion(run.t)[0]).max(axis=(1, 2))
    assert np.array_equal(np.argsort(error), np.argsort(heavy.values[:, 0]))  # the heavier, the further off
    assert heavy.outcome(error).worst().row == int(np.argmax(error))


def test_probability_has_the_exact_interval():
    found = probability(3, 100)
    assert stats.binom.cdf(3, 100, found.upper) == pytest.approx(0.025)
    assert stats.binom.sf(2, 100, found.lower) == pytest.approx(0.025)
    assert probability(0, 10).lower == 0.0
    assert probability(10, 10).upper == 1.0


def test_sobol_indices_of_a_linear_function():
    """A sum of independent numbers: every share is the variance's, and there is no interaction."""
    uncertain = Uncertain(arm(), link_masses=Normal(1, 0.1), seed=1)
    found = uncertain.sobol_indices(lambda samples: samples.values @ np.array([[1.0], [2.0], [3.0]]), 1024)
    np.testing.assert_allclose(found.first[:, 0], np.array([1, 4, 9]) / 14, atol=0.02)
    np.testing.assert_allclose(found.total[:, 0], np.array([1, 4, 9]) / 14, atol=0.02)
    assert found.names[0].startswith("link_masses")
    assert (found.first_interval[0] <= found.first).all()
    assert (found.first <= found.first_interval[1]).all()


def test_the_worst_sample_is_found_again_by_its_number():
    uncertain = everything()
    out = uncertain.sample(50, first=100).evaluate("gravity_load", [0.3, -1.0, 0.5])
    worst = out.worst()
    again = uncertain.sample(1, first=worst.index)
    assert np.array_equal(again.evaluate("gravity_load", [0.3, -1.0, 0.5]).values[0], out.values[worst.row])
    assert abs(worst.value) == np.abs(out.values).max()
    assert list(worst.inputs.values()) == again.values[0].tolist()


def test_an_estimate_varies_rotors_and_friction_too():
    """A made-up estimate, its covariance small: what varies is what has a covariance, to first order."""
    n, p = 3, len(arm().minimal_parameters)
    extra = [Parameter(term, k) for term in ("rotor", "viscous", "coulomb") for k in range(3)]
    K = np.block([[np.asarray(arm().minimal_parameters.array), np.zeros((p, 9))], [np.zeros((9, 10 * n)), np.eye(9)]])
    numbers = np.linspace(0.1, 0.9, 9)
    d = np.concatenate([np.full(p, 1e-5), np.full(9, 0.001)])
    natural = np.array([[float(x) for x in link.natural] for link in arm().links])
    model = SimpleNamespace(arm=arm(), natural=K, extra_parameters=extra)
    estimate = SimpleNamespace(
        uncertainty=SimpleNamespace(covariance=np.diag(d**2)), model=model, given=arm(), arm=arm(), natural=natural,
        extras={parameter.name: x for parameter, x in zip(extra, numbers, strict=True)},
    )  # fmt: skip
    plants = Uncertain(arm(), covariance=estimate).sample(5000).plants
    drawn = np.hstack([plants.parameters, plants.rotors, plants.viscous, plants.coulomb])
    np.testing.assert_allclose(drawn.mean(axis=0)[p:], numbers, atol=1e-4)
    np.testing.assert_allclose(drawn.std(axis=0), d, rtol=0.06)
    one = Uncertain(arm(), covariance=estimate).sample(1)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 3))
    expected = one.arm(0).kernel("inverse_dynamics", "newton_euler", backend="python")(q, qd, qdd, friction=True)
    np.testing.assert_allclose(
        one.evaluate("inverse_dynamics", q, qd, qdd, friction=True).values[0], expected, rtol=1e-9
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"payload_mass": Uniform(-1, 2)}, "reaches below 0"),
        ({"payload_com": Normal(0, 1)}, "needs payload_mass"),
        ({"link_masses": {"elbow": Normal(1, 0.1)}}, "unknown 'elbow'; available: shoulder"),
        ({"link_masses": [1, 2]}, "expected one value, or 3"),
        ({"friction": Normal(1, 0.1), "viscous": 2}, "friction= are factors"),
        ({"covariance": np.eye(2)}, r"symmetric \(\d+, \d+\) array"),
        ({"seed": -1}, "a seed is a whole number"),
        ({"gravity": "down"}, "expected Normal"),
    ],
)
def test_wrong_input_is_named(wrong, says):
    with pytest.raises(InputError, match=says):
        Uncertain(arm(), **wrong)


def test_what_plants_cannot_be_stepped_by_is_refused():
    samples = everything().sample(2)
    for given in ({"torque": lambda t, q, qd: 0 * q}, {"method": "DOP853"}):
        with pytest.raises(InputError):
            samples.simulate(np.zeros(3), duration=0.01, **given)
    with pytest.raises(InputError, match="as it was"):
        armdyn.simulate(arm().with_payload(1.0), np.zeros(3), duration=0.01, plants=samples.plants)


def test_an_estimate_of_another_arm_is_refused():
    """Also one with as many joints."""
    model = SimpleNamespace(arm=armdyn.load("ur5"), natural=None, extra_names=())
    estimate = SimpleNamespace(uncertainty=None, model=model, given=armdyn.load("ur5"))
    with pytest.raises(InputError, match="the estimate is of ur5, whose joints are not those of puma560"):
        Uncertain(armdyn.load("puma560"), covariance=estimate).sample(1)

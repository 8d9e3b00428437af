"""Rotors, friction, wrenches at the tool, frames, and inertia matrices that cannot be inverted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import armdyn
from armdyn.algebra import ZERO, Angle, Sym3, Vec3
from armdyn.chain import Chain, Joint, Link, Placement
from armdyn.chain.chain import generic_chain
from armdyn.codegen import BACKENDS
from armdyn.errors import ComputationError, InputError
from armdyn.formulations import QUANTITIES, taking
from armdyn.parameters import minimal_parameters
from armdyn.programs.assemble import Options
from dynamics_cases import CASES, TILTED, TOOL, array, at, close, motion, pinocchio, with_drives
from possible import possible

pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")

DRIVEN = with_drives(replace(generic_chain("RRPRR", 2), gravity=TILTED, tool=TOOL))
WRENCH = np.array([1.0, -2.0, 3.0, 0.5, -0.25, 0.75])
ROUTES = [(q, m) for q in ("inverse_dynamics", "forward_dynamics") for m in armdyn.methods(q)]


def expected_friction(chain: Chain, qd: np.ndarray) -> np.ndarray:
    viscous, coulomb = (np.array([float(getattr(j, k)) for j in chain.joints]) for k in ("viscous", "coulomb"))
    return viscous * qd + coulomb * np.sign(qd)


@pytest.mark.parametrize(("quantity", "method"), ROUTES)
@pytest.mark.parametrize("name", ["driven", "driven, γ", "special RRPRRR"])
def test_friction_and_wrench_are_the_same_on_every_route(quantity, method, name):
    chain = CASES[name]
    q, qd, qdd = motion(chain.n, 1)
    model = pinocchio(chain)
    J = at(chain, "jacobian", "definition", q)
    tau = pin.rnea(model, model.createData(), q, qd, qdd) + expected_friction(chain, qd) - J.T @ WRENCH
    options = Options(friction=True, tool_wrench=True)
    if quantity == "inverse_dynamics":
        close(at(chain, quantity, method, q, qd, qdd, WRENCH, options=options), tau)
    else:
        close(at(chain, quantity, method, q, qd, tau, WRENCH, options=options), qdd, 1e-10)


def test_options_are_keywords_of_the_call():
    arm = armdyn.Arm("driven", DRIVEN, 0.0)
    q, qd, qdd = np.random.default_rng(3).uniform(-1, 1, size=(3, 7, arm.n))
    plain = arm.inverse_dynamics(q, qd, qdd)
    close(arm.inverse_dynamics(q, qd, qdd, friction=True), plain + arm.friction(qd))
    pushed = arm.inverse_dynamics(q, qd, qdd, friction=True, tool_wrench=WRENCH)
    close(pushed, plain + arm.friction(qd) - np.swapaxes(arm.jacobian(q), -1, -2) @ WRENCH)
    close(arm.forward_dynamics(q, qd, pushed, friction=True, tool_wrench=WRENCH), qdd, 1e-10)


def test_friction_is_zero_at_rest_and_no_part_of_the_rigid_body():
    arm = armdyn.Arm("driven", DRIVEN, 0.0)
    frictionless = replace(DRIVEN, joints=tuple(replace(j, viscous=0, coulomb=0) for j in DRIVEN.joints))
    other = armdyn.Arm("frictionless", frictionless, 0.0)
    q, qd, qdd = motion(arm.n, 2)
    assert np.array_equal(arm.friction(np.zeros(arm.n)), np.zeros(arm.n))
    assert np.array_equal(arm.inverse_dynamics(q, qd, qdd), other.inverse_dynamics(q, qd, qdd))
    close(arm.friction(qd), expected_friction(DRIVEN, qd))


@pytest.mark.parametrize(
    ("quantity", "options"),
    [
        ("bias", Options(friction=True)),
        ("inertia_matrix", Options(tool_wrench=True)),
        ("gravity_load", Options(frame=(1, Placement()))),
        ("inverse_dynamics", Options(frame=(1, Placement()))),
    ],
)
def test_an_option_where_it_has_no_meaning_is_an_error(quantity, options):
    with pytest.raises(InputError, match=quantity):
        at(DRIVEN, quantity, armdyn.methods(quantity)[0], motion(5)[0], options=options)


@pytest.mark.parametrize("k", range(6))
def test_frames_on_any_link(k):
    """Pose, Jacobian, its rate and a wrench at a frame on link k, beside Pinocchio's frames."""
    model = pinocchio(DRIVEN)
    R, p = array(TOOL.R), array(TOOL.p)
    frame = model.addFrame(pin.Frame("frame", k, 0, pin.SE3(R, p), pin.FrameType.OP_FRAME))
    data = model.createData()
    q, qd, qdd = motion(DRIVEN.n, 4)
    pin.forwardKinematics(model, data, q, qd)
    pin.computeJointJacobiansTimeVariation(model, data, q, qd)
    pin.updateFramePlacements(model, data)
    options = Options(frame=(k, TOOL))
    J = pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)
    close(at(DRIVEN, "pose", "definition", q, options=options), data.oMf[frame].homogeneous)
    close(at(DRIVEN, "jacobian", "definition", q, options=options), J)
    dJ = pin.getFrameJacobianTimeVariation(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
    close(at(DRIVEN, "jacobian_rate", "definition", q, qd, options=options), dJ)
    pushed = Options(frame=(k, TOOL), tool_wrench=True)
    tau = at(DRIVEN, "inverse_dynamics", "newton_euler", q, qd, qdd, WRENCH, options=pushed)
    close(tau, pin.rnea(model, data, q, qd, qdd) - J.T @ WRENCH)


NO_LINK = Link(Fraction(0), ZERO, Sym3(0, 0, 0, 0, 0, 0))
INVERTING = [(q, m) for q in ("forward_dynamics", "inertia_inverse", "inertia_factors") for m in armdyn.methods(q)]


def inputs(quantity: str, *values: np.ndarray) -> tuple[np.ndarray, ...]:
    return values if quantity == "forward_dynamics" else values[:1]


@pytest.mark.parametrize(("quantity", "method"), INVERTING)
@pytest.mark.parametrize("backend", ["llvm", "python"])
def test_a_massless_last_link_is_an_error(quantity, method, backend):
    chain = generic_chain("RRR", 1)
    arm = armdyn.Arm("massless", chain.with_links((*chain.links[:2], NO_LINK)), 0.0)
    kernel = arm.kernel(quantity, method, backend)
    with pytest.raises(ComputationError, match="joint 3"):
        kernel(*inputs(quantity, *np.ones((3, 4, 3))))
    rotor = replace(arm.chain, joints=(*chain.joints[:2], replace(chain.joints[2], rotor_inertia=Fraction(1, 100))))
    found = armdyn.Arm("with a rotor", rotor, 0.0).kernel(quantity, method, backend)(
        *inputs(quantity, *np.ones((3, 4, 3)))
    )
    assert all(np.all(np.isfinite(part)) for part in (found if isinstance(found, tuple) else (found,)))


def pendulum() -> Chain:
    """Two parallel axes, no mass but a point at the tip: singular when stretched or folded."""
    shoulder = Joint("revolute", Fraction(0), Angle.of(0.0), Fraction(0), Angle.of(0.0))
    tip = Link.from_com(Fraction(3), Vec3(Fraction(1, 2), 0, 0), Sym3(0, 0, 0, 0, 0, 0))
    return Chain((shoulder, replace(shoulder, b=Fraction(2, 5))), (NO_LINK, tip))


@pytest.mark.parametrize(("quantity", "method"), INVERTING)
@pytest.mark.parametrize("backend", ["llvm", "numpy", "python"])
def test_a_singular_configuration_is_nan_where_it_is_singular(quantity, method, backend):
    kernel = armdyn.Arm("pendulum", pendulum(), 0.0).kernel(quantity, method, backend)
    q = np.array([[0.3, 0.0], [0.3, 1.0], [-1.0, np.pi], [0.3, 1e-9]])
    found = kernel(*inputs(quantity, q, np.ones((4, 2)), np.ones((4, 2))))
    if quantity == "inertia_factors":  # U and D exist; D says it all
        assert np.all(found[1][[0, 2, 3], 0] < 1e-13)
        assert found[1][1, 0] > 0.1
        return
    finite = np.isfinite(found).reshape(4, -1).all(axis=1)
    assert finite.tolist() == [False, True, False, False]


def test_a_singular_configuration_is_an_error_on_plain_numbers():
    with pytest.raises(ComputationError, match="joint 1"):
        at(pendulum(), "forward_dynamics", "denoc", np.zeros(2), np.zeros(2), np.ones(2))


@pytest.mark.parametrize(("quantity", "method"), [(q, m) for q in taking("parameters") for m in armdyn.methods(q)])
def test_minimal_parameters_as_inputs(quantity, method):
    """The arm's own parameters give the arm's own answers, rotors included, and other values another arm's."""
    if quantity == "inertia_matrix" and method in ("walker_orin", "lin_cubic", "angeles_ma"):
        pytest.skip("Walker & Orin need centres of mass, which minimal parameters do not determine")
    kinds = "RRPRRR" if QUANTITIES[quantity].dof else "RRPR"
    chain = with_drives(replace(generic_chain(kinds, 3), gravity=TILTED))
    q, qd, qdd = motion(chain.n, 5)
    third = qdd + 1.0 if quantity == "forward_dynamics" else qdd
    given = {"q": q, "qd": qd, "mass": 1.5, "com": q[:3], "inertia": np.array([*q[:3], *qd[:3]])}
    inputs = [given.get(port, third) for port, _ in QUANTITIES[quantity].inputs]
    values = np.array(minimal_parameters(chain).values, dtype=float)
    runtime = Options(parameters="runtime")
    found = at(chain, quantity, method, *inputs, values, options=runtime)
    expected = at(chain, quantity, method, *inputs)
    if (quantity, method) == ("coriolis_matrix", "denoc"):  # a function of more than the minimal parameters
        found, expected = found @ qd, expected @ qd
    parts = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for part, wanted in parts:
        close(part, wanted)
    if quantity in ("bias", "gravity_load", "inverse_dynamics"):
        bare = replace(chain, joints=tuple(replace(j, rotor_inertia=0) for j in chain.joints))
        twice = at(bare, quantity, method, *inputs, 2 * values, options=runtime)
        close(twice, 2 * at(bare, quantity, method, *inputs))


def test_run_time_parameters_where_they_do_not_determine_the_answer():
    with pytest.raises(InputError, match="potential_energy"):
        at(DRIVEN, "potential_energy", "recursive", motion(5)[0], options=Options(parameters="runtime"))
    with pytest.raises(InputError, match="baked, runtime"):
        at(DRIVEN, "bias", "newton_euler", motion(5)[0], motion(5)[1], options=Options(parameters="cooked"))


@pytest.mark.parametrize("quantity", taking("parameters"))
def test_every_backend_takes_parameters_at_run_time(quantity):
    arm = armdyn.generic_arm("RPR")
    rng = np.random.default_rng(2)
    kernels = [arm.kernel(quantity, backend=backend, parameters="runtime") for backend in BACKENDS]
    x = [possible(name, rng.normal(size=(4, *shape))) for name, shape in kernels[0].assembly.inputs[:-1]]
    x.append(np.array([float(v) for v in arm.minimal_parameters.values]) * np.array([[1.0], [1.1], [1.3], [0.9]]))
    first, *others = (kernel(*x) for kernel in kernels)
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)

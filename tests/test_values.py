"""What a user holds pickles and compares; help and signatures of kernels; arms where parameters are meant."""

from __future__ import annotations

import inspect
import pickle
import pydoc

import cloudpickle
import numpy as np
import pytest

import armdyn
from armdyn import simulation
from armdyn.errors import InputError
from armdyn.formulations import DERIVATIVES, QUANTITIES
from armdyn.kernels import describe
from armdyn.values import same

ARM = armdyn.load("scara")
Q = ARM.rest
LINE = simulation.fourier(Q, np.ones((1, ARM.n)), np.ones((1, ARM.n)), 0.5)
MADE = {
    "arm": lambda: ARM,
    "kernel": lambda: ARM.inertia_matrix,
    "quintic": lambda: simulation.quintic(Q, Q + 0.1, 1.0),
    "trapezoidal": lambda: simulation.trapezoidal(Q, Q + 0.1, 1.0),
    "fourier": lambda: LINE,
    "PD": lambda: simulation.PD(simulation.quintic(Q, Q + 0.1, 1.0), 10.0, 1.0),
    "ComputedTorque": lambda: simulation.ComputedTorque(LINE, 10.0, 1.0),
    "controller": lambda: armdyn.controller(ARM, "computed_torque", kp=3.0),
    "controller at a frame": lambda: armdyn.controller(ARM, "gravity_compensation", frame=ARM.frame_names[0]),
    "cost": lambda: armdyn.cost(ARM, "bias"),
    "trajectory": lambda: armdyn.simulate(ARM, Q, duration=0.01),
    "minimal parameters": lambda: ARM.minimal_parameters,
    "bound": lambda: armdyn.bound(ARM, "gravity_load"),
    "inverse kinematics": lambda: ARM.inverse_kinematics(ARM.pose(Q), Q),
    "rounding error": lambda: armdyn.rounding_error(ARM, "gravity_load"),
    "order": lambda: ARM.order(ARM.joint_names),
    "equivalence": lambda: armdyn.equivalence(ARM, ARM),
    "rank": lambda: armdyn.rank_report(ARM),
    "error": lambda: InputError("wrong"),
}
MODULES = {"pickle": pickle, "cloudpickle": cloudpickle}


@pytest.mark.parametrize("how", MODULES)
@pytest.mark.parametrize("what", MADE)
def test_what_a_user_holds_pickles(what: str, how: str):
    made = MADE[what]()
    again = MODULES[how].loads(MODULES[how].dumps(made))
    assert type(again) is type(made)
    assert again == again
    assert isinstance(again == made, bool)
    if what in ("arm", "cost", "trajectory", "bound", "inverse kinematics", "rounding error", "order", "rank"):
        assert again == made
    if what in ("quintic", "trapezoidal", "fourier"):
        for one, other in zip(again([0.1, 0.7]), made([0.1, 0.7]), strict=True):
            np.testing.assert_array_equal(one, other)
    if what == "controller":
        assert same(again.gains, made.gains)


def test_a_line_of_the_tool_pickles():
    arm = armdyn.load("puma560")
    pose = arm.pose(arm.rest + 0.3)
    made = simulation.straight_line(arm, pose[:3, 3], pose[:3, 3] + 0.02, pose[:3, :3], 0.1)
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again(0.1)[0], made(0.1)[0])


def test_pickled_controllers_run():
    arm = armdyn.load("planar3")
    moves = simulation.ComputedTorque(simulation.quintic(arm.rest, arm.rest + 0.2, 0.1), 100.0, 20.0)
    expected = armdyn.simulate(arm, arm.rest, torque=moves, duration=0.1)
    again = armdyn.simulate(arm, arm.rest, torque=pickle.loads(pickle.dumps(moves)), duration=0.1)
    assert again == expected


def test_results_that_differ_are_not_equal():
    run = armdyn.simulate(ARM, Q, duration=0.01)
    other = armdyn.simulate(ARM, Q + 0.1, duration=0.01)
    assert run != other
    assert run != "a trajectory"
    assert not same({"a": np.zeros(2)}, {"a": np.zeros(3)})
    assert not same({"a": np.zeros(2)}, {"b": np.zeros(2)})
    assert not same([np.zeros(2), 1], [np.zeros(2), 2])
    assert same(np.array([np.nan, 1.0]), np.array([np.nan, 1.0]))
    assert same(np.array(["a", None], object), np.array(["a", None], object))


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("how", MODULES)
def test_a_pickled_simulator_goes_on(batch, how):
    motors = simulation.Actuators(rate=100.0, torque_noise=0.1)
    sims = [
        armdyn.Simulator(ARM, batch=batch, limits=False),
        armdyn.Simulator(ARM, batch=batch, limits=False, actuators=motors),
    ]
    for sim in sims:
        sim.reset(Q + 0.1)
        for _ in range(3):
            sim.step(np.full(ARM.n, 0.5))
        again = MODULES[how].loads(MODULES[how].dumps(sim))
        for one in (sim, again):
            for _ in range(3):
                one.step(np.full(ARM.n, -0.5))
        np.testing.assert_array_equal(again.q, sim.q)
        assert again.t == sim.t


def test_functions_of_jax_and_torch_pickle(tmp_path):
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    for made, q in ((ARM.gravity_load.jax(), jax.numpy.asarray(Q)), (ARM.gravity_load.torch(), torch.as_tensor(Q))):
        for module in MODULES.values():
            again = module.loads(module.dumps(made))
            assert again == made
            assert hash(again) == hash(made)
            np.testing.assert_allclose(np.asarray(again(q)), np.asarray(made(q)), rtol=0, atol=0)
        assert made != ARM.inertia_matrix.jax()

    class Residual(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.load, self.scale = ARM.gravity_load.torch(), torch.nn.Parameter(torch.ones(1, dtype=torch.float64))

        def forward(self, q):
            return self.scale * self.load(q)

    globals()["Residual"] = Residual
    Residual.__qualname__ = "Residual"
    torch.save(Residual(), tmp_path / "module.pt")
    again = torch.load(tmp_path / "module.pt", weights_only=False)
    np.testing.assert_array_equal(again(torch.as_tensor(Q)).detach().numpy(), ARM.gravity_load(Q))


# --- help and signatures


@pytest.mark.parametrize("name", [*QUANTITIES, *DERIVATIVES])
def test_a_kernel_has_a_signature_a_name_and_help(name: str):
    arm = armdyn.load("puma560") if name in ("held_dynamics", "operational_space_inertia") else ARM  # of six joints
    kernel = getattr(arm, name)
    quantity = QUANTITIES[kernel.quantity]
    parameters = inspect.signature(kernel).parameters
    ports = [port for port, _ in quantity.inputs]
    assert list(parameters)[: len(ports)] == ports
    assert {p.kind for p in list(parameters.values())[len(ports) :]} == {inspect.Parameter.KEYWORD_ONLY}
    assert set(parameters) - set(ports) <= set(describe.OPTIONS)
    assert kernel.__name__ == name
    text = pydoc.render_doc(kernel, renderer=pydoc.plaintext)
    assert quantity.doc in text
    for option in set(parameters) - set(ports):
        assert f"{option} : {describe.OPTIONS[option][1]}" in text
    if quantity.of_body:
        return
    example = text.split(">>> ")[1].splitlines()[0]
    values = eval(example, {"arm": arm, "np": np})
    shapes = [one.shape for one in (values if isinstance(values, tuple) else (values,))]
    assert shapes == [shape for _, shape in kernel.assembly.outputs]
    assert list(kernel.assembly.inputs) == list(kernel.ports[0])


def test_options_change_the_signature():
    kernel = ARM.inverse_dynamics.variant(tool_wrench=True, parameters="runtime")
    assert list(inspect.signature(kernel).parameters)[:5] == ["q", "qd", "qdd", "wrench", "parameters"]
    assert "(..., 4, 6)" in ARM.inverse_dynamics.variant(tool_wrench=True, derivatives="tool_wrench").__doc__
    assert inspect.signature(type(kernel)).parameters["quantity"]
    assert type(kernel).__doc__ == "A function of configurations, compiled at its first call."


def test_the_derivative_in_the_wrench_is_the_jacobian():
    q, w = Q + 0.2, np.ones(6)
    J = ARM.jacobian(q)
    for slopes in (
        ARM.inverse_dynamics(q, Q, Q, tool_wrench=w, derivatives="tool_wrench"),
        ARM.inverse_dynamics.variant(derivatives=("tool_wrench",))(q, Q, Q, w),
    ):
        np.testing.assert_allclose(slopes, -J.T, atol=1e-14)
    pushed = ARM.forward_dynamics(q, Q, Q, tool_wrench=w, derivatives=["tool_wrench"])
    np.testing.assert_allclose(pushed, np.linalg.solve(ARM.inertia_matrix(q), J.T), rtol=1e-9, atol=1e-12)


# --- arms where parameters are meant


def test_arms_stand_for_their_minimal_parameters():
    other = armdyn.load("puma560")
    found = armdyn.equivalence(ARM, ARM)
    assert found
    assert found.matrix == armdyn.equivalence(ARM.minimal_parameters, ARM.minimal_parameters).matrix
    assert "elements" in armdyn.equivalence(ARM, other).reason
    assert armdyn.extended_parameters(ARM) == armdyn.extended_parameters(ARM.chain)
    with pytest.raises(InputError, match=r"takes sets of parameters .* or arms, got 3"):
        armdyn.equivalence(ARM, 3)
    with pytest.raises(InputError, match="takes an Arm, got 'scara'"):
        armdyn.extended_parameters("scara")
    with pytest.raises(InputError, match="unknown drive term 'springs'"):
        armdyn.extended_parameters(ARM, ("springs",))

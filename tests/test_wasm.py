"""WebAssembly: the modules in Node against the NumPy kernels, sines against exact values, steps against `simulate`."""

from __future__ import annotations

import json
import math

import mpmath
import numpy as np
import pytest

import armdyn
from armdyn.codegen import wasm
from armdyn.codegen.llvm.trig import LIMIT
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import evaluate, trace
from armdyn.kernels.wasm_emission import wasm_module
from node import needs_node, node, run_modules
from possible import possible
from random_trees import TreeKind, random_tree

STATES = 1000
TOLERANCE = 1e-13  # of the result's largest entry
pytestmark = needs_node


def states_of(arm, kernel, rng):
    """Random states within the joints' limits, one array per input of the kernel."""
    low, high = np.clip(arm.limits, -np.pi, np.pi).T
    made = {"q": lambda shape: rng.uniform(low, high, (STATES, *shape))}
    random = {name: made.get(name, lambda s: rng.normal(size=(STATES, *s)))(s) for name, s in kernel.assembly.inputs}
    return [possible(name, x) for name, x in random.items()]


def furthest(value, truth):
    """The largest difference, relative to the largest entry of each state's result; over all for an energy."""
    flat = np.reshape(truth, (len(truth), -1))
    largest = np.max(np.abs(flat), axis=1 if flat.shape[1] > 1 else None)
    return np.max(np.max(np.abs(np.reshape(value, flat.shape) - flat), axis=1) / np.maximum(largest, 1e-300))


@pytest.mark.parametrize("name", ["planar3", "scara", "puma560"])
def test_every_quantity_equals_the_numpy_kernels(name, tmp_path):
    arm, rng = armdyn.load(name), np.random.default_rng(5)
    kernels = {
        quantity: arm.kernel(quantity, backend="numpy") for quantity, entry in QUANTITIES.items() if not entry.dof
    }
    calls, truths = {}, {}
    for quantity, kernel in kernels.items():
        inputs = states_of(arm, kernel, rng)
        calls[quantity] = inputs, [shape for _, shape in kernel.assembly.outputs]
        found = kernel(*inputs)
        truths[quantity] = found if isinstance(found, tuple) else (found,)
    results = run_modules(wasm_module({q: k.program for q, k in kernels.items()}), calls, tmp_path)
    for quantity, truth in truths.items():
        for got, exact in zip(results[quantity], truth, strict=True):
            assert furthest(got, exact) < TOLERANCE, quantity


def test_run_time_parameters_and_friction(tmp_path):
    arm, rng = armdyn.load("scara"), np.random.default_rng(6)
    kernel = arm.kernel("inverse_dynamics", friction=True, parameters="runtime", backend="numpy")
    *state, parameters = states_of(arm, kernel, rng)
    truth = kernel(*state, parameters)
    results = run_modules(kernel.wasm(), {"inverse_dynamics": ([*state, parameters], [(arm.n,)])}, tmp_path)
    assert furthest(results["inverse_dynamics"][0], truth) < TOLERANCE


def test_every_operation_of_a_graph(tmp_path):
    def function(x):
        a, b = x
        return [a + b, a - b, a * b, a / b, -a, (a * a).sqrt(), a.sign(), a.positive(), a.sin(), b.cos() * a.cos()]

    program = trace("all", function, {"x": (2,)}, [("y", (10,))])
    x = np.array([[1.5, -2.0], [-0.3, 0.7], [0.0, 3.0], [2.0, 2.0]])
    got = run_modules(wasm.module({"all": program}), {"all": ([x], [(10,)])}, tmp_path)["all"][0]
    truth = np.array([evaluate(program, row)[0] for row in x])
    np.testing.assert_allclose(got, truth, rtol=1e-15, atol=1e-16)
    assert np.isnan(got[1, 7])


def test_sines_are_within_two_units_in_the_last_place(tmp_path):
    program = trace("trig", lambda x: [x[0].sin(), x[0].cos()], {"x": (1,)}, [("y", (2,))])
    rng = np.random.default_rng(1)
    near = np.arange(-40, 40) * math.pi / 2
    x = np.concatenate([rng.uniform(-4, 4, 1500), rng.uniform(-LIMIT, LIMIT, 1500), near, [0.0, 1e-9, LIMIT]])
    beyond = np.array([LIMIT * 1.001, -1e300, np.inf, np.nan])
    got = run_modules(
        wasm.module({"trig": program}), {"trig": ([np.concatenate([x, beyond])[:, None]], [(2,)])}, tmp_path
    )
    values = got["trig"][0]
    assert np.isnan(values[len(x) :]).all()  # never silently wrong
    with mpmath.workprec(200):
        for angle, pair in zip(x, values, strict=False):
            for value, exact in zip(pair, (mpmath.sin(float(angle)), mpmath.cos(float(angle))), strict=True):
                assert abs(mpmath.mpf(float(value)) - exact) <= 2 * math.ulp(float(exact)), angle


def test_one_call_advances_many_steps_as_simulate_does(tmp_path):
    arm = armdyn.load("puma560")
    arm.emit_wasm(tmp_path, ["forward_dynamics"])
    q, qd, tau = 0.1 * np.arange(6), np.linspace(-1, 1, 6), np.linspace(2, -2, 6)
    script = f"""
    import {{ load }} from "./puma560.mjs";
    const arm = await load(), [q, qd, tau] = {json.dumps([q.tolist(), qd.tolist(), tau.tolist()])};
    const same = arm.advance(q, qd, tau, 1e-3, 0), end = arm.advance(q, qd, tau, 1e-3, 700);
    let message = "";
    try {{ arm.forward_dynamics(q.slice(1), qd, tau); }} catch (error) {{ message = error.message; }}
    const plain = (s) => [...s.q, ...s.qd];
    console.log(JSON.stringify({{ same: plain(same), end: plain(end), message }}));"""
    found = json.loads(node(script, tmp_path, "run.mjs"))
    assert found["same"] == [*q, *qd]
    assert found["message"] == "forward_dynamics: q has 6 numbers, got 5"
    truth = armdyn.simulate(arm, q, qd, torque=tau, duration=0.7, method="RK4", step=1e-3, friction=False, limits=False)
    np.testing.assert_allclose(found["end"], [*truth.q[-1], *truth.qd[-1]], rtol=1e-10, atol=1e-11)


def test_a_floating_base_is_stepped_as_simulate_does(tmp_path):
    arm = armdyn.Arm("floats", random_tree(TreeKind(joints=5, floating=True), 2), snap=0.0)
    arm.emit_wasm(tmp_path, ["forward_dynamics"])
    rng = np.random.default_rng(0)
    q, qd, tau = arm.rest + 0.3, rng.normal(size=arm.chain.nv), rng.normal(size=arm.chain.nv)
    q[3:7] /= np.linalg.norm(q[3:7])
    script = f"""
    import {{ load }} from "./floats.mjs";
    const arm = await load(), [q, qd, tau] = {json.dumps([q.tolist(), qd.tolist(), tau.tolist()])};
    const end = arm.advance(q, qd, tau, 1e-3, 300);
    console.log(JSON.stringify([...end.q, ...end.qd]));"""
    found = json.loads(node(script, tmp_path, "run.mjs"))
    truth = armdyn.simulate(arm, q, qd, torque=tau, duration=0.3, method="RK4", step=1e-3, friction=False, limits=False)
    np.testing.assert_allclose(found, [*truth.q[-1], *truth.qd[-1]], rtol=1e-9, atol=1e-10)
    assert np.linalg.norm(found[3:7]) == pytest.approx(1, abs=1e-15)


def test_a_module_is_small_and_the_same_every_time():
    arm = armdyn.load("puma560")
    made = arm.inertia_matrix.wasm()
    assert made[:8] == b"\0asm\1\0\0\0"
    assert len(made) < 2000
    assert made == armdyn.load("puma560").inertia_matrix.wasm()


def test_types_name_every_function(tmp_path):
    arm = armdyn.load("scara")
    _, script, types = arm.emit_wasm(tmp_path, ["inertia_factors", "bias"], parameters="runtime")
    text = types.read_text()
    assert "inertia_factors(q: ArrayLike<number>, parameters: ArrayLike<number>): [Float64Array, Float64Array];" in text
    assert "advance" not in text
    assert "export const PARAMETERS" in script.read_text()
    with pytest.raises(InputError, match="available"):
        arm.emit_wasm(tmp_path, ["inertia"])

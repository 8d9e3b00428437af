"""The bridge to JAX: the contract of all bridges, transforms, derivatives of first and second order, precision."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import armdyn
from armdyn.arm import Arm
from armdyn.bridges import jax_
from armdyn.errors import InputError
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import ColumnProgram
from bridge_contract import CASES, along, arrays, close, gradients, kernel, results
from random_trees import TreeKind, random_tree

jax.config.update("jax_enable_x64", True)
PANDA = armdyn.load("panda")
SCARA = armdyn.load("scara")


@pytest.mark.parametrize(("arm", "quantity", "options"), CASES)
def test_values_and_derivatives(arm, quantity, options):
    k = kernel(arm, quantity, options)
    function = k.jax()
    batch = arrays(k, 5)
    expected = k(*batch)
    close(function(*batch), expected, 0.0)  # the very same machine code
    close(jax.jit(function)(*batch), expected, 0.0)
    close(jax.vmap(function)(*batch), expected, 0.0)
    values, tangents = [x[0] for x in batch], [x[1] for x in batch]
    found, moved = jax.jvp(function, tuple(values), tuple(tangents))
    close(found, tuple(np.asarray(x)[0] for x in results(expected)))
    close(moved, along(k, values, tangents), 1e-10)
    value, pull = jax.vjp(function, *values)
    rng = np.random.default_rng(1)
    weights = [rng.uniform(-1, 1, np.shape(x)) for x in results(value)]
    close(pull(tuple(weights) if len(weights) > 1 else weights[0]), gradients(k, values, weights), 1e-10)


def test_derivatives_by_columns_are_the_same_machine_code():
    robot = Arm("large", random_tree(TreeKind(17, fork=0.1, prismatic=0.0, floating=True), 11))
    k = robot.kernel("forward_dynamics", derivatives=("q", "qd", "tau"))
    assert isinstance(k.compiled_program, ColumnProgram)
    batch = arrays(k, 5)
    close(k.jax()(*batch), k(*batch), 0.0)


@pytest.mark.parametrize("arm", [PANDA, SCARA], ids=lambda arm: arm.name)
def test_jacobians_are_those_of_the_derivative_kernel(arm):
    function, values = arm.forward_dynamics.jax(), arrays(arm.forward_dynamics)
    expected = arm.forward_dynamics_derivatives(*values)
    for jacobian in (jax.jacfwd, jax.jacrev):
        close(jax.jit(jacobian(function, (0, 1, 2)))(*values), expected, 1e-11)
    batch = arrays(arm.forward_dynamics, 4)
    found = jax.jit(jax.vmap(jax.jacrev(function, (0, 1, 2))))(*batch)
    close(found, arm.forward_dynamics_derivatives(*batch), 1e-11)


@pytest.mark.parametrize("quantity", ["inertia_matrix", "forward_dynamics", "kinetic_energy", "inertia_factors"])
def test_check_grads_to_second_order(quantity):
    k = SCARA.kernel(quantity)
    check_grads(k.jax(), tuple(arrays(k)), order=2, modes=["fwd", "rev"])


def test_the_hessian_of_the_kinetic_energy_is_the_inertia_matrix():
    q, qd = arrays(PANDA.kinetic_energy)
    H = jax.jit(jax.hessian(PANDA.kinetic_energy.jax(), 1))(q, qd)
    close(H, PANDA.inertia_matrix(q), 1e-11)
    rate = jax.jvp(PANDA.inertia_matrix.jax(), (q,), (qd,))[1]
    close(rate, PANDA.inertia_rate(q, qd), 1e-11)


def test_operands_broadcast_and_nest():
    k = PANDA.forward_dynamics
    function = k.jax()
    q, qd, tau = arrays(k, 3)[0], arrays(k, 4)[1], arrays(k, 3, 4)[2]
    close(function(q[:, None], qd, tau), k(q[:, None], qd, tau), 0.0)
    nested = jax.vmap(jax.vmap(function, (None, 0, 0)), (0, None, 0))
    close(nested(q, qd, tau), k(q[:, None], qd, tau), 0.0)
    deep = arrays(k, 2, 3, 4)
    mixed = (deep[0][:, :1], deep[1][:1], deep[2])
    close(function(*mixed), k(*mixed), 0.0)
    shared = jax.grad(lambda x: jnp.sum(function(q[:, None], x, tau)))(qd)
    singly = jax.vmap(jax.grad(lambda a, b, c: jnp.sum(function(a, b, c)), 1))
    rows = [singly(q, jnp.broadcast_to(qd[j], (3, 7)), tau[:, j]).sum(0) for j in range(4)]
    close(shared, np.array(rows), 1e-11)


def test_an_empty_batch():
    k = PANDA.inverse_dynamics
    empty = arrays(k, 0)
    assert k.jax()(*empty).shape == (0, 7)
    assert jax.jit(jax.grad(lambda q: jnp.sum(k.jax()(q, *empty[1:]))))(empty[0]).shape == (0, 7)


def test_float32_is_computed_in_float32():
    k = PANDA.forward_dynamics
    for count in (1, 16, 200):
        batch = [x.astype(np.float32) for x in arrays(k, count)]
        for function in (k.jax(), jax.jit(k.jax()), PANDA.kernel("forward_dynamics", dtype="float32").jax()):
            found = function(*batch)
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, k(*batch))
    shared = [batch[0], batch[1][0], batch[2]]
    np.testing.assert_array_equal(k.jax()(*shared), k(*shared))
    single, double = (
        jax.grad(lambda q, rest=rest: jnp.sum(k.jax()(q, *rest[1:])))(rest[0])
        for rest in (batch, [x.astype(float) for x in batch])
    )
    assert single.dtype == np.float32
    assert 0 < np.abs(single - double).max() < 1e-4 * np.abs(double).max()


def test_float32_may_be_computed_in_float64():
    k = PANDA.forward_dynamics.variant(dtype="float64")
    for count in (1, 63, 64, 65, 200):
        batch = [x.astype(np.float32) for x in arrays(k, count)]
        found = jax.jit(k.jax())(*batch)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, k(*(x.astype(float) for x in batch)).astype(np.float32))
    shared = [batch[0], batch[1][0], batch[2]]
    np.testing.assert_array_equal(k.jax()(*shared), k(*(x.astype(float) for x in shared)).astype(np.float32))
    assert jax.grad(lambda q: jnp.sum(k.jax()(q, *batch[1:])))(batch[0]).dtype == np.float32
    assert k.jax()(batch[0], arrays(k)[1], batch[2]).dtype == np.float64


def test_a_large_result_in_float32():
    k = PANDA.kernel("regressor", derivatives=("q", "qd"))
    batch = [x.astype(np.float32) for x in arrays(k, 3)]
    for wide in (False, True):
        made, x = (
            k.variant(dtype="float64" if wide else None),
            [one.astype(float if wide else np.float32) for one in batch],
        )
        for found, expected in zip(made.jax()(*batch), k(*x), strict=True):
            np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_float64_arrays_without_x64_are_warned_of():
    code = """
import numpy as np, warnings, armdyn
f = armdyn.load("scara").gravity_load.jax()
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    print(f(np.zeros(4)).dtype, f(np.zeros(4, np.float32)).dtype, len(seen), seen[0].message)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("float32 float32 1 JAX converts these float64 arrays to float32; for float64 results")
    assert 'jax.config.update("jax_enable_x64", True)' in done.stdout
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SCARA.gravity_load.jax()(np.zeros(4)).dtype == np.float64


def test_wrong_shapes_have_our_messages():
    function = PANDA.forward_dynamics.jax()
    q, qd, tau = arrays(PANDA.forward_dynamics, 3)
    with pytest.raises(
        InputError, match=r"forward_dynamics of this arm \(n = 7\) expects q of shape \(\.\.\., 7\), got"
    ):
        jax.jit(function)(q[:, :6], qd, tau)
    with pytest.raises(InputError, match="takes 3 arrays"):
        function(q, qd)
    with pytest.raises(InputError, match=r"do not broadcast together: q \(3,\), qd \(2,\), tau \(3,\)"):
        function(q, qd[:2], tau)


def test_in_a_scan_it_simulates():
    k = SCARA.forward_dynamics
    function, step = k.jax(), 1e-3
    q, qd, tau = arrays(k, 6)

    def advance(state, _):
        q, qd = state
        qd = qd + step * function(q, qd, tau)
        return (q + step * qd, qd), None

    found = jax.jit(lambda s: jax.lax.scan(advance, s, length=50)[0])((q, qd))
    for _ in range(50):
        qd = qd + step * k(q, qd, tau)
        q = q + step * qd
    close(found, (q, qd))


def test_other_elements_of_a_batch_do_not_matter_to_an_undefined_one():
    k = SCARA.forward_dynamics
    batch = arrays(k, 9)
    batch[0][4] = np.nan
    np.testing.assert_array_equal(k.jax()(*batch), k(*batch))


SMALL = armdyn.generic_arm("RP", seed=1)


@pytest.mark.parametrize("quantity", [name for name, entry in QUANTITIES.items() if entry.dof <= SMALL.n])
def test_the_form_for_other_devices(quantity):
    k = SMALL.kernel(quantity)
    batch = arrays(k, 3)
    function = k.jax(device_form=True)
    expected = results(k(*batch))
    close(results(function(*batch)), expected, 1e-11)  # the Pallas kernel, interpreted
    lowered = jax.jit(lambda *x: jax_._on_arrays(*x, function=function.made, device_form=False)).lower(*batch)
    close(results(tuple(lowered.compile()(*batch))), expected, 1e-11)  # plain operations
    counted, own = lowered.cost_analysis(), k.program.operations
    assert counted.get("flops", 0.0) <= 1.3 * 3 * (own.mul + own.add + own.div) + 3 * 40


def test_the_form_for_other_devices_is_differentiated_mapped_and_exported():
    k = SMALL.forward_dynamics
    function, plain = k.jax(device_form=True), k.jax()
    q, qd, tau = arrays(k, 300)  # more than a block
    close(function(q, qd[0], tau), k(q, qd[0], tau), 1e-11)
    few = q[:3], qd[:3], tau[:3]
    close(jax.vmap(function)(*few), k(*few), 1e-11)
    slopes = [jax.jit(jax.grad(lambda x, f=f: f(x, *few[1:]).sum()))(few[0]) for f in (function, plain)]
    close(*slopes, 1e-11)
    assert pickle.loads(pickle.dumps(function)).device_form
    assert function(q[:0], qd[:0], tau[:0]).shape == (0, 2)
    shapes = [jax.ShapeDtypeStruct((1000, 2), np.float32)] * 3
    for platform in ("tpu", "cuda", "rocm"):
        text = jax.export.export(jax.jit(plain), platforms=[platform])(*shapes).mlir_module()
        assert "custom_call @armdyn" not in text  # no call of machine code for the CPU
        assert ("tpu_custom_call" in text) == (platform == "tpu")

"""Kernels on graphics devices: WebGPU on whatever adapter there is, Mesa's software Vulkan in most runs."""

from __future__ import annotations

import gc
import pickle
import re
import resource
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn.codegen import sines
from armdyn.errors import ComputationError, InputError
from armdyn.formulations import QUANTITIES
from armdyn.graph.program import trace
from bridge_contract import OPTIONS, arm_called, arrays
from pages import ROOT, blocks
from single_precision import agree

wgpu = pytest.importorskip("wgpu", reason="the package wgpu is not installed")
from armdyn.codegen.gpu import webgpu  # noqa: E402

if not armdyn.gpu.devices():
    pytest.skip("no graphics device: mesa-vulkan-drivers has one that computes on the CPU", allow_module_level=True)
UR5 = armdyn.load("ur5")
CASES = [
    pytest.param(arm, quantity, {}, id=f"{arm} {quantity}")
    for arm in ("ur5", "panda_hand", "floating tree")
    for quantity, entry in QUANTITIES.items()
    if arm == "ur5" or not entry.dof
] + [
    pytest.param(arm, quantity, options, id=f"{arm} {quantity} {options}")
    for arm, quantity, options in OPTIONS
    if quantity != "held_dynamics"  # it loses the digits of the condition of what is held
]
CASES += [
    pytest.param("tree with a mimic joint", "forward_dynamics", {}, id="mimic joint"),
    pytest.param("ur5", "inertia_matrix", {"parameters": "geometry"}, id="geometry"),
    pytest.param("ur5", "inverse_dynamics", {"derivatives": ("q", "qd", "qdd")}, id="derivatives"),
    pytest.param("ur5", "forward_dynamics", {"derivatives": ("q", "qd", "tau")}, id="derivatives of forward dynamics"),
]


def singles(kernel, *batch, seed=0):
    return [x.astype(np.float32) for x in arrays(kernel, *batch, seed=seed)]


def inputs(kernel, count):
    if kernel.options.parameters != "geometry":
        return singles(kernel, count)
    (q, geometry) = kernel.assembly.inputs
    return [np.ones((count, *q[1]), np.float32), np.broadcast_to(np.float32(UR5.geometry), (count, *geometry[1]))]


@pytest.mark.parametrize(("arm", "quantity", "options"), CASES)
def test_every_quantity_in_single_precision(arm, quantity, options):
    kernel = arm_called(arm).kernel(quantity, backend="gpu", **options)
    try:
        program = arm_called(arm).kernel(quantity, **options).program
    except InputError as error:  # a robot without a tool, say
        refusal = re.escape(str(error))
    else:
        values = inputs(kernel, 7)
        agree(program, values, kernel(*values))
        return
    with pytest.raises(InputError, match=refusal):
        kernel(np.zeros(1))


def test_sine_and_cosine():
    program = trace("sines", lambda x: [x[0].sin(), x[0].cos()], {"x": (1,)}, [("y", (2,))])
    rng = np.random.default_rng(0)
    near = rng.integers(-2000, 2001, 100_000) * (np.pi / 2) * (1 + 1e-7 * rng.integers(-3, 4, 100_000))
    everywhere = rng.integers(0, 2**32, 400_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    for angles, ulps in ((near, 2.0), (everywhere[np.isfinite(everywhere)], 3.0)):
        x = angles.astype(np.float32)
        assert ulps == 3.0 or np.abs(x).max() <= sines.ANYWHERE.limit
        got = webgpu.DeviceFunction(program)(x[:, None])
        exact = np.stack([np.sin(x.astype(float)), np.cos(x.astype(float))], -1)
        normal = np.abs(exact) > np.finfo(np.float32).tiny
        assert (np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32)))[normal].max() < ulps


def test_arrays_on_the_device_stay_there():
    kernel = UR5.kernel("inverse_dynamics", backend="gpu")
    forward = UR5.kernel("forward_dynamics", backend="gpu")
    q, qd, qdd = singles(kernel, 100)
    on_device = [armdyn.gpu.array(x) for x in (q, qd, qdd)]
    np.testing.assert_array_equal(on_device[0].numpy(), q)
    tau = kernel(*on_device)
    assert isinstance(tau, armdyn.gpu.DeviceArray)
    assert (tau.shape, tau.ndim, tau.size, len(tau), tau.dtype) == ((100, 6), 2, 600, 100, np.float32)
    np.testing.assert_array_equal(tau.numpy(), kernel(q, qd, qdd))  # the same bits
    back = forward(on_device[0], qd, tau).numpy()  # one input from the host
    np.testing.assert_allclose(back, qdd, atol=2e-3)
    with pytest.raises(InputError, match=r"call its numpy\(\)"):
        np.asarray(tau)
    with pytest.raises(InputError, match=r"call its numpy\(\)"):
        UR5.inverse_dynamics(q, qd, on_device[2])
    with pytest.raises(InputError, match="already"):
        armdyn.gpu.array(tau)


@pytest.mark.parametrize("batches", [((), (), ()), ((3,), (), (3,)), ((4, 1), (5,), (1, 5)), ((2, 1, 3), (4, 1), ())])
def test_batches_broadcast(batches):
    kernel = UR5.kernel("inverse_dynamics", backend="gpu")
    rng = np.random.default_rng(1)
    values = [rng.uniform(-1, 1, (*batch, 6)).astype(np.float32) for batch in batches]
    got = kernel(*values)
    whole = np.broadcast_shapes(*batches)
    spread = [np.ascontiguousarray(np.broadcast_to(v, (*whole, 6))) for v in values]
    np.testing.assert_array_equal(got, kernel(*spread))
    np.testing.assert_array_equal(kernel(*map(armdyn.gpu.array, values)).numpy(), got)
    np.testing.assert_allclose(got, UR5.inverse_dynamics(*values), atol=1e-3)


def test_empty_and_large_batches():
    kernel = UR5.kernel("potential_energy", backend="gpu")
    assert kernel(np.empty((0, 6))).shape == (0,)
    assert kernel(armdyn.gpu.array(np.empty((3, 0, 6)))).numpy().shape == (3, 0)
    q = np.random.default_rng(0).uniform(-1, 1, (2**20 + 1, 6)).astype(np.float32)
    got = kernel(q)
    some = [0, 1, 63, 64, 65, 2**19, 2**20 - 1, 2**20]
    np.testing.assert_array_equal(got[some], kernel(q[some]))
    np.testing.assert_allclose(got, UR5.potential_energy(q), atol=1e-3)


def test_many_groups_use_both_axes_of_the_grid(monkeypatch):
    monkeypatch.setattr(webgpu, "MOST_GROUPS", 3)
    kernel = UR5.kernel("potential_energy", backend="gpu")
    q = np.random.default_rng(0).uniform(-1, 1, (1000, 6))
    np.testing.assert_allclose(kernel(q), UR5.potential_energy(q), atol=1e-3)


def test_a_batch_beyond_the_largest_array_is_computed_in_parts(monkeypatch):
    kernel = UR5.kernel("inertia_matrix", backend="gpu", parameters="runtime")
    _, parameters = singles(kernel)
    q = np.random.default_rng(0).uniform(-1, 1, (5, 20, 6)).astype(np.float32)
    whole = kernel(q, parameters)
    monkeypatch.setattr(webgpu.Device, "largest_array", 36 * 4 * 17)
    np.testing.assert_array_equal(kernel(q, parameters), whole)
    np.testing.assert_array_equal(kernel(q, parameters[None, None]), whole)
    on_device = armdyn.gpu.array(q[0, :5])
    with pytest.raises(ComputationError, match=r"H of .* takes .* MiB; .* in parts"):
        kernel(armdyn.gpu.array(q[:1, :18]), parameters)
    assert kernel(on_device, parameters).shape == (5, 6, 6)


def test_out_and_names():
    kernel = UR5.kernel("inertia_matrix", backend="gpu")
    q = np.random.default_rng(0).uniform(-1, 1, (4, 6))
    out = np.empty((4, 6, 6), np.float32)
    assert kernel(q=q, out=out) is out
    np.testing.assert_array_equal(out, kernel(q))
    assert kernel(q, out=np.empty((4, 6, 6))).dtype == np.float64
    with pytest.raises(InputError, match=r"\(4, 6, 6\), got \(4, 6\)"):
        kernel(q, out=np.empty((4, 6)))
    with pytest.raises(InputError, match="out= is for NumPy"):
        kernel(armdyn.gpu.array(q), out=out)
    assert kernel(np.zeros(6, dtype=int)).shape == (6, 6)  # whole numbers, as everywhere
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(q), out)


def test_threads_of_the_cpu_do_not_matter():
    armdyn.set_threads(2)
    try:
        assert UR5.kernel("potential_energy", backend="gpu")(np.zeros((9000, 6))).shape == (9000,)
    finally:
        armdyn.set_threads(1)


def test_bad_arrays():
    kernel = UR5.kernel("inverse_dynamics", backend="gpu")
    q = np.zeros((3, 6))
    bad = q.copy()
    bad[2, 4] = np.nan
    with pytest.raises(InputError, match="qd is not finite in row 2 of the batch"):
        kernel(q, bad, q)
    with pytest.raises(InputError, match="beyond the range of single precision"):
        kernel(q, q, q + 1e39)
    with pytest.raises(InputError, match="complex128"):
        kernel(q, q, q + 1j)
    with pytest.raises(InputError, match=r"expects qdd of shape \(..., 6\), got \(3, 5\)"):
        kernel(armdyn.gpu.array(q), q, q[:, :5])
    with pytest.raises(InputError, match=r"expects q of shape \(..., 6\), got \(7,\)"):
        kernel(armdyn.gpu.array(np.zeros(7)), q, q)
    with pytest.raises(InputError, match="do not broadcast"):
        kernel(q, np.zeros((2, 6)), q)
    with pytest.raises(InputError, match="takes 3 arrays"):
        kernel(q)


def test_devices():
    first = armdyn.gpu.devices()[0]
    assert first.kind in repr(first)
    for asked in (0, first, first.name[:4].upper(), None):
        assert armdyn.gpu.array([1.0], device=asked).device is first
    with pytest.raises(InputError, match=f"unknown device 'abacus'; available: 0: {first.name[:4]}"):
        UR5.kernel("inertia_matrix", backend="gpu", device="abacus")(np.zeros(6))
    with pytest.raises(InputError, match="unknown device 99"):
        armdyn.gpu.array([1.0], device=99)
    other = webgpu.Device("other", first.kind, first.backend, first.adapter)
    with pytest.raises(InputError, match=r"q is on other .* the computation on"):
        UR5.kernel("inertia_matrix", backend="gpu", device=0)(armdyn.gpu.array(np.zeros(6), device=other))
    with pytest.raises(InputError, match=r"qd is on .* the computation on other"):
        UR5.kernel("bias", backend="gpu")(armdyn.gpu.array(np.zeros(6), other), armdyn.gpu.array(np.zeros(6)))


def test_no_device_and_no_library(monkeypatch):
    with monkeypatch.context() as m:
        m.setattr(webgpu, "devices", list)
        with pytest.raises(webgpu.NoDevice, match=r"no graphics device was found: .*mesa-vulkan-drivers"):
            UR5.kernel("inertia_matrix", backend="gpu")(np.zeros(6))
    with monkeypatch.context() as m:
        m.setitem(__import__("sys").modules, "wgpu", None)
        with pytest.raises(webgpu.NoDevice, match=r"pip install .armdyn\[gpu\]"):
            armdyn.gpu.devices()


def test_a_lost_device_says_so():
    first = armdyn.gpu.devices()[0]
    lost = webgpu.Device(first.name, first.kind, first.backend, first.adapter)
    held = armdyn.gpu.array(np.ones(6), device=lost)
    lost.handle.destroy()
    kernel = UR5.kernel("inertia_matrix", backend="gpu")
    for attempt in (lambda: kernel(held), held.numpy, lambda: armdyn.gpu.array(np.ones(6), device=lost)):
        with pytest.raises(ComputationError, match=r"the device .* was lost"):
            attempt()


def test_a_constant_beyond_single_precision_is_refused():
    program = trace("large", lambda x: [x[0] * 1e39], {"x": (1,)}, [("y", (1,))])
    with pytest.raises(InputError, match=r"the constant 1e\+39 is beyond the range"):
        webgpu.DeviceFunction(program)(np.ones(1))


def test_memory_is_given_back():
    kernel = UR5.kernel("inertia_matrix", backend="gpu")
    q = armdyn.gpu.array(np.zeros((20_000, 6)))

    def used():
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    for _ in range(5):
        kernel(q).numpy()
    before = used()
    for _ in range(40):  # 115 MB of results
        kernel(q).numpy()
    assert used() - before < 30e6


def test_the_page_runs(capsys):
    scope: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / "howto" / "gpu.md", "python"):
        exec(block, scope)
    assert float(capsys.readouterr().out.split()[-1]) < 5e-3


@pytest.mark.parametrize("method", ["semi_implicit_euler", "RK4"])
def test_rollouts_are_those_of_the_cpu(method, monkeypatch):
    rng = np.random.default_rng(0)
    q0, qd0, tau = UR5.postures(rng, 70), rng.uniform(-1, 1, (70, 6)), rng.uniform(-20, 20, (70, 12, 6))
    tau[:35] *= 20  # beyond the motors' limits
    given = [x.astype(np.float32) for x in (q0, qd0, tau)]
    options = {"method": method, "every": 4, "limits": "stop"}
    expected = armdyn.gpu.rollout(UR5, *given, device="cpu", **options)
    found = armdyn.gpu.rollout(UR5, *given, **options)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == np.float32
        assert a.shape == (70, 3, 6)
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * np.abs(b).max())
    there = armdyn.gpu.rollout(UR5, armdyn.gpu.array(given[0]), *given[1:], **options)
    last = armdyn.gpu.rollout(UR5, *map(armdyn.gpu.array, given), method=method, limits="stop")
    for a, b, c in zip(there, found, last, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)
        np.testing.assert_array_equal(c.numpy(), b[:, -1])
    monkeypatch.setattr("armdyn.gpu.rollouts.STEPS", 4)  # several launches
    monkeypatch.setattr(webgpu.Device, "largest_array", 32 * 4 * 12 * 6)  # of some rows
    for a, b in zip(armdyn.gpu.rollout(UR5, *given, **options), found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_rollouts_under_a_control_law_and_of_a_floating_tree():
    law = armdyn.simulation.PDGravity(UR5.rest, 100.0, 20.0)
    start = (UR5.rest + 0.1, np.zeros(6), law)
    found, expected = (armdyn.gpu.rollout(UR5, *start, steps=50, device=device) for device in (None, "cpu"))
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    assert found[0].shape == (6,)
    tree = arm_called("floating tree")
    state = (tree.rest, np.full(tree.chain.nv, 0.3), np.zeros((1, tree.n)))
    found, expected = (
        armdyn.gpu.rollout(tree, *state, steps=20, method="RK4", device=device, friction=False)
        for device in (None, "cpu")
    )
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)


def test_rollouts_say_what_is_wrong():
    on = armdyn.gpu.array(np.zeros((3, 6)))
    with pytest.raises(InputError, match="the rollout on the CPU"):
        armdyn.gpu.rollout(UR5, on, np.zeros(6), np.zeros((1, 6)), steps=2, device="cpu")
    with pytest.raises(InputError, match="torque contains NaN"):
        armdyn.gpu.rollout(UR5, on, np.zeros(6), np.full((1, 6), np.nan), steps=2)
    assert armdyn.gpu.rollout(UR5, np.zeros((0, 6)), np.zeros(6), np.zeros((2, 6)))[0].shape == (0, 6)

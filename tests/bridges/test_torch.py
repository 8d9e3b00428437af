"""The bridge to PyTorch: the contract of all bridges, autograd's own checkers, torch.func, torch.compile, devices."""

from __future__ import annotations

import pickle
import shutil

import numpy as np
import pytest
import torch

import armdyn
from armdyn.bridges import torch_
from armdyn.bridges.function import function_of
from armdyn.errors import InputError
from bridge_contract import CASES, along, arrays, close, gradients, kernel, results

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
PANDA = armdyn.load("panda")
SCARA = armdyn.load("scara")


def tensors(values, grad=False):
    return [torch.tensor(x, requires_grad=grad) for x in values]


def arrays_of(found):
    return tuple(x.detach().numpy() for x in results(found))


@pytest.mark.parametrize(("arm", "quantity", "options"), CASES)
def test_values_and_derivatives(arm, quantity, options):
    k = kernel(arm, quantity, options)
    function = k.torch()
    batch = arrays(k, 5)
    expected = results(k(*batch))
    close(arrays_of(function(*tensors(batch))), expected, 0.0)  # the very same machine code
    close(arrays_of(torch.vmap(function)(*tensors(batch))), expected, 0.0)
    values, tangents = [x[0] for x in batch], [x[1] for x in batch]
    found = results(function(*(leaves := tensors(values, grad=True))))
    rng = np.random.default_rng(1)
    weights = [rng.uniform(-1, 1, x.shape) for x in found]
    pulled = torch.autograd.grad(found, leaves, [torch.tensor(w) for w in weights])
    close(arrays_of(pulled), gradients(k, values, weights), 1e-10)
    _, moved = torch.func.jvp(function, tuple(tensors(values)), tuple(tensors(tangents)))
    close(arrays_of(moved), along(k, values, tangents), 1e-10)
    device = k.torch(device_form=True)
    close(arrays_of(device(*tensors(batch))), expected, 1e-10)
    if not k.options.derivatives:  # whose gradients are second derivatives, checked above
        found = results(device(*(leaves := tensors(values, grad=True))))
        found = [x if x.requires_grad else x + 0 * leaves[0].sum() for x in found]  # some depend on nothing
        pulled = torch.autograd.grad(found, leaves, [torch.tensor(w) for w in weights], allow_unused=True)
        pulled = [torch.zeros_like(x) if g is None else g for g, x in zip(pulled, leaves, strict=True)]
        close(arrays_of(tuple(pulled)), gradients(k, values, weights), 1e-9)


@pytest.mark.parametrize("quantity", ["inertia_matrix", "forward_dynamics", "kinetic_energy", "inertia_factors"])
def test_gradcheck_and_gradgradcheck(quantity):
    k = SCARA.kernel(quantity)
    leaves = tensors(arrays(k, 2), grad=True)
    assert torch.autograd.gradcheck(k.torch(), leaves, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(k.torch(), leaves)
    leaves[0] = leaves[0].detach()[:1].requires_grad_()  # shared by the batch
    assert torch.autograd.gradcheck(k.torch(), leaves)


@pytest.mark.parametrize("quantity", ["inertia_factors", "forward_dynamics"])
def test_opcheck(quantity):
    k = SCARA.kernel(quantity)
    operator = torch_._operator(function_of(k))
    found = torch.library.opcheck(operator, tensors(arrays(k, 3), grad=True))
    assert set(found.values()) == {"SUCCESS"}


def test_torch_func_jacobians_are_those_of_the_derivative_kernel():
    k = PANDA.forward_dynamics
    batch = arrays(k, 3)
    expected = PANDA.forward_dynamics_derivatives(*batch)
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        close(arrays_of(torch.vmap(jacobian(k.torch(), (0, 1, 2)))(*tensors(batch))), expected, 1e-11)


def test_the_hessian_of_the_kinetic_energy_is_the_inertia_matrix():
    q, qd = arrays(PANDA.kinetic_energy)
    H = torch.func.hessian(PANDA.kinetic_energy.torch(), 1)(*tensors((q, qd)))
    close(H.numpy(), PANDA.inertia_matrix(q), 1e-11)


@pytest.mark.parametrize("device_form", [False, True])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_torch_compile(backend, device_form):
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("no C++ compiler here")
    k = SCARA.forward_dynamics
    function = k.torch(device_form=device_form)

    def loss(q, qd, tau):
        return (function(torch.sin(q), qd, tau) ** 2).sum()

    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    for count in (3, 5):
        leaves = tensors(arrays(k, count), grad=True)
        found, expected = compiled(*leaves), loss(*leaves)
        close(found.item(), expected.item(), 1e-10)
        close(arrays_of(torch.autograd.grad(found, leaves)), arrays_of(torch.autograd.grad(expected, leaves)), 1e-10)


def test_operands_broadcast():
    k = PANDA.forward_dynamics
    q, qd, tau = arrays(k, 3)[0], arrays(k)[1], arrays(k, 2, 3)[2]
    close(k.torch()(*tensors((q, qd, tau))).numpy(), k(q, qd, tau), 0.0)
    nested = torch.vmap(torch.vmap(k.torch(), (0, None, 0)), (None, None, 0))
    close(nested(*tensors((q, qd, tau))).numpy(), k(q, qd, tau), 0.0)


def test_an_empty_batch():
    k = PANDA.inverse_dynamics
    leaves = tensors(arrays(k, 0), grad=True)
    found = k.torch()(*leaves)
    assert found.shape == (0, 7)
    assert torch.autograd.grad(found.sum(), leaves)[0].shape == (0, 7)


def test_float32_is_computed_in_float32():
    k = PANDA.forward_dynamics
    batch = [x.astype(np.float32) for x in arrays(k, 33)]
    for made in (k, PANDA.kernel("forward_dynamics", dtype="float32")):
        found = made.torch()(*tensors(batch))
        assert found.dtype == torch.float32
        np.testing.assert_array_equal(found.numpy(), k(*batch))
    wide = [x.astype(float) for x in batch]
    assert made.torch()(*tensors(wide)).dtype == torch.float32
    leaves, doubles = tensors(batch, grad=True), tensors(wide, grad=True)
    for a, b in zip(
        torch.autograd.grad(k.torch()(*leaves).sum(), leaves),
        torch.autograd.grad(k.torch()(*doubles).sum(), doubles),
        strict=True,
    ):
        assert a.dtype == torch.float32
        assert 0 < (a - b).abs().max() < 1e-4 * b.abs().max()


def test_float32_may_be_computed_in_float64():
    k = PANDA.forward_dynamics.variant(dtype="float64")
    batch = [x.astype(np.float32) for x in arrays(k, 33)]
    found = k.torch()(*tensors(batch))
    assert found.dtype == torch.float32
    np.testing.assert_array_equal(found.numpy(), k(*(x.astype(float) for x in batch)).astype(np.float32))
    leaves = tensors(batch, grad=True)
    assert torch.autograd.grad(k.torch()(*leaves).sum(), leaves)[0].dtype == torch.float32


def test_numpy_memory_is_read_in_place_whatever_its_strides():
    k = PANDA.forward_dynamics
    whole = np.random.default_rng(0).uniform(-1, 1, (9, 3, 7))
    values = [torch.from_numpy(whole)[:, j] for j in range(3)]
    close(k.torch()(*values).numpy(), k(*(whole[:, j] for j in range(3))), 0.0)
    q = torch.tensor(arrays(k)[0]).expand(9, 7)
    close(k.torch()(q, values[1], values[2]).numpy(), k(q.numpy(), whole[:, 1], whole[:, 2]), 0.0)


def test_wrong_shapes_have_our_messages():
    function = PANDA.forward_dynamics.torch()
    q, qd, tau = tensors(arrays(PANDA.forward_dynamics, 3))
    with pytest.raises(
        InputError, match=r"forward_dynamics of this arm \(n = 7\) expects q of shape \(\.\.\., 7\), got"
    ):
        function(q[:, :6], qd, tau)
    with pytest.raises(InputError, match="takes 3 arrays"):
        function(q, qd)
    with pytest.raises(InputError, match=r"do not broadcast together: q \(3,\), qd \(2,\), tau \(3,\)"):
        function(q, qd[:2], tau)


def test_on_other_devices_the_program_is_in_operations_of_torch(monkeypatch):
    class Elsewhere:
        def __init__(self, device):
            self.device = torch.device(device)

    assert torch_._elsewhere("bias", [Elsewhere("cuda:0"), Elsewhere("cuda:0")])
    assert not torch_._elsewhere("bias", [Elsewhere("cpu")])
    with pytest.raises(InputError, match=r"all tensors must be on one device, got cpu, cuda:0; tensor.to\(device\)"):
        torch_._elsewhere("bias", [Elsewhere("cpu"), Elsewhere("cuda:0")])
    q, qd = tensors(arrays(SCARA.bias, 3))
    monkeypatch.setattr(torch_, "_run", lambda *_: pytest.fail("machine code for a tensor elsewhere"))
    monkeypatch.setattr(torch_, "_elsewhere", lambda *_: True)
    close(arrays_of(SCARA.bias.torch()(q, qd)), SCARA.bias(q.numpy(), qd.numpy()))
    single = SCARA.bias.torch()(q.float(), qd[0].float())
    assert single.dtype == torch.float32
    assert single.shape == (3, 4)
    assert pickle.loads(pickle.dumps(SCARA.bias.torch(device_form=True))).device_form


def test_a_network_learns_through_the_dynamics():
    torch.manual_seed(0)
    function = SCARA.inverse_dynamics.torch(parameters="runtime")
    true = torch.tensor([float(v) for v in SCARA.minimal_parameters.values])
    motion = [torch.tensor(x) for x in arrays(SCARA.inverse_dynamics, 64)]
    torque = function(*motion, true)
    guess = (0.5 * true).requires_grad_()
    optimiser = torch.optim.LBFGS([guess], max_iter=100, tolerance_grad=1e-12, tolerance_change=1e-16)

    def loss():
        optimiser.zero_grad()
        value = ((function(*motion, guess) - torque) ** 2).mean()
        value.backward()
        return value

    optimiser.step(loss)
    torch.testing.assert_close(guess.detach(), true, rtol=1e-3, atol=1e-4)
